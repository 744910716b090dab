//! `locklab kernel boot`: one kernel that exists, one workload.

use super::arguments::CacheArgs;
use crate::arguments::Common;
use crate::output::print;
use clap::Args;
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
use locklab_lab::settings::SEED;
use serde_json::json;
use std::path::PathBuf;
use std::process::ExitCode;

/// `locklab kernel boot`.
#[derive(Debug, Args)]
pub struct BootArgs {
    /// bzImage, or vmlinux with a PVH entry
    pub image: PathBuf,
    /// Its modules, such as /lib/modules/VERSION
    #[arg(long, value_name = "DIR")]
    pub modules: Option<PathBuf>,
    /// The workload that runs inside
    #[arg(long, value_enum, default_value_t = Workload::Fstat)]
    pub workload: Workload,
    /// Processes, where the workload has several
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub processes: u64,
    /// Options added to the kernel's command line
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub cmdline: String,
    /// Seed of every random choice
    #[arg(long, value_name = "N", default_value_t = SEED)]
    pub seed: u64,
    /// Boot without the plugin too, and report its slowdown
    #[arg(long)]
    pub slowdown: bool,
    #[command(flatten)]
    pub(crate) guests: GuestSettings,
    #[command(flatten)]
    pub(crate) cache: CacheArgs,
}

pub(super) fn boot(args: &BootArgs, common: &Common, cache: &Cache<'_>) -> Result<ExitCode, Error> {
    let vcpus = args.guests.vcpus();
    let mut load = Load {
        processes: args.processes,
        vcpus,
        ..Load::new(args.workload)
    };
    if let Some(operations) = args.guests.operations {
        load.operations = operations;
    }
    load.check()?;
    args.guests.check(std::slice::from_ref(&load))?;
    if args.slowdown && args.guests.lock_profile {
        return Err(Error::Usage(
            "--lock-profile counts nothing by the plugin, so --slowdown has nothing to compare; \
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
    let qemu = Qemu::find()?.modelling(&args.guests)?;
    if common.dry_run {
        return dry_run(args, &load, &qemu, common);
    }
    let kernel = Kernel {
        images: vec![args.image.clone()],
        modules: args.modules.clone(),
        source: None,
        cmdline: args.cmdline.clone(),
    };
    let probe = args.guests.probe_options();
    let (accelerator, why) = choose(cache, &qemu, &kernel, probe, std::slice::from_ref(&load))?;
    if args.slowdown && accelerator == Accelerator::Kvm {
        return Err(Error::Usage(
            "--slowdown is that of the plugin, which counts only in QEMU's translator; leave it out, or \
             add --tcg"
                .into(),
        ));
    }
    let guests = Guests {
        cache,
        qemu: &qemu,
        accelerator,
        limit: args.guests.limit(),
    };
    if args.guests.lock_profile {
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
        guests
            .run(&run)?
            .map_err(|invalid| Error::Failed(invalid.to_string()))
    };
    let measured = once(true)?;
    if load.profile {
        return profile(&load, &measured, (accelerator, &why), common);
    }
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
                "provenance": provenance(accelerator),
                "accelerator": why,
                "load": load,
                "measured": measured,
                "slowdown": slowdown,
            })
        )
    } else {
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
    if !common.json {
        return print(&lock_report::text(load, measured, translated));
    }
    let document = json!({
        "schema": 1,
        "kind": "kernel-boot",
        "provenance": provenance(accelerator),
        "accelerator": why,
        "load": load,
        "lock_profile": lock_report::json(load, measured, translated),
    });
    print(&format!("{document:#}\n"))
}

fn provenance(accelerator: Accelerator) -> &'static str {
    match accelerator {
        Accelerator::Tcg => "model",
        Accelerator::Kvm => "hardware",
    }
}

fn dry_run(args: &BootArgs, load: &Load, qemu: &Qemu, common: &Common) -> Result<ExitCode, Error> {
    print(&if common.json {
        let document = json!({
            "schema": 1,
            "dry_run": true,
            "kind": "kernel-boot",
            "image": args.image,
            "load": load,
            "qemu": qemu.version,
        });
        format!("{document:#}\n")
    } else {
        format!(
            "Would boot {} with {} in {}.\n",
            args.image.display(),
            load.workload.name(),
            qemu.version
        )
    })
}
