//! One thread, or process, of a run: lock, critical section, unlock,
//! non-critical section, until told to stop.
//!
//! Beside the lock and the work, a turn costs the thread one load of a word
//! that is written three times in a run, so it stays in its cache, and a few
//! counters in registers or on a line of its own. A worker allocates nothing
//! and prints nothing: it may be the child of a fork.

use super::timeline::{Timeline, Windows};
use super::work::{Critical, Section, fstat};
use hdrhistogram::Histogram;
use locklab_host::clock;
use locklab_locks::{NativePlatform, RawLock};
use std::cell::UnsafeCell;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};

/// What the controller tells the workers. A line of its own.
#[derive(Default)]
pub(crate) struct Control {
    /// One of [`phase`].
    pub(crate) phase: AtomicU32,
    /// When the measured time began, in ns of the monotonic clock.
    pub(crate) start: AtomicU64,
    /// When it ended.
    pub(crate) end: AtomicU64,
}

/// The phases of a run, in order; a run may skip any of them but the last.
pub(crate) mod phase {
    /// Wait for the others.
    pub(crate) const GATHER: u32 = 0;
    /// Turn, without counting.
    pub(crate) const WARM_UP: u32 = 1;
    /// What is done now counts.
    pub(crate) const MEASURE: u32 = 2;
    /// Leave.
    pub(crate) const STOP: u32 = 3;
}

/// What the workers tell the controller. A line of its own.
#[derive(Default)]
pub(crate) struct Roll {
    /// Workers that are ready.
    pub(crate) arrived: AtomicUsize,
    /// Workers that are done.
    pub(crate) left: AtomicUsize,
}

/// What a worker leaves behind; all counts in the measured time but the
/// first.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    /// Acquisitions from first to last.
    pub(crate) turns_ever: u64,
    /// Acquisitions.
    pub(crate) turns: u64,
    /// Acquisitions after another's.
    pub(crate) handoffs: u64,
    /// The longest row of acquisitions without another's between.
    pub(crate) streak_max: u64,
    /// Nanoseconds with a CPU.
    pub(crate) cpu_ns: u64,
    /// Calls of the kernel that failed.
    pub(crate) failed_calls: u64,
    /// Latencies that did not fit the histogram's range.
    pub(crate) latencies_lost: u64,
    /// Pairs of value and count that were written.
    pub(crate) latency_pairs: usize,
}

/// Everything a worker needs. The pointers lead into the run's arena, which
/// outlives the worker.
pub(crate) struct Desk<L: RawLock<NativePlatform>> {
    /// Which worker, from 0.
    pub(crate) index: usize,
    /// The CPU to run on.
    pub(crate) cpu: usize,
    /// The lock.
    pub(crate) lock: NonNull<L>,
    /// This worker's context.
    pub(crate) ctx: NonNull<L::Ctx>,
    /// What the critical units touch.
    pub(crate) shared: NonNull<Section>,
    /// What the non-critical units touch.
    pub(crate) private: NonNull<Section>,
    /// From the controller.
    pub(crate) control: NonNull<Control>,
    /// To the controller.
    pub(crate) roll: NonNull<Roll>,
    /// To be written at the end.
    pub(crate) tally: NonNull<UnsafeCell<Tally>>,
    /// Turns at the end of each window.
    pub(crate) turns_at: NonNull<u64>,
    /// The windows.
    pub(crate) windows: Windows,
    /// Where value and count of each latency go, and how many pairs fit.
    pub(crate) latencies: Option<(NonNull<u64>, usize)>,
    /// An empty histogram, made before a fork.
    pub(crate) histogram: Option<Histogram<u64>>,
    /// The critical section.
    pub(crate) critical: Critical,
    /// Units outside it.
    pub(crate) non_critical: u64,
    /// Of a look at the clock, in ns.
    pub(crate) clock_cost: f64,
}

// SAFETY: every pointer leads to something shared by design (atomics, the
// lock, the section that it protects) or used by this worker alone.
unsafe impl<L: RawLock<NativePlatform>> Send for Desk<L> {}

impl<L: RawLock<NativePlatform>> Desk<L> {
    /// Works until told to stop.
    pub(crate) fn work(mut self) {
        // SAFETY: in the arena, which outlives us; only atomics inside.
        let roll = unsafe { self.roll.as_ref() };
        let histogram = self.histogram.take();
        let tally = match histogram {
            None => self.turns(NoStopwatch),
            Some(histogram) => self.turns(Stopwatch::new(histogram)),
        };
        // SAFETY: this worker's own, read by the controller after W2.
        unsafe { *self.tally.as_ref().get() = tally };
        // W2: Release pairs with the controller's Acquire of `left`.
        roll.left.fetch_add(1, Ordering::Release);
    }

