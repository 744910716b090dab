//! Verdicts that have a place in a matrix, as a grid and as one sentence.
//!
//! They serve a matrix of cells, and a matrix that each run gives whole.

use super::caveats::sentence_case;
use super::inputs::{Lengths, Sides};
use super::region;
use locklab_document::number::{self, label};
use locklab_document::{Facts, Grid, GridCell, GridRow, Shade, mark};
use locklab_judge::{Judged, Shown, Verdict};
use std::collections::BTreeSet;

/// The most regions that are named; the others are counted.
const MOST_REGIONS: usize = 3;

/// A verdict with its place in a matrix.
#[derive(Clone, Debug)]
pub(super) struct Placed<'a> {
    pub(super) threads: u64,
    pub(super) critical: u64,
    pub(super) non_critical: u64,
    /// Number of subjects in use at once, where that was asked.
    pub(super) at_once: Option<u64>,
    pub(super) judged: &'a Judged,
    /// experiment / baseline, unless invalid.
    pub(super) ratio: Option<Shown>,
    /// Says whether there are more threads than CPUs.
    pub(super) crowded: bool,
    /// Says whether handoffs point in the opposite direction.
    pub(super) disagrees: bool,
    /// Says whether, in a simulation, its verdict depends on the model's assumptions.
    pub(super) held_back: bool,
    /// The text of its tooltip after its name and interval.
    pub(super) detail: String,
}

/// Returns the values of some cells on an axis, in order.
pub(super) fn axis<T, N: Ord>(cells: &[T], of: impl Fn(&T) -> N) -> Vec<N> {
    let values: BTreeSet<N> = cells.iter().map(of).collect();
    values.into_iter().collect()
}

impl Placed<'_> {
    /// Returns a text such as "4 threads, critical 0, non-critical 32".
    pub(super) fn name(&self, lengths: Lengths) -> String {
        let unit = lengths.unit();
        let threads = usize::try_from(self.threads).unwrap_or(usize::MAX);
        let at_once = lengths.at_once(self.at_once);
        format!(
            "{} {}, critical {}{unit}, non-critical {}{unit}{at_once}",
            label(self.threads),
            number::plural(threads, lengths.noun()),
            label(self.critical),
            label(self.non_critical),
        )
    }

    /// Returns the ratio as printed in a grid.
    pub(super) fn value(&self) -> String {
        self.ratio
            .map(|r| number::ratio(r.value))
            .unwrap_or_default()
    }

    /// Returns the mark of the verdict, and a flag if there is one.
    pub(super) fn mark(&self) -> String {
        let flag = match (self.disagrees, self.held_back) {
            (true, _) => "s",
            (_, true) => "m",
            _ => "",
        };
        format!("{}{flag}", mark(&self.judged.verdict))
    }

    fn cell(&self, lengths: Lengths) -> GridCell {
        let verdict = &self.judged.verdict;
        let interval = self.ratio.map_or_else(String::new, |r| {
            let [value, low, high] = [r.value, r.low, r.high].map(number::ratio);
            format!("{value} (95 %: {low} to {high}), ")
        });
        GridCell {
            value: self.value(),
            mark: self.mark(),
            shade: Shade::of(verdict, self.ratio.map(|r| r.value)),
            detail: format!(
                "{}: {interval}{}{}{}",
                self.name(lengths),
                verdict.word(),
                if self.held_back { " (model)" } else { "" },
                self.detail
            ),
        }
    }
}

/// Returns a grid of the cells of one non-critical length: rows are threads, columns
/// critical lengths.
pub(super) fn grid(cells: &[Placed], lengths: Lengths) -> Grid {
    shape(cells, lengths, |placed| placed.cell(lengths))
}

