//! `locklab kernel`: from arguments to kernels, runs and a report.
//!
//! Wiring only; nothing here measures, judges or words a table.

use super::arguments::{BootArgs, CompareArgs, FileArgs, InlinedArgs, KernelArgs, KernelCommand};
use super::boot::{Accelerator, Boot, Measured, Qemu};
use super::build::{Build, build};
use super::layout::layout;
use super::recipe::{Experiment, Side, Variant};
use super::report::{Part, Report, Sizes, beside_text};
use super::session::{Kernel, Session, judged};
use super::source::tree;
use super::tools::Lab;
use super::workload::{Load, Workload};
use super::{guest, source};
use crate::cli::{Common, FailOn};
use crate::error::Error;
use crate::interrupt;
use crate::matrix_command::print;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use locklab_judge::{Role, Verdict};
use serde_json::json;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// Published figures, by the names of the reports that are about kernels.
const REFERENCES: &[(&str, &str)] = &[
    (
        "inline-unlock",
        include_str!("../../../../reference/inline-unlock.toml"),
    ),
    (
        "finish-task-switch",
        include_str!("../../../../reference/finish-task-switch.toml"),
    ),
];

/// `git bisect run` takes it as "cannot be tested".
const SKIP: u8 = 125;

/// Runs it.
///
/// # Errors
/// One sentence.
pub(crate) fn run(args: &KernelArgs, common: &Common) -> Result<ExitCode, Error> {
    let interrupt = interrupt::listen()?;
    let lab = |cache: &Option<PathBuf>| {
        Ok::<_, Error>(Lab {
            cache: match cache {
                Some(path) => std::path::absolute(path)
                    .map_err(|e| Error::Usage(format!("{}: {e}", path.display())))?,
                None => Lab::default_cache()?,
            },
            interrupt: &interrupt,
            quiet: common.quiet,
        })
    };
    match &args.command {
        KernelCommand::Compare(args) => compare(args, common, &lab(&args.file.cache.cache)?),
        KernelCommand::Build(args) => build_only(args, common, &lab(&args.cache.cache)?),
        KernelCommand::Boot(args) => boot(args, common, &lab(&args.cache.cache)?),
        KernelCommand::Inlined(args) => inlined(args, common, &lab(&args.file.cache.cache)?),
        KernelCommand::Bisect(args) => bisect(args, common, &lab(&args.file.cache.cache)?),
    }
}

fn experiment(args: &FileArgs) -> Result<Experiment, Error> {
    let mut experiment = Experiment::read(&args.file)?;
    for (ours, given) in [
        (&mut experiment.kernel.source, &args.source),
        (&mut experiment.kernel.config, &args.config),
    ] {
        if given.is_some() {
            ours.clone_from(given);
        }
    }
    for name in &args.variant {
        if !experiment.variant.iter().any(|v| v.name == *name) {
            let known: Vec<&str> = experiment.variant.iter().map(|v| v.name.as_str()).collect();
            return Err(Error::Usage(format!(
                "there is no variant '{name}' in {}; it has {}",
                args.file.display(),
                if known.is_empty() {
                    "none".into()
                } else {
                    known.join(", ")
                }
            )));
        }
    }
    if !args.variant.is_empty() {
        experiment
            .variant
            .retain(|v| args.variant.contains(&v.name));
    }
    Ok(experiment)
}

/// The variants of a file; one without a name if it has none.
fn variants(experiment: &Experiment) -> Vec<Variant> {
    if experiment.variant.is_empty() {
        vec![Variant::default()]
    } else {
        experiment.variant.clone()
    }
}

/// Builds one side of a variant; its patch too.
fn side(
    lab: &Lab<'_>,
    experiment: &Experiment,
    variant: &Variant,
    side: Side,
) -> Result<(Build, String), Error> {
    let recipe = experiment.recipe(side, Some(variant));
    // A file on the command line names sources from where it was typed.
    let made: source::Tree = tree(lab, &recipe, &experiment.folder)?;
    let label = [&experiment.name, variant.name.as_str(), side.word()];
    let label: Vec<&str> = label.into_iter().filter(|word| !word.is_empty()).collect();
    Ok((build(lab, &recipe, &made, &label.join(" "))?, made.patch))
}

