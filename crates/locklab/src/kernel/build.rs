//! From a recipe to an image: configuration, make, and a cache by content.
//!
//! A build's name is a hash of its tree, options, make variables and compiler
//! version. One that was interrupted goes on where make stopped. Must never
//! build something else than was asked for: an option that Kconfig drops is
//! an error with its name.

use crate::error::Error;
use crate::kernel::recipe::Changes;
use crate::kernel::source::Tree;
use crate::kernel::tools::{Lab, Tool, find, first_line, key, stopped, words};
use crate::process::{Launch, Trouble};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

const WORKLOADS: &str = include_str!("../../kernel/workloads.config");
const LINKER: &str = include_str!("../../kernel/ld.locklab");

/// Steps of a build of the ready configuration, for the bar of the first.
const STEPS: u64 = 1700;

/// A kernel that was built.
#[derive(Clone, Debug)]
pub struct Build {
    /// Its folder: objects, logs, `.config`.
    pub folder: PathBuf,
    /// vmlinux in the order of the makefiles, with debug information.
    pub vmlinux: PathBuf,
    /// bzImage of the same.
    pub bzimage: PathBuf,
    /// The folder with the program that links it.
    pub linker: PathBuf,
    /// What decided it, in words.
    pub compiler: String,
    /// Kernel release.
    pub release: String,
    /// Time it took, in seconds; `None` where it came from the cache.
    pub seconds: Option<f64>,
}

/// Builds a recipe, or finds it in the cache.
///
/// # Errors
/// A tool is missing, an option is dropped, or the first error of the build.
pub fn build(lab: &Lab<'_>, recipe: &Changes, tree: &Tree, label: &str) -> Result<Build, Error> {
    let linker = linker(lab)?;
    let cc = match recipe.cc.as_deref() {
        Some("clang") => find("clang", "clang")?,
        _ => find("gcc", "gcc")?,
    };
    let compiler = first_line(&cc.path, "--version")?;
    let config = config(recipe)?;
    let mut variables = vec!["LD=ld.locklab".to_owned(), format!("CC={}", cc.name)];
    let mut flags = "-g1".to_owned();
    for (name, value) in &recipe.make {
        if name == "KCFLAGS" {
            flags = format!("{flags} {value}");
        } else {
            variables.push(format!("{name}={value}"));
        }
    }
    // Call sites of inlined copies are read from debug information, which
    // does not change the code.
    variables.push(format!("KCFLAGS={flags}"));
    let decided = format!("{variables:?} {compiler} {} 1", linker.version);
    let name = key([
        tree.key.as_bytes(),
        config.base.as_bytes(),
        config.text.as_bytes(),
        decided.as_bytes(),
    ]);
    let folder = lab.folder(&format!("builds/{name}"))?;
    let done = folder.join(".locklab-done");
    let mut build = Build {
        vmlinux: folder.join("locklab-vmlinux"),
        bzimage: folder.join("arch/x86/boot/bzImage"),
        linker: linker.folder.clone(),
        compiler,
        release: String::new(),
        seconds: None,
        folder,
    };
    if !done.is_file() {
        let make = make(&linker)?;
        let started = Instant::now();
        configure(lab, &make, tree, &build.folder, &config, &variables)?;
        compile(lab, &make, tree, &build.folder, &variables, label)?;
        // Out of the way of the links of other layouts.
        let linked = build.folder.join("vmlinux");
        std::fs::rename(&linked, &build.vmlinux)
            .and_then(|()| std::fs::write(&done, ""))
            .map_err(|e| lab.cannot_write(&done, &e))?;
        build.seconds = Some(started.elapsed().as_secs_f64());
    }
    let release = build.folder.join("include/config/kernel.release");
    build.release = std::fs::read_to_string(release)
        .unwrap_or_default()
        .trim()
        .to_owned();
    Ok(build)
}

struct Linker {
    folder: PathBuf,
    version: String,
}

/// Puts our link program into the cache, for the build's PATH.
fn linker(lab: &Lab<'_>) -> Result<Linker, Error> {
    use std::os::unix::fs::PermissionsExt;
    let lld = find("ld.lld", "lld")?;
    let folder = lab.folder("bin")?;
    let path = folder.join("ld.locklab");
    if std::fs::read_to_string(&path).ok().as_deref() != Some(LINKER) {
        std::fs::write(&path, LINKER)
            .and_then(|()| std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)))
            .map_err(|e| lab.cannot_write(&path, &e))?;
    }
    Ok(Linker {
        folder,
        version: first_line(&lld.path, "--version")?,
    })
}

