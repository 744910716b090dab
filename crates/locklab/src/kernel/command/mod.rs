//! `locklab kernel`: from arguments to kernels, runs and a report.
//!
//! Wiring only; nothing here measures, judges or words a table.

mod boot;
mod builds;
mod compare;
pub(crate) mod reproduce;

use super::arguments::{FileArgs, KernelArgs, KernelCommand};
use super::build::{Build, build};
use super::recipe::{Experiment, Side, Variant};
use super::source::{Tree, tree};
use super::tools::Lab;
use super::workload::Workload;
use crate::cli::Common;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use locklab_host::error::Error;
use locklab_host::interrupt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;

/// Runs it.
///
/// # Errors
/// One sentence.
pub(crate) fn run(args: &KernelArgs, common: &Common) -> Result<ExitCode, Error> {
    let interrupt = interrupt::listen()?;
    let lab = |cache: &Option<PathBuf>| lab(cache.as_deref(), common, &interrupt);
    match &args.command {
        KernelCommand::Compare(args) => {
            compare::compare(args, common, &lab(&args.file.cache.cache)?)
        }
        KernelCommand::Bisect(args) => compare::bisect(args, common, &lab(&args.file.cache.cache)?),
        KernelCommand::Build(args) => builds::build_only(args, common, &lab(&args.cache.cache)?),
        KernelCommand::Inlined(args) => {
            builds::inlined(args, common, &lab(&args.file.cache.cache)?)
        }
        KernelCommand::Boot(args) => boot::boot(args, common, &lab(&args.cache.cache)?),
    }
}

/// The lab with its cache.
pub(crate) fn lab<'a>(
    cache: Option<&Path>,
    common: &Common,
    interrupt: &'a AtomicBool,
) -> Result<Lab<'a>, Error> {
    Ok(Lab {
        cache: match cache {
            Some(path) => std::path::absolute(path)
                .map_err(|e| Error::Usage(format!("{}: {e}", path.display())))?,
            None => Lab::default_cache()?,
        },
        interrupt,
        quiet: common.quiet,
    })
}

/// The experiment of a file, with what the command line says otherwise.
fn experiment(args: &FileArgs) -> Result<Experiment, Error> {
    let mut experiment = Experiment::read(&args.file)?;
    if let Some(source) = &args.source {
        experiment.kernel.source = Some(from_here(source));
    }
    if let Some(config) = &args.config {
        let ready = matches!(config.as_str(), "workloads" | "defconfig");
        experiment.kernel.config = Some(if ready {
            config.clone()
        } else {
            absolute(config)
        });
    }
    experiment.keep_variants(&args.variant)?;
    Ok(experiment)
}

/// The experiment with what its workloads, and those asked for, need of both
/// kernels: a patch of ours and the option that turns it on.
///
/// # Errors
/// The cache cannot be written.
fn equipped(
    lab: &Lab<'_>,
    experiment: &Experiment,
    asked: impl IntoIterator<Item = Workload>,
) -> Result<Experiment, Error> {
    let mut experiment = experiment.clone();
    // Those of the file in any case, or the same file would be built twice.
    let of_file: Vec<Workload> = experiment.workload.iter().map(|entry| entry.name).collect();
    for workload in of_file.into_iter().chain(asked) {
        let Some([name, text, option]) = workload.needs() else {
            continue;
        };
        let patch = lab.folder("patches")?.join(name);
        std::fs::write(&patch, text).map_err(|e| lab.cannot_write(&patch, &e))?;
        experiment.kernel.equip(patch, option);
    }
    Ok(experiment)
}

/// A source as typed: paths in a file start at the file, those on a command
/// line where it was typed.
fn from_here(source: &str) -> String {
    if source.starts_with("debian:") {
        return source.into();
    }
    match source
        .strip_prefix("git:")
        .map(|rest| rest.rsplit_once('#'))
    {
        Some(Some((folder, revision))) => format!("git:{}#{revision}", absolute(folder)),
        Some(None) => source.into(),
        None => absolute(source),
    }
}

fn absolute(path: &str) -> String {
    std::path::absolute(path).map_or_else(|_| path.into(), |path| path.display().to_string())
}

/// One side of a variant: its tree, and its image if need be built.
fn made(
    lab: &Lab<'_>,
    experiment: &Experiment,
    variant: &Variant,
    side: Side,
) -> Result<(Build, Tree), Error> {
    let recipe = experiment.recipe(side, Some(variant));
    let tree = tree(lab, &recipe, &experiment.folder)?;
    let label = [&experiment.name, variant.name.as_str(), side.word()];
    let label: Vec<&str> = label.into_iter().filter(|word| !word.is_empty()).collect();
    let made = build(lab, &recipe, &tree, &experiment.folder, &label.join(" "))?;
    Ok((made, tree))
}

fn bar(runs: u64, quiet: bool, label: &str) -> ProgressBar {
    let target = if quiet {
        ProgressDrawTarget::hidden()
    } else {
        ProgressDrawTarget::stderr()
    };
    let bar = ProgressBar::with_draw_target(Some(runs), target);
    if let Ok(style) = ProgressStyle::with_template("{msg} {wide_bar} {pos}/{len}, {eta} left") {
        bar.set_style(style);
    }
    bar.set_message(label.to_owned());
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_on_a_command_line_start_where_it_was_typed() {
        assert_eq!(from_here("debian:6.1"), "debian:6.1");
        assert_eq!(from_here("git:/a#v6"), "git:/a#v6");
        assert!(from_here("linux").starts_with('/'));
        assert!(from_here("git:linux#v6").starts_with("git:/"));
    }
}
