//! The report of a ranking: what to take, what is best for what, every lock's
//! share of the best, and throughput over threads as a picture.

mod advice;
mod charts;
pub(super) mod results;

use self::advice::{Regime, choose, range};
use super::inputs::{Report, Words};
use super::{caveats, design, placement};
use crate::experiment::{AT_ONCE, Provenance};
use crate::matrix::{
    EQUAL_SHARE, JAIN, JAIN_1MS, LATENCY_P99, LATENCY_P999, OPS, READ_P50, READ_P99, READ_P999,
    READ_STARVED, WRITE_P50, WRITE_P99, WRITE_P999, WRITE_STARVED,
};
use crate::ranking::{Point, Ranked, Ranking};
use locklab_document::number::{self, label};
use locklab_document::{
    BarRow, Bars, Column, ColumnGroup, Document, Finding, Grid, GridCell, GridRow, Medium, Part,
    Section, Shade, Table, Tone,
};

/// Subjects of one point that a table in text has, at least.
const SHOWN: usize = 12;
/// Returns the document of a ranking.
pub(super) fn document(report: &Report) -> Document {
    let empty = Ranking {
        question: crate::ranking::Question::default(),
        points: Vec::new(),
        delta: report.experiment.design.delta,
    };
    let ranking = report.verdicts.ranking.as_ref().unwrap_or(&empty);
    let subject = report.context.words.subject;
    let subjects = number::count(ranking.question.subjects.len(), subject);
    let today = if ranking.question.against {
        format!(" against {}", report.experiment.labels.baseline)
    } else {
        String::new()
    };
    let words = report.context.words;
    // What too few blocks leave undecided is not recommended either.
    let summary = match too_few(report, ranking, blocks(ranking).max()) {
        Some(sentence) => vec![sentence],
        None => advice::sentences(ranking, &words),
    };
    let caveats = caveats_of(report, ranking);
    let mut document = Document {
        title: format!("{subjects}, ranked{today}"),
        head: vec![
            ("Figures".into(), report.source()),
            (
                "Ranked by".into(),
                "operations per second, all threads".into(),
            ),
        ],
        labels: report.experiment.labels.clone(),
        sections: Vec::new(),
        findings: findings(report, ranking),
        started: None,
        data: results::fields(report, ranking, &summary, &caveats),
    };
    let lead = |s: &String| Part::Prose(s.clone(), Tone::Lead);
    document.push(Section {
        parts: summary.iter().map(lead).collect(),
        ..Section::default()
    });
    let mut facts = report.experiment.facts.clone();
    facts.extend(design::facts(report));
    document.push(Section::new("").facts(facts.clone()).only(Medium::Text));
    charts::over_threads(report, ranking, &mut document);
    document
        .push(Section::new("What is best for what").with(Part::Table(best_for(ranking, &words))));
    shares(report, ranking, &mut document);
    for point in &ranking.points {
        bars(report, ranking, point, &mut document);
        by_use(report, ranking, point, &mut document);
    }
    document.push(Section::new("Caveats").items(caveats));
    document.push(
        Section::new("Machine and set-up")
            .facts(facts)
            .only(Medium::Page),
    );
    document
}

/// Returns "4 threads", with the lengths where they vary.
fn place(report: &Report, ranking: &Ranking, point: &Point) -> String {
    let threads = usize::try_from(point.threads()).unwrap_or(usize::MAX);
    let mut words = number::count(threads, report.lengths.noun());
    words.push_str(&report.lengths.at_once(point.key.number(AT_ONCE)));
    for (axis, name) in [("critical", "critical"), ("non_critical", "non-critical")] {
        let of = |p: &Point| p.key.number(axis);
        if ranking.points.iter().any(|p| of(p) != of(point)) {
            let length = label(of(point).unwrap_or(0));
            words.push_str(&format!(", {name} {length}{}", report.lengths.unit()));
        }
    }
    words
}

