//! Holds the account of a program's threads: how their time is split, so that its parts add up
//! to all of it. What was not seen is a part of its own, and must never count as work.

use crate::Section;
use crate::number::{percent, time};
use serde_json::{Value, json};

/// The share of waiting below which no other lock is worth a try.
///
/// It is the same for every report, and always of [`Times::share`].
pub const NOTHING_TO_GAIN: f64 = 0.01;

/// Holds what threads did, all together, in nanoseconds of thread time. What is in no other
/// part was work.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Times {
    /// Holds the time in which they lived.
    pub lived_ns: f64,
    /// Holds the time in which they had nothing to do: they slept, or waited for what is
    /// no lock.
    pub idle_ns: f64,
    /// Holds the time in which they could have run, and had no CPU.
    pub ready_ns: f64,
    /// Holds the part of that which a wake-up for a lock began, of who was woken or of who woke.
    pub ready_by_locks_ns: f64,
    /// Holds the time in which they waited for something, and nobody saw for what.
    pub unknown_ns: f64,
    /// Holds the time that recording took from them.
    pub recorder_ns: f64,
    /// Holds the time in which they waited for locks.
    pub waited_ns: f64,
    /// Holds the CPU time in which they spun for locks.
    pub spun_ns: f64,
    /// Holds the time of releases that had others to wake.
    pub woke_ns: f64,
}

impl Times {
    /// Returns the time in which threads worked, had a CPU for something else, or waited for
    /// a lock. Time without a CPU is not in it: what it would have been is not known.
    #[must_use]
    pub fn busy_ns(&self) -> f64 {
        (self.lived_ns - self.idle_ns - self.ready_ns - self.unknown_ns - self.recorder_ns).max(0.0)
    }

    /// Returns the time that locks took.
    #[must_use]
    pub fn lost_ns(&self) -> f64 {
        self.waited_ns + self.spun_ns + self.woke_ns
    }

    /// Returns the time of work.
    #[must_use]
    pub fn worked_ns(&self) -> f64 {
        (self.busy_ns() - self.lost_ns()).max(0.0)
    }

    /// Returns the share of the busy time that locks took.
    #[must_use]
    pub fn share(&self) -> f64 {
        match self.busy_ns() {
            0.0 => 0.0,
            busy => (self.lost_ns() / busy).min(1.0),
        }
    }

    /// Adds the times of others.
    pub fn add(&mut self, other: &Self) {
        self.lived_ns += other.lived_ns;
        self.idle_ns += other.idle_ns;
        self.ready_ns += other.ready_ns;
        self.ready_by_locks_ns += other.ready_by_locks_ns;
        self.unknown_ns += other.unknown_ns;
        self.recorder_ns += other.recorder_ns;
        self.waited_ns += other.waited_ns;
        self.spun_ns += other.spun_ns;
        self.woke_ns += other.woke_ns;
    }

    /// Returns the parts with their names, in the order of a report. They add up to the time
    /// in which the threads lived.
    #[must_use]
    pub fn parts(&self) -> [(&'static str, f64); 8] {
        [
            ("Worked", self.worked_ns()),
            ("Waited for locks", self.waited_ns),
            ("Spun", self.spun_ns),
            ("Woke waiters", self.woke_ns),
            ("Ready, without a CPU", self.ready_ns),
            ("Had nothing to do", self.idle_ns),
            ("Recorded", self.recorder_ns),
            ("Not known", self.unknown_ns),
        ]
    }

    /// Returns the account as a section of a report, after some facts: each part with its
    /// share of the time in which the threads lived.
    #[must_use]
    pub fn section(&self, mut facts: Vec<(String, String)>) -> Section {
        facts.push(("Lived, in all".into(), time(self.lived_ns)));
        facts.extend(self.parts().map(|(name, part)| {
            let share = percent(100.0 * part / self.lived_ns.max(1.0));
            (name.to_owned(), format!("{} ({share} %)", time(part)))
        }));
        Section::new("Threads").facts(facts)
    }

    /// Returns the fields of a JSON document.
    #[must_use]
    pub fn json(&self) -> Value {
        json!({
            "lived_ns": self.lived_ns,
            "worked_ns": self.worked_ns(),
            "waited_ns": self.waited_ns,
            "spun_ns": self.spun_ns,
            "woke_ns": self.woke_ns,
            "ready_ns": self.ready_ns,
            "ready_by_locks_ns": self.ready_by_locks_ns,
            "idle_ns": self.idle_ns,
            "recorder_ns": self.recorder_ns,
            "unknown_ns": self.unknown_ns,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_the_account_add_up_to_the_time_lived() {
        let times = Times {
            lived_ns: 100.0,
            idle_ns: 20.0,
            ready_ns: 10.0,
            ready_by_locks_ns: 3.0,
            unknown_ns: 5.0,
            recorder_ns: 0.0,
            waited_ns: 15.0,
            spun_ns: 6.0,
            woke_ns: 4.0,
        };
        let sum: f64 = times.parts().iter().map(|(_, part)| part).sum();
        assert_eq!((sum, times.worked_ns()), (100.0, 40.0));
        // Neither waiting for a CPU nor what is not known dilutes it.
        assert_eq!(times.share(), 25.0 / 65.0);
        assert_eq!(Times::default().share(), 0.0);
    }
}
