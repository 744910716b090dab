//! What is known of a lock, as a table and as JSON: its costs, its promises and
//! how they were verified.
//!
//! Everything comes from the lock itself and from the record of the checker's
//! last complete run; nothing is stated here.

use locklab_document::number;
use locklab_locks::Fairness;
use locklab_native::subject::{self, Subject};
use locklab_verify::record::{Record, recorded};
use serde_json::{Value, json};
use std::fmt::Write as _;

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
            .zip(subject.works_in())
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

/// A table of these locks, then a paragraph on each.
pub(crate) fn table(asked: &[Subject]) -> String {
    let mut text = format!(
        "{:<16} bytes +wait order   free NUMA rec try time park shm msr\n",
        "lock"
    );
    for subject in asked {
        let info = &subject.info;
        let order = match info.fairness {
            Fairness::Fifo => "fifo",
            Fairness::Bounded(_) => "bounded",
            Fairness::Unfair => "unfair",
        };
        let mark = |yes: bool| if yes { "x" } else { "." };
        let worlds: String = subject::WORLDS
            .iter()
            .zip(subject.works_in())
            .map(|((letter, _), works)| if works { *letter } else { '.' })
            .collect();
        // A long name takes its columns from the column of bytes per waiter.
        let wait = 6_usize.saturating_sub(info.name.len().saturating_sub(16));
        let _ = writeln!(
            text,
            "{:<16} {:>5}{:>wait$} {order:<7} {:<4} {:<4} {:<3} {:<3} {:<4} {:<4} {:<3} {worlds}",
            info.name,
            subject.bytes,
            info.bytes_per_waiter,
            mark(subject.context_free),
            mark(info.numa_aware),
            mark(info.recursive),
            mark(info.try_lock),
            mark(info.timeout),
            mark(info.parks),
            mark(info.shared_memory),
        );
    }
    text.push_str(
        "\n\
         bytes of the lock; +wait: bytes that each waiter adds; order: who is\n\
         next; free: context-free, a thread brings no node; NUMA: prefers a\n\
         waiter of the same node; rec: recursive; try, time: try_lock, timeout;\n\
         park: a waiter may sleep; shm: works between processes (--processes).\n\
         msr: where it works: m in a matrix here, s in a simulated one (--on\n\
         MACHINE), r under an unmodified program ('locklab run').\n",
    );
    for subject in asked {
        let info = &subject.info;
        let _ = writeln!(text, "\n{}", info.name);
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
            for part in textwrap::wrap(&line, 66) {
                let _ = writeln!(text, "    {part}");
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(ends("std"), "m..");
        assert_eq!(ends("pthread"), "m.r");
        let pthread = subject::find("pthread").unwrap();
        assert_eq!(row(&pthread)["works_in"], json!(["matrix", "run"]));
    }

    #[test]
    fn the_table_can_be_mailed() {
        let text = table(&subject::all());
        let long: Vec<&str> = text.lines().filter(|line| line.len() > 72).collect();
        assert!(long.is_empty(), "{long:?}");
    }
}
