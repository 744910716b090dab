//! The report of a table of a kernel's waits, which perf or klockstat made: as far as
//! it goes.

use locklab_document::number::{grouped, percent, time};
use locklab_document::{Column, Document, Part, Section, Table, render};
use locklab_trace::{LockTable, lock_table};
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
        let cells = |row: &locklab_trace::LockRow| {
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
        if self.table.unread > 0 {
            notes.push(format!("{} lines are not read", self.table.unread));
        }
        notes
    }
}
