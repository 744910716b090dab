//! From a measured matrix to judged cells.
//!
//! Turns runs into the judge's pairs: which of them count, which belong
//! together (one cell, one placement class), which metric decides. Must never
//! decide anything itself and never print.

use crate::matrix::{Cell, Invalid, Latency, Measured, Point, Run, RunPair};
use locklab_judge::{
    BadSetting, Comparison, Direction, Family, FaultKind, Judged, Order, Pair, Settings, Shown,
    Side, Verdict, estimate,
};
use serde::Serialize;
use std::collections::BTreeSet;

/// A matrix with a verdict in each cell.
#[derive(Clone, Debug)]
pub struct Verdicts {
    /// What was decided before the run.
    pub settings: Settings,
    /// Judged cells, in the order of the measured ones. A cell that was
    /// measured in two placement classes, with enough pairs in each, is here
    /// twice, the class with more pairs first.
    pub cells: Vec<JudgedCell>,
    /// Asked for and not measured. They stay in the family: it was decided
    /// before the run.
    pub missing: Vec<Point>,
}

/// One cell, in one placement class.
#[derive(Clone, Debug)]
pub struct JudgedCell {
    /// Which cell.
    pub point: Point,
    /// More threads than CPUs.
    pub oversubscribed: bool,
    /// Placement class of its pairs; `None` where the instrument gave none
    /// (one thread, one CPU, a simulation).
    pub class: Option<String>,
    /// Lowest and highest cache-line round trip around its runs, in ns.
    pub round_trip: Option<(f64, f64)>,
    /// Acquisitions per second: what decides.
    pub judged: Judged,
    /// What explains, at 5 % false discoveries over all of them.
    pub screening: Vec<Screened>,
    /// The baseline by itself.
    pub baseline: Figures,
    /// The experiment by itself.
    pub experiment: Figures,
    /// d = ln(experiment / baseline) of each pair that counts, in order.
    pub differences: Vec<f64>,
    /// Pairs of this cell in other placement classes, too few to be judged.
    pub elsewhere: Vec<(String, usize)>,
}

/// A metric that explains and does not decide.
#[derive(Clone, Debug, Serialize)]
pub struct Screened {
    /// Its name.
    pub metric: &'static str,
    /// What was shown of it.
    pub judged: Judged,
}

/// What one lock did in one cell: medians over the runs that count.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Figures {
    /// Acquisitions per second, all threads (Hodges-Lehmann location of the
    /// logarithms).
    pub ops_per_s: Option<f64>,
    /// Its lower 95 % limit; absent with fewer than six runs.
    pub ops_low: Option<f64>,
    /// Its upper 95 % limit.
    pub ops_high: Option<f64>,
    /// Acquisitions per second whose holder before was another thread.
    pub handoffs_per_s: Option<f64>,
    /// Acquisitions in a row by one owner: mean length.
    pub streak_mean: Option<f64>,
    /// The longest row in any run.
    pub streak_max: Option<u64>,
    /// Jain's index over the run.
    pub jain: Option<f64>,
    /// Least over greatest share of a thread.
    pub min_over_max: Option<f64>,
    /// Jain's index over windows of 1 ms.
    pub jain_1ms: Option<f64>,
    /// Least over greatest share over windows of 1 ms.
    pub min_over_max_1ms: Option<f64>,
    /// Share of the time in which the threads had a CPU, over the most they
    /// could have had.
    pub cpu_share: Option<f64>,
    /// Acquisition latency in ns, each percentile its own median.
    pub latency: Option<Latency>,
}

impl JudgedCell {
    /// experiment / baseline with its 95 % limits; `None` where the cell is
    /// invalid or has no pair that counts.
    #[must_use]
    pub fn ratio(&self) -> Option<Shown> {
        match self.judged.verdict {
            Verdict::Invalid(_) => None,
            _ => self.judged.estimate.map(|e| e.ratio()),
        }
    }

