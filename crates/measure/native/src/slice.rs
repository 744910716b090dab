//! One worker's part of one slice: lock, critical section, unlock,
//! non-critical section, until the slice ends.
//!
//! A slice has a start that is left out (queues form, caches warm) and a part
//! that is measured. The first worker that finds that the time is up signals
//! all of them, so no controller takes a CPU, and no single worker that
//! starves prolongs a slice. Besides the lock and the work, a turn costs a
//! worker one load of a word that is written three times per slice, a few
//! counters in registers, and about every 10 µs one clock read.
//! It allocates nothing and prints nothing, because it may run in the child of
//! a fork.

use crate::clockwork::{Clockwork, phase};
use crate::layout::pad;
use crate::timeline::Timeline;
use crate::turn::{Kind, Turns, Worker};
use hdrhistogram::Histogram;
use locklab_host::clock;
use locklab_locks::{NativePlatform, RawLock};
use locklab_workload::Use;
use std::cell::{Cell, RefCell};
use std::sync::atomic::{Ordering, fence};

/// The counts of a worker in one slice; all but the first are of its measured
/// part.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct Tally {
    /// Increments that it made under the locks, from first to last.
    pub(crate) increments_ever: u64,
    /// Turns, of reading and writing.
    pub(crate) turns: u64,
    /// Turns with an exclusive acquisition.
    pub(crate) writes: u64,
    /// Acquisitions of a writer after one of another worker.
    pub(crate) handoffs: u64,
    /// The longest run of turns that wrote without one of another worker in
    /// between.
    pub(crate) streak_max: u64,
    /// Turns that read while a writer wrote, from first to last.
    pub(crate) torn_reads: u64,
    /// Calls of the kernel that failed, from first to last.
    pub(crate) failed_calls: u64,
}

/// One worker's part of one slice.
pub(crate) struct Slice<'a> {
    /// Holds what the worker does in each turn.
    pub(crate) worker: Worker<'a>,
    /// The phases of the slice.
    pub(crate) clockwork: &'a Clockwork,
    /// This worker's counts at the edges of windows.
    pub(crate) timeline: RefCell<Timeline<'a>>,
    /// The histograms of latencies, if they are measured: one for all, or one for
    /// each use.
    pub(crate) latencies: Option<&'a [RefCell<Histogram<u64>>]>,
    /// Holds what it has done so far.
    pub(crate) tally: Cell<Tally>,
}

/// Counts at one moment.
#[derive(Clone, Copy, Default)]
struct Counts {
    turns: u64,
    writes: u64,
    handoffs: u64,
}

/// Runs the measuring loop for one lock in one layout.
///
/// # Safety
/// Each of the worker's places has an `L` and an `L::Ctx` that no other worker uses,
/// built and in place until all workers have returned; its lines are that
/// lock's alone.
#[inline(never)]
pub(crate) unsafe fn work<L, T, K, const LAYOUT: usize>(slice: &Slice<'_>)
where
    L: RawLock<NativePlatform>,
    T: Timer,
    K: Kind,
{
    // SAFETY: the caller's promise.
    let mut turn = unsafe { K::Turns::<'_, L>::new(&slice.worker) };
    let clockwork = slice.clockwork;
    let (mut now, mut before) = (Counts::default(), Counts::default());
    let (mut streak, mut streak_max, mut failed_calls) = (0_u64, 0_u64, 0_u64);
    let (mut increments, mut torn_reads) = (0_u64, 0_u64);
    let mut seen = phase::SETTLE;
    let mut until_clock_read = 1_u64;
    pad::<LAYOUT>();
    loop {
        let asked = T::now();
        turn.acquire(&slice.worker);
        T::record(slice, asked, seen, turn.purpose());
        let done = turn.inside_and_release(&slice.worker);

        now.turns += 1;
        increments += done.increments;
        failed_calls += u64::from(done.failed);
        torn_reads += u64::from(done.torn);
        if done.handoffs > 0 {
            now.handoffs += done.handoffs;
            streak_max = streak_max.max(streak);
            streak = 0;
        }
        let wrote = u64::from(done.increments > 0);
        now.writes += wrote;
        streak += wrote;

        turn.outside(&slice.worker);

        let phase = clockwork.phase.load(Ordering::Relaxed);
        if phase != seen {
            // The turn that just ended belongs to the phase in which it ended
            // : the one before counts as done at the change.
            let then = Counts {
                turns: now.turns - 1,
                writes: now.writes - wrote,
                handoffs: now.handoffs - done.handoffs,
            };
            if seen == phase::SETTLE {
                // May be skipped to LEAVE by a worker that waited through all
                // of the measured time; then it counts nothing.
                before = then;
                (streak_max, streak) = (0, wrote);
                until_clock_read = slice.begin();
            }
            if phase == phase::LEAVE {
                let writes = then.writes - before.writes;
                slice.end(Tally {
                    increments_ever: increments,
                    turns: then.turns - before.turns,
                    writes,
                    handoffs: then.handoffs - before.handoffs,
                    streak_max: streak_max.max(streak).min(writes),
                    failed_calls,
                    torn_reads,
                });
                return;
            }
            seen = phase;
        }
        until_clock_read -= 1;
        if until_clock_read == 0 {
            until_clock_read = slice.read_clock(now.turns - before.turns);
        }
    }
}

impl Slice<'_> {
    /// Reads the clock after `turns` turns; returns how many to do before
    /// the next.
    #[cold]
    #[inline(never)]
    fn read_clock(&self, turns: u64) -> u64 {
        let now = clock::now();
        self.clockwork.advance(now);
        self.timeline.borrow_mut().note_clock(now, turns)
    }

    /// Notes that the measured time has begun.
    #[cold]
    #[inline(never)]
    fn begin(&self) -> u64 {
        // C1: pairs with the Release of the phase.
        fence(Ordering::Acquire);
        let began = self.clockwork.began.load(Ordering::Relaxed);
        self.timeline.borrow_mut().begin(began)
    }

    /// Notes that the slice has ended.
    #[cold]
    #[inline(never)]
    fn end(&self, tally: Tally) {
        // C1: as above.
        fence(Ordering::Acquire);
        let ended = self.clockwork.ended.load(Ordering::Relaxed);
        self.timeline.borrow_mut().finish(ended, tally.turns);
        self.tally.set(tally);
    }
}

/// Measures acquisitions, or does not and costs nothing.
pub(crate) trait Timer {
    fn now() -> u64;
    fn record(slice: &Slice<'_>, asked: u64, phase: u32, to: Use);
}

/// Timer that measures nothing.
pub(crate) struct Untimed;

impl Timer for Untimed {
    #[inline(always)]
    fn now() -> u64 {
        0
    }
    #[inline(always)]
    fn record(_: &Slice<'_>, _: u64, _: u32, _: Use) {}
}

/// Timer that measures latencies, by two clock reads a turn.
pub(crate) struct Timed;

impl Timer for Timed {
    #[inline(always)]
    fn now() -> u64 {
        clock::now()
    }

    #[inline(always)]
    fn record(slice: &Slice<'_>, asked: u64, phase: u32, to: Use) {
        let took = clock::now().saturating_sub(asked);
        if let Some(latencies) = slice.latencies
            && phase == phase::MEASURE
        {
            // The range is fixed, so this never allocates; what is beyond it
            // counts as its end.
            let own = match latencies {
                [one] => one,
                each => &each[to as usize],
            };
            own.borrow_mut().saturating_record(took);
        }
    }
}
