//! The matrix of a spinlock inside the kernel: threads, units of work with
//! the lock, units without, as in report 3.
//!
//! The guest runs every cell in one boot and reports the result of each; a cell
//! is judged over the boots. A thread has a CPU of its own, so cells with more
//! threads than the guest has CPUs are left out, which the report says.

use crate::lengths::Lengths;
use crate::outcome::Measured;
use locklab_document::{Column, Table, render};
use locklab_harness::experiment::{Key, Metric, Role, Source};
use locklab_harness::matrix::OPS;

/// A point of the matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// Threads that want the lock.
    pub threads: u64,
    /// Units under the lock.
    pub critical: u64,
    /// Units without the lock.
    pub non_critical: u64,
}

impl Point {
    /// Returns the name of its metric, acquisitions a second at this point: that of a
    /// matrix's metrics, and the point.
    #[must_use]
    pub fn metric(self) -> String {
        format!(
            "{OPS}@{}x{}x{}",
            self.threads, self.critical, self.non_critical
        )
    }
}

/// The result of one cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CellResult {
    /// Acquisitions of all threads.
    pub total: u64,
    /// Time by the guest's clock, in ns: instructions under TCG.
    pub ns: u64,
    /// Acquisitions of the slowest thread.
    pub least: u64,
    /// Acquisitions of the fastest thread.
    pub most: u64,
}

impl CellResult {
    /// Returns the acquisitions a second of the guest's clock.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.total as f64 * 1e9 / self.ns as f64
    }
}

/// Returns a metric for each cell of the matrix, each judged as a cell of a matrix is.
#[must_use]
pub fn metrics(lengths: &Lengths, vcpus: u64, source: Source) -> Vec<Metric> {
    let mut metrics = Vec::new();
    for &non_critical in &lengths.non_critical {
        for &threads in &lengths.threads(vcpus) {
            for &critical in &lengths.critical {
                let point = Point {
                    threads,
                    critical,
                    non_critical,
                };
                let count = usize::try_from(threads).unwrap_or(usize::MAX);
                metrics.push(Metric {
                    role: Role::Primary,
                    at: Some(Key::point(count, critical, non_critical)),
                    ..Metric::higher(&point.metric(), "/s", source)
                });
            }
        }
    }
    metrics
}

/// Returns the cells of a run, in the order of the plan.
#[must_use]
pub fn cells(measured: &Measured) -> Vec<(Point, CellResult)> {
    let mut cells: Vec<(Point, CellResult)> = measured
        .results
        .iter()
        .filter_map(|(key, value)| {
            let point = numbers(key.strip_prefix("cell-")?, '-')?;
            let [threads, critical, non_critical] = point[..] else {
                return None;
            };
            let [total, ns, least, most] = numbers(value, ' ')?[..] else {
                return None;
            };
            let point = Point {
                threads,
                critical,
                non_critical,
            };
            let result = CellResult {
                total,
                ns,
                least,
                most,
            };
            Some((point, result))
        })
        .collect();
    cells.sort_by_key(|(p, _)| (p.non_critical, p.threads, p.critical));
    cells
}

fn numbers(text: &str, between: char) -> Option<Vec<u64>> {
    text.split(between).map(|n| n.parse().ok()).collect()
}

/// Returns one run's cells as lines of text.
#[must_use]
pub fn table(measured: &Measured, unit: &str) -> String {
    let cells = cells(measured);
    if cells.is_empty() {
        return String::new();
    }
    let rows = cells.into_iter().map(|(point, done)| {
        vec![
            point.threads.to_string(),
            point.critical.to_string(),
            point.non_critical.to_string(),
            done.total.to_string(),
            format!("{:.1}", done.ns as f64 / done.total as f64),
            format!("{:.2}", done.least as f64 / done.most as f64),
        ]
    });
    let columns = vec![
        Column::new("Threads", 7),
        Column::new("Critical", 9),
        Column::new("Non-critical", 13),
        Column::new("Acquisitions", 13),
        Column::new("Each", 9),
        Column::new("Slow/fast", 10),
    ];
    render::table(&Table::new(columns, rows.collect()))
        + &format!(
            "Each: {unit} for an acquisition of any thread. Slow/fast:\n\
         acquisitions of the slowest thread over those of the fastest.\n"
        )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::sample;

    fn lengths(threads: &[u64]) -> Lengths {
        Lengths {
            threads: threads.to_vec(),
            critical: vec![0, 4],
            non_critical: vec![1],
        }
    }

    #[test]
    fn every_cell_with_a_cpu_for_each_thread_has_a_metric_of_its_own() {
        let metrics = metrics(&lengths(&[1, 2, 4]), 2, Source::Model);
        let names: Vec<&str> = metrics.iter().map(|m| m.name.as_str()).collect();
        assert_eq!(
            names,
            [
                "ops_per_s@1x0x1",
                "ops_per_s@1x4x1",
                "ops_per_s@2x0x1",
                "ops_per_s@2x4x1"
            ]
        );
        assert!(metrics.iter().all(|m| m.at.is_some()));
        assert!(
            lengths(&[1, 2, 4])
                .left_out(2)
                .unwrap()
                .contains("4 threads")
        );
    }

    #[test]
    fn what_a_guest_said_is_read_by_the_name_of_its_cell() {
        let mut measured = sample(0).unwrap();
        for (key, value) in [
            ("cell-2-4-1", "100 50 40 60"),
            ("cell-1-0-1", "10 20 10 10"),
            ("cell-x", "1 2 3 4"),
            ("cell-1-1-1", "1 2"),
        ] {
            measured.results.insert(key.into(), value.into());
        }
        let cells = cells(&measured);
        assert_eq!(cells.len(), 2);
        assert_eq!(cells[0].0.metric(), "ops_per_s@1x0x1");
        assert_eq!(cells[1].1.rate(), 2e9);
        assert!(table(&measured, "instructions").contains("0.67"));
    }
}
