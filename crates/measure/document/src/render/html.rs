//! A document as one HTML file: no network, readable in dark and light, on paper and on
//! a telephone.
//!
//! It has one small script, which sorts and filters tables, shows what a mark stands for
//! and copies commands; without it the page has the same content. Every element is closed,
//! so that the file is well-formed XML as well and tests can read it.

mod chart;
mod lines;

use super::clean::clean;
use super::colour::Colour;
use super::text;
use crate::Facts;
use crate::number;
use crate::{Document, Grid, Level, Medium, MetricRow, Part, Section, Shade, Table, Tone};
use locklab_judge::Verdict;
use maud::{DOCTYPE, Markup, PreEscaped, html as markup};
use std::collections::BTreeMap;

const STYLE: &str = include_str!("html/style.css");

/// Colours and lines of the charts; a picture on its own carries them too.
const CHART_STYLE: &str = include_str!("html/chart.css");

/// The script of a page. It has neither `<` nor `&`, which XML would read as markup.
const SCRIPT: &str = include_str!("html/page.js");

/// The fewest chapters that a page lists at its beginning.
const CONTENTS: usize = 4;

/// Returns the whole file.
#[must_use]
pub fn html(document: &Document) -> String {
    let title = clean(&document.title);
    let sections: Vec<&Section> = document
        .sections
        .iter()
        .filter(|s| s.medium != Medium::Text)
        .collect();
    let mut anchors = Anchors::default();
    let places: Vec<(&Section, String)> = sections
        .iter()
        .map(|section| (*section, anchors.next(&section.heading)))
        .collect();
    let chapters = || {
        let is_chapter = |s: &Section| s.level == Level::Major && !s.heading.is_empty();
        places
            .iter()
            .filter(move |(section, _)| is_chapter(section))
    };
    // No level of the outline may be left out.
    let minor_first = sections
        .iter()
        .find(|s| !s.heading.is_empty())
        .is_some_and(|s| s.level == Level::Minor);
    markup! {
        (DOCTYPE)
        html lang="en" {
            head {
                (PreEscaped(r#"<meta charset="utf-8"/>"#))
                (PreEscaped(r#"<meta name="viewport" content="width=device-width, initial-scale=1"/>"#))
                (PreEscaped(r#"<meta name="generator" content="Locklab"/>"#))
                title { (title) }
                // Without this a browser asks the server for an icon.
                (PreEscaped(r#"<link rel="icon" href="data:,"/>"#))
                style { (PreEscaped(STYLE)) (PreEscaped(CHART_STYLE)) }
            }
            body {
                svg width="0" height="0" aria-hidden="true" style="position:absolute" {
                    (chart::definitions())
                }
                main {
                    h1 { (title) }
                    @for (name, value) in &document.head {
                        p.source { (clean(name)) ": " b { (clean(value)) } }
                    }
                    @if chapters().count() >= CONTENTS {
                        nav aria-label="contents" {
                            @for (section, place) in chapters() {
                                a href=(format!("#{place}")) { (clean(&section.heading)) } " "
                            }
                        }
                    }
                    @if minor_first { h2 { "Verdicts" } }
                    @for (section, place) in &places { (show_section(document, section, place)) }
                    h2 { "As text, for a mail" }
                    details {
                        summary { "72 columns" }
                        pre tabindex="0" { (clean(&text(document, Colour::Plain))) }
                    }
                }
                script { (PreEscaped(SCRIPT)) }
            }
        }
    }
    .into_string()
}

/// Names of places in a page, each once.
#[derive(Default)]
struct Anchors(BTreeMap<String, usize>);

impl Anchors {
    /// Returns the next place with this heading.
    fn next(&mut self, heading: &str) -> String {
        let name = chart::anchor(heading);
        let name = if name.is_empty() { "part".into() } else { name };
        let count = self.0.entry(name.clone()).or_default();
        *count += 1;
        match *count {
            1 => name,
            n => format!("{name}-{n}"),
        }
    }
}

/// Returns running text, with what stands between grave accents as code.
fn inline(text: &str) -> Markup {
    let text = clean(text);
    let parts: Vec<&str> = text.split('`').collect();
    let paired = parts.len() % 2 == 1;
    markup! {
        @for (i, part) in parts.iter().enumerate() {
            @if paired && i % 2 == 1 {
                code { (part) }
            } @else {
                @if !paired && i > 0 { "`" }
                (part)
            }
        }
    }
}

/// Returns what may be wider than the page, in a group that scrolls by itself: also by
/// the keys, hence in the order of what has the focus.
fn wide(name: &str, body: Markup) -> Markup {
    markup! {
        div.wide tabindex="0" role="group" aria-label=(clean(name)) { (body) }
    }
}

/// Returns the heat maps and curves alone, as a picture of its own; `None` where
/// there are none.
#[must_use]
pub fn svg(document: &Document) -> Option<String> {
    let mut parts: Vec<Markup> = Vec::new();
    let (mut width, mut y) = (0, 0);
    for section in document
        .sections
        .iter()
        .filter(|s| s.medium != Medium::Text)
    {
        for part in &section.parts {
            let (body, size) = match part {
                Part::Grid(grid) => (chart::heat_map(grid, None), chart::heat_map_size(grid)),
                Part::Curves(panels) => (chart::panels(panels), chart::panels_size(panels)),
                Part::Lines(charts) => (lines::side_by_side(charts), lines::size(charts)),
                _ => continue,
            };
            let title = clean(&section.heading);
            width = width.max(size.0).max(9 * title.chars().count());
            parts.push(markup! {
                text.bold x="4" y=(y + 16) { (title) }
                g transform=(format!("translate(0 {})", y + 28)) { (body) }
            });
            y += size.1 + 44;
        }
    }
    if parts.is_empty() {
        return None;
    }
    // This leaves space for the legend of the two sides.
    y += 12;
    // The rules of a page after its colours do not concern a picture.
    let colours = STYLE.split_once("html {").map_or("", |(head, _)| head);
    let picture = markup! {
        svg xmlns="http://www.w3.org/2000/svg" viewBox=(format!("0 0 {width} {y}")) width=(width) height=(y) {
            style { (PreEscaped(colours)) (PreEscaped(CHART_STYLE)) }
            (chart::definitions())
            @for part in &parts { (part) }
            text.soft.small x="4" y=(y - 4) {
                "dashed, squares: " (clean(&document.labels.baseline))
                "; line, circles: " (clean(&document.labels.experiment))
            }
        }
    };
    Some(picture.into_string())
}

fn show_section(document: &Document, section: &Section, place: &str) -> Markup {
    let heading = clean(&section.heading);
    let body = markup! {
        @for part in &section.parts { (show(document, section, part, place)) }
    };
    let link = markup! { a href=(format!("#{place}")) { (heading) } };
    markup! {
        @if !heading.is_empty() {
            @match section.level {
                Level::Major => h2 id=(place) { (link) },
                Level::Minor => h3 id=(place) { (link) },
            }
        }
        @if section.folded {
            details { summary { "Show" } (body) }
        } @else {
            (body)
        }
    }
}

fn show(document: &Document, section: &Section, part: &Part, place: &str) -> Markup {
    let heading = section.heading.as_str();
    let named = |fallback: &str| -> String {
        let name = if heading.is_empty() {
            fallback
        } else {
            heading
        };
        name.to_owned()
    };
    markup! {
        @match part {
            Part::Facts(list) => (facts(list, &named("facts"))),
            Part::Prose(text, Tone::Plain) => p { (inline(text)) },
            Part::Prose(text, Tone::Lead) => p.lead { (inline(text)) },
            Part::Prose(text, Tone::Note) => p.note { (inline(text)) },
            Part::Items(items) => ul { @for item in items { li { (inline(item)) } } },
            Part::Metrics(rows) => (metrics(rows, &named("metrics"))),
            Part::Table(table) => (show_table(table, &named("table"))),
            Part::Grid(grid) => (heat_map(grid, &named("cells"), place)),
            Part::Legend(signs) => (legend(signs)),
            Part::Curves(panels) => {
                (chart::key(&document.labels.baseline, &document.labels.experiment))
                div.grid { @for panel in panels { (chart::curves(panel)) } }
            },
            Part::Lines(charts) => div.lines { @for chart in charts { (lines::lines(chart)) } },
            Part::Intervals(intervals) => (wide(&named("estimates"), chart::intervals(intervals))),
            Part::Timeline(timeline) => {
                (chart::key(&document.labels.baseline, &document.labels.experiment))
                (wide(&named("runs"), chart::timeline(timeline)))
            },
            Part::Preformatted(text) => pre tabindex="0" { (clean(text)) },
        }
    }
}

/// Returns a table of names and values.
fn facts(facts: &Facts, name: &str) -> Markup {
    let table = markup! {
        table.facts {
            tbody {
                @for (name, value) in facts { tr { th scope="row" { (clean(name)) } td { (inline(value)) } } }
            }
        }
    };
    wide(name, table)
}

fn metrics(rows: &[MetricRow], name: &str) -> Markup {
    let figure = |x: Option<f64>| number::or_dash(x, number::figure);
    let interval = |row: &MetricRow| match row.delta {
        Some(d) if d.low.is_finite() && d.high.is_finite() => {
            format!("{:+.2} to {:+.2}%", d.low, d.high)
        }
        _ => "-".into(),
    };
    let class = |row: &MetricRow| match row.verdict {
        Some(Verdict::Better) => "better",
        Some(Verdict::Worse) => "worse",
        Some(Verdict::Flat { .. }) => "flat",
        _ => "",
    };
    let tested = rows.iter().any(|row| !row.test.is_empty());
    let table = markup! {
        table.sorts {
            thead {
                tr {
                    th.name scope="col" { "Metric" } th scope="col" { "Baseline" }
                    th scope="col" { "Experiment" } th scope="col" { "Delta" }
                    th scope="col" { "95 % interval" } th scope="col" { "Verdict" }
                    th scope="col" { "Sig" }
                    @if tested { th scope="col" { "Test" } }
                }
            }
            tbody {
                @for row in rows {
                    tr {
                        td.name { (clean(&row.label())) }
                        td { (figure(row.baseline)) }
                        td { (figure(row.experiment)) }
                        td { (row.delta_text()) }
                        td { (interval(row)) }
                        td class=(class(row)) { (row.word()) }
                        td { (row.sig()) }
                        @if tested { td { (row.test) } }
                    }
                }
            }
        }
    };
    wide(name, table)
}

fn show_table(table: &Table, name: &str) -> Markup {
    let titled = table.groups.iter().any(|g| !g.title.is_empty());
    // Where a group begins.
    let starts: Vec<usize> = table
        .groups
        .iter()
        .scan(0, |at, group| {
            let start = *at;
            *at += group.columns.len();
            Some(start)
        })
        .skip(1)
        .collect();
    let columns: Vec<_> = table.groups.iter().flat_map(|g| &g.columns).collect();
    let table = markup! {
        table.sorts {
            thead {
                @if titled {
                    tr {
                        @for group in &table.groups {
                            // A heading without a text is none.
                            @if group.title.is_empty() {
                                td colspan=(group.columns.len()) {}
                            } @else {
                                th.group scope="colgroup" colspan=(group.columns.len()) { (clean(&group.title)) }
                            }
                        }
                    }
                }
                tr {
                    @for column in &columns {
                        @if column.title.is_empty() {
                            td {}
                        } @else {
                            th scope="col" class=[column.left.then_some("name")] { (clean(&column.title)) }
                        }
                    }
                }
            }
            tbody {
                @for row in &table.rows {
                    tr {
                        @for (i, cell) in row.iter().enumerate() {
                            @let name = columns.get(i).is_some_and(|c| c.left).then_some("name");
                            td class=[starts.contains(&i).then_some("start").or(name)] { (clean(cell)) }
                        }
                    }
                }
            }
        }
    };
    wide(name, table)
}

fn heat_map(grid: &Grid, name: &str, place: &str) -> Markup {
    let (width, height) = chart::heat_map_size(grid);
    let picture = markup! {
        svg.fixed width=(width) height=(height) viewBox=(format!("0 0 {width} {height}")) role="img" aria-label="heat map" {
            (chart::heat_map(grid, Some(place)))
        }
    };
    wide(name, picture)
}

fn legend(signs: &[(String, String)]) -> Markup {
    let steps = [
        (Shade::Worse(5), "to 0.5 -"),
        (Shade::Worse(4), "to 0.71 -"),
        (Shade::Worse(3), "to 0.87 -"),
        (Shade::Worse(2), "to 0.95 -"),
        (Shade::Worse(1), "to 1 -"),
        (Shade::Flat, "flat ="),
        (Shade::Better(1), "to 1.05 +"),
        (Shade::Better(2), "to 1.15 +"),
        (Shade::Better(3), "to 1.4 +"),
        (Shade::Better(4), "to 2 +"),
        (Shade::Better(5), "over 2 +"),
        (Shade::Unclear, "unclear ?"),
        (Shade::Invalid, "invalid !"),
    ];
    markup! {
        div.legend {
            @for (shade, sign) in &steps {
                svg.fixed width="70" height="24" viewBox="0 0 70 24" role="img" aria-label=(sign) {
                    rect class=(shade.class()) x="1" y="1" width="68" height="22" rx="2" {}
                    text class={ "small mid on-" (shade.class()) } x="35" y="16" { (sign) }
                }
            }
        }
        p.note {
            @for (sign, meaning) in signs { b { (clean(sign)) } " " (clean(meaning)) ". " }
            "Blue is better, orange is worse, grey is flat, hatched is unclear; a cell that a pointer or the focus is on shows its interval."
        }
    }
}
