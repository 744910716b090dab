//! Holds the scores of the model, in reference/scores.toml, to what the simulator gives today,
//! and the pages that quote them.
//!
//! A score is the mean over [`SEEDS`], each of which also draws the homes of lines, and its
//! spread the standard deviation over them. No score may be worse than the best so far by more
//! than that spread. `UPDATE_GOLDEN=1 cargo test --release -p locklab-published --test docs --
//! --ignored` notes what has become better. It notes what has become worse only where the entry
//! says why: `lower = "the reason"`, written by hand, which becomes `lowered`.

use locklab_document::render::{Colour, text};
use locklab_published::recorded::Recording;
use locklab_published::report::scores;
use locklab_published::{
    Agreement, EXPERIMENTS, Group, OwnReference, Question, Reproduction, Time, Validation,
    agreement, log_error, reproduce, score,
};
use locklab_sim::{BUILTIN, Machine, microbench};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex};

/// The seeds of a score. An experiment of several runs uses those that follow, too.
const SEEDS: [u64; 8] = [1, 101, 201, 301, 401, 501, 601, 701];

/// lockhammer's published runs with nothing held and nothing between, by their machine.
const LOCKHAMMER: [&str; 4] = [
    "epyc-7601",
    "xeon-8160",
    "xeon-e5-2699v4-2s",
    "xeon-e5-10c-2s",
];
/// Its programs that are checks of those machines' files: these may have chosen a figure.
const CHECKS: [&str; 4] = [
    "incdec_refcount",
    "cas_rw_lock",
    "swap_mutex",
    "ticket_spinlock",
];
/// Number of the 40 rows of a machine and a program that are held out of all choices. Nothing is
/// changed because of one of them; nobody looks for the reason of its error.
const HELD_OUT: usize = 20;
/// Published times that differ by less than this factor are in no order.
const TIE: f64 = 1.05;

const BEFORE: &str = "<!-- What `locklab reproduce all` prints. -->\n```\n";
const QUOTED: &str = "<!-- Of reference/scores.toml. -->\n```\n";
const AFTER: &str = "```\n";
const FILE: &str = "reference/scores.toml";

fn path(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../..")
        .join(file)
}

fn read(file: &str) -> String {
    std::fs::read_to_string(path(file)).unwrap()
}

/// Held while the file of scores is renewed, of which two tests have a part each.
static WRITING: Mutex<()> = Mutex::new(());

fn updates() -> bool {
    std::env::var_os("UPDATE_GOLDEN").is_some()
}

/// Compares the part of a page between two lines with what it must be, or renews it.
fn hold(page: &str, from: &str, expected: &str) {
    let text = read(page);
    let (before, rest) = text.split_once(from).unwrap();
    let (written, after) = rest.split_once(AFTER).unwrap();
    if updates() {
        std::fs::write(path(page), [before, from, expected, AFTER, after].concat()).unwrap();
    } else {
        assert_eq!(written, expected, "{page}");
    }
}

fn workers() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// All published experiments by the first seed: what `locklab reproduce all` gives.
static REPORTS: LazyLock<Vec<Reproduction>> = LazyLock::new(|| reports(SEEDS[0]));

fn reports(seed: u64) -> Vec<Reproduction> {
    let reproduced =
        |(name, _): &(&str, &str)| reproduce(name, seed, workers(), |_, _| {}).unwrap();
    EXPERIMENTS.iter().map(reproduced).collect()
}

/// A score so far.
#[derive(Clone, Debug, PartialEq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Score {
    best: f64,
    spread: f64,
    /// The reason why it is less than it once was.
    lowered: Option<String>,
    /// The reason why it may become less now.
    lower: Option<String>,
}

type Scores = BTreeMap<String, Score>;

/// Returns whether a greater figure of this name is the better one.
fn rises(name: &str) -> bool {
    let (_, metric) = name.rsplit_once('.').unwrap();
    ["direction", "ranks", "order"].contains(&metric)
}

