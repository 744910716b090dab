//! Prints what is known of a lock, as a table and as JSON: its costs, its promises and
//! how they were verified.
//!
//! Everything comes from the lock itself and from the record of the checker's
//! last complete run; nothing is stated here.

use locklab_document::page::Page;
use locklab_document::{Column, Table, number, render};
use locklab_locks::Fairness;
use locklab_native::subject::{self, Subject};
use locklab_sim::can_be_simulated;
use locklab_verify::record::{Record, recorded};
use serde_json::{Value, json};

/// A column of the table, with its field of the JSON: all that one needs, so
/// that a new one is one entry of [`COLUMNS`].
struct Shown {
    title: &'static str,
    width: usize,
    /// Its line of the legend; empty where the title says it.
    meaning: &'static str,
    /// The field's name.
    field: &'static str,
    value: fn(&Subject) -> Value,
    /// The cell, where it is not the value itself: a number as it is, a truth
    /// as a mark.
    cell: Option<fn(&Subject) -> String>,
}

const fn shown(
    (title, width): (&'static str, usize),
    meaning: &'static str,
    field: &'static str,
    value: fn(&Subject) -> Value,
) -> Shown {
    Shown {
        title,
        width,
        meaning,
        field,
        value,
        cell: None,
    }
}

/// The columns from left to right; together they fill the page.
const COLUMNS: [Shown; 12] = [
    Shown {
        cell: Some(|lock| shortened(lock.info.name)),
        ..shown(("lock", NAME_WIDTH), "", "name", |lock| {
            lock.info.name.into()
        })
    },
    shown(("bytes", 5), "of the lock", "bytes", |lock| {
        lock.bytes.into()
    }),
    shown(
        ("wait", 4),
        "bytes that each waiter adds",
        "bytes_per_waiter",
        |lock| lock.info.bytes_per_waiter.into(),
    ),
    Shown {
        cell: Some(|lock| order(lock.info.fairness).into()),
        ..shown(
            ("next", 4),
            "the order of waiters (fifo; cap, a waiter may be overtaken so often and no more; none)",
            "fairness",
            |lock| fairness(lock.info.fairness).into(),
        )
    },
    Shown {
        cell: Some(|lock| mark(!lock.context_free)),
        ..shown(
            ("ctx", 3),
            "a thread brings a context, such as a node",
            "context_free",
            |lock| lock.context_free.into(),
        )
    },
    shown(
        ("NUMA", 4),
        "prefers a waiter of the same node",
        "numa_aware",
        |lock| lock.info.numa_aware.into(),
    ),
    shown(("rec", 3), "recursive", "recursive", |lock| {
        lock.info.recursive.into()
    }),
    shown(("try", 3), "try_lock", "try_lock", |lock| {
        lock.info.try_lock.into()
    }),
    shown(("time", 4), "timeout", "timeout", |lock| {
        lock.info.timeout.into()
    }),
    shown(("park", 4), "a waiter may sleep", "parks", |lock| {
        lock.info.parks.into()
    }),
    shown(
        ("shm", 3),
        "works between processes (processes)",
        "shared_memory",
        |lock| lock.info.shared_memory.into(),
    ),
    Shown {
        cell: Some(|lock| {
            let worlds = works_in(lock);
            let letters = worlds.map(|(letter, _, works)| if works { letter } else { '.' });
            letters.into_iter().collect()
        }),
        ..shown(
            ("msvr", 4),
            "where it works: m in a matrix here, where a library's lock is the library's own; s in \
             a simulated one (--on MACHINE) and v under the model checker ('locklab verify'), \
             where it is a model of that; r under an unmodified program ('locklab run')",
            "works_in",
            |lock| {
                let worlds = works_in(lock).into_iter().filter(|(_, _, works)| *works);
                worlds.map(|(_, name, _)| name).collect()
            },
        )
    },
];

const NAME_WIDTH: usize = 20;

/// Returns what is known of a lock, for machines: the columns, and what the paragraph on
/// it says.
pub(crate) fn row(subject: &Subject) -> Value {
    let info = &subject.info;
    let mut row = json!({
        "summary": info.summary,
        "fifo": info.fairness == Fairness::Fifo,
        "readers_share": info.readers_share,
        "max_cpus": (info.max_cpus < usize::MAX).then_some(info.max_cpus),
        "paper": info.paper,
        "peer": subject.peer,
        "verified": record_of(info.name).map(|record| json!({
            "promises": record.promises,
            "preemptions_at_least": record.preemptions,
            "executions": record.executions,
            "random_schedules": record.schedules,
            "mutants": record.mutants,
            "killed": record.killed,
        })),
    });
    for column in &COLUMNS {
        row[column.field] = (column.value)(subject);
    }
    row
}

/// Returns the worlds, each with its letter, its name and whether the lock works there.
fn works_in(subject: &Subject) -> [(char, &'static str, bool); 4] {
    let name = subject.info.name;
    let verified = locklab_verify::names().contains(&name);
    let works = subject.works_in(can_be_simulated(name), verified);
    std::array::from_fn(|i| (subject::WORLDS[i].0, subject::WORLDS[i].1, works[i]))
}

fn record_of(name: &str) -> Option<Record> {
    let mut records = recorded().into_iter();
    records.find(|record| record.name == name && record.is_current())
}

/// Returns how a lock of the catalogue is verified: the findings of the run that is
/// recorded with this source.
fn verified(name: &str) -> String {
    let Some(record) = record_of(name) else {
        if !locklab_verify::names().contains(&name) {
            return format!("not verified: 'locklab verify {name}' explores its promises");
        }
        return "stress on real threads; no complete run of 'locklab verify' is recorded".into();
    };
    let bound = record.preemptions.map_or_else(
        || "any number of preemptions".to_owned(),
        |bound| format!("{} or more", number::count(bound, "preemption")),
    );
    format!(
        "model-checked: {} promises, {bound}; {} of {} mutants killed; \
         {} random schedules of {} threads; stress",
        record.promises,
        record.killed,
        record.mutants,
        record.schedules,
        locklab_verify::random::THREADS
    )
}

fn fairness(fairness: Fairness) -> &'static str {
    match fairness {
        Fairness::Fifo => "first come, first served",
        Fairness::Bounded(how) => how,
        Fairness::Unfair => "none: a waiter may be overtaken for ever",
    }
}

/// Returns the meaning of the columns.
fn legend() -> String {
    let explained = COLUMNS.iter().filter(|column| !column.meaning.is_empty());
    let lines: Vec<String> = explained
        .map(|column| format!("{}: {}.", column.title, column.meaning))
        .collect();
    lines.join(" ")
}

fn order(fairness: Fairness) -> &'static str {
    match fairness {
        Fairness::Fifo => "fifo",
        Fairness::Bounded(_) => "cap",
        Fairness::Unfair => "none",
    }
}

