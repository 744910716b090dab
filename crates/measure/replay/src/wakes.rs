//! Measures what wake-ups cost where the program was recorded, as the recording met them:
//! they differ by a factor of three between an idle machine and a busy one, and
//! between virtual machines by more.
//!
//! A release that takes many times what a free one takes, and as long as a call of the
//! system that wakes, woke a waiter. One that nobody waited for and that still takes
//! as long as a call made one that found nobody to wake: who has slept for glibc's
//! mutex does not know whether others sleep. It must never count the one as the other.

/// Counts how many times a release of a free lock one takes that wakes a waiter.
const MANY: u64 = 8;
/// No call of the system that wakes a thread takes less, in nanoseconds.
const LEAST_NS: f64 = 1000.0;
/// No call of the system takes less, in nanoseconds.
const LEAST_CALL_NS: f64 = 50.0;
/// Counts how many times a release of a free lock one takes that makes a call.
const SOME: u64 = 3;
/// The fewest wake-ups that say something.
const FEWEST: usize = 50;
/// The part of all that is left out, the longest: those threads lost their CPU.
const LONGEST: f64 = 0.02;
/// A call that takes so many times as long as a quick one lost its CPU in between. One that wakes
/// an idle processor from a deep state takes up to about seven times as long as one that finds
/// it still awake.
const LOST_CPU: u64 = 16;

/// Wake-ups, in ticks.
pub(crate) struct Wakes {
    least: u64,
    calls: Vec<u64>,
    /// The time from the beginning of a call until the woken thread has the lock.
    until: Vec<u64>,
    least_fruitless: u64,
    fruitless: Vec<u64>,
}

/// Describes what they cost, in ticks, as far as that is known.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Costs {
    /// The mean time of a call that woke a thread, of those that kept their CPU: where threads
    /// share CPUs, many lose theirs to the thread that they wake, and that is no part of the
    /// call.
    pub(crate) wake_call: Option<u64>,
    /// The mean time from its end until the woken thread ran.
    pub(crate) wake: Option<u64>,
    /// Says how many times as long the slowest tenth of these takes as the quickest
    /// tenth.
    pub(crate) wake_spread: Option<f64>,
    /// The median time of a call that found nobody to wake.
    pub(crate) call: Option<u64>,
}

impl Wakes {
    /// Returns where a release of a free lock takes so many ticks; 0 if the recording
    /// does not say, and then nothing is known of wake-ups.
    pub(crate) fn new(free: u64, nanoseconds_per_tick: f64) -> Self {
        let least = |ns: f64, times: u64| match free {
            0 => u64::MAX,
            free => ((ns / nanoseconds_per_tick.max(1e-3)) as u64).max(times * free),
        };
        Self {
            least: least(LEAST_NS, MANY),
            calls: Vec::new(),
            until: Vec::new(),
            least_fruitless: least(LEAST_CALL_NS, SOME),
            fruitless: Vec::new(),
        }
    }

    /// Notes how long a release took that somebody waited for; returns whether it
    /// was a wake-up.
    pub(crate) fn released(&mut self, took: u64) -> bool {
        let woke = took >= self.least;
        if woke {
            self.calls.push(took);
        }
        woke
    }

    /// Notes how long after the begin of a wake-up a thread that waited has the lock.
    pub(crate) fn ran(&mut self, after: u64) {
        if after >= self.least {
            self.until.push(after);
        }
    }

    /// Notes how long a release of a mutex took that nobody waited for, and that the
    /// recorder did not time.
    pub(crate) fn released_for_nobody(&mut self, took: u64) {
        if took >= self.least_fruitless {
            self.fruitless.push(took);
        }
    }

    /// Returns what is known, where there were enough.
    pub(crate) fn costs(mut self) -> Costs {
        let wake_call = mean_of_call(&mut self.calls);
        let wake = wake_call.zip(mean(&mut self.until)).map(|(call, until)| {
            let of = |tenth: usize| self.until[self.until.len() * tenth / 10].saturating_sub(call);
            let spread = of(9) as f64 / of(1).max(1) as f64;
            (until.saturating_sub(call), spread)
        });
        Costs {
            wake_call,
            wake: wake.map(|(mean, _)| mean),
            wake_spread: wake.map(|(_, spread)| spread),
            call: median(&mut self.fruitless),
        }
    }
}

