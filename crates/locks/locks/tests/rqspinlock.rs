//! The lock that fails instead of hanging: deadlocks of one thread and of two,
//! timeouts, and what is left behind.

use crate::common::yielding::Yielding;
use crate::common::{Shared, some_give_up};
use locklab_locks::host::*;
use locklab_locks::kernel::*;
use locklab_locks::*;
use std::sync::Barrier;
use std::sync::atomic::Ordering;
use std::thread;

/// Threads whose time stands still: nobody gives up but for a deadlock.
struct Still;

type S = Native<Still>;
static NODES: [QueueNodes<S>; 256] = [const { QueueNodes::NEW }; 256];
static HELD: [HeldLocks<S>; 256] = [const { HeldLocks::NONE }; 256];

// SAFETY: the numbers of threads; entries of statics for each.
unsafe impl Host for Still {
    fn cpu() -> usize {
        NativePlatform::cpu()
    }
    fn queue_nodes(cpu: usize) -> &'static QueueNodes<S> {
        &NODES[cpu]
    }
    fn held_locks(cpu: usize) -> Option<&'static HeldLocks<S>> {
        HELD.get(cpu)
    }
}

type Lock = RqSpinlock<S>;

/// Returns how many entries of this thread's table are in use.
fn entries() -> usize {
    // SAFETY: looked at only.
    let own = unsafe { &HELD[Still::cpu()].table().locks };
    let mut own = own.iter().map(|lock| lock.load(Ordering::Relaxed));
    let used = own.by_ref().take_while(|lock| *lock != 0).count();
    assert!(own.all(|lock| lock == 0), "those in use come first");
    used
}

/// Releases the lock.
///
/// # Safety
/// This thread holds the lock.
unsafe fn unlock(lock: &Lock) {
    // SAFETY: of the caller.
    unsafe { RawLock::<S>::unlock(lock, &()) }
}

#[test]
fn its_holder_is_refused_at_once() {
    let lock = Lock::new();
    for _ in 0..2 {
        assert_eq!(lock.lock_or_fail(), Ok(()));
        assert_eq!(lock.lock_or_fail(), Err(AcquireError::Deadlock));
        assert_eq!(entries(), 1);
        // SAFETY: held.
        unsafe { unlock(&lock) };
    }
    assert_eq!((lock.is_locked(), entries()), (Some(false), 0));
}

#[test]
fn two_that_want_what_the_other_holds_do_not_hang() {
    for _ in 0..if cfg!(miri) { 1 } else { 100 } {
        let locks = [Lock::new(), Lock::new()];
        let both = Barrier::new(2);
        let cross = |own: usize| {
            assert_eq!(locks[own].lock_or_fail(), Ok(()));
            both.wait();
            let result = locks[1 - own].lock_or_fail();
            // SAFETY: held, the second if it was acquired.
            unsafe {
                if result.is_ok() {
                    unlock(&locks[1 - own]);
                }
                unlock(&locks[own]);
            }
            assert_eq!(entries(), 0);
            result
        };
        let results = thread::scope(|scope| {
            let other = scope.spawn(|| cross(1));
            [cross(0), other.join().unwrap()]
        });
        assert!(results.contains(&Err(AcquireError::Deadlock)));
        assert!(locks.iter().all(|lock| lock.is_locked() == Some(false)));
    }
}

#[test]
fn more_locks_than_a_table_has_room_for_in_any_order() {
    let locks: Vec<Lock> = (0..40).map(|_| Lock::new()).collect();
    for lock in &locks {
        assert_eq!(lock.lock_or_fail(), Ok(()));
    }
    assert_eq!(entries(), HELD_LOCKS);
    for order in 0..locks.len() {
        // 7 and 40 have no common divisor.
        let lock = &locks[order * 7 % locks.len()];
        // SAFETY: held, and released once.
        unsafe { unlock(lock) };
    }
    assert_eq!(entries(), 0);
    let (first, last) = (&locks[0], &locks[39]);
    assert_eq!(first.lock_or_fail(), Ok(()));
    assert_eq!(last.lock_or_fail(), Ok(()));
    assert_eq!(first.lock_or_fail(), Err(AcquireError::Deadlock));
    // SAFETY: held.
    unsafe {
        unlock(first);
        assert_eq!(last.lock_or_fail(), Err(AcquireError::Deadlock));
        unlock(last);
    }
    assert_eq!(entries(), 0);
}

#[test]
fn who_gives_up_leaves_no_trace() {
    let lock = RqSpinlock::<NativePlatform>::new();
    assert_eq!(lock.lock_or_fail(), Ok(()));
    thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..if cfg!(miri) { 2 } else { 40 } {
                // SAFETY: a context-free lock that stays.
                assert!(!unsafe { lock.lock_until(&(), 0) }, "held, no time left");
            }
            let other = RqSpinlock::<NativePlatform>::new();
            assert_eq!(other.lock_or_fail(), Ok(()));
            assert_eq!(other.lock_or_fail(), Err(AcquireError::Deadlock));
        });
    });
    // SAFETY: held.
    unsafe { RawLock::<NativePlatform>::unlock(&lock, &()) };
    assert_eq!(RawLock::<NativePlatform>::is_locked(&lock), Some(false));
}

#[test]
fn an_error_is_a_sentence() {
    let said = |error: AcquireError| error.to_string();
    assert_eq!(
        said(AcquireError::Deadlock),
        "the lock was not acquired: waiting for it would be a deadlock"
    );
    assert!(said(AcquireError::Timeout).contains("not released in time"));
}

#[test]
fn waiters_that_give_up_and_others_exclude_each_other() {
    let mut shared = Shared::new(RqSpinlock::<Yielding>::new());
    some_give_up::<Yielding, _>(
        &mut shared,
        5,
        if cfg!(miri) { 10 } else { 2_000 },
        // SAFETY: a context-free lock that stays to the end.
        |lock, n, turn| unsafe {
            if n == 0 || turn % 3 == 0 {
                lock.lock(&());
                return true;
            }
            if turn % 3 == 1 {
                return lock.lock_or_fail().is_ok();
            }
            lock.lock_until(&(), Yielding::now() + turn % 7 * 100)
        },
        // SAFETY: acquired.
        |lock, _| unsafe { lock.unlock(&()) },
    );
    assert_eq!(shared.lock.is_locked(), Some(false), "a place is left over");
}
