//! The report as text: the shape that kernel lists use.

use super::{Report, axis, caveats, fairness, label, words};
use crate::report::page::Page;
use crate::report::shade::{Shade, mark};
use crate::report::{COLUMNS, Colour, number};
use crate::verdicts::JudgedCell;

/// The report in lines of at most 72 columns.
#[must_use]
pub fn text(report: &Report, colour: Colour) -> String {
    let mut page = Page::default();
    let measured = report.measured;
    page.title(&words::title(&measured.spec));
    page.facts(&[
        ("Figures".into(), words::source(&measured.provenance)),
        (
            "Cells".into(),
            "operations per second, all threads: experiment / baseline".into(),
        ),
    ]);
    page.blank();
    for sentence in words::result(report) {
        page.paragraph(&sentence);
    }
    page.blank();
    let mut facts = measured.environment.clone();
    facts.extend(words::set_up(report));
    page.facts(&facts);

    let groups = report.verdicts.by_class();
    for (class, cells) in &groups {
        for length in axis(cells, |c| c.point.non_critical) {
            let block: Vec<&JudgedCell> = cells
                .iter()
                .filter(|c| c.point.non_critical == length)
                .copied()
                .collect();
            let placed = class.map_or_else(String::new, |c| format!(", CPUs placed as \"{c}\""));
            page.heading(&format!(
                "Non-critical length {length}{}{placed}",
                report.unit()
            ));
            table(&mut page, report, &block, colour);
        }
    }
    page.blank();
    legend(&mut page, report);
    page.paragraph(&words::method(report));
    fairness::tables(&mut page, report);
    page.heading("Caveats");
    if let Some(unclear) = caveats::unclear(report) {
        page.item(&unclear);
    }
    for caveat in caveats::all(report) {
        page.item(&caveat);
    }
    page.finish()
}

/// Rows threads, columns critical length; as many tables as the width takes.
fn table(page: &mut Page, report: &Report, cells: &[&JudgedCell], colour: Colour) {
    let threads = axis(cells, |c| c.point.threads);
    let lengths = axis(cells, |c| c.point.critical);
    // A ratio of four, or rarely five, then its mark and its flag.
    let wide = cells
        .iter()
        .filter_map(|c| c.ratio())
        .any(|r| number::ratio(r.value).len() > 4);
    let width = if wide { 8 } else { 7 };
    let head = 8;
    for columns in lengths.chunks((COLUMNS - head) / width) {
        let row = |head: String, cells: Vec<(String, Option<Shade>)>| {
            let mut line = format!("{head:>7}|");
            for (text, shade) in &cells {
                let text = format!("{text:>width$}");
                match shade {
                    Some(shade) if colour == Colour::Ansi => {
                        let style = shade.style();
                        line.push_str(&format!("{style}{text}{style:#}"));
                    }
                    _ => line.push_str(&text),
                }
            }
            (line, head.len().max(7) + 1 + cells.len() * width)
        };
        let title = format!("critical length{}", report.unit());
        page.row(&format!("{:>7}| {title}", ""), 9 + title.len());
        // The last two columns of a cell are its mark and its flag.
        let names = columns.iter().map(|n| (format!("{}  ", label(*n)), None));
        let (line, seen) = row("threads".into(), names.collect());
        page.row(&line, seen);
        for n in &threads {
            let row_cells: Vec<Option<&JudgedCell>> = columns
                .iter()
                .map(|length| {
                    let at =
                        |c: &&&JudgedCell| c.point.threads == *n && c.point.critical == *length;
                    cells.iter().find(at).copied()
                })
                .collect();
            // A row of dots says nothing.
            if row_cells.iter().all(Option::is_none) {
                continue;
            }
            let crowded = row_cells.iter().flatten().any(|c| c.oversubscribed);
            let head = format!("{}{}", label(*n as u64), if crowded { 'o' } else { ' ' });
            let (line, seen) = row(head, row_cells.into_iter().map(cell).collect());
            page.row(&line, seen);
        }
        if columns.last() != lengths.last() {
            page.blank();
        }
    }
}

fn cell(cell: Option<&JudgedCell>) -> (String, Option<Shade>) {
    let Some(cell) = cell else {
        return (".  ".into(), None);
    };
    let verdict = &cell.judged.verdict;
    let ratio = cell.ratio().map(|r| r.value);
    let text = format!(
        "{}{}{}",
        ratio.map(number::ratio).unwrap_or_default(),
        mark(verdict),
        if cell.streaky() { 's' } else { ' ' }
    );
    (text, Some(Shade::of(verdict, ratio)))
}

/// Only the signs that occur, each with its meaning.
fn legend(page: &mut Page, report: &Report) {
    let cells = &report.verdicts.cells;
    let delta = number::percent(100.0 * report.verdicts.settings.delta);
    let has = |word: &str| cells.iter().any(|c| c.judged.verdict.word() == word);
    let mut signs = vec![
        ("+", "better".to_owned(), true),
        ("-", "worse".to_owned(), true),
        ("=", format!("shown flat (within {delta} %)"), true),
        (
            "?",
            "unclear: neither shown to differ nor to be flat".to_owned(),
            has("unclear"),
        ),
        ("!", "invalid".to_owned(), has("invalid")),
        (
            ".",
            "not measured here".to_owned(),
            !report.verdicts.missing.is_empty() || report.verdicts.by_class().len() > 1,
        ),
        (
            "o",
            "more threads than CPUs".to_owned(),
            cells.iter().any(|c| c.oversubscribed),
        ),
        (
            "s",
            "handoffs point the other way, see Caveats".to_owned(),
            cells.iter().any(JudgedCell::streaky),
        ),
    ];
    signs.retain(|(_, _, occurs)| *occurs);
    let text: Vec<String> = signs.iter().map(|(s, m, _)| format!("{s} {m}")).collect();
    page.paragraph(&text.join("; "));
}
