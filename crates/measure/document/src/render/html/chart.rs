//! Charts as SVG, for any report: heat map, curves with intervals, intervals
//! with their pairs, runs over time.
//!
//! A chart is drawn with classes only; `chart.css` has the colours for dark
//! and light. What colour shows is shown by a sign, a shape or a dash as
//! well. Figures that are not finite are left out, never drawn at a border.

use crate::number;
use crate::render::clean::clean;
use crate::{CurvePoint, Curves, Grid, IntervalRow, Intervals, Timeline};
use locklab_judge::Shown;
use maud::{Markup, html};

/// Pixels of a heat map's cell.
const CELL: (usize, usize) = (62, 28);

/// Returns what all charts of a page share: the hatching of unclear cells.
pub(super) fn definitions() -> Markup {
    html! {
        defs {
            pattern id="hatch" width="7" height="7" patternUnits="userSpaceOnUse" patternTransform="rotate(45)" {
                line.hatch x1="0" y1="0" x2="0" y2="7" {}
            }
        }
    }
}

/// Pixels of a character of a name, of the usual fonts at their widest.
const CHARACTER: usize = 8;

/// Returns the pixels that slanting column names need, upwards and to the right of the
/// last; 0 where all fit above their columns.
fn slant(grid: &Grid) -> usize {
    let longest = grid.columns.iter().map(|name| name.chars().count());
    match CHARACTER * longest.max().unwrap_or(0) {
        pixels if pixels <= CELL.0 => 0,
        pixels => pixels * 5 / 7,
    }
}

/// Returns the pixels that a row's name takes.
fn margin(grid: &Grid) -> usize {
    let longest = grid.rows.iter().map(|row| row.name.chars().count() + 1);
    72.max(
        14 + CHARACTER
            * longest
                .max()
                .unwrap_or(0)
                .max(grid.row_title.chars().count()),
    )
}

/// Returns a text as the name of a place: letters and digits in small letters, with a
/// hyphen for everything between them.
pub(super) fn anchor(text: &str) -> String {
    let words = text.split(|c: char| !c.is_alphanumeric());
    let words: Vec<String> = words
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect();
    words.join("-")
}

/// Returns the size of a heat map.
pub(super) fn heat_map_size(grid: &Grid) -> (usize, usize) {
    let title = CHARACTER * grid.column_title.chars().count();
    let slant = slant(grid);
    let width = (grid.columns.len() * CELL.0 + slant).max(title);
    (
        margin(grid) + 4 + width,
        44 + slant + grid.rows.len() * CELL.1,
    )
}

/// Returns the inside of a heat map. In a page each cell has an address below that of its
/// section, `place`.
pub(super) fn heat_map(grid: &Grid, place: Option<&str>) -> Markup {
    let (width, height) = CELL;
    let (left, slant) = (margin(grid), slant(grid));
    let x = |column: usize| left + column * width;
    let y = |row: usize| 40 + slant + row * height;
    let middle = |column: usize| x(column) + width / 2;
    let address = |row: &str, column: usize| {
        let column = grid.columns.get(column).map_or("", String::as_str);
        place.map(|place| format!("{place}-{}", anchor(&format!("{row} {column}"))))
    };
    html! {
        text.soft x=(left) y="12" { (clean(&grid.column_title)) }
        text.soft.end x=(left - 8) y=(y(0) - 8) { (clean(&grid.row_title)) }
        @for (i, name) in grid.columns.iter().enumerate() {
            @if slant == 0 {
                text.num.mid x=(middle(i)) y="32" { (clean(name)) }
            } @else {
                text.num transform=(format!("translate({} {}) rotate(-45)", middle(i), y(0) - 8)) { (clean(name)) }
            }
        }
        @for (j, row) in grid.rows.iter().enumerate() {
            text.num.end x=(left - 8) y=(y(j) + height / 2 + 5) { (clean(&row.name)) (clean(&row.flag)) }
            @for (i, cell) in row.cells.iter().enumerate() {
                @match cell {
                    None => rect.none x=(x(i)) y=(y(j)) width=(width - 2) height=(height - 2) {},
                    Some(cell) => g id=[address(&row.name, i)] {
                        title { (clean(&cell.detail)) }
                        rect class=(cell.shade.class()) x=(x(i)) y=(y(j)) width=(width - 2) height=(height - 2) rx="2" {}
                        text class={ "num mid on-" (cell.shade.class()) } x=(x(i) + width / 2 - 1) y=(y(j) + height / 2 + 4) {
                            (clean(cell.value.trim())) (clean(&cell.mark))
                        }
                    },
                }
            }
        }
    }
}

