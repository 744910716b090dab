//! Many scenarios at once, on several threads.
//!
//! Each scenario runs by itself, so the results do not depend on the number of
//! threads or on their order. Those of many CPUs, which take long, are begun
//! first, or the last of them would run alone.

use crate::error::SimError;
use crate::outcome::Outcome;
use crate::scenario::Scenario;
use crate::simulate::run;
use std::cmp::Reverse;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Runs each scenario on one of `workers` threads. `progress` is called, by the
/// thread that has finished one, with the number of finished scenarios.
///
/// # Errors
/// The first error in the order of the scenarios; those after it that have not
/// begun are then left out.
pub fn run_all(
    scenarios: &[Scenario],
    workers: usize,
    progress: impl Fn(usize) + Sync,
) -> Result<Vec<Outcome>, SimError> {
    let mut order: Vec<usize> = (0..scenarios.len()).collect();
    order.sort_by_key(|&at| Reverse(scenarios[at].threads));
    let next = AtomicUsize::new(0);
    let done = AtomicUsize::new(0);
    let failed = AtomicUsize::new(usize::MAX);
    let results: Vec<Mutex<Option<Result<Outcome, SimError>>>> =
        scenarios.iter().map(|_| Mutex::new(None)).collect();
    std::thread::scope(|scope| {
        for _ in 0..workers.clamp(1, scenarios.len().max(1)) {
            scope.spawn(|| {
                while let Some(&at) = order.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if at > failed.load(Ordering::Relaxed) {
                        continue;
                    }
                    let result = run(&scenarios[at]);
                    if result.is_err() {
                        failed.fetch_min(at, Ordering::Relaxed);
                    }
                    *results[at]
                        .lock()
                        .expect("no worker panics while it holds this") = Some(result);
                    progress(done.fetch_add(1, Ordering::Relaxed) + 1);
                }
            });
        }
    });
    results
        .into_iter()
        .filter_map(|result| result.into_inner().expect("as above"))
        .collect()
}
