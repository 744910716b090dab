//! The report of two files of samples: one table over all benchmarks, what the
//! verdicts do not cover, and a geometric mean only beside what it hides.

use crate::judged::{Apart, JudgedRow, JudgedSamples, PAUSE};
use crate::matching::Why;
use crate::results;
use crate::rows::{between_processes, figures, mean, metric_row, shown};
use locklab_document::{
    Document, Facts, Finding, IntervalRow, Intervals, Labels, Medium, MetricRow, Part, Section,
    Tone, number,
};
use locklab_harness::report::{first_sentences, sentence_of_metric};
use locklab_judge::{Family, Pair, Role, Samples, Sampling, Shown, Verdict, Warning};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::mem::discriminant;
use std::time::Duration;

/// The most rows of a table that stands open; beyond, what is not decided is
/// folded.
const OPEN: usize = 40;

/// The most names that a sentence lists.
const NAMES: usize = 4;

/// Returns the report, with the command line that makes it again.
#[must_use]
pub fn document(judged: &JudgedSamples, command: &str) -> Document {
    let [baseline, experiment] = sides(judged);
    let caveats = caveats(judged);
    let conclusion = conclusion(judged);
    let mut document = Document {
        title: format!("Samples: {experiment} against {baseline}"),
        head: vec![("Figures".into(), figures(judged))],
        labels: Labels::new(baseline, experiment),
        findings: findings(judged),
        data: results::fields(judged, &caveats, &conclusion, command),
        ..Document::default()
    };
    let lead = lead(judged);
    if !lead.is_empty() {
        document.push(Section::new("").with(Part::Prose(lead, Tone::Lead)));
    }
    document.push(Section::new("Setup").facts(set_up(judged, command)));
    if !caveats.is_empty() {
        document.push(Section::new("Before you read this").items(caveats));
    }
    tables(judged, &mut document);
    document.sections.extend(distributions(judged));
    let mut end = Section::new("Conclusion");
    for sentence in conclusion {
        end = end.with(Part::Prose(sentence, Tone::Lead));
    }
    document.push(end);
    document.push(Section::new("").note(
        "Sig: **+ better and **- worse beyond noise, *+ and *- the same for a metric that \
         explains; flat: shown to be within the margin (flat!0: small but not zero); ns: not \
         shown either way; inval: invalid. Baseline and Experiment are medians; Delta is the \
         Hodges-Lehmann estimate over the pairs, or over all differences between two samples.",
    ));
    document
}

/// The most letters of a side's name in a sentence.
const NAME: usize = 32;

/// Returns the names of both sides without their folders, if they are two and short.
fn sides(judged: &JudgedSamples) -> [String; 2] {
    let last = |f: &crate::SampleFile| {
        let name = f.label.trim_end_matches('/').rsplit('/').next();
        name.unwrap_or_default().to_owned()
    };
    let sides = judged.compared.files.each_ref().map(last);
    let plain = |side: &String| !side.is_empty() && side.chars().count() <= NAME;
    match sides[0] != sides[1] && sides.iter().all(plain) {
        true => sides,
        false => ["the baseline".into(), "the experiment".into()],
    }
}

/// Returns the first sentences: what differs, and by how much.
fn lead(judged: &JudgedSamples) -> String {
    let [_, side] = &sides(judged);
    let delta = judged.judging.settings.delta;
    let sentence = |row: &&JudgedRow| {
        let verdict = &row.judged.verdict;
        sentence_of_metric(&row.of.name, side, verdict, shown(row).as_ref(), delta)
    };
    let rows = judged.primaries().collect();
    first_sentences(rows, |row| &row.judged.verdict, sentence).join(" ")
}