    /// Whether operations and handoffs between threads point opposite ways:
    /// a lock that one owner keeps re-taking looks fast.
    #[must_use]
    pub fn streaky(&self) -> bool {
        let wanted = match self.judged.verdict {
            Verdict::Better => Verdict::Worse,
            Verdict::Worse => Verdict::Better,
            _ => return false,
        };
        match self.screened("handoffs_per_s") {
            Some(handoffs) => handoffs.verdict == wanted,
            // No logarithm of zero: a lock that never handed over at all.
            None => {
                let (b, e) = (self.baseline.handoffs_per_s, self.experiment.handoffs_per_s);
                match self.judged.verdict {
                    Verdict::Better => b > Some(0.0) && e == Some(0.0),
                    _ => e > Some(0.0) && b == Some(0.0),
                }
            }
        }
    }

    /// What was shown of a screened metric.
    #[must_use]
    pub fn screened(&self, metric: &str) -> Option<&Judged> {
        let found = self.screening.iter().find(|s| s.metric == metric)?;
        Some(&found.judged)
    }
}

impl Verdicts {
    /// The cells by placement class, the class with most cells first. Cells
    /// without a class (one thread, one CPU) go with the first group; where
    /// no cell has one, there is one group, named `None`.
    #[must_use]
    pub fn by_class(&self) -> Vec<(Option<&str>, Vec<&JudgedCell>)> {
        let mut groups: Vec<(Option<&str>, Vec<&JudgedCell>)> = Vec::new();
        for cell in self.cells.iter().filter(|c| c.class.is_some()) {
            let class = cell.class.as_deref();
            match groups.iter_mut().find(|(name, _)| *name == class) {
                Some((_, cells)) => cells.push(cell),
                None => groups.push((class, vec![cell])),
            }
        }
        groups.sort_by_key(|(_, cells)| std::cmp::Reverse(cells.len()));
        let unclassed = self.cells.iter().filter(|c| c.class.is_none());
        match groups.first_mut() {
            Some((_, cells)) => cells.extend(unclassed),
            None => groups.push((None, unclassed.collect())),
        }
        groups
    }
}

/// Judges a matrix: acquisitions per second decide; handoffs, Jain's index
/// and the 99 % latency explain.
///
/// The margin for flat and the bias bands are those of the matrix itself;
/// every cell that was asked for is in the family, measured or not, and the
/// family is one of regions ([`Family::FalseDiscovery`]).
///
/// # Errors
/// A margin or a bias band that makes no sense. Samples never are an error.
pub fn judge(measured: &Measured) -> Result<Verdicts, BadSetting> {
    let settings = Settings {
        delta: measured.spec.delta,
        family: Family::FalseDiscovery,
        ..Settings::default()
    };
    let mut cells = Vec::new();
    let mut comparisons = Vec::new();
    // Which cell, and which screened metric of it, a comparison belongs to.
    let mut owners: Vec<(usize, Option<&'static str>)> = Vec::new();
    for cell in &measured.cells {
        for group in by_class(cell, settings.min_pairs) {
            let index = cells.len();
            let mut primary = Comparison::primary(group.pairs(|r| r.ops_per_s), HIGHER);
            primary.bias_band = cell.bias_band;
            owners.push((index, None));
            cells.push(group.summary(cell, &primary));
            comparisons.push(primary);
            for (name, direction, pairs) in group.screening(&cell.point) {
                owners.push((index, Some(name)));
                comparisons.push(Comparison::screening(pairs, direction));
            }
        }
    }
    let missing = missing(measured);
    // An empty comparison keeps a cell that was not measured in the family.
    comparisons.extend(missing.iter().map(|_| Comparison::primary(vec![], HIGHER)));

    let judged = locklab_judge::judge(&comparisons, &settings)?;
    for ((index, metric), judged) in owners.into_iter().zip(judged) {
        let cell: &mut JudgedCell = &mut cells[index];
        match metric {
            None => cell.judged = judged,
            Some(metric) => cell.screening.push(Screened { metric, judged }),
        }
    }
    Ok(Verdicts {
        settings,
        cells,
        missing,
    })
}

const HIGHER: Direction = Direction::HigherIsBetter;

fn missing(measured: &Measured) -> Vec<Point> {
    let there: BTreeSet<Point> = measured.cells.iter().map(|c| c.point).collect();
    let spec = &measured.spec;
    let mut missing = Vec::new();
    for &non_critical in &spec.non_critical {
        for &threads in &spec.threads {
            for &critical in &spec.critical {
                let point = Point {
                    threads,
                    critical,
                    non_critical,
                };
                if !there.contains(&point) && !missing.contains(&point) {
                    missing.push(point);
                }
            }
        }
    }
    missing
}

/// The pairs of a cell that may be compared with one another.
struct Group<'a> {
    class: Option<String>,
    pairs: Vec<&'a RunPair>,
    elsewhere: Vec<(String, usize)>,
}

