//! A simulated thread that takes the steps of a recorded program.

use crate::blocked::Blocked;
use crate::engine::{Engine, engine};
use crate::ideal::Ideal;
use crate::kind::LockKind;
use crate::metrics::{acquired, releases, restart, wants};
use crate::platform::{Sim, Word};
use crate::scheduler::sleep;
use locklab_locks::platform::{Atomic, AtomicInt, Ordering, Platform};
use locklab_replay::Step;
use locklab_workload::Use;
use std::cell::Cell;
use std::ptr::NonNull;

/// The longest piece of work, ns: a thread loses its CPU between two.
const PIECE: u64 = 20_000;

/// Describes what the threads have done so far. Work is in nanoseconds, other times in
/// cycles.
pub(crate) struct Tally {
    /// Work of all that ends the warm-up, and that ends the run.
    pub(crate) warm: u64,
    pub(crate) enough: u64,
    /// The most events; a fifth of them ends the warm-up.
    most_events: u64,
    /// The time at which the middle of the counted events passed, and the work until then.
    middle: Cell<Option<(u64, u64)>>,
    /// Says whether the run was cut short at its most events.
    cut: Cell<bool>,
    pub(crate) counting: Cell<bool>,
    pub(crate) total: Cell<u64>,
    pub(crate) threads: Vec<OfThread>,
    pub(crate) locks: Vec<OfLock>,
    /// The time in lock operations with a CPU: waits that spin, calls of the system.
    pub(crate) burnt: Cell<u64>,
    /// The time in waits for locks, in all.
    pub(crate) waited: Cell<u64>,
    /// The time in releases.
    pub(crate) released: Cell<u64>,
    /// Waits for other threads, and those of them that were cut short because no thread
    /// could have gone on.
    pub(crate) awaited: Cell<u64>,
    pub(crate) forced: Cell<u64>,
    /// Holds who waits for whom.
    blocked: Blocked,
}

/// Describes what a thread has done.
#[derive(Default)]
pub(crate) struct OfThread {
    pub(crate) work: Cell<u64>,
    holds: Cell<u32>,
}

/// Describes what was done with a lock.
#[derive(Default)]
pub(crate) struct OfLock {
    /// Cycles that a section takes longer if another thread had the lock before.
    migration: u64,
    /// The thread that had it alone last, plus 1.
    last: Cell<usize>,
    pub(crate) acquired: Cell<u64>,
    pub(crate) waited: Cell<u64>,
}

fn add(cell: &Cell<u64>, more: u64) {
    cell.set(cell.get() + more);
}

impl Tally {
    /// Prepares so many threads, and locks of which each costs so many cycles when it
    /// passes to another thread.
    pub(crate) fn new(
        threads: usize,
        migration: Vec<u64>,
        channels: usize,
        [warm, enough]: [u64; 2],
        most_events: u64,
    ) -> Self {
        let blocked = Blocked::new(threads, migration.len(), channels);
        Self {
            warm,
            enough,
            most_events,
            middle: Cell::new(None),
            cut: Cell::new(false),
            counting: Cell::new(false),
            total: Cell::new(0),
            threads: (0..threads).map(|_| OfThread::default()).collect(),
            locks: migration
                .into_iter()
                .map(|migration| OfLock {
                    migration,
                    ..OfLock::default()
                })
                .collect(),
            burnt: Cell::new(0),
            waited: Cell::new(0),
            released: Cell::new(0),
            awaited: Cell::new(0),
            forced: Cell::new(0),
            blocked,
        }
    }

    /// Notes that the running thread has worked for so many nanoseconds.
    fn worked(&self, engine: &Engine, ns: u64) {
        add(&self.threads[engine.current.get()].work, ns);
        add(&self.total, ns);
        add(&engine.counts.worked, 1);
        let events = engine.tally.events.get();
        let warm = self.total.get() >= self.warm || events >= self.most_events / 5;
        if !self.counting.get() && warm {
            self.counting.set(true);
            let of_threads = self.threads.iter().map(|thread| &thread.work);
            let of_locks = self
                .locks
                .iter()
                .flat_map(|lock| [&lock.acquired, &lock.waited]);
            let others = [&self.total, &self.burnt, &self.waited, &self.released];
            for cell in of_threads.chain(of_locks).chain(others) {
                cell.set(0);
            }
            restart(engine, engine.time.get());
            return;
        }
        if !self.counting.get() {
            return;
        }
        if self.middle.get().is_none() && events >= self.most_events / 5 * 3 {
            self.middle.set(Some((engine.time.get(), self.total.get())));
        }
        let cut = events >= self.most_events;
        if cut || self.total.get() >= self.enough {
            self.cut.set(cut);
            engine.stopped.set(true);
        }
    }