fn set_up(judged: &JudgedSamples, command: &str) -> Facts {
    let settings = &judged.judging.settings;
    let pairs = judged.primaries().filter(|row| is_paired(row)).count();
    let alone = judged.primaries().count() - pairs;
    let samples = match (pairs, alone) {
        (0, 0) => "none that can be compared".to_owned(),
        (_, 0) => "pairs, measured in turn: signed-rank test".to_owned(),
        (0, _) => "two independent samples: rank-sum test".to_owned(),
        _ => format!("pairs in {pairs} benchmarks, two independent samples in {alone}"),
    };
    let drift = match judged.apart.seconds() {
        0.0 => "not allowed for: the files do not say how far apart they were (--apart)".into(),
        _ => format!(
            "{} % an hour, over {}: differences up to {} % may be drift",
            number::percent(100.0 * judged.judging.drift),
            apart(judged.apart),
            number::percent(100.0 * judged.allowance())
        ),
    };
    let fact = |name: &str, value: String| (name.to_owned(), value);
    let mut facts = vec![
        fact("Baseline", judged.compared.files[0].label.clone()),
        fact("Experiment", judged.compared.files[1].label.clone()),
        fact("Samples", samples),
        fact(
            "Flat",
            format!(
                "within +-{} %, decided before the files were read",
                number::percent(100.0 * settings.delta)
            ),
        ),
        fact(
            "Family",
            family(settings.family, judged.primaries().count()),
        ),
    ];
    if alone > 0 {
        facts.push(fact("Drift", drift));
    }
    if let Some((spread, name)) = between_processes(judged) {
        let percent = number::percent(100.0 * spread);
        facts.push(fact(
            "Processes",
            format!("those of one side differ by up to {percent} % ({name})"),
        ));
    }
    if let Some(noise) = judged.judging.process_noise {
        let percent = number::percent(100.0 * noise);
        facts.push(fact(
            "Process noise",
            format!("{percent} %, as given, for benchmarks of few processes"),
        ));
    }
    facts.push(fact("Tool", locklab_harness::VERSION.into()));
    facts.push(fact("Command", command.to_owned()));
    facts
}

fn family(family: Family, members: usize) -> String {
    let of = number::count(members, "benchmark");
    match family {
        Family::Holm => format!("the chance of any wrong call among {of} is 5 % (Holm)"),
        Family::FalseDiscovery => {
            format!("of the calls among {of}, one in twenty may be wrong (Benjamini-Hochberg)")
        }
        Family::Each => format!("each of {of} by itself: one in twenty equal ones is called"),
    }
}

fn apart(apart: Apart) -> String {
    let text = number::duration(Duration::try_from_secs_f64(apart.seconds()).unwrap_or_default());
    match apart {
        Apart::Given(_) => format!("{text} as given"),
        Apart::Dates { runs, .. } if apart.is_another_day() => {
            format!(
                "{text} by the files' dates, of which {} count",
                number::duration(Duration::try_from_secs_f64(runs + PAUSE).unwrap_or_default())
            )
        }
        Apart::Dates { .. } => format!("{text} by the files' dates"),
        Apart::Runs(_) => format!("at least {text}, which their runs took"),
    }
}

fn is_paired(row: &JudgedRow) -> bool {
    let estimate = row.judged.estimate;
    estimate.is_some_and(|e| matches!(e.sampling, Sampling::Pairs(_)))
}

