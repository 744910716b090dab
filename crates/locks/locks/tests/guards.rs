//! Tests what kernels and programs need from guards: saved state, checks, fairness,
//! timeouts, downgrades, nodes.

use locklab_locks::catalogue::{self, Visitor};
use locklab_locks::host::*;
use locklab_locks::kernel::*;
use locklab_locks::lock_api::{RawMutex, RawMutexFair, RawMutexTimed};
use locklab_locks::mutex::*;
use locklab_locks::queue::*;
use locklab_locks::rw::*;
use locklab_locks::spin::*;
use locklab_locks::*;
use std::cell::Cell;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;
use std::time::Duration;

type N = NativePlatform;

thread_local! {
    static INTERRUPTS_ON: Cell<bool> = const { Cell::new(true) };
}

struct InterruptsOff;

// SAFETY: nothing is kept off here; the test looks at the calls.
unsafe impl Mask for InterruptsOff {
    type Saved = bool;
    fn begin() -> bool {
        INTERRUPTS_ON.replace(false)
    }
    unsafe fn end(were_on: bool) {
        INTERRUPTS_ON.set(were_on);
    }
}

#[test]
fn guards_keep_what_was_on() {
    let first = Masked::<u32, Ticket, InterruptsOff>::new(Ticket::new(), 1);
    let second = Masked::<u32, QSpinlock, InterruptsOff>::new(QSpinlock::new(), 2);
    let mut outer = first.lock();
    assert!(!INTERRUPTS_ON.get());
    let inner = second.lock();
    *outer += *inner;
    assert!(first.try_lock().is_none(), "held");
    assert!(
        !INTERRUPTS_ON.get(),
        "a try that failed puts back what it found"
    );
    drop(inner);
    assert!(
        !INTERRUPTS_ON.get(),
        "off before the inner lock, and after it"
    );
    assert_eq!(first.is_locked(), Some(true));
    drop(outer);
    assert!(INTERRUPTS_ON.get());
    assert!(first.try_lock().is_some());
    assert!(INTERRUPTS_ON.get());
    assert_eq!(first.into_inner(), 3);

    // It is released on a panic, too.
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        let _guard = second.lock();
        std::panic::resume_unwind(Box::new(()));
    }));
    assert!(panicked.is_err() && INTERRUPTS_ON.get());
    assert_eq!(second.is_locked(), Some(false));
}

/// Returns the message of what panics in `f`.
fn panics(f: impl FnOnce()) -> String {
    let panic = catch_unwind(AssertUnwindSafe(f)).expect_err("a panic");
    panic
        .downcast_ref::<String>()
        .expect("a message with numbers")
        .clone()
}

type Ranked<const RANK: u32> = lock_api::Mutex<Checked<Ticket, N, RANK>, ()>;

#[test]
fn checks_name_the_rule_that_is_broken() {
    let inner = Ranked::<5>::new(());
    let outer = Ranked::<3>::new(());
    let beside = lock_api::Mutex::<Checked<QSpinlock, N>, ()>::new(());

    let held = inner.lock();
    assert!(panics(|| drop(inner.lock())).ends_with("acquires a lock that it holds"));
    assert!(
        panics(|| drop(outer.lock())).ends_with("a lock of rank 3 while it holds one of rank 5")
    );
    drop(outer.try_lock().expect("a try cannot deadlock"));
    drop(beside.lock());
    thread::scope(|scope| {
        // Another CPU may, but not release what this one holds.
        scope.spawn(|| drop(outer.lock()));
        let message = scope.spawn(|| {
            // SAFETY: none; it panics before it releases.
            panics(|| unsafe { inner.force_unlock() })
        });
        let message = message.join().unwrap();
        assert!(message.contains("releases a lock that CPU"), "{message}");
    });
    drop(held);
    // SAFETY: none, as above.
    let message = panics(|| unsafe { inner.force_unlock() });
    assert!(message.ends_with("releases a lock that nobody holds"));

    let first = outer.lock();
    drop(inner.lock());
    drop(first);
    assert!(!inner.is_locked() && !outer.is_locked());
}

struct IsLocked;

impl Visitor<N> for IsLocked {
    type Output = bool;

