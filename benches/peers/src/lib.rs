//! Locks of others, behind the interface that the benchmark measures with.
//!
//! The loops are here, once for all locks in Rust, so that what differs
//! between two rows of a table is the lock; those around C's Concurrency Kit
//! are the same in C. Nothing here is published.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, Ordering, compiler_fence};

#[cfg(ck)]
mod ck;

/// A lock and one critical section of it, to be inlined into the loops.
pub trait Lock: Sync {
    /// Holds what a thread brings along.
    type Thread: Default;

    /// Says whether that must stay where it is as long as the lock does. If not,
    /// it is on the stack of the loop.
    const THREAD_STAYS: bool = false;

    /// Acquires, does `critical`, releases.
    fn pair(&self, thread: &mut Self::Thread, critical: impl FnOnce());
}

/// Counts how often the lock changed hands, and notes who had it last. Only touched under the
/// lock.
#[derive(Default)]
#[repr(C, align(64))]
pub struct Counts {
    owner: UnsafeCell<u32>,
    handoffs: UnsafeCell<u64>,
}

// SAFETY: see above.
unsafe impl Sync for Counts {}

impl Counts {
    /// Returns how often the lock went from one thread to the other.
    pub fn handoffs(&mut self) -> u64 {
        *self.handoffs.get_mut()
    }
}

/// A lock to be measured.
pub trait Contestant: Sync {
    /// Names it in tables.
    fn name(&self) -> &str;

    /// Locks and unlocks so often, on one thread, back to back.
    fn uncontended(&self, pairs: u64);

    /// Returns the same as a program does it, with work between: so many steps of
    /// [`multiply`] inside each critical section, from what it protects and back,
    /// and as many before the next, by which that lock is found. So none of it
    /// runs beside the lock. Returns what came of it.
    fn apart(&self, pairs: u64, steps: u64) -> u64;

    /// Locks and unlocks until `stop`, as thread `me`, 0 or 1; returns how
    /// often.
    fn contended(&self, me: u32, counts: &Counts, stop: &AtomicBool) -> u64;
}

/// Does work that touches no memory: multiplications, each of which waits for the
/// one before.
#[inline(always)]
#[must_use]
pub fn multiply(mut value: u64, steps: u64) -> u64 {
    for _ in 0..steps {
        value = value.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        // Neither foreseen by the compiler nor moved across the lock.
        // SAFETY: no instruction at all.
        unsafe {
            std::arch::asm!("/* {0} */", inout(reg) value, options(nostack, preserves_flags))
        };
    }
    value
}

/// A lock with an interface in Rust.
pub struct InRust<L: Lock> {
    name: String,
    /// Dropped with the lock, as some locks want.
    threads: [UnsafeCell<L::Thread>; 2],
    lock: Box<Line<L>>,
    /// Holds what it protects.
    data: Box<Line<UnsafeCell<u64>>>,
}

#[repr(align(64))]
struct Line<L>(L);

// SAFETY: each of two threads uses its own entry of `threads`.
unsafe impl<L: Lock> Sync for InRust<L> {}

impl<L: Lock> InRust<L> {
    /// Returns a contestant with this lock.
    pub fn new(name: impl Into<String>, lock: L) -> Self {
        Self {
            name: name.into(),
            threads: Default::default(),
            lock: Box::new(Line(lock)),
            data: Box::new(Line(UnsafeCell::new(0))),
        }
    }
}

impl<L: Lock> Contestant for InRust<L> {
    fn name(&self) -> &str {
        &self.name
    }

    #[inline(never)]
    fn uncontended(&self, pairs: u64) {
        let mut local;
        let thread = if L::THREAD_STAYS {
            // SAFETY: no other thread is number 0.
            unsafe { &mut *self.threads[0].get() }
        } else {
            local = L::Thread::default();
            &mut local
        };
        for _ in 0..pairs {
            self.lock
                .0
                .pair(thread, || compiler_fence(Ordering::SeqCst));
        }
    }

    #[inline(never)]
    fn apart(&self, pairs: u64, steps: u64) -> u64 {
        let mut local;
        let thread = if L::THREAD_STAYS {
            // SAFETY: as above.
            unsafe { &mut *self.threads[0].get() }
        } else {
            local = L::Thread::default();
            &mut local
        };
        let (mut value, none) = (1, std::hint::black_box(0));
        let (lock, data) = (&raw const self.lock.0, self.data.0.get());
        for _ in 0..pairs {
            // SAFETY: no byte away from the lock.
            let found = unsafe { &*lock.byte_add(value as usize & none) };
            // SAFETY: under the lock.
            found.pair(thread, || unsafe {
                value = multiply(data.read_volatile() ^ value, steps);
                data.write_volatile(value);
            });
            value = multiply(value, steps);
        }
        value
    }

