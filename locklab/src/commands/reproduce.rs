//! `locklab reproduce`: published experiments, ours beside theirs.

mod arguments;
mod kernels;
mod simulation;

pub use arguments::ReproduceArgs;
pub use simulation::file;

use crate::arguments::Common;
use crate::output::print;
use locklab_document::render;
use locklab_host::error::Error;
use locklab_lab::settings::{DesignSettings, refuse};
use locklab_published::{EXPERIMENTS, Group, report};
use serde_json::json;
use std::path::Path;
use std::process::ExitCode;

/// The reports that are simulated when no names are given.
const REPORTS: [&str; 3] = ["virt-backoff", "mplock-anderson", "qspinlock-xfs"];

/// Runs `locklab reproduce`.
///
/// # Errors
/// [`Error::Usage`] if there is no such report, [`Error::Failed`] if a
/// simulation, a build or a boot fails, [`Error::Interrupted`] after Ctrl-C.
pub fn run(args: &ReproduceArgs, common: &Common) -> Result<ExitCode, Error> {
    let known: Vec<&str> = EXPERIMENTS.iter().map(|(name, ..)| *name).collect();
    let with_kernels: Vec<&str> = locklab_kernel::reports::names().collect();
    let is_sleeping = |name: &&str| Group::of(name) == Some(Group::Sleeping);
    let names: Vec<&str> = if args.all {
        known.clone()
    } else if args.sleeping {
        known.iter().copied().filter(is_sleeping).collect()
    } else if args.names.is_empty() {
        // Reports with kernels take an hour, and run only when they are named.
        REPORTS.to_vec()
    } else {
        args.names.iter().map(String::as_str).collect()
    };
    let unknown = |name: &&&str| !known.contains(name) && !with_kernels.contains(name);
    if let [name] = names[..]
        && unknown(&&name)
        && (name.ends_with(".toml") || name.contains('/'))
    {
        args.refuse_for_kernels()?;
        let path = Path::new(name);
        let stem = path.file_stem().and_then(|stem| stem.to_str());
        let report = stem.filter(|stem| known.contains(stem));
        return match (file(path, &args.design, &args.comparing, common), report) {
            (Err(Error::Usage(what)), Some(report)) => Err(Error::Usage(format!(
                "{what}; for the report of that name run `locklab reproduce {report}`"
            ))),
            (outcome, _) => outcome,
        };
    }
    if let Some(unknown) = names.iter().find(unknown) {
        return Err(Error::Usage(format!(
            "there is no report called {unknown}; there are {}, with kernels {}, and any one \
             reference file by its path",
            known.join(", "),
            with_kernels.join(", ")
        )));
    }
    if !names.iter().any(|name| with_kernels.contains(name)) {
        args.refuse_for_kernels()?;
    }
    if common.dry_run {
        return dry_run(args, common, &names, &with_kernels);
    }
    let mut reports = Vec::new();
    let mut reproductions = Vec::new();
    let mut trouble = None;
    for name in names {
        if with_kernels.contains(&name) {
            let (report, incomplete) = kernels::reproduce(name, args, common)?;
            reports.push(report);
            let interrupted = matches!(incomplete, Some(Error::Interrupted(_)));
            trouble = trouble.or(incomplete);
            if interrupted {
                break;
            }
        } else {
            let (report, reproduction) = simulation::simulate(name, args.design.seed(), common)?;
            reports.push(report);
            reproductions.push(reproduction);
        }
    }
    if common.json {
        print(&format!("{:#}\n", report::json(&reports, &reproductions)))?;
    } else if args.all {
        let scores = report::scores(&reproductions);
        print(&render::text(&scores, render::Colour::for_stdout()))?;
    } else if args.sleeping {
        let score = report::scores_of(Group::Sleeping, &reproductions);
        print(&render::text(&score, render::Colour::for_stdout()))?;
    }
    trouble.map_or(Ok(ExitCode::SUCCESS), Err)
}

impl ReproduceArgs {
    /// Refuses what is only used where kernels are built and booted.
    fn refuse_for_kernels(&self) -> Result<(), Error> {
        let why = "is for reports whose kernels are built and booted, and none of these is; leave \
                   it out, or name one";
        for (option, given) in [
            ("--variant", !self.variant.is_empty()),
            ("--workload", !self.workload.is_empty()),
            ("--cache", self.cache.cache.is_some()),
        ] {
            if given {
                return Err(Error::Usage(format!("{option} {why}")));
            }
        }
        refuse(&self.guests, why)?;
        refuse(&self.comparing, why)?;
        let design = DesignSettings {
            seed: None,
            ..self.design.clone()
        };
        refuse(&design, why)
    }
}

/// Prints what would be simulated, built and booted.
fn dry_run(
    args: &ReproduceArgs,
    common: &Common,
    names: &[&str],
    with_kernels: &[&str],
) -> Result<ExitCode, Error> {
    if common.json {
        let document = json!({"schema": 1, "dry_run": true, "kind": "published", "names": names});
        return print(&format!("{document:#}\n"));
    }
    for name in names {
        if !with_kernels.contains(name) {
            print(&format!("Would simulate {name}.\n"))?;
            continue;
        }
        kernels::dry_run(name, args, common)?;
    }
    Ok(ExitCode::SUCCESS)
}
