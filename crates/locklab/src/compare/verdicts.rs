//! From measured pairs to judged metrics.
//!
//! Turns runs into the judge's pairs: the first metric of a workload decides,
//! the others are screened. Must never decide anything itself.

use super::{Invalid, Measured, Measurement, Metric, RunPair};
use crate::report::comparison::Row;
use locklab_judge::{
    BadSetting, Comparison, Family, FaultKind, Judged, Order, Pair, Role, Settings, Side, Verdict,
    judge as judge_pairs,
};

/// A comparison with its verdicts.
#[derive(Clone, Debug)]
pub struct Verdicts {
    /// What was decided before the run.
    pub settings: Settings,
    /// In the order of the measured workloads.
    pub workloads: Vec<JudgedWorkload>,
}

/// One workload, judged.
#[derive(Clone, Debug)]
pub struct JudgedWorkload {
    /// The metric that decides first.
    pub rows: Vec<Row>,
    /// Metrics that cannot be judged because they were zero in some run.
    pub zero: Vec<String>,
}

impl JudgedWorkload {
    /// The verdict on the metric that decides.
    #[must_use]
    pub fn primary(&self) -> Option<&Row> {
        self.rows.iter().find(|r| r.judged.role == Role::Primary)
    }

    /// Whether the metric that decides is worse.
    #[must_use]
    pub fn is_worse(&self) -> bool {
        self.primary()
            .is_some_and(|r| r.judged.verdict == Verdict::Worse)
    }
}

/// Judges everything that was asked: a workload that was not run stays in
/// the family, which was decided before the run.
///
/// # Errors
/// A setting that makes no sense.
pub fn judge(measured: &Measured) -> Result<Verdicts, BadSetting> {
    let settings = Settings {
        delta: measured.spec.delta,
        family: Family::Holm,
        ..Settings::default()
    };
    let mut comparisons = Vec::new();
    let mut owners: Vec<(usize, &Metric)> = Vec::new();
    let mut workloads: Vec<JudgedWorkload> = Vec::new();
    for (index, measurement) in measured.workloads.iter().enumerate() {
        let mut zero = Vec::new();
        for (number, metric) in measurement.metrics.iter().enumerate() {
            let pairs = pairs(measurement, metric);
            let comparison = if number == 0 {
                Comparison {
                    bias_band: measurement.bias_band,
                    ..Comparison::primary(pairs, metric.direction)
                }
            } else {
                // What was never measured, or was zero at times (page faults,
                // short system times), has no ratio.
                if !pairs.iter().any(|p| p.fault().is_none()) {
                    if !measurement.pairs.is_empty() && has_zero(measurement, metric) {
                        zero.push(metric.name.clone());
                    }
                    continue;
                }
                if has_zero(measurement, metric) {
                    zero.push(metric.name.clone());
                    continue;
                }
                Comparison::screening(pairs, metric.direction)
            };
            owners.push((index, metric));
            comparisons.push(comparison);
        }
        workloads.push(JudgedWorkload {
            rows: Vec::new(),
            zero,
        });
    }
    let judged: Vec<Judged> = judge_pairs(&comparisons, &settings)?;
    for ((index, metric), judged) in owners.into_iter().zip(judged) {
        workloads[index].rows.push(Row {
            name: metric.name.clone(),
            unit: metric.unit.clone(),
            judged,
        });
    }
    Ok(Verdicts {
        settings,
        workloads,
    })
}

/// The order in which a pair ran.
#[must_use]
pub fn order(pair: &RunPair) -> Order {
    if pair.baseline_first {
        Order::BaselineFirst
    } else {
        Order::ExperimentFirst
    }
}

fn has_zero(measurement: &Measurement, metric: &Metric) -> bool {
    let runs = measurement
        .pairs
        .iter()
        .flat_map(|p| [&p.baseline, &p.experiment]);
    runs.filter_map(|r| r.values.get(&metric.name))
        .any(|x| *x <= 0.0)
}

/// The pairs of one metric, as the judge takes them. Pairs that count and
/// did not measure it (the misses of the other mode) are left out.
#[must_use]
pub fn pairs(measurement: &Measurement, metric: &Metric) -> Vec<Pair> {
    let of = |pair: &RunPair| {
        if pair.is_half() {
            return None;
        }
        let order = order(pair);
        let sides = [
            (Side::Baseline, &pair.baseline),
            (Side::Experiment, &pair.experiment),
        ];
        let fault = sides
            .iter()
            .filter_map(|(side, run)| Some((*side, run.invalid.as_ref()?)))
            // The gravest counts.
            .min_by_key(|(_, invalid)| !matches!(invalid, Invalid::CheckFailed(_)));
        if let Some((side, invalid)) = fault {
            let kind = match invalid {
                Invalid::Failed(_) | Invalid::Interrupted => FaultKind::RunFailed,
                Invalid::CheckFailed(_) => FaultKind::CheckFailed,
                Invalid::Counter(_) => FaultKind::CounterPartial,
            };
            return Some(Pair::invalid(kind, Some(side), invalid.why(), order));
        }
        let value = |run: &super::Run| run.values.get(&metric.name).copied();
        Some(Pair::new(
            value(&pair.baseline)?,
            value(&pair.experiment)?,
            order,
        ))
    };
    measurement.pairs.iter().filter_map(of).collect()
}
