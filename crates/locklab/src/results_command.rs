//! `locklab results`: what the store holds.

use crate::cli::{Common, ExportFormat, ResultsArgs, ResultsCommand};
use crate::error::Error;
use crate::matrix_command::{open_store, print, report};
use crate::report::Context;
use crate::store::{Listed, Sample};
use serde_json::json;
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
                return crate::compare::command::show(&mut programs, &context, common, html);
            }
            let measured = store.measured(listed.id).map_err(Error::Failed)?;
            report(&measured, &context, common, html.as_deref())?;
            Ok(ExitCode::SUCCESS)
        }
        ResultsCommand::Export { id, format } => {
            if let Some(id) = id {
                store.listed(Some(*id)).map_err(Error::Failed)?;
            }
            let samples = store.samples(*id).map_err(Error::Failed)?;
            let text = match format {
                ExportFormat::Csv => csv(&samples),
                ExportFormat::Jsonl => json_lines(&samples),
            };
            print(&text.map_err(|e| Error::Failed(format!("cannot export: {e}")))?)
        }
    }
}

fn table(list: &[Listed]) -> String {
    if list.is_empty() {
        return "The store is empty; 'locklab matrix' fills it.\n".into();
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

fn json_lines(samples: &[Sample]) -> Result<String, Box<dyn std::error::Error>> {
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
