//! Shuttle's atomics behind [`Platform`]: every operation is a point where
//! another task may run.

use crate::journal::Journal;
use crate::pointer::Pointer;
use locklab_locks::platform::{Atomic, AtomicInt, LockWord, Ordering, Patience, Poll};
use locklab_locks::{HeldLocks, NESTING, Platform, QueueNodes, Sleepers, VisibleReader};
use shuttle::rand::Rng;
use shuttle::sync::atomic::{AtomicPtr, AtomicU8, AtomicU32, AtomicUsize};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

/// Threads of a schedule.
pub const THREADS: usize = 8;

/// Locks under random schedules. Works only inside [`super::draw`].
pub struct Random;

/// One of shuttle's atomics.
#[repr(transparent)]
pub struct Word<A>(A);

/// Interrupts inside interrupts: one more than a CPU has nodes for.
pub(super) const DEEPEST: usize = NESTING;

/// Reads of a spin with limited patience, at most: so that giving up is
/// likely while another task is on its way.
const READS: u32 = 3;

/// Is what a task does when it is interrupted.
type Interrupt = std::rc::Rc<dyn Fn()>;

/// Holds what one schedule knows beside shuttle's own state.
struct Record {
    /// The number that each task has as a CPU; those behind are free.
    numbers: RefCell<Vec<usize>>,
    /// Tasks without a number that a lock can know.
    unnumbered: RefCell<Vec<bool>>,
    /// The NUMA node of each task.
    numa_nodes: RefCell<Vec<usize>>,
    /// Holds what each task may do while it waits, and how deep it is in that.
    interrupt: RefCell<Option<Interrupt>>,
    depths: RefCell<Vec<usize>>,
    /// Called when a task waits without limit.
    waits: RefCell<Option<Interrupt>>,
    nodes: RefCell<Vec<QueueNodes<Random>>>,
    /// The entries of visible readers, of which some tasks have none.
    readers: RefCell<Vec<VisibleReader<Random>>>,
    /// The tables of held locks, of which some tasks have none either.
    held: RefCell<Vec<HeldLocks<Random>>>,
    /// One place for all locks.
    sleepers: RefCell<Vec<Sleepers<Random>>>,
    /// The threads that sleep, in order, each with the address of its word.
    sleeping: RefCell<VecDeque<(usize, shuttle::thread::Thread)>>,
    time: Cell<u64>,
}

thread_local! {
    static RECORD: Record = const { Record {
        numbers: RefCell::new(Vec::new()),
        unnumbered: RefCell::new(Vec::new()),
        numa_nodes: RefCell::new(Vec::new()),
        interrupt: RefCell::new(None),
        depths: RefCell::new(Vec::new()),
        waits: RefCell::new(None),
        nodes: RefCell::new(Vec::new()),
        readers: RefCell::new(Vec::new()),
        held: RefCell::new(Vec::new()),
        sleepers: RefCell::new(Vec::new()),
        sleeping: RefCell::new(VecDeque::new()),
        time: Cell::new(0),
    } };
}

/// CPUs: one for each task, and some to move to.
pub(super) const CPUS: usize = THREADS + 3;

/// Begins a schedule.
pub(super) fn begin() {
    Journal::current().beat();
    RECORD.with(|r| {
        // One in eight has no number; of one in eight some levels are in use.
        let levels = || {
            if chance(8) {
                draw(NESTING + 1) as u32
            } else {
                0
            }
        };
        *r.nodes.borrow_mut() = (0..CPUS).map(|_| QueueNodes::used(levels())).collect();
        *r.readers.borrow_mut() = (0..THREADS).map(|_| VisibleReader::NONE).collect();
        *r.held.borrow_mut() = (0..THREADS).map(|_| HeldLocks::NONE).collect();
        *r.sleepers.borrow_mut() = vec![Sleepers::NONE];
        *r.numbers.borrow_mut() = (0..CPUS).collect();
        *r.unnumbered.borrow_mut() = (0..CPUS).map(|_| chance(8)).collect();
        *r.numa_nodes.borrow_mut() = (0..CPUS).collect();
        *r.depths.borrow_mut() = vec![0; CPUS];
        r.interrupt.take();
        r.waits.take();
        r.sleeping.borrow_mut().clear();
        r.time.set(0);
    });
}

/// Interrupts tasks that wait from here on, now and then; they do this,
/// and tell by `waits` that they wait without limit.
pub(super) fn interrupt_with(handler: Option<impl Fn() + 'static>, waits: impl Fn() + 'static) {
    RECORD.with(|r| {
        *r.interrupt.borrow_mut() = handler.map(|handler| std::rc::Rc::new(handler) as Interrupt);
        *r.waits.borrow_mut() = Some(std::rc::Rc::new(waits));
    });
}

/// Returns how many interrupts deep this task is.
pub(super) fn depth() -> usize {
    RECORD.with(|r| r.depths.borrow()[task()])
}

/// Moves this task, which uses no lock, to another CPU now and then.
pub(super) fn migrate() {
    if depth() == 0 && chance(4) {
        let free = THREADS + 1 + draw(CPUS - THREADS - 1);
        RECORD.with(|r| r.numbers.borrow_mut().swap(task(), free));
    }
}

