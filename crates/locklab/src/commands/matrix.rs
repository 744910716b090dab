//! `locklab matrix`: its arguments, and the way to this machine or to a
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
    /// The lock that is judged against it; may be left out with --aa
    #[arg(required_unless_present = "aa")]
    pub experiment: Option<String>,
    /// Numbers of threads, as 1,2,4..64 [default: 1, half the CPUs, all, twice]
    #[arg(long, value_name = "LIST")]
    pub threads: Option<Threads>,
    /// Lengths of the critical section [default: 0,1,2,4..128]
    #[arg(long, value_name = "LIST")]
    pub critical: Option<Lengths>,
    /// Lengths of the non-critical section [default: 1,32; with fstat 0]
    #[arg(long, value_name = "LIST")]
    pub non_critical: Option<Lengths>,
    /// What the critical section is
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
    /// Units of computation and copying, of the asked lengths
    Units,
    /// One fstat(2) on a file of the thread's own
    Fstat,
}

/// Runs it.
///
/// # Errors
/// One sentence.
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
    /// A length of what has none.
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
            // Those of the kernel benchmark of the virt-spin report.
            WorkArg::Units => (
                of(&self.critical, &[0, 1, 2, 4, 8, 16, 32, 64, 128]),
                of(&self.non_critical, &[1, 32]),
            ),
            WorkArg::Fstat => (vec![0], of(&self.non_critical, &[0])),
        })
    }
}

/// A list without what it repeats.
fn distinct<T: Copy + PartialEq>(list: &[T]) -> Vec<T> {
    let mut distinct = Vec::with_capacity(list.len());
    for n in list {
        if !distinct.contains(n) {
            distinct.push(*n);
        }
    }
    distinct
}
