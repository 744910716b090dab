//! The regions of a matrix: its rows, the contended cells, and the blocks of one
//! non-critical length; fixed by the axes, before anything is measured.
//!
//! It says which cells belong together and leaves what they show to the judge.

use crate::experiment::{Cell, Experiment, Layout, Provenance};
use crate::judged::JudgedCell;
use crate::model;
use crate::pairs::differences;
use locklab_judge::{Direction, JudgedRegion, Region, judge_regions};
use std::collections::{BTreeMap, BTreeSet};

/// Names what the cells of a region have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// All of this number of threads, and whether these are more than the CPUs.
    Threads(u64, bool),
    /// All of several threads, up to the number of CPUs.
    Contended,
    /// The contended ones of this non-critical length.
    NonCritical(u64),
}

/// A region with its verdict.
#[derive(Clone, Debug)]
pub struct JudgedPart {
    /// The cells that it has.
    pub part: Part,
    /// Number of its cells that have a pair, each once, whatever the placements
    /// of its pairs.
    pub cells: usize,
    /// The margin for flat in it, as a fraction.
    pub delta: f64,
    /// Holds what they show together.
    pub judged: JudgedRegion,
}

impl Part {
    /// Returns whether it has this cell.
    pub(crate) fn has(self, cell: &Cell) -> bool {
        let on = |axis: &str| cell.key.number(axis);
        self.has_place(on("threads"), on("non_critical"), cell.oversubscribed)
    }

    /// Returns whether it has the cells of this place; `crowded`: its threads are more
    /// than the CPUs.
    pub(crate) fn has_place(
        self,
        threads: Option<u64>,
        non_critical: Option<u64>,
        crowded: bool,
    ) -> bool {
        let contended = !crowded && threads > Some(1);
        match self {
            Self::Threads(n, _) => threads == Some(n),
            Self::Contended => contended,
            Self::NonCritical(n) => contended && non_critical == Some(n),
        }
    }
}

/// Returns the regions of the cells of a matrix: those of one cell, and those that another
/// already is, are left out.
#[must_use]
pub fn parts(cells: &[Cell]) -> Vec<Part> {
    let axis = |axis: &str| -> BTreeSet<u64> {
        cells
            .iter()
            .filter_map(|cell| cell.key.number(axis))
            .collect()
    };
    let crowded = |n: u64| {
        let of = |cell: &&Cell| cell.key.number("threads") == Some(n);
        cells.iter().filter(of).any(|cell| cell.oversubscribed)
    };
    let rows = axis("threads")
        .into_iter()
        .map(|n| Part::Threads(n, crowded(n)));
    let blocks = axis("non_critical").into_iter().map(Part::NonCritical);
    let mut seen: Vec<Vec<usize>> = Vec::new();
    rows.chain([Part::Contended])
        .chain(blocks)
        .filter(|part| {
            let of: Vec<usize> = (0..cells.len()).filter(|i| part.has(&cells[*i])).collect();
            let new = of.len() > 1 && !seen.contains(&of);
            seen.push(of);
            new
        })
        .collect()
}

/// Returns the mean difference over cells, of each pair that counts in all of them. Pairs
/// of one number share a modelled machine, so the cells of a region are not
/// independent, and a machine is one observation.
fn of_machines<'a>(cells: impl Iterator<Item = &'a Cell>) -> Vec<f64> {
    let mut sums: BTreeMap<u32, (f64, usize)> = BTreeMap::new();
    let mut count = 0;
    for cell in cells {
        count += 1;
        let Some(metric) = cell.primary() else {
            continue;
        };
        for (pair, difference) in differences(cell.pairs.iter(), metric) {
            let (sum, cells) = sums.entry(pair).or_default();
            *sum += difference;
            *cells += 1;
        }
    }
    let whole = sums.into_values().filter(|(_, cells)| *cells == count);
    whole.map(|(sum, _)| sum / count as f64).collect()
}

/// Returns the differences of a cell, those of each placement apart.
fn strata(cell: &JudgedCell) -> impl Iterator<Item = Vec<f64>> {
    let elsewhere = cell.elsewhere.iter().map(|(_, differences)| differences);
    std::iter::once(&cell.differences).chain(elsewhere).cloned()
}

