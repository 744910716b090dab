//! The parameters of a block, and the random choices for its pairs.
//!
//! All choices follow from the seed, so that the code that carries a block out
//! and the code that reads its records agree. Nothing here runs anything.

use crate::layout::LAYOUTS;
use crate::lock_code::LockCode;
use crate::replay::Replay;
use crate::script::{ENTRIES, Script};
use crate::timeline::{SliceLength, Windows};
use crate::work::Critical;
use locklab_judge::{coin, fork_seed};
use locklab_workload::{Mix, Turn, Use, turns};
use std::sync::Arc;

/// The multiple of its time that a block may take to get its least pairs.
const LONGER: u64 = 3;

/// The most locks that share a block.
pub const MOST_LOCKS: usize = 64;

/// The fork of the seed that gives the orders of many locks, beyond those of
/// their layouts.
const ORDERS: u64 = 1 << 32;

/// The stream that gives the workers' turns.
const TURNS: u64 = 1 << 33;

/// The stream that gives where in a recorded program the first pair begins.
const ENTRY: u64 = 1 << 34;

/// The parameters of a block.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    /// The locks: baseline and experiment, or all that share a block.
    pub(crate) codes: Vec<LockCode>,
    pub(crate) threads: usize,
    /// The CPUs to pin them to, round robin.
    pub(crate) cpus: Vec<usize>,
    /// Holds what each worker does in its critical section.
    pub(crate) critical: Vec<Critical>,
    /// Units of work between two critical sections.
    pub(crate) non_critical: u64,
    /// Number of locks that are used at once.
    pub(crate) locks: u32,
    /// Holds what a turn does beyond its lengths.
    pub(crate) mix: Mix,
    /// The program that is replayed, with what a unit takes in ns.
    pub(crate) replay: Option<(Arc<Replay>, f64)>,
    /// Start of a slice that is left out, in ns.
    pub(crate) settle: u64,
    /// Measured part of a slice, in ns.
    pub(crate) length: u64,
    /// Both, of each lock, where they differ; empty otherwise.
    pub(crate) slices: Vec<SliceLength>,
    /// Windows of the longest slice.
    pub(crate) windows: Windows,
    /// Says whether acquisitions are timed.
    pub(crate) latency: bool,
    /// Cost of one clock read, in ns.
    pub(crate) clock_cost: f64,
    /// Says how long the block takes, in ns.
    pub(crate) time: u64,
    /// The fewest undisturbed slices of each lock and kind; to get them it continues for
    /// up to [`LONGER`] times its time.
    pub(crate) least: u32,
    /// The moment, in ns of the monotonic clock, from which on it does not
    /// continue for that.
    pub(crate) latest: u64,
    /// Time without a CPU, in ns, that the kernel's accounting shows although
    /// nothing was lost.
    pub(crate) grain: u64,
    /// Seed of orders, layouts and addresses.
    pub(crate) seed: u64,
    /// One layout for all, instead of drawn ones.
    pub(crate) layout: Option<usize>,
}

impl Request {
    /// Returns whether there are more workers than CPUs.
    pub(crate) fn oversubscribed(&self) -> bool {
        self.threads > self.cpus.len()
    }

    /// Returns the turns of a worker; none if each is like every other. All locks that
    /// share a block have the same.
    pub(crate) fn turns(&self, worker: usize) -> Vec<Turn> {
        if self.replay.is_some() || (self.locks == 1 && self.mix.is_usual()) {
            return Vec::new();
        }
        let seed = fork_seed(fork_seed(self.seed, TURNS), worker as u64);
        turns(&self.mix, self.locks, self.non_critical, seed)
    }

    /// Returns how many histograms of latencies each lock has: two where some turns read
    /// and some write.
    pub(crate) fn histograms(&self) -> usize {
        if self.replay.is_none() && self.mix.has_both() {
            Use::BOTH.len()
        } else {
            1
        }
    }

    /// Returns the scripts of the workers in the program that they replay.
    pub(crate) fn scripts(&self) -> Vec<Script> {
        match &self.replay {
            Some((replay, step_ns)) => {
                replay.scripts(self.threads, *step_ns, fork_seed(self.seed, TURNS))
            }
            None => Vec::new(),
        }
    }

