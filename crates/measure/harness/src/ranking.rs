//! Turns the samples of many locks into the judge's blocks, and into what each point
//! and metric shows.
//!
//! A ranking is made of cells like any comparison: one for each point and lock,
//! whose pairs have the reference as their baseline. All pairs of one number at
//! one point were made together and share the reference's sample: they are a
//! block. Nothing here decides or prints.

use crate::experiment::{
    Cell, Coordinate, Experiment, Invalid, Key, Metric, Pair, Provenance, Sample,
};
use crate::judged::Figure;
use crate::matrix::{
    EQUAL_SHARE, JAIN, JAIN_1MS, LATENCY_P99, LATENCY_P999, OPS, READ_P50, READ_P99, READ_P999,
    READ_STARVED, STREAK_MEAN, WRITE_P50, WRITE_P99, WRITE_P999, WRITE_STARVED,
};
use crate::pairs::location;
use locklab_judge::{Direction, Looks, Standing, best};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The kind of comparison, in JSON and the store.
pub const KIND: &str = "rank";

/// The axis of a key that names the lock.
pub const LOCK: &str = "lock";

/// The share of a model's machines that must agree before a lock leaves the
/// set, as for every verdict on a model.
const AGREE: f64 = 0.9;

/// Describes what a report of a ranking reads of an experiment's `spec`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Question {
    /// The locks, the reference first.
    pub subjects: Vec<Subject>,
    /// Says whether the reference is what is in use today.
    pub against: bool,
    /// Says whether a lock that is far behind leaves the measurement early.
    pub early: bool,
    /// Locks that were left out, each with the reason.
    pub left_out: Vec<(String, String)>,
}

/// A lock that is ranked, and what it costs before it is used.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subject {
    /// The name under which it is ranked.
    pub name: String,
    /// The lock, by the name that backends know: several may be one.
    pub lock: String,
    /// Bytes of the lock.
    pub bytes: u64,
    /// Bytes that each waiter adds.
    pub bytes_per_waiter: u64,
    /// Says whether a thread brings nothing of its own, such as a queue node.
    pub context_free: bool,
}

/// Many locks at some points.
#[derive(Clone, Debug)]
pub struct Ranking {
    /// The locks, and what they are ranked against.
    pub question: Question,
    /// The points in the order of the report.
    pub points: Vec<Point>,
    /// The margin within which a difference does not matter, a fraction.
    pub delta: f64,
}

/// Describes what was shown at one point.
#[derive(Clone, Debug)]
pub struct Point {
    /// The point: a cell's key without its lock.
    pub key: Key,
    /// Says whether there are more threads than CPUs.
    pub oversubscribed: bool,
    /// The margin within which a difference does not matter here, a fraction.
    pub delta: f64,
    /// One for each metric that is ranked, the primary one first.
    pub metrics: Vec<Ranked>,
    /// Says why locks have no figures, or not all, by the number of the lock.
    pub stopped: Vec<(usize, String)>,
}

/// One metric of all locks at one point.
#[derive(Clone, Debug)]
pub struct Ranked {
    /// The metric: its name, unit and better direction.
    pub metric: Metric,
    /// One for each lock, in the order of the question.
    pub standings: Vec<Standing>,
    /// The figure of each lock, over all blocks.
    pub figures: Vec<Option<Figure>>,
    /// Counts how many blocks the figures are of.
    pub blocks: usize,
}

impl Subject {
    /// Returns whether it needs no memory but a line of its own: a lock without a context
    /// that is larger has its waiters' memory inside it.
    #[must_use]
    pub fn is_lean(&self) -> bool {
        self.context_free && self.bytes <= 64
    }
}

impl Question {
    /// Returns what an experiment that ranks asked; `None` of any other.
    #[must_use]
    pub fn of(experiment: &Experiment) -> Option<Self> {
        let question = Self::deserialize(&experiment.spec).ok()?;
        (!question.subjects.is_empty()).then_some(question)
    }

    /// Returns the specification of two locks, with what is ranked in their place.
    #[must_use]
    pub fn described(&self, spec: &impl Serialize) -> Value {
        let mut described = json!(spec);
        if let (Value::Object(fields), Value::Object(ranked)) = (&mut described, json!(self)) {
            fields.remove("baseline");
            fields.remove("experiment");
            fields.extend(ranked);
        }
        described
    }

