//! A lock in the form that the engine uses: how to build it at a given place,
//! and the loop that measures it, in several layouts.
//!
//! A lock's loop is a few bytes, and their alignment in the program has been
//! worth 7 % of its rate, which is more than most locks differ by. So each loop
//! exists [`LAYOUTS`] times, at different offsets from a cache line and from a
//! page, and each pair of slices draws one for each side; so the effect of
//! layout becomes noise that averages out. (T. Mytkowicz et al., *Producing
//! wrong data without doing anything obviously wrong*, 2009.)

use crate::layout::LAYOUTS;
use crate::replayed::AllReplayed;
use crate::slice::{Slice, Timed, Untimed, work};
use crate::turn::{AllAlike, AllDrawn};
use locklab_locks::{Info, NativePlatform, RawLock};
use std::alloc::Layout;
use std::ptr::NonNull;

/// The function that runs one slice; see [`crate::slice::work`].
pub(crate) type Loop = unsafe fn(&Slice<'_>);

/// Names what the turns of a worker are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TurnKind {
    /// Each turn has the same lengths.
    Alike,
    /// Drawn from a mix.
    Drawn,
    /// The steps of a recorded program.
    Replayed,
}

/// The code of one lock.
#[derive(Clone, Copy, Debug)]
pub struct LockCode {
    /// The description of the lock.
    pub info: Info,
    /// Size and alignment of the lock.
    pub(crate) lock: Layout,
    /// Size and alignment of a worker's context.
    pub(crate) context: Layout,
    build: unsafe fn(NonNull<u8>),
    build_context: unsafe fn(NonNull<u8>),
    drop: unsafe fn(NonNull<u8>),
    drop_context: unsafe fn(NonNull<u8>),
    loops: [Loop; LAYOUTS],
    timed: Loop,
    /// Holds the same of turns that are drawn.
    drawn: [Loop; LAYOUTS],
    drawn_timed: Loop,
    /// The loop of a recorded program; its turns are too long for layouts to
    /// matter.
    replayed: [Loop; 2],
}

unsafe fn build<T: Default>(place: NonNull<u8>) {
    // SAFETY: the caller's: memory for a T that holds none.
    unsafe { place.cast::<T>().write(T::default()) };
}

/// Builds a lock as [`build`] does; it is then in its final place.
unsafe fn build_lock<L: RawLock<NativePlatform>>(place: NonNull<u8>) {
    // SAFETY: the caller's promise.
    unsafe {
        build::<L>(place);
        place.cast::<L>().as_ref().settle();
    }
}

unsafe fn drop_at<T>(place: NonNull<u8>) {
    // SAFETY: the caller's: a T that nobody uses and nobody drops again.
    unsafe { place.cast::<T>().drop_in_place() };
}

impl LockCode {
    /// Returns the code of a lock type.
    #[must_use]
    pub fn of<L: RawLock<NativePlatform>>() -> Self {
        Self {
            info: L::INFO,
            lock: Layout::new::<L>(),
            context: Layout::new::<L::Ctx>(),
            build: build_lock::<L>,
            build_context: build::<L::Ctx>,
            drop: drop_at::<L>,
            drop_context: drop_at::<L::Ctx>,
            loops: [
                work::<L, Untimed, AllAlike, 0>,
                work::<L, Untimed, AllAlike, 1>,
                work::<L, Untimed, AllAlike, 2>,
                work::<L, Untimed, AllAlike, 3>,
                work::<L, Untimed, AllAlike, 4>,
                work::<L, Untimed, AllAlike, 5>,
                work::<L, Untimed, AllAlike, 6>,
                work::<L, Untimed, AllAlike, 7>,
            ],
            timed: work::<L, Timed, AllAlike, 0>,
            drawn: [
                work::<L, Untimed, AllDrawn, 0>,
                work::<L, Untimed, AllDrawn, 1>,
                work::<L, Untimed, AllDrawn, 2>,
                work::<L, Untimed, AllDrawn, 3>,
                work::<L, Untimed, AllDrawn, 4>,
                work::<L, Untimed, AllDrawn, 5>,
                work::<L, Untimed, AllDrawn, 6>,
                work::<L, Untimed, AllDrawn, 7>,
            ],
            drawn_timed: work::<L, Timed, AllDrawn, 0>,
            replayed: [
                work::<L, Untimed, AllReplayed, 0>,
                work::<L, Timed, AllReplayed, 0>,
            ],
        }
    }

    /// Returns the loop that measures it; with latencies there is only one layout,
    /// since the clock costs more than any layout.
    pub(crate) fn slice(&self, layout: usize, latency: bool, turns: TurnKind) -> Loop {
        match (turns, latency) {
            (TurnKind::Alike, false) => self.loops[layout % LAYOUTS],
            (TurnKind::Alike, true) => self.timed,
            (TurnKind::Drawn, false) => self.drawn[layout % LAYOUTS],
            (TurnKind::Drawn, true) => self.drawn_timed,
            (TurnKind::Replayed, latency) => self.replayed[usize::from(latency)],
        }
    }

    /// Builds the lock and its contexts.
    ///
    /// # Safety
    /// Each place has room for it and holds nothing, and no other thread uses
    /// any of them meanwhile.
    pub(crate) unsafe fn build(&self, lock: NonNull<u8>, contexts: &[NonNull<u8>]) {
        // SAFETY: the caller's promise.
        unsafe {
            (self.build)(lock);
            for context in contexts {
                (self.build_context)(*context);
            }
        }
    }

    /// Drops what [`LockCode::build`] built: contexts and lock together.
    ///
    /// # Safety
    /// It was built there by this code, is idle, and is dropped once.
    pub(crate) unsafe fn tear_down(&self, lock: NonNull<u8>, contexts: &[NonNull<u8>]) {
        // SAFETY: the caller's promise.
        unsafe {
            for context in contexts {
                (self.drop_context)(*context);
            }
            (self.drop)(lock);
        }
    }
}
