//! Holds the survey of a recording: its images, threads, locks and call sites. It must never
//! read a record.

use crate::spent::SpentTicks;
use locklab_trace::LockKind;

/// A program image: a process between two calls of `exec`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Image {
    /// Holds its number in the recording.
    pub number: u64,
    /// Holds the number of its process.
    pub process: u64,
    /// Says whether a fork began it, and not an `exec`.
    pub forked: bool,
}

/// Describes what a thread did, in ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadTimes {
    /// The time from its start to its end.
    pub lived: u64,
    /// Waiting for locks.
    pub waited: u64,
    /// The CPU time in which it tried to take locks again and again.
    pub spun: u64,
    /// The time in releases of locks that others wanted, which are woken there.
    pub woke: u64,
    /// The time in which it had nothing to do: it waited for conditions, ends of
    /// threads and files, or slept.
    pub idle: u64,
    /// The part of that in which it waited for conditions.
    pub conditions: u64,
    /// The time in which it was ready to run, without a CPU.
    pub ready: u64,
    /// The part of that which a wake-up for a lock began, of who was woken or of who woke.
    pub ready_by_locks: u64,
    /// The time in which it waited for something that was not recorded.
    pub unknown: u64,
    /// Says how often it did.
    pub unknown_waits: u64,
    /// Says how often the system took the CPU from it against its will.
    pub preempted: u64,
}

/// Describes what was counted of one lock, or at one call site; times in ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Holds the number of acquisitions.
    pub acquired: u64,
    /// Holds the number of those that waited, in vain or not.
    pub contended: u64,
    /// Holds for how long.
    pub waited: u64,
    /// Holds for how long it was held.
    pub held: u64,
    /// Holds where the time of the waits went.
    pub spent: SpentTicks,
}

/// A lock of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SurveyedLock {
    /// Holds the number of its image.
    pub image: u64,
    /// Holds its address there.
    pub address: u64,
    /// Says what it is that the C library has to keep.
    pub kind: LockKind,
    /// Holds the place, among the sites of the survey, of the call that acquired it
    /// most often.
    pub site: Option<usize>,
    /// Holds what was counted.
    pub tally: Tally,
}

/// A way to a call that acquires.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SurveyedSite {
    /// Holds the number of its image.
    pub image: u64,
    /// Holds the addresses after the calls, innermost first.
    pub frames: Vec<u64>,
    /// Holds what was counted.
    pub tally: Tally,
}
