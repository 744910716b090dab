//! Matches two files: finds which benchmarks are the same, in one unit, and whether
//! their runs are pairs.
//!
//! Must never guess: a name that only one file has is reported, and runs are
//! pairs only if their times say so, or the caller.

use crate::benchmark::{Benchmark, Run, SampleFile};
use crate::units;
use locklab_judge::{Direction, Independent, Order, Pair, Role, Samples};
use std::collections::HashMap;

/// Describes how two files are matched.
#[derive(Clone, Copy, Debug, Default)]
pub struct Matching {
    /// The nth run of a benchmark in both files is a pair.
    pub paired: bool,
    /// The way in which all metrics improve, where the files do not say it.
    pub direction: Option<Direction>,
}

/// A benchmark of both files.
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
    /// Holds the runs of this side.
    pub samples: Samples,
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
    /// It explains, and is zero in some run, so that it has no ratio.
    Zero,
}

/// Two files, matched.
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

/// Matches the benchmarks of two files.
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
    let seconds = [baseline.seconds(), experiment.seconds()];
    let [ours, mut theirs] =
        [&mut baseline, &mut experiment].map(|file| std::mem::take(&mut file.benchmarks));
    notes.extend(rename_the_only_one(&ours, &mut theirs));
    let mut by_name: HashMap<(String, String), Benchmark> = HashMap::new();
    let mut order = Vec::new();
    for benchmark in theirs {
        let key = (benchmark.name.clone(), benchmark.metric.clone());
        order.push(key.clone());
        by_name.insert(key, benchmark);
    }
    let mut compared = Compared {
        files: [baseline, experiment],
        rows: Vec::new(),
        unmatched: Vec::new(),
        notes,
        seconds,
    };
    let mut uneven = 0;
    for benchmark in ours {
        let key = (benchmark.name.clone(), benchmark.metric.clone());
        match by_name.remove(&key) {
            Some(other) => match matched(benchmark, other, how, &mut uneven) {
                Ok(row) => compared.rows.push(row),
                Err(unmatched) => compared.unmatched.push(unmatched),
            },
            None => compared
                .unmatched
                .push(unmatched(&benchmark, Why::OnlyBaseline)),
        }
    }
    let only = order.iter().filter_map(|key| by_name.get(key));
    let only = only.map(|benchmark| unmatched(benchmark, Why::OnlyExperiment));
    compared.unmatched.extend(only);
    if uneven > 0 {
        compared.notes.push(format!(
            "Of {uneven} benchmarks one file has more runs, of which the last have no pair and \
             are left out."
        ));
    }
    compared
}

/// Gives the only benchmark of one file the name of the only one of the other:
/// two commands of hyperfine have two names.
fn rename_the_only_one(ours: &[Benchmark], theirs: &mut [Benchmark]) -> Option<String> {
    let name = &ours.first()?.name;
    let other = theirs.first()?.name.clone();
    let alone = ours.iter().all(|b| b.name == *name) && theirs.iter().all(|b| b.name == other);
    if !alone || *name == other {
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
    let mut runs = baseline.runs.iter().chain(&experiment.runs);
    if baseline.role == Role::Screening && runs.any(|run| run.value == 0.0) {
        return Err(unmatched(&baseline, Why::Zero));
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
    baseline.runs.clear();
    Ok(Matched {
        name: baseline.name,
        metric: baseline.metric,
        unit: baseline.unit,
        direction: how.direction.unwrap_or(baseline.direction),
        role: baseline.role,
        drifts: baseline.drifts,
        samples,
    })
}

/// Returns the runs as pairs, if the times of all say that the sides were measured in
/// turn: of each two runs, one of each side.
fn in_turn(baseline: &[Run], experiment: &[Run]) -> Option<Vec<Pair>> {
    if baseline.len() != experiment.len() {
        return None;
    }
    let of = |runs: &[Run], is_baseline: bool| -> Option<Vec<(f64, bool, f64)>> {
        let one = |run: &Run| Some((run.at.filter(|at| at.is_finite())?, is_baseline, run.value));
        runs.iter().map(one).collect()
    };
    let mut all = of(baseline, true)?;
    all.extend(of(experiment, false)?);
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    let pair = |two: &[(f64, bool, f64)]| match two {
        [(_, true, b), (_, false, e)] => Some(Pair::new(*b, *e, Order::BaselineFirst)),
        [(_, false, e), (_, true, b)] => Some(Pair::new(*b, *e, Order::ExperimentFirst)),
        _ => None,
    };
    all.chunks(2).map(pair).collect()
}
