//! Decides how long a machine is waited for.
//!
//! Only the time counts in which this program could look: a limit of a boot must not
//! run out because the program was stopped, or because its own machine had no time
//! for it while the test machine went on.

use std::time::{Duration, Instant};

/// The most that one look at a machine can take, with its pause: more than this
/// was not spent on looking.
const LONGEST_LOOK: Duration = Duration::from_secs(60);

/// Holds what is left of a limit.
#[derive(Debug)]
pub(crate) struct Patience {
    limit: Duration,
    spent: Duration,
    last: Instant,
    looks: u32,
}

impl Patience {
    /// Begins now. It also ends after this number of looks.
    pub(crate) fn new(limit: Duration, looks: u32) -> Self {
        Self {
            limit,
            spent: Duration::ZERO,
            last: Instant::now(),
            looks,
        }
    }

    /// Returns whether there is time for another look; asked once before each.
    pub(crate) fn lasts(&mut self) -> bool {
        let now = Instant::now();
        self.after(now.saturating_duration_since(self.last));
        self.last = now;
        let looks = self.looks;
        self.looks = looks.saturating_sub(1);
        looks > 0 && self.spent < self.limit
    }

    fn after(&mut self, passed: Duration) {
        self.spent += passed.min(LONGEST_LOOK);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_in_which_the_program_was_stopped_does_not_count() {
        let mut patience = Patience::new(Duration::from_secs(150), u32::MAX);
        // It was stopped for an hour while it looked once.
        patience.after(Duration::from_secs(3600));
        assert!(patience.lasts());
        for _ in 0..45 {
            patience.after(Duration::from_secs(2));
        }
        assert!(!patience.lasts());
    }

    #[test]
    fn looks_are_counted() {
        let mut patience = Patience::new(Duration::from_secs(1000), 2);
        assert!(patience.lasts() && patience.lasts());
        assert!(!patience.lasts());
    }
}