/// Returns one row for each purpose.
fn best_for(ranking: &Ranking, words: &Words) -> Table {
    let subjects = &ranking.question.subjects;
    let mut rows = Vec::new();
    let mut row = |what: &str, points: &[&Point], metric: &str, allowed: &dyn Fn(usize) -> bool| {
        let Some(lock) = choose(points, metric, allowed) else {
            return;
        };
        let ranked = || points.iter().filter_map(|p| p.metric(metric));
        if !ranked().all(|m| m.figures[lock].is_some()) {
            return;
        }
        let shares: Vec<f64> = ranked().filter_map(|m| m.share(lock)).collect();
        let figures: Vec<f64> = ranked()
            .filter_map(|m| Some(m.figures[lock]?.value))
            .collect();
        let set = (0..subjects.len())
            .filter(|i| *i != lock && allowed(*i) && ranked().all(|m| m.may_be_best(*i)));
        rows.push(vec![
            what.to_owned(),
            subjects[lock].name.clone(),
            range(&figures, number::short).replace(" to ", "-"),
            range(&shares, number::ratio).replace(" to ", "-"),
            set.count().to_string(),
        ]);
    };
    let all: Vec<&Point> = ranking.points.iter().collect();
    let of = |regime: Regime| -> Vec<&Point> {
        let points = ranking.points.iter();
        points.filter(|p| Regime::of(p) == regime).collect()
    };
    let several: Vec<&Point> = all
        .iter()
        .copied()
        .filter(|p| Regime::of(p) != Regime::Alone)
        .collect();
    row("throughput, 1 thread", &of(Regime::Alone), OPS, &|_| true);
    row(
        "throughput, contended",
        &of(Regime::Contended),
        OPS,
        &|_| true,
    );
    row(
        "throughput, too few CPUs",
        &of(Regime::Crowded),
        OPS,
        &|_| true,
    );
    row(
        "at equal share, contended",
        &of(Regime::Contended),
        EQUAL_SHARE,
        &|_| true,
    );
    row("p99 of the wait, ns", &several, LATENCY_P99, &|_| true);
    row("p99.9 of the wait, ns", &several, LATENCY_P999, &|_| true);
    row("readers' p99.9, ns", &several, READ_P999, &|_| true);
    row("writers' p99.9, ns", &several, WRITE_P999, &|_| true);
    row("fair within 1 ms (Jain)", &several, JAIN_1MS, &|_| true);
    row("fair over a run (Jain)", &several, JAIN, &|_| true);
    row(words.lean[0], &all, OPS, &|i| subjects[i].is_lean());
    let least = subjects.iter().map(|s| s.bytes).min().unwrap_or(0);
    let small = format!("smallest ({})", number::count(least as usize, "byte"));
    row(&small, &all, OPS, &|i| subjects[i].bytes == least);
    Table {
        groups: vec![ColumnGroup::new(
            "",
            vec![
                Column::new("for", 25),
                Column::new("use", 8),
                Column::new("figure", 6),
                Column::new("of best", 7),
                Column::new("ties", 4),
            ],
        )],
        rows,
    }
}

fn sign(ranked: &Ranked, lock: usize) -> &'static str {
    match &ranked.standings[lock] {
        _ if ranked.may_be_best(lock) => "*",
        s if s.within_delta => "=",
        _ => "",
    }
}

