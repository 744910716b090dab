//! A sweep from its file to its report: begin or continue it, carry it out here
//! or on a cluster, collect it. The command parses its arguments before this, and
//! prints the report after it.

use crate::collect::collect;
use crate::folder::{Folder, plan_of};
use crate::hardware::{self, Fleet, HERE};
use crate::slurm::{self, Options};
use crate::task::{Ended, run_chunk};
use crate::{cluster, fleet_report, local, report};
use locklab_document::Document;
use locklab_host::error::Error;
use locklab_host::interrupt;
use locklab_lab::progress::Progress;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A sweep that is to be carried out or collected.
#[derive(Clone, Debug)]
pub struct Request {
    /// Folder of the sweep.
    pub folder: PathBuf,
    /// Text of its file.
    pub text: String,
    /// Where it runs.
    pub executor: Executor,
    /// Whether to show neither a progress bar nor notes.
    pub quiet: bool,
}

/// Where a sweep runs.
#[derive(Clone, Debug)]
pub enum Executor {
    /// On this many cores of this machine.
    Here(usize),
    /// On a Slurm cluster.
    Slurm(Options),
    /// On a Slurm cluster, without waiting for it.
    SlurmWithoutWaiting(Options),
    /// Nowhere: the shards are only collected. The cluster, if there is one,
    /// explains what is missing.
    Nowhere(Option<Options>),
}

impl Executor {
    /// The options of submission, if it submits.
    fn submits(&self) -> Option<&Options> {
        match self {
            Self::Slurm(options) | Self::SlurmWithoutWaiting(options) => Some(options),
            Self::Here(_) | Self::Nowhere(_) => None,
        }
    }

    /// The options of the cluster, if there is one.
    fn cluster(&self) -> Option<&Options> {
        match self {
            Self::Nowhere(options) => options.as_ref(),
            _ => self.submits(),
        }
    }
}

/// What was collected of a sweep.
#[derive(Debug)]
pub struct Swept {
    /// The report on what was collected.
    pub document: Document,
    /// The error that names what is missing, if something is.
    pub missing: Option<Error>,
}

/// Carries out a sweep of modelled machines in `chunks` chunks; returns `None` if
/// it was submitted without waiting.
///
/// # Errors
/// Those of [`Folder::open_or_begin`]; Slurm refused the job, Ctrl-C, or the
/// merged store cannot be written. The runs until then are stored.
pub fn models(request: &Request, chunks: Option<u64>) -> Result<Option<Swept>, Error> {
    let folder =
        Folder::open_or_begin(&request.folder, &request.text, chunks).map_err(Error::Failed)?;
    let interrupt = interrupt::listen()?;
    let mut busy = None;
    if let Executor::Here(cores) = request.executor {
        let progress = Progress::new(0, "runs", request.quiet);
        let done = local::run(&folder, cores, &interrupt, &progress);
        for why in &done.failed {
            progress.note(&format!("locklab: {why}"));
        }
        if done.interrupted {
            return Err(interrupted(
                "what was run is stored, and the same command goes on",
            ));
        }
        busy = done.busy;
    }
    if let Some(options) = request.executor.submits() {
        let said = cluster::submit_open(&folder, options).map_err(Error::Failed)?;
        let wait = |progress: &Progress| cluster::wait(&folder, &interrupt, progress);
        if !waited(request, &said, wait)? {
            return Ok(None);
        }
    }
    let progress = Progress::new(0, "shards", request.quiet);
    let mut collected = collect(&folder, &progress).map_err(Error::Failed)?;
    drop(progress);
    if request.executor.cluster().is_some() {
        cluster::explain(&folder, &mut collected);
    }
    let missing = collected.missing.as_slice();
    let again = match request.executor.cluster() {
        Some(options) => format!(", as does: {}", cluster::again(&folder, options, missing)),
        None => String::new(),
    };
    Ok(Some(Swept {
        missing: (!missing.is_empty()).then(|| {
            Error::Failed(format!(
                "{} runs of {} chunks are missing; the same command again carries out just \
                 these{again}",
                collected.missing_runs(),
                missing.len(),
            ))
        }),
        document: report::document(&folder, &collected, busy),
    }))
}

