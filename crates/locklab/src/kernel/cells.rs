//! The matrix of a spinlock inside the kernel: threads, units of work with
//! the lock, units without, as in report 3.
//!
//! The guest runs every cell in one boot and says what came of each; a cell
//! is judged over the boots. A thread has a CPU of its own, so cells with more
//! threads than the guest has CPUs are left out, and said to be.

use crate::kernel::outcome::Measured;
use crate::kernel::session::RunPair;
use crate::report::number;
use crate::report::page::Page;
use crate::report::shade::mark;
use locklab_judge::{Comparison, Direction, Judged, Settings, Verdict};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// More cells than the guest has room for make no sense.
const MOST_CELLS: usize = 1024;
/// The guest reads its lists into so many bytes.
const LONGEST_LIST: usize = 250;

/// The axes of the matrix. A length of n is n + 1 units of about 15 cycles.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Lengths {
    /// Threads that want the lock.
    pub threads: Vec<u64>,
    /// Units with the lock.
    pub critical: Vec<u64>,
    /// Units without.
    pub non_critical: Vec<u64>,
}

impl Default for Lengths {
    fn default() -> Self {
        Self {
            threads: vec![1, 2, 4, 8, 16, 32, 64],
            critical: vec![0, 1, 2, 4, 8, 16, 32, 64, 128],
            non_critical: vec![1, 32],
        }
    }
}

impl Lengths {
    /// The numbers of threads that have a CPU each.
    #[must_use]
    pub fn threads(&self, vcpus: u64) -> Vec<u64> {
        let mut threads = self.threads.clone();
        threads.retain(|n| *n <= vcpus);
        threads
    }

    /// What is left out, in words.
    #[must_use]
    pub fn left_out(&self, vcpus: u64) -> Option<String> {
        let out: Vec<String> = self
            .threads
            .iter()
            .filter(|n| **n > vcpus)
            .map(u64::to_string)
            .collect();
        (!out.is_empty()).then(|| {
            format!(
                "cells of {} threads, as the guest has {vcpus} vCPU{}",
                out.join(", "),
                if vcpus == 1 { "" } else { "s" }
            )
        })
    }

    pub(super) fn check(&self, vcpus: u64) -> Result<(), String> {
        for (name, list) in [
            ("threads", &self.threads),
            ("critical", &self.critical),
            ("non_critical", &self.non_critical),
        ] {
            let length: usize = list.iter().map(|n| n.to_string().len() + 1).sum();
            if list.is_empty() || length > LONGEST_LIST {
                return Err(format!("{name} of a spinlock matrix takes 1 to 50 numbers"));
            }
            let mut sorted = list.clone();
            sorted.sort_unstable();
            sorted.dedup();
            if sorted.len() != list.len() {
                return Err(format!("{name} of a spinlock matrix has a number twice"));
            }
        }
        if self.threads.contains(&0) {
            return Err("threads of a spinlock matrix start at 1".into());
        }
        let threads = self.threads(vcpus).len();
        if threads == 0 {
            return Err(format!(
                "every cell of the spinlock matrix has more threads than the guest has vCPUs \
                 ({vcpus}); give more with --vcpus"
            ));
        }
        if threads * self.critical.len() * self.non_critical.len() > MOST_CELLS {
            return Err(format!("a spinlock matrix has at most {MOST_CELLS} cells"));
        }
        Ok(())
    }
}

/// Threads, critical and non-critical length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Point {
    threads: u64,
    critical: u64,
    non_critical: u64,
}

/// What a guest said of one cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Done {
    /// Acquisitions of all threads.
    pub(crate) total: u64,
    /// Time by the guest's clock, in ns: instructions under TCG.
    pub(crate) ns: u64,
    /// Acquisitions of the slowest thread and of the fastest.
    pub(crate) least: u64,
    pub(crate) most: u64,
}

/// The cells of a run, in the order of the plan.
pub(crate) fn of(measured: &Measured) -> Vec<(Point, Done)> {
    let mut cells: Vec<(Point, Done)> = measured
        .said
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
            Some((
                point,
                Done {
                    total,
                    ns,
                    least,
                    most,
                },
            ))
        })
        .collect();
    cells.sort_by_key(|(p, _)| (p.non_critical, p.threads, p.critical));
    cells
}

fn numbers(text: &str, between: char) -> Option<Vec<u64>> {
    text.split(between).map(|n| n.parse().ok()).collect()
}

/// A cell over all boots; a larger ratio is better, as in `locklab matrix`.
#[derive(Clone, Debug)]
pub(crate) struct Cell {
    point: Point,
    judged: Judged,
}

