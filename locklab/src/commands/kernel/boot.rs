//! `locklab kernel boot`: one kernel that exists, one workload.

use super::arguments::CacheArgs;
use crate::arguments::Common;
use crate::output::answer;
use clap::{Args, ValueEnum as _};
use locklab_harness::file;
use locklab_harness::settings::{SEED, over};
use locklab_host::error::Error;
use locklab_kernel::boot::{Accelerator, Qemu};
use locklab_kernel::cache::Cache;
use locklab_kernel::kvm::choose;
use locklab_kernel::lock_report;
use locklab_kernel::outcome::Measured;
use locklab_kernel::settings::GuestSettings;
use locklab_kernel::spinlock_matrix;
use locklab_kernel::workload::{Load, Workload};
use locklab_kernel::{GuestRun, Guests, Kernel, profiled};
use serde::Deserialize;
use serde_json::json;
use std::path::PathBuf;
use std::process::ExitCode;

/// `locklab kernel boot`.
#[derive(Debug, Args)]
pub struct BootArgs {
    /// bzImage, or vmlinux with a PVH entry
    pub image: PathBuf,
    /// Workloads to run, of which there is one here, with its processes where it has several, as
    /// fstat:4
    #[arg(long, value_name = "NAME", default_value = "fstat", value_parser = load)]
    pub workload: Load,
    /// Seed of every random choice [default: 1]
    #[arg(long, value_name = "N", default_value_t = SEED, hide_default_value = true)]
    pub seed: u64,
    /// Set any key of an experiment file, such as operations=1000, modules=DIR (such as
    /// /lib/modules/VERSION), cmdline=TEXT, which is added to the kernel's, or slowdown=true,
    /// which boots without the plugin too
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    #[command(flatten)]
    pub(crate) guests: GuestSettings,
    #[command(flatten)]
    pub(crate) cache: CacheArgs,
}

/// Returns the load that a workload names.
fn load(text: &str) -> Result<Load, String> {
    let (name, processes) = text.split_once(':').unwrap_or((text, "1"));
    let workload = Workload::from_str(name, false).map_err(|_| {
        let all: Vec<_> = Workload::value_variants()
            .iter()
            .map(|workload| workload.name())
            .collect();
        format!(
            "there is no workload '{name}'; there are {}",
            all.join(", ")
        )
    })?;
    let processes = processes.parse().map_err(|_| {
        format!("'{processes}' is no number of processes; write a workload as fstat:4")
    })?;
    Ok(Load {
        processes,
        ..Load::new(workload)
    })
}

/// What `--set` may set of one boot.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct BootSettings {
    /// The modules of the kernel.
    modules: Option<PathBuf>,
    /// Options added to the kernel's command line.
    cmdline: String,
    /// Says whether to boot without the plugin too, and report its slowdown.
    slowdown: bool,
    #[serde(flatten)]
    guests: GuestSettings,
}

pub(super) fn boot(args: &BootArgs, common: &Common, cache: &Cache<'_>) -> Result<ExitCode, Error> {
    let set: BootSettings = file::parse_with("", &args.set)?;
    let guests = over(&args.guests, &set.guests)?;
    let mut load = args.workload.clone();
    load.vcpus = guests.vcpus();
    if let Some(operations) = guests.operations {
        load.operations = operations;
    }
    load.check()?;
    guests.check(std::slice::from_ref(&load))?;
    if set.slowdown && guests.lock_profile {
        return Err(Error::Usage(
            "lock_profile counts nothing by the plugin, so slowdown has nothing to compare; \
             leave one of them out"
                .into(),
        ));
    }
    if !args.image.is_file() {
        return Err(Error::Usage(format!(
            "there is no kernel {}",
            args.image.display()
        )));
    }
    let qemu = Qemu::find()?.modelling(&guests)?;
    if common.dry_run {
        return dry_run(args, &load, &qemu, common);
    }
    let kernel = Kernel {
        images: vec![args.image.clone()],
        modules: set.modules.clone(),
        source: None,
        cmdline: set.cmdline.clone(),
    };
    let probe = guests.probe_options();
    let (accelerator, why) = choose(cache, &qemu, &kernel, probe, std::slice::from_ref(&load))?;
    if set.slowdown && accelerator == Accelerator::Kvm {
        return Err(Error::Usage(
            "slowdown measures the plugin, which counts only in QEMU's translator; leave it out, or \
             add --set tcg=true"
                .into(),
        ));
    }
    let machine = Guests {
        cache,
        qemu: &qemu,
        accelerator,
        limit: guests.limit(),
    };
    if guests.lock_profile {
        load = profiled(&load, accelerator);
    }
    let once = |counted: bool| {
        let run = GuestRun {
            kernel: &kernel,
            layout: 0,
            load: &load,
            seed: args.seed,
            counted,
            alone: false,
        };
        machine
            .run(&run)?
            .map_err(|invalid| Error::Failed(invalid.to_string()))
    };
    let measured = once(true)?;
    if load.profile {
        return profile(&load, &measured, (accelerator, &why), common);
    }
    let plain = if set.slowdown {
        Some(once(false)?)
    } else {
        None
    };
    let slowdown = plain.map(|plain| measured.cpu_seconds / plain.cpu_seconds);
    let json = || {
        json!({"schema": 1, "kind": "kernel-boot", "provenance": provenance(accelerator),
               "accelerator": why, "load": load, "measured": measured, "slowdown": slowdown})
    };
    answer(common.json, json, || {
        measured.text(&load, &why, slowdown)
            + &spinlock_matrix::table(&measured, accelerator.clock_unit())
    })
}

/// Prints which locks of the kernel were waited for.
fn profile(
    load: &Load,
    measured: &Measured,
    (accelerator, why): (Accelerator, &str),
    common: &Common,
) -> Result<ExitCode, Error> {
    let translated = accelerator == Accelerator::Tcg;
    let json = || {
        json!({"schema": 1, "kind": "kernel-boot", "provenance": provenance(accelerator),
               "accelerator": why, "load": load,
               "lock_profile": lock_report::json(load, measured, translated)})
    };
    let text = || lock_report::text(load, measured, translated);
    answer(common.json, json, text)
}

fn provenance(accelerator: Accelerator) -> &'static str {
    match accelerator {
        Accelerator::Tcg => "model",
        Accelerator::Kvm => "hardware",
    }
}

fn dry_run(args: &BootArgs, load: &Load, qemu: &Qemu, common: &Common) -> Result<ExitCode, Error> {
    let json = || {
        json!({"schema": 1, "dry_run": true, "kind": "kernel-boot", "image": args.image,
               "load": load, "qemu": qemu.version})
    };
    let image = args.image.display();
    let (load, qemu) = (load.workload.name(), &qemu.version);
    let text = || format!("Would boot {image} with {load} in {qemu}.\n");
    answer(common.json, json, text)
}