fn build_only(args: &FileArgs, common: &Common, lab: &Lab<'_>) -> Result<ExitCode, Error> {
    let experiment = experiment(args)?;
    let mut text = String::new();
    let mut list = Vec::new();
    for variant in variants(&experiment) {
        for which in Side::BOTH {
            if common.dry_run {
                let recipe = experiment.recipe(which, Some(&variant));
                let _ = writeln!(
                    text,
                    "Would build {} {}: {recipe:?}",
                    variant.name,
                    which.word()
                );
                continue;
            }
            let (made, _) = side(lab, &experiment, &variant, which)?;
            let took = made
                .seconds
                .map_or("from the cache".into(), |s| format!("{s:.0} s"));
            let _ = writeln!(
                text,
                "{} {} {}: {} ({took})",
                variant.name,
                which.word(),
                made.release,
                made.vmlinux.display()
            );
            list.push(json!({
                "variant": variant.name, "side": which.word(), "release": made.release,
                "vmlinux": made.vmlinux, "bzimage": made.bzimage, "compiler": made.compiler,
                "seconds": made.seconds,
            }));
        }
    }
    print(&if common.json && !common.dry_run {
        format!(
            "{:#}\n",
            json!({"schema": 1, "kind": "kernel-build", "builds": list})
        )
    } else {
        text
    })
}

fn compare(args: &CompareArgs, common: &Common, lab: &Lab<'_>) -> Result<ExitCode, Error> {
    let experiment = experiment(&args.file)?;
    let loads = loads(args, &experiment)?;
    if common.dry_run {
        return print(&dry_run(args, &experiment, &loads));
    }
    let report = measure(args, common, lab, &experiment, &loads)?;
    let reference = experiment
        .reference
        .as_ref()
        .and_then(|name| REFERENCES.iter().find(|(known, _)| known == name))
        .map(|(_, text)| text.parse::<toml::Table>())
        .transpose()
        .map_err(|e| Error::Failed(format!("the published figures cannot be read: {e}")))?;
    let figures = reference
        .map(|table| report.beside(&table))
        .unwrap_or_default();
    if common.json {
        let mut document = report.json();
        document["figures"] = json!(figures);
        print(&format!("{document:#}\n"))?;
    } else {
        let mut text = report.text();
        if !figures.is_empty() {
            text.push_str(&beside_text(&figures));
        }
        print(&text)?;
    }
    let fails = args.fail_on == Some(FailOn::Worse) && worst(&report) == Some(Verdict::Worse);
    Ok(ExitCode::from(if fails { 3 } else { 0 }))
}

/// The worst verdict of a primary metric: invalid, then worse.
fn worst(report: &Report) -> Option<Verdict> {
    let primary = || {
        report
            .parts
            .iter()
            .flat_map(|part| &part.rows)
            .filter(|row| row.judged.role == Role::Primary)
            .map(|row| &row.judged.verdict)
    };
    primary()
        .find(|verdict| matches!(verdict, Verdict::Invalid(_)))
        .or_else(|| primary().find(|verdict| **verdict == Verdict::Worse))
        .cloned()
}

fn bisect(args: &CompareArgs, common: &Common, lab: &Lab<'_>) -> Result<ExitCode, Error> {
    let experiment = experiment(&args.file)?;
    let loads = loads(args, &experiment)?;
    if common.dry_run {
        return print(&dry_run(args, &experiment, &loads));
    }
    match measure(args, common, lab, &experiment, &loads) {
        Ok(report) => {
            print(&report.text())?;
            Ok(ExitCode::from(match worst(&report) {
                Some(Verdict::Invalid(_)) => SKIP,
                Some(_) => 1,
                None => 0,
            }))
        }
        // A tree that does not build or boot is not the culprit.
        Err(Error::Failed(why)) => {
            eprintln!("locklab: {why}");
            Ok(ExitCode::from(SKIP))
        }
        Err(other) => Err(other),
    }
}

