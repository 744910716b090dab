//! The plan of a sweep: it numbers the runs, and computes the run of a number
//! instead of keeping a list.
//!
//! It is the product of machines, workloads, cells, machines drawn from a band,
//! seeds and pairs of locks, minus the exclusions. It holds one entry for each
//! cell, so a million runs take a few megabytes. A file gives the same plan on
//! every machine.
//!
//! Runs that differ only in their locks have consecutive numbers, so that a task
//! simulates the baseline once for all of them.

use crate::file::{Place, SweepFile};
use locklab_host::error::Error;
use locklab_locks::catalogue;
use locklab_modelled::Spec;
use locklab_sim::{Machine, Stop, can_be_simulated, current_name};
use locklab_workload::{Place as CellPlace, Work};
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::Arc;

/// Two locks.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LockPair {
    /// The lock that the other is compared with.
    pub baseline: String,
    /// The lock that is compared with the baseline.
    pub experiment: String,
}

/// One workload on one machine.
#[derive(Clone, Debug)]
pub struct Block {
    /// Index of the machine in the plan.
    pub machine: usize,
    /// Index of the workload in the file.
    pub workload: usize,
    /// Every cell (threads, critical, non-critical length), in the order of
    /// `locklab matrix`.
    pub places: Vec<CellPlace>,
    threads: Vec<usize>,
}

/// One cell of a block, with the pairs of locks that are run there.
#[derive(Clone, Copy, Debug)]
struct Point {
    block: u32,
    cell: u32,
    /// Index of its list of pairs in `allowed`.
    pairs: u32,
    /// Number of runs before it.
    first: u64,
}

/// One run: two locks in one cell with one seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Run {
    /// Index of the block in the plan.
    pub block: usize,
    /// Index of the cell in the block.
    pub cell: usize,
    /// Number of the replicate, which decides the seed and the machine of the
    /// band; also the number of the pair of samples in its cell.
    pub replicate: u32,
    /// Index of the pair of locks in the plan.
    pub pair: usize,
}

/// All runs of a sweep.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The file of the sweep.
    pub file: SweepFile,
    /// The machines, in the order of the file.
    pub machines: Vec<Machine>,
    /// The pairs of locks, in the order of the file.
    pub pairs: Vec<LockPair>,
    /// Every workload on every machine.
    pub blocks: Vec<Block>,
    /// Sentences about numbers of threads that some machines do not have.
    pub notes: Vec<String>,
    points: Vec<Point>,
    allowed: Vec<Arc<[u16]>>,
    runs: u64,
}

impl Plan {
    /// Returns the plan of a file on these machines.
    ///
    /// # Errors
    /// There is no machine, a lock does not exist, a machine cannot run a
    /// workload, no run is left, or an exclusion leaves out nothing.
    pub fn new(file: SweepFile, machines: Vec<Machine>) -> Result<Self, Error> {
        if machines.is_empty() {
            return Err(Error::Usage(
                "the sweep names no machine; give machines = [\"all\"], or names of 'locklab \
                 machine list'"
                    .into(),
            ));
        }
        let pairs = lock_pairs(&file, can_be_simulated)?;
        let mut plan = Self {
            file,
            machines,
            pairs,
            blocks: Vec::new(),
            notes: Vec::new(),
            points: Vec::new(),
            allowed: Vec::new(),
            runs: 0,
        };
        plan.lay_out()?;
        Ok(plan)
    }

