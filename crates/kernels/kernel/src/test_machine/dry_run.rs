//! Says what a comparison on a test machine would do: its time, its steps, and what
//! it leaves untouched. It must never speak to the machine.

use crate::cache::Cache;
use crate::settings::Target;
use crate::test_machine::prepare::last_cycle;
use crate::test_machine::states::{LIMIT, stays};
use crate::workload::Workload;
use crate::{Plan, torture_load};
use locklab_document::number::{count, duration};
use locklab_document::page::Page;
use serde_json::{Value, json};
use std::time::Duration;

/// Returns what would be done, as text.
#[must_use]
pub fn text(plan: &Plan, target: &Target, cache: &Cache<'_>) -> String {
    let (name, settings) = (target.destination(), &plan.experiment.machine);
    let boots = boots(plan);
    let limit = settings.limit.unwrap_or(LIMIT).duration();
    let mut page = Page::default();
    page.title(&format!(
        "{} on {name}: what would happen",
        plan.experiment.name
    ));
    page.paragraph(&format!(
        "{} of {}: a trial of the baseline that does not count, then {} in random order, with all \
         workloads in each boot. {name} was not contacted for this.",
        count(boots + 1 + torture_boots(plan), "boot"),
        count(2 * booted(plan), "kernel"),
        count(plan.design.pairs as usize, "pair"),
    ));
    page.heading("Time");
    match last_cycle(cache, target) {
        Some(cycle) => page.item(&format!(
            "It takes about {}. In the last session with {name} a boot, there and back, took {}.",
            duration(cycle * u32::try_from(boots + 1).unwrap_or(u32::MAX)),
            duration(cycle)
        )),
        None => page.item(&format!(
            "The time is not known before the trial boot. The machine goes there and back {}, each \
             with two starts of the firmware and all workloads. That is {} in all for each \
             minute that one takes. The trial shows how long one takes.",
            count(boots + 1, "time"),
            duration(Duration::from_secs(60 * (boots as u64 + 1)))
        )),
    }
    page.item(&format!(
        "The limit of each step is {}: of a boot, of a workload, and of the way back.",
        duration(limit)
    ));
    if plan.experiment.has_images() {
        page.item("Nothing is built: the images exist.");
    } else {
        page.item(&format!(
            "Before that, kernels that are not in the cache are built on this machine, and \
             linked in {}.",
            count(plan.design.pairs as usize, "order")
        ));
    }
    if torture_load(plan).is_some() && !plan.experiment.has_images() {
        page.item(
            "locktorture of both kernels runs in QEMU on this machine. If a lock fails, nothing \
             is started on the test machine.",
        );
        if torture_boots(plan) > 0 {
            page.item(&format!(
                "After that, locktorture runs there, on all CPUs, in {} more.",
                count(torture_boots(plan), "boot")
            ));
        }
    }
    page.heading("Steps of each boot");
    let from = if stays(settings) {
        "from the kernel before it (boot = \"chain\"), and the first time from its own system"
    } else {
        "from its own system, after a restart (boot = \"home\")"
    };
    let profiled = match plan.experiment.guests.lock_profile {
        true => ". Each runs once more, to profile the kernel's locks",
        false => "",
    };
    let steps = [
        format!("checked: {name} answers, {from}."),
        "uploaded: our program, bzImage and initramfs go by ssh into memory, with their SHA-256."
            .into(),
        "loaded: kexec_file_load takes the kernel.".into(),
        "executed: systemctl kexec stops its services and unmounts its disks. Without systemd \
         they are made read-only."
            .into(),
        "up: it answers with this session's key, a new boot id, and the token of this start."
            .into(),
        format!(
            "ran: {} have run. The machine is left alone while it measures{profiled}.",
            loads(plan)
        ),
        "collected: each result is in the store before the next run.".into(),
        "home: the machine restarts through its firmware.".into(),
    ];
    for step in steps {
        page.item(&step);
    }
    page.heading("If it does not come back");
    page.item(match &settings.power_cycle {
        Some(_) => "After the limit, the power_cycle command of the file is run.",
        None => "The file has no power_cycle, so a kernel that hangs stays until somebody comes.",
    });
    page.item("It restarts itself 5 s after a panic, or when it hears nothing for the limit.");
    page.item("Ctrl-C restarts it into its own system first.");
    page.heading("Left untouched");
    let disk = plan.loads.iter().find_map(|load| load.disk.as_deref());
    page.item(&match disk {
        Some(serial) => format!(
            "Its disks, except the one with the serial number {serial}. That one is formatted with \
             XFS in every boot, so it must be empty, or from an earlier comparison."
        ),
        None => "Its disks: neither side mounts or writes one.".to_owned(),
    });
    for what in [
        "Its packages, its boot loader and its default kernel.",
        "Its settings: governor and turbo are set in the measured kernels only.",
        "Its ssh keys and yours: the session has new ones, which are only in memory.",
    ] {
        page.item(what);
    }
    page.heading("Lost");
    page.item("Everything that runs there, and every login, is lost when the first kernel starts.");
    page.finish()
}

/// Returns the same as one document.
#[must_use]
pub fn json(plan: &Plan, target: &Target, cache: &Cache<'_>) -> Value {
    let cycle = last_cycle(cache, target);
    let boots = boots(plan) + 1;
    let variants: Vec<String> = plan
        .experiment
        .variants()
        .into_iter()
        .map(|v| v.name)
        .collect();
    json!({
        "schema": 1,
        "dry_run": true,
        "kind": crate::recipe::KIND,
        "name": plan.experiment.name,
        "on": String::from(target.clone()),
        "design": plan.design,
        "variants": variants,
        "boots": boots,
        "seconds": cycle.map(|cycle| cycle.as_secs_f64() * boots as f64),
        "limit_seconds": plan.experiment.machine.limit.unwrap_or(LIMIT).duration().as_secs_f64(),
        "workloads": plan.loads,
    })
}

fn booted(plan: &Plan) -> usize {
    let variants = plan.experiment.variants();
    variants.iter().filter(|variant| !variant.size_only).count()
}

/// Boots that count.
fn boots(plan: &Plan) -> usize {
    booted(plan) * 2 * plan.design.pairs as usize
}

/// Boots in which locks are tortured, if the file asks for that.
fn torture_boots(plan: &Plan) -> usize {
    let mut loads = plan.loads.iter();
    let asked = loads.any(|load| load.workload == Workload::Locktorture);
    match asked && !plan.experiment.has_images() {
        true => 2 * booted(plan),
        false => 0,
    }
}

fn loads(plan: &Plan) -> String {
    let loads = plan.loads.iter();
    let loads: Vec<String> = loads
        .filter(|load| load.workload != Workload::Locktorture)
        .map(|load| format!("{} ({} operations)", load.workload.name(), load.operations))
        .collect();
    loads.join(", ")
}