    /// Returns what the reference is compared with, in words.
    #[must_use]
    pub fn others(&self) -> String {
        match &self.subjects[..] {
            [_, one] => one.name.clone(),
            more => format!("{} others", more.len().saturating_sub(1)),
        }
    }
}

impl Key {
    /// Returns the same point, of one lock.
    #[must_use]
    pub fn of_lock(mut self, lock: &str) -> Self {
        self.0.push((LOCK.into(), Coordinate::Name(lock.into())));
        self
    }

    /// Returns the lock that a cell of a ranking is of.
    #[must_use]
    pub fn lock(&self) -> Option<&str> {
        match self.get(LOCK)? {
            Coordinate::Name(name) => Some(name),
            Coordinate::Number(_) => None,
        }
    }

    /// Returns the point without the lock.
    #[must_use]
    pub fn point_of(&self) -> Self {
        let axes = self.0.iter().filter(|(axis, _)| axis != LOCK);
        Self(axes.cloned().collect())
    }
}

impl Ranking {
    /// Returns the locks in order, by the mean of their shares.
    pub(crate) fn overall(&self) -> Vec<usize> {
        let primaries: Vec<&Ranked> = self
            .points
            .iter()
            .filter_map(|p| p.metrics.first())
            .collect();
        let merit = |lock: usize| -> Option<f64> {
            let shares: Vec<f64> = primaries.iter().filter_map(|m| m.share(lock)).collect();
            let logs: f64 = shares.iter().map(|s| s.max(1e-300).ln()).sum();
            // One without a rank at some point comes after those that have all.
            let missing = (primaries.len() - shares.len()) as f64;
            (!shares.is_empty()).then(|| logs / shares.len() as f64 - 1e6 * missing)
        };
        let mut order: Vec<(usize, f64)> = (0..self.question.subjects.len())
            .filter_map(|lock| Some((lock, merit(lock)?)))
            .collect();
        order.sort_by(|a, b| b.1.total_cmp(&a.1));
        order.into_iter().map(|(lock, _)| lock).collect()
    }
}

impl Point {
    /// Returns a metric by its name.
    #[must_use]
    pub fn metric(&self, name: &str) -> Option<&Ranked> {
        self.metrics.iter().find(|m| m.metric.name == name)
    }

    /// Returns how many threads contend here; 0 where that is no axis.
    #[must_use]
    pub fn threads(&self) -> u64 {
        self.key.number("threads").unwrap_or(0)
    }

    /// Returns the verdict on what is in use today; `None` where nothing was ranked.
    pub(crate) fn today(&self) -> Option<&'static str> {
        let ranked = self.metrics.first()?;
        let standing = &ranked.standings[0];
        Some(match standing.of_best {
            None => "invalid",
            Some(_) if ranked.is_shown_worse(0, self.delta) => "worse",
            Some(_) if standing.within_delta => "flat",
            Some(_) => "unclear",
        })
    }
}

impl Ranked {
    /// Returns the locks from the best to the worst; those without a rank are left out.
    #[must_use]
    pub fn order(&self) -> Vec<usize> {
        let share = |i: &usize| self.standings[*i].of_best.map_or(f64::NAN, |s| s.value);
        let ranked = (0..self.standings.len()).filter(|i| self.standings[*i].of_best.is_some());
        let mut order: Vec<usize> = ranked.collect();
        order.sort_by(|a, b| match self.metric.direction {
            Direction::HigherIsBetter => share(b).total_cmp(&share(a)),
            Direction::LowerIsBetter => share(a).total_cmp(&share(b)),
        });
        order
    }

    /// Returns how good a lock is: 1 is the best, less is worse, whichever way the metric
    /// improves.
    #[must_use]
    pub fn share(&self, lock: usize) -> Option<f64> {
        let value = self.standings[lock].of_best?.value;
        Some(match self.metric.direction {
            Direction::HigherIsBetter => value,
            Direction::LowerIsBetter => 1.0 / value,
        })
    }

    /// Returns whether a lock has a rank and may be the best.
    #[must_use]
    pub fn may_be_best(&self, lock: usize) -> bool {
        let standing = &self.standings[lock];
        standing.may_be_best && standing.of_best.is_some()
    }

    /// Returns whether a lock is shown to be worse than the best by more than `delta`.
    #[must_use]
    pub fn is_shown_worse(&self, lock: usize, delta: f64) -> bool {
        let standing = &self.standings[lock];
        let Some(shown) = standing.of_best.filter(|_| !standing.may_be_best) else {
            return false;
        };
        match self.metric.direction {
            Direction::HigherIsBetter => shown.high < 1.0 - delta,
            Direction::LowerIsBetter => shown.low > 1.0 / (1.0 - delta),
        }
    }
}

