//! Decides whether a recorded program, replayed on this machine under its own lock, gets on
//! as it did when it was recorded.
//!
//! It must never say anything of another lock.

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
    let own = OWN[usize::from(replay.hottest_is_shared())];
    let spec = Spec {
        cells: Cells {
            threads: vec![replay.workers(None)?],
            ..Cells::default()
        },
        time,
        ..Spec::new(own, own)
    };
    let plan = Plan::replaying(spec, replay, native)?;
    let design = Design {
        aa: true,
        ..Design::usual(BLOCKS)
    };
    let (mut slices, mut experiment) = native.backend(plan, design, Arc::clone(interrupt))?;
    match run_unrecorded(&mut slices, &mut experiment, interrupt).stopped {
        Some(Stop::Fatal(why)) => return Err(Error::Failed(why)),
        Some(_) => return Err(Error::Interrupted("it was interrupted".into())),
        None => {}
    }
    let samples = experiment.cells.iter().flat_map(|cell| &cell.pairs);
    let busy = || Error::Failed("the machine was too busy: every block was disturbed".into());
    let replayed = median(samples.flat_map(Pair::samples)).ok_or_else(busy)?;
    Ok(replayed / recorded.max(1e-9))
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
