//! `locklab kernel compare` and `bisect`: from arguments to two kernels, and
//! from verdicts to an exit code.

use super::{CompareArgs, GuestArgs};
use crate::cli::Common;
use crate::comparing::{Comparing, ComparingArgs, Judged};
use crate::output::print;
use locklab_host::error::Error;
use locklab_judge::Verdict;
use locklab_kernel::cache::Cache;
use locklab_kernel::recipe::Experiment;
use locklab_kernel::workload::{Load, Workload};
use locklab_kernel::{Plan, prepare};
use serde_json::json;
use std::process::ExitCode;
use std::time::Duration;

/// `git bisect run` takes it as "cannot be tested".
const SKIP: u8 = 125;
/// And this as "stop": the fault is not the kernel's.
const ABORT: u8 = 128;
/// Link orders, where nothing else was asked for: the fewest that are judged.
const LAYOUTS: u32 = 8;

pub(super) fn compare(
    args: &CompareArgs,
    common: &Common,
    cache: &Cache<'_>,
) -> Result<ExitCode, Error> {
    let experiment = super::experiment(&args.file.file, &args.file.kernels)?;
    let plan = plan(
        experiment,
        &args.workload,
        &args.guests,
        &args.comparing,
        common,
    )?;
    if common.dry_run {
        return dry_run(&plan, common);
    }
    let (judged, comparing) = measure(&plan, &args.comparing, common, cache)?;
    comparing.present(judged)
}

/// 0 and 1 are about the kernel, 125 about this revision of it; all else stops
/// the bisection, or a missing program would be taken for a bad revision.
pub(super) fn bisect(
    args: &CompareArgs,
    common: &Common,
    cache: &Cache<'_>,
) -> Result<ExitCode, Error> {
    let measured = (|| {
        let experiment = super::experiment(&args.file.file, &args.file.kernels)?;
        let plan = plan(
            experiment,
            &args.workload,
            &args.guests,
            &args.comparing,
            common,
        )?;
        if common.dry_run {
            return dry_run(&plan, common).map(|_| None);
        }
        measure(&plan, &args.comparing, common, cache).map(Some)
    })();
    let (judged, comparing) = match measured {
        Ok(None) => return Ok(ExitCode::SUCCESS),
        Ok(Some(measured)) => measured,
        Err(Error::Interrupted(why)) => return Err(Error::Interrupted(why)),
        Err(why) => {
            eprintln!("locklab: {why}");
            return Ok(ExitCode::from(ABORT));
        }
    };
    comparing.print(&judged)?;
    let invalid = |v: &Verdict| matches!(v, Verdict::Invalid(_));
    let code = if judged.trouble.is_some() || judged.verdicts.primaries().any(invalid) {
        SKIP
    } else {
        u8::from(judged.verdicts.primaries().any(|v| *v == Verdict::Worse))
    };
    match judged.trouble {
        Some(Error::Interrupted(why)) => return Err(Error::Interrupted(why)),
        Some(why) => eprintln!("locklab: {why}"),
        None => {}
    }
    Ok(ExitCode::from(code))
}

/// What is asked of two kernels.
///
/// # Errors
/// A number that makes no sense.
pub fn plan(
    experiment: Experiment,
    workloads: &[Workload],
    guests: &GuestArgs,
    comparing: &ComparingArgs,
    common: &Common,
) -> Result<Plan, Error> {
    // Before a build of many minutes.
    if guests.tcg && guests.vcpus > 1 {
        return Err(Error::Usage(
            "several vCPUs take KVM; leave out --tcg or --vcpus".into(),
        ));
    }
    Ok(Plan {
        loads: loads(workloads, guests, &experiment)?,
        experiment,
        layouts: comparing.pairs(LAYOUTS)?,
        vcpus: guests.vcpus,
        look: guests.look(),
        limit: Duration::from_secs(guests.time_limit),
        seed: common.seed,
        delta: comparing.delta(1.0)?,
        aa: comparing.aa,
    })
}

/// What runs inside: the file's workloads, or those that were asked for.
fn loads(
    asked: &[Workload],
    guests: &GuestArgs,
    experiment: &Experiment,
) -> Result<Vec<Load>, Error> {
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
    if !asked.is_empty() {
        loads.retain(|load| asked.contains(&load.workload));
        for workload in asked {
            if !loads.iter().any(|load| load.workload == *workload) {
                loads.push(Load::new(*workload));
            }
        }
    }
    for load in &mut loads {
        load.vcpus = guests.vcpus;
        load.operations = guests.operations.unwrap_or(load.operations);
        load.check().map_err(Error::Usage)?;
    }
    Ok(loads)
}

/// Builds what `plan` needs, boots it and judges.
///
/// # Errors
/// Nothing could be measured at all.
pub fn measure<'a>(
    plan: &Plan,
    comparing: &'a ComparingArgs,
    common: &'a Common,
    cache: &'a Cache<'a>,
) -> Result<(Judged, Comparing<'a>), Error> {
    comparing.files.check()?;
    let (mut instrument, experiment) = prepare(cache, plan)?;
    let comparing = Comparing {
        args: comparing,
        common,
        interrupt: cache.interrupt,
        time_limit: None,
        file: None,
    };
    let judged = comparing.measure(&mut instrument, experiment)?;
    Ok((judged, comparing))
}

/// What would be done: nothing is built for it.
pub fn dry_run(plan: &Plan, common: &Common) -> Result<ExitCode, Error> {
    let variants = plan.experiment.variants();
    let booted = variants.iter().filter(|v| !v.size_only).count() as u64;
    let boots = booted * 2 * u64::from(plan.layouts) * plan.loads.len() as u64;
    if common.json {
        let names: Vec<&str> = variants.iter().map(|v| v.name.as_str()).collect();
        let document = json!({
            "schema": 1,
            "dry_run": true,
            "kind": "kernels",
            "name": plan.experiment.name,
            "variants": names,
            "kernels": 2 * variants.len(),
            "pairs": plan.layouts,
            "boots": boots,
            "workloads": plan.loads,
        });
        return print(&format!("{document:#}\n"));
    }
    let mut text = format!(
        "{}: would build {} kernels, link each in {} orders, and boot {boots} times:\n",
        plan.experiment.name,
        2 * variants.len(),
        plan.layouts
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