    fn visit<L: RawLock<N>>(self) -> bool {
        let lock = Box::new(L::default());
        let ctx = Box::<L::Ctx>::default();
        let name = L::INFO.name;
        let Some(locked) = lock.is_locked() else {
            return false;
        };
        assert!(!locked, "{name}: new");
        for _ in 0..3 {
            // SAFETY: released before it goes, with its context.
            unsafe {
                lock.lock(&ctx);
                assert_eq!(lock.is_locked(), Some(true), "{name}: held");
                lock.unlock(&ctx);
                assert_eq!(lock.is_locked(), Some(false), "{name}: free");
            }
        }
        true
    }
}

#[test]
fn locks_say_whether_they_are_held() {
    for entry in catalogue::ALL {
        let name = entry.info.name;
        let says = catalogue::visit(name, IsLocked).unwrap();
        let may_not = name == "clh" || name.starts_with("mplock");
        assert!(says || may_not, "{name} cannot say whether it is held");
    }
}

#[test]
fn fair_locks_release_fairly() {
    fn fair<L: RawMutexFair>() {
        let lock = lock_api::Mutex::<L, u32>::new(0);
        let mut guard = lock.lock();
        *guard += 1;
        lock_api::MutexGuard::bump(&mut guard);
        assert_eq!(*guard, 1);
        lock_api::MutexGuard::unlock_fair(guard);
        assert!(!lock.is_locked());
    }
    fair::<Ticket>();
    fair::<TicketProp>();
    fair::<QSpinlock>();
    fair::<McsK42>();
    fair::<Twa>();
}

#[test]
fn locks_without_a_queue_can_be_given_up() {
    fn timed<L>()
    where
        L: RawMutex + RawMutexTimed<Duration = Duration, Instant = Instant> + Send + Sync,
    {
        let lock = lock_api::Mutex::<L, u32>::new(0);
        let guard = lock.lock();
        thread::scope(|scope| {
            let gave_up = scope.spawn(|| lock.try_lock_for(Duration::from_millis(1)).is_none());
            assert!(gave_up.join().unwrap(), "held all the time");
            let waits = scope.spawn(|| lock.try_lock_for(Duration::from_secs(600)).is_some());
            thread::sleep(Duration::from_millis(2));
            drop(guard);
            assert!(waits.join().unwrap(), "given back in time");
        });
        assert!(
            lock.try_lock_until(Instant::after::<N>(Duration::ZERO))
                .is_some(),
            "one try, at least"
        );
    }
    timed::<Tas>();
    timed::<Ttas>();
    timed::<TtasWord>();
    timed::<VirtSpin>();
    timed::<VirtSpinBackoff>();
}

#[test]
fn a_writer_becomes_a_reader() {
    let lock = lock_api::RwLock::<RwQueued, u32>::new(0);
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for _ in 0..if cfg!(miri) { 20 } else { 2_000 } {
                    let mut writer = lock.write();
                    *writer += 1;
                    let written = *writer;
                    let reader = lock_api::RwLockWriteGuard::downgrade(writer);
                    assert_eq!(*reader, written, "a writer came in between");
                }
            });
        }
    });
    let reader = lock_api::RwLockWriteGuard::downgrade(lock.write());
    assert!(lock.try_read().is_some(), "beside other readers");
    assert!(lock.try_write().is_none());
    drop(reader);
    assert!(lock.try_write().is_some());
}

#[test]
fn queue_locks_have_guards() {
    fn guards<L: RawLock<N> + LeakableGuard>(new: fn() -> L) {
        let name = L::INFO.name;
        let total = QueueMutex::<L, u64>::new(new(), 0);
        let other = QueueMutex::<L, u64>::new(new(), 0);
        let turns = if cfg!(miri) { 20 } else { 1_000 };
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    for _ in 0..turns {
                        // Two nodes at once, given back out of order.
                        let mut first = total.lock();
                        let mut second = other.lock();
                        *first += 1;
                        *second += *first;
                        drop(first);
                        drop(second);
                    }
                });
            }
        });
        assert_eq!(*total.lock(), 2 * turns, "{name}");
        if L::INFO.try_lock {
            let guard = total.try_lock().expect("free");
            assert!(total.try_lock().is_none(), "{name}: held");
            drop(guard);
            // The lock moves with a guard leaked, and stays held.
            mem::forget(total.lock());
            let moved = Box::new(total);
            assert!(moved.try_lock().is_none(), "{name}: leaked");
        }
    }
    guards::<Mcs>(Mcs::new);
    guards::<Cna>(Cna::new);
    guards::<Hemlock>(Hemlock::new);
    guards::<Malthusian>(Malthusian::new);
    guards::<Reciprocating>(Reciprocating::new);
    guards::<CohortBoMcs>(CohortBoMcs::new);
}