    fn lay_out(&mut self) -> Result<(), Error> {
        let mut used = vec![false; self.file.exclusions.len()];
        let mut known: HashMap<Vec<u16>, u32> = HashMap::new();
        let mut too_small: BTreeMap<usize, Vec<String>> = BTreeMap::new();
        for (number, machine) in self.machines.iter().enumerate() {
            let cpus = machine.cpus();
            for (workload, asked) in self.file.workloads.iter().enumerate() {
                let mut threads: Vec<usize> = Vec::new();
                for asked in &asked.threads {
                    match (asked.on(cpus), asked) {
                        (Some(n), _) if threads.contains(&n) => {}
                        (Some(n), _) => threads.push(n),
                        (None, crate::file::Threads::Number(n)) => {
                            let machines = too_small.entry(*n).or_default();
                            if machines.last() != Some(&machine.name) {
                                machines.push(machine.name.clone());
                            }
                        }
                        (None, _) => {}
                    }
                }
                threads.sort_unstable();
                let mut block = Block {
                    machine: number,
                    workload,
                    places: Vec::new(),
                    threads,
                };
                let spec = self.spec(&block, &self.pairs[0]);
                let of_workload = |what| format!("workload {}: {what}", workload + 1);
                spec.check(machine).map_err(|e| e.reworded(of_workload))?;
                block.places = spec.cells.places();
                for (cell, place) in block.places.iter().enumerate() {
                    let pairs = allowed(
                        &self.file,
                        machine,
                        asked.work,
                        *place,
                        &self.pairs,
                        &mut used,
                    );
                    if pairs.is_empty() {
                        continue;
                    }
                    let count = pairs.len() as u64;
                    let list = *known.entry(pairs).or_insert_with_key(|pairs| {
                        self.allowed.push(pairs.as_slice().into());
                        (self.allowed.len() - 1) as u32
                    });
                    self.points.push(Point {
                        block: self.blocks.len() as u32,
                        cell: cell as u32,
                        pairs: list,
                        first: self.runs,
                    });
                    self.runs += count * u64::from(self.replicates());
                }
                self.blocks.push(block);
            }
        }
        if let Some(unused) = used.iter().position(|used| !used) {
            return Err(Error::Usage(format!(
                "exclusion {} leaves out nothing: no run has all that it names",
                unused + 1
            )));
        }
        if self.runs == 0 {
            return Err(Error::Usage(
                "the exclusions leave no run; take one of them away".into(),
            ));
        }
        self.notes = too_small
            .into_iter()
            .map(|(threads, machines)| {
                format!("{threads} threads are left out on {}.", machines.join(", "))
            })
            .collect();
        Ok(())
    }

    /// Returns the number of runs.
    #[must_use]
    pub fn runs(&self) -> u64 {
        self.runs
    }

    /// Returns the number of cells, over all machines.
    #[must_use]
    pub fn cells(&self) -> usize {
        self.points.len()
    }

    /// Returns the number of runs of one pair of locks in one cell: machines of the band
    /// times seeds.
    #[must_use]
    pub fn replicates(&self) -> u32 {
        self.file.bands.saturating_mul(self.file.seeds)
    }

    /// Returns the run of a number.
    ///
    /// # Panics
    /// If `number` is not below [`Plan::runs`].
    #[must_use]
    pub fn run(&self, number: u64) -> Run {
        assert!(number < self.runs, "run {number} of {}", self.runs);
        let at = self.points.partition_point(|point| point.first <= number) - 1;
        let point = self.points[at];
        let pairs = &self.allowed[point.pairs as usize];
        let within = number - point.first;
        let count = pairs.len() as u64;
        Run {
            block: point.block as usize,
            cell: point.cell as usize,
            replicate: (within / count) as u32,
            pair: pairs[(within % count) as usize].into(),
        }
    }

    /// Returns the runs of these numbers, in order.
    pub fn runs_of(&self, numbers: Range<u64>) -> impl Iterator<Item = (u64, Run)> + '_ {
        numbers.map(|number| (number, self.run(number)))
    }

    /// Returns the specification for the simulator of one pair of locks in one block.
    #[must_use]
    pub fn spec(&self, block: &Block, pair: &LockPair) -> Spec {
        let workload = &self.file.workloads[block.workload];
        Spec {
            acquisitions: workload.acquisitions,
            physical: workload.physical,
            ..Spec::new(
                &pair.baseline,
                &pair.experiment,
                workload.cells(block.threads.clone()),
            )
        }
    }

    /// Returns the cells of every block and pair of locks, which a store keeps as one
    /// experiment.
    #[must_use]
    pub fn comparisons(&self) -> BTreeMap<(usize, usize), Vec<usize>> {
        let mut all: BTreeMap<(usize, usize), Vec<usize>> = BTreeMap::new();
        for point in &self.points {
            for pair in self.allowed[point.pairs as usize].iter() {
                all.entry((point.block as usize, usize::from(*pair)))
                    .or_default()
                    .push(point.cell as usize);
            }
        }
        all
    }

    /// Cuts the runs into `chunks` chunks of about equal cost, or into fewer if
    /// there are fewer runs. Returns the first run of each chunk, then the number
    /// of runs.
    #[must_use]
    pub fn cut(&self, chunks: u64) -> Vec<u64> {
        let chunks = chunks.clamp(1, self.runs);
        let costs = |point: &Point| {
            let block = &self.blocks[point.block as usize];
            let machine = &self.machines[block.machine];
            let spec = self.spec(block, &self.pairs[0]);
            cost(&spec, machine, block.places[point.cell as usize])
        };
        let costs: Vec<f64> = self.points.iter().map(costs).collect();
        let ends = |at: usize| self.points.get(at + 1).map_or(self.runs, |next| next.first);
        let of = |at: usize| costs[at] * (ends(at) - self.points[at].first) as f64;
        let total: f64 = (0..costs.len()).map(of).sum();
        let mut cuts = vec![0];
        let (mut at, mut before) = (0, 0.0);
        for chunk in 1..chunks {
            let target = total * chunk as f64 / chunks as f64;
            while at + 1 < costs.len() && before + of(at) <= target {
                before += of(at);
                at += 1;
            }
            let within = ((target - before) / costs[at]).max(0.0).round() as u64;
            let cut = (self.points[at].first + within).min(self.runs - 1);
            if cuts.last().is_some_and(|last| *last < cut) {
                cuts.push(cut);
            }
        }
        cuts.push(self.runs);
        cuts
    }

    /// Returns the estimated cost of a run, in an arbitrary unit.
    pub(crate) fn cost_of(&self, run: &Run) -> f64 {
        let block = &self.blocks[run.block];
        let spec = self.spec(block, &self.pairs[run.pair]);
        cost(&spec, &self.machines[block.machine], block.places[run.cell])
    }
}

