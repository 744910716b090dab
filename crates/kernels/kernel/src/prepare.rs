//! Makes of an experiment file the kernels that QEMU can boot, and finds the
//! accelerator.

use crate::backend::{Kernels, is_model};
use crate::boot::{Accelerator, Qemu};
use crate::cache::{Cache, find};
use crate::guests::Guests;
use crate::kvm::choose;
use crate::layout::Form;
use crate::making::{Making, Setting};
use crate::metrics::{Figured, metrics};
use crate::plan::{Plan, equipped};
use crate::ready::with_metrics;
use crate::report::{FRONT_END, MODEL, NO_PREFETCH, SERVER_CPU, SHARED_CPU};
use crate::torture::torture;
use crate::workload::{Load, Workload};
use locklab_harness::backend::Backend as _;
use locklab_harness::experiment::{self as lab, Provenance};
use locklab_host::error::Error;

/// Finds the programs of the workloads, before a build of many minutes.
///
/// # Errors
/// If one is missing; the message names its package.
pub fn find_programs(loads: &[Load]) -> Result<(), Error> {
    for load in loads {
        for (program, package) in load.workload.programs() {
            find(program, package)?;
        }
    }
    Ok(())
}

/// Makes everything that `plan` needs: the backend, and the experiment
/// that it will carry out.
///
/// # Errors
/// If a program is missing, which is found before anything is built, or there
/// is no KVM for several vCPUs; also after Ctrl-C.
pub fn prepare<'a>(
    cache: &'a Cache<'a>,
    plan: &Plan,
) -> Result<(Kernels<'a>, lab::Experiment), Error> {
    let qemu = Qemu::find()?.modelling(&plan.experiment.guests)?;
    find_programs(&plan.loads)?;
    let asked = plan.loads.iter().map(|load| load.workload);
    let experiment = equipped(cache, &plan.experiment, asked)?;
    let mut making = Making::new(cache, plan, &experiment, Form::Vmlinux);
    let mut accelerator = None;
    let made = making.cells(|making, variant, ready| {
        let known = match accelerator {
            Some(known) => known,
            None => {
                let (known, why) =
                    choose(cache, &qemu, &ready.kernels[0], plan.probe, &plan.loads)?;
                making.fact("Accelerator", "", why);
                for load in &plan.loads {
                    let lengths = load.lengths.as_ref();
                    if let Some(out) = lengths.and_then(|l| l.left_out(load.vcpus)) {
                        making.fact("Left out", "", out);
                    }
                }
                *accelerator.insert(known)
            }
        };
        let guests = Guests {
            cache,
            qemu: &qemu,
            accelerator: known,
            limit: plan.limit,
        };
        for load in &plan.loads {
            if load.workload == Workload::Locktorture {
                torture(making, variant, &guests, ready, load, plan.design.seed)?;
            }
        }
        Ok(())
    })?;
    let accelerator = accelerator.unwrap_or(Accelerator::Tcg);
    let figured = Figured {
        accelerator,
        front_end: qemu.processor.is_some(),
        spans: plan.experiment.span.is_some(),
    };
    let (cells, ready) = with_metrics(made, |load| metrics(load, figured));
    let machine = qemu.version.clone();
    let (provenance, caveats) = if is_model(accelerator) {
        let mut caveats = vec![MODEL.to_owned()];
        caveats.extend((!qemu.next_line).then(|| NO_PREFETCH.into()));
        let server = |load: &&Load| load.workload.server_cpu().is_some();
        if let Some(load) = plan.loads.iter().find(server) {
            caveats.push(match load.counted_cpu() {
                Some(_) => SERVER_CPU.to_owned(),
                None => SHARED_CPU.to_owned(),
            });
        }
        caveats.extend(figured.front_end.then(|| FRONT_END.into()));
        (Provenance::Model(machine), caveats)
    } else {
        (Provenance::Hardware(machine), Vec::new())
    };
    let mut facts = vec![("QEMU".into(), qemu.version.clone())];
    if let (true, Some(processor)) = (is_model(accelerator), &qemu.processor) {
        facts.push(("Front end".into(), processor.clone()));
    }
    if is_model(accelerator) && qemu.next_line {
        facts.push(("Prefetch".into(), "of the next line".into()));
    }
    if let (true, Some(span)) = (figured.front_end, &plan.experiment.span) {
        facts.push(("Span".into(), span.clone()));
    }
    let setting = Setting {
        facts,
        caveats,
        provenance,
        clock_unit: accelerator.clock_unit(),
    };
    let prepared = making.experiment(setting, cells);
    let backend = Kernels {
        cache,
        accelerator,
        spans: figured.spans,
        limit: plan.limit,
        seed: plan.design.seed,
        cells: ready,
        checked: false,
        lock_profile: plan.experiment.guests.lock_profile,
        qemu,
        prepared,
    };
    let experiment = backend.experiment(plan.design.clone());
    Ok((backend, experiment))
}
