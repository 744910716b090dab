//! The barrier of all workers of a cell between slices, whose last
//! arriver does what must be done while no worker runs.
//!
//! It spins for some microseconds, so that workers with CPUs of their own
//! continue within one; then it sleeps on a futex, so that a worker that waits
//! for a preempted one does not use up its own time slice. It works between
//! threads and between processes that share memory; allocates nothing.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// The barrier, in memory that all workers share.
#[derive(Default)]
#[repr(C, align(128))]
pub(crate) struct Rendezvous {
    generation: Line,
    arrived: Line,
    sleeping: Line,
}

#[derive(Default)]
#[repr(align(128))]
struct Line(AtomicU32);

impl Rendezvous {
    /// Waits for all of `count` workers. The last to arrive runs `serial`
    /// while the others wait; all workers see what it writes afterwards, and it
    /// sees what they wrote before. Reads the word `spins` times before it
    /// sleeps.
    pub(crate) fn meet(&self, count: usize, spins: u32, serial: impl FnOnce()) {
        let generation = self.generation.0.load(Ordering::Relaxed);
        // B1: AcqRel, so that the last arriver sees what all others did.
        let before = self.arrived.0.fetch_add(1, Ordering::AcqRel);
        if before as usize + 1 >= count {
            self.arrived.0.store(0, Ordering::Relaxed);
            serial();
            self.release(generation);
            return;
        }
        for _ in 0..spins {
            // B2: Acquire pairs with the Release in `release`.
            if self.generation.0.load(Ordering::Acquire) != generation {
                return;
            }
            std::hint::spin_loop();
        }
        // B3: SeqCst, as the store and the load in `release`: either the
        // releaser sees a sleeper, or the sleeper sees the new generation (the
        // kernel compares once more).
        self.sleeping.0.fetch_add(1, Ordering::SeqCst);
        while self.generation.0.load(Ordering::SeqCst) == generation {
            wait(&self.generation.0, generation, None);
        }
        self.sleeping.0.fetch_sub(1, Ordering::Relaxed);
    }

    /// Lets all workers continue, although some will never arrive.
    pub(crate) fn abandon(&self) {
        self.release(self.generation.0.load(Ordering::Relaxed));
    }

    fn release(&self, generation: u32) {
        let next = generation.wrapping_add(1);
        // This is B2 and B3.
        self.generation.0.store(next, Ordering::SeqCst);
        if self.sleeping.0.load(Ordering::SeqCst) > 0 {
            wake_all(&self.generation.0);
        }
    }
}

/// Sleeps while `word` is `expected`, for at most `limit`; may wake for no
/// reason.
pub(crate) fn wait(word: &AtomicU32, expected: u32, limit: Option<Duration>) {
    let limit = limit.map(|limit| libc::timespec {
        tv_sec: limit.as_secs().try_into().unwrap_or(i64::MAX),
        tv_nsec: libc::c_long::from(limit.subsec_nanos() as i32),
    });
    let limit = limit.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // It is not FUTEX_PRIVATE: workers may be processes.
    // SAFETY: word and limit outlive the call; any result is a legal wake-up.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAIT,
            expected,
            limit,
        )
    };
}

/// Wakes all threads that sleep on `word`.
pub(crate) fn wake_all(word: &AtomicU32) {
    // SAFETY: only the address of the word is used.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, i32::MAX) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;

    #[test]
    fn nobody_goes_on_before_the_last_has_done_its_part() {
        for spins in [0, 1000] {
            let (rendezvous, count) = (Rendezvous::default(), AtomicU64::new(0));
            let rounds = 200;
            std::thread::scope(|scope| {
                for _ in 0..3 {
                    scope.spawn(|| {
                        for round in 1..=rounds {
                            rendezvous.meet(3, spins, || {
                                count.fetch_add(1, Ordering::Relaxed);
                            });
                            assert_eq!(count.load(Ordering::Relaxed), round);
                            rendezvous.meet(3, spins, || {});
                        }
                    });
                }
            });
        }
    }

    #[test]
    fn an_abandoned_rendezvous_holds_nobody() {
        let rendezvous = Rendezvous::default();
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| rendezvous.meet(2, 10, || {}));
            while rendezvous.arrived.0.load(Ordering::Relaxed) == 0 {
                std::thread::yield_now();
            }
            rendezvous.abandon();
            waiter.join().unwrap();
        });
    }
}
