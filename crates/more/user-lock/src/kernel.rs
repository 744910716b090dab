//! Locks in a kernel's own source: which of its files contain one, where the
//! tree comes from, and the headers around them when they are compiled alone.
//!
//! The kernel's files are read on the user's machine and compiled unmodified,
//! except for the patches that the user names; none of them is in this project.
//! Their other includes come from a shim of this project, so a file that
//! needs more of the kernel does not compile, and the compiler names what is
//! missing.

use crate::compile::Unit;
use crate::folders;
use crate::source::KernelLock;
use locklab_host::error::Error;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// A lock that exists in a kernel's tree.
struct Known {
    lock: &'static str,
    /// The file that contains it.
    file: &'static str,
    /// The wrapper that gives it Locklab's interface.
    wrapper: &'static str,
}

const KNOWN: [Known; 3] = [
    Known {
        lock: "qspinlock",
        file: "kernel/locking/qspinlock.c",
        wrapper: include_str!("../c/kernel/qspinlock.c"),
    },
    Known {
        lock: "mcs",
        file: "kernel/locking/mcs_spinlock.h",
        wrapper: include_str!("../c/kernel/mcs.c"),
    },
    Known {
        lock: "ticket",
        file: "include/asm-generic/spinlock.h",
        wrapper: include_str!("../c/kernel/ticket.c"),
    },
];

/// Folders in which every file may be part of a lock.
const WHOLE: [&str; 1] = ["kernel/locking"];

/// Files elsewhere that are compiled unmodified.
const PARTS: [&str; 5] = [
    "include/asm-generic/qspinlock.h",
    "include/asm-generic/qspinlock_types.h",
    "include/asm-generic/mcs_spinlock.h",
    "include/asm-generic/spinlock.h",
    "include/asm-generic/spinlock_types.h",
];

const SHIM: &str = include_str!("../c/kernel/locklab_kernel.h");
const ASM_QSPINLOCK: &str = include_str!("../c/kernel/asm_qspinlock.h");

/// Headers of the kernel that the shim replaces.
const EMPTY: [&str; 24] = [
    "linux/atomic.h",
    "linux/bitops.h",
    "linux/bug.h",
    "linux/cache.h",
    "linux/compiler.h",
    "linux/cpumask.h",
    "linux/hardirq.h",
    "linux/kernel.h",
    "linux/lockdep.h",
    "linux/mutex.h",
    "linux/percpu.h",
    "linux/prefetch.h",
    "linux/preempt.h",
    "linux/smp.h",
    "linux/topology.h",
    "linux/types.h",
    "asm/atomic.h",
    "asm/barrier.h",
    "asm/byteorder.h",
    "asm/processor.h",
    "asm/qrwlock.h",
    "asm/qrwlock_types.h",
    "asm-generic/qrwlock_types.h",
    "trace/events/lock.h",
];

/// Sets how the checker maps a kernel's orderings, for a report.
pub(crate) const WITH_DEPENDENCIES: &str = "\
C11, with the address dependencies that the kernel relies on: a READ_ONCE of \
a pointer and an xchg_relaxed are taken for Acquires, and a read-modify-write \
that is a full barrier has one before and one behind it. C11 has no \
dependencies, and an Acquire orders more than one does, so a bug that only \
machines without such an order show (Arm) may be missed. --c11 takes the \
orderings as they are written. Plain accesses are not checked for data races. Neither is the kernel's own memory model.";

/// Holds the same assumption of any file.
pub(crate) const DEPENDENCIES_OF_A_FILE: &str = "\
C11, with address dependencies, on which these verdicts hang: a relaxed read of \
8 bytes and a relaxed exchange are taken for Acquires, and a read-modify-write \
that acquires and releases has a fence before and one behind it. C11 has no \
dependencies, and an Acquire orders more than one does, so a bug that only \
machines without such an order show (Arm) may be missed. Without --dependencies \
the orderings are taken as they are written.";

/// Holds the same without dependencies.
pub(crate) const STRICT: &str = "\
C11 as written, without the address dependencies that the kernel relies on: \
a promise that is broken here may be kept by every machine. Plain accesses \
are not checked for data races. Neither this nor \
the default is the kernel's own memory model.";

