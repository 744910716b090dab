//! Makes what text and JSON reports of judged samples have in common: the source of the
//! figures, the rows and the mean. It never decides anything.

use crate::judged::{JudgedRow, JudgedSamples};
use locklab_document::{MetricRow, number};
use locklab_judge::{Estimate, Role, Sampling, Verdict};

/// Names the source of the figures.
pub(crate) fn figures(judged: &JudgedSamples) -> String {
    let [b, e] = judged.compared.files.each_ref().map(|f| f.format.program());
    let programs = if b == e {
        b.to_owned()
    } else {
        format!("{b} and {e}")
    };
    format!("files of {programs}; read, not measured here")
}

/// Returns the row of a table of metrics.
pub(crate) fn metric_row(row: &JudgedRow) -> MetricRow {
    let estimate = shown(row);
    let [baseline, experiment] = match row.of.medians {
        Some(medians) => medians.map(Some),
        None => [estimate.map(|e| e.baseline), estimate.map(|e| e.experiment)],
    };
    MetricRow {
        name: match row.of.role {
            Role::Primary => row.of.name.clone(),
            Role::Screening => format!("{}: {}", row.of.name, row.of.metric),
        },
        unit: row.of.unit.clone(),
        baseline,
        experiment,
        delta: estimate.map(|e| e.delta_percent()),
        verdict: Some(row.judged.verdict.clone()),
        role: match row.of.role {
            Role::Primary => locklab_document::Role::Primary,
            Role::Screening => locklab_document::Role::Screening,
        },
        test: test(row),
    }
}

/// Returns by how much two processes of one side differ at most, and in which benchmark.
pub(crate) fn between_processes(judged: &JudgedSamples) -> Option<(f64, &str)> {
    let rows = judged.primaries();
    let all = rows.filter_map(|row| Some((row.of.between_processes?, row.of.name.as_str())));
    all.max_by(|a, b| a.0.total_cmp(&b.0))
}

/// Returns p and the number of samples, as benchstat prints them.
fn test(row: &JudgedRow) -> String {
    let invalid = matches!(row.judged.verdict, Verdict::Invalid(_));
    let Some(estimate) = row.judged.estimate.filter(|_| !invalid) else {
        return "-".to_owned();
    };
    let n = match estimate.sampling {
        Sampling::Pairs(pairs) => pairs.to_string(),
        Sampling::Independent {
            baseline,
            experiment,
        } if baseline == experiment => baseline.to_string(),
        Sampling::Independent {
            baseline,
            experiment,
        } => format!("{baseline}+{experiment}"),
    };
    format!("p={:.3} n={n}", row.judged.p)
}

/// Returns the estimate, unless it must not be shown as a result, or is one of ranks.
pub(crate) fn shown(row: &JudgedRow) -> Option<Estimate> {
    let invalid = matches!(row.judged.verdict, Verdict::Invalid(_));
    let estimate = row.judged.estimate.filter(|_| !invalid);
    estimate.filter(|_| row.of.medians.is_none())
}

/// Holds the geometric mean of the ratios, with what it hides.
pub(crate) struct Mean<'a> {
    pub(crate) value: f64,
    pub(crate) of: usize,
    /// The smallest and the largest ratio, and whose they are.
    pub(crate) from: (f64, &'a str),
    pub(crate) to: (f64, &'a str),
}

/// Returns the geometric mean over the benchmarks of one direction, where there are
/// several and no more than one direction.
pub(crate) fn mean(judged: &JudgedSamples) -> Option<Mean<'_>> {
    let mut ratios: Vec<(f64, &str)> = Vec::new();
    let mut direction = None;
    for row in judged.primaries() {
        let Some(estimate) = shown(row) else { continue };
        if *direction.get_or_insert(row.of.direction) != row.of.direction {
            return None;
        }
        ratios.push((estimate.ratio().value, &row.of.name));
    }
    if ratios.len() < 2 {
        return None;
    }
    let logs: f64 = ratios.iter().map(|(ratio, _)| ratio.ln()).sum();
    let by_size = |a: &&(f64, &str), b: &&(f64, &str)| a.0.total_cmp(&b.0);
    Some(Mean {
        value: (logs / ratios.len() as f64).exp(),
        of: ratios.len(),
        from: *ratios.iter().min_by(by_size)?,
        to: *ratios.iter().max_by(by_size)?,
    })
}

impl Mean<'_> {
    /// Says the mean, and that it is no verdict.
    pub(crate) fn sentence(&self) -> String {
        format!(
            "The geometric mean of {} ratios is {}, which hides {} ({}) to {} ({}), and is no \
             verdict.",
            self.of,
            number::ratio(self.value),
            number::ratio(self.from.0),
            self.from.1,
            number::ratio(self.to.0),
            self.to.1
        )
    }
}