impl Question {
    /// Returns the looks of a ranking of at most this many blocks, fixed by its design.
    #[must_use]
    pub fn looks(&self, blocks: u32) -> Looks {
        if self.early {
            Looks::planned(blocks as usize, self.subjects.len())
        } else {
            Looks::at_the_end()
        }
    }
}

/// Ranks the locks of an experiment of that kind; `None` of any other.
#[must_use]
pub fn rank(experiment: &Experiment) -> Option<Ranking> {
    let question = Question::of(experiment)?;
    let delta = experiment.design.delta;
    let mut keys: Vec<Key> = Vec::new();
    for cell in &experiment.cells {
        let key = cell.key.point_of();
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    let unsound = unsound(experiment, &question);
    let points = keys
        .into_iter()
        .map(|key| point(experiment, (&question, &unsound), key, delta))
        .collect();
    Some(Ranking {
        question,
        points,
        delta,
    })
}

/// Returns which locks have failed a check of their own anywhere, as one that crashes
/// does: they have no rank.
fn unsound(experiment: &Experiment, question: &Question) -> Vec<bool> {
    let failed = |sample: &Sample| matches!(sample.invalid, Some(Invalid::CheckFailed(_)));
    let mut unsound = vec![false; question.subjects.len()];
    for cell in &experiment.cells {
        let name = cell.key.lock();
        let of = |s: &Subject| Some(s.name.as_str()) == name;
        let lock = question.subjects.iter().position(of);
        for pair in &cell.pairs {
            unsound[0] |= failed(&pair.baseline);
            if let Some(lock) = lock {
                unsound[lock] |= failed(&pair.experiment);
            }
        }
    }
    unsound
}

fn point(
    experiment: &Experiment,
    (question, unsound): (&Question, &[bool]),
    key: Key,
    delta: f64,
) -> Point {
    let cells: Vec<&Cell> = experiment
        .cells
        .iter()
        .filter(|cell| cell.key.point_of() == key)
        .collect();
    let delta = cells.iter().find_map(|cell| cell.delta).unwrap_or(delta);
    let of = |name: &str| cells.iter().find(|cell| cell.key.lock() == Some(name));
    let blocks = Blocks::of(&cells, question);
    let looks = question.looks(experiment.design.pairs);
    let ranks = |metric: &Metric| {
        let mut values = blocks.values(metric);
        for (values, _) in values.iter_mut().zip(unsound).filter(|(_, is)| **is) {
            values.fill(f64::NAN);
        }
        let mut standings = best(&values, metric.direction, &looks, delta);
        if matches!(experiment.provenance, Provenance::Simulation(_)) {
            hold_back(&values, metric.direction, &mut standings);
        }
        let figures = values.iter().map(|own| figure(own, &values[0], metric));
        Ranked {
            metric: metric.clone(),
            standings,
            figures: figures.collect(),
            blocks: values.iter().map(Vec::len).max().unwrap_or(0),
        }
    };
    let metrics = cells.first().map_or(&[][..], |cell| &cell.metrics);
    let stopped = question.subjects.iter().enumerate().filter_map(|(i, s)| {
        let cell = of(&s.name)?;
        Some((i, cell.stopped.clone()?))
    });
    Point {
        oversubscribed: cells.iter().any(|cell| cell.oversubscribed),
        delta,
        metrics: metrics
            .iter()
            .filter(is_ranked)
            .map(ranks)
            .filter(|ranked| ranked.figures.iter().any(Option::is_some))
            .collect(),
        stopped: stopped.collect(),
        key,
    }
}

/// Returns the figure of a lock over all blocks. Of one that left before the end it is
/// that of its blocks, times what the reference did in all blocks over what it did
/// in those: machines change, and rates of different blocks must not be compared.
fn figure(own: &[f64], reference: &[f64], metric: &Metric) -> Option<Figure> {
    let finite = |values: &mut dyn Iterator<Item = f64>| -> Vec<f64> {
        values.filter(|x| x.is_finite()).collect()
    };
    let found = location(&finite(&mut own.iter().copied()), metric)?;
    let shared = own.iter().zip(reference).filter(|(own, _)| own.is_finite());
    let there = location(&finite(&mut shared.map(|(_, r)| *r)), metric);
    let all = location(&finite(&mut reference.iter().copied()), metric);
    // Jain's index, a streak and a part of the waits are no rates.
    let no_rates = [JAIN, JAIN_1MS, STREAK_MEAN, READ_STARVED, WRITE_STARVED];
    let rate = !no_rates.contains(&metric.name.as_str());
    let times = match (all, there) {
        (Some(all), Some(there)) if rate && there.value > 0.0 => all.value / there.value,
        _ => 1.0,
    };
    Some(Figure {
        value: found.value * times,
        low: found.low.map(|low| low * times),
        high: found.high.map(|high| high * times),
    })
}

/// Returns the metrics that locks are ranked by.
fn is_ranked(metric: &&Metric) -> bool {
    const RANKED: [&str; 15] = [
        OPS,
        EQUAL_SHARE,
        LATENCY_P99,
        LATENCY_P999,
        JAIN_1MS,
        JAIN,
        STREAK_MEAN,
        READ_P50,
        READ_P99,
        READ_P999,
        READ_STARVED,
        WRITE_P50,
        WRITE_P99,
        WRITE_P999,
        WRITE_STARVED,
    ];
    RANKED.contains(&metric.name.as_str())
}

/// The samples of one point: by lock, then by number of the block, each with
/// the reference's of its pair.
struct Blocks<'a>(Vec<Vec<Option<[&'a Sample; 2]>>>);

