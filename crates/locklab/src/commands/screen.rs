//! `locklab screen`: workloads, ranked by what inlining could cost them.

use crate::cli::Common;
use crate::output::print;
use clap::Args;
use locklab_host::error::Error;
use locklab_host::interrupt;
use locklab_host::topology::Topology;
use locklab_programs::counters::{Counters, Mode};
use locklab_programs::launcher::Launcher;
use locklab_programs::screen::{Screened, screen};
use locklab_programs::workloads::{Fault, WorkloadSpec};
use serde_json::json;
use std::fmt::Write as _;
use std::process::ExitCode;
use std::time::Duration;

/// `locklab screen`.
#[derive(Debug, Args)]
pub struct ScreenArgs {
    /// Workloads, as `locklab compare --workload` takes them
    #[arg(required = true)]
    pub workloads: Vec<String>,
    /// Runs of each, after one that is left out
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    pub runs: u32,
    /// How much work a run is, over its usual
    #[arg(long, value_name = "FACTOR")]
    pub scale: Option<f64>,
    /// Of one run, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 120, value_parser = clap::value_parser!(u32).range(1..))]
    pub time_limit: u32,
}

/// Runs it.
///
/// # Errors
/// One sentence.
pub fn run(args: &ScreenArgs, common: &Common) -> Result<ExitCode, Error> {
    let mut workloads = Vec::new();
    for name in &args.workloads {
        let mut workload = WorkloadSpec::parse(name).map_err(Error::Usage)?;
        workload.scale = args.scale;
        workload.workload().map_err(Error::Usage)?;
        workloads.push(workload);
    }
    if common.dry_run {
        return print(&dry_run(&workloads, args.runs, common.json));
    }
    let counters = Counters::probe(Mode::Frontend);
    let why = counters.as_ref().err().cloned();
    let limit = Duration::from_secs(args.time_limit.into());
    let mut launcher = Launcher::new(Topology::read().order, limit, interrupt::listen()?)
        .map_err(Error::Failed)?;
    launcher.counters = counters.unwrap_or_else(|_| Counters::none());
    let rows = screen(&workloads, args.runs, &mut launcher).map_err(|fault| match fault {
        Fault::Interrupted => Error::Interrupted("interrupted; nothing is stored".into()),
        other => Error::Failed(format!("{other:?}")),
    })?;
    print(&if common.json {
        let provenance = json!({ "source": "hardware" });
        let document = json!({
            "schema": 1, "kind": "screen", "provenance": provenance,
            "front_end": why, "workloads": rows,
        });
        format!("{document:#}\n")
    } else {
        text(&rows, why.as_deref())
    })
}

fn dry_run(workloads: &[WorkloadSpec], runs: u32, as_json: bool) -> String {
    let titles: Vec<String> = workloads.iter().map(WorkloadSpec::title).collect();
    if as_json {
        let document = json!({
            "schema": 1, "dry_run": true, "kind": "screen", "workloads": titles, "runs": runs,
        });
        return format!("{document:#}\n");
    }
    format!("Would run {}.\n", titles.join(", "))
}

fn text(rows: &[Screened], why: Option<&str>) -> String {
    let mut text = format!(
        "{:<32}{:>16}{:>16}\n",
        "Workload", "front end", "in the kernel"
    );
    let share = |x: Option<f64>| x.map_or("-".into(), |x| format!("{:.1} %", 100.0 * x));
    for row in rows {
        let _ = writeln!(
            text,
            "{:<32}{:>16}{:>16}",
            row.name.chars().take(31).collect::<String>(),
            share(row.front_end),
            share(row.kernel)
        );
        if let Some(why) = &row.not_run {
            let _ = writeln!(text, "  not run: {why}");
        }
    }
    if let Some(why) = why {
        let _ = writeln!(text, "\nNo front-end figures. {why}.");
    }
    text + "\nMedians of a few runs; to choose workloads by, not to conclude from.\n"
}
