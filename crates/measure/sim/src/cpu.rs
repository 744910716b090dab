//! The state of one simulated CPU.
//!
//! Only what it is doing and with what; everything that happens to it is in the
//! modules above.

use crate::followers::Followers;
use crate::store_buffer::StoreBuffer;
use corosensei::Yielder;
use std::cell::{Cell, RefCell};
use std::panic::Location;

/// The state of a CPU, as seen by the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Running code that is about to touch shared memory.
    Sync,
    /// Waiting for a line.
    Miss,
    /// Waiting for a line that its store buffer has requested.
    Fill,
    /// Waiting until the store buffer is empty.
    Drain,
    /// Waiting until the store buffer has room.
    DrainSlot,
    /// Spinning, asleep until the line changes.
    Watching,
    /// Spinning, with the time of the next read set.
    Polling,
    /// Spinning, with a request for the line of the next read.
    SpinMiss,
    /// Spinning, with the awaited value on its way.
    Found,
    /// It is in a loop that watches several lines, asleep until one changes.
    Asleep,
    /// Halted until woken.
    Halted,
    /// Its code has returned.
    Done,
}

/// Holds what [`Step`] returns when the spin is over.
pub(crate) const DONE: u32 = u32::MAX;

/// The value for unlimited patience.
pub(crate) const FOREVER: u32 = u32::MAX;

/// Reads the word, calls the lock's closure, and returns [`DONE`] or how many
/// relaxes come before the next read.
pub(crate) type Step = unsafe fn(*mut ()) -> u32;

/// The state of a CPU's spin.
#[derive(Default)]
pub(crate) struct Spin {
    pub(crate) step: Cell<Option<(Step, usize)>>,
    pub(crate) line: Cell<usize>,
    pub(crate) next: Cell<u64>,
    pub(crate) period: Cell<u64>,
    pub(crate) reads_left: Cell<u32>,
    pub(crate) asked: Cell<u64>,
    /// The number of its latest request.
    pub(crate) turn: Cell<u32>,
    /// The number of the event of the next pause-loop exit.
    pub(crate) ple: Cell<u64>,
    /// The window of that exit.
    pub(crate) ple_window: Cell<u64>,
}

impl Spin {
    /// Sets the pace of a sleeper's loop: it begins a round at `next`, and again each
    /// `period`.
    pub(crate) fn pace(&self, next: u64, period: u64) {
        self.next.set(next);
        self.period.set(period);
    }
}

/// One CPU that software sees; a virtual one in a virtual machine.
pub(crate) struct Cpu {
    pub(crate) phase: Cell<Phase>,
    /// The number of the event that continues it; others are stale.
    pub(crate) event: Cell<u64>,
    pub(crate) core: Cell<usize>,
    /// Says how far it may run ahead with hits: the least time that a request of another
    /// core travels. 0 if a sibling thread shares the core's lines.
    pub(crate) lookahead: Cell<u64>,
    pub(crate) hardware: Cell<usize>,
    /// The hardware thread of the CPU that woke it the last time.
    pub(crate) waker: Cell<usize>,
    /// Says whether a hardware thread runs it.
    pub(crate) on: Cell<bool>,
    /// Says whether it is to be descheduled as soon as possible.
    pub(crate) preempt: Cell<bool>,
    /// Says whether it holds a lock of the system, so that it is descheduled only after that.
    pub(crate) in_system: Cell<bool>,
    pub(crate) preempt_after: Cell<bool>,
    /// The CPU behind it in line for a lock of the system, if one is.
    pub(crate) behind: Cell<usize>,
    pub(crate) ready_since: Cell<u64>,
    pub(crate) stolen: Cell<u64>,
    /// Cycles that it has been halted.
    pub(crate) halted: Cell<u64>,
    /// Counted in its core's `busy`.
    pub(crate) busy: Cell<bool>,
    pub(crate) spin: Spin,
    pub(crate) stores: StoreBuffer,
    /// Cycles it has waited for lines.
    pub(crate) stalled: Cell<u64>,
    pub(crate) masked: Cell<bool>,
    pub(crate) next_interrupt: Cell<u64>,
    pub(crate) next_steal: Cell<u64>,
    /// The line that it has just read, and the line whose read a
    /// read-modify-write has followed at once the last time.
    pub(crate) just_read: Cell<usize>,
    pub(crate) read_to_modify: Cell<usize>,
    pub(crate) followers: Followers,
    /// The place in the lock's source where it waits, the word, and since when.
    pub(crate) place: Cell<Option<&'static Location<'static>>>,
    pub(crate) word: Cell<(usize, u8)>,
    /// Serves code that is not Rust: the address of its latest access's
    /// instruction, the word whose next read has been made for it, and the
    /// lines that it watches in its sleep.
    pub(crate) site: Cell<usize>,
    pub(crate) handed: Cell<(usize, u8)>,
    pub(crate) watched: RefCell<Vec<usize>>,
    pub(crate) since: Cell<u64>,
    /// Its queue nodes, and the table of the locks that it holds, in the arena:
    /// of the platform's types; null where there are none.
    pub(crate) nodes: Cell<*const ()>,
    /// What it waits with for locks that sleep, of `libraries`' type.
    pub(crate) waiting: Cell<*const ()>,
    pub(crate) held: Cell<*const ()>,
    pub(crate) yielder: Cell<*const Yielder<(), ()>>,
}

impl Cpu {
    pub(crate) fn new() -> Self {
        Self {
            phase: Cell::new(Phase::Sync),
            event: Cell::new(0),
            core: Cell::new(0),
            lookahead: Cell::new(0),
            hardware: Cell::new(usize::MAX),
            waker: Cell::new(usize::MAX),
            on: Cell::new(false),
            preempt: Cell::new(false),
            in_system: Cell::new(false),
            preempt_after: Cell::new(false),
            behind: Cell::new(0),
            ready_since: Cell::new(0),
            stolen: Cell::new(0),
            halted: Cell::new(0),
            busy: Cell::new(false),
            spin: Spin::default(),
            stores: StoreBuffer::default(),
            stalled: Cell::new(0),
            masked: Cell::new(false),
            next_interrupt: Cell::new(u64::MAX),
            next_steal: Cell::new(u64::MAX),
            just_read: Cell::new(usize::MAX),
            read_to_modify: Cell::new(usize::MAX),
            followers: Followers::new(),
            place: Cell::new(None),
            word: Cell::new((0, 0)),
            site: Cell::new(0),
            handed: Cell::new((0, 0)),
            watched: RefCell::new(Vec::new()),
            since: Cell::new(0),
            nodes: Cell::new(std::ptr::null()),
            waiting: Cell::new(std::ptr::null()),
            held: Cell::new(std::ptr::null()),
            yielder: Cell::new(std::ptr::null()),
        }
    }
}
