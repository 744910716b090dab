//! The crate builds for a kernel: without `std`, and for a target that has
//! none.
#![cfg(not(miri))]

use std::path::Path;
use std::process::Command;

/// Targets without an operating system. Each is tried if rustup has it.
const BARE: [&str; 2] = ["x86_64-unknown-none", "aarch64-unknown-none"];

fn build(target: Option<&str>) {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("no_std");
    let status = Command::new(env!("CARGO"))
        .args([
            "check",
            "--package",
            "locklab-locks",
            "--no-default-features",
        ])
        .arg("--target-dir")
        .arg(folder)
        .args(target.map(|target| format!("--target={target}")))
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env_remove("CARGO_BUILD_TARGET")
        .status()
        .expect("cargo runs");
    assert!(status.success(), "builds for {}", target.unwrap_or("here"));
}

fn installed(target: &str) -> bool {
    let sysroot = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()))
        .args(["--print", "sysroot"])
        .output()
        .expect("rustc runs");
    let sysroot = String::from_utf8(sysroot.stdout).expect("a path in UTF-8");
    Path::new(sysroot.trim())
        .join("lib/rustlib")
        .join(target)
        .join("lib")
        .exists()
}

#[test]
fn builds_without_std() {
    build(None);
    for target in BARE {
        if installed(target) {
            build(Some(target));
        } else {
            println!("left out: rustup target add {target}");
        }
    }
}
