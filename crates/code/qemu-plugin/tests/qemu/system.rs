// SPDX-License-Identifier: GPL-2.0-or-later
//! A whole machine, in QEMU's system mode, without KVM.

use std::ffi::OsStr;
use std::process::Command;

use crate::lab::{Lab, Run, need};

fn boot(lab: &Lab, arguments: &str, more: &[&str]) -> Run {
    let image = lab.build(
        "boot.S",
        "boot",
        &[
            "-nostdlib",
            "-no-pie",
            "-Wl,-Ttext=0x7c00,--oformat=binary,--build-id=none",
        ],
    );
    // A machine that does not end is stopped.
    let mut qemu = Command::new("timeout");
    qemu.args([
        "60",
        "qemu-system-x86_64",
        "-accel",
        "tcg",
        "-display",
        "none",
    ])
    .args(["-nic", "none", "-vga", "none", "-no-reboot"])
    .args(["-device", "isa-debug-exit,iobase=0xf4,iosize=4"])
    .arg("-fda")
    .arg(image)
    .args(more);
    let run = lab.run(qemu, arguments, &[] as &[&OsStr]);
    assert_eq!(run.output.status.code(), Some(33), "{:?}", run.output);
    run
}

#[test]
fn user_and_kernel_are_counted_apart() {
    need!("qemu-system-x86_64" from "qemu-system-x86", "gcc" from "gcc");
    let lab = Lab::new("user_and_kernel_are_counted_apart");
    for more in [&[] as &[&str], &["-icount", "shift=0,sleep=off"]] {
        let run = boot(&lab, "", more);
        assert_eq!(run.number("/kernel/instructions"), 2009, "{more:?}");
        assert_eq!(run.number("/user/instructions"), 1003, "{more:?}");
        assert_eq!(run.number("/instructions"), 3012, "{more:?}");
        // The kernel's alias of the user's line is the same line in memory.
        for mode in ["kernel", "user"] {
            assert_eq!(
                run.number(&format!("/{mode}/l1i_fetches")),
                1,
                "{mode} {more:?}"
            );
            assert_eq!(
                run.number(&format!("/{mode}/l1i_misses")),
                1,
                "{mode} {more:?}"
            );
        }
        assert_eq!(run.json()["target"]["system"], true);
    }
}

#[test]
fn a_machine_needs_markers() {
    need!("qemu-system-x86_64" from "qemu-system-x86");
    let lab = Lab::new("a_machine_needs_markers");
    let mut qemu = Command::new("timeout");
    qemu.args([
        "60",
        "qemu-system-x86_64",
        "-accel",
        "tcg",
        "-display",
        "none",
    ]);
    let run = lab.run(qemu, ",markers=off", &[] as &[&OsStr]);
    assert_eq!(run.output.status.code(), Some(1));
    let error = String::from_utf8_lossy(&run.output.stderr).into_owned();
    assert!(error.contains("firmware"), "{error}");
}
