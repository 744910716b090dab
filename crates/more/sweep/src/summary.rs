//! The summary of a sweep: for each machine and regime, every lock's throughput
//! and fairness, and the locks that no other beats.
//!
//! It is computed from the figures of the runs alone; [`crate::report`] presents
//! it.

use crate::collect::Figures;
use crate::pareto::{Points, beaten, mean};
use crate::plan::Plan;
use crate::regime::Regime;
use locklab_lab::model::nine_of_ten;
use serde::Serialize;
use std::collections::BTreeMap;

/// All machines, in the order of the plan.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Summary {
    /// One for each machine, baseline and regime that has a cell.
    pub regimes: Vec<OfRegime>,
}

/// One machine in one regime.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct OfRegime {
    /// The name of the modelled machine.
    pub machine: String,
    /// The lock that others are compared with.
    pub baseline: String,
    /// Says how contended the lock is.
    pub regime: Regime,
    /// Number of cells that are summarised.
    pub cells: usize,
    /// Every lock, the baseline first.
    pub locks: Vec<OfLock>,
}

/// One lock on one machine in one regime.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct OfLock {
    /// Name of the lock.
    pub lock: String,
    /// Number of cells in which it ran in every replicate.
    pub cells: usize,
    /// Operations a second against the baseline: the geometric mean over the
    /// cells, by replicate. None if it ran nowhere.
    pub throughput: Option<Quantiles>,
    /// Jain's index: the mean over the cells, by replicate.
    pub fairness: Option<Quantiles>,
    /// Says whether its throughput is better or worse than the baseline's.
    pub says: Option<Says>,
    /// A lock that beats it in throughput and fairness together.
    pub beaten_by: Option<String>,
    /// Says whether no lock beats it, and it ran in all cells.
    pub never_worse: bool,
}

/// A figure over replicates.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Quantiles {
    /// Median of the replicates.
    pub median: f64,
    /// Lower end of the range of nine in ten replicates; with few replicates, of
    /// all.
    pub low: f64,
    /// Upper end of that range.
    pub high: f64,
}

impl Quantiles {
    /// Returns the spread of the figures of all replicates; `None` if there are none.
    pub(crate) fn of(mut values: Vec<f64>) -> Option<Self> {
        values.sort_by(f64::total_cmp);
        let (low, high) = nine_of_ten(&values)?;
        let last = values.len() - 1;
        Some(Self {
            median: values[last / 2].midpoint(values[last.div_ceil(2)]),
            low,
            high,
        })
    }

    /// Returns what the spread of a ratio shows, if changes below `delta` count as flat.
    fn says(&self, delta: f64) -> Says {
        if self.low >= 1.0 - delta && self.high <= 1.0 + delta {
            Says::Flat
        } else if self.low > 1.0 {
            Says::Better
        } else if self.high < 1.0 {
            Says::Worse
        } else {
            Says::Unclear
        }
    }
}

/// Names what a ratio shows over the replicates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Says {
    /// Better wherever the assumptions may lie.
    Better,
    /// Worse wherever the assumptions may lie.
    Worse,
    /// No difference that matters, wherever they lie.
    Flat,
    /// It depends on the assumptions.
    Unclear,
}

/// Names what is summarised together: machine, baseline, regime.
type Group = (usize, String, Regime);

/// The cells and locks of one group.
#[derive(Default)]
struct Gathered {
    cells: Vec<(usize, usize)>,
    locks: Vec<String>,
    points: Vec<Points>,
}

impl Gathered {
    fn cell(&mut self, at: (usize, usize)) -> usize {
        // Runs are in the order of cells.
        if self.cells.last() != Some(&at) {
            self.cells.push(at);
            for cells in self.points.iter_mut().flatten() {
                cells.resize(self.cells.len(), None);
            }
        }
        self.cells.len() - 1
    }

    fn lock(&mut self, name: &str, replicates: u32) -> usize {
        if let Some(at) = self.locks.iter().position(|lock| lock == name) {
            return at;
        }
        self.locks.push(name.to_owned());
        self.points
            .push(vec![vec![None; self.cells.len()]; replicates as usize]);
        self.locks.len() - 1
    }
}

