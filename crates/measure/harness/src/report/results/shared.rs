//! Holds the fields that the JSON results of every comparison have.

use crate::VERSION;
use crate::experiment::{AT_ONCE, Coordinate, Design, Facts, Key, Labels, Provenance};
use crate::report::inputs::Report;
use locklab_judge::Settings;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

const SCHEMA: u64 = 1;

/// The fields that the results of every comparison have.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct Shared {
    /// Version of this form. Fields may be added within a version; none is
    /// removed or changes its meaning.
    schema: u64,
    /// The tool that wrote it.
    tool: &'static str,
    /// The kind of comparison, by the command that carries it out: matrix,
    /// compare, kernel, rank.
    kind: String,
    /// The date of the measurement.
    date: String,
    /// The command line that repeats it.
    command: String,
    /// The source of every figure.
    provenance: Provenance,
    /// Names of the two sides.
    labels: Labels,
    /// Facts about the machine and the set-up.
    environment: BTreeMap<String, String>,
    /// The specification, in the backend's own terms.
    spec: Value,
    /// The choices made before the first run.
    design: Design,
    /// The settings of the judge.
    #[schemars(with = "BTreeMap<String, Value>")]
    settings: Settings,
    /// The caveats about the figures.
    caveats: Vec<String>,
    /// Says why it is not complete, if so.
    interrupted: Option<String>,
    /// The cells that were not measured.
    missing: Vec<BTreeMap<String, Coordinate>>,
}

/// A point of a matrix.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub(crate) struct Place {
    /// Number of threads, or processes.
    pub(crate) threads: u64,
    /// Length of the critical section.
    pub(crate) critical: u64,
    /// Length of the non-critical section.
    pub(crate) non_critical: u64,
    /// Number of locks that are used at once, where that was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) locks: Option<u64>,
}

pub(super) fn map(facts: &Facts) -> BTreeMap<String, String> {
    facts.iter().cloned().collect()
}

pub(crate) fn fields<T: Serialize>(value: &T) -> Map<String, Value> {
    match serde_json::to_value(value) {
        Ok(Value::Object(fields)) => fields,
        // These are our own types with string keys, so this cannot fail.
        _ => Map::new(),
    }
}

pub(crate) fn shared(report: &Report, caveats: &[String]) -> Shared {
    let experiment = report.experiment;
    Shared {
        schema: SCHEMA,
        tool: VERSION,
        kind: experiment.kind.clone(),
        date: report.context.date.clone(),
        command: report.context.command.clone(),
        provenance: experiment.provenance.clone(),
        labels: experiment.labels.clone(),
        environment: map(&experiment.facts),
        spec: experiment.spec.clone(),
        design: experiment.design.clone(),
        settings: report.verdicts.settings,
        caveats: caveats.to_vec(),
        interrupted: experiment.interrupted.clone(),
        missing: report
            .missing()
            .map(|cell| cell.key.0.iter().cloned().collect())
            .collect(),
    }
}

pub(crate) fn place(key: &Key) -> Place {
    let on = |axis: &str| key.number(axis).unwrap_or(0);
    Place {
        threads: on("threads"),
        critical: on("critical"),
        non_critical: on("non_critical"),
        locks: key.number(AT_ONCE),
    }
}