/// Shows every lock's share of the best at every point.
fn shares(report: &Report, ranking: &Ranking, document: &mut Document) {
    let cell = |point: &Point, lock: usize| -> Option<GridCell> {
        let ranked = point.metrics.first()?;
        let shown = ranked.standings[lock].of_best?;
        let worse = Shade::of(&locklab_judge::Verdict::Worse, Some(shown.value.max(1e-9)));
        let [value, low, high] = [shown.value, shown.low, shown.high].map(number::ratio);
        let name = &ranking.question.subjects[lock].name;
        let figure = number::or_dash(ranked.figures[lock].map(|f| f.value), number::short);
        let by = ranked.standings[lock].beaten_by.map_or_else(
            || "may be the best".to_owned(),
            |by| format!("behind {}", ranking.question.subjects[by].name),
        );
        Some(GridCell {
            mark: sign(ranked, lock).into(),
            shade: match sign(ranked, lock) {
                "*" => Shade::Better(3),
                "=" => Shade::Flat,
                _ => worse,
            },
            detail: format!(
                "{name}, {}: {value} of the best ({low} to {high}); {figure}/s; {by}",
                place(report, ranking, point)
            ),
            value,
        })
    };
    let today = |lock: usize| ranking.question.against && lock == 0;
    let rows = ranking
        .overall()
        .into_iter()
        .map(|lock| GridRow {
            name: ranking.question.subjects[lock].name.clone(),
            flag: if today(lock) { "<" } else { "" }.into(),
            cells: ranking.points.iter().map(|p| cell(p, lock)).collect(),
        })
        .collect();
    let crowded = |p: &Point| if p.oversubscribed { "o" } else { "" };
    let mut points = ranking.points.iter();
    let several = points.any(|p| p.key.number(AT_ONCE).is_some());
    let subject = report.context.words.subject;
    let grid = Grid {
        row_title: subject.into(),
        column_title: format!(
            "{}{}: share of the best",
            number::plural(2, report.lengths.noun()),
            match several {
                true => format!("/{}", number::plural(2, subject)),
                false => String::new(),
            }
        ),
        columns: ranking
            .points
            .iter()
            .map(|p| {
                let at_once = p.key.number(AT_ONCE);
                let at_once = at_once.map_or_else(String::new, |n| format!("/{}", label(n)));
                format!("{}{at_once}{}", label(p.threads()), crowded(p))
            })
            .collect(),
        rows,
    };
    let margin = number::percent(100.0 * ranking.delta);
    let mut signs = vec![
        ("*".to_owned(), "may be the best".to_owned()),
        (
            "=".to_owned(),
            format!("shown within {margin} % of the best"),
        ),
        ("no sign".to_owned(), "shown to be behind".to_owned()),
    ];
    if ranking.question.against {
        signs.push(("<".into(), "in use today".into()));
    }
    if ranking.points.iter().any(|p| p.oversubscribed) {
        signs.push(("o".into(), "more threads than CPUs".into()));
    }
    let words: Vec<String> = signs.iter().map(|(s, m)| format!("{s} {m}")).collect();
    document.push(
        Section::new("Throughput: share of the best")
            .with(Part::Grid(grid))
            .note(words.join("; "))
            .note(method(report, ranking)),
    );
    let colours = "Blue cells may be the best, grey ones are shown within the margin of it, and the \
                   deeper the orange of another, the smaller its share.";
    document.push(Section::default().only(Medium::Page).note(colours));
}

fn method(report: &Report, ranking: &Ranking) -> String {
    let block = match report.experiment.provenance {
        Provenance::Simulation(_) => {
            "runs all of them on one machine that the model's assumptions allow"
        }
        _ => "has slices of all of them, each round in a new random order and at another address",
    };
    let subject = report.context.words.subject;
    format!(
        "Each block {block}. A {subject} is shown to be behind if another one is better by the \
         exact one-sided signed-rank test at 5 % / {}, so those that may be the best include the \
         best one 95 times in 100. The limits of all shares hold together 95 times in 100.",
        ranking.question.subjects.len().saturating_sub(1).max(1)
    )
}

