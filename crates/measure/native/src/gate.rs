//! Says how a recorded program, replayed on this machine, gets on under its own lock, beside when
//! it was recorded, and under another.
//!
//! It must never say what to do about that.

use crate::plan::{Plan, Spec};
use crate::probe::Native;
use crate::replay::Replay;
use locklab_harness::experiment::{Design, Pair, Sample};
use locklab_harness::matrix::OPS;
use locklab_harness::runner::{Stop, run_unrecorded};
use locklab_host::error::Error;
use locklab_workload::Cells;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// The lock of the catalogue that an unmodified program has, and its lock with
/// readers.
const OWN: [&str; 2] = ["pthread", "pthread-rwlock"];
/// Blocks that are planned; those that are disturbed are run again.
const BLOCKS: u32 = 8;

/// Replays a program under glibc's mutex for about `time`, and gives its rate by
/// the recorded one: the median over blocks.
///
/// # Errors
/// [`Error::Failed`] if it cannot be replayed here or was disturbed all the time,
/// [`Error::Interrupted`] if `interrupt` was set.
pub fn replayed_by_recorded(
    native: &Native,
    replay: Replay,
    time: Duration,
    interrupt: &Arc<AtomicBool>,
) -> Result<f64, Error> {
    let recorded = replay.recorded_per_s();
    let pairs = pairs(native, replay, None, time, interrupt)?;
    let replayed = median(pairs.iter().flat_map(Pair::samples)).ok_or_else(busy)?;
    Ok(replayed / recorded.max(1e-9))
}

/// Replays a program under this lock of the catalogue and under glibc's mutex for about `time`,
/// in turn, and gives the one rate by the other.
///
/// # Errors
/// As of [`replayed_by_recorded`].
pub fn replayed_by_own(
    native: &Native,
    replay: Replay,
    lock: &str,
    time: Duration,
    interrupt: &Arc<AtomicBool>,
) -> Result<f64, Error> {
    let pairs = pairs(native, replay, Some(lock), time, interrupt)?;
    let own = median(pairs.iter().map(|pair| &pair.baseline)).ok_or_else(busy)?;
    let other = median(pairs.iter().map(|pair| &pair.experiment)).ok_or_else(busy)?;
    Ok(other / own.max(1e-9))
}

/// Returns the pairs of a replay under glibc's mutex and this lock; of one without it, both
/// are glibc's.
fn pairs(
    native: &Native,
    replay: Replay,
    lock: Option<&str>,
    time: Duration,
    interrupt: &Arc<AtomicBool>,
) -> Result<Vec<Pair>, Error> {
    let own = OWN[usize::from(replay.hottest_is_shared())];
    let spec = Spec {
        cells: Cells {
            threads: vec![replay.workers(None)?],
            ..Cells::default()
        },
        time,
        ..Spec::new(own, lock.unwrap_or(own))
    };
    let plan = Plan::replaying(spec, replay, native)?;
    let design = Design {
        aa: lock.is_none(),
        ..Design::usual(BLOCKS)
    };
    let (mut slices, mut experiment) = native.backend(plan, design, Arc::clone(interrupt))?;
    match run_unrecorded(&mut slices, &mut experiment, interrupt).stopped {
        Some(Stop::Fatal(why)) => return Err(Error::Failed(why)),
        Some(_) => return Err(Error::Interrupted("it was interrupted".into())),
        None => {}
    }
    let cells = experiment.cells.into_iter();
    Ok(cells.flat_map(|cell| cell.pairs).collect())
}

fn busy() -> Error {
    Error::Failed("the machine was too busy: every block was disturbed".into())
}

/// Returns the median rate of the samples that count.
fn median<'a>(samples: impl Iterator<Item = &'a Sample>) -> Option<f64> {
    let counts = samples.filter(|sample| sample.invalid.is_none());
    let mut rates: Vec<f64> = counts
        .filter_map(|sample| sample.values.get(OPS).copied())
        .collect();
    rates.sort_by(f64::total_cmp);
    rates.get(rates.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use locklab_harness::experiment::Invalid;

    #[test]
    fn what_was_disturbed_has_no_part_in_the_rate() {
        let of = |rate: f64| Sample {
            values: [(OPS.to_owned(), rate)].into(),
            ..Sample::default()
        };
        let mut samples = [of(3.0), of(1.0), of(2.0), of(100.0), of(200.0)];
        for disturbed in &mut samples[3..] {
            disturbed.invalid = Some(Invalid::Disturbed("busy".into()));
        }
        assert_eq!(median(samples.iter()), Some(2.0));
        assert_eq!(median(samples[3..].iter()), None);
    }
}