/// Charts of curves in a row.
const PANELS: usize = 3;

/// Returns the size of charts of curves side by side.
pub(super) fn panels_size(panels: &[Curves]) -> (usize, usize) {
    (
        270 * panels.len().min(PANELS),
        176 * panels.len().div_ceil(PANELS) + 16,
    )
}

/// Charts of curves side by side.
pub(super) fn panels(panels: &[Curves]) -> Markup {
    html! {
        @for (i, panel) in panels.iter().enumerate() {
            svg x=(270 * (i % PANELS)) y=(176 * (i / PANELS)) width="260" height="172" {
                (curves(panel))
            }
        }
    }
}

/// Curves over named places on the x axis; the y axis starts at zero.
pub(super) fn curves(panel: &Curves) -> Markup {
    let Curves {
        title,
        x_title,
        names,
        curves,
    } = panel;
    let (left, right, top, bottom) = (46.0, 250.0, 26.0, 138.0);
    let highest = curves
        .iter()
        .flat_map(|c| &c.points)
        .map(|p| p.limits.map_or(p.value, |(_, high)| high.max(p.value)))
        .filter(|x| x.is_finite())
        .fold(0.0, f64::max);
    let step = step(highest, 3.0);
    let full = if step > 0.0 {
        (highest / step).ceil() * step
    } else {
        1.0
    };
    let gap = (right - left - 24.0) / (names.len().max(2) - 1) as f64;
    let x = |i: usize| left + 12.0 + gap * i as f64;
    let y = |value: f64| bottom - (bottom - top) * value / full;
    // Names that would touch one another are left out, the last one kept.
    let room = 9.0 * names.iter().map(String::len).max().unwrap_or(1) as f64;
    let every = ((room / gap).ceil() as usize).max(1);
    let ticks = if step > 0.0 {
        (full / step).round() as usize
    } else {
        0
    };
    html! {
        svg viewBox="0 0 260 172" role="img" aria-label=(clean(title)) {
            text.bold x="4" y="14" { (clean(title)) }
            @for tick in 0..=ticks {
                @let value = step * tick as f64;
                line.grid-line x1=(left) x2=(right) y1=(at(y(value))) y2=(at(y(value))) {}
                text.soft.small.end x=(left - 5.0) y=(at(y(value) + 4.0)) { (number::short(value)) }
            }
            @for (i, name) in names.iter().enumerate() {
                @if (names.len() - 1 - i).is_multiple_of(every) {
                    text.soft.small.mid x=(at(x(i))) y=(bottom + 15.0) { (clean(name)) }
                }
            }
            text.soft.small.end x=(right) y=(bottom + 30.0) { (clean(x_title)) }
            @for curve in curves {
                @let (line, mark) = if curve.baseline { ("base dash", "base-mark") } else { ("exp", "exp-mark") };
                @let points: Vec<_> = curve.points.iter().filter(|p| p.value.is_finite()).collect();
                // A line across a place that has no point would claim one.
                @for part in points.chunk_by(|a, b| b.place == a.place + 1) {
                    @let path: Vec<String> = part.iter().map(|p| format!("{},{}", at(x(p.place)), at(y(p.value)))).collect();
                    polyline class=(line) points=(path.join(" ")) {}
                }
                @for CurvePoint { place, value, limits } in points {
                    @if let Some((low, high)) = limits {
                        @if low.is_finite() && high.is_finite() {
                            line class=(line.trim_end_matches(" dash")) x1=(at(x(*place))) x2=(at(x(*place))) y1=(at(y(*low))) y2=(at(y(*high))) {}
                        }
                    }
                    @if curve.baseline {
                        rect class=(mark) x=(at(x(*place) - 2.6)) y=(at(y(*value) - 2.6)) width="5.2" height="5.2" {}
                    } @else {
                        circle class=(mark) cx=(at(x(*place))) cy=(at(y(*value))) r="2.8" {}
                    }
                }
            }
        }
    }
}

