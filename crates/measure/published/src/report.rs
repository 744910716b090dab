//! The reports: published experiments and their simulation side by side, and how far
//! the two agree. It must never simulate.

use crate::agreement::{Agreement, FLAT, MISS, Published, agreement};
use crate::own::{Time, log_error};
use crate::reproduction::{Question, Reproduced, Reproduction, Shape, score};
use crate::split::Group;
use crate::validation::{LARGE, Validation};
use locklab_document::{Column, ColumnGroup, Document, Part, Section, Table};
use locklab_harness::experiment::Labels;
use serde_json::{Value, json};

/// The number of misses of one experiment that are printed; all are in the JSON
/// document.
const MISSES_SHOWN: usize = 8;

/// Returns the report of one published experiment, ours beside theirs.
#[must_use]
pub fn document(report: &Reproduction) -> Document {
    let mut document = titled(format!("{}: {}", report.name, report.title));
    let number = report.report.map(|number| format!(", report {number}"));
    let mut facts = vec![(
        "Ours".into(),
        format!("simulated on the model {}", report.machine),
    )];
    facts.extend(report.near.clone().map(|near| ("Likeness".into(), near)));
    facts.push((
        "Theirs".into(),
        format!("published{}: {}", number.unwrap_or_default(), report.source),
    ));
    if let Some(group) = report.group {
        facts.push(("Group".into(), group.title().into()));
    }
    facts.push(("Placement".into(), report.placement.into()));
    facts.push(("Rule".into(), report.rule.words().into()));
    facts.push(("Trace hash".into(), format!("{:016x}", report.trace_hash)));
    document.head = facts;
    match &report.shape {
        Some(shape) => document.sections.extend(matrix(report, shape)),
        // One's own times of one lock have no ratios.
        None if report.figures.is_empty() => {}
        None => document.push(figures(report)),
    }
    document.push(Section::new("").items(agreed(report)));
    document
}

/// Returns how far ours and theirs agree, one sentence for each measure.
fn agreed(report: &Reproduction) -> Vec<String> {
    let mut items = Vec::new();
    let agreement = &report.agreement;
    if let Some(direction) = agreement.direction {
        items.push(format!(
            "The direction is right in {:.0} of the {} published figures that differ from 1 by \
             more than {FLAT} ({:.0} %).",
            direction * agreement.directed as f64,
            agreement.directed,
            100.0 * direction
        ));
    }
    if let Some(spearman) = agreement.spearman {
        items.push(format!("Spearman's rank correlation is {spearman:.2}."));
    }
    if let Some(factor) = agreement.median_factor_error {
        items.push(format!("The median factor error is {factor:.2}."));
    }
    if let Some(error) = agreement.mean_abs_log_error {
        let blocks = by_block(report);
        items.push(format!(
            "The mean absolute log error is {error:.3}{blocks}."
        ));
    }
    items
}

/// Returns the error of each block, if there are several.
fn by_block(report: &Reproduction) -> String {
    let Some(shape) = report.shape.as_ref().filter(|s| s.non_critical.len() > 1) else {
        return String::new();
    };
    let cells = shape.threads.len() * shape.critical.len();
    let parts: Vec<String> = shape
        .non_critical
        .iter()
        .zip(report.figures.chunks(cells))
        .map(|(length, figures)| {
            let pair = |figure: &Reproduced| Some((figure.theirs()?, figure.ours));
            let pairs: Vec<_> = figures.iter().filter_map(pair).collect();
            let error = agreement(&pairs).mean_abs_log_error.unwrap_or_default();
            format!("{error:.3} at non-critical length {length}")
        })
        .collect();
    format!(": {}", parts.join(", "))
}