    /// The loop.
    fn turns<T: Timer>(&self, mut timer: T) -> Tally {
        // SAFETY: all in the arena, initialised before we were started.
        let (lock, ctx, shared, private, control, roll) = unsafe {
            (
                self.lock.as_ref(),
                self.ctx.as_ref(),
                self.shared.as_ref(),
                self.private.as_ref(),
                self.control.as_ref(),
                self.roll.as_ref(),
            )
        };
        // SAFETY: this worker's own slice of the arena.
        let turns_at =
            unsafe { std::slice::from_raw_parts_mut(self.turns_at.as_ptr(), self.windows.count) };
        let me = self.index as u64 + 1;
        let mut tally = Tally::default();

        roll.arrived.fetch_add(1, Ordering::Relaxed);
        let mut seen = control.phase.load(Ordering::Relaxed);
        while seen == phase::GATHER {
            // There may be more workers than CPUs, and all must get here.
            std::thread::yield_now();
            seen = control.phase.load(Ordering::Relaxed);
        }
        if seen == phase::STOP {
            return tally;
        }

        let (mut turns, mut handoffs, mut streak, mut streak_max) = (0_u64, 0_u64, 0_u64, 0_u64);
        let (mut turns_before, mut handoffs_before, mut cpu_before) = (0, 0, 0);
        // Before the measured time nobody looks at the clock.
        let mut timeline = None;
        let mut until_look = u64::MAX;
        let mut failed_calls = 0;
        loop {
            timer.start();
            // SAFETY: the context is ours, nothing moves, and the arena
            // outlives all workers.
            unsafe { lock.lock(ctx) };
            timer.stop();
            let handoff = shared.enter(me);
            let well = match self.critical {
                Critical::Units(units) => {
                    // SAFETY: we hold the lock.
                    unsafe { shared.units(units) };
                    true
                }
                Critical::Fstat(file) => fstat(file),
            };
            // SAFETY: we hold it, with this context.
            unsafe { lock.unlock(ctx) };

            turns += 1;
            failed_calls += u64::from(!well);
            if handoff {
                handoffs += 1;
                streak_max = streak_max.max(streak);
                streak = 0;
            }
            streak += 1;

            // SAFETY: the section is ours alone.
            unsafe { private.units(self.non_critical) };

            let now = control.phase.load(Ordering::Relaxed);
            if now != seen {
                // W1: the fence pairs with the controller's Release store of
                // the phase, so its times can be read.
                fence(Ordering::Acquire);
                // The turn that just ended belongs to the phase that it
                // ended in: the one before counts as done at the change.
                let (turns_then, handoffs_then) = (turns - 1, handoffs - u64::from(handoff));
                if seen < phase::MEASURE {
                    // May be skipped to STOP by a worker that waited through
                    // all of the measured time; then it counts nothing.
                    (turns_before, handoffs_before) = (turns_then, handoffs_then);
                    (streak_max, streak) = (0, 1);
                    cpu_before = clock::thread_cpu_time();
                    timer.reset();
                    timeline = Some(Timeline::new(
                        self.windows,
                        &mut *turns_at,
                        control.start.load(Ordering::Relaxed),
                        clock::now(),
                        self.clock_cost,
                    ));
                    until_look = 1;
                }
                if now == phase::STOP {
                    tally.turns_ever = turns;
                    tally.turns = turns_then - turns_before;
                    tally.handoffs = handoffs_then - handoffs_before;
                    tally.streak_max = streak_max.max(streak).min(tally.turns);
                    tally.cpu_ns = clock::thread_cpu_time() - cpu_before;
                    tally.failed_calls = failed_calls;
                    if let Some(timeline) = timeline {
                        timeline.finish(control.end.load(Ordering::Relaxed), tally.turns);
                    }
                    timer.save(self.latencies, &mut tally);
                    return tally;
                }
                seen = now;
            }
            until_look -= 1;
            if until_look == 0 {
                until_look = match &mut timeline {
                    Some(timeline) => timeline.look(clock::now(), turns - turns_before),
                    None => u64::MAX,
                };
            }
        }
    }
}

/// Measures acquisitions, or does not and costs nothing.
trait Timer {
    fn start(&mut self);
    fn stop(&mut self);
    /// Forgets what was measured.
    fn reset(&mut self);
    /// Writes pairs of value and count to `place`, room for so many pairs.
    fn save(&self, place: Option<(NonNull<u64>, usize)>, tally: &mut Tally);
}

struct NoStopwatch;

impl Timer for NoStopwatch {
    #[inline(always)]
    fn start(&mut self) {}
    #[inline(always)]
    fn stop(&mut self) {}
    fn reset(&mut self) {}
    fn save(&self, _: Option<(NonNull<u64>, usize)>, _: &mut Tally) {}
}

struct Stopwatch {
    started: u64,
    histogram: Histogram<u64>,
    lost: u64,
}

impl Stopwatch {
    fn new(histogram: Histogram<u64>) -> Self {
        Self {
            started: 0,
            histogram,
            lost: 0,
        }
    }
}

impl Timer for Stopwatch {
    #[inline(always)]
    fn start(&mut self) {
        self.started = clock::now();
    }

    #[inline(always)]
    fn stop(&mut self) {
        let took = clock::now().saturating_sub(self.started);
        // The range is fixed, so this never allocates.
        if self.histogram.record(took).is_err() {
            self.lost += 1;
        }
    }

    fn reset(&mut self) {
        self.histogram.clear();
        self.lost = 0;
    }

    fn save(&self, place: Option<(NonNull<u64>, usize)>, tally: &mut Tally) {
        tally.latencies_lost = self.lost;
        let Some((place, room)) = place else {
            return;
        };
        for (i, step) in self.histogram.iter_recorded().take(room).enumerate() {
            // SAFETY: this worker's own slice of 2 × room values.
            unsafe {
                place.add(2 * i).write(step.value_iterated_to());
                place
                    .add(2 * i + 1)
                    .write(step.count_since_last_iteration());
            }
            tally.latency_pairs = i + 1;
        }
    }
}
