//! Builds an image from a recipe, by make and with a cache by content.
//!
//! A build's name is a hash of its tree, options, make variables and compiler
//! version. An interrupted build continues where make stopped. It must never
//! treat a build that did not end as complete.

use crate::cache::{Cache, Tool, find, first_line, key, stopped, words};
use crate::changes::Changes;
use crate::config::{config, configure};
use crate::drivers;
use crate::place::{Place, build_error};
use crate::source::Tree;
use locklab_harness::progress::Progress;
use locklab_host::error::Error;
use locklab_host::process::{Launch, Trouble};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Says where make puts the image, among the objects.
pub(crate) const BZIMAGE: &str = "arch/x86/boot/bzImage";

const LINKER: &str = include_str!("../guest/ld.locklab");

/// Steps of a build of the ready configuration, for the progress bar of the
/// first build.
const STEPS: u64 = 1700;

/// A finished build of a kernel.
#[derive(Clone, Debug)]
pub struct Build {
    /// Its folder in the cache, for logs and layouts.
    pub folder: PathBuf,
    /// The output of make: objects, modules, `.config`.
    pub objects: PathBuf,
    /// vmlinux in the order of the makefiles, with debug information.
    pub vmlinux: PathBuf,
    /// bzImage of the same build.
    pub bzimage: PathBuf,
    /// The compiler, as text.
    pub compiler: String,
    /// Holds what `uname -r` prints in a guest of it.
    pub release: String,
    /// Time of the build, in seconds; `None` where it came from the cache.
    pub seconds: Option<f64>,
    /// Says where make found the sources, and the variables that it was given.
    pub(crate) place: Place,
    pub(crate) variables: Vec<String>,
}

/// Builds a recipe, or finds it in the cache. Paths in the recipe are relative
/// to `folder`.
///
/// # Errors
/// If a tool is missing (the message names its package), the source or a change
/// cannot be made, Kconfig drops an option, or the build fails (the message has
/// its first error); also after Ctrl-C.
pub fn build(
    cache: &Cache<'_>,
    recipe: &Changes,
    tree: &Tree,
    folder: &Path,
    label: &str,
) -> Result<Build, Error> {
    let linker = linker(cache)?;
    let cc = match recipe.cc.as_deref() {
        Some("clang") => find("clang", "clang")?,
        _ => find("gcc", "gcc")?,
    };
    let compiler = first_line(&cc.path, "--version")?;
    let config = config(recipe, folder)?;
    // Debug information at this level does not change the code; call sites of
    // inlined copies are read from it.
    let mut flags = "-g1".to_owned();
    let mut variables = vec!["LD=ld.locklab".to_owned()];
    for (name, value) in &recipe.make {
        if name == "KCFLAGS" {
            flags = format!("{flags} {value}");
        } else {
            variables.push(format!("{name}={value}"));
        }
    }
    variables.push(format!("KCFLAGS={flags}"));
    let decided = format!("{variables:?} {} {compiler} {} 2", cc.name, linker.version);
    let name = key([
        tree.key.as_bytes(),
        config.base.as_bytes(),
        config.text.as_bytes(),
        config.machine().as_bytes(),
        decided.as_bytes(),
    ]);
    // If two commands want the same kernel, one builds and the other waits;
    // the lock is taken before the sources are linked, because both would do
    // that.
    let _held = cache.hold(
        &cache.folder(&format!("builds/{name}"))?,
        "builds this kernel",
    )?;
    let place = Place::new(cache, &name, tree)?;
    let done = place.folder.join("done");
    let loaded = config.machine.as_ref().map_or("", |[_, modules]| modules);
    let has_drivers = || {
        let (source, objects) = (&place.source, &place.objects);
        drivers::built_in(cache, source, objects, &config.drivers, loaded)
    };
    let ccache = locklab_host::process::find("ccache", &[]).is_some();
    variables.push(format!(
        "CC={}{}",
        if ccache { "ccache " } else { "" },
        cc.name
    ));
    let mut build = Build {
        vmlinux: place.folder.join("vmlinux"),
        bzimage: place.folder.join("bzImage"),
        compiler,
        release: String::new(),
        seconds: None,
        folder: place.folder.clone(),
        objects: place.objects.clone(),
        place: place.clone(),
        variables: variables.clone(),
    };
    if !done.is_file() {
        let make = make(cache, &linker)?;
        let started = Instant::now();
        configure(cache, &make, &place, &config, &variables)?;
        has_drivers()?;
        compile(cache, &make, &place, &variables, label)?;
        // Moved away, so that links of other layouts do not overwrite it.
        let linked = place.objects.join("vmlinux");
        let seconds = started.elapsed().as_secs_f64();
        std::fs::rename(&linked, &build.vmlinux)
            .and_then(|()| std::fs::write(&done, format!("{seconds:.0}\n")))
            .map_err(|e| cache.cannot_write(&done, &e))?;
        build.seconds = Some(seconds);
    } else {
        // The machine may have another card than when it was built.
        has_drivers()?;
    }
    // It lies beside vmlinux, for the same reason.
    if !build.bzimage.is_file() {
        std::fs::copy(build.objects.join(BZIMAGE), &build.bzimage)
            .map_err(|e| cache.cannot_write(&build.bzimage, &e))?;
    }
    let release = build.objects.join("include/config/kernel.release");
    build.release = std::fs::read_to_string(release)
        .unwrap_or_default()
        .trim()
        .to_owned();
    Ok(build)
}

