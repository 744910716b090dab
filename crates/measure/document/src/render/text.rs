//! A document as text: lines of at most 72 columns of ASCII that can be
//! pasted into a mail. Charts are left out.

use super::colour::Colour;
use crate::COLUMNS;
use crate::number;
use crate::page::{Page, one_line};
use crate::{ColumnGroup, Document, Grid, GridRow, Medium, MetricRow, Part, Section, Table, Tone};
use textwrap::core::display_width;

/// Returns the whole document.
#[must_use]
pub fn text(document: &Document, colour: Colour) -> String {
    let mut page = Page::default();
    page.title(&document.title);
    page.facts(&document.head);
    page.blank();
    for section in &document.sections {
        show_section(&mut page, section, colour);
    }
    page.finish()
}

/// Returns a table alone, for a text that is no report.
#[must_use]
pub fn table(table: &Table) -> String {
    let mut page = Page::default();
    show_table(&mut page, table);
    page.finish()
}

fn show_section(page: &mut Page, section: &Section, colour: Colour) {
    let parts: Vec<&Part> = section.parts.iter().filter(|p| !p.is_chart()).collect();
    let only_charts = parts.is_empty() && !section.parts.is_empty();
    if section.medium == Medium::Page || only_charts {
        return;
    }
    if section.heading.is_empty() {
        page.blank();
    } else {
        page.heading(&section.heading);
    }
    for (i, part) in parts.into_iter().enumerate() {
        // Lines that must line up stand apart from those that flow.
        let apart = matches!(
            part,
            Part::Metrics(_) | Part::Table(_) | Part::Grid(_) | Part::Preformatted(_)
        );
        if apart && i > 0 {
            page.blank();
        }
        show(page, part, colour);
        if apart {
            page.blank();
        }
    }
}

fn show(page: &mut Page, part: &Part, colour: Colour) {
    match part {
        Part::Facts(facts) => page.facts(facts),
        Part::Prose(text, Tone::Plain | Tone::Lead | Tone::Note) => page.paragraph(text),
        Part::Items(items) => items.iter().for_each(|item| page.item(item)),
        Part::Metrics(rows) => metrics(page, rows),
        Part::Table(table) => show_table(page, table),
        Part::Grid(grid) => show_grid(page, grid, colour),
        Part::Legend(signs) => {
            let text: Vec<String> = signs.iter().map(|(s, m)| format!("{s} {m}")).collect();
            page.paragraph(&text.join("; "));
        }
        Part::Preformatted(text) => text.lines().for_each(|line| kept(page, line)),
        Part::Curves(_) | Part::Lines(_) | Part::Intervals(_) | Part::Timeline(_) => {}
    }
}

/// Writes `Metric Baseline Experiment Delta Sig`, as the kernel's own A/B reports
/// have it.
fn metrics(page: &mut Page, rows: &[MetricRow]) {
    let tested = rows.iter().any(|row| !row.test.is_empty());
    let (names, figures) = if tested { (14, 11) } else { (25, 13) };
    let line = |name: &str, b: &str, e: &str, delta: &str, sig: &str, test: &str| {
        let line = format!("{name:<names$} {b:>figures$} {e:>figures$} {delta:>9}  {sig:<6}");
        if tested {
            format!("{line} {test}")
        } else {
            line
        }
    };
    let test = if tested { "Test" } else { "" };
    let head = line("Metric", "Baseline", "Experiment", "Delta", "Sig", test);
    page.row(&head, head.len());
    for row in rows {
        let mut label = one_line(&row.label());
        if !label.is_ascii() || label.len() > names {
            page.paragraph(&label);
            label = String::new();
        }
        let figure = |x: Option<f64>| number::or_dash(x, number::figure);
        let text = line(
            &label,
            &figure(row.baseline),
            &figure(row.experiment),
            &row.delta_text(),
            row.sig(),
            &row.test,
        );
        page.row(&text, text.len());
    }
}