/// Judges each cell of the pairs; nothing where there is no matrix.
pub(crate) fn judged(pairs: &[RunPair], seed: u64) -> Result<Vec<Cell>, String> {
    let first = pairs.iter().find_map(|pair| {
        pair.baseline
            .as_ref()
            .ok()
            .or(pair.experiment.as_ref().ok())
    });
    let points: Vec<Point> = first.map_or(Vec::new(), |m| of(m).iter().map(|c| c.0).collect());
    let mut comparisons = Vec::new();
    for point in &points {
        let rate = |measured: &Measured| {
            let cells = of(measured);
            let done = cells.iter().find(|(other, _)| other == point);
            done.map(|(_, done)| done.total as f64 * 1e9 / done.ns as f64)
        };
        let made = super::metrics::pairs(pairs, seed, rate);
        comparisons.push(Comparison::primary(made, Direction::HigherIsBetter));
    }
    let verdicts =
        locklab_judge::judge(&comparisons, &Settings::default()).map_err(|e| e.to_string())?;
    Ok(points
        .into_iter()
        .zip(verdicts)
        .map(|(point, judged)| Cell { point, judged })
        .collect())
}

/// The grids of a part: ratios with their verdicts, then what the baseline
/// takes for an acquisition.
pub(crate) fn show(page: &mut Page, cells: &[Cell], unit: &str) {
    let mut lengths: Vec<u64> = cells.iter().map(|c| c.point.non_critical).collect();
    lengths.dedup();
    for length in lengths {
        let block: Vec<&Cell> = cells
            .iter()
            .filter(|c| c.point.non_critical == length)
            .collect();
        page.blank();
        page.paragraph(&format!(
            "Non-critical length {length}: acquisitions a time, experiment / baseline"
        ));
        grid(page, &block, |cell| {
            let readable = !matches!(cell.judged.verdict, Verdict::Invalid(_));
            let ratio = cell.judged.estimate.filter(|_| readable);
            let ratio = ratio.map(|e| number::ratio(1.0 + e.delta_percent().value / 100.0));
            format!(
                "{}{}",
                ratio.unwrap_or_default(),
                mark(&cell.judged.verdict)
            )
        });
        page.paragraph(&format!("The baseline's {unit} an acquisition"));
        grid(page, &block, |cell| {
            let estimate = cell.judged.estimate;
            number::or_dash(estimate.map(|e| 1e9 / e.baseline), |x| format!("{x:.0}"))
        });
    }
}

/// Rows threads, columns critical length, nine columns a line.
fn grid(page: &mut Page, cells: &[&Cell], of: impl Fn(&Cell) -> String) {
    let mut columns: Vec<u64> = cells.iter().map(|c| c.point.critical).collect();
    columns.sort_unstable();
    columns.dedup();
    let mut rows: Vec<u64> = cells.iter().map(|c| c.point.threads).collect();
    rows.sort_unstable();
    rows.dedup();
    let line = |head: &str, cells: &[String]| {
        let cells: String = cells.iter().map(|cell| format!("{cell:>7}")).collect();
        format!("{head:>7}|{cells}")
    };
    for columns in columns.chunks(9) {
        let names: Vec<String> = columns.iter().map(u64::to_string).collect();
        for row in std::iter::once(line("threads", &names)).chain(rows.iter().map(|threads| {
            let row: Vec<String> = columns
                .iter()
                .map(|critical| {
                    let found = cells
                        .iter()
                        .find(|c| c.point.threads == *threads && c.point.critical == *critical);
                    found.map_or_else(|| ".".into(), |cell| of(cell))
                })
                .collect();
            line(&threads.to_string(), &row)
        })) {
            page.row(&row, row.chars().count());
        }
    }
}

/// The cells for programs, in the shape of `locklab matrix`.
pub(crate) fn json(cells: &[Cell]) -> Value {
    cells
        .iter()
        .map(|cell| {
            let estimate = cell.judged.estimate;
            let side = |value: Option<f64>| json!({"ops_per_s": value});
            let ratio = estimate.map(|e| e.delta_percent());
            let ratio = |of: fn(locklab_judge::Shown) -> f64| ratio.map(|r| 1.0 + of(r) / 100.0);
            json!({
                "threads": cell.point.threads,
                "critical": cell.point.critical,
                "non_critical": cell.point.non_critical,
                "baseline": side(estimate.map(|e| e.baseline)),
                "experiment": side(estimate.map(|e| e.experiment)),
                "ratio": ratio(|r| r.value),
                "ratio_low": ratio(|r| r.low),
                "ratio_high": ratio(|r| r.high),
                "verdict": cell.judged.verdict.word(),
            })
        })
        .collect()
}

