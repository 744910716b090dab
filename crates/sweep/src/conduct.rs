//! A sweep from its file to its report: begin or continue it, carry it out here
//! or on a cluster, collect it. The command parses its arguments before this, and
//! prints the report after it.

use crate::collect::collect;
use crate::folder::{Folder, plan_of};
use crate::hardware::{self, Fleet, HERE};
use crate::kernels::{KernelOptions, KernelSweep};
use crate::slurm::{self, Options};
use crate::task::{Ended, run_chunk};
use crate::{cluster, fleet_report, local, report};
use locklab_document::Document;
use locklab_host::error::Error;
use locklab_host::interrupt;
use locklab_lab::experiment::Experiment;
use locklab_lab::file::FileKind;
use locklab_lab::progress::Progress;
use locklab_lab::store::Listed;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A sweep that is to be carried out or collected.
#[derive(Clone, Debug)]
pub struct Request {
    /// Its file.
    pub file: PathBuf,
    /// Text of the file.
    pub text: String,
    /// Folder of the sweep.
    pub folder: PathBuf,
    /// Where it runs.
    pub executor: Executor,
    /// The nodes to measure on, if it is a sweep over real machines
    /// ([`hardware::nodes`]).
    pub nodes: Option<Vec<String>>,
    /// Number of chunks, or of layouts of kernels, if it is given.
    pub tasks: Option<u64>,
    /// Seed of the first layout of kernels.
    pub seed: u64,
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
    /// What there is to report.
    pub report: Report,
    /// The error that names what is missing, if something is.
    pub missing: Option<Error>,
}

/// What there is to report of a sweep.
#[derive(Debug)]
pub enum Report {
    /// A report of its own.
    Document(Box<Document>),
    /// One experiment of two kernels, and its entry in the store of the folder.
    Experiment(Box<(Experiment, Listed)>),
}

impl Request {
    fn is_of_kernels(&self) -> bool {
        FileKind::of(&self.text) == Ok(FileKind::Kernels)
    }

    fn kernels(&self) -> KernelOptions {
        KernelOptions {
            file: self.file.clone(),
            layouts: self.tasks,
            seed: self.seed,
        }
    }

    /// The error for a file that makes no sense.
    fn located(&self, why: &str) -> Error {
        Error::Usage(format!("{}, {why}", self.file.display()))
    }
}

/// Carries out a sweep, or collects it; returns `None` if its tasks were
/// submitted without waiting.
///
/// # Errors
/// The file makes no sense, the folder has another sweep or cannot be written,
/// Slurm refused a job, Ctrl-C, or nothing can be collected. What was run until
/// then is stored.
pub fn carry_out(request: &Request) -> Result<Option<Swept>, Error> {
    match &request.nodes {
        _ if request.is_of_kernels() => kernels(request),
        Some(nodes) => machines(request, nodes),
        None => {
            // What is wrong with a file is no failure of its sweep.
            plan_of(&request.text, None).map_err(|e| request.located(&e))?;
            models(request)
        }
    }
}

/// Carries out a sweep of modelled machines; returns `None` if it was submitted
/// without waiting.
///
/// # Errors
/// Those of [`Folder::open_or_begin`]; Slurm refused the job, Ctrl-C, or the
/// merged store cannot be written. The runs until then are stored.
fn models(request: &Request) -> Result<Option<Swept>, Error> {
    let folder = Folder::open_or_begin(&request.folder, &request.text, request.tasks)
        .map_err(Error::Failed)?;
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
        report: Report::Document(report::document(&folder, &collected, busy).into()),
    }))
}

/// Measures on real machines, which [`hardware::nodes`] names; returns `None` if
/// the tasks were submitted without waiting.
///
/// # Errors
/// Those of [`Fleet::open_or_begin`] and [`hardware::measure`]; Slurm refused a
/// job, Ctrl-C, or the merged store cannot be written. The samples until then are
/// stored.
fn machines(request: &Request, features: &[String]) -> Result<Option<Swept>, Error> {
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
        report: Report::Document(report.document.into()),
    }))
}