impl Score {
    fn of(name: &str, values: &[f64]) -> Self {
        assert_eq!(
            values.len(),
            SEEDS.len(),
            "{name} has no figure by some seed"
        );
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        Self {
            best: round(mean),
            spread: round((squares / (values.len() - 1) as f64).sqrt()),
            lowered: None,
            lower: None,
        }
    }

    /// Returns by how much it is worse than `best`; less than 0 if it is better.
    fn behind(&self, best: &Self, name: &str) -> f64 {
        match rises(name) {
            true => best.best - self.best,
            false => self.best - best.best,
        }
    }

    fn line(&self, name: &str) -> String {
        let Self { best, spread, .. } = self;
        let why = self.lowered.as_ref();
        let why = why.map_or_else(String::new, |why| format!(", lowered = {why:?}"));
        format!("{name} = {{ best = {best:.4}, spread = {spread:.4}{why} }}\n")
    }
}

fn round(value: f64) -> f64 {
    (value * 1e4).round() / 1e4
}

/// Reads the scores so far, by their whole names.
fn kept() -> Scores {
    let file: toml::Table = toml::from_str(&read(FILE)).unwrap();
    let mut scores = Scores::new();
    let mut tables = vec![(String::new(), file["score"].clone())];
    while let Some((name, value)) = tables.pop() {
        match value.get("best") {
            Some(_) => _ = scores.insert(name, value.try_into().unwrap()),
            None => tables.extend(value.as_table().unwrap().iter().map(|(key, value)| {
                let name = if name.is_empty() {
                    key.clone()
                } else {
                    format!("{name}.{key}")
                };
                (name, value.clone())
            })),
        }
    }
    scores
}

/// The figures of one score by each seed.
#[derive(Default)]
struct Today(BTreeMap<String, Vec<f64>>);

impl Today {
    fn note(&mut self, of: &str, metric: &str, value: Option<f64>) {
        if let Some(value) = value {
            self.0
                .entry(format!("{of}.{metric}"))
                .or_default()
                .push(value);
        }
    }

    fn agreement(&mut self, of: &str, agreement: &Agreement) {
        self.note(of, "direction", agreement.direction);
        self.note(of, "factor", agreement.median_factor_error);
        self.note(of, "log-error", agreement.mean_abs_log_error);
        self.note(of, "ranks", agreement.spearman);
    }

    fn published(&mut self, reports: &[Reproduction]) {
        for group in Group::ALL {
            self.agreement(group.key(), &score(group, None, reports));
            for question in Question::ALL {
                let of = format!("{}-{}", group.key(), question.key());
                let agreement = score(group, Some(question), reports);
                if agreement.figures >= 5 {
                    self.agreement(&of, &agreement);
                }
            }
        }
        for report in reports {
            let Some(number) = report.report else {
                continue;
            };
            let of = format!("report-{number}");
            self.agreement(&of, &report.agreement);
            if report.shape.is_none() {
                continue;
            }
            for threads in [2, 4, 8] {
                let cells = format!("non_critical=1 threads={threads} ");
                let figures = report.figures.iter();
                let figures = figures.filter(|figure| figure.name.starts_with(&cells));
                let pairs: Vec<_> = figures.map(|f| (f.theirs().unwrap(), f.ours)).collect();
                let of = format!("{of}-short-{threads}-threads");
                self.note(&of, "factor", agreement(&pairs).median_factor_error);
            }
        }
    }

    fn microbenchmarks(&mut self, seed: u64) {
        for (name, _) in BUILTIN {
            let checked = microbench::check(&Machine::builtin(name).unwrap(), seed).unwrap();
            let (shares, times): (Vec<_>, Vec<_>) = checked.iter().partition(|f| f.is_share);
            let squares = times.iter().map(|f| (f.ours / f.published).ln().powi(2));
            let rms = (squares.sum::<f64>() / times.len() as f64).sqrt();
            let off = shares.iter().map(|f| (f.ours - f.published).abs());
            self.note(name, "microbenchmarks", (!times.is_empty()).then_some(rms));
            self.note(name, "own-time", off.reduce(f64::max));
        }
    }

