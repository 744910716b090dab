//! `locklab reproduce`: published experiments, ours beside theirs.

use super::kernel::{CacheArgs, GuestArgs, cache, compare};
use super::matrix::workers;
use crate::cli::Common;
use crate::comparing::ComparingArgs;
use crate::output::print;
use clap::Args;
use locklab_host::error::Error;
use locklab_host::interrupt;
use locklab_kernel::published as kernels;
use locklab_kernel::recipe::Experiment;
use locklab_kernel::workload::Workload;
use locklab_lab::document::render;
use locklab_lab::file::read;
use locklab_lab::progress::Progress;
use locklab_sim::{EXPERIMENTS, Group, Reference, Reproduction, score};
use locklab_simulated::published as simulated;
use serde_json::{Value, json};
use std::path::Path;
use std::process::ExitCode;

/// The reports that are simulated when no names are given.
const REPORTS: [&str; 3] = ["virt-backoff", "mplock-anderson", "qspinlock-xfs"];

/// `locklab reproduce`.
#[derive(Debug, Args)]
pub struct ReproduceArgs {
    /// In simulation: virt-backoff, mplock-anderson, qspinlock-xfs. With
    /// kernels that are built and booted: inline-unlock, finish-task-switch
    /// [default: those in simulation]
    pub names: Vec<String>,
    /// Every published experiment that can be simulated, and two scores
    #[arg(long, conflicts_with = "names")]
    pub all: bool,
    /// Only these of a kernel report's variants
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub variant: Vec<String>,
    /// Only these of a kernel report's workloads
    #[arg(long, value_enum, value_name = "NAME", value_delimiter = ',')]
    pub workload: Vec<Workload>,
    #[command(flatten)]
    #[allow(missing_docs, reason = "its options have their own")]
    pub guests: GuestArgs,
    #[command(flatten)]
    #[allow(missing_docs, reason = "its options have their own")]
    pub cache: CacheArgs,
    #[command(flatten)]
    #[allow(missing_docs, reason = "its options have their own")]
    pub comparing: ComparingArgs,
}

/// Runs it.
///
/// # Errors
/// One sentence.
pub fn run(args: &ReproduceArgs, common: &Common) -> Result<ExitCode, Error> {
    let known: Vec<&str> = EXPERIMENTS.iter().map(|(name, ..)| *name).collect();
    let with_kernels: Vec<&str> = kernels::names().collect();
    let names: Vec<&str> = if args.all {
        known.clone()
    } else if args.names.is_empty() {
        // Those with kernels take their hour only when asked for.
        REPORTS.to_vec()
    } else {
        args.names.iter().map(String::as_str).collect()
    };
    let unknown = |name: &&&str| !known.contains(name) && !with_kernels.contains(name);
    if let Some(unknown) = names.iter().find(unknown) {
        return Err(Error::Usage(format!(
            "there is no report called {unknown}; there are {}, and with kernels {}",
            known.join(", "),
            with_kernels.join(", ")
        )));
    }
    if common.dry_run {
        return dry_run(args, common, &names, &with_kernels);
    }
    let mut reports = Vec::new();
    let mut reproductions = Vec::new();
    let mut trouble = None;
    for name in names {
        if with_kernels.contains(&name) {
            let (report, incomplete) = kernel(name, args, common)?;
            reports.push(report);
            let interrupted = matches!(incomplete, Some(Error::Interrupted(_)));
            trouble = trouble.or(incomplete);
            if interrupted {
                break;
            }
        } else {
            let (report, reproduction) = simulate(name, common)?;
            reports.push(report);
            reproductions.push(reproduction);
        }
    }
    if common.json {
        print(&format!("{:#}\n", document(&reports, &reproductions)))?;
    } else if args.all {
        let scores = simulated::scores(&reproductions);
        print(&render::text(&scores, render::Colour::for_stdout()))?;
    }
    trouble.map_or(Ok(ExitCode::SUCCESS), Err)
}

