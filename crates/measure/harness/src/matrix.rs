//! The vocabulary of a matrix: the metrics of one run of threads that share a
//! lock, by the names that stores, reports and other tools use.
//!
//! Every backend with threads, critical and non-critical lengths fills
//! these. Nothing here measures.

use crate::experiment::{Metric, Role, Source, Summary};
use locklab_document::number;
use locklab_judge::Direction;
use locklab_workload::{Use, Waits};

/// The kind of comparison, in files, JSON and the store.
pub const KIND: &str = "matrix";

/// Acquisitions a second of all threads: the primary metric.
pub const OPS: &str = "ops_per_s";
/// Acquisitions a second whose previous holder was another thread.
pub const HANDOFFS: &str = "handoffs_per_s";
/// Acquisitions a second at equal share: those of the thread with the fewest, times the
/// threads. Over windows of 1 ms where a backend has them, else over the run, so
/// that a lock which one thread keeps has few.
pub const EQUAL_SHARE: &str = "equal_share_per_s";
/// Jain's index over the run: 1 is fair, 1/threads is one thread only.
pub const JAIN: &str = "jain";
/// Holds the same over windows of 1 ms.
pub const JAIN_1MS: &str = "jain_1ms";
/// Acquisitions of the thread with the fewest over those of the one with most.
pub const MIN_OVER_MAX: &str = "min_over_max";
/// Holds the same over windows of 1 ms.
pub const MIN_OVER_MAX_1MS: &str = "min_over_max_1ms";
/// Acquisitions by one thread in a row, on average.
pub const STREAK_MEAN: &str = "streak_mean";
/// Acquisitions by one thread in a row, at most.
pub const STREAK_MAX: &str = "streak_max";
/// CPU time of the threads over the time that they could have had.
pub const CPU_SHARE: &str = "cpu_share";
/// CPU time of all threads for each operation, in ns: what a spin takes from others.
pub const CPU_NS: &str = "cpu_ns";
/// Quantiles of the acquisition latency, in ns.
pub const LATENCY_P50: &str = "latency_p50";
/// The 99th percentile.
pub const LATENCY_P99: &str = "latency_p99";
/// The 99.9th percentile.
pub const LATENCY_P999: &str = "latency_p999";
/// The longest of one run, in ns.
pub const LATENCY_MAX: &str = "latency_max";

/// Holds the same of acquisitions that read and of those that write, where there are
/// both.
pub const READ_P50: &str = "read_latency_p50";
/// The 99th percentile of those that read.
pub const READ_P99: &str = "read_latency_p99";
/// Their 99.9th.
pub const READ_P999: &str = "read_latency_p999";
/// The part of them that waited for as long as ten acquisitions by every thread take
/// ([`locklab_workload::starving`]).
pub const READ_STARVED: &str = "read_starved";
/// The median of those that write.
pub const WRITE_P50: &str = "write_latency_p50";
/// Their 99th percentile.
pub const WRITE_P99: &str = "write_latency_p99";
/// Their 99.9th.
pub const WRITE_P999: &str = "write_latency_p999";
/// The part of them that was starved, as of those that read.
pub const WRITE_STARVED: &str = "write_starved";

/// All that is known of a metric of a matrix, beside its values: a new metric
/// is one entry of [`METRICS`], and a value from each backend that has it.
#[derive(Clone, Copy)]
pub(crate) struct MetricKind {
    /// The name in stores, JSON and other tools.
    pub(crate) name: &'static str,
    unit: &'static str,
    better: Direction,
    /// Its part in the comparison, where several threads share the lock.
    role: Role,
    summary: Summary,
    /// The waits that must have been asked for.
    waits: Waits,
    /// The title in a table of every figure.
    pub(crate) title: &'static str,
    /// A value in that table and in the text.
    pub(crate) format: fn(f64) -> String,
    /// The table of the text that shows it, if one does.
    pub(crate) text: InText,
}

