//! The micro-op cache. It holds windows of code (32 or 64 bytes); a window takes as many ways
//! of its set as its instructions need. An instruction is one operation here: most x86
//! instructions are, and which are not differs between processors.

use crate::processor::Processor;

const EMPTY: u32 = u32::MAX;

/// A part of a window that a block executes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) number: u32,
    /// A bit for each byte of the window at which an instruction begins.
    pub(crate) starts: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Held {
    /// Says when it was used last; 0 when it is not in the cache.
    used: u64,
    /// Instructions of the window that are in the cache.
    starts: u64,
}

/// Models the cache of decoded operations.
#[derive(Debug)]
pub(crate) struct Ops {
    ways: usize,
    mask: u32,
    a_way: u32,
    /// Ways that one window may take; code that needs more is always decoded.
    limit: usize,
    places: Vec<u32>,
    held: Vec<Held>,
}

impl Ops {
    pub(crate) fn new(processor: &Processor) -> Self {
        let ways = processor.op_ways.value as usize;
        let sets = (processor.op_sets.value as usize).next_power_of_two();
        Ops {
            ways,
            mask: sets as u32 - 1,
            a_way: processor.op_per_way.value as u32,
            limit: (processor.op_ways_a_window.value as usize).min(ways),
            places: vec![EMPTY; sets * ways],
            held: Vec::new(),
        }
    }

    /// Executes a part of a window at `now`; returns whether it was in the cache.
    #[inline(always)]
    pub(crate) fn run(&mut self, window: Window, now: u64) -> bool {
        match self.held.get_mut(window.number as usize) {
            Some(held) if held.used != 0 && window.starts & !held.starts == 0 => {
                held.used = now;
                true
            }
            _ => {
                self.fill(window, now);
                false
            }
        }
    }

    #[cold]
    fn fill(&mut self, window: Window, now: u64) {
        let index = window.number as usize;
        if index >= self.held.len() {
            let size = (index + 1).next_multiple_of(1 << 16);
            self.held.resize(size, Held::default());
        }
        let held = self.held[index];
        let before = if held.used == 0 { 0 } else { held.starts };
        let starts = before | window.starts;
        let needed = (starts.count_ones().div_ceil(self.a_way)).max(1) as usize;
        let first = (window.number & self.mask) as usize * self.ways;
        let Ops { places, held, .. } = self;
        let set = &mut places[first..][..self.ways];
        if needed > self.limit {
            set.iter_mut()
                .filter(|place| **place == window.number)
                .for_each(|place| *place = EMPTY);
            held[index] = Held::default();
            return;
        }
        let mut missing = needed - set.iter().filter(|&&place| place == window.number).count();
        while missing > 0 {
            if let Some(place) = set.iter_mut().find(|place| **place == EMPTY) {
                *place = window.number;
                missing -= 1;
                continue;
            }
            // A window leaves as a whole.
            let oldest = set
                .iter()
                .copied()
                .filter(|&place| place != window.number)
                .min_by_key(|&place| held[place as usize].used)
                .expect("a window takes no more ways than there are");
            held[oldest as usize] = Held::default();
            set.iter_mut()
                .filter(|place| **place == oldest)
                .for_each(|place| *place = EMPTY);
        }
        held[index] = Held { used: now, starts };
    }
}
