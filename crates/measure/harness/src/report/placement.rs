//! Says where a virtual machine's CPUs were while it was measured, and what that means
//! for the ratios, in sentences for the caveats of a report.

use crate::experiment::{Cell, Experiment, Pair};
use crate::pairs::{differences, median};
use crate::placement::NAMES;
use crate::ranking::{Point, Ranking};
use crate::verdicts::Verdicts;
use locklab_document::number;
use std::collections::BTreeMap;

/// Returns how far apart the CPUs were, up to the full stop; `None` where that was not
/// measured.
fn between(verdicts: &Verdicts) -> Option<String> {
    let trips = || verdicts.cells.iter().filter_map(|c| c.round_trip);
    let low = trips().map(|t| t.0).fold(f64::INFINITY, f64::min);
    let high = trips().map(|t| t.1).fold(0.0, f64::max);
    (high > 0.0).then(|| {
        format!(
            "A cache line's round trip between the CPUs took {} to {} ns",
            number::short(low),
            number::short(high)
        )
    })
}

/// Returns where the CPUs were while it was measured, and what that means for the ratios.
pub(super) fn of_matrix(verdicts: &Verdicts) -> Vec<String> {
    let Some(between) = between(verdicts) else {
        return Vec::new();
    };
    let places = &verdicts.places;
    let Some(p) = places.p else {
        return vec![format!("{between}.")];
    };
    if !places.matter() {
        return vec![format!(
            "{between}: the host moved the CPUs. The ratio is not shown to depend on where they \
             were in any cell (test of interaction: p = {p:.3}), so each cell is over all placements."
        )];
    }
    let mut list = vec![format!(
        "{between}, and the ratio depends on where the host put them (test of interaction: p = \
         {p:.3}): cells in which it does are split by placement, and tables of different \
         placements must not be compared with one another."
    )];
    let mut elsewhere: BTreeMap<&str, usize> = BTreeMap::new();
    for (class, pairs) in verdicts.cells.iter().flat_map(|c| &c.elsewhere) {
        *elsewhere.entry(class).or_default() += pairs.len();
    }
    for (class, pairs) in elsewhere {
        list.push(format!(
            "{} in placement \"{class}\" count in the regions only: so few \
             in a cell could not be called.",
            number::count(pairs, "pair")
        ));
    }
    list
}

/// Returns the same of a ranking: which lock does most in each place, where that may
/// differ.
pub(super) fn of_ranking(
    experiment: &Experiment,
    verdicts: &Verdicts,
    ranking: &Ranking,
    noun: &str,
) -> Vec<String> {
    let Some(between) = between(verdicts) else {
        return Vec::new();
    };
    let places = &verdicts.places;
    if !places.matter() {
        return vec![format!("{between}.")];
    }
    let mut list = vec![format!(
        "{between}, and shares of the best depend on where the host put them (test of \
         interaction: p = {:.3}): the ranking is over the places as the host gave them, and \
         another run may have others.",
        places.p.unwrap_or(1.0)
    )];
    for point in &ranking.points {
        let of: Vec<String> = NAMES
            .iter()
            .filter_map(|place| {
                let (lock, blocks) = best_in((experiment, verdicts), ranking, point, place)?;
                Some(format!(
                    "\"{place}\" {lock} ({})",
                    number::count(blocks, "block")
                ))
            })
            .collect();
        if of.len() == NAMES.len() {
            list.push(format!(
                "The most operations with {} {}, by the place of their CPUs: {}.",
                point.threads(),
                number::plural(usize::try_from(point.threads()).unwrap_or(usize::MAX), noun),
                of.join(", ")
            ));
        }
    }
    list
}

/// Returns the lock with the highest median at a point in one place of the CPUs, and the
/// number of blocks there.
fn best_in<'a>(
    (experiment, verdicts): (&Experiment, &Verdicts),
    ranking: &'a Ranking,
    point: &Point,
    place: &str,
) -> Option<(&'a str, usize)> {
    let subjects = &ranking.question.subjects;
    let (mut best, mut blocks) = ((subjects.first()?.name.as_str(), 0.0), 0);
    let of_point = |cell: &&Cell| cell.key.point_of() == point.key;
    for cell in experiment.cells.iter().filter(of_point) {
        let metric = cell.primary()?;
        let here = |pair: &&Pair| verdicts.places.name(cell, pair) == Some(place);
        let found: Vec<f64> = differences(cell.pairs.iter().filter(here), metric)
            .map(|(_, difference)| difference)
            .collect();
        blocks = blocks.max(found.len());
        let own = subjects
            .iter()
            .find(|subject| Some(subject.name.as_str()) == cell.key.lock())?;
        if let Some(median) = median(found)
            && median > best.1
        {
            best = (&own.name, median);
        }
    }
    (blocks > 0).then_some((best.0, blocks))
}
