//! The kernel's own torture test of its locks, on several CPUs: it shows whether
//! both kernels' locks exclude, before anything is compared. It must never be
//! timed: in the translator each CPU is a thread of the host.
//!
//! A kernel has two locks of one name. On a machine of its own a CPU waits in the
//! queue of its queued spinlock; a guest of a hypervisor that it does not know waits
//! by `virt_spin_lock()`, without a queue. Which one runs is decided by one bit of
//! CPUID, so each kernel is booted with it and without it, and must say that it saw
//! what was meant. The check must never pass on a lock that nothing waited by.

use crate::boot::Qemu;
use crate::build::Build;
use crate::cache::Cache;
use crate::guests::{GuestRun, Guests};
use crate::kvm::choose;
use crate::layout::Form;
use crate::making::{Kernel, Making, ReadyVariant};
use crate::outcome::Measured;
use crate::plan::{Plan, equipped};
use crate::recipe::{Experiment, Variant};
use crate::torture_modules::torture_modules;
use crate::workload::{Load, Workload};
use locklab_harness::experiment::Facts;
use locklab_host::error::Error;
use locklab_judge::Side;
use std::path::Path;

/// CPUs of the guest. Of two, one holds the lock and the other waits at its pending
/// bit; only with more does anybody wait in the queue.
const CPUS: u64 = 4;

/// The two places in which each kernel runs: whether the hypervisor bit is hidden
/// from it, and what the report calls that.
const PLACES: [(bool, &str); 2] = [
    (true, "on a machine of its own"),
    (false, "as a guest of an unknown hypervisor"),
];

/// Runs it with each kernel of a variant in each place. It loads modules, which a
/// kernel in another link order does not take, so it runs in the order of the
/// build.
///
/// # Errors
/// If a lock fails, or a guest; if a guest was not told what it runs on; also after
/// Ctrl-C.
pub(crate) fn torture(
    making: &mut Making<'_>,
    variant: &Variant,
    guests: &Guests<'_>,
    ready: &ReadyVariant,
    load: &Load,
    seed: u64,
) -> Result<(), Error> {
    let load = torture_on(load, CPUS);
    for (at, kernel) in ready.kernels.iter().enumerate() {
        let plain = match &ready.builds {
            Some(builds) => as_built(guests.cache, kernel, &builds[at], &builds[at].vmlinux)?,
            None => kernel.clone(),
        };
        for (run, place) in runs(&plain, &load, seed) {
            let found = guests.run(&run)?.map_err(|invalid| invalid.to_string());
            if let Err(why) = found.and_then(|measured| saw(&measured, run.alone)) {
                return Err(Error::Failed(format!(
                    "locktorture of the {} kernel, {place}, on {CPUS} CPUs: {why}",
                    ["baseline", "experiment"][at]
                )));
            }
        }
    }
    making.fact("Locktorture", &variant.name, fact(&load));
    Ok(())
}

/// Returns the load on so many CPUs, with two threads or more for each.
#[must_use]
pub fn torture_on(load: &Load, cpus: u64) -> Load {
    Load {
        vcpus: cpus,
        processes: load.processes.max(2 * cpus),
        ..load.clone()
    }
}

/// Returns a kernel in the order of its build, as `image`, with the modules of the check:
/// one in another link order does not load them.
///
/// # Errors
/// If the modules cannot be made; also after Ctrl-C.
pub fn as_built(
    cache: &Cache<'_>,
    kernel: &Kernel,
    build: &Build,
    image: &Path,
) -> Result<Kernel, Error> {
    Ok(Kernel {
        images: vec![image.to_owned()],
        modules: Some(torture_modules(cache, build)?),
        ..kernel.clone()
    })
}

/// Returns the runs of a kernel, each with the name of its place.
fn runs<'a>(
    kernel: &'a Kernel,
    load: &'a Load,
    seed: u64,
) -> impl Iterator<Item = (GuestRun<'a>, &'static str)> {
    PLACES.into_iter().map(move |(alone, place)| {
        let run = GuestRun {
            kernel,
            layout: 0,
            load,
            seed,
            counted: false,
            alone,
        };
        (run, place)
    })
}

/// Returns whether the guest saw what it was meant to run on: by this its lock was chosen.
fn saw(measured: &Measured, alone: bool) -> Result<(), String> {
    let hypervisor = measured.results.get("hypervisor").map(String::as_str);
    let meant = if alone { "no" } else { "yes" };
    if hypervisor == Some(meant) {
        return Ok(());
    }
    Err(format!(
        "the guest was to see {} hypervisor and says '{}', so another of its locks was tortured",
        if alone { "no" } else { "a" },
        hypervisor.unwrap_or("nothing")
    ))
}

/// Returns what the report says of a check that passed.
fn fact(load: &Load) -> String {
    format!(
        "both kernels passed on {CPUS} CPUs in QEMU ({} threads, {} s each), {} (where a queued \
         spinlock queues) and {} (where it is virt_spin_lock())",
        load.processes, load.operations, PLACES[0].1, PLACES[1].1
    )
}

/// Files of the kernel whose change is one of a lock, by what their paths contain.
const LOCKS: [&str; 8] = [
    "kernel/locking/",
    "spinlock",
    "rwlock",
    "rwsem",
    "mutex",
    "seqlock",
    "lockref",
    "/atomic",
];