/// Returns what a reader must know, each kind once.
fn caveats(judged: &JudgedSamples) -> Vec<String> {
    let mut list = judged.compared.notes.clone();
    list.extend(unmatched(judged));
    list.extend(few_processes(judged));
    let identical = judged.primaries().filter(|row| row.of.identical);
    let identical: Vec<String> = identical.map(|row| row.of.name.clone()).collect();
    if !identical.is_empty() {
        list.push(format!(
            "Both sides hold the same samples of {}: a run is compared with itself (criterion's \
             base is a copy of new unless --save-baseline named another).",
            few(&identical)
        ));
    }
    let alone = judged.primaries().any(|row| !is_paired(row));
    if alone && judged.apart.is_another_day() {
        list.push(another_day(judged));
    }
    let mut kinds: Vec<(&Warning, usize)> = Vec::new();
    for warning in judged.primaries().flat_map(|row| &row.judged.warnings) {
        match kinds
            .iter_mut()
            .find(|(w, _)| discriminant(*w) == discriminant(warning))
        {
            Some((_, count)) => *count += 1,
            None => kinds.push((warning, 1)),
        }
    }
    let of = judged.primaries().count();
    for (warning, count) in kinds {
        list.push(match warning {
            // A file has no run of baseline against baseline.
            Warning::BandUnknown => continue,
            Warning::WithinBand { .. } => format!(
                "In {}, the difference is significant but not beyond the drift that is assumed; \
                 measure both in turn, or say how long they were apart (--apart) and what the \
                 machine drifts (--drift).",
                number::count(count, "benchmark")
            ),
            Warning::BandTooWide { band, delta } => format!(
                "Flat cannot be claimed: the drift that is assumed is {} %, and flat means within \
                 {} %; measure both in turn, or say how long they were apart (--apart).",
                number::percent(100.0 * band),
                number::percent(100.0 * delta)
            ),
            Warning::DriftNotControlled | Warning::TooFewForFamily { .. } => {
                format!("{}.", capital(&warning.to_string()))
            }
            _ if count == of => format!("{}.", capital(&warning.to_string())),
            _ => format!(
                "In {}, the first of which: {warning}.",
                number::count(count, "benchmark")
            ),
        });
    }
    let invalid = judged
        .primaries()
        .filter(|row| !row.of.identical)
        .filter_map(|row| match &row.judged.verdict {
            Verdict::Invalid(reasons) => Some((&row.of.name, reasons.first()?)),
            _ => None,
        });
    list.extend(invalid.map(|(name, reason)| format!("{name} is invalid: {reason}.")));
    list
}

/// Says which benchmarks are of so few processes that their verdict cannot be trusted, and
/// what would do.
fn few_processes(judged: &JudgedSamples) -> Option<String> {
    let rows: Vec<[usize; 2]> = judged.primaries().filter_map(|row| row.of.few).collect();
    let [baseline, experiment] = *rows.first()?;
    let processes = match baseline.min(experiment) {
        1 => "one process".to_owned(),
        n => format!("{n} processes"),
    };
    let of = match rows.len() == judged.primaries().count() {
        true => format!("Every benchmark is of {processes} a side"),
        false => format!("{} of the benchmarks are of {processes} a side", rows.len()),
    };
    let (more, or) = match judged.judging.process_noise {
        Some(noise) => (
            format!(
                "a difference counts only beyond the {} % of --process-noise",
                number::percent(100.0 * noise)
            ),
            "",
        ),
        None => (
            format!(
                "{processes} cannot decide, because layout, allocation and the CPU differ from \
                 process to process and are not in the noise of its samples"
            ),
            ", or --process-noise PERCENT if you know how much processes differ",
        ),
    };
    Some(format!(
        "{of}: {more}; {} files of each side would do (locklab judge OLD... -- NEW...){or}.",
        judged.processes_needed()
    ))
}

/// Returns what files of two days do not show, and what of it would still be called had
/// the machine drifted all the time.
fn another_day(judged: &JudgedSamples) -> String {
    let called = |row: &&JudgedRow| {
        !is_paired(row) && matches!(row.judged.verdict, Verdict::Better | Verdict::Worse)
    };
    let all: Vec<&JudgedRow> = judged.primaries().filter(called).collect();
    let whole = (judged.judging.drift * judged.apart.seconds() / 3600.0).ln_1p();
    let beyond = |row: &&&JudgedRow| {
        let interval = row.judged.estimate.map(|estimate| estimate.ci95);
        interval.is_some_and(|limits| limits.low > whole || limits.high < -whole)
    };
    let text =
        number::duration(Duration::try_from_secs_f64(judged.apart.seconds()).unwrap_or_default());
    let mut sentence = format!(
        "The files are {text} apart: another host, kernel or neighbour since then looks like a \
         change of the program; only runs in turn tell them apart (locklab compare)."
    );
    if !all.is_empty() {
        let _ = write!(
            sentence,
            " Had it drifted all that time, {} of {} that are called would still be (--apart).",
            all.iter().filter(beyond).count(),
            number::count(all.len(), "difference")
        );
    }
    sentence
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().map(char::to_uppercase);
    first.into_iter().flatten().chain(chars).collect()
}

