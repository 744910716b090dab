//! Holds the command that confirms an advice on the machine that recorded.
//!
//! A shell runs it as it is printed; `compare` runs each side in an empty folder, so it goes to
//! the program's own. It must never be one of which a part was lost.

use crate::candidate::Candidate;
use locklab_document::page::continued;
use locklab_sim::Waiters;
use locklab_trace::Info;

/// The longest command that a recording holds, in bytes: one as long was cut.
const LONGEST: usize = 1023;

/// Returns how waiters of a lock wait, as an option of `run`; a lock that sleeps by
/// itself has no other way.
pub(crate) fn wait_option(lock: &Candidate) -> &'static str {
    match lock.waiters {
        Waiters::Spin => " --wait spin",
        Waiters::SpinThenPark if lock.sleeps_by_itself() => "",
        Waiters::Barging => " --wait barging",
        Waiters::SpinThenPark => " --wait spin-then-park",
    }
}

/// Returns the command; none if the recording does not hold all of the program's.
pub(crate) fn confirm(lock: &Candidate, info: &Info) -> Option<String> {
    if info.command.len() >= LONGEST {
        return None;
    }
    let folder = match info.folder.as_str() {
        "" => String::new(),
        folder => format!("cd {} && ", shlex::try_quote(folder).ok()?),
    };
    // The same interposer is under both sides, so that its start is in neither's favour.
    let wait = match wait_option(lock).strip_prefix(" --wait ") {
        Some(wait) => format!(" \\\n  --set experiment.env.LOCKLAB_WAIT={wait}"),
        None => String::new(),
    };
    // Within single quotes a line cannot be continued: the quotes end before.
    let words = format!("{folder}exec {}", info.command).replace('\'', "'\\''");
    let command = continued("  -- sh -c '", &words, ["'\\", "'"]);
    Some(format!(
        "locklab compare \\\n  --baseline-lock {PTHREAD_INTERPOSED} --experiment-lock {}{wait} \\\n\
         {command}'",
        lock.lock
    ))
}

/// glibc's own mutexes behind the interposer, as `compare` calls them.
const PTHREAD_INTERPOSED: &str = "pthread-interposed";

#[cfg(test)]
mod tests {
    use super::*;
    use locklab_trace::{Header, Trace, file};

    fn info(command: &str, folder: &str) -> Info {
        let mut header = Header::new(1.0, 1, 1, "a machine", command);
        header.note_folder(folder);
        Trace::read(file(&header, &[], 2).unwrap()).unwrap().info
    }

    /// Returns what a shell gives to `compare`, and then what its shell gives to the
    /// program.
    fn words(text: &str) -> Vec<String> {
        shlex::split(&text.replace("\\\n", "")).unwrap()
    }

    #[test]
    fn a_shell_runs_the_command_as_it_is_printed() {
        let arguments = [
            "./sl eepers",
            "",
            "0",
            "a'b",
            "a long one that goes over the end of a line",
        ];
        let command = shlex::try_join(arguments).unwrap();
        let lock = Candidate::named("mcs").unwrap();
        let printed = confirm(&lock, &info(&command, "/home/a user")).unwrap();
        let outer = words(&printed);
        // Both sides have the same wrapper, so a lock against itself is flat.
        assert_eq!(
            outer[..10],
            [
                "locklab",
                "compare",
                "--baseline-lock",
                "pthread-interposed",
                "--experiment-lock",
                "mcs",
                "--set",
                "experiment.env.LOCKLAB_WAIT=spin-then-park",
                "--",
                "sh"
            ]
        );
        let inner = words(&outer[11]);
        assert_eq!(inner[..4], ["cd", "/home/a user", "&&", "exec"]);
        assert_eq!(inner[4..], arguments);
    }

    #[test]
    fn a_command_that_was_cut_is_not_printed() {
        let lock = Candidate::named("mcs").unwrap();
        let long = "x".repeat(2000);
        assert_eq!(confirm(&lock, &info(&long, "/")), None);
        // Older recordings have no folder.
        let old = confirm(&lock, &info("./server", "")).unwrap();
        assert!(!old.contains("cd "), "{old}");
    }
}
