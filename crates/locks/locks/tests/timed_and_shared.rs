//! Acquisitions that give up, and readers beside writers.

use crate::common::yielding::Yielding;
use crate::common::{Shared, each_shared, some_give_up};
use locklab_locks::catalogue::SharedVisitor;
use locklab_locks::host::*;
use locklab_locks::queue::*;
use locklab_locks::rw::*;
use locklab_locks::*;
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

type N = NativePlatform;

struct Counters(UnsafeCell<[u64; 2]>);
// SAFETY: reached only under the lock of the test.
unsafe impl Sync for Counters {}

#[test]
fn who_gives_up_in_time_does_not_hold() {
    gives_up(&McsTimeout::<N>::new());
    gives_up(&McsTp::<N>::new());
}

fn gives_up(lock: &impl TimedLock<N, Ctx = McsTimeoutNode>) {
    let (holder, waiter) = (McsTimeoutNode::new(), McsTimeoutNode::new());
    // SAFETY: nodes and lock stay; each node is used by one acquisition.
    unsafe {
        lock.lock(&holder);
        let past = <N as Platform>::now();
        assert!(!lock.lock_until(&waiter, past), "held, and no time left");
        assert!(!waiter.is_idle(), "its place is still in the queue");
        assert!(!lock.try_lock(&waiter), "so it cannot try");
        assert!(
            !lock.lock_until(&waiter, past),
            "comes back, gives up again"
        );
        lock.unlock(&holder);
        assert!(waiter.is_idle(), "the release has passed over it");
        assert!(lock.lock_until(&waiter, past), "free: no time is needed");
        assert!(!lock.try_lock(&holder));
        lock.unlock(&waiter);
        assert!(lock.try_lock(&holder));
        lock.unlock(&holder);
    }
}

#[test]
fn timed_and_patient_waiters_exclude_each_other() {
    timed_and_patient::<McsTimeout<Yielding>>();
    timed_and_patient::<McsTp<Yielding>>();
}

fn timed_and_patient<L: TimedLock<Yielding, Ctx = McsTimeoutNode<Yielding>>>() {
    const THREADS: usize = 5;
    let nodes: [McsTimeoutNode<Yielding>; THREADS] = Default::default();
    some_give_up::<Yielding, L>(
        &mut Shared::new(L::default()),
        THREADS,
        500,
        // SAFETY: the node is this thread's; all stay to the end.
        |lock, n, turn| unsafe {
            if n == 0 || turn % 3 == 0 {
                lock.lock(&nodes[n]);
                return true;
            }
            lock.lock_until(&nodes[n], Yielding::now() + turn % 7 * 100)
        },
        // SAFETY: acquired with this node.
        |lock, n| unsafe { lock.unlock(&nodes[n]) },
    );
    assert!(
        nodes.iter().all(McsTimeoutNode::is_idle),
        "a place is left over"
    );
}

#[test]
fn readers_are_together_and_writers_alone() {
    #[derive(Clone, Copy)]
    struct Together;
    impl SharedVisitor<Yielding> for Together {
        type Output = ();
        fn visit<L: RawLock<Yielding, Ctx = ()> + lock_api::RawRwLockDowngrade>(self) {
            readers_and_writers::<L>();
        }
    }
    each_shared(Together);
    readers_and_writers::<RwPerCpu<Yielding, 2>>();
    readers_and_writers::<Bravo<RwQueued<Yielding>, Yielding>>();
}

fn readers_and_writers<L: RawLock<Yielding, Ctx = ()> + lock_api::RawRwLock>() {
    let lock = L::default();
    let counters = Counters(UnsafeCell::new([0; 2]));
    let (inside, together) = (AtomicU64::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        for n in 0..6 {
            let (lock, counters, inside, together) = (&lock, &counters, &inside, &together);
            scope.spawn(move || {
                for turn in 0..1000 {
                    // SAFETY: no context; released as acquired.
                    unsafe {
                        if n < 2 {
                            if turn % 4 != 0 || !lock.try_lock_exclusive() {
                                lock.lock_exclusive();
                            }
                            let data = &mut *counters.0.get();
                            data[0] += 1;
                            thread::yield_now();
                            data[1] += 1;
                            lock.unlock_exclusive();
                        } else {
                            if turn % 4 != 0 || !lock.try_lock_shared() {
                                lock.lock_shared();
                            }
                            let others = inside.fetch_add(1, Ordering::Relaxed);
                            if others > 0 {
                                together.store(true, Ordering::Relaxed);
                            }
                            let data = &*counters.0.get();
                            let first = std::ptr::from_ref(&data[0]).read_volatile();
                            thread::yield_now();
                            let second = std::ptr::from_ref(&data[1]).read_volatile();
                            assert_eq!(first, second, "a writer was inside");
                            inside.fetch_sub(1, Ordering::Relaxed);
                            lock.unlock_shared();
                        }
                    }
                }
            });
        }
    });
    assert_eq!(counters.0.into_inner(), [2000; 2]);
    assert!(together.into_inner(), "readers were never together");
}

#[test]
fn reader_writer_locks_stand_behind_ordinary_guards() {
    fn guards<L: lock_api::RawRwLockDowngrade>() {
        let lock = lock_api::RwLock::<L, u32>::new(7);
        let first = lock.read();
        let second = lock.read();
        assert_eq!(*first + *second, 14);
        assert!(lock.try_write().is_none() && lock.is_locked());
        drop((first, second));
        assert!(!lock.is_locked());
        *lock.write() += 1;
        let reader = lock_api::RwLockWriteGuard::downgrade(lock.write());
        assert!(lock.try_write().is_none() && lock.try_read().is_some());
        assert_eq!(*reader, 8);
    }
    #[derive(Clone, Copy)]
    struct Guarded;
    impl SharedVisitor<NativePlatform> for Guarded {
        type Output = ();
        fn visit<L: RawLock<NativePlatform, Ctx = ()> + lock_api::RawRwLockDowngrade>(self) {
            guards::<L>();
        }
    }
    each_shared(Guarded);
    guards::<Bravo<RwQueued>>();
}
