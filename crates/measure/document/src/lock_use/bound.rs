//! Computes what no other lock can exceed, without a model: the time that locks took from threads
//! that had work.

use crate::lock_use::times::Times;
use locklab_judge::fork_seed;
use serde_json::{Value, json};

/// Says how often the windows are drawn again.
const DRAWS: u64 = 400;
/// The part of these that is left out at each end: what remains is an interval of 95 %.
const TAIL: f64 = 0.025;
/// The fewest windows with work that say how much the share varies.
const FEWEST: usize = 8;

/// The most that another lock can gain.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bound {
    /// The share of the time in which threads had work that locks took from them.
    pub share: f64,
    /// Its interval of 95 %, over the windows of the recording; none if there are too few.
    pub interval: Option<[f64; 2]>,
}

impl Bound {
    /// Returns the bound of these windows: their sum, and its interval by drawing as many
    /// windows anew, which `seed` decides.
    #[must_use]
    pub fn of(all: &Times, windows: &[Times], seed: u64) -> Self {
        let windows: Vec<&Times> = windows.iter().filter(|w| w.busy_ns() > 0.0).collect();
        Self {
            share: all.share(),
            interval: (windows.len() >= FEWEST).then(|| interval(&windows, seed)),
        }
    }

    /// Returns the most that the rate can grow, as a part of it: threads that lose no time
    /// to locks have all of it for their work.
    #[must_use]
    pub fn gain(&self) -> f64 {
        gain(self.share)
    }

    /// Returns the interval of [`Bound::gain`].
    #[must_use]
    pub fn gain_interval(&self) -> Option<[f64; 2]> {
        self.interval.map(|shares| shares.map(gain))
    }

    /// Returns the largest gain that the interval allows.
    #[must_use]
    pub fn most(&self) -> f64 {
        self.gain_interval().map_or(self.gain(), |[_, high]| high)
    }

    /// Returns the fields of a JSON document.
    #[must_use]
    pub fn json(&self) -> Value {
        json!({
            "source": "hardware",
            "share": self.share,
            "share_interval": self.interval,
            "gain": self.gain(),
            "gain_interval": self.gain_interval(),
        })
    }
}

fn gain(share: f64) -> f64 {
    let share = share.clamp(0.0, 0.999);
    share / (1.0 - share)
}

fn interval(windows: &[&Times], seed: u64) -> [f64; 2] {
    let count = windows.len() as u64;
    let mut shares: Vec<f64> = (0..DRAWS)
        .map(|draw| {
            let (mut busy, mut lost) = (0.0, 0.0);
            for at in 0..count {
                let drawn = fork_seed(fork_seed(seed, draw), at) % count;
                let window = windows[drawn as usize];
                busy += window.busy_ns();
                lost += window.waited_ns + window.woke_ns;
            }
            lost / f64::max(busy, 1.0)
        })
        .collect();
    shares.sort_by(f64::total_cmp);
    let at = |part: f64| shares[((shares.len() - 1) as f64 * part).round() as usize];
    [at(TAIL), at(1.0 - TAIL)]
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

    #[test]
    fn threads_that_wait_half_of_their_time_can_be_twice_as_fast() {
        let windows = [window(50.0); 20];
        let bound = Bound::of(&window(50.0), &windows, 1);
        assert_eq!(bound.gain(), 1.0);
        assert_eq!(bound.interval, Some([0.5, 0.5]));
        assert_eq!(bound.most(), 1.0);
    }

    #[test]
    fn windows_that_differ_make_the_interval_wide_and_few_make_none() {
        let windows: Vec<Times> = (0..20).map(|n| window(f64::from(n) * 5.0)).collect();
        let all = window(47.5);
        let bound = Bound::of(&all, &windows, 1);
        let [low, high] = bound.interval.unwrap();
        assert!(low < 0.45 && high > 0.5, "{bound:?}");
        assert!(bound.most() > bound.gain());
        assert_eq!(Bound::of(&all, &windows, 1), bound, "alike for one seed");
        assert_eq!(Bound::of(&all, &windows[..3], 1).interval, None);
    }
}