/// Runs an experiment file of published figures: ours beside theirs. The
/// reference is looked for beside the file's folder, as in this project.
///
/// # Errors
/// One sentence.
pub fn file(path: &Path, comparing: &ComparingArgs, common: &Common) -> Result<ExitCode, Error> {
    if comparing.aa || comparing.resume || !comparing.fail_on.is_empty() {
        return Err(Error::Usage(
            "--aa, --resume and --fail-on are for measured comparisons; a published experiment is \
             simulated beside its figures"
                .into(),
        ));
    }
    let name = path.display().to_string();
    let text = read(path).map_err(Error::Usage)?;
    let experiment = locklab_sim::Experiment::parse(&name, &text).map_err(Error::Usage)?;
    let reference = reference_of(path, &experiment.reference)?;
    if common.dry_run {
        return print(&if common.json {
            let document = json!({"schema": 1, "dry_run": true, "kind": "published", "file": name});
            format!("{document:#}\n")
        } else {
            format!("Would simulate {name}: {}.\n", experiment.title)
        });
    }
    let title = path.file_stem().unwrap_or_default().to_string_lossy();
    let progress = Progress::new(1, "simulations", common.quiet);
    let report = locklab_sim::simulate_experiment(
        &title,
        &experiment,
        &reference,
        common.seed,
        workers(),
        |at, of| progress.set(at as u64, of as u64, &title),
    );
    drop(progress);
    let (value, report) = shown(report.map_err(Error::Failed)?, common)?;
    if common.json {
        print(&format!("{:#}\n", document(&[value], &[report])))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn reference_of(path: &Path, reference: &str) -> Result<Reference, Error> {
    let folder = path.parent().unwrap_or(Path::new(""));
    let beside = [folder.join(reference), folder.join("..").join(reference)];
    let found = beside.iter().find(|path| path.is_file()).ok_or_else(|| {
        Error::Usage(format!(
            "{}: there is no reference {reference} beside it",
            path.display()
        ))
    })?;
    let text = read(found).map_err(Error::Usage)?;
    Reference::parse(reference, &text).map_err(Error::Usage)
}

/// All reports for programs, the score of each group and the misses.
fn document(reports: &[Value], reproductions: &[Reproduction]) -> Value {
    let all = |kind: &str| {
        reports
            .iter()
            .all(|report| report["provenance"]["source"] == kind)
    };
    // Each report has its own.
    let source = ["simulation", "model", "hardware"]
        .into_iter()
        .find(|kind| all(kind))
        .unwrap_or("several");
    let scores = Group::ALL.map(|group| (group.key(), score(group, None, reproductions)));
    let misses = reproductions.iter().flat_map(Reproduction::misses);
    json!({
        "schema": 1,
        "provenance": {"source": source},
        "reports": reports,
        "scores": std::collections::BTreeMap::from(scores),
        "questions": simulated::questions(reproductions),
        "misses": misses.collect::<Vec<_>>(),
    })
}

fn simulate(name: &str, common: &Common) -> Result<(Value, Reproduction), Error> {
    let progress = Progress::new(1, "simulations", common.quiet);
    let result = locklab_sim::reproduce(name, common.seed, workers(), |at, of| {
        progress.set(at as u64, of as u64, name);
    });
    drop(progress);
    shown(result.map_err(Error::Failed)?, common)
}

/// Prints a simulated experiment as text, and gives it for programs too.
fn shown(report: Reproduction, common: &Common) -> Result<(Value, Reproduction), Error> {
    let mut value = serde_json::to_value(&report)
        .map_err(|e| Error::Failed(format!("cannot write the report: {e}")))?;
    value["provenance"] = json!({"source": "simulation"});
    if !common.json {
        let text = render::text(&simulated::document(&report), render::Colour::for_stdout());
        print(&format!("{text}\n"))?;
    }
    Ok((value, report))
}

/// Builds, boots and judges a report's kernels: the report for programs, and
/// what is missing from it.
fn kernel(
    name: &str,
    args: &ReproduceArgs,
    common: &Common,
) -> Result<(Value, Option<Error>), Error> {
    let interrupt = interrupt::listen()?;
    let cache = cache(&args.cache, common, &interrupt)?;
    let mut experiment = Experiment::read(&kernels::unpack(&cache, name)?)?;
    experiment.keep_variants(&args.variant)?;
    let plan = compare::plan(
        experiment,
        &args.workload,
        &args.guests,
        &args.comparing,
        common,
    )?;
    let (judged, comparing) = compare::measure(&plan, &args.comparing, common, &cache)?;
    let figures = kernels::beside(&judged.experiment, &judged.verdicts, name)?;
    let (same, of) = kernels::agreement(&figures);
    let mut value = render::json(&judged.document);
    value["name"] = json!(name);
    value["provenance"] = json!(judged.experiment.provenance);
    value["figures"] = json!(figures);
    value["agreement"] = json!({
        "direction": (of > 0).then(|| same as f64 / of as f64),
        "directed": of,
    });
    if !common.json {
        comparing.print(&judged)?;
    }
    Ok((value, judged.trouble))
}

/// What would be simulated, built and booted.
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
        let interrupt = interrupt::listen()?;
        let cache = cache(&args.cache, common, &interrupt)?;
        let mut experiment = Experiment::read(&kernels::unpack(&cache, name)?)?;
        experiment.keep_variants(&args.variant)?;
        let plan = compare::plan(
            experiment,
            &args.workload,
            &args.guests,
            &args.comparing,
            common,
        )?;
        compare::dry_run(&plan, common)?;
    }
    Ok(ExitCode::SUCCESS)
}