/// Measures on real machines, which [`hardware::nodes`] names; returns `None` if
/// the tasks were submitted without waiting.
///
/// # Errors
/// Those of [`Fleet::open_or_begin`] and [`hardware::measure`]; Slurm refused a
/// job, Ctrl-C, or the merged store cannot be written. The samples until then are
/// stored.
pub fn machines(request: &Request, features: &[String]) -> Result<Option<Swept>, Error> {
    let fleet =
        Fleet::open_or_begin(&request.folder, &request.text, features).map_err(Error::Failed)?;
    let interrupt = interrupt::listen()?;
    if let Executor::Here(_) = request.executor {
        hardware::measure(&fleet, HERE, &interrupt, request.quiet).map_err(Error::Failed)?;
    }
    if let Some(options) = request.executor.submits() {
        let said = cluster::submit_nodes(&fleet, options).map_err(Error::Failed)?;
        let wait = |progress: &Progress| cluster::wait_for_nodes(&fleet, &interrupt, progress);
        if !waited(request, &said, wait)? {
            return Ok(None);
        }
    }
    let report = fleet_report::collect(&fleet, request.executor.cluster().is_some())
        .map_err(Error::Failed)?;
    Ok(Some(Swept {
        missing: (!report.missing.is_empty()).then(|| {
            Error::Failed(format!(
                "{} of {} machines are not complete; the same command again carries out what is \
                 missing",
                report.missing.len(),
                features.len()
            ))
        }),
        document: report.document,
    }))
}

/// Waits for the submitted tasks unless the request says otherwise; returns
/// whether it waited.
fn waited(
    request: &Request,
    said: &str,
    wait: impl FnOnce(&Progress) -> bool,
) -> Result<bool, Error> {
    let progress = Progress::new(0, "done", request.quiet);
    progress.note(said);
    if matches!(request.executor, Executor::SlurmWithoutWaiting(_)) {
        return Ok(false);
    }
    if wait(&progress) {
        return Ok(true);
    }
    Err(interrupted(
        "the tasks go on without this command, and the same command waits for them and collects",
    ))
}

fn interrupted(next: &str) -> Error {
    Error::Interrupted(format!("interrupted; {next}"))
}

/// The work of one task of a cluster.
#[derive(Clone, Copy, Debug)]
pub enum Job<'a> {
    /// A chunk of a sweep of models.
    Chunk(usize),
    /// All measurements on the node of this feature.
    Node(&'a str),
}

/// Carries out one task of a cluster. If its time is nearly up and `requeue` is
/// set, it puts itself back into the queue.
///
/// # Errors
/// The folder holds no sweep of this build of locklab, the shard cannot be
/// written, or the task was stopped before it was done. The runs until then are
/// stored.
pub fn task(folder: &Path, job: Job<'_>, requeue: bool, quiet: bool) -> Result<(), Error> {
    let interrupt = interrupt::listen()?;
    let time = interrupt::time_is_nearly_up(&interrupt)?;
    if carried_out(folder, job, &interrupt, quiet).map_err(Error::Failed)? {
        return Ok(());
    }
    if requeue && time.load(Ordering::Relaxed) {
        slurm::requeue_this().map_err(Error::Failed)?;
    }
    Err(Error::Interrupted(
        "the task was stopped before it was done; what was run is stored, and the next one goes \
         on behind it"
            .into(),
    ))
}

fn carried_out(
    folder: &Path,
    job: Job<'_>,
    interrupt: &std::sync::Arc<AtomicBool>,
    quiet: bool,
) -> Result<bool, String> {
    match job {
        Job::Chunk(chunk) => {
            let folder = Folder::open(folder)?;
            let go_on = || !interrupt.load(Ordering::Relaxed);
            let ended = run_chunk(&folder, chunk, go_on, &AtomicU64::new(0))?;
            Ok(ended == Ended::Done)
        }
        Job::Node(feature) => hardware::measure(&Fleet::open(folder)?, feature, interrupt, quiet),
    }
}

/// What would run, as text or as JSON: on models, or on these nodes. `words`
/// formats a time.
///
/// # Errors
/// Those of [`plan_of`].
pub fn dry_run(
    text: &str,
    nodes: Option<&[String]>,
    cores: usize,
    json: bool,
    words: impl Fn(std::time::Duration) -> String,
) -> Result<String, String> {
    if let Some(nodes) = nodes {
        let plan = hardware::plan(text, nodes)?;
        return Ok(match json {
            true => format!("{:#}\n", plan.json()),
            false => plan.text(),
        });
    }
    let plan = plan_of(text, None)?;
    let core = crate::estimate::on_one_core(&plan);
    Ok(if json {
        format!("{:#}\n", report::plan_json(&plan, core))
    } else {
        report::plan_text(&plan, &report::times(core, cores, words))
    })
}
