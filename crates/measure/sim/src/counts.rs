//! The counters of a simulation, and when there is enough of what they count.
//!
//! Counting starts when the warm-up is over.

use crate::convergence::Batches;
use hdrhistogram::Histogram;
use locklab_workload::Use;
use std::cell::{Cell, RefCell};

/// No CPU.
pub(crate) const NOBODY: usize = usize::MAX;

/// The warm-up lasts while the rate changes by more than this fraction: what the
/// first accesses cost would weigh on a run that need not be precise.
const DRIFT: f64 = 0.02;

/// The state when a thread began to wait.
#[derive(Clone, Copy)]
pub(crate) struct Wanted {
    pub(crate) lock: usize,
    pub(crate) to: Use,
    /// Acquisitions of that lock by then.
    pub(crate) acquired: u64,
    /// Cycles that the thread had been ready without a CPU by then.
    pub(crate) stolen: u64,
}

/// A lock as the counters see it.
pub(crate) struct LockState {
    /// Acquisitions, warm-up included.
    pub(crate) acquired: Cell<u64>,
    /// The CPU that holds it alone.
    pub(crate) holder: Cell<usize>,
    /// The readers that share it.
    pub(crate) readers: Cell<u64>,
    /// The last of those.
    pub(crate) reader: Cell<usize>,
    pub(crate) last: Cell<usize>,
    pub(crate) last_core: Cell<usize>,
}

/// Describes what a run counts beside its time.
pub(crate) struct Counts {
    pub(crate) lock_name: String,
    pub(crate) machine_name: String,
    pub(crate) seed: u64,
    /// The longest time that a CPU computes without touching shared memory.
    pub(crate) longest_quiet_ns: f64,
    pub(crate) limits: Limits,
    /// Acquisitions before counting began; those of now until it has.
    pub(crate) warmup: Cell<u64>,
    pub(crate) counting: Cell<bool>,
    /// Says whether the warm-up ended because nothing drifted any more.
    pub(crate) settled: Cell<bool>,
    pub(crate) batches: Batches,
    /// Cycles of counting after which the half-width is looked at the next time.
    next_look: Cell<u64>,
    pub(crate) total: Cell<u64>,
    /// Pieces of work of a program.
    pub(crate) worked: Cell<u64>,
    pub(crate) started: Cell<u64>,
    /// The latest acquisition.
    latest: Cell<u64>,
    pub(crate) transfers: Cell<u64>,
    pub(crate) stolen: Cell<u64>,
    /// Cycles without a hardware thread before counting began.
    pub(crate) off: Cell<u64>,
    pub(crate) ops: Box<[Cell<u64>]>,
    pub(crate) waiting: Box<[Cell<u64>]>,
    pub(crate) wanted: Box<[Cell<Wanted>]>,
    pub(crate) starved: Box<[Cell<bool>]>,
    /// The time when each thread was done, if it was.
    pub(crate) left: Box<[Cell<u64>]>,
    pub(crate) locks: Box<[LockState]>,
    /// Says whether readers share the locks.
    pub(crate) readers_share: bool,
    /// The most readers of one lock at once.
    pub(crate) most_readers: Cell<u64>,
    pub(crate) handoffs: [Cell<u64>; 5],
    pub(crate) streak: Cell<u64>,
    /// Says whether the first counted acquisition continued a streak.
    pub(crate) continued: Cell<bool>,
    pub(crate) longest_streak: Cell<u64>,
    /// Waits of readers and of writers, by their numbers.
    pub(crate) latency: [RefCell<Histogram<u64>>; 2],
    pub(crate) line_wait: Cell<u64>,
    pub(crate) wait: Cell<u64>,
    pub(crate) longest_wait: Cell<(u64, usize)>,
}

/// The limits of a run, which every metric needs.
#[derive(Clone, Copy)]
pub(crate) struct Limits {
    /// Acquisitions before counting starts; with a `precision`, at least.
    pub(crate) warmup: u64,
    /// Cycles before counting starts, at least.
    pub(crate) warmup_cycles: u64,
    /// Acquisitions after that, at most.
    pub(crate) acquisitions: u64,
    /// Cycles after that, at most.
    pub(crate) cycles: u64,
    /// The half-width, as a part of the rate, that is enough.
    pub(crate) precision: Option<f64>,
    /// Cycles of counting after which, and after each time twice as many, this half-width is
    /// enough too.
    pub(crate) enough_after: Option<(u64, f64)>,
    pub(crate) longest_quiet_ns: f64,
    /// Says whether readers share the locks.
    pub(crate) readers_share: bool,
    /// Says whether it is one round of threads that were started one after the other, by one
    /// more.
    pub(crate) is_round: bool,
}

impl Limits {
    /// Returns whether all is counted, so that threads have not run before.
    pub(crate) fn counts_all(&self) -> bool {
        self.warmup == 0
    }

    /// Batches are at least this long.
    pub(crate) fn batch(&self) -> u64 {
        match self.precision {
            None => (self.acquisitions / 100).clamp(1, 50),
            Some(_) => (self.warmup / 16).max(1),
        }
    }
}

