//! A recording in sentences: what to think of it, and what the reader has to know.
//!
//! They must never claim more than the events show: what was not told, lost or not seen is
//! said.

use crate::found::{Findings, Found};
use crate::recording::Stopped;
use crate::waits::{Lock, Parts, Waits};
use locklab_document::lock_use::NOTHING_TO_GAIN;
use locklab_document::number::{count, grouped, percent, time};
use locklab_preload_run::in_windows;

/// Returns what to think of it.
pub(crate) fn verdict(findings: &Findings) -> String {
    let share = 100.0 * findings.share.share;
    let between = format!(
        "{} % ({} to {} %)",
        percent(share),
        percent(100.0 * findings.share.low),
        percent(100.0 * findings.share.high)
    );
    match &findings.found {
        Found::Program(found) if findings.events.events.is_empty() || found.threads == 0 => {
            "Nothing was recorded: no thread did anything meanwhile.".into()
        }
        Found::Program(found) => {
            let gain = 100.0 * (findings.limit(found) - 1.0);
            if found.calls > 0 && found.unnamed == found.calls {
                return "No stack names what was waited for, so locks cannot be told from \
                        conditions: build the program with symbols."
                    .into();
            }
            if found.unnamed > found.calls / 2 && findings.share.high < NOTHING_TO_GAIN {
                return format!(
                    "{} % of the waits name nothing that is known, so what could be gained is not \
                     known: build the program with symbols. Threads with work spent {between} of \
                     their time waiting for locks that are known, or waking waiters.",
                    percent(100.0 * found.unnamed as f64 / found.calls as f64)
                );
            }
            if is_of_go(findings) && findings.share.high < NOTHING_TO_GAIN {
                return format!(
                    "Goroutines wait in Go's scheduler, which the kernel does not see: 'locklab \
                     advise' reads Go's mutex profile. The threads that run them spent {between} of \
                     their time waiting for locks or waking waiters."
                );
            }
            if findings.share.high < NOTHING_TO_GAIN {
                return format!(
                    "Nothing to gain: threads with work spent {between} of their time waiting for \
                     locks or waking waiters. No lock can make the program more than {} % faster.",
                    percent(gain)
                );
            }
            let spent = format!(
                "Threads with work spent {between} of their time waiting for locks or waking \
                 waiters. No lock can make the program more than {} % faster.",
                percent(gain)
            );
            match found.locks.first() {
                Some(lock) => format!("{spent} {}", advice(lock, found)),
                None => spent,
            }
        }
        Found::Kernel(found) if found.waits == 0 => {
            "Nothing to gain: no lock of the kernel was waited for.".into()
        }
        Found::Kernel(found) => {
            let most = found
                .callers
                .first()
                .map_or_else(String::new, |((caller, kind), used)| {
                    format!(
                        " {} % of it was for a {kind} in {caller}.",
                        percent(100.0 * used.waited as f64 / found.waited.max(1) as f64)
                    )
                });
            format!(
                "{} took {} in all, which is {between} of the CPUs' time.{most}",
                count(found.waits as usize, "wait"),
                time(found.waited as f64)
            )
        }
    }
}

/// Returns whether Go's runtime waits in the program: its goroutines wait unseen.
fn is_of_go(findings: &Findings) -> bool {
    let functions = &findings.events.functions;
    functions
        .iter()
        .any(|function| function.0.starts_with("runtime.futex"))
}

