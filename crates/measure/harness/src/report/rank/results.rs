//! The JSON results of a ranking. Fields may be added; none is removed or
//! changes its meaning.

use crate::ranking::{Point, Ranked, Ranking, Subject};
use crate::report::inputs::Report;
use crate::report::results::shared::{Place, Shared, fields as as_fields, place, shared};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

/// The results of a ranking.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct Rank {
    #[serde(flatten)]
    shared: Shared,
    /// Says which lock to take, in sentences.
    summary: Vec<String>,
    /// The locks, the reference first.
    locks: Vec<Lock>,
    /// Locks that were left out.
    left_out: Vec<LeftOut>,
    /// One entry for each point.
    points: Vec<RankedPoint>,
}

/// A lock that was ranked.
#[derive(Clone, Debug, Serialize, JsonSchema)]
struct Lock {
    name: String,
    /// Bytes of the lock.
    bytes: u64,
    /// Bytes that each waiter adds.
    bytes_per_waiter: u64,
    /// Says whether a thread brings nothing of its own.
    context_free: bool,
}

/// A lock that was not ranked.
#[derive(Clone, Debug, Serialize, JsonSchema)]
struct LeftOut {
    name: String,
    why: String,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
struct RankedPoint {
    #[serde(flatten)]
    place: Place,
    /// Says whether there are more threads than CPUs.
    oversubscribed: bool,
    /// One entry for each metric, the one that decides first.
    metrics: Vec<RankedMetric>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
struct RankedMetric {
    name: String,
    /// The unit; empty for a count or a ratio.
    unit: String,
    /// The number of blocks behind the intervals.
    blocks: usize,
    /// The locks that may be the best, the first in rank first.
    set: Vec<String>,
    /// Every lock with a rank, the best first.
    locks: Vec<RankedLock>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
struct RankedLock {
    lock: String,
    /// The figure in the metric's unit, over all blocks.
    value: Option<f64>,
    /// The lock's figure over that of the best.
    of_best: f64,
    /// Lower limit of that: for all locks together in 95 of 100 runs.
    of_best_low: f64,
    /// Upper limit of that: for all locks together in 95 of 100 runs.
    of_best_high: f64,
    /// Says whether it is in the set that contains the best.
    may_be_best: bool,
    /// Says whether it is shown within delta of the best.
    within_delta: bool,
    /// A lock that is shown to be better, if it is not in the set.
    beaten_by: Option<String>,
    /// Number of blocks in which it has a figure.
    blocks: usize,
    /// The number of blocks after which it left the measurement, if it did.
    left_after: Option<usize>,
}

pub(super) fn fields(
    report: &Report,
    ranking: &Ranking,
    summary: &[String],
    caveats: &[String],
) -> Map<String, Value> {
    let question = &ranking.question;
    let lock = |s: &Subject| Lock {
        name: s.name.clone(),
        bytes: s.bytes,
        bytes_per_waiter: s.bytes_per_waiter,
        context_free: s.context_free,
    };
    let left_out = |(name, why): &(String, String)| LeftOut {
        name: name.clone(),
        why: why.clone(),
    };
    as_fields(&Rank {
        shared: shared(report, caveats),
        summary: summary.to_vec(),
        locks: question.subjects.iter().map(lock).collect(),
        left_out: question.left_out.iter().map(left_out).collect(),
        points: ranking.points.iter().map(|p| point(ranking, p)).collect(),
    })
}

fn point(ranking: &Ranking, point: &Point) -> RankedPoint {
    RankedPoint {
        place: place(&point.key),
        oversubscribed: point.oversubscribed,
        metrics: point.metrics.iter().map(|m| metric(ranking, m)).collect(),
    }
}

fn metric(ranking: &Ranking, ranked: &Ranked) -> RankedMetric {
    let name = |lock: usize| ranking.question.subjects[lock].name.clone();
    let of = |lock: usize| {
        let standing = &ranked.standings[lock];
        let shown = standing.of_best?;
        Some(RankedLock {
            lock: name(lock),
            value: ranked.figures[lock].map(|f| f.value),
            of_best: shown.value,
            of_best_low: shown.low,
            of_best_high: shown.high,
            may_be_best: standing.may_be_best,
            within_delta: standing.within_delta,
            beaten_by: standing.beaten_by.map(name),
            blocks: standing.blocks,
            left_after: standing.left,
        })
    };
    let order = ranked.order();
    RankedMetric {
        name: ranked.metric.name.clone(),
        unit: ranked.metric.unit.clone(),
        blocks: ranked.blocks,
        set: order
            .iter()
            .filter(|i| ranked.may_be_best(**i))
            .map(|i| name(*i))
            .collect(),
        locks: order.into_iter().filter_map(of).collect(),
    }
}
