//! Shares out the time that was asked for: the slices of a cell, its
//! blocks, and what all of them take. It must never read a clock.

use super::{Beat, Plan, PlannedCell};
use crate::layout::LAYOUTS;
use crate::timeline::SliceLength;
use locklab_host::clock::nanos;
use std::time::Duration;

/// Measured part of a slice, unless the lock settles more slowly, in looks at the
/// clock: its two ends are known to within one.
const SLICE: u64 = 25;
/// Holds the same for one thread: a lock without waiters keeps no state, and a shorter
/// slice is disturbed less often.
const SLICE_ALONE: u64 = 5;
/// The part left out at its start, in looks.
const SETTLE_ALONE: u64 = 1;
/// The least part left out at the start of a slice of several threads, in looks:
/// queues form, caches warm up.
const SETTLE: u64 = 6;
/// The share of the time of all cells that their calibrations may take.
const CALIBRATIONS: u64 = 10;
/// The share of its time that starting and ending a block may take.
const STARTS: u64 = 12;
/// The part of its time in which a cell has the pairs that let it be called. Many
/// short blocks are worth more than a few long ones: what the moment and the place
/// of its CPUs do to a ratio scatters more than its slices.
const FIRST_ROUNDS: u64 = 7;
/// The longest block, in ns: within some seconds each cell of a matrix has its
/// turn, so that a noisy one affects all of them.
const LONGEST_BLOCK: u64 = 400_000_000;

impl Plan {
    /// Returns the slices of a cell before calibration.
    #[must_use]
    pub fn slice(&self, cell: &PlannedCell) -> SliceLength {
        let a_cpu = cell.threads.div_ceil(self.cpus.len()) as u64;
        // Long enough that every thread has a hundred turns, or a few where its
        // sections are long.
        let rounds = (20.0 * cell.round) as u64;
        let Beat {
            clock_interval,
            tick,
            ..
        } = self.beat;
        let usual = if cell.oversubscribed {
            SliceLength {
                settle: a_cpu * tick,
                length: (2 * a_cpu * tick).max(rounds),
            }
        } else {
            let (settle, length) = match cell.threads {
                1 => (SETTLE_ALONE, SLICE_ALONE),
                _ => (SETTLE, SLICE),
            };
            SliceLength {
                settle: (clock_interval * settle).max((2.0 * cell.round) as u64),
                length: (clock_interval * length).max(rounds.min(50 * SLICE * clock_interval)),
            }
        };
        match self.spec.slice {
            Some(slice) => SliceLength {
                length: nanos(slice),
                ..usual
            },
            None => usual,
        }
    }

    /// Returns the shortest block of a cell, in ns, with these many locks: every layout of
    /// each has a slice, and starting it takes little of it. Where there are more
    /// threads than CPUs, slices are long, and one of each is enough.
    fn least_block(&self, cell: &PlannedCell, locks: u64) -> u64 {
        let SliceLength { settle, length } = self.slice(cell);
        let turns = match cell.oversubscribed || self.spec.slice.is_some() {
            true => 1,
            false => LAYOUTS as u64,
        };
        let start = self.beat.start_of(cell.threads, self.cpus.len());
        (locks * turns * (settle + length)).max(STARTS * start)
    }

    /// Returns the time of a block of each cell, with starting and ending it.
    fn with_starts(&self, blocks: impl Iterator<Item = u64>) -> u64 {
        let start = |cell: &PlannedCell| self.beat.start_of(cell.threads, self.cpus.len());
        blocks
            .zip(&self.cells)
            .map(|(block, cell)| block + start(cell))
            .sum()
    }

    /// Returns the time of one block of each cell, in ns, so that `pairs` rounds take
    /// a small part of the requested time: more where threads contend, because
    /// one thread alone is decided in less. The rest goes to the cells that are
    /// still open after those rounds.
    #[must_use]
    pub fn blocks(&self, pairs: u32) -> Vec<u64> {
        let time = nanos(self.spec.time) / u64::from(pairs.max(1));
        let least = |cell: &PlannedCell| self.least_block(cell, 2);
        let crowded = self.cells.iter().filter(|cell| cell.oversubscribed);
        let crowded: u64 = crowded.map(least).sum();
        // Slices of crowded cells are long: most of a round is for the others.
        let round = (time / FIRST_ROUNDS).max(3 * crowded).min(time / 10 * 6);
        let weight = |cell: &PlannedCell| match cell.threads {
            _ if cell.oversubscribed => 0.0,
            1 => 0.3,
            _ => 1.0,
        };
        let fixed = self.with_starts(self.cells.iter().map(least));
        let weights: f64 = self.cells.iter().map(weight).sum();
        let spare = round.saturating_sub(fixed) as f64;
        self.cells
            .iter()
            .map(|cell| {
                let part = if weights > 0.0 {
                    spare * weight(cell) / weights
                } else {
                    0.0
                };
                let least = least(cell);
                (least + part as u64).min(LONGEST_BLOCK.max(least))
            })
            .collect()
    }

    /// Returns the number of such rounds that the requested time has room for.
    #[must_use]
    pub(crate) fn rounds(&self, pairs: u32) -> f64 {
        let round = self.with_starts(self.blocks(pairs).into_iter());
        nanos(self.spec.time) as f64 / round.max(1) as f64
    }

    /// Returns the time of the calibration of one cell, in ns, of those that have one.
    #[must_use]
    pub fn calibration_time(&self) -> u64 {
        let calibrated = self
            .cells
            .iter()
            .filter(|c| c.threads > 1 && !c.oversubscribed);
        nanos(self.spec.time) / CALIBRATIONS / calibrated.count().max(1) as u64
    }

    /// Returns the time of one block of `locks` locks at each point, in ns, so that
    /// `blocks` rounds take the requested time; a block has one slice of each
    /// lock at least.
    #[must_use]
    pub fn blocks_of_many(&self, locks: usize, blocks: u32) -> Vec<u64> {
        let least = |cell: &PlannedCell| {
            let slice = self.slice(cell);
            locks as u64 * (slice.settle + slice.length)
        };
        let fixed = self.with_starts(self.cells.iter().map(least));
        let round = nanos(self.spec.time) / u64::from(blocks.max(1));
        // Where there are more threads than CPUs a slice is long enough.
        let crowded = |cell: &&PlannedCell| !cell.oversubscribed;
        let sharing = self.cells.iter().filter(crowded).count() as u64;
        let spare = round.saturating_sub(fixed) / sharing.max(1);
        let time = |cell: &PlannedCell| match cell.oversubscribed {
            true => least(cell),
            false => (least(cell) + spare).max(self.least_block(cell, 1)),
        };
        self.cells.iter().map(time).collect()
    }

    /// Returns the time of `blocks` such rounds.
    #[must_use]
    pub fn estimate_of_many(&self, locks: usize, blocks: u32) -> Duration {
        let one = self.with_starts(self.blocks_of_many(locks, blocks).into_iter());
        Duration::from_nanos(one.saturating_mul(blocks.into()))
    }
}
