//! The locks of lockhammer (Arm's benchmark of locks), by the names of its programs: what
//! its published figures are of, so that a reference file can name them.
//!
//! Two of them are locks of the catalogue. The others are written from what their programs
//! do, in that order, and from no figure. Three change a word and exclude nobody: they are
//! counters, see [`counting`].
//!
//! They are here to be simulated. Nothing else must use them.

use crate::made::{Make, simulated};
use locklab_locks::platform::{Atomic, Ordering, Patience, Platform, Poll};
use locklab_locks::{Info, QSpinlock, RawLock, Ticket};
use locklab_sim::by_address::pause_until_change;
use locklab_sim::{Counting, Sim};

type Word = <Sim as Platform>::U32;
type Wide = <Sim as Platform>::Usize;
type Pointer<T> = <Sim as Platform>::Ptr<T>;

const FREE: usize = 0;
const HELD: usize = 1;

/// Its locks that exclude.
pub(crate) const LOCKS: [(&str, Make); 6] = [
    ("lockhammer:swap_mutex", simulated::<InLoop<Swap>>),
    // One word of two halves, and a pause between reads: as the catalogue's.
    (
        "lockhammer:ticket_spinlock",
        simulated::<InLoop<Ticket<Sim>>>,
    ),
    // The queued spinlock with a pending bit: as the catalogue's.
    (
        "lockhammer:queued_spinlock",
        simulated::<InLoop<QSpinlock<Sim>>>,
    ),
    ("lockhammer:osq_lock", simulated::<InLoop<BackQueue>>),
    (
        "lockhammer:cas_event_mutex",
        simulated::<InLoop<EventMutex<200>>>,
    ),
    (
        "lockhammer:event_mutex",
        simulated::<InLoop<EventMutex<600>>>,
    ),
];

/// Its programs that exclude nobody: what a turn does to their word.
const COUNTERS: [(&str, Counting); 3] = [
    ("lockhammer:incdec_refcount", Counting::AddAndSubtract),
    ("lockhammer:cas_rw_lock", Counting::CompareAndSwapThenAdd),
    ("lockhammer:cas_lockref", Counting::CompareAndSwapTwice),
];

/// What a turn does to the word, for the programs that exclude nobody.
pub(crate) fn counting(name: &str) -> Option<Counting> {
    let found = COUNTERS.iter().find(|(known, _)| *known == name);
    found.map(|(_, counting)| *counting)
}

const INFO: Info = Info {
    name: "lock of lockhammer",
    try_lock: false,
    ..Info::BASE
};

/// A lock in the program's loop, which calls a function after the acquisition and after
/// the release, to compute for the time asked for: also if that is none.
#[derive(Default)]
struct InLoop<L>(L);

// SAFETY: the lock's.
unsafe impl<L: RawLock<Sim>> RawLock<Sim> for InLoop<L> {
    type Ctx = L::Ctx;
    const INFO: Info = INFO;

    unsafe fn lock(&self, context: &L::Ctx) {
        // SAFETY: the caller's promise is the same.
        unsafe { self.0.lock(context) }
        Sim::function_call();
    }

    unsafe fn unlock(&self, context: &L::Ctx) {
        // SAFETY: the caller's promise is the same.
        unsafe { self.0.unlock(context) }
        Sim::function_call();
    }
}

/// Swaps until one finds it free, without a pause or a read.
#[derive(Default)]
struct Swap(Wide);

// SAFETY: of the swaps between two releases one finds it free.
unsafe impl RawLock<Sim> for Swap {
    type Ctx = ();
    const INFO: Info = INFO;

    unsafe fn lock(&self, _: &()) {
        while self.0.swap(HELD, Ordering::AcqRel) != FREE {}
    }

    unsafe fn unlock(&self, _: &()) {
        self.0.store(FREE, Ordering::Release);
    }
}

/// A thread's node in the queue. (The program's are aligned to two lines.)
#[repr(align(64))]
struct Node {
    next: Pointer<Node>,
    previous: Pointer<Node>,
    granted: Word,
}

impl Default for Node {
    fn default() -> Self {
        Self {
            next: Atomic::new(std::ptr::null_mut()),
            previous: Atomic::new(std::ptr::null_mut()),
            granted: Atomic::new(0),
        }
    }
}

/// A queue with pointers in both directions; nobody leaves it before its turn. The holder
/// first tries to empty it, and looks for a successor if that fails.
///
/// Waiters count their reads, and compare the count each time with the most that they may
/// make. The program has that number in a variable next to the word of the queue, so that
/// each change of the word takes the line from all waiters.
#[repr(C, align(64))]
struct BackQueue {
    last: Pointer<Node>,
    most_reads: Wide,
}

