//! The outcome of a simulation. Times are simulated.

#[cfg(doc)]
use crate::distance::Distance;
use serde::{Deserialize, Serialize};

/// Percentiles of the time to acquire the lock, in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// Half of the acquisitions took this long at most.
    pub p50: f64,
    /// 99th percentile.
    pub p99: f64,
    /// 99.9th percentile.
    pub p999: f64,
    /// The longest of all.
    pub max: f64,
}

/// The waits of readers or of writers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WaitsOf {
    /// Time to acquire.
    pub latency: Latency,
    /// The part of the acquisitions that waited for as long as ten acquisitions by
    /// every thread take.
    pub starved: f64,
}

/// The waits of readers and of writers, apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ByUse {
    /// The waits of readers.
    pub readers: WaitsOf,
    /// The waits of writers.
    pub writers: WaitsOf,
}

/// The outcome of a simulation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Operations per second of simulated time (with
    /// [`crate::Stop::Each`]: by the mean of the threads' times). An operation
    /// of the matrix is one acquisition; of `xfs-create`, one file.
    pub ops_per_s: f64,
    /// Acquisitions that were counted.
    pub acquisitions: u64,
    /// Acquisitions before counting began.
    pub warmup: u64,
    /// Half the width of the 95 % interval of the rate within this run, by
    /// batch means, as a fraction of the rate; none if the run was too short.
    /// Other seeds may differ by more.
    pub half_width: Option<f64>,
    /// Says whether the rate no longer drifted while it was counted; none if the run was
    /// too short to say.
    pub steady: Option<bool>,
    /// Simulated seconds that were counted.
    pub seconds: f64,
    /// Operations by thread.
    pub ops_by_thread: Vec<u64>,
    /// Jain's index of those: 1 if all are equal.
    pub jain: f64,
    /// Handoffs of writers by distance, from [`Distance::Cpu`] (the same CPU again) to
    /// [`Distance::Remote`].
    pub handoffs: [u64; 5],
    /// Acquisitions in a row by the same CPU, mean, of those that write. 0 if
    /// there was none.
    pub mean_streak: f64,
    /// Acquisitions in a row by one CPU, at most.
    pub longest_streak: u64,
    /// The most readers that held one lock at once; 0 where none shares it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub most_readers: u64,
    /// Time to acquire.
    pub latency: Latency,
    /// Holds the same of readers and of writers, where there are both. A wait that had
    /// not ended at the end is in it if it was starved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by_use: Option<ByUse>,
    /// Lines that moved between caches per acquisition (an operation's
    /// other lines included).
    pub lines_moved: f64,
    /// Mean time an acquisition waited for cache lines, ns.
    pub line_wait_ns: f64,
    /// Mean time it waited for the lock apart from that, ns.
    pub lock_wait_ns: f64,
    /// The longest wait, finished or not, ns.
    pub longest_wait_ns: f64,
    /// The thread of the longest wait.
    pub longest_waiter: usize,
    /// Threads that, in one wait while they had a CPU, saw others acquire the
    /// lock more than ten times as often as there are threads. A lock
    /// in order of arrival lets each of them pass once at most.
    pub starved: Vec<usize>,
    /// CPU time of all threads for each operation, ns.
    #[serde(default)]
    pub cpu_ns: f64,
    /// Fraction of the time in which ready virtual CPUs did not run.
    pub steal: f64,
    /// Hash of every access: the same for the same scenario and seed.
    pub trace_hash: u64,
    /// Memory accesses simulated, warm-up included.
    pub accesses: u64,
    /// Events of the engine, warm-up included.
    pub events: u64,
}

impl Outcome {
    /// Returns all operations per second of the time until the last thread ended: the rate of
    /// fixed work, by the clock of who waits for all of it.
    #[must_use]
    pub fn ops_per_s_until_the_last(&self) -> f64 {
        self.ops_by_thread.iter().sum::<u64>() as f64 / self.seconds
    }

    /// Returns the hash of all accesses of several simulations, in their order.
    #[must_use]
    pub fn hash_of_all(outcomes: &[Self]) -> u64 {
        let hashes = outcomes.iter().map(|outcome| outcome.trace_hash);
        hashes.fold(0, |all: u64, one| all.rotate_left(5) ^ one)
    }
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}