    /// Returns by how much the rates of the two halves differ of a run that was cut short
    /// after so many cycles, as the logarithm of a factor.
    pub(crate) fn halves(&self, started: u64, ended: u64) -> Option<f64> {
        let (at, done) = self.middle.get().filter(|_| self.cut.get())?;
        let rate = |work: u64, cycles: u64| work.max(1) as f64 / cycles.max(1) as f64;
        let first = rate(done, at.saturating_sub(started));
        let second = rate(
            self.total.get().saturating_sub(done),
            ended.saturating_sub(at),
        );
        Some((first / second).ln().abs())
    }
}

/// The locks that threads take.
#[derive(Clone, Copy)]
pub(crate) enum Locks<'a> {
    /// The kind of each, and where it lies.
    Real(&'a [&'a dyn LockKind], &'a [NonNull<()>]),
    /// Means what no lock can beat.
    Ideal(&'a Ideal),
}

/// A thread of a program.
pub(crate) struct Player<'a> {
    pub(crate) locks: Locks<'a>,
    /// Its contexts, of the locks that it takes.
    pub(crate) contexts: Vec<Option<NonNull<()>>>,
    pub(crate) steps: &'a [Step],
    pub(crate) start: usize,
    pub(crate) channels: &'a [&'a Word<u32>],
    pub(crate) tally: &'a Tally,
}

