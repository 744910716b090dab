//! Simulates what an operating system keeps of those who wait for a word: a lock, and how many
//! there are.
//!
//! Who waits counts itself, takes the lock, and looks at the word. Who wakes looks at the
//! count, and takes the lock if anybody is there. So calls of threads that want the same word
//! go one after the other, and their lines move. The order of accesses is that of
//! `kernel/futex/core.c` and `waitwake.c` of Linux 6.18 (`futex_q_lock`, `futex_wake`), whose
//! lock is a queued spinlock.
//!
//! It must never decide who is woken: `scheduler` does.

use crate::arena::Arena;
use crate::engine::Engine;
use locklab_locks::platform::{Atomic, AtomicInt, Ordering, Platform};
use locklab_locks::{QSpinlock, RawLock, place_of};

/// Number of entries of the table: Linux has so many for each CPU.
const PLACES: usize = 256;

/// Holds what is kept for the words of one hash, in a line of its own.
#[repr(C, align(64))]
pub(crate) struct FutexQueue<P: Platform> {
    waiters: P::U32,
    lock: QSpinlock<P>,
}

type Table<P> = [FutexQueue<P>; PLACES];

/// Returns the number of lines of the table.
pub(crate) fn lines<P: Platform>() -> usize {
    Arena::lines_for::<Table<P>>()
}

/// Places an engine's table in its arena.
pub(crate) fn place<P: Platform>(engine: &Engine) {
    let table: Table<P> = std::array::from_fn(|_| FutexQueue {
        waiters: P::U32::new(0),
        lock: QSpinlock::default(),
    });
    let table: *const Table<P> = engine.memory.arena.place("the system's queues", table);
    engine.futexes.set(table.cast());
}

impl<P: Platform> FutexQueue<P> {
    /// Returns that of a word; none where there is no table, as on a hypervisor, or the
    /// running CPU has no node to queue with. The platform is the simulator's.
    pub(crate) fn of(engine: &Engine, word: usize) -> Option<&'static Self> {
        if engine.current().nodes.get().is_null() {
            return None;
        }
        // SAFETY: null, or placed in the engine's arena, and used only by coroutines, which do not outlive it.
        let table = unsafe { engine.futexes.get().cast::<Table<P>>().as_ref() }?;
        // It is found by its place in simulated memory: where that lies differs from run to run.
        Some(&table[place_of(engine.memory.place_of(word), PLACES)])
    }

    /// Counts the running CPU, and takes the lock. The system takes its hardware thread away
    /// only when it has released that.
    pub(crate) fn joins(&self, engine: &Engine) {
        engine.current().in_system.set(true);
        // Pairs with the load of `is_empty`.
        self.waiters.fetch_add(1, Ordering::SeqCst);
        // SAFETY: released by `stays` or `leaves`.
        unsafe { self.lock.lock(&()) }
    }

    /// Releases the lock after `joins`; the running CPU has been noted as one that sleeps.
    pub(crate) fn stays(&self, engine: &Engine) {
        // SAFETY: taken by `joins`.
        unsafe { self.lock.unlock(&()) }
        engine.leave_system();
    }

    /// Releases the lock after `joins`; the running CPU goes on.
    pub(crate) fn leaves(&self, engine: &Engine) {
        // SAFETY: taken by `joins`.
        unsafe { self.lock.unlock(&()) }
        self.waiters.fetch_sub(1, Ordering::Relaxed);
        engine.leave_system();
    }

    /// Returns whether nobody waits.
    pub(crate) fn is_empty(&self) -> bool {
        // Pairs with the count of `joins`.
        self.waiters.load(Ordering::SeqCst) == 0
    }

    /// Takes the lock, wakes some by `wake`, which returns how many those were, and releases it.
    pub(crate) fn wakes(&self, engine: &Engine, wake: impl FnOnce() -> u32) {
        engine.current().in_system.set(true);
        // SAFETY: released below.
        unsafe { self.lock.lock(&()) }
        let woken = wake();
        if woken > 0 {
            self.waiters.fetch_sub(woken, Ordering::Relaxed);
        }
        // SAFETY: taken above.
        unsafe { self.lock.unlock(&()) }
        engine.leave_system();
    }
}
