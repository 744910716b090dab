//! Processes of a program that did not load Locklab's library, and why.
//!
//! A program that a shell starts may be linked statically, or be made for another C library:
//! then the shell loads the library, and what matters does not. So the processes are looked
//! at while they run; one that is gone before it had 20 ms of a CPU is not noticed.

use crate::runtimes::found;
use object::{Object, ObjectSection};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::Duration;

/// The pause before the first look, and the longest between two.
const PAUSES: [Duration; 2] = [Duration::from_millis(20), Duration::from_secs(2)];
/// The CPU time after which a process has loaded all that it will load, in ticks of 10 ms.
const STARTED: u64 = 2;

/// Looks at the processes of a program until it is told to end.
pub(crate) struct Watch {
    end: mpsc::Sender<()>,
    seen: JoinHandle<BTreeMap<PathBuf, String>>,
}

impl Watch {
    /// Begins to look at a process and its descendants. `library` is the file that they
    /// should have loaded.
    pub(crate) fn begin(process: u32, library: &Path) -> Self {
        let (end, ended) = mpsc::channel();
        let library = library.file_name().unwrap_or_default().to_owned();
        let seen = std::thread::spawn(move || {
            let (mut seen, mut pause) = (BTreeMap::new(), PAUSES[0]);
            while ended.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
                look(process, &library, &mut seen);
                pause = (2 * pause).min(PAUSES[1]);
            }
            seen
        });
        Self { end, seen }
    }

    /// Ends it. Returns a part of a sentence for each file whose processes had not loaded
    /// the library.
    pub(crate) fn end(self) -> Vec<String> {
        let _ = self.end.send(());
        self.seen.join().unwrap_or_default().into_values().collect()
    }
}

/// Notes the files of processes, from this one on, that run without the library.
fn look(process: u32, library: &OsStr, seen: &mut BTreeMap<PathBuf, String>) {
    let folder = PathBuf::from(format!("/proc/{process}"));
    let tasks = fs::read_dir(folder.join("task")).into_iter().flatten();
    for task in tasks.flatten() {
        let children = fs::read_to_string(task.path().join("children")).unwrap_or_default();
        for child in children.split_whitespace().filter_map(|c| c.parse().ok()) {
            look(child, library, seen);
        }
    }
    let (Ok(program), Ok(maps)) = (
        fs::read_link(folder.join("exe")),
        fs::read_to_string(folder.join("maps")),
    ) else {
        return;
    };
    let name = library.to_string_lossy();
    if seen.contains_key(&program)
        || maps.contains(&*name)
        || cpu_ticks(&folder).is_none_or(|ticks| ticks < STARTED)
    {
        return;
    }
    let why = why(program.as_os_str()).unwrap_or_else(|| {
        let name = program.file_name().unwrap_or_default().display();
        format!("{name} was started without it")
    });
    seen.insert(program, why);
}

/// Returns the CPU time of a process until now, in the system's ticks.
fn cpu_ticks(folder: &Path) -> Option<u64> {
    let text = fs::read_to_string(folder.join("stat")).ok()?;
    // The name before may have any bytes.
    let fields: Vec<&str> = text.rsplit_once(") ")?.1.split(' ').collect();
    let field = |number: usize| fields.get(number)?.parse::<u64>().ok();
    Some(field(11)? + field(12)?)
}

/// Returns why a program would not load a library: what its file says, as a part of a
/// sentence.
pub(crate) fn why(program: &OsStr) -> Option<String> {
    let path = found(program)?;
    let mode = fs::metadata(&path).ok()?.permissions().mode();
    let name = path.file_name()?.to_string_lossy().into_owned();
    if mode & 0o6000 != 0 {
        return Some(format!("{name} runs with another user's rights"));
    }
    let bytes = fs::read(&path).ok()?;
    let elf = object::File::parse(&*bytes).ok()?;
    let Some(loader) = elf.section_by_name(".interp") else {
        return Some(format!("{name} is linked statically"));
    };
    let of_musl = loader
        .data()
        .is_ok_and(|path| path.windows(7).any(|part| part == b"ld-musl"));
    of_musl.then(|| format!("{name} is built for musl"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// This process has not loaded a library of that name, and has loaded the C library.
    #[test]
    fn a_process_without_the_library_is_noticed_once() {
        let own = std::process::id();
        // Until it has had enough of a CPU.
        let folder = PathBuf::from("/proc/self");
        while cpu_ticks(&folder).is_some_and(|ticks| ticks < STARTED) {}
        let mut seen = BTreeMap::new();
        for _ in 0..2 {
            look(own, OsStr::new("no-such-library.so"), &mut seen);
        }
        let here = std::env::current_exe().unwrap();
        assert!(seen[&here].ends_with("was started without it"), "{seen:?}");
        let mut seen = BTreeMap::new();
        look(own, OsStr::new("libc.so"), &mut seen);
        assert!(!seen.contains_key(&here), "{seen:?}");
    }

    #[test]
    fn what_a_file_says_is_told_apart() {
        assert_eq!(why(OsStr::new("/no/such/program")), None);
        assert_eq!(why(OsStr::new("sh")), None);
    }
}
