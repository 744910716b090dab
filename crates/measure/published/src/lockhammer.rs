//! The locks of lockhammer (Arm's benchmark of locks), by the names of its programs: what
//! its published figures are of, so that a reference file can name them.
//!
//! Two of them are locks of the catalogue. The others are written from what their programs
//! do, in that order, and from no figure. Three change a word and exclude nobody, and one
//! does nothing: they are counters, see [`counting`]. One cannot be simulated: see
//! [`refused`].
//!
//! They are here to be simulated. Nothing else must use them.

use crate::made::{Make, simulated};
use locklab_locks::platform::{Atomic, AtomicInt, Ordering, Patience, Platform, Poll};
use locklab_locks::{Info, QSpinlock, RawLock, Ticket};
use locklab_sim::by_address::pause_until_change;
use locklab_sim::{Counting, Sim};

type Word = <Sim as Platform>::U32;
type Wide = <Sim as Platform>::Usize;
type Pointer<T> = <Sim as Platform>::Ptr<T>;

const FREE: usize = 0;
const HELD: usize = 1;

/// Its locks that exclude.
pub(crate) const LOCKS: [(&str, Make); 7] = [
    ("lockhammer:swap_mutex", simulated::<InLoop<Swap>>),
    // One word of two halves, and a pause between reads: as the catalogue's.
    (
        "lockhammer:ticket_spinlock",
        simulated::<InLoop<Ticket<Sim>>>,
    ),
    // The queued spinlock with a pending bit is as the catalogue's.
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
    (READ_WRITE, simulated::<InLoop<SpinReadWrite>>),
];

const READ_WRITE: &str = "lockhammer:tbb_spin_rw_mutex";

/// Its programs that exclude nobody: what a turn does to their word.
const COUNTERS: [(&str, Counting); 4] = [
    ("lockhammer:empty", Counting::Nothing),
    ("lockhammer:incdec_refcount", Counting::AddAndSubtract),
    ("lockhammer:cas_rw_lock", Counting::CompareAndSwapThenAdd),
    ("lockhammer:cas_lockref", Counting::CompareAndSwapTwice),
];

/// Returns what a turn does to the word, for the programs that exclude nobody.
pub(crate) fn counting(name: &str) -> Option<Counting> {
    let found = COUNTERS.iter().find(|(known, _)| *known == name);
    found.map(|(_, counting)| *counting)
}

/// Returns how many turns of a thread there are for each that takes the lock to write:
/// the program's default is 63 reads for each write. 0 if all do.
pub(crate) fn write_one_in(name: &str) -> u64 {
    match name {
        READ_WRITE => 64,
        _ => 0,
    }
}

/// Returns the operations of each thread if a delay of the lock outlasts a shorter run:
/// then as many as the published runs have.
pub(crate) fn operations(name: &str) -> Option<u64> {
    let is_long = ["lockhammer:cas_event_mutex", "lockhammer:event_mutex"].contains(&name);
    is_long.then_some(5_000)
}

/// The prefix of its locks' names.
const PREFIX: &str = "lockhammer:";

