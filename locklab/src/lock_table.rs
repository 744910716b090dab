//! What is known of a lock, as a table and as JSON: its costs, its promises and
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

/// What is known of a lock, for machines.
pub(crate) fn row(subject: &Subject) -> Value {
    let info = &subject.info;
    json!({
        "name": info.name,
        "summary": info.summary,
        "bytes": subject.bytes,
        "bytes_per_waiter": info.bytes_per_waiter,
        "context_free": subject.context_free,
        "fifo": info.fairness == Fairness::Fifo,
        "fairness": fairness(info.fairness),
        "numa_aware": info.numa_aware,
        "recursive": info.recursive,
        "try_lock": info.try_lock,
        "timeout": info.timeout,
        "parks": info.parks,
        "readers_share": info.readers_share,
        "shared_memory": info.shared_memory,
        "max_cpus": (info.max_cpus < usize::MAX).then_some(info.max_cpus),
        "paper": info.paper,
        "peer": subject.peer,
        "works_in": subject::WORLDS
            .iter()
            .zip(subject.works_in(can_be_simulated))
            .filter_map(|((_, name), works)| works.then_some(*name))
            .collect::<Vec<_>>(),
        "verified": record_of(info.name).map(|record| json!({
            "promises": record.promises,
            "preemptions_at_least": record.preemptions,
            "executions": record.executions,
            "random_schedules": record.schedules,
            "mutants": record.mutants,
            "killed": record.killed,
        })),
    })
}

fn record_of(name: &str) -> Option<Record> {
    let mut records = recorded().into_iter();
    records.find(|record| record.name == name && record.is_current())
}

/// How a lock of the catalogue is verified: the findings of the run that is
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

/// The meaning of the columns.
const LEGEND: &str = "bytes: of the lock. wait: bytes that each waiter adds. order: who is \
                      next (fifo; bound, a waiter may be overtaken so often and no more; none). \
                      ctx: a thread brings a context, such as a node. NUMA: prefers a waiter of \
                      the same node. rec: recursive. try, time: try_lock, timeout. park: a waiter \
                      may sleep. shm: works between processes (--processes). msr: where it works: \
                      m in a matrix here, s in a simulated one (--on MACHINE), r under an \
                      unmodified program ('locklab run').";

/// The names of the columns, each with its width: together they fill the page.
const COLUMNS: [(&str, usize); 12] = [
    ("lock", 20),
    ("bytes", 5),
    ("wait", 4),
    ("order", 5),
    ("ctx", 3),
    ("NUMA", 4),
    ("rec", 3),
    ("try", 3),
    ("time", 4),
    ("park", 4),
    ("shm", 3),
    ("msr", 3),
];

/// A table of these locks, then a paragraph on each.
pub(crate) fn table(asked: &[Subject]) -> String {
    let columns = COLUMNS.map(|(title, width)| match title {
        "bytes" | "wait" => Column::new(title, width),
        _ => Column::words(title, width),
    });
    let rows = asked.iter().map(cells).collect();
    let mut page = Page::default();
    page.paragraph(LEGEND);
    for subject in asked {
        let info = &subject.info;
        page.blank();
        page.paragraph(info.name);
        let mut lines = vec![info.summary.to_owned()];
        if let Fairness::Bounded(how) = info.fairness {
            lines.push(format!("order: {how}"));
        }
        if !subject.peer {
            lines.push(verified(info.name));
        }
        if !info.paper.is_empty() {
            lines.push(format!("[{}]", info.paper));
        }
        for line in lines {
            page.hanging("    ", &line);
        }
    }
    let table = render::table(&Table::new(columns.into(), rows));
    format!("{table}\n{}", page.finish())
}

/// The row of a lock.
fn cells(subject: &Subject) -> Vec<String> {
    let info = &subject.info;
    let order = match info.fairness {
        Fairness::Fifo => "fifo",
        Fairness::Bounded(_) => "bound",
        Fairness::Unfair => "none",
    };
    let mark = |yes: bool| if yes { "x" } else { "." }.to_owned();
    let worlds = subject::WORLDS
        .iter()
        .zip(subject.works_in(can_be_simulated));
    let worlds = worlds.map(|((letter, _), works)| if works { *letter } else { '.' });
    vec![
        shortened(info.name),
        subject.bytes.to_string(),
        info.bytes_per_waiter.to_string(),
        order.to_owned(),
        mark(!subject.context_free),
        mark(info.numa_aware),
        mark(info.recursive),
        mark(info.try_lock),
        mark(info.timeout),
        mark(info.parks),
        mark(info.shared_memory),
        worlds.collect(),
    ]
}

/// A name that fits its column: of a long path the end.
fn shortened(name: &str) -> String {
    let (_, room) = COLUMNS[0];
    match name.chars().count() {
        length if length > room => {
            let end: String = name.chars().skip(length - (room - 2)).collect();
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
        assert_eq!(ends("mcs"), "msr");
        assert_eq!(ends("futex"), "msr");
        assert_eq!(ends("std"), "ms.");
        assert_eq!(ends("std-rwlock"), "m..");
        assert_eq!(ends("pthread"), "msr");
        let rwlock = subject::find("std-rwlock").unwrap();
        assert_eq!(row(&rwlock)["works_in"], json!(["matrix"]));
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