/// Writes a line that keeps its spaces. One that is too long continues after a
/// backslash.
fn kept(page: &mut Page, line: &str) {
    let mut rest: String = line
        .replace('\t', "    ")
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    while display_width(&rest) > COLUMNS {
        let mut width = 0;
        let end = rest.char_indices().find(|(_, c)| {
            width += display_width(c.encode_utf8(&mut [0; 4]));
            width > COLUMNS - 1
        });
        let tail = rest.split_off(end.map_or(rest.len(), |(at, _)| at.max(1)));
        let head = format!("{rest}\\");
        page.row(&head, display_width(&head));
        rest = tail;
    }
    let width = display_width(&rest);
    page.row(&rest, width);
}

/// Groups side by side with a bar between them, as many as fit; the first is
/// repeated before the others.
fn show_table(page: &mut Page, table: &Table) {
    let Some((first, others)) = table.groups.split_first() else {
        return;
    };
    let mut at = 0;
    let mut placed: Vec<Placed> = Vec::new();
    for group in std::iter::once(first).chain(others) {
        placed.push(Placed::new(group, at, &table.rows));
        at += group.columns.len();
    }
    let (first, mut others) = (&placed[0], &placed[1..]);
    loop {
        let mut width = first.width;
        let fitting = others.iter().take_while(|group| {
            width += 2 + group.width;
            width <= COLUMNS
        });
        let count = fitting.count();
        if first.width > COLUMNS || (count == 0 && !others.is_empty()) {
            return as_sentences(page, table);
        }
        let (now, later) = others.split_at(count);
        let groups: Vec<&Placed> = std::iter::once(first).chain(now).collect();
        rows_of(page, &groups, &table.rows);
        others = later;
        if others.is_empty() {
            return;
        }
        page.blank();
    }
}

/// A group of columns with the widths that they take.
struct Placed<'a> {
    group: &'a ColumnGroup,
    /// Its first column in the table.
    at: usize,
    widths: Vec<usize>,
    width: usize,
}

impl<'a> Placed<'a> {
    fn new(group: &'a ColumnGroup, at: usize, rows: &[Vec<String>]) -> Self {
        let mut widths: Vec<usize> = group
            .columns
            .iter()
            .enumerate()
            .map(|(i, column)| {
                let cells = rows.iter().filter_map(|row| row.get(at + i));
                let widest = cells.map(|text| display_width(text)).max().unwrap_or(0);
                widest.max(column.width).max(display_width(&column.title))
            })
            .collect();
        let total = |widths: &[usize]| widths.iter().sum::<usize>() + widths.len().max(1) - 1;
        let lacking = display_width(&group.title).saturating_sub(total(&widths));
        if let Some(first) = widths.first_mut() {
            *first += lacking;
        }
        Self {
            group,
            at,
            width: total(&widths),
            widths,
        }
    }

    fn line(&self, cells: impl Iterator<Item = String>) -> String {
        let places = self.widths.iter().zip(&self.group.columns);
        let cells: Vec<String> = cells
            .zip(places)
            .map(|(text, (width, column))| match column.left {
                true => left(&text, *width),
                false => right(&text, *width),
            })
            .collect();
        cells.join(" ")
    }

    fn titles(&self) -> String {
        self.line(self.group.columns.iter().map(|c| c.title.clone()))
    }
}

fn right(text: &str, width: usize) -> String {
    let gap = width.saturating_sub(display_width(text));
    format!("{}{text}", " ".repeat(gap))
}

fn left(text: &str, width: usize) -> String {
    let gap = width.saturating_sub(display_width(text));
    format!("{text}{}", " ".repeat(gap))
}