/// make, with all that would differ from day to day fixed.
fn make(linker: &Linker) -> Result<Tool, Error> {
    for (program, package) in [
        ("flex", "flex"),
        ("bison", "bison"),
        ("bc", "bc"),
        ("nm", "binutils"),
    ] {
        find(program, package)?;
    }
    for (header, package) in [
        ("/usr/include/gelf.h", "libelf-dev"),
        ("/usr/include/openssl/opensslv.h", "libssl-dev"),
    ] {
        if !Path::new(header).is_file() {
            return Err(Error::Failed(format!(
                "{header} is missing; install it (apt-get install {package})"
            )));
        }
    }
    let mut make = find("make", "make")?;
    let mut path: OsString = linker.folder.clone().into();
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap_or_default());
    make.environment.push(("PATH".into(), path));
    for (name, value) in [
        ("KBUILD_BUILD_TIMESTAMP", "2020-01-01"),
        ("KBUILD_BUILD_USER", "locklab"),
        ("KBUILD_BUILD_HOST", "locklab"),
        ("KBUILD_BUILD_VERSION", "1"),
        ("LC_ALL", "C"),
        ("MAKEFLAGS", ""),
    ] {
        make.environment.push((name.into(), value.into()));
    }
    Ok(make)
}

struct Config {
    /// The make target it starts from.
    base: &'static str,
    /// Options, one a line.
    text: String,
}

fn config(recipe: &Changes) -> Result<Config, Error> {
    let (base, mut text) = match recipe.config.as_deref() {
        None | Some("workloads") => ("allnoconfig", WORKLOADS.to_owned()),
        // The reports' own, with what makes it a guest that can be measured.
        Some("defconfig") => (
            "defconfig",
            WORKLOADS
                .lines()
                .filter(|line| line.starts_with("CONFIG_"))
                .map(|line| format!("{line}\n"))
                .collect(),
        ),
        Some(path) => (
            "allnoconfig",
            std::fs::read_to_string(path)
                .map_err(|e| Error::Usage(format!("cannot read the configuration {path}: {e}")))?,
        ),
    };
    for option in &recipe.options {
        text.push_str(option);
        text.push('\n');
    }
    Ok(Config { base, text })
}

fn configure(
    lab: &Lab<'_>,
    make: &Tool,
    tree: &Tree,
    folder: &Path,
    config: &Config,
    variables: &[String],
) -> Result<(), Error> {
    let fragment = folder.join("locklab.config");
    std::fs::write(&fragment, &config.text).map_err(|e| lab.cannot_write(&fragment, &e))?;
    let run = |target: &str| {
        let mut make = make.clone();
        // Read by the targets that start from nothing.
        if target == "allnoconfig" {
            make.environment
                .push(("KCONFIG_ALLCONFIG".into(), fragment.clone().into()));
        }
        let mut arguments = in_folder(tree, folder, variables);
        arguments.push(target.into());
        let log = folder.join("locklab-config");
        let ended = lab.run(&make, &arguments, folder, &log, Duration::from_secs(900))?;
        match ended.failure() {
            None => Ok(()),
            Some(failure) => Err(build_error(lab, &log, "configuration", &failure)),
        }
    };
    run(config.base)?;
    let path = folder.join(".config");
    if config.base != "allnoconfig" {
        let before = std::fs::read_to_string(&path).unwrap_or_default();
        std::fs::write(&path, before + &config.text).map_err(|e| lab.cannot_write(&path, &e))?;
        run("olddefconfig")?;
    }
    let got = std::fs::read_to_string(&path)
        .map_err(|e| Error::Failed(format!("cannot read {}: {e}", path.display())))?;
    let dropped = dropped(&config.text, &got);
    if dropped.is_empty() {
        return Ok(());
    }
    Err(Error::Failed(format!(
        "the configuration drops {}; its dependencies are off, or this kernel does not have it \
         (see {})",
        dropped.join(", "),
        path.display()
    )))
}

/// Options that were asked for and that Kconfig did not keep. The last word
/// on an option counts.
fn dropped(asked: &str, got: &str) -> Vec<String> {
    let mut wanted: Vec<(&str, &str)> = Vec::new();
    for line in asked.lines() {
        let Some((name, value)) = line
            .split_once('=')
            .filter(|(n, _)| n.starts_with("CONFIG_"))
        else {
            continue;
        };
        wanted.retain(|(other, _)| *other != name);
        wanted.push((name, value));
    }
    let has = |name: &str| {
        got.lines()
            .find_map(|line| line.split_once('=').filter(|(n, _)| *n == name))
            .map_or("n", |(_, value)| value)
    };
    wanted
        .into_iter()
        .filter(|(name, value)| has(name) != *value)
        .map(|(name, value)| format!("{name}={value}"))
        .collect()
}

