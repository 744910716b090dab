//! Simulates what an operating system keeps of those who wait for a word: a lock, and how many
//! there are.
//!
//! Who waits counts itself, takes the lock, and looks at the word. Who wakes looks at the
//! count, and takes the lock if anybody is there. So calls of threads that want the same word
//! go one after the other, and their lines move. The order of accesses is that of
//! `kernel/futex/core.c` and `waitwake.c` of Linux 6.18 (`futex_q_lock`, `futex_wake`), whose
//! lock is a queued spinlock.
//!
//! Of that lock the word is simulated, and not each read of those in line: they wait on nodes
//! of their own, the lock is handed over by one transfer of a line, and who has it next writes
//! the word. With 64 threads on 16 CPUs most events would be of the line otherwise.
//!
//! It must never decide who is woken: `scheduler` does.

use crate::arena::Arena;
use crate::cpu::Phase;
use crate::engine::Engine;
use locklab_locks::host::place_of;
use locklab_locks::platform::{Atomic, AtomicInt, Ordering, Platform};
use std::cell::Cell;

/// Number of entries of the table: Linux has so many for each CPU.
const PLACES: usize = 256;

/// Holds what is kept for the words of one hash, in a line of its own.
#[repr(C, align(64))]
pub(crate) struct FutexQueue<P: Platform> {
    waiters: P::U32,
    lock: P::U32,
    is_held: Cell<bool>,
    /// The first and the last in line, if any is; each names the next ([`crate::cpu::Cpu`]).
    queue: Cell<Option<(usize, usize)>>,
}

const FREE: u32 = 0;
const HELD: u32 = 1;

type Table<P> = [FutexQueue<P>; PLACES];

/// Returns the number of lines of the table.
pub(crate) fn lines<P: Platform>() -> usize {
    Arena::lines_for::<Table<P>>()
}

/// Places an engine's table in its arena.
pub(crate) fn place<P: Platform>(engine: &Engine) {
    let table: Table<P> = std::array::from_fn(|_| FutexQueue {
        waiters: P::U32::new(0),
        lock: P::U32::new(FREE),
        is_held: Cell::new(false),
        queue: Cell::new(None),
    });
    let table: *const Table<P> = engine.memory.arena.place("the system's queues", table);
    engine.futexes.set(table.cast());
}

impl<P: Platform> FutexQueue<P> {
    /// Returns that of a word; none where there is no table, as on a hypervisor. The platform is
    /// the simulator's.
    pub(crate) fn of(engine: &Engine, word: usize) -> Option<&'static Self> {
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
        self.acquire(engine);
    }

    /// Releases the lock after `joins`; the running CPU has been noted as one that sleeps.
    pub(crate) fn stays(&self, engine: &Engine) {
        self.release(engine);
        engine.leave_system();
    }

    /// Releases the lock after `joins`; the running CPU goes on.
    pub(crate) fn leaves(&self, engine: &Engine) {
        self.release(engine);
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
        self.acquire(engine);
        let woken = wake();
        if woken > 0 {
            self.waiters.fetch_sub(woken, Ordering::Relaxed);
        }
        self.release(engine);
        engine.leave_system();
    }

    /// Takes the lock, after those that are in line.
    fn acquire(&self, engine: &Engine) {
        // This and the next swap pair with the swap and the store of `release`.
        self.lock.swap(HELD, Ordering::Acquire);
        if self.is_held.replace(true) {
            let me = engine.current.get();
            self.queue.set(match self.queue.get() {
                None => Some((me, me)),
                Some((first, last)) => {
                    engine.cpus[last].behind.set(me);
                    Some((first, me))
                }
            });
            engine.current().event.set(0);
            engine.suspend(Phase::Miss);
            self.lock.swap(HELD, Ordering::Acquire);
        }
    }

    /// Releases the lock, or hands it to the first in line.
    fn release(&self, engine: &Engine) {
        engine.sync();
        if self.queue.get().is_some() {
            // Pairs with the swaps of `acquire`. Meanwhile more may come to stand in line, and
            // nobody leaves it.
            self.lock.swap(FREE, Ordering::Release);
        }
        match self.queue.get() {
            None => {
                self.is_held.set(false);
                // Pairs with the swaps of `acquire`.
                self.lock.store(FREE, Ordering::Release);
            }
            Some((first, last)) => {
                let next = engine.cpus[first].behind.get();
                self.queue.set((first != last).then_some((next, last)));
                let distance = engine
                    .topology
                    .distance(engine.current().core.get(), engine.cpus[first].core.get());
                let transfer = engine.costs.transfer[distance as usize];
                engine.schedule(first, engine.time.get() + transfer);
            }
        }
    }
}
