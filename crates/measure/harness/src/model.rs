//! The additional condition for a verdict on a simulation.
//!
//! The judge gives the certainty of a typical ratio over the pairs. Each pair
//! of a simulation runs on a different machine that the model's assumptions
//! allow, so its interval shrinks with the pairs although no pair shows which
//! of those machines is the real one. A firm verdict therefore stands only
//! where nine of ten of them agree with it; otherwise it is held back: unclear
//! (model). It must never make an unclear verdict firm.

use crate::experiment::Experiment;
use crate::judged::{Band, JudgedCell};
use locklab_judge::{Direction, Verdict};

/// Fraction of the pairs that may lie outside the band at either end.
const OUTSIDE: f64 = 0.05;

/// Returns the range of nine of ten of sorted figures; `None` if there are none.
#[must_use]
fn nine_of_ten(sorted: &[f64]) -> Option<(f64, f64)> {
    let last = sorted.len().checked_sub(1)?;
    // Rounded outwards, so that few figures do not look certain.
    let out = (sorted.len() as f64 * OUTSIDE) as usize;
    Some((sorted[out], sorted[last - out]))
}

/// Holds what is left of a verdict that is held back.
const UNDECIDED: Verdict = Verdict::Unclear {
    detectable: None,
    pairs_for_flat: None,
};

/// Returns whether nine of ten machines agree with a verdict. The band is of differences
/// (positive is better); the margin for flat is a fraction.
fn supports(verdict: &Verdict, (low, high): (f64, f64), margin: f64) -> bool {
    match verdict {
        Verdict::Better => low > 0.0,
        Verdict::Worse => high < 0.0,
        Verdict::Flat { .. } => low >= (1.0 - margin).ln() && high <= (1.0 + margin).ln(),
        Verdict::Unclear { .. } | Verdict::Invalid(_) => true,
    }
}

/// Holds a verdict back that the machines do not support. There is a difference
/// for each machine.
pub(crate) fn hold_back_one(verdict: &mut Verdict, differences: &[f64], margin: f64) {
    let mut sorted = differences.to_vec();
    sorted.sort_by(f64::total_cmp);
    if nine_of_ten(&sorted).is_some_and(|band| !supports(verdict, band, margin)) {
        *verdict = UNDECIDED;
    }
}

/// Gives each cell its band, and holds back verdicts that the band does not
/// support.
pub(crate) fn hold_back(experiment: &Experiment, cells: &mut [JudgedCell]) {
    for judged in cells {
        let Some(metric) = experiment.cells[judged.cell].primary() else {
            continue;
        };
        let mut sorted = judged.differences.clone();
        sorted.sort_by(f64::total_cmp);
        let Some((low, high)) = nine_of_ten(&sorted) else {
            continue;
        };
        let Some(primary) = judged.metrics.iter_mut().find(|m| m.metric == *metric) else {
            continue;
        };
        let verdict = &mut primary.judged.verdict;
        let agrees = supports(verdict, (low, high), experiment.design.delta);
        if !agrees {
            *verdict = UNDECIDED;
        }
        let (low, high) = match metric.direction {
            Direction::HigherIsBetter => (low.exp(), high.exp()),
            Direction::LowerIsBetter => ((-high).exp(), (-low).exp()),
        };
        judged.band = Some(Band {
            low,
            high,
            holds_back: !agrees,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::{
        Cell, Design, Facts, Key, Labels, Order, Pair, Provenance, Sample, Source, Values,
    };
    use crate::matrix::{OPS, metrics};
    use crate::verdicts::judge;
    use serde_json::Value;

    fn simulated(provenance: Provenance, ratios: &[f64]) -> Experiment {
        let mut cell = Cell::new(
            Key::point(4, 0, 1),
            metrics(4, locklab_workload::Waits::None, Source::Simulation),
        );
        for (index, ratio) in (0..).zip(ratios) {
            let sample = |rate: f64| Sample {
                values: Values::from([(OPS.to_owned(), rate)]),
                ..Sample::default()
            };
            cell.pairs.push(Pair {
                index,
                order: Order::Together,
                baseline: sample(1000.0),
                experiment: sample(1000.0 * ratio),
            });
        }
        Experiment {
            kind: "matrix".into(),
            labels: Labels::new("ticket", "mcs"),
            spec: Value::Null,
            design: Design::usual(ratios.len() as u32),
            provenance,
            facts: Facts::new(),
            caveats: Vec::new(),
            cells: vec![cell],
            interrupted: None,
        }
    }

    fn judged(provenance: Provenance, ratios: &[f64]) -> (&'static str, Option<Band>) {
        let verdicts = judge(&simulated(provenance, ratios)).unwrap();
        let cell = &verdicts.cells[0];
        (cell.verdict().unwrap().word(), cell.band)
    }

    #[test]
    fn a_firm_verdict_stands_only_where_the_machines_agree() {
        // Fourteen of fifteen allowed machines say better, one much worse.
        let mut ratios: Vec<f64> = (0..15).map(|n| 1.2 + 0.01 * f64::from(n)).collect();
        ratios[14] = 0.7;
        let model = || Provenance::Simulation("flat-16".into());
        let (verdict, band) = judged(model(), &ratios);
        assert_eq!(verdict, "unclear");
        let band = band.unwrap();
        assert!(band.holds_back && (band.low - 0.7).abs() < 1e-9, "{band:?}");
        // The same pairs on hardware are repetitions, and firm.
        let host = Provenance::Hardware("here".into());
        assert_eq!(judged(host, &ratios), ("better", None));
        ratios[14] = 1.1;
        let (verdict, band) = judged(model(), &ratios);
        assert_eq!((verdict, band.unwrap().holds_back), ("better", false));
        let (verdict, band) = judged(model(), &[1.0; 12]);
        assert_eq!((verdict, band.unwrap().holds_back), ("flat", false));
    }

    #[test]
    fn of_twenty_machines_one_may_say_otherwise() {
        let mut ratios: Vec<f64> = (0..20).map(|n| 0.5 + 0.01 * f64::from(n)).collect();
        ratios[3] = 1.5;
        let (verdict, band) = judged(Provenance::Simulation("m".into()), &ratios);
        assert_eq!(verdict, "worse");
        assert!(band.unwrap().high < 1.0);
    }
}
