//! Verdicts that have a place in a matrix, as a grid and as one sentence.
//!
//! They serve a matrix of cells, and a matrix that each run gives whole.

use super::caveats::sentence_case;
use super::inputs::Lengths;
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
    /// Whether there are more threads than CPUs.
    pub(super) crowded: bool,
    /// Whether handoffs point in the opposite direction.
    pub(super) disagrees: bool,
    /// Whether, in a simulation, its verdict depends on the model's
    /// assumptions.
    pub(super) held_back: bool,
    /// The text of its tooltip after its name and interval.
    pub(super) detail: String,
}

/// The values of some cells on an axis, in order.
pub(super) fn axis<T, N: Ord>(cells: &[T], of: impl Fn(&T) -> N) -> Vec<N> {
    let values: BTreeSet<N> = cells.iter().map(of).collect();
    values.into_iter().collect()
}

impl Placed<'_> {
    /// "4 threads, critical 0, non-critical 32".
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

    /// The ratio as printed in a grid.
    pub(super) fn value(&self) -> String {
        self.ratio
            .map(|r| number::ratio(r.value))
            .unwrap_or_default()
    }

    /// The mark of the verdict, and a flag if there is one.
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

/// A grid of the cells of one non-critical length: rows are threads, columns
/// critical lengths.
pub(super) fn grid(cells: &[Placed], lengths: Lengths) -> Grid {
    shape(cells, lengths, |placed| placed.cell(lengths))
}

/// A grid of the same shape with different contents.
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

/// The legend: only the signs that occur, each with its meaning.
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

/// What was found in some cells.
pub(super) struct Summary {
    /// One or two short sentences.
    pub(super) sentence: String,
    /// Which cells, by verdict, where a sentence cannot name them in few words.
    pub(super) places: Facts,
}

/// Says what was found in some cells.
pub(super) fn summary(cells: &[Placed], subject: &str, margin: &str, lengths: Lengths) -> Summary {
    let of = |word: &str| -> Vec<&Placed> {
        let is = |c: &&Placed| c.judged.verdict.word() == word;
        cells.iter().filter(is).collect()
    };
    let mut found: Vec<(&str, String, String)> = Vec::new();
    if !cells.is_empty() && of("better").is_empty() && of("worse").is_empty() {
        // Better and worse are what a reader came for.
        found.push(("", "neither better nor worse in any".into(), String::new()));
    }
    for word in ["better", "worse", "flat", "unclear", "invalid"] {
        let of = of(word);
        if of.is_empty() {
            if found.iter().all(|(word, ..)| *word == "better")
                && matches!(word, "better" | "worse")
            {
                found.push((word, format!("{word} in none"), String::new()));
            }
            continue;
        }
        let all = of.len() == cells.len();
        let mut part = match word {
            "flat" => format!("shown flat within {margin} %"),
            _ => word.to_owned(),
        };
        match all {
            // One verdict of all cells needs no list of the others.
            true => found.clear(),
            false => part.push_str(&format!(" in {}", of.len())),
        }
        if matches!(word, "better" | "worse") {
            part.push_str(&format!(", by {}", extent(&of)));
        }
        if word == "flat" {
            let nonzero = |c: &&&Placed| c.judged.verdict == Verdict::Flat { nonzero: true };
            match of.iter().filter(nonzero).count() {
                0 => {}
                n if n == of.len() => part.push_str(", small but not zero"),
                n => part.push_str(&format!(", {n} of them small but not zero")),
            }
        }
        let places = match all {
            true => String::new(),
            false => regions(cells, &of, lengths),
        };
        found.push((word, part, places));
        if all {
            break;
        }
    }
    let count = match (found.len(), cells.len()) {
        (1, 2) => "both cells".into(),
        (1, several @ 3..) => format!("all {}", number::count(several, "cell")),
        (_, cells) => number::count(cells, "cell"),
    };
    let join = |parts: Vec<String>| parts.join("; ");
    // One region is named in a word or two, several are a table.
    if found.iter().all(|(_, _, places)| !places.contains(';')) {
        let part = |(_, part, places): &(&str, String, String)| match places.as_str() {
            "" => part.clone(),
            places => format!("{part} ({places})"),
        };
        let sentence = match cells.is_empty() {
            true => "No cell was measured, so nothing is claimed.".into(),
            false => format!(
                "In {count}, {subject} is {}.",
                join(found.iter().map(part).collect())
            ),
        };
        return Summary {
            sentence,
            places: Facts::new(),
        };
    }
    let part = |(_, part, _): &(&str, String, String)| part.clone();
    let is_call = |(word, ..): &&(&str, String, String)| matches!(*word, "" | "better" | "worse");
    let (calls, others) = found.split_at(found.iter().take_while(is_call).count());
    let mut sentence = format!(
        "In {count}, {subject} is {}.",
        join(calls.iter().map(part).collect())
    );
    if !others.is_empty() {
        let others = join(others.iter().map(part).collect());
        sentence += &format!(" {}.", sentence_case(&others));
    }
    let places = found
        .into_iter()
        .filter(|(_, _, places)| !places.is_empty());
    Summary {
        sentence,
        places: places
            .map(|(word, _, places)| (word.to_owned(), places))
            .collect(),
    }
}

/// "better in 2, flat in 5 of 7 cells".
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

/// "12 to 95 %", or "a factor of 1.12 to 24.0" where percentages mislead.
fn extent(cells: &[&Placed]) -> String {
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

/// A short description of where some of the cells are.
fn regions(cells: &[Placed], found: &[&Placed], lengths: Lengths) -> String {
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
