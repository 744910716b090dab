//! A region of comparisons judged as one: a row of a matrix, a block of it.
//!
//! A stratified signed-rank test over the cells of the region, and one interval.
//! Where single cells are open a region often is not, because it has the pairs
//! of all of them. Regions are a family of their own (Holm), decided before the
//! run: their verdicts neither use up the error rate of the cells nor borrow from
//! it. It must never decide which cells belong together.

#[cfg(feature = "serde")]
use serde::Serialize;

use crate::alpha::ALPHA;
use crate::estimate::{Interval, Shown};
use crate::family::Family;
use crate::pair::Direction;
use crate::settings::MIN_PAIRS;
use crate::verdict::Verdict;
use crate::{normal, walsh};

/// The cells of a region, and what counts as no difference in it.
#[derive(Clone, Debug, PartialEq)]
pub struct Region {
    /// The differences of the usable pairs of each cell, d = s · ln(E / B):
    /// positive is better.
    pub cells: Vec<Vec<f64>>,
    /// Says which way the metric improves.
    pub direction: Direction,
    /// The margin for flat, as a fraction, decided before the run.
    pub delta: f64,
    /// The bias that A/A runs of its cells measured, as a fraction; 0 where there
    /// was none.
    pub bias_band: f64,
}

/// A region with its verdict.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(Serialize))]
pub struct JudgedRegion {
    /// Holds what the pairs of all its cells show together.
    pub verdict: Verdict,
    /// Says which way the metric improves.
    pub direction: Direction,
    /// The shift that all cells have in common: the weighted median of the
    /// Walsh averages within cells. Positive is better. Where cells differ, it
    /// lies in their middle.
    pub theta: f64,
    /// Its 95 % interval.
    pub ci95: Interval,
    /// Its 90 % interval: two one-sided tests at 5 %.
    pub ci90: Interval,
    /// Two-sided p of the stratified signed-rank test.
    pub p: f64,
    /// p adjusted for the family of regions (Holm).
    pub p_adjusted: f64,
    /// Counts the cells that have a pair.
    pub cells: usize,
    /// Counts their pairs.
    pub pairs: usize,
}

impl JudgedRegion {
    /// Returns experiment / baseline with its 95 % limits, whichever way the metric
    /// improves; `None` without a pair.
    #[must_use]
    pub fn ratio(&self) -> Option<Shown> {
        let s = self.direction.sign();
        let (a, b) = ((s * self.ci95.low).exp(), (s * self.ci95.high).exp());
        (self.pairs > 0).then(|| Shown {
            value: (s * self.theta).exp(),
            low: a.min(b),
            high: a.max(b),
        })
    }
}

/// Judges regions, in their order, at one of so many looks
/// ([`Settings::looks`](crate::Settings::looks)). They may overlap.
///
/// Each cell counts by the signed-rank statistic of its pairs (a stratified test, P.
/// van Elteren 1960), and all cells with [`MIN_PAIRS`] pairs or more count the same.
/// Weights by the number of pairs would be the best if all cells had the same shift;
/// but they have not, and how many pairs a cell has depends on its scatter and on
/// when it was decided, so that two runs would answer two questions. The interval
/// inverts the test. Cells without an effect make the sum symmetric whatever the
/// noise in each, and cells that were stopped for the sizes of their differences
/// leave it so.
#[must_use]
pub fn judge_regions(regions: &[Region], looks: u32) -> Vec<JudgedRegion> {
    let looks = f64::from(looks);
    let mut judged: Vec<JudgedRegion> = regions.iter().map(|r| r.examine(looks)).collect();
    let p: Vec<f64> = judged.iter().map(|j| j.p).collect();
    for ((judged, region), adjusted) in judged.iter_mut().zip(regions).zip(Family::Holm.adjust(&p))
    {
        judged.p_adjusted = adjusted;
        judged.verdict = region.verdict(judged);
    }
    judged
}

