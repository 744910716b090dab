// SPDX-License-Identifier: GPL-2.0-or-later
//! A whole machine, in QEMU's system mode, without KVM.

use std::ffi::OsStr;
use std::process::Command;

use crate::lab::{Lab, Run, need};

fn boot(lab: &Lab, options: &[&str], arguments: &str, more: &[&str]) -> Run {
    let bare = [
        "-nostdlib",
        "-no-pie",
        "-Wl,-Ttext=0x7c00,--oformat=binary,--build-id=none",
    ];
    let image = lab.build("boot.S", "boot", &[&bare, options].concat());
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
        let run = boot(&lab, &[], "", more);
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
fn one_vcpu_of_a_machine_is_reported_alone() {
    need!("qemu-system-x86_64" from "qemu-system-x86", "gcc" from "gcc");
    let lab = Lab::new("one_vcpu_of_a_machine_is_reported_alone");
    let two = ["-smp", "2", "-icount", "shift=0,sleep=off"];
    // Nobody starts the second.
    for (vcpu, instructions) in [(0, 3012), (1, 0)] {
        let run = boot(&lab, &[], &format!(",vcpu={vcpu}"), &two);
        assert_eq!(run.number("/instructions"), instructions, "{vcpu}");
        assert_eq!(run.number("/vcpus"), 2);
    }
    let run = boot(&lab, &[], ",vcpu=2", &two);
    let error = String::from_utf8_lossy(&run.output.stderr).into_owned();
    assert!(
        error.contains("no vCPU 2: the machine has 2, from 0 on"),
        "{error}"
    );
    assert!(run.text.is_empty(), "{}", run.text);
}

#[test]
fn every_change_of_the_address_space_is_counted() {
    need!("qemu-system-x86_64" from "qemu-system-x86", "gcc" from "gcc");
    let lab = Lab::new("every_change_of_the_address_space_is_counted");
    let switches = 20_000;
    let option = format!("-DSWITCHES={switches}");
    let run = boot(&lab, &[&option], ",processor=zen-3", &[]);
    let event = |name: &str| run.number(&format!("/frontend/kernel/events/{name}"));
    assert_eq!(event("address_space_changes"), switches);
    assert_eq!(event("interruptions"), 0);
    // A jump, three moves, four instructions a change, and the way out.
    assert_eq!(run.number("/kernel/instructions"), 4 + 4 * switches + 2);
    assert_eq!(run.number("/user/instructions"), 0);
    // The code is the same lines of memory in both.
    assert!(run.number("/kernel/l1i_misses") <= 4);
    assert_eq!(event("conditional_mispredictions"), 2);
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