/// Returns the check that kernels take before they go to a test machine: the one that the file
/// asks for, or one of the usual length where a patch changes a lock.
#[must_use]
pub fn torture_load(plan: &Plan) -> Option<Load> {
    let mut loads = plan.loads.iter();
    let asked = loads.find(|load| load.workload == Workload::Locktorture);
    let changed = || !plan.experiment.has_images() && changes_a_lock(&plan.experiment);
    asked
        .cloned()
        .or_else(|| changed().then(|| Load::new(Workload::Locktorture)))
}

/// Returns whether a patch of either kernel changes a lock. One that cannot be read is an
/// error of its own when it is applied.
fn changes_a_lock(experiment: &Experiment) -> bool {
    let variants = experiment.variants();
    let recipes = variants
        .iter()
        .flat_map(|variant| Side::BOTH.map(|side| experiment.recipe(side, Some(variant))));
    let mut patches = recipes.flat_map(|recipe| recipe.patches);
    patches.any(|patch| {
        let text = std::fs::read_to_string(experiment.folder.join(patch)).unwrap_or_default();
        let mut files = text.lines().filter_map(|line| line.strip_prefix("+++ "));
        files.any(|file| LOCKS.iter().any(|lock| file.contains(lock)))
    })
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
    plan.loads = torture_load(&plan).into_iter().collect();
    plan.experiment.kernel.config = None;
    // In the order of the build: no other is linked.
    plan.layouts = false;
    let qemu = Qemu::find()?;
    let experiment = equipped(cache, &plan.experiment, [Workload::Locktorture])?;
    let mut making = Making::new(cache, &plan, &experiment, Form::Vmlinux);
    let mut passed = Vec::new();
    making.cells(|making, variant, ready| {
        let (accelerator, _) = choose(cache, &qemu, &ready.kernels[0], plan.probe, &[])?;
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
             on the test machine",
            if variant.name.is_empty() { "" } else { " of " },
            variant.name
        ))),
        None => Ok(making.into_facts()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::boot::Accelerator;
    use crate::cache::{Cache, Tool};
    use std::sync::atomic::AtomicBool;
    use std::time::Duration;

    #[test]
    fn a_kernel_is_tortured_with_each_of_its_locks() {
        let interrupt = AtomicBool::new(false);
        let cache = Cache {
            root: "/none".into(),
            interrupt: &interrupt,
            quiet: true,
        };
        let qemu = Qemu {
            tool: Tool {
                name: "q",
                path: "/q".into(),
                environment: Vec::new(),
            },
            version: String::new(),
            plugin: "/p.so".into(),
            processor: None,
            next_line: false,
        };
        let kernel = Kernel {
            images: vec!["vmlinux".into()],
            modules: None,
            source: None,
            cmdline: String::new(),
        };
        let load = torture_on(&Load::new(Workload::Locktorture), CPUS);
        for accelerator in [Accelerator::Tcg, Accelerator::Kvm] {
            let guests = Guests {
                cache: &cache,
                qemu: &qemu,
                accelerator,
                limit: Duration::from_secs(1),
            };
            let hidden: Vec<bool> = runs(&kernel, &load, 1)
                .map(|(run, _)| {
                    let boot = guests.parameters(&run, Path::new("i"), "").unwrap();
                    let words = qemu.arguments(&boot);
                    // Somebody waits in the queue only if there are three.
                    assert!(
                        words
                            .iter()
                            .any(|word| word.to_string_lossy().starts_with("4,"))
                    );
                    words
                        .iter()
                        .any(|word| word.to_string_lossy().contains("-hypervisor"))
                })
                .collect();
            assert_eq!(hidden, [true, false]);
        }
    }

    #[test]
    fn a_patch_of_a_lock_is_tortured_without_being_asked() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text);
        write("lock.patch", "--- a/x\n+++ b/kernel/locking/qspinlock.c\n").unwrap();
        write("other.patch", "--- a/x\n+++ b/fs/xfs/xfs_log.c\n").unwrap();
        let changes = |patch: &str| {
            let text =
                format!("kind = 'kernel'\nname = 'x'\n[experiment]\npatches = ['{patch}.patch']\n");
            let file = folder.path().join("x.toml");
            std::fs::write(&file, text).unwrap();
            changes_a_lock(&Experiment::read(&file, &[]).unwrap())
        };
        assert!(changes("lock"));
        assert!(!changes("other"));
        // What is not there is said where patches are applied.
        assert!(!changes("none"));
    }

    #[test]
    fn a_guest_that_saw_something_else_has_not_passed() {
        let measured = |text: &str| crate::outcome::parse(text).unwrap();
        let results = "unit second\nwork 5\nelapsed-ns 5\n";
        let of = |word: &str| measured(&format!("hypervisor {word}\n{results}done\n"));
        assert_eq!(saw(&of("no"), true), Ok(()));
        assert_eq!(saw(&of("yes"), false), Ok(()));
        let why = saw(&of("yes"), true).unwrap_err();
        assert!(why.contains("another of its locks"), "{why}");
        assert!(saw(&measured(&format!("{results}done\n")), true).is_err());
    }
}
