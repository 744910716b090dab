//! One chunk of a sweep, carried out into its shard by a task of a cluster or by a
//! core of this machine.
//!
//! A shard is written in the order of the plan, in transactions of some runs each.
//! So the task after a killed one continues behind the last stored run, and no run
//! is stored twice.

use crate::comparison::{Comparison, key};
use crate::folder::{Folder, Status};
use crate::plan::{Plan, Run};
use crate::simulator::Simulator;
use crate::tool;
use locklab_judge::Side;
use locklab_lab::experiment::{Order, Sample};
use locklab_lab::store::{Slot, Store};
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

/// The most time of work that a killed task loses.
const UNSTORED: Duration = Duration::from_secs(2);
/// The most runs of one transaction.
const UNSTORED_RUNS: usize = 200;

/// How a chunk ended, where nothing went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// All its runs are stored.
    Done,
    /// It was interrupted; the runs until then are stored.
    Stopped,
}

/// Carries out the missing runs of a chunk, until `go_on` returns false. Adds the
/// number of stored runs to `counted`.
///
/// # Errors
/// There is no such chunk, another process writes its shard, the shard holds
/// samples of other runs, or it cannot be written, as on a full disk. Runs that
/// were stored before stay.
pub fn run_chunk(
    folder: &Folder,
    chunk: usize,
    go_on: impl Fn() -> bool,
    counted: &AtomicU64,
) -> Result<Ended, String> {
    let range = folder.chunk(chunk)?;
    let mut status = Status {
        node: tool::node(),
        of: range.end - range.start,
        ..Status::default()
    };
    let carried_out = Task::open(folder, chunk, range).and_then(|mut task| {
        status.done = task.done();
        counted.fetch_add(status.done, Ordering::Relaxed);
        folder.note(chunk, &status);
        status.clock_ahead = clock_ahead(folder, chunk);
        folder.note(chunk, &status);
        while task.next < task.range.end && go_on() {
            let stored = task.some(&go_on)?;
            counted.fetch_add(stored, Ordering::Relaxed);
            status.done = task.done();
            folder.note(chunk, &status);
        }
        Ok(if task.next == task.range.end {
            Ended::Done
        } else {
            Ended::Stopped
        })
    });
    status.stopped = match &carried_out {
        Ok(Ended::Done) => None,
        Ok(Ended::Stopped) => Some("it was interrupted".into()),
        Err(why) => Some(why.clone()),
    };
    folder.note(chunk, &status);
    carried_out
}

/// A chunk under way.
struct Task<'a> {
    plan: &'a Plan,
    shard: Store,
    range: Range<u64>,
    /// The first run that is not stored.
    next: u64,
    /// The cells of each comparison that lie in this chunk.
    cells: BTreeMap<(usize, usize), Vec<usize>>,
    /// Number of each comparison's experiment in the shard.
    experiments: HashMap<(usize, usize), i64>,
    simulator: Simulator<'a>,
}

impl<'a> Task<'a> {
    fn open(folder: &'a Folder, chunk: usize, range: Range<u64>) -> Result<Self, String> {
        let plan = &folder.plan;
        let path = folder.shard(chunk);
        let shard = Store::open_alone(&path)?;
        let stored = shard.count()?;
        if stored % 2 == 1 || stored / 2 > range.end - range.start {
            return Err(format!(
                "the shard {} holds {stored} samples, which are not runs of its chunk; remove it, \
                 and they are run again",
                path.display()
            ));
        }
        let mut cells: BTreeMap<(usize, usize), Vec<usize>> = BTreeMap::new();
        for (_, run) in plan.runs_of(range.clone()) {
            let of = cells.entry((run.block, run.pair)).or_default();
            if of.last() != Some(&run.cell) {
                of.push(run.cell);
            }
        }
        Ok(Self {
            plan,
            shard,
            next: range.start + stored / 2,
            range,
            cells,
            experiments: HashMap::new(),
            simulator: Simulator::new(plan),
        })
    }

    fn done(&self) -> u64 {
        self.next - self.range.start
    }

    /// Carries out some runs and stores them in one transaction; returns their
    /// number.
    fn some(&mut self, go_on: &impl Fn() -> bool) -> Result<u64, String> {
        let begun = Instant::now();
        let mut runs: Vec<(Run, [Sample; 2])> = Vec::new();
        let mut number = self.next;
        while number < self.range.end
            && runs.len() < UNSTORED_RUNS
            && (runs.is_empty() || (begun.elapsed() < UNSTORED && go_on()))
        {
            let run = self.plan.run(number);
            runs.push((run, self.simulator.run(&run)));
            number += 1;
        }
        let mut experiments = std::mem::take(&mut self.experiments);
        self.shard.together(|shard| {
            for (run, samples) in &runs {
                let id = self.experiment(shard, &mut experiments, run)?;
                let cell = key(self.plan, run);
                for (side, sample) in [Side::Baseline, Side::Experiment].into_iter().zip(samples) {
                    let slot = Slot {
                        cell: &cell,
                        pair: run.replicate,
                        side,
                        order: Order::Together,
                    };
                    shard.keep(id, &slot, sample)?;
                }
            }
            Ok(())
        })?;
        self.experiments = experiments;
        self.next = number;
        Ok(runs.len() as u64)
    }

    /// The number of a run's experiment in the shard.
    fn experiment(
        &self,
        shard: &Store,
        known: &mut HashMap<(usize, usize), i64>,
        run: &Run,
    ) -> Result<i64, String> {
        let of = (run.block, run.pair);
        if let Some(id) = known.get(&of) {
            return Ok(*id);
        }
        let comparison = Comparison::new(self.plan, run.block, run.pair, &self.cells[&of])?;
        let id = match shard.of_key(&comparison.key)? {
            Some(id) => id,
            None => shard.begin(&comparison.key, COMMAND, &comparison.experiment)?,
        };
        known.insert(of, id);
        Ok(id)
    }
}

/// The command that a store of a sweep names, the same for every executor.
pub(crate) const COMMAND: &str = "locklab sweep sweep.toml";

/// How far this machine's clock is ahead of that of the folder's file system.
fn clock_ahead(folder: &Folder, chunk: usize) -> f64 {
    let path = folder.path().join(format!("status/{chunk:04}.json"));
    let written = std::fs::metadata(path).and_then(|file| file.modified());
    let Ok(written) = written else { return 0.0 };
    match SystemTime::now().duration_since(written) {
        Ok(ahead) => ahead.as_secs_f64(),
        Err(behind) => -behind.duration().as_secs_f64(),
    }
}