/// Groups of pairs by placement class. The first has most pairs, and those
/// that have no class of their own: a run that failed, a pair that moved.
fn by_class(cell: &Cell, min_pairs: usize) -> Vec<Group<'_>> {
    let mut classes: Vec<(String, Vec<&RunPair>)> = Vec::new();
    for pair in &cell.pairs {
        let Some(class) = class_of(pair) else {
            continue;
        };
        match classes.iter_mut().find(|(name, _)| name == class) {
            Some((_, pairs)) => pairs.push(pair),
            None => classes.push((class.to_owned(), vec![pair])),
        }
    }
    classes.sort_by_key(|(_, pairs)| std::cmp::Reverse(pairs.len()));
    let mut classes = classes.into_iter();
    let main = classes.next().map(|(class, _)| class);
    let (others, few): (Vec<_>, Vec<_>) = classes.partition(|(_, p)| p.len() >= min_pairs);
    let mut groups = vec![Group {
        pairs: cell
            .pairs
            .iter()
            .filter(|p| class_of(p).is_none_or(|c| Some(c) == main.as_deref()))
            .collect(),
        class: main,
        elsewhere: few.into_iter().map(|(c, p)| (c, p.len())).collect(),
    }];
    groups.extend(others.into_iter().map(|(class, pairs)| Group {
        class: Some(class),
        pairs,
        elsewhere: Vec::new(),
    }));
    groups
}

/// The class of both runs; `None` if there is none, or if they differ.
fn class_of(pair: &RunPair) -> Option<&str> {
    let baseline = pair.baseline.round_trip.as_ref()?;
    let experiment = pair.experiment.round_trip.as_ref()?;
    (baseline.class == experiment.class).then_some(baseline.class.as_str())
}

/// Why a pair does not count, if it does not.
fn fault(pair: &RunPair) -> Option<(FaultKind, Option<Side>, String)> {
    let sides = [
        (Side::Baseline, &pair.baseline),
        (Side::Experiment, &pair.experiment),
    ];
    let faults = sides.into_iter().filter_map(|(side, run)| {
        let (kind, why) = match run.invalid.as_ref()? {
            Invalid::CheckFailed(why) => (FaultKind::CheckFailed, why),
            Invalid::Failed(why) | Invalid::Disturbed(why) => (FaultKind::RunFailed, why),
            Invalid::PlacementMoved(why) => (FaultKind::PlacementDiffered, why),
        };
        Some((kind, Some(side), why.clone()))
    });
    // The gravest counts: a failed check is never tolerated, and a run that
    // failed is no excuse for the other's placement.
    if let Some(fault) = faults.min_by_key(|(kind, ..)| match kind {
        FaultKind::CheckFailed => 0,
        FaultKind::RunFailed => 1,
        _ => 2,
    }) {
        return Some(fault);
    }
    match (&pair.baseline.round_trip, &pair.experiment.round_trip) {
        (Some(b), Some(e)) if b.class != e.class => Some((
            FaultKind::PlacementDiffered,
            None,
            format!("{} and {}", b.class, e.class),
        )),
        _ => None,
    }
}

