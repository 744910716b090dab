//! The contents of a measured kernel's file system: Locklab's first program, the
//! workload's programs with their libraries, modules, as one initramfs.
//!
//! The same inputs must give the same bytes, or counts do not repeat: files
//! are in the order of their names and carry neither times nor owners.

use crate::cache::{self, Cache, find, key, words};
use crate::kernel_build;
use crate::making::Kernel;
use crate::module_file;
use crate::workload::{Load, Workload};
use locklab_host::error::Error;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

const NGINX: &str = include_str!("../guest/nginx.conf");

/// The sources of every first program: the workloads, and what they include.
const WORKLOADS: [Source; 13] = [
    ("workloads.c", include_str!("../guest/workloads.c")),
    ("calls.c", include_str!("../guest/calls.c")),
    ("programs.c", include_str!("../guest/programs.c")),
    ("kernel_locks.c", include_str!("../guest/kernel_locks.c")),
    ("plan.h", include_str!("../guest/plan.h")),
    ("workloads.h", include_str!("../guest/workloads.h")),
    ("counters.c", include_str!("../guest/counters.c")),
    ("counters.h", include_str!("../guest/counters.h")),
    ("disk.c", include_str!("../guest/disk.c")),
    ("disk.h", include_str!("../guest/disk.h")),
    ("locks.c", include_str!("../guest/locks.c")),
    ("locks.h", include_str!("../guest/locks.h")),
    (
        "locklab-marker.h",
        include_str!("../include/locklab-marker.h"),
    ),
];
const INIT: [Source; 1] = [("init.c", include_str!("../guest/init.c"))];
const TEST_MACHINE: [Source; 3] = [
    ("test_machine.c", include_str!("../guest/test_machine.c")),
    (
        "test_machine_first.c",
        include_str!("../guest/test_machine_first.c"),
    ),
    ("test_machine.h", include_str!("../guest/test_machine.h")),
];

/// A source of a first program: its name and its text.
type Source = (&'static str, &'static str);

/// A first program of a measured kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FirstProgram {
    /// Runs the plan in a guest of QEMU and turns the machine off.
    Guest,
    /// Brings up the network of a test machine and does what ssh asks for.
    TestMachine,
}

impl FirstProgram {
    fn sources(self) -> impl Iterator<Item = &'static Source> {
        let own: &[Source] = match self {
            Self::Guest => &INIT,
            Self::TestMachine => &TEST_MACHINE,
        };
        own.iter().chain(&WORKLOADS)
    }

    fn name(self) -> &'static str {
        match self {
            Self::Guest => "init",
            Self::TestMachine => "test_machine",
        }
    }
}

/// Modules behind the virtio-serial port, where the kernel has them as
/// modules: each after those it needs.
const PORT_MODULES: &[&str] = &[
    "kernel/drivers/virtio/virtio_ring.ko",
    "kernel/drivers/virtio/virtio.ko",
    "kernel/drivers/virtio/virtio_pci_legacy_dev.ko",
    "kernel/drivers/virtio/virtio_pci_modern_dev.ko",
    "kernel/drivers/virtio/virtio_pci.ko",
    "kernel/drivers/char/virtio_console.ko",
];

const FOLDER: u32 = 0o040_755;
const FILE: u32 = 0o100_755;

/// Returns a first program, compiled if necessary.
///
/// # Errors
/// If there is no compiler, it cannot link statically, or the cache cannot be
/// written.
pub fn first_program(cache: &Cache<'_>, first: FirstProgram) -> Result<PathBuf, Error> {
    let gcc = find("gcc", "gcc libc6-dev")?;
    let version = cache::first_line(&gcc.path, "--version")?;
    let texts = first.sources().map(|(_, text)| text.as_bytes());
    let name = key(texts.chain([version.as_bytes()]));
    let folder = cache.folder(&format!("{}/{name}", first.name()))?;
    let program = folder.join(first.name());
    if program.is_file() {
        return Ok(program);
    }
    // Compiled in a folder of its own, then renamed, so that two commands never
    // see a partial file of the other.
    let work = tempfile::Builder::new()
        .prefix("new-")
        .tempdir_in(&folder)
        .map_err(|e| cache.cannot_write(&folder, &e))?;
    let mut arguments = words(&["-static", "-O2", "-Wall", "-pthread", "-o", first.name()]);
    for (file, text) in first.sources() {
        let path = work.path().join(file);
        std::fs::write(&path, text).map_err(|e| cache.cannot_write(&path, &e))?;
        if file.ends_with(".c") {
            arguments.push(file.into());
        }
    }
    let log = work.path().join("gcc");
    let limit = Duration::from_secs(300);
    let ended = cache.run(&gcc, &arguments, work.path(), &log, limit)?;
    if ended.failure().is_some() {
        let why = std::fs::read_to_string(log.with_extension("err")).unwrap_or_default();
        return Err(Error::Failed(format!(
            "the first program of a measured kernel does not compile: {}; is libc6-dev installed?",
            why.lines()
                .find(|l| l.contains("error") || l.contains("cannot"))
                .unwrap_or("no message")
        )));
    }
    std::fs::rename(work.path().join(first.name()), &program)
        .map_err(|e| cache.cannot_write(&program, &e))?;
    Ok(program)
}

