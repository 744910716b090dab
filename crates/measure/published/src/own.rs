//! A reference of anybody's own: figures that were measured or published
//! elsewhere, with the machine, the rule and the loop that they come from, all in
//! one file.
//!
//! It is how others check the model. Nothing in it can tune the model, and its
//! score is of no group: it is not among the experiments that ship.

use crate::agreement::agreement;
use crate::experiment::{Run, counting, workload};
use crate::lockhammer;
use crate::program_locks;
use crate::reference::{line_at, not_toml};
use crate::reproduction::{Question, Reproduced, Reproduction};
use crate::rule::Rule;
use locklab_host::error::Error;
use locklab_sim::{Loop, Machine, Outcome, Placement, Scenario, can_be_simulated, run_all};
use serde::Deserialize;
use std::collections::BTreeMap;
use toml::Spanned;

/// Operations of each thread, if the file does not say.
const OPERATIONS: u64 = 400;

/// The number of threads up to which they may stay in the order in which they began:
/// the figure is the median of some runs, each with a seed of its own. More threads mix
/// within a run.
const FEW: usize = 8;
const RUNS: u64 = 9;

/// Holds what the lengths of a file are.
const BY_CLOCK: &str = "by-clock";
const ALONE: &str = "alone";

/// Returns whether a file is an experiment file, with its reference beside it, and not a
/// reference of one's own.
pub(crate) fn is_experiment(text: &str) -> bool {
    let table: Result<toml::Table, _> = toml::from_str(text);
    table.is_ok_and(|table| {
        table
            .get("kind")
            .is_some_and(|kind| kind.as_str() == Some("published"))
    })
}

/// The kind that a file may name, as experiment files do.
const KIND: &str = "reference";

/// The keys of a file, as they are written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    kind: Option<Spanned<String>>,
    title: Spanned<String>,
    source: Spanned<String>,
    machine: Spanned<String>,
    rule: Option<Spanned<String>>,
    placement: Option<Spanned<String>>,
    threads: Spanned<Vec<Spanned<i64>>>,
    operations: Option<Spanned<i64>>,
    #[serde(default)]
    inside_ns: Option<Spanned<f64>>,
    #[serde(default)]
    outside_ns: Option<Spanned<f64>>,
    lengths: Option<Spanned<String>>,
    #[serde(default)]
    write_percent: Option<Spanned<i64>>,
    #[serde(default)]
    without_pause: Vec<Spanned<String>>,
    baseline: Option<Spanned<String>>,
    ns: Option<Spanned<Figures>>,
    ops_per_s: Option<Spanned<Figures>>,
    ratio: Option<Spanned<Figures>>,
}

/// The figures of each lock, one for each number of threads.
type Figures = BTreeMap<Spanned<String>, Spanned<Vec<Spanned<f64>>>>;

/// Says what the figures of a file are.
#[derive(Clone, Copy, PartialEq)]
enum Form {
    Times,
    Rates,
    Ratios,
}

impl Form {
    /// Returns what no lock on any machine is outside of: a figure that is was mistyped, or
    /// is in another unit.
    fn range(self) -> (std::ops::RangeInclusive<f64>, &'static str) {
        match self {
            Self::Times => (
                1e-3..=1e9,
                "a time for one operation is from 0.001 to 1e9 ns",
            ),
            Self::Rates => (1.0..=1e12, "a rate is from 1 to 1e12 operations per second"),
            Self::Ratios => (1e-6..=1e6, "a ratio is from 0.000001 to 1,000,000"),
        }
    }
}

/// A reference file of anybody's own.
#[derive(Clone, Debug)]
pub struct OwnReference {
    title: String,
    source: String,
    machine: Machine,
    rule: Rule,
    placement: Placement,
    threads: Vec<usize>,
    /// The number of each thread; none if the file leaves it to the lock.
    operations: Option<u64>,
    turn: Loop,
    without_pause: Vec<String>,
    baseline: String,
    /// Holds for each lock its figures, as times for one operation, or ratios of rates
    /// over the baseline's.
    figures: Vec<(String, Vec<f64>)>,
    are_ratios: bool,
}

/// A time for one operation beside the published one.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Time {
    /// The name of the lock, as `locklab locks` lists it.
    pub lock: String,
    /// Number of threads.
    pub threads: usize,
    /// The published time, ns.
    pub published: f64,
    /// The simulated time, ns.
    pub ours: f64,
}

