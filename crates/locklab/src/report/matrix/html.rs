//! The report as one HTML file.

use super::{Report, axis, caveats, label, text, words};
use crate::matrix::{Run, RunPair};
use crate::report::chart::{self, Curve, CurvePoint, HeatCell, IntervalRow, Timeline};
use crate::report::shade::{Shade, mark};
use crate::report::{Colour, html as page, number};
use crate::verdicts::{Figures, JudgedCell};
use locklab_judge::Verdict;
use maud::{Markup, html};

/// The whole file.
#[must_use]
pub fn html(report: &Report) -> String {
    let spec = &report.measured.spec;
    let title = page::clean(&words::title(spec));
    let mut facts = report.measured.environment.clone();
    facts.extend(words::set_up(report));
    let body = html! {
        h1 { (title) }
        p.source { "Figures: " b { (page::clean(&words::source(&report.measured.provenance))) } }
        @for sentence in words::result(report) { p.lead { (page::clean(&sentence)) } }

        h2 { "Operations per second, experiment / baseline" }
        (legend(report))
        @for (class, cells) in report.verdicts.by_class() {
            @for length in axis(&cells, |c| c.point.non_critical) {
                h3 { (block_title(report, length, class)) }
                div.wide { (heat_map(report, &cells, length)) }
            }
        }
        p.note { (words::method(report)) }

        h2 { "Before you believe it" }
        ul {
            @if let Some(unclear) = caveats::unclear(report) { li { (unclear) } }
            @for caveat in caveats::all(report) { li { (page::clean(&caveat)) } }
        }

        h2 { "Throughput: operations per second against threads" }
        (chart::key(&spec.baseline, &spec.experiment))
        p.note { "Vertical lines are 95 % intervals; where there is none, it is narrower than the mark or there are fewer than six runs." }
        @for (class, cells) in report.verdicts.by_class() {
            @for length in axis(&cells, |c| c.point.non_critical) {
                h3 { (block_title(report, length, class)) }
                (throughput(report, &cells, length))
            }
        }

        h2 { "Handoffs and fairness" }
        p.note {
            "Handoffs: acquisitions per second whose holder before was another thread. Streak: acquisitions in a row by one owner. "
            "A lock that its last owner keeps re-taking looks fast: cells with \u{201c}s\u{201d} gained operations and lost handoffs, or the other way round."
        }
        details open=[(report.verdicts.cells.len() <= 40).then_some("open")] {
            summary { "Every cell" }
            div.wide { (fairness(report)) }
        }

        h2 { "Pairs and intervals" }
        p.note {
            "Each dot is a pair (experiment against baseline), the line is the 95 % interval of the estimate, the band is what counts as flat (\u{b1}"
            (number::percent(100.0 * report.verdicts.settings.delta)) " %). The axis is logarithmic outside the band."
        }
        details open=[(report.verdicts.cells.len() <= 40).then_some("open")] {
            summary { "Every cell" }
            div.wide { (intervals(report)) }
        }

        h2 { "Runs over time" }
        p.note { "Each run against the median of its own lock and cell: a slope is drift, a step is a machine that changed. Pairs and the coin take drift out of the verdicts; a step within a pair they cannot." }
        (chart::key(&spec.baseline, &spec.experiment))
        (timelines(report))

        h2 { "Machine and set-up" }
        (page::facts(&facts))

        h2 { "As text, for a mail" }
        details {
            summary { "72 columns" }
            pre { (page::clean(&text(report, Colour::Plain))) }
        }
    };
    page::page(&title, body)
}

/// The heat maps alone, as a picture of its own.
#[must_use]
pub fn heat_map_svg(report: &Report) -> String {
    let mut parts = Vec::new();
    let (mut width, mut y) = (0, 0);
    for (class, cells) in report.verdicts.by_class() {
        for length in axis(&cells, |c| c.point.non_critical) {
            let (rows, columns) = block(report, &cells, length);
            let size = chart::heat_map_size(rows.len(), columns.len());
            let title = block_title(report, length, class);
            parts.push(html! {
                text.bold x="4" y=(y + 16) { (title) }
                g transform=(format!("translate(0 {})", y + 28)) {
                    (chart::heat_map("threads", &columns_title(report), &rows, &columns))
                }
            });
            width = width.max(size.0).max(9 * title.len());
            y += size.1 + 44;
        }
    }
    chart::picture(width, y, html! { @for part in &parts { (part) } })
}

