//! `locklab kernel boot`: one kernel that exists, one workload.

use crate::cli::Common;
use crate::kernel::arguments::BootArgs;
use crate::kernel::boot::{Accelerator, Boot, Qemu};
use crate::kernel::cells;
use crate::kernel::guest;
use crate::kernel::kvm::{Look, choose};
use crate::kernel::outcome::Measured;
use crate::kernel::session::Kernel;
use crate::kernel::tools::Lab;
use crate::kernel::workload::Load;
use crate::matrix_command::print;
use locklab_host::error::Error;
use serde_json::json;
use std::fmt::Write as _;
use std::process::ExitCode;
use std::time::Duration;

pub(super) fn boot(args: &BootArgs, common: &Common, lab: &Lab<'_>) -> Result<ExitCode, Error> {
    let mut load = Load {
        processes: args.processes,
        vcpus: args.vcpus,
        ..Load::new(args.workload)
    };
    if let Some(operations) = args.operations {
        load.operations = operations;
    }
    load.check().map_err(Error::Usage)?;
    if !args.image.is_file() {
        return Err(Error::Usage(format!(
            "there is no kernel {}",
            args.image.display()
        )));
    }
    let qemu = Qemu::find()?;
    if common.dry_run {
        return print(&format!(
            "Would boot {} with {} in {}.\n",
            args.image.display(),
            load.workload.name(),
            qemu.version
        ));
    }
    let kernel = Kernel {
        images: vec![args.image.clone()],
        modules: args.modules.clone(),
        cmdline: args.cmdline.clone(),
    };
    let (accelerator, why) = choose(
        lab,
        &qemu,
        &kernel,
        Look {
            tcg: args.tcg,
            again: args.probe,
        },
        args.vcpus,
    )?;
    let runs = lab.folder("runs")?;
    let folder = tempfile::Builder::new()
        .prefix("boot-")
        .tempdir_in(&runs)
        .map_err(|e| lab.cannot_write(&runs, &e))?;
    let initramfs = folder.path().join("initramfs");
    guest::write_initramfs(lab, &load, args.modules.as_deref(), &initramfs)?;
    let cmdline = format!("{} {}", load.workload.cmdline(), args.cmdline);
    let once = |counted: bool| {
        let boot = Boot {
            image: &args.image,
            initramfs: &initramfs,
            cmdline: cmdline.trim(),
            memory_mib: load.workload.memory_mib(),
            vcpus: load.vcpus,
            seed: common.seed,
            accelerator,
            counted,
            limit: Duration::from_secs(args.time_limit),
        };
        qemu.boot(&boot, folder.path(), lab.interrupt)?
            .map_err(|invalid| Error::Failed(invalid.to_string()))
    };
    let measured = once(true)?;
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
                "provenance": match accelerator {
                    Accelerator::Tcg => "model",
                    Accelerator::Kvm => "hardware",
                },
                "accelerator": why,
                "load": load,
                "measured": measured,
                "slowdown": slowdown,
            })
        )
    } else {
        boot_text(&measured, &why, &load, slowdown)
            + &cells::table(&measured, accelerator.clock_unit())
    })
}

fn boot_text(measured: &Measured, why: &str, load: &Load, slowdown: Option<f64>) -> String {
    let mut text = format!(
        "{}: {} x 1 {}, on {why}; {:.1} s of CPU time, {:.1} s to the workload\n",
        load.workload.name(),
        measured.work,
        measured.unit,
        measured.cpu_seconds,
        measured.boot_seconds
    );
    match &measured.counts {
        Some(counts) => {
            let _ = writeln!(
                text,
                "{:<8} {:>16} {:>14} {:>12}",
                "Model", "Instructions", "L1i misses", "Instr/unit"
            );
            for (name, mode) in [("user", counts.user), ("kernel", counts.kernel)] {
                let _ = writeln!(
                    text,
                    "{name:<8} {:>16} {:>14} {:>12.1}",
                    mode.instructions,
                    mode.l1i_misses,
                    mode.instructions as f64 / measured.work as f64
                );
            }
        }
        None => {
            let _ = writeln!(
                text,
                "{:.1} ns per {}",
                measured.elapsed_ns as f64 / measured.work as f64,
                measured.unit
            );
        }
    }
    if let Some(slowdown) = slowdown {
        let _ = writeln!(
            text,
            "The plugin took {slowdown:.2} times the CPU time of plain TCG."
        );
    }
    text
}
