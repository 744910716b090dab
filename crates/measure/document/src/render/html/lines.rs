//! A chart of many lines as SVG: each that matters has a colour, a mark and its
//! name at its right end; all others are grey. Every mark has its figure as a
//! tooltip. The colours are Okabe and Ito's, which readers with any of the
//! common colour deficiencies tell apart.

use super::chart::{at, step};
use crate::lines::{COLOURED, Line, LinePoint, Lines};
use crate::number;
use crate::render::clean::clean;
use maud::{Markup, html};

/// Pixels of one chart.
const SIZE: (usize, usize) = (560, 330);
const LEFT: f64 = 56.0;
/// Right end of the plot; names are beyond it.
const RIGHT: f64 = 420.0;
const TOP: f64 = 30.0;
const BOTTOM: f64 = 284.0;
/// Least distance of two names.
const LEADING: f64 = 14.0;

/// Returns the size of charts below one another.
pub(super) fn size(charts: &[Lines]) -> (usize, usize) {
    (SIZE.0, (SIZE.1 + 10) * charts.len())
}

/// Charts below one another, for a picture of its own.
pub(super) fn side_by_side(charts: &[Lines]) -> Markup {
    html! {
        @for (i, chart) in charts.iter().enumerate() {
            svg x="0" y=((SIZE.1 + 10) * i) width=(SIZE.0) height=(SIZE.1) { (lines(chart)) }
        }
    }
}

/// The y axis: from a value to pixels, and where it has ticks.
struct Axis {
    low: f64,
    high: f64,
    logarithmic: bool,
    ticks: Vec<f64>,
}

impl Axis {
    fn of(chart: &Lines) -> Self {
        // Limits too: a band that is cut at the border reads as if it ended there.
        let values = || {
            let points = chart.lines.iter().flat_map(|line| &line.points);
            let heights = points.flat_map(|p| {
                let (low, high) = p.limits.unwrap_or((p.value, p.value));
                [p.value, low, high]
            });
            heights.filter(|x| x.is_finite())
        };
        let highest = values().fold(0.0, f64::max);
        let positive = values().filter(|x| *x > 0.0);
        let lowest = positive.fold(f64::INFINITY, f64::min);
        if chart.logarithmic && lowest < highest {
            let (low, high) = (lowest * 0.9, highest * 1.1);
            let first = low.log10().floor() as i32;
            let last = high.log10().ceil() as i32;
            let steps: &[f64] = if last - first > 3 {
                &[1.0]
            } else {
                &[1.0, 2.0, 5.0]
            };
            let ticks = (first..=last)
                .flat_map(|power| steps.iter().map(move |s| s * 10_f64.powi(power)))
                .filter(|tick| (low..=high).contains(tick))
                .collect();
            return Self {
                low,
                high,
                logarithmic: true,
                ticks,
            };
        }
        let step = step(highest, 5.0);
        let high = if step > 0.0 {
            (highest / step).ceil() * step
        } else {
            1.0
        };
        let count = if step > 0.0 {
            (high / step).round() as usize
        } else {
            0
        };
        Self {
            low: 0.0,
            high,
            logarithmic: false,
            ticks: (0..=count).map(|i| step * i as f64).collect(),
        }
    }

    fn y(&self, value: f64) -> f64 {
        let value = value.clamp(self.low, self.high);
        let share = if self.logarithmic {
            (value / self.low).ln() / (self.high / self.low).ln()
        } else {
            value / self.high
        };
        BOTTOM - (BOTTOM - TOP) * share
    }
}

