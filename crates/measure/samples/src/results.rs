//! The results of `locklab judge --json`, in the shape of those of `compare`, and their
//! schema.
//!
//! A field may be added; none is removed or changes its meaning.

use crate::formats::Format;
use crate::judged::{JudgedRow, JudgedSamples};
use crate::matching::Why;
use crate::rows::{between_processes, figures, mean, metric_row, shown};
use locklab_document::Labels;
use locklab_judge::{Family, Role, Sampling};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

/// Returns the JSON schema of the results.
#[must_use]
pub fn schema() -> Value {
    // As it is written: a missing figure is null, not absent.
    let settings = schemars::generate::SchemaSettings::draft2020_12().for_serialize();
    let schema = settings.into_generator().into_root_schema_for::<Results>();
    schema.to_value()
}

/// The results of two files of samples.
#[derive(Serialize, JsonSchema)]
struct Results {
    /// The version of this shape.
    schema: u32,
    /// The version of Locklab.
    tool: &'static str,
    /// Always `judge`.
    kind: &'static str,
    /// The command that makes the report again.
    command: String,
    provenance: Provenance,
    #[schemars(with = "LabelsSchema")]
    labels: Labels,
    /// The baseline's file and the experiment's.
    files: [File; 2],
    settings: Settings,
    drift: Drift,
    /// The largest ratio between two processes of one side, less 1: what `--process-noise`
    /// would have to state; null where no side has several.
    process_spread: Option<f64>,
    /// Says what a reader must know, in sentences.
    caveats: Vec<String>,
    /// Says what was shown, in sentences.
    conclusion: Vec<String>,
    /// One entry for each benchmark that both files have.
    workloads: Vec<Workload>,
    /// Benchmarks that were not judged.
    not_judged: Vec<NotJudged>,
    /// Null for fewer than two benchmarks, or where they improve in two ways.
    geometric_mean: Option<GeometricMean>,
}

/// Says where the figures come from.
#[derive(Serialize, JsonSchema)]
struct Provenance {
    /// Always `files`: nothing was measured.
    source: &'static str,
    /// The programs that wrote them.
    name: String,
}

#[derive(JsonSchema)]
#[schemars(rename = "Labels")]
#[allow(dead_code, reason = "the schema is made of it")]
struct LabelsSchema {
    /// The baseline's file.
    baseline: String,
    /// The experiment's file.
    experiment: String,
}

#[derive(Serialize, JsonSchema)]
struct File {
    file: String,
    /// The form of the file, as `--format` takes it.
    #[schemars(with = "String")]
    format: Format,
}

/// Says how the samples were judged.
#[derive(Serialize, JsonSchema)]
struct Settings {
    /// The margin for flat, as a fraction.
    delta: f64,
    /// The fewest pairs that have a verdict.
    min_pairs: usize,
    #[schemars(with = "String")]
    family: Family,
    /// The share of runs that may fail.
    tolerated_failures: f64,
    /// The number of looks at which a comparison may end.
    looks: u32,
}

/// The drift that is assumed of samples that were not taken in turn.
#[derive(Serialize, JsonSchema)]
struct Drift {
    /// The drift of an hour, as a fraction.
    per_hour: f64,
    /// The time between the files, in seconds.
    apart_s: f64,
    /// The part of it that counts, in seconds.
    drifting_s: f64,
    /// The bias that a difference must exceed, as a fraction.
    allowance: f64,
}

#[derive(Serialize, JsonSchema)]
struct Workload {
    name: String,
    metrics: Vec<Metric>,
}

#[derive(Serialize, JsonSchema)]
struct Metric {
    name: String,
    /// The unit; empty for a count or a ratio.
    unit: String,
    /// The median of the baseline's values; null where nothing was shown.
    baseline: Option<f64>,
    /// The median of the experiment's values.
    experiment: Option<f64>,
    /// The percentage by which the experiment's is larger (Hodges-Lehmann).
    delta_percent: Option<f64>,
    /// The lower 95 % limit of that; null where so few samples have none.
    low: Option<f64>,
    /// The upper 95 % limit of that.
    high: Option<f64>,
    /// `better`, `worse`, `flat`, `unclear` or `invalid`.
    verdict: &'static str,
    /// The verdict as tables show it.
    sig: &'static str,
    /// Says whether it decides; others explain.
    primary: bool,
    /// The p-value of this comparison alone.
    p: f64,
    /// The p-value, adjusted for the family.
    p_adjusted: f64,
    /// The number of pairs, or of the samples of each side.
    #[schemars(with = "Option<Samples>")]
    samples: Option<Sampling>,
    /// Says whether each side has one value in all of its runs, as a count has.
    exact: bool,
    /// Says whether both sides hold the same samples.
    identical: bool,
    /// The processes of the baseline and of the experiment, where they are too few to show
    /// how processes differ.
    few_processes: Option<[usize; 2]>,
    /// The largest ratio between two processes of one side, less 1.
    between_processes: Option<f64>,
    warnings: Vec<String>,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "snake_case")]