impl OwnReference {
    /// Parses a file; `file` is its name in errors.
    ///
    /// # Errors
    /// One sentence with the line: if it is not TOML, a key is missing or
    /// unknown, the machine, the rule, a placement or a lock does not exist, a
    /// figure is not above 0, a row has another length than the numbers of
    /// threads, there are more threads than the machine has, or rates and ratios
    /// are mixed.
    pub fn parse(file: &str, text: &str) -> Result<Self, Error> {
        let raw: File = toml::from_str(text).map_err(|error| not_toml(file, text, &error))?;
        Self::check(raw, text).map_err(|(at, what)| {
            // A name that the file has may have a line break.
            let what = what.replace(char::is_control, " ");
            Error::Usage(format!("{file}:{}: {what}", line_at(text, at)))
        })
    }

    fn check(file: File, text: &str) -> Result<Self, (usize, String)> {
        let at = |spanned: std::ops::Range<usize>| spanned.start;
        let end = text.trim_end().len();
        if let Some(kind) = file.kind.as_ref().filter(|kind| *kind.get_ref() != KIND) {
            let what = format!(
                "`kind` is `{}`, but that of figures of one's own is `{KIND}`; it may be left out",
                kind.get_ref()
            );
            return Err((at(kind.span()), what));
        }
        for (value, key) in [(&file.title, "title"), (&file.source, "source")] {
            let text = value.get_ref();
            if text.trim().is_empty() {
                let what = format!("`{key}` is empty; a report begins with it");
                return Err((at(value.span()), what));
            }
            if text.chars().any(char::is_control) {
                let what = format!("`{key}` has a control character; write it as one line of text");
                return Err((at(value.span()), what));
            }
        }
        let machine = Machine::named(file.machine.get_ref())
            .map_err(|error| (at(file.machine.span()), error.to_string()))?;
        let known = Rule::ALL.map(|(name, _)| name).join(", ");
        let rule = file.rule.as_ref().ok_or_else(|| {
            let what =
                format!("`rule` is missing: it says what a rate means, and is one of {known}");
            (end, what)
        })?;
        let rule = Rule::named(rule.get_ref()).map_err(|what| (at(rule.span()), what.into()))?;
        let placement = file.placement.as_ref().ok_or_else(|| {
            let known = Placement::ALL.map(|(name, _)| name).join(", ");
            let what = format!(
                "`placement` is missing: it says which CPUs the threads have, and is one of {known}"
            );
            (end, what)
        })?;
        let placement = Placement::named(placement.get_ref())
            .map_err(|what| (at(placement.span()), what.into()))?;
        let most = machine.cpus();
        let mut threads = Vec::new();
        for number in file.threads.get_ref() {
            match usize::try_from(*number.get_ref()) {
                Ok(n) if threads.contains(&n) => {
                    let what = format!("`threads` has {n} twice; give each number once");
                    return Err((at(number.span()), what));
                }
                Ok(n) if (1..=most).contains(&n) => threads.push(n),
                _ => {
                    let what = format!(
                        "{} threads; {} has 1 to {most}",
                        number.get_ref(),
                        machine.name
                    );
                    return Err((at(number.span()), what));
                }
            }
        }
        if threads.is_empty() {
            let what = "`threads` is empty; give the numbers of threads of the rows".to_owned();
            return Err((at(file.threads.span()), what));
        }
        let (figures, form) = match (&file.ns, &file.ops_per_s, &file.ratio) {
            (Some(figures), None, None) => (figures, Form::Times),
            (None, Some(figures), None) => (figures, Form::Rates),
            (None, None, Some(figures)) => (figures, Form::Ratios),
            (None, None, None) => {
                let what = "it has no figures: give `[ns]`, `[ops_per_s]` or `[ratio]`";
                return Err((end, what.to_owned()));
            }
            (ns, rates, ratios) => {
                let last = [ns, rates, ratios].into_iter().flatten();
                let last = last.map(|table| at(table.span())).max().unwrap_or(end);
                let what = "a file has either times, rates or ratios; give one of `[ns]`, \
                            `[ops_per_s]` and `[ratio]`";
                return Err((last, what.to_owned()));
            }
        };
        let are_ratios = form == Form::Ratios;
        let rows = rows(figures, threads.len(), form)?;
        let baseline = match &file.baseline {
            Some(name) => {
                let named = is_lock(name)?;
                if !are_ratios && !rows.iter().any(|(lock, _)| *lock == named) {
                    let what = format!("the baseline `{named}` has no row of figures");
                    return Err((at(name.span()), what));
                }
                named
            }
            None if are_ratios => {
                let what = "`baseline` is missing: the lock that the ratios are over".to_owned();
                return Err((at(figures.span()), what));
            }
            None => rows[0].0.clone(),
        };
        let itself = rows.iter().find(|(lock, _)| *lock == baseline);
        if let (true, Some((lock, row))) = (are_ratios, itself)
            && row.iter().any(|ratio| *ratio != 1.0)
        {
            let what = format!("`{lock}` is the baseline, whose ratio is 1; leave its row out");
            return Err((at(figures.span()), what));
        }
        let scale = |figure: f64| match form {
            Form::Times | Form::Ratios => figure,
            Form::Rates => 1e9 / figure,
        };
        let length = |value: &Option<Spanned<f64>>, key: &str| match value {
            None => Ok(0.0),
            Some(value) if (0.0..=1e6).contains(value.get_ref()) => Ok(*value.get_ref()),
            Some(value) => Err((
                at(value.span()),
                format!(
                    "`{key}` is {}; it is from 0 to 1,000,000 ns",
                    readable(*value.get_ref())
                ),
            )),
        };
        let operations = match &file.operations {
            None => None,
            Some(value) if (50..=100_000).contains(value.get_ref()) => {
                Some(*value.get_ref() as u64)
            }
            Some(value) => {
                let what = format!(
                    "`operations` is {}; it is from 50 to 100,000 for each thread",
                    value.get_ref()
                );
                return Err((at(value.span()), what));
            }
        };
        let by_clock = match &file.lengths {
            None => true,
            Some(value) if value.get_ref() == BY_CLOCK => true,
            Some(value) if value.get_ref() == ALONE => false,
            Some(value) => {
                let what = format!(
                    "`lengths` is `{}`; it is `{BY_CLOCK}` (what a clock shows, whatever the \
                     sibling thread does) or `{ALONE}` (what computing takes while the sibling \
                     is idle)",
                    value.get_ref()
                );
                return Err((at(value.span()), what));
            }
        };
        let write_percent = match &file.write_percent {
            None => 0,
            Some(value) if (0..=100).contains(value.get_ref()) => *value.get_ref() as u32,
            Some(value) => {
                let what = format!(
                    "`write_percent` is {}; it is from 0 to 100",
                    value.get_ref()
                );
                return Err((at(value.span()), what));
            }
        };
        let without_pause = file.without_pause.iter().map(|name| {
            let named = is_lock(name)?;
            if named != baseline && !rows.iter().any(|(lock, _)| *lock == named) {
                let what = format!("`without_pause` has `{named}`, which has no row of figures");
                return Err((at(name.span()), what));
            }
            Ok(named)
        });
        let without_pause = without_pause.collect::<Result<Vec<_>, _>>()?;
        Ok(Self {
            turn: Loop {
                inside_ns: length(&file.inside_ns, "inside_ns")?,
                outside_ns: length(&file.outside_ns, "outside_ns")?,
                write_percent,
                by_clock,
                ..Loop::default()
            },
            without_pause,
            figures: rows
                .into_iter()
                .map(|(lock, row)| (lock, row.into_iter().map(scale).collect()))
                .collect(),
            title: file.title.into_inner(),
            source: file.source.into_inner(),
            machine,
            rule,
            placement,
            threads,
            operations,
            baseline,
            are_ratios,
        })
    }