fn matrix(report: &Reproduction, shape: &Shape) -> Vec<Section> {
    let mut figures = report.figures.iter();
    let mut sections = Vec::new();
    for non_critical in &shape.non_critical {
        let mut rows = Vec::new();
        for threads in &shape.threads {
            let cells: Vec<_> = figures.by_ref().take(shape.critical.len()).collect();
            let row = |whose: String, figure: &dyn Fn(&Reproduced) -> String| -> Vec<String> {
                let figures = cells.iter().map(|cell| figure(cell));
                std::iter::once(whose).chain(figures).collect()
            };
            rows.push(row(format!("{threads} ours"), &|c| {
                format!("{:.2}", c.ours)
            }));
            rows.push(row("theirs".to_owned(), &|c| {
                c.published
                    .map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2}"))
            }));
        }
        let columns = shape.critical.iter();
        let columns = columns.map(|n| Column::new(n.to_string(), 6)).collect();
        let table = Table {
            groups: vec![
                ColumnGroup::new("", vec![Column::new("threads", 8)]),
                ColumnGroup::new("", columns),
            ],
            rows,
        };
        let title = format!(
            "Non-critical length {non_critical}: columns are critical lengths; each ratio of ours \
             has theirs below it"
        );
        sections.push(Section::new(title).with(Part::Table(table)));
    }
    sections
}

fn figures(report: &Reproduction) -> Section {
    let rows = report.figures.iter().map(|figure| {
        let (theirs, off) = match figure.theirs() {
            None => ("none".to_owned(), String::new()),
            Some(Published::Ratio(theirs)) => (
                format!("{theirs:.2}"),
                format!("{:+.1} %", 100.0 * (figure.ours / theirs - 1.0)),
            ),
            Some(direction) => (
                side(direction).to_owned(),
                match direction.agrees(figure.ours) {
                    true => "right".to_owned(),
                    false => "wrong".to_owned(),
                },
            ),
        };
        vec![
            figure.name.clone(),
            theirs,
            format!("{:.2}", figure.ours),
            off,
        ]
    });
    let columns = vec![
        Column::words("figure", 34),
        Column::new("theirs", 7),
        Column::new("ours", 7),
        Column::new("off", 8),
    ];
    Section::new("").with(Part::Table(Table::new(columns, rows.collect())))
}

/// Returns a published direction without a size, as a word.
fn side(published: Published) -> &'static str {
    match published {
        Published::Above => "above 1",
        Published::Below => "below 1",
        Published::Ratio(_) => "",
    }
}

/// Returns the times of a reference of one's own beside the simulated ones; none if it has
/// ratios.
#[must_use]
pub fn times(times: &[Time]) -> Option<Section> {
    let error = log_error(times)?;
    let rows = times.iter().map(|time| {
        vec![
            time.lock.clone(),
            time.threads.to_string(),
            format!("{:.1}", time.published),
            format!("{:.1}", time.ours),
            format!("{:.2}", time.ours / time.published),
        ]
    });
    let columns = vec![
        Column::words("lock", 24),
        Column::new("threads", 7),
        Column::new("theirs", 9),
        Column::new("ours", 9),
        Column::new("factor", 7),
    ];
    Some(
        Section::new("Time of an operation, ns, by the file's rule")
            .with(Part::Table(Table::new(columns, rows.collect())))
            .prose(format!("Root mean square of log errors: {error:.3}")),
    )
}

/// Returns a document of one section.
#[must_use]
pub fn alone(section: Section) -> Document {
    let mut document = titled("Times".into());
    document.push(section);
    document
}

/// Returns a report with one line for each experiment, the score of each group, and the
/// misses.
#[must_use]
pub fn scores(reports: &[Reproduction]) -> Document {
    let mut document = scores_of(&Group::ALL, reports);
    document
        .sections
        .insert(Group::ALL.len() + 1, trust(reports));
    document
}

/// Returns the scores of these groups, with their misses.
#[must_use]
pub fn scores_of(groups: &[Group], reports: &[Reproduction]) -> Document {
    let mut document = titled("Published experiments that were simulated, and their scores".into());
    for group in groups {
        document.push(table_of(*group, reports));
    }
    document.push(meaning());
    document.push(missed(reports));
    document
}

