//! Fairness: handoffs, streaks and shares of both locks.
//!
//! Operations per second alone mislead, so these are in every report. All
//! figures of a row are locations by the same estimator over the same runs.

use super::cells::{MANY, groups, handoffs_disagree, placed};
use crate::matrix::{self, EQUAL_SHARE, InText, METRICS, MetricKind, STREAK_MEAN};
use crate::report::caveats::sentence_case;
use crate::report::inputs::Report;
use crate::report::placed::axis;
use crate::verdicts::{Figures, JudgedCell};
use locklab_document::mark;
use locklab_document::number::{self, label};
use locklab_document::{Column, ColumnGroup, Document, Medium, Part, Section, Table};
use locklab_judge::Verdict;
use locklab_workload::Use;

/// Beyond this many cells the text has one row per number of threads; HTML and
/// JSON have them all.
const MOST_ROWS: usize = 36;

/// Returns the metrics that the text shows in its table of handoffs and fairness, each
/// with its title, its width, and whether several cells show their worst.
fn in_text() -> Vec<(&'static MetricKind, &'static str, usize, bool)> {
    let in_text = METRICS.iter().filter_map(|kind| match kind.text {
        InText::Median(title, width) => Some((kind, title, width, false)),
        InText::Worst(title, width) => Some((kind, title, width, true)),
        InText::No | InText::Latency(_) | InText::ByUse(..) => None,
    });
    // What moves the lock, then who got it.
    let mut all: Vec<_> = in_text.collect();
    all.sort_by_key(|(.., worst)| *worst);
    all
}

/// Returns what holds at equal share, in a sentence; `None` where no cell has several
/// threads.
pub(super) fn at_equal_share(report: &Report) -> Option<String> {
    let judged = report
        .measured()
        .filter_map(|cell| cell.metric(EQUAL_SHARE));
    let words: Vec<&str> = judged.map(|judged| judged.verdict.word()).collect();
    let counts = ["better", "worse", "flat"].map(|word| {
        let n = words.iter().filter(|w| **w == word).count();
        format!("{word} in {n}")
    });
    (!words.is_empty()).then(|| {
        format!(
            "At equal share, where every thread counts as the one with the fewest operations, {} \
             is {} of {}.",
            report.experiment.labels.experiment,
            counts.join(", "),
            number::count(words.len(), "cell")
        )
    })
}

/// Returns in which cells a lock has more operations because one thread keeps it, and in which
/// others sharing says the opposite of operations.
pub(super) fn kept(report: &Report) -> Vec<String> {
    /// The share of acquisitions that follow one of the same thread from which on a
    /// thread keeps the lock.
    const KEPT: f64 = 0.5;
    let own = |cell: &JudgedCell| {
        let more = match cell.verdict() {
            Some(Verdict::Better) => &cell.experiment,
            _ => &cell.baseline,
        };
        more.get(STREAK_MEAN).map_or(0.0, matrix::kept)
    };
    let disagree = report.measured().filter(|c| handoffs_disagree(c));
    let (kept, shared): (Vec<f64>, Vec<f64>) = disagree.map(own).partition(|own| *own >= KEPT);
    let mut list = Vec::new();
    if !kept.is_empty() {
        let ends = [
            kept.iter().copied().fold(f64::INFINITY, f64::min),
            kept.iter().copied().fold(0.0, f64::max),
        ];
        let [least, most] = ends.map(|share| number::percent(100.0 * share));
        let own = match least == most {
            true => most,
            false => format!("{least} to {most}"),
        };
        list.push(format!(
            "In {} ('s') a lock has more operations, because one thread keeps it: {own} % of its \
             acquisitions follow its own. {}: read operations at equal share and handoffs beside \
             the ratio.",
            number::count(kept.len(), "cell"),
            sentence_case(report.context.words.handoffs)
        ));
    }
    if !shared.is_empty() {
        list.push(format!(
            "In {} ('s') operations point one way, and handoffs or operations at equal share the \
             other: read them beside the ratio.",
            number::count(shared.len(), "cell"),
        ));
    }
    list
}

/// A metric in the table of every figure: title, name and format.
type Shown<'a> = (&'a str, &'a str, fn(f64) -> String);

fn on(report: &Report, cell: &JudgedCell, axis: &str) -> u64 {
    report.cell(cell).key.number(axis).unwrap_or(0)
}