    /// Returns for each lock by how many steps a section is longer if another worker had it, if
    /// that was recorded.
    pub(crate) fn migration_steps(&self) -> Vec<Option<u64>> {
        match &self.replay {
            Some((replay, step_ns)) => replay.migration_steps(*step_ns),
            None => Vec::new(),
        }
    }

    /// Returns the slices of a lock.
    pub(crate) fn slice_of(&self, side: usize) -> SliceLength {
        self.slices.get(side).copied().unwrap_or(SliceLength {
            settle: self.settle,
            length: self.length,
        })
    }

    /// Returns the longest slice, in ns.
    pub(crate) fn longest(&self) -> u64 {
        let all = (0..self.codes.len()).map(|side| self.slice_of(side));
        all.map(|of| of.settle + of.length).max().unwrap_or(0)
    }

    /// Returns the windows of a slice of a lock.
    pub(crate) fn windows_of(&self, side: usize) -> Windows {
        let fit = self.slice_of(side).length / self.windows.length.max(1);
        Windows {
            count: self
                .windows
                .count
                .min(usize::try_from(fit).unwrap_or(usize::MAX)),
            ..self.windows
        }
    }

    /// Returns the pairs that fit the longest time of the block.
    pub(crate) fn most_pairs(&self) -> usize {
        let sides = 0..self.codes.len();
        let one = |side| {
            let SliceLength { settle, length } = self.slice_of(side);
            settle + length
        };
        let pair = sides.map(one).sum::<u64>().max(1);
        let fit = LONGER * self.time / pair;
        usize::try_from(fit.max(self.all_least().into()) + 2).unwrap_or(usize::MAX)
    }

    /// Returns the fewest undisturbed pairs of all kinds.
    fn all_least(&self) -> u32 {
        if self.latency {
            2 * self.least
        } else {
            self.least
        }
    }

    /// Returns whether the acquisitions of pair `pair` are timed. Such pairs are in
    /// between those that give the rates, so that the clock costs the rates nothing.
    pub(crate) fn is_timed(&self, pair: usize) -> bool {
        self.latency && pair % 2 == 1
    }

    /// Returns whether a block is over that has made `run` pairs in `spent` ns, of which
    /// `undisturbed` count, at time `now`.
    pub(crate) fn is_over(&self, run: u32, undisturbed: u32, spent: u64, now: u64) -> bool {
        let another = spent + spent / u64::from(run.max(1)) / 2;
        let enough = undisturbed >= self.all_least() || now >= self.latest;
        (enough && another > self.time)
            || another > LONGER * self.time
            || run as usize >= self.most_pairs()
    }

    /// Returns the random choices for pair `pair`. It allocates nothing, because a
    /// worker may be the child of a fork.
    pub(crate) fn draw(&self, pair: usize) -> Draw {
        let mut order = [0; MOST_LOCKS];
        let count = self.codes.len().min(MOST_LOCKS);
        if count == 2 {
            let sides = coin(self.seed, pair as u64).sides();
            order[..2].copy_from_slice(&sides.map(|side| side as usize));
        } else {
            for (at, side) in order[..count].iter_mut().enumerate() {
                *side = at;
            }
            let orders = fork_seed(self.seed, ORDERS);
            order[..count]
                .sort_unstable_by_key(|side| fork_seed(orders, (pair * MOST_LOCKS + side) as u64));
        }
        Draw { order, count }
    }

    /// Returns the number of pair `pair` among those of its kind: timed ones and others each
    /// have their own turn through addresses and layouts.
    pub(crate) fn turn_of(&self, pair: usize) -> usize {
        if self.latency { pair / 2 } else { pair }
    }

    /// Returns where in a recorded program pair `pair` begins, by number: all places
    /// equally often, neighbours far apart, and in each block from another one on.
    pub(crate) fn entry_of(&self, pair: usize) -> usize {
        const STRIDE: usize = 13;
        let first = fork_seed(self.seed, ENTRY) as usize % ENTRIES;
        (first + STRIDE * self.turn_of(pair)) % ENTRIES
    }

