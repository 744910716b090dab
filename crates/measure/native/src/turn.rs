//! One turn of a worker: the same every time, or of a list that was drawn
//! before.
//!
//! The usual turn takes one lock, writes one line and stays outside for a
//! constant length; its loop costs what it cost before there were others. Any
//! other turn is read from a list ([`locklab_workload::turns`]), sixteen bytes
//! each. It allocates nothing and reads no clock.

use crate::replayer::Replayer;
use crate::work::{Critical, Head, Section, fstat, units_over};
use locklab_locks::{NativePlatform, RawLock};
use locklab_workload::{Turn, Use};
use std::ptr::NonNull;
use std::time::Duration;

/// A lock with a worker's context for it and the lines that it protects.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) lock: NonNull<u8>,
    pub(crate) context: NonNull<u8>,
    pub(crate) shared: NonNull<Section>,
    pub(crate) lines: usize,
    /// Holds what holders of a replayed lock write: in the first of the lines, or beside
    /// the lock.
    pub(crate) head: NonNull<Head>,
    /// Units that a replayed section takes longer if another worker had its lock.
    pub(crate) migration: u64,
}

/// Describes what a worker does its turns with.
pub(crate) struct Worker<'a> {
    /// Its number, from 1.
    pub(crate) me: u64,
    /// The locks, with its contexts.
    pub(crate) places: &'a [Place],
    /// The turns, which it repeats; none if each is like every other.
    pub(crate) turns: &'a [Turn],
    /// The line that the non-critical units touch.
    pub(crate) private: &'a Section,
    /// Holds what is done while the lock is held.
    pub(crate) critical: Critical,
    /// Says for how long it sleeps with the lock, ns; where that is, turns are drawn.
    pub(crate) hold_sleep_ns: u64,
    /// Units outside it, where each turn is like every other.
    pub(crate) non_critical: u64,
    /// Holds what it replays instead, if it replays a program.
    pub(crate) replayer: Option<Replayer<'a>>,
}

/// Describes what a turn did under its locks.
#[derive(Clone, Copy, Default)]
pub(crate) struct Done {
    /// Increments: one for each lock that it took to write.
    pub(crate) increments: u64,
    /// The number of these that follow one of another worker.
    pub(crate) handoffs: u64,
    /// Says whether a call of the kernel failed.
    pub(crate) failed: bool,
    /// Says whether it read while a writer wrote.
    pub(crate) torn: bool,
}

/// The turns of a worker, one after the other.
pub(crate) trait Turns<'a, L> {
    /// Prepares a worker before its first turn.
    ///
    /// # Safety
    /// As for [`crate::slice::work`].
    unsafe fn new(worker: &Worker<'a>) -> Self;

    /// Returns what the turn takes its locks for.
    #[inline(always)]
    fn purpose(&self) -> Use {
        Use::Write
    }

    /// Takes the locks of the turn.
    fn acquire(&self, worker: &Worker<'a>);

    /// Does what is done under them, and releases them.
    fn inside_and_release(&self, worker: &Worker<'a>) -> Done;

    /// Does what is done outside, and goes on to the next turn.
    fn outside(&mut self, worker: &Worker<'a>);
}

/// A kind of turns, for any lock.
pub(crate) trait Kind {
    type Turns<'a, L: RawLock<NativePlatform>>: Turns<'a, L>;
}

/// Each is like every other.
pub(crate) struct AllAlike;

impl Kind for AllAlike {
    type Turns<'a, L: RawLock<NativePlatform>> = Alike<'a, L>;
}

/// They were drawn.
pub(crate) struct AllDrawn;

impl Kind for AllDrawn {
    type Turns<'a, L: RawLock<NativePlatform>> = Drawn<'a, L>;
}

/// A lock that a worker may take.
pub(crate) struct Taken<'a, L: RawLock<NativePlatform>> {
    pub(crate) lock: &'a L,
    pub(crate) context: &'a L::Ctx,
    pub(crate) lines: &'a [Section],
}

impl<L: RawLock<NativePlatform>> Taken<'_, L> {
    /// Returns what lies at a place.
    ///
    /// # Safety
    /// The place has an `L`, an `L::Ctx` and its lines, built and in place.
    #[inline(always)]
    pub(crate) unsafe fn at(place: &Place) -> Self {
        // SAFETY: the caller's promise.
        unsafe {
            Self {
                lock: place.lock.cast::<L>().as_ref(),
                context: place.context.cast::<L::Ctx>().as_ref(),
                lines: std::slice::from_raw_parts(place.shared.as_ptr(), place.lines),
            }
        }
    }
}

/// Turns that are all alike.
pub(crate) struct Alike<'a, L: RawLock<NativePlatform>>(Taken<'a, L>);