impl Player<'_> {
    /// Takes its steps again and again, until the run ends.
    pub(crate) fn run(&self) {
        let engine = engine();
        // How it holds what it holds, on the stack, which may be given up.
        let mut at = self.start;
        let mut shared = [0_u64; 4];
        while let Some(step) = self.steps.get(at % self.steps.len().max(1)) {
            if engine.stopped.get() {
                return;
            }
            at += 1;
            match *step {
                Step::Work(ns) => self.work(engine, ns),
                Step::Acquire { lock, shared: how } => {
                    let lock = lock as usize;
                    let to = if how { Use::Read } else { Use::Write };
                    remember(&mut shared, lock, how);
                    self.acquire(engine, lock, to);
                }
                Step::Release { lock } => {
                    let lock = lock as usize;
                    let from = if remembered(&shared, lock) {
                        Use::Read
                    } else {
                        Use::Write
                    };
                    self.release(engine, lock, from);
                }
                Step::Await { channel } => self.await_post(engine, channel as usize),
                Step::Post { channel, times } => self.post(engine, channel as usize, times),
                Step::Idle(ns) => sleep(engine, cycles(engine, ns)),
            }
        }
    }

    fn work(&self, engine: &Engine, ns: u64) {
        let me = &self.tally.threads[engine.current.get()];
        let whole = matches!(self.locks, Locks::Ideal(_)) && me.holds.get() > 0;
        let mut left = ns;
        while left > 0 && !engine.stopped.get() {
            let piece = if whole { left } else { left.min(PIECE) };
            engine.work(cycles(engine, piece));
            engine.sync();
            self.tally.worked(engine, piece);
            left -= piece;
        }
    }

    /// Returns the cycles that the running CPU has not run.
    fn off(engine: &Engine) -> u64 {
        let cpu = engine.current();
        cpu.stolen.get() + cpu.halted.get()
    }

    fn acquire(&self, engine: &Engine, lock: usize, to: Use) {
        let tally = self.tally;
        let (since, off) = (engine.time.get(), Self::off(engine));
        let wanted = wants(engine, lock, to);
        let thread = engine.current.get();
        tally.blocked.asks(thread, lock);
        self.release_the_stuck(engine);
        match self.locks {
            Locks::Ideal(ideal) => ideal.acquire(engine, lock, to),
            Locks::Real(kinds, places) => {
                if let Some(context) = self.contexts[lock] {
                    // SAFETY: the context is this thread's own for this lock; both
                    // stay in the arena, placed by this kind; the engine has a CPU for
                    // each thread.
                    unsafe {
                        match to {
                            Use::Write => kinds[lock].lock(places[lock], context),
                            Use::Read => kinds[lock].read_lock(places[lock], context),
                        }
                    }
                }
            }
        }
        acquired(engine, lock, wanted, to);
        tally.blocked.has(thread, lock);
        let me = &tally.threads[engine.current.get()];
        let first = me.holds.get() == 0;
        me.holds.set(me.holds.get() + 1);
        let waited = engine.time.get() - since;
        add(&tally.waited, waited);
        add(&tally.burnt, waited.saturating_sub(Self::off(engine) - off));
        add(&tally.locks[lock].acquired, 1);
        add(&tally.locks[lock].waited, waited);
        if first && to == Use::Write {
            self.move_data(engine, lock);
        }
    }

    /// Returns what a lock protects comes from the thread that had it last. An ideal lock
    /// passes to others no more often than it must, so nothing moves.
    fn move_data(&self, engine: &Engine, lock: usize) {
        let of = &self.tally.locks[lock];
        let last = of.last.replace(engine.current.get() + 1);
        let moves = last != 0 && last != engine.current.get() + 1;
        if moves && of.migration > 0 && matches!(self.locks, Locks::Real(..)) {
            engine.work(of.migration);
            engine.sync();
        }
    }

    fn release(&self, engine: &Engine, lock: usize, from: Use) {
        releases(engine, lock, from);
        self.tally.blocked.gives_up(engine.current.get(), lock);
        let (since, off) = (engine.time.get(), Self::off(engine));
        match self.locks {
            Locks::Ideal(ideal) => ideal.release(engine, lock, from),
            Locks::Real(kinds, places) => {
                if let Some(context) = self.contexts[lock] {
                    // SAFETY: held, with this context.
                    unsafe {
                        match from {
                            Use::Write => kinds[lock].unlock(places[lock], context),
                            Use::Read => kinds[lock].read_unlock(places[lock], context),
                        }
                    }
                }
            }
        }
        let me = &self.tally.threads[engine.current.get()];
        me.holds.set(me.holds.get().saturating_sub(1));
        let took = engine.time.get() - since;
        add(&self.tally.released, took);
        add(
            &self.tally.burnt,
            took.saturating_sub(Self::off(engine) - off),
        );
    }

    /// Waits until another thread has posted, as a semaphore on a futex.
    fn await_post(&self, engine: &Engine, channel: usize) {
        let (word, tally) = (self.channels[channel], self.tally);
        let thread = engine.current.get();
        add(&tally.awaited, 1);
        tally.blocked.awaits(thread, channel, engine.time.get());
        while !engine.stopped.get() {
            let posted = word.load(Ordering::Relaxed);
            if posted > 0 {
                let taken =
                    word.compare_exchange(posted, posted - 1, Ordering::Acquire, Ordering::Relaxed);
                if taken.is_ok() {
                    break;
                }
            } else if !self.release_the_stuck(engine) {
                Sim::wait(word, 0);
            }
        }
        tally.blocked.took(thread, channel);
    }

    /// Ends, if no thread can go on any more, the wait of the one that has waited for another
    /// for the longest: the recorded program went on, so what ends this wait is not
    /// understood. Returns whether it did.
    fn release_the_stuck(&self, engine: &Engine) -> bool {
        let Some(channel) = self.tally.blocked.stuck() else {
            return false;
        };
        add(&self.tally.forced, 1);
        self.post(engine, channel, 1);
        true
    }

    fn post(&self, engine: &Engine, channel: usize, times: u32) {
        let word = self.channels[channel];
        self.tally.blocked.posts(channel, times);
        word.fetch_add(times, Ordering::Release);
        for _ in 0..times {
            let address = word.address();
            let halted = engine.hypervisor.halted.borrow();
            let some = halted.iter().any(|&(_, awaited)| awaited == address);
            drop(halted);
            if !some {
                return;
            }
            Sim::wake(word);
        }
    }
}

fn cycles(engine: &Engine, ns: u64) -> u64 {
    (ns as f64 * engine.costs.clock_ghz) as u64
}

/// Notes how a lock is held; of the first 256.
fn remember(shared: &mut [u64; 4], lock: usize, how: bool) {
    if let Some(word) = shared.get_mut(lock / 64) {
        let bit = 1 << (lock % 64);
        *word = if how { *word | bit } else { *word & !bit };
    }
}

fn remembered(shared: &[u64; 4], lock: usize) -> bool {
    shared
        .get(lock / 64)
        .is_some_and(|word| word & 1 << (lock % 64) != 0)
}
