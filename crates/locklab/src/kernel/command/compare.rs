//! `locklab kernel compare` and `bisect`: both kernels of a file built,
//! linked in many orders, booted, and judged.
//!
//! What could not be built or run is named in the report, beside what could:
//! a comparison of many builds must not lose those that are done.

use super::{bar, equipped, experiment, made};
use crate::cli::{Common, FailOn};
use crate::kernel::arguments::{CompareArgs, RunsArgs};
use crate::kernel::boot::{Accelerator, Qemu};
use crate::kernel::build::Build;
use crate::kernel::cells;
use crate::kernel::kvm::choose;
use crate::kernel::layout::layout;
use crate::kernel::metrics::judged;
use crate::kernel::published;
use crate::kernel::recipe::{Experiment, Side, Variant};
use crate::kernel::report::{Part, Report, Sizes};
use crate::kernel::samples::Samples;
use crate::kernel::session::{Kernel, Session};
use crate::kernel::tools::{Lab, find};
use crate::kernel::workload::{Load, Workload};
use crate::matrix_command::print;
use locklab_host::error::Error;
use locklab_judge::{Role, Verdict};
use serde_json::json;
use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

/// `git bisect run` takes it as "cannot be tested".
const SKIP: u8 = 125;
/// And this as "stop": the fault is not the kernel's.
const ABORT: u8 = 128;