/// Returns a grid of the same shape with different contents.
pub(super) fn shape(cells: &[Placed], lengths: Lengths, of: impl Fn(&Placed) -> GridCell) -> Grid {
    let columns = axis(cells, |c| c.critical);
    let rows = axis(cells, |c| c.threads)
        .into_iter()
        .map(|threads| {
            let row: Vec<&Placed> = cells.iter().filter(|c| c.threads == threads).collect();
            let crowded = row.iter().any(|c| c.crowded);
            let at = |length: &u64| row.iter().find(|c| c.critical == *length).map(|c| of(c));
            GridRow {
                name: label(threads),
                flag: if crowded { "o" } else { "" }.into(),
                cells: columns.iter().map(at).collect(),
            }
        })
        .collect();
    Grid {
        row_title: number::plural(2, lengths.noun()),
        column_title: format!("critical length{}", lengths.unit()),
        columns: columns.into_iter().map(label).collect(),
        rows,
    }
}

/// Returns the legend: only the signs that occur, each with its meaning.
pub(super) fn legend(cells: &[Placed], margin: &str, gaps: bool) -> Vec<(String, String)> {
    let has = |word: &str| cells.iter().any(|c| c.judged.verdict.word() == word);
    let flat = format!("shown flat (within {margin} %)");
    [
        ("+", "better", true),
        ("-", "worse", true),
        ("=", flat.as_str(), true),
        (
            "?",
            "unclear: neither shown to differ nor to be flat",
            has("unclear"),
        ),
        ("!", "invalid", has("invalid")),
        (".", "not measured here", gaps),
        (
            "o",
            "more threads than CPUs",
            cells.iter().any(|c| c.crowded),
        ),
        (
            "s",
            "handoffs point the other way, see Caveats",
            cells.iter().any(|c| c.disagrees),
        ),
        (
            "m",
            "unclear (model): it depends on what the model assumes",
            cells.iter().any(|c| c.held_back),
        ),
    ]
    .into_iter()
    .filter(|(_, _, occurs)| *occurs)
    .map(|(sign, meaning, _)| (sign.to_owned(), meaning.to_owned()))
    .collect()
}

/// Describes what was found in some cells.
pub(super) struct Summary {
    /// One or two short sentences.
    pub(super) sentence: String,
    /// Says which cells, by verdict, where a sentence cannot name them in few words.
    pub(super) places: Facts,
}

/// Says what was found in some cells.
pub(super) fn summary(cells: &[Placed], sides: &Sides, margin: &str, lengths: Lengths) -> Summary {
    let found: Vec<Found> = ["better", "worse", "flat", "unclear", "invalid"]
        .into_iter()
        .filter_map(|word| Found::new(word, cells, lengths))
        .collect();
    let sentence = match found.as_slice() {
        [] => "No cell was measured, so nothing is claimed.".into(),
        [all] => of_all(all, sides, margin),
        _ => of_some(&found, cells.len(), sides, margin),
    };
    // One place is named in the sentence, several are a table.
    let places = match in_sentence(&found) || found.len() == 1 {
        true => Facts::new(),
        false => found
            .into_iter()
            .map(|found| (found.word.to_owned(), found.places))
            .collect(),
    };
    Summary { sentence, places }
}

/// The cells of one verdict.
struct Found<'a> {
    word: &'static str,
    cells: Vec<&'a Placed<'a>>,
    /// Number of cells whose difference is within the margin and not zero.
    nonzero: usize,
    /// Says where they are.
    places: String,
}