impl<'a, L: RawLock<NativePlatform>> Turns<'a, L> for Alike<'a, L> {
    #[inline(always)]
    unsafe fn new(worker: &Worker<'a>) -> Self {
        // SAFETY: the caller's promise.
        Self(unsafe { Taken::at(&worker.places[0]) })
    }

    #[inline(always)]
    fn acquire(&self, _: &Worker<'a>) {
        // SAFETY: the context is ours, and nothing moves.
        unsafe { self.0.lock.lock(self.0.context) };
    }

    #[inline(always)]
    fn inside_and_release(&self, worker: &Worker<'a>) -> Done {
        let shared = &self.0.lines[0];
        let handoff = shared.enter(worker.me);
        let well = match worker.critical {
            Critical::Units(units) => {
                // SAFETY: we hold the lock.
                unsafe { shared.units(units) };
                true
            }
            Critical::Fstat(file) => fstat(file),
        };
        // SAFETY: we hold it, with this context.
        unsafe { self.0.lock.unlock(self.0.context) };
        Done {
            increments: 1,
            handoffs: u64::from(handoff),
            failed: !well,
            torn: false,
        }
    }

    #[inline(always)]
    fn outside(&mut self, worker: &Worker<'a>) {
        // SAFETY: the section is ours alone.
        unsafe { worker.private.units_outside(worker.non_critical) };
    }
}

/// Turns of a list.
pub(crate) struct Drawn<'a, L: RawLock<NativePlatform>> {
    at: usize,
    turn: Turn,
    first: Taken<'a, L>,
    second: Option<Taken<'a, L>>,
}

impl<'a, L: RawLock<NativePlatform>> Drawn<'a, L> {
    #[inline(always)]
    fn of(worker: &Worker<'a>, at: usize) -> Self {
        let turn = worker.turns[at];
        // SAFETY: the promise of `new`, for every place.
        let place = |number: u32| unsafe { Taken::at(&worker.places[number as usize]) };
        Self {
            at,
            turn,
            first: place(turn.first),
            second: turn.nested().map(place),
        }
    }

    #[inline(always)]
    fn all(&self) -> impl DoubleEndedIterator<Item = &Taken<'a, L>> {
        std::iter::once(&self.first).chain(&self.second)
    }
}

impl<'a, L: RawLock<NativePlatform>> Turns<'a, L> for Drawn<'a, L> {
    unsafe fn new(worker: &Worker<'a>) -> Self {
        Self::of(worker, 0)
    }

    #[inline(always)]
    fn purpose(&self) -> Use {
        self.turn.purpose()
    }

    #[inline(always)]
    fn acquire(&self, _: &Worker<'a>) {
        for taken in self.all() {
            // SAFETY: the context is ours, for this lock; nothing moves.
            unsafe {
                match self.turn.reads {
                    true => taken.lock.read_lock(taken.context),
                    false => taken.lock.lock(taken.context),
                }
            }
        }
    }

    #[inline(always)]
    fn inside_and_release(&self, worker: &Worker<'a>) -> Done {
        // Those of the lock that was taken last.
        let lines = self.second.as_ref().unwrap_or(&self.first).lines;
        let units = match worker.critical {
            Critical::Units(units) => units,
            Critical::Fstat(_) => 0,
        };
        let mut done = Done::default();
        if self.turn.reads {
            let before = Section::read(lines);
            // A reader computes as long as a writer, in a line of its own.
            // SAFETY: the section is ours alone.
            unsafe { worker.private.units_outside(units) };
            done.torn = before.is_none_or(|turn| turn != lines[0].turns());
        } else {
            for taken in self.all() {
                done.increments += 1;
                done.handoffs += u64::from(taken.lines[0].enter(worker.me));
                Section::follow(taken.lines);
            }
            // SAFETY: we hold its lock.
            unsafe {
                match lines {
                    [one] => one.units(units),
                    more => units_over(more, units),
                }
            }
        }
        if worker.hold_sleep_ns > 0 {
            std::thread::sleep(Duration::from_nanos(worker.hold_sleep_ns));
        }
        for taken in self.all().rev() {
            // SAFETY: we hold it, with this context.
            unsafe {
                match self.turn.reads {
                    true => taken.lock.read_unlock(taken.context),
                    false => taken.lock.unlock(taken.context),
                }
            }
        }
        done
    }

    #[inline(always)]
    fn outside(&mut self, worker: &Worker<'a>) {
        // SAFETY: the section is ours alone.
        unsafe { worker.private.units_outside(self.turn.outside.into()) };
        let next = self.at + 1;
        *self = Self::of(worker, if next == worker.turns.len() { 0 } else { next });
    }
}
