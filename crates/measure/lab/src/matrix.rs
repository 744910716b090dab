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
/// The same over windows of 1 ms.
pub const JAIN_1MS: &str = "jain_1ms";
/// Acquisitions of the thread with the fewest over those of the one with most.
pub const MIN_OVER_MAX: &str = "min_over_max";
/// The same over windows of 1 ms.
pub const MIN_OVER_MAX_1MS: &str = "min_over_max_1ms";
/// Acquisitions by one thread in a row, on average.
pub const STREAK_MEAN: &str = "streak_mean";
/// Acquisitions by one thread in a row, at most.
pub const STREAK_MAX: &str = "streak_max";
/// CPU time of the threads over the time that they could have had.
pub const CPU_SHARE: &str = "cpu_share";
/// Quantiles of the acquisition latency, in ns.
pub const LATENCY_P50: &str = "latency_p50";
/// The 99th percentile.
pub const LATENCY_P99: &str = "latency_p99";
/// The 99.9th percentile.
pub const LATENCY_P999: &str = "latency_p999";
/// The longest of one run, in ns.
pub const LATENCY_MAX: &str = "latency_max";

/// The quantiles of acquisition latency that are judged, each over the blocks:
/// title and metric.
pub const TAILS: [(&str, &str); 3] = [
    ("p50", LATENCY_P50),
    ("p99", LATENCY_P99),
    ("p99.9", LATENCY_P999),
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
        higher(MIN_OVER_MAX, "").with_role(Role::Descriptive),
        higher(JAIN_1MS, "").with_role(Role::Descriptive),
        higher(MIN_OVER_MAX_1MS, "").with_role(Role::Descriptive),
        Metric::lower(STREAK_MEAN, "", source).with_role(Role::Descriptive),
        greatest(Metric::lower(STREAK_MAX, "", source)),
        higher(CPU_SHARE, "").with_role(Role::Descriptive),
    ]);
    if latency {
        metrics.push(greatest(Metric::lower(LATENCY_MAX, "ns", source)));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fairness_figures_are_those_of_the_definition() {
        assert_eq!(jain(&[5, 5, 5, 5]), 1.0);
        assert_eq!(jain(&[7, 0, 0, 0]), 0.25);
        assert_eq!(jain(&[0, 0]), 1.0);
        assert_eq!(min_over_max(&[3, 6]), 0.5);
        assert_eq!(min_over_max(&[0, 0]), 1.0);
    }
}
