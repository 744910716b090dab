//! `locklab reproduce`: the published reports, ours beside theirs.

use crate::cli::{Common, ReproduceArgs};
use crate::error::Error;
use crate::matrix_command::print;
use crate::simulated::{bar, workers};
use locklab_sim::{EXPERIMENTS, Reproduction, reproduce};
use std::fmt::Write as _;
use std::process::ExitCode;

/// Runs it.
///
/// # Errors
/// One sentence.
pub(crate) fn run(args: &ReproduceArgs, common: &Common) -> Result<ExitCode, Error> {
    let all: Vec<String> = EXPERIMENTS
        .iter()
        .map(|(name, ..)| (*name).to_owned())
        .collect();
    let names = if args.names.is_empty() {
        &all
    } else {
        &args.names
    };
    if let Some(unknown) = names.iter().find(|name| !all.contains(name)) {
        return Err(Error::Usage(format!(
            "there is no report called {unknown}; there are {}",
            all.join(", ")
        )));
    }
    if common.dry_run {
        return print(&format!("Would simulate {}.\n", names.join(", ")));
    }
    let mut done = Vec::new();
    for name in names {
        let bar = bar(1, common.quiet);
        let result = reproduce(name, common.seed, workers(), |at, of| {
            bar.set_length(of as u64);
            bar.set_position(at as u64);
        });
        bar.finish_and_clear();
        done.push(result.map_err(Error::Failed)?);
        if !common.json {
            print(&text(&done[done.len() - 1]))?;
        }
    }
    if common.json {
        let document = serde_json::json!({
            "schema": 1,
            "provenance": {"source": "simulation"},
            "reports": done,
        });
        return print(&format!("{document:#}\n"));
    }
    Ok(ExitCode::SUCCESS)
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
