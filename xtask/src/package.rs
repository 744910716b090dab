//! Makes a release, in `target/dist`: the wheel, a static binary of the command where
//! musl is installed, man pages, completions, the Debian package, and the book.
//!
//! If a tool is missing, the part that it makes is skipped with one line that
//! names the tool, and the rest is made. Must never change this machine: tools
//! that are built go to `target/tools`, and the package is tried in a chroot of
//! its own.

use crate::process::{build_command, cargo, heard, run};
use std::path::Path;
use std::process::Command;

/// The release of cargo-deb that the package is made with.
const CARGO_DEB: &str = "^3";
/// The release of mdBook that the book is made with.
const MDBOOK: &str = "^0.5";
/// The target of the static binary.
const MUSL: &str = "x86_64-unknown-linux-musl";
/// The folder of all artefacts.
const DIST: &str = "target/dist";

/// Makes everything. Returns whether all parts that this machine can make were
/// made.
pub(crate) fn dist() -> bool {
    wheel() && man_pages() && debian() && book()
}

/// Builds the command and makes the wheel for `pip install` of it: of the static command,
/// which runs on any Linux, or where musl is missing of one that needs this machine's glibc.
pub(crate) fn wheel() -> bool {
    let _ = std::fs::create_dir_all(DIST);
    if !build_command() {
        return false;
    }
    let Some(command) = static_command() else {
        return false;
    };
    let package = "--package=locklab-packaging";
    let make = ["run", "--release", package, "--", "--wheel", DIST];
    cargo(&[&make[..], &[&*command]].concat())
}

/// Makes man pages and shell completions, by a crate that has the command's own
/// definition.
fn man_pages() -> bool {
    let package = "--package=locklab-packaging";
    cargo(&["run", "--release", package, "--", DIST])
}

/// Returns the Debian package.
fn debian() -> bool {
    let Some(cargo_deb) = tool("cargo-deb", CARGO_DEB, &[]) else {
        return false;
    };
    run(Command::new(cargo_deb).args(["deb", "--no-build", "-p", "locklab", "-o", DIST]))
}

/// Returns a program of others: the installed one, or one that is built for this
/// project.
pub(crate) fn tool(name: &str, version: &str, features: &[&str]) -> Option<String> {
    let installed = Command::new(name).arg("--version").output();
    if installed.is_ok_and(|output| output.status.success()) {
        return Some(name.to_owned());
    }
    let ours = format!("target/tools/bin/{name}");
    if !Path::new(&ours).is_file() {
        eprintln!("xtask: building {name} in target/tools");
        let root = ["install", "--quiet", "--locked", "--root", "target/tools"];
        let what = ["--version", version, name];
        // A folder of its own, because it is not part of the workspace.
        if !cargo(&[&root, features, &what].concat()) {
            eprintln!("xtask: {name} is missing: cargo install {name}");
            return None;
        }
    }
    Some(ours)
}

/// Builds the book of docs/ and the results, as pages.
fn book() -> bool {
    let Some(mdbook) = tool("mdbook", MDBOOK, &["--no-default-features"]) else {
        return false;
    };
    let folder = std::env::current_dir()
        .unwrap_or_default()
        .join(DIST)
        .join("book");
    // Beside each other as in the sources, so that links from one to the other hold.
    [(".", "docs"), ("results", "results")]
        .iter()
        .all(|(root, name)| pages(&mdbook, root, &folder.join(name)))
}

/// Builds the pages of one `book.toml` into a folder.
fn pages(mdbook: &str, root: &str, folder: &Path) -> bool {
    let mut command = Command::new(mdbook);
    command.args(["build", root, "--dest-dir"]).arg(folder);
    match heard(command, false) {
        Ok((status, output)) => {
            print!("{output}");
            // It warns, of tags that do not close for one, and goes on.
            status.success() && !output.contains("WARN")
        }
        Err(error) => {
            eprintln!("xtask: mdbook does not run: {error}");
            false
        }
    }
}

/// Returns the path of the command without shared libraries, or, where the target or the
/// compiler that it takes is missing, of the one with them; nothing if a build fails. The
/// static command cannot load a lock of the user's own, which takes a dynamic loader.
fn static_command() -> Option<String> {
    // The folder of the target's libraries, which rustc names even if it is not
    // there. A toolchain need not come from rustup.
    let libraries = Command::new("rustc")
        .args(["--print", "target-libdir", "--target", MUSL])
        .output();
    let target = libraries.is_ok_and(|libraries| {
        let folder = String::from_utf8_lossy(&libraries.stdout).into_owned();
        libraries.status.success() && Path::new(folder.trim()).is_dir()
    });
    let compiler = Command::new("musl-gcc").arg("--version").output().is_ok();
    if !target || !compiler {
        eprintln!(
            "xtask: no static binary, which takes 'rustup target add {MUSL}' and musl-gcc (the \
             package musl-tools); the wheel needs the glibc that its name states"
        );
        return Some("target/release/locklab".to_owned());
    }
    let build = ["build", "--release", "--target", MUSL, "--package=locklab"];
    let command = format!("{DIST}/locklab-static");
    let copy = [&format!("target/{MUSL}/release/locklab"), &command];
    (cargo(&build) && run(Command::new("cp").args(copy))).then_some(command)
}

/// Builds the package in a clean chroot, installs it in a second one, and uses
/// it there; then the wheel in a virtual environment, the packaged crates, and the
/// commands of the README in a fresh clone.
pub(crate) fn test() -> bool {
    const CLEAN: &str = "target/dist-clean";
    let script = |name: &str| run(Command::new("sh").args([name, CLEAN]));
    script("packaging/build-package.sh")
        && script("packaging/test-package.sh")
        && script("packaging/test-wheel.sh")
        && script("packaging/test-crate.sh")
        && script("packaging/test-readme.sh")
}
