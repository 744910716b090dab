//! The locks' tests on processors that this machine does not have, run by
//! QEMU's user mode.
//!
//! Rust's standard library for them comes from rustup. Where rustup cannot
//! fetch it, from source: Debian's `rust-web-src`, built by the compiler of
//! the same version (`rustc-web`); both are unpacked below `target` and never
//! installed, because they would replace the compiler of this machine.

use crate::outcome::{Outcome, Skip};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A processor, and the Debian packages that its programs need.
struct Processor {
    target: &'static str,
    /// The name of the compiler, of its C library, and of QEMU's `qemu-NAME`.
    gcc: &'static str,
    libc: &'static str,
    qemu: &'static str,
    /// Says where the C library is.
    root: &'static str,
}

const PROCESSORS: &[Processor] = &[
    Processor {
        target: "aarch64-unknown-linux-gnu",
        gcc: "aarch64-linux-gnu-gcc",
        libc: "libc6-dev-arm64-cross",
        qemu: "qemu-aarch64",
        root: "/usr/aarch64-linux-gnu",
    },
    Processor {
        target: "riscv64gc-unknown-linux-gnu",
        gcc: "riscv64-linux-gnu-gcc",
        libc: "libc6-dev-riscv64-cross",
        qemu: "qemu-riscv64",
        root: "/usr/riscv64-linux-gnu",
    },
];

/// Packages for [`test()`].
pub(crate) const PACKAGES: &[(&str, &str)] = &[
    ("qemu-user", "to run their programs"),
    ("gcc-aarch64-linux-gnu", "the locks on AArch64"),
    ("libc6-dev-arm64-cross", "the locks on AArch64"),
    ("gcc-riscv64-linux-gnu", "the locks on RISC-V"),
    ("libc6-dev-riscv64-cross", "the locks on RISC-V"),
];

/// Test programs that run there.
const TESTS: &[&str] = &["suite", "processes", "preempted"];

/// Tests in them that do not: one builds for this machine, and two start their
/// own program, which to the kernel is the emulator.
const NOT_THERE: [&str; 3] = [
    "no_std::",
    "misuse::leaked_readers_end_the_program",
    "ticket::a_ticket_too_far_back_ends_the_program",
];

/// Runs the locks' tests on each of [`PROCESSORS`]; one on which they cannot
/// run is skipped.
/// `fetch`: also fetches what is missing.
pub(crate) fn test(fetch: bool) -> Outcome {
    let mut outcome = Outcome::default();
    for processor in PROCESSORS {
        match Library::of(processor, fetch) {
            Ok(library) => outcome.add(library.test(processor)),
            Err(reason) => outcome.skipped.push(Skip {
                program: "the locks".into(),
                test: processor.target.into(),
                reason,
            }),
        }
    }
    outcome
}

/// Says where the standard library comes from.
enum Library {
    Rustup,
    /// The folder that Debian's compiler and its source were unpacked to.
    Source(PathBuf),
}

impl Library {
    fn of(processor: &Processor, fetch: bool) -> Result<Self, String> {
        for program in [processor.gcc, processor.qemu] {
            if Command::new(program).arg("--version").output().is_err() {
                return Err(format!("there is no {program}"));
            }
        }
        if !Path::new(processor.root).exists() {
            return Err(format!("install {}", processor.libc));
        }
        if has_target(processor.target) || (fetch && add_target(processor.target)) {
            return Ok(Self::Rustup);
        }
        let folder = Path::new("target").join("rust-web");
        if fetch && !folder.exists() && !unpack(&folder) {
            return Err(format!(
                "neither rustup nor apt-get has its standard library; rustup target add {}",
                processor.target
            ));
        }
        match std::path::absolute(&folder) {
            Ok(folder) if folder.exists() => Ok(Self::Source(folder)),
            _ => Err(format!("rustup target add {}", processor.target)),
        }
    }

