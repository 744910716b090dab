//! `locklab matrix`: its arguments, and the choice of this machine or a
//! modelled one.

mod arguments;
mod file;
mod native;
mod simulated;

pub(super) use file::MatrixFile;
pub use file::file;
pub(super) use simulated::workers;

use crate::cli::Common;
use crate::comparing::ComparingArgs;
use crate::list::{Lengths, Threads};
use clap::{Args, ValueEnum};
use locklab_host::error::Error;
use std::process::ExitCode;

/// `locklab matrix`.
///
/// Without options it takes about a minute.
#[derive(Debug, Args)]
pub struct MatrixArgs {
    /// The lock to compare with
    pub baseline: String,
    /// The lock that is compared with it; optional with --aa
    #[arg(required_unless_present = "aa")]
    pub experiment: Option<String>,
    /// Numbers of threads, such as 1,2,4..64 [default: 1, half the CPUs, all,
    /// twice]
    #[arg(long, value_name = "LIST")]
    pub threads: Option<Threads>,
    /// Lengths of the critical section [default: 0,1,2,4..128]
    #[arg(long, value_name = "LIST")]
    pub critical: Option<Lengths>,
    /// Lengths of the non-critical section [default: 1,32; with fstat 0]
    #[arg(long, value_name = "LIST")]
    pub non_critical: Option<Lengths>,
    /// Content of the critical section
    #[arg(long, value_enum, default_value_t = WorkArg::Units)]
    pub workload: WorkArg,
    /// Measure the latency of each acquisition too (costs two clock reads)
    #[arg(long)]
    pub latency: bool,
    #[command(flatten)]
    #[allow(missing_docs, reason = "its options have their own")]
    pub comparing: ComparingArgs,
    #[command(flatten)]
    #[allow(missing_docs, reason = "its options have their own")]
    pub here: arguments::NativeArgs,
    /// Simulate on a modelled machine: a name of `locklab machine list`, or a
    /// file
    #[arg(long, value_name = "MACHINE")]
    pub on: Option<String>,
    #[command(flatten)]
    #[allow(missing_docs, reason = "its options have their own")]
    pub modelled: arguments::SimulatedArgs,
}

/// `--workload`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum WorkArg {
    /// Units of computation and copying, of the given lengths
    Units,
    /// One fstat(2) on a file of the thread's own
    Fstat,
}

/// Runs `locklab matrix`.
///
/// # Errors
/// [`Error::Usage`] if a lock, a machine or an option is wrong or does not
/// apply, [`Error::Failed`] if the machine or the store fails,
/// [`Error::Interrupted`] after Ctrl-C. Samples that were measured are stored.
pub fn run(args: &MatrixArgs, common: &Common) -> Result<ExitCode, Error> {
    match &args.on {
        Some(machine) if machine != "native" => {
            if let Some(option) = args.here.given() {
                return Err(Error::Usage(format!(
                    "{option} is for this machine; leave it out with --on"
                )));
            }
            simulated::run(args, common, machine)
        }
        _ => {
            if let Some(option) = args.modelled.given() {
                return Err(Error::Usage(format!(
                    "{option} is for simulated machines; say which, with --on MACHINE"
                )));
            }
            native::run(args, common)
        }
    }
}

impl MatrixArgs {
    /// The name of the experiment; the baseline's with `--aa`.
    fn experiment(&self) -> &str {
        match &self.experiment {
            Some(experiment) if !self.comparing.aa => experiment,
            _ => &self.baseline,
        }
    }

    /// Lengths of the critical and of the non-critical section.
    ///
    /// # Errors
    /// [`Error::Usage`] if a length is given for a workload that has none.
    fn lengths(&self) -> Result<(Vec<u64>, Vec<u64>), Error> {
        let of = |given: &Option<Lengths>, default: &[u64]| {
            distinct(given.as_ref().map_or(default, |list| &list.0))
        };
        if self.workload == WorkArg::Fstat && self.critical.is_some() {
            return Err(Error::Usage(
                "an fstat has no length; leave out --critical, or use --workload units".into(),
            ));
        }
        Ok(match self.workload {
            // The lengths of the kernel benchmark of the virt-spin report.
            WorkArg::Units => (
                of(&self.critical, &[0, 1, 2, 4, 8, 16, 32, 64, 128]),
                of(&self.non_critical, &[1, 32]),
            ),
            WorkArg::Fstat => (vec![0], of(&self.non_critical, &[0])),
        })
    }
}

/// A list without repetitions.
pub(super) fn distinct<T: Copy + PartialEq>(list: &[T]) -> Vec<T> {
    let mut distinct = Vec::with_capacity(list.len());
    for n in list {
        if !distinct.contains(n) {
            distinct.push(*n);
        }
    }
    distinct
}
