//! Computes how well simulated figures agree with published ones.

use serde::Serialize;

/// Published ratios this close to 1 have no direction.
pub const FLAT: f64 = 0.05;

/// A simulated figure that is off by more than this factor is a miss.
pub const MISS: f64 = 1.25;

/// Figures that a rank correlation needs to mean anything.
const LEAST_FOR_RANKS: usize = 5;

/// Says what was published of a ratio.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Published {
    /// The published ratio itself.
    Ratio(f64),
    /// It says only that it is above 1.
    Above,
    /// It says only that it is below 1.
    Below,
}

impl Published {
    /// Returns the ratio, if it has a size.
    pub fn ratio(self) -> Option<f64> {
        match self {
            Self::Ratio(ratio) => Some(ratio),
            Self::Above | Self::Below => None,
        }
    }

    /// Returns whether it has a direction.
    fn directed(self) -> bool {
        self.ratio()
            .is_none_or(|ratio| (ratio - 1.0).abs() > FLAT + 1e-9)
    }

    /// Returns whether a simulated ratio is on the same side of 1.
    pub fn agrees(self, ours: f64) -> bool {
        match self {
            Self::Ratio(ratio) => (ratio - 1.0) * (ours - 1.0) > 0.0,
            Self::Above => ours > 1.0,
            Self::Below => ours < 1.0,
        }
    }

    /// Returns whether the simulated ratio is on the other side of 1, where the published
    /// one differs from 1 by more than [`FLAT`].
    pub fn contradicts(self, ours: f64) -> bool {
        self.directed() && !self.agrees(ours)
    }
}

/// Returns the factor by which a simulated figure is off, above or below; 1 if it is
/// exact.
pub fn factor_error(published: f64, ours: f64) -> f64 {
    (ours / published).ln().abs().exp()
}

/// Agreement of simulated figures with published ones.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Agreement {
    /// Number of figures compared.
    pub figures: usize,
    /// Number of figures whose published value differs from 1 by more than
    /// [`FLAT`], or is a direction only.
    pub directed: usize,
    /// Fraction of those where the simulated figure is on the same side of 1;
    /// none if there are none.
    pub direction: Option<f64>,
    /// Spearman's rank correlation, ties sharing their mean rank; none if
    /// there are fewer than five figures or either side has one value only.
    pub spearman: Option<f64>,
    /// Median of the factors by which simulated figures are off, above or
    /// below; none if there are no figures.
    pub median_factor_error: Option<f64>,
    /// Mean of |ln(ours / published)|; none if no published figure has a size.
    pub mean_abs_log_error: Option<f64>,
}

/// Compares ratios, pair by pair: directions over all, sizes where they were
/// published.
pub fn agreement(pairs: &[(Published, f64)]) -> Agreement {
    let directed = pairs.iter().filter(|(theirs, _)| theirs.directed()).count();
    let wrong = pairs
        .iter()
        .filter(|(theirs, ours)| theirs.contradicts(*ours))
        .count();
    let (published, ours): (Vec<f64>, Vec<f64>) = pairs
        .iter()
        .filter_map(|&(theirs, ours)| Some((theirs.ratio()?, ours)))
        .unzip();
    let sizes = || published.iter().copied().zip(ours.iter().copied());
    let errors: f64 = sizes()
        .map(|(theirs, ours)| (ours / theirs).ln().abs())
        .sum();
    Agreement {
        figures: pairs.len(),
        directed,
        direction: (directed > 0).then(|| (directed - wrong) as f64 / directed as f64),
        spearman: (published.len() >= LEAST_FOR_RANKS)
            .then(|| correlation(&ranks(&published), &ranks(&ours)))
            .flatten(),
        median_factor_error: median(sizes().map(|(theirs, ours)| factor_error(theirs, ours))),
        mean_abs_log_error: (!published.is_empty()).then(|| errors / published.len() as f64),
    }
}

fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let (low, high) = (values.len().checked_sub(1)? / 2, values.len() / 2);
    Some((values[low] + values[high]) / 2.0)
}

/// Ranks from 1; equal values share the mean of theirs.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
    let mut ranks = vec![0.0; values.len()];
    let mut start = 0;
    while start < order.len() {
        let value = values[order[start]];
        let end = start
            + order[start..]
                .iter()
                .take_while(|&&at| values[at] == value)
                .count();
        for &at in &order[start..end] {
            ranks[at] = (start + end + 1) as f64 / 2.0;
        }
        start = end;
    }
    ranks
}

/// Returns Pearson's correlation.
fn correlation(a: &[f64], b: &[f64]) -> Option<f64> {
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let (mean_a, mean_b) = (mean(a), mean(b));
    let (mut ab, mut aa, mut bb) = (0.0, 0.0, 0.0);
    for (a, b) in a.iter().zip(b) {
        ab += (a - mean_a) * (b - mean_b);
        aa += (a - mean_a).powi(2);
        bb += (b - mean_b).powi(2);
    }
    (aa > 0.0 && bb > 0.0).then(|| ab / (aa * bb).sqrt())
}

#[cfg(test)]
#[path = "../tests/unit/agreement.rs"]
mod tests;
