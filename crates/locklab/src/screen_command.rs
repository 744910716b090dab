//! `locklab screen`: which workloads are worth a question about inlining.
//!
//! Ranks them by the share of pipeline slots that the front end left empty
//! (top-down, level 1) where the processor counts it, and by the share of
//! CPU time in the kernel. Screening only: no verdict, no interval.

use crate::cli::Common;
use crate::compare::Subject;
use crate::compare::lab::Lab;
use crate::counters::{Counters, Filter, Mode};
use crate::matrix_command::print;
use crate::workloads::{Asked, Fault};
use clap::Args;
use locklab_host::error::Error;
use locklab_host::interrupt;
use locklab_host::topology::Topology;
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
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub runs: u32,
    /// How much work a run is, over its usual
    #[arg(long, value_name = "FACTOR")]
    pub scale: Option<f64>,
    /// Of one run, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 120)]
    pub time_limit: u32,
}

struct Row {
    name: String,
    front_end: Option<f64>,
    kernel: Option<f64>,
    why: Option<String>,
}

/// Runs it.
///
/// # Errors
/// One sentence.
pub(crate) fn run(args: &ScreenArgs, common: &Common) -> Result<ExitCode, Error> {
    let mut asked = Vec::new();
    for name in &args.workloads {
        let mut one = Asked::parse(name).map_err(Error::Usage)?;
        one.scale = args.scale;
        one.make().map_err(Error::Usage)?;
        asked.push(one);
    }
    if args.runs == 0 {
        return Err(Error::Usage(
            "no runs show nothing; give --runs 1 or more".into(),
        ));
    }
    if common.dry_run {
        return print(&format!("Would run {}.\n", args.workloads.join(", ")));
    }
    let counters = Counters::probe(Mode::Frontend);
    let why = counters.as_ref().err().cloned();
    let interrupt = interrupt::listen()?;
    let mut lab = Lab::new(
        None,
        Topology::read().order,
        Vec::new(),
        Duration::from_secs(args.time_limit.into()),
        interrupt,
        counters.unwrap_or_else(|_| Counters::none()),
    )
    .map_err(Error::Failed)?;
    let mut rows = Vec::new();
    for one in &asked {
        rows.push(screen(one, args.runs, &mut lab)?);
    }
    // By the front end where it is known, else by the kernel.
    let by = |row: &Row| row.front_end.or(row.kernel).unwrap_or(-1.0);
    rows.sort_by(|a, b| by(b).total_cmp(&by(a)));
    if common.json {
        let workloads: Vec<_> = rows
            .iter()
            .map(|r| {
                json!({
                    "name": r.name,
                    "front_end_bound": r.front_end,
                    "kernel_share": r.kernel,
                    "not_run": r.why,
                })
            })
            .collect();
        let provenance = json!({ "source": "hardware" });
        let document = json!({
            "schema": 1, "kind": "screen", "provenance": provenance,
            "front_end": why, "workloads": workloads,
        });
        return print(&format!("{document:#}\n"));
    }
    let mut text = format!(
        "{:<32}{:>16}{:>16}\n",
        "Workload", "front end", "in the kernel"
    );
    let share = |x: Option<f64>| x.map_or("-".into(), |x| format!("{:.1} %", 100.0 * x));
    for row in &rows {
        let _ = writeln!(
            text,
            "{:<32}{:>16}{:>16}",
            row.name.chars().take(31).collect::<String>(),
            share(row.front_end),
            share(row.kernel)
        );
        if let Some(why) = &row.why {
            let _ = writeln!(text, "  not run: {why}");
        }
    }
    if let Some(why) = why {
        let _ = writeln!(text, "\nNo front-end figures. {why}.");
    }
    text += "\nMedians of a few runs; to choose workloads by, not to conclude from.\n";
    print(&text)
}

fn screen(asked: &Asked, runs: u32, lab: &mut Lab) -> Result<Row, Error> {
    let mut workload = asked.make().map_err(Error::Usage)?;
    let subject = Subject::default();
    let mut row = Row {
        name: asked.title(),
        front_end: None,
        kernel: None,
        why: workload.check([&subject, &subject], lab).err(),
    };
    let (mut front, mut kernel) = (Vec::new(), Vec::new());
    for n in 0..=runs {
        if row.why.is_some() {
            break;
        }
        lab.begin(&format!("{}-{n}", row.name), n, Filter::User);
        match workload.run(&subject, lab) {
            Ok(figures) if n > 0 => {
                front.extend(figures.get("front-end-bound").copied());
                let of = |name: &str| figures.get(name).copied().unwrap_or(0.0);
                let all = of("user") + of("sys");
                if all > 0.0 {
                    kernel.push(of("sys") / all);
                }
            }
            Ok(_) => {}
            Err(Fault::Interrupted) => return Err(Error::Interrupted("interrupted".into())),
            Err(
                Fault::Failed(why)
                | Fault::CheckFailed(why)
                | Fault::Counter(why)
                | Fault::Hopeless(why),
            ) => row.why = Some(why),
        }
    }
    let middle = |mut values: Vec<f64>| {
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied()
    };
    row.front_end = middle(front);
    row.kernel = middle(kernel);
    Ok(row)
}