fn in_folder(tree: &Tree, folder: &Path, variables: &[String]) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = vec!["-C".into(), tree.path.clone().into()];
    let mut output = OsString::from("O=");
    output.push(folder);
    arguments.push(output);
    arguments.extend(variables.iter().map(OsString::from));
    arguments
}

fn compile(
    lab: &Lab<'_>,
    make: &Tool,
    tree: &Tree,
    folder: &Path,
    variables: &[String],
    label: &str,
) -> Result<(), Error> {
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    let mut arguments = in_folder(tree, folder, variables);
    arguments.push(format!("-j{jobs}").into());
    arguments.extend(words(&["vmlinux", "bzImage", "modules"]));
    let log = folder.join("locklab-build");
    lab.note(&format!(
        "building {label} with {jobs} jobs; log: {}",
        log.with_extension("out").display()
    ));
    let running = Launch {
        program: make.path.clone(),
        arguments,
        environment: make.environment.clone(),
        folder: folder.to_owned(),
        cpus: Vec::new(),
        fixed: false,
    }
    .start(&log)
    .map_err(|trouble| stopped("make", trouble))?;
    let bar = bar(lab.quiet, label);
    while !running.has_ended() {
        if lab.interrupt.load(Ordering::Relaxed) {
            return Err(stopped("make", Trouble::Interrupted));
        }
        bar.set_position(steps(&log));
        std::thread::sleep(Duration::from_millis(300));
    }
    bar.finish_and_clear();
    let ended = running
        .wait(Duration::from_secs(24 * 3600), lab.interrupt)
        .map_err(|trouble| stopped("make", trouble))?;
    match ended.failure() {
        None => Ok(()),
        Some(failure) => Err(build_error(lab, &log, "build", &failure)),
    }
}

fn steps(log: &Path) -> u64 {
    std::fs::read(log.with_extension("out")).map_or(0, |text| {
        text.iter().filter(|byte| **byte == b'\n').count() as u64
    })
}

fn bar(quiet: bool, label: &str) -> ProgressBar {
    let target = if quiet {
        ProgressDrawTarget::hidden()
    } else {
        ProgressDrawTarget::stderr()
    };
    let bar = ProgressBar::with_draw_target(Some(STEPS), target);
    if let Ok(style) = ProgressStyle::with_template("{msg} {wide_bar} {pos}/{len}, {eta} left") {
        bar.set_style(style);
    }
    bar.set_message(label.to_owned());
    bar
}

fn build_error(lab: &Lab<'_>, log: &Path, what: &str, failure: &str) -> Error {
    let read = |end: &str| std::fs::read_to_string(log.with_extension(end)).unwrap_or_default();
    let said = read("err") + &read("out");
    if said.contains("No space left on device") {
        return lab.full();
    }
    Error::Failed(format!(
        "the {what} failed: {}; log: {}",
        first_error(&said).unwrap_or(failure),
        log.with_extension("err").display()
    ))
}

/// The first line that is an error of a compiler or linker, else make's own.
fn first_error(said: &str) -> Option<&str> {
    let find = |needle: &str| said.lines().find(|line| line.contains(needle));
    find(": error:")
        .or_else(|| find("error: "))
        .or_else(|| find("fatal error"))
        .or_else(|| find("undefined reference"))
        .or_else(|| find("*** "))
        .map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_kconfig_drops_is_named() {
        let asked = "# x\nCONFIG_A=y\nCONFIG_B=y\nCONFIG_C=4\nCONFIG_D=n\nCONFIG_B=n\nCONFIG_E=y\n";
        let got = "CONFIG_A=y\n# CONFIG_B is not set\nCONFIG_C=8\n";
        assert_eq!(dropped(asked, got), ["CONFIG_C=4", "CONFIG_E=y"]);
    }

    #[test]
    fn the_first_error_is_the_compilers() {
        let said = "make[3]: *** [x.o] Error 1\n../kernel/fork.c:3:1: error: expected ';'\nmore\n";
        assert_eq!(
            first_error(said),
            Some("../kernel/fork.c:3:1: error: expected ';'")
        );
        assert_eq!(first_error("  CC x\n"), None);
    }

    #[test]
    fn the_ready_configuration_has_what_the_question_needs() {
        for option in [
            "PREEMPT=y",
            "PARAVIRT_SPINLOCKS=y",
            "PVH=y",
            "XFS_FS=y",
            "VIRTIO_CONSOLE=y",
        ] {
            assert!(
                WORKLOADS.contains(&format!("CONFIG_{option}\n")),
                "{option}"
            );
        }
    }
}
