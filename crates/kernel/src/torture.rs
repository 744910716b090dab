//! The kernel's own torture test of its locks, on two CPUs: it shows whether
//! both kernels' locks exclude, before anything is compared. It must never be
//! timed: in the translator each CPU is a thread of the host.

use crate::boot::Qemu;
use crate::cache::Cache;
use crate::instrument::{GuestRun, Guests};
use crate::kvm::choose;
use crate::layout::Form;
use crate::making::{Kernel, Making, ReadyVariant};
use crate::plan::{Plan, Scope, equipped};
use crate::recipe::Variant;
use crate::workload::{Load, Workload};
use locklab_host::error::Error;
use locklab_lab::experiment::Facts;

/// CPUs of the guest: what one CPU runs alone never waits for another.
const CPUS: u64 = 2;

/// Runs it once with each kernel of a variant. It loads modules, which a kernel
/// in another link order does not take, so it runs in the order of the build.
///
/// # Errors
/// If a lock fails, or a guest; also after Ctrl-C.
pub(crate) fn torture(
    making: &mut Making<'_>,
    variant: &Variant,
    guests: &Guests<'_>,
    ready: &ReadyVariant,
    load: &Load,
    seed: u64,
) -> Result<(), Error> {
    let load = Load {
        vcpus: CPUS,
        processes: load.processes.max(2 * CPUS),
        ..load.clone()
    };
    for (at, kernel) in ready.kernels.iter().enumerate() {
        let plain = Kernel {
            images: match &ready.builds {
                Some(builds) => vec![builds[at].vmlinux.clone()],
                None => kernel.images.clone(),
            },
            ..kernel.clone()
        };
        let outcome = guests.run(&GuestRun {
            kernel: &plain,
            layout: 0,
            load: &load,
            seed,
            counted: false,
        })?;
        if let Err(invalid) = outcome {
            return Err(Error::Failed(format!(
                "locktorture of the {} kernel on {CPUS} CPUs: {invalid}",
                ["baseline", "experiment"][at]
            )));
        }
    }
    making.fact(
        "Locktorture",
        &variant.name,
        format!(
            "both kernels passed on {CPUS} CPUs in QEMU ({} threads, {} s each)",
            load.processes, load.operations
        ),
    );
    Ok(())
}

/// Builds the kernels of an experiment with the ready configuration and tortures
/// their locks in QEMU, before kernels of the same sources go to a test machine.
/// Returns what a report says of it.
///
/// # Errors
/// If QEMU or a program is missing, a kernel cannot be built, or a lock fails;
/// also after Ctrl-C.
pub fn torture_in_qemu(cache: &Cache<'_>, plan: &Plan) -> Result<Facts, Error> {
    let mut plan = plan.clone();
    plan.loads
        .retain(|load| load.workload == Workload::Locktorture);
    plan.experiment.kernel.config = None;
    // In the order of the build: no other is linked.
    plan.scope = Scope::Report;
    let qemu = Qemu::find()?;
    let experiment = equipped(cache, &plan.experiment, [Workload::Locktorture])?;
    let mut making = Making::new(cache, &plan, &experiment, Form::Vmlinux);
    let mut passed = Vec::new();
    making.cells(|making, variant, ready| {
        let (accelerator, _) = choose(cache, &qemu, &ready.kernels[0], plan.probe, 1)?;
        let guests = Guests {
            cache,
            qemu: &qemu,
            accelerator,
            limit: plan.limit,
        };
        for load in &plan.loads {
            torture(making, variant, &guests, ready, load, plan.design.seed)?;
        }
        passed.push(variant.name.clone());
        Ok(())
    })?;
    let variants = experiment.variants();
    let missed = variants
        .iter()
        .find(|variant| !variant.size_only && !passed.contains(&variant.name));
    match missed {
        Some(variant) => Err(Error::Failed(format!(
            "locktorture{}{} has not passed in QEMU (the reason is above), and nothing was started \
             on the test machine; leave the workload locktorture out to go on without this check",
            if variant.name.is_empty() { "" } else { " of " },
            variant.name
        ))),
        None => Ok(making.into_facts()),
    }
}
