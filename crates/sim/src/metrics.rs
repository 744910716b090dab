//! The counts of a simulation, and the outcome computed from them.
//!
//! Counting starts when the warm-up is over. Times are simulated.

use crate::engine::{Engine, Phase};
use crate::steady::Batches;
use crate::stuck::SimError;
use crate::topology::Distance;
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use std::cell::{Cell, RefCell};

const NOBODY: usize = usize::MAX;

/// Percentiles of the time to acquire the lock, in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// Median.
    pub p50: f64,
    /// 99th percentile.
    pub p99: f64,
    /// 99.9th percentile.
    pub p999: f64,
    /// Longest.
    pub max: f64,
}

/// The outcome of a simulation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Operations per second of simulated time (with
    /// [`crate::Stop::Each`]: by the mean of the threads' times). An operation
    /// of the matrix is one acquisition; of `xfs-create`, one file.
    pub ops_per_s: f64,
    /// Acquisitions that were counted.
    pub acquisitions: u64,
    /// Acquisitions before counting began.
    pub warmup: u64,
    /// Half the width of the 95 % interval of the rate within this run, by
    /// batch means, as a fraction of the rate; none if the run was too short.
    /// Other seeds may differ by more.
    pub half_width: Option<f64>,
    /// Whether the rate no longer drifted while it was counted; none if the
    /// run was too short to say.
    pub steady: Option<bool>,
    /// Simulated seconds that were counted.
    pub seconds: f64,
    /// Operations by thread.
    pub ops_by_thread: Vec<u64>,
    /// Jain's index of those: 1 if all are equal.
    pub jain: f64,
    /// Handoffs by distance, from [`Distance::Cpu`] (the same CPU again) to
    /// [`Distance::Remote`].
    pub handoffs: [u64; 5],
    /// Acquisitions in a row by the same CPU, mean. 0 if there was no
    /// acquisition.
    pub mean_streak: f64,
    /// The longest streak.
    pub longest_streak: u64,
    /// Time to acquire.
    pub latency: Latency,
    /// Lines that moved between caches per acquisition (an operation's
    /// other lines included).
    pub lines_moved: f64,
    /// Mean time an acquisition waited for cache lines, ns.
    pub line_wait_ns: f64,
    /// Mean time it waited for the lock apart from that, ns.
    pub lock_wait_ns: f64,
    /// The longest wait, finished or not, ns.
    pub longest_wait_ns: f64,
    /// The thread of the longest wait.
    pub longest_waiter: usize,
    /// Threads that, in one wait while they had a CPU, saw others acquire the
    /// lock more than ten times as often as there are threads. A lock
    /// in order of arrival lets each of them pass once at most.
    pub starved: Vec<usize>,
    /// Fraction of the time in which ready virtual CPUs did not run.
    pub steal: f64,
    /// Hash of every access: the same for the same scenario and seed.
    pub trace_hash: u64,
    /// Memory accesses simulated, warm-up included.
    pub accesses: u64,
    /// Events of the engine, warm-up included.
    pub events: u64,
}

/// See [`Outcome::starved`].
const STARVED: u64 = 10;

/// The state when a thread began to wait.
#[derive(Clone, Copy, Default)]
struct Wanted {
    lock: usize,
    /// Acquisitions of that lock by then.
    acquired: u64,
    /// Cycles that the thread had been ready without a CPU by then.
    stolen: u64,
}

struct LockState {
    /// Acquisitions, warm-up included.
    acquired: Cell<u64>,
    holder: Cell<usize>,
    last: Cell<usize>,
    last_core: Cell<usize>,
}