/// Returns what cannot be compared, each reason once.
fn unmatched(judged: &JudgedSamples) -> Vec<String> {
    let [baseline, experiment] = judged.compared.files.each_ref().map(|f| &f.label);
    let all = &judged.compared.unmatched;
    let named = |why: &Why, deciding: bool| -> Vec<String> {
        let of = all
            .iter()
            .filter(|u| u.why == *why && (u.role == Role::Primary || !deciding));
        of.map(|u| u.name.clone()).collect()
    };
    let mut list = Vec::new();
    for (why, there) in [
        (Why::OnlyBaseline, baseline),
        (Why::OnlyExperiment, experiment),
    ] {
        let names = named(&why, true);
        if !names.is_empty() {
            list.push(format!("Only in {there}, so not judged: {}.", few(&names)));
        }
    }
    for unmatched in all {
        if let Why::Units(b, e) = &unmatched.why {
            list.push(format!(
                "{} is in {b} in {baseline} and in {e} in {experiment}, so not judged.",
                unmatched.name
            ));
        }
    }
    let zero = named(&Why::Zero, false);
    if !zero.is_empty() {
        list.push(format!(
            "Not judged, because zero in some run and negative in another: {}.",
            few(&zero)
        ));
    }
    let mut settings: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for unmatched in all.iter().filter(|u| u.role == Role::Primary) {
        if let Why::Setting(what) = &unmatched.why {
            settings
                .entry(what)
                .or_default()
                .push(unmatched.name.clone());
        }
    }
    for (what, names) in settings {
        list.push(format!(
            "Not compared, because the sides were measured in two settings ({what}): {}. Measure \
             both in one.",
            few(&names)
        ));
    }
    list
}

/// Returns some of these names, and how many more there are.
fn few(names: &[String]) -> String {
    match names.len() {
        0..=NAMES => names.join(", "),
        n => format!("{} and {} more", names[..NAMES].join(", "), n - NAMES),
    }
}

fn tables(judged: &JudgedSamples, document: &mut Document) {
    let decided = |row: &&JudgedRow| {
        let verdict = &row.judged.verdict;
        !matches!(verdict, Verdict::Flat { .. } | Verdict::Unclear { .. })
    };
    let all: Vec<&JudgedRow> = judged.primaries().collect();
    if all.len() > OPEN {
        let mut decided: Vec<&JudgedRow> = all.iter().copied().filter(decided).collect();
        decided.sort_by(|a, b| size(b).total_cmp(&size(a)));
        if !decided.is_empty() {
            let rows = decided.iter().map(|row| metric_row(row)).collect();
            document.push(Section::new("Better, worse and invalid").with(Part::Metrics(rows)));
        }
    }
    if !all.is_empty() {
        let rows = all.iter().map(|row| metric_row(row)).collect();
        let section = Section::new("Benchmarks").with(Part::Metrics(rows));
        document.push(section.folded(all.len() > OPEN));
    }
    let explain = judged
        .rows
        .iter()
        .filter(|row| row.of.role == Role::Screening);
    let rows: Vec<MetricRow> = explain.map(metric_row).collect();
    if !rows.is_empty() {
        let folded = rows.len() > OPEN;
        document.push(
            Section::new("Other metrics, which explain")
                .with(Part::Metrics(rows))
                .folded(folded),
        );
    }
}

/// The most benchmarks of a chart, and the most dots of a side of one.
const DRAWN: usize = 20;
const DOTS: usize = 100;