/// Tables of handoffs and fairness, and of latency where it was measured.
pub(super) fn as_text(report: &Report, document: &mut Document) {
    let known = |c: &&JudgedCell| {
        in_text()
            .iter()
            .any(|(m, ..)| c.baseline.get(m.name).is_some())
    };
    let shared = |c: &&JudgedCell| on(report, c, "threads") > 1 && known(c);
    let count = report.measured().filter(shared).count();
    if count > 0 {
        let compact = count > MOST_ROWS;
        let mut section =
            Section::new("Handoffs and fairness, baseline and experiment side by side").note(
                "handoffs/s between threads; equal/s: operations of the thread with the fewest, \
                 times the threads; streak: acquisitions in a row by one owner, mean; Jain's index \
                 (1 is fair).",
            );
        if compact {
            section = section.note(
                "Over the critical lengths: the median of rates and streaks, the worst of Jain's \
                 index; HTML and JSON have every cell.",
            );
        }
        document.push(section.only(Medium::Text));
        for group in groups(report) {
            let words = group.words(|class| format!("\"{class}\""));
            let placed: String = words.iter().map(|word| format!(", {word}")).collect();
            let cells: Vec<&JudgedCell> = group.cells.into_iter().filter(shared).collect();
            for length in axis(&cells, |c| on(report, c, "non_critical")) {
                let of = |c: &&JudgedCell| on(report, c, "non_critical") == length;
                let block: Vec<&JudgedCell> = cells.iter().copied().filter(of).collect();
                let unit = report.lengths.unit();
                let title = format!("Non-critical length {length}{unit}{placed}");
                let table = Part::Table(table(report, &block, compact));
                document.push(Section::minor(title).with(table).only(Medium::Text));
            }
        }
    }
    latency(report, document);
}

fn sides(title: &str, width: usize) -> ColumnGroup {
    let columns = ["base", "exp"].map(|side| Column::new(side, width));
    ColumnGroup::new(title, columns.into())
}

fn table(report: &Report, cells: &[&JudgedCell], compact: bool) -> Table {
    let critical = if compact { "" } else { "critical" };
    let mut groups = vec![ColumnGroup::new(
        "",
        vec![Column::new("threads", 7), Column::new(critical, 8)],
    )];
    let shown = in_text();
    groups.extend(
        shown
            .iter()
            .map(|(_, title, width, _)| sides(title, *width)),
    );
    let mut rows = Vec::new();
    for threads in axis(cells, |c| on(report, c, "threads")) {
        let of = |c: &&&JudgedCell| on(report, c, "threads") == threads;
        let of_threads: Vec<&JudgedCell> = cells.iter().filter(of).copied().collect();
        if compact {
            rows.push(row(threads, None, &of_threads));
        } else {
            for cell in of_threads {
                rows.push(row(threads, Some(on(report, cell, "critical")), &[cell]));
            }
        }
    }
    Table { groups, rows }
}

fn row(threads: u64, critical: Option<u64>, cells: &[&JudgedCell]) -> Vec<String> {
    let mut row = vec![label(threads), critical.map(label).unwrap_or_default()];
    for (metric, _, _, worst) in in_text() {
        for baseline in [true, false] {
            let of = |c: &&JudgedCell| {
                let side = if baseline { &c.baseline } else { &c.experiment };
                side.get(metric.name)
            };
            let mut values: Vec<f64> = cells.iter().filter_map(of).collect();
            values.sort_by(f64::total_cmp);
            let at = if worst { 0 } else { values.len() / 2 };
            row.push(number::or_dash(values.get(at).copied(), metric.format));
        }
    }
    row
}

/// A table of latency: who waited, and the metrics of its columns with their titles.
type Waited = (&'static str, Vec<(&'static str, &'static MetricKind)>);

fn latency(report: &Report, document: &mut Document) {
    let of = |shown: fn(InText) -> Option<&'static str>| -> Vec<_> {
        let kinds = METRICS.iter();
        kinds
            .filter_map(|kind| Some((shown(kind.text)?, kind)))
            .collect()
    };
    let all: Vec<Waited> = vec![(
        "",
        of(|text| match text {
            InText::Latency(title) => Some(title),
            _ => None,
        }),
    )];
    let note = "Each quantile is judged over the blocks, as a rate is; like handoffs it explains \
                and does not decide (Benjamini-Hochberg at 5 % over all of these).";
    latency_table(
        report,
        document,
        "Acquisition latency in ns, over the runs",
        note,
        &all,
    );
    let apart: Vec<Waited> = vec![
        (
            "readers",
            of(|text| match text {
                InText::ByUse(Use::Read, title) => Some(title),
                _ => None,
            }),
        ),
        (
            "writers",
            of(|text| match text {
                InText::ByUse(Use::Write, title) => Some(title),
                _ => None,
            }),
        ),
    ];
    let note = "starved: the part of the acquisitions that waited for as long as ten acquisitions \
                by every thread take.";
    latency_table(
        report,
        document,
        "Latency of readers and of writers in ns",
        note,
        &apart,
    );
}

