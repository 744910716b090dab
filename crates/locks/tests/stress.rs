//! Real threads on every lock of the catalogue: whatever the model checker
//! proved, the machine code must hold.

use locklab_locks::catalogue::{self, Visitor};
use locklab_locks::{Fairness, NativePlatform, RawLock};
use std::cell::UnsafeCell;

/// How many acquisitions all threads make together. With more threads than
/// CPUs a handoff of a fair lock waits until the next in line is scheduled,
/// milliseconds each, so there they are few.
fn acquisitions(threads: u64, fairness: Fairness) -> u64 {
    let cpus = std::thread::available_parallelism().map_or(1, |cpus| cpus.get() as u64);
    match fairness {
        Fairness::Fifo if threads > cpus => 320,
        _ => 20_000,
    }
}

#[repr(C)]
struct Shared<L> {
    lock: L,
    /// Two counters: they differ if a holder was interrupted by another.
    data: UnsafeCell<[u64; 2]>,
}

// SAFETY: `data` is only reached while `lock` is held.
unsafe impl<L: Sync> Sync for Shared<L> {}

struct Stress {
    threads: u64,
}

impl Visitor<NativePlatform> for Stress {
    type Output = ();

    fn visit<L: RawLock<NativePlatform>>(self) {
        let turns = acquisitions(self.threads, L::INFO.fairness) / self.threads;
        let shared = Box::new(Shared {
            lock: L::default(),
            data: UnsafeCell::new([0; 2]),
        });
        // Contexts outlive all use of the lock, as CLH wants.
        let contexts: Vec<Sendable<L::Ctx>> = (0..self.threads)
            .map(|_| Sendable(L::Ctx::default()))
            .collect();
        std::thread::scope(|scope| {
            for ctx in &contexts {
                let shared = &shared;
                scope.spawn(move || {
                    let Sendable(ctx) = ctx;
                    for turn in 0..turns {
                        // SAFETY: the context is this thread's own; lock and
                        // contexts are dropped after all threads have ended.
                        unsafe {
                            if turn % 8 != 0 || !shared.lock.try_lock(ctx) {
                                shared.lock.lock(ctx);
                            }
                            let data = &mut *shared.data.get();
                            assert_eq!(data[0], data[1], "two holders at once");
                            data[0] += 1;
                            std::hint::black_box(&mut *data);
                            data[1] += 1;
                            if turn % 2 == 0 {
                                shared.lock.unlock(ctx);
                            } else {
                                shared.lock.unlock_outline(ctx);
                            }
                        }
                    }
                });
            }
        });
        let expected = turns * self.threads;
        assert_eq!(shared.data.into_inner(), [expected; 2], "lost updates");
    }
}

struct Sendable<T>(T);
// SAFETY: each context is used by one thread; other threads reach only the
// atomics inside it.
unsafe impl<T> Sync for Sendable<T> {}
// SAFETY: as above.
unsafe impl<T> Send for Sendable<T> {}

#[test]
fn every_lock_excludes() {
    for entry in catalogue::ALL {
        let start = std::time::Instant::now();
        for threads in [2, 3, 4, 8] {
            let done = catalogue::visit(entry.info.name, Stress { threads });
            assert!(done.is_some(), "{} is listed", entry.info.name);
        }
        eprintln!("{:>22} {:?}", entry.info.name, start.elapsed());
    }
}