/// The counters.
pub(crate) struct Metrics {
    pub(crate) lock_name: String,
    pub(crate) machine_name: String,
    pub(crate) seed: u64,
    /// The longest time that a CPU computes without touching shared memory.
    pub(crate) longest_quiet_ns: f64,
    limits: Limits,
    /// Acquisitions before counting began; those of now until it has.
    warmup: Cell<u64>,
    counting: Cell<bool>,
    /// Whether the warm-up ended because nothing drifted any more.
    settled: Cell<bool>,
    batches: Batches,
    total: Cell<u64>,
    started: Cell<u64>,
    transfers: Cell<u64>,
    stolen: Cell<u64>,
    ops: Box<[Cell<u64>]>,
    waiting: Box<[Cell<u64>]>,
    wanted: Box<[Cell<Wanted>]>,
    starved: Box<[Cell<bool>]>,
    /// The time when each thread was done, if it was.
    left: Box<[Cell<u64>]>,
    locks: Box<[LockState]>,
    handoffs: [Cell<u64>; 5],
    streak: Cell<u64>,
    /// Whether the first counted acquisition continued a streak.
    continued: Cell<bool>,
    longest_streak: Cell<u64>,
    latency: RefCell<Histogram<u64>>,
    line_wait: Cell<u64>,
    wait: Cell<u64>,
    longest_wait: Cell<(u64, usize)>,
}

/// The limits of a run, which every metric needs.
#[derive(Clone, Copy)]
pub(crate) struct Limits {
    /// Acquisitions before counting starts; with a `precision`, at least.
    pub(crate) warmup: u64,
    /// Acquisitions after that, at most.
    pub(crate) acquisitions: u64,
    /// Cycles after that, at most.
    pub(crate) cycles: u64,
    /// The half-width, as a part of the rate, that is enough.
    pub(crate) precision: Option<f64>,
    pub(crate) longest_quiet_ns: f64,
}

impl Limits {
    /// Batches are at least this long.
    fn batch(&self) -> u64 {
        match self.precision {
            None => (self.acquisitions / 100).clamp(1, 50),
            Some(_) => (self.warmup / 4).max(1),
        }
    }
}

fn add(cell: &Cell<u64>, n: u64) {
    cell.set(cell.get() + n);
}