fn mark(yes: bool) -> String {
    if yes { "x" } else { "." }.to_owned()
}

/// Returns a table of these locks, then a paragraph on each.
pub(crate) fn table(asked: &[Subject]) -> String {
    let columns = COLUMNS.iter().map(|column| {
        let is_number = asked.iter().all(|lock| (column.value)(lock).is_number());
        match is_number {
            true => Column::new(column.title, column.width),
            false => Column::words(column.title, column.width),
        }
    });
    let rows = asked.iter().map(cells).collect();
    let mut page = Page::default();
    page.paragraph(&legend());
    for subject in asked {
        let info = &subject.info;
        page.blank();
        page.paragraph(info.name);
        let mut lines = vec![info.summary.to_owned()];
        if let Fairness::Bounded(how) = info.fairness {
            lines.push(format!("order: {how}"));
        }
        let [_, _, (.., is_verified), _] = works_in(subject);
        if is_verified {
            let how = verified(info.name);
            lines.push(match subject.peer {
                // What runs on real threads is the library's own.
                true => format!("our model of it: {}", how.trim_end_matches("; stress")),
                false => how,
            });
        }
        if !info.paper.is_empty() {
            lines.push(format!("[{}]", info.paper));
        }
        for line in lines {
            page.hanging("    ", &line);
        }
    }
    let table = render::table(&Table::new(columns.collect(), rows));
    format!("{table}\n{}", page.finish())
}

/// Returns the row of a lock.
fn cells(subject: &Subject) -> Vec<String> {
    let cell = |column: &Shown| match (column.cell, (column.value)(subject)) {
        (Some(cell), _) => cell(subject),
        (None, Value::Bool(yes)) => mark(yes),
        (None, value) => value.to_string(),
    };
    COLUMNS.iter().map(cell).collect()
}

/// Returns a name that fits its column: of a long path the end.
fn shortened(name: &str) -> String {
    match name.chars().count() {
        length if length > NAME_WIDTH => {
            let end: String = name.chars().skip(length - (NAME_WIDTH - 2)).collect();
            format!("..{end}")
        }
        _ => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use locklab_sim::library_locks;

    #[test]
    fn every_lock_has_a_row_and_the_promised_fields() {
        let all = subject::all();
        let text = table(&all);
        for subject in &all {
            assert!(
                text.lines()
                    .any(|line| line.starts_with(&format!("{} ", subject.info.name)))
            );
            let row = row(subject);
            for field in ["name", "bytes", "fifo", "numa_aware", "recursive", "paper"] {
                assert!(!row[field].is_null(), "{field} of {}", subject.info.name);
            }
        }
    }

    #[test]
    fn the_table_says_where_each_lock_works() {
        let text = table(&subject::all());
        let ends = |lock: &str| {
            let start = format!("{lock} ");
            let line = text.lines().find(|line| line.starts_with(&start));
            line.unwrap().split(' ').next_back().unwrap().to_owned()
        };
        assert_eq!(ends("mcs"), "msvr");
        assert_eq!(ends("futex"), "msvr");
        assert_eq!(ends("std"), "msv.");
        assert_eq!(ends("std-rwlock"), "msv.");
        assert_eq!(ends("go-mutex"), ".sv.");
        assert_eq!(ends("pthread"), "ms.r");
        let rwlock = subject::find("std-rwlock").unwrap();
        let worlds = json!(["matrix", "matrix --on", "verify"]);
        assert_eq!(row(&rwlock)["works_in"], worlds);
        // Whatever the simulator has of a library has the name of what is measured.
        for name in library_locks() {
            assert!(subject::find(name).is_ok(), "{name}");
        }
    }

    #[test]
    fn the_table_can_be_mailed() {
        let text = table(&subject::all());
        let long: Vec<&str> = text.lines().filter(|line| line.len() > 72).collect();
        assert!(long.is_empty(), "{long:?}");
        // One line a lock, whose columns are under their titles.
        let rows: Vec<&str> = text.lines().take_while(|line| !line.is_empty()).collect();
        assert_eq!(rows.len(), 1 + subject::all().len(), "{text}");
        assert!(rows.iter().all(|row| row.len() == 72), "{text}");
        assert_eq!(shortened("./a/folder/with/mine.c"), "..folder/with/mine.c");
    }
}
