//! The design of a comparison as text: how it was made and judged.

use super::inputs::Report;
use crate::VERSION;
use crate::experiment::{Facts, Layout, Pair};
use locklab_document::number;
use locklab_judge::Family;

/// Returns the choices made before the first run, and the command that repeats it.
pub(super) fn facts(report: &Report) -> Facts {
    let design = &report.experiment.design;
    let pairs = taken(report);
    let layout = report.experiment.layout();
    let subjects = number::plural(2, report.context.words.subject);
    let each = match layout {
        Layout::Matrix | Layout::Ranking => "cell",
        Layout::Workloads => "workload",
    };
    let seed = design.seed;
    let mut all = report.experiment.cells.iter().flat_map(|c| &c.pairs);
    let in_turn = all.any(Pair::has_order);
    let rounds = match design.retry {
        0 => String::new(),
        retry => format!(
            "; up to {} of {} for what was unclear, decided before the run: each of {} looks has \
             its part of the 5 %",
            number::count(retry as usize, "more round"),
            design.pairs,
            design.looks()
        ),
    };
    let fact = |name: &str, value: String| (name.to_owned(), value);
    let mut facts = vec![
        if layout == Layout::Ranking {
            fact(
                "Blocks",
                format!("{pairs}, all {subjects} in each (seed {seed})"),
            )
        } else {
            fact(
                "Pairs",
                if in_turn {
                    format!("{pairs} for each {each}, in random order (seed {seed}){rounds}")
                } else {
                    format!(
                        "{pairs} for each {each}; the runs of a pair differ only in what is \
                         compared (seed {seed})"
                    )
                },
            )
        },
        fact(
            "Flat",
            format!("within +-{} %, decided before the run", margin(report)),
        ),
        fact("Tool", VERSION.into()),
    ];
    for (name, value) in [
        ("Date", &report.context.date),
        ("Command", &report.context.command),
    ] {
        if !value.is_empty() {
            facts.push(fact(name, value.clone()));
        }
    }
    facts
}

/// Pairs that a cell has: as planned, and up to how many where cells that were
/// still open got more.
fn taken(report: &Report) -> String {
    let planned = report.experiment.design.pairs as usize;
    let cells = report.experiment.cells.iter();
    let most = cells
        .map(|cell| cell.pairs.iter().filter(|pair| counts(pair)).count())
        .max()
        .unwrap_or(0);
    if most > planned {
        format!("{planned} to {most}")
    } else {
        planned.to_string()
    }
}

fn counts(pair: &Pair) -> bool {
    pair.samples().iter().all(|sample| sample.invalid.is_none())
}

/// Returns the margin for flat in percent, as it is printed; with that of the
/// oversubscribed cells where it is another.
pub(super) fn margin(report: &Report) -> String {
    let own = report.experiment.cells.iter().filter_map(|cell| cell.delta);
    let percent = number::percent(100.0 * report.verdicts.settings.delta);
    match own.max_by(f64::total_cmp) {
        None => percent,
        Some(own) => format!("{percent} (o: {})", number::percent(100.0 * own)),
    }
}

/// Returns a paragraph on how the verdicts of a matrix were reached.
pub(super) fn method(report: &Report, family: Family) -> String {
    let family = match family {
        Family::FalseDiscovery => {
            "Of the cells called better or worse, one in twenty may be wrong \
             (Benjamini-Hochberg at 5 %): trust regions, and measure a single cell again before \
             believing it."
        }
        Family::Holm => "The chance that any cell is wrongly called is 5 % (Holm).",
        Family::Each => "No correction for many cells: of twenty equal ones, one will be called.",
    };
    format!(
        "A cell is the Hodges-Lehmann ratio over its pairs, judged by the exact signed-rank test; \
         flat means that the 90 % interval lies within {} %. {family}",
        margin(report)
    )
}