fn block_title(report: &Report, length: u64, class: Option<&str>) -> String {
    let placed = class.map_or_else(String::new, |c| {
        format!(", CPUs placed as \u{201c}{c}\u{201d}")
    });
    page::clean(&format!(
        "Non-critical length {length}{}{placed}",
        report.unit()
    ))
}

fn columns_title(report: &Report) -> String {
    format!("critical length{}", report.unit())
}

fn legend(report: &Report) -> Markup {
    let delta = number::percent(100.0 * report.verdicts.settings.delta);
    let steps = [
        ("w5", "to 0.5 -"),
        ("w4", "to 0.71 -"),
        ("w3", "to 0.87 -"),
        ("w2", "to 0.95 -"),
        ("w1", "to 1 -"),
        ("f", "flat ="),
        ("b1", "to 1.05 +"),
        ("b2", "to 1.15 +"),
        ("b3", "to 1.4 +"),
        ("b4", "to 2 +"),
        ("b5", "over 2 +"),
        ("u", "unclear ?"),
        ("i", "invalid !"),
    ];
    html! {
        div.wide {
            svg width="910" height="24" viewBox="0 0 910 24" role="img" aria-label="legend" {
                @for (i, (class, sign)) in steps.iter().enumerate() {
                    rect class=(class) x=(i * 70 + 1) y="1" width="68" height="22" rx="2" {}
                    text class={ "small mid on-" (class) } x=(i * 70 + 35) y="16" { (sign) }
                }
            }
        }
        p.note {
            "Blue: shown to be better (+). Orange: shown to be worse (-). Grey: shown to be flat, within " (delta)
            " % (=). Hatched: unclear, neither shown to differ nor to be flat (?). Dashed: invalid (!). "
            "o: more threads than CPUs. s: handoffs point the other way. A pointer on a cell shows its interval."
        }
    }
}

type Rows = Vec<(String, Vec<Option<HeatCell>>)>;

fn block(report: &Report, cells: &[&JudgedCell], length: u64) -> (Rows, Vec<String>) {
    let block: Vec<&JudgedCell> = cells
        .iter()
        .filter(|c| c.point.non_critical == length)
        .copied()
        .collect();
    let lengths = axis(&block, |c| c.point.critical);
    let rows = axis(&block, |c| c.point.threads)
        .into_iter()
        .map(|n| {
            let row: Vec<&JudgedCell> = block
                .iter()
                .filter(|c| c.point.threads == n)
                .copied()
                .collect();
            let crowded = row.iter().any(|c| c.oversubscribed);
            let cells = lengths
                .iter()
                .map(|l| {
                    row.iter()
                        .find(|c| c.point.critical == *l)
                        .map(|c| heat_cell(report, c))
                })
                .collect();
            (
                format!("{}{}", label(n as u64), if crowded { "o" } else { "" }),
                cells,
            )
        })
        .collect();
    (rows, lengths.into_iter().map(label).collect())
}

fn heat_map(report: &Report, cells: &[&JudgedCell], length: u64) -> Markup {
    let (rows, columns) = block(report, cells, length);
    let (width, height) = chart::heat_map_size(rows.len(), columns.len());
    html! {
        svg width=(width) height=(height) viewBox=(format!("0 0 {width} {height}")) role="img" aria-label="heat map" {
            (chart::heat_map("threads", &columns_title(report), &rows, &columns))
        }
    }
}