    fn recordings(&mut self, seed: u64) {
        for name in RECORDED {
            let file = read(&format!("reference/recorded/{name}.json"));
            let recording: Recording = serde_json::from_str(&file).unwrap();
            let found = recording.compare(seed, workers()).unwrap().found().unwrap();
            self.note(name, "ranks", Some(found.spearman));
            self.note(name, "factor", Some(found.factor));
            let order = found.in_order as f64 / found.pairs as f64;
            self.note(name, "order", Some(order));
        }
    }

    fn lockhammer(&mut self, seed: u64) {
        let held = held_out();
        let mut times: [Vec<Vec<Time>>; 2] = Default::default();
        for machine in LOCKHAMMER {
            let file = format!("reference/lockhammer-{machine}.toml");
            let own = OwnReference::parse(&file, &read(&file)).unwrap();
            let (_, all) = own.simulate(machine, seed, workers(), |_, _| {}).unwrap();
            let is_held = |time: &Time| held.contains(&row(machine, &time.lock));
            let (out, may): (Vec<Time>, Vec<Time>) = all.into_iter().partition(is_held);
            times[0].push(out);
            times[1].push(may);
        }
        for (of, times) in ["lockhammer-held-out", "lockhammer-informing"]
            .iter()
            .zip(times)
        {
            self.note(of, "log-error", log_error(&times.concat()));
            self.note(of, "order", in_order(&times));
        }
    }
}

/// The recordings of what every lock did on a machine, in reference/recorded.
const RECORDED: [&str; 3] = ["zen4-near", "zen4-moved", "zen4-far"];

fn row(machine: &str, lock: &str) -> String {
    format!("{machine} {}", lock.trim_start_matches("lockhammer:"))
}

/// Returns the rows that are held out: of those of programs that are no checks the first by a
/// hash of their names.
fn held_out() -> BTreeSet<String> {
    let mut rows = Vec::new();
    for machine in LOCKHAMMER {
        let file = format!("reference/lockhammer-{machine}.toml");
        let table: toml::Table = toml::from_str(&read(&file)).unwrap();
        rows.extend(
            table["ns"]
                .as_table()
                .unwrap()
                .keys()
                .map(|lock| row(machine, lock)),
        );
    }
    assert_eq!(rows.len(), 2 * HELD_OUT);
    rows.retain(|row| !CHECKS.iter().any(|check| row.ends_with(check)));
    rows.sort_by_key(|row| Sha256::digest(row.as_bytes()));
    rows.into_iter().take(HELD_OUT).collect()
}

/// Returns the share of pairs of locks, on one machine with as many threads, that are in the
/// published order.
fn in_order(machines: &[Vec<Time>]) -> Option<f64> {
    let (mut pairs, mut right) = (0.0, 0.0);
    for times in machines {
        for (at, one) in times.iter().enumerate() {
            for other in times[at + 1..]
                .iter()
                .filter(|other| other.threads == one.threads)
            {
                let published = one.published / other.published;
                if published.max(1.0 / published) > TIE {
                    pairs += 1.0;
                    right += f64::from((published > 1.0) == (one.ours > other.ours));
                }
            }
        }
    }
    (pairs > 0.0).then_some(right / pairs)
}

/// Simulates everything by every seed.
fn today() -> Scores {
    let mut today = Today::default();
    for seed in SEEDS {
        match seed == SEEDS[0] {
            true => today.published(&REPORTS),
            false => today.published(&reports(seed)),
        }
        today.microbenchmarks(seed);
        today.lockhammer(seed);
        today.recordings(seed);
        eprintln!("seed {seed} is done");
    }
    let of = |(name, values): (String, Vec<f64>)| (name.clone(), Score::of(&name, &values));
    today.0.into_iter().map(of).collect()
}

