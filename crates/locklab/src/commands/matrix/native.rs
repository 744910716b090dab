//! `locklab matrix` on this machine.

use super::{MatrixArgs, WorkArg, distinct};
use crate::cli::Common;
use crate::comparing::{Comparing, dry_run};
use crate::list::Lengths;
use clap::{Args, ValueEnum};
use locklab_host::error::Error;
use locklab_host::interrupt;
use locklab_host::topology::{ranges, real_time};
use locklab_judge::Family;
use locklab_lab::experiment::Design;
use locklab_native::{Native, Plan, Spec, Unit, Work, pairs_for, subject};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

/// Options of a matrix on this machine.
#[derive(Debug, Args)]
pub struct NativeArgs {
    /// What all cells together may take, in seconds [default: 60]
    #[arg(long, value_name = "SECONDS")]
    pub time: Option<u32>,
    /// Stop after so many seconds and report what there is
    #[arg(long, value_name = "SECONDS")]
    pub time_limit: Option<u32>,
    /// Measured part of a slice, in microseconds [default: found for each cell]
    #[arg(long, value_name = "US")]
    pub slice_us: Option<u32>,
    /// Code layout of both locks [default: drawn for each block of slices]
    #[arg(long, value_name = "N")]
    pub layout: Option<usize>,
    /// CPUs to pin to, in this order [default: cores, siblings, other nodes]
    #[arg(long, value_name = "LIST")]
    pub pin: Option<Lengths>,
    /// What lengths count: n + 1 units of about 15 cycles, or nanoseconds
    #[arg(long, value_enum)]
    pub unit: Option<UnitArg>,
    /// Processes that share memory, instead of threads
    #[arg(long)]
    pub processes: bool,
}

/// `--unit`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum UnitArg {
    /// n means n + 1 units of about 15 cycles
    Units,
    /// Nanoseconds, by a calibration at start
    Ns,
}

impl NativeArgs {
    /// The first of them that was given.
    pub(super) fn given(&self) -> Option<&'static str> {
        let all = [
            (self.time.is_some(), "--time"),
            (self.time_limit.is_some(), "--time-limit"),
            (self.slice_us.is_some(), "--slice-us"),
            (self.layout.is_some(), "--layout"),
            (self.pin.is_some(), "--pin"),
            (self.unit.is_some(), "--unit"),
            (self.processes, "--processes"),
        ];
        all.into_iter()
            .find_map(|(given, name)| given.then_some(name))
    }
}

/// Runs it.
///
/// # Errors
/// One sentence.
pub(super) fn run(args: &MatrixArgs, common: &Common) -> Result<ExitCode, Error> {
    // Names first: nobody waits for a calibration to hear of a typo.
    for name in std::iter::once(&args.baseline).chain(&args.experiment) {
        subject::find(name).map_err(Error::Usage)?;
    }
    let native = Native::probe();
    let spec = spec(args, native.topology.order.len())?;
    let plan = Plan::new(spec, &native).map_err(Error::Usage)?;
    let comparing = &args.comparing;
    let design = Design {
        pairs: comparing.pairs(pairs_for(plan.cells.len()))?,
        seed: common.seed,
        delta: comparing.delta(1.0)?,
        family: Family::FalseDiscovery,
        aa: comparing.aa,
    };
    let only = (plan.cpus.len() == 1).then(|| ranges(&plan.cpus));
    let interrupt = interrupt::listen()?;
    let (mut instrument, experiment) = native
        .instrument(plan, design, Arc::clone(&interrupt))
        .map_err(Error::Failed)?;
    if common.dry_run {
        return dry_run(&experiment, &instrument, common);
    }
    if real_time() {
        return Err(Error::Failed(
            "this process has a real-time scheduling policy, under which spinning threads would \
             keep the machine from anything else, ending the run included; start it without chrt"
                .into(),
        ));
    }
    if let (Some(cpu), false) = (only, common.quiet) {
        eprintln!("Only CPU {cpu} may be used: threads take turns on it.");
    }
    Comparing {
        args: comparing,
        common,
        interrupt: &interrupt,
        time_limit: args.here.time_limit.map(|s| Duration::from_secs(s.into())),
        file: None,
    }
    .carry_out(&mut instrument, experiment)
}

/// What the arguments ask for, with the defaults of a machine of so many
/// CPUs.
fn spec(args: &MatrixArgs, cpus: usize) -> Result<Spec, Error> {
    let here = &args.here;
    let (critical, non_critical) = args.lengths()?;
    let pin = match &here.pin {
        None => None,
        Some(list) => Some(cpu_numbers(list)?),
    };
    let cpus = pin.as_ref().map_or(cpus, Vec::len).max(1);
    Ok(Spec {
        threads: match &args.threads {
            Some(threads) => distinct(&threads.0),
            None => default_threads(cpus),
        },
        critical,
        non_critical,
        unit: match here.unit {
            None | Some(UnitArg::Units) => Unit::Units,
            Some(UnitArg::Ns) => Unit::Nanoseconds,
        },
        work: match args.workload {
            WorkArg::Units => Work::Units,
            WorkArg::Fstat => Work::Fstat,
        },
        pin,
        processes: here.processes,
        latency: args.latency,
        slice: here.slice_us.map(|us| Duration::from_micros(us.into())),
        layout: here.layout,
        time: Duration::from_secs(here.time.unwrap_or(60).into()),
        ..Spec::new(&args.baseline, args.experiment())
    })
}

/// One thread, half the CPUs, all of them, and twice as many.
fn default_threads(cpus: usize) -> Vec<usize> {
    let mut threads = vec![1, (cpus / 2).max(1), cpus, 2 * cpus];
    threads.dedup();
    threads.retain(|n| *n <= locklab_locks::MAX_CPUS);
    threads
}

fn cpu_numbers(list: &Lengths) -> Result<Vec<usize>, Error> {
    list.0
        .iter()
        .map(|cpu| {
            usize::try_from(*cpu).map_err(|_| Error::Usage(format!("--pin: there is no CPU {cpu}")))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Cli, Command};
    use clap::Parser;

    fn spec_of(arguments: &str, cpus: usize) -> Spec {
        let words = ["locklab", "matrix"].into_iter();
        let cli = Cli::try_parse_from(words.chain(arguments.split(' '))).unwrap();
        match cli.command {
            Command::Matrix(args) => spec(&args, cpus).unwrap(),
            _ => unreachable!("it says matrix"),
        }
    }

    #[test]
    fn the_default_matrix_goes_from_one_thread_to_more_than_there_are_cpus() {
        let threads = |cpus| spec_of("virt-spin virt-spin-backoff", cpus).threads;
        assert_eq!(threads(1), [1, 2]);
        assert_eq!(threads(2), [1, 2, 4]);
        assert_eq!(threads(8), [1, 4, 8, 16]);
    }

    #[test]
    fn lists_lose_their_repetitions() {
        let spec = spec_of("ticket mcs --threads 2,1,2 --critical 3,3", 2);
        assert_eq!((spec.threads, spec.critical), (vec![2, 1], vec![3]));
        let spec = spec_of("ticket mcs --pin 1,0 --unit ns", 8);
        assert_eq!(spec.pin, Some(vec![1, 0]));
        assert_eq!(spec.threads, [1, 2, 4]);
        assert_eq!(spec.unit, Unit::Nanoseconds);
    }
}