fn heat_cell(report: &Report, cell: &JudgedCell) -> HeatCell {
    let verdict = &cell.judged.verdict;
    let ratio = cell.ratio();
    let interval = ratio.map_or_else(String::new, |r| {
        format!(
            "{} (95 %: {} to {}), ",
            number::ratio(r.value),
            number::ratio(r.low),
            number::ratio(r.high)
        )
    });
    let ops = |f: &Figures| number::or_dash(f.ops_per_s, number::short);
    HeatCell {
        text: format!(
            "{}{}{}",
            ratio.map(|r| number::ratio(r.value)).unwrap_or_default(),
            mark(verdict),
            if cell.streaky() { "s" } else { "" }
        ),
        class: Shade::of(verdict, ratio.map(|r| r.value)).class(),
        title: format!(
            "{}: {interval}{}; {}: {}/s, {}: {}/s; {}",
            name(report, cell),
            verdict.word(),
            report.measured.spec.baseline,
            ops(&cell.baseline),
            report.measured.spec.experiment,
            ops(&cell.experiment),
            number::count(cell.differences.len(), "pair"),
        ),
    }
}

fn name(report: &Report, cell: &JudgedCell) -> String {
    let p = cell.point;
    format!(
        "{} {}, critical {}{unit}, non-critical {}{unit}",
        label(p.threads as u64),
        if p.threads == 1 { "thread" } else { "threads" },
        label(p.critical),
        label(p.non_critical),
        unit = report.unit()
    )
}

/// Whether a cell may be drawn: an invalid one must not be read.
fn readable(cell: &JudgedCell) -> bool {
    !matches!(cell.judged.verdict, Verdict::Invalid(_))
}

fn throughput(report: &Report, cells: &[&JudgedCell], length: u64) -> Markup {
    let block: Vec<&JudgedCell> = cells
        .iter()
        .filter(|c| c.point.non_critical == length)
        .copied()
        .collect();
    let threads = axis(&block, |c| c.point.threads);
    let names: Vec<String> = threads.iter().map(|n| label(*n as u64)).collect();
    let curve = |critical: u64, baseline: bool| {
        let mut points: Vec<CurvePoint> = block
            .iter()
            .filter(|c| c.point.critical == critical && readable(c))
            .filter_map(|c| {
                let side = if baseline { &c.baseline } else { &c.experiment };
                let place = threads.binary_search(&c.point.threads).ok()?;
                Some(CurvePoint {
                    place,
                    value: side.ops_per_s?,
                    limits: side.ops_low.zip(side.ops_high),
                })
            })
            .collect();
        // Cells of one thread have no placement and come last.
        points.sort_by_key(|p| p.place);
        Curve { points, baseline }
    };
    html! {
        div.grid {
            @for critical in axis(&block, |c| c.point.critical) {
                @let title = format!("critical {}{}", label(critical), report.unit());
                (chart::curves(&title, "threads", &names, &[curve(critical, true), curve(critical, false)]))
            }
        }
    }
}

fn fairness(report: &Report) -> Markup {
    let latency = report
        .verdicts
        .cells
        .iter()
        .any(|c| c.baseline.latency.is_some());
    let row = |f: fn(&Figures) -> Option<f64>, show: fn(f64) -> String, c: &JudgedCell| {
        [
            number::or_dash(f(&c.baseline), show),
            number::or_dash(f(&c.experiment), show),
        ]
    };
    html! {
        table {
            thead {
                tr {
                    th colspan="4" {}
                    @for group in ["operations/s", "handoffs/s", "streak, mean", "streak, longest", "Jain", "min/max", "Jain, 1 ms"] {
                        th.group colspan="2" { (group) }
                    }
                    @if latency { th.group colspan="2" { "p99 [ns]" } th.group colspan="2" { "p99.9 [ns]" } }
                }
                tr {
                    th { "non-critical" } th { "threads" } th { "critical" } th { "ratio" }
                    @for _ in 0..(if latency { 9 } else { 7 }) { th { "base" } th { "exp" } }
                }
            }
            tbody {
                @for c in &report.verdicts.cells {
                    tr {
                        td { (label(c.point.non_critical)) }
                        td { (label(c.point.threads as u64)) @if c.oversubscribed { "o" } }
                        td { (label(c.point.critical)) }
                        td { (heat_cell(report, c).text) }
                        @let mut columns = vec![
                            row(|f| f.ops_per_s, number::short, c),
                            row(|f| f.handoffs_per_s, number::short, c),
                            row(|f| f.streak_mean, number::short, c),
                            row(|f| f.streak_max.map(|n| n as f64), number::short, c),
                            row(|f| f.jain, number::share, c),
                            row(|f| f.min_over_max, number::share, c),
                            row(|f| f.jain_1ms, number::share, c),
                        ];
                        @if latency {
                            @let () = columns.extend([
                                row(|f| f.latency.map(|l| l.p99 as f64), number::short, c),
                                row(|f| f.latency.map(|l| l.p999 as f64), number::short, c),
                            ]);
                        }
                        @for [baseline, experiment] in &columns {
                            td.start { (baseline) } td { (experiment) }
                        }
                    }
                }
            }
        }
    }
}