    /// Returns what the reference file calls the experiment.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// Simulates it, on `workers` threads: ratios beside ratios, and times beside
    /// times if the file has them.
    ///
    /// # Errors
    /// If a lock does not work in the simulator.
    pub fn simulate(
        &self,
        name: &str,
        seed: u64,
        workers: usize,
        progress: impl Fn(usize, usize) + Sync,
    ) -> Result<(Reproduction, Vec<Time>), Error> {
        program_locks::register();
        let mut locks = vec![&self.baseline];
        let rows = self.figures.iter().map(|(lock, _)| lock);
        locks.extend(rows.filter(|lock| **lock != self.baseline));
        let (mut scenarios, mut cells) = (Vec::new(), Vec::new());
        for lock in &locks {
            for &threads in &self.threads {
                let runs = if threads <= FEW { RUNS } else { 1 };
                for run in 0..runs {
                    scenarios.push(self.scenario(lock, threads, seed.wrapping_add(run))?);
                    cells.push((lock.as_str(), threads));
                }
            }
        }
        let total = scenarios.len();
        let outcomes = run_all(&scenarios, workers, |done| progress(done, total))?;
        let rate = |lock: &str, threads: usize| -> f64 {
            let of_cell = cells.iter().zip(&outcomes);
            let of_cell = of_cell.filter(|(cell, _)| **cell == (lock, threads));
            let mut rates: Vec<f64> = of_cell
                .map(|(_, outcome)| self.rule.rate(outcome))
                .collect();
            rates.sort_by(f64::total_cmp);
            rates.get(rates.len() / 2).copied().unwrap_or(f64::NAN)
        };
        let row = |lock: &str| self.figures.iter().find(|(known, _)| known == lock);
        let (mut figures, mut times) = (Vec::new(), Vec::new());
        for (lock, published) in &self.figures {
            for (at, &threads) in self.threads.iter().enumerate() {
                if !self.are_ratios {
                    times.push(Time {
                        lock: lock.clone(),
                        threads,
                        published: published[at],
                        ours: 1e9 / rate(lock, threads),
                    });
                }
                if *lock == self.baseline {
                    continue;
                }
                let theirs = match row(&self.baseline) {
                    Some((_, below)) if !self.are_ratios => below[at] / published[at],
                    _ => published[at],
                };
                let scenario = self.scenario(lock, threads, seed)?;
                figures.push(Reproduced {
                    name: format!("{lock}_over_{} threads={threads}", self.baseline),
                    published: Some(theirs),
                    direction: None,
                    ours: rate(lock, threads) / rate(&self.baseline, threads),
                    question: Question::of(&scenario),
                });
            }
        }
        let mut report = Reproduction {
            name: name.to_owned(),
            report: None,
            title: self.title.clone(),
            group: None,
            machine: self.machine.name.clone(),
            near: None,
            placement: self.placement.name(),
            rule: self.rule,
            source: self.source.clone(),
            settled_by: None,
            shape: None,
            figures,
            agreement: agreement(&[]),
            accesses: outcomes.iter().map(|outcome| outcome.accesses).sum(),
            trace_hash: Outcome::hash_of_all(&outcomes),
        };
        report.agreement = agreement(&report.pairs());
        Ok((report, times))
    }

