//! Says what no other lock can exceed, without a model: the share of the busy time that locks
//! took from threads, where all that could be waiting for a lock was seen.
//!
//! It must never name a bound that what was not seen could break: then the first sentence says
//! what was not seen, and how much was waited at least.

use crate::contention_profile::times::{NOTHING_TO_GAIN, Times};
use crate::number::percent;
use locklab_judge::fork_seed;
use serde_json::{Value, json};

/// Says how often the windows are drawn again.
const DRAWS: u64 = 400;
/// The part of these that is left out at each end: what remains is an interval of 95 %.
const TAIL: f64 = 0.025;
/// The fewest windows with work that say how much the share varies.
const FEWEST: usize = 8;
/// The largest part of the events that may be lost.
const LOST: f64 = 0.1;
/// The part of the busy time from which on spinning slows whoever holds the lock so much that
/// what is gained without it may be more than its own time.
const SPINS: f64 = 0.1;
/// An interval of the share that is wider says nothing.
const WIDE: f64 = 0.5;
/// The largest bound that is said where other programs had the CPUs.
const CROWDED: f64 = 0.1;
/// A gain beyond which a bound says nothing: the program could be ten times as fast.
const MANY: f64 = 9.0;
/// The fewest samples that say whether threads spin.
const FEWEST_SAMPLES: f64 = 30.0;
/// The length, in samples, of the longest spinning that no sample shows, with 95 %.
const UNSAMPLED: f64 = 3.0;
/// Student's quantile by that of the normal distribution, from one degree of freedom on.
const STUDENT: [f64; 10] = [6.48, 2.2, 1.62, 1.42, 1.31, 1.25, 1.21, 1.18, 1.15, 1.14];

/// Describes how completely a program was seen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Seen {
    /// The part of the events that was lost, which could have been waiting or not.
    pub lost: f64,
    /// Says whether threads wait where no observer of threads sees it, as goroutines do.
    pub blind: bool,
    /// The number of windows, if not all of the time was recorded.
    pub windows: Option<usize>,
    /// The CPU time that there was, of all CPUs.
    pub cpus_ns: f64,
    /// Says whether other programs had so much of it that hardly a CPU was free: then holders
    /// lose their CPUs, and waits are longer than alone.
    pub crowded: bool,
    /// The number of samples of CPU time by which spinning is seen.
    pub samples: f64,
    /// Decides the interval.
    pub seed: u64,
}

impl Default for Seen {
    fn default() -> Self {
        Self {
            lost: 0.0,
            blind: false,
            windows: None,
            cpus_ns: f64::INFINITY,
            crowded: false,
            samples: f64::INFINITY,
            seed: 1,
        }
    }
}

/// The most that another lock can gain.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bound {
    /// The share of the busy time that locks took.
    pub share: f64,
    /// Its interval of 95 %, over the windows of the recording; none if there are too few.
    pub interval: Option<[f64; 2]>,
    /// The share of what is not known, in it and the busy time.
    pub unknown: f64,
    /// The share of the busy time that threads spun.
    spun: f64,
    /// How many times as fast the program is if all CPUs do its work, less one.
    by_cpus: f64,
    /// The time without a CPU that wake-ups for locks began, by the busy time.
    ready: f64,
    seen: Seen,
}

/// Says what is known of the most that a lock can gain.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Limit {
    /// It is this part of the rate.
    Gain(f64),
    /// What threads waited for was not seen.
    NotSeen,
    /// Too many events were lost.
    Lost,
    /// They spin, which slows the holder too.
    Spins,
    /// Who was woken for a lock had no CPU, and another lock may do without the wake-up; or other
    /// programs had the CPUs, and waits are theirs.
    NoCpu,
    /// The share differs too much between parts of the recording.
    Differs,
    /// Nearly all is waiting.
    Many,
}

impl Bound {
    /// Returns the bound of these windows: their sum, and its interval by drawing as many
    /// windows anew.
    #[must_use]
    pub fn of(all: &Times, windows: &[Times], seen: Seen) -> Self {
        let windows: Vec<&Times> = windows.iter().filter(|w| w.busy_ns() > 0.0).collect();
        let busy = all.busy_ns();
        let unknown = all.unknown_ns / (busy + all.unknown_ns).max(1.0);
        let enough = match seen.windows {
            Some(count) => count > 1 && windows.len() > 1,
            None => windows.len() >= FEWEST,
        };
        Self {
            share: all.share(),
            interval: enough.then(|| interval(all.share(), &windows, seen)),
            unknown: if seen.blind { 1.0 } else { unknown },
            spun: all.spun_ns / busy.max(1.0),
            by_cpus: (seen.cpus_ns / all.worked_ns().max(1.0) - 1.0).max(0.0),
            ready: all.ready_by_locks_ns / busy.max(1.0),
            seen,
        }
    }