/// Returns the chart of both distributions with the interval of the difference, for the
/// benchmarks that differ most; `None` if nothing was shown.
fn distributions(judged: &JudgedSamples) -> Option<Section> {
    let mut all: Vec<&JudgedRow> = judged.primaries().collect();
    all.retain(|row| shown(row).is_some());
    if all.len() > DRAWN {
        all.sort_by(|a, b| size(b).total_cmp(&size(a)));
        all.truncate(DRAWN);
    }
    let mut rows = Vec::new();
    for row in &all {
        let estimate = shown(row)?;
        let percent = |values: Vec<f64>, of: f64| {
            let mut values: Vec<f64> = values.iter().map(|x| 100.0 * (x / of - 1.0)).collect();
            values.sort_by(f64::total_cmp);
            let every = values.len().div_ceil(DOTS).max(1);
            values.into_iter().step_by(every).collect()
        };
        let dots = match &row.of.samples {
            Samples::Pairs(pairs) => {
                let ratio = |pair: &Pair| pair.experiment / pair.baseline;
                percent(pairs.iter().map(ratio).collect(), 1.0)
            }
            Samples::Independent(both) => {
                rows.push(IntervalRow {
                    name: "baseline".into(),
                    estimate: None,
                    pairs: percent(both.baseline.clone(), estimate.baseline),
                    verdict: String::new(),
                });
                percent(both.experiment.clone(), estimate.baseline)
            }
        };
        rows.push(IntervalRow {
            name: name_within(&row.of.name),
            estimate: Some(estimate.delta_percent()),
            pairs: dots,
            verdict: row.judged.verdict.word().into(),
        });
    }
    let margin = 100.0 * judged.judging.settings.delta;
    (!rows.is_empty()).then(|| {
        Section::new("Samples and intervals")
            .with(Part::Intervals(Intervals { rows, margin }))
            .note(
                "Dots are samples of a side, in percent of the baseline's median, or ratios of \
                 pairs; the line is the 95 % interval of the difference, and the band is what \
                 counts as flat. The axis is logarithmic outside of the band.",
            )
            .only(Medium::Page)
    })
}

/// Returns a name as the margin of a chart has room for it: its end says more than its start.
fn name_within(name: &str) -> String {
    let letters = name.chars().count();
    match letters > NAME {
        true => format!(
            "...{}",
            name.chars().skip(letters + 3 - NAME).collect::<String>()
        ),
        false => name.to_owned(),
    }
}

/// Returns how large a difference is, either way.
fn size(row: &JudgedRow) -> f64 {
    row.judged.estimate.map_or(f64::INFINITY, |e| e.theta.abs())
}

/// Returns what was shown, in sentences.
fn conclusion(judged: &JudgedSamples) -> Vec<String> {
    let of = judged.primaries().count();
    let mut parts = Vec::new();
    for word in ["worse", "better", "flat", "unclear", "invalid"] {
        let with = judged
            .primaries()
            .filter(|row| row.judged.verdict.word() == word);
        let names: Vec<String> = with.map(|row| row.of.name.clone()).collect();
        if !names.is_empty() {
            parts.push(match word {
                "worse" | "better" | "invalid" => {
                    format!("{word} in {} of {of} ({})", names.len(), few(&names))
                }
                _ => format!("{word} in {} of {of}", names.len()),
            });
        }
    }
    let mut sentences = Vec::new();
    match parts.is_empty() {
        true if judged.unlike().next().is_some() => {
            sentences.push("No benchmark is comparable.".to_owned());
        }
        true => sentences.push(
            "No benchmark is in both files; give both the same names (hyperfine: --command-name)."
                .to_owned(),
        ),
        false => sentences.push(format!("{}.", capital(&parts.join(", ")))),
    }
    let counts = judged.gating().filter(|row| row.of.role == Role::Screening);
    let counts: Vec<String> = counts.map(exact_count).collect();
    if !counts.is_empty() {
        sentences.push(format!(
            "The same in every run of a side: {}.",
            counts.join("; ")
        ));
    }
    sentences.extend(mean(judged).map(|mean| mean.sentence()));
    if of > 0 {
        sentences.push("Unclear does not mean equal, and what is invalid says nothing.".into());
    }
    sentences
}

