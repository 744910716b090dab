//! Locks of glibc: its mutex of the adaptive kind, and its rwlock of the default kind, which
//! prefers readers.

use super::common::SLEEPS;
use crate::engine::engine;
use crate::platform::{Sim, Word};
use crate::scheduler::kick;
use locklab_locks::platform::{Atomic, AtomicInt, Ordering, Platform};
use locklab_locks::{Futex, Info, RawLock};

/// The most reads of a spinning waiter: `glibc.pthread.mutex_spin_count`.
const MOST: u32 = 100;
/// Reads beyond twice the expected number.
const MARGIN: u32 = 10;

/// `PTHREAD_MUTEX_ADAPTIVE_NP`: the same, but a waiter first reads up to twice as often
/// as it took on average, and sleeps after that. The average follows every wait by an
/// eighth, also one that was in vain.
#[derive(Default)]
pub(crate) struct PthreadAdaptive {
    futex: Futex<Sim>,
    /// Written by the holder only.
    expected: Word<u32>,
}

// SAFETY: as `Futex`.
unsafe impl RawLock<Sim> for PthreadAdaptive {
    type Ctx = ();

    const INFO: Info = Info {
        name: "pthread-adaptive",
        summary: "glibc's adaptive mutex, as described",
        paper: "PTHREAD_MUTEX_ADAPTIVE_NP of the GNU C library",
        ..SLEEPS
    };

    unsafe fn lock(&self, ctx: &()) {
        // SAFETY: the caller's promise is the same, here and below.
        if unsafe { self.futex.try_lock(ctx) } {
            return;
        }
        let expected = self.expected.load(Ordering::Relaxed);
        let most = (2 * expected + MARGIN).min(MOST);
        let mut reads = 0;
        loop {
            if reads == most {
                // SAFETY: as above.
                unsafe { self.futex.lock(ctx) };
                break;
            }
            reads += 1;
            Sim::relax();
            // SAFETY: as above.
            if self.futex.is_locked() == Some(false) && unsafe { self.futex.try_lock(ctx) } {
                break;
            }
        }
        let mean = expected.cast_signed() + (reads.cast_signed() - expected.cast_signed()) / 8;
        self.expected.store(mean.cast_unsigned(), Ordering::Relaxed);
    }

    unsafe fn try_lock(&self, ctx: &()) -> bool {
        // SAFETY: the caller's promise is the same.
        unsafe { self.futex.try_lock(ctx) }
    }

    unsafe fn unlock(&self, ctx: &()) {
        // SAFETY: the caller's promise is the same.
        unsafe { self.futex.unlock(ctx) }
    }
}

/// The mark in [`PthreadRwlock::readers`] that writers have it, or had it last.
const WRITING: u32 = 1;
/// A writer holds it or will, the primary one.
const WRITER: u32 = 2;
/// Each reader that has it or waits for it.
const READER: u32 = 4;
/// The mark in the two words on which threads sleep that somebody does.
const SLEPT: u32 = 2;

/// `PTHREAD_RWLOCK_PREFER_READER_NP`, the default kind: it is in a phase of readers or
/// of writers. A reader adds itself and has it at once in the phase of readers; in the
/// other phase it begins that of readers if no writer holds it, and otherwise sleeps
/// until the writer has begun it. The last reader begins the phase of writers if a
/// writer waits. A release by a writer leaves the phase as it is unless readers wait, so
/// that another writer gets it cheaply; it prefers readers to other writers. Nobody
/// spins.
#[derive(Default)]
pub(crate) struct PthreadRwlock {
    readers: Word<u32>,
    /// 1 in the phase of writers, with [`SLEPT`]: the word on which readers, and the
    /// primary writer, sleep until it changes.
    phase: Word<u32>,
    /// The word on which other writers sleep: [`SLEPT`] if one does.
    writers: Word<u32>,
}

impl PthreadRwlock {
    /// Sleeps while the phase is `old`.
    fn await_end_of(&self, old: u32) {
        loop {
            // Pairs with the swap of `begin`.
            let phase = self.phase.load(Ordering::Acquire);
            if phase & 1 != old {
                return;
            }
            let slept = old | SLEPT;
            let marked = phase == slept
                || self
                    .phase
                    .compare_exchange(phase, slept, Ordering::Relaxed, Ordering::Relaxed)
                    .is_ok();
            if marked {
                Sim::wait(&self.phase, slept);
            }
        }
    }

    /// Tells who sleeps of the phase that has begun in `readers`.
    fn begin(&self, phase: u32) {
        // Pairs with the load of `await_end_of`.
        if self.phase.swap(phase, Ordering::Release) & SLEPT != 0 {
            kick(engine(), self.phase.address(), usize::MAX);
        }
    }

