//! Matches two sides: finds which benchmarks are the same, in one unit and one setting,
//! what the unit of a sample is, and whether the runs are pairs.
//!
//! Must never guess: a name that only one side has is reported, figures of two settings
//! are not compared, and runs are pairs only if their times say so, or the caller.

use crate::benchmark::{Benchmark, Run, SampleFile};
use crate::units;
use locklab_judge::{Direction, Independent, MIN_SAMPLES, Order, Pair, Role, Samples};
use std::collections::{BTreeMap, BTreeSet};

/// Describes how two sides are matched.
#[derive(Clone, Copy, Debug, Default)]
pub struct Matching {
    /// The nth run of a benchmark in both files is a pair.
    pub paired: bool,
    /// The way in which all metrics improve, where the files do not say it.
    pub direction: Option<Direction>,
}

/// A benchmark of both sides.
#[derive(Clone, Debug)]
pub struct Matched {
    /// Its name in the baseline's file.
    pub name: String,
    /// Names the metric of these samples.
    pub metric: String,
    /// The unit of its samples.
    pub unit: String,
    /// Says which way it improves.
    pub direction: Direction,
    /// Says whether it decides or explains.
    pub role: Role,
    /// Says whether a slower machine changes it.
    pub drifts: bool,
    /// Holds the runs of both sides; of a metric with zeros, the ranks of its values.
    pub samples: Samples,
    /// The medians of both sides, where the samples are ranks, which have no ratio.
    pub medians: Option<[f64; 2]>,
    /// The number of processes of each side, where they are too few to show how processes
    /// differ, though there are more runs.
    pub few: Option<[usize; 2]>,
    /// Says whether each side has one value in all of its runs.
    pub exact: bool,
    /// Says whether both sides have the same samples, as the two copies of one run have.
    pub identical: bool,
    /// The largest ratio between the medians of two processes of one side, less 1, where a
    /// side has several processes with several runs each.
    pub between_processes: Option<f64>,
}

/// A benchmark that cannot be compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unmatched {
    /// Its name, with its metric where that does not decide.
    pub name: String,
    /// Says whether it decides.
    pub role: Role,
    /// Says why it is not judged.
    pub why: Why,
}

/// Says why a benchmark cannot be compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// The experiment's file does not have it.
    OnlyBaseline,
    /// The baseline's file does not have it.
    OnlyExperiment,
    /// Its units do not measure the same.
    Units(String, String),
    /// It was run in two settings: in words, what is different.
    Setting(String),
    /// Some values have no ratio, and no rank either.
    Zero,
}

/// Two sides, matched.
#[derive(Clone, Debug)]
pub struct Compared {
    /// The files, without their benchmarks.
    pub files: [SampleFile; 2],
    /// Benchmarks of both, in the order of the baseline's file.
    pub rows: Vec<Matched>,
    /// Benchmarks that cannot be compared.
    pub unmatched: Vec<Unmatched>,
    /// Holds what a reader must know, each in one sentence.
    pub notes: Vec<String>,
    /// Says how long the runs of each file took at least, in seconds.
    pub seconds: [f64; 2],
}

/// The name of a benchmark without its package, its package, and its metric.
type Key = (String, String, String);