impl Metrics {
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
            counting: Cell::new(limits.warmup == 0),
            settled: Cell::new(true),
            batches: Batches::new(limits.batch()),
            total: Cell::new(0),
            started: Cell::new(0),
            transfers: Cell::new(0),
            stolen: Cell::new(0),
            ops: (0..cpus).map(|_| Cell::new(0)).collect(),
            waiting: (0..cpus).map(|_| Cell::new(u64::MAX)).collect(),
            wanted: (0..cpus).map(|_| Cell::default()).collect(),
            starved: (0..cpus).map(|_| Cell::new(false)).collect(),
            left: (0..cpus).map(|_| Cell::new(0)).collect(),
            locks: (0..locks)
                .map(|_| LockState {
                    acquired: Cell::new(0),
                    holder: Cell::new(NOBODY),
                    last: Cell::new(NOBODY),
                    last_core: Cell::new(NOBODY),
                })
                .collect(),
            handoffs: Default::default(),
            streak: Cell::new(0),
            continued: Cell::new(false),
            longest_streak: Cell::new(0),
            latency: RefCell::new(
                Histogram::new_with_bounds(1, 1 << 50, 2).expect("bounds that the crate allows"),
            ),
            line_wait: Cell::new(0),
            wait: Cell::new(0),
            longest_wait: Cell::new((0, 0)),
        }
    }

    /// Whether counting can begin: after a fixed number of acquisitions, or
    /// when nothing drifts any more.
    fn warmed_up(&self, total: u64, now: u64) -> bool {
        let limits = &self.limits;
        let Some(precision) = limits.precision else {
            return total >= limits.warmup;
        };
        if !self.batches.ends_with(total) {
            return false;
        }
        let batches = self.batches.end(now);
        if total < limits.warmup || !batches.is_multiple_of(8) {
            return false;
        }
        let drifts = self.batches.drifts(precision);
        if drifts != Some(false) && total >= limits.acquisitions {
            self.settled.set(false);
            return true;
        }
        drifts == Some(false)
    }

    /// Whether enough has been counted.
    #[inline]
    fn enough(&self, total: u64, now: u64) -> bool {
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
        total - self.warmup.get() >= limits.acquisitions
            || now - self.started.get() >= limits.cycles
    }

    /// Acquisitions so far, warm-up included.
    pub(crate) fn total(&self) -> u64 {
        self.total.get()
    }

    fn restart(&self, engine: &Engine) {
        self.counting.set(true);
        self.warmup.set(self.total.get());
        self.batches
            .restart(self.limits.batch(), self.total.get(), engine.time.get());
        self.started.set(engine.time.get());
        self.transfers.set(engine.transfers.get());
        self.stolen.set(engine.stolen());
        for ops in &self.ops {
            ops.set(0);
        }
        for handoffs in &self.handoffs {
            handoffs.set(0);
        }
        for starved in &self.starved {
            starved.set(false);
        }
        self.longest_streak.set(0);
        self.latency.borrow_mut().reset();
        self.line_wait.set(0);
        self.wait.set(0);
        self.longest_wait.set((0, 0));
    }

    pub(crate) fn outcome(&self, engine: &Engine) -> Outcome {
        let left: u64 = self.left.iter().map(Cell::get).sum();
        let end = self
            .left
            .iter()
            .map(Cell::get)
            .max()
            .unwrap_or(0)
            .max(engine.time.get());
        let cycles = (end - self.started.get()).max(1);
        let seconds = engine.ns(cycles) * 1e-9;
        let acquisitions = self.total.get() - self.warmup.get();
        let precision = self.batches.precision().filter(|_| self.counting.get());
        let per = |sum: u64| sum as f64 / acquisitions.max(1) as f64;
        let ops_by_thread: Vec<u64> = self.ops.iter().map(Cell::get).collect();
        let ops: u64 = ops_by_thread.iter().sum();
        let squares: f64 = ops_by_thread.iter().map(|&ops| (ops as f64).powi(2)).sum();
        let handoffs = self.handoffs.each_ref().map(Cell::get);
        // Each begins with a handoff, but one that began before counting did.
        let changes: u64 = handoffs[1..].iter().sum();
        let streaks = changes + u64::from(self.continued.get());
        let (mut longest, mut longest_waiter) = self.longest_wait.get();
        for (who, since) in self.waiting.iter().enumerate() {
            // Threads that are still waiting count from when counting began.
            let wait = end.saturating_sub(since.get().max(self.started.get()));
            if since.get() != u64::MAX && wait > longest {
                (longest, longest_waiter) = (wait, who);
            }
        }
        let latency = self.latency.borrow();
        let percentile = |p: f64| engine.ns(latency.value_at_quantile(p));
        Outcome {
            ops_per_s: match left {
                0 => ops as f64 / seconds,
                sum => ops as f64 * self.left.len() as f64 / (engine.ns(sum) * 1e-9),
            },
            acquisitions,
            warmup: self.warmup.get(),
            half_width: precision.map(|(half_width, _)| half_width),
            steady: precision.map(|(_, drifts)| !drifts && self.settled.get()),
            seconds,
            jain: if squares > 0.0 {
                (ops as f64).powi(2) / (squares * ops_by_thread.len() as f64)
            } else {
                1.0
            },
            starved: (0..self.starved.len())
                .filter(|&who| self.starved[who].get() || engine.is_passed_over(who, end))
                .collect(),
            ops_by_thread,
            handoffs,
            mean_streak: acquisitions as f64 / streaks.max(1) as f64,
            longest_streak: self.longest_streak.get(),
            latency: Latency {
                p50: percentile(0.5),
                p99: percentile(0.99),
                p999: percentile(0.999),
                max: engine.ns(latency.max()),
            },
            lines_moved: per(engine.transfers.get() - self.transfers.get()),
            line_wait_ns: engine.ns(self.line_wait.get()) / acquisitions.max(1) as f64,
            lock_wait_ns: engine.ns(self.wait.get().saturating_sub(self.line_wait.get()))
                / acquisitions.max(1) as f64,
            longest_wait_ns: engine.ns(longest),
            longest_waiter,
            steal: (engine.stolen() - self.stolen.get()) as f64
                / (cycles as f64 * self.ops.len() as f64),
            trace_hash: engine.trace_hash(),
            accesses: engine.accesses.get(),
            events: engine.events.get(),
        }
    }
}

/// The functions by which the workload's code reports to the metrics.
impl Engine {
    fn stolen(&self) -> u64 {
        self.cpus.iter().map(|cpu| cpu.stolen.get()).sum()
    }

