//! Measures what threads did in each of some equal parts of a recording, from which it is known how
//! much that varies. It must never know what a stretch was.

/// The number of parts of a recording.
pub const WINDOWS: usize = 64;

/// Describes what threads did in a part of the recording, in ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WindowTimes {
    /// Time in which threads lived.
    pub lived: u64,
    /// Time in which they had nothing to do or no CPU, or it is not known what they did.
    pub idle: u64,
    /// Time in which they waited for locks.
    pub waited: u64,
    /// CPU time in which they tried to take locks again and again.
    pub spun: u64,
    /// Time of releases that had others to wake.
    pub woke: u64,
}

/// The parts of a recording while it is read.
pub(crate) struct Windows {
    began: u64,
    length: u64,
    pub(crate) times: Vec<WindowTimes>,
}

impl Windows {
    pub(crate) fn new(began: u64, ended: u64) -> Self {
        Self {
            began,
            length: ended.saturating_sub(began).div_ceil(WINDOWS as u64).max(1),
            times: vec![WindowTimes::default(); WINDOWS],
        }
    }

    /// Adds so many ticks of a stretch to one of the times, to each part by its share.
    pub(crate) fn add(
        &mut self,
        from: u64,
        to: u64,
        ticks: u64,
        of: fn(&mut WindowTimes) -> &mut u64,
    ) {
        self.each(from, to, ticks, |times, ticks| *of(times) += ticks);
    }

    /// Takes ticks that were added as idle out of a stretch: they are known to be waiting now.
    pub(crate) fn was_not_idle(&mut self, from: u64, to: u64, ticks: u64) {
        self.each(from, to, ticks, |times, ticks| {
            times.idle = times.idle.saturating_sub(ticks);
        });
    }

    /// Calls with each part, and its share of the ticks of a stretch.
    fn each(&mut self, from: u64, to: u64, ticks: u64, call: impl Fn(&mut WindowTimes, u64)) {
        let (from, to) = (from.max(self.began), to.max(self.began));
        let place = |tick: u64| (((tick - self.began) / self.length) as usize).min(WINDOWS - 1);
        let (first, last) = (place(from), place(to));
        if first == last {
            call(&mut self.times[first], ticks);
            return;
        }
        let share = ticks as f64 / (to - from).max(1) as f64;
        for part in first..=last {
            let begins = self.began + part as u64 * self.length;
            let within = to
                .min(begins + self.length)
                .saturating_sub(from.max(begins));
            call(&mut self.times[part], (share * within as f64) as u64);
        }
    }
}
