//! Results as plain text of 72 columns, to be read or mailed.

use locklab_document::number;
use locklab_document::page::{COLUMNS, wrapped};
use locklab_document::{Column, Table, render};
use locklab_verify::{
    Checker, Count, LEGEND, LockResult, PropertyResult, Reads, SHOWN, Verdict, interleaving,
};
use std::fmt::Write;

/// The most locks that a sentence names.
const NAMED: usize = 4;

/// Returns the first sentences: which locks keep their promises, and which do not.
fn lead(locks: &[LockResult]) -> String {
    let mut sentences = Vec::new();
    for lock in locks.iter().filter(|lock| !lock.holds()) {
        let broken = |p: &&PropertyResult| p.outcome == Verdict::Fails;
        let names: Vec<&str> = lock
            .properties
            .iter()
            .filter(broken)
            .map(|p| p.name)
            .collect();
        sentences.push(format!(
            "{} breaks {} of its {}: {}.",
            lock.name,
            names.len(),
            number::count(lock.properties.len(), "promise"),
            names.join(", ")
        ));
    }
    let [whole, cut]: [Vec<&LockResult>; 2] = [true, false].map(|complete| {
        let kept = locks.iter().filter(|lock| lock.holds());
        kept.filter(|lock| lock.is_complete() == complete).collect()
    });
    for (locks, which) in [
        (whole, "within the bounds below"),
        (
            cut,
            "in the runs that were explored; some within the bounds were left out",
        ),
    ] {
        let names: Vec<&str> = locks.iter().map(|lock| lock.name.as_str()).collect();
        let (who, verb, whose) = match &names[..] {
            [] => continue,
            [one] => ((*one).to_owned(), "keeps", "its"),
            [all @ .., last] if names.len() <= NAMED => {
                (format!("{} and {last}", all.join(", ")), "keep", "their")
            }
            all => (format!("{} locks", all.len()), "keep", "their"),
        };
        sentences.push(format!("{who} {verb} {whose} promises {which}."));
    }
    let survivors: usize = locks.iter().map(|lock| lock.survivors.len()).sum();
    if survivors > 0 {
        let changes = number::count(survivors, "change");
        sentences.push(format!("{changes} of the source broke no promise."));
    }
    sentences.join(" ")
}

/// Least widths of the columns of locks and of promises, and what the others take.
const WIDTHS: [usize; 3] = [20, 24, 28];

/// Returns one line a promise: in one table, or in a table for each lock, below its name, if
/// a page has no room for the names of both.
fn promises(locks: &[LockResult]) -> String {
    let widest = |least: usize, names: &mut dyn Iterator<Item = &str>| {
        names
            .map(|name| name.chars().count())
            .fold(least, usize::max)
    };
    let of_locks = widest(WIDTHS[0], &mut locks.iter().map(|lock| lock.name.as_str()));
    let all = || locks.iter().flat_map(|lock| &lock.properties);
    let of_promises = widest(WIDTHS[1], &mut all().map(|property| property.name));
    let mut columns = vec![
        Column::words("lock", of_locks),
        Column::words("promise", of_promises),
        Column::new("thr", 3),
        Column::new("pre", 4),
        Column::new("runs", 8),
        // Between figures and words.
        Column::new("", 0),
        Column::words("outcome", 0),
    ];
    if of_locks + of_promises + WIDTHS[2] <= COLUMNS {
        let rows = locks.iter().flat_map(|lock| {
            let named = |row| [vec![lock.name.clone()], row].concat();
            rows(lock).map(named)
        });
        return render::table(&Table::new(columns, rows.collect()));
    }
    columns.remove(0);
    let table = |lock: &LockResult| {
        let table = Table::new(columns.clone(), rows(lock).collect());
        format!("{}\n{}\n", lock.name, render::table(&table))
    };
    locks.iter().map(table).collect()
}

/// Returns the promises of a lock, as rows without its name.
fn rows(lock: &LockResult) -> impl Iterator<Item = Vec<String>> {
    lock.properties.iter().map(|property| {
        let bound = match (property.checker, property.preemptions) {
            (Checker::Shuttle | Checker::Programs, _) => "-".to_owned(),
            (Checker::Graphs, _) => "all".to_owned(),
            (Checker::Loom, None) => "any".to_owned(),
            (Checker::Loom, Some(most)) => most.to_string(),
        };
        let outcome = match property.outcome {
            Verdict::Holds => "holds",
            Verdict::Cut => "cut",
            Verdict::Passes => "passes",
            Verdict::Fails => "FAILS",
        };
        vec![
            property.name.to_string(),
            property.threads.to_string(),
            bound,
            property.executions.to_string(),
            String::new(),
            outcome.to_owned(),
        ]
    })
}