impl Summary {
    /// Returns the summary of the figures of all runs, by their numbers.
    #[must_use]
    pub(crate) fn new(plan: &Plan, figures: &[Figures]) -> Self {
        let mut groups: BTreeMap<Group, Gathered> = BTreeMap::new();
        for ((_, run), figures) in plan.runs_of(0..plan.runs()).zip(figures) {
            let block = &plan.blocks[run.block];
            let pair = &plan.pairs[run.pair];
            let regime = Regime::of(plan, block, block.places[run.cell]);
            let group = groups
                .entry((block.machine, pair.baseline.clone(), regime))
                .or_default();
            let cell = group.cell((run.block, run.cell));
            let (baseline, experiment) = (figures.baseline, figures.experiment);
            let ratio = (experiment[0] / baseline[0]).ln();
            for (lock, point) in [
                (&pair.baseline, [0.0, baseline[1]]),
                (&pair.experiment, [ratio, experiment[1]]),
            ] {
                let at = group.lock(lock, plan.replicates());
                // If the baseline failed, there is no ratio.
                let there = point.iter().all(|figure| figure.is_finite());
                group.points[at][run.replicate as usize][cell] = there.then_some(point);
            }
        }
        let regimes = groups
            .into_iter()
            .map(|((machine, baseline, regime), gathered)| {
                of_regime(plan, machine, baseline, regime, &gathered)
            })
            .collect();
        Self { regimes }
    }
}

fn of_regime(
    plan: &Plan,
    machine: usize,
    baseline: String,
    regime: Regime,
    gathered: &Gathered,
) -> OfRegime {
    let delta = plan.file.delta.fraction();
    let beaten = beaten(&gathered.points, [delta.ln_1p(), delta]);
    let locks = gathered
        .locks
        .iter()
        .zip(&gathered.points)
        .zip(beaten)
        .map(|((lock, points), by)| {
            let cells: Vec<usize> = (0..gathered.cells.len())
                .filter(|cell| points.iter().all(|cells| cells[*cell].is_some()))
                .collect();
            let of = |figure: usize, exp: bool| {
                let values = points.iter().map(|points| {
                    let mean = mean(points, &cells)[figure];
                    if exp { mean.exp() } else { mean }
                });
                (!cells.is_empty()).then(|| Quantiles::of(values.collect()))?
            };
            let throughput = of(0, true);
            OfLock {
                lock: lock.clone(),
                cells: cells.len(),
                says: throughput
                    .as_ref()
                    .filter(|_| *lock != baseline)
                    .map(|spread| spread.says(delta)),
                throughput,
                fairness: of(1, false),
                never_worse: by.is_none() && cells.len() == gathered.cells.len(),
                beaten_by: by.map(|by| gathered.locks[by].clone()),
            }
        })
        .collect();
    OfRegime {
        machine: plan.machines[machine].name.clone(),
        cells: gathered.cells.len(),
        baseline,
        regime,
        locks,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replicates_agree_or_do_not() {
        let spread = |low: f64, high: f64| {
            let step = |n| low + (high - low) * f64::from(n) / 20.0;
            Quantiles::of((0..=20).map(step).collect()).unwrap()
        };
        assert_eq!(spread(1.1, 1.5).says(0.02), Says::Better);
        assert_eq!(spread(0.5, 0.9).says(0.02), Says::Worse);
        assert_eq!(spread(0.99, 1.01).says(0.02), Says::Flat);
        assert_eq!(spread(0.9, 1.1).says(0.02), Says::Unclear);
        let few = Quantiles::of(vec![1.2, 0.9, 1.3]).unwrap();
        assert_eq!((few.low, few.high, few.median), (0.9, 1.3, 1.2));
        // One of twenty-one that differs does not make it unclear.
        let mut ratios = vec![1.2; 20];
        ratios.push(0.9);
        assert_eq!(Quantiles::of(ratios).unwrap().says(0.02), Says::Better);
    }
}
