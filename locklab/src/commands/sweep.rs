//! `locklab sweep`: a product of machines, locks, workloads and seeds, on this
//! machine's cores or as a job array of a cluster.

use crate::arguments::report_files::ReportFiles;
use crate::arguments::{Common, workers};
use crate::comparison::{show, show_stored};
use crate::output::{duration, print};
use clap::{Args, ValueEnum};
use locklab_host::error::Error;
use locklab_lab::settings::refuse;
use locklab_sweep::conduct::{self, Executor, Request};
use locklab_sweep::slurm::Options;
use locklab_sweep::{Report, Task, machines};
use std::path::PathBuf;
use std::process::ExitCode;

/// `locklab sweep`.
///
/// Given again, the same command continues where it stopped.
#[derive(Debug, Args)]
pub struct SweepArgs {
    /// The file that says what is compared where; see docs/sweeps.md
    #[arg(required_unless_present = "task")]
    pub file: Option<PathBuf>,
    /// Folder of the sweep [default: the file's name, ending in .sweep]
    #[arg(long, value_name = "DIR")]
    pub folder: Option<PathBuf>,
    /// Cores of this machine to use [default: all]
    #[arg(long, value_name = "N", conflicts_with = "slurm")]
    pub workers: Option<usize>,
    /// Run nothing; merge and show what is there
    #[arg(long, conflicts_with = "workers")]
    pub collect: bool,
    /// Number of tasks: chunks of runs [default: 256 or more]; for kernels, layouts
    /// [default: 8]
    #[arg(long, value_name = "N")]
    pub array: Option<u64>,
    /// Run on a Slurm cluster, whose nodes share the folder
    #[arg(long)]
    pub slurm: bool,
    /// Partition of the cluster
    #[arg(long, value_name = "NAME", requires = "slurm")]
    pub partition: Option<String>,
    /// Account of the cluster
    #[arg(long, value_name = "NAME", requires = "slurm")]
    pub account: Option<String>,
    /// Time limit of one task, in Slurm's notation
    #[arg(long, value_name = "TIME", requires = "slurm")]
    pub time: Option<String>,
    /// Features that nodes must have; with --on native, the report has a row for each
    #[arg(long, value_name = "FEATURES", requires = "slurm")]
    pub constraint: Vec<String>,
    /// Measure on real machines: on this one, or on a node of each feature
    #[arg(long, value_name = "native")]
    pub on: Option<On>,
    /// Put tasks that are preempted, or run out of time, back into the queue
    #[arg(long)]
    pub requeue: bool,
    /// Submit without waiting
    #[arg(long, requires = "slurm", conflicts_with = "collect")]
    pub no_wait: bool,
    /// First seed [default: the file's, or 1]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    #[command(flatten)]
    pub(crate) files: ReportFiles,
    /// Belongs into the file.
    #[arg(long, hide = true, allow_hyphen_values = true)]
    pub cflags: Option<String>,
    /// Do one task of the sweep in this folder, as a cluster's job
    #[arg(long, value_name = "DIR", hide = true, requires = "part")]
    pub task: Option<PathBuf>,
    /// Which task, as chunk:12
    #[arg(long, value_name = "PART", hide = true, requires = "task")]
    pub part: Option<Task>,
}

/// `--on`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum On {
    /// Hardware, not models
    Native,
}

/// Runs or collects a sweep.
///
/// # Errors
/// Those of [`conduct::carry_out`] and [`conduct::task`]. What was run before
/// stays stored.
pub fn run(args: &SweepArgs, common: &Common) -> Result<ExitCode, Error> {
    if let (Some(folder), Some(part)) = (&args.task, &args.part) {
        conduct::task(folder, part, args.requeue, common.quiet)?;
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(text) = &args.cflags {
        return Err(Error::Usage(format!(
            "the file of a sweep says what is compiled: write cflags = \"{text}\" there, and \
             leave out --cflags"
        )));
    }
    if args.requeue && !args.slurm {
        return Err(Error::Usage(
            "--requeue is for the queue of a cluster; leave it out, or add --slurm".into(),
        ));
    }
    if args.no_wait {
        refuse(
            &args.files,
            "is for a report, and --no-wait ends before there is one",
        )?;
    }
    let Some(file) = &args.file else {
        return Err(Error::Usage("a sweep needs its file".into()));
    };
    args.files.check()?;
    let nodes = |On::Native| machines::nodes(&args.constraint, args.slurm);
    let request = Request {
        file: file.clone(),
        text: locklab_lab::file::read(file)?,
        folder: match &args.folder {
            Some(folder) => folder.clone(),
            None => PathBuf::from(file.file_name().unwrap_or_default()).with_extension("sweep"),
        },
        executor: args.executor(),
        nodes: args.on.map(nodes).transpose()?,
        tasks: args.array,
        seed: args.seed,
        quiet: common.quiet,
    };
    if common.dry_run {
        let plan = conduct::dry_run(&request, workers(), common.json, duration);
        return print(&plan?);
    }
    let Some(swept) = conduct::carry_out(&request)? else {
        return Ok(ExitCode::SUCCESS);
    };
    match &swept.report {
        Report::Document(document) => {
            show(document, common)?;
            args.files.write(document, &[])?;
        }
        Report::Experiment(of) => {
            show_stored(&of.0, &of.1, &args.files, common)?;
        }
    }
    swept.missing.map_or(Ok(ExitCode::SUCCESS), Err)
}

impl SweepArgs {
    fn executor(&self) -> Executor {
        let options = Options {
            partition: self.partition.clone(),
            account: self.account.clone(),
            time: self.time.clone(),
            // A sweep over machines has a job for each.
            constraint: (self.on.is_none() && !self.constraint.is_empty())
                .then(|| self.constraint.join("&")),
            requeue: self.requeue,
        };
        match (self.collect, self.slurm) {
            (true, cluster) => Executor::Nowhere(cluster.then_some(options)),
            (false, false) => Executor::Here(self.workers.unwrap_or_else(workers)),
            (false, true) if self.no_wait => Executor::SlurmWithoutWaiting(options),
            (false, true) => Executor::Slurm(options),
        }
    }
}