/// Builds and measures two kernels, a task for each build and layout; returns
/// `None` if the tasks were submitted without waiting.
///
/// # Errors
/// Those of [`KernelSweep::open_or_begin`] and [`KernelSweep::collect`]; Slurm
/// refused a job, or Ctrl-C. The layouts until then are stored.
fn kernels(request: &Request) -> Result<Option<Swept>, Error> {
    let sweep = KernelSweep::open_or_begin(&request.folder, &request.text, &request.kernels())?;
    let interrupt = interrupt::listen()?;
    if let Executor::Here(cores) = request.executor {
        local::run_layouts(&sweep, cores, &interrupt, request.quiet)?;
    }
    if let Some(options) = request.executor.submits() {
        let said = cluster::submit_layouts(&sweep, options).map_err(Error::Failed)?;
        let wait = |progress: &Progress| cluster::wait_for_layouts(&sweep, &interrupt, progress);
        if !waited(request, &said, wait)? {
            return Ok(None);
        }
    }
    let mut collected = sweep.collect(&interrupt, request.quiet)?;
    if request.executor.cluster().is_some() {
        sweep.explain(&mut collected);
    }
    let whys = collected.missing.iter();
    let whys: Vec<String> = whys.map(|(n, why)| format!("layout {n}: {why}")).collect();
    Ok(Some(Swept {
        missing: (!whys.is_empty()).then(|| {
            Error::Failed(format!(
                "{} of {} layouts are missing ({}); the same command again measures just these",
                whys.len(),
                sweep.layouts(),
                whys.join("; ")
            ))
        }),
        report: Report::Experiment((collected.experiment, collected.listed).into()),
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

/// The work of one task of a cluster; as text, `chunk:12` or `node:icelake`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Job {
    /// A chunk of a sweep of models.
    Chunk(usize),
    /// All measurements on the node of this feature.
    Node(String),
    /// The build of a kernel.
    Build(usize),
    /// A layout of two kernels.
    Layout(usize),
}

impl FromStr for Job {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let unknown = || format!("'{text}' is no part of a sweep; give chunk:N or node:FEATURE");
        let (kind, which) = text.split_once(':').ok_or_else(unknown)?;
        let number = || which.parse().map_err(|_| unknown());
        match kind {
            "chunk" => number().map(Self::Chunk),
            "node" => Ok(Self::Node(which.to_owned())),
            "build" => number().map(Self::Build),
            "layout" => number().map(Self::Layout),
            _ => Err(unknown()),
        }
    }
}

/// Carries out one task of a cluster. If its time is nearly up and `requeue` is
/// set, it puts itself back into the queue.
///
/// # Errors
/// The folder holds no sweep of this build of locklab, the shard cannot be
/// written, or the task was stopped before it was done. The runs until then are
/// stored.
pub fn task(folder: &Path, job: &Job, requeue: bool, quiet: bool) -> Result<(), Error> {
    let interrupt = interrupt::listen()?;
    let time = interrupt::time_is_nearly_up(&interrupt)?;
    if carried_out(folder, job, &interrupt, quiet)? {
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
    job: &Job,
    interrupt: &std::sync::Arc<AtomicBool>,
    quiet: bool,
) -> Result<bool, Error> {
    let of_models = |chunk: usize| {
        let folder = Folder::open(folder)?;
        let go_on = || !interrupt.load(Ordering::Relaxed);
        let ended = run_chunk(&folder, chunk, go_on, &AtomicU64::new(0))?;
        Ok(ended == Ended::Done)
    };
    let of_machines =
        |feature: &str| hardware::measure(&Fleet::open(folder)?, feature, interrupt, quiet);
    match job {
        Job::Chunk(chunk) => of_models(*chunk).map_err(Error::Failed),
        Job::Node(feature) => of_machines(feature).map_err(Error::Failed),
        Job::Build(build) => {
            let sweep = KernelSweep::open(folder)?;
            sweep.build(*build, interrupt, quiet).map(|()| true)
        }
        Job::Layout(layout) => KernelSweep::open(folder)?.measure(*layout, interrupt),
    }
}

/// What would run, as text or as JSON. `cores` are those of this machine, and
/// `words` formats a time.
///
/// # Errors
/// The file makes no sense, as for [`carry_out`].
pub fn dry_run(
    request: &Request,
    cores: usize,
    json: bool,
    words: impl Fn(std::time::Duration) -> String,
) -> Result<String, Error> {
    let text = &request.text;
    if request.is_of_kernels() {
        return crate::kernels::dry_run(text, &request.kernels(), json);
    }
    if let Some(nodes) = &request.nodes {
        let plan = hardware::plan(text, nodes).map_err(|e| request.located(&e))?;
        return Ok(match json {
            true => format!("{:#}\n", plan.json()),
            false => plan.text(),
        });
    }
    let plan = plan_of(text, None).map_err(|e| request.located(&e))?;
    let core = crate::estimate::on_one_core(&plan);
    Ok(if json {
        format!("{:#}\n", report::plan_json(&plan, core))
    } else {
        report::plan_text(&plan, &report::times(core, cores, words))
    })
}
