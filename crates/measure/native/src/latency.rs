//! Latencies of one worker: a histogram for each side, from the slices that
//! count.
//!
//! It is made before a fork and never grows, because a child must not allocate.

use hdrhistogram::Histogram;
use std::cell::RefCell;
use std::ptr::NonNull;

/// Number of distinct latencies per worker and side: all that two significant
/// digits from 1 ns to 100 s allow.
pub(crate) const LATENCIES: usize = 4096;

fn histogram() -> Histogram<u64> {
    // It has 1 ns to 100 s in steps of 1 %. The arguments are valid, so this
    // cannot fail; an automatic one would do as well.
    Histogram::new_with_bounds(1, 100_000_000_000, 2).unwrap_or_else(|_| {
        Histogram::new(2).unwrap_or_else(|_| unreachable!("2 digits are legal"))
    })
}

/// The latencies of one worker. Of each side there is a histogram for readers and
/// one for writers where there are both, else one.
pub(crate) struct Latencies {
    /// Histograms of a side: one, or two.
    of_side: usize,
    /// Latencies of the pair under way.
    slices: Vec<RefCell<Histogram<u64>>>,
    /// Latencies of all slices that count.
    sums: Vec<Histogram<u64>>,
}

impl Latencies {
    /// Returns the latencies of so many locks, each with so many histograms.
    pub(crate) fn new(sides: usize, of_side: usize) -> Self {
        let all = sides * of_side;
        Self {
            of_side,
            slices: (0..all).map(|_| histogram().into()).collect(),
            sums: (0..all).map(|_| histogram()).collect(),
        }
    }

    /// Returns the histograms for the latencies of a slice, by the number of the use where
    /// there are two.
    pub(crate) fn slice(&self, side: usize) -> &[RefCell<Histogram<u64>>] {
        &self.slices[side * self.of_side..][..self.of_side]
    }

    /// Ends a pair; `counts` is whether the latencies of a side are kept.
    pub(crate) fn close(&mut self, counts: impl Fn(usize) -> bool) {
        for (at, (slice, sum)) in self.slices.iter_mut().zip(&mut self.sums).enumerate() {
            if counts(at / self.of_side) {
                // The ranges are the same, so this cannot fail.
                let _ = sum.add(&*slice.get_mut());
            }
            slice.get_mut().reset();
        }
    }

    /// Writes pairs of value and count of each histogram, ended by a count of 0.
    ///
    /// # Safety
    /// `place` leads to memory for 2 × [`LATENCIES`] values of each histogram,
    /// zeroed.
    pub(crate) unsafe fn save(&self, place: NonNull<u64>) {
        for (number, sum) in self.sums.iter().enumerate() {
            for (i, step) in sum.iter_recorded().take(LATENCIES - 1).enumerate() {
                // SAFETY: within this histogram's 2 × LATENCIES values.
                unsafe {
                    let at = place.add(number * 2 * LATENCIES + 2 * i);
                    at.write(step.value_iterated_to());
                    at.add(1).write(step.count_since_last_iteration());
                }
            }
        }
    }
}

/// Returns the merged latencies of one histogram, by its number, that workers have saved.
///
/// # Safety
/// `place` leads to what [`Latencies::save`] wrote, of so many workers and
/// histograms.
pub(crate) unsafe fn saved(
    place: NonNull<u64>,
    (workers, histograms): (usize, usize),
    number: usize,
) -> Histogram<u64> {
    let mut sum = histogram();
    for worker in 0..workers {
        for i in 0..LATENCIES - 1 {
            // SAFETY: the caller's promise.
            let (value, count) = unsafe {
                let at = place.add((worker * histograms + number) * 2 * LATENCIES + 2 * i);
                (at.read(), at.add(1).read())
            };
            if count == 0 {
                break;
            }
            let _ = sum.record_n(value, count);
        }
    }
    sum
}

/// Returns a quantile of latencies, between the steps of the histogram: a step of 1 %
/// would be as wide as the margin within which two are flat.
pub(crate) fn quantile(latencies: &Histogram<u64>, of: f64) -> f64 {
    let wanted = of * latencies.len() as f64;
    let mut below = 0.0;
    for step in latencies.iter_recorded() {
        let here = step.count_at_value() as f64;
        if below + here >= wanted {
            let most = step.value_iterated_to();
            let least = latencies.lowest_equivalent(most);
            let part = (wanted - below) / here.max(1.0);
            let between = least as f64 - 0.5 + part * (most - least + 1) as f64;
            return between.min(latencies.max() as f64);
        }
        below += here;
    }
    latencies.max() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_lie_between_the_steps() {
        let mut latencies = histogram();
        (0..1000).for_each(|i| latencies.record(1000 + i).unwrap());
        for of in [0.1, 0.5, 0.99, 0.999] {
            let expected = 1000.0 + 1000.0 * of;
            let found = quantile(&latencies, of);
            assert!((found - expected).abs() < 3.0, "{of}: {found}");
        }
        assert_eq!(quantile(&histogram(), 0.5), 0.0);
        let mut alike = histogram();
        alike.record_n(20, 100).unwrap();
        assert_eq!(quantile(&alike, 0.99), 20.0, "none is above the longest");
    }

    #[test]
    fn only_pairs_that_count_are_kept() {
        let mut latencies = Latencies::new(2, 1);
        for (value, counts) in [(100, true), (7, false), (300, true)] {
            latencies.slice(1)[0].borrow_mut().saturating_record(value);
            latencies.close(|_| counts);
        }
        let mut room = vec![0_u64; 4 * LATENCIES];
        let place = NonNull::new(room.as_mut_ptr()).unwrap();
        // SAFETY: the vector has as many elements.
        let sums = unsafe {
            latencies.save(place);
            [0, 1].map(|side| saved(place, (1, 2), side))
        };
        assert_eq!((sums[0].len(), sums[1].len()), (0, 2));
        assert_eq!(sums[1].max(), 301);
    }
}
