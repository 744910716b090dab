//! A recording in sentences: what to think of it, and what the reader has to know.
//!
//! They must never claim more than the events show: what was not told, lost or not seen is
//! said.

use crate::found::{Findings, Found};
use crate::recording::Stopped;
use crate::waits::{Lock, Parts, Waits};
use locklab_document::contention_profile::{Limit, NOTHING_TO_GAIN};
use locklab_document::number::{count, grouped, percent, time};
use locklab_preload_run::{Runtime, Waiter, in_windows};

/// Returns what to think of it.
pub(crate) fn verdict(findings: &Findings) -> String {
    match &findings.found {
        Found::Program(found) if findings.events.events.is_empty() || found.threads == 0 => {
            "Nothing was recorded: no thread did anything meanwhile.".into()
        }
        Found::Program(found) => {
            let words = findings.bound.words("lock", &not_seen(findings));
            let limit = findings.bound.limit();
            let tasks = |runtime: &Runtime| runtime.waiter == Waiter::Task;
            // One sample of spinning, or one wait, is no reason to change anything.
            let low = findings.bound.interval.map_or(1.0, |[low, _]| low);
            let told = findings.bound.is_worth_a_try()
                && low >= NOTHING_TO_GAIN
                && !findings.runtime.is_some_and(tasks);
            match found.locks.first().filter(|_| told && limit != Limit::Lost) {
                Some(lock) => format!("{words} {}", advice(lock, findings, found)),
                None => words,
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
                "{} took {} in all, which is {} % of the CPUs' time.{most}",
                count(found.waits as usize, "wait"),
                time(found.waited as f64),
                percent(100.0 * findings.bound.share)
            )
        }
    }
}

/// Returns what was not seen, and what would show it, as a clause.
fn not_seen(findings: &Findings) -> String {
    let naps = matches!(&findings.found, Found::Program(found)
        if found.naps > found.untold + found.parked_or_locked);
    let yields = matches!(&findings.found, Found::Program(found) if found.yields);
    match findings.runtime {
        Some(runtime) => runtime.not_seen(),
        None if yields => {
            "threads give up their CPUs and try again (sched_yield), and how much of the \
             time without a CPU they waited is not seen"
                .into()
        }
        None if naps => "several threads sleep for short times, again and again, as those do \
             that try to take a lock and sleep (nanosleep)"
            .into(),
        None => format!(
            "for {} % of the time in which threads could work, they waited where neither their \
             stacks nor those that woke them say for what (code without symbols, semaphores and \
             conditions that may be locks)",
            percent(100.0 * findings.bound.unknown)
        ),
    }
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
            notes.push(match head.loops {
                true => {
                    "Spinning is seen by samples of each millisecond of CPU time: in functions \
                         that wait for locks, in short loops that only read, compare or try, and \
                         in sched_yield."
                        .into()
                }
                false => {
                    "Spinning is seen by samples, in functions whose names say that they wait \
                          for locks. A lock that spins within its caller counts as work."
                        .into()
                }
            });
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
fn advice(lock: &Lock, findings: &Findings, found: &Waits) -> String {
    let lost: u64 = found
        .locks
        .iter()
        .map(|lock| lock.all.waited + lock.all.spun)
        .sum();
    let share = percent(100.0 * (lock.all.waited + lock.all.spun) as f64 / lost.max(1) as f64);
    if lock.all.spun > lock.all.waited {
        return format!(
            "{share} % of it is at one place ({}), in {}, nearly all by spinning. Shorten what is \
             done while others spin there, split it, or take a lock that sleeps.",
            lock.family,
            lock.place()
        );
    }
    let others = findings
        .events
        .head
        .others
        .is_some_and(|others| others > 0.5);
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
            match others {
                true => {
                    "its holder had lost its CPU, which other programs want too. Record it on \
                         an idle machine."
                }
                false => {
                    "its holder had lost its CPU. Run fewer threads, or give the program more CPUs."
                }
            },
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
                true if others => {
                    "the waiter was woken but had no CPU, which other programs want too. Record it \
                     on an idle machine."
                }
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
        "{share} % of the waiting is for one lock ({}), which is taken in {}. For {} % of that time \
         {words}",
        lock.family,
        lock.place(),
        percent(100.0 * part as f64 / all as f64)
    )
}
