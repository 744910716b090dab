//! `locklab reproduce`: the published reports, ours beside theirs.

use crate::cli::{Common, ReproduceArgs};
use crate::error::Error;
use crate::kernel::command::reproduce as kernel;
use crate::matrix_command::print;
use crate::simulated::{bar, workers};
use locklab_sim::{EXPERIMENTS, Reproduction, reproduce};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::process::ExitCode;

/// Runs it.
///
/// # Errors
/// One sentence.
pub(crate) fn run(args: &ReproduceArgs, common: &Common) -> Result<ExitCode, Error> {
    let simulated: Vec<&str> = EXPERIMENTS.iter().map(|(name, ..)| *name).collect();
    let kernels: Vec<&str> = kernel::names().collect();
    let names: Vec<&str> = if args.names.is_empty() {
        // Those with kernels take their hour only when asked for.
        simulated.clone()
    } else {
        args.names.iter().map(String::as_str).collect()
    };
    let unknown = |name: &&&str| !simulated.contains(name) && !kernels.contains(name);
    if let Some(unknown) = names.iter().find(unknown) {
        return Err(Error::Usage(format!(
            "there is no report called {unknown}; there are {}, and with kernels {}",
            simulated.join(", "),
            kernels.join(", ")
        )));
    }
    let mut done = Vec::new();
    let mut incomplete = None;
    for name in names {
        let (document, text, complete) = if kernels.contains(&name) {
            kernel::reproduce(name, args, common)?
        } else if common.dry_run {
            (Value::Null, format!("Would simulate {name}.\n"), Ok(()))
        } else {
            simulate(name, common)?
        };
        if !common.json || common.dry_run {
            print(&text)?;
        }
        done.push(document);
        let interrupted = matches!(complete, Err(Error::Interrupted(_)));
        if let Err(error) = complete {
            incomplete.get_or_insert(error);
        }
        if interrupted {
            break;
        }
    }
    if common.json && !common.dry_run {
        let all = |kind: &str| {
            done.iter()
                .all(|report| report["provenance"]["source"] == kind)
        };
        // Each report has its own.
        let source = ["simulation", "model", "hardware"]
            .into_iter()
            .find(|kind| all(kind))
            .unwrap_or("several");
        let document = json!({
            "schema": 1,
            "provenance": {"source": source},
            "reports": done,
        });
        print(&format!("{document:#}\n"))?;
    }
    incomplete.map_or(Ok(ExitCode::SUCCESS), Err)
}

/// The report as a document and as text, and whether it is complete.
type Reproduced = (Value, String, Result<(), Error>);

fn simulate(name: &str, common: &Common) -> Result<Reproduced, Error> {
    let bar = bar(1, common.quiet);
    let result = reproduce(name, common.seed, workers(), |at, of| {
        bar.set_length(of as u64);
        bar.set_position(at as u64);
    });
    bar.finish_and_clear();
    let report = result.map_err(Error::Failed)?;
    let mut document = serde_json::to_value(&report)
        .map_err(|e| Error::Failed(format!("cannot write the report: {e}")))?;
    document["provenance"] = json!({"source": "simulation"});
    Ok((document, text(&report), Ok(())))
}

fn text(report: &Reproduction) -> String {
    let mut text = String::new();
    let _ = writeln!(
        text,
        "{}: {} (report {})",
        report.name, report.title, report.report
    );
    let _ = writeln!(
        text,
        "Figures: ours simulated on the model {}; theirs published:",
        report.machine
    );
    let _ = writeln!(text, "{}\n", report.source);
    match &report.shape {
        Some(shape) => {
            let mut figures = report.figures.iter();
            for non_critical in &shape.non_critical {
                let _ = writeln!(
                    text,
                    "non-critical length {non_critical}; each cell ours over theirs"
                );
                let _ = write!(text, "threads");
                for critical in &shape.critical {
                    let _ = write!(text, " {critical:>6}");
                }
                text.push('\n');
                for threads in &shape.threads {
                    let row: Vec<_> = figures.by_ref().take(shape.critical.len()).collect();
                    let _ = write!(text, "{threads:>4} us");
                    for figure in &row {
                        let _ = write!(text, " {:>6.2}", figure.ours);
                    }
                    let _ = write!(text, "\n   them");
                    for figure in &row {
                        let _ = write!(text, " {:>6.2}", figure.published.unwrap_or(f64::NAN));
                    }
                    text.push('\n');
                }
                text.push('\n');
            }
        }
        None => {
            let _ = writeln!(
                text,
                "{:34} {:>9} {:>7} {:>7}",
                "figure", "published", "ours", "off"
            );
            for figure in &report.figures {
                let (theirs, off) = figure.published.map_or_else(
                    || ("none".to_owned(), String::new()),
                    |theirs| {
                        (
                            format!("{theirs:.2}"),
                            format!("{:+.1}%", 100.0 * (figure.ours / theirs - 1.0)),
                        )
                    },
                );
                let _ = writeln!(
                    text,
                    "{:34} {theirs:>9} {:>7.2} {off:>7}",
                    figure.name, figure.ours
                );
            }
            text.push('\n');
        }
    }
    let agreement = &report.agreement;
    let part = |value: Option<f64>, scale: f64, unit: &str| {
        value.map_or_else(
            || "no such figure".to_owned(),
            |value| format!("{:.2}{unit}", value * scale),
        )
    };
    let _ = writeln!(
        text,
        "Direction agrees in {} of {} figures off 1 by more than 0.05\n\
         Spearman's rank correlation {}, mean absolute log error {:.3}\n\
         Trace hash {:016x}\n",
        part(agreement.direction, 100.0, "%"),
        agreement.directed,
        part(agreement.spearman, 1.0, ""),
        agreement.mean_abs_log_error,
        report.trace_hash
    );
    text
}