impl<'a> Found<'a> {
    /// Collects the cells with a verdict; `None` where there is none.
    fn new(word: &'static str, cells: &'a [Placed<'a>], lengths: Lengths) -> Option<Self> {
        let is = |c: &&Placed| c.judged.verdict.word() == word;
        let of: Vec<&Placed> = cells.iter().filter(is).collect();
        let nonzero = |c: &&&Placed| c.judged.verdict == Verdict::Flat { nonzero: true };
        (!of.is_empty()).then(|| Self {
            word,
            nonzero: of.iter().filter(nonzero).count(),
            places: places(cells, &of, lengths),
            cells: of,
        })
    }
}

/// Returns whether the places of all verdicts are short enough for a sentence.
fn in_sentence(found: &[Found]) -> bool {
    found.iter().all(|found| !found.places.contains(';'))
}

/// Says that all cells have one verdict.
fn of_all(found: &Found, sides: &Sides, margin: &str) -> String {
    let Sides {
        experiment,
        baseline,
        ..
    } = sides;
    let place = match found.cells.len() {
        1 => "In the only cell".into(),
        2 => "In both cells".into(),
        n => format!("In all {}", number::count(n, "cell")),
    };
    match found.word {
        "better" | "worse" => {
            let word = call(found, sides);
            let extent = extent(&found.cells);
            format!("{place} {experiment} is {word} than {baseline}, by {extent}.")
        }
        "flat" => {
            let nonzero = match found.nonzero {
                0 => String::new(),
                n if n == found.cells.len() => ", with a difference that is not zero".into(),
                n => format!(", with a difference that is not zero in {n}"),
            };
            format!("{place} {experiment} and {baseline} are equal within {margin} %{nonzero}.")
        }
        "unclear" => format!(
            "{place} it is unclear whether {experiment} or {baseline} is {}.",
            sides.word(&Verdict::Better)
        ),
        _ => format!("{place} {experiment} against {baseline} is invalid."),
    }
}

/// Says in how many cells each verdict was reached: better and worse first, which
/// are what a reader came for.
fn of_some(found: &[Found], cells: usize, sides: &Sides, margin: &str) -> String {
    let Sides {
        experiment,
        baseline,
        ..
    } = sides;
    let named = in_sentence(found);
    let place = |found: &Found| match named {
        true => format!(" ({})", found.places),
        false => String::new(),
    };
    let (called, others): (Vec<&Found>, Vec<&Found>) = found
        .iter()
        .partition(|found| matches!(found.word, "better" | "worse"));
    let part = |found: &&Found, than: &str| {
        format!(
            "{}{than} in {}, by {}{}",
            call(found, sides),
            found.cells.len(),
            extent(&found.cells),
            place(found)
        )
    };
    let than = format!(" than {baseline}");
    let cells = number::count(cells, "cell");
    let calls = match called.as_slice() {
        [] => format!(
            "In none of {cells} is {experiment} shown to be {} or {}{than}.",
            sides.word(&Verdict::Better),
            sides.word(&Verdict::Worse)
        ),
        [one] => {
            let other = match one.word {
                "better" => Verdict::Worse,
                _ => Verdict::Better,
            };
            format!(
                "Of {cells}, {experiment} is {}, and {} in none.",
                part(one, &than),
                sides.word(&other)
            )
        }
        [first, rest @ ..] => {
            let rest: Vec<String> = rest.iter().map(|found| part(found, "")).collect();
            format!(
                "Of {cells}, {experiment} is {}, and {}.",
                part(first, &than),
                rest.join(", and ")
            )
        }
    };
    let others: Vec<String> = others
        .into_iter()
        .map(|found| {
            let (n, place) = (found.cells.len(), place(found));
            match found.word {
                "flat" => {
                    let nonzero = match found.nonzero {
                        0 => String::new(),
                        all if all == n => ", with a difference that is not zero".into(),
                        some => format!(", with a difference that is not zero in {some}"),
                    };
                    format!("the two are equal within {margin} % in {n}{place}{nonzero}")
                }
                word => format!("{n} {} {word}{place}", if n == 1 { "is" } else { "are" }),
            }
        })
        .collect();
    match others.is_empty() {
        true => calls,
        false => format!("{calls} {}.", sentence_case(&others.join("; "))),
    }
}

/// Returns the comparative of a verdict that calls.
fn call(found: &Found, sides: &Sides) -> &'static str {
    match found.word {
        "better" => sides.word(&Verdict::Better),
        _ => sides.word(&Verdict::Worse),
    }
}

