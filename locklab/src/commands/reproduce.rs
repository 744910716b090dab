//! `locklab reproduce`: published experiments, ours beside theirs.

mod simulation;

pub use simulation::file;

use super::kernel;
use crate::arguments::Common;
use crate::output::{answer, print};
use clap::Args;
use locklab_document::render;
use locklab_harness::settings::SEED;
use locklab_host::error::Error;
use locklab_published::{EXPERIMENTS, Group, report};
use serde_json::json;
use std::path::Path;
use std::process::ExitCode;

/// `locklab reproduce`.
#[derive(Debug, Args)]
pub struct ReproduceArgs {
    /// Reports: virt-backoff, mplock-anderson, qspinlock-xfs, any other published experiment
    /// in experiments/, or the path of a file of your own: figures with their machine,
    /// rule and loop; or alone "all" for every one with their scores, or "sleeping" for those on
    /// locks that sleep and on more threads than CPUs [default: the first three]
    #[arg(value_name = "REPORT")]
    pub names: Vec<String>,
    /// Seed of every random choice [default: 1]
    #[arg(long, value_name = "N", default_value_t = SEED, hide_default_value = true)]
    pub seed: u64,
}

/// The reports that are simulated when no names are given.
const REPORTS: [&str; 3] = ["virt-backoff", "mplock-anderson", "qspinlock-xfs"];

/// Runs `locklab reproduce`.
///
/// # Errors
/// [`Error::Usage`] if there is no such report, [`Error::Failed`] if a
/// simulation fails, [`Error::Interrupted`] after Ctrl-C.
pub fn run(args: &ReproduceArgs, common: &Common) -> Result<ExitCode, Error> {
    let known: Vec<&str> = EXPERIMENTS.iter().map(|(name, ..)| *name).collect();
    const SLEEPING: [Group; 2] = [Group::Sleeping, Group::Unnamed];
    let is_sleeping = |name: &&str| Group::of(name).is_some_and(|of| SLEEPING.contains(&of));
    let typed: Vec<&str> = args.names.iter().map(String::as_str).collect();
    let names: Vec<&str> = match typed[..] {
        ["all"] => known.clone(),
        ["sleeping"] => known.iter().copied().filter(is_sleeping).collect(),
        [] => REPORTS.to_vec(),
        _ => typed.clone(),
    };
    let unknown = |name: &&&str| !known.contains(name);
    if let [name] = names[..]
        && unknown(&&name)
        && (name.ends_with(".toml") || name.contains('/'))
    {
        return file(Path::new(name), args.seed, common);
    }
    if let Some(name) = names.iter().find(|name| kernel::is_report(name)) {
        return Err(Error::Usage(format!(
            "{name} is a report of measured kernels; run `locklab compare {name}`"
        )));
    }
    if let Some(unknown) = names.iter().find(unknown) {
        return Err(Error::Usage(format!(
            "there is no report called {unknown}; there are {}, and any one reference file by its \
             path",
            known.join(", "),
        )));
    }
    if common.dry_run {
        return dry_run(common, &names);
    }
    let mut reports = Vec::new();
    let mut reproductions = Vec::new();
    for name in names {
        let (report, reproduction) = simulation::simulate(name, args.seed, common)?;
        reports.push(report);
        reproductions.push(reproduction);
    }
    let scores = match typed[..] {
        ["all"] => Some(report::scores(&reproductions)),
        ["sleeping"] => Some(report::scores_of(&SLEEPING, &reproductions)),
        _ => None,
    };
    if common.json {
        print(&format!("{:#}\n", report::json(&reports, &reproductions)))?;
    } else if let Some(scores) = scores {
        print(&render::text(&scores, render::Colour::for_stdout()))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints what would be simulated.
fn dry_run(common: &Common, names: &[&str]) -> Result<ExitCode, Error> {
    let json = || json!({"schema": 1, "dry_run": true, "kind": "published", "names": names});
    let would = names.iter().map(|name| format!("Would simulate {name}.\n"));
    answer(common.json, json, || would.collect())
}