/// Ends the schedule, and drops its tables.
pub(super) fn end() {
    RECORD.with(|r| {
        r.interrupt.take();
        r.waits.take();
    });
}

/// Returns what the clock last said.
pub(super) fn time() -> u64 {
    RECORD.with(|r| r.time.get())
}

/// Lets a waiting task be interrupted.
fn waits(without_limit: bool) {
    if without_limit {
        let waits = RECORD.with(|r| r.waits.borrow().clone());
        if let Some(waits) = waits {
            waits();
        }
    }
    let handler = RECORD.with(|r| r.interrupt.borrow().clone());
    if let Some(handler) = handler
        && depth() < DEEPEST
        && chance(16)
    {
        RECORD.with(|r| r.depths.borrow_mut()[task()] += 1);
        handler();
        RECORD.with(|r| r.depths.borrow_mut()[task()] -= 1);
    }
}

fn chance(of: u32) -> bool {
    shuttle::rand::thread_rng().gen_ratio(1, of)
}

fn draw(below: usize) -> usize {
    shuttle::rand::thread_rng().gen_range(0..below)
}

/// Returns the number of this task; the first is 0.
pub(super) fn task() -> usize {
    usize::from(shuttle::current::me())
}

fn toss() -> bool {
    shuttle::rand::thread_rng().gen_ratio(1, 4)
}

macro_rules! atomic {
    ($atomic:ty, $value:ty, $zero:expr) => {
        impl Word<$atomic> {
            /// Waits as [`Atomic::spin`] does: one function for all waits.
            fn spin_by(
                &self,
                order: Ordering,
                patience: Patience,
                poll: &mut dyn FnMut($value) -> Poll,
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
                    waits(patience == Patience::Forever);
                    // Behind all others: a schedule by priorities would let
                    // it read for ever.
                    shuttle::thread::yield_now();
                }
            }
        }

        // SAFETY: shuttle runs one thread at a time, and the words are its own.
        unsafe impl Atomic<$value> for Word<$atomic> {
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
                self.spin_by(order, patience, &mut poll)
            }
        }
    };
}

atomic!(AtomicU8, u8, 0);
atomic!(AtomicU32, u32, 0);
atomic!(AtomicUsize, usize, 0);
atomic!(AtomicPtr<()>, *mut (), std::ptr::null_mut());

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
    type Ptr<T: 'static> = Pointer<T, Word<AtomicPtr<()>>>;

    /// Does nothing: all is sequentially consistent here.
    fn fence(_: Ordering) {}

    fn relax() {
        Journal::current().beat();
        waits(false);
        shuttle::thread::yield_now();
    }

    fn relax_for(_: u32) {
        shuttle::thread::yield_now();
    }

    fn cpu() -> usize {
        RECORD.with(|r| r.numbers.borrow()[task()])
    }

    fn try_cpu() -> Option<usize> {
        let unnumbered = RECORD.with(|r| r.unnumbered.borrow()[task()]);
        (!unnumbered).then(Self::cpu)
    }

    /// Returns one of two nodes, so that a lock that prefers its own has a choice. A task
    /// moves at any time.
    fn node() -> usize {
        RECORD.with(|r| {
            let node = &mut r.numa_nodes.borrow_mut()[task()];
            *node += usize::from(chance(8));
            *node % 2
        })
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

    /// Waits: the check and the falling asleep are one step, and the wait may end for
    /// no reason.
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
        Self::wake_if_any(word);
    }

    fn wake_if_any(word: &Self::U32) -> bool {
        shuttle::thread::yield_now();
        let address = std::ptr::from_ref(word).addr();
        let woken = RECORD.with(|r| {
            let mut sleeping = r.sleeping.borrow_mut();
            let first = sleeping.iter().position(|&(word, _)| word == address)?;
            sleeping.remove(first)
        });
        let Some((_, thread)) = woken else {
            return false;
        };
        thread.unpark();
        true
    }

    fn wake_all(word: &Self::U32) {
        shuttle::thread::yield_now();
        let address = std::ptr::from_ref(word).addr();
        let woken = RECORD.with(|r| {
            let mut sleeping = r.sleeping.borrow_mut();
            let all = std::mem::take(&mut *sleeping);
            let (woken, rest): (VecDeque<_>, VecDeque<_>) =
                all.into_iter().partition(|&(word, _)| word == address);
            *sleeping = rest;
            woken
        });
        for (_, thread) in woken {
            thread.unpark();
        }
    }

    fn sleepers(_: usize) -> Option<&'static Sleepers<Self>> {
        // SAFETY: as the queue nodes.
        RECORD.with(|r| unsafe { Some(&*std::ptr::from_ref(r.sleepers.borrow().first()?)) })
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

    fn held_locks(cpu: usize) -> Option<&'static HeldLocks<Self>> {
        // SAFETY: as above.
        RECORD.with(|r| unsafe { Some(&*std::ptr::from_ref(r.held.borrow().get(cpu)?)) })
    }
}
