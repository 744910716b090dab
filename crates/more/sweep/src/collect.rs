//! Collecting: all shards of a sweep are merged into one store that has each run
//! exactly once.
//!
//! First every shard is checked: each row must be the one that the plan has in its
//! place. Then the rows are copied unchanged, in the order of the plan, so the
//! store is the same wherever the runs were made. Missing runs are named, and
//! the others are merged all the same. A collector that is killed leaves the
//! earlier store in place.

use crate::chunk::COMMAND;
use crate::comparison::Comparison;
use crate::models::Models;
use crate::plan::{Plan, Run};
use crate::task::{Missing, Task, missing_units};
use locklab_host::error::Error;
use locklab_lab::experiment::Invalid;
use locklab_lab::matrix::{JAIN, LATENCY_P99, OPS};
use locklab_lab::progress::Progress;
use locklab_lab::store::{Store, StoredRow};
use serde::Deserialize;
use std::collections::{BTreeMap, HashMap, HashSet};

/// The figures of one run that the summary uses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Figures {
    /// The figures of the baseline.
    pub baseline: OfRun,
    /// The figures of the experiment.
    pub experiment: OfRun,
}

impl Default for Figures {
    fn default() -> Self {
        Self {
            baseline: [f64::NAN; 3],
            experiment: [f64::NAN; 3],
        }
    }
}

/// Operations a second, Jain's index, and the 99th percentile of the wait in
/// ns, where that was asked for; NaN where there is none.
pub(crate) type OfRun = [f64; 3];

/// Describes what was collected.
#[derive(Clone, Debug, Default)]
pub(crate) struct Collected {
    /// The figures of each run, by its number; NaN if it is missing.
    pub figures: Vec<Figures>,
    /// The runs that are missing.
    pub missing: Vec<Missing>,
    /// Failed samples by machine and lock: their number, and the reason of the
    /// last.
    pub failed: BTreeMap<(String, String), (u64, String)>,
    /// A sentence for each node whose clock differs from the folder's.
    pub clocks: Vec<String>,
}

impl Collected {
    /// Returns the number of missing runs.
    #[must_use]
    pub(crate) fn missing_runs(&self) -> u64 {
        missing_units(&self.missing)
    }
}

/// Clocks that differ by more than this are reported, in seconds.
const APART: f64 = 5.0;

/// Checks all shards, and merges them into the store of the folder.
///
/// # Errors
/// The store cannot be written. The shards stay as they are.
pub(crate) fn collect(models: &Models, progress: &Progress) -> Result<Collected, Error> {
    let chunks = models.chunks() as u64;
    let plan = &models.plan;
    let expected = Expected::new(plan)?;
    let mut collected = Collected {
        figures: vec![Figures::default(); usize::try_from(plan.runs()).unwrap_or(usize::MAX)],
        ..Collected::default()
    };
    let mut stored: Vec<u64> = Vec::with_capacity(models.chunks());
    for chunk in 0..models.chunks() {
        progress.set(chunk as u64, 2 * chunks, "shards checked");
        let (runs, task) = (models.chunk(chunk)?, Task::Chunk(chunk));
        let (count, why) = match check_shard(models, chunk, &expected, &mut collected) {
            Ok(count) => (count, None),
            Err(why) => {
                for number in runs.clone() {
                    collected.figures[number as usize] = Figures::default();
                }
                (0, Some(why.to_string()))
            }
        };
        if runs.start + count < runs.end {
            collected.missing.push(Missing {
                why: why.unwrap_or_else(|| models.folder.why_missing(&task)),
                units: runs.start + count..runs.end,
                task,
            });
        }
        stored.push(count);
    }
    collected.clocks = clocks(models);
    let merged = merge(models, &expected, &stored, &collected.missing, progress);
    models.folder.replace_store(merged)?;
    Ok(collected)
}

/// Describes what each row of a shard is checked against.
struct Expected<'a> {
    plan: &'a Plan,
    /// Cells of each comparison, by block and pair of locks.
    comparisons: BTreeMap<(usize, usize), Vec<usize>>,
    by_key: HashMap<String, (usize, usize)>,
    /// Keys of cells as JSON, by block and cell.
    cells: Vec<Vec<String>>,
}

impl<'a> Expected<'a> {
    fn new(plan: &'a Plan) -> Result<Self, Error> {
        let comparisons = plan.comparisons();
        let mut by_key = HashMap::new();
        for &(block, pair) in comparisons.keys() {
            // A key does not depend on the cells, of which there may be many.
            let key = Comparison::new(plan, block, pair, &[])?.key;
            by_key.insert(key, (block, pair));
        }
        let cell = |block: usize, cell: usize| {
            let run = Run {
                block,
                cell,
                replicate: 0,
                pair: 0,
            };
            serde_json::to_string(&crate::comparison::key(plan, &run)).unwrap_or_default()
        };
        let cells = (0..plan.blocks.len())
            .map(|block| {
                let count = plan.blocks[block].places.len();
                (0..count).map(|number| cell(block, number)).collect()
            })
            .collect();
        Ok(Self {
            plan,
            comparisons,
            by_key,
            cells,
        })
    }

    /// Returns whether a row is the sample of this side of this run.
    fn is(&self, row: &StoredRow<'_>, of: Option<&(usize, usize)>, run: &Run, side: &str) -> bool {
        of == Some(&(run.block, run.pair))
            && row.cell == self.cells[run.block][run.cell]
            && row.pair == i64::from(run.replicate)
            && row.side == side
            && row.state == "kept"
    }
}

/// The part of a sample that the summary uses.
#[derive(Deserialize)]
struct Read {
    values: HashMap<String, f64>,
    invalid: Option<Invalid>,
}

