//! Turns the samples of a cell into the judge's pairs, and into the figures of either
//! side: which pairs count, and by what number a side is summed up.
//!
//! It must never leave out a pair that counts, nor count one that does not.

use crate::experiment::{Cell, Invalid, Metric, Pair, Role, Sample, Summary};
use crate::judged::{Figure, Figures};
use locklab_judge::{FaultKind, Side, estimate};
use std::collections::BTreeMap;

/// Returns the judge's pairs of a cell's primary metric that count: the pairs that a
/// bias band is computed from.
#[must_use]
pub fn primary_pairs(cell: &Cell) -> Vec<locklab_judge::Pair> {
    let Some(metric) = cell.primary() else {
        return Vec::new();
    };
    let mut pairs: Vec<_> = cell
        .pairs
        .iter()
        .filter_map(|p| pair_of(p, metric))
        .collect();
    pairs.retain(|pair| pair.fault().is_none());
    pairs
}

/// Returns the reason why a pair does not count, if so.
pub(crate) fn fault(pair: &Pair) -> Option<(FaultKind, Option<Side>, String)> {
    if let Some(invalid) = pair.invalid() {
        let side = if pair.baseline.invalid.as_ref() == Some(invalid) {
            Side::Baseline
        } else {
            Side::Experiment
        };
        let kind = match invalid {
            Invalid::CheckFailed(_) => FaultKind::CheckFailed,
            Invalid::Failed(_) | Invalid::Interrupted(_) => FaultKind::RunFailed,
            Invalid::Disturbed(_) => FaultKind::Disturbed,
            Invalid::Counter(_) => FaultKind::CounterPartial,
        };
        return Some((kind, Some(side), invalid.why().to_owned()));
    }
    None
}

/// Returns a pair in the judge's form; `None` if it counts and did not measure
/// this metric.
pub(crate) fn pair_of(pair: &Pair, metric: &Metric) -> Option<locklab_judge::Pair> {
    let order = pair.order.judged();
    if let Some((kind, side, why)) = fault(pair) {
        return Some(locklab_judge::Pair::invalid(kind, side, why, order));
    }
    let value = |sample: &Sample| sample.values.get(&metric.name).copied();
    let (b, e) = (value(&pair.baseline), value(&pair.experiment));
    if metric.role != Role::Primary && (b.is_none() || e.is_none()) {
        return None;
    }
    let or_nan = |value: Option<f64>| value.unwrap_or(f64::NAN);
    Some(locklab_judge::Pair::new(or_nan(b), or_nan(e), order))
}

/// Returns the differences of the pairs that count, each with the number of its pair.
pub(crate) fn differences<'a>(
    pairs: impl Iterator<Item = &'a Pair>,
    metric: &Metric,
) -> impl Iterator<Item = (u32, f64)> {
    pairs.filter_map(|pair| {
        let difference = pair_of(pair, metric)?.difference(metric.direction)?;
        Some((pair.index, difference))
    })
}

/// Returns every value of one side, summarised as its metric specifies.
pub(crate) fn figures<'a>(
    cell: &Cell,
    pairs: &[&'a Pair],
    side: impl Fn(&'a Pair) -> &'a Sample,
) -> Figures {
    let samples: Vec<&Sample> = pairs.iter().map(|p| side(p)).collect();
    let mut figures = BTreeMap::new();
    for metric in &cell.metrics {
        let values: Vec<f64> = samples
            .iter()
            .filter_map(|s| s.values.get(&metric.name).copied())
            .filter(|x| x.is_finite())
            .collect();
        let figure = match metric.summary {
            Summary::Median => location(&values, metric),
            Summary::Greatest => values.into_iter().max_by(f64::total_cmp).map(plain),
        };
        if let Some(figure) = figure {
            figures.insert(metric.name.clone(), figure);
        }
    }
    Figures(figures)
}

fn plain(value: f64) -> Figure {
    Figure {
        value,
        low: None,
        high: None,
    }
}

/// Returns the location of one sample: the judge's estimate against a constant, for
/// every metric alike: handoffs can then never exceed the operations that
/// they are part of.
pub(crate) fn location(values: &[f64], metric: &Metric) -> Option<Figure> {
    if values.iter().any(|x| *x <= 0.0) {
        return walsh_median(values).map(plain);
    }
    let against_one: Vec<_> = values
        .iter()
        .map(|x| locklab_judge::Pair::new(1.0, *x, locklab_judge::Order::BaselineFirst))
        .collect();
    let shown = estimate(&against_one, metric.direction)?.ratio();
    let limit = |x: f64| {
        let decides = metric.role == Role::Primary;
        (decides && x.is_finite() && x > 0.0).then_some(x)
    };
    // Because of a rounded logarithm a location may lie slightly outside its
    // sample.
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let greatest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    Some(Figure {
        value: shown.value.clamp(least, greatest),
        low: limit(shown.low),
        high: limit(shown.high),
    })
}

/// Returns the same estimate where some value has no logarithm: the median of the
/// geometric means of all pairs of values, or of the arithmetic ones if any is negative.
fn walsh_median(values: &[f64]) -> Option<f64> {
    let negative = values.iter().any(|x| *x < 0.0);
    let mean = |a: f64, b: f64| match negative {
        true => 0.5 * a + 0.5 * b,
        false => a.sqrt() * b.sqrt(),
    };
    let pairs = values.iter().enumerate();
    let means = pairs.flat_map(|(i, a)| values[i..].iter().map(move |b| mean(*a, *b)));
    let (low, high) = middle(means.collect())?;
    Some(mean(low, high))
}

/// Returns the middle value, or the mean of the two middle ones.
#[must_use]
pub fn median(values: Vec<f64>) -> Option<f64> {
    middle(values).map(|(low, high)| low + 0.5 * (high - low))
}

/// Returns the two middle values, or the middle one twice.
fn middle(mut values: Vec<f64>) -> Option<(f64, f64)> {
    values.retain(|x| x.is_finite());
    values.sort_by(f64::total_cmp);
    let low = values.get(values.len().checked_sub(1)? / 2)?;
    Some((*low, values[values.len() / 2]))
}