impl<'a> Blocks<'a> {
    fn of(cells: &[&'a Cell], question: &Question) -> Self {
        let mut all = vec![Vec::new(); question.subjects.len()];
        for cell in cells {
            let name = cell.key.lock();
            let of = |s: &Subject| Some(s.name.as_str()) == name;
            let Some(lock) = question.subjects.iter().position(of) else {
                continue;
            };
            for pair in cell.pairs.iter().filter(|pair| !pair.is_half()) {
                let Pair {
                    baseline,
                    experiment,
                    ..
                } = pair;
                put(&mut all[0], pair, [baseline, baseline]);
                put(&mut all[lock], pair, [baseline, experiment]);
            }
        }
        Self(all)
    }

    fn values(&self, metric: &Metric) -> Vec<Vec<f64>> {
        let value = |sample: &Sample| {
            let value = sample.values.get(&metric.name).copied();
            value
                .filter(|_| sample.invalid.is_none())
                .unwrap_or(f64::NAN)
        };
        let of_one = |samples: &Vec<Option<[&Sample; 2]>>| {
            let numbered = samples.iter().enumerate();
            let in_block = |(number, sample): (usize, &Option<[&Sample; 2]>)| {
                let Some([reference, own]) = *sample else {
                    return f64::NAN;
                };
                // A lock whose slices were disturbed was measured again, with
                // the reference alone: its ratio to it belongs to the block.
                let of_block = self.0[0].get(number).copied().flatten();
                match of_block.map(|[_, of_block]| value(of_block)) {
                    Some(of_block)
                        if of_block != value(reference) && value(reference).is_finite() =>
                    {
                        value(own) * (of_block / value(reference))
                    }
                    _ => value(own),
                }
            };
            numbered.map(in_block).collect()
        };
        self.0.iter().map(of_one).collect()
    }
}

/// Puts samples into their block; those that count come before others.
fn put<'a>(samples: &mut Vec<Option<[&'a Sample; 2]>>, pair: &Pair, of_pair: [&'a Sample; 2]) {
    let number = pair.index as usize;
    if samples.len() <= number {
        samples.resize(number + 1, None);
    }
    let counts = |of: [&Sample; 2]| of[1].invalid.is_none();
    if samples[number].is_none_or(|there| !counts(there) && counts(of_pair)) {
        samples[number] = Some(of_pair);
    }
}

/// Puts a lock back into the set if fewer than nine of ten machines agree that
/// it is behind.
fn hold_back(values: &[Vec<f64>], direction: Direction, standings: &mut [Standing]) {
    for (lock, standing) in standings.iter_mut().enumerate() {
        let Some(by) = standing.beaten_by else {
            continue;
        };
        let both = values[lock].iter().zip(&values[by]);
        let d: Vec<f64> = both
            .map(|(own, other)| direction.sign() * (other - own))
            .filter(|d| d.is_finite())
            .collect();
        let agree = d.iter().filter(|d| **d > 0.0).count();
        if (agree as f64) < AGREE * d.len() as f64 {
            standing.may_be_best = true;
            standing.beaten_by = None;
        }
    }
}
