//! From arguments to a question, with the defaults of this machine.

use crate::cli::{MatrixArgs, UnitArg, WorkArg};
use crate::matrix::{Spec, Unit, Work};
use std::time::Duration;

/// What the arguments ask for, with the defaults of a machine of so many
/// CPUs.
pub(crate) fn spec(args: &MatrixArgs, seed: u64, cpus: usize) -> Result<Spec, String> {
    let work = match args.workload {
        WorkArg::Units => Work::Units,
        WorkArg::Fstat => Work::Fstat,
    };
    let lengths = |given: &Option<crate::list::Lengths>, default: &[u64]| {
        distinct(given.as_ref().map_or(default, |list| &list.0))
    };
    if work == Work::Fstat && args.critical.is_some() {
        return Err("an fstat has no length; leave out --critical, or use --workload units".into());
    }
    let (critical, non_critical) = match work {
        // Those of the kernel benchmark of the virt-spin report.
        Work::Units => (
            lengths(&args.critical, &[0, 1, 2, 4, 8, 16, 32, 64, 128]),
            lengths(&args.non_critical, &[1, 32]),
        ),
        Work::Fstat => (vec![0], lengths(&args.non_critical, &[0])),
    };
    if !(args.delta > 0.0 && args.delta < 100.0) {
        return Err(format!(
            "--delta {} is no margin; give a percentage above 0 and below 100",
            args.delta
        ));
    }
    let pin = match &args.pin {
        None => None,
        Some(list) => Some(
            list.0
                .iter()
                .map(|cpu| {
                    usize::try_from(*cpu).map_err(|_| format!("--pin: there is no CPU {cpu}"))
                })
                .collect::<Result<Vec<usize>, String>>()?,
        ),
    };
    let cpus = pin.as_ref().map_or(cpus, Vec::len).max(1);
    Ok(Spec {
        baseline: args.baseline.clone(),
        experiment: match &args.experiment {
            Some(experiment) if !args.aa => experiment.clone(),
            _ => args.baseline.clone(),
        },
        threads: match &args.threads {
            Some(threads) => distinct(&threads.0),
            None => {
                let mut threads = vec![1, (cpus / 2).max(1), cpus, 2 * cpus];
                threads.dedup();
                threads.truncate(
                    threads
                        .iter()
                        .filter(|n| **n <= locklab_locks::MAX_CPUS)
                        .count(),
                );
                threads
            }
        },
        critical,
        non_critical,
        unit: match args.unit {
            UnitArg::Units => Unit::Units,
            UnitArg::Ns => Unit::Nanoseconds,
        },
        work,
        pairs: args.pairs,
        run: Duration::from_millis(args.run_ms.into()),
        warm_up: Duration::from_millis(args.warmup_ms.into()),
        seed,
        pin,
        processes: args.processes,
        latency: args.latency,
        aa: args.aa,
        delta: args.delta / 100.0,
    })
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
