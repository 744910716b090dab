//! The lock of a bucket of the crate parking_lot.
//!
//! It must never know what it protects.

use super::spin_wait::{ROUNDS, spin_round};
use crate::platform::{Sim, Word};
use locklab_locks::platform::{Atomic, AtomicInt, Ordering, Platform};
use std::ptr;

const HELD: usize = 1;
/// A release takes a sleeper out of the queue.
const CHANGED: usize = 2;
/// The rest is the address of the sleeper that came last.
const BITS: usize = HELD | CHANGED;

/// One word: held or not, and the queue of those who sleep, the newest first. A waiter spins
/// ten rounds while nobody sleeps, as one of the mutex does, and sleeps then. A release that
/// finds sleepers, and none at work on them, wakes the oldest, unless somebody holds the lock
/// by then: its release will.
///
/// There a sleeper that was seen once knows the one before it, so that the oldest is found in
/// one step. Here they are walked; more than two are rare.
#[derive(Default)]
#[repr(transparent)]
pub(super) struct WordLock(Word<usize>);

/// A thread that sleeps.
#[derive(Default)]
#[repr(C, align(64))]
pub(super) struct Waiter {
    /// Who came before it.
    next: Word<*mut Self>,
    /// 1 while it sleeps.
    parked: Word<u32>,
}

impl WordLock {
    /// Waits until it is acquired; the waiter is the calling thread's.
    pub(super) fn lock(&self, waiter: &Waiter) {
        // Pairs with `unlock`, here and below.
        let (acquire, relaxed) = (Ordering::Acquire, Ordering::Relaxed);
        if self.0.compare_exchange(0, HELD, acquire, relaxed).is_err() {
            self.wait(waiter);
        }
    }

    #[cold]
    fn wait(&self, waiter: &Waiter) {
        let mut round = 0;
        let mut seen = self.0.load(Ordering::Relaxed);
        loop {
            if seen & HELD == 0 {
                // Pairs with `unlock`.
                let (acquire, relaxed) = (Ordering::Acquire, Ordering::Relaxed);
                match self.0.compare_exchange(seen, seen | HELD, acquire, relaxed) {
                    Ok(_) => return,
                    Err(now) => seen = now,
                }
                continue;
            }
            let newest = newest(seen);
            if newest.is_null() && round < ROUNDS {
                round += 1;
                spin_round(round);
                seen = self.0.load(Ordering::Relaxed);
                continue;
            }
            waiter.parked.store(1, Ordering::Relaxed);
            waiter.next.store(newest, Ordering::Relaxed);
            let with = ptr::from_ref(waiter).expose_provenance() | (seen & BITS);
            // Pairs with the loads of `wake_oldest`.
            let (release, relaxed) = (Ordering::AcqRel, Ordering::Relaxed);
            if let Err(now) = self.0.compare_exchange(seen, with, release, relaxed) {
                seen = now;
                continue;
            }
            // Pairs with the store of `wake_oldest`.
            while waiter.parked.load(Ordering::Acquire) != 0 {
                Sim::wait(&waiter.parked, 1);
            }
            round = 0;
            seen = self.0.load(Ordering::Relaxed);
        }
    }

    /// Releases it, and wakes a sleeper if there are any. It must be held.
    pub(super) fn unlock(&self) {
        // Pairs with `lock` and `wait`.
        let before = self.0.fetch_sub(HELD, Ordering::Release);
        if before & CHANGED == 0 && !newest(before).is_null() {
            self.wake_oldest();
        }
    }

    #[cold]
    fn wake_oldest(&self) {
        let mut seen = self.0.load(Ordering::Relaxed);
        loop {
            if seen & CHANGED != 0 || newest(seen).is_null() {
                return;
            }
            // Pairs with the exchange by which a sleeper joined, and with those below.
            let (acquire, relaxed) = (Ordering::Acquire, Ordering::Relaxed);
            match self
                .0
                .compare_exchange(seen, seen | CHANGED, acquire, relaxed)
            {
                Ok(_) => break,
                Err(now) => seen = now,
            }
        }
        seen |= CHANGED;
        if let Some(oldest) = self.take_oldest(&mut seen) {
            // SAFETY: it sleeps until `parked` is cleared, and stays in the arena.
            let parked = unsafe { &raw const (*oldest).parked };
            // Pairs with the load of `wait`.
            // SAFETY: as above.
            unsafe { &*parked }.store(0, Ordering::Release);
            // SAFETY: the arena stays while the engine runs.
            unsafe { Sim::wake_at(parked) };
        }
    }