/// Writes the initramfs of a guest of QEMU to `path`.
///
/// # Errors
/// If a program or a module is missing (the message names the package), or a
/// file cannot be read or written.
pub fn write_initramfs(
    cache: &Cache<'_>,
    load: &Load,
    kernel: &Kernel,
    path: &Path,
) -> Result<(), Error> {
    let mut files = Contents::default();
    files.add("init", read(&first_program(cache, FirstProgram::Guest)?)?);
    files.add("lab/plan", load.plan().into_bytes());
    // User names, because nginx looks up its own.
    files.add("etc/passwd", "root:x:0:0::/:/bin/false\n");
    files.add_modules(kernel.modules.as_deref(), PORT_MODULES)?;
    files.add_workload(load, kernel)?;
    files.pack(path).map_err(|e| cache.cannot_write(path, &e))
}

/// The files of an initramfs, by their names.
#[derive(Debug, Default)]
pub struct Contents(BTreeMap<String, Vec<u8>>);

impl Contents {
    /// Adds a file, or replaces it.
    pub fn add(&mut self, name: &str, bytes: impl Into<Vec<u8>>) {
        self.0.insert(name.into(), bytes.into());
    }

    /// Adds a program and the libraries that it needs.
    ///
    /// # Errors
    /// If it is missing, with the Debian package that has it, or a file cannot
    /// be read.
    pub fn add_program(&mut self, program: &str, package: &str) -> Result<(), Error> {
        let path = Path::new(program);
        if !path.is_file() {
            return Err(Error::Failed(format!(
                "{program} is missing; install it (apt-get install {package})"
            )));
        }
        for file in with_libraries(path)? {
            self.add(file.trim_start_matches('/'), read(Path::new(&file))?);
        }
        Ok(())
    }

    /// Adds what a workload needs, but for its plan.
    ///
    /// # Errors
    /// If a program or a module is missing, or a file cannot be read.
    pub fn add_workload(&mut self, load: &Load, kernel: &Kernel) -> Result<(), Error> {
        let modules = kernel.modules.as_deref();
        self.add("lab/nginx.conf", NGINX);
        self.add("etc/group", "root:x:0:\n");
        for module in load.workload.modules() {
            let found = modules.map_or(Ok(None), |folder| read_module(folder, module))?;
            let Some((name, bytes)) = found else {
                return Err(Error::Failed(format!(
                    "{} needs the module {module}, and this kernel was built without it",
                    load.workload.name()
                )));
            };
            self.add(&format!("lab/{name}"), bytes);
        }
        for (program, package) in load.workload.programs() {
            self.add_program(program, package)?;
        }
        if load.workload == Workload::KernelBuild {
            let needed = kernel_build::needed(load, kernel.source.as_deref())?;
            self.0.extend(needed.files);
            for program in needed.programs {
                self.add_program(&program.display().to_string(), "gcc")?;
            }
        }
        Ok(())
    }

    /// Adds those of these modules that the kernel has as modules, to be loaded
    /// in this order before anything else.
    ///
    /// # Errors
    /// If a module cannot be read.
    pub fn add_modules(&mut self, folder: Option<&Path>, modules: &[&str]) -> Result<(), Error> {
        let mut list = String::new();
        for module in modules {
            let found = folder.map_or(Ok(None), |folder| read_module(folder, module))?;
            if let Some((name, bytes)) = found {
                list.push_str(&format!("/lab/{name}\n"));
                self.add(&format!("lab/{name}"), bytes);
            }
        }
        self.add("lab/modules", list);
        Ok(())
    }

    /// Writes the files as one archive.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn pack(self, path: &Path) -> std::io::Result<()> {
        pack(self.0, path)
    }
}

/// Returns the bytes of a file.
///
/// # Errors
/// [`Error::Failed`] with its name, if it cannot be read.
pub fn read(path: &Path) -> Result<Vec<u8>, Error> {
    std::fs::read(path).map_err(|e| Error::Failed(format!("cannot read {}: {e}", path.display())))
}

/// Returns a module of the folder by its path, or by its name in a build's tree.
fn read_module(folder: &Path, module: &str) -> Result<Option<(String, Vec<u8>)>, Error> {
    let name = module.rsplit('/').next().unwrap_or(module);
    let path = [
        folder.join(module),
        folder.join(module.trim_start_matches("kernel/")),
    ]
    .into_iter()
    .find_map(|path| module_file::existing(&path));
    let Some(path) = path else { return Ok(None) };
    Ok(Some((name.to_owned(), module_file::contents(&path)?)))
}

