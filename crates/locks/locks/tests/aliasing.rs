//! Every lock behind every mutex type and guard, with two threads that add to a
//! number: little to a processor, and what Miri needs to find memory that two
//! claim for themselves, or a context that is read before it is there.

use crate::common::each_shared;
use locklab_locks::catalogue::{self, SharedVisitor, Visitor};
use locklab_locks::host::*;
use locklab_locks::kernel::*;
use locklab_locks::mutex::*;
use locklab_locks::queue::*;
use locklab_locks::spin::*;
use locklab_locks::*;
use std::thread;

type N = NativePlatform;

/// Additions of each thread.
const TURNS: u32 = 3;

/// Calls `add` in two threads, and then asks what it came to.
fn two_threads(name: &str, add: impl Fn() + Sync, read: impl FnOnce() -> u32) {
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| (0..TURNS).for_each(|_| add()));
        }
    });
    assert_eq!(read(), 2 * TURNS, "{name}");
}

struct Raw;

impl Visitor<N> for Raw {
    type Output = ();

    fn visit<L: RawLock<N>>(self) {
        struct Shared<L>(L, std::cell::UnsafeCell<u32>);
        // SAFETY: the lock protects the number.
        unsafe impl<L: Sync> Sync for Shared<L> {}
        let shared = Shared(L::default(), 0.into());
        let shared = &shared;
        // Of the threads, and made before them: where nodes circulate, all go
        // together.
        let contexts = [(); 2].map(|()| Box::<L::Ctx>::default());
        thread::scope(|scope| {
            for context in &contexts {
                let context = SendPtr(std::ptr::from_ref::<L::Ctx>(context));
                scope.spawn(move || {
                    let context = context;
                    // SAFETY: this thread's own, which stays until both end.
                    let context = unsafe { &*context.0 };
                    for turn in 0..TURNS {
                        // SAFETY: released below, with its context.
                        unsafe {
                            if turn % 2 == 1 || !shared.0.try_lock(context) {
                                shared.0.lock(context);
                            }
                            *shared.1.get() += 1;
                            shared.0.unlock(context);
                        }
                    }
                });
            }
        });
        // SAFETY: the threads have ended.
        assert_eq!(unsafe { *shared.1.get() }, 2 * TURNS, "{}", L::INFO.name);
    }
}

struct SendPtr<T>(*const T);
// SAFETY: of the test, which gives each context to one thread.
unsafe impl<T> Send for SendPtr<T> {}

#[test]
fn every_lock_of_the_catalogue() {
    for entry in catalogue::ALL {
        catalogue::visit(entry.info.name, Raw).expect("a lock of the catalogue");
    }
}

#[test]
fn guards_of_queue_locks() {
    fn guards<L: RawLock<N> + LeakableGuard>() {
        let mutex = QueueMutex::<L, u32>::new(L::default(), 0);
        two_threads(L::INFO.name, || *mutex.lock() += 1, || *mutex.lock());
        if L::INFO.try_lock {
            let tried = QueueMutex::<L, u32>::new(L::default(), 0);
            let add = || match tried.try_lock() {
                Some(mut guard) => *guard += 1,
                None => *tried.lock() += 1,
            };
            two_threads(L::INFO.name, add, || *tried.lock());
        }
    }
    guards::<Anderson<N, 2>>();
    guards::<Mcs>();
    guards::<Cna>();
    guards::<Hemlock>();
    guards::<Malthusian>();
    guards::<Reciprocating>();
    guards::<CohortBoMcs>();
    guards::<CohortTktTkt>();
}

#[test]
fn closures_with_a_node_on_the_stack() {
    fn closures<L: RawLock<N> + StackContext>() {
        let mutex = NodeMutex::<L, u32>::new(L::default(), 0);
        let add = || {
            if mutex.try_with(|value| *value += 1).is_none() {
                mutex.with(|value| *value += 1);
            }
        };
        two_threads(L::INFO.name, add, || mutex.with(|value| *value));
    }
    closures::<Anderson<N, 2>>();
    closures::<Mcs>();
    closures::<Cna>();
    closures::<Hemlock>();
    closures::<Malthusian>();
    closures::<Reciprocating>();
    closures::<Hmcs<N, 8>>();
    closures::<CohortBoMcs>();
    closures::<CohortTktTkt>();
}

#[test]
fn guards_of_locks_without_a_context() {
    fn guards<L>()
    where
        L: lock_api::RawMutex + Send + Sync,
    {
        let mutex = lock_api::Mutex::<L, u32>::new(0);
        let add = || match mutex.try_lock() {
            Some(mut guard) => *guard += 1,
            None => *mutex.lock() += 1,
        };
        two_threads(std::any::type_name::<L>(), add, || *mutex.lock());
    }
    guards::<Tas>();
    guards::<Ttas>();
    guards::<TtasWord>();
    guards::<VirtSpin>();
    guards::<VirtSpinDelay>();
    guards::<VirtSpinBackoff>();
    guards::<Ticket>();
    guards::<TicketProp>();
    guards::<Twa>();
    guards::<QSpinlock>();
    guards::<QSpinlockVirt>();
    guards::<QSpinlockPv>();
    guards::<QSpinlockCna>();
    guards::<RqSpinlock>();
    guards::<McsK42>();
    guards::<Fissile>();
    guards::<Futex>();
    guards::<FutexAdaptive>();
    guards::<Outline<Ticket>>();
    guards::<Checked<Ticket, N>>();
}

#[derive(Clone, Copy)]
struct ReadersAndWriters;

impl SharedVisitor<N> for ReadersAndWriters {
    type Output = ();

    fn visit<L: RawLock<N, Ctx = ()> + lock_api::RawRwLockDowngrade>(self) {
        let lock = lock_api::RwLock::<L, u32>::new(0);
        let add = || {
            let before = *lock.read();
            let mut writer = lock.write();
            *writer += 1;
            let reader = lock_api::RwLockWriteGuard::downgrade(writer);
            assert!(*reader > before);
        };
        two_threads(L::INFO.name, add, || *lock.read());
    }
}

#[test]
fn guards_of_readers_and_writers() {
    each_shared(ReadersAndWriters);
}

#[test]
fn guards_that_remember_a_state() {
    struct Nothing;

    // SAFETY: nothing is switched off, and nothing needs to be here.
    unsafe impl Mask for Nothing {
        type Saved = ();
        fn begin() {}
        unsafe fn end((): ()) {}
    }
    let masked = Masked::<u32, Ticket, Nothing>::new(Ticket::new(), 0);
    two_threads("masked", || *masked.lock() += 1, || *masked.lock());
}
