//! What wake-ups cost where the program was recorded, as the recording met them:
//! they differ by a factor of three between an idle machine and a busy one, and
//! between virtual machines by more.
//!
//! A release that takes many times what a free one takes, and as long as a call of the
//! system, woke a waiter. It must never count a release that nobody waited for.

/// How many times a release of a free lock one takes that wakes a waiter.
const MANY: u64 = 8;
/// No call of the system that wakes a thread takes less, in nanoseconds.
const LEAST_NS: f64 = 1000.0;
/// The fewest wake-ups that say something.
const FEWEST: usize = 50;
/// Of all, the part that is left out, the longest: those that lost their CPU.
const LONGEST: f64 = 0.02;

/// Wake-ups, in ticks.
pub(crate) struct Wakes {
    least: u64,
    calls: Vec<u64>,
    /// From the beginning of a call until the woken thread has the lock.
    until: Vec<u64>,
}

impl Wakes {
    /// Where a release of a free lock takes so many ticks; 0 if the recording does
    /// not say, and then nothing is known of wake-ups.
    pub(crate) fn new(free: u64, nanoseconds_per_tick: f64) -> Self {
        let least = (LEAST_NS / nanoseconds_per_tick.max(1e-3)) as u64;
        Self {
            least: match free {
                0 => u64::MAX,
                free => least.max(MANY * free),
            },
            calls: Vec::new(),
            until: Vec::new(),
        }
    }

    /// A release that somebody waited for has taken so long; returns whether it
    /// was a wake-up.
    pub(crate) fn released(&mut self, took: u64) -> bool {
        let woke = took >= self.least;
        if woke {
            self.calls.push(took);
        }
        woke
    }

    /// So long after the begin of a wake-up a thread that waited has the lock.
    pub(crate) fn ran(&mut self, after: u64) {
        if after >= self.least {
            self.until.push(after);
        }
    }

    /// The mean time of a call, and from its end until the woken thread runs;
    /// none if there were too few.
    pub(crate) fn costs(mut self) -> Option<(u64, u64)> {
        let (call, until) = (mean(&mut self.calls)?, mean(&mut self.until)?);
        Some((call, until.saturating_sub(call)))
    }
}

/// The mean without the longest.
fn mean(of: &mut [u64]) -> Option<u64> {
    if of.len() < FEWEST {
        return None;
    }
    of.sort_unstable();
    let kept = &of[..of.len() - (of.len() as f64 * LONGEST) as usize];
    Some(kept.iter().sum::<u64>() / kept.len() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wake_ups_are_long_releases_and_the_longest_lost_their_cpu() {
        let mut wakes = Wakes::new(20, 1.0);
        for _ in 0..98 {
            assert!(wakes.released(10_000));
            assert!(!wakes.released(100), "it only looked so");
            wakes.ran(25_000);
        }
        for _ in 0..2 {
            wakes.released(9_000_000);
            wakes.ran(9_000_000);
        }
        assert_eq!(wakes.costs(), Some((10_000, 15_000)));
    }

    #[test]
    fn without_the_time_of_a_free_release_nothing_is_a_wake_up() {
        let mut wakes = Wakes::new(0, 1.0);
        for _ in 0..100 {
            assert!(!wakes.released(10_000));
            wakes.ran(25_000);
        }
        assert_eq!(wakes.costs(), None);
    }

    #[test]
    fn a_free_release_of_a_tick_makes_no_wake_up_of_a_few() {
        let mut wakes = Wakes::new(1, 10.0);
        assert!(!wakes.released(99));
        assert!(wakes.released(100));
    }

    #[test]
    fn few_wake_ups_say_nothing() {
        let mut wakes = Wakes::new(20, 1.0);
        for _ in 0..49 {
            wakes.released(10_000);
            wakes.ran(25_000);
        }
        assert_eq!(wakes.costs(), None);
    }
}