fn loads(args: &CompareArgs, experiment: &Experiment) -> Result<Vec<Load>, Error> {
    let mut loads = Vec::new();
    for entry in &experiment.workload {
        loads.push(Load {
            workload: entry.name,
            operations: args
                .operations
                .or(entry.operations)
                .unwrap_or_else(|| entry.name.operations()),
            processes: entry.processes.unwrap_or(1),
        });
    }
    if !args.workload.is_empty() {
        loads.retain(|load| args.workload.contains(&load.workload));
        for asked in &args.workload {
            if !loads.iter().any(|load| load.workload == *asked) {
                loads.push(Load {
                    workload: *asked,
                    operations: args.operations.unwrap_or_else(|| asked.operations()),
                    processes: 1,
                });
            }
        }
    }
    if loads
        .iter()
        .any(|load| load.operations == 0 || load.processes == 0)
    {
        return Err(Error::Usage("operations and processes start at 1".into()));
    }
    if args.layouts == 0 {
        return Err(Error::Usage(
            "--layouts starts at 1; a verdict takes 8".into(),
        ));
    }
    Ok(loads)
}

fn dry_run(args: &CompareArgs, experiment: &Experiment, loads: &[Load]) -> String {
    let variants = variants(experiment);
    let boots: u64 = variants.iter().filter(|v| !v.size_only).count() as u64
        * 2
        * args.layouts
        * loads.len() as u64;
    let mut text = format!(
        "Would build {} kernels, link each in {} orders, and boot {boots} times:\n",
        2 * variants.len(),
        args.layouts
    );
    for load in loads {
        let _ = writeln!(
            text,
            "  {} with {} operations, {} processes",
            load.workload.name(),
            load.operations,
            load.processes
        );
    }
    text
}

fn measure(
    args: &CompareArgs,
    common: &Common,
    lab: &Lab<'_>,
    experiment: &Experiment,
    loads: &[Load],
) -> Result<Report, Error> {
    let qemu = Qemu::find()?;
    for load in loads {
        // Before a build of many minutes.
        for (program, package) in load.workload.programs() {
            super::tools::find(program, package)?;
        }
    }
    let mut report = Report {
        name: experiment.name.clone(),
        question: experiment.question.clone(),
        accelerator: Accelerator::Tcg,
        facts: vec![("QEMU".into(), qemu.version.clone())],
        parts: Vec::new(),
        sizes: Vec::new(),
        patch: String::new(),
    };
    let variants = variants(experiment);
    let mut accelerator = None;
    for variant in &variants {
        let (old, _) = side(lab, experiment, variant, Side::Baseline)?;
        let (new, patch) = side(lab, experiment, variant, Side::Experiment)?;
        report.patch = patch;
        let shown = |name: &str| {
            if variant.name.is_empty() {
                name.into()
            } else {
                format!("{name}, {}", variant.name)
            }
        };
        report.facts.push((
            shown("Kernel"),
            format!("Linux {}, {}", old.release, old.compiler),
        ));
        report.sizes.push(sizes(variant, &old, &new)?);
        if variant.size_only || loads.is_empty() {
            continue;
        }
        let seeds: Vec<u64> = (0..args.layouts).map(|i| common.seed + i).collect();
        let kernels = [
            kernel(
                lab,
                experiment,
                variant,
                Side::Baseline,
                &old,
                &seeds,
                common,
            )?,
            kernel(
                lab,
                experiment,
                variant,
                Side::Experiment,
                &new,
                &seeds,
                common,
            )?,
        ];
        let accelerator = match accelerator {
            Some(known) => known,
            None => {
                let (known, why) = choose(lab, &qemu, &kernels[0], args.tcg)?;
                report.facts.push(("Accelerator".into(), why));
                report.accelerator = known;
                accelerator = Some(known);
                known
            }
        };
        let session = Session {
            lab,
            qemu: &qemu,
            accelerator,
            limit: Duration::from_secs(args.time_limit),
            seeds,
            seed: common.seed,
            samples: lab
                .folder("samples")?
                .join(format!("{}.jsonl", experiment.name)),
        };
        for load in loads {
            let bar = bar(2 * args.layouts, common.quiet, load.workload.name());
            let pairs = session.pairs([&kernels[0], &kernels[1]], load, &variant.name, &bar)?;
            bar.finish_and_clear();
            let unit = pairs
                .iter()
                .find_map(|pair| pair.baseline.as_ref().ok())
                .map_or_else(|| "unit".into(), |measured| measured.unit.clone());
            report.parts.push(Part {
                variant: variant.name.clone(),
                workload: load.workload.name().into(),
                unit,
                pairs: pairs.len(),
                rows: judged(&pairs, accelerator, common.seed)?,
            });
        }
    }
    Ok(report)
}