/// Estimates with 95 % intervals over the pairs that they come from, in
/// percent, and the margin within which a difference does not matter.
pub(super) fn intervals(intervals: &Intervals) -> Markup {
    let Intervals { rows, margin } = intervals;
    let margin = *margin;
    let (left, right, line) = (210.0, 760.0, 19.0);
    let of_row = |r: &IntervalRow| {
        let mut all = r.pairs.clone();
        all.extend(r.estimate.iter().flat_map(|e| [e.value, e.low, e.high]));
        all
    };
    let values: Vec<f64> = rows
        .iter()
        .flat_map(of_row)
        .filter(|x| x.is_finite())
        .collect();
    let low = values.iter().copied().fold(-3.0 * margin, f64::min);
    let high = values.iter().copied().fold(3.0 * margin, f64::max);
    // One lock that is far ahead somewhere must not press the rest together:
    // a logarithmic axis on both sides of the margin.
    let scale = |percent: f64| percent.signum() * (percent.abs() / margin.max(1e-9)).ln_1p();
    let (from, to) = (scale(low), scale(high));
    let x = |percent: f64| left + (right - left) * (scale(percent) - from) / (to - from).max(1e-9);
    let bottom = 26.0 + line * rows.len() as f64;
    let marks = [
        -90.0, -50.0, -20.0, -5.0, -1.0, 0.0, 1.0, 5.0, 20.0, 50.0, 200.0, 1000.0, 10_000.0,
    ];
    let mut ticks: Vec<f64> = Vec::new();
    for mark in marks.into_iter().filter(|m| (low..=high).contains(m)) {
        if ticks.last().is_none_or(|last| x(mark) - x(*last) > 38.0) {
            ticks.push(mark);
        }
    }
    html! {
        svg viewBox=(format!("0 0 850 {}", bottom + 24.0)) role="img" aria-label="intervals" {
            rect.margin x=(at(x(-margin))) width=(at(x(margin) - x(-margin))) y="18" height=(at(bottom - 18.0)) {}
            @for tick in &ticks {
                line.grid-line x1=(at(x(*tick))) x2=(at(x(*tick))) y1="18" y2=(bottom) {}
                text.soft.small.mid x=(at(x(*tick))) y="12" { (format!("{tick:+} %").replace("+0", "0")) }
            }
            line.zero x1=(at(x(0.0))) x2=(at(x(0.0))) y1="18" y2=(bottom) {}
            @for (i, row) in rows.iter().enumerate() {
                @let y = 28.0 + line * i as f64;
                text.small.end x=(left - 10.0) y=(at(y + 4.0)) { (clean(&row.name)) }
                path.dots d=(dots(row.pairs.iter().filter(|p| p.is_finite()).map(|p| (x(*p), y + 5.0)))) {}
                @if let Some(Shown { value, low, high }) = row.estimate {
                    @if low.is_finite() && high.is_finite() {
                        line.interval x1=(at(x(low))) x2=(at(x(high))) y1=(at(y)) y2=(at(y)) {}
                    }
                    @if value.is_finite() {
                        circle.estimate cx=(at(x(value))) cy=(at(y)) r="3.4" {}
                    }
                }
                text.soft.small x=(right + 12.0) y=(at(y + 4.0)) { (clean(&row.verdict)) }
            }
        }
    }
}

/// Runs over time: what drifted, jumped or came in waves.
pub(super) fn timeline(chart: &Timeline) -> Markup {
    let (left, right, top, bottom) = (60.0, 840.0, 26.0, 170.0);
    let all = || {
        let both = chart.baseline.iter().chain(&chart.experiment);
        both.copied()
            .filter(|(x, y)| x.is_finite() && y.is_finite())
    };
    let first = all().map(|p| p.0).fold(f64::INFINITY, f64::min);
    let last = all().map(|p| p.0).fold(f64::NEG_INFINITY, f64::max);
    let highest = all().map(|p| p.1).fold(0.0, f64::max);
    let lowest = all().map(|p| p.1).fold(0.0, f64::min);
    let rise = step(highest - lowest, 4.0);
    // Where nothing has a height: a frame of any height.
    let (low, full) = if rise > 0.0 {
        (
            (lowest / rise).floor() * rise,
            (highest / rise).ceil() * rise,
        )
    } else {
        (0.0, 1.0)
    };
    let x = |t: f64| left + (right - left) * (t - first) / (last - first).max(1e-9);
    let y = |v: f64| bottom - (bottom - top) * (v - low) / (full - low);
    let ticks = ticks(low, full, rise);
    let times = ticks_within(first, last);
    let series = |points: &[(f64, f64)]| {
        let finite = points
            .iter()
            .filter(|(x, y)| x.is_finite() && y.is_finite());
        dots(finite.map(|(t, v)| (x(*t), y(*v))))
    };
    html! {
        svg viewBox="0 0 850 192" role="img" aria-label=(clean(&chart.title)) {
            text.bold x="4" y="14" { (clean(&chart.title)) }
            @for tick in &ticks {
                line.grid-line x1=(left) x2=(right) y1=(at(y(*tick))) y2=(at(y(*tick))) {}
                text.soft.small.end x=(left - 6.0) y=(at(y(*tick) + 4.0)) { ((chart.format)(*tick)) }
            }
            @for t in &times {
                text.soft.small.mid x=(at(x(*t))) y=(bottom + 16.0) { (number::short(*t)) }
            }
            text.soft.small.end x=(right) y="14" { (clean(&chart.x_title)) }
            path.base-dots d=(series(&chart.baseline)) {}
            path.exp-dots d=(series(&chart.experiment)) {}
        }
    }
}