fn intervals(report: &Report) -> Markup {
    let percent = |d: f64| 100.0 * d.exp_m1();
    let rows: Vec<IntervalRow> = report
        .verdicts
        .cells
        .iter()
        .map(|c| IntervalRow {
            name: format!(
                "{} thr, crit {}, non-crit {}",
                label(c.point.threads as u64),
                label(c.point.critical),
                label(c.point.non_critical)
            ),
            estimate: c.ratio().map(|r| {
                (
                    100.0 * (r.value - 1.0),
                    100.0 * (r.low - 1.0),
                    100.0 * (r.high - 1.0),
                )
            }),
            pairs: c
                .differences
                .iter()
                .filter(|_| readable(c))
                .map(|d| percent(*d))
                .collect(),
            verdict: c.judged.verdict.word().into(),
        })
        .collect();
    chart::intervals(&rows, 100.0 * report.verdicts.settings.delta)
}

fn timelines(report: &Report) -> Markup {
    let pairs: Vec<&RunPair> = report
        .measured
        .cells
        .iter()
        .flat_map(|c| &c.pairs)
        .collect();
    let timed = pairs
        .iter()
        .all(|p| p.baseline.started.is_some() && p.experiment.started.is_some());
    let x_title = if timed {
        "seconds from the start"
    } else {
        "number of the run"
    };
    let deviations = |side: fn(&RunPair) -> &Run| series(report, side, timed, true);
    let trips = |side: fn(&RunPair) -> &Run| series(report, side, timed, false);
    let (base_trips, exp_trips) = (trips(|p| &p.baseline), trips(|p| &p.experiment));
    let moves = !base_trips.is_empty() || !exp_trips.is_empty();
    html! {
        (chart::timeline(&Timeline {
            title: "Operations per second, percent from the median of the same lock in the same cell",
            baseline: deviations(|p| &p.baseline),
            experiment: deviations(|p| &p.experiment),
            x_title,
            format: |v| format!("{} %", number::percent(v)),
        }))
        @if moves {
            (chart::timeline(&Timeline {
                title: "Cache-line round trip between the CPUs in use, ns",
                baseline: base_trips,
                experiment: exp_trips,
                x_title,
                format: number::short,
            }))
        }
    }
}

/// Time against deviation in percent, or against round trip in ns.
fn series(
    report: &Report,
    side: fn(&RunPair) -> &Run,
    timed: bool,
    deviation: bool,
) -> Vec<(f64, f64)> {
    let mut points = Vec::new();
    let mut number = 0.0;
    for cell in &report.measured.cells {
        let sound = |p: &&RunPair| side(p).invalid.is_none() && side(p).ops_per_s.is_finite();
        let mut rates: Vec<f64> = cell
            .pairs
            .iter()
            .filter(sound)
            .map(|p| side(p).ops_per_s)
            .collect();
        rates.sort_by(f64::total_cmp);
        let middle = rates.get(rates.len() / 2).copied().unwrap_or(f64::NAN);
        for pair in &cell.pairs {
            number += 1.0;
            let run = side(pair);
            let x = match run.started {
                Some(started) if timed => started,
                _ => number,
            };
            let y = if deviation {
                100.0 * (run.ops_per_s / middle - 1.0)
            } else {
                match &run.round_trip {
                    Some(trip) => trip.before,
                    None => continue,
                }
            };
            if run.invalid.is_none() && y.is_finite() {
                points.push((x, y));
            }
        }
    }
    points
}