/// Returns the estimated cost of a cell: its acquisitions, each of which costs more with
/// more threads. A run with more threads than CPUs is limited by simulated time
/// and has a fixed, high cost.
fn cost(spec: &Spec, machine: &Machine, place: CellPlace) -> f64 {
    let threads = usize::try_from(place[0]).unwrap_or(usize::MAX);
    if spec.is_oversubscribed(machine, threads) {
        return 1e6;
    }
    let most = match spec.stop(machine, threads) {
        Stop::Acquisitions(count) | Stop::Precise { most: count, .. } => count,
        Stop::Milliseconds(_) | Stop::Slices { .. } | Stop::Each(_) | Stop::Round(_) => return 1e6,
    };
    most as f64 * (10.0 + threads as f64)
}

/// Returns the pairs of locks of a file; `can` says whether a lock can be run.
///
/// # Errors
/// A lock cannot be run, or the file has no pair or too many.
pub(crate) fn lock_pairs(
    file: &SweepFile,
    can: impl Fn(&str) -> bool,
) -> Result<Vec<LockPair>, Error> {
    let all = || catalogue::ALL.iter().map(|entry| entry.info.name);
    let mut pairs: Vec<LockPair> = Vec::new();
    for baseline in file.baseline.names() {
        let baseline = current_name(baseline);
        for asked in file.experiment.names() {
            let names: Vec<String> = if asked == "all" {
                all().filter(|name| can(name)).map(str::to_owned).collect()
            } else {
                vec![current_name(asked).to_owned()]
            };
            for experiment in names {
                if experiment == baseline && asked == "all" {
                    continue;
                }
                let pair = LockPair {
                    baseline: baseline.to_owned(),
                    experiment,
                };
                if !pairs.contains(&pair) {
                    pairs.push(pair);
                }
            }
        }
    }
    for pair in &pairs {
        for name in [&pair.baseline, &pair.experiment] {
            if !can(name) {
                return Err(Error::Usage(format!(
                    "there is no lock called '{name}' that a sweep can run; 'locklab locks' lists \
                     them all"
                )));
            }
        }
    }
    if pairs.is_empty() {
        return Err(Error::Usage(
            "a sweep of no locks shows nothing; name a baseline and an experiment".into(),
        ));
    }
    if pairs.len() > usize::from(u16::MAX) {
        return Err(Error::Usage(format!(
            "{} pairs of locks are more than the {} that a sweep can have; split the file",
            pairs.len(),
            u16::MAX
        )));
    }
    Ok(pairs)
}

/// Returns the pairs of locks that no exclusion leaves out of a cell. Marks the exclusions
/// that left out a pair in `used`.
fn allowed(
    file: &SweepFile,
    machine: &Machine,
    work: Work,
    place: CellPlace,
    pairs: &[LockPair],
    used: &mut [bool],
) -> Vec<u16> {
    let mut allowed = Vec::with_capacity(pairs.len());
    for (number, pair) in pairs.iter().enumerate() {
        let at = Place {
            machine: &machine.name,
            baseline: &pair.baseline,
            experiment: &pair.experiment,
            work,
            place,
        };
        let mut out = false;
        for (rule, used) in file.exclusions.iter().zip(used.iter_mut()) {
            let matches = rule.matches(&at);
            *used |= matches;
            out |= matches;
        }
        if !out {
            allowed.push(number as u16);
        }
    }
    allowed
}

#[cfg(test)]
mod tests;