    /// Takes the oldest sleeper out, and lets others change the queue; none if somebody holds
    /// the lock.
    fn take_oldest(&self, seen: &mut usize) -> Option<*mut Waiter> {
        // Pairs with the next exchange of `wake_oldest`; a failure, with who joined.
        let change = |seen: &mut usize, new: usize| {
            let (release, acquire) = (Ordering::Release, Ordering::Acquire);
            let done = self.0.compare_exchange(*seen, new, release, acquire);
            done.map_err(|now| *seen = now).is_ok()
        };
        loop {
            if *seen & HELD != 0 {
                if change(seen, *seen & !CHANGED) {
                    return None;
                }
                continue;
            }
            let head = newest(*seen);
            let (mut oldest, mut before) = (head, ptr::null_mut());
            loop {
                // SAFETY: who is in the queue sleeps, and what it waits with stays, here and below.
                let next = unsafe { &*oldest }.next.load(Ordering::Relaxed);
                if next.is_null() {
                    break;
                }
                (before, oldest) = (oldest, next);
            }
            // SAFETY: as above.
            if let Some(before) = unsafe { before.as_ref() } {
                before.next.store(ptr::null_mut(), Ordering::Relaxed);
                // Pairs with the next exchange of `wake_oldest`.
                self.0.fetch_and(!CHANGED, Ordering::Release);
                return Some(oldest);
            }
            // Who acquires it meanwhile does not matter, who joins does.
            while newest(*seen) == head {
                if change(seen, *seen & HELD) {
                    return Some(oldest);
                }
            }
        }
    }
}

/// Returns the sleeper that came last.
fn newest(state: usize) -> *mut Waiter {
    ptr::with_exposed_provenance_mut(state & !BITS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::simulate_lock;
    use crate::{Loop, Machine, Outcome, Scenario, Stop, Workload};
    use locklab_locks::{Futex, Info, RawLock};

    /// It as a lock by itself.
    #[derive(Default)]
    struct Bare(WordLock);

    // SAFETY: one waiter at a time acquires it.
    unsafe impl RawLock<Sim> for Bare {
        type Ctx = ();
        const INFO: Info = Info {
            name: "word lock",
            try_lock: false,
            parks: true,
            max_cpus: usize::MAX,
            ..Info::BASE
        };

        unsafe fn lock(&self, _: &()) {
            self.0.lock(&Waiter::default());
        }

        unsafe fn unlock(&self, _: &()) {
            self.0.unlock();
        }
    }

    fn of<L: RawLock<Sim>>(inside_ns: f64, threads: usize, cpus: usize) -> Outcome {
        let machine = Machine::builtin("flat-16").unwrap();
        let turn = Loop {
            inside_ns,
            outside_ns: inside_ns,
            ..Loop::default()
        };
        let mut scenario = Scenario::new(machine, "word lock", Workload::Loop(turn), threads);
        scenario.hardware_threads = Some(cpus);
        scenario.stop = Stop::Each(200);
        // A second holder would be an error, and so would a sleeper that nobody wakes.
        simulate_lock::<L>(&scenario).unwrap().outcome
    }

    #[test]
    fn one_holds_it_and_every_sleeper_is_woken() {
        for (threads, cpus) in [(2, 2), (8, 8), (8, 2)] {
            for inside_ns in [100.0, 20_000.0] {
                let outcome = of::<Bare>(inside_ns, threads, cpus);
                assert_eq!(outcome.acquisitions, 200 * threads as u64);
            }
        }
    }

    #[test]
    fn a_waiter_spins_first() {
        // A sleep and its wake-up take some microseconds; a call about a shorter section finds the
        // word changed, and does not sleep.
        let [spins, sleeps] = [of::<Bare>(600.0, 2, 2), of::<Futex<Sim>>(600.0, 2, 2)];
        let wait = |outcome: &Outcome| outcome.latency.p99;
        assert!(
            wait(&spins) < 1000.0 && wait(&sleeps) > 2000.0,
            "{} and {}",
            wait(&spins),
            wait(&sleeps)
        );
    }
}