pub(super) fn compare(
    args: &CompareArgs,
    common: &Common,
    lab: &Lab<'_>,
) -> Result<ExitCode, Error> {
    let experiment = experiment(&args.file)?;
    let loads = loads(&args.runs, &experiment)?;
    if common.dry_run {
        return print(&dry_run(&args.runs, &experiment, &loads));
    }
    let report = measure(&args.runs, common, lab, &experiment, &loads)?;
    let figures = match &experiment.reference {
        Some(name) => published::beside(&report, name)?,
        None => Vec::new(),
    };
    if common.json {
        let mut document = report.json();
        document["figures"] = json!(figures);
        print(&format!("{document:#}\n"))?;
    } else {
        print(&(report.text() + &published::text(&figures)))?;
    }
    report.complete()?;
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

/// 0 and 1 are about the kernel, 125 about this revision of it; all else stops
/// the bisection, or a missing program would be taken for a bad revision.
pub(super) fn bisect(
    args: &CompareArgs,
    common: &Common,
    lab: &Lab<'_>,
) -> Result<ExitCode, Error> {
    let measured = (|| {
        let experiment = experiment(&args.file)?;
        let loads = loads(&args.runs, &experiment)?;
        if common.dry_run {
            print(&dry_run(&args.runs, &experiment, &loads))?;
            return Ok(None);
        }
        measure(&args.runs, common, lab, &experiment, &loads).map(Some)
    })();
    match measured {
        Ok(None) => Ok(ExitCode::SUCCESS),
        Ok(Some(report)) => {
            print(&report.text())?;
            Ok(ExitCode::from(match (report.complete(), worst(&report)) {
                (Err(Error::Interrupted(why)), _) => return Err(Error::Interrupted(why)),
                (Err(why), _) => {
                    eprintln!("locklab: {why}");
                    SKIP
                }
                (Ok(()), Some(Verdict::Invalid(_))) => SKIP,
                (Ok(()), Some(_)) => 1,
                (Ok(()), None) => 0,
            }))
        }
        Err(Error::Interrupted(why)) => Err(Error::Interrupted(why)),
        Err(why) => {
            eprintln!("locklab: {why}");
            Ok(ExitCode::from(ABORT))
        }
    }
}

/// What runs inside: the file's workloads, or those that were asked for.
///
/// # Errors
/// A number that makes no sense.
pub(crate) fn loads(runs: &RunsArgs, experiment: &Experiment) -> Result<Vec<Load>, Error> {
    let mut loads = Vec::new();
    for entry in &experiment.workload {
        let mut load = Load::new(entry.name);
        load.operations = entry.operations.unwrap_or(load.operations);
        load.processes = entry.processes.unwrap_or(load.processes);
        if let Some(lengths) = &entry.lengths {
            load.lengths = Some(lengths.clone());
        }
        loads.push(load);
    }
    if !runs.workload.is_empty() {
        loads.retain(|load| runs.workload.contains(&load.workload));
        for asked in &runs.workload {
            if !loads.iter().any(|load| load.workload == *asked) {
                loads.push(Load::new(*asked));
            }
        }
    }
    for load in &mut loads {
        load.vcpus = runs.vcpus;
        load.operations = runs.operations.unwrap_or(load.operations);
        load.check().map_err(Error::Usage)?;
    }
    // Before a build of many minutes.
    if runs.tcg && runs.vcpus > 1 {
        return Err(Error::Usage(
            "several vCPUs take KVM; leave out --tcg or --vcpus".into(),
        ));
    }
    if runs.layouts == 0 {
        return Err(Error::Usage(
            "--layouts starts at 1; a verdict takes 8".into(),
        ));
    }
    Ok(loads)
}

/// What would be done.
pub(crate) fn dry_run(runs: &RunsArgs, experiment: &Experiment, loads: &[Load]) -> String {
    let variants = experiment.variants();
    let boots: u64 = variants.iter().filter(|v| !v.size_only).count() as u64
        * 2
        * runs.layouts
        * loads.len() as u64;
    let mut text = format!(
        "Would build {} kernels, link each in {} orders, and boot {boots} times:\n",
        2 * variants.len(),
        runs.layouts
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

/// Builds, boots and judges all that is asked for. What fails on the way is
/// in the report.
///
/// # Errors
/// A program is missing, before anything was built.
pub(crate) fn measure(
    runs: &RunsArgs,
    common: &Common,
    lab: &Lab<'_>,
    experiment: &Experiment,
    loads: &[Load],
) -> Result<Report, Error> {
    let qemu = Qemu::find()?;
    // Before a build of many minutes.
    for load in loads {
        for (program, package) in load.workload.programs() {
            find(program, package)?;
        }
    }
    let experiment = &equipped(lab, experiment, loads.iter().map(|load| load.workload))?;
    let mut report = Report::new(experiment, &qemu.version);
    report.vcpus = runs.vcpus;
    let mut measuring = Measuring {
        runs,
        common,
        lab,
        experiment,
        loads,
        qemu: &qemu,
        samples: Samples::of(lab, &experiment.name)?,
        accelerator: None,
    };
    for variant in experiment.variants() {
        if let Err(error) = measuring.variant(&variant, &mut report) {
            let interrupted = matches!(error, Error::Interrupted(_));
            if !interrupted {
                lab.note(&error.to_string());
            }
            report.missing.push((variant.name.clone(), error));
            if interrupted {
                return Ok(report);
            }
        }
    }
    // A full disk must not cost the report.
    if let Err(error) = measuring.samples.end(lab) {
        lab.note(&error.to_string());
    }
    Ok(report)
}

struct Measuring<'a> {
    runs: &'a RunsArgs,
    common: &'a Common,
    lab: &'a Lab<'a>,
    experiment: &'a Experiment,
    loads: &'a [Load],
    qemu: &'a Qemu,
    samples: Samples,
    /// Once it is known.
    accelerator: Option<Accelerator>,
}

impl Measuring<'_> {
    fn variant(&mut self, variant: &Variant, report: &mut Report) -> Result<(), Error> {
        let (lab, seed) = (self.lab, self.common.seed);
        let (old, old_tree) = made(lab, self.experiment, variant, Side::Baseline)?;
        let (new, tree) = made(lab, self.experiment, variant, Side::Experiment)?;
        // What both have comes first.
        let change = tree.patch.strip_prefix(&old_tree.patch);
        report.patch = change.unwrap_or(&tree.patch).to_owned();
        report.fact(
            "Kernel",
            &variant.name,
            format!("Linux {}, {}", old.release, old.compiler),
        );
        report.sizes.push(sizes(variant, &old, &new)?);
        if variant.size_only || self.loads.is_empty() {
            return Ok(());
        }
        let seeds: Vec<u64> = (0..self.runs.layouts).map(|i| seed + i).collect();
        let kernels = [
            self.kernel(variant, Side::Baseline, &old, &seeds)?,
            self.kernel(variant, Side::Experiment, &new, &seeds)?,
        ];
        let first = self.accelerator.is_none();
        let accelerator = match self.accelerator {
            Some(known) => known,
            None => {
                let (known, why) = choose(
                    lab,
                    self.qemu,
                    &kernels[0],
                    self.runs.look(),
                    self.runs.vcpus,
                )?;
                report.fact("Accelerator", "", why);
                report.accelerator = known;
                self.accelerator = Some(known);
                known
            }
        };
        let mut session = Session {
            lab,
            qemu: self.qemu,
            accelerator,
            limit: Duration::from_secs(self.runs.time_limit),
            seeds: seeds.clone(),
            seed,
            samples: self.samples.clone(),
        };
        for (index, load) in self.loads.iter().enumerate() {
            let left_out = load.lengths.as_ref().and_then(|l| l.left_out(load.vcpus));
            if let Some(left_out) = left_out.filter(|_| first) {
                report.fact("Left out", "", left_out);
            }
            let check = load.workload == Workload::Locktorture;
            // It loads modules, which a kernel in another link order does not
            // take; see `layout`.
            let plain = [(&old, 0), (&new, 1)].map(|(build, at): (&Build, usize)| Kernel {
                images: vec![build.vmlinux.clone()],
                ..kernels[at].clone()
            });
            let kernels = if check { &plain } else { &kernels };
            session.seeds.clone_from(&seeds);
            session.seeds.truncate(if check { 1 } else { seeds.len() });
            let bar = bar(
                2 * session.seeds.len() as u64,
                self.common.quiet,
                load.workload.name(),
            );
            let pairs = session.pairs([&kernels[0], &kernels[1]], load, &variant.name, &bar)?;
            bar.finish_and_clear();
            if check {
                report.checked(&variant.name, &pairs);
                continue;
            }
            if first && index == 0 && accelerator == Accelerator::Tcg {
                let check = session.check(&kernels[0], load, &pairs)?;
                for (name, text) in check.facts() {
                    report.fact(name, "", text);
                }
                if let Some(why) = check.differs() {
                    report
                        .missing
                        .push((variant.name.clone(), Error::Failed(why)));
                }
            }
            let unit = pairs
                .iter()
                .find_map(|pair| pair.baseline.as_ref().ok())
                .map_or_else(|| "unit".into(), |measured| measured.unit.clone());
            report.parts.push(Part {
                variant: variant.name.clone(),
                workload: load.workload.name().into(),
                unit,
                pairs: pairs.len(),
                rows: judged(&pairs, accelerator, load.workload, seed)?,
                cells: cells::judged(&pairs, seed).map_err(Error::Usage)?,
            });
        }
        Ok(())
    }

    /// A build in all its link orders.
    fn kernel(
        &self,
        variant: &Variant,
        side: Side,
        made: &Build,
        seeds: &[u64],
    ) -> Result<Kernel, Error> {
        let label = format!("linking {}", side.word());
        let bar = bar(seeds.len() as u64, self.common.quiet, &label);
        let images = seeds
            .iter()
            .map(|seed| {
                let image = layout(self.lab, made, *seed);
                bar.inc(1);
                image
            })
            .collect::<Result<_, _>>()?;
        bar.finish_and_clear();
        Ok(Kernel {
            images,
            modules: Some(made.objects.clone()),
            cmdline: self.experiment.recipe(side, Some(variant)).cmdline,
        })
    }
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