/// Matches the benchmarks of two sides.
#[must_use]
pub fn compare(mut baseline: SampleFile, mut experiment: SampleFile, how: Matching) -> Compared {
    let mut notes = Vec::new();
    for file in [&mut baseline, &mut experiment] {
        let label = file.label.clone();
        notes.extend(file.notes.drain(..).map(|note| format!("{label}: {note}")));
    }
    if baseline.format != experiment.format {
        notes.push(format!(
            "{} is of {} and {} of {}, which may not measure the same.",
            baseline.label,
            baseline.format.program(),
            experiment.label,
            experiment.format.program()
        ));
    }
    notes.extend(said(&baseline, &experiment));
    let seconds = [baseline.seconds(), experiment.seconds()];
    let [ours, mut theirs] =
        [&mut baseline, &mut experiment].map(|file| std::mem::take(&mut file.benchmarks));
    if baseline.format == experiment.format {
        notes.extend(rename_the_only_one(&ours, &mut theirs));
    }
    notes.extend(other_processors(&ours, &theirs));
    let packages: BTreeSet<&str> = ours
        .iter()
        .chain(&theirs)
        .map(|b| b.package.as_str())
        .collect();
    // A name without a package is a whole name where there is no more than one package.
    let named = packages
        .iter()
        .filter(|package| !package.is_empty())
        .count()
        > 1;
    let all_named = !packages.contains("");
    let key = |b: &Benchmark| -> Key {
        let package = if named && all_named {
            b.package.clone()
        } else {
            String::new()
        };
        (b.name.clone(), package, b.metric.clone())
    };
    let mut by_name: BTreeMap<Key, Vec<Benchmark>> = BTreeMap::new();
    let mut order = Vec::new();
    for benchmark in theirs.drain(..) {
        order.push(key(&benchmark));
        by_name.entry(key(&benchmark)).or_default().push(benchmark);
    }
    let mut compared = Compared {
        files: [baseline, experiment],
        rows: Vec::new(),
        unmatched: Vec::new(),
        notes,
        seconds,
    };
    let mut uneven = 0;
    for mut benchmark in ours {
        let key = key(&benchmark);
        if named && all_named {
            benchmark.name = format!("{} {}", benchmark.package, benchmark.name);
        }
        let others = by_name.get_mut(&key);
        let Some(others) = others.filter(|others| !others.is_empty()) else {
            compared
                .unmatched
                .push(unmatched(&benchmark, Why::OnlyBaseline));
            continue;
        };
        // Where a side has a benchmark of several settings, that of the same one is meant.
        let same = others.iter().position(|o| differs(&benchmark, o).is_none());
        let other = others.remove(same.unwrap_or(0));
        if let Some(why) = differs(&benchmark, &other) {
            compared
                .unmatched
                .push(unmatched(&benchmark, Why::Setting(why)));
            continue;
        }
        match matched(benchmark, other, how, &mut uneven) {
            Ok(row) => compared.rows.push(row),
            Err(unmatched) => compared.unmatched.push(unmatched),
        }
    }
    order.dedup();
    for key in order {
        for mut benchmark in by_name.remove(&key).unwrap_or_default() {
            if named && all_named {
                benchmark.name = format!("{} {}", benchmark.package, benchmark.name);
            }
            compared
                .unmatched
                .push(unmatched(&benchmark, Why::OnlyExperiment));
        }
    }
    if uneven > 0 {
        compared.notes.push(format!(
            "Of {uneven} benchmarks one file has more runs, of which the last have no pair and \
             are left out."
        ));
    }
    compared
}

/// Returns what is different in the settings of two benchmarks, of what both say.
fn differs(baseline: &Benchmark, experiment: &Benchmark) -> Option<String> {
    let of = |(name, value): &(&'static str, String)| {
        let other = experiment.setting.iter().find(|(other, _)| other == name)?;
        (other.1 != *value).then(|| format!("{name} {value} and {}", other.1))
    };
    let all: Vec<String> = baseline.setting.iter().filter_map(of).collect();
    (!all.is_empty()).then(|| all.join(", "))
}

/// Says what may explain a difference: another host, kernel or clock.
fn said(baseline: &SampleFile, experiment: &SampleFile) -> Vec<String> {
    let of = |(name, value): &(&'static str, String)| {
        let mut others = experiment.said.iter().filter(|(other, _)| other == name);
        let other = others.next()?;
        (other.1 != *value).then(|| {
            format!(
                "The {name} is {value} in {} and {} in {}, which may explain a difference.",
                baseline.label, other.1, experiment.label
            )
        })
    };
    baseline.said.iter().filter_map(of).collect()
}

/// Says that benchmarks of Go are there with another GOMAXPROCS, which their names end with.
fn other_processors(ours: &[Benchmark], theirs: &[Benchmark]) -> Option<String> {
    let parts = |b: &Benchmark| {
        let (name, processors) = b.name.rsplit_once('-')?;
        let processors: u32 = processors.parse().ok()?;
        Some((name.to_owned(), processors))
    };
    let is_go = |b: &&Benchmark| b.metric.ends_with("/op");
    let has = |b: &Benchmark, all: &[Benchmark]| all.iter().any(|other| other.name == b.name);
    let other = |b: &Benchmark| {
        let (name, n) = parts(b)?;
        let mut of_theirs = theirs.iter().filter(is_go).filter_map(parts);
        let (_, m) = of_theirs.find(|(theirs, m)| *theirs == name && *m != n)?;
        Some((n, m))
    };
    let mut missing = ours.iter().filter(is_go).filter(|b| !has(b, theirs));
    let (n, m) = missing.find_map(other)?;
    Some(format!(
        "GOMAXPROCS is {n} on one side and {m} on the other, as the names end; such benchmarks \
         are not compared."
    ))
}

