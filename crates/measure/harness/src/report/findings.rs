//! The primary verdicts, one by one, for tools that pass or fail.

use super::inputs::Report;
use super::workload;
use crate::experiment::{Cell, Role};
use crate::verdicts::{JudgedCell, JudgedMetric};
use locklab_document::Finding;
use locklab_document::number;
use locklab_judge::Verdict;

/// Returns one finding for each primary metric, and one for each cell without any run.
pub(super) fn of(report: &Report) -> Vec<Finding> {
    let mut findings = Vec::new();
    for judged in &report.verdicts.cells {
        let cell = report.cell(judged);
        let name = workload::name(report, judged);
        if !judged.is_measured() {
            findings.push(Finding {
                name,
                metric: cell.primary().map(|m| m.name.clone()).unwrap_or_default(),
                verdict: "incomplete",
                message: match &cell.stopped {
                    Some(why) => format!("Not measured: {why}"),
                    None => "Not measured.".into(),
                },
                file: report.context.file.clone(),
                ..Finding::default()
            });
            continue;
        }
        let deciding = judged
            .metrics
            .iter()
            .filter(|m| m.metric.role == Role::Primary);
        findings.extend(deciding.map(|m| finding(report, judged, m, &name)));
    }
    findings
}

fn finding(report: &Report, judged: &JudgedCell, m: &JudgedMetric, cell: &str) -> Finding {
    let name = match &m.metric.at {
        Some(place) => format!("{cell}: {place}"),
        None => cell.to_owned(),
    };
    let ratio = m.ratio().map_or_else(String::new, |r| {
        let [value, low, high] = [r.value, r.low, r.high].map(number::factor);
        format!(" by a factor of {value} (95 %: {low} to {high})")
    });
    let subject = report.subject();
    let metric = workload::base_name(&m.metric).to_owned();
    let message = match &m.judged.verdict {
        Verdict::Better => format!("{subject} is better{ratio} in {metric}."),
        Verdict::Worse => format!("{subject} is worse{ratio} in {metric}."),
        Verdict::Flat { .. } => format!("{subject} is shown flat in {metric}{ratio}."),
        Verdict::Unclear { .. } if judged.is_held_back() => {
            let [low, high] = judged
                .band
                .map_or([f64::NAN; 2], |band| [band.low, band.high])
                .map(number::ratio);
            format!(
                "{subject}: unclear (model) in {metric}: {low} to {high} over the machines that the \
                 assumptions allow."
            )
        }
        Verdict::Unclear { .. } => {
            format!("{subject}: neither shown to differ nor to be flat in {metric}{ratio}.")
        }
        Verdict::Invalid(reasons) => {
            let reasons: Vec<String> = reasons.iter().map(ToString::to_string).collect();
            format!("{subject} must not be read: {}.", reasons.join("; "))
        }
    };
    Finding {
        name,
        metric,
        verdict: m.judged.verdict.word(),
        message: format!(
            "{message} {}.",
            number::count(
                judged
                    .differences
                    .len()
                    .max(m.judged.estimate.map_or(0, |e| e.pairs)),
                "pair"
            )
        ),
        file: report.context.file.clone(),
        line: None,
        seconds: seconds(report.cell(judged)),
    }
}

/// Returns seconds from the first run of a cell to the start of its last, where its
/// backend has a clock.
fn seconds(cell: &Cell) -> Option<f64> {
    let samples = cell.pairs.iter().flat_map(|pair| pair.samples());
    let starts: Vec<f64> = samples.filter_map(|s| s.started).collect();
    let first = starts.iter().copied().min_by(f64::total_cmp)?;
    let last = starts.iter().copied().max_by(f64::total_cmp)?;
    Some(last - first)
}