/// Returns the compilation unit of a kernel's lock, and the folder that contains it.
pub(crate) fn unit(kernel: &KernelLock, cflags: &[String]) -> Result<(Unit, TempDir), Error> {
    let name = kernel.name();
    let known = KNOWN
        .iter()
        .find(|known| known.lock == kernel.lock)
        .ok_or_else(|| {
            Error::Usage(format!(
                "{name}: the locks of a kernel that can be compiled alone are qspinlock, mcs and \
                 ticket"
            ))
        })?;
    let tree = match &kernel.tree {
        Some(tree) => tree.clone(),
        None => debian()?,
    };
    if !tree.join(known.file).is_file() {
        return Err(Error::Usage(format!(
            "{} has no {}; name the folder of a Linux source tree: kernel:{}=TREE",
            tree.display(),
            known.file,
            known.lock
        )));
    }
    let folder = folders::make("locklab-kernel-lock")
        .map_err(|e| Error::Failed(format!("cannot make a folder to compile in: {e}")))?;
    let copy = folder.path().join("tree");
    for part in WHOLE {
        let files = std::fs::read_dir(tree.join(part)).map_err(|e| unreadable(&tree, &e))?;
        for file in files.flatten() {
            let path = Path::new(part).join(file.file_name());
            if path.extension().is_some_and(|e| e == "c" || e == "h") {
                take(&tree, &copy, &path)?;
            }
        }
    }
    for part in PARTS {
        take(&tree, &copy, Path::new(part))?;
    }
    for patch in &kernel.patches {
        apply(&name, &tree, &copy, patch, known)?;
    }
    let shim = folder.path().join("shim");
    let put = |name: &str, text: &str| write(&shim.join(name), text.as_bytes());
    for name in EMPTY {
        put(name, "/* Its place is taken by locklab_kernel.h. */\n")?;
    }
    put("locklab_kernel.h", SHIM)?;
    put("asm/qspinlock.h", ASM_QSPINLOCK)?;
    put("asm/spinlock.h", "#include <asm/qspinlock.h>\n")?;
    put(
        "asm/mcs_spinlock.h",
        "#include <asm-generic/mcs_spinlock.h>\n",
    )?;
    let wrapper = folder.path().join(format!("kernel_{}.c", known.lock));
    write(&wrapper, known.wrapper.as_bytes())?;
    let mut flags = vec![
        "-std=gnu11".to_owned(),
        "-fno-strict-aliasing".to_owned(),
        format!("-I{}", shim.display()),
        format!("-I{}", copy.join("include").display()),
        format!(
            "-DLOCKLAB_KERNEL_FILE=\"{}\"",
            copy.join(known.file).display()
        ),
    ];
    flags.extend(cflags.iter().cloned());
    let unit = Unit {
        file: wrapper,
        name,
        flags,
    };
    Ok((unit, folder))
}

fn unreadable(tree: &Path, e: &dyn std::fmt::Display) -> Error {
    Error::Failed(format!("cannot read {}: {e}", tree.display()))
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    path.parent()
        .map_or(Ok(()), std::fs::create_dir_all)
        .and_then(|()| std::fs::write(path, bytes))
        .map_err(|e| Error::Failed(format!("cannot write {}: {e}", path.display())))
}

/// Copies a file of the tree, if it exists: kernel versions have different
/// files.
fn take(tree: &Path, copy: &Path, path: &Path) -> Result<(), Error> {
    match std::fs::read(tree.join(path)) {
        Ok(bytes) => write(&copy.join(path), &bytes),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(e) => Err(unreadable(&tree.join(path), &e)),
    }
}

/// Returns the files that a patch changes.
fn changed(patch: &str) -> Vec<PathBuf> {
    patch
        .lines()
        .filter_map(|line| line.strip_prefix("+++ "))
        .filter_map(|path| path.split(['\t', ' ']).next())
        .filter(|path| *path != "/dev/null")
        .filter_map(|path| path.split_once('/').map(|(_, path)| PathBuf::from(path)))
        .filter(|path| !path.components().any(|part| part.as_os_str() == ".."))
        .collect()
}

/// Applies a patch of the user's to the copy.
fn apply(name: &str, tree: &Path, copy: &Path, patch: &Path, known: &Known) -> Result<(), Error> {
    let shown = patch.display();
    let text = std::fs::read_to_string(patch)
        .map_err(|e| Error::Usage(format!("cannot read the patch {shown}: {e}")))?;
    let changed = changed(&text);
    let is_compiled = |path: &PathBuf| {
        WHOLE.iter().any(|folder| path.starts_with(folder))
            || PARTS.iter().any(|part| path == Path::new(part))
    };
    if !changed.iter().any(is_compiled) {
        return Err(Error::Usage(format!(
            "{name}: {shown} changes nothing that the lock is compiled from ({}, and what it \
             includes of kernel/locking and include/asm-generic)",
            known.file
        )));
    }
    for path in &changed {
        if !copy.join(path).exists() {
            take(tree, copy, path)?;
        }
    }
    let patch = std::path::absolute(patch).unwrap_or_else(|_| patch.to_owned());
    let output = Command::new("patch")
        .args(["--batch", "--forward", "-p1", "--input"])
        .arg(&patch)
        .arg("--directory")
        .arg(copy)
        .output()
        .map_err(|e| Error::Failed(format!("cannot start patch: {e} (apt-get install patch)")))?;
    if output.status.success() {
        return Ok(());
    }
    Err(Error::Usage(format!(
        "{}{shown} does not apply to {}",
        String::from_utf8_lossy(&output.stdout),
        tree.display()
    )))
}

