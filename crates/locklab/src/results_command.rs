//! `locklab results`: what the store holds.

use crate::cli::{Common, ExportFormat, ResultsArgs, ResultsCommand};
use crate::compare::Invalid;
use crate::matrix_command::{open_store, print, report};
use crate::report::Context;
use crate::store::{Listed, Sample, Store};
use locklab_host::error::Error;
use locklab_judge::Side;
use serde::Serialize;
use serde_json::json;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::process::ExitCode;

/// Runs it.
///
/// # Errors
/// One sentence.
pub(crate) fn run(args: &ResultsArgs, common: &Common) -> Result<ExitCode, Error> {
    let store = open_store(common)?;
    match &args.command {
        ResultsCommand::List => {
            let list = store.list().map_err(Error::Failed)?;
            if common.json {
                return print(&format!(
                    "{:#}\n",
                    json!({ "schema": 1, "experiments": list })
                ));
            }
            print(&table(&list))
        }
        ResultsCommand::Show { id, html } => {
            let listed = store.listed(*id).map_err(Error::Failed)?;
            let context = Context {
                date: format!("{} UTC", listed.started),
                command: listed.command,
            };
            if let Some(mut programs) = store.comparison(listed.id).map_err(Error::Failed)? {
                let html = html.as_deref();
                return crate::compare::show(&mut programs, &context, common, html);
            }
            let measured = store.measured(listed.id).map_err(Error::Failed)?;
            report(&measured, &context, common, html.as_deref())?;
            Ok(ExitCode::SUCCESS)
        }
        ResultsCommand::Export { id, format } => {
            if let Some(id) = id {
                store.listed(Some(*id)).map_err(Error::Failed)?;
            }
            let text = export(&store, *id, *format)?;
            print(&text)
        }
    }
}

/// The samples of one experiment, or of all.
fn export(store: &Store, id: Option<i64>, format: ExportFormat) -> Result<String, Error> {
    let samples = store.samples(id).map_err(Error::Failed)?;
    let program_runs = program_runs(store, id).map_err(Error::Failed)?;
    let cannot = |e: Box<dyn std::error::Error>| Error::Failed(format!("cannot export: {e}"));
    match format {
        ExportFormat::Jsonl => {
            let cells = json_lines(&samples).map_err(cannot)?;
            Ok(cells + &json_lines(&program_runs).map_err(cannot)?)
        }
        ExportFormat::Csv if program_runs.is_empty() => csv(&samples).map_err(cannot),
        ExportFormat::Csv if samples.is_empty() => program_csv(&program_runs).map_err(cannot),
        ExportFormat::Csv => Err(Error::Usage(
            "the store holds matrices and comparisons, whose columns differ; name one \
             ('locklab results list'), or use --format jsonl"
                .into(),
        )),
    }
}

/// One run of a comparison with what it belongs to.
#[derive(Serialize)]
struct ProgramRun {
    experiment: i64,
    workload: String,
    pair: u32,
    side: Side,
    subject: String,
    baseline_first: bool,
    started_s: f64,
    values: BTreeMap<String, f64>,
    invalid: Option<Invalid>,
}

fn program_runs(store: &Store, id: Option<i64>) -> Result<Vec<ProgramRun>, String> {
    let ids = match id {
        Some(id) => vec![id],
        None => store.list()?.iter().map(|listed| listed.id).collect(),
    };
    let mut runs = Vec::new();
    for id in ids {
        let Some(measured) = store.comparison(id)? else {
            continue;
        };
        let mut pairs = store.program_runs(id)?;
        for workload in &measured.workloads {
            for pair in pairs.remove(&workload.name).unwrap_or_default() {
                let sides = [
                    (Side::Baseline, &measured.spec.baseline, pair.baseline),
                    (Side::Experiment, &measured.spec.experiment, pair.experiment),
                ];
                runs.extend(sides.map(|(side, subject, run)| ProgramRun {
                    experiment: id,
                    workload: workload.name.clone(),
                    pair: pair.index,
                    side,
                    subject: subject.label(),
                    baseline_first: pair.baseline_first,
                    started_s: run.started,
                    values: run.values,
                    invalid: run.invalid,
                }));
            }
        }
    }
    Ok(runs)
}