/// Shows a table with bars, the best first.
fn bars(report: &Report, ranking: &Ranking, point: &Point, document: &mut Document) {
    let Some(ranked) = point.metrics.first() else {
        return;
    };
    let order = ranked.order();
    let subjects = &ranking.question.subjects;
    let waits = point.metric(LATENCY_P99).is_some();
    let shared = point.threads() > 1 && point.metric(EQUAL_SHARE).is_some();
    let row = |lock: usize| -> Option<BarRow> {
        let shown = ranked.standings[lock].of_best?;
        let figure = |name: &str| {
            let figure = point.metric(name).and_then(|m| m.figures[lock]);
            number::or_dash(figure.map(|f| f.value), number::short)
        };
        let share = format!("{}{:1}", number::ratio(shown.value), sign(ranked, lock));
        let limits = format!("{}-{}", number::ratio(shown.low), number::ratio(shown.high));
        let mut cells = vec![figure(OPS), share, limits];
        if shared {
            cells.push(figure(EQUAL_SHARE));
        }
        if waits {
            cells.push(figure(LATENCY_P99));
        }
        Some(BarRow {
            name: subjects[lock].name.clone(),
            cells,
            share: ranked.share(lock).unwrap_or(0.0),
        })
    };
    let least = order.iter().filter(|i| ranked.may_be_best(**i)).count();
    let shown = if order.len() <= SHOWN + 3 {
        order.len()
    } else {
        SHOWN.max(least)
    };
    let today = order[shown..].contains(&0) && ranking.question.against;
    let listed = order[..shown].iter().copied().chain(today.then_some(0));
    let mut columns = vec![("ops/s", 6), ("share ", 6), ("limits", 11)];
    if shared {
        columns.push(("equal/s", 7));
    }
    if waits {
        columns.push(("p99 ns", 6));
    }
    let named = |(title, width): (&str, usize)| (title.to_owned(), width);
    let bars = Bars {
        title: report.context.words.subject.into(),
        columns: columns.into_iter().map(named).collect(),
        rows: listed.filter_map(row).collect(),
    };
    let mut lines = bars.lines();
    let rest: Vec<f64> = order[shown..]
        .iter()
        .filter(|i| !(today && **i == 0))
        .filter_map(|i| ranked.share(*i))
        .collect();
    if !rest.is_empty() {
        lines.push(format!(
            "{} at {} of the best",
            number::count(
                rest.len(),
                &format!("more {}", report.context.words.subject)
            ),
            range(&rest, number::ratio)
        ));
    }
    document.push(
        Section::minor(format!("At {}", place(report, ranking, point)))
            .preformatted(lines.join("\n"))
            .only(Medium::Text),
    );
}

/// Shows the waits of readers and of writers of every lock, where there are both.
fn by_use(report: &Report, ranking: &Ranking, point: &Point, document: &mut Document) {
    let titles = ["p50", "p99", "p99.9", "starved"];
    let of = [
        ("readers", [READ_P50, READ_P99, READ_P999, READ_STARVED]),
        ("writers", [WRITE_P50, WRITE_P99, WRITE_P999, WRITE_STARVED]),
    ];
    let Some(shortest) = point.metric(WRITE_P999) else {
        return;
    };
    let row = |lock: usize| {
        let mut row = vec![ranking.question.subjects[lock].name.clone()];
        for metric in of.iter().flat_map(|(_, metrics)| metrics) {
            let figure = point.metric(metric).and_then(|m| m.figures[lock]);
            let format = match *metric {
                READ_STARVED | WRITE_STARVED => number::share,
                _ => number::short,
            };
            row.push(number::or_dash(figure.map(|f| f.value), format));
        }
        row
    };
    let columns = |_| titles.map(|title| Column::new(title, 7)).into();
    let mut groups = vec![ColumnGroup::new("", vec![Column::new("", 20)])];
    groups.extend(of.map(|(who, metrics)| ColumnGroup::new(who, columns(metrics))));
    let table = Table {
        groups,
        rows: shortest.order().into_iter().map(row).collect(),
    };
    document.push(
        Section::minor(format!(
            "Waits of readers and of writers at {}, in ns",
            place(report, ranking, point)
        ))
        .note(
            "starved: the part of the acquisitions that waited for as long as ten acquisitions by \
             every thread take. The shortest p99.9 of writers is first.",
        )
        .with(Part::Table(table)),
    );
}

