//! The modules of the kernel's torture test of locks, for a kernel that is compared:
//! its own where it was configured with them, and otherwise built beside it, from its
//! own sources, so that the kernel stays as it was configured.
//!
//! It must never change the kernel or its objects.

use crate::build::{Build, linker, make};
use crate::cache::Cache;
use crate::place::build_error;
use locklab_host::error::Error;
use std::path::PathBuf;
use std::time::Duration;

/// The modules, each with its source in the kernel's tree.
const MODULES: [[&str; 2]; 2] = [
    ["kernel/torture.ko", "kernel/torture.c"],
    [
        "kernel/locking/locktorture.ko",
        "kernel/locking/locktorture.c",
    ],
];

/// Holds what makes them of copies of their sources. torture.c includes a header beside
/// itself.
const KBUILD: &str = "ccflags-y := -I$(srctree)/kernel\n\
                      obj-m := kernel/torture.o kernel/locking/locktorture.o\n";

/// Returns the folder in which both modules of a build are, by their paths in the tree.
///
/// # Errors
/// If the kernel takes no modules, a source of them cannot be read, or they do not
/// compile; also after Ctrl-C.
pub(crate) fn torture_modules(cache: &Cache<'_>, build: &Build) -> Result<PathBuf, Error> {
    let are_in = |folder: &PathBuf| MODULES.iter().all(|[name, _]| folder.join(name).is_file());
    if are_in(&build.objects) {
        return Ok(build.objects.clone());
    }
    let symbols = build.objects.join("Module.symvers");
    if !symbols.is_file() {
        return Err(Error::Failed(format!(
            "locktorture is a module, and this kernel takes none: there is no {}; add \
             CONFIG_MODULES=y to its configuration",
            symbols.display()
        )));
    }
    let folder = build.folder.join("torture");
    if are_in(&folder) {
        return Ok(folder);
    }
    for [_, source] in MODULES {
        let (from, to) = (build.place.source.join(source), folder.join(source));
        let parent = to.parent().unwrap_or(&folder);
        std::fs::create_dir_all(parent).map_err(|e| cache.cannot_write(parent, &e))?;
        std::fs::copy(&from, &to).map_err(|e| {
            Error::Failed(format!(
                "cannot copy {} into the cache: {e}",
                from.display()
            ))
        })?;
    }
    let kbuild = folder.join("Kbuild");
    std::fs::write(&kbuild, KBUILD).map_err(|e| cache.cannot_write(&kbuild, &e))?;
    let make = make(cache, &linker(cache)?)?;
    let mut arguments = build.place.arguments(&build.variables);
    let mut of = std::ffi::OsString::from("M=");
    of.push(&folder);
    arguments.extend([of, "modules".into()]);
    let log = build.folder.join("torture-modules");
    let limit = Duration::from_secs(900);
    let ended = cache.run(&make, &arguments, &build.objects, &log, limit)?;
    match ended.failure() {
        None if are_in(&folder) => Ok(folder),
        None => Err(build_error(
            cache,
            &log,
            "build of locktorture",
            "no module came out",
        )),
        Some(failure) => Err(build_error(cache, &log, "build of locktorture", &failure)),
    }
}
