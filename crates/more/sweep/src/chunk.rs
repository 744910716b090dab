//! One chunk of a sweep, carried out into its shard by a task of a cluster or by a
//! core of this machine.
//!
//! A shard is written in the order of the plan, in transactions of some runs each.
//! So the task after a killed one continues behind the last stored run, and no run
//! is stored twice.

use crate::comparison::{Comparison, key};
use crate::folder::Status;
use crate::models::Models;
use crate::plan::{Plan, Run};
use crate::simulator::Simulator;
use crate::task::Task;
use locklab_host::error::Error;
use locklab_judge::Side;
use locklab_lab::experiment::{Order, Sample};
use locklab_lab::store::{Slot, Store};
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

/// The most time of work that a killed task loses.
const UNSTORED: Duration = Duration::from_secs(2);
/// The most runs of one transaction.
const UNSTORED_RUNS: usize = 200;

/// Carries out the missing runs of a chunk, until `go_on` returns false. Adds the
/// number of stored runs to `counted`. Returns false if it was interrupted.
///
/// # Errors
/// There is no such chunk, another process writes its shard, the shard holds
/// samples of other runs, or it cannot be written, as on a full disk. Runs that
/// were stored before stay.
pub(crate) fn run_chunk(
    models: &Models,
    chunk: usize,
    go_on: impl Fn() -> bool,
    counted: &AtomicU64,
) -> Result<bool, Error> {
    let range = models.chunk(chunk)?;
    let (folder, task) = (&models.folder, Task::Chunk(chunk));
    let mut status = Status::begun(range.end - range.start);
    let carried_out = Chunk::open(models, &task, range).and_then(|mut chunk| {
        status.done = chunk.done();
        counted.fetch_add(status.done, Ordering::Relaxed);
        folder.note(&task, &status);
        status.clock_ahead = clock_ahead(&folder.status_file(&task));
        folder.note(&task, &status);
        while chunk.next < chunk.range.end && go_on() {
            let stored = chunk.some(&go_on)?;
            counted.fetch_add(stored, Ordering::Relaxed);
            status.done = chunk.done();
            folder.note(&task, &status);
        }
        Ok(chunk.next == chunk.range.end)
    });
    status.end(&carried_out);
    folder.note(&task, &status);
    carried_out
}

/// A chunk under way.
struct Chunk<'a> {
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

impl<'a> Chunk<'a> {
    fn open(models: &'a Models, task: &Task, range: Range<u64>) -> Result<Self, Error> {
        let plan = &models.plan;
        let path = models.folder.shard(task);
        let shard = Store::open_alone(&path)?;
        let stored = shard.count()?;
        if stored % 2 == 1 || stored / 2 > range.end - range.start {
            return Err(Error::Failed(format!(
                "the shard {} holds {stored} samples, which are not runs of its chunk; remove the \
                 shard, and they are run again",
                path.display()
            )));
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
    fn some(&mut self, go_on: &impl Fn() -> bool) -> Result<u64, Error> {
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
        self.shard.together(|shard| -> Result<(), Error> {
            for (run, samples) in &runs {
                let id = self.experiment(shard, &mut experiments, run)?;
                let cell = key(self.plan, run);
                for (side, sample) in Side::BOTH.into_iter().zip(samples) {
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

    /// Returns the number of a run's experiment in the shard.
    fn experiment(
        &self,
        shard: &Store,
        known: &mut HashMap<(usize, usize), i64>,
        run: &Run,
    ) -> Result<i64, Error> {
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

/// Returns how far this machine's clock is ahead of that of the file system of a file
/// that was written just now.
fn clock_ahead(file: &Path) -> f64 {
    let written = std::fs::metadata(file).and_then(|file| file.modified());
    let Ok(written) = written else { return 0.0 };
    match SystemTime::now().duration_since(written) {
        Ok(ahead) => ahead.as_secs_f64(),
        Err(behind) => -behind.duration().as_secs_f64(),
    }
}
