//! Says how much of a question is explored, and by how many workers at once.

use crate::limits::Limits;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

/// Says how much to explore.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Says whether to also change every operation in turn.
    pub mutants: bool,
    /// Says whether to also change every token of the source that can be, of locks of
    /// the catalogue.
    pub source: bool,
    /// Says whether to also find, for locks of the catalogue, which branches of the
    /// source some execution takes.
    pub branches: bool,
    /// Says whether loom also explores what the engine of graphs has: a second opinion.
    pub both: bool,
    /// OS threads that explore at once.
    pub workers: usize,
    /// The most executions of one property, all bounds together.
    pub executions: u64,
    /// Limits those of a mutant that few executions of each property have not killed; 0: it is
    /// not explored further.
    pub mutant_executions: u64,
    /// Random schedules of each lock.
    pub schedules: usize,
    /// Holds the seed of the random schedules.
    pub seed: u64,
    /// The longest time for one property. What a run finds should not depend
    /// on the machine, so by default there is none.
    pub duration: Duration,
}

/// The most executions of one property, unless the caller says otherwise.
const EXECUTIONS: u64 = 16_000;

/// Limits the executions of one property where time does not matter.
pub const THOROUGH_EXECUTIONS: u64 = 1_000_000;

/// Random schedules of each lock, unless the caller says otherwise.
const SCHEDULES: usize = 1_000;

/// Counts the random schedules of each lock where time does not matter.
pub const THOROUGH_SCHEDULES: usize = 50_000;

impl Default for Options {
    fn default() -> Self {
        Self {
            mutants: false,
            source: false,
            branches: false,
            both: false,
            workers: std::thread::available_parallelism().map_or(1, usize::from),
            executions: EXECUTIONS,
            mutant_executions: EXECUTIONS,
            schedules: SCHEDULES,
            seed: 1,
            duration: Duration::MAX,
        }
    }
}

impl Options {
    pub(crate) fn limits(&self) -> Limits {
        Limits {
            executions: self.executions,
            duration: self.duration,
            both: self.both,
            ..Limits::default()
        }
    }
}

/// Runs `work` on each of `jobs`, `workers` at a time; results in the order
/// of the jobs. The last comes first: the models of locks that park are the
/// longest, and are the last, and one worker alone would end with them.
pub(crate) fn in_parallel<J: Send, R: Send>(
    workers: usize,
    jobs: Vec<J>,
    work: impl Fn(J) -> R + Sync,
) -> Vec<R> {
    let count = jobs.len();
    let queue = Mutex::new(jobs.into_iter().enumerate().collect::<Vec<_>>());
    let results = Mutex::new(BTreeMap::new());
    std::thread::scope(|scope| {
        for _ in 0..workers.clamp(1, count.max(1)) {
            scope.spawn(|| {
                loop {
                    let Some((place, job)) = queue.lock().expect("no worker panics").pop() else {
                        return;
                    };
                    let result = work(job);
                    results
                        .lock()
                        .expect("no worker panics")
                        .insert(place, result);
                }
            });
        }
    });
    results
        .into_inner()
        .expect("no worker panics")
        .into_values()
        .collect()
}