fn table_of(group: Group, reports: &[Reproduction]) -> Section {
    let of_group = reports.iter().filter(|report| report.group == Some(group));
    let rows = of_group.map(|report| score_row(&report.name, &report.agreement));
    let all = score_row("all figures", &score(group, None, reports));
    let columns = vec![
        Column::words("experiment", 28),
        Column::new("figures", 7),
        Column::new("direction", 9),
        Column::new("factor", 7),
        Column::new("log error", 9),
        Column::new("ranks", 7),
    ];
    let table = Table::new(columns, rows.chain([all]).collect());
    Section::new(format!("Group: {}", group.title())).with(Part::Table(table))
}

/// Explains the columns of a score.
fn meaning() -> Section {
    Section::new("").prose(format!(
        "A direction is right if our figure is on the same side of 1 as the published one; it is \
         counted where that differs from 1 by more than {FLAT}, or is a direction only. The factor \
         is the median of the factors between ours and theirs. The log error is the mean of \
         |ln(ours / theirs)|. Ranks has Spearman's correlation where there are five figures or \
         more."
    ))
}

fn missed(reports: &[Reproduction]) -> Section {
    let title = format!("Misses: off by more than a factor of {MISS}, or in the wrong direction");
    let items = misses(reports);
    match items.is_empty() {
        true => Section::new(title).prose("None."),
        false => Section::new(title).items(items),
    }
}

/// The number of figures below which those that may have informed the model count
/// too.
const ENOUGH: usize = 5;
/// The number of large ratios below which their direction is not said to be right.
const LEAST_LARGE: u32 = 10;

/// Returns the section on what may be trusted, by the kind of question.
fn trust(reports: &[Reproduction]) -> Section {
    let cells = |score: &Agreement| {
        let of = |part: Option<f64>, digits: usize| {
            part.map_or_else(|| "-".to_owned(), |part| format!("{part:.digits$}"))
        };
        [
            score.figures.to_string(),
            of(score.direction.map(|part| 100.0 * part), 0),
            of(score.median_factor_error, 2),
        ]
    };
    let scores = |title| {
        let columns = [("figs", 5), ("dir.", 5), ("factor", 6)];
        let columns = columns.map(|(title, width)| Column::new(title, width));
        ColumnGroup::new(title, columns.into())
    };
    let mut rows = Vec::new();
    let mut verdicts = Vec::new();
    for question in Question::ALL {
        let (evaluated, informing, trust) = answered(question, reports);
        let mut row = vec![question.title().to_owned()];
        row.extend(cells(&evaluated));
        row.extend(cells(&informing));
        rows.push(row);
        verdicts.push(format!("{}: {trust}", question.title()));
    }
    let question = ColumnGroup::new("", vec![Column::words("question", 30)]);
    let groups = vec![question, scores("evaluated only"), scores("informing")];
    Section::new("What to trust, by the kind of question")
        .with(Part::Table(Table { groups, rows }))
        .items(verdicts)
}

/// Returns the same as JSON: the score of each group by the kind of question.
#[must_use]
pub fn questions(reports: &[Reproduction]) -> Value {
    let rows = Question::ALL.map(|question| {
        let (evaluated, informing, trust) = answered(question, reports);
        json!({
            "question": question,
            "evaluated_only": evaluated,
            "structure": informing,
            "trust": trust,
        })
    });
    json!(rows)
}

/// Returns the scores of a kind of question, by the figures that only evaluate and by those that
/// may have informed the model, and what may be trusted.
fn answered(question: Question, reports: &[Reproduction]) -> (Agreement, Agreement, String) {
    let informing = score(Group::Structure, Some(question), reports);
    let evaluated = score(question.judged_by(), Some(question), reports);
    let trust = believe(&evaluated, &informing, Validation::count(question, reports));
    (evaluated, informing, trust)
}