#[allow(dead_code, reason = "the schema is made of it")]
enum Samples {
    /// Pairs, measured in turn.
    Pairs(usize),
    /// Each side by itself.
    Independent { baseline: usize, experiment: usize },
}

#[derive(Serialize, JsonSchema)]
struct NotJudged {
    name: String,
    why: &'static str,
}

/// The geometric mean of the ratios, with what it hides.
#[derive(Serialize, JsonSchema)]
struct GeometricMean {
    ratio: f64,
    /// The number of benchmarks.
    benchmarks: usize,
    least: Ratio,
    greatest: Ratio,
}

#[derive(Serialize, JsonSchema)]
struct Ratio {
    name: String,
    ratio: f64,
}

/// Returns the results as the fields of a document.
pub(crate) fn fields(
    judged: &JudgedSamples,
    caveats: &[String],
    conclusion: &[String],
    command: &str,
) -> Map<String, Value> {
    let [baseline, experiment] = judged.compared.files.each_ref().map(|f| f.label.clone());
    let settings = &judged.judging.settings;
    let results = Results {
        schema: 1,
        tool: locklab_harness::VERSION,
        kind: "judge",
        command: command.to_owned(),
        provenance: Provenance {
            source: "files",
            name: figures(judged),
        },
        labels: Labels::new(baseline, experiment),
        files: judged.compared.files.each_ref().map(|f| File {
            file: f.label.clone(),
            format: f.format,
        }),
        settings: Settings {
            delta: settings.delta,
            min_pairs: settings.min_pairs,
            family: settings.family,
            tolerated_failures: settings.tolerated_failures,
            looks: settings.looks,
        },
        drift: Drift {
            per_hour: judged.judging.drift,
            apart_s: judged.apart.seconds(),
            drifting_s: judged.apart.drifting(),
            allowance: judged.allowance(),
        },
        process_spread: between_processes(judged).map(|(spread, _)| spread),
        caveats: caveats.to_vec(),
        conclusion: conclusion.to_vec(),
        workloads: workloads(judged),
        not_judged: not_judged(judged),
        geometric_mean: geometric_mean(judged),
    };
    match serde_json::to_value(results) {
        Ok(Value::Object(fields)) => fields,
        // Our own types, with string keys: this cannot happen.
        _ => Map::new(),
    }
}

fn workloads(judged: &JudgedSamples) -> Vec<Workload> {
    let mut workloads: Vec<Workload> = Vec::new();
    for row in &judged.rows {
        let metric = metric(row);
        match workloads.last_mut().filter(|w| w.name == row.of.name) {
            Some(workload) => workload.metrics.push(metric),
            None => workloads.push(Workload {
                name: row.of.name.clone(),
                metrics: vec![metric],
            }),
        }
    }
    workloads
}

fn metric(row: &JudgedRow) -> Metric {
    let finite = |x: f64| x.is_finite().then_some(x);
    let delta = shown(row).map(|e| e.delta_percent());
    let line = metric_row(row);
    Metric {
        name: row.of.metric.clone(),
        unit: row.of.unit.clone(),
        baseline: line.baseline,
        experiment: line.experiment,
        delta_percent: delta.map(|d| d.value),
        low: delta.and_then(|d| finite(d.low)),
        high: delta.and_then(|d| finite(d.high)),
        verdict: row.judged.verdict.word(),
        sig: line.sig(),
        primary: row.of.role == Role::Primary,
        p: row.judged.p,
        p_adjusted: row.judged.p_adjusted,
        samples: row.judged.estimate.map(|e| e.sampling),
        exact: row.of.exact,
        identical: row.of.identical,
        few_processes: row.of.few,
        between_processes: row.of.between_processes,
        warnings: row
            .judged
            .warnings
            .iter()
            .map(ToString::to_string)
            .collect(),
    }
}

fn not_judged(judged: &JudgedSamples) -> Vec<NotJudged> {
    let unmatched = judged.compared.unmatched.iter();
    let one = |u: &crate::matching::Unmatched| NotJudged {
        name: u.name.clone(),
        why: match &u.why {
            Why::OnlyBaseline => "only in the baseline's file",
            Why::OnlyExperiment => "only in the experiment's file",
            Why::Units(..) => "units differ",
            Why::Setting(_) => "measured in two settings",
            Why::Zero => "zero in some run",
        },
    };
    unmatched.map(one).collect()
}

fn geometric_mean(judged: &JudgedSamples) -> Option<GeometricMean> {
    let mean = mean(judged)?;
    let ratio = |(ratio, name): (f64, &str)| Ratio {
        name: name.to_owned(),
        ratio,
    };
    Some(GeometricMean {
        ratio: mean.value,
        benchmarks: mean.of,
        least: ratio(mean.from),
        greatest: ratio(mean.to),
    })
}
