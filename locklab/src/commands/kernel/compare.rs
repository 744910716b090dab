//! `locklab kernel compare`: builds, boots and judges two kernels.

use super::arguments::CompareArgs;
use crate::cli::Common;
use crate::comparing::{Comparing, ComparingArgs, Judged};
use crate::output::print;
use locklab_host::error::Error;
use locklab_judge::Family;
use locklab_kernel::cache::Cache;
use locklab_kernel::recipe::Experiment;
use locklab_kernel::settings::{BoxSettings, GuestSettings};
use locklab_kernel::workload::{Load, Workload};
use locklab_kernel::{Plan, Scope, prepare};
use locklab_lab::settings::{DesignSettings, over};
use serde_json::json;
use std::process::ExitCode;

/// The default number of link orders: the fewest that are judged.
const LAYOUTS: u32 = 8;

pub(super) fn compare(
    args: &CompareArgs,
    common: &Common,
    cache: &Cache<'_>,
) -> Result<ExitCode, Error> {
    let plan = plan_of(args)?;
    if common.dry_run {
        return dry_run(&plan, common, cache);
    }
    let (judged, comparing) = measure(&plan, &args.comparing, common, cache)?;
    comparing.present(judged)
}

/// The plan that the command line asks for.
///
/// # Errors
/// [`Error::Usage`] if the file cannot be read or is invalid, or a number is
/// out of range.
pub(super) fn plan_of(args: &CompareArgs) -> Result<Plan, Error> {
    let mut experiment = args.file.experiment()?;
    if args.on.is_some() {
        experiment.machine.on.clone_from(&args.on);
    }
    experiment.machine.typed_disk.clone_from(&args.scratch_disk);
    plan(
        experiment,
        &args.workload,
        (&args.design, &args.guests),
        args.comparing.aa,
    )
}

/// The plan of a comparison of two kernels; the settings of the command line
/// take precedence over those of the file.
///
/// # Errors
/// [`Error::Usage`] if a number is out of range, or several vCPUs are combined
/// with `--tcg`.
pub fn plan(
    mut experiment: Experiment,
    workloads: &[Workload],
    (design, guests): (&DesignSettings, &GuestSettings),
    aa: bool,
) -> Result<Plan, Error> {
    let design = over(design, &experiment.design)?;
    let design = design.design(LAYOUTS, Family::Holm, aa)?;
    let guests = over(guests, &experiment.guests)?;
    if experiment.machine.on.is_some() {
        guests.refuse_on_a_box().map_err(Error::Usage)?;
    }
    let vcpus = guests.vcpus()?;
    experiment.guests.lock_profile = guests.lock_profile;
    let mut loads = experiment
        .loads(workloads, guests.operations, vcpus)
        .map_err(Error::Usage)?;
    disk(&experiment.machine, &mut loads).map_err(Error::Usage)?;
    Ok(Plan {
        loads,
        experiment,
        vcpus,
        probe: guests.probe_options(),
        limit: guests.limit(),
        design,
        scope: Scope::Whole,
    })
}

/// Gives fs-mark the disk that the file and the command line name.
fn disk(machine: &BoxSettings, loads: &mut [Load]) -> Result<(), String> {
    let is_fs_mark = |load: &Load| load.workload == Workload::FsMark;
    if !loads.iter().any(is_fs_mark) {
        return match &machine.typed_disk {
            Some(_) => Err("--scratch-disk is for fs-mark, which does not run here".into()),
            None => Ok(()),
        };
    }
    let disk = machine.disk()?.map(str::to_owned);
    for load in loads.iter_mut().filter(|load| is_fs_mark(load)) {
        load.disk.clone_from(&disk);
    }
    Ok(())
}

/// Builds and boots the kernels of `plan`, and judges.
///
/// # Errors
/// [`Error::Failed`] if a tool is missing or nothing could be measured at all,
/// [`Error::Interrupted`] after Ctrl-C.
pub fn measure<'a>(
    plan: &Plan,
    comparing: &'a ComparingArgs,
    common: &'a Common,
    cache: &'a Cache<'a>,
) -> Result<(Judged, Comparing<'a>), Error> {
    comparing.files.check()?;
    let comparing = Comparing {
        args: comparing,
        common,
        interrupt: cache.interrupt,
        time_limit: None,
        file: None,
    };
    if let Some(target) = &plan.experiment.machine.on {
        let (mut instrument, experiment) = locklab_box::prepare(cache, plan, target)?;
        let mut judged = comparing.measure(&mut instrument, experiment)?;
        // What was measured is reported, wherever the machine is.
        if let Err(error) = instrument.go_home() {
            judged.trouble.get_or_insert(error);
        }
        return Ok((judged, comparing));
    }
    let (mut instrument, experiment) = prepare(cache, plan)?;
    let judged = comparing.measure(&mut instrument, experiment)?;
    Ok((judged, comparing))
}

/// Prints what would be done, without building anything.
pub fn dry_run(plan: &Plan, common: &Common, cache: &Cache<'_>) -> Result<ExitCode, Error> {
    if let Some(target) = &plan.experiment.machine.on {
        return print(&match common.json {
            true => format!("{:#}\n", locklab_box::dry_run::json(plan, target, cache)),
            false => locklab_box::dry_run::text(plan, target, cache),
        });
    }
    let variants = plan.experiment.variants();
    let booted = variants.iter().filter(|v| !v.size_only).count() as u64;
    let runs = 1 + u64::from(plan.experiment.guests.lock_profile);
    let boots = booted * 2 * runs * u64::from(plan.design.pairs) * plan.loads.len() as u64;
    if common.json {
        let names: Vec<&str> = variants.iter().map(|v| v.name.as_str()).collect();
        let document = json!({
            "schema": 1,
            "dry_run": true,
            "kind": "kernel",
            "name": plan.experiment.name,
            "design": plan.design,
            "variants": names,
            "kernels": 2 * variants.len(),
            "pairs": plan.design.pairs,
            "boots": boots,
            "workloads": plan.loads,
        });
        return print(&format!("{document:#}\n"));
    }
    let mut text = format!(
        "{}: would build {} kernels, link each in {} orders, and boot {boots} times:\n",
        plan.experiment.name,
        2 * variants.len(),
        plan.design.pairs
    );
    for load in &plan.loads {
        let many = if load.processes == 1 { "" } else { "es" };
        text.push_str(&format!(
            "  {} with {} operations, {} process{many}\n",
            load.workload.name(),
            load.operations,
            load.processes
        ));
    }
    print(&text)
}