impl Group<'_> {
    fn pairs(&self, metric: impl Fn(&Run) -> f64) -> Vec<Pair> {
        self.pairs
            .iter()
            .map(|pair| {
                let order = if pair.baseline_first {
                    Order::BaselineFirst
                } else {
                    Order::ExperimentFirst
                };
                match fault(pair) {
                    Some((kind, side, detail)) => Pair::invalid(kind, side, detail, order),
                    None => Pair::new(metric(&pair.baseline), metric(&pair.experiment), order),
                }
            })
            .collect()
    }

    /// The metrics that can be screened: those that are positive in every
    /// pair that counts. One thread hands over to nobody and is fair.
    fn screening(&self, point: &Point) -> Vec<(&'static str, Direction, Vec<Pair>)> {
        let p99 = |run: &Run| run.latency.map_or(f64::NAN, |l| l.p99 as f64);
        let mut metrics = vec![("latency_p99", Direction::LowerIsBetter, self.pairs(p99))];
        if point.threads > 1 {
            metrics.push(("handoffs_per_s", HIGHER, self.pairs(|r| r.handoffs_per_s)));
            metrics.push(("jain", HIGHER, self.pairs(|r| r.jain)));
        }
        metrics.retain(|(_, _, pairs)| {
            let unusable = |p: &Pair| {
                p.fault().is_some_and(|f| {
                    f.kind == FaultKind::Unusable || f.kind == FaultKind::CheckFailed
                })
            };
            !pairs.is_empty() && !pairs.iter().any(unusable)
        });
        metrics
    }

    fn summary(&self, cell: &Cell, primary: &Comparison) -> JudgedCell {
        let sound: Vec<&RunPair> = self
            .pairs
            .iter()
            .copied()
            .filter(|p| fault(p).is_none())
            .collect();
        let trips = || {
            sound
                .iter()
                .flat_map(|p| [&p.baseline.round_trip, &p.experiment.round_trip])
                .flatten()
                .flat_map(|r| [r.before, r.after])
                .filter(|x| x.is_finite())
        };
        let low = trips().min_by(f64::total_cmp);
        let high = trips().max_by(f64::total_cmp);
        JudgedCell {
            point: cell.point,
            oversubscribed: cell.oversubscribed,
            class: self.class.clone(),
            round_trip: low.zip(high),
            // A place holder until all comparisons are judged together.
            judged: Judged {
                role: primary.role,
                verdict: Verdict::Invalid(Vec::new()),
                estimate: None,
                p: 1.0,
                p_adjusted: 1.0,
                members: 0,
                set_aside: Vec::new(),
                warnings: Vec::new(),
            },
            screening: Vec::new(),
            baseline: figures(&sound, |p| &p.baseline),
            experiment: figures(&sound, |p| &p.experiment),
            differences: primary
                .pairs
                .iter()
                .filter_map(|p| p.difference(HIGHER))
                .collect(),
            elsewhere: self.elsewhere.clone(),
        }
    }
}

fn figures<'a>(pairs: &[&'a RunPair], side: impl Fn(&'a RunPair) -> &'a Run) -> Figures {
    let runs: Vec<&Run> = pairs.iter().map(|p| side(p)).collect();
    let of = |metric: &dyn Fn(&Run) -> Option<f64>| {
        median(runs.iter().filter_map(|r| metric(r)).collect())
    };
    // The location of one sample is the judge's estimate against a constant.
    let against_one: Vec<Pair> = runs
        .iter()
        .map(|r| Pair::new(1.0, r.ops_per_s, Order::BaselineFirst))
        .collect();
    let ops = estimate(&against_one, HIGHER).map(|e| e.ratio());
    let limit = |x: f64| (x.is_finite() && x > 0.0).then_some(x);
    let latencies: Vec<Latency> = runs.iter().filter_map(|r| r.latency).collect();
    let percentile = |of: fn(&Latency) -> u64| {
        let middle = median(latencies.iter().map(|l| of(l) as f64).collect());
        middle.map(|x| x.round() as u64)
    };
    Figures {
        ops_per_s: ops.map(|o| o.value),
        ops_low: ops.and_then(|o| limit(o.low)),
        ops_high: ops.and_then(|o| limit(o.high)),
        handoffs_per_s: of(&|r| Some(r.handoffs_per_s)),
        streak_mean: of(&|r| Some(r.streak_mean)),
        streak_max: runs.iter().map(|r| r.streak_max).max(),
        jain: of(&|r| Some(r.jain)),
        min_over_max: of(&|r| Some(r.min_over_max)),
        jain_1ms: of(&|r| r.jain_1ms),
        min_over_max_1ms: of(&|r| r.min_over_max_1ms),
        cpu_share: of(&|r| r.cpu_share),
        latency: (|| {
            Some(Latency {
                p50: percentile(|l| l.p50)?,
                p99: percentile(|l| l.p99)?,
                p999: percentile(|l| l.p999)?,
                max: latencies.iter().map(|l| l.max).max()?,
            })
        })(),
    }
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.retain(|x| x.is_finite());
    if values.is_empty() {
        return None;
    }
    values.sort_by(f64::total_cmp);
    let (low, high) = (values[(values.len() - 1) / 2], values[values.len() / 2]);
    Some(low + 0.5 * (high - low))
}
