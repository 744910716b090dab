//! The length of a cell's slices: a short calibration before its first
//! pair.
//!
//! A slice begins with an unused lock: queues form, backoff
//! grows, waiters go to sleep, a bound on handoffs is reached for the first
//! time. The calibration looks at long slices of both locks and finds from
//! when their rate is that of their second half; so much is left out at the
//! start of every slice, and four times as much is measured. It never sees a
//! slice that counts, and what counts never changes it.

use crate::block::Block;
use crate::figures::sort;
use crate::request::Request;
use crate::timeline::{SliceLength, Windows};
use crate::workers::{Ending, Workers};
use locklab_harness::backend::Stopped;
use std::sync::Arc;

/// Windows of a slice of the calibration.
const WINDOWS: usize = 64;
/// Windows of the planned length of a slice: its two ends, and what lies between.
const WINDOWS_OF_A_SLICE: u64 = 4;
/// The fewest slices that allow a result.
const LEAST: usize = 4;
/// The most slices: more would not change it.
const MOST: u64 = 8;
/// A rate this close to the later one is the same: the noise of so few slices
/// comes on top.
const SAME: f64 = 0.02;

/// Returns the slices of each lock of `request`, found in at most `time` ns; `None` if
/// that is too little, or the machine too noisy, for a result.
///
/// # Errors
/// If the workers could not be started, or are stuck in the lock.
pub(crate) fn calibrate(
    request: &Request,
    time: u64,
    workers: &mut dyn Workers,
) -> Result<Option<Vec<SliceLength>>, Stopped> {
    // The planned slice follows the machine's clock and the length of a turn.
    let window = request.length / WINDOWS_OF_A_SLICE;
    // The longest slice: as long as those of the calibration, of which at most
    // half is left out. In longer ones a tick, or a thread of the kernel, would
    // be the rule and not the exception.
    let longest = window * WINDOWS as u64;
    let round = request.codes.len() as u64 * longest;
    if time < LEAST as u64 * round {
        return Ok(None);
    }
    let pilot = Request {
        settle: 0,
        length: longest,
        slices: Vec::new(),
        windows: Windows {
            length: window,
            count: WINDOWS,
        },
        latency: false,
        time: time.min(MOST * round),
        least: LEAST as u32,
        ..request.clone()
    };
    let block = Arc::new(Block::new(pilot).map_err(Stopped::Fatal)?);
    if workers.run(&block)? != Ending::Well {
        // The first pair that counts will give the reason.
        return Ok(None);
    }
    let kept = sort(&block).kept;
    if kept.iter().any(|kept| kept.len() < LEAST) {
        return Ok(None);
    }
    let settled = kept.iter().enumerate().map(|(side, kept)| {
        let slices: Vec<Vec<f64>> = kept
            .iter()
            .map(|pair| {
                let threads = 0..block.request.threads;
                let at: Vec<&[u64]> = threads.map(|w| block.turns_at(*pair, side, w)).collect();
                (0..WINDOWS)
                    .map(|i| at.iter().map(|w| w[i]).sum::<u64>() as f64)
                    .collect()
            })
            .collect();
        settled_from(&slices)
    });
    let lengths = settled.map(|windows| {
        let settle = (windows as u64 * window).max(request.settle);
        SliceLength {
            settle,
            length: (4 * settle).clamp(request.length, longest),
        }
    });
    Ok(Some(lengths.collect()))
}

/// Returns the window from which on the rate is that of the second half. Each slice
/// gives its acquisitions so far at the end of each window.
fn settled_from(slices: &[Vec<f64>]) -> usize {
    let half = WINDOWS / 2;
    let mut settled = half;
    let mut from = half / 2;
    while from >= 1 {
        let ratios: Vec<f64> = slices
            .iter()
            .map(|at| {
                let rate = |a: usize, b: usize| (at[b - 1] - at[a - 1]) / (b - a) as f64;
                let late = rate(half, WINDOWS).max(f64::MIN_POSITIVE);
                (rate(from, 2 * from).max(0.01 * late) / late).ln()
            })
            .collect();
        let n = ratios.len() as f64;
        let mean = ratios.iter().sum::<f64>() / n;
        let square: f64 = ratios.iter().map(|r| (r - mean).powi(2)).sum();
        let error = (square / (n - 1.0).max(1.0) / n).sqrt();
        if mean.abs() > SAME + 2.0 * error {
            break;
        }
        settled = from;
        from /= 2;
    }
    settled
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the running totals of a rate that starts at `first` times its later value
    /// and has reached it after `windows`.
    fn slices(first: f64, windows: usize, noise: f64) -> Vec<Vec<f64>> {
        (0..6)
            .map(|slice| {
                let mut sum = 0.0;
                (0..WINDOWS)
                    .map(|i| {
                        let wobble = 1.0 + noise * (((i * 7 + slice * 3) % 5) as f64 - 2.0) / 2.0;
                        sum += if i < windows { first } else { 1.0 } * 1000.0 * wobble;
                        sum
                    })
                    .collect()
            })
            .collect()
    }

    #[test]
    fn what_is_left_out_is_what_differs() {
        assert_eq!(settled_from(&slices(1.0, 0, 0.0)), 1);
        assert_eq!(settled_from(&slices(0.5, 1, 0.0)), 1);
        assert_eq!(settled_from(&slices(0.5, 3, 0.0)), 4);
        assert_eq!(settled_from(&slices(2.0, 8, 0.01)), 8);
        assert_eq!(settled_from(&slices(0.5, 14, 0.01)), 16);
        // Nothing was done: nothing to wait for.
        assert_eq!(settled_from(&slices(0.0, WINDOWS, 0.0)), 32);
    }
}