    #[inline(never)]
    fn contended(&self, me: u32, counts: &Counts, stop: &AtomicBool) -> u64 {
        let mut local;
        let thread = if L::THREAD_STAYS {
            // SAFETY: no other thread has this number.
            unsafe { &mut *self.threads[me as usize].get() }
        } else {
            local = L::Thread::default();
            &mut local
        };
        let mut pairs = 0;
        while !stop.load(Ordering::Relaxed) {
            // SAFETY: under the lock.
            self.lock.0.pair(thread, || unsafe {
                if *counts.owner.get() != me {
                    *counts.owner.get() = me;
                    *counts.handoffs.get() += 1;
                }
            });
            pairs += 1;
        }
        pairs
    }
}

macro_rules! with_guard {
    ($($lock:ty),*) => {$(
        impl Lock for $lock {
            type Thread = ();
            #[inline(always)]
            fn pair(&self, _: &mut (), critical: impl FnOnce()) {
                let _guard = self.lock();
                critical();
            }
        }
    )*};
}

with_guard!(
    spin::mutex::SpinMutex<()>,
    spin::mutex::TicketMutex<()>,
    spinning_top::Spinlock<()>,
    spinning_top::BackoffSpinlock<()>,
    parking_lot::Mutex<()>,
    parking_lot::ReentrantMutex<()>
);

impl Lock for std::sync::Mutex<()> {
    type Thread = ();
    #[inline(always)]
    fn pair(&self, _: &mut (), critical: impl FnOnce()) {
        let _guard = self.lock();
        critical();
    }
}

/// A queue node on the stack.
pub struct McslockThread(mcslock::raw::MutexNode);

impl Default for McslockThread {
    fn default() -> Self {
        Self(mcslock::raw::MutexNode::new())
    }
}

impl Lock for mcslock::raw::spins::Mutex<()> {
    type Thread = McslockThread;
    #[inline(always)]
    fn pair(&self, thread: &mut McslockThread, critical: impl FnOnce()) {
        self.lock_with_then(&mut thread.0, |()| critical());
    }
}

/// A queue node on the heap, which passes through the lock and back.
#[derive(Default)]
pub struct ClhlockThread(clhlock::raw::MutexNode);

impl Lock for clhlock::raw::spins::Mutex<()> {
    type Thread = ClhlockThread;
    const THREAD_STAYS: bool = true;
    #[inline(always)]
    fn pair(&self, thread: &mut ClhlockThread, critical: impl FnOnce()) {
        // SAFETY: read out here and written back below; nothing between
        // panics. (An `Option` would cost the peer a branch.)
        let guard = self.lock_with(unsafe { std::ptr::read(&raw const thread.0) });
        critical();
        // SAFETY: as above.
        unsafe { std::ptr::write(&raw mut thread.0, guard.unlock()) };
    }
}

/// Returns every peer that is there. Concurrency Kit is missing where its headers
/// (Debian: `libck-dev`) were not installed when this was built.
pub fn all() -> Vec<Box<dyn Contestant>> {
    fn boxed<L: Lock + 'static>(name: &str, lock: L) -> Box<dyn Contestant> {
        Box::new(InRust::new(name, lock))
    }
    #[allow(unused_mut, reason = "nothing to add without Concurrency Kit")]
    let mut all = vec![
        boxed("spin SpinMutex", spin::mutex::SpinMutex::new(())),
        boxed("spin TicketMutex", spin::mutex::TicketMutex::new(())),
        boxed("spinning_top", spinning_top::Spinlock::new(())),
        boxed(
            "spinning_top backoff",
            spinning_top::BackoffSpinlock::new(()),
        ),
        boxed("mcslock", mcslock::raw::spins::Mutex::new(())),
        boxed("clhlock", clhlock::raw::spins::Mutex::new(())),
        boxed("parking_lot", parking_lot::Mutex::new(())),
        boxed(
            "parking_lot Reentrant",
            parking_lot::ReentrantMutex::new(()),
        ),
        boxed("std Mutex", std::sync::Mutex::new(())),
    ];
    #[cfg(ck)]
    all.extend(ck::all());
    all
}

/// Says whether Concurrency Kit is among them.
pub const HAS_CK: bool = cfg!(ck);

/// Returns whether one lock does more operations than another because one thread keeps it, by
/// how many of 100 acquisitions follow one of the same thread: at least one more of them does.
pub fn keeping_explains(keeps: f64, other: f64) -> bool {
    keeps >= other + 1.0
}

#[cfg(test)]
mod tests {
    use super::keeping_explains;

    /// A ticket lock and its peer have 0.2 % each, which explains no difference.
    #[test]
    fn equal_shares_explain_no_difference() {
        assert!(!keeping_explains(0.2, 0.2));
        assert!(!keeping_explains(61.5, 84.8));
        assert!(keeping_explains(86.5, 84.4));
    }
}