fn findings(judged: &JudgedSamples) -> Vec<Finding> {
    let file = Some(judged.compared.files[1].label.clone());
    let of = |row: &JudgedRow| Finding {
        name: match row.of.role {
            Role::Primary => row.of.name.clone(),
            Role::Screening => format!("{}: {}", row.of.name, row.of.metric),
        },
        metric: row.of.metric.clone(),
        verdict: row.judged.verdict.word(),
        message: message(judged, row),
        file: file.clone(),
        ..Finding::default()
    };
    let absent = |name: &str, verdict: &'static str, message: String| Finding {
        name: name.to_owned(),
        verdict,
        message,
        file: file.clone(),
        ..Finding::default()
    };
    let mut findings: Vec<Finding> = judged.gating().map(of).collect();
    findings.extend(judged.unlike().map(|u| {
        absent(
            &u.name,
            "invalid",
            match &u.why {
                Why::Setting(what) => format!("The sides were measured in two settings: {what}."),
                _ => "The units of both sides do not measure the same.".into(),
            },
        )
    }));
    findings.extend(judged.missing().map(|u| {
        absent(
            &u.name,
            "incomplete",
            "Only the baseline's file has it.".into(),
        )
    }));
    findings
}

/// Returns a count that is one number on each side, as `X: allocs/op is worse (0 to 1)`.
fn exact_count(row: &JudgedRow) -> String {
    let line = metric_row(row);
    let figure = |x: Option<f64>| number::or_dash(x, number::figure);
    format!(
        "{} is {} ({} to {})",
        line.name,
        line.word(),
        figure(line.baseline),
        figure(line.experiment)
    )
}

/// Returns the sentences of a verdict: what was shown, by how much, and why no more was.
fn message(judged: &JudgedSamples, row: &JudgedRow) -> String {
    let by = shown(row).map_or_else(String::new, |estimate| {
        let Shown { value, low, high } = estimate.delta_percent();
        match low.is_finite() && high.is_finite() {
            true => format!(" by {value:+.2} % (95 % interval {low:+.2} to {high:+.2} %)"),
            false => format!(" by {value:+.2} %"),
        }
    });
    let metric = &row.of.metric;
    let text = match &row.judged.verdict {
        Verdict::Better => format!("Better in {metric}{by}."),
        Verdict::Worse => format!("Worse in {metric}{by}."),
        Verdict::Flat { .. } => format!("Shown to be flat in {metric}: it differs{by}."),
        Verdict::Unclear { .. } => format!(
            "It is unclear whether {metric} differs{}: {}.",
            if by.is_empty() {
                String::new()
            } else {
                format!("; it does{by} in these samples")
            },
            why_unclear(judged, row)
        ),
        Verdict::Invalid(reasons) => {
            let reasons: Vec<String> = reasons.iter().map(ToString::to_string).collect();
            format!("The samples must not be read: {}.", reasons.join("; "))
        }
    };
    match row.judged.estimate.map(|e| e.sampling) {
        Some(Sampling::Pairs(pairs)) => {
            format!("{text} There are {}.", number::count(pairs, "pair"))
        }
        Some(Sampling::Independent {
            baseline,
            experiment,
        }) => format!("{text} There are {baseline} and {experiment} samples."),
        None => text,
    }
}

/// Says why a comparison is unclear.
fn why_unclear(judged: &JudgedSamples, row: &JudgedRow) -> String {
    if row.of.few.is_some() && judged.judging.process_noise.is_none() {
        return format!(
            "{} processes of each side would decide, and there are fewer",
            judged.processes_needed()
        );
    }
    let is_reason = |warning: &&Warning| {
        matches!(
            warning,
            Warning::LostToFamily { .. }
                | Warning::TooFewPairs { .. }
                | Warning::TooFewSamples { .. }
                | Warning::TooFewForFamily { .. }
                | Warning::WithinBand { .. }
        )
    };
    match row.judged.warnings.iter().find(is_reason) {
        Some(warning) => warning.to_string(),
        None => "the interval has both no difference and one that matters".into(),
    }
}
