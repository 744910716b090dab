//! Decides whether a simulation is in its steady state, and how precise its rate is.
//!
//! Acquisitions are counted in batches. The warm-up ends when the mean time of
//! eight batches is that of the eight before; the half-width of the interval
//! of the rate comes from the means of twenty groups of batches, which are
//! long enough to be nearly independent (the method of batch means). The
//! interval covers how much one run would vary; seeds, which draw the order of
//! the queue and the placement of threads, may differ by more.

use std::cell::{Cell, RefCell};

/// Batches compared with as many before them, at the end of the warm-up.
const WINDOW: usize = 8;
/// Number of groups whose means make the interval.
const GROUPS: usize = 20;
/// 97.5 % quantile of Student's t with one degree of freedom less than that.
const T: f64 = 2.093;
/// The most ends of batches that are kept: beyond that, pairs of batches are
/// merged.
const MOST: usize = 640;

/// Batches of acquisitions.
pub(crate) struct Batches {
    size: Cell<u64>,
    /// The acquisition that ends the present one.
    next: Cell<u64>,
    /// The time when the first batch began, and when each ended.
    ends: RefCell<Vec<u64>>,
}

impl Batches {
    pub(crate) fn new(size: u64) -> Self {
        Self {
            size: Cell::new(size.max(1)),
            next: Cell::new(size.max(1)),
            ends: RefCell::new(vec![0]),
        }
    }

    /// Begins anew with the acquisition after this one.
    pub(crate) fn restart(&self, size: u64, acquisition: u64, now: u64) {
        self.size.set(size.max(1));
        self.next.set(acquisition + size.max(1));
        let mut ends = self.ends.borrow_mut();
        ends.clear();
        ends.push(now);
    }

    #[cfg(test)]
    fn size(&self) -> u64 {
        self.size.get()
    }

    /// Returns whether this acquisition ends a batch.
    #[inline(always)]
    pub(crate) fn ends_with(&self, acquisition: u64) -> bool {
        acquisition >= self.next.get()
    }

    /// Ends a batch; returns how many there are.
    pub(crate) fn end(&self, now: u64) -> usize {
        let mut ends = self.ends.borrow_mut();
        ends.push(now);
        if ends.len() > MOST {
            let mut place = 0;
            ends.retain(|_| {
                place += 1;
                place % 2 == 1
            });
            self.size.set(self.size.get() * 2);
        }
        self.next.set(self.next.get() + self.size.get());
        ends.len() - 1
    }

    /// Returns whether the last batches took as long as those before them, within a
    /// fraction `tolerance`; `None` until there are enough.
    pub(crate) fn drifts(&self, tolerance: f64) -> Option<bool> {
        let ends = self.ends.borrow();
        let last = ends.len().checked_sub(1 + 2 * WINDOW)?;
        let time = |from: usize| (ends[from + WINDOW] - ends[from]) as f64;
        let (before, after) = (time(last), time(last + WINDOW));
        Some((after - before).abs() > tolerance * before.max(1.0))
    }

    /// Returns half the width of the 95 % interval of the rate, as a fraction of it,
    /// and whether its two halves differ by more than chance and one percent.
    /// `None` with too few batches.
    pub(crate) fn precision(&self) -> Option<(f64, bool)> {
        let ends = self.ends.borrow();
        let group = (ends.len() - 1) / GROUPS;
        if group == 0 {
            return None;
        }
        // What does not fill a group is left out at the beginning.
        let first = ends.len() - 1 - group * GROUPS;
        let times: Vec<f64> = (0..GROUPS)
            .map(|n| (ends[first + (n + 1) * group] - ends[first + n * group]) as f64)
            .collect();
        let mean = times.iter().sum::<f64>() / GROUPS as f64;
        let deviation = |times: &[f64]| {
            let mean = times.iter().sum::<f64>() / times.len() as f64;
            let squares: f64 = times.iter().map(|time| (time - mean).powi(2)).sum();
            (squares / (times.len() - 1) as f64).sqrt()
        };
        let half_width = T * deviation(&times) / (GROUPS as f64).sqrt();
        let (one, two) = times.split_at(GROUPS / 2);
        let of = |half: &[f64]| half.iter().sum::<f64>() / half.len() as f64;
        let chance = 2.9 * (deviation(one).powi(2) + deviation(two).powi(2)).sqrt()
            / (GROUPS as f64 / 2.0).sqrt();
        let drifts = (of(one) - of(two)).abs() > chance.max(0.01 * mean);
        Some((half_width / mean.max(1.0), drifts))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    fn run(times: impl Iterator<Item = u64>) -> Batches {
        let batches = Batches::new(10);
        let mut now = 0;
        for (n, time) in times.enumerate() {
            now += time;
            assert!(batches.ends_with((n as u64 + 1) * 10) || batches.size() > 10);
            if batches.ends_with((n as u64 + 1) * 10) {
                batches.end(now);
            }
        }
        batches
    }

    #[test]
    fn a_ramp_drifts_and_noise_does_not() {
        assert_eq!(run((0..16).map(|n| 1000 + 50 * n)).drifts(0.02), Some(true));
        assert_eq!(run((0..16).map(|_| 1000)).drifts(0.02), Some(false));
        assert_eq!(run((0..15).map(|_| 1000)).drifts(0.02), None);
    }

    #[test]
    fn the_interval_covers_what_it_says() {
        let rng = Rng::new(7);
        let covered = (0..400)
            .filter(|_| {
                let batches = run((0..200).map(|_| 900 + rng.below(201) as u64));
                let (half_width, drifts) = batches.precision().unwrap();
                assert!(half_width < 0.02);
                let ends = batches.ends.borrow();
                let mean = (ends[ends.len() - 1] - ends[0]) as f64 / 200.0;
                !drifts && (mean - 1000.0).abs() <= half_width * mean
            })
            .count();
        assert!((360..=395).contains(&covered), "{covered} of 400");
    }

    #[test]
    fn many_batches_become_fewer_and_longer() {
        let batches = run((0..5000).map(|_| 10));
        assert!(batches.size() >= 80 && batches.ends.borrow().len() <= MOST);
        assert_eq!(batches.precision().unwrap(), (0.0, false));
    }
}
