//! A recording in tables: what threads did, which locks were waited for, and what the
//! waiting consisted of.

use crate::found::Findings;
use crate::kernel_waits::KernelUse;
use crate::waits::{Lock, Use, Waits};
use locklab_document::contention_profile::{ContentionProfile, Counts, Used};
use locklab_document::number::{count, grouped, percent, time};
use locklab_document::{Column, ColumnGroup, Document, Part, Section, Table};

/// Locks, or call sites, that are shown.
const SHOWN: usize = 8;

fn counts(used: &Use) -> Counts {
    Counts {
        contended: used.waits,
        waited_ns: Some((used.waited + used.spun) as f64),
        longest_ns: (used.waits > 0).then_some(used.longest as f64),
        ..Counts::default()
    }
}

/// Returns the locks of a program, and where they are taken, as every report has them.
pub(crate) fn program_use(findings: &Findings, found: &Waits) -> ContentionProfile {
    let locks = found.locks.iter().map(|lock| Used {
        name: lock.place().into(),
        kind: Some(lock.family.into()),
        locks: 1,
        counts: counts(&lock.all),
        spent: None,
    });
    let sites = found.locks.iter().flat_map(|lock| {
        lock.sites.iter().map(|(name, site)| Used {
            name: name.clone(),
            counts: counts(site),
            ..Used::default()
        })
    });
    ContentionProfile::new(findings.times, locks.collect(), sites.collect())
}

/// Returns the kernel's locks by who takes them, as every report has them.
pub(crate) fn kernel_use(found: &KernelUse) -> Vec<Used> {
    let callers = found.callers.iter().map(|((caller, kind), used)| Used {
        name: caller.clone(),
        kind: Some((*kind).into()),
        locks: used.locks.len() as u64,
        counts: Counts {
            contended: used.waits,
            waited_ns: Some(used.waited as f64),
            longest_ns: Some(used.longest as f64),
            ..Counts::default()
        },
        spent: None,
    });
    callers.collect()
}

/// Adds the sections on a program.
pub(crate) fn program(findings: &Findings, found: &Waits, document: &mut Document) {
    let threads = ("Threads".to_owned(), grouped(found.threads as u64));
    let threads = findings.times.section(vec![threads]);
    let idle = [
        (found.conditions, "waiting for conditions and semaphores"),
        (found.barriers, "at barriers and ends of threads"),
        (found.parked, "parked"),
        (
            found.parked_or_locked,
            "parked, for work or for a lock of the runtime",
        ),
        (found.untold, "in waits for what is not known"),
        (found.naps, "in short sleeps, one after the other"),
        (found.asleep, "asleep, or in input and output"),
    ];
    let idle: Vec<String> = idle
        .iter()
        .filter(|(part, _)| *part > 0)
        .map(|(part, words)| format!("{} {words}", time(*part as f64)))
        .collect();
    document.push(match idle.is_empty() {
        true => threads,
        false => threads.note(format!("Without work they spent {}.", idle.join("; "))),
    });
    if found.locks.is_empty() {
        return;
    }
    let used = program_use(findings, found);
    document.push(ContentionProfile::section("Locks", &used.locks, SHOWN));
    if used.sites.len() > used.locks.len() {
        document.push(ContentionProfile::section(
            "Hottest call sites",
            &used.sites,
            SHOWN,
        ));
    }
    if found.locks.iter().any(|lock| lock.all.waits > 0) {
        document.push(spent(found));
    }
}

/// Returns what the waiting for each lock consisted of.
fn spent(found: &Waits) -> Section {
    let column = |title: &str| Column::new(title, 7);
    let slept = found.locks.iter().filter(|lock| lock.all.waits > 0);
    let shown: Vec<&Lock> = slept.clone().take(SHOWN).collect();
    let rows = shown.iter().enumerate().map(|(number, lock)| {
        let share = |part: u64| {
            let all = lock.all.parts.sum().max(1) as f64;
            format!("{} %", percent(100.0 * part as f64 / all))
        };
        let parts = &lock.all.parts;
        vec![
            format!("{}", number + 1),
            share(parts.working),
            share(parts.preempted),
            share(parts.asleep),
            share(parts.in_line),
            share(parts.waking),
            share(parts.unknown),
        ]
    });
    let table = Table {
        groups: vec![
            ColumnGroup::new("", vec![Column::new("#", 3)]),
            ColumnGroup::new(
                "holder",
                vec![column("works"), column("no CPU"), column("asleep")],
            ),
            ColumnGroup::new(
                "",
                vec![column("in line"), column("waking"), column("unknown")],
            ),
        ],
        rows: rows.collect(),
    };
    let more = slept.count() - shown.len();
    let section = Section::new("Where the waiting is spent")
        .with(Part::Table(table))
        .items(
            shown
                .iter()
                .enumerate()
                .map(|(number, lock)| {
                    let at = lock
                        .address
                        .map_or_else(String::new, |at| format!(" at {at:#x}"));
                    format!("#{} {}{at}: {}", number + 1, lock.family, lock.place())
                })
                .collect(),
        )
        .note(
            "The thread that woke a waiter is taken for the holder. \"waking\" lasts from the \
             wake-up until the waiter has a CPU.",
        );
    match more {
        0 => section,
        more => section.note(format!(
            "Not shown: {} with less waiting.",
            count(more, "lock")
        )),
    }
}

/// Adds the section on the kernel's locks.
pub(crate) fn kernel(found: &KernelUse, document: &mut Document) {
    if !found.callers.is_empty() {
        document.push(ContentionProfile::section(
            "Callers",
            &kernel_use(found),
            SHOWN,
        ));
    }
}