    /// Returns the most that the rate can grow by what was seen, as a part of it: threads that
    /// lose no time to locks have all of it for their work.
    #[must_use]
    pub fn gain(&self) -> f64 {
        self.gain_of(self.share)
    }

    /// Returns it for this share: no more than all CPUs can do.
    fn gain_of(&self, share: f64) -> f64 {
        let share = share.clamp(0.0, 0.999);
        (share / (1.0 - share)).min(self.by_cpus)
    }

    /// Returns the largest gain that the interval allows, with what is not known.
    fn most(&self) -> f64 {
        let high = self.interval.map_or(self.share, |[_, high]| high);
        self.gain_of(high * (1.0 - self.unknown) + self.unknown)
    }

    /// Returns what is known of the most that a lock can gain.
    #[must_use]
    pub fn limit(&self) -> Limit {
        let seen = self.interval.map_or(self.share, |[_, high]| high);
        let [low, high] = self.interval.unwrap_or([self.share; 2]);
        let most = self.most();
        let with_ready = self.gain_of((high + self.ready) / (1.0 + self.ready));
        if self.seen.lost > LOST {
            Limit::Lost
        } else if self.gain_of(low) > MANY && !self.seen.blind {
            Limit::Many
        } else if self.seen.blind || most > 1.1 * self.gain_of(seen) + 0.02 {
            Limit::NotSeen
        } else if self.spun >= SPINS {
            Limit::Spins
        } else if self.seen.samples < FEWEST_SAMPLES {
            Limit::Differs
        } else if with_ready > 1.1 * self.gain_of(high) + 0.02
            || self.seen.crowded && most > CROWDED
        {
            Limit::NoCpu
        } else if high - low > WIDE || self.seen.windows.is_some() && self.interval.is_none() {
            Limit::Differs
        } else if most > MANY {
            Limit::Many
        } else {
            Limit::Gain(most)
        }
    }

    /// Returns whether another lock is worth a try: [`NOTHING_TO_GAIN`].
    #[must_use]
    pub fn is_worth_a_try(&self) -> bool {
        self.share >= NOTHING_TO_GAIN && self.limit() != Limit::Lost
    }

    /// Returns whether it is known that no other lock is.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        matches!(self.limit(), Limit::Gain(most) if most < 0.05) && self.share < NOTHING_TO_GAIN
    }

    /// Returns it in a sentence or two, of locks that were `recorded`, such as `pthread lock`;
    /// `not_seen` is a clause on what was not seen, and what would show it.
    #[must_use]
    pub fn words(&self, recorded: &str, not_seen: &str) -> String {
        let share = |part: f64| percent(100.0 * part);
        let interval = self.interval.map_or_else(String::new, |[low, high]| {
            format!(" ({} to {} %)", share(low), share(high))
        });
        let waiting = match self.spun > 0.0 {
            true => "waiting for locks, spinning or waking waiters",
            false => "waiting for locks or waking waiters",
        };
        let spent = format!(
            "hreads with work spend {} %{interval} of their time {waiting}",
            share(self.share)
        );
        let low = self.interval.map_or(self.share, |[low, _]| low);
        match self.limit() {
            Limit::Gain(most) => {
                let begin = match (self.is_nothing(), recorded) {
                    (true, "lock") => "Nothing to gain: t".into(),
                    (true, _) => format!("Nothing to gain by its {recorded}s: t"),
                    (false, _) => "T".to_owned(),
                };
                format!(
                    "{begin}{spent}. No {recorded} can make the program more than {} % faster.",
                    share(most)
                )
            }
            Limit::NotSeen => format!(
                "What another lock can gain is not known: {not_seen}. Of the time that is known, \
                 threads with work spend at least {} % {waiting}.",
                share(low)
            ),
            Limit::Lost => format!(
                "No verdict: {} % of the events were lost. Record fewer threads, or fewer seconds.",
                share(self.seen.lost)
            ),
            Limit::Spins => format!(
                "T{spent}, {} % by spinning. Spinning slows whoever holds the lock too, so \
                 there is no bound for what is gained without it.",
                share(self.spun)
            ),
            Limit::NoCpu if self.seen.crowded => format!(
                "T{spent}. Other programs had the CPUs meanwhile, which changes how long threads \
                 wait, so there is no bound: record it on an idle machine."
            ),
            Limit::NoCpu => format!(
                "T{spent}. Who was woken for a lock had no CPU for {} % more, and a lock that wakes \
                 fewer threads may do without that, so there is no bound: record it with fewer \
                 threads.",
                share(self.ready)
            ),
            Limit::Differs => format!(
                "T{spent}. That differs so much between parts of the recording, or so little was \
                 recorded, that there is no bound: record for longer."
            ),
            Limit::Many => format!(
                "T{spent}. Nearly all of it is waiting, so there is no bound for what another \
                 lock can gain."
            ),
        }
    }

    /// Returns the fields of a JSON document. The gain is null where it has no bound.
    #[must_use]
    pub fn json(&self) -> Value {
        let known = matches!(self.limit(), Limit::Gain(_)).then_some(());
        json!({
            "source": "hardware",
            "share": self.share,
            "share_interval": self.interval,
            "unknown_share": self.unknown,
            "gain": known.map(|()| self.gain()),
            "gain_interval": known.and(self.interval).map(|[low, _]| {
                [self.gain_of(low), self.most()]
            }),
        })
    }
}

