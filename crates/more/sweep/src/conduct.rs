//! A sweep from its file to its report: begin or continue it, carry it out here
//! or on a cluster, collect it. The command parses its arguments before this, and
//! prints the report after it.

use crate::kernels::{self, KernelOptions, KernelSweep};
use crate::kinds::{Report, Sweep, Worker};
use crate::machines::{self, Machines};
use crate::models::{Models, plan_of};
use crate::slurm::{self, Options};
use crate::task::{Task, missing_units};
use crate::{cluster, estimate, local, report};
use locklab_host::error::Error;
use locklab_host::interrupt;
use locklab_lab::file::FileKind;
use locklab_lab::progress::Progress;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// A sweep that is to be carried out or collected.
#[derive(Clone, Debug)]
pub struct Request {
    /// The path of the file that defines it.
    pub file: PathBuf,
    /// Text of the file.
    pub text: String,
    /// Folder of the sweep.
    pub folder: PathBuf,
    /// Says whether its tasks run here or on a cluster.
    pub executor: Executor,
    /// The nodes to measure on, if it is a sweep over real machines
    /// ([`machines::nodes`]).
    pub nodes: Option<Vec<String>>,
    /// Number of chunks, or of layouts of kernels, if it is given.
    pub tasks: Option<u64>,
    /// First seed, in place of the file's; of kernels, that of the first layout.
    pub seed: Option<u64>,
    /// Says whether to show neither a progress bar nor notes.
    pub quiet: bool,
}

/// Says where a sweep runs.
#[derive(Clone, Debug)]
pub enum Executor {
    /// They run on this many cores of this machine.
    Here(usize),
    /// They run on a Slurm cluster.
    Slurm(Options),
    /// They run on a Slurm cluster, without waiting for it.
    SlurmWithoutWaiting(Options),
    /// Nowhere: the shards are only collected. The cluster, if there is one,
    /// explains what is missing.
    Nowhere(Option<Options>),
}

impl Executor {
    /// Returns the options of submission, if it submits.
    fn submits(&self) -> Option<&Options> {
        match self {
            Self::Slurm(options) | Self::SlurmWithoutWaiting(options) => Some(options),
            Self::Here(_) | Self::Nowhere(_) => None,
        }
    }

    /// Returns the options of the cluster, if there is one.
    fn cluster(&self) -> Option<&Options> {
        match self {
            Self::Nowhere(options) => options.as_ref(),
            _ => self.submits(),
        }
    }
}

/// Describes what was collected of a sweep.
#[derive(Debug)]
pub struct Swept {
    /// Holds what there is to report.
    pub report: Report,
    /// The error that names what is missing, if something is.
    pub missing: Option<Error>,
}

/// The kind of a sweep.
enum Kind<'a> {
    /// Real kernels, a layout for each task.
    Kernels(KernelOptions),
    /// Real machines, of which these nodes are measured.
    Machines(&'a [String]),
    /// Modelled machines.
    Models,
}

impl Request {
    fn kind(&self) -> Kind<'_> {
        let kernel = FileKind::other(locklab_kernel::recipe::KIND);
        match &self.nodes {
            _ if FileKind::of(&self.text, &[kernel]).is_ok() => Kind::Kernels(KernelOptions {
                file: self.file.clone(),
                layouts: self.tasks,
                seed: self.seed,
            }),
            Some(nodes) => Kind::Machines(nodes),
            None => Kind::Models,
        }
    }
}