/// Puts today's scores beside the best so far: what is to be written, and what has become worse
/// without a reason.
fn compare(best: &Scores, today: &Scores) -> (Scores, Vec<String>) {
    let mut worse = Vec::new();
    let mut next = Scores::new();
    for (name, now) in today {
        let mut entry = now.clone();
        if let Some(before) = best.get(name) {
            let behind = now.behind(before, name);
            entry.lowered = before.lowered.clone().filter(|_| behind >= 0.0);
            if behind > before.spread + 1e-4 {
                match &before.lower {
                    Some(why) => entry.lowered = Some(format!("{why} (from {})", before.best)),
                    None => worse.push(format!("{name}: {} for {before:?}", now.best)),
                }
            } else if behind >= 0.0 {
                entry = before.clone();
            }
        }
        next.insert(name.clone(), entry);
    }
    worse.extend(
        best.keys()
            .filter(|name| !today.contains_key(*name))
            .cloned(),
    );
    (next, worse)
}

#[test]
#[ignore = "simulates everything by eight seeds: cargo xtask test --thorough"]
fn no_score_is_worse_than_the_best_so_far() {
    let best = kept();
    let (next, worse) = compare(&best, &today());
    let new: Vec<_> = next
        .keys()
        .filter(|name| !best.contains_key(*name))
        .collect();
    eprintln!("not held yet, until {FILE} is updated: {new:?}");
    assert!(
        worse.is_empty(),
        "worse than the best so far by more than its spread; where that is meant, write `lower = \
         \"the reason\"` into the entry of {FILE} and update:\n{}",
        worse.join("\n")
    );
    if updates() {
        let _writing = WRITING.lock().unwrap();
        let file = read(FILE);
        let (before, _) = file.split_once("[score]\n").unwrap();
        let lines: String = next.iter().map(|(name, score)| score.line(name)).collect();
        std::fs::write(path(FILE), [before, "[score]\n", &lines].concat()).unwrap();
    }
}

#[test]
fn a_score_may_fall_within_its_spread_and_beyond_it_with_a_reason() {
    let scores = |best: f64, lower: Option<&str>| {
        let score = Score {
            best,
            spread: 0.01,
            lowered: None,
            lower: lower.map(str::to_owned),
        };
        Scores::from([("a.direction".to_owned(), score)])
    };
    let (kept, worse) = compare(&scores(0.9, None), &scores(0.895, None));
    assert!(worse.is_empty());
    assert_eq!(kept["a.direction"].best, 0.9);
    let (_, worse) = compare(&scores(0.9, None), &scores(0.88, None));
    assert_eq!(worse.len(), 1);
    let (kept, worse) = compare(
        &scores(0.9, Some("a figure was wrong")),
        &scores(0.88, None),
    );
    assert!(worse.is_empty());
    assert_eq!(kept["a.direction"].best, 0.88);
    let line = kept["a.direction"].line("a.direction");
    assert!(
        line.contains("lowered = \"a figure was wrong (from 0.9)\""),
        "{line}"
    );
    let (kept, _) = compare(&kept, &scores(0.91, None));
    let line = kept["a.direction"].line("a.direction");
    assert_eq!(line, "a.direction = { best = 0.9100, spread = 0.0100 }\n");
    // Errors get better by falling.
    assert!(!rises("a.log-error") && !rises("xeon-8160.own-time"));
    let (_, worse) = compare(&scores(0.9, None), &Scores::new());
    assert_eq!(worse, ["a.direction"]);
}

#[test]
fn the_rows_that_are_held_out_are_half_and_no_checks() {
    let held = held_out();
    assert_eq!(held.len(), HELD_OUT);
    assert!(held.contains("xeon-8160 osq_lock") && !held.contains("xeon-8160 swap_mutex"));
}