/// Returns the median, where there are enough.
fn median(of: &mut [u64]) -> Option<u64> {
    let middle = of.len() / 2;
    (of.len() >= FEWEST).then(|| *of.select_nth_unstable(middle).1)
}

/// Returns the mean of the calls that kept their CPU, where there are enough.
fn mean_of_call(calls: &mut [u64]) -> Option<u64> {
    let quick = calls.len() / 10;
    if calls.len() < FEWEST {
        return None;
    }
    let most = LOST_CPU * *calls.select_nth_unstable(quick).1;
    let (sum, count) = calls
        .iter()
        .filter(|took| **took <= most)
        .fold((0, 0), |(sum, count), took| (sum + took, count + 1));
    Some(sum / count)
}

/// Returns the mean without the longest; it puts them in order.
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
        // Of those that wake a thread where they run, some lose their CPU to it.
        for _ in 0..30 {
            wakes.released(2_800_000);
        }
        let costs = wakes.costs();
        assert_eq!((costs.wake_call, costs.wake), (Some(10_000), Some(15_000)));
        assert_eq!(costs.wake_spread, Some(1.0));
    }

    #[test]
    fn wake_ups_differ_by_their_slowest_and_quickest_tenths() {
        let mut wakes = Wakes::new(20, 1.0);
        for number in 0..100 {
            wakes.released(10_000);
            wakes.ran(10_000 + 1000 * (1 + number));
        }
        let costs = wakes.costs();
        assert_eq!(costs.wake, Some(49_500));
        assert_eq!(costs.wake_spread, Some(91.0 / 11.0));
    }

    /// A processor that has just become idle is woken sooner than one that sleeps.
    #[test]
    fn wake_ups_of_two_kinds_cost_their_mean() {
        let mut wakes = Wakes::new(20, 1.0);
        for number in 0..100 {
            wakes.released(if number % 2 == 0 { 1_200 } else { 7_000 });
        }
        assert_eq!(wakes.costs().wake_call, Some(4_100));
    }

    #[test]
    fn what_a_call_takes_is_known_without_when_the_woken_thread_ran() {
        let mut wakes = Wakes::new(20, 1.0);
        for _ in 0..50 {
            wakes.released(10_000);
        }
        let costs = wakes.costs();
        assert_eq!((costs.wake_call, costs.wake), (Some(10_000), None));
    }

    #[test]
    fn without_the_time_of_a_free_release_nothing_is_a_wake_up() {
        let mut wakes = Wakes::new(0, 1.0);
        for _ in 0..100 {
            assert!(!wakes.released(10_000));
            wakes.ran(25_000);
        }
        assert_eq!(wakes.costs(), Costs::default());
    }

    #[test]
    fn a_free_release_of_a_tick_makes_no_wake_up_of_a_few() {
        let mut wakes = Wakes::new(1, 10.0);
        assert!(!wakes.released(99));
        assert!(wakes.released(100));
    }

    #[test]
    fn calls_for_nobody_are_longer_than_releases_without_one() {
        let mut wakes = Wakes::new(20, 1.0);
        for _ in 0..50 {
            wakes.released_for_nobody(20);
            wakes.released_for_nobody(250);
        }
        // One of them lost its CPU.
        wakes.released_for_nobody(9_000_000);
        assert_eq!(wakes.costs().call, Some(250));
        let mut few = Wakes::new(20, 1.0);
        (0..49).for_each(|_| few.released_for_nobody(250));
        assert_eq!(few.costs(), Costs::default());
    }

    #[test]
    fn few_wake_ups_say_nothing() {
        let mut wakes = Wakes::new(20, 1.0);
        for _ in 0..49 {
            wakes.released(10_000);
            wakes.ran(25_000);
        }
        assert_eq!(wakes.costs(), Costs::default());
    }
}
