//! `locklab frontend --workload LIST`: workloads, ranked by the possible cost of inlining.

use super::FrontendArgs;
use crate::arguments::Common;
use crate::output::answer;
use locklab_document::page::wrapped;
use locklab_document::{Column, Table, render};
use locklab_host::error::Error;
use locklab_host::interrupt;
use locklab_host::topology::Topology;
use locklab_programs::counters::{Counters, Mode};
use locklab_programs::fault::Fault;
use locklab_programs::icache::Model;
use locklab_programs::launcher::Launcher;
use locklab_programs::screen::{Screened, screen};
use locklab_programs::settings::RUN_LIMIT;
use locklab_programs::workloads::WorkloadSpec;
use serde_json::json;
use std::fmt::Write as _;
use std::process::ExitCode;

/// Runs of each workload, unless another number was given.
const RUNS: u32 = 3;

/// Runs `locklab frontend --workload LIST`.
///
/// # Errors
/// [`Error::Usage`] if a workload does not exist or a number is out of range,
/// [`Error::Failed`] if no temporary folder can be made or standard output
/// cannot be written, [`Error::Interrupted`] after Ctrl-C.
pub(super) fn run(args: &FrontendArgs, common: &Common) -> Result<ExitCode, Error> {
    for (option, given) in [
        ("--processor", args.processor.is_some()),
        ("--before", args.before.is_some()),
        ("--l1i", args.l1i.is_some()),
        ("--next-line", args.next_line),
        ("--exact", args.exact),
        ("--hot", args.hot.is_some()),
        ("--output", args.output.is_some()),
    ] {
        if given {
            return Err(Error::Usage(format!(
                "{option} is for one program; leave it out with --workload"
            )));
        }
    }
    let mut workloads = Vec::new();
    for name in &args.workload {
        let mut workload = WorkloadSpec::parse(name.trim())?;
        workload.scale = args.scale;
        workload.workload()?;
        workloads.push(workload);
    }
    let runs = args.runs.unwrap_or(RUNS);
    if common.dry_run {
        let titles: Vec<String> = workloads.iter().map(WorkloadSpec::title).collect();
        let json = || json!({"schema": 1, "dry_run": true, "kind": "screen", "workloads": titles, "runs": runs});
        let text = || format!("Would run {}.\n", titles.join(", "));
        return answer(common.json, json, text);
    }
    let counters = Counters::probe(Mode::Frontend);
    let why = counters.as_ref().err().map(ToString::to_string);
    let limit = args.run_limit.unwrap_or(RUN_LIMIT).duration();
    let mut launcher = Launcher::new(Topology::read().order, limit, interrupt::listen()?)?;
    launcher.counters = counters.unwrap_or_else(|_| Counters::none());
    // Where the processor has no such counter, the model is used instead.
    let model = why.as_ref().map(|_| Model::new(None, None, None, false));
    let no_model = model
        .as_ref()
        .and_then(|m| m.as_ref().err().map(ToString::to_string));
    let model = model.and_then(Result::ok);
    let rows =
        screen(&workloads, runs, model.as_ref(), &mut launcher).map_err(|fault| match fault {
            Fault::Interrupted => Error::Interrupted("interrupted; nothing is stored".into()),
            other => Error::Failed(other.to_string()),
        })?;
    let provenance = match &model {
        Some(model) => json!({ "source": "model", "name": model.geometry.to_string() }),
        None => json!({ "source": "hardware" }),
    };
    let json = || {
        json!({"schema": 1, "kind": "screen", "provenance": provenance, "front_end": why,
               "model": no_model, "workloads": rows})
    };
    let model = model.as_ref().ok_or(no_model.clone());
    answer(common.json, json, || text(&rows, why.as_deref(), model))
}

fn text(rows: &[Screened], why: Option<&str>, model: Result<&Model, Option<String>>) -> String {
    let mut text = format!("{}\n\n", wrapped("", &lead(rows, why)));
    let front = if why.is_some() {
        "L1i MPKI, model"
    } else {
        "front end"
    };
    let share = |x: Option<f64>| x.map_or("-".into(), |x| format!("{:.1} %", 100.0 * x));
    let cells = rows.iter().map(|row| {
        let first = match why {
            Some(_) => row.modelled.map_or("-".into(), |x| format!("{x:.2}")),
            None => share(row.front_end),
        };
        vec![row.name.clone(), first, share(row.kernel)]
    });
    let columns = vec![
        Column::words("Workload", 31),
        Column::new(front, 16),
        Column::new("in the kernel", 16),
    ];
    text += &render::table(&Table::new(columns, cells.collect()));
    let mut notes = Vec::new();
    for row in rows {
        let name = &row.name;
        let why = row.not_run.iter();
        notes.extend(why.map(|why| format!("{name} was not run: {why}.")));
        let why = row.not_modelled.iter();
        notes.extend(why.map(|why| format!("{name} was not modelled: {why}.")));
    }
    if let Some(why) = why {
        notes.push(format!("There are no front-end figures: {why}."));
        notes.push(match model {
            Ok(model) => format!(
                "The table has L1i misses in a thousand instructions of user mode instead. They are \
                 modelled, not measured: in one run under the i-cache model ({}, {}), without the \
                 kernel.",
                model.geometry, model.source
            ),
            Err(no_model) => {
                let why = no_model.unwrap_or_default();
                format!("The i-cache model could not take their place: {why}.")
            }
        });
    }
    notes.push(
        "Measured figures are medians of a few runs. They are good enough to choose workloads, \
         and no basis for a conclusion."
            .into(),
    );
    for note in notes {
        let _ = writeln!(text, "\n{}", wrapped("", &note));
    }
    text
}

/// Returns the first paragraph: the workload to begin with, and why.
fn lead(rows: &[Screened], why: Option<&str>) -> String {
    let first = rows.first().and_then(|row| {
        let found = match why {
            Some(_) => format!(
                "it has the most modelled L1i misses ({:.2} in a thousand instructions)",
                row.modelled?
            ),
            None => format!(
                "its front end leaves the most pipeline slots empty ({:.1} %)",
                100.0 * row.front_end?
            ),
        };
        Some(format!("Inlining can cost {} most: {found}.", row.name))
    });
    let order = "The workloads are in the order in which inlining can cost them.";
    first.map_or_else(
        || "No figure of these workloads says how much inlining can cost them.".to_owned(),
        |first| format!("{first} {order}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::golden::golden;

    fn row(name: &str, [front_end, modelled, kernel]: [Option<f64>; 3]) -> Screened {
        Screened {
            name: name.into(),
            front_end,
            modelled,
            kernel,
            ..Screened::default()
        }
    }

    #[test]
    fn counted_slots_rank_the_workloads() {
        let mut failed = row("nginx-churn", [None, None, None]);
        failed.not_run = Some("nginx is not installed: apt-get install nginx".into());
        let rows = [
            row("rocksdb-deleteseq", [Some(0.314), None, Some(0.021)]),
            row("fstat", [Some(0.102), None, Some(0.846)]),
            failed,
        ];
        golden("screen.txt", &text(&rows, None, Err(None)));
    }

    #[test]
    fn without_counters_the_reader_learns_why() {
        let mut many = row("gcc", [None, None, Some(0.183)]);
        many.not_modelled =
            Some("its program starts others, which the model does not follow".into());
        let rows = [row("call-sites", [None, Some(12.345), Some(0.004)]), many];
        let why = "the kernel knows no such event on this machine";
        let no_model = Err(Some("the plugin is not built".into()));
        golden("screen-modelled.txt", &text(&rows, Some(why), no_model));
    }
}