fn kernel(
    lab: &Lab<'_>,
    experiment: &Experiment,
    variant: &Variant,
    side: Side,
    made: &Build,
    seeds: &[u64],
    common: &Common,
) -> Result<Kernel, Error> {
    let bar = bar(
        seeds.len() as u64,
        common.quiet,
        &format!("linking {}", side.word()),
    );
    let images = seeds
        .iter()
        .map(|seed| {
            let image = layout(lab, made, *seed);
            bar.inc(1);
            image
        })
        .collect::<Result<_, _>>()?;
    bar.finish_and_clear();
    Ok(Kernel {
        images,
        modules: Some(made.folder.clone()),
        cmdline: experiment.recipe(side, Some(variant)).cmdline,
    })
}

/// KVM where a probe boot succeeds, and why not where it does not.
fn choose(
    lab: &Lab<'_>,
    qemu: &Qemu,
    kernel: &Kernel,
    tcg: bool,
) -> Result<(Accelerator, String), Error> {
    if tcg {
        return Ok((Accelerator::Tcg, "TCG, as asked".into()));
    }
    let Some(image) = kernel.images.first() else {
        return Ok((Accelerator::Tcg, "TCG".into()));
    };
    let runs = lab.folder("runs")?;
    let folder = tempfile::Builder::new()
        .prefix("probe-")
        .tempdir_in(&runs)
        .map_err(|e| lab.cannot_write(&runs, &e))?;
    let load = Load {
        workload: Workload::Boot,
        operations: 1,
        processes: 1,
    };
    let initramfs = folder.path().join("initramfs");
    guest::write_initramfs(lab, &load, kernel.modules.as_deref(), &initramfs)?;
    let probe = Boot {
        image,
        initramfs: &initramfs,
        cmdline: &kernel.cmdline,
        memory_mib: load.workload.memory_mib(),
        seed: 1,
        accelerator: Accelerator::Kvm,
        counted: false,
        limit: Duration::from_secs(20),
    };
    Ok(
        match qemu.probe_kvm(&probe, folder.path(), lab.interrupt)? {
            Ok(()) => (Accelerator::Kvm, "KVM".into()),
            Err(why) => (Accelerator::Tcg, format!("TCG: {why}")),
        },
    )
}

fn sizes(variant: &Variant, old: &Build, new: &Build) -> Result<Sizes, Error> {
    let footprint = locklab_footprint::compare(
        &old.vmlinux,
        &new.vmlinux,
        &locklab_footprint::Options::default(),
    )
    .map_err(|e| Error::Failed(e.to_string()))?;
    let bytes = |path: &Path| path.metadata().ok().map(|facts| facts.len());
    Ok(Sizes {
        variant: variant.name.clone(),
        footprint,
        bzimage: [bytes(&old.bzimage), bytes(&new.bzimage)],
    })
}

fn inlined(args: &InlinedArgs, common: &Common, lab: &Lab<'_>) -> Result<ExitCode, Error> {
    let experiment = experiment(&args.file)?;
    let mut text = String::new();
    let mut list = Vec::new();
    for variant in variants(&experiment) {
        let (old, _) = side(lab, &experiment, &variant, Side::Baseline)?;
        let (new, _) = side(lab, &experiment, &variant, Side::Experiment)?;
        let options = locklab_footprint::Options {
            call_sites_of: Some(args.function.clone()),
            ..locklab_footprint::Options::default()
        };
        let footprint = locklab_footprint::compare(&old.vmlinux, &new.vmlinux, &options)
            .map_err(|e| Error::Failed(e.to_string()))?;
        let sites = footprint
            .inlined
            .and_then(|i| i.call_sites)
            .map(|c| c.sites);
        let sites = sites.unwrap_or_default();
        let total =
            |pick: fn(&locklab_footprint::CallSite) -> u64| sites.iter().map(pick).sum::<u64>();
        let _ = writeln!(
            text,
            "{}{}{} was inlined {} times in the baseline, {} times in the experiment",
            variant.name,
            if variant.name.is_empty() { "" } else { ": " },
            args.function,
            total(|site| site.copies.baseline),
            total(|site| site.copies.experiment)
        );
        for site in &sites {
            let through = site
                .through
                .as_ref()
                .map_or(String::new(), |t| format!(" through {t}"));
            let _ = writeln!(
                text,
                "  {:>3} -> {:>3}  {}{through} ({}:{})",
                site.copies.baseline, site.copies.experiment, site.caller, site.file, site.line
            );
        }
        list.push(json!({"variant": variant.name, "call_sites": sites}));
    }
    print(&if common.json {
        format!(
            "{:#}\n",
            json!({"schema": 1, "kind": "kernel-inlined", "function": args.function,
                   "variants": list})
        )
    } else {
        text
    })
}

