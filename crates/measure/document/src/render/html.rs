//! A document as one HTML file: no script, no network, readable in dark and
//! light.
//!
//! Every element is closed, so that the file is well-formed XML as well and
//! tests can read it.

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

const STYLE: &str = include_str!("html/style.css");

/// Colours and lines of the charts; a picture on its own carries them too.
const CHART_STYLE: &str = include_str!("html/chart.css");

/// Returns the whole file.
#[must_use]
pub fn html(document: &Document) -> String {
    let title = clean(&document.title);
    let sections = document
        .sections
        .iter()
        .filter(|s| s.medium != Medium::Text);
    markup! {
        (DOCTYPE)
        html lang="en" {
            head {
                (PreEscaped(r#"<meta charset="utf-8"/>"#))
                (PreEscaped(r#"<meta name="viewport" content="width=device-width, initial-scale=1"/>"#))
                title { (title) }
                // Without this a browser asks the server for an icon.
                (PreEscaped(r#"<link rel="icon" href="data:,"/>"#))
                style { (PreEscaped(STYLE)) (PreEscaped(CHART_STYLE)) }
            }
            body {
                svg width="0" height="0" aria-hidden="true" style="position:absolute" {
                    (chart::definitions())
                }
                h1 { (title) }
                @for (name, value) in &document.head {
                    p.source { (clean(name)) ": " b { (clean(value)) } }
                }
                @for section in sections { (show_section(document, section)) }
                h2 { "As text, for a mail" }
                details {
                    summary { "72 columns" }
                    pre { (clean(&text(document, Colour::Plain))) }
                }
            }
        }
    }
    .into_string()
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
                Part::Grid(grid) => (chart::heat_map(grid), chart::heat_map_size(grid)),
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

fn show_section(document: &Document, section: &Section) -> Markup {
    let heading = clean(&section.heading);
    let body = markup! {
        @for part in &section.parts { (show(document, part)) }
    };
    markup! {
        @if !heading.is_empty() {
            @match section.level {
                Level::Major => h2 { (heading) },
                Level::Minor => h3 { (heading) },
            }
        }
        @if section.folded {
            details { summary { "Show" } (body) }
        } @else {
            (body)
        }
    }
}

fn show(document: &Document, part: &Part) -> Markup {
    markup! {
        @match part {
            Part::Facts(list) => (facts(list)),
            Part::Prose(text, Tone::Plain) => p { (clean(text)) },
            Part::Prose(text, Tone::Lead) => p.lead { (clean(text)) },
            Part::Prose(text, Tone::Note) => p.note { (clean(text)) },
            Part::Items(items) => ul { @for item in items { li { (clean(item)) } } },
            Part::Metrics(rows) => (metrics(rows)),
            Part::Table(table) => (show_table(table)),
            Part::Grid(grid) => (heat_map(grid)),
            Part::Legend(signs) => (legend(signs)),
            Part::Curves(panels) => {
                (chart::key(&document.labels.baseline, &document.labels.experiment))
                div.grid { @for panel in panels { (chart::curves(panel)) } }
            },
            Part::Lines(charts) => div.lines { @for chart in charts { (lines::lines(chart)) } },
            Part::Intervals(intervals) => div.wide { (chart::intervals(intervals)) },
            Part::Timeline(timeline) => {
                (chart::key(&document.labels.baseline, &document.labels.experiment))
                div.wide { (chart::timeline(timeline)) }
            },
            Part::Preformatted(text) => pre { (clean(text)) },
        }
    }
}

/// Returns a table of names and values.
fn facts(facts: &Facts) -> Markup {
    markup! {
        div.wide {
            table.facts {
                tbody {
                    @for (name, value) in facts { tr { th { (clean(name)) } td { (clean(value)) } } }
                }
            }
        }
    }
}

fn metrics(rows: &[MetricRow]) -> Markup {
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
    markup! {
        div.wide {
            table {
                thead {
                    tr {
                        th.name { "Metric" } th { "Baseline" } th { "Experiment" }
                        th { "Delta" } th { "95 % interval" } th { "Verdict" } th { "Sig" }
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
                        }
                    }
                }
            }
        }
    }
}

fn show_table(table: &Table) -> Markup {
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
    markup! {
        div.wide {
            table {
                thead {
                    @if titled {
                        tr {
                            @for group in &table.groups {
                                th.group colspan=(group.columns.len()) { (clean(&group.title)) }
                            }
                        }
                    }
                    tr {
                        @for column in &columns {
                            th class=[column.left.then_some("name")] { (clean(&column.title)) }
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
        }
    }
}

fn heat_map(grid: &Grid) -> Markup {
    let (width, height) = chart::heat_map_size(grid);
    markup! {
        div.wide {
            svg width=(width) height=(height) viewBox=(format!("0 0 {width} {height}")) role="img" aria-label="heat map" {
                (chart::heat_map(grid))
            }
        }
    }
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
        div.wide {
            svg width="910" height="24" viewBox="0 0 910 24" role="img" aria-label="legend" {
                @for (i, (shade, sign)) in steps.iter().enumerate() {
                    rect class=(shade.class()) x=(i * 70 + 1) y="1" width="68" height="22" rx="2" {}
                    text class={ "small mid on-" (shade.class()) } x=(i * 70 + 35) y="16" { (sign) }
                }
            }
        }
        p.note {
            @for (sign, meaning) in signs { b { (clean(sign)) } " " (clean(meaning)) ". " }
            "Blue is better, orange is worse, grey is flat, hatched is unclear; a pointer on a cell shows its interval."
        }
    }
}