impl Default for BackQueue {
    fn default() -> Self {
        Self {
            last: Atomic::new(std::ptr::null_mut()),
            most_reads: Atomic::new(usize::MAX),
        }
    }
}

impl BackQueue {
    fn is_emptied_by(&self, node: &Node) -> bool {
        let own = std::ptr::from_ref(node).cast_mut();
        let none = std::ptr::null_mut();
        let emptied = self
            .last
            .compare_exchange(own, none, Ordering::AcqRel, Ordering::Relaxed);
        emptied.is_ok()
    }

    fn wait(&self, node: &Node) {
        let most = std::ptr::from_ref(&self.most_reads).expose_provenance();
        let granted = std::ptr::from_ref(&node.granted).expose_provenance();
        while node.granted.load(Ordering::Acquire) == 0 {
            let seen = [(most, 8, usize::MAX as u64), (granted, 4, 0)];
            self.most_reads.load(Ordering::Relaxed);
            // SAFETY: both are words of the lock and of its node, which are simulated.
            unsafe { pause_until_change(&seen, 2, 1, 0) };
        }
    }
}

// SAFETY: who finds the queue empty holds it; every other waits for the one before it.
unsafe impl RawLock<Sim> for BackQueue {
    type Ctx = Node;
    const INFO: Info = INFO;

    unsafe fn lock(&self, node: &Node) {
        node.granted.store(0, Ordering::Relaxed);
        node.next.store(std::ptr::null_mut(), Ordering::Relaxed);
        let own = std::ptr::from_ref(node).cast_mut();
        let before = self.last.swap(own, Ordering::AcqRel);
        if before.is_null() {
            return;
        }
        node.previous.store(before, Ordering::Relaxed);
        // SAFETY: its thread waits for its turn or for this link before it leaves.
        unsafe { &*before }.next.store(own, Ordering::Release);
        self.wait(node);
    }

    unsafe fn unlock(&self, node: &Node) {
        loop {
            if self.is_emptied_by(node) {
                return;
            }
            let next = node.next.swap(std::ptr::null_mut(), Ordering::AcqRel);
            if !next.is_null() {
                // SAFETY: its thread waits for this grant.
                unsafe { &*next }.granted.store(1, Ordering::Release);
                return;
            }
            Sim::relax();
        }
    }
}

/// MySQL's mutex with events, as lockhammer has it: swaps once; then, up to [`ROUNDS`]
/// times, reads, swaps if it looks free, and pauses up to 50 times `LONGEST` times by
/// chance. After that it waits until a counter changes, which every release increments.
#[derive(Default)]
#[repr(C)]
struct EventMutex<const LONGEST: usize> {
    word: Alone,
    generation: Alone,
}

/// A word that has a line for itself.
#[derive(Default)]
#[repr(align(64))]
struct Alone(Wide);

const ROUNDS: u32 = 30;

impl<const LONGEST: usize> EventMutex<LONGEST> {
    fn takes(&self) -> bool {
        self.word.0.swap(HELD, Ordering::AcqRel) == FREE
    }
}

// SAFETY: of the swaps between two releases one finds it free.
unsafe impl<const LONGEST: usize> RawLock<Sim> for EventMutex<LONGEST> {
    type Ctx = ();
    const INFO: Info = INFO;

    unsafe fn lock(&self, _: &()) {
        /// Pauses of one unit of delay.
        const UNIT: usize = 50;
        /// Reads of the counter until the word is read again: two releases that
        /// increment it at once may leave it as it was.
        const READS: u32 = 10_000;
        if self.takes() {
            return;
        }
        loop {
            for _ in 0..ROUNDS {
                if self.word.0.load(Ordering::Acquire) == FREE && self.takes() {
                    return;
                }
                Sim::relax_for((UNIT * Sim::random(LONGEST)) as u32);
            }
            let seen = self.generation.0.load(Ordering::Acquire);
            if self.word.0.load(Ordering::Acquire) == HELD {
                let reads = Patience::Reads(READS);
                self.generation.0.spin(Ordering::Acquire, reads, |now| {
                    if now == seen {
                        Poll::Relax(1)
                    } else {
                        Poll::Done
                    }
                });
            }
        }
    }

    unsafe fn unlock(&self, _: &()) {
        self.word.0.swap(FREE, Ordering::AcqRel);
        let generation = self.generation.0.load(Ordering::Relaxed);
        self.generation
            .0
            .store(generation.wrapping_add(1), Ordering::Release);
    }
}
