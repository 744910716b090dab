//! Says where cores and the homes of lines lie on a cluster's ring or mesh.
//!
//! The last-level cache is in slices, one beside each core, and a line has its home in one of
//! them, by a hash of its address; here of what lies in it, so that a lock from elsewhere has
//! its home where its twin of the catalogue has. A message takes longer the more stops it
//! passes. So who asks first for a line that is free again is a question of its place, and with
//! that how equally cores share a lock that is not handed over.
//!
//! A machine's figures are means over all places. Here is only what a place adds to them, or
//! takes from them: it must never change a mean.

use crate::machine::{FigureKey, Machine};
use crate::memory::Memory;
use std::cell::Cell;

/// Says that a line's home has not been asked for.
const UNKNOWN: u16 = u16::MAX;

/// What each way adds to its mean, in cycles.
pub(crate) struct Places {
    cores: usize,
    /// From each stop to each other, without what two stops take on average.
    ways: Box<[i64]>,
    /// What the three ways of a transfer add to their means at most, in cycles.
    pub(crate) most: u64,
    /// What one way takes less than its mean at most, in cycles.
    pub(crate) least: u64,
    seed: u64,
    /// The stop of each line's home, once it has been asked for.
    homes: Box<[Cell<u16>]>,
}

impl Places {
    /// Returns the places of a machine with so many lines of memory; none if its messages take
    /// as long to each.
    pub(crate) fn new(machine: &Machine, lines: usize, seed: u64) -> Option<Self> {
        let stop = machine.get(FigureKey::TransferStopNs) * machine.get(FigureKey::CoreClockGhz);
        let cores = machine.get(FigureKey::TopologyCores) as usize;
        if stop == 0.0 || cores < 2 {
            return None;
        }
        let columns = machine.get(FigureKey::TopologyColumns) as usize;
        let stops = |way: usize| {
            let (from, to) = (way / cores, way % cores);
            match columns {
                0 => from.abs_diff(to).min(cores - from.abs_diff(to)),
                columns => {
                    (from % columns).abs_diff(to % columns)
                        + (from / columns).abs_diff(to / columns)
                }
            }
        };
        let all = cores * cores;
        let mean = (0..all).map(stops).sum::<usize>() as f64 / all as f64;
        let cycles = |way| ((stops(way) as f64 - mean) * stop).round() as i64;
        let ways: Box<[i64]> = (0..all).map(cycles).collect();
        let longest = ways.iter().copied().max().unwrap_or(0);
        let shortest = ways.iter().copied().min().unwrap_or(0);
        Some(Self {
            cores,
            ways,
            most: 3 * longest.unsigned_abs(),
            least: shortest.unsigned_abs(),
            seed,
            homes: vec![Cell::new(UNKNOWN); lines].into(),
        })
    }

    /// Returns the stop of a line's home in each cluster.
    fn home(&self, memory: &Memory, line: usize) -> usize {
        if self.homes[line].get() == UNKNOWN {
            let (label, within) = memory.object_of_line(line);
            // The hash of Fowler, Noll and Vo.
            let hash = label
                .bytes()
                .chain(within.to_le_bytes())
                .fold(self.seed ^ 0xcbf2_9ce4_8422_2325, |hash, byte| {
                    (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
                });
            let mixed = hash.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            self.homes[line].set(((mixed >> 32) as usize % self.cores) as u16);
        }
        self.homes[line].get().into()
    }

    fn way(&self, from: usize, to: usize) -> i64 {
        self.ways[from % self.cores * self.cores + to % self.cores]
    }

    /// Returns what the place of a core adds to the way of its request to the home of a line.
    pub(crate) fn of_request(&self, memory: &Memory, line: usize, core: usize) -> i64 {
        self.way(core, self.home(memory, line))
    }

    /// Returns what places add until a core has the data of a line: from its home, or by way
    /// of another core of the cluster that has it.
    pub(crate) fn of_answer(
        &self,
        memory: &Memory,
        line: usize,
        core: usize,
        owner: Option<usize>,
    ) -> i64 {
        let home = self.home(memory, line);
        match owner.filter(|owner| owner / self.cores == core / self.cores) {
            Some(owner) => self.way(home, owner) + self.way(owner, core),
            None => self.way(home, core),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(cores: f64, columns: f64) -> Places {
        let machine = Machine::builtin("flat-16").unwrap();
        let machine = machine
            .with(FigureKey::TopologyCores, cores)
            .and_then(|machine| machine.with(FigureKey::TopologyColumns, columns))
            .and_then(|machine| machine.with(FigureKey::TransferStopNs, 10.0))
            .unwrap();
        Places::new(&machine, 0, 1).unwrap()
    }

    #[test]
    fn a_way_is_the_shorter_one_around_a_ring_and_rows_and_columns_of_a_mesh() {
        let ring = places(12.0, 0.0);
        let farther = |places: &Places, to: usize| places.way(0, to) - places.way(0, 0);
        assert_eq!(farther(&ring, 6), 2 * farther(&ring, 3));
        assert_eq!(farther(&ring, 11), farther(&ring, 1));
        let mesh = places(12.0, 4.0);
        assert_eq!(farther(&mesh, 4), farther(&mesh, 1));
        assert_eq!(farther(&mesh, 11), 5 * farther(&mesh, 1));
    }

    #[test]
    fn places_change_no_mean() {
        for (cores, columns) in [(12.0, 0.0), (7.0, 0.0), (24.0, 6.0)] {
            let places = places(cores, columns);
            let sum: i64 = places.ways.iter().sum();
            let most = places.ways.len() as i64 / 2;
            assert!(sum.abs() <= most, "{sum} of {} ways", places.ways.len());
        }
    }

    #[test]
    fn a_machine_whose_stops_take_no_time_has_no_places() {
        let machine = Machine::builtin("flat-16").unwrap();
        assert!(Places::new(&machine, 0, 1).is_none());
    }
}