/// Gives the only benchmark of one file the name of the only one of the other, if each is a
/// command: two commands of hyperfine have two names.
fn rename_the_only_one(ours: &[Benchmark], theirs: &mut [Benchmark]) -> Option<String> {
    let name = &ours.first()?.name;
    let other = theirs.first()?.name.clone();
    let alone = ours.iter().all(|b| b.name == *name) && theirs.iter().all(|b| b.name == other);
    // A number behind the last dash is Go's GOMAXPROCS; a parameter is part of what was run.
    let is_one = |b: &Benchmark| !b.metric.ends_with("/op");
    let parameters = |name: &str| -> Vec<String> {
        let words = name.split(' ').filter(|word| word.contains('='));
        words.map(str::to_owned).collect()
    };
    if !alone || *name == other || !is_one(&ours[0]) || parameters(name) != parameters(&other) {
        return None;
    }
    for benchmark in theirs {
        benchmark.name.clone_from(name);
    }
    Some(format!(
        "The files have one benchmark each, so {other} is compared with {name}."
    ))
}

fn unmatched(benchmark: &Benchmark, why: Why) -> Unmatched {
    Unmatched {
        name: match benchmark.role {
            Role::Primary => benchmark.name.clone(),
            Role::Screening => format!("{}: {}", benchmark.name, benchmark.metric),
        },
        role: benchmark.role,
        why,
    }
}

fn matched(
    mut baseline: Benchmark,
    mut experiment: Benchmark,
    how: Matching,
    uneven: &mut usize,
) -> Result<Matched, Unmatched> {
    let Some(factor) = units::factor(&experiment.unit, &baseline.unit) else {
        let units = Why::Units(baseline.unit.clone(), experiment.unit);
        return Err(unmatched(&baseline, units));
    };
    for run in &mut experiment.runs {
        run.value *= factor;
    }
    let sides = [&baseline.runs, &experiment.runs];
    let identical = is_identical(sides);
    let same = |runs: &&Vec<Run>| runs.iter().all(|run| run.value == runs[0].value);
    let exact = sides.iter().all(same);
    let counts = sides.map(|runs| processes_of(runs));
    let is_mixed = sides.iter().zip(counts).any(|(runs, of)| runs.len() > of);
    let by_process = match is_mixed {
        true => sides.map(|runs| processes(runs)),
        false => [Vec::new(), Vec::new()],
    };
    let between_processes = is_mixed.then(|| spread(&by_process)).flatten();
    let enough = counts.iter().all(|of| *of >= MIN_SAMPLES);
    let few = (is_mixed && !enough && baseline.drifts).then_some(counts);
    if is_mixed && enough {
        baseline.runs = by_process[0].clone();
        experiment.runs = by_process[1].clone();
    }
    let runs = || baseline.runs.iter().chain(&experiment.runs);
    let has_zero = runs().any(|run| run.value == 0.0);
    let ranks = has_zero
        && (baseline.role == Role::Screening || exact && units::seconds(&baseline.unit).is_none());
    if ranks && !runs().all(|run| run.value >= 0.0 && run.value.is_finite()) {
        return Err(unmatched(&baseline, Why::Zero));
    }
    let medians = ranks.then(|| [&baseline.runs, &experiment.runs].map(|runs| median(runs)));
    if ranks {
        rank(&mut baseline.runs, &mut experiment.runs);
    }
    let pairs = in_turn(&baseline.runs, &experiment.runs);
    let samples = match pairs {
        Some(pairs) => Samples::Pairs(pairs),
        None if how.paired => {
            *uneven += usize::from(baseline.runs.len() != experiment.runs.len());
            let both = baseline.runs.iter().zip(&experiment.runs);
            let pair = |(b, e): (&Run, &Run)| Pair::new(b.value, e.value, Order::BaselineFirst);
            Samples::Pairs(both.map(pair).collect())
        }
        None => {
            let values = |runs: &[Run]| runs.iter().map(|run| run.value).collect();
            Samples::Independent(Independent {
                baseline: values(&baseline.runs),
                experiment: values(&experiment.runs),
            })
        }
    };
    Ok(Matched {
        name: baseline.name,
        metric: baseline.metric,
        unit: baseline.unit,
        direction: how.direction.unwrap_or(baseline.direction),
        role: baseline.role,
        drifts: baseline.drifts,
        samples,
        medians,
        few,
        exact,
        identical,
        between_processes,
    })
}