/// One run's cells, for people.
pub(crate) fn table(measured: &Measured, unit: &str) -> String {
    let cells = of(measured);
    if cells.is_empty() {
        return String::new();
    }
    let mut text = format!(
        "{:>7} {:>9} {:>13} {:>13} {:>9}  {}\n",
        "Threads", "Critical", "Non-critical", "Acquisitions", "Each", "Slow/fast"
    );
    for (point, done) in cells {
        text.push_str(&format!(
            "{:>7} {:>9} {:>13} {:>13} {:>9.1}  {:.2}\n",
            point.threads,
            point.critical,
            point.non_critical,
            done.total,
            done.ns as f64 / done.total as f64,
            done.least as f64 / done.most as f64
        ));
    }
    text + &format!(
        "Each: {unit} for an acquisition of any thread. Slow/fast:\n\
         acquisitions of the slowest thread over those of the fastest.\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::outcome::sample;

    /// A run of two cells; the first takes so many ns for 100 acquisitions.
    fn run(ns: u64) -> crate::kernel::outcome::Outcome {
        sample(9).map(|mut measured| {
            measured.said.insert(
                "cell-2-16-1".into(),
                format!("200 {} 90 110", 100_000 + ns % 3),
            );
            measured
                .said
                .insert("cell-1-0-1".into(), format!("100 {ns} 100 100"));
            measured
        })
    }

    fn cells() -> Vec<Cell> {
        let pairs: Vec<RunPair> = (0..8)
            .map(|i| RunPair {
                seed: i,
                baseline: run(10_000 + i),
                experiment: run(8_000 + i),
            })
            .collect();
        judged(&pairs, 1).unwrap()
    }

    #[test]
    fn each_cell_is_judged_by_its_rate() {
        let mut page = Page::default();
        show(&mut page, &cells(), "instructions");
        let text = page.finish();
        assert_eq!(
            text,
            "Non-critical length 1: acquisitions a time, experiment / baseline\n\
             threads|      0     16\n      1|  1.25+      .\n      2|      .  1.00=\n\
             The baseline's instructions an acquisition\n\
             threads|      0     16\n      1|    100      .\n      2|      .    500\n"
        );
        let json = json(&cells());
        assert_eq!(json[0]["threads"], 1);
        assert_eq!(json[0]["verdict"], "better");
        assert!((1.24..1.26).contains(&json[0]["ratio"].as_f64().unwrap()));
        assert_eq!(json[1]["verdict"], "flat");
    }

    #[test]
    fn a_guest_that_failed_costs_its_cells_their_pair() {
        let failed = || {
            Err(crate::kernel::outcome::Invalid {
                why: "the lock let in two at once".into(),
                console: vec![],
            })
        };
        let pairs: Vec<RunPair> = (0..8)
            .map(|i| RunPair {
                seed: i,
                baseline: run(10_000),
                experiment: failed(),
            })
            .collect();
        let cells = judged(&pairs, 1).unwrap();
        assert_eq!(cells.len(), 2);
        assert!(matches!(cells[0].judged.verdict, Verdict::Invalid(_)));
        let nothing = [RunPair {
            seed: 1,
            baseline: sample(9),
            experiment: sample(9),
        }];
        assert!(judged(&nothing, 1).unwrap().is_empty());
    }

    #[test]
    fn one_run_is_a_table_within_a_mails_width() {
        let text = table(&run(10_550).unwrap(), "instructions");
        assert_eq!(
            text,
            "Threads  Critical  Non-critical  Acquisitions      Each  Slow/fast\n\
             \x20     1         0             1           100     105.5  1.00\n\
             \x20     2        16             1           200     500.0  0.82\n\
             Each: instructions for an acquisition of any thread. Slow/fast:\n\
             acquisitions of the slowest thread over those of the fastest.\n"
        );
        assert!(text.lines().all(|line| line.len() <= 72), "{text}");
        assert!(table(&sample(9).unwrap(), "instructions").is_empty());
    }

    #[test]
    fn lengths_that_make_no_sense_are_said() {
        let lengths = |threads: &[u64], critical: &[u64]| Lengths {
            threads: threads.into(),
            critical: critical.into(),
            non_critical: vec![1],
        };
        let said = |lengths: Lengths| lengths.check(2).unwrap_err();
        assert!(said(lengths(&[], &[1])).contains("threads of a spinlock matrix takes"));
        assert!(said(lengths(&[1], &[4, 4])).contains("critical of a spinlock matrix has"));
        assert!(said(lengths(&[0], &[4])).contains("start at 1"));
        assert!(said(lengths(&[4, 8], &[4])).contains("more threads than"));
        assert!(lengths(&[1, 2, 4], &[4]).check(2).is_ok());
        assert_eq!(
            lengths(&[1, 2, 4, 8], &[4]).left_out(2).unwrap(),
            "cells of 4, 8 threads, as the guest has 2 vCPUs"
        );
        assert_eq!(lengths(&[1, 2], &[4]).left_out(2), None);
        assert!(Lengths::default().check(64).is_ok());
    }
}