/// Judges the regions of an experiment, with the margin of their cells or else
/// this one.
pub(crate) fn judge(experiment: &Experiment, judged: &[JudgedCell], delta: f64) -> Vec<JudgedPart> {
    if experiment.layout() != Layout::Matrix {
        return Vec::new();
    }
    let hardware = matches!(experiment.provenance, Provenance::Hardware(_));
    let parts: Vec<(Part, usize, Region)> = parts(&experiment.cells)
        .into_iter()
        .map(|part| {
            let of = || {
                judged
                    .iter()
                    .filter(|j| part.has(&experiment.cells[j.cell]))
            };
            let sound = || of().filter(|j| !j.is_invalid());
            let cell = |j: &JudgedCell| &experiment.cells[j.cell];
            let measured = |j: &&JudgedCell| strata(j).any(|differences| !differences.is_empty());
            let cells = sound().filter(measured).map(|j| j.cell);
            let bands: Vec<f64> = of().filter_map(|j| cell(j).bias_band).collect();
            let region = Region {
                cells: if hardware {
                    sound().flat_map(strata).collect()
                } else {
                    vec![of_machines(sound().map(cell))]
                },
                // Differences are positive where better.
                direction: of()
                    .find_map(|j| Some(j.primary()?.metric.direction))
                    .unwrap_or(Direction::HigherIsBetter),
                delta: of().filter_map(|j| cell(j).delta).fold(delta, f64::max),
                // That of their mean, were all off in one direction.
                bias_band: bands.iter().sum::<f64>() / bands.len().max(1) as f64,
            };
            (part, cells.collect::<BTreeSet<_>>().len(), region)
        })
        .collect();
    let regions: Vec<Region> = parts.iter().map(|(.., region)| region.clone()).collect();
    parts
        .into_iter()
        .zip(judge_regions(&regions, experiment.design.looks()))
        .map(|((part, cells, region), mut judged)| {
            let simulated = matches!(experiment.provenance, Provenance::Simulation(_));
            if let ([of_machines], true) = (region.cells.as_slice(), simulated) {
                model::hold_back_one(&mut judged.verdict, of_machines, region.delta);
            }
            JudgedPart {
                part,
                cells,
                delta: region.delta,
                judged,
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::{Key, Order, Pair, Sample, Source};

    /// Pairs of these numbers, with these ratios.
    fn cell(pairs: &[(u32, f64)]) -> Cell {
        let mut cell = Cell::new(
            Key::point(2, pairs.len() as u64, 1),
            crate::matrix::metrics(2, locklab_workload::Waits::All, Source::Simulation),
        );
        let name = cell.primary().unwrap().name.clone();
        let sample = |value| Sample {
            values: [(name.clone(), value)].into(),
            ..Sample::default()
        };
        cell.pairs = pairs
            .iter()
            .map(|&(index, ratio)| Pair {
                index,
                order: Order::Together,
                baseline: sample(100.0),
                experiment: sample(100.0 * ratio),
            })
            .collect();
        cell
    }

    #[test]
    fn a_modelled_machine_is_one_observation_however_many_cells_it_ran() {
        let cells = [
            cell(&[(0, 2.0), (1, 4.0), (2, 1.0)]),
            cell(&[(0, 8.0), (1, 1.0)]),
        ];
        let found = of_machines(cells.iter());
        assert_eq!(found.len(), 2, "the third pair is in one cell only");
        assert!((found[0] - 4.0_f64.ln()).abs() < 1e-12);
        assert!((found[1] - 2.0_f64.ln()).abs() < 1e-12);
        assert!(of_machines([].iter()).is_empty());
    }

    #[test]
    fn a_region_is_more_than_a_cell_and_not_another_one() {
        let cells = |threads: &[usize], non_critical: &[u64]| -> Vec<Cell> {
            let mut cells = Vec::new();
            for n in non_critical {
                for t in threads {
                    for c in [0, 8] {
                        let mut cell = Cell::new(Key::point(*t, c, *n), vec![]);
                        cell.oversubscribed = *t > 4;
                        cells.push(cell);
                    }
                }
            }
            cells
        };
        let rows = |rows: &[u64]| {
            rows.iter()
                .map(|n| Part::Threads(*n, *n > 4))
                .collect::<Vec<_>>()
        };
        assert_eq!(parts(&cells(&[1, 2], &[1])), rows(&[1, 2]));
        let blocks = [Part::NonCritical(1), Part::NonCritical(32)];
        assert_eq!(
            parts(&cells(&[1, 2], &[1, 32])),
            [rows(&[1, 2]), blocks.to_vec()].concat()
        );
        assert_eq!(
            parts(&cells(&[1, 2, 4, 8], &[1, 32])),
            [rows(&[1, 2, 4, 8]), vec![Part::Contended], blocks.to_vec()].concat()
        );
        assert_eq!(parts(&cells(&[2], &[1])[..1]), []);
    }
}