/// Returns Debian's source package: the files of a lock, unpacked into the cache.
fn debian() -> Result<PathBuf, Error> {
    let archives = std::fs::read_dir("/usr/src").ok().into_iter().flatten();
    let mut archives: Vec<PathBuf> = archives
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with("linux-source-") && name.ends_with(".tar.xz")
        })
        .collect();
    archives.sort();
    let Some(archive) = archives.pop() else {
        return Err(Error::Failed(
            "there is no kernel source in /usr/src; install it (apt-get install linux-source) or \
             name a tree: kernel:qspinlock=TREE"
                .into(),
        ));
    };
    let facts = archive.metadata().map_err(|e| unreadable(&archive, &e))?;
    let cache = directories::ProjectDirs::from("", "", "locklab")
        .map(|folders| folders.cache_dir().join("own-lock"))
        .ok_or_else(|| {
            Error::Usage(
                "there is no home folder to keep kernel sources in; name a tree: \
                 kernel:qspinlock=TREE"
                    .into(),
            )
        })?;
    // A different archive of this name gets a different folder.
    let name = archive.file_name().unwrap_or_default().to_string_lossy();
    let folder = cache.join(format!(
        "{}-{}-{}",
        name.trim_end_matches(".tar.xz"),
        facts.len(),
        facts.mtime()
    ));
    if folder.is_dir() {
        return Ok(folder);
    }
    let cannot =
        |e: &dyn std::fmt::Display| Error::Failed(format!("cannot write {}: {e}", cache.display()));
    std::fs::create_dir_all(&cache).map_err(|e| cannot(&e))?;
    // It is renamed when complete, so that of two concurrent commands one wins.
    let fresh = tempfile::tempdir_in(&cache).map_err(|e| cannot(&e))?;
    let top = name.trim_end_matches(".tar.xz");
    let output = Command::new("tar")
        .args(["--extract", "--strip-components=1", "--file"])
        .arg(&archive)
        .arg("--directory")
        .arg(fresh.path())
        .args(["kernel/locking", "include/asm-generic"].map(|part| format!("{top}/{part}")))
        .output()
        .map_err(|e| {
            Error::Failed(format!(
                "cannot start tar: {e} (apt-get install tar xz-utils)"
            ))
        })?;
    if !output.status.success() {
        return Err(Error::Failed(format!(
            "cannot unpack {}: {}",
            archive.display(),
            String::from_utf8_lossy(&output.stderr)
                .lines()
                .next()
                .unwrap_or_default()
        )));
    }
    match std::fs::rename(fresh.path(), &folder) {
        Ok(()) => Ok(folder),
        Err(_) if folder.is_dir() => Ok(folder),
        Err(e) => Err(cannot(&e)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_of_a_patch_are_found() {
        let patch = "--- a/kernel/locking/qspinlock.c\t2022\n+++ b/kernel/locking/qspinlock.c\t2022\n\
                     @@ -1 +1 @@\n-a\n+b\n--- a/x\n+++ /dev/null\n+++ b/../../etc/passwd\n";
        assert_eq!(
            changed(patch),
            [PathBuf::from("kernel/locking/qspinlock.c")]
        );
    }

    #[test]
    fn a_lock_that_no_kernel_has_alone_is_refused() {
        let kernel = KernelLock {
            lock: "rwsem".into(),
            tree: None,
            patches: Vec::new(),
        };
        let error = unit(&kernel, &[]).err().unwrap().to_string();
        assert!(error.contains("qspinlock, mcs and ticket"), "{error}");
        let kernel = KernelLock {
            lock: "mcs".into(),
            tree: Some("/nowhere".into()),
            patches: Vec::new(),
        };
        let error = unit(&kernel, &[]).err().unwrap().to_string();
        assert!(
            error.contains("/nowhere has no kernel/locking/mcs_spinlock.h"),
            "{error}"
        );
    }
}