/// Returns what is in use today, against the best of each point.
fn findings(report: &Report, ranking: &Ranking) -> Vec<Finding> {
    if !ranking.question.against {
        return Vec::new();
    }
    let today = &report.experiment.labels.baseline;
    let finding = |point: &Point| {
        let ranked = point.metrics.first()?;
        let verdict = point.today()?;
        let best = ranked.order().first().map_or("none", |i| {
            let subject = &ranking.question.subjects[*i];
            subject.name.as_str()
        });
        let share = ranked.standings[0].of_best.map_or_else(String::new, |s| {
            let [value, low, high] = [s.value, s.low, s.high].map(number::ratio);
            format!(": {value} of the best ({low} to {high})")
        });
        let margin = number::percent(100.0 * point.delta);
        let words = match verdict {
            "worse" => format!("{today} is shown worse than {best} by more than {margin} %"),
            "flat" => format!("{today} is shown within {margin} % of the best"),
            "unclear" => {
                format!("{today} is neither shown within {margin} % of the best nor worse")
            }
            _ => format!("{today} has too few blocks for a rank"),
        };
        Some(Finding {
            name: place(report, ranking, point),
            metric: ranked.metric.name.clone(),
            verdict,
            message: format!("{words}{share}. {}.", number::count(ranked.blocks, "block")),
            file: report.context.file.clone(),
            ..Finding::default()
        })
    };
    ranking.points.iter().filter_map(finding).collect()
}

/// Returns the number of blocks at each point.
fn blocks(ranking: &Ranking) -> impl Iterator<Item = usize> {
    let primary = ranking.points.iter().filter_map(|p| p.metrics.first());
    primary.map(|m| m.blocks)
}

/// Returns a sentence if so many blocks can show nothing.
fn too_few(report: &Report, ranking: &Ranking, blocks: Option<usize>) -> Option<String> {
    let subjects = ranking.question.subjects.len();
    let needed = locklab_judge::blocks_needed(subjects);
    let blocks = blocks.filter(|blocks| *blocks < needed)?;
    Some(format!(
        "With {} of {} nothing can be shown: it takes {needed} (--pairs).",
        number::count(blocks, "block"),
        number::count(subjects, report.context.words.subject),
    ))
}

fn caveats_of(report: &Report, ranking: &Ranking) -> Vec<String> {
    let mut list = caveats::incomplete(report);
    for (name, why) in &ranking.question.left_out {
        list.push(format!("{name} is left out: {why}."));
    }
    let subjects = &ranking.question.subjects;
    let mut reasons: Vec<(usize, &str, Vec<String>)> = Vec::new();
    for point in &ranking.points {
        for (lock, why) in &point.stopped {
            let here = place(report, ranking, point);
            match reasons.iter_mut().find(|r| (r.0, r.1) == (*lock, why)) {
                Some((.., places)) => places.push(here),
                None => reasons.push((*lock, why, vec![here])),
            }
        }
    }
    for (lock, why, places) in reasons {
        list.push(format!(
            "{} at {}: {why}; the rank of the others stands.",
            subjects[lock].name,
            places.join(" and ")
        ));
    }
    list.extend(too_few(report, ranking, blocks(ranking).min()));
    let left = ranking.points.iter().filter_map(|p| p.metrics.first());
    let left: usize = left
        .map(|m| m.standings.iter().filter(|s| s.left.is_some()).count())
        .sum();
    if left > 0 {
        list.push(format!(
            "Far behind ({}, over all points): dropped at an interim analysis fixed in advance; \
             the others got the time.",
            number::count(left, report.context.words.subject)
        ));
    }
    list.extend(report.experiment.caveats.iter().cloned());
    list.extend(placement::of_ranking(
        report.experiment,
        report.verdicts,
        ranking,
        report.lengths.noun(),
    ));
    list
}