    /// Returns the locks as they are, and, on AArch64, with waits that sleep.
    fn test(&self, processor: &Processor) -> Outcome {
        let waits: &[&[&str]] = match processor.target.starts_with("aarch64") {
            true => &[&[], &["--features", "wfe"]],
            false => &[&[]],
        };
        let mut outcome = Outcome::default();
        for features in waits {
            outcome.add(self.test_with(processor, features));
        }
        outcome
    }

    fn test_with(&self, processor: &Processor, features: &[&str]) -> Outcome {
        let variable = processor.target.replace('-', "_").to_uppercase();
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
        cargo
            .args(["test", "--package", "locklab-locks", "--lib"])
            .args(["--package", "locklab-platform"])
            .args(TESTS.iter().flat_map(|test| ["--test", test]))
            .args(features)
            .args(["--target", processor.target])
            // Tests read the machine code of the fast paths.
            .args(["--config", "profile.dev.package.locklab-locks.opt-level=2"])
            .env(format!("CARGO_TARGET_{variable}_LINKER"), processor.gcc)
            .env(
                format!("CARGO_TARGET_{variable}_RUNNER"),
                format!("{} -L {}", processor.qemu, processor.root),
            );
        if let Self::Source(folder) = self {
            // It needs both the compiler's own libraries and LLVM's.
            let libraries = format!("usr/lib/{}-linux-gnu", std::env::consts::ARCH);
            cargo
                .arg("-Zbuild-std")
                // The compiler differs from that of the other builds.
                .args(["--target-dir", "target/rust-web-build"])
                .env("RUSTC_BOOTSTRAP", "1")
                .env("RUSTC", folder.join("usr/bin/rustc"))
                .env("LD_LIBRARY_PATH", folder.join(libraries));
        }
        cargo.args(["--", "--show-output"]);
        cargo.args(NOT_THERE.iter().flat_map(|test| ["--skip", test]));
        eprintln!(
            "xtask: the locks on {} {}",
            processor.target,
            features.join(" ")
        );
        let mut outcome = crate::process::hear_tests(cargo);
        outcome.skipped.extend(NOT_THERE.map(|test| Skip {
            program: format!("the locks on {}", processor.target),
            test: test.into(),
            reason: "does not run under an emulator".into(),
        }));
        outcome
    }
}

fn has_target(target: &str) -> bool {
    let sysroot = Command::new("rustc").args(["--print", "sysroot"]).output();
    sysroot.is_ok_and(|output| {
        Path::new(String::from_utf8_lossy(&output.stdout).trim())
            .join("lib/rustlib")
            .join(target)
            .join("lib")
            .exists()
    })
}

/// Adds the target within half a minute: without a network rustup retries for
/// much longer.
fn add_target(target: &str) -> bool {
    let output = Command::new("timeout")
        .args(["30", "rustup", "target", "add", target])
        .output();
    output.is_ok_and(|output| output.status.success()) && has_target(target)
}

/// Unpacks Debian's newer compiler, for this machine, and its source.
fn unpack(folder: &Path) -> bool {
    const SCRIPT: &str = r#"
        set -e
        rm -rf "$1.new"
        mkdir -p "$1.new"
        cd "$1.new"
        llvm=$(apt-cache depends rustc-web libstd-rust-web-dev | sed -n 's/^ *Depends: \(libstd-rust-web-[0-9.]*\)$/\1/p' | head -n 1)
        lib=$(apt-cache depends "$llvm" | sed -n 's/^ *Depends: \(libllvm[0-9]*\)$/\1/p' | head -n 1)
        apt-get -q download rustc-web libstd-rust-web-dev "$llvm" "$lib" rust-web-src >/dev/null 2>&1
        for package in *.deb; do dpkg -x "$package" .; rm "$package"; done
        cd - >/dev/null
        mv "$1.new" "$1""#;
    crate::process::run(Command::new("sh").args(["-c", SCRIPT, "sh"]).arg(folder))
}