/// Returns a program and the libraries that it needs, by the loader.
fn with_libraries(program: &Path) -> Result<Vec<String>, Error> {
    let output = std::process::Command::new("ldd")
        .arg(program)
        .env("LC_ALL", "C")
        .output()
        .map_err(|e| Error::Failed(format!("cannot start ldd: {e}")))?;
    let mut files = vec![program.display().to_string()];
    files.extend(
        libraries(&String::from_utf8_lossy(&output.stdout)).map_err(|missing| {
            Error::Failed(format!(
                "{} needs the library {missing}, which is missing; install its package again",
                program.display()
            ))
        })?,
    );
    Ok(files)
}

/// Returns the files in `ldd`'s output, or the name of one that is missing.
fn libraries(ldd: &str) -> Result<Vec<String>, String> {
    let mut files = Vec::new();
    for line in ldd.lines() {
        if let Some((name, _)) = line.split_once(" => not found") {
            return Err(name.trim().into());
        }
        let path = line.split_once(" => ").map_or(line, |(_, path)| path);
        let path = path.split(" (").next().unwrap_or_default().trim();
        if path.starts_with('/') {
            files.push(path.to_owned());
        }
    }
    Ok(files)
}

fn pack(files: BTreeMap<String, Vec<u8>>, path: &Path) -> std::io::Result<()> {
    use cpio::newc::{Builder, trailer};
    use std::io::Write;
    let mut folders: Vec<String> = ["dev", "proc", "sys", "tmp", "run", "mnt", "root"]
        .map(String::from)
        .into();
    for name in files.keys() {
        let mut at = 0;
        while let Some(slash) = name[at..].find('/') {
            at += slash;
            folders.push(name[..at].into());
            at += 1;
        }
    }
    folders.sort();
    folders.dedup();
    let mut out = std::io::BufWriter::new(std::fs::File::create(path)?);
    let mut inode = 1;
    let mut entry = |name: &str, mode: u32, bytes: &[u8], out: &mut dyn Write| {
        let builder = Builder::new(name).ino(inode).mode(mode).nlink(1);
        inode += 1;
        let mut writer = builder.write(out, bytes.len() as u32);
        writer.write_all(bytes)?;
        writer.finish().map(|_| ())
    };
    for folder in folders {
        entry(&folder, FOLDER, &[], &mut out)?;
    }
    for (name, bytes) in files {
        entry(&name, FILE, &bytes, &mut out)?;
    }
    trailer(&mut out)?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ldd_is_read() {
        let text = "\tlinux-vdso.so.1 (0x1)\n\tlibc.so.6 => /lib/libc.so.6 (0x2)\n\
                    \t/lib64/ld-linux-x86-64.so.2 (0x3)\n";
        assert_eq!(
            libraries(text).unwrap(),
            ["/lib/libc.so.6", "/lib64/ld-linux-x86-64.so.2"]
        );
        assert_eq!(
            libraries("\tlibx.so => not found\n").unwrap_err(),
            "libx.so"
        );
    }

    #[test]
    fn commands_that_start_at_once_all_get_the_first_program() {
        if find("gcc", "gcc").is_err() {
            println!("skipped: gcc is missing");
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let interrupt = std::sync::atomic::AtomicBool::new(false);
        let cache = Cache {
            root: folder.path().into(),
            interrupt: &interrupt,
            quiet: true,
        };
        std::thread::scope(|scope| {
            let all: Vec<_> = (0..4)
                .map(|_| scope.spawn(|| first_program(&cache, FirstProgram::Guest).unwrap()))
                .collect();
            for one in all {
                assert!(one.join().unwrap().is_file());
            }
        });
        assert!(
            first_program(&cache, FirstProgram::TestMachine)
                .unwrap()
                .is_file()
        );
        for first in ["init", "test_machine"] {
            let folders = std::fs::read_dir(folder.path().join(first)).unwrap();
            let name = folders.flatten().next().unwrap().path();
            // The program is there, and no partial file.
            assert_eq!(std::fs::read_dir(name).unwrap().count(), 1);
        }
    }

    #[test]
    fn an_initramfs_is_the_same_bytes_each_time() {
        let folder = tempfile::tempdir().unwrap();
        let files: BTreeMap<String, Vec<u8>> = [("init", b"1".as_slice()), ("usr/bin/x", b"22")]
            .map(|(name, bytes)| (name.to_owned(), bytes.to_vec()))
            .into();
        let [one, two] = ["1", "2"].map(|name| folder.path().join(name));
        pack(files.clone(), &one).unwrap();
        pack(files, &two).unwrap();
        let bytes = std::fs::read(&one).unwrap();
        assert_eq!(bytes, std::fs::read(&two).unwrap());
        let at = |name: &[u8]| bytes.windows(name.len()).position(|w| w == name).unwrap();
        // A folder before what is in it.
        assert!(at(b"usr/bin\0") < at(b"usr/bin/x\0"));
    }
}