impl Region {
    fn examine(&self, looks: f64) -> JudgedRegion {
        let strata = Strata::new(&self.cells);
        let pairs = strata.cells.iter().map(Vec::len).sum();
        let interval = |tail: f64| {
            let (low, high) = strata
                .limits(tail)
                .unwrap_or((f64::NEG_INFINITY, f64::INFINITY));
            Interval {
                low,
                high,
                coverage: 1.0 - 2.0 * tail,
            }
        };
        JudgedRegion {
            verdict: Verdict::Unclear {
                detectable: None,
                pairs_for_flat: None,
            },
            direction: self.direction,
            theta: strata.centre(),
            ci95: interval(ALPHA / 2.0 / looks),
            ci90: interval(ALPHA / looks),
            p: (looks * strata.p()).min(1.0),
            p_adjusted: 1.0,
            cells: strata.cells.len(),
            pairs,
        }
    }

    fn verdict(&self, judged: &JudgedRegion) -> Verdict {
        let (delta, band) = (self.delta.ln_1p(), self.bias_band.ln_1p());
        let significant = judged.p_adjusted < ALPHA && judged.pairs >= MIN_PAIRS;
        if judged.pairs >= MIN_PAIRS && judged.ci90.within(delta) && band < delta {
            Verdict::Flat {
                nonzero: judged.ci95.excludes_zero(),
            }
        } else if significant && judged.ci95.low > band {
            Verdict::Better
        } else if significant && judged.ci95.high < -band {
            Verdict::Worse
        } else {
            judged.verdict.clone()
        }
    }
}

/// The differences of each cell that has any, sorted.
struct Strata {
    cells: Vec<Vec<f64>>,
}

impl Strata {
    fn new(cells: &[Vec<f64>]) -> Self {
        let sorted = cells.iter().map(|cell| {
            let mut cell: Vec<f64> = cell.iter().copied().filter(|d| d.is_finite()).collect();
            cell.sort_by(f64::total_cmp);
            cell
        });
        Self {
            cells: sorted.filter(|cell| !cell.is_empty()).collect(),
        }
    }

    /// Returns the weight of one Walsh average of a cell: all of them together have that of
    /// the cell, which is smaller only if it has too few pairs to be judged.
    fn weight(cell: &[f64]) -> f64 {
        let n = cell.len() as f64;
        n.min(MIN_PAIRS as f64) / (n * (n + 1.0))
    }

    /// Returns half the weighted number of all Walsh averages, and the standard deviation
    /// of the statistic where there is no shift.
    fn moments(&self) -> (f64, f64) {
        let (mut mean, mut variance) = (0.0, 0.0);
        for cell in &self.cells {
            let (n, w) = (cell.len() as f64, Self::weight(cell));
            mean += w * n * (n + 1.0) / 4.0;
            variance += w * w * n * (n + 1.0) * (2.0 * n + 1.0) / 24.0;
        }
        (mean, variance.sqrt())
    }

    /// Returns the weighted number of Walsh averages that are at most `x`.
    fn at_most(&self, x: f64) -> f64 {
        let of = |cell: &Vec<f64>| Self::weight(cell) * walsh::at_most(cell, x) as f64;
        self.cells.iter().map(of).sum()
    }

    /// Returns the smallest x that has at least this weight of Walsh averages at or
    /// below it.
    fn quantile(&self, weight: f64) -> f64 {
        let ends = || {
            self.cells
                .iter()
                .flat_map(|cell| [cell[0], cell[cell.len() - 1]])
        };
        let least = ends().fold(f64::INFINITY, f64::min);
        let most = ends().fold(f64::NEG_INFINITY, f64::max);
        // Sums of the same weights in another order differ by rounding.
        walsh::first(least, most, |x| self.at_most(x) >= weight * (1.0 - 1e-12))
    }

    fn centre(&self) -> f64 {
        if self.cells.is_empty() {
            return 0.0;
        }
        self.quantile(self.moments().0)
    }

    /// Returns the limits that the shift misses with probability `tail` each.
    fn limits(&self, tail: f64) -> Option<(f64, f64)> {
        let (mean, sd) = self.moments();
        let reach = normal::upper_quantile(tail) * sd;
        // As with few pairs of one cell, which have no such interval.
        (reach < mean).then(|| (self.quantile(mean - reach), self.quantile(mean + reach)))
    }