/// Returns one chart.
pub(super) fn lines(chart: &Lines) -> Markup {
    let axis = Axis::of(chart);
    let names = &chart.names;
    let gap = (RIGHT - LEFT - 24.0) / (names.len().max(2) - 1) as f64;
    let x = |place: usize| LEFT + 12.0 + gap * place as f64;
    let room = 8.0 * names.iter().map(String::len).max().unwrap_or(1) as f64;
    let every = ((room / gap).ceil() as usize).max(1);
    let (grey, coloured): (Vec<&Line>, Vec<&Line>) =
        chart.lines.iter().partition(|line| line.colour.is_none());
    let labels = labels(&coloured, &axis);
    html! {
        svg viewBox=(format!("0 0 {} {}", SIZE.0, SIZE.1)) role="img" aria-label=(clean(&chart.title)) {
            text.bold x="4" y="16" { (clean(&chart.title)) }
            @for tick in &axis.ticks {
                line.grid-line x1=(LEFT) x2=(RIGHT) y1=(at(axis.y(*tick))) y2=(at(axis.y(*tick))) {}
                text.soft.small.end x=(LEFT - 6.0) y=(at(axis.y(*tick) + 4.0)) { (number::short(*tick)) }
            }
            @for (i, name) in names.iter().enumerate() {
                @if (names.len() - 1 - i).is_multiple_of(every) {
                    text.soft.small.mid x=(at(x(i))) y=(BOTTOM + 16.0) { (clean(name)) }
                }
            }
            text.soft.small.end x=(RIGHT) y=(BOTTOM + 34.0) { (x_title(chart)) }
            @for line in grey { (one(line, &axis, &x)) }
            @for line in coloured.iter().rev() { (band(line, &axis, &x)) }
            @for line in coloured.iter().rev() { (one(line, &axis, &x)) }
            @for (line, from, to) in &labels {
                @let class = class(line);
                @if let Some(last) = line.points.last() {
                    line class={ "leader " (class) } x1=(at(x(last.place) + 6.0)) x2=(at(RIGHT + 6.0)) y1=(at(*from)) y2=(at(*to)) {}
                }
                text class={ "name " (class) (if line.bold { " bold" } else { "" }) } x=(RIGHT + 10.0) y=(at(to + 4.0)) { (clean(&line.name)) }
            }
        }
    }
}

/// Returns the title of the x axis, which says where places that are numbers have equal
/// distances though the numbers have not.
fn x_title(chart: &Lines) -> String {
    let title = clean(&chart.x_title);
    let numbers: Option<Vec<f64>> = chart.names.iter().map(|n| n.parse().ok()).collect();
    let to_scale = numbers.is_none_or(|numbers| {
        let mut steps = numbers.windows(2).map(|two| two[1] - two[0]);
        let first = steps.next();
        steps.all(|step| Some(step) == first)
    });
    match to_scale {
        true => title.to_string(),
        false => format!("{title} (not to scale)"),
    }
}

/// Returns the class of its colour.
fn class(line: &Line) -> String {
    match line.colour {
        Some(colour) => format!("c{}", colour % COLOURED),
        None => "other".into(),
    }
}

/// Returns each line with the height of its end and that of its name, so far apart
/// that no two names touch.
fn labels<'a>(lines: &[&'a Line], axis: &Axis) -> Vec<(&'a Line, f64, f64)> {
    let mut labels: Vec<(&Line, f64, f64)> = lines
        .iter()
        .filter_map(|line| {
            let y = axis.y(line.points.last()?.value);
            Some((*line, y, y))
        })
        .collect();
    labels.sort_by(|a, b| a.1.total_cmp(&b.1));
    let mut least = TOP;
    for label in &mut labels {
        label.2 = label.2.max(least);
        least = label.2 + LEADING;
    }
    let mut most = BOTTOM + 4.0;
    for label in labels.iter_mut().rev() {
        label.2 = label.2.min(most);
        most = label.2 - LEADING;
    }
    labels
}

fn finite(line: &Line) -> Vec<&LinePoint> {
    line.points.iter().filter(|p| p.value.is_finite()).collect()
}

fn band(line: &Line, axis: &Axis, x: &impl Fn(usize) -> f64) -> Markup {
    let limited: Vec<(usize, f64, f64)> = finite(line)
        .into_iter()
        .filter_map(|p| {
            let (low, high) = p.limits?;
            (low.is_finite() && high.is_finite()).then_some((p.place, low, high))
        })
        .collect();
    let corner = |place: usize, value: f64| format!("{},{}", at(x(place)), at(axis.y(value)));
    html! {
        @for part in limited.chunk_by(|a, b| b.0 == a.0 + 1).filter(|part| part.len() > 1) {
            @let above = part.iter().map(|(place, _, high)| corner(*place, *high));
            @let below = part.iter().rev().map(|(place, low, _)| corner(*place, *low));
            polygon class={ "band " (class(line)) } points=(above.chain(below).collect::<Vec<_>>().join(" ")) {}
        }
    }
}

fn one(line: &Line, axis: &Axis, x: &impl Fn(usize) -> f64) -> Markup {
    let class = class(line);
    let points = finite(line);
    html! {
        // A line across a place that has no point would claim one.
        @for part in points.chunk_by(|a, b| b.place == a.place + 1) {
            @let path: Vec<String> = part.iter().map(|p| format!("{},{}", at(x(p.place)), at(axis.y(p.value)))).collect();
            polyline class={ "line " (class) (if line.bold { " thick" } else { "" }) } points=(path.join(" ")) {}
        }
        @for p in &points {
            g {
                title { (clean(&p.detail)) }
                path class={ "mark " (class) } d=(mark(line.colour, x(p.place), axis.y(p.value))) {}
            }
        }
    }
}

