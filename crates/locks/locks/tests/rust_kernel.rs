//! The example of a kernel in `examples/rust-kernel` boots with four CPUs, and all
//! of them count under the queued spinlock.

#![cfg(target_arch = "x86_64")]

use std::path::Path;
use std::process::Command;

/// The exit status of QEMU when the kernel has counted right, as its source says.
const WELL: i32 = 33;

#[test]
fn the_example_of_a_kernel_counts_on_four_cpus() {
    let qemu = "qemu-system-x86_64";
    if Command::new(qemu).arg("--version").output().is_err() {
        println!("skipped: {qemu} is not installed; apt-get install qemu-system-x86");
        return;
    }
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../examples/rust-kernel");
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("rust-kernel");
    let built = Command::new(env!("CARGO"))
        .args([
            "build",
            "--release",
            "--locked",
            "--quiet",
            "--manifest-path",
        ])
        .arg(example.join("Cargo.toml"))
        .arg("--target-dir")
        .arg(&target)
        .output()
        .expect("cargo starts");
    let errors = String::from_utf8_lossy(&built.stderr);
    assert!(built.status.success(), "{errors}");
    // A guest that does not come up must not hold the tests; how long it takes is
    // not judged.
    let ran = Command::new("timeout")
        .args(["600", qemu, "-accel", "tcg", "-cpu", "max", "-smp", "4"])
        .args(["-m", "64", "-display", "none", "-nodefaults", "-no-reboot"])
        .args(["-serial", "stdio", "-device"])
        .arg("isa-debug-exit,iobase=0xf4,iosize=1")
        .arg("-kernel")
        .arg(target.join("release/rust-kernel"))
        .output()
        .expect("timeout starts");
    let printed = String::from_utf8_lossy(&ran.stdout);
    let expected = "CPUs 4, counted 80000 of 80000, size of the lock 4 bytes\n";
    assert!(printed.ends_with(expected), "{printed}");
    assert_eq!(ran.status.code(), Some(WELL));
}