/// Adds to a counter.
pub(crate) fn add(cell: &Cell<u64>, n: u64) {
    cell.set(cell.get() + n);
}

impl Counts {
    pub(crate) fn new(
        lock: &str,
        machine: &str,
        seed: u64,
        cpus: usize,
        locks: usize,
        limits: &Limits,
    ) -> Self {
        Self {
            lock_name: lock.to_owned(),
            machine_name: machine.to_owned(),
            seed,
            longest_quiet_ns: limits.longest_quiet_ns,
            limits: *limits,
            warmup: Cell::new(0),
            counting: Cell::new(limits.warmup == 0 && limits.warmup_cycles == 0),
            settled: Cell::new(true),
            batches: Batches::new(limits.batch()),
            next_look: Cell::new(limits.enough_after.map_or(u64::MAX, |(cycles, _)| cycles)),
            total: Cell::new(0),
            worked: Cell::new(0),
            started: Cell::new(0),
            latest: Cell::new(0),
            transfers: Cell::new(0),
            stolen: Cell::new(0),
            off: Cell::new(0),
            ops: (0..cpus).map(|_| Cell::new(0)).collect(),
            waiting: (0..cpus).map(|_| Cell::new(u64::MAX)).collect(),
            wanted: {
                let nothing = Wanted {
                    lock: 0,
                    to: Use::Write,
                    acquired: 0,
                    stolen: 0,
                };
                (0..cpus).map(|_| Cell::new(nothing)).collect()
            },
            starved: (0..cpus).map(|_| Cell::new(false)).collect(),
            left: (0..cpus).map(|_| Cell::new(0)).collect(),
            locks: (0..locks)
                .map(|_| LockState {
                    acquired: Cell::new(0),
                    holder: Cell::new(NOBODY),
                    readers: Cell::new(0),
                    reader: Cell::new(NOBODY),
                    last: Cell::new(NOBODY),
                    last_core: Cell::new(NOBODY),
                })
                .collect(),
            readers_share: limits.readers_share,
            most_readers: Cell::new(0),
            handoffs: Default::default(),
            streak: Cell::new(0),
            continued: Cell::new(false),
            longest_streak: Cell::new(0),
            latency: Use::BOTH.map(|_| {
                let bounds = Histogram::new_with_bounds(1, 1 << 50, 2);
                RefCell::new(bounds.expect("bounds that the crate allows"))
            }),
            line_wait: Cell::new(0),
            wait: Cell::new(0),
            longest_wait: Cell::new((0, 0)),
        }
    }

    /// Returns the time of an acquisition at `now` as counters see it, which never goes
    /// back: a CPU that touches no shared line runs ahead, so CPUs that take
    /// several locks, or read together, do not acquire in the order of time.
    pub(crate) fn at(&self, now: u64) -> u64 {
        self.latest.set(self.latest.get().max(now));
        self.latest.get()
    }

    /// Returns whether counting can begin: after a fixed number of acquisitions, or when
    /// nothing drifts any more.
    pub(crate) fn warmed_up(&self, total: u64, now: u64) -> bool {
        let limits = &self.limits;
        let Some(precision) = limits.precision else {
            return total >= limits.warmup && now >= limits.warmup_cycles;
        };
        if !self.batches.ends_with(total) {
            return false;
        }
        let batches = self.batches.end(now);
        if total < limits.warmup || !batches.is_multiple_of(8) {
            return false;
        }
        let drifts = self.batches.drifts(precision.min(DRIFT));
        if drifts != Some(false) && total >= limits.acquisitions {
            self.settled.set(false);
            return true;
        }
        drifts == Some(false)
    }

    /// Returns whether enough has been counted.
    #[inline]
    pub(crate) fn enough(&self, total: u64, now: u64) -> bool {
        let limits = &self.limits;
        if self.batches.ends_with(total) {
            let batches = self.batches.end(now);
            // Checked ever more seldom, so that the run does not wait for a
            // lucky value.
            if let Some(enough) = limits.precision
                && batches >= 40
                && (batches / 40).is_power_of_two()
                && batches.is_multiple_of(40)
                && let Some((half_width, _)) = self.batches.precision()
                && half_width <= enough
            {
                return true;
            }
        }
        let passed = now.saturating_sub(self.started.get());
        if passed >= self.next_look.get() {
            self.next_look.set(2 * passed);
            if let Some((half_width, _)) = self.batches.precision()
                && let Some((_, enough)) = limits.enough_after
                && half_width <= enough
            {
                return true;
            }
        }
        total - self.warmup.get() >= limits.acquisitions || passed >= limits.cycles
    }

    /// Returns what shows that something gets on: acquisitions, and the work of programs.
    pub(crate) fn progress(&self) -> u64 {
        self.total.get() + self.worked.get()
    }

    /// Returns the acquisitions so far, warm-up included.
    pub(crate) fn total(&self) -> u64 {
        self.total.get()
    }
}