/// Returns a mark about a point: shapes differ as well as colours.
fn mark(colour: Option<usize>, x: f64, y: f64) -> String {
    let [cx, cy] = [at(x), at(y)];
    match colour.map(|c| c % COLOURED) {
        None => format!("M{},{cy}a2,2 0 1 0 4,0a2,2 0 1 0 -4,0", at(x - 2.0)),
        Some(0) => format!("M{},{cy}a3.5,3.5 0 1 0 7,0a3.5,3.5 0 1 0 -7,0", at(x - 3.5)),
        Some(1) => format!("M{},{}h6.4v6.4h-6.4z", at(x - 3.2), at(y - 3.2)),
        Some(2) => format!("M{cx},{}l4,7h-8z", at(y - 4.0)),
        Some(3) => format!("M{cx},{}l4.4,4.4l-4.4,4.4l-4.4,-4.4z", at(y - 4.4)),
        Some(4) => format!("M{cx},{}l4,-7h-8z", at(y + 4.0)),
        Some(5) => format!(
            "M{},{}h2.4v-3h2.4v3h2.4v2.4h-2.4v3h-2.4v-3h-2.4z",
            at(x - 3.6),
            at(y - 1.2)
        ),
        Some(_) => format!(
            "M{},{}l3.4,3.4l3.4,-3.4v6.8l-3.4,-3.4l-3.4,3.4z",
            at(x - 3.4),
            at(y - 3.4)
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(name: &str, values: &[f64], colour: Option<usize>) -> Line {
        let point = |(place, value): (usize, &f64)| LinePoint {
            place,
            value: *value,
            limits: Some((0.9 * value, 1.1 * value)),
            detail: format!("{name}: {value}"),
        };
        Line {
            name: name.into(),
            points: values.iter().enumerate().map(point).collect(),
            colour,
            bold: false,
        }
    }

    fn chart(lines: Vec<Line>, logarithmic: bool) -> Lines {
        Lines {
            title: "t".into(),
            x_title: "threads".into(),
            names: vec!["1".into(), "2".into(), "4".into()],
            lines,
            logarithmic,
        }
    }

    #[test]
    fn names_never_touch_and_stay_on_the_picture() {
        let lines: Vec<Line> = (0..7)
            .map(|i| {
                line(
                    &i.to_string(),
                    &[1.0, 2.0, 3.0 + 0.001 * f64::from(i)],
                    Some(0),
                )
            })
            .collect();
        let chart = chart(lines, false);
        let axis = Axis::of(&chart);
        let refs: Vec<&Line> = chart.lines.iter().collect();
        let placed = labels(&refs, &axis);
        for two in placed.windows(2) {
            assert!(two[1].2 - two[0].2 >= LEADING - 1e-9);
        }
        assert!(placed.iter().all(|p| (0.0..BOTTOM + 5.0).contains(&p.2)));
    }

    /// The limits of each point are within the plot, so no band ends at its border.
    #[test]
    fn a_band_is_never_cut() {
        for logarithmic in [false, true] {
            let chart = chart(vec![line("a", &[7.9, 8.0, 0.4], Some(0))], logarithmic);
            let axis = Axis::of(&chart);
            for point in &chart.lines[0].points {
                let (low, high) = point.limits.unwrap();
                assert!(axis.low <= low && high <= axis.high, "{low} to {high}");
            }
        }
    }

    #[test]
    fn unequal_steps_of_the_x_axis_are_said() {
        let mut chart = chart(Vec::new(), false);
        assert_eq!(x_title(&chart), "threads (not to scale)");
        chart.names = vec!["1".into(), "2".into(), "3".into()];
        assert_eq!(x_title(&chart), "threads");
        chart.names = vec!["a".into(), "b".into()];
        assert_eq!(x_title(&chart), "threads");
    }

    #[test]
    fn every_point_has_its_figure_and_what_is_not_finite_is_left_out() {
        let drawn = lines(&chart(
            vec![
                line("a<b", &[1.0, f64::NAN, 3.0], Some(1)),
                line("grey", &[1.0, 2.0, 1e4], None),
            ],
            true,
        ))
        .into_string();
        assert_eq!(drawn.matches("<title>").count(), 5);
        assert!(drawn.contains("a&lt;b") && !drawn.contains("NaN"));
        // Nothing at all is a frame.
        assert!(
            lines(&chart(Vec::new(), true))
                .into_string()
                .contains("<svg")
        );
        assert!(
            lines(&chart(vec![line("zero", &[0.0], Some(0))], true))
                .into_string()
                .contains("<svg")
        );
    }
}
