//! The kernel's own torture test of its locks on the test machine, on all its CPUs:
//! a queue of waiters on several sockets is what no translator shows.
//!
//! It is a check before anything is measured, in boots of its own, of the kernels as
//! they were built: one in another link order does not load its modules. It must never
//! be timed, and never run before the same sources have passed in QEMU.

use crate::making::ReadyVariant;
use crate::test_machine::backend::RemoteKernels;
use crate::test_machine::contents;
use crate::test_machine::states::Trouble;
use crate::workload::{Load, Workload};
use crate::{Plan, as_built, torture_in_qemu, torture_load, torture_on};
use locklab_harness::experiment::Facts;
use locklab_host::error::Error;

/// Holds what is said where kernels exist already.
const NOT_OF_IMAGES: &str =
    "Locktorture was not run: kernels that exist need not have its modules.";

/// Runs the check in QEMU, if the plan asks for it or a patch changes a lock, and
/// takes it from the plan: what a lock that fails does to a machine is not found out
/// there. Returns the load that the file asks for on the machine too.
///
/// # Errors
/// If a lock fails, or the check cannot be run; also after Ctrl-C.
pub(crate) fn in_qemu(
    cache: &crate::cache::Cache<'_>,
    plan: &mut Plan,
    caveats: &mut Vec<String>,
) -> Result<(Facts, Option<Load>), Error> {
    let is_torture = |load: &&Load| load.workload == Workload::Locktorture;
    if torture_load(plan).is_none() {
        return Ok((Facts::new(), None));
    }
    let mut asked = plan.loads.iter().find(is_torture).cloned();
    let facts = if plan.experiment.has_images() {
        caveats.push(NOT_OF_IMAGES.into());
        asked = None;
        Facts::new()
    } else {
        torture_in_qemu(cache, plan)?
    };
    plan.loads.retain(|load| !is_torture(&load));
    Ok((facts, asked))
}

/// Boots both kernels of every variant on the machine and tortures their locks on all
/// CPUs, `cpus` of them. The machine is home afterwards.
///
/// # Errors
/// If a lock fails, or a kernel; also after Ctrl-C.
pub(crate) fn on_machine(
    remote: &mut RemoteKernels<'_>,
    load: &Load,
    cpus: u64,
) -> Result<Facts, Error> {
    let load = torture_on(load, cpus);
    let variants = remote.cells.variants().into_iter();
    let variants: Vec<ReadyVariant> = variants.cloned().collect();
    for (number, variant) in variants.iter().enumerate() {
        for (at, side) in ["baseline", "experiment"].into_iter().enumerate() {
            let words = [variant.name.as_str(), side];
            let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
            let name = words.join(", ");
            remote.cache.note(&format!(
                "locktorture of the {name} on {}",
                remote.machine.ssh.destination()
            ));
            let why = match tortured(remote, variant, at, &load, number) {
                Ok(Ok(())) => continue,
                Ok(Err(why)) | Err(Trouble::Failed { why, .. }) => why,
                Err(other) => return Err(other.into()),
            };
            return Err(Error::Failed(format!(
                "locktorture of the {name} on {}, on {cpus} CPUs: {why}; nothing was measured",
                remote.machine.ssh.destination()
            )));
        }
    }
    Ok(vec![(
        "Locktorture there".into(),
        format!(
            "both kernels passed on {cpus} CPUs of the test machine ({} threads, {} s each)",
            load.processes, load.operations
        ),
    )])
}

/// Boots, tortures and leaves one kernel; returns why its lock failed, if it did.
fn tortured(
    remote: &mut RemoteKernels<'_>,
    variant: &ReadyVariant,
    at: usize,
    load: &Load,
    number: usize,
) -> Result<Result<(), String>, Trouble> {
    let fatal = |error: Error| Trouble::Fatal(error.to_string());
    let Some(build) = variant.builds.as_ref().map(|builds| &builds[at]) else {
        return Err(Trouble::Fatal(NOT_OF_IMAGES.into()));
    };
    let kernel = as_built(remote.cache, &variant.kernels[at], build, &build.bzimage);
    let kernel = kernel.map_err(fatal)?;
    let session = &remote.machine.session;
    let initramfs = session.file(&format!("initramfs-torture-{number}-{at}"));
    contents::write(
        remote.cache,
        session,
        &remote.network,
        remote.limit,
        &kernel,
        &[load],
        &initramfs,
    )
    .map_err(fatal)?;
    remote.start_image(variant, &kernel, &build.bzimage, &initramfs)?;
    let found = remote.run_load("torture", load, None)?;
    remote.machine.go_home()?;
    Ok(found.map(|_| ()))
}
