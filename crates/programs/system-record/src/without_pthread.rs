//! Programs in which the pthread recorder would see nothing.

use locklab_preload_run::found;
use object::read::elf::{Dyn as _, ElfFile64, FileHeader as _};
use object::{Object as _, ObjectSymbol as _, elf};
use std::ffi::OsStr;
use std::fs;

/// Libraries that take no lock of pthread for a program but in its own calls.
const PLAIN: [&str; 9] = [
    "libc.so",
    "libm.so",
    "libgcc_s.so",
    "libpthread.so",
    "librt.so",
    "libdl.so",
    "ld-linux",
    "libresolv.so",
    "libgomp.so",
];

/// Functions of which one is called for each lock of pthread.
const LOCKING: [&str; 6] = [
    "pthread_mutex_lock",
    "pthread_mutex_trylock",
    "pthread_rwlock_rdlock",
    "pthread_rwlock_wrlock",
    "pthread_cond_wait",
    "mtx_lock",
];

/// Functions by which a program makes threads: without them it waits for nobody.
const THREADS: [&str; 4] = ["pthread_create", "thrd_create", "clone", "GOMP_parallel"];

/// Functions by which a program starts another, or loads more of itself.
const STARTING: [&str; 14] = [
    "execl",
    "execle",
    "execlp",
    "execv",
    "execve",
    "execveat",
    "execvp",
    "execvpe",
    "fexecve",
    "posix_spawn",
    "posix_spawnp",
    "system",
    "popen",
    "dlopen",
];

/// Returns why a program takes no lock of glibc's pthread, as a clause; `None` if it, or a
/// program that it starts, may take some, or its file does not say.
#[must_use]
pub fn takes_no_pthread_lock(program: &OsStr) -> Option<String> {
    let path = found(program)?;
    let name = path.file_name()?.to_string_lossy().into_owned();
    let bytes = fs::read(path).ok()?;
    Some(format!("{name} {}", why(&bytes)?))
}

fn why(bytes: &[u8]) -> Option<&'static str> {
    let file: ElfFile64<'_> = ElfFile64::parse(bytes).ok()?;
    let endian = file.endian();
    let headers = file.elf_program_headers();
    use object::read::elf::ProgramHeader as _;
    let interpreter = headers
        .iter()
        .find_map(|header| header.interpreter(endian, bytes).ok().flatten());
    let Some(interpreter) = interpreter else {
        return Some("is linked statically");
    };
    if String::from_utf8_lossy(interpreter).contains("ld-musl") {
        return Some("runs on musl");
    }
    let sections = file.elf_header().sections(endian, bytes).ok()?;
    let (dynamic, strings) = sections.dynamic(endian, bytes).ok()??;
    let strings = sections.strings(endian, bytes, strings).ok()?;
    let needs = dynamic
        .iter()
        .filter(|entry| entry.tag(endian) == elf::DT_NEEDED)
        .filter_map(|entry| entry.string(endian, strings).ok());
    let others = needs
        .map(|name| String::from_utf8_lossy(name))
        .any(|name| !PLAIN.iter().any(|plain| name.starts_with(plain)));
    let calls = |functions: &[&str]| {
        let names = file
            .dynamic_symbols()
            .filter_map(|symbol| symbol.name().ok());
        names.into_iter().any(|name| functions.contains(&name))
    };
    let may = others || calls(&LOCKING) || calls(&STARTING);
    (!may && calls(&THREADS)).then_some("calls no lock of pthread")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_starts_others_may_take_locks_of_pthread() {
        // A shell calls no lock, and its commands may.
        assert_eq!(takes_no_pthread_lock(OsStr::new("sh")), None);
        assert_eq!(takes_no_pthread_lock(OsStr::new("/no/such/program")), None);
    }

    #[test]
    fn what_is_no_program_says_nothing() {
        assert_eq!(why(b"#!/bin/sh\necho"), None);
        assert_eq!(why(b"\x7fELF"), None);
    }
}
