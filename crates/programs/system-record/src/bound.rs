//! Says how sure a share is: its interval, from how much it differs between parts of the time.

use rand::rngs::SmallRng;
use rand::{Rng as _, SeedableRng as _};

/// A share with the interval that holds it in 95 of 100 recordings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Holds what was recorded.
    pub share: f64,
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

/// Parts of the time of which intervals are made.
pub(crate) const WINDOWS: usize = 100;
const DRAWS: usize = 1000;

/// A window's time that counts, and the time of which it is a share.
pub(crate) type Window = (u64, u64);

/// Returns the share of all windows with its interval: windows are drawn again with
/// repetition, and each draw gives a share (the percentile bootstrap). What was `lost`
/// of the events, as a share, could have counted or not.
pub(crate) fn interval(windows: &[Window], lost: f64) -> Interval {
    let sums = |windows: &mut dyn Iterator<Item = &Window>| {
        windows.fold((0_u64, 0_u64), |(part, all), window| {
            (part + window.0, all + window.1)
        })
    };
    let of = |(part, all): (u64, u64)| part as f64 / all.max(1) as f64;
    let share = of(sums(&mut windows.iter()));
    let used: Vec<Window> = windows
        .iter()
        .copied()
        .filter(|window| window.1 > 0)
        .collect();
    if used.is_empty() {
        return Interval {
            share: 0.0,
            low: 0.0,
            high: 1.0,
        };
    }
    let mut random = SmallRng::seed_from_u64(1);
    let mut shares: Vec<f64> = (0..DRAWS)
        .map(|_| {
            let mut drawn = (0..used.len()).map(|_| &used[random.random_range(0..used.len())]);
            of(sums(&mut drawn))
        })
        .collect();
    shares.sort_by(f64::total_cmp);
    // 2.5 % of the draws are beyond each.
    let at = |number: usize| shares[number.min(DRAWS - 1)];
    Interval {
        share,
        low: (at(DRAWS / 40) - lost).clamp(0.0, share),
        high: (at(DRAWS - DRAWS / 40) + lost).clamp(share, 1.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_windows_leave_no_doubt_and_lost_events_do() {
        let windows = [(30, 100); WINDOWS];
        let sure = interval(&windows, 0.0);
        assert_eq!(
            sure,
            Interval {
                share: 0.3,
                low: 0.3,
                high: 0.3
            }
        );
        let unsure = interval(&windows, 0.05);
        assert!((unsure.low - 0.25).abs() < 1e-9 && (unsure.high - 0.35).abs() < 1e-9);
    }

    #[test]
    fn windows_that_differ_widen_the_interval() {
        let windows: Vec<Window> = (0..100)
            .map(|n| (if n % 2 == 0 { 0 } else { 60 }, 100))
            .collect();
        let share = interval(&windows, 0.0);
        assert!((share.share - 0.3).abs() < 1e-9);
        assert!(share.low < 0.28 && share.high > 0.32, "{share:?}");
        assert!(share.low > 0.2 && share.high < 0.4, "{share:?}");
    }

    #[test]
    fn nothing_recorded_bounds_nothing() {
        assert_eq!(interval(&[], 0.0).high, 1.0);
    }
}
