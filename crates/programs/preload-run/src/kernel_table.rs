//! The report of a table of a kernel's waits, which perf or klockstat made: as far as
//! it goes.

use locklab_document::number::{grouped, percent, time};
use locklab_document::{Column, Document, Part, Section, Table, render};
use locklab_trace::{LockRow, LockTable, lock_table};
use serde_json::{Value, json};
use std::path::Path;

/// Rows that the text shows.
const MOST: usize = 20;

/// A table of a kernel's waits, from a file.
#[derive(Clone, Debug)]
pub struct KernelTable {
    table: LockTable,
    file: String,
}

impl KernelTable {
    /// Returns the table in a file, if it is a text with one.
    #[must_use]
    pub fn read(file: &Path) -> Option<Self> {
        let bytes = std::fs::read(file).ok()?;
        let table = lock_table(std::str::from_utf8(&bytes).ok()?)?;
        Some(Self {
            table,
            file: file.display().to_string(),
        })
    }

    /// Returns the report as text.
    #[must_use]
    pub fn text(&self) -> String {
        let LockTable {
            program, ref rows, ..
        } = self.table;
        let mut document = Document {
            title: format!("Locks waited for, from {}", self.file),
            head: vec![(
                "Figures".into(),
                format!("a table of {program}; read, not measured here"),
            )],
            ..Document::default()
        };
        let mut head = Section::new("").prose(self.verdict());
        for note in self.notes() {
            head = head.note(note);
        }
        document.push(head);
        let all = self.waited();
        let cells = |row: &LockRow| {
            vec![
                row.name.clone(),
                match row.kind.is_empty() {
                    true => row.lock.clone(),
                    false => row.kind.clone(),
                },
                grouped(row.count),
                format!("{} %", percent(100.0 * row.waited_ns / all.max(1.0))),
                time(row.waited_ns / row.count.max(1) as f64),
                time(row.longest_ns),
            ]
        };
        let columns = vec![
            Column::words("Caller or lock", 24),
            Column::words("Lock", 8),
            Column::new(
                if self.table.counts_all {
                    "Acquired"
                } else {
                    "Waits"
                },
                8,
            ),
            Column::new("Of all", 6),
            Column::new("Mean", 7),
            Column::new("Longest", 7),
        ];
        let rows = rows.iter().take(MOST).map(cells).collect();
        document.push(Section::new("Where").with(Part::Table(Table::new(columns, rows))));
        render::text(&document, render::Colour::for_stdout())
    }

    /// Returns the report for programs.
    #[must_use]
    pub fn json(&self) -> Value {
        let rows = self.table.rows.iter().map(|row| {
            json!({
                "name": row.name,
                "kind": row.kind,
                "lock": row.lock,
                "slab": row.slab,
                "count": row.count,
                "waited_ns": row.waited_ns,
                "longest_ns": row.longest_ns,
            })
        });
        json!({
            "schema": 1,
            "kind": "lock_table",
            "provenance": { "source": "files", "name": self.table.program },
            "counts_all": self.table.counts_all,
            "rows": rows.collect::<Vec<_>>(),
            "verdict": self.verdict(),
            "notes": self.notes(),
        })
    }

    fn waited(&self) -> f64 {
        self.table.rows.iter().map(|row| row.waited_ns).sum::<f64>() + 0.0
    }

    fn verdict(&self) -> String {
        let all = self.waited();
        let hottest = self.table.rows.iter();
        match hottest.max_by(|a, b| a.waited_ns.total_cmp(&b.waited_ns)) {
            Some(row) if all > 0.0 => format!(
                "{} of waiting in all; {} has {} % of it.",
                time(all),
                row.name,
                percent(100.0 * row.waited_ns / all)
            ),
            _ => "It has no wait.".into(),
        }
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = vec![
            "a table has sums: who held a lock and for how long is not in it, so nothing says \
             what another lock would gain; 'perf script' of 'perf lock record' has more"
                .to_owned(),
        ];
        if self.table.counts_all {
            notes.push("klockstat counts every acquisition, whether it waited or not".into());
        }
        if let Some(row) = self.table.rows.iter().find(|row| !row.slab.is_empty()) {
            notes.push(format!(
                "{} is a lock in an object of the slab cache {}, of which there may be many",
                row.name, row.slab
            ));
        }
        let unnamed = self
            .table
            .rows
            .iter()
            .filter(|row| row.name.starts_with("0x"));
        match unnamed.count() {
            0 => {}
            n => notes.push(format!(
                "{} no name: perf names the slab cache of a lock's object with -b -l from Linux \
                 6.14 on, and no tracepoint has it",
                match n {
                    1 => "1 lock has".to_owned(),
                    n => format!("{n} locks have"),
                }
            )),
        }
        match self.table.unread {
            0 => {}
            1 => notes.push("1 line is not read".into()),
            n => notes.push(format!("{n} lines are not read")),
        }
        notes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(text: &str) -> KernelTable {
        KernelTable {
            table: lock_table(text).unwrap(),
            file: "waits.txt".into(),
        }
    }

    #[test]
    fn the_report_says_who_waits_most_and_what_a_table_cannot_say() {
        let by_lock = table(
            " contended   total wait     max wait     avg wait            address   symbol

         9     30.00 us      3.00 us      3.33 us   ffff9d0409d6f9a8   &task_struct (spinlock)
         2     10.00 us      1.93 us      5.00 us   ffff9d7804b992d8    (mutex)
 what is this
",
        );
        let text = by_lock.text();
        let words: Vec<&str> = text.split_whitespace().collect();
        let text = words.join(" ");
        for part in [
            "Locks waited for, from waits.txt",
            "a table of perf lock contention; read, not measured here",
            "40.0 µs of waiting in all; &task_struct has 75 % of it.",
            "&task_struct spinlock 9 75 %",
            "0xffff9d7804b992d8 mutex 2 25 %",
            "&task_struct is a lock in an object of the slab cache task_struct",
            "who held a lock and for how long is not in it",
            "1 lock has no name",
            "1 line is not read",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        let json = by_lock.json();
        assert_eq!(json["rows"][0]["slab"], "task_struct");
        assert_eq!(json["rows"][1]["waited_ns"], 10_000.0);
        assert_eq!(
            json["verdict"],
            "40.0 µs of waiting in all; &task_struct has 75 % of it."
        );
    }

    #[test]
    fn a_table_without_a_wait_says_so() {
        let none = table(" contended   total wait     max wait     avg wait   type   caller\n");
        assert_eq!(none.json()["verdict"], "It has no wait.");
        let counted = table(
            "   Caller  Avg Wait    Count   Max Wait   Total Wait
        pipe_read+0x6a    155 ns    33052   115.5 us       5.1 ms
",
        );
        assert!(counted.text().contains("Acquired"));
        assert!(
            counted.json()["notes"][1]
                .as_str()
                .unwrap()
                .contains("every acquisition")
        );
    }
}
