//! Lag-1 autocorrelation: whether a run depends on the one before it.
//!
//! Runs may (pairing and the coin remove that); the differences of
//! the pairs must not. This module must never change an estimate, only report.

use crate::pair::{Order, Pair, Side};

/// Returns the lag-1 autocorrelation of a series about its mean. `None` for fewer than
/// three values, or where they do not vary.
pub(crate) fn lag1(series: &[f64]) -> Option<f64> {
    if series.len() < 3 {
        return None;
    }
    let mean = series.iter().sum::<f64>() / series.len() as f64;
    let square: f64 = series.iter().map(|x| (x - mean) * (x - mean)).sum();
    let product: f64 = series
        .windows(2)
        .map(|w| (w[0] - mean) * (w[1] - mean))
        .sum();
    (square > 0.0).then(|| product / square)
}

/// Returns the lag-1 autocorrelation within two series, each about its own mean.
pub(crate) fn lag1_within(series: [&[f64]; 2]) -> Option<f64> {
    let of = series.map(|x| lag1(x).map(|rho| (rho, x.len() as f64)));
    let known: Vec<(f64, f64)> = of.into_iter().flatten().collect();
    let all: f64 = known.iter().map(|(_, n)| n).sum();
    (all > 0.0).then(|| known.iter().map(|(rho, n)| rho * n).sum::<f64>() / all)
}

/// Returns the logarithms of the usable runs in the order in which they ran, each
/// less the mean of its side, so that an effect is not mistaken for
/// autocorrelation.
pub(crate) fn residual_runs(pairs: &[&Pair]) -> Vec<f64> {
    let mean = |value: fn(&Pair) -> f64| {
        pairs.iter().map(|p| value(p).ln()).sum::<f64>() / pairs.len() as f64
    };
    let baseline = mean(|p| p.baseline);
    let experiment = mean(|p| p.experiment);
    pairs
        .iter()
        .flat_map(|p| {
            Order::sides(p.order).map(|side| match side {
                Side::Baseline => p.baseline.ln() - baseline,
                Side::Experiment => p.experiment.ln() - experiment,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alternation_and_trend_are_told_apart() {
        let alternating: Vec<f64> = (0..40).map(|i| f64::from(i % 2)).collect();
        let trend: Vec<f64> = (0..40).map(f64::from).collect();
        assert!(lag1(&alternating).unwrap() < -0.9);
        assert!(lag1(&trend).unwrap() > 0.9);
        assert_eq!(lag1(&[1.0; 9]), None);
        assert_eq!(lag1(&[1.0, 2.0]), None);
    }

    #[test]
    fn runs_are_taken_in_the_order_in_which_they_ran() {
        // 1, 2, 3, 4 times e, whichever side ran: minus the sides' means.
        let pairs = [
            Pair::new(1.0, 2.0, Order::BaselineFirst),
            Pair::new(4.0, 3.0, Order::ExperimentFirst),
        ];
        let runs = residual_runs(&pairs.iter().collect::<Vec<_>>());
        let b = (1.0_f64.ln() + 4.0_f64.ln()) / 2.0;
        let e = (2.0_f64.ln() + 3.0_f64.ln()) / 2.0;
        let expected = [
            1.0_f64.ln() - b,
            2.0_f64.ln() - e,
            3.0_f64.ln() - e,
            4.0_f64.ln() - b,
        ];
        assert_eq!(runs, expected);
    }
}