    /// Returns the code layout of a lock in pair `pair`.
    pub(crate) fn layout_of(&self, pair: usize, side: usize) -> usize {
        let pair = self.turn_of(pair);
        self.layout.unwrap_or_else(|| {
            // All layouts equally often, in an order of the block's own; after
            // each round against others of the other locks.
            let at = (pair + side * (pair / LAYOUTS)) % LAYOUTS;
            permutation(fork_seed(self.seed, 1 + side as u64))[at]
        })
    }
}

/// The random choices for one pair of slices, or one slice of each of many
/// locks.
pub(crate) struct Draw {
    order: [usize; MOST_LOCKS],
    count: usize,
}

impl Draw {
    /// Returns the locks in the order in which they run.
    pub(crate) fn sides(&self) -> &[usize] {
        &self.order[..self.count]
    }
}

fn permutation(seed: u64) -> [usize; LAYOUTS] {
    let mut order = std::array::from_fn(|i| i);
    order.sort_by_key(|i| fork_seed(seed, *i as u64));
    order
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Returns a request of `threads` workers of one lock on `cpus`.
    pub(crate) fn request(threads: usize, cpus: &[usize]) -> Request {
        let code = crate::subject::code("ticket").unwrap();
        Request {
            codes: vec![code, code],
            threads,
            cpus: cpus.to_vec(),
            critical: vec![Critical::Units(1); threads],
            non_critical: 1,
            locks: 1,
            mix: Mix::default(),
            replay: None,
            settle: 0,
            length: 1_000_000,
            slices: Vec::new(),
            windows: Windows::default(),
            latency: false,
            clock_cost: 20.0,
            time: 10_000_000,
            least: 1,
            latest: u64::MAX,
            grain: 0,
            seed: 7,
            layout: None,
        }
    }

    #[test]
    fn layouts_are_balanced_and_meet_all_others() {
        let request = request(1, &[0]);
        let mut met = std::collections::HashSet::new();
        for pair in 0..LAYOUTS * LAYOUTS {
            met.insert([0, 1].map(|side| request.layout_of(pair, side)));
        }
        assert_eq!(met.len(), LAYOUTS * LAYOUTS);
        let first: std::collections::HashSet<_> =
            (0..LAYOUTS).map(|p| request.layout_of(p, 1)).collect();
        assert_eq!(first.len(), LAYOUTS);
        let fixed = Request {
            layout: Some(3),
            ..request
        };
        assert_eq!([0, 1].map(|side| fixed.layout_of(11, side)), [3, 3]);
    }

    #[test]
    fn many_locks_take_turns_in_an_order_drawn_anew() {
        let one = request(1, &[0]);
        let request = Request {
            codes: vec![one.codes[0]; 5],
            ..one
        };
        let mut first = [0; 5];
        for pair in 0..500 {
            let draw = request.draw(pair);
            let mut all = draw.sides().to_vec();
            first[all[0]] += 1;
            all.sort_unstable();
            assert_eq!(all, [0, 1, 2, 3, 4]);
        }
        assert!(first.iter().all(|n| (70..130).contains(n)), "{first:?}");
    }

    #[test]
    fn timed_pairs_have_layouts_of_their_own() {
        let request = Request {
            latency: true,
            ..request(2, &[0, 1])
        };
        for pair in 0..LAYOUTS {
            assert!(!request.is_timed(2 * pair) && request.is_timed(2 * pair + 1));
            let layouts = [2 * pair, 2 * pair + 1].map(|pair| request.layout_of(pair, 1));
            assert_eq!(layouts[0], layouts[1]);
        }
    }

    #[test]
    fn a_block_goes_on_for_pairs_that_count_but_not_past_the_end_of_all() {
        let ms = 1_000_000;
        let request = Request {
            least: 3,
            latest: 100 * ms,
            ..request(2, &[0, 1])
        };
        assert!(!request.is_over(2, 2, 4 * ms, 0));
        assert!(request.is_over(5, 3, 10 * ms, 0));
        assert!(!request.is_over(5, 2, 10 * ms, 99 * ms));
        assert!(request.is_over(5, 2, 10 * ms, 100 * ms));
        assert!(request.is_over(15, 0, 30 * ms, 0));
    }
}