/// Returns what the reader has to know.
pub(crate) fn notes(findings: &Findings) -> Vec<String> {
    let head = &findings.events.head;
    let mut notes = Vec::new();
    if head.lost > 0 {
        notes.push(format!(
            "{} events were lost, {} % of all. The kernel wrote faster than they were read, \
             and the interval is that much wider.",
            grouped(head.lost),
            percent(100.0 * findings.lost())
        ));
    }
    if head.unreadable > 0 {
        notes.push(format!(
            "{} could not be read.",
            count(head.unreadable as usize, "record")
        ));
    }
    if findings.events.cut {
        notes.push("The file is cut off. It was read up to there.".into());
    }
    match head.stopped {
        Stopped::Full => notes.push(format!(
            "There was no more room after {}, and the program ran on unrecorded. --megabytes \
             gives a recording more room.",
            time(head.length as f64)
        )),
        Stopped::Seconds => notes.push(format!(
            "It was recorded for {}. The program ran on unrecorded.",
            time(head.length as f64)
        )),
        Stopped::Program => {}
    }
    notes.extend(findings.events.windows().map(in_windows));
    match &findings.found {
        Found::Program(found) => {
            notes.push(
                "Spinning is seen by samples, in functions whose names say that they wait for \
                 locks. A lock that spins within its caller counts as work."
                    .into(),
            );
            if let Some(others) = head.others.filter(|others| *others > 0.1)
                && found.ready > found.ran
            {
                notes.push(format!(
                    "Other programs used {others:.1} CPUs during the recording, and threads \
                     were ready without a CPU for longer than they ran. Record it on an idle \
                     machine."
                ));
            }
            let share = |part: u64| 100.0 * part as f64 / found.calls.max(1) as f64;
            if found.early > 0 {
                notes.push(format!(
                    "{} % of the stacks end before they say who takes the lock.",
                    percent(share(found.early))
                ));
            }
            if found.unnamed > 0 && found.unnamed < found.calls {
                notes.push(format!(
                    "{} % of the waits name nothing that is known, and count as no lock's.",
                    percent(share(found.unnamed))
                ));
            }
            if is_of_go(findings) {
                notes.push(
                    "This is a Go program. Its goroutines wait in Go's scheduler, which the \
                     kernel does not see. So the locks of sync are missing here, and only the \
                     runtime's own are seen. Go's mutex profile (pprof) has the others."
                        .into(),
                );
            }
            if findings
                .events
                .functions
                .iter()
                .any(|function| function.2 == "libjvm.so")
            {
                notes.push(
                    "This is a Java program. Its monitors are seen. A thread that waits for a \
                     lock of java.util.concurrent parks like one without work; only a stack \
                     with names tells them apart (-XX:+PreserveFramePointer \
                     -XX:+DumpPerfMapAtExit)."
                        .into(),
                );
            }
        }
        Found::Kernel(found) => {
            if !head.kernel_names {
                notes.push(
                    "The kernel hides the names of its functions (kernel.kptr_restrict).".into(),
                );
            }
            if found.unmatched > 0 {
                notes.push(format!(
                    "{} whose begin is missing were left out.",
                    count(found.unmatched, "wait")
                ));
            }
        }
    }
    notes
}

/// Returns what to do about the lock that is waited for most.
fn advice(lock: &Lock, found: &Waits) -> String {
    let Parts {
        working,
        preempted,
        asleep,
        in_line,
        waking,
        unknown,
    } = lock.all.parts;
    let all = lock.all.parts.sum().max(1);
    let what = [
        (
            working,
            "its holder worked. Shorten what is done under the lock, or split the lock.",
        ),
        (
            preempted,
            "its holder had lost its CPU. Run fewer threads, or give the program more CPUs.",
        ),
        (
            asleep,
            "its holder slept, or waited itself. Do not hold the lock across that.",
        ),
        (
            in_line,
            "others were served first. Split the lock, or take it less often.",
        ),
        (
            waking,
            match found.ready > found.ran {
                true => {
                    "the waiter was woken but had no CPU. Run fewer threads, or give the program \
                     more CPUs."
                }
                false => {
                    "the waiter was woken but did not run yet. Wake fewer threads, or spin before \
                     sleeping."
                }
            },
        ),
        (unknown, "the kernel did not see who held it."),
    ];
    let (part, words) = what
        .into_iter()
        .max_by_key(|(part, _)| *part)
        .unwrap_or_default();
    format!(
        "{} % of the waiting is for one lock ({}), which is taken in {}. For {} % of that time \
         {words}",
        percent(100.0 * lock.all.waited as f64 / found.waited.max(1) as f64),
        lock.family,
        lock.place(),
        percent(100.0 * part as f64 / all as f64)
    )
}