/// One row a figure; a run without figures has one row that says why.
fn program_csv(runs: &[ProgramRun]) -> Result<String, Box<dyn std::error::Error>> {
    let mut csv = csv::Writer::from_writer(Vec::new());
    csv.write_record([
        "experiment",
        "workload",
        "pair",
        "side",
        "subject",
        "baseline_first",
        "started_s",
        "metric",
        "value",
        "invalid",
    ])?;
    for run in runs {
        let invalid = run.invalid.as_ref().map_or("", Invalid::why);
        let mut row = |metric: &str, value: String| {
            csv.write_record([
                run.experiment.to_string().as_str(),
                &run.workload,
                &run.pair.to_string(),
                &run.side.to_string(),
                &run.subject,
                &run.baseline_first.to_string(),
                &run.started_s.to_string(),
                metric,
                &value,
                invalid,
            ])
        };
        if run.values.is_empty() {
            row("", String::new())?;
        }
        for (metric, value) in &run.values {
            row(metric, value.to_string())?;
        }
    }
    Ok(String::from_utf8(csv.into_inner()?)?)
}

fn table(list: &[Listed]) -> String {
    if list.is_empty() {
        return "The store is empty; 'locklab matrix' and 'locklab compare' fill it.\n".into();
    }
    let names: Vec<String> = list
        .iter()
        .map(|e| format!("{} vs {}", e.experiment, e.baseline))
        .collect();
    let width = names.iter().map(String::len).max().unwrap_or(0).max(5);
    let mut text = format!(
        "{:>4}  {:<19}  {:<11}  {:>6}  {:<width$}\n",
        "id", "started (UTC)", "state", "runs", "locks"
    );
    for (e, name) in list.iter().zip(&names) {
        let _ = writeln!(
            text,
            "{:>4}  {:<19}  {:<11}  {:>6}  {name}",
            e.id, e.started, e.state, e.runs
        );
    }
    text
}

fn json_lines(samples: &[impl Serialize]) -> Result<String, Box<dyn std::error::Error>> {
    let mut text = String::new();
    for sample in samples {
        text.push_str(&serde_json::to_string(sample)?);
        text.push('\n');
    }
    Ok(text)
}

/// One row a sample; what there is none of is empty.
fn csv(samples: &[Sample]) -> Result<String, Box<dyn std::error::Error>> {
    let mut csv = csv::Writer::from_writer(Vec::new());
    csv.write_record([
        "experiment",
        "threads",
        "critical",
        "non_critical",
        "pair",
        "side",
        "lock",
        "baseline_first",
        "state",
        "started_s",
        "ops_per_s",
        "handoffs_per_s",
        "streak_mean",
        "streak_max",
        "jain",
        "min_over_max",
        "jain_1ms",
        "min_over_max_1ms",
        "latency_p50_ns",
        "latency_p99_ns",
        "latency_p999_ns",
        "latency_max_ns",
        "round_trip_before_ns",
        "round_trip_after_ns",
        "placement",
        "cpu_share",
        "per_thread",
        "invalid",
    ])?;
    for sample in samples {
        let run = &sample.run;
        let maybe = |value: Option<f64>| value.map_or(String::new(), |v| v.to_string());
        let latency = |of: fn(&crate::matrix::Latency) -> u64| {
            run.latency
                .as_ref()
                .map_or(String::new(), |l| of(l).to_string())
        };
        let place = run.round_trip.as_ref();
        let per_thread: Vec<String> = run.per_thread.iter().map(ToString::to_string).collect();
        let invalid = match &run.invalid {
            None => String::new(),
            Some(invalid) => serde_json::to_string(invalid)?,
        };
        csv.write_record([
            sample.experiment.to_string(),
            sample.point.threads.to_string(),
            sample.point.critical.to_string(),
            sample.point.non_critical.to_string(),
            sample.pair.to_string(),
            sample.side.clone(),
            sample.lock.clone(),
            sample.baseline_first.to_string(),
            sample.state.clone(),
            maybe(run.started),
            run.ops_per_s.to_string(),
            run.handoffs_per_s.to_string(),
            run.streak_mean.to_string(),
            run.streak_max.to_string(),
            run.jain.to_string(),
            run.min_over_max.to_string(),
            maybe(run.jain_1ms),
            maybe(run.min_over_max_1ms),
            latency(|l| l.p50),
            latency(|l| l.p99),
            latency(|l| l.p999),
            latency(|l| l.max),
            maybe(place.map(|p| p.before)),
            maybe(place.map(|p| p.after)),
            place.map_or(String::new(), |p| p.class.clone()),
            maybe(run.cpu_share),
            per_thread.join(" "),
            invalid,
        ])?;
    }
    Ok(String::from_utf8(csv.into_inner()?)?)
}
