//! Says what a recording of pthread locks says of the program, and what it does not see: locks
//! of a runtime, spinlocks, semaphores, barriers, OpenMP, and waits that were not recorded.
//!
//! That a file imports a function, or has an instruction, does not say that it is run: of that
//! must be said "may".

use crate::runtimes::{Runtime, found};
use locklab_document::contention_profile::{Bound, ContentionProfile, Seen};
use locklab_document::number::percent;
use locklab_replay::Recording;
use locklab_trace::Source;
use object::{Object, ObjectSection, ObjectSymbol, SectionKind};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

/// The beginnings of names of functions, and what they wait for.
const WAITS: [(&str, &str); 6] = [
    ("pthread_spin_lock", "spinlocks (pthread_spin_lock)"),
    ("sem_wait", "semaphores (sem_wait)"),
    ("sem_timedwait", "semaphores (sem_wait)"),
    ("pthread_barrier_wait", "barriers (pthread_barrier_wait)"),
    ("GOMP_", "locks and barriers of OpenMP"),
    ("__kmpc_", "locks and barriers of OpenMP"),
];

/// The instruction by which a loop says that it only waits, of x86 and of Arm.
#[cfg(not(target_arch = "aarch64"))]
const PAUSE: &[u8] = &[0xf3, 0x90];
#[cfg(target_arch = "aarch64")]
const PAUSE: &[u8] = &[0x3f, 0x20, 0x03, 0xd5];

/// The part of the threads' time from which on recording all of it makes waits.
const SLOWED: f64 = 0.1;

/// Describes what a recording says of the most that another lock can gain.
#[derive(Clone, Debug)]
pub struct Judged {
    /// Holds the bound.
    pub bound: Bound,
    /// Says it in sentences, with what was not seen.
    pub words: String,
    /// Says whether the program is not known to have other locks than those that are recorded.
    pub is_of_all_locks: bool,
}

/// Returns what a recording says.
#[must_use]
pub fn judged(recording: &Recording) -> Judged {
    let used = &recording.account();
    let (files, program) = files(recording);
    let runtime = runtime(recording, &program);
    let slowed = slowed(recording, used);
    let of_program = recording.info().source == Source::Program;
    let seen = Seen {
        blind: of_program && runtime.is_some() || slowed.is_some(),
        ..used.seen
    };
    let bound = Bound::of(&used.times, &used.windows, seen);
    let not_seen = match (slowed, runtime) {
        (Some(part), _) => format!(
            "recording took {} % of the threads' time, which lengthens short sections, and \
             others wait for them; record it without --whole",
            percent(100.0 * part)
        ),
        (None, Some(runtime)) => runtime.not_seen(),
        (None, None) => format!(
            "for {} % of the time in which threads could work, they waited for something that \
             is not recorded (semaphores, I/O, locks of other libraries); 'locklab record \
             --system' sees for what",
            percent(100.0 * bound.unknown)
        ),
    };
    let others = match of_program && runtime.is_none() {
        true => kinds(&files),
        false => Vec::new(),
    };
    let words = match &others[..] {
        [] => bound.words("lock", &not_seen),
        _ => format!(
            "{} But it may wait for {}, which are not recorded: 'locklab record --system' sees \
             who waits for them.",
            bound.words("pthread lock", &not_seen),
            others.join(", ")
        ),
    };
    Judged {
        bound,
        words,
        is_of_all_locks: others.is_empty() && runtime.is_none(),
    }
}

/// Returns the part of the busy time that recording took, if that is so much that waits follow
/// from it. In windows waits are known beside recording.
fn slowed(recording: &Recording, used: &ContentionProfile) -> Option<f64> {
    let survey = recording.survey();
    if recording.info().windows.is_some() {
        return None;
    }
    let cost = survey.cost()? * recording.info().nanoseconds_per_tick;
    let part = cost * survey.operations as f64 / used.times.busy_ns().max(1.0);
    (part > SLOWED && used.times.lost_ns() > 0.0).then_some(part)
}

/// Returns the files of the program that are known, and that of the program.
fn files(recording: &Recording) -> (Vec<PathBuf>, PathBuf) {
    let info = recording.info();
    let words = shlex::split(&info.command).unwrap_or_default();
    let first = words.first().map_or("", |word| word.as_str());
    let program = match first.contains('/') {
        true => Path::new(&info.folder).join(first),
        false => found(OsStr::new(first)).unwrap_or_default(),
    };
    let modules = recording.survey().modules.iter();
    let mut files: Vec<PathBuf> = modules
        .map(|module| PathBuf::from(String::from_utf8_lossy(&module.path).into_owned()))
        .chain([program.clone()])
        .collect();
    files.sort();
    files.dedup();
    (files, program)
}

/// Returns the runtime of a recorded program, if it has one whose locks are not recorded.
fn runtime(recording: &Recording, program: &Path) -> Option<&'static Runtime> {
    Runtime::of_name(recording.program_name())
        .or_else(|| Runtime::of_file(program, &fs::read(program).ok()?))
}

/// Returns what the files of a recorded program may wait for that is not recorded.
pub(crate) fn of_recording(recording: &Recording) -> Vec<&'static str> {
    kinds(&files(recording).0)
}

/// Returns what these files may wait for, each once; files that cannot be read say
/// nothing, and those of the C library define what others import.
fn kinds(files: &[PathBuf]) -> Vec<&'static str> {
    let mut kinds = BTreeSet::new();
    for file in files {
        let Ok(bytes) = fs::read(file) else { continue };
        let Ok(object) = object::File::parse(&*bytes) else {
            continue;
        };
        let imported = object
            .dynamic_symbols()
            .filter(|symbol| symbol.is_undefined());
        for symbol in imported {
            let name = symbol.name().unwrap_or_default();
            let found = WAITS.iter().filter(|(start, _)| name.starts_with(start));
            kinds.extend(found.map(|(_, words)| *words));
        }
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        // The C library spins in its own locks, which are recorded.
        let of_libc = ["libc.so", "libc-", "ld-", "libpthread"];
        let mut text = object
            .sections()
            .filter(|section| section.kind() == SectionKind::Text);
        let spins = |section: object::Section<'_, '_>| {
            let code = section.data().unwrap_or_default();
            code.windows(PAUSE.len()).any(|part| part == PAUSE)
        };
        if !of_libc.iter().any(|begin| name.starts_with(begin)) && text.any(spins) {
            kinds.insert("locks of its own that spin");
        }
    }
    kinds.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_read_says_nothing() {
        assert!(kinds(&[PathBuf::from("/nowhere")]).is_empty());
        assert!(kinds(&[PathBuf::from("/proc/self/maps")]).is_empty());
    }
}
