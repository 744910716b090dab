//! The vocabulary of a matrix: the metrics of one run of threads that share a
//! lock, by the names that stores, reports and other tools use.
//!
//! Every instrument with threads, critical and non-critical lengths fills
//! these. Nothing here measures.

use crate::experiment::{Metric, Role, Source, Summary};

/// The kind of comparison, in files, JSON and the store.
pub const KIND: &str = "matrix";

/// Acquisitions a second of all threads: the primary metric.
pub const OPS: &str = "ops_per_s";
/// Acquisitions a second whose previous holder was another thread.
pub const HANDOFFS: &str = "handoffs_per_s";
/// Jain's index over the run: 1 is fair, 1/threads is one thread only.
pub const JAIN: &str = "jain";

/// The quantiles of acquisition latency that are judged, each over the blocks:
/// title and metric.
pub const TAILS: [(&str, &str); 3] = [
    ("p50", "latency_p50"),
    ("p99", "latency_p99"),
    ("p99.9", "latency_p999"),
];

/// The metrics of a cell with `threads` threads; acquisition latency only where
/// it was requested. One thread makes no handoffs and is fair.
#[must_use]
pub fn metrics(threads: usize, latency: bool, source: Source) -> Vec<Metric> {
    let higher = |name: &str, unit: &str| Metric::higher(name, unit, source);
    let several = if threads > 1 {
        Role::Screening
    } else {
        Role::Descriptive
    };
    let mut metrics = vec![higher(OPS, "/s").with_role(Role::Primary)];
    if latency {
        metrics.extend(TAILS.map(|(_, name)| Metric::lower(name, "ns", source)));
    }
    metrics.extend([
        higher(HANDOFFS, "/s").with_role(several),
        higher(JAIN, "").with_role(several),
        higher("min_over_max", "").with_role(Role::Descriptive),
        higher("jain_1ms", "").with_role(Role::Descriptive),
        higher("min_over_max_1ms", "").with_role(Role::Descriptive),
        Metric::lower("streak_mean", "", source).with_role(Role::Descriptive),
        greatest(Metric::lower("streak_max", "", source)),
        higher("cpu_share", "").with_role(Role::Descriptive),
    ]);
    if latency {
        metrics.push(greatest(Metric::lower("latency_max", "ns", source)));
    }
    metrics
}

fn greatest(metric: Metric) -> Metric {
    Metric {
        summary: Summary::Greatest,
        role: Role::Descriptive,
        ..metric
    }
}

/// Jain, Chiu and Hawe 1984: (Σx)² / (n Σx²). 1 if nothing was done: no thread
/// got more than another.
#[must_use]
pub fn jain(shares: &[u64]) -> f64 {
    let sum: f64 = shares.iter().map(|x| *x as f64).sum();
    let squares: f64 = shares.iter().map(|x| (*x as f64).powi(2)).sum();
    if squares > 0.0 {
        sum * sum / (shares.len() as f64 * squares)
    } else {
        1.0
    }
}

/// The least share over the greatest; 1 if nothing was done.
#[must_use]
pub fn min_over_max(shares: &[u64]) -> f64 {
    match (shares.iter().min(), shares.iter().max()) {
        (Some(min), Some(max)) if *max > 0 => *min as f64 / *max as f64,
        _ => 1.0,
    }
}