fn rows_of(page: &mut Page, groups: &[&Placed], rows: &[Vec<String>]) {
    let mut line = |cells: Vec<String>| {
        let line = cells.join(" |");
        page.row(&line, display_width(line.trim_end()));
    };
    let titled = groups.iter().any(|g| !g.group.title.is_empty());
    // Columns without a group's title are named in the upper line.
    let upper = |g: &&Placed| match g.group.title.as_str() {
        "" => g.titles(),
        title => right(title, g.width),
    };
    line(groups.iter().map(upper).collect());
    if titled {
        let lower = |g: &&Placed| match g.group.title.as_str() {
            "" => " ".repeat(g.width),
            _ => g.titles(),
        };
        line(groups.iter().map(lower).collect());
    }
    for row in rows {
        let cells = |g: &&Placed| {
            let of_group = g.at..g.at + g.widths.len();
            g.line(of_group.map(|i| row.get(i).map(|t| one_line(t)).unwrap_or_default()))
        };
        line(groups.iter().map(cells).collect());
    }
}

/// Writes a table that no line can hold.
fn as_sentences(page: &mut Page, table: &Table) {
    let titles: Vec<String> = table
        .groups
        .iter()
        .flat_map(|g| {
            g.columns
                .iter()
                .map(|c| format!("{} {}", g.title, c.title).trim().to_owned())
        })
        .collect();
    for row in &table.rows {
        let cells: Vec<String> = titles
            .iter()
            .zip(row)
            .map(|(title, cell)| format!("{title} {cell}").trim().to_owned())
            .collect();
        page.item(&cells.join(", "));
    }
}

/// Shows rows and columns of cells, as many columns as the width takes.
fn show_grid(page: &mut Page, grid: &Grid, colour: Colour) {
    // A verdict and a flag.
    const MARKS: usize = 2;
    let shown = || {
        // A row of dots has no information.
        grid.rows
            .iter()
            .filter(|row| row.cells.iter().any(Option::is_some))
    };
    let cells = || shown().flat_map(|row| row.cells.iter().flatten());
    let values = cells().map(|cell| display_width(&cell.value));
    let names = grid.columns.iter().map(|name| display_width(name));
    let width = 1 + values.chain(names).max().unwrap_or(0).max(4) + MARKS;
    let name = |row: &GridRow| {
        let flag = if row.flag.is_empty() { " " } else { &row.flag };
        format!("{}{flag}", one_line(&row.name))
    };
    let title = one_line(&grid.row_title);
    let heads = shown().map(|row| display_width(&name(row)));
    let head = heads.max().unwrap_or(0).max(display_width(&title)).max(7);
    if head + 1 + width > COLUMNS {
        for row in shown() {
            for (column, cell) in grid.columns.iter().zip(&row.cells) {
                if let Some(cell) = cell {
                    let (name, value, mark) = (&row.name, &cell.value, &cell.mark);
                    page.item(&format!("{name}, {column}: {value} {mark}"));
                }
            }
        }
        return;
    }
    let columns: Vec<usize> = (0..grid.columns.len()).collect();
    for (part, columns) in columns.chunks((COLUMNS - head - 1) / width).enumerate() {
        if part > 0 {
            page.blank();
        }
        if !grid.column_title.is_empty() {
            page.hanging(&format!("{:head$}| ", ""), &grid.column_title);
        }
        let row = |name: String, cells: Vec<(String, Option<&crate::GridCell>)>| {
            let mut line = format!("{}|", right(&name, head));
            let mut seen = head + 1;
            for (text, cell) in &cells {
                let text = right(text, width);
                seen += width;
                match cell {
                    Some(cell) if colour == Colour::Ansi => {
                        let style = cell.shade.style();
                        line.push_str(&format!("{style}{text}{style:#}"));
                    }
                    _ => line.push_str(&text),
                }
            }
            (line, seen)
        };
        let names = columns
            .iter()
            .map(|i| (format!("{}  ", one_line(&grid.columns[*i])), None));
        let (line, seen) = row(title.clone(), names.collect());
        page.row(&line, seen);
        for grid_row in shown() {
            let cells = columns.iter().map(|i| match grid_row.cells.get(*i) {
                Some(Some(cell)) => (format!("{}{:<MARKS$}", cell.value, cell.mark), Some(cell)),
                _ => (".  ".to_owned(), None),
            });
            let (line, seen) = row(name(grid_row), cells.collect());
            page.row(&line, seen);
        }
    }
}