    /// Notes that the running CPU begins to wait for a lock. The result is
    /// passed to [`Engine::acquired`].
    #[inline]
    pub(crate) fn wants(&self, lock: usize) -> (u64, u64) {
        let now = self.time.get();
        let who = self.current.get();
        self.metrics.waiting[who].set(now);
        self.metrics.wanted[who].set(Wanted {
            lock,
            acquired: self.metrics.locks[lock].acquired.get(),
            stolen: self.current().stolen.get(),
        });
        (now, self.current().stalled.get())
    }

    /// Whether a thread that has waited until `now` is starved.
    fn is_passed_over(&self, who: usize, now: u64) -> bool {
        let metrics = &self.metrics;
        let since = metrics.waiting[who].get();
        let wanted = metrics.wanted[who].get();
        let passed = metrics.locks[wanted.lock].acquired.get() - wanted.acquired;
        let most = STARVED * metrics.ops.len() as u64;
        if since == u64::MAX || passed <= most {
            return false;
        }
        // A thread without a CPU could not have taken the lock.
        let cpu = &self.cpus[who];
        let mut without = cpu.stolen.get() - wanted.stolen;
        if !cpu.on.get() {
            without += now.saturating_sub(cpu.ready_since.get());
        }
        let wait = now.saturating_sub(since).max(1);
        let with = wait.saturating_sub(without) as f64 / wait as f64;
        passed as f64 * with > most as f64
    }

    /// Notes that it has acquired the lock.
    pub(crate) fn acquired(&self, lock: usize, (since, stalled): (u64, u64)) {
        let metrics = &self.metrics;
        let who = self.current.get();
        let core = self.current().core.get();
        let state = &metrics.locks[lock];
        let now = self.time.get();
        if self.is_passed_over(who, now) {
            metrics.starved[who].set(true);
        }
        metrics.waiting[who].set(u64::MAX);
        add(&state.acquired, 1);
        if state.holder.get() != NOBODY {
            self.fail(SimError::TwoHolders {
                lock: metrics.lock_name.clone(),
                holder: state.holder.get(),
                intruder: who,
                at_ns: self.ns(now),
                seed: metrics.seed,
            });
            self.suspend(Phase::Done);
        }
        state.holder.set(who);
        add(&metrics.total, 1);
        let total = metrics.total.get();
        let distance = if state.last.get() == who {
            Distance::Cpu
        } else if state.last.get() == NOBODY {
            Distance::Remote
        } else {
            self.topology.distance(state.last_core.get(), core)
        };
        if distance == Distance::Cpu {
            add(&metrics.streak, 1);
        } else {
            metrics.streak.set(1);
        }
        metrics
            .longest_streak
            .set(metrics.longest_streak.get().max(metrics.streak.get()));
        state.last.set(who);
        state.last_core.set(core);
        if !metrics.counting.get() {
            if metrics.warmed_up(total, now) {
                metrics.restart(self);
            }
            return;
        }
        add(&metrics.handoffs[distance as usize], 1);
        if total - metrics.warmup.get() == 1 && distance == Distance::Cpu {
            metrics.continued.set(true);
        }
        let wait = now - since;
        metrics.latency.borrow_mut().saturating_record(wait.max(1));
        add(&metrics.wait, wait);
        add(
            &metrics.line_wait,
            (self.current().stalled.get() - stalled).min(wait),
        );
        if wait > metrics.longest_wait.get().0 {
            metrics.longest_wait.set((wait, who));
        }
        if let Some(trace) = &self.trace {
            trace.acquired(who, lock, since, now);
        }
        if metrics.enough(total, now) {
            self.stopped.set(true);
            self.suspend(Phase::Done);
        }
    }

    /// Notes that it is about to release the lock.
    #[inline]
    pub(crate) fn releases(&self, lock: usize) {
        self.metrics.locks[lock].holder.set(NOBODY);
        if let Some(trace) = &self.trace {
            trace.releases(self.current.get(), self.time.get());
        }
    }

    /// Notes that it has done all its work.
    pub(crate) fn leaves(&self) {
        self.metrics.left[self.current.get()].set(self.time.get());
    }

    /// Notes that it has done one operation of the workload.
    #[inline]
    pub(crate) fn operation(&self) {
        add(&self.metrics.ops[self.current.get()], 1);
    }
}
