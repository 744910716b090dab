//! The report of a table of a kernel's waits, which perf or klockstat made: as far as
//! it goes.

use locklab_document::contention_profile::{ContentionProfile, Counts, Used};
use locklab_document::number::{percent, time};
use locklab_document::{Document, Section, render};
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
        let rows: Vec<Used> = rows.iter().map(|row| self.used(row)).collect();
        document.push(ContentionProfile::section("Where", &rows, MOST));
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

    /// Returns a row as every report on locks has it.
    fn used(&self, row: &LockRow) -> Used {
        let kind = match row.kind.is_empty() {
            true => &row.lock,
            false => &row.kind,
        };
        Used {
            name: row.name.clone(),
            kind: Some(kind.clone()),
            counts: Counts {
                acquired: self.table.counts_all.then_some(row.count),
                contended: if self.table.counts_all { 0 } else { row.count },
                waited_ns: Some(row.waited_ns),
                longest_ns: Some(row.longest_ns),
                held_ns: None,
            },
            ..Used::default()
        }
    }

    fn waited(&self) -> f64 {
        self.table.rows.iter().map(|row| row.waited_ns).sum::<f64>() + 0.0
    }

    fn verdict(&self) -> String {
        let all = self.waited();
        let hottest = self.table.rows.iter();
        match hottest.max_by(|a, b| a.waited_ns.total_cmp(&b.waited_ns)) {
            Some(row) if all > 0.0 => format!(
                "The waits took {} in all. {} % of that was for {}.",
                time(all),
                percent(100.0 * row.waited_ns / all),
                row.name
            ),
            _ => "It has no wait.".into(),
        }
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = vec![
            "A table has only sums. Who held a lock, and for how long, is not in it, so nothing \
             says what another lock would gain. 'perf script' of 'perf lock record' has more."
                .to_owned(),
        ];
        if self.table.counts_all {
            notes.push("klockstat counts every acquisition, whether it waited or not.".into());
        }
        if let Some(row) = self.table.rows.iter().find(|row| !row.slab.is_empty()) {
            notes.push(format!(
                "{} is a lock in an object of the slab cache {}, of which there may be many.",
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
                "{} no name. From Linux 6.14 on, perf names the slab cache of a lock's object with \
                 -b -l. No tracepoint has it.",
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

    fn text(table: &str) -> String {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("table.txt");
        std::fs::write(&file, table).unwrap();
        KernelTable::read(&file).unwrap().text()
    }

    #[test]
    fn its_rows_are_those_of_every_report_on_locks() {
        let text = text(
            " contended   total wait     max wait     avg wait         type   caller\n\n         4     \
             8.00 us      3.00 us      2.00 us     spinlock   do_fstat+0x1b\n",
        );
        for words in [
            "contended",
            "of all",
            "100 %",
            "2.00 µs",
            "3.00 µs",
            "spinlock",
        ] {
            assert!(text.contains(words), "no {words}:\n{text}");
        }
    }
}
