//! A document as Markdown: what a change request or a build log shows. The
//! summary stands open, the rest is folded. Charts are left out.

use crate::number;
use crate::page::one_line;
use crate::{Document, Grid, Level, Medium, MetricRow, Part, Section, Table, Tone};
use std::fmt::Write as _;

/// Returns the whole document.
#[must_use]
pub fn markdown(document: &Document) -> String {
    let mut out = format!("## {}\n\n", escape(&document.title));
    for (name, value) in &document.head {
        let _ = writeln!(out, "**{}:** {}  ", escape(name), escape(value));
    }
    for section in &document.sections {
        show_section(&mut out, section);
    }
    out
}

fn show_section(out: &mut String, section: &Section) {
    let parts: Vec<&Part> = section.parts.iter().filter(|p| !p.is_chart()).collect();
    let only_charts = parts.is_empty() && !section.parts.is_empty();
    if section.medium == Medium::Page || only_charts {
        return;
    }
    // What explains is folded; what was found is not.
    let folded =
        section.folded || (!parts.is_empty() && parts.iter().all(|p| matches!(p, Part::Facts(_))));
    let heading = escape(&section.heading);
    if folded {
        let summary = if heading.is_empty() {
            "Set-up"
        } else {
            &heading
        };
        let _ = writeln!(out, "\n<details><summary>{summary}</summary>");
    } else if !heading.is_empty() {
        let sign = match section.level {
            Level::Major => "###",
            Level::Minor => "####",
        };
        let _ = writeln!(out, "\n{sign} {heading}");
    }
    for part in parts {
        out.push('\n');
        show(out, part);
    }
    if folded {
        out.push_str("\n</details>\n");
    }
}

fn show(out: &mut String, part: &Part) {
    match part {
        Part::Facts(facts) => {
            let rows = facts
                .iter()
                .map(|(name, value)| vec![escape(name), escape(value)]);
            table(out, &["".into(), "".into()], rows);
        }
        Part::Prose(text, Tone::Lead) => {
            let _ = writeln!(out, "**{}**", escape(text));
        }
        Part::Prose(text, _) => {
            let _ = writeln!(out, "{}", escape(text));
        }
        Part::Items(items) => {
            for item in items {
                let _ = writeln!(out, "- {}", escape(item));
            }
        }
        Part::Metrics(rows) => metrics(out, rows),
        Part::Table(t) => show_table(out, t),
        Part::Grid(grid) => show_grid(out, grid),
        Part::Legend(signs) => {
            let signs: Vec<String> = signs
                .iter()
                .map(|(sign, meaning)| format!("`{sign}` {}", escape(meaning)))
                .collect();
            let _ = writeln!(out, "{}", signs.join("; "));
        }
        Part::Preformatted(text) => {
            for line in text.lines() {
                let _ = writeln!(out, "    {line}");
            }
        }
        Part::Curves(_) | Part::Lines(_) | Part::Intervals(_) | Part::Timeline(_) => {}
    }
}

fn metrics(out: &mut String, rows: &[MetricRow]) {
    let tested = rows.iter().any(|row| !row.test.is_empty());
    let test = |text: &str| tested.then(|| text.to_owned());
    let head = ["Metric", "Baseline", "Experiment", "Delta", "Verdict"].map(String::from);
    let head: Vec<String> = head.into_iter().chain(test("Test")).collect();
    let row = |row: &MetricRow| {
        let cells = [
            escape(&row.label()),
            number::or_dash(row.baseline, number::figure),
            number::or_dash(row.experiment, number::figure),
            row.delta_text(),
            row.word().to_owned(),
        ];
        cells.into_iter().chain(test(&row.test)).collect()
    };
    table(out, &head, rows.iter().map(row));
}

fn show_table(out: &mut String, t: &Table) {
    let head: Vec<String> = t
        .groups
        .iter()
        .flat_map(|g| {
            g.columns
                .iter()
                .map(|c| escape(format!("{} {}", g.title, c.title).trim()))
        })
        .collect();
    let rows = t
        .rows
        .iter()
        .map(|row| row.iter().map(|c| escape(c)).collect());
    table(out, &head, rows);
}

fn show_grid(out: &mut String, grid: &Grid) {
    let mut head = vec![escape(&grid.row_title)];
    head.extend(grid.columns.iter().map(|c| escape(c)));
    let rows = grid.rows.iter().map(|row| {
        let mut cells = vec![escape(&format!("{}{}", row.name, row.flag))];
        cells.extend(row.cells.iter().map(|cell| match cell {
            Some(cell) => escape(&format!("{}{}", cell.value, cell.mark)),
            None => ".".into(),
        }));
        cells
    });
    if !grid.column_title.is_empty() {
        let _ = writeln!(out, "{}:\n", escape(&grid.column_title));
    }
    table(out, &head, rows);
}

fn table(out: &mut String, head: &[String], rows: impl Iterator<Item = Vec<String>>) {
    let _ = writeln!(out, "| {} |", head.join(" | "));
    let rule: Vec<&str> = head
        .iter()
        .enumerate()
        .map(|(i, _)| if i == 0 { "---" } else { "--:" })
        .collect();
    let _ = writeln!(out, "| {} |", rule.join(" | "));
    for row in rows {
        let _ = writeln!(out, "| {} |", row.join(" | "));
    }
}

/// Returns one line in which nothing is markup.
fn escape(text: &str) -> String {
    let mut out = String::new();
    for c in one_line(text).chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '#' | '~' => {
                out.push('\\');
                out.push(c);
            }
            c => out.push(c),
        }
    }
    out
}
