//! The cache itself: true LRU, kept as the time of each line's last use.
//!
//! A resident line's time is not zero, so the common case, a hit, is one load,
//! one test and one store; sets are searched on a miss only. Do not add to
//! the hit path: it runs once for every block that an emulator executes.

use crate::icache::code::{Block, LineId};
use crate::icache::geometry::{Geometry, PAGE};
use crate::icache::tally::Tally;

/// No line: a way that was never filled, or nothing fetched yet.
const NONE: LineId = LineId(u32::MAX);

/// Says what a miss brings in besides its line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Prefetch {
    /// Nothing. The default: counts then follow from the code alone, and not
    /// from a guess at an unpublished prefetcher.
    #[default]
    None,
    /// The line after it, within the page.
    NextLine,
}

/// Says why a line was brought in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fetch {
    /// Code in it was executed.
    Demand,
    /// The line before it missed.
    Prefetch,
}

/// One L1 instruction cache with LRU replacement.
#[derive(Debug)]
pub struct Cache {
    geometry: Geometry,
    prefetch: Prefetch,
    /// Counts fetches and prefetches; the time in `used`.
    clock: u64,
    /// The line fetched last.
    current: LineId,
    /// Says when each line was used last; 0 when it is not in the cache.
    used: Vec<u64>,
    /// The number of the last set: the bits of a line's number that name it.
    last_set: usize,
    /// The lines in each set, `ways` of them per set.
    sets: Vec<LineId>,
}

impl Cache {
    /// Makes an empty cache.
    pub fn new(geometry: Geometry, prefetch: Prefetch) -> Self {
        Cache {
            geometry,
            prefetch,
            clock: 0,
            current: NONE,
            used: Vec::new(),
            last_set: geometry.sets() as usize - 1,
            sets: vec![NONE; (geometry.sets() * geometry.ways()) as usize],
        }
    }

    /// Runs a block once: fetches its lines in order and counts it on
    /// `tally`. A line that was also the last one fetched is not fetched
    /// again, so how code is cut into blocks does not change the counts.
    pub fn run(&mut self, block: Block, tally: &Tally) {
        self.run_with(block, tally, |_, _| {});
    }

    /// Does the same as [`run`](Self::run), and calls `brought_in` for each line that was not in
    /// the cache.
    pub fn run_with(
        &mut self,
        block: Block,
        tally: &Tally,
        mut brought_in: impl FnMut(LineId, Fetch),
    ) {
        let mut fetches = 0;
        let mut misses = 0;
        let first = block.first.0;
        for line in first..first + u32::from(block.lines) {
            if line == self.current.0 {
                continue;
            }
            self.current = LineId(line);
            self.clock += 1;
            fetches += 1;
            match self.used.get_mut(line as usize) {
                Some(used) if *used != 0 => *used = self.clock,
                _ => {
                    misses += 1;
                    self.miss(LineId(line), &mut brought_in);
                }
            }
        }
        tally.add(block.instructions(), fetches, misses);
    }

    /// Does the same as [`run`](Self::run), compiled for a block of `LINES` lines, and several
    /// times faster for one or two lines that hit.
    ///
    /// # Panics
    /// In debug builds, when the block has another number of lines.
    #[inline(always)]
    pub fn run_lines<const LINES: usize>(&mut self, block: Block, tally: &Tally) {
        debug_assert_eq!(usize::from(block.lines), LINES);
        if !self.hit_lines::<LINES>(block, tally) {
            self.run(block, tally);
        }
    }

    /// Runs a block of one or two lines if all of them are in the cache, and does nothing
    /// otherwise; returns whether it did.
    #[inline(always)]
    pub fn hit(&mut self, block: Block, tally: &Tally) -> bool {
        match block.lines {
            1 => self.hit_lines::<1>(block, tally),
            2 => self.hit_lines::<2>(block, tally),
            _ => false,
        }
    }

    #[inline(always)]
    fn hit_lines<const LINES: usize>(&mut self, block: Block, tally: &Tally) -> bool {
        let first = block.first.0 as usize;
        match self.used.get_mut(first..first + LINES) {
            Some(used) if used.iter().all(|&used| used != 0) => {
                // No branch on whether the first line is fetched or still the
                // current one: it is hard to predict. In the second case its
                // time is now already.
                let moved = u64::from(block.first != self.current);
                for (line, used) in used.iter_mut().enumerate() {
                    *used = self.clock + moved + line as u64;
                }
                let fetches = moved + LINES as u64 - 1;
                self.clock += fetches;
                self.current = LineId(block.first.0 + LINES as u32 - 1);
                tally.add(block.instructions(), fetches, 0);
                true
            }
            _ => false,
        }
    }

    /// Fetches one line; returns whether it was in the cache.
    pub fn fetch(&mut self, line: LineId) -> bool {
        self.clock += 1;
        match self.used.get_mut(line.0 as usize) {
            Some(used) if *used != 0 => {
                *used = self.clock;
                true
            }
            _ => {
                self.fill(line);
                false
            }
        }
    }

    #[cold]
    fn miss(&mut self, line: LineId, brought_in: &mut impl FnMut(LineId, Fetch)) {
        if self.prefetch == Prefetch::NextLine {
            let next = LineId(line.0 + 1);
            let lines_a_page = PAGE / self.geometry.line();
            if !next.0.is_multiple_of(lines_a_page) {
                if self.used.get(next.0 as usize).is_none_or(|&used| used == 0) {
                    brought_in(next, Fetch::Prefetch);
                }
                self.fill(next);
                // The requested line is the more recent of the two.
                self.clock += 1;
            }
        }
        brought_in(line, Fetch::Demand);
        self.fill(line);
    }

    /// Makes `line` the most recently used of its set, in place of the least
    /// recently used one if it was not there.
    fn fill(&mut self, line: LineId) {
        let index = line.0 as usize;
        if index >= self.used.len() {
            // Whole megabytes, so that this is rare.
            self.used.resize((index + 1).next_multiple_of(1 << 17), 0);
        }
        if self.used[index] == 0 {
            let ways = self.geometry.ways() as usize;
            // A number's low bits name its set (see `CodeMap`).
            let set = index & self.last_set;
            let victim = self.sets[set * ways..][..ways]
                .iter_mut()
                .min_by_key(|held| match **held {
                    NONE => 0,
                    held => self.used[held.0 as usize],
                })
                .expect("a geometry has at least one way");
            if *victim != NONE {
                self.used[victim.0 as usize] = 0;
            }
            *victim = line;
        }
        self.used[index] = self.clock;
    }

    /// Empties the cache.
    pub fn clear(&mut self) {
        self.current = NONE;
        self.used.fill(0);
        self.sets.fill(NONE);
    }
}
