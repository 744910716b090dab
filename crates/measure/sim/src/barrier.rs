//! The barriers at which the threads of a benchmark meet before a round of work and after it.
//!
//! Each is a mutex, a count, and a condition on which all but the last to come sleep, as that
//! of Rust's standard library on glibc. Who is woken takes the mutex before it goes on, so
//! threads leave one after the other, each woken by the one before. When they run then, and
//! whom they preempt, decides how a short round goes.
//!
//! They must never decide who runs: the scheduler does.

use crate::arena::Arena;
use crate::cpu::Phase;
use crate::engine::Engine;
use crate::platform::{Sim, Word};
use crate::scheduler::sleep;
use locklab_locks::platform::{Atomic, Ordering, Platform};
use locklab_locks::{Futex, RawLock};

/// The time for which the starting thread sleeps, ms: all others are asleep at the barrier
/// by then. Nothing else runs, so a longer sleep changes nothing.
const ASLEEP_MS: f64 = 2.0;

/// A barrier that opens once.
#[derive(Default)]
#[repr(C)]
struct Barrier {
    mutex: Futex<Sim>,
    came: Word<u32>,
    open: Word<u32>,
}

impl Barrier {
    /// Waits until so many threads have come.
    fn wait(&self, all: u32) {
        let last = self.with_mutex(|| {
            let came = self.came.load(Ordering::Relaxed) + 1;
            self.came.store(came, Ordering::Relaxed);
            if came == all {
                self.open.store(1, Ordering::Relaxed);
                Sim::wake_all(&self.open);
            }
            came == all
        });
        if !last {
            while self.open.load(Ordering::Relaxed) == 0 {
                Sim::wait(&self.open, 0);
            }
            self.with_mutex(|| ());
        }
    }

    fn with_mutex<R>(&self, work: impl FnOnce() -> R) -> R {
        // SAFETY: released below, by the same thread.
        unsafe { self.mutex.lock(&()) }
        let result = work();
        // SAFETY: locked above.
        unsafe { self.mutex.unlock(&()) }
        result
    }
}

/// The two barriers of a round.
pub(crate) struct Round<'a> {
    before: &'a Barrier,
    after: &'a Barrier,
    all: u32,
}

impl<'a> Round<'a> {
    /// Returns the number of lines of the barriers.
    pub(crate) fn lines() -> usize {
        2 * Arena::lines_for::<Barrier>()
    }

    /// Places the barriers of so many threads, beside the one that starts them.
    pub(crate) fn new(arena: &'a Arena, threads: usize) -> Self {
        Self {
            before: arena.place("barrier before the round", Barrier::default()),
            after: arena.place("barrier after the round", Barrier::default()),
            all: threads as u32 + 1,
        }
    }

    /// Does the work of one thread.
    pub(crate) fn work(&self, work: impl FnOnce()) {
        self.before.wait(self.all);
        work();
        self.after.wait(self.all);
    }

    /// Lets the threads go, and ends the run when it has seen that all have done their work.
    /// The time between is counted.
    pub(crate) fn time(&self, engine: &Engine) {
        sleep(engine, (ASLEEP_MS * 1e6 * engine.costs.clock_ghz) as u64);
        self.before.wait(self.all);
        engine.counts.started.set(engine.time.get());
        self.after.wait(self.all);
        engine.stopped.set(true);
        engine.suspend(Phase::Done);
    }
}