    fn scenario(&self, lock: &str, threads: usize, seed: u64) -> Result<Scenario, Error> {
        let pause = !self.without_pause.iter().any(|without| without == lock);
        let run = Run {
            lock: lock.to_owned(),
            threads,
            workload: workload(lock, self.turn),
            pause,
            stall_ns: 0.0,
            guests: 1,
            operations: None,
            barrier: false,
        };
        let usual = || lockhammer::operations(lock).unwrap_or(OPERATIONS);
        let operations = self.operations.unwrap_or_else(usual) * threads as u64;
        let stop = self.rule.stop(operations, threads);
        run.scenario(self.machine.clone(), self.placement, stop, seed)
    }
}

/// Returns the root of the mean of the squares of ln(ours / theirs); none without times.
pub fn log_error(times: &[Time]) -> Option<f64> {
    let squares = times
        .iter()
        .map(|time| (time.ours / time.published).ln().powi(2));
    (!times.is_empty()).then(|| (squares.sum::<f64>() / times.len() as f64).sqrt())
}

fn is_lock(name: &Spanned<String>) -> Result<String, (usize, String)> {
    let lock = name.get_ref();
    if can_be_simulated(lock) || program_locks::is_known(lock) || counting(lock).is_some() {
        return Ok(lock.clone());
    }
    let unknown = || {
        format!(
            "no lock is called `{lock}`; `locklab locks` lists ours, and docs/simulator.md those \
             of lockhammer"
        )
    };
    let what = lockhammer::refused(lock).unwrap_or_else(unknown);
    Err((name.span().start, what))
}

/// Returns a number as in the file, without a row of zeros.
fn readable(value: f64) -> String {
    match value.abs() {
        0.0 | 1e-2..1e7 => value.to_string(),
        size if size.is_finite() => format!("{value:e}"),
        _ => value.to_string(),
    }
}

fn figures_of(count: usize) -> String {
    match count {
        0 => "no figure".to_owned(),
        1 => "1 figure".to_owned(),
        more => format!("{more} figures"),
    }
}

/// A lock and its figures, one for each number of threads.
type Row = (String, Vec<f64>);

/// Returns the rows in the order of the file, each of the right length and above 0.
fn rows(
    figures: &Spanned<Figures>,
    length: usize,
    form: Form,
) -> Result<Vec<Row>, (usize, String)> {
    let (range, allowed) = form.range();
    let mut rows: Vec<_> = figures.get_ref().iter().collect();
    rows.sort_by_key(|(lock, _)| lock.span().start);
    let mut checked = Vec::new();
    for (lock, row) in rows {
        let name = is_lock(lock)?;
        if row.get_ref().len() != length {
            let what = format!(
                "`{name}` has {} and `threads` has {length}; give a figure for each number of \
                 threads",
                figures_of(row.get_ref().len())
            );
            return Err((row.span().start, what));
        }
        for figure in row.get_ref() {
            let value = *figure.get_ref();
            if range.contains(&value) {
                continue;
            }
            let allowed = match value > 0.0 {
                true => allowed,
                false => "it must be above 0",
            };
            let what = format!("a figure of `{name}` is {}; {allowed}", readable(value));
            return Err((figure.span().start, what));
        }
        let row = row.get_ref().iter().map(|figure| *figure.get_ref());
        checked.push((name, row.collect()));
    }
    if checked.is_empty() {
        return Err((
            figures.span().start,
            "its table of figures is empty; give a row for each lock".to_owned(),
        ));
    }
    Ok(checked)
}

#[cfg(test)]
#[path = "../tests/unit/own.rs"]
mod tests;