/// Returns the table of what was found.
///
/// First what it says of each lock, in sentences. Then one line a property:
/// threads, the bound on preemptions ("any": none; "all": each execution once, as
/// a graph), executions explored, and what came of them. With mutants, one line a
/// lock, and the survivors by source line.
pub(super) fn table(locks: &[LockResult]) -> String {
    let mut text = wrapped("", &lead(locks)) + "\n" + &promises(locks);
    let mut line = |part: std::fmt::Arguments<'_>| {
        text.write_fmt(part).expect("a String grows");
        text.push('\n');
    };
    line(format_args!(
        "thr: threads. pre: the most preemptions in a run; all: no bound, and\n\
         each execution once, as a graph. A promise that holds was kept in every\n\
         run within that bound; one that passes was kept in all random runs. One\n\
         that is cut was kept in the runs explored, but some runs within the\n\
         bound were left out."
    ));
    for lock in locks {
        for property in &lock.properties {
            for left_out in &property.left_out {
                let head = format!("\n{}, {}, left out:", lock.name, property.name);
                line(format_args!(
                    "{head}\n{}",
                    wrapped("    ", left_out).trim_end()
                ));
            }
            if property.schedules > 0 && property.failure.is_none() {
                let schedules = number::count(property.schedules as usize, "random schedule");
                let beyond =
                    format!("{schedules} of all of it, fair to each thread, kept the promise");
                line(format_args!("{}", wrapped("    ", &beyond).trim_end()));
            }
        }
    }
    for lock in locks {
        if let Some(sentence) = one_order(lock) {
            line(format_args!("\n{}", wrapped("", &sentence).trim_end()));
        }
    }
    if locks.iter().any(|lock| lock.mutants.is_some()) {
        let of = |count: Count| format!("{}/{}", count.killed, count.mutants);
        let tried = locks.iter().filter(|lock| lock.mutants.is_some());
        let rows = tried.map(|lock| {
            vec![
                lock.name.clone(),
                of(lock.orderings),
                of(lock.structure),
                of(lock.planted),
                lock.argued.len().to_string(),
                lock.survivors.len().to_string(),
            ]
        });
        let columns = vec![
            Column::words("mutants of", 20),
            Column::new("orderings", 11),
            Column::new("structure", 11),
            Column::new("planted", 9),
            Column::new("argued", 6),
            Column::new("survivors", 9),
        ];
        let mutants = render::table(&Table::new(columns, rows.collect()));
        line(format_args!("\n{}", mutants.trim_end()));
        for lock in locks.iter().filter(|lock| lock.mutants.is_none()) {
            line(format_args!(
                "{}: mutants were not tried, because a promise is broken without them",
                lock.name
            ));
        }
        line(format_args!(
            "n/m: n of m mutants break a promise. Those argued break none, for a\n\
             reason in results/verification.md. Survivors break none, and no reason\n\
             is known."
        ));
        for lock in locks {
            for survivor in &lock.survivors {
                line(format_args!(
                    "{}: {}\n    {}{}",
                    lock.name,
                    survivor.line,
                    survivor.weakened,
                    if survivor.decided {
                        ""
                    } else {
                        " (cut: a longer run may kill it)"
                    }
                ));
            }
        }
    }
    for lock in locks {
        for property in &lock.properties {
            if let Some(failure) = &property.failure {
                line(format_args!(
                    "\n{}, {}: {failure}",
                    lock.name, property.name
                ));
                if !property.trace.is_empty() {
                    line(format_args!("\n{}", interleaving(&property.trace, SHOWN)));
                    line(format_args!("{LEGEND}"));
                }
            }
        }
    }
    text
}

/// Returns what of a lock was explored with one order only of two reads of a word; `None`
/// if nothing was.
fn one_order(lock: &LockResult) -> Option<String> {
    let explored = lock.properties.iter().filter(|p| {
        p.checker == Checker::Loom && p.outcome != Verdict::Fails && !p.reads.reach(p.preemptions)
    });
    let (fewer, none): (Vec<_>, Vec<_>) = explored.partition(|p| p.reads != Reads::One);
    let named = |properties: &[&PropertyResult]| {
        let names: Vec<&str> = properties.iter().map(|p| p.name).collect();
        names.join(", ")
    };
    let mut parts = Vec::new();
    if !fewer.is_empty() {
        parts.push(format!(
            "with fewer preemptions than \"pre\" in {}",
            named(&fewer)
        ));
    }
    if !none.is_empty() {
        parts.push(format!("not at all in {}", named(&none)));
    }
    (!parts.is_empty()).then(|| {
        format!(
            "{}: both orders of two reads of a word were explored {}.",
            lock.name,
            parts.join("; ")
        )
    })
}

/// Returns every failure with all its steps, as tables; a line if there is none.
pub(super) fn traces(locks: &[LockResult]) -> String {
    let mut text = String::new();
    for lock in locks {
        for property in &lock.properties {
            let Some(failure) = &property.failure else {
                continue;
            };
            let steps = interleaving(&property.trace, usize::MAX);
            let (lock, name) = (&lock.name, property.name);
            write!(text, "{lock}, {name}: {failure}\n\n{steps}\n").expect("a String grows");
        }
    }
    if text.is_empty() {
        return "no promise is broken\n".to_owned();
    }
    text + LEGEND
}
