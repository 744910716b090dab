//! Holds the time that all threads spent on each kind of activity.

/// The share of waiting below which no other lock is worth a try.
///
/// It is the same for every report, and always of [`Times::share`].
pub const NOTHING_TO_GAIN: f64 = 0.01;

/// Holds what threads did, all together, in nanoseconds of thread time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Times {
    /// Holds the time in which they lived.
    pub lived_ns: f64,
    /// Holds the time in which they had nothing to do: they slept, or waited for what is
    /// no lock.
    pub idle_ns: f64,
    /// Holds the time in which they waited for locks.
    pub waited_ns: f64,
    /// Holds the time of releases that had others to wake.
    pub woke_ns: f64,
}

impl Times {
    /// Returns the time in which threads had work: they did it, or a lock kept them from
    /// it.
    #[must_use]
    pub fn busy_ns(&self) -> f64 {
        (self.lived_ns - self.idle_ns).max(0.0)
    }

    /// Returns the share of the time in which threads had work that they waited for locks
    /// or woke those that did.
    #[must_use]
    pub fn share(&self) -> f64 {
        match self.busy_ns() {
            0.0 => 0.0,
            busy => (self.waited_ns + self.woke_ns) / busy,
        }
    }

    /// Returns whether another lock is worth a try: [`NOTHING_TO_GAIN`].
    #[must_use]
    pub fn is_worth_a_try(&self) -> bool {
        self.share() >= NOTHING_TO_GAIN
    }
}
