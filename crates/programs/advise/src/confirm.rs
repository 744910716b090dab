//! The command that confirms the advice on the machine that recorded: one that a shell runs
//! as it is printed.
//!
//! `compare` runs each side in an empty folder, so the command goes to the program's own.
//! It must never print a command of which a part was lost.

use crate::candidates::Candidate;
use locklab_document::page::continued;
use locklab_sim::Waiters;
use locklab_trace::Info;

/// The longest command that a recording holds, in bytes: one as long was cut.
const LONGEST: usize = 1023;

/// How waiters of a lock wait, as an option of `run`; a lock that sleeps by itself has no
/// other way.
pub(crate) fn wait_option(lock: &Candidate) -> &'static str {
    match lock.waiters {
        Waiters::Spin => " --wait spin",
        Waiters::SpinThenPark if lock.lock.starts_with("futex") => "",
        Waiters::SpinThenPark => " --wait spin-then-park",
    }
}

/// The command; none if the recording does not hold all of the program's.
pub(crate) fn confirm(lock: &Candidate, info: &Info) -> Option<String> {
    if info.command.len() >= LONGEST {
        return None;
    }
    let folder = match info.folder.as_str() {
        "" => String::new(),
        folder => format!("cd {} && ", shlex::try_quote(folder).ok()?),
    };
    let program = &info.command;
    let baseline = format!("{folder}{program}");
    let wait = wait_option(lock);
    let experiment = format!(
        "{folder}locklab run --lock {}{wait} -- {program}",
        lock.lock
    );
    // Within single quotes a line cannot be continued: the quotes end before.
    let quoted = |option: &str, words: &str| {
        let words = words.replace('\'', "'\\''");
        let begin = format!("  {option} '");
        format!("{}'", continued(&begin, &words, ["'\\", "'"]))
    };
    Some(format!(
        "locklab compare \\\n{} \\\n{}",
        quoted("--baseline", &baseline),
        quoted("--experiment", &experiment)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use locklab_trace::{Header, Trace, file};

    fn info(command: &str, folder: &str) -> Info {
        let mut header = Header::new(1.0, 1, 1, "a machine", command);
        header.note_folder(folder);
        Trace::read(file(&header, &[], 2).unwrap()).unwrap().info
    }

    /// What a shell gives to `compare`, and then what its shell gives to the program.
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
        assert_eq!(outer[..3], ["locklab", "compare", "--baseline"]);
        let inner = words(&outer[3]);
        assert_eq!(inner[..3], ["cd", "/home/a user", "&&"]);
        assert_eq!(inner[3..], arguments);
        let inner = words(&outer[5]);
        assert_eq!(
            inner[3..9],
            [
                "locklab",
                "run",
                "--lock",
                "mcs",
                "--wait",
                "spin-then-park"
            ]
        );
        assert_eq!(inner[10..], arguments);
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
