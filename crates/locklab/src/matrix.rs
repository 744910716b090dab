//! The vocabulary of a matrix: what is asked, and what one run gives.
//!
//! Instruments fill [`Run`]; the judge and the reports read it. Nothing here
//! measures, judges or prints.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Where a figure comes from. Never lost on the way to a report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "source", content = "name")]
pub enum Provenance {
    /// Measured on the machine of this name.
    Hardware(String),
    /// Simulated on the machine model of this name.
    Simulation(String),
    /// Computed by the model of this name from a real execution.
    Model(String),
}

/// What the lengths of a matrix count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// n means n + 1 units of about 15 cycles on Ice Lake.
    Units,
    /// Nanoseconds, turned into units by a calibration at start.
    Nanoseconds,
}

/// What the critical section is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Work {
    /// Units of computation and copying, of the asked lengths.
    Units,
    /// One `fstat(2)` on a file of the thread's own.
    Fstat,
}

/// One place of a matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Point {
    /// Threads, or processes.
    pub threads: usize,
    /// Length of the critical section.
    pub critical: u64,
    /// Length of the non-critical section.
    pub non_critical: u64,
}

/// What is asked of an instrument, all cells of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spec {
    /// Name of the baseline lock.
    pub baseline: String,
    /// Name of the experiment lock.
    pub experiment: String,
    /// Numbers of threads.
    pub threads: Vec<usize>,
    /// Lengths of the critical section.
    pub critical: Vec<u64>,
    /// Lengths of the non-critical section.
    pub non_critical: Vec<u64>,
    /// What the lengths count.
    pub unit: Unit,
    /// What the critical section is.
    pub work: Work,
    /// Pairs a cell.
    pub pairs: u32,
    /// Measured wall time of one run, after its warm-up.
    pub run: Duration,
    /// Left out at the start of each run.
    pub warm_up: Duration,
    /// Of the coin and every other choice.
    pub seed: u64,
    /// CPUs to pin to, in this order; `None`: cores, then siblings, then
    /// other nodes.
    pub pin: Option<Vec<usize>>,
    /// Processes and shared memory instead of threads.
    pub processes: bool,
    /// Whether acquisition latency is measured.
    pub latency: bool,
    /// Whether the experiment is the baseline once more, to learn the bias.
    pub aa: bool,
    /// δ: what counts as flat, as a fraction; fixed before the first run.
    pub delta: f64,
}

/// Why a run does not count.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Invalid {
    /// It did not finish: a process died, a call failed. The pair is set
    /// aside and the others stand.
    Failed(String),
    /// The machine disturbed it: a clock that jumped, CPUs that something
    /// else had. Set aside like a failure, once repeating it did not help.
    Disturbed(String),
    /// The CPUs moved, around this run or between it and its pair's other
    /// run, and still did when the pair had been repeated. The pair is set
    /// aside and not held against the lock.
    PlacementMoved(String),
    /// The workload's own check failed, such as mutual exclusion. Never
    /// tolerated: nothing that this lock did counts.
    CheckFailed(String),
}

/// One run of one lock in one cell: a sample.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Seconds from the start of the matrix to the start of the run, where
    /// the instrument has a clock: what drift is drawn against.
    #[serde(default)]
    pub started: Option<f64>,
    /// Acquisitions a second, all threads.
    pub ops_per_s: f64,
    /// Acquisitions a second whose holder before was another thread.
    pub handoffs_per_s: f64,
    /// Acquisitions in a row by one owner: mean length.
    pub streak_mean: f64,
    /// The longest such row.
    pub streak_max: u64,
    /// Acquisitions of each thread in the measured time.
    pub per_thread: Vec<u64>,
    /// Jain's index over the run: 1 is fair, 1/threads is one thread only.
    pub jain: f64,
    /// Least over greatest share of a thread over the run.
    pub min_over_max: f64,
    /// Jain's index over windows of 1 ms: median, where measured.
    pub jain_1ms: Option<f64>,
    /// Least over greatest share over windows of 1 ms: median.
    pub min_over_max_1ms: Option<f64>,
    /// Acquisition latency, when it was asked for.
    pub latency: Option<Latency>,
    /// Round trip of a cache line between the CPUs in use, before and after;
    /// `None` where there is but one CPU or one thread.
    pub round_trip: Option<RoundTrip>,
    /// Share of the measured time in which the threads had a CPU, over the
    /// most they could have had; below about 0.95, and without a lock that
    /// sleeps, something else ran. `None` where it cannot be known.
    #[serde(default)]
    pub cpu_share: Option<f64>,
    /// Why the run does not count, if it does not.
    pub invalid: Option<Invalid>,
}

/// Percentiles of the time from asking for the lock to holding it, in ns.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// Median.
    pub p50: u64,
    /// 99 %.
    pub p99: u64,
    /// 99.9 %.
    pub p999: u64,
    /// Longest.
    pub max: u64,
}

/// Cache-line round trip around a run, in ns, and the class it puts the run
/// in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RoundTrip {
    /// Median before the run.
    pub before: f64,
    /// Median after it.
    pub after: f64,
    /// Placement class: runs are only compared within one.
    pub class: String,
}

/// Two runs that belong together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunPair {
    /// Number of the pair in its cell.
    pub index: u32,
    /// Whether the coin let the baseline go first.
    pub baseline_first: bool,
    /// The baseline's run.
    pub baseline: Run,
    /// The experiment's run.
    pub experiment: Run,
}

/// All that was measured in one cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// Which.
    pub point: Point,
    /// More threads than CPUs.
    pub oversubscribed: bool,
    /// b of this cell: the bias that an earlier A/A run of the same set-up
    /// and baseline measured, as a fraction.
    #[serde(default)]
    pub bias_band: Option<f64>,
    /// The pairs that were run, in their order. A pair that was repeated
    /// because its placement moved is not here unless all its repeats moved
    /// too; then it says so in `invalid`.
    pub pairs: Vec<RunPair>,
}

/// A whole matrix as an instrument leaves it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// What was asked.
    pub spec: Spec,
    /// Where every figure of it comes from.
    pub provenance: Provenance,
    /// Facts about the machine and the set-up, in the order of printing.
    pub environment: Vec<(String, String)>,
    /// What a reader must know before believing the figures.
    pub caveats: Vec<String>,
    /// The cells, ordered by non-critical length, threads, critical length.
    pub cells: Vec<Cell>,
    /// Set when the work was interrupted: what is missing.
    pub interrupted: Option<String>,
}
