//! Safe code at its worst: leaked guards, locks that move, more CPUs than a
//! lock serves. It may be refused and it may wait for ever, but there are never
//! two holders.

use locklab_locks::{
    Anderson, Host, McsK42, Mutex, Native, PhaseFair, QueueNodes, RwQueued, lock_api,
};
use std::cell::Cell;
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

thread_local! {
    static NUMBER: Cell<usize> = const { Cell::new(0) };
}

/// Threads that say which CPU they are.
struct Numbered;

// SAFETY: the one test that uses it gives each thread a number of its own, and
// its lock asks for no node.
unsafe impl Host for Numbered {
    fn cpu() -> usize {
        NUMBER.get()
    }
    fn queue_nodes(_: usize) -> &'static QueueNodes<Native<Self>> {
        unreachable!("an array lock has no queue nodes")
    }
}

#[test]
fn an_array_lock_refuses_more_cpus_than_it_has_slots() {
    type P = Native<Numbered>;
    let lock = Mutex::<(), Anderson<P, 2>, P>::new(Anderson::new(), ());
    let inside = AtomicUsize::new(0);
    let enter = |cpu| {
        NUMBER.set(cpu);
        catch_unwind(AssertUnwindSafe(|| {
            lock.with(|()| inside.fetch_add(1, Ordering::Relaxed));
        }))
        .is_ok()
    };
    thread::scope(|scope| {
        let waiter = lock.with(|()| {
            let waiter = scope.spawn(|| enter(1));
            thread::sleep(std::time::Duration::from_millis(5));
            let third = scope.spawn(|| enter(2));
            assert!(!third.join().unwrap(), "number 2 of a lock for 0 and 1");
            assert_eq!(inside.load(Ordering::Relaxed), 0, "two at once");
            waiter
        });
        assert!(waiter.join().unwrap());
    });
    assert_eq!(inside.into_inner(), 1);
}