    fn p(&self) -> f64 {
        let (mean, sd) = self.moments();
        if sd == 0.0 {
            return 1.0;
        }
        // Averages that are exactly zero count half.
        let below = self.at_most(-f64::MIN_POSITIVE);
        let statistic = 0.5 * (below + self.at_most(0.0));
        normal::two_sided_tail((statistic - mean).abs() / sd)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn region(cells: Vec<Vec<f64>>) -> Region {
        Region {
            cells,
            direction: Direction::HigherIsBetter,
            delta: 0.01,
            bias_band: 0.0,
        }
    }

    fn around(centre: f64, width: f64) -> Vec<f64> {
        (0..12)
            .map(|i| centre + width * (f64::from(i * 5 % 12) / 11.0 - 0.5))
            .collect()
    }

    #[test]
    fn cells_that_are_open_alone_are_decided_together() {
        let better = region(
            (0..9)
                .map(|i| around(0.02 + 0.001 * f64::from(i), 0.2))
                .collect(),
        );
        let flat = region((0..9).map(|_| around(0.0, 0.03)).collect());
        let judged = judge_regions(&[better, flat], 1);
        assert_eq!(judged[0].verdict, Verdict::Better);
        assert_eq!((judged[0].cells, judged[0].pairs), (9, 108));
        let ratio = judged[0].ratio().unwrap();
        assert!(ratio.low < ratio.value && ratio.value < ratio.high);
        assert_eq!(judged[1].verdict, Verdict::Flat { nonzero: false });
        assert_eq!(judged[0].p_adjusted, 2.0 * judged[0].p);
    }

    #[test]
    fn more_pairs_of_one_cell_do_not_move_the_region() {
        let many = |cell: Vec<f64>| cell.iter().copied().cycle().take(240).collect();
        let flat = || (0..4).map(|_| around(0.0, 0.01));
        let equal = region(flat().chain([around(-0.3, 0.02)]).collect());
        let more = region(flat().chain([many(around(-0.3, 0.02))]).collect());
        let judged = judge_regions(&[equal, more], 1);
        for region in &judged {
            assert!(region.theta.abs() < 0.005, "{}", region.theta);
        }
    }

    #[test]
    fn nothing_and_too_little_are_unclear() {
        let judged = judge_regions(&[region(vec![]), region(vec![vec![0.5]; 3])], 1);
        assert_eq!(judged[0].verdict.word(), "unclear");
        assert_eq!(judged[0].ratio(), None);
        assert_eq!(judged[1].verdict.word(), "unclear");
    }

    proptest! {
        #![proptest_config(crate::cases_for_tests())]

        /// One cell is the plain estimate, but for the normal approximation.
        #[test]
        fn of_one_cell_it_is_the_usual_estimate(d in prop::collection::vec(
            prop_oneof![-1.0..-1e-6_f64, 1e-6..1.0_f64],
            12..30,
        )) {
            let judged = region(vec![d.clone()]).examine(1.0);
            let pairs: Vec<_> = d
                .iter()
                .map(|d| crate::Pair::new(1.0, d.exp(), crate::Order::BaselineFirst))
                .collect();
            let usual = crate::estimate(&pairs, Direction::HigherIsBetter).unwrap();
            // It lies between two averages, or the lower of them.
            prop_assert!(judged.theta <= usual.theta + 1e-9);
            prop_assert!((judged.p - usual.p).abs() < 0.06);
            prop_assert!(judged.ci95.low <= judged.theta && judged.theta <= judged.ci95.high);
        }

        #[test]
        fn swapped_sides_give_the_opposite_verdict(
            cells in prop::collection::vec(prop::collection::vec(-0.1..0.12_f64, 1..15), 1..6),
        ) {
            let swapped = cells.iter().map(|c| c.iter().map(|d| -d).collect()).collect();
            let judged = judge_regions(&[region(cells)], 1).remove(0);
            let other = judge_regions(&[region(swapped)], 1).remove(0);
            prop_assert!((judged.p - other.p).abs() < 1e-9);
            let opposite = match judged.verdict.word() {
                "better" => "worse",
                "worse" => "better",
                word => word,
            };
            // At the very edge of an interval the two may differ by one average.
            if (judged.p_adjusted - 0.05).abs() > 0.01 && opposite != "flat" && other.verdict.word() != "flat" {
                prop_assert_eq!(other.verdict.word(), opposite);
            }
        }
    }
}
