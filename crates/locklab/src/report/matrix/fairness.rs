//! Who gets the lock: handoffs, streaks and shares, for both locks.
//!
//! Operations per second alone mislead, so these stand in every report.

use super::{Report, axis, label};
use crate::report::number;
use crate::report::page::Page;
use crate::verdicts::{Figures, JudgedCell};

/// Beyond this many cells the text has one row a number of threads; HTML and
/// JSON have them all.
const MOST_ROWS: usize = 36;

/// Tables of handoffs and fairness, and of latency where it was measured.
pub(super) fn tables(page: &mut Page, report: &Report) {
    let shared: Vec<&JudgedCell> = report
        .verdicts
        .cells
        .iter()
        .filter(|c| c.point.threads > 1)
        .collect();
    if shared.is_empty() {
        return;
    }
    page.heading("Handoffs and fairness, baseline and experiment side by side");
    let compact = shared.len() > MOST_ROWS;
    page.paragraph(
        "handoffs/s between threads; streak: acquisitions in a row by one owner, mean; Jain's \
         index (1 is fair); least over greatest share.",
    );
    if compact {
        page.paragraph(
            "Over the critical lengths: the median of handoffs and streaks, the worst of Jain's \
             index and of the shares; HTML and JSON have every cell.",
        );
    }
    for (class, cells) in report.verdicts.by_class() {
        let cells: Vec<&JudgedCell> = cells.into_iter().filter(|c| c.point.threads > 1).collect();
        for length in axis(&cells, |c| c.point.non_critical) {
            let placed = class.map_or_else(String::new, |c| format!(", \"{c}\""));
            page.heading(&format!(
                "Non-critical length {length}{}{placed}",
                report.unit()
            ));
            let block = |n: usize| {
                let of =
                    move |c: &&&JudgedCell| c.point.non_critical == length && c.point.threads == n;
                cells.iter().filter(of).copied()
            };
            let line = head(compact);
            page.row(&line.0, line.0.len());
            page.row(&line.1, line.1.len());
            for n in axis(&cells, |c| c.point.threads) {
                let of_n: Vec<&JudgedCell> = block(n).collect();
                if of_n.is_empty() {
                    continue;
                }
                if compact {
                    let line = row(n, None, &of_n);
                    page.row(&line, line.len());
                } else {
                    for cell in of_n {
                        let line = row(n, Some(cell.point.critical), &[cell]);
                        page.row(&line, line.len());
                    }
                }
            }
        }
    }
    latency(page, report);
}

fn head(compact: bool) -> (String, String) {
    let critical = if compact { "" } else { "critical" };
    (
        format!(
            "{:>7}{critical:>9} |{:>13} |{:>13} |{:>11} |{:>11}",
            "threads", "handoffs/s", "streak", "Jain", "min/max"
        ),
        format!(
            "{:>7}{:>9} |{:>6} {:>6} |{:>6} {:>6} |{:>5} {:>5} |{:>5} {:>5}",
            "", "", "base", "exp", "base", "exp", "base", "exp", "base", "exp"
        ),
    )
}

fn row(threads: usize, critical: Option<u64>, cells: &[&JudgedCell]) -> String {
    let side = |of: fn(&JudgedCell) -> &Figures| {
        let values = |metric: fn(&Figures) -> Option<f64>| -> Vec<f64> {
            let mut values: Vec<f64> = cells.iter().filter_map(|c| metric(of(c))).collect();
            values.sort_by(f64::total_cmp);
            values
        };
        let middle = |metric| {
            let values = values(metric);
            values.get(values.len() / 2).copied()
        };
        let least = |metric| values(metric).first().copied();
        (
            number::or_dash(middle(|f| f.handoffs_per_s), number::short),
            number::or_dash(middle(|f| f.streak_mean), number::short),
            number::or_dash(least(|f| f.jain), number::share),
            number::or_dash(least(|f| f.min_over_max), number::share),
        )
    };
    let (b, e) = (side(|c| &c.baseline), side(|c| &c.experiment));
    let critical = critical.map(label).unwrap_or_default();
    let n = label(threads as u64);
    format!(
        "{n:>7}{critical:>9} |{:>6} {:>6} |{:>6} {:>6} |{:>5} {:>5} |{:>5} {:>5}",
        b.0, e.0, b.1, e.1, b.2, e.2, b.3, e.3
    )
}

fn latency(page: &mut Page, report: &Report) {
    let timed: Vec<&JudgedCell> = report
        .verdicts
        .cells
        .iter()
        .filter(|c| c.baseline.latency.is_some() || c.experiment.latency.is_some())
        .collect();
    if timed.is_empty() {
        return;
    }
    page.heading("Acquisition latency in ns, medians over the runs");
    let line = format!(
        "{:>7}{:>7}{:>7}  {:10}{:>8}{:>8}{:>8}{:>8}",
        "threads", "crit", "noncr", "", "p50", "p99", "p99.9", "max"
    );
    page.row(&line, line.len());
    for cell in timed {
        let point = cell.point;
        for (name, side) in [
            ("baseline", &cell.baseline),
            ("experiment", &cell.experiment),
        ] {
            let Some(l) = side.latency else { continue };
            let [p50, p99, p999, max] =
                [l.p50, l.p99, l.p999, l.max].map(|n| number::short(n as f64));
            let line = format!(
                "{:>7}{:>7}{:>7}  {name:10}{p50:>8}{p99:>8}{p999:>8}{max:>8}",
                label(point.threads as u64),
                label(point.critical),
                label(point.non_critical)
            );
            page.row(&line, line.len());
        }
    }
}
