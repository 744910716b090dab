//! Decides how often a worker reads the clock, and its counts at the edges of
//! the windows of a slice.
//!
//! No other thread does that for it: a controller that woke every millisecond
//! would take a CPU from the locks under test, and, with more threads than
//! CPUs, decide which thread runs next. Nor does the worker read the clock
//! every turn, which would cost as much as the lock: it reads it about every 10
//! µs (every turn, where turns are longer), and the turns between two reads are
//! spread evenly over the time between them. So windows are approximate to a
//! few turns; the slice as a whole is not. The functions are pure: the clock is
//! an argument.

/// The lengths of a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SliceLength {
    /// Length of the start that is left out, in ns.
    pub settle: u64,
    /// Length of the measured part, in ns.
    pub length: u64,
}

/// The most turns between two clock reads.
const MOST_TURNS: u64 = 256;

/// Returns the nanoseconds between two clock reads that cost `clock_cost` ns each, so that
/// they take at most 1 % of the time.
#[must_use]
pub(crate) fn pause(clock_cost: f64) -> u64 {
    (clock_cost * 100.0).max(10_000.0) as u64
}

/// The windows of the measured part of a slice.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Windows {
    /// Length of each, in ns.
    pub(crate) length: u64,
    pub(crate) count: usize,
}

/// One worker's progress through a slice.
pub(crate) struct Timeline<'a> {
    windows: Windows,
    start: u64,
    /// Turns done since the start, at the end of each window.
    turns_at: &'a mut [u64],
    next: usize,
    last: (u64, u64),
    /// Intended nanoseconds between two clock reads.
    pause: u64,
    turns_between: u64,
}

impl<'a> Timeline<'a> {
    /// Begins a slice whose measured part will have these windows, at time
    /// `now`. A clock read costs `clock_cost` ns, which decides how
    /// often it is read: it takes at most 1 % of the time, and on most
    /// machines 0.3 %.
    #[must_use]
    pub(crate) fn new(
        windows: Windows,
        turns_at: &'a mut [u64],
        now: u64,
        clock_cost: f64,
    ) -> Self {
        Self {
            windows: Windows {
                count: windows.count.min(turns_at.len()),
                ..windows
            },
            // It has not begun: no window ends before the measured time begins.
            start: u64::MAX,
            turns_at,
            next: 0,
            last: (now, 0),
            pause: pause(clock_cost),
            turns_between: 1,
        }
    }

    /// Notes that the measured part began at time `start`, in the current
    /// turn. From now on turns count from 0. Returns how many to do before the
    /// next clock read.
    pub(crate) fn begin(&mut self, start: u64) -> u64 {
        self.last = (start.max(self.last.0), 0);
        self.start = start;
        self.turns_between
    }

    /// Notes a clock read at time `now`, after `turns` turns
    /// since the start. Returns how many to do before the next one.
    pub(crate) fn note_clock(&mut self, now: u64, turns: u64) -> u64 {
        let (then, turns_then) = self.last;
        let took = now.saturating_sub(then);
        let done = turns.saturating_sub(turns_then);
        while self.next < self.windows.count {
            let end = self.windows.length * (self.next as u64 + 1);
            let edge = self.start.saturating_add(end);
            if edge > now {
                break;
            }
            let part = edge.saturating_sub(then) as f64 / took.max(1) as f64;
            self.turns_at[self.next] = turns_then + (part.min(1.0) * done as f64) as u64;
            self.next += 1;
        }
        self.last = (now.max(then), turns);
        if took < self.pause / 2 {
            self.turns_between = (self.turns_between * 2).min(MOST_TURNS);
        } else if took > self.pause * 2 {
            // The step becomes shorter at once, not by halves: turns that became a
            // thousand times longer would otherwise go unnoticed for many
            // windows.
            let fitting = self.turns_between as f64 * self.pause as f64 / took as f64;
            self.turns_between = (fitting as u64).max(1);
        }
        self.turns_between
    }

    /// Notes that the slice has ended at time `end` with `turns` turns.
    pub(crate) fn finish(&mut self, end: u64, turns: u64) {
        self.note_clock(end, turns);
        self.turns_at[self.next..].fill(turns);
        self.next = self.windows.count;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn work_is_spread_over_the_time_between_looks() {
        let windows = Windows {
            length: MS,
            count: 4,
        };
        let mut turns = [0; 4];
        let mut timeline = Timeline::new(windows, &mut turns, 9 * MS, 20.0);
        timeline.note_clock(9 * MS + MS / 2, 7);
        timeline.begin(10 * MS);
        // 100 turns a millisecond over two edges at once.
        timeline.note_clock(12 * MS + MS / 2, 250);
        // A preempted thread does nothing for a while.
        timeline.note_clock(13 * MS, 260);
        timeline.finish(14 * MS, 260);
        assert_eq!(turns, [100, 200, 260, 260]);
    }

    #[test]
    fn looks_are_rare_for_short_turns_and_frequent_for_long_ones() {
        let windows = Windows {
            length: MS,
            count: 1000,
        };
        let mut turns = vec![0; 1000];
        let mut timeline = Timeline::new(windows, &mut turns, 0, 20.0);
        timeline.begin(0);
        let (mut now, mut done, mut between) = (0, 0, 1);
        let mut go = |timeline: &mut Timeline, turn_ns: u64, looks: usize| {
            for _ in 0..looks {
                now += turn_ns * between;
                done += between;
                between = timeline.note_clock(now, done);
            }
            between
        };
        assert_eq!(go(&mut timeline, 20, 12), 256);
        assert!((5..=20).contains(&go(&mut timeline, 1000, 3)));
        assert_eq!(go(&mut timeline, MS, 1), 1);
    }

    #[test]
    fn time_that_stands_still_or_goes_back_loses_nothing() {
        let windows = Windows {
            length: 100,
            count: 2,
        };
        let mut turns = [0; 2];
        let mut timeline = Timeline::new(windows, &mut turns, 90, 20.0);
        timeline.begin(100);
        timeline.note_clock(150, 5);
        timeline.note_clock(140, 6);
        timeline.finish(120, 7);
        assert_eq!(turns, [7, 7]);
    }
}