/// Adds the path of the file, if the error is its fault.
fn of_file(error: Error, file: &Path) -> Error {
    match error {
        Error::Usage(_) => error.within(file),
        other => other,
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
    let (folder, text) = (&request.folder, &request.text);
    let located = |error: Error| of_file(error, &request.file);
    match request.kind() {
        Kind::Kernels(options) => {
            let sweep = KernelSweep::open_or_begin(folder, text, &options)?;
            carried_out(&sweep, request)
        }
        Kind::Machines(nodes) => {
            let sweep = Machines::open_or_begin(folder, text, request.seed, nodes);
            carried_out(&sweep.map_err(located)?, request)
        }
        Kind::Models => {
            let sweep = Models::open_or_begin(folder, text, request.seed, request.tasks);
            carried_out(&sweep.map_err(located)?, request)
        }
    }
}

fn carried_out<S: Sweep>(sweep: &S, request: &Request) -> Result<Option<Swept>, Error> {
    let interrupt = interrupt::listen()?;
    let mut busy = None;
    if let Executor::Here(cores) = request.executor {
        busy = local::run(sweep, cores, &interrupt, request.quiet)?;
    }
    if let Some(options) = request.executor.submits() {
        let progress = Progress::new(0, "done", request.quiet);
        progress.note(&cluster::submit_open(sweep, options)?);
        if matches!(request.executor, Executor::SlurmWithoutWaiting(_)) {
            return Ok(None);
        }
        if !cluster::wait(sweep, &interrupt, &progress) {
            return Err(Error::Interrupted(
                "interrupted; the tasks continue without this command, and the same command waits \
                 for them and collects"
                    .into(),
            ));
        }
    }
    let mut collected = sweep.collect(&interrupt, request.quiet)?;
    let missing = S::missing(&mut collected);
    let mut again = String::new();
    if let Some(options) = request.executor.cluster() {
        cluster::explain(sweep.folder(), missing);
        if sweep.before().is_empty() {
            let command = cluster::again(sweep.folder(), options, missing);
            again = format!(", as does: {command}");
        }
    }
    let missing = missing.first().map(|first| {
        let ((task, unit), units) = (S::NOUNS, missing_units(missing));
        let units = match task == unit {
            true => format!("{units} of {} {unit}s", sweep.units()),
            false => format!("{units} {unit}s of {} {task}s", missing.len()),
        };
        let more = match missing.len() {
            1 => String::new(),
            n => format!("; and {} more", n - 1),
        };
        Error::Failed(format!(
            "{units} are missing ({}: {}{more}); the same command again carries out just \
             these{again}",
            first.task, first.why
        ))
    });
    Ok(Some(Swept {
        missing,
        report: sweep.report(collected, busy),
    }))
}

/// Carries out one task of a cluster. If its time is nearly up and `requeue` is
/// set, it puts itself back into the queue.
///
/// # Errors
/// The folder holds no sweep of this build of locklab, the shard cannot be
/// written, or the task was stopped before it was done. The runs until then are
/// stored.
pub fn task(folder: &Path, task: &Task, requeue: bool, quiet: bool) -> Result<(), Error> {
    let interrupt = interrupt::listen()?;
    let time = interrupt::time_is_nearly_up(&interrupt)?;
    let worker = Worker {
        interrupt: &interrupt,
        counted: &AtomicU64::new(0),
        quiet,
    };
    let is_done = match task {
        Task::Chunk(_) => Models::open(folder)?.carry_out(task, &worker)?,
        Task::Node(_) => Machines::open(folder)?.carry_out(task, &worker)?,
        Task::Build(_) | Task::Layout(_) => KernelSweep::open(folder)?.carry_out(task, &worker)?,
    };
    if is_done {
        return Ok(());
    }
    if requeue && time.load(Ordering::Relaxed) {
        slurm::requeue_this()?;
    }
    Err(Error::Interrupted(
        "the task was stopped before it was done; what was run is stored, and the next one goes on \
         behind it"
            .into(),
    ))
}

/// Returns what would run, as text or as JSON. `cores` are those of this machine, and
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
    let located = |error: Error| of_file(error, &request.file);
    match request.kind() {
        Kind::Kernels(options) => kernels::dry_run(text, &options, json),
        Kind::Machines(nodes) => {
            let plan = machines::plan(text, nodes).map_err(located)?;
            Ok(match json {
                true => format!("{:#}\n", plan.json()),
                false => plan.text(),
            })
        }
        Kind::Models => {
            let plan = plan_of(text, request.seed, None).map_err(located)?;
            let core = estimate::on_one_core(&plan);
            Ok(match json {
                true => format!("{:#}\n", report::plan_json(&plan, core)),
                false => report::plan_text(&plan, &report::times(core, cores, words)),
            })
        }
    }
}
