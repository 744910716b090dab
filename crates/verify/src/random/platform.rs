//! Shuttle's atomics behind [`Platform`]: every operation is a point where
//! another task may run.

use crate::journal::Journal;
use locklab_locks::platform::{Atomic, AtomicInt, LockWord, Ordering, Patience, Poll};
use locklab_locks::{Platform, QueueNodes, VisibleReader};
use shuttle::rand::Rng;
use shuttle::sync::atomic::{AtomicPtr, AtomicU8, AtomicU32, AtomicUsize};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

/// Locks under random schedules. Works only inside [`super::draw`].
pub struct Random;

/// One of shuttle's atomics.
#[repr(transparent)]
pub struct Word<A>(A);

/// Reads of a spin with limited patience, at most: so that giving up is
/// likely while another task is on its way.
const READS: u32 = 3;

/// What one schedule knows beside shuttle's own state.
struct Record {
    nodes: RefCell<Box<[QueueNodes<Random>]>>,
    /// Not for all tasks.
    readers: RefCell<Box<[VisibleReader<Random>]>>,
    /// Who sleeps on the word at which address, in order.
    sleeping: RefCell<VecDeque<(usize, shuttle::thread::Thread)>>,
    time: Cell<u64>,
}

thread_local! {
    static RECORD: Record = Record {
        nodes: RefCell::default(),
        readers: RefCell::default(),
        sleeping: RefCell::default(),
        time: Cell::new(0),
    };
}

/// Begins a schedule.
pub(super) fn begin() {
    Journal::current().beat();
    RECORD.with(|r| {
        *r.nodes.borrow_mut() = (0..=super::THREADS).map(|_| QueueNodes::NEW).collect();
        *r.readers.borrow_mut() = (0..super::THREADS).map(|_| VisibleReader::NONE).collect();
        r.sleeping.borrow_mut().clear();
        r.time.set(0);
    });
}

/// The number of this task; the first is 0.
pub(super) fn task() -> usize {
    usize::from(shuttle::current::me())
}

fn toss() -> bool {
    shuttle::rand::thread_rng().gen_ratio(1, 4)
}

macro_rules! atomic {
    ($atomic:ty, $value:ty, [$($generic:tt)*], $zero:expr) => {
        // SAFETY: shuttle runs one thread at a time, and the words are its own.
        unsafe impl<$($generic)*> Atomic<$value> for Word<$atomic> {
            #[allow(clippy::declare_interior_mutable_const)]
            const ZERO: Self = Self(<$atomic>::new($zero));

            fn new(value: $value) -> Self {
                Self(<$atomic>::new(value))
            }

            fn load(&self, order: Ordering) -> $value {
                self.0.load(order)
            }

            fn store(&self, value: $value, order: Ordering) {
                self.0.store(value, order);
            }

            fn swap(&self, value: $value, order: Ordering) -> $value {
                self.0.swap(value, order)
            }

            fn compare_exchange(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                self.0.compare_exchange(current, new, success, failure)
            }

            fn spin(
                &self,
                order: Ordering,
                patience: Patience,
                mut poll: impl FnMut($value) -> Poll,
            ) -> $value {
                let mut reads = 0;
                loop {
                    Journal::current().beat();
                    let value = self.0.load(order);
                    reads += 1;
                    let over = match patience {
                        Patience::Forever => false,
                        Patience::Reads(most) => reads >= most.min(READS),
                    };
                    if poll(value) == Poll::Done || over {
                        return value;
                    }
                    // Behind all others: a schedule by priorities would let
                    // it read for ever.
                    shuttle::thread::yield_now();
                }
            }
        }
    };
}

atomic!(AtomicU8, u8, [], 0);
atomic!(AtomicU32, u32, [], 0);
atomic!(AtomicUsize, usize, [], 0);
atomic!(AtomicPtr<T>, *mut T, [T: 'static], std::ptr::null_mut());

macro_rules! atomic_int {
    ($atomic:ty, $value:ty) => {
        // SAFETY: as `Atomic`.
        unsafe impl AtomicInt<$value> for Word<$atomic> {
            fn fetch_add(&self, value: $value, order: Ordering) -> $value {
                self.0.fetch_add(value, order)
            }

            fn fetch_sub(&self, value: $value, order: Ordering) -> $value {
                self.0.fetch_sub(value, order)
            }

            fn fetch_and(&self, value: $value, order: Ordering) -> $value {
                self.0.fetch_and(value, order)
            }

            fn fetch_or(&self, value: $value, order: Ordering) -> $value {
                self.0.fetch_or(value, order)
            }
        }
    };
}

atomic_int!(AtomicU8, u8);
atomic_int!(AtomicU32, u32);
atomic_int!(AtomicUsize, usize);

// The whole-word defaults, as on every machine but x86-64.
// SAFETY: the defaults, on an atomic word.
unsafe impl LockWord for Word<AtomicU32> {}

// SAFETY: each thread of a schedule has its number and its queue nodes.
unsafe impl Platform for Random {
    type U8 = Word<AtomicU8>;
    type U32 = Word<AtomicU32>;
    type Usize = Word<AtomicUsize>;
    type Ptr<T: 'static> = Word<AtomicPtr<T>>;

    /// Nothing: all is sequentially consistent here.
    fn fence(_: Ordering) {}

    fn relax() {
        Journal::current().beat();
        shuttle::thread::yield_now();
    }

    fn relax_for(_: u32) {
        shuttle::thread::yield_now();
    }

    fn cpu() -> usize {
        task()
    }

    /// Two nodes, so that a lock that prefers its own has a choice.
    fn node() -> usize {
        task() % 2
    }

    /// Stands still, or jumps past every deadline, for all.
    fn now() -> u64 {
        shuttle::thread::yield_now();
        RECORD.with(|r| {
            if toss() {
                r.time.set(r.time.get() + 1);
            }
            r.time.get()
        })
    }

    /// The check and the falling asleep are one step; may end for no reason.
    fn wait(word: &Self::U32, expected: u32) {
        if word.load(Ordering::Relaxed) != expected || toss() {
            return;
        }
        let address = std::ptr::from_ref(word).addr();
        let me = shuttle::thread::current();
        let id = me.id();
        RECORD.with(|r| r.sleeping.borrow_mut().push_back((address, me)));
        let sleeps = || {
            RECORD.with(|r| {
                let sleeping = r.sleeping.borrow();
                sleeping.iter().any(|(_, thread)| thread.id() == id)
            })
        };
        while sleeps() {
            shuttle::thread::park();
        }
    }

    fn wake(word: &Self::U32) {
        shuttle::thread::yield_now();
        let address = std::ptr::from_ref(word).addr();
        let woken = RECORD.with(|r| {
            let mut sleeping = r.sleeping.borrow_mut();
            let first = sleeping.iter().position(|&(word, _)| word == address)?;
            sleeping.remove(first)
        });
        if let Some((_, thread)) = woken {
            thread.unpark();
        }
    }

    fn preferences(_: u32) -> u32 {
        2
    }

    fn virtualized() -> bool {
        toss()
    }

    fn queue_nodes(cpu: usize) -> &'static QueueNodes<Self> {
        // SAFETY: they stay until the next schedule begins, when no task of
        // this one exists.
        RECORD.with(|r| unsafe { &*std::ptr::from_ref(&r.nodes.borrow()[cpu]) })
    }

    fn visible_readers() -> &'static [VisibleReader<Self>] {
        // SAFETY: as above.
        RECORD.with(|r| unsafe { &*std::ptr::from_ref(&**r.readers.borrow()) })
    }
}
