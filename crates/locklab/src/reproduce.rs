//! `locklab reproduce`: the published reports, ours beside theirs.

use crate::cli::{Common, ReproduceArgs};
use crate::kernel::command::reproduce as kernel;
use crate::matrix_command::print;
use crate::report::Page;
use crate::simulated::{bar, workers};
use locklab_host::error::Error;
use locklab_sim::{
    Agreement, EXPERIMENTS, FLAT, Group, MISS, Reproduction, Shape, agreement, reproduce, score,
};
use serde_json::{Value, json};
use std::process::ExitCode;

/// The reports that are simulated when no names are given.
const REPORTS: [&str; 3] = ["virt-backoff", "mplock-anderson", "qspinlock-xfs"];

/// Misses of one experiment that are printed; all are in the JSON document.
const MISSES_SHOWN: usize = 8;

/// Runs it.
///
/// # Errors
/// One sentence.
pub(crate) fn run(args: &ReproduceArgs, common: &Common) -> Result<ExitCode, Error> {
    let simulated: Vec<&str> = EXPERIMENTS.iter().map(|(name, ..)| *name).collect();
    let kernels: Vec<&str> = kernel::names().collect();
    let names: Vec<&str> = if args.all {
        simulated.clone()
    } else if args.names.is_empty() {
        // Those with kernels take their hour only when asked for.
        REPORTS.to_vec()
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
    let mut reproductions = Vec::new();
    let mut incomplete = None;
    for name in names {
        let (document, text, complete) = if kernels.contains(&name) {
            kernel::reproduce(name, args, common)?
        } else if common.dry_run {
            (Value::Null, format!("Would simulate {name}.\n"), Ok(()))
        } else {
            let report = simulate(name, common)?;
            let document = document(&report)?;
            let text = text(&report);
            reproductions.push(report);
            (document, text, Ok(()))
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
    if args.all && !common.json && !common.dry_run {
        print(&scores(&reproductions))?;
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
        let scores = Group::ALL.map(|group| (group.key(), score(group, &reproductions)));
        let misses = reproductions.iter().flat_map(Reproduction::misses);
        let document = json!({
            "schema": 1,
            "provenance": {"source": source},
            "reports": done,
            "scores": std::collections::BTreeMap::from(scores),
            "misses": misses.collect::<Vec<_>>(),
        });
        print(&format!("{document:#}\n"))?;
    }
    incomplete.map_or(Ok(ExitCode::SUCCESS), Err)
}

fn simulate(name: &str, common: &Common) -> Result<Reproduction, Error> {
    let bar = bar(1, common.quiet);
    let result = reproduce(name, common.seed, workers(), |at, of| {
        bar.set_length(of as u64);
        bar.set_position(at as u64);
    });
    bar.finish_and_clear();
    result.map_err(Error::Failed)
}

fn document(report: &Reproduction) -> Result<Value, Error> {
    let mut document = serde_json::to_value(report)
        .map_err(|e| Error::Failed(format!("cannot write the report: {e}")))?;
    document["provenance"] = json!({"source": "simulation"});
    Ok(document)
}

fn text(report: &Reproduction) -> String {
    let mut page = Page::default();
    page.title(&format!("{}: {}", report.name, report.title));
    let number = report.report.map(|number| format!(", report {number}"));
    let mut facts = vec![(
        "Ours".into(),
        format!("simulated on the model {}", report.machine),
    )];
    facts.extend(report.near.clone().map(|near| ("Likeness".into(), near)));
    facts.push((
        "Theirs".into(),
        format!("published{}: {}", number.unwrap_or_default(), report.source),
    ));
    if let Some(group) = report.group {
        facts.push(("Group".into(), group.title().into()));
    }
    facts.push(("Trace hash".into(), format!("{:016x}", report.trace_hash)));
    page.facts(&facts);
    match &report.shape {
        Some(shape) => matrix(&mut page, report, shape),
        None => figures(&mut page, report),
    }
    page.blank();
    let agreement = &report.agreement;
    if let Some(direction) = agreement.direction {
        page.item(&format!(
            "direction right in {:.0} of the {} published figures that are off 1 by more than \
             {FLAT} ({:.0} %)",
            direction * agreement.directed as f64,
            agreement.directed,
            100.0 * direction
        ));
    }
    if let Some(spearman) = agreement.spearman {
        page.item(&format!("Spearman's rank correlation {spearman:.2}"));
    }
    if let Some(factor) = agreement.median_factor_error {
        page.item(&format!("median factor error {factor:.2}"));
    }
    page.item(&format!(
        "mean absolute log error {:.3}{}",
        agreement.mean_abs_log_error,
        by_block(report)
    ));
    format!("{}\n", page.finish())
}

/// The error of each block, if there are several.
fn by_block(report: &Reproduction) -> String {
    let Some(shape) = report.shape.as_ref().filter(|s| s.non_critical.len() > 1) else {
        return String::new();
    };
    let cells = shape.threads.len() * shape.critical.len();
    let parts: Vec<String> = shape
        .non_critical
        .iter()
        .zip(report.figures.chunks(cells))
        .map(|(length, figures)| {
            let (theirs, ours): (Vec<f64>, Vec<f64>) = figures
                .iter()
                .filter_map(|figure| Some((figure.published?, figure.ours)))
                .unzip();
            let error = agreement(&theirs, &ours).mean_abs_log_error;
            format!("{error:.3} at non-critical length {length}")
        })
        .collect();
    format!(": {}", parts.join(", "))
}

fn matrix(page: &mut Page, report: &Reproduction, shape: &Shape) {
    let mut figures = report.figures.iter();
    for non_critical in &shape.non_critical {
        page.heading(&format!(
            "Non-critical length {non_critical}: rows threads, columns critical length, \
             each ratio ours and below it theirs"
        ));
        let mut row = |head: &str, cells: Vec<String>| {
            let line = format!("{head:>8}|{}", cells.concat());
            page.row(&line, line.len());
        };
        row(
            "",
            shape.critical.iter().map(|n| format!("{n:>7}")).collect(),
        );
        for threads in &shape.threads {
            let cells: Vec<_> = figures.by_ref().take(shape.critical.len()).collect();
            row(
                &format!("{threads} ours"),
                cells.iter().map(|c| format!("{:>7.2}", c.ours)).collect(),
            );
            let theirs = |c: &&locklab_sim::Reproduced| {
                c.published
                    .map_or_else(|| format!("{:>7}", "-"), |ratio| format!("{ratio:>7.2}"))
            };
            row("theirs", cells.iter().map(theirs).collect());
        }
    }
}

fn figures(page: &mut Page, report: &Reproduction) {
    page.blank();
    let head = format!("{:34} {:>7} {:>7} {:>8}", "figure", "theirs", "ours", "off");
    page.row(&head, head.len());
    for figure in &report.figures {
        let (theirs, off) = figure.published.map_or_else(
            || ("none".to_owned(), String::new()),
            |theirs| {
                (
                    format!("{theirs:.2}"),
                    format!("{:+.1} %", 100.0 * (figure.ours / theirs - 1.0)),
                )
            },
        );
        let row = format!(
            "{:34} {theirs:>7} {:>7.2} {off:>8}",
            figure.name, figure.ours
        );
        page.row(&row, row.trim_end().len());
    }
}

/// Every experiment in a line, the score of each group, and the misses.
fn scores(reports: &[Reproduction]) -> String {
    let mut page = Page::default();
    page.title("Published experiments that were simulated: two scores");
    let row = |page: &mut Page, name: &str, agreement: &Agreement| {
        let percent = |part: f64| format!("{:.0} %", 100.0 * part);
        let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        let line = format!(
            "{name:28} {:>7} {:>9} {:>7} {:>9} {:>7}",
            agreement.figures,
            or_dash(agreement.direction.map(percent)),
            or_dash(agreement.median_factor_error.map(|f| format!("{f:.2}"))),
            format!("{:.3}", agreement.mean_abs_log_error),
            or_dash(agreement.spearman.map(|r| format!("{r:.2}"))),
        );
        page.row(&line, line.len());
    };
    for group in Group::ALL {
        page.heading(&format!("Group: {}", group.title()));
        let head = format!(
            "{:28} {:>7} {:>9} {:>7} {:>9} {:>7}",
            "experiment", "figures", "direction", "factor", "log error", "ranks"
        );
        page.row(&head, head.len());
        for report in reports.iter().filter(|report| report.group == Some(group)) {
            row(&mut page, &report.name, &report.agreement);
        }
        row(&mut page, "all figures", &score(group, reports));
    }
    page.blank();
    page.paragraph(&format!(
        "Direction: published figures that are off 1 by more than {FLAT}, with ours on the same \
         side. Factor: the median of the factors by which ours are off. Log error: mean of \
         |ln(ours / theirs)|. Ranks: Spearman's correlation, from five figures on."
    ));
    page.heading(&format!(
        "Misses: off by more than a factor of {MISS}, or in the wrong direction"
    ));
    for report in reports {
        let misses = report.misses();
        for miss in misses.iter().take(MISSES_SHOWN) {
            page.item(&format!(
                "{}: {}: theirs {:.2}, ours {:.2}, factor {:.2}{}",
                miss.experiment,
                miss.figure,
                miss.published,
                miss.ours,
                miss.factor,
                if miss.wrong_direction {
                    ", wrong direction"
                } else {
                    ""
                }
            ));
        }
        if misses.len() > MISSES_SHOWN {
            page.item(&format!(
                "{}: {} more, in --json",
                report.name,
                misses.len() - MISSES_SHOWN
            ));
        }
    }
    if reports.iter().all(|report| report.misses().is_empty()) {
        page.paragraph("None.");
    }
    format!("{}\n", page.finish())
}
