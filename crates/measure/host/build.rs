//! Records the compiler, which every report names: the locks are its work.

use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=RUSTC");
    let rustc = std::env::var_os("RUSTC").unwrap_or("rustc".into());
    let version = Command::new(rustc)
        .arg("--version")
        .output()
        .ok()
        .and_then(|o| String::from_utf8(o.stdout).ok())
        .map(|v| v.trim().to_owned())
        .filter(|v| !v.is_empty())
        .unwrap_or("unknown (rustc --version failed)".into());
    let level = std::env::var("OPT_LEVEL").unwrap_or("unknown".into());
    let target = std::env::var("TARGET").unwrap_or("unknown".into());
    println!("cargo:rustc-env=LOCKLAB_COMPILER={version}, opt-level {level}, {target}");
}
