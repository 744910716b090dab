//! Finds where a virtual machine's CPUs were while it was measured, and whether that
//! matters.
//!
//! A pair compares both sides in one place, so pairs of several places are
//! pooled, in the proportion in which the host gave them. Only in cells whose ratio
//! itself depends on the place (a test of interaction, fixed beforehand:
//! [`locklab_judge::interaction`]) are they told apart. Which round trips belong
//! to one place is read off the run's own: no figure of any machine is in here.

use crate::experiment::{Cell, Experiment, Pair};
use locklab_judge::{MIN_PAIRS, interaction};
use std::collections::BTreeMap;

/// The names of two places.
pub const NAMES: [&str; 2] = ["near", "far"];

/// The share of the variance that places must explain. Of round trips that are
/// spread evenly, the best division in two explains three quarters; more needs
/// a gap.
const EXPLAINED: f64 = 0.8;

/// The places of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Places {
    /// The least round trip of the farther place, in ns, by the number of
    /// threads, with which the links change; none where there is one place.
    far: BTreeMap<u64, f64>,
    /// p of the test of interaction; `None` where there was nothing to test.
    pub p: Option<f64>,
    /// The cells whose ratio depends on the place.
    apart: Vec<bool>,
}

impl Places {
    /// Returns the places of an experiment, and whether the differences of its pairs
    /// depend on them; `difference` gives that of a pair that counts.
    #[must_use]
    pub fn of(experiment: &Experiment, difference: impl Fn(&Cell, &Pair) -> Option<f64>) -> Self {
        let mut trips: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
        for cell in &experiment.cells {
            let trips = trips.entry(threads(cell)).or_default();
            trips.extend(cell.pairs.iter().filter_map(Pair::round_trip));
        }
        let mut places = Self {
            // Fewer could not be judged.
            far: trips
                .into_iter()
                .filter_map(|(threads, trips)| Some((threads, gap(trips, MIN_PAIRS)?)))
                .collect(),
            p: None,
            apart: Vec::new(),
        };
        let comparisons: Vec<Vec<(f64, bool)>> = experiment
            .cells
            .iter()
            .map(|cell| {
                let of = |pair| Some((difference(cell, pair)?, places.is_far(cell, pair)?));
                cell.pairs.iter().filter_map(of).collect()
            })
            .collect();
        if let Some(found) = interaction(&comparisons, experiment.design.seed) {
            places.p = Some(found.p);
            places.apart = found.depends;
        }
        places
    }

    /// Returns whether the ratio of some cell depends on the place.
    #[must_use]
    pub fn matter(&self) -> bool {
        self.apart.contains(&true)
    }

    /// Returns the name of the place of a pair of the cell of this number; `None` where
    /// the ratio does not depend on it, and where the place was not measured.
    #[must_use]
    pub fn apart(&self, index: usize, cell: &Cell, pair: &Pair) -> Option<&'static str> {
        let place = self.name(cell, pair)?;
        self.apart.get(index)?.then_some(place)
    }

    /// Returns the name of the place of a pair, whether or not it matters; `None` where
    /// there is only one, or where it was not measured.
    #[must_use]
    pub fn name(&self, cell: &Cell, pair: &Pair) -> Option<&'static str> {
        Some(NAMES[usize::from(self.is_far(cell, pair)?)])
    }

    fn is_far(&self, cell: &Cell, pair: &Pair) -> Option<bool> {
        Some(pair.round_trip()? >= *self.far.get(&threads(cell))?)
    }
}

fn threads(cell: &Cell) -> u64 {
    cell.key.number("threads").unwrap_or(0)
}

/// Returns the least of the farther ones where round trips, in ns, fall into two places
/// of at least `least` each with a gap between them; `None` if they are all of one.
#[must_use]
pub fn gap(mut trips: Vec<f64>, least: usize) -> Option<f64> {
    trips.retain(|trip| trip.is_finite() && *trip > 0.0);
    trips.sort_by(f64::total_cmp);
    divide(&trips, least).map(|at| trips[at])
}

/// Returns where sorted round trips fall into two parts with a gap between them, if they
/// do: the division with the least variance within the parts (N. Otsu 1979), of
/// logarithms.
fn divide(trips: &[f64], least: usize) -> Option<usize> {
    let logs: Vec<f64> = trips.iter().map(|trip| trip.ln()).collect();
    let n = logs.len();
    let mean = logs.iter().sum::<f64>() / n.max(1) as f64;
    let all: f64 = logs.iter().map(|x| (x - mean).powi(2)).sum();
    let mut sum = 0.0;
    let mut best: Option<(f64, usize)> = None;
    for at in 1..n {
        sum += logs[at - 1] - mean;
        let between = sum * sum * n as f64 / (at as f64 * (n - at) as f64);
        let enough = at >= least && n - at >= least;
        if enough && best.is_none_or(|(most, _)| between > most) {
            best = Some((between, at));
        }
    }
    let (between, at) = best?;
    (between > EXPLAINED * all).then_some(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn around(ns: f64, count: usize) -> Vec<f64> {
        (0..count)
            .map(|i| ns * (1.0 + 0.01 * ((i * 7 % 11) as f64 - 5.0) / 5.0))
            .collect()
    }

    #[test]
    fn places_are_where_the_round_trips_of_the_run_have_gaps() {
        let of = |trips| gap(trips, MIN_PAIRS);
        assert_eq!(of(vec![]), None);
        assert_eq!(of(around(64.0, 200)), None);
        // Values that are evenly spread have no gap, and so no places.
        assert_eq!(
            of((0..100).map(|i| 33.0 + 0.6 * f64::from(i)).collect()),
            None
        );
        let far = of([around(33.0, 60), around(96.0, 30)].concat()).unwrap();
        assert!(far > 90.0 && far < 96.0);
        // A few that were disturbed are not a place.
        assert_eq!(of([around(64.0, 200), vec![900.0; 3]].concat()), None);
    }
}