/// Returns what the page on accuracy quotes.
fn quoted(scores: &Scores) -> String {
    let of = |name: &str, metric: &str, scale: f64, digits: usize| {
        let score = scores.get(&format!("{name}.{metric}"));
        score.map_or_else(
            || format!("{:>15}", "-"),
            |s| {
                format!(
                    "{:>7.digits$} +-{:>5.digits$}",
                    s.best * scale,
                    s.spread * scale
                )
            },
        )
    };
    let head = format!(
        "{:30}{:>15}{:>15}{:>15}\n",
        "what", "direction*, %", "factor", "log error"
    );
    let mut rows: Vec<(String, String)> = Vec::new();
    for group in Group::ALL {
        rows.push((group.key().to_owned(), group.key().to_owned()));
        for question in Question::ALL {
            let of = format!("{}-{}", group.key(), question.key());
            if scores.contains_key(&format!("{of}.log-error")) {
                rows.push((format!("  {}", question.title()), of));
            }
        }
    }
    for (title, name) in [
        ("report 2", "report-2"),
        ("report 3", "report-3"),
        ("report 4", "report-4"),
        ("lockhammer, held out", "lockhammer-held-out"),
        ("lockhammer, others", "lockhammer-informing"),
        ("64 locks on Zen 4, near", "zen4-near"),
        ("64 locks on Zen 4, moved", "zen4-moved"),
        ("48 locks on Zen 4, far", "zen4-far"),
    ] {
        rows.push((title.to_owned(), name.to_owned()));
    }
    let has = |name: &str| {
        scores
            .keys()
            .any(|key| key.starts_with(&format!("{name}.")))
    };
    let rows = rows
        .iter()
        .filter(|(_, name)| has(name))
        .map(|(title, name)| {
            let [direction, factor, error] = [
                of(name, "direction", 100.0, 1),
                of(name, "factor", 1.0, 2),
                of(name, "log-error", 1.0, 3),
            ];
            let direction = match scores.contains_key(&format!("{name}.order")) {
                true => of(name, "order", 100.0, 1),
                false => direction,
            };
            let line = format!("{title:30}{direction}{factor}{error}");
            format!("{}\n", line.trim_end())
        });
    head + &rows.collect::<String>()
}

#[test]
fn the_pages_quote_the_scores() {
    let scores = kept();
    hold("docs/accuracy.md", QUOTED, &quoted(&scores));
    let percent = |name: &str| format!("{:.0} %", 100.0 * scores[name].best);
    let readme = read("README.md");
    for quoted in [
        percent("evaluated-only.direction"),
        format!("{:.2}", scores["evaluated-only.factor"].best),
    ] {
        assert!(readme.contains(&quoted), "README.md does not say {quoted}");
    }
}

#[test]
#[ignore = "simulates every published experiment: cargo xtask test --thorough"]
fn the_scores_in_the_notebook_are_those_of_today() {
    let printed = text(&scores(&REPORTS), Colour::Plain);
    // What is listed after the scores changes with every figure.
    let (printed, _) = printed.split_once("\nMisses: ").unwrap();
    hold("results/simulator.md", BEFORE, printed);
}

#[test]
#[ignore = "simulates every published experiment: cargo xtask test --thorough"]
fn the_counts_that_reports_quote_are_those_of_today() {
    let _writing = WRITING.lock().unwrap();
    let file = read(FILE);
    let (before, rest) = file.split_once("[counts]\n").unwrap();
    let (written, after) = rest.split_once("\n[score]\n").unwrap();
    let counted: Vec<String> = Question::ALL
        .iter()
        .map(|&question| {
            let Validation {
                printed,
                right,
                large,
                large_right,
            } = Validation::count(question, &REPORTS);
            format!(
                "{} = {{ printed = {printed}, right = {right}, large = {large}, \
                 large_right = {large_right} }}\n",
                question.key()
            )
        })
        .collect();
    let counted = counted.concat();
    if updates() {
        let file = [before, "[counts]\n", &counted, "\n[score]\n", after].concat();
        std::fs::write(path(FILE), file).unwrap();
    } else {
        assert_eq!(format!("{written}\n").trim(), counted.trim());
    }
}

#[test]
#[ignore = "simulates every published experiment: cargo xtask test --thorough"]
fn whatever_is_missed_names_what_would_settle_it() {
    let silent = REPORTS
        .iter()
        .filter(|report| report.settled_by.is_none() && !report.misses().is_empty());
    let silent: Vec<_> = silent.map(|report| &report.name).collect();
    assert!(silent.is_empty(), "{silent:?} have no `settled_by`");
}