/// The table of a report in text that shows a metric.
#[derive(Clone, Copy)]
pub(crate) enum InText {
    /// None.
    No,
    /// Shows handoffs or fairness of both sides under this title and in columns
    /// of this width; of several cells the median.
    Median(&'static str, usize),
    /// Shows the same, and of several cells the worst.
    Worst(&'static str, usize),
    /// Shows acquisition latency under this title.
    Latency(&'static str),
    /// Shows the latency of readers and of writers under this title.
    ByUse(Use, &'static str),
}

/// Returns a metric that describes, of which more is better, in no table of the text.
const fn described(name: &'static str, title: &'static str) -> MetricKind {
    MetricKind {
        name,
        unit: "",
        better: Direction::HigherIsBetter,
        role: Role::Descriptive,
        summary: Summary::Median,
        waits: Waits::None,
        title,
        format: number::short,
        text: InText::No,
    }
}

/// Returns a quantile of acquisition latency, which is judged over the blocks.
const fn quantile(name: &'static str, title: &'static str, short: &'static str) -> MetricKind {
    MetricKind {
        unit: "ns",
        better: Direction::LowerIsBetter,
        role: Role::Screening,
        waits: Waits::All,
        text: InText::Latency(short),
        ..described(name, title)
    }
}

/// Returns a quantile of the latency of readers or of writers.
const fn quantile_of(
    to: Use,
    name: &'static str,
    title: &'static str,
    short: &'static str,
) -> MetricKind {
    MetricKind {
        waits: Waits::ByUse,
        text: InText::ByUse(to, short),
        ..quantile(name, title, short)
    }
}

/// Returns the part of readers or of writers that was starved.
const fn starved(to: Use, name: &'static str, title: &'static str) -> MetricKind {
    MetricKind {
        unit: "",
        role: Role::Descriptive,
        format: number::share,
        ..quantile_of(to, name, title, "starved")
    }
}

/// Every metric, in the order in which a cell has them.
pub(crate) const METRICS: [MetricKind; 23] = [
    MetricKind {
        unit: "/s",
        role: Role::Primary,
        ..described(OPS, "operations/s")
    },
    quantile(LATENCY_P50, LATENCY_P50, "p50"),
    quantile(LATENCY_P99, "p99 [ns]", "p99"),
    quantile(LATENCY_P999, "p99.9 [ns]", "p99.9"),
    MetricKind {
        unit: "/s",
        role: Role::Screening,
        text: InText::Median("handoffs/s", 6),
        ..described(HANDOFFS, "handoffs/s")
    },
    MetricKind {
        unit: "/s",
        role: Role::Screening,
        text: InText::Median("equal/s", 6),
        ..described(EQUAL_SHARE, "operations/s at equal share")
    },
    MetricKind {
        role: Role::Screening,
        format: number::share,
        text: InText::Worst("Jain", 5),
        ..described(JAIN, "Jain")
    },
    MetricKind {
        format: number::share,
        ..described(MIN_OVER_MAX, "min/max")
    },
    MetricKind {
        format: number::share,
        ..described(JAIN_1MS, "Jain, 1 ms")
    },
    MetricKind {
        format: number::share,
        ..described(MIN_OVER_MAX_1MS, "min/max, 1 ms")
    },
    MetricKind {
        better: Direction::LowerIsBetter,
        text: InText::Median("streak", 5),
        ..described(STREAK_MEAN, "streak, mean")
    },
    MetricKind {
        better: Direction::LowerIsBetter,
        summary: Summary::Greatest,
        ..described(STREAK_MAX, "streak, longest")
    },
    described(CPU_SHARE, CPU_SHARE),
    MetricKind {
        unit: "ns",
        better: Direction::LowerIsBetter,
        ..described(CPU_NS, "CPU time [ns]")
    },
    MetricKind {
        role: Role::Descriptive,
        summary: Summary::Greatest,
        ..quantile(LATENCY_MAX, LATENCY_MAX, "max")
    },
    quantile_of(Use::Read, READ_P50, "readers' p50 [ns]", "p50"),
    quantile_of(Use::Read, READ_P99, "readers' p99 [ns]", "p99"),
    quantile_of(Use::Read, READ_P999, "readers' p99.9 [ns]", "p99.9"),
    starved(Use::Read, READ_STARVED, "readers starved"),
    quantile_of(Use::Write, WRITE_P50, "writers' p50 [ns]", "p50"),
    quantile_of(Use::Write, WRITE_P99, "writers' p99 [ns]", "p99"),
    quantile_of(Use::Write, WRITE_P999, "writers' p99.9 [ns]", "p99.9"),
    starved(Use::Write, WRITE_STARVED, "writers starved"),
];

impl MetricKind {
    fn metric(&self, threads: usize, source: Source) -> Metric {
        // One thread makes no handoffs and is fair.
        let role = match self.role {
            Role::Screening if threads <= 1 && self.waits == Waits::None => Role::Descriptive,
            role => role,
        };
        Metric {
            name: self.name.into(),
            unit: self.unit.into(),
            direction: self.better,
            role,
            source,
            summary: self.summary,
            at: None,
        }
    }
}

/// Returns the metrics of a cell with `threads` threads; acquisition latency only of the
/// waits that were asked for.
#[must_use]
pub fn metrics(threads: usize, waits: Waits, source: Source) -> Vec<Metric> {
    let kinds = METRICS.iter().filter(|kind| kind.waits <= waits);
    kinds.map(|kind| kind.metric(threads, source)).collect()
}

/// Returns Jain's index (Jain, Chiu and Hawe 1984): (Σx)² / (n Σx²). It is 1 if nothing
/// was done: no thread got more than another.
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

/// Returns the least share over the greatest; 1 if nothing was done.
#[must_use]
pub fn min_over_max(shares: &[u64]) -> f64 {
    match (shares.iter().min(), shares.iter().max()) {
        (Some(min), Some(max)) if *max > 0 => *min as f64 / *max as f64,
        _ => 1.0,
    }
}

/// Returns how often all threads together would have had the lock, had each had it as
/// often as the one with the fewest.
#[must_use]
pub fn at_equal_share(shares: &[u64]) -> u64 {
    shares
        .iter()
        .min()
        .map_or(0, |least| least * shares.len() as u64)
}

/// Returns the share of acquisitions that follow one of the same thread, from the mean of
/// those in a row.
#[must_use]
pub fn kept(streak_mean: f64) -> f64 {
    1.0 - 1.0 / streak_mean.max(1.0)
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
        assert_eq!(at_equal_share(&[5, 3, 9]), 9);
        assert_eq!(at_equal_share(&[7, 0]), 0);
        assert_eq!((kept(0.5), kept(1.0), kept(4.0)), (0.0, 0.0, 0.75));
    }
}