/// Checks a shard; returns the number of complete runs in it, from the first of
/// its chunk.
///
/// # Errors
/// The shard cannot be read, or a row is not the one that the plan has there.
fn check_shard(
    models: &Models,
    chunk: usize,
    expected: &Expected<'_>,
    collected: &mut Collected,
) -> Result<u64, Error> {
    let path = models.folder.shard(&Task::Chunk(chunk));
    if !path.exists() {
        return Ok(0);
    }
    let plan = expected.plan;
    let shard = Store::open_left(&path)?;
    let experiments: HashMap<i64, (usize, usize)> = shard
        .keys()?
        .into_iter()
        .filter_map(|(id, key)| Some((id, *expected.by_key.get(&key)?)))
        .collect();
    let runs = models.chunk(chunk)?;
    let mut samples = 0;
    let damaged = shard.each_row(None, |row| {
        let number = runs.start + samples / 2;
        let side = if samples % 2 == 0 {
            "baseline"
        } else {
            "experiment"
        };
        let wrong = |what: &str| {
            Error::Failed(format!(
                "sample {} of the shard {} {what}",
                samples + 1,
                path.display()
            ))
        };
        if number >= runs.end {
            return Err(wrong("is one too many"));
        }
        let run = plan.run(number);
        if !expected.is(row, experiments.get(&row.experiment), &run, side) {
            return Err(wrong("is not that of the run which the plan has there"));
        }
        let read: Read = serde_json::from_str(row.sample).map_err(|_| wrong("cannot be read"))?;
        let figures = &mut collected.figures[number as usize];
        let figure = |name: &str| read.values.get(name).copied().unwrap_or(f64::NAN);
        let both = [figure(OPS), figure(JAIN), figure(LATENCY_P99)];
        match side {
            "baseline" => figures.baseline = both,
            _ => figures.experiment = both,
        }
        if let Some(invalid) = &read.invalid {
            let pair = &plan.pairs[run.pair];
            let lock = match side {
                "baseline" => &pair.baseline,
                _ => &pair.experiment,
            };
            let machine = &plan.machines[plan.blocks[run.block].machine].name;
            let of = collected.failed.entry((machine.clone(), lock.clone()));
            let (count, why) = of.or_default();
            *count += 1;
            *why = invalid.why().to_owned();
        }
        samples += 1;
        Ok(())
    });
    let what = match damaged {
        Err(why) => why.to_string(),
        Ok(damaged) => match damaged.into_iter().next() {
            Some(row) => row,
            None if samples % 2 == 1 => {
                format!("the shard {} ends in the middle of a run", path.display())
            }
            None => return Ok(samples / 2),
        },
    };
    Err(Error::Failed(format!(
        "{what}; remove the shard, and its runs are run again"
    )))
}

/// Copies the rows of all shards into a new store, with the experiments in the
/// order of the plan.
fn merge(
    models: &Models,
    expected: &Expected<'_>,
    stored: &[u64],
    missing: &[Missing],
    progress: &Progress,
) -> Result<(), Error> {
    let mut short: BTreeMap<(usize, usize), u64> = BTreeMap::new();
    for runs in missing {
        for (_, run) in models.plan.runs_of(runs.units.clone()) {
            *short.entry((run.block, run.pair)).or_default() += 1;
        }
    }
    let chunks = stored.len() as u64;
    let store = models.folder.new_store()?;
    store.together(|store| -> Result<(), Error> {
        let mut numbers: HashMap<(usize, usize), i64> = HashMap::new();
        for (at, cells) in &expected.comparisons {
            let Comparison {
                key,
                mut experiment,
            } = Comparison::new(&models.plan, at.0, at.1, cells)?;
            experiment.interrupted = short
                .get(at)
                .map(|runs| format!("{runs} runs of the sweep are missing"));
            let id = store.begin(&key, COMMAND, &experiment)?;
            store.end(id, experiment.interrupted.is_none())?;
            numbers.insert(*at, id);
        }
        for (chunk, runs) in stored.iter().enumerate() {
            progress.set(chunks + chunk as u64, 2 * chunks, "shards merged");
            if *runs == 0 {
                continue;
            }
            let shard = Store::open_left(&models.folder.shard(&Task::Chunk(chunk)))?;
            let ids: HashMap<i64, i64> = shard
                .keys()?
                .into_iter()
                .filter_map(|(id, key)| Some((id, numbers[expected.by_key.get(&key)?])))
                .collect();
            let mut copied = 0;
            shard.each_row(None, |row| -> Result<(), locklab_host::error::Error> {
                // A task may have stored more runs since the check.
                if copied < 2 * runs {
                    store.append(ids[&row.experiment], row)?;
                    copied += 1;
                }
                Ok(())
            })?;
        }
        Ok(())
    })
}

/// Returns a sentence for each node whose clock differs from the folder's.
fn clocks(models: &Models) -> Vec<String> {
    let mut seen = HashSet::new();
    (0..models.chunks())
        .filter_map(|chunk| models.folder.status(&Task::Chunk(chunk)))
        .filter(|status| status.clock_ahead.abs() > APART)
        .filter(|status| seen.insert(status.node.clone()))
        .map(|status| {
            let (by, way) = (status.clock_ahead.abs(), status.clock_ahead > 0.0);
            format!(
                "The clock of {} is {by:.0} s {} of the folder's: no figure depends on it, but \
                 times in logs cannot be compared, and Slurm refuses nodes more than 5 minutes \
                 apart.",
                status.node,
                if way { "ahead" } else { "behind" }
            )
        })
        .collect()
}

#[cfg(test)]
mod tests;
