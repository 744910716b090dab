//! Builds the interposer and the recorder, so that their bytes are part of the command.
//!
//! Cargo gives a crate no shared library of another one, so they are built by a cargo of
//! their own, from the sources that the links in `sources` name: `cargo package` follows
//! links, and a packaged crate has all that is needed. It is offline: what these libraries
//! use from crates.io this crate names too, so that cargo has fetched it.
//!
//! Must never fail the build of the command: most of it needs no library. What kept one
//! from being built is said by a warning, and by the command when the library is asked for.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// A crate that the libraries are made of.
struct Part {
    /// Its folder in `sources`, and its name after `locklab-`.
    name: &'static str,
    /// The crates that it uses, as lines of a manifest.
    uses: &'static str,
    /// The rest of its manifest.
    rest: &'static str,
}

/// A library that a loader loads.
const LIBRARY: &str = "[lib]\ncrate-type = ['cdylib']\n";
/// Features of the locks, of which programs have the default.
const STD: &str = "[features]\ndefault = ['std']\nstd = []\n";

const PARTS: &[Part] = &[
    Part {
        name: "platform",
        uses: "lock_api = { version = '0.4', default-features = false }\nlibc = '0.2'",
        rest: STD,
    },
    Part {
        name: "locks",
        uses: "locklab-platform = { path = '../platform' }\n\
               lock_api = { version = '0.4', default-features = false }",
        rest: STD,
    },
    Part {
        name: "pthread-protocols",
        uses: "locklab-locks = { path = '../locks' }",
        rest: "",
    },
    Part {
        name: "profile",
        uses: "libc = '0.2'",
        rest: "",
    },
    Part {
        name: "trace",
        uses: "",
        rest: "",
    },
    Part {
        name: "preload",
        uses: "locklab-locks = { path = '../locks' }\n\
               locklab-profile = { path = '../profile' }\n\
               locklab-pthread-protocols = { path = '../pthread-protocols' }\n\
               libc = '0.2'\n[build-dependencies]\ncc = '1'",
        rest: LIBRARY,
    },
    Part {
        name: "recorder",
        uses: "locklab-profile = { path = '../profile' }\n\
               locklab-trace = { path = '../trace' }\nlibc = '0.2'",
        rest: LIBRARY,
    },
];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let variable = |name: &str| env::var(name).expect("cargo sets it");
    let (out, here) = (
        PathBuf::from(variable("OUT_DIR")),
        PathBuf::from(variable("CARGO_MANIFEST_DIR")),
    );
    let built = loader_target(&variable("TARGET")).and_then(|target| {
        let workspace = out.join("workspace");
        write(&workspace, &here).map_err(|e| format!("{}: {e}", workspace.display()))?;
        build(&workspace, &here, &out.join("target"), &target)
    });
    let constant = |name: &str, library: &str| match &built {
        Ok(folder) => {
            let path = folder.join(format!("liblocklab_{library}.so"));
            format!("const {name}: Embedded = Ok(include_bytes!({path:?}));\n")
        }
        Err(why) => format!("const {name}: Embedded = Err({why:?});\n"),
    };
    let text = constant("INTERPOSER", "preload") + &constant("RECORDER", "recorder");
    if let Err(why) = &built {
        println!("cargo::warning=run and record are not part of this command: {why}");
    }
    fs::write(out.join("embedded.rs"), text).expect("OUT_DIR can be written");
}

/// Returns the target whose loader takes the libraries: glibc's. A static command, which is
/// built for musl, runs beside programs of glibc's.
fn loader_target(target: &str) -> Result<String, String> {
    let glibc = target.replace("-musl", "-gnu");
    let wide = env::var("CARGO_CFG_TARGET_POINTER_WIDTH").is_ok_and(|width| width == "64");
    if wide && glibc.ends_with("-linux-gnu") {
        return Ok(glibc);
    }
    Err(format!(
        "they are for 64-bit Linux with glibc, and this is {target}"
    ))
}

/// Writes a workspace of the parts, whose sources stay where they are.
fn write(workspace: &Path, here: &Path) -> std::io::Result<()> {
    let members: Vec<_> = PARTS.iter().map(|part| part.name).collect();
    fs::create_dir_all(workspace)?;
    // As the workspace's own profile builds them.
    let root = format!(
        "[workspace]\nresolver = '3'\nmembers = {members:?}\n\n[profile.release]\nopt-level = \
         3\nstrip = 'debuginfo'\n"
    );
    refresh(&workspace.join("Cargo.toml"), &root)?;
    // The versions of this repository's lock file, if it is one.
    let lock = here.join("../../../Cargo.lock");
    if lock.is_file() {
        println!("cargo::rerun-if-changed={}", lock.display());
        fs::copy(&lock, workspace.join("Cargo.lock"))?;
    }
    for part in PARTS {
        let folder = workspace.join(part.name);
        fs::create_dir_all(&folder)?;
        for entry in fs::read_dir(here.join("sources").join(part.name))? {
            let entry = entry?;
            let source = entry.path().canonicalize()?;
            println!("cargo::rerun-if-changed={}", source.display());
            let link = folder.join(entry.file_name());
            let _ = fs::remove_file(&link);
            std::os::unix::fs::symlink(source, link)?;
        }
        let manifest = format!(
            "[package]\nname = 'locklab-{}'\nversion = '{}'\nedition = '2024'\n\n{}\n\
             [dependencies]\n{}\n\n[lints.rust]\nunexpected_cfgs = 'allow'\n",
            part.name,
            env!("CARGO_PKG_VERSION"),
            part.rest,
            part.uses,
        );
        refresh(&folder.join("Cargo.toml"), &manifest)?;
    }
    Ok(())
}

/// Writes a file unless it has this text already: cargo would build again.
fn refresh(path: &Path, text: &str) -> std::io::Result<()> {
    match fs::read_to_string(path) {
        Ok(present) if present == text => Ok(()),
        _ => fs::write(path, text),
    }
}

/// Builds both libraries; their folder, or the line that says why there are none.
fn build(workspace: &Path, here: &Path, folder: &Path, target: &str) -> Result<PathBuf, String> {
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or("cargo".into()));
    // What cargo says to this script, and what the user said of the command's own build
    // (its flags, its lints by clippy), is not meant for this build.
    for (name, _) in env::vars_os() {
        let name = name.to_string_lossy();
        let of_outer = [
            "CARGO_CFG_",
            "CARGO_FEATURE_",
            "CARGO_PKG_",
            "CARGO_MANIFEST_",
            "CARGO_PROFILE_",
            "CARGO_BUILD_",
            "CARGO_TARGET_",
            "CARGO_ENCODED_RUSTFLAGS",
            "CARGO_INCREMENTAL",
            "RUSTFLAGS",
            "RUSTC_WORKSPACE_WRAPPER",
        ];
        if of_outer.iter().any(|start| name.starts_with(start)) {
            cargo.env_remove(&*name);
        }
    }
    cargo
        .args(["build", "--release", "--offline", "--quiet"])
        .args(["--package=locklab-preload", "--package=locklab-recorder"])
        .args(["--target", target, "--manifest-path"])
        .arg(workspace.join("Cargo.toml"))
        .arg("--target-dir")
        .arg(folder)
        // Where a user's own settings for cargo are found.
        .current_dir(here);
    let output = cargo
        .output()
        .map_err(|e| format!("cargo does not start: {e}"))?;
    if output.status.success() {
        return Ok(folder.join(target).join("release"));
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let error = said.lines().find(|line| line.starts_with("error"));
    Err(error.unwrap_or("their build failed").to_owned())
}
