//! What is judged of the runs of a workload, and the verdicts.
//!
//! Every metric is per unit of work or a rate, so that runs of other lengths
//! can be compared; less is better in all of them.

use crate::kernel::boot::Accelerator;
use crate::kernel::outcome::{Counts, Invalid, Measured};
use crate::kernel::session::RunPair;
use crate::kernel::workload::Workload;
use crate::report::comparison::Row;
use locklab_host::error::Error;
use locklab_judge::{Comparison, Direction, FaultKind, Pair, Role, Settings, Side, coin, judge};

type Metric = (&'static str, &'static str, fn(&Measured) -> Option<f64>);

fn per_unit(measured: &Measured, of: impl Fn(&Counts) -> u64) -> Option<f64> {
    Some(of(measured.counts.as_ref()?) as f64 / measured.work as f64)
}

/// Misses per thousand instructions of both modes, as the reports define it.
fn mpki(measured: &Measured, of: impl Fn(&Counts) -> u64) -> Option<f64> {
    let counts = measured.counts.as_ref()?;
    let all = counts.user.instructions + counts.kernel.instructions;
    Some(of(counts) as f64 * 1000.0 / all as f64)
}

const TCG: &[Metric] = &[
    ("l1i-misses:k", "/unit", |m| {
        per_unit(m, |c| c.kernel.l1i_misses)
    }),
    ("l1i-misses:u", "/unit", |m| {
        per_unit(m, |c| c.user.l1i_misses)
    }),
    ("l1i-mpki:k", "", |m| mpki(m, |c| c.kernel.l1i_misses)),
    ("l1i-mpki:u", "", |m| mpki(m, |c| c.user.l1i_misses)),
    ("instructions", "/unit", |m| {
        per_unit(m, |c| c.user.instructions + c.kernel.instructions)
    }),
    ("instructions:k", "/unit", |m| {
        per_unit(m, |c| c.kernel.instructions)
    }),
    ("instructions:u", "/unit", |m| {
        per_unit(m, |c| c.user.instructions)
    }),
];

const KVM: &[Metric] = &[("time", "ns/unit", |m| {
    Some(m.elapsed_ns as f64 / m.work as f64)
})];

/// Judged metrics of one workload; less is better in all of them, and the
/// workload's own decides.
///
/// # Errors
/// A setting that makes no sense.
pub fn judged(
    runs: &[RunPair],
    accelerator: Accelerator,
    workload: Workload,
    seed: u64,
) -> Result<Vec<Row>, Error> {
    let metrics = if accelerator == Accelerator::Tcg {
        TCG
    } else {
        KVM
    };
    let mut kept = Vec::new();
    let mut comparisons = Vec::new();
    for metric in metrics {
        let made = pairs(runs, seed, metric.2);
        let role = match accelerator {
            Accelerator::Tcg if metric.0 != workload.primary() => Role::Screening,
            _ => Role::Primary,
        };
        // A counter that never counted says nothing; the primary one must.
        let silent = made
            .iter()
            .all(|p| p.baseline == 0.0 && p.experiment == 0.0);
        if silent && role == Role::Screening {
            continue;
        }
        kept.push(metric);
        comparisons.push(Comparison {
            role,
            ..Comparison::primary(made, Direction::LowerIsBetter)
        });
    }
    let verdicts =
        judge(&comparisons, &Settings::default()).map_err(|e| Error::Usage(e.to_string()))?;
    Ok(kept
        .iter()
        .zip(verdicts)
        .map(|(metric, judged)| Row {
            name: metric.0.into(),
            unit: metric.1.into(),
            judged,
        })
        .collect())
}

/// Runs as the judge takes them, with a value of each.
pub(crate) fn pairs(
    runs: &[RunPair],
    seed: u64,
    of: impl Fn(&Measured) -> Option<f64>,
) -> Vec<Pair> {
    let value = |measured| of(measured).unwrap_or(f64::NAN);
    runs.iter()
        .enumerate()
        .map(|(index, run)| {
            let order = coin(seed, index as u64);
            let fault = |invalid: &Invalid, side| {
                Pair::invalid(FaultKind::RunFailed, Some(side), invalid.why.clone(), order)
            };
            match (&run.baseline, &run.experiment) {
                (Err(invalid), _) => fault(invalid, Side::Baseline),
                (_, Err(invalid)) => fault(invalid, Side::Experiment),
                (Ok(baseline), Ok(experiment)) => {
                    Pair::new(value(baseline), value(experiment), order)
                }
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::outcome::sample as run;
    use locklab_judge::Verdict;

    #[test]
    fn more_misses_in_every_layout_are_worse_and_silent_counters_are_left_out() {
        let pairs: Vec<RunPair> = (0..10)
            .map(|i| RunPair {
                seed: i,
                baseline: run(1000 + i),
                experiment: run(1100 + 2 * i),
            })
            .collect();
        let rows = judged(&pairs, Accelerator::Tcg, Workload::Fstat, 1).unwrap();
        assert_eq!(rows[0].name, "l1i-misses:k");
        assert_eq!(rows[0].judged.verdict, Verdict::Worse);
        assert!(rows.iter().all(|row| row.name != "l1i-misses:u"));
        assert_eq!(rows[0].judged.role, Role::Primary);
        // A lock's own loop is judged by what it executes.
        let matrix = judged(&pairs, Accelerator::Tcg, Workload::SpinlockMatrix, 1).unwrap();
        let decides: Vec<&str> = matrix
            .iter()
            .filter(|row| row.judged.role == Role::Primary)
            .map(|row| row.name.as_str())
            .collect();
        assert_eq!(decides, ["instructions:k"]);
        let mpki = rows.iter().find(|row| row.name == "l1i-mpki:k").unwrap();
        let value = mpki.judged.estimate.unwrap().baseline;
        assert!((200.0..202.0).contains(&value), "{value}");
    }

    #[test]
    fn guests_that_fail_make_the_comparison_invalid() {
        let failed = || {
            Err(Invalid {
                why: "the guest's kernel panicked".into(),
                console: vec![],
            })
        };
        let pairs: Vec<RunPair> = (0..10)
            .map(|i| RunPair {
                seed: i,
                baseline: run(9),
                experiment: failed(),
            })
            .collect();
        let rows = judged(&pairs, Accelerator::Tcg, Workload::Fstat, 1).unwrap();
        assert!(matches!(rows[0].judged.verdict, Verdict::Invalid(_)));
    }
}