fn latency_table(
    report: &Report,
    document: &mut Document,
    title: &str,
    note: &str,
    waited: &[Waited],
) {
    let mut rows = Vec::new();
    for (cell, (who, percentiles)) in report
        .measured()
        .flat_map(|cell| waited.iter().map(move |waited| (cell, waited)))
    {
        let lead = |name: &str| match (*who, name) {
            ("", name) => name.to_owned(),
            (_, "exp / base") => name.to_owned(),
            (who, "baseline") => format!("{who} base"),
            (who, _) => format!("{who} exp"),
        };
        for (name, side) in [
            ("baseline", &cell.baseline),
            ("experiment", &cell.experiment),
        ] {
            if percentiles.iter().all(|(_, m)| side.get(m.name).is_none()) {
                continue;
            }
            let mut row = ["threads", "critical", "non_critical"]
                .map(|axis| label(on(report, cell, axis)))
                .to_vec();
            row.push(lead(name));
            let figures = percentiles.iter();
            row.extend(figures.map(|(_, m)| number::or_dash(side.get(m.name), m.format)));
            rows.push(row);
        }
        let judged = |(_, metric): &(&str, &MetricKind)| {
            let Some(judged) = cell.metric(metric.name) else {
                return String::new();
            };
            let ratio = judged.estimate.map(|e| number::ratio(e.ratio().value));
            format!("{}{}", ratio.unwrap_or_default(), mark(&judged.verdict))
        };
        if percentiles
            .iter()
            .any(|(_, m)| cell.metric(m.name).is_some())
        {
            let mut row = vec![String::new(); 3];
            row.push(lead("exp / base"));
            row.extend(percentiles.iter().map(judged));
            rows.push(row);
        }
    }
    if rows.is_empty() {
        return;
    }
    let mut columns = vec![
        Column::new("threads", 7),
        Column::new("critical", 8),
        Column::new("non-crit.", 9),
    ];
    columns.push(Column::new("", if waited.len() > 1 { 12 } else { 11 }));
    let titles = waited
        .iter()
        .take(1)
        .flat_map(|(_, percentiles)| percentiles);
    columns.extend(titles.map(|(title, _)| Column::new(*title, 7)));
    let table = Table {
        groups: vec![ColumnGroup::new("", columns)],
        rows,
    };
    document.push(
        Section::new(title)
            .note(note)
            .with(Part::Table(table))
            .only(Medium::Text),
    );
}

/// Shows a table of every figure of every cell.
pub(super) fn every_cell(report: &Report, document: &mut Document) {
    let cells: Vec<&JudgedCell> = report.measured().collect();
    let mut names: Vec<&str> = Vec::new();
    for metric in report.experiment.cells.iter().flat_map(|c| &c.metrics) {
        let known = |c: &&JudgedCell| c.baseline.get(&metric.name).is_some();
        if metric.at.is_none() && !names.contains(&metric.name.as_str()) && cells.iter().any(known)
        {
            names.push(&metric.name);
        }
    }
    let kind = |name| METRICS.iter().find(|kind| kind.name == name);
    let shown: Vec<Shown> = names
        .into_iter()
        .map(|name| match kind(name) {
            Some(kind) => (kind.title, name, kind.format),
            None => (name, name, number::short as fn(f64) -> String),
        })
        .collect();
    let titles = ["non-critical", "threads", "critical", "ratio"];
    let mut groups = vec![ColumnGroup::new(
        "",
        titles.map(|title| Column::new(title, 0)).into(),
    )];
    groups.extend(shown.iter().map(|(title, ..)| sides(title, 0)));
    let row = |cell: &&JudgedCell| {
        let placed = placed(report, cell);
        let crowded = if report.cell(cell).oversubscribed {
            "o"
        } else {
            ""
        };
        let mut row = vec![
            label(on(report, cell, "non_critical")),
            format!("{}{crowded}", label(on(report, cell, "threads"))),
            label(on(report, cell, "critical")),
            placed.map_or_else(String::new, |p| format!("{}{}", p.value(), p.mark())),
        ];
        let figure = |side: &Figures, (_, metric, format): &Shown| {
            number::or_dash(side.get(metric), *format)
        };
        for metric in &shown {
            row.push(figure(&cell.baseline, metric));
            row.push(figure(&cell.experiment, metric));
        }
        row
    };
    let table = Table {
        groups,
        rows: cells.iter().map(row).collect(),
    };
    document.push(
        Section::new("Handoffs and fairness")
            .note(format!(
                "Handoffs: operations per second whose predecessor was another thread's. At equal \
                 share: those of the thread with the fewest, times the threads. Streak: \
                 operations in a row by one thread. Cells with \u{201c}s\u{201d} gained operations \
                 and lost handoffs, or the other way round: {}.",
                report.context.words.handoffs
            ))
            .only(Medium::Page),
    );
    document.push(
        Section::minor("Every cell")
            .with(Part::Table(table))
            .folded(cells.len() > MANY)
            .only(Medium::Page),
    );
}