    /// Changes `readers` in one step, by a loop of compare-and-swaps; gives what it was
    /// and what it is.
    fn change(&self, mut was: u32, to: impl Fn(u32) -> u32) -> (u32, u32) {
        loop {
            let new = to(was);
            // Pairs with itself: each of these acquires, releases or both.
            let changed =
                self.readers
                    .compare_exchange(was, new, Ordering::AcqRel, Ordering::Relaxed);
            match changed {
                Ok(_) => return (was, new),
                Err(now) => was = now,
            }
        }
    }

    /// Becomes the primary writer after another; gives what `readers` is then.
    #[cold]
    fn await_other_writers(&self) -> u32 {
        let mut has_slept = 0;
        loop {
            let readers = self.readers.load(Ordering::Relaxed);
            if readers & WRITER == 0 {
                let taken = self.readers.compare_exchange(
                    readers,
                    readers | WRITER,
                    // Pairs with `change` of the writer that left.
                    Ordering::Acquire,
                    Ordering::Relaxed,
                );
                if taken.is_err() {
                    continue;
                }
                if has_slept != 0 {
                    // Others may sleep still.
                    self.writers.store(has_slept, Ordering::Relaxed);
                }
                return readers | WRITER;
            }
            // Pairs with the swap of `unlock`, which comes after the release: either
            // that sees it, or the next line sees the release.
            self.writers.swap(SLEPT, Ordering::AcqRel);
            if self.readers.load(Ordering::Relaxed) & WRITER != 0 {
                Sim::wait(&self.writers, SLEPT);
                has_slept = SLEPT;
            }
        }
    }
}

// SAFETY: a writer has it in the phase of writers only, in which no reader gets it, and
// one writer is the primary one; a phase of writers begins when no reader is there.
unsafe impl RawLock<Sim> for PthreadRwlock {
    type Ctx = ();

    const INFO: Info = Info {
        name: "pthread-rwlock",
        summary: "glibc's rwlock that prefers readers, as described",
        readers_share: true,
        paper: "the GNU C library",
        ..SLEEPS
    };

    unsafe fn lock(&self, (): &()) {
        // Pairs with `change` of who had it.
        let readers = self.readers.fetch_or(WRITER, Ordering::Acquire);
        let mut readers = match readers & WRITER {
            0 => readers | WRITER,
            _ => self.await_other_writers(),
        };
        loop {
            if readers & WRITING != 0 {
                // Who began the phase may not have said so yet, and must not say it
                // after the next one has begun.
                return self.await_end_of(0);
            }
            if readers < READER {
                let begun = self.readers.compare_exchange(
                    readers,
                    readers | WRITING,
                    // Pairs with `change` of the last reader.
                    Ordering::Acquire,
                    Ordering::Relaxed,
                );
                match begun {
                    Ok(_) => return self.phase.store(1, Ordering::Relaxed),
                    Err(now) => readers = now,
                }
            } else {
                self.await_end_of(0);
                readers = self.readers.load(Ordering::Acquire);
            }
        }
    }

    unsafe fn unlock(&self, (): &()) {
        let was = self.readers.load(Ordering::Relaxed);
        let (_, now) = self.change(was, |readers| match readers >= READER {
            true => readers & !(WRITER | WRITING),
            false => readers & !WRITER,
        });
        if now & WRITING == 0 {
            self.begin(0);
        }
        // Pairs with the swap of `await_other_writers`.
        if self.writers.swap(0, Ordering::AcqRel) & SLEPT != 0 {
            Sim::wake(&self.writers);
        }
    }

    unsafe fn read_lock(&self, (): &()) {
        // Pairs with `change` of the writer that left.
        let mut readers = self.readers.fetch_add(READER, Ordering::Acquire) + READER;
        if readers & WRITING == 0 {
            return;
        }
        while readers & WRITING != 0 {
            if readers & WRITER == 0 {
                let begun = self.readers.compare_exchange(
                    readers,
                    readers & !WRITING,
                    // This is as above.
                    Ordering::Acquire,
                    Ordering::Relaxed,
                );
                match begun {
                    Ok(_) => return self.begin(0),
                    Err(now) => readers = now,
                }
            } else {
                self.await_end_of(1);
                readers = self.readers.load(Ordering::Acquire);
            }
        }
        // As in `lock`.
        self.await_end_of(1);
    }

    unsafe fn read_unlock(&self, (): &()) {
        let was = self.readers.load(Ordering::Relaxed);
        let (_, now) = self.change(was, |readers| match readers - READER {
            left if left < READER && left & WRITER != 0 => left | WRITING,
            left => left,
        });
        if now & WRITING != 0 {
            self.begin(1);
        }
    }
}
