//! A sweep from its file to its report: begun or gone on with, carried out
//! here or on a cluster, collected. What the command does between its
//! arguments and what it prints.

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

/// What is asked beside the file.
#[derive(Clone, Debug)]
pub struct Asked {
    /// Folder of the sweep.
    pub folder: PathBuf,
    /// Text of its file.
    pub text: String,
    /// Where it runs; nowhere if what is there is only to be collected.
    pub executor: Executor,
    /// No bar and no notes.
    pub quiet: bool,
}

/// Where a sweep runs.
#[derive(Clone, Debug)]
pub enum Executor {
    /// On so many cores of this machine.
    Here(usize),
    /// On a Slurm cluster.
    Slurm(Options),
    /// On one, without waiting for it.
    SlurmWithoutWaiting(Options),
    /// Nowhere; the cluster is asked what it knows of what is missing, if
    /// there is one.
    Nowhere(Option<Options>),
}

impl Executor {
    /// What is submitted with.
    fn submits(&self) -> Option<&Options> {
        match self {
            Self::Slurm(options) | Self::SlurmWithoutWaiting(options) => Some(options),
            Self::Here(_) | Self::Nowhere(_) => None,
        }
    }

    /// The cluster, where there is one.
    fn cluster(&self) -> Option<&Options> {
        match self {
            Self::Nowhere(options) => options.as_ref(),
            _ => self.submits(),
        }
    }
}

/// What is there of a sweep.
#[derive(Debug)]
pub struct Swept {
    /// The report on what is there.
    pub document: Document,
    /// What is missing, if something is.
    pub missing: Option<Error>,
}

/// Carries out a sweep of modelled machines in so many chunks; nothing comes
/// back where it is not waited for.
///
/// # Errors
/// One sentence. What was run is stored.
pub fn models(asked: &Asked, chunks: Option<u64>) -> Result<Option<Swept>, Error> {
    let folder =
        Folder::open_or_begin(&asked.folder, &asked.text, chunks).map_err(Error::Failed)?;
    let interrupt = interrupt::listen()?;
    let mut busy = None;
    if let Executor::Here(cores) = asked.executor {
        let progress = Progress::new(0, "runs", asked.quiet);
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
    if let Some(options) = asked.executor.submits() {
        let said = cluster::submit_open(&folder, options).map_err(Error::Failed)?;
        let wait = |progress: &Progress| cluster::wait(&folder, &interrupt, progress);
        if !waited(asked, &said, wait)? {
            return Ok(None);
        }
    }
    let progress = Progress::new(0, "shards", asked.quiet);
    let mut collected = collect(&folder, &progress).map_err(Error::Failed)?;
    drop(progress);
    if asked.executor.cluster().is_some() {
        cluster::explain(&folder, &mut collected);
    }
    let missing = collected.missing.as_slice();
    let again = match asked.executor.cluster() {
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

/// Measures on real machines, as [`hardware::nodes`] names them; nothing comes
/// back where it is not waited for.
///
/// # Errors
/// One sentence. What was measured is stored.
pub fn machines(asked: &Asked, features: &[String]) -> Result<Option<Swept>, Error> {
    let fleet =
        Fleet::open_or_begin(&asked.folder, &asked.text, features).map_err(Error::Failed)?;
    let interrupt = interrupt::listen()?;
    if let Executor::Here(_) = asked.executor {
        hardware::measure(&fleet, HERE, &interrupt, asked.quiet).map_err(Error::Failed)?;
    }
    if let Some(options) = asked.executor.submits() {
        let said = cluster::submit_nodes(&fleet, options).map_err(Error::Failed)?;
        let wait = |progress: &Progress| cluster::wait_for_nodes(&fleet, &interrupt, progress);
        if !waited(asked, &said, wait)? {
            return Ok(None);
        }
    }
    let report =
        fleet_report::collect(&fleet, asked.executor.cluster().is_some()).map_err(Error::Failed)?;
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

/// Waits for what was submitted, unless that was not asked; whether it did.
fn waited(asked: &Asked, said: &str, wait: impl FnOnce(&Progress) -> bool) -> Result<bool, Error> {
    let progress = Progress::new(0, "done", asked.quiet);
    progress.note(said);
    if matches!(asked.executor, Executor::SlurmWithoutWaiting(_)) {
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

/// What a task of a cluster is to do.
#[derive(Clone, Copy, Debug)]
pub enum Job<'a> {
    /// A chunk of a sweep of models.
    Chunk(usize),
    /// All that is measured on the node of a feature.
    Node(&'a str),
}

/// One task of a cluster. Where its time is up and `requeue` says so, it is put
/// back into the queue.
///
/// # Errors
/// One sentence; what was run is stored.
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
/// writes a time.
///
/// # Errors
/// One sentence: what is wrong with the file.
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
