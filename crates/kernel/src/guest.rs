//! The contents of a guest: Locklab's first program, the plan, the workload's
//! programs with their libraries, as one initramfs.
//!
//! The same inputs must give the same bytes, or counts do not repeat: files
//! are in the order of their names and carry neither times nor owners.

use crate::cache::{self, Cache, find, key, words};
use crate::workload::Load;
use locklab_host::error::Error;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

const INIT: &str = include_str!("../guest/init.c");
const NGINX: &str = include_str!("../guest/nginx.conf");
const MARKER: &str = include_str!("../include/locklab-marker.h");

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

/// The guest's first program, compiled if necessary.
///
/// # Errors
/// If there is no compiler, it cannot link statically, or the cache cannot be
/// written.
pub fn init_program(cache: &Cache<'_>) -> Result<PathBuf, Error> {
    let gcc = find("gcc", "gcc libc6-dev")?;
    let version = cache::first_line(&gcc.path, "--version")?;
    let name = key([INIT.as_bytes(), MARKER.as_bytes(), version.as_bytes()]);
    let folder = cache.folder(&format!("init/{name}"))?;
    let program = folder.join("init");
    if program.is_file() {
        return Ok(program);
    }
    // Compiled in a folder of its own, then renamed, so that two commands never
    // see a partial file of the other.
    let work = tempfile::Builder::new()
        .prefix("new-")
        .tempdir_in(&folder)
        .map_err(|e| cache.cannot_write(&folder, &e))?;
    for (file, text) in [("init.c", INIT), ("locklab-marker.h", MARKER)] {
        let path = work.path().join(file);
        std::fs::write(&path, text).map_err(|e| cache.cannot_write(&path, &e))?;
    }
    let arguments = words(&[
        "-static", "-O2", "-Wall", "-pthread", "-o", "init", "init.c",
    ]);
    let log = work.path().join("gcc");
    let limit = Duration::from_secs(300);
    let ended = cache.run(&gcc, &arguments, work.path(), &log, limit)?;
    if ended.failure().is_some() {
        let why = std::fs::read_to_string(log.with_extension("err")).unwrap_or_default();
        return Err(Error::Failed(format!(
            "the guest's first program does not compile: {}; is libc6-dev installed?",
            why.lines()
                .find(|l| l.contains("error") || l.contains("cannot"))
                .unwrap_or("no message")
        )));
    }
    std::fs::rename(work.path().join("init"), &program)
        .map_err(|e| cache.cannot_write(&program, &e))?;
    Ok(program)
}

/// Writes the initramfs of a workload to `path`. `modules` is the folder of
/// the kernel's modules (as `/lib/modules/VERSION`, or a build), if it has any.
///
/// # Errors
/// If a program or a module is missing (the message names the package), or a
/// file cannot be read or written.
pub fn write_initramfs(
    cache: &Cache<'_>,
    load: &Load,
    modules: Option<&Path>,
    path: &Path,
) -> Result<(), Error> {
    let mut files: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    let read = |path: &Path| {
        std::fs::read(path)
            .map_err(|e| Error::Failed(format!("cannot read {}: {e}", path.display())))
    };
    files.insert("init".into(), read(&init_program(cache)?)?);
    files.insert("lab/plan".into(), load.plan().into_bytes());
    files.insert("lab/nginx.conf".into(), NGINX.into());
    // User names, because nginx looks up its own.
    files.insert("etc/passwd".into(), b"root:x:0:0::/:/bin/false\n".to_vec());
    files.insert("etc/group".into(), b"root:x:0:\n".to_vec());
    let mut list = String::new();
    if let Some(folder) = modules {
        for module in PORT_MODULES {
            if let Some((name, bytes)) = read_module(folder, module)? {
                list.push_str(&format!("/lab/{name}\n"));
                files.insert(format!("lab/{name}"), bytes);
            }
        }
    }
    files.insert("lab/modules".into(), list.into_bytes());
    for module in load.workload.modules() {
        let found = modules.map_or(Ok(None), |folder| read_module(folder, module))?;
        let Some((name, bytes)) = found else {
            return Err(Error::Failed(format!(
                "{} needs the module {module}, and this kernel was built without it",
                load.workload.name()
            )));
        };
        files.insert(format!("lab/{name}"), bytes);
    }
    for (program, package) in load.workload.programs() {
        let program = Path::new(program);
        if !program.is_file() {
            return Err(Error::Failed(format!(
                "{} is missing; install it (apt-get install {package})",
                program.display()
            )));
        }
        for file in with_libraries(program)? {
            files.insert(
                file.trim_start_matches('/').to_owned(),
                read(Path::new(&file))?,
            );
        }
    }
    pack(files, path).map_err(|e| cache.cannot_write(path, &e))
}

/// A module of the folder by its path, or by its name in a build's tree.
fn read_module(folder: &Path, module: &str) -> Result<Option<(String, Vec<u8>)>, Error> {
    let name = module.rsplit('/').next().unwrap_or(module);
    let path = [
        folder.join(module),
        folder.join(module.trim_start_matches("kernel/")),
    ]
    .into_iter()
    .find(|path| path.is_file());
    let Some(path) = path else { return Ok(None) };
    let bytes = std::fs::read(&path)
        .map_err(|e| Error::Failed(format!("cannot read {}: {e}", path.display())))?;
    Ok(Some((name.to_owned(), bytes)))
}

/// A program and the libraries that it needs, by the loader.
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

/// The files in `ldd`'s output, or the name of one that is missing.
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
                .map(|_| scope.spawn(|| init_program(&cache).unwrap()))
                .collect();
            for one in all {
                assert!(one.join().unwrap().is_file());
            }
        });
        let init = std::fs::read_dir(folder.path().join("init")).unwrap();
        let name = init.flatten().next().unwrap().path();
        // The program, and no partial file.
        assert_eq!(std::fs::read_dir(name).unwrap().count(), 1);
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
