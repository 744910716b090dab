//! Says what a reader does first: the first paragraph (what to do, what it gains, what nothing
//! can exceed), and the command that confirms it on the machine that recorded.
//!
//! The paragraph must never name a size that the model is too far off for, nor a lock to try
//! whose band has 1 in it. A shell runs the command as it is printed; `compare` runs each side in
//! an empty folder, so it goes to the program's own. It must never be one of which a part
//! was lost.

use crate::question::{Candidate, Question};
use crate::runs::Advice;
use crate::words::{Context, Summary, bound, to_confirm, what_if};
use locklab_document::number;
use locklab_document::page::continued;
use locklab_replay::Program;
use locklab_sim::Waiters;
use locklab_trace::Info;

/// Returns what to do, what it gains and what nothing can exceed, in a few sentences.
pub(crate) fn paragraph(
    advice: Option<&Advice>,
    summaries: &[Summary<'_>],
    program: &Program,
    question: &Question,
    context: &Context<'_>,
) -> String {
    let mut words = Vec::new();
    let to_try = advice.and_then(|advice| {
        let number = to_confirm(summaries, program, question)?;
        Some((advice, number))
    });
    if let Some(kept) = &context.kept {
        words.push(format!("Keep the lock: {kept}."));
    } else if let Some((advice, number)) = to_try {
        words.extend(a_try(advice, number, summaries, question, context.own));
        words.extend(context.info.shared_with_others().map(|others| {
            format!(
                "That is not sure: other programs used {others:.1} CPUs during the recording, so \
                 record again on an idle machine first."
            )
        }));
    } else if let Some(advice) = advice {
        words.push(match what_if(summaries, question, &advice.gate) {
            Some(otherwise) => otherwise,
            None => "Keep the lock as it is: no lock that was tried is shown to help.".into(),
        });
    }
    if words.len() < 2
        && let Some(spent) = context.used.spent()
        && let Some((part, cause, remedy)) = match context.kept {
            Some(_) => spent.largest_but_waking(),
            None => spent.largest(),
        }
    {
        words.push(format!(
            "{} % of the waiting is {cause}: {remedy}.",
            number::percent(100.0 * part)
        ));
    }
    words.push(match context.as_recorded {
        true => context.judged.words.clone(),
        false => bound(summaries, question),
    });
    words.retain(|words| !words.is_empty());
    words.join(" ")
}

/// Returns the lock to try, and what it gains.
fn a_try(
    advice: &Advice,
    number: usize,
    summaries: &[Summary<'_>],
    question: &Question,
    own: bool,
) -> Option<String> {
    let lock = &question.locks[number];
    let of_lock = |summary: &Summary<'_>| {
        let mut locks = summary.locks.iter();
        let (_, verdict) = locks.find(|(place, _)| *place == number)?;
        Some((summary.place(question), *verdict))
    };
    let (place, verdict) = summaries
        .iter()
        .filter_map(of_lock)
        .max_by(|one, two| one.1.ratio.total_cmp(&two.1.ratio))?;
    let name = match own {
        // 'run' cannot put it there.
        true => format!("{} in the place of the program's own lock", lock.lock),
        false => format!("{}{}", lock.lock, wait_option(lock)),
    };
    Some(match advice.gate.gives_sizes() {
        true => {
            let [low, high] = verdict.widened(advice.gate.spread());
            format!(
                "Try {name}: on {place} the model gives it {:.2} times today's rate ({low:.2} to \
                 {high:.2} with 90 % confidence).",
                verdict.ratio
            )
        }
        false => format!(
            "Try {name}: in every variant of the model it is ahead of today's lock by more than the \
             model is off, which gives {:.2} times the recorded rate and cannot say by how much.",
            advice.gate.ratio()
        ),
    })
}

/// The longest command that a recording holds, in bytes: one as long was cut.
const LONGEST: usize = 1023;

/// Returns how waiters of a lock wait, as an option of `run`; a lock that sleeps by
/// itself has no other way.
pub(crate) fn wait_option(lock: &Candidate) -> &'static str {
    match lock.waiters {
        Waiters::Spin => " --wait spin",
        Waiters::SpinThenPark if lock.lock.starts_with("futex") => "",
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
        Some(wait) => format!(" \\\n  --experiment-env LOCKLAB_WAIT={wait}"),
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
                "--experiment-env",
                "LOCKLAB_WAIT=spin-then-park",
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
