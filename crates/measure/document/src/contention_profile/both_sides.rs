//! The table of a comparison: what each side waited for, in how many of its runs, and how
//! long. It must never set a lock of one run against the mean of several without saying so.

use crate::contention_profile::table::{Used, mean, or_dash};
use crate::number::{percent, short};
use crate::{Column, ColumnGroup, Table};
use locklab_judge::Side;
use std::collections::BTreeMap;

/// Holds who waited for which lock, on both sides of a comparison.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BothSides {
    /// Holds what was seen of the locks of a name and kind.
    rows: BTreeMap<(String, String), [Seen; 2]>,
    /// Holds the number of runs of each side.
    runs: [usize; 2],
}

/// Holds what one side waited for the locks of a name, over its runs.
#[derive(Clone, Debug, Default, PartialEq)]
struct Seen {
    waits: u64,
    waited_ns: f64,
    /// The pairs in which it was waited for.
    pairs: Vec<u32>,
}

impl BothSides {
    /// Adds the locks of one run of a side, which is that of the pair of this number.
    pub fn add(&mut self, side: Side, pair: u32, locks: impl IntoIterator<Item = Used>) {
        let at = usize::from(side == Side::Experiment);
        self.runs[at] += 1;
        for lock in locks {
            let key = (lock.name, lock.kind.unwrap_or_default());
            let seen = &mut self.rows.entry(key).or_default()[at];
            seen.waits += lock.counts.contended;
            seen.waited_ns += lock.counts.waited_ns.unwrap_or(0.0);
            seen.pairs.push(pair);
        }
    }

    /// Returns whether no lock was waited for.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Returns the table of the first `most` locks, those that were waited for the longest
    /// first: waits of a run on average, and in which pairs there were any. Without `timed`
    /// it has no times, as of a machine whose times mean nothing.
    #[must_use]
    pub fn table(&self, most: usize, timed: bool) -> Table {
        let all = [0, 1].map(|at| self.rows.values().map(|sides| sides[at].waited_ns).sum());
        let share = |at: usize, seen: &Seen| {
            let all: f64 = all[at];
            (all > 0.0).then(|| seen.waited_ns / all)
        };
        // Shares of each side, so that the longer of two does not decide.
        let weight = |sides: &[Seen; 2]| {
            let of = |at: usize| share(at, &sides[at]).unwrap_or(0.0);
            (of(0) + of(1), sides[0].waits + sides[1].waits)
        };
        let mut rows: Vec<_> = self.rows.iter().collect();
        rows.sort_by(|(_, a), (_, b)| {
            let order = weight(b).partial_cmp(&weight(a));
            order.unwrap_or(std::cmp::Ordering::Equal)
        });
        let columns = |title: &str| {
            let mut columns = vec![Column::new("waits", 5), Column::new("of all", 6)];
            if timed {
                columns.push(Column::new("mean", 7));
            }
            columns.push(Column::new("pairs", 5));
            ColumnGroup::new(title, columns)
        };
        let cells = |at: usize, seen: &Seen| {
            let runs = self.runs[at];
            if seen.waits == 0 {
                return vec!["-".to_owned(); if timed { 4 } else { 3 }];
            }
            let share = share(at, seen);
            let mut cells = vec![
                short(seen.waits as f64 / runs as f64),
                or_dash(share, |share| format!("{} %", percent(100.0 * share))),
            ];
            if timed {
                cells.push(mean(Some(seen.waited_ns), seen.waits));
            }
            cells.push(match (seen.pairs.as_slice(), seen.pairs.len() == runs) {
                (_, true) => "all".into(),
                ([one], _) => format!("#{}", one + 1),
                (some, _) => format!("{}/{runs}", some.len()),
            });
            cells
        };
        let of_lock = vec![Column::words("lock", 16), Column::words("kind", 5)];
        Table {
            groups: vec![
                ColumnGroup::new("", of_lock),
                columns("baseline"),
                columns("experiment"),
            ],
            rows: rows
                .into_iter()
                .take(most)
                .map(|((name, kind), [baseline, experiment])| {
                    let mut row = vec![name.clone(), kind.clone()];
                    row.extend(cells(0, baseline));
                    row.extend(cells(1, experiment));
                    row
                })
                .collect(),
        }
    }
}
