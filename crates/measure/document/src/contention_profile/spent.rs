//! Divides the time of waits by its causes.

use serde_json::{Value, json};

/// Describes where the time of waits went, in nanoseconds: each says another thing that
/// would help.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spent {
    /// The holder worked that had the lock when the wait began.
    pub holder_works_ns: f64,
    /// A holder had no CPU, slept, or waited for something itself.
    pub holder_stopped_ns: f64,
    /// Nobody held the lock: a waiter was being woken.
    pub waking_ns: f64,
    /// Others had the lock in between, and worked.
    pub in_line_ns: f64,
}

impl Spent {
    /// Adds the times of another to these.
    pub fn add(&mut self, other: &Self) {
        self.holder_works_ns += other.holder_works_ns;
        self.holder_stopped_ns += other.holder_stopped_ns;
        self.waking_ns += other.waking_ns;
        self.in_line_ns += other.in_line_ns;
    }

    fn causes(&self) -> [(f64, &'static str, &'static str); 4] {
        [
            (
                self.holder_works_ns,
                "while the holder worked",
                "do less while it is held",
            ),
            (
                self.holder_stopped_ns,
                "while the holder had no CPU or waited itself",
                "do not hold it across waits, and run no more threads than there are CPUs",
            ),
            (
                self.waking_ns,
                "while nobody held it and a waiter was being woken",
                "use a lock that wakes fewer threads, or let threads that run have it first",
            ),
            (
                self.in_line_ns,
                "in line behind other waiters",
                "split it, so that fewer threads want the same lock",
            ),
        ]
    }

    fn all_ns(&self) -> f64 {
        self.causes().iter().map(|(ns, ..)| ns).sum()
    }

    /// Returns the causes with their parts of all waiting, the largest first.
    #[must_use]
    pub fn parts(&self) -> Vec<(f64, &'static str)> {
        let all = self.all_ns();
        let mut parts: Vec<_> = self
            .causes()
            .iter()
            .filter(|_| all > 0.0)
            .map(|(ns, words, _)| (ns / all, *words))
            .collect();
        parts.sort_by(|one, two| two.0.total_cmp(&one.0));
        parts
    }

    /// Returns the largest cause: its part of all waiting, the cause, and what to do about
    /// it, as an imperative clause; none if there was no wait.
    #[must_use]
    pub fn largest(&self) -> Option<(f64, &'static str, &'static str)> {
        self.largest_of(|_| true)
    }

    /// Returns the largest cause that another lock is no remedy for.
    #[must_use]
    pub fn largest_but_waking(&self) -> Option<(f64, &'static str, &'static str)> {
        let waking = self.causes()[2].1;
        self.largest_of(|cause| cause != waking)
    }

    fn largest_of(
        &self,
        counts: impl Fn(&str) -> bool,
    ) -> Option<(f64, &'static str, &'static str)> {
        let all = self.all_ns();
        let causes = self.causes().into_iter();
        let (ns, cause, remedy) = causes
            .filter(|(ns, cause, _)| *ns > 0.0 && counts(cause))
            .max_by(|one, two| one.0.total_cmp(&two.0))?;
        Some((ns / all, cause, remedy))
    }

    /// Returns the fields of a JSON document.
    #[must_use]
    pub fn json(&self) -> Value {
        json!({
            "holder_works_ns": self.holder_works_ns,
            "holder_stopped_ns": self.holder_stopped_ns,
            "waking_ns": self.waking_ns,
            "in_line_ns": self.in_line_ns,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_cause_is_first_and_has_the_remedy() {
        let spent = Spent {
            holder_works_ns: 10.0,
            holder_stopped_ns: 70.0,
            waking_ns: 20.0,
            in_line_ns: 0.0,
        };
        assert_eq!(spent.parts()[0].0, 0.7);
        assert!(
            spent
                .largest()
                .is_some_and(|(.., words)| words.contains("across waits"))
        );
        let waking = Spent {
            waking_ns: 200.0,
            ..spent
        };
        assert_eq!(
            waking.largest_but_waking(),
            spent
                .largest_but_waking()
                .map(|(_, cause, remedy)| (0.25, cause, remedy))
        );
        assert_eq!(Spent::default().largest(), None);
        assert_eq!(Spent::default().largest_but_waking(), None);
        assert!(Spent::default().parts().is_empty());
    }
}