/// Returns the key to baseline and experiment in curves and timelines.
pub(super) fn key(baseline: &str, experiment: &str) -> Markup {
    html! {
        p.note {
            svg width="34" height="10" style="display:inline" aria-hidden="true" {
                line.base.dash x1="0" x2="34" y1="5" y2="5" {}
                rect.base-mark x="14" y="2" width="6" height="6" {}
            }
            " baseline: " (clean(baseline)) " \u{2003}"
            svg width="34" height="10" style="display:inline" aria-hidden="true" {
                line.exp x1="0" x2="34" y1="5" y2="5" {}
                circle.exp-mark cx="17" cy="5" r="3" {}
            }
            " experiment: " (clean(experiment))
        }
    }
}

/// Points as one path: a stroke of no length with a round end is a dot.
fn dots(points: impl Iterator<Item = (f64, f64)>) -> String {
    points
        .map(|(x, y)| format!("M{},{}h0", at(x), at(y)))
        .collect()
}

/// Returns a coordinate, to a tenth of a pixel.
pub(super) fn at(x: f64) -> f64 {
    // Adding zero turns -0 into 0.
    (x * 10.0).round() / 10.0 + 0.0
}

/// Multiples of `step` from `low` to `high`.
fn ticks(low: f64, high: f64, step: f64) -> Vec<f64> {
    let tick = |i: i32| low + step * f64::from(i);
    if step <= 0.0 {
        return Vec::new();
    }
    (0..=12)
        .map(tick)
        .take_while(|t| *t <= high + 0.001 * step)
        .collect()
}

/// Returns round places within a range of time.
fn ticks_within(first: f64, last: f64) -> Vec<f64> {
    let step = step(last - first, 6.0);
    if step <= 0.0 {
        return Vec::new();
    }
    ticks((first / step).ceil() * step, last, step)
}

/// Returns a round step that goes into `highest` about `wanted` times; 0 if nothing
/// has a height.
pub(super) fn step(highest: f64, wanted: f64) -> f64 {
    if !(highest > 0.0 && highest.is_finite()) {
        return 0.0;
    }
    let rough = highest / wanted;
    let power = 10_f64.powf(rough.log10().floor());
    let lead = rough / power;
    let round = match lead {
        l if l <= 1.0 => 1.0,
        l if l <= 2.0 => 2.0,
        l if l <= 5.0 => 5.0,
        _ => 10.0,
    };
    let step = round * power;
    // Subnormal powers of ten are zero.
    if step > 0.0 && step.is_finite() {
        step
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid(columns: &[&str]) -> Grid {
        Grid {
            row_title: "lock".into(),
            column_title: "machine".into(),
            columns: columns.iter().map(|name| (*name).to_owned()).collect(),
            rows: Vec::new(),
        }
    }

    /// Two names side by side would overlap where they are longer than a cell.
    #[test]
    fn long_names_of_columns_slant_and_have_room() {
        let short = grid(&["0", "1024"]);
        let long = grid(&["flat-16", "neoverse-n1-altra-2s"]);
        assert!(!heat_map(&short, None).into_string().contains("rotate"));
        assert_eq!(
            heat_map(&long, None)
                .into_string()
                .matches("rotate(-45)")
                .count(),
            2
        );
        let ((width, height), room) = (heat_map_size(&short), slant(&long));
        assert!(room > 7 * 20 * 5 / 7, "{room}");
        assert_eq!(heat_map_size(&long), (width + room, height + room));
    }
}
