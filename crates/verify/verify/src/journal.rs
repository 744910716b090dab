//! The steps of the execution under way, in memory that outlives it.
//!
//! A model runs in a process of its own ([`crate::isolate`]). When that
//! process crashes or hangs, what it did last is the explanation, so each
//! step is written to memory that its parent shares. An entry is therefore
//! plain data of a fixed size: a pointer of the child's means nothing to the
//! parent.

use std::cell::Cell;
use std::ptr;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// A place in a lock's source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// The source file, as the compiler names it.
    pub file: &'static str,
    /// The line, from 1.
    pub line: u32,
    /// The column, from 1; 0 if it is not known.
    pub column: u32,
}

thread_local! {
    static CALLER: Cell<Option<Place>> = const { Cell::new(None) };
}

impl Place {
    /// Returns the caller's place, unless somebody has said another with
    /// [`Place::set_caller`].
    #[track_caller]
    pub(crate) fn here() -> Self {
        if let Some(place) = CALLER.take() {
            return place;
        }
        let location = std::panic::Location::caller();
        Self {
            file: location.file(),
            line: location.line(),
            column: location.column(),
        }
    }

    /// Says that the next operation on this OS thread comes from this place: for locks
    /// that are not written in Rust.
    pub fn set_caller(self) {
        CALLER.set(Some(self));
    }
}

/// Notes that a lock which no model of ours runs has come to an access: it goes on.
pub fn beat() {
    Journal::current().beats.fetch_add(1, Ordering::Relaxed);
}

/// Tells what a modelled thread did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub(crate) enum Operation {
    Load,
    Store,
    Swap,
    CompareExchange,
    CompareFailed,
    Update,
    /// A read-modify-write that comes right before a write already made, which
    /// overwrites it.
    Earlier,
    /// A wait that saw what it waits for.
    Seen,
    /// A wait with limited patience that did not.
    InVain,
    Fence,
    Sleep,
    NoSleep,
    Wake,
    WakeAll,
    /// A wake-up of some of the sleepers.
    WakeSome,
    /// A wake-up for which nobody slept.
    WakeNobody,
    Enter,
    Read,
    Leave,
    Interrupt,
    /// No step: memory from `word` on, `new` bytes of it, belongs to thread
    /// `cpu`, or to the lock ([`LOCK`]).
    Owns,
}

/// The owner of the lock's own memory.
pub(crate) const LOCK: u8 = u8::MAX;

/// The owner of the static data of a lock that is not written in Rust.
pub(crate) const STATIC: u8 = u8::MAX - 1;

const FILE: usize = 47;

/// One step.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Entry {
    /// The address of the word.
    pub(crate) word: u64,
    pub(crate) old: u64,
    pub(crate) new: u64,
    pub(crate) line: u32,
    pub(crate) column: u32,
    pub(crate) operation: Operation,
    pub(crate) cpu: u8,
    /// Says whether the word holds an address.
    pub(crate) pointer: bool,
    pub(crate) file_length: u8,
    pub(crate) file: [u8; FILE],
}

impl Entry {
    pub(crate) fn new(operation: Operation, cpu: usize, place: Place) -> Self {
        let bytes = place.file.as_bytes();
        let kept = &bytes[bytes.len().saturating_sub(FILE)..];
        let mut file = [0; FILE];
        file[..kept.len()].copy_from_slice(kept);
        Self {
            word: 0,
            old: 0,
            new: 0,
            line: place.line,
            column: place.column,
            operation,
            cpu: cpu as u8,
            pointer: false,
            file_length: kept.len() as u8,
            file,
        }
    }

    /// Returns whether another thread may read something else after this step, or know that it
    /// was made.
    pub(crate) fn changes_what_others_read(&self) -> bool {
        match self.operation {
            Operation::Load
            | Operation::CompareFailed
            | Operation::Seen
            | Operation::InVain
            | Operation::Fence
            | Operation::NoSleep => false,
            Operation::Store | Operation::Swap | Operation::Update => self.old != self.new,
            _ => true,
        }
    }

    /// Returns the end of the file's path.
    pub(crate) fn file(&self) -> String {
        String::from_utf8_lossy(&self.file[..self.file_length.into()]).into_owned()
    }
}

/// The most steps of one execution that are kept.
const ENTRIES: usize = 6_000;