/// Returns whether both sides are copies of one run. Few values, or a count with two, may be
/// equal by chance.
fn is_identical([baseline, experiment]: [&Vec<Run>; 2]) -> bool {
    let mut values: Vec<f64> = baseline.iter().map(|run| run.value).collect();
    let same = values
        .iter()
        .copied()
        .eq(experiment.iter().map(|run| run.value));
    values.sort_by(f64::total_cmp);
    values.dedup();
    same && baseline.len() >= MIN_SAMPLES && values.len() >= 3
}

/// Returns the number of processes that some runs are of.
fn processes_of(runs: &[Run]) -> usize {
    let mut processes: Vec<usize> = runs.iter().map(|run| run.process).collect();
    processes.sort_unstable();
    processes.dedup();
    processes.len()
}

/// Returns the processes of a side, each a run whose value is the median of its runs, and in
/// the order in which they come.
fn processes(runs: &[Run]) -> Vec<Run> {
    let mut by_process: BTreeMap<usize, Vec<Run>> = BTreeMap::new();
    for run in runs {
        by_process.entry(run.process).or_default().push(*run);
    }
    let one = |runs: Vec<Run>| Run {
        value: median(&runs),
        seconds: None,
        ..runs[0]
    };
    by_process.into_values().map(one).collect()
}

/// Returns the median; not a number if any value is none.
fn median(runs: &[Run]) -> f64 {
    let mut values: Vec<f64> = runs.iter().map(|run| run.value).collect();
    if values.is_empty() || values.iter().any(|value| value.is_nan()) {
        return f64::NAN;
    }
    values.sort_by(f64::total_cmp);
    let (low, high) = (values[(values.len() - 1) / 2], values[values.len() / 2]);
    low + 0.5 * (high - low)
}

/// Returns the largest ratio between two processes of one side, less 1.
fn spread(sides: &[Vec<Run>; 2]) -> Option<f64> {
    let of = |side: &Vec<Run>| {
        let values = || side.iter().map(|run| run.value);
        let (least, most) = (
            values().fold(f64::MAX, f64::min),
            values().fold(0.0, f64::max),
        );
        (side.len() > 1 && least > 0.0).then(|| most / least - 1.0)
    };
    sides.iter().filter_map(of).reduce(f64::max)
}

/// Replaces each value by one that grows with its rank. A test of ranks gives the same p,
/// and no two different values are within any margin of each other.
fn rank(baseline: &mut [Run], experiment: &mut [Run]) {
    let mut values: Vec<f64> = baseline
        .iter()
        .chain(&*experiment)
        .map(|r| r.value)
        .collect();
    values.sort_by(f64::total_cmp);
    values.dedup();
    let step = (500.0 / values.len() as f64).min(1.0);
    for run in baseline.iter_mut().chain(experiment) {
        let rank = values.partition_point(|value| *value < run.value);
        run.value = (step * rank as f64).exp();
    }
}

/// Returns the runs as pairs, if the times of all say that the sides were measured in
/// turn: of each two runs, one of each side.
fn in_turn(baseline: &[Run], experiment: &[Run]) -> Option<Vec<Pair>> {
    if baseline.len() != experiment.len() {
        return None;
    }
    let of = |runs: &[Run], is_baseline: bool| -> Option<Vec<(f64, bool, f64)>> {
        let one = |run: &Run| Some((run.at.filter(|at| is_shared(*at))?, is_baseline, run.value));
        runs.iter().map(one).collect()
    };
    let mut all = of(baseline, true)?;
    all.extend(of(experiment, false)?);
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    let pair = |two: &[(f64, bool, f64)]| match two {
        [(x, ..), (y, ..)] if x == y => None,
        [(_, true, b), (_, false, e)] => Some(Pair::new(*b, *e, Order::BaselineFirst)),
        [(_, false, e), (_, true, b)] => Some(Pair::new(*b, *e, Order::ExperimentFirst)),
        _ => None,
    };
    all.chunks(2).map(pair).collect()
}

/// Returns whether a time is of a clock that both sides can share: the number of a run, or
/// seconds since 1970. A small time with a fraction counts from the start of its own run.
fn is_shared(at: f64) -> bool {
    at.is_finite() && (at.fract() == 0.0 || at > 1e8)
}
