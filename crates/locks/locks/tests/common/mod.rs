//! Holds what several test programs share.
#![allow(dead_code, reason = "each test program uses its own part")]

pub(crate) mod yielding;

use locklab_locks::catalogue::{self, SharedVisitor};
use locklab_locks::{Platform, RawLock};
use std::cell::UnsafeCell;
use std::sync::Barrier;
use std::time::{Duration, Instant};

/// Visits each lock of the catalogue that readers share.
pub(crate) fn each_shared<P: Platform>(visitor: impl SharedVisitor<P, Output = ()> + Copy) {
    let visits = catalogue::ALL
        .iter()
        .filter_map(|entry| catalogue::visit_shared::<P, _>(entry.info.name, visitor));
    assert!(visits.count() > 0);
}

/// A lock and what it protects. Valid in shared memory if the lock is.
#[repr(C)]
pub(crate) struct Shared<L> {
    pub(crate) lock: L,
    /// Two counters: they differ if a holder was interrupted by another.
    data: UnsafeCell<[u64; 2]>,
}

// SAFETY: `data` is only reached while `lock` is held.
unsafe impl<L: Sync> Sync for Shared<L> {}

impl<L> Shared<L> {
    pub(crate) fn new(lock: L) -> Self {
        Self {
            lock,
            data: UnsafeCell::new([0; 2]),
        }
    }

    /// Runs one critical section; a `long` one relaxes in the middle, so that
    /// others come meanwhile.
    ///
    /// # Safety
    /// The caller holds the lock.
    unsafe fn count<P: Platform>(&self, long: bool) {
        let data = self.data.get().cast::<u64>();
        // SAFETY: the caller's promise. Volatile, so that each counter is
        // read and written where it stands.
        unsafe {
            let [first, second] = [data, data.add(1)].map(|at| at.read_volatile());
            assert_eq!(first, second, "two holders at once");
            data.write_volatile(first + 1);
            if long {
                P::relax();
            }
            data.add(1).write_volatile(second + 1);
        }
    }

    /// Returns how many critical sections there were.
    pub(crate) fn counted(&mut self) -> u64 {
        let data = self.data.get_mut();
        assert_eq!(data[0], data[1], "lost updates");
        data[0]
    }

    /// Makes at most `turns` acquisitions with one context, by every way in and
    /// out, but none that begins after `deadline`; returns how many.
    ///
    /// # Safety
    /// As `RawLock::lock`.
    pub(crate) unsafe fn use_lock<P: Platform>(
        &self,
        ctx: &L::Ctx,
        turns: u64,
        deadline: Instant,
    ) -> u64
    where
        L: RawLock<P>,
    {
        for turn in 0..turns {
            if turn % 16 == 15 && Instant::now() >= deadline {
                return turn;
            }
            // SAFETY: the caller's promise; unlocked once for each lock.
            unsafe {
                if turn % 8 != 0 || !self.lock.try_lock(ctx) {
                    self.lock.lock(ctx);
                }
                self.count::<P>(turn % 16 == 1);
                if turn % 2 == 0 {
                    self.lock.unlock(ctx);
                } else {
                    self.lock.unlock_outline(ctx);
                }
            }
        }
        turns
    }
}

/// Says how long one lock is stressed, at most: on a machine with other things to
/// do, a handoff to a thread that is not running takes its time.
pub(crate) const STRESS: Duration = Duration::from_millis(100);

/// Runs `threads` threads, at most `turns` acquisitions each.
pub(crate) fn stress<P: Platform, L: RawLock<P>>(threads: usize, turns: u64) {
    // This is enough there for every way in and out.
    let turns = if cfg!(miri) { turns.min(17) } else { turns };
    let shared = Box::new(Shared::new(L::default()));
    // Contexts outlive all use of the lock, as CLH wants.
    let contexts: Vec<Sendable<L::Ctx>> =
        (0..threads).map(|_| Sendable(L::Ctx::default())).collect();
    let start = Barrier::new(threads);
    let made = std::thread::scope(|scope| {
        let mut running = Vec::new();
        for ctx in &contexts {
            let (shared, start) = (&shared, &start);
            running.push(scope.spawn(move || {
                let Sendable(ctx) = ctx;
                start.wait();
                let deadline = Instant::now() + STRESS;
                // SAFETY: the context is this thread's own; lock and contexts
                // are dropped after all threads have ended.
                unsafe { shared.use_lock(ctx, turns, deadline) }
            }));
        }
        running
            .into_iter()
            .map(|thread| thread.join().expect("a lock that excludes"))
            .sum::<u64>()
    });
    let mut shared = shared;
    assert_eq!(shared.counted(), made, "{}: lost updates", L::INFO.name);
}

/// Runs `threads` threads, `turns` attempts each by `acquire`, which is given the
/// thread and the turn and may give up; `release` follows each that succeeds.
pub(crate) fn some_give_up<P: Platform, L: Sync>(
    shared: &mut Shared<L>,
    threads: usize,
    turns: u64,
    acquire: impl Fn(&L, usize, u64) -> bool + Sync,
    release: impl Fn(&L, usize) + Sync,
) {
    let made = std::thread::scope(|scope| {
        let (shared, acquire, release) = (&*shared, &acquire, &release);
        let attempts = |thread| {
            let acquired = move |&turn: &u64| {
                let acquired = acquire(&shared.lock, thread, turn);
                if acquired {
                    // SAFETY: acquired.
                    unsafe { shared.count::<P>(true) };
                    release(&shared.lock, thread);
                }
                acquired
            };
            scope.spawn(move || (0..turns).filter(acquired).count() as u64)
        };
        let running: Vec<_> = (0..threads).map(attempts).collect();
        running
            .into_iter()
            .map(|thread| thread.join().expect("a lock that excludes"))
            .sum::<u64>()
    });
    assert_eq!(shared.counted(), made, "lost updates");
}

pub(crate) struct Sendable<T>(pub(crate) T);
// SAFETY: each context is used by one thread; other threads reach only the
// atomics inside it.
unsafe impl<T> Sync for Sendable<T> {}
// SAFETY: as above.
unsafe impl<T> Send for Sendable<T> {}
