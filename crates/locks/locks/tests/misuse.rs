//! Safe code at its worst: leaked guards, locks that move, more turns than a
//! lock has slots. It may be refused and it may wait for ever, but there are never
//! two holders.

use crate::common::each_shared;
use locklab_locks::catalogue::SharedVisitor;
use locklab_locks::{
    NativePlatform as N, NodeMutex, PhaseFair, QueueMutex, RawLock, RwQueued, lock_api,
    queue::Anderson, spin::McsK42,
};
use std::any::Any;
use std::cell::RefCell;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// The program aborts, so it runs in a process of its own.
#[test]
#[cfg_attr(miri, ignore = "millions of guards")]
fn leaked_readers_end_the_program_before_they_wrap() {
    const LEAK: &str = "LEAK_READERS_OF_A_PHASE_FAIR_LOCK";
    if std::env::var_os(LEAK).is_some() {
        let lock: lock_api::RwLock<PhaseFair, ()> = lock_api::RwLock::new(());
        for _ in 0..1 << 24 {
            mem::forget(lock.read());
        }
        let alone = lock.try_write().is_some();
        println!("2^24 readers; a writer is alone: {alone}");
        return;
    }
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "--nocapture"])
        .arg("misuse::leaked_readers_end_the_program_before_they_wrap")
        .env(LEAK, "")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(
        text.contains("2^23 readers hold a phase-fair lock"),
        "{text}"
    );
    assert!(!output.status.success());
}

#[test]
#[cfg_attr(miri, ignore = "millions of guards")]
fn leaked_readers_never_make_room_for_a_writer() {
    let lock: lock_api::RwLock<RwQueued, ()> = lock_api::RwLock::new(());
    let mut readers = 0_u32;
    // As many as the word can count.
    while readers < 1 << 23 {
        let Some(guard) = lock.try_read() else { break };
        mem::forget(guard);
        readers += 1;
    }
    assert!(
        lock.try_write().is_none(),
        "a writer beside {readers} readers"
    );
    assert_eq!(readers, 1 << 22, "refused at half of what can be counted");
    let panicked = catch_unwind(AssertUnwindSafe(|| lock.read()));
    assert!(panicked.is_err(), "a reader that cannot be counted");
    assert!(lock.try_write().is_none(), "and none has been forgotten");

    // SAFETY: two of the leaked guards are given back here.
    unsafe {
        lock.force_unlock_read();
        lock.force_unlock_read();
    }
    assert!(lock.try_read().is_some(), "room again");
}

#[test]
fn a_lock_may_move_once_its_guard_is_leaked() {
    let here = Box::new(lock_api::Mutex::<McsK42, u32>::new(7));
    mem::forget(here.lock());
    let there = Box::new(*here);
    assert!(there.try_lock().is_none(), "still held");
    thread::scope(|scope| {
        let waiter = scope.spawn(|| *there.lock());
        thread::sleep(std::time::Duration::from_millis(5));
        // SAFETY: the leaked guard's.
        unsafe { there.force_unlock() };
        assert_eq!(waiter.join().unwrap(), 7);
    });
    assert!(there.try_lock().is_some(), "free");
}

/// A leaked guard leaves its slot taken, a nested closure takes one more: turns
/// are not CPUs, and there may be more of them than slots.
#[test]
fn an_array_lock_makes_more_turns_wait_than_it_has_slots() {
    let lock = NodeMutex::<Anderson<N, 2>, ()>::new(Anderson::new(), ());
    let inside = AtomicUsize::new(0);
    let enter = || lock.with(|()| inside.fetch_add(1, Ordering::Relaxed));
    thread::scope(|scope| {
        lock.with(|()| {
            for _ in 0..4 {
                scope.spawn(enter);
                thread::sleep(std::time::Duration::from_millis(2));
            }
            assert!(lock.try_with(|()| ()).is_none(), "a try, nested");
            assert_eq!(inside.load(Ordering::Relaxed), 0, "two at once");
        });
    });
    assert_eq!(inside.into_inner(), 4);
}

/// A thread leaks its guard and ends, and its number goes to another.
#[test]
fn a_leaked_guard_of_an_array_lock_keeps_it_held() {
    let lock = QueueMutex::<Anderson<N, 2>, u32>::new(Anderson::new(), 0);
    thread::scope(|scope| {
        scope.spawn(|| mem::forget(lock.lock())).join().unwrap();
        for _ in 0..4 {
            let tries = scope.spawn(|| lock.try_lock().is_some());
            assert!(!tries.join().unwrap(), "two holders");
        }
    });
    assert_eq!(lock.is_locked(), Some(true));
}

/// A guard in a variable of its thread is released at the thread's end. Its lock
/// may find it by the thread's number, which goes back then, too: not before.
#[test]
fn a_thread_may_keep_a_reader_until_it_ends() {
    thread_local! {
        static KEPT: RefCell<Option<Box<dyn Any>>> = const { RefCell::new(None) };
    }
    fn readers_that_end<L: lock_api::RawRwLock + Send + Sync + 'static>() {
        let lock: &'static _ = Box::leak(Box::new(lock_api::RwLock::<L, u32>::new(0)));
        for variable_first in [true, false].repeat(8) {
            let reader = move || {
                if variable_first {
                    KEPT.with(|_| ());
                }
                let guard = lock.read();
                KEPT.set(Some(Box::new(guard)));
            };
            // Two, so that the number of the first to end is taken while the other ends.
            let both = [thread::spawn(reader), thread::spawn(reader)];
            for one in both {
                one.join().unwrap();
            }
            assert!(lock.try_write().is_some(), "a reader that nobody is");
        }
    }
    #[derive(Clone, Copy)]
    struct ThatEnd;
    impl SharedVisitor<N> for ThatEnd {
        type Output = ();
        fn visit<L: RawLock<N, Ctx = ()> + lock_api::RawRwLockDowngrade>(self) {
            readers_that_end::<L>();
        }
    }
    each_shared(ThatEnd);
}