pub(crate) struct Linker {
    folder: PathBuf,
    version: String,
}

/// Puts Locklab's link program into the cache, for the build's PATH.
pub(crate) fn linker(cache: &Cache<'_>) -> Result<Linker, Error> {
    use std::os::unix::fs::PermissionsExt;
    let lld = find("ld.lld", "lld")?;
    let folder = cache.folder("bin")?;
    let path = folder.join("ld.locklab");
    if std::fs::read_to_string(&path).ok().as_deref() != Some(LINKER) {
        std::fs::write(&path, LINKER)
            .and_then(|()| std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)))
            .map_err(|e| cache.cannot_write(&path, &e))?;
    }
    Ok(Linker {
        folder,
        version: first_line(&lld.path, "--version")?,
    })
}

/// Returns make, with everything fixed that differs from day to day.
pub(crate) fn make(cache: &Cache<'_>, linker: &Linker) -> Result<Tool, Error> {
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
        // Used where ccache is installed; see `Place` for why it may leave the
        // folder out of what it compares.
        ("CCACHE_NOHASHDIR", "1"),
        ("CCACHE_DEPEND", "1"),
        ("CCACHE_MAXSIZE", "5G"),
    ] {
        make.environment.push((name.into(), value.into()));
    }
    make.environment
        .push(("CCACHE_DIR".into(), cache.folder("ccache")?.into()));
    Ok(make)
}

fn compile(
    cache: &Cache<'_>,
    make: &Tool,
    place: &Place,
    variables: &[String],
    label: &str,
) -> Result<(), Error> {
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    let mut arguments = place.arguments(variables);
    arguments.push(format!("-j{jobs}").into());
    arguments.extend(words(&["vmlinux", "bzImage", "modules"]));
    let log = place.folder.join("build");
    cache.note(&format!(
        "building {label} with {jobs} jobs; log: {}",
        log.with_extension("out").display()
    ));
    let running = Launch {
        program: make.path.clone(),
        arguments,
        environment: make.environment.clone(),
        folder: place.objects.clone(),
        cpus: Vec::new(),
        fixed: false,
    }
    .start(&log)
    .map_err(|trouble| stopped("make", trouble))?;
    let progress = Progress::new(STEPS, "steps", cache.quiet);
    while !running.has_ended() {
        if cache.interrupt.load(Ordering::Relaxed) {
            return Err(stopped("make", Trouble::Interrupted));
        }
        progress.set(steps(&log), STEPS, label);
        std::thread::sleep(Duration::from_millis(300));
    }
    drop(progress);
    let ended = running
        .wait(Duration::from_secs(24 * 3600), cache.interrupt)
        .map_err(|trouble| stopped("make", trouble))?;
    match ended.failure() {
        None => Ok(()),
        Some(failure) => Err(build_error(cache, &log, "build", &failure)),
    }
}

fn steps(log: &Path) -> u64 {
    std::fs::read(log.with_extension("out")).map_or(0, |text| {
        text.iter().filter(|byte| **byte == b'\n').count() as u64
    })
}