/// Returns what may be trusted, given the scores of a kind of question.
fn believe(evaluated: &Agreement, informing: &Agreement, counts: Validation) -> String {
    if evaluated.figures + informing.figures == 0 {
        return "Not validated: no published figure of this kind was simulated.".to_owned();
    }
    let apart = evaluated.figures >= ENOUGH;
    let score = if apart { evaluated } else { informing };
    let close = score
        .median_factor_error
        .is_some_and(|factor| factor <= MISS);
    let large_are_right =
        counts.large >= LEAST_LARGE && 10 * counts.large_right >= 9 * counts.large;
    let believe = match score.direction {
        Some(right) if right >= 0.9 && close => "Direction and size.".to_owned(),
        Some(right) if right >= 0.85 => "Direction, not size.".to_owned(),
        None if close => "Size; nothing published has a direction.".to_owned(),
        _ if apart && large_are_right => {
            format!("Direction of ratios of {LARGE} and more; of others the band, and measure.")
        }
        _ => "Neither: read the band, and measure.".to_owned(),
    };
    match apart {
        true => believe,
        false => format!("{believe} (By the informing figures.)"),
    }
}

fn score_row(name: &str, agreement: &Agreement) -> Vec<String> {
    let percent = |part: f64| format!("{:.0} %", 100.0 * part);
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    vec![
        name.to_owned(),
        agreement.figures.to_string(),
        or_dash(agreement.direction.map(percent)),
        or_dash(agreement.median_factor_error.map(|f| format!("{f:.2}"))),
        or_dash(agreement.mean_abs_log_error.map(|e| format!("{e:.3}"))),
        or_dash(agreement.spearman.map(|r| format!("{r:.2}"))),
    ]
}

fn misses(reports: &[Reproduction]) -> Vec<String> {
    let mut items = Vec::new();
    for report in reports {
        let misses = report.misses();
        items.extend(misses.iter().take(MISSES_SHOWN).map(|miss| {
            let theirs = miss.published.map(|theirs| format!("theirs {theirs:.2}, "));
            let factor = miss.factor.map(|factor| format!(", factor {factor:.2}"));
            format!(
                "{}: {}: {}ours {:.2}{}{}",
                miss.experiment,
                miss.figure,
                theirs.unwrap_or_default(),
                miss.ours,
                factor.unwrap_or_default(),
                if miss.wrong_direction {
                    ", wrong direction"
                } else {
                    ""
                }
            )
        }));
        if misses.len() > MISSES_SHOWN {
            items.push(format!(
                "{}: {} more, in --json",
                report.name,
                misses.len() - MISSES_SHOWN
            ));
        }
        if let (false, Some(settled)) = (misses.is_empty(), &report.settled_by) {
            items.push(format!("{}: this would settle it: {settled}", report.name));
        }
    }
    items
}

/// Returns a document that has only a title.
fn titled(title: String) -> Document {
    Document {
        title,
        labels: Labels::new("theirs", "ours"),
        ..Document::default()
    }
}

/// Returns all reports as one JSON document: the published figures unchanged, the score
/// of each group and the misses of what was simulated.
#[must_use]
pub fn json(reports: &[Value], reproductions: &[Reproduction]) -> Value {
    let all = |kind: &str| {
        reports
            .iter()
            .all(|report| report["provenance"]["source"] == kind)
    };
    // Each report has its own schema number.
    let source = ["simulation", "model", "hardware"]
        .into_iter()
        .find(|kind| all(kind))
        .unwrap_or("several");
    let scores = Group::ALL.map(|group| (group.key(), score(group, None, reproductions)));
    let misses = reproductions.iter().flat_map(Reproduction::misses);
    json!({
        "schema": 1,
        "provenance": {"source": source},
        "reports": reports,
        "scores": std::collections::BTreeMap::from(scores),
        "questions": questions(reproductions),
        "misses": misses.collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_ratios_are_believed_where_most_of_them_are_right() {
        // Half of the directions are right.
        let pairs = [(Published::Ratio(2.0), 1.1), (Published::Ratio(2.0), 0.9)].repeat(5);
        let evaluated = agreement(&pairs);
        let told = |large, large_right| {
            let counts = Validation {
                large,
                large_right,
                ..Validation::default()
            };
            believe(&evaluated, &agreement(&[]), counts)
        };
        assert!(told(20, 18).starts_with("Direction of ratios of 1.5 and more"));
        assert!(told(20, 17).starts_with("Neither"));
        assert!(told(9, 9).starts_with("Neither"));
    }
}
