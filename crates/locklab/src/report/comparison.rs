//! One table a workload: `Metric Baseline Experiment Delta Sig`.
//!
//! The form that the kernel's own A/B reports have. Sig is `**+` for better
//! and `**-` for worse beyond noise, `*+` and `*-` for the same in screening
//! metrics (counters, which explain and do not decide), `flat` for shown to
//! be within the margin, `ns` for not shown either way, and `inval` for not
//! to be read.

use super::number;
use super::page::Page;
use locklab_judge::{Judged, Role, Verdict};
use serde_json::{Value, json};

/// A metric of one workload, judged.
#[derive(Clone, Debug)]
pub struct Row {
    /// Its name, as `l1i-misses:k`.
    pub name: String,
    /// Its unit; empty for a count or a ratio.
    pub unit: String,
    /// What was shown.
    pub judged: Judged,
}

impl Row {
    /// The verdict as the `Sig` column has it.
    #[must_use]
    pub fn sig(&self) -> &'static str {
        match (&self.judged.verdict, self.judged.role) {
            (Verdict::Better, Role::Primary) => "**+",
            (Verdict::Better, Role::Screening) => "*+",
            (Verdict::Worse, Role::Primary) => "**-",
            (Verdict::Worse, Role::Screening) => "*-",
            (Verdict::Flat { nonzero: false }, _) => "flat",
            (Verdict::Flat { nonzero: true }, _) => "flat!0",
            (Verdict::Unclear { .. }, _) => "ns",
            (Verdict::Invalid(_), _) => "inval",
        }
    }

    fn label(&self) -> String {
        if self.unit.is_empty() {
            self.name.clone()
        } else {
            format!("{} [{}]", self.name, self.unit)
        }
    }
}

/// What the signs of the `Sig` column mean.
pub const LEGEND: &str = "Sig: **+ better and **- worse beyond noise, *+ and *- the same as \
                          screening; flat: shown to be within the margin (flat!0: small but not \
                          zero); ns: not shown either way; inval: not to be read. Baseline \
                          and Experiment are medians, Delta is over the pairs.";

/// The table, in lines of at most 72 columns.
#[must_use]
pub fn table(rows: &[Row]) -> String {
    let mut page = Page::default();
    let line = |name: &str, b: &str, e: &str, delta: &str, sig: &str| {
        format!("{name:<25} {b:>13} {e:>13} {delta:>9}  {sig:<6}")
    };
    let head = line("Metric", "Baseline", "Experiment", "Delta", "Sig");
    page.row(&head, head.len());
    for row in rows {
        let estimate = row
            .judged
            .estimate
            .filter(|_| !matches!(row.judged.verdict, Verdict::Invalid(_)));
        let cell = |x: Option<f64>| number::or_dash(x, number::figure);
        let delta = estimate.map_or_else(
            || "-".into(),
            |e| {
                // Adding zero turns -0 into 0.
                let delta = (e.delta_percent().value * 100.0).round() / 100.0 + 0.0;
                let sign = if delta > 0.0 { "+" } else { "" };
                format!("{sign}{delta:.2}%")
            },
        );
        let delta = if delta.len() > 9 {
            "large".into()
        } else {
            delta
        };
        let mut label = row.label();
        if !label.is_ascii() || label.len() > 25 {
            page.paragraph(&label);
            label = String::new();
        }
        let text = line(
            &label,
            &cell(estimate.map(|e| e.baseline)),
            &cell(estimate.map(|e| e.experiment)),
            &delta,
            row.sig(),
        );
        page.row(&text, text.len());
    }
    page.finish()
}

/// The rows for programs: a workload's `metrics`.
#[must_use]
pub fn json(rows: &[Row]) -> Value {
    rows.iter()
        .map(|row| {
            let delta = row.judged.estimate.map(|e| e.delta_percent());
            json!({
                "name": row.name,
                "unit": row.unit,
                "baseline": row.judged.estimate.map(|e| e.baseline),
                "experiment": row.judged.estimate.map(|e| e.experiment),
                "delta_percent": delta.map(|d| d.value),
                "low": delta.map(|d| d.low),
                "high": delta.map(|d| d.high),
                "verdict": row.judged.verdict.word(),
                "sig": row.sig(),
                "primary": row.judged.role == Role::Primary,
                "p_adjusted": row.judged.p_adjusted,
            })
        })
        .collect()
}