/// Returns why a lock of the program cannot be simulated, or by which name it is; none if
/// the program has no lock of this name.
pub(crate) fn refused(name: &str) -> Option<String> {
    let bare = name.strip_prefix(PREFIX).unwrap_or(name);
    if bare == "jvm_objectmonitor" {
        return Some(format!(
            "`{name}` is not simulated: after some rounds its waiters sleep on a condition \
             variable of the C library, and are woken by the kernel, of which a model of cache \
             lines has only assumed times; leave its row out"
        ));
    }
    let locks = LOCKS.map(|(name, _)| name).into_iter();
    let mut all = locks.chain(COUNTERS.map(|(name, _)| name));
    let known = all.find(|known| known.strip_prefix(PREFIX) == Some(bare))?;
    Some(format!(
        "no lock is called `{name}`; lockhammer's is `{known}`, in quotes"
    ))
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
    const INFO: Info = Info {
        readers_share: L::INFO.readers_share,
        ..INFO
    };

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

    unsafe fn read_lock(&self, context: &L::Ctx) {
        // SAFETY: the caller's promise is the same.
        unsafe { self.0.read_lock(context) }
        Sim::function_call();
    }

    unsafe fn read_unlock(&self, context: &L::Ctx) {
        // SAFETY: the caller's promise is the same.
        unsafe { self.0.read_unlock(context) }
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
/// each change of the word takes the line from all waiters. So it has the address of all
/// nodes, from which a thread finds its own and the one before it.
#[repr(C, align(64))]
struct BackQueue {
    last: Pointer<Node>,
    most_reads: Wide,
    nodes: Wide,
}

impl Default for BackQueue {
    fn default() -> Self {
        Self {
            last: Atomic::new(std::ptr::null_mut()),
            most_reads: Atomic::new(usize::MAX),
            nodes: Atomic::new(0),
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
        self.nodes.load(Ordering::Relaxed);
        node.granted.store(0, Ordering::Relaxed);
        node.next.store(std::ptr::null_mut(), Ordering::Relaxed);
        let own = std::ptr::from_ref(node).cast_mut();
        let before = self.last.swap(own, Ordering::AcqRel);
        if before.is_null() {
            return;
        }
        self.nodes.load(Ordering::Relaxed);
        node.previous.store(before, Ordering::Relaxed);
        // SAFETY: its thread waits for its turn or for this link before it leaves.
        unsafe { &*before }.next.store(own, Ordering::Release);
        self.wait(node);
    }

    unsafe fn unlock(&self, node: &Node) {
        if self.is_emptied_by(node) {
            return;
        }
        self.nodes.load(Ordering::Relaxed);
        let own = std::ptr::from_ref(node).cast_mut();
        loop {
            let next = node.next.swap(std::ptr::null_mut(), Ordering::AcqRel);
            if !next.is_null() {
                // SAFETY: its thread waits for this grant.
                unsafe { &*next }.granted.store(1, Ordering::Release);
                return;
            }
            // Whoever swapped the word has yet to link its node.
            while node.next.load(Ordering::Relaxed).is_null() {
                if self.last.load(Ordering::Relaxed) == own && self.is_emptied_by(node) {
                    return;
                }
                Sim::relax();
            }
        }
    }
}

/// MySQL's mutex with events, as lockhammer has it: swaps once; then reads, and swaps if
/// it looks free; if not, it pauses up to 50 times `LONGEST` times by chance. After
/// [`ROUNDS`] such delays it swaps once more, and then waits until a counter changes,
/// which every release increments.
///
/// In the program the word and that counter are variables one after the other, in one
/// line. So is the state of its random numbers elsewhere, which each delay changes: if
/// all wait, that line is what they wait for.
#[derive(Default)]
#[repr(C)]
struct EventMutex<const LONGEST: usize> {
    line: WordAndGeneration,
    random: Alone,
}

#[derive(Default)]
#[repr(C, align(64))]
struct WordAndGeneration {
    generation: Wide,
    word: Wide,
}

/// A word that has a line for itself.
#[derive(Default)]
#[repr(align(64))]
struct Alone(Wide);

const ROUNDS: u32 = 30;

impl<const LONGEST: usize> EventMutex<LONGEST> {
    fn takes(&self) -> bool {
        self.line.word.swap(HELD, Ordering::AcqRel) == FREE
    }

    /// Reads until it looks free, with a delay after each read that does not; whether it
    /// did before the delays were used up.
    fn looks_free(&self, delays: &mut u32) -> bool {
        /// Pauses of one unit of delay.
        const UNIT: usize = 50;
        loop {
            if self.line.word.load(Ordering::Relaxed) == FREE {
                return true;
            }
            let state = self.random.0.load(Ordering::Relaxed);
            self.random.0.store(state, Ordering::Relaxed);
            Sim::relax_for((UNIT * Sim::random(LONGEST)) as u32);
            *delays += 1;
            if *delays >= ROUNDS {
                return false;
            }
        }
    }

    fn await_release_since(&self, seen: usize) {
        /// Reads until the word is read again: two releases that increment the counter
        /// at once may leave it as it was.
        const READS: u32 = 10_000;
        let reads = Patience::Reads(READS);
        self.line.generation.spin(Ordering::Relaxed, reads, |now| {
            if now == seen {
                Poll::Relax(0)
            } else {
                Poll::Done
            }
        });
    }
}

// SAFETY: of the swaps between two releases one finds it free.
unsafe impl<const LONGEST: usize> RawLock<Sim> for EventMutex<LONGEST> {
    type Ctx = ();
    const INFO: Info = INFO;

    unsafe fn lock(&self, _: &()) {
        if self.takes() {
            return;
        }
        let mut delays = 0;
        loop {
            if self.looks_free(&mut delays) {
                if self.takes() {
                    return;
                }
                continue;
            }
            delays = 0;
            let seen = self.line.generation.load(Ordering::Relaxed);
            if self.takes() {
                return;
            }
            self.await_release_since(seen);
        }
    }

    unsafe fn unlock(&self, _: &()) {
        self.line.word.swap(FREE, Ordering::AcqRel);
        let generation = self.line.generation.load(Ordering::Relaxed);
        self.line
            .generation
            .store(generation.wrapping_add(1), Ordering::Release);
    }
}

/// TBB's lock for readers and writers that spin: one word with a bit for the writer, one
/// for a writer that waits, and the number of readers. A writer that waits keeps new
/// readers out.
#[derive(Default)]
#[repr(align(64))]
struct SpinReadWrite(Wide);

const WRITER: usize = 1;
const WRITER_WAITS: usize = 2;
const READER: usize = 4;

/// Holds what a thread does between two tries: it pauses, each time twice as often, and in
/// the end calls `sched_yield`.
struct Delay(u32);

impl Delay {
    const FIRST: Self = Self(1);

    fn pass(&mut self) {
        /// The most pauses of one delay.
        const MOST: u32 = 16;
        if self.0 > MOST {
            return Sim::system_call();
        }
        Sim::relax_for(self.0);
        self.0 *= 2;
    }
}

// SAFETY: a writer enters by an exchange that finds neither a writer nor a reader; a
// reader whose addition finds a writer takes it back.
unsafe impl RawLock<Sim> for SpinReadWrite {
    type Ctx = ();
    const INFO: Info = Info {
        readers_share: true,
        ..INFO
    };

    unsafe fn lock(&self, _: &()) {
        let mut delay = Delay::FIRST;
        loop {
            let seen = self.0.load(Ordering::Relaxed);
            if seen & !WRITER_WAITS == 0 {
                let taken =
                    self.0
                        .compare_exchange(seen, WRITER, Ordering::AcqRel, Ordering::Relaxed);
                if taken.is_ok() {
                    return;
                }
                delay = Delay::FIRST;
            } else if seen & WRITER_WAITS == 0 {
                self.0.fetch_or(WRITER_WAITS, Ordering::AcqRel);
            }
            delay.pass();
        }
    }

    unsafe fn unlock(&self, _: &()) {
        self.0.fetch_and(!(WRITER | WRITER_WAITS), Ordering::AcqRel);
    }

    unsafe fn read_lock(&self, _: &()) {
        let mut delay = Delay::FIRST;
        loop {
            if self.0.load(Ordering::Relaxed) & (WRITER | WRITER_WAITS) == 0 {
                if self.0.fetch_add(READER, Ordering::AcqRel) & WRITER == 0 {
                    return;
                }
                self.0.fetch_sub(READER, Ordering::AcqRel);
            }
            delay.pass();
        }
    }

    unsafe fn read_unlock(&self, _: &()) {
        self.0.fetch_sub(READER, Ordering::AcqRel);
    }
}