/// The longest answer of a child, in bytes: several times what [`ENTRIES`] steps take.
const ANSWER: usize = 1 << 22;

/// Holds what a child leaves behind. All zeros is an empty one.
#[repr(C)]
pub(crate) struct Journal {
    /// Steps of all executions: that it grows is a sign of life.
    pub(crate) beats: AtomicU64,
    /// Counts the executions that were begun.
    pub(crate) executions: AtomicU64,
    /// Says which of its properties is being explored.
    pub(crate) property: AtomicU32,
    /// See [`crate::isolate`].
    pub(crate) fault: AtomicU32,
    pub(crate) fault_address: AtomicU64,
    /// The length of the answer, plus one; 0: there is none.
    answered: AtomicU64,
    answer: std::cell::UnsafeCell<[u8; ANSWER]>,
    /// Steps of this execution; more than [`ENTRIES`]: the rest is lost.
    count: AtomicU64,
    entries: std::cell::UnsafeCell<[std::mem::MaybeUninit<Entry>; ENTRIES]>,
}

// SAFETY: one thread writes; the parent reads the cells after the writer has
// ended, and the atomics at any time.
unsafe impl Sync for Journal {}

thread_local! {
    static JOURNAL: Cell<Option<&'static Journal>> = const { Cell::new(None) };
}

impl Journal {
    /// Returns that of this OS thread.
    pub(crate) fn current() -> &'static Self {
        JOURNAL.get().unwrap_or_else(|| {
            let layout = std::alloc::Layout::new::<Self>();
            // SAFETY: the size is not zero.
            let memory = unsafe { std::alloc::alloc_zeroed(layout) };
            assert!(!memory.is_null(), "no memory for a journal");
            // SAFETY: all zeros is a journal; one for each OS thread, for
            // ever.
            let journal = unsafe { &*memory.cast::<Self>() };
            JOURNAL.set(Some(journal));
            journal
        })
    }

    /// Makes this the journal of this OS thread.
    pub(crate) fn install(&'static self) {
        JOURNAL.set(Some(self));
    }

    /// Empties the journal for the next execution.
    pub(crate) fn clear(&self) {
        self.count.store(0, Ordering::Relaxed);
    }

    /// Returns the steps of all executions.
    pub(crate) fn steps(&self) -> u64 {
        self.beats.load(Ordering::Relaxed)
    }

    /// Gives a sign of life.
    pub(crate) fn beat(&self) {
        self.beats.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn push(&self, entry: Entry) {
        self.beat();
        let count = self.count.load(Ordering::Relaxed);
        if (count as usize) < ENTRIES {
            // SAFETY: within the array; only this thread writes or reads.
            unsafe {
                let first = self.entries.get().cast::<Entry>();
                first.add(count as usize).write(entry);
            }
        }
        // Release: a parent that sees the count sees the entry.
        self.count.store(count + 1, Ordering::Release);
    }

    /// Returns how many steps this execution has made.
    pub(crate) fn len(&self) -> usize {
        self.count.load(Ordering::Relaxed) as usize
    }

    /// Returns the steps of the last execution. Its writer has ended, or is the
    /// caller.
    pub(crate) fn entries(&self) -> Vec<Entry> {
        let count = (self.count.load(Ordering::Acquire) as usize).min(ENTRIES);
        // SAFETY: so many have been written, and nobody writes now.
        unsafe { std::slice::from_raw_parts(self.entries.get().cast(), count).to_vec() }
    }

    /// Leaves an answer; says whether there was room.
    pub(crate) fn answer(&self, bytes: &[u8]) -> bool {
        if bytes.len() > ANSWER {
            return false;
        }
        // SAFETY: there is room, and nobody reads before it is announced.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), self.answer.get().cast(), bytes.len()) };
        // Release: who sees it announced sees it.
        self.answered
            .store(bytes.len() as u64 + 1, Ordering::Release);
        true
    }

    /// Returns the answer that was left.
    pub(crate) fn answered(&self) -> Option<Vec<u8>> {
        let length = self.answered.load(Ordering::Acquire).checked_sub(1)?;
        // SAFETY: announced, so written, and never again.
        let bytes =
            unsafe { std::slice::from_raw_parts(self.answer.get().cast::<u8>(), length as usize) };
        Some(bytes.to_vec())
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let file = self.file.rsplit('/').next().unwrap_or(self.file);
        write!(f, "{file}:{}", self.line)
    }
}