/// Returns the interval of a share: wider where parts of few windows are drawn, and by what
/// was lost.
fn interval(share: f64, windows: &[&Times], seen: Seen) -> [f64; 2] {
    let count = windows.len() as u64;
    let mut shares: Vec<f64> = (0..DRAWS)
        .map(|draw| {
            let mut sum = Times::default();
            for at in 0..count {
                let drawn = fork_seed(fork_seed(seen.seed, draw), at) % count;
                sum.add(windows[drawn as usize]);
            }
            sum.share()
        })
        .collect();
    shares.sort_by(f64::total_cmp);
    let at = |part: f64| shares[((shares.len() - 1) as f64 * part).round() as usize];
    // Parts of one window are alike.
    let apart = seen.windows.map_or(windows.len(), |w| w.min(windows.len()));
    let student = STUDENT.get(apart.saturating_sub(2)).copied().unwrap_or(1.0);
    let wider = student * (windows.len() as f64 / apart.max(1) as f64).sqrt();
    let end = |end: f64, lost: f64| (share + wider * (end - share) + lost).clamp(0.0, 1.0);
    [
        end(at(TAIL).min(share), -seen.lost),
        end(
            at(1.0 - TAIL).max(share),
            seen.lost + UNSAMPLED / seen.samples,
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(waited_ns: f64) -> Times {
        Times {
            lived_ns: 100.0,
            waited_ns,
            ..Times::default()
        }
    }

    fn of(all: &Times, windows: &[Times]) -> Bound {
        Bound::of(all, windows, Seen::default())
    }

    #[test]
    fn threads_that_wait_half_of_their_time_can_be_twice_as_fast() {
        let bound = of(&window(50.0), &[window(50.0); 20]);
        assert_eq!(bound.gain(), 1.0);
        assert_eq!(bound.interval, Some([0.5, 0.5]));
        assert_eq!(bound.limit(), Limit::Gain(1.0));
        // If all CPUs do its work already, waiting does not matter.
        let cpus_ns = 60.0;
        let seen = Seen {
            cpus_ns,
            ..Seen::default()
        };
        let bound = Bound::of(&window(50.0), &[window(50.0); 20], seen);
        assert!((bound.gain() - 0.2).abs() < 1e-9, "{bound:?}");
    }

    #[test]
    fn windows_that_differ_make_the_interval_wide_and_few_make_none() {
        let windows: Vec<Times> = (0..20).map(|n| window(f64::from(n) * 5.0)).collect();
        let all = window(47.5);
        let bound = of(&all, &windows);
        let [low, high] = bound.interval.unwrap();
        assert!(low < 0.45 && high > 0.5, "{bound:?}");
        assert!(bound.most() > bound.gain());
        assert_eq!(of(&all, &windows), bound, "alike for one seed");
        assert_eq!(of(&all, &windows[..3]).interval, None);
        // The same parts of two windows say much less, and of one nothing.
        let in_windows = |count| {
            let windows_of = Seen {
                windows: Some(count),
                ..Seen::default()
            };
            Bound::of(&all, &windows, windows_of)
        };
        let [low, high] = in_windows(2).interval.unwrap();
        assert!(low < 0.1 && high > 0.9);
        assert_eq!(in_windows(2).limit(), Limit::Differs);
        assert_eq!(in_windows(1).limit(), Limit::Differs);
    }

    #[test]
    fn what_is_not_known_takes_the_bound_and_leaves_the_least() {
        let unknown = |unknown_ns: f64| {
            let all = Times {
                lived_ns: 100.0 + unknown_ns,
                unknown_ns,
                ..window(4.0)
            };
            of(&all, &[window(4.0); 20])
        };
        assert!(matches!(unknown(1.0).limit(), Limit::Gain(most) if most > 0.05));
        assert!(!unknown(1.0).is_nothing());
        let words = unknown(300.0).words("lock", "nobody sees what it waits for");
        assert!(
            words.starts_with("What another lock can gain is not known: nobody sees"),
            "{words}"
        );
        assert!(words.contains("at least 4 %"), "{words}");
        assert!(!words.contains("No lock can"), "{words}");
        let blind = Seen {
            blind: true,
            ..Seen::default()
        };
        let blind = Bound::of(&window(0.0), &[window(0.0); 20], blind);
        assert_eq!((blind.limit(), blind.is_nothing()), (Limit::NotSeen, false));
        assert_eq!(blind.json()["gain"], Value::Null);
    }

    #[test]
    fn time_without_a_cpu_does_not_dilute_spinning() {
        // As four threads with a spinlock on two CPUs that others want too.
        let all = Times {
            lived_ns: 8071.0,
            ready_ns: 7050.0,
            spun_ns: 637.0,
            ..Times::default()
        };
        let bound = of(&all, &[all; 20]);
        assert!((bound.share - 0.624).abs() < 0.001, "{bound:?}");
        assert_eq!(bound.limit(), Limit::Spins);
        assert!(!bound.words("lock", "").contains("No lock can"));
    }

    #[test]
    fn who_is_woken_and_has_no_cpu_may_need_no_wake_up_with_another_lock() {
        let all = Times {
            lived_ns: 150.0,
            ready_ns: 50.0,
            ready_by_locks_ns: 50.0,
            ..window(10.0)
        };
        let bound = |all: Times, cpus_ns: f64| {
            let seen = Seen {
                cpus_ns,
                ..Seen::default()
            };
            Bound::of(&all, &[all; 20], seen).limit()
        };
        assert_eq!(bound(all, f64::INFINITY), Limit::NoCpu);
        // Where all CPUs do its work, they cannot do more.
        assert!(matches!(bound(all, 91.0), Limit::Gain(most) if most < 0.02));
        // Who lost a CPU to others at work has none with any lock.
        let preempted = Times {
            ready_by_locks_ns: 0.0,
            ..all
        };
        assert!(matches!(bound(preempted, f64::INFINITY), Limit::Gain(most) if most < 0.12));
    }

    #[test]
    fn where_others_have_the_cpus_only_a_small_bound_is_said() {
        let bound = |waited| {
            let seen = Seen {
                crowded: true,
                ..Seen::default()
            };
            Bound::of(&window(waited), &[window(waited); 20], seen)
        };
        assert_eq!(bound(20.0).limit(), Limit::NoCpu);
        assert!(
            bound(20.0)
                .words("lock", "")
                .ends_with("on an idle machine.")
        );
        assert!(matches!(bound(5.0).limit(), Limit::Gain(most) if most < 0.06));
    }

    #[test]
    fn few_samples_say_little_of_spinning() {
        let limit = |samples| {
            let seen = Seen {
                samples,
                ..Seen::default()
            };
            Bound::of(&window(0.0), &[window(0.0); 20], seen).limit()
        };
        assert_eq!(limit(7.0), Limit::Differs);
        assert!(matches!(limit(100.0), Limit::Gain(most) if (0.03..0.04).contains(&most)));
        assert_eq!(limit(f64::INFINITY), Limit::Gain(0.0));
    }

    #[test]
    fn a_bound_that_says_nothing_is_no_bound() {
        assert_eq!(of(&window(98.0), &[window(98.0); 20]).limit(), Limit::Many);
        let lost = Seen {
            lost: 0.74,
            ..Seen::default()
        };
        let lost = Bound::of(&window(7.4), &[window(7.4); 20], lost);
        assert_eq!(lost.limit(), Limit::Lost);
        assert!(
            lost.words("lock", "")
                .starts_with("No verdict: 74 % of the events")
        );
    }

    #[test]
    fn what_was_lost_may_have_been_waiting() {
        let lost = Seen {
            lost: 0.05,
            ..Seen::default()
        };
        let unsure = Bound::of(&window(30.0), &[window(30.0); 20], lost);
        let [low, high] = unsure.interval.unwrap();
        assert!((low - 0.25).abs() < 1e-9 && (high - 0.35).abs() < 1e-9);
    }
}