fn boot(args: &BootArgs, common: &Common, lab: &Lab<'_>) -> Result<ExitCode, Error> {
    let load = Load {
        workload: args.workload,
        operations: args
            .operations
            .unwrap_or_else(|| args.workload.operations()),
        processes: args.processes,
    };
    if load.operations == 0 || load.processes == 0 {
        return Err(Error::Usage(
            "--operations and --processes start at 1".into(),
        ));
    }
    if !args.image.is_file() {
        return Err(Error::Usage(format!(
            "there is no kernel {}",
            args.image.display()
        )));
    }
    let qemu = Qemu::find()?;
    if common.dry_run {
        return print(&format!(
            "Would boot {} with {} in {}.\n",
            args.image.display(),
            load.workload.name(),
            qemu.version
        ));
    }
    let kernel = Kernel {
        images: vec![args.image.clone()],
        modules: args.modules.clone(),
        cmdline: args.cmdline.clone(),
    };
    let (accelerator, why) = choose(lab, &qemu, &kernel, args.tcg)?;
    let runs = lab.folder("runs")?;
    let folder = tempfile::Builder::new()
        .prefix("boot-")
        .tempdir_in(&runs)
        .map_err(|e| lab.cannot_write(&runs, &e))?;
    let initramfs = folder.path().join("initramfs");
    guest::write_initramfs(lab, &load, args.modules.as_deref(), &initramfs)?;
    let cmdline = format!("{} {}", load.workload.cmdline(), args.cmdline);
    let once = |counted: bool| {
        let boot = Boot {
            image: &args.image,
            initramfs: &initramfs,
            cmdline: cmdline.trim(),
            memory_mib: load.workload.memory_mib(),
            seed: common.seed,
            accelerator,
            counted,
            limit: Duration::from_secs(args.time_limit),
        };
        qemu.boot(&boot, folder.path(), lab.interrupt)?
            .map_err(|invalid| Error::Failed(invalid.to_string()))
    };
    let measured = once(true)?;
    let plain = if args.slowdown {
        Some(once(false)?)
    } else {
        None
    };
    let slowdown = plain.map(|plain| measured.cpu_seconds / plain.cpu_seconds);
    print(&if common.json {
        format!(
            "{:#}\n",
            json!({
                "schema": 1,
                "kind": "kernel-boot",
                "provenance": match accelerator {
                    Accelerator::Tcg => "model",
                    Accelerator::Kvm => "hardware",
                },
                "accelerator": why,
                "load": load,
                "measured": measured,
                "slowdown": slowdown,
            })
        )
    } else {
        boot_text(&measured, &why, &load, slowdown)
    })
}

fn boot_text(measured: &Measured, why: &str, load: &Load, slowdown: Option<f64>) -> String {
    let mut text = format!(
        "{}: {} {}s, on {why}; {:.1} s of CPU time\n",
        load.workload.name(),
        measured.work,
        measured.unit,
        measured.cpu_seconds
    );
    match &measured.counts {
        Some(counts) => {
            let _ = writeln!(
                text,
                "{:<8} {:>16} {:>14} {:>12}",
                "Model", "Instructions", "L1i misses", "Instr/unit"
            );
            for (name, mode) in [("user", counts.user), ("kernel", counts.kernel)] {
                let _ = writeln!(
                    text,
                    "{name:<8} {:>16} {:>14} {:>12.1}",
                    mode.instructions,
                    mode.l1i_misses,
                    mode.instructions as f64 / measured.work as f64
                );
            }
        }
        None => {
            let _ = writeln!(
                text,
                "{:.1} ns per {}",
                measured.elapsed_ns as f64 / measured.work as f64,
                measured.unit
            );
        }
    }
    if let Some(slowdown) = slowdown {
        let _ = writeln!(
            text,
            "The plugin took {slowdown:.2} times the CPU time of plain TCG."
        );
    }
    text
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