/// Returns a text such as "better in 2, flat in 5 of 7 cells".
pub(super) fn counts(cells: &[Placed]) -> String {
    let found: Vec<String> = ["better", "worse", "flat", "unclear", "invalid"]
        .into_iter()
        .filter_map(|word| {
            let of = cells.iter().filter(|c| c.judged.verdict.word() == word);
            let count = of.count();
            (count > 0).then(|| format!("{word} in {count}"))
        })
        .collect();
    format!(
        "{} of {}",
        found.join(", "),
        number::count(cells.len(), "cell")
    )
}

/// Returns "12 to 95 %", or "a factor of 1.12 to 24.0" where percentages mislead.
pub(super) fn extent(cells: &[&Placed]) -> String {
    let ratios: Vec<f64> = cells.iter().filter_map(|c| Some(c.ratio?.value)).collect();
    let low = ratios.iter().copied().fold(f64::INFINITY, f64::min);
    let high = ratios.iter().copied().fold(0.0, f64::max);
    let span = |a: String, b: String| {
        if a == b { a } else { format!("{a} to {b}") }
    };
    if high >= 3.0 {
        let factors = span(number::factor(low), number::factor(high));
        return format!("a factor of {factors}");
    }
    let percent = |r: f64| number::percent((100.0 * (r - 1.0)).abs());
    let (near, far) = if high > 1.0 { (low, high) } else { (high, low) };
    format!("{} %", span(percent(near), percent(far)))
}

/// Returns a short description of where some of the cells are.
pub(super) fn places(cells: &[Placed], found: &[&Placed], lengths: Lengths) -> String {
    let threads = axis(cells, |c| c.threads);
    let critical = axis(cells, |c| c.critical);
    let non_critical = axis(cells, |c| c.non_critical);
    let place = |c: &&Placed| {
        let on = |axis: &[u64], n: u64| axis.binary_search(&n).unwrap_or(0);
        [
            on(&threads, c.threads),
            on(&critical, c.critical),
            on(&non_critical, c.non_critical),
        ]
    };
    let places: Vec<_> = found.iter().map(place).collect();
    let sizes = [threads.len(), critical.len(), non_critical.len()];
    let Some(covered) = region::cover(&places, sizes) else {
        return "too many cells to group; see the tables".into();
    };
    // A scatter of single cells is not named as a region.
    let named = covered
        .iter()
        .take(MOST_REGIONS)
        .take_while(|r| r.cells > 1 || covered.len() <= MOST_REGIONS);
    let mut words: Vec<String> = named
        .map(|r| {
            // A whole axis is not mentioned.
            let span = |axis: &[u64], of: usize| {
                let whole = r.low[of] == 0 && r.high[of] + 1 == axis.len();
                (!whole).then(|| (axis[r.low[of]], axis[r.high[of]]))
            };
            let mut words = Vec::new();
            if let Some((low, high)) = span(&threads, 0) {
                let several = if (low, high) == (1, 1) { 1 } else { 2 };
                let noun = number::plural(several, lengths.noun());
                words.push(format!("{} {noun}", range(low, high)));
            }
            if let Some((low, high)) = span(&critical, 1) {
                words.push(format!("critical length {}", range(low, high)));
            }
            if let Some((low, high)) = span(&non_critical, 2) {
                words.push(format!("non-critical length {}", range(low, high)));
            }
            if words.is_empty() {
                "everywhere".into()
            } else {
                words.join(", ")
            }
        })
        .collect();
    let rest: usize = covered.iter().skip(words.len()).map(|r| r.cells).sum();
    if rest > 0 {
        words.push(if words.is_empty() {
            "scattered".into()
        } else {
            format!("{} elsewhere", number::count(rest, "cell"))
        });
    }
    words.join("; ")
}

fn range(low: u64, high: u64) -> String {
    if low == high {
        label(low)
    } else {
        format!("{} to {}", label(low), label(high))
    }
}
