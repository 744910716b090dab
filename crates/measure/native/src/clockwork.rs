//! The phases of a slice, which workers announce to one another: it settles, is
//! measured, and ends. It must never wait.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// The phases of a slice, in order.
pub(crate) mod phase {
    /// Workers run without counting.
    pub(crate) const SETTLE: u32 = 0;
    /// The turns that workers do are counted.
    pub(crate) const MEASURE: u32 = 1;
    /// The slice is over, and workers leave it.
    pub(crate) const LEAVE: u32 = 2;
}

/// The state that all workers read every turn, on lines of its own.
#[derive(Default)]
#[repr(C, align(128))]
pub(crate) struct Clockwork {
    /// One of [`phase`].
    pub(crate) phase: AtomicU32,
    /// End of the start, in ns of the monotonic clock.
    settled: AtomicU64,
    /// Requested length of the measured time, in ns.
    length: AtomicU64,
    /// Start of the measured time; 0 before.
    pub(crate) began: AtomicU64,
    /// End of the measured time; 0 before.
    pub(crate) ended: AtomicU64,
}

impl Clockwork {
    /// Sets it for the next slice, while no worker runs.
    pub(crate) fn set(&self, settled: u64, length: u64) {
        self.phase.store(phase::SETTLE, Ordering::Relaxed);
        self.settled.store(settled, Ordering::Relaxed);
        self.length.store(length, Ordering::Relaxed);
        self.began.store(0, Ordering::Relaxed);
        self.ended.store(0, Ordering::Relaxed);
    }

    /// Returns the start and end of the measured time, in ns.
    pub(crate) fn measured(&self) -> (u64, u64) {
        (
            self.began.load(Ordering::Relaxed),
            self.ended.load(Ordering::Relaxed),
        )
    }

    /// Announces the next phase to all workers, if it is due at `now`.
    ///
    /// A worker that notes the time may be preempted before it announces the
    /// phase, for longer than the slice: then the next worker to check
    /// announces it.
    pub(crate) fn advance(&self, now: u64) {
        let settled = self.settled.load(Ordering::Relaxed);
        let Some(began) = note(&self.began, now, settled) else {
            return;
        };
        self.announce(phase::MEASURE);
        let end = began + self.length.load(Ordering::Relaxed);
        if note(&self.ended, now, end).is_some() {
            self.announce(phase::LEAVE);
        }
    }

    /// Returns whether workers are to leave.
    pub(crate) fn is_over(&self) -> bool {
        self.phase.load(Ordering::Relaxed) == phase::LEAVE
    }

    /// Moves all workers to `phase`, unless they are there or beyond.
    fn announce(&self, phase: u32) {
        if self.phase.load(Ordering::Relaxed) < phase {
            // C1: Release pairs with the fence of a worker that sees it. The
            // greater of the two: a late announcement moves no worker back.
            self.phase.fetch_max(phase, Ordering::Release);
        }
    }
}

/// Returns the time noted in `word`; notes `now` if none is noted and it has reached
/// `edge`.
fn note(word: &AtomicU64, now: u64, edge: u64) -> Option<u64> {
    match word.load(Ordering::Relaxed) {
        0 if now < edge => None,
        0 => match word.compare_exchange(0, now, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => Some(now),
            Err(noted) => Some(noted),
        },
        noted => Some(noted),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_goes_on_without_the_worker_that_was_to_say_so() {
        let clockwork = Clockwork::default();
        let phase = || clockwork.phase.load(Ordering::Relaxed);
        clockwork.set(100, 50);
        clockwork.advance(99);
        assert_eq!((phase(), clockwork.measured()), (phase::SETTLE, (0, 0)));
        // One notes the time and is preempted before it announces the phase.
        assert_eq!(note(&clockwork.began, 103, 100), Some(103));
        assert_eq!(phase(), phase::SETTLE);
        clockwork.advance(110);
        assert_eq!(phase(), phase::MEASURE);
        clockwork.advance(153);
        assert_eq!((phase(), clockwork.measured()), (phase::LEAVE, (103, 153)));
        // It comes back, and moves no other worker back.
        clockwork.announce(phase::MEASURE);
        clockwork.advance(160);
        assert_eq!((phase(), clockwork.measured()), (phase::LEAVE, (103, 153)));
    }

    #[test]
    fn a_worker_that_looks_late_ends_the_slice_at_once_with_time_measured() {
        let clockwork = Clockwork::default();
        clockwork.set(100, 50);
        clockwork.advance(500);
        clockwork.advance(500);
        let (began, ended) = clockwork.measured();
        assert_eq!((began, ended), (500, 0));
        clockwork.advance(551);
        assert_eq!(clockwork.measured(), (500, 551));
    }
}
