//! Links the same kernel in other orders.
//!
//! The placement of code decides which lines share a set of the cache, and that
//! effect of chance is often larger than the effect under study. So a build is
//! linked several times, with its text sections (one per object file) in an
//! order that a seed decides: `ld.lld --shuffle-sections`. The code of each
//! object, and the order in which initcalls run, stay the same. Baseline and
//! experiment are paired by the seed.
//!
//! It must never reorder anything but text, with one exception that is lld's:
//! with a shuffle it does not sort the table of exported symbols, as the
//! kernel's script requires, and a loaded module does not find most of them.
//! What loads modules boots the image as it was built.

use crate::build::{BZIMAGE, Build};
use crate::cache::{Cache, find};
use locklab_host::error::Error;
use locklab_host::process::Launch;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The form in which an image is booted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// The image as it was linked, with a PVH entry: QEMU boots it itself.
    Vmlinux,
    /// Compressed, with the header that a boot loader and kexec need.
    BzImage,
}

/// Returns the image of a build in the order of a seed; linked if the cache does not
/// have it.
///
/// # Errors
/// If the link fails, the kernel's makefiles are not known, or the disk is
/// full; also after Ctrl-C.
pub fn layout(cache: &Cache<'_>, build: &Build, seed: u64, form: Form) -> Result<PathBuf, Error> {
    let path = path(build, seed, form);
    if path.is_file() {
        return Ok(path);
    }
    let folder = build.folder.join("layouts");
    std::fs::create_dir_all(&folder).map_err(|e| cache.cannot_write(&folder, &e))?;
    // Every link writes the same files among the objects.
    let _held = cache.hold(&build.folder, "links this kernel")?;
    if path.is_file() {
        return Ok(path);
    }
    let command = link_command(&build.objects)?;
    let mut environment = environment(&build.objects)?;
    let linking = [(OsString::from("LOCKLAB_LAYOUT"), options(seed).into())];
    let log = folder.join(format!("{seed}"));
    let linked_by = [environment.as_slice(), &linking].concat();
    shell(cache, build, &command, linked_by, &log, seed)?;
    let linked = build.objects.join("vmlinux");
    let image = match form {
        Form::Vmlinux => linked,
        Form::BzImage => {
            // As make does it after a link, with the variables of that make.
            environment.push(("LOCKLAB_IMAGE".into(), BZIMAGE.into()));
            shell(cache, build, COMPRESS, environment, &log, seed)?;
            build.objects.join(BZIMAGE)
        }
    };
    std::fs::rename(&image, &path).map_err(|e| cache.cannot_write(&path, &e))?;
    Ok(path)
}

const COMPRESS: &str =
    r#"make -f "$srctree/scripts/Makefile.build" obj=arch/x86/boot "$LOCKLAB_IMAGE""#;

/// Runs a command of the kernel's makefiles among the objects.
fn shell(
    cache: &Cache<'_>,
    build: &Build,
    command: &str,
    environment: Vec<(OsString, OsString)>,
    log: &Path,
    seed: u64,
) -> Result<(), Error> {
    let ended = Launch {
        program: find("sh", "dash")?.path,
        arguments: vec!["-c".into(), format!("set -e; {command}").into()],
        environment,
        folder: build.objects.clone(),
        cpus: Vec::new(),
        fixed: false,
    }
    .run(log, Duration::from_secs(1800), cache.interrupt)
    .map_err(|trouble| crate::cache::stopped("the linker", trouble))?;
    let Some(failure) = ended.failure() else {
        return Ok(());
    };
    let stderr = std::fs::read_to_string(log.with_extension("err")).unwrap_or_default();
    if stderr.contains("No space left") {
        return Err(cache.full());
    }
    Err(Error::Failed(format!(
        "linking layout {seed} failed: {}; log: {}",
        stderr
            .lines()
            .find(|line| line.contains("error"))
            .unwrap_or(&failure),
        log.with_extension("err").display()
    )))
}

/// Returns where the image of a build in the order of a seed is kept.
pub(crate) fn path(build: &Build, seed: u64, form: Form) -> PathBuf {
    let end = match form {
        Form::Vmlinux => "vmlinux",
        Form::BzImage => "bzImage",
    };
    build.folder.join(format!("layouts/{seed}.{end}"))
}

/// Options of the link. Zero is no seed to lld but "reverse order".
fn options(seed: u64) -> String {
    let seed = (seed % u64::from(u32::MAX)) as u32;
    let seed = seed.max(1);
    format!(
        "--strip-debug --shuffle-sections=.text={seed} --shuffle-sections=.text.unlikely={seed}"
    )
}

/// Returns the command of the last link, which make recorded.
fn link_command(folder: &Path) -> Result<String, Error> {
    let path = folder.join(".vmlinux.cmd");
    let text = std::fs::read_to_string(&path)
        .map_err(|e| Error::Failed(format!("cannot read {}: {e}", path.display())))?;
    command_of(&text).ok_or_else(|| {
        Error::Failed(format!(
            "{} does not say how vmlinux was linked; this kernel's makefiles are not known",
            path.display()
        ))
    })
}

fn command_of(text: &str) -> Option<String> {
    let line = text.lines().find(|line| line.contains("cmd_vmlinux"))?;
    let (_, command) = line.split_once(":= ")?;
    command
        .contains("link-vmlinux.sh")
        .then(|| command.replace("$$", "$").replace("$(pound)", "#"))
}

/// Returns the environment of the last link, which Locklab's link program recorded.
fn environment(folder: &Path) -> Result<Vec<(OsString, OsString)>, Error> {
    let path = folder.join(".locklab-link-environment");
    let bytes = std::fs::read(&path)
        .map_err(|e| Error::Failed(format!("cannot read {}: {e}", path.display())))?;
    Ok(bytes
        .split(|byte| *byte == 0)
        .filter_map(|entry| {
            let at = entry.iter().position(|byte| *byte == b'=')?;
            let (name, value) = (&entry[..at], &entry[at + 1..]);
            // The jobserver of that make no longer exists.
            let value = if name == b"MAKEFLAGS" {
                without_jobserver(value)
            } else {
                value.into()
            };
            Some((OsString::from_vec(name.into()), OsString::from_vec(value)))
        })
        .collect())
}

fn without_jobserver(flags: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(flags);
    let kept: Vec<&str> = text
        .split(' ')
        .filter(|word| !word.starts_with("--jobserver") && !word.starts_with("-j"))
        .collect();
    kept.join(" ").into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_repeated_as_make_wrote_it_down() {
        let text = "cmd_vmlinux := /s/scripts/link-vmlinux.sh \"ld.locklab\" \"-m x\" \"-z $$y\"; \
                    true\n";
        assert_eq!(
            command_of(text).unwrap(),
            "/s/scripts/link-vmlinux.sh \"ld.locklab\" \"-m x\" \"-z $y\"; true"
        );
        assert!(command_of("cmd_vmlinux := ld -o vmlinux\n").is_none());
        assert_eq!(
            without_jobserver(b"-j2 --jobserver-auth=3,4 -- LD=x"),
            b"-- LD=x"
        );
    }

    #[test]
    fn seeds_give_orders_and_never_the_reverse_by_accident() {
        assert_ne!(options(1), options(2));
        assert!(options(0).contains(".text=1"));
    }
}
