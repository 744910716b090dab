//! From samples to judged cells.
//!
//! It turns pairs of samples into the judge's pairs: which of them count, which
//! belong together (one cell, one placement class), which metric decides.
//! It must never decide anything itself and never print.

use crate::experiment::{
    Cell, Experiment, Invalid, Layout, Metric, Pair, Provenance, Role, Sample, Summary,
};
use crate::model::{self, Band};
use crate::placement::Places;
use crate::ranking::{self, Ranking};
use crate::regions::{self, JudgedPart};
use locklab_judge::{
    BadSetting, Comparison, Family, FaultKind, Judged, Settings, Shown, Side, Verdict, estimate,
    pairs_needed,
};
use serde::Serialize;
use std::collections::BTreeMap;

/// An experiment with a verdict in each cell.
#[derive(Clone, Debug)]
pub struct Verdicts {
    /// The settings, decided before the run.
    pub settings: Settings,
    /// Where the CPUs were, and whether that matters.
    pub places: Places,
    /// Judged cells, in the order of the experiment's. One whose ratio depends on
    /// the placement of the CPUs, with enough pairs in each of two placements, is
    /// here twice, the one with more pairs first. A cell that was not measured is
    /// here too, invalid: it stays in the family, which was decided before the
    /// run.
    pub cells: Vec<JudgedCell>,
    /// The sets of the best, of an experiment that ranks.
    pub ranking: Option<Ranking>,
    /// The regions of a matrix, each judged as one.
    pub regions: Vec<JudgedPart>,
}

/// One cell, over all placements of its CPUs or in one.
#[derive(Clone, Debug)]
pub struct JudgedCell {
    /// Its index in the experiment.
    pub cell: usize,
    /// The placement of its pairs; `None` where the verdict is over all.
    pub class: Option<String>,
    /// Lowest and highest cache-line round trip around its runs, in ns.
    pub round_trip: Option<(f64, f64)>,
    /// Number of pairs that are judged here, including those that do not count.
    pub pairs: usize,
    /// Its metrics, judged; the primary one first.
    pub metrics: Vec<JudgedMetric>,
    /// Metrics that cannot be judged because they were zero in some run.
    pub zero: Vec<String>,
    /// The baseline by itself.
    pub baseline: Figures,
    /// The experiment by itself.
    pub experiment: Figures,
    /// d = ln(experiment / baseline) of the primary metric, of each pair that
    /// counts, in order; positive is better.
    pub differences: Vec<f64>,
    /// The interval of nine in ten ratios of a simulation.
    pub band: Option<Band>,
    /// The same in other placements, where so few pairs are not judged apart.
    pub elsewhere: Vec<(String, Vec<f64>)>,
}

/// One metric with its verdict.
#[derive(Clone, Debug)]
pub struct JudgedMetric {
    /// What was measured.
    pub metric: Metric,
    /// What the judge made of its pairs.
    pub judged: Judged,
}

/// The figures of one side in one cell, over the runs that count: every value
/// by its name.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Figures(pub BTreeMap<String, Figure>);

/// A value over the runs of one side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Figure {
    /// The summary of the runs: their location, by one estimator for all
    /// metrics, or the greatest.
    pub value: f64,
    /// Lower 95 % limit, of the primary metric only.
    pub low: Option<f64>,
    /// Upper 95 % limit, of the primary metric only.
    pub high: Option<f64>,
}

impl Figures {
    /// A value by the name of its metric.
    #[must_use]
    pub fn get(&self, metric: &str) -> Option<f64> {
        self.0.get(metric).map(|figure| figure.value)
    }
}

impl JudgedCell {
    /// The primary metric, judged.
    #[must_use]
    pub fn primary(&self) -> Option<&JudgedMetric> {
        let decides = |m: &&JudgedMetric| m.metric.role == Role::Primary && m.metric.at.is_none();
        self.metrics.iter().find(decides)
    }

    /// A metric by its name, judged.
    #[must_use]
    pub fn metric(&self, name: &str) -> Option<&Judged> {
        let found = self.metrics.iter().find(|m| m.metric.name == name)?;
        Some(&found.judged)
    }

    /// The verdict on the primary metric.
    #[must_use]
    pub fn verdict(&self) -> Option<&Verdict> {
        self.primary().map(|m| &m.judged.verdict)
    }

    /// experiment / baseline of the primary metric, with its 95 %
    /// limits; `None` where the cell is invalid or has no pair that counts.
    #[must_use]
    pub fn ratio(&self) -> Option<Shown> {
        self.primary().and_then(JudgedMetric::ratio)
    }

    /// Whether a firm verdict is held back, because it depends on what the
    /// model's assumptions.
    #[must_use]
    pub fn is_held_back(&self) -> bool {
        self.band.is_some_and(|band| band.holds_back)
    }

    /// Whether it must not be read.
    #[must_use]
    pub fn is_invalid(&self) -> bool {
        matches!(self.verdict(), None | Some(Verdict::Invalid(_)))
    }

    /// Whether anything was measured.
    #[must_use]
    pub fn is_measured(&self) -> bool {
        self.pairs > 0
    }
}

impl JudgedMetric {
    /// experiment / baseline with its 95 % limits; `None` where it is invalid
    /// or has no pair that counts.
    #[must_use]
    pub fn ratio(&self) -> Option<Shown> {
        match self.judged.verdict {
            Verdict::Invalid(_) => None,
            _ => self.judged.estimate.map(|e| e.ratio()),
        }
    }
}

impl Verdicts {
    /// The measured cells by the placement of their CPUs: those over all
    /// placements first, without a name, then the placement with most cells.
    #[must_use]
    pub fn by_class(&self) -> Vec<(Option<&str>, Vec<&JudgedCell>)> {
        let mut groups: Vec<(Option<&str>, Vec<&JudgedCell>)> = Vec::new();
        for cell in self.cells.iter().filter(|c| c.is_measured()) {
            let class = cell.class.as_deref();
            match groups.iter_mut().find(|(name, _)| *name == class) {
                Some((_, cells)) => cells.push(cell),
                None => groups.push((class, vec![cell])),
            }
        }
        groups.sort_by_key(|(class, cells)| (class.is_some(), std::cmp::Reverse(cells.len())));
        groups
    }

    /// Every primary verdict: one for each cell, and one for each point of a
    /// matrix that a run gives whole.
    pub fn primaries(&self) -> impl Iterator<Item = &Verdict> {
        self.cells
            .iter()
            .flat_map(|cell| &cell.metrics)
            .filter(|m| m.metric.role == Role::Primary)
            .map(|m| &m.judged.verdict)
    }
}

/// Judges an experiment by its own design.
///
/// The primary metrics of all cells, measured or not, are one family. Where
/// a run gives a whole matrix ([`Metric::at`]), its places are a second one, of
/// regions ([`Family::FalseDiscovery`]).
///
/// # Errors
/// [`BadSetting`] if the margin or a bias band makes no sense. Samples are
/// never an error.
pub fn judge(experiment: &Experiment) -> Result<Verdicts, BadSetting> {
    let settings = Settings {
        delta: experiment.design.delta,
        family: experiment.design.family,
        ..Settings::default()
    };
    let regions = Settings {
        family: Family::FalseDiscovery,
        ..settings
    };
    let places = Places::of(experiment, |cell, pair| {
        let metric = cell.primary()?;
        pair_of(pair, metric)?.difference(metric.direction)
    });
    let mut cells = Vec::new();
    let mut groups = Vec::new();
    let least = least_apart(experiment, &places, &settings);
    for (index, cell) in experiment.cells.iter().enumerate() {
        for group in by_class(index, cell, &places, least) {
            cells.push(group.summary(index));
            groups.push(group);
        }
    }
    for (inside, settings) in [(false, settings), (true, regions)] {
        let mut comparisons = Vec::new();
        let mut owners: Vec<(usize, &Metric)> = Vec::new();
        for (at, group) in groups.iter().enumerate() {
            for metric in &group.cell.metrics {
                if metric.at.is_some() == inside
                    && let Some(comparison) = group.comparison(metric, &mut cells[at].zero)
                {
                    owners.push((at, metric));
                    comparisons.push(comparison);
                }
            }
        }
        let judged = locklab_judge::judge(&comparisons, &settings)?;
        for ((at, metric), mut judged) in owners.into_iter().zip(judged) {
            if let Some(estimate) = &mut judged.estimate
                && !groups[at].pairs.iter().any(|pair| pair.has_order())
            {
                // Runs without an order cannot be autocorrelated.
                estimate.autocorrelation_runs = None;
            }
            cells[at].metrics.push(JudgedMetric {
                metric: metric.clone(),
                judged,
            });
        }
    }
    if matches!(experiment.provenance, Provenance::Simulation(_)) {
        model::hold_back(experiment, &mut cells);
    }
    let ranking = match experiment.layout() {
        Layout::Ranking => ranking::rank(experiment),
        Layout::Matrix | Layout::Workloads => None,
    };
    Ok(Verdicts {
        settings,
        places,
        regions: regions::judge(experiment, &cells, settings.delta),
        cells,
        ranking,
    })
}

/// The judge's pairs of a cell's primary metric that count: the pairs that a
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

/// The pairs of a cell that may be compared with one another.
struct Group<'a> {
    cell: &'a Cell,
    class: Option<String>,
    pairs: Vec<&'a Pair>,
    elsewhere: Vec<(String, Vec<&'a Pair>)>,
}

/// The fewest pairs in the rarer placement of a cell that are judged apart: as
/// many as one of all these comparisons needs before it can be called. Fewer
/// could answer nothing, and would only make the family larger.
fn least_apart(experiment: &Experiment, places: &Places, settings: &Settings) -> usize {
    let cells = experiment.cells.iter().enumerate();
    let members = cells
        .map(|(index, cell)| by_class(index, cell, places, settings.min_pairs).len())
        .sum();
    pairs_needed(settings.family, members).max(settings.min_pairs)
}

/// One group of all pairs, unless the ratio of this cell depends on the placement
/// of the CPUs: then groups by it. The first has most pairs, and those without a
/// placement: a run that failed. Others have at least `least` pairs.
fn by_class<'a>(index: usize, cell: &'a Cell, places: &Places, least: usize) -> Vec<Group<'a>> {
    let class_of = |pair: &Pair| places.apart(index, cell, pair);
    let mut classes: Vec<(String, Vec<&Pair>)> = Vec::new();
    for pair in cell.pairs.iter().filter(|pair| !pair.is_half()) {
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
    let (others, few): (Vec<_>, Vec<_>) = classes.partition(|(_, p)| p.len() >= least);
    let mut groups = vec![Group {
        cell,
        pairs: cell
            .pairs
            .iter()
            .filter(|p| !p.is_half())
            .filter(|p| class_of(p).is_none_or(|c| Some(c) == main.as_deref()))
            .collect(),
        class: main,
        elsewhere: few,
    }];
    groups.extend(others.into_iter().map(|(class, pairs)| Group {
        cell,
        class: Some(class),
        pairs,
        elsewhere: Vec::new(),
    }));
    groups
}

/// The reason why a pair does not count, if so.
fn fault(pair: &Pair) -> Option<(FaultKind, Option<Side>, String)> {
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

/// A pair in the judge's form; `None` if it counts and did not measure
/// this metric.
fn pair_of(pair: &Pair, metric: &Metric) -> Option<locklab_judge::Pair> {
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

impl Group<'_> {
    /// The comparison of a metric for the judge. `None` for a metric that only
    /// describes, and for a screening one that has no logarithm in some
    /// run: a counter that stayed at zero.
    fn comparison(&self, metric: &Metric, zero: &mut Vec<String>) -> Option<Comparison> {
        let pairs: Vec<_> = self
            .pairs
            .iter()
            .filter_map(|p| pair_of(p, metric))
            .collect();
        match metric.role {
            Role::Descriptive => None,
            Role::Primary => Some(Comparison {
                bias_band: self.cell.bias_band.filter(|_| metric.at.is_none()),
                delta: self.cell.delta,
                ..Comparison::primary(pairs, metric.direction)
            }),
            Role::Screening => {
                let samples = self.pairs.iter().flat_map(|p| p.samples());
                let mut values = samples.filter_map(|s| s.values.get(&metric.name));
                if values.any(|x| *x <= 0.0) {
                    zero.push(metric.name.clone());
                    return None;
                }
                let void = pairs.iter().all(|p| p.fault().is_some());
                let unsound = pairs
                    .iter()
                    .filter_map(|p| p.fault())
                    .any(|f| matches!(f.kind, FaultKind::CheckFailed | FaultKind::Unusable));
                (!void && !unsound).then(|| Comparison::screening(pairs, metric.direction))
            }
        }
    }

    fn summary(&self, index: usize) -> JudgedCell {
        let sound: Vec<&Pair> = self
            .pairs
            .iter()
            .copied()
            .filter(|p| fault(p).is_none())
            .collect();
        let trips = || {
            sound
                .iter()
                .flat_map(|p| p.samples())
                .filter_map(|s| s.placement.as_ref())
                .flat_map(|p| [p.before, p.after])
                .filter(|x| x.is_finite())
        };
        let low = trips().min_by(f64::total_cmp);
        let high = trips().max_by(f64::total_cmp);
        let of = |pairs: &[&Pair]| {
            self.cell.primary().map_or(Vec::new(), |metric| {
                let differences = differences(pairs.iter().copied(), metric);
                differences.map(|(_, d)| d).collect()
            })
        };
        JudgedCell {
            cell: index,
            class: self.class.clone(),
            round_trip: low.zip(high),
            pairs: self.pairs.len(),
            metrics: Vec::new(),
            zero: Vec::new(),
            baseline: figures(self.cell, &sound, |p| &p.baseline),
            experiment: figures(self.cell, &sound, |p| &p.experiment),
            differences: of(&self.pairs),
            band: None,
            elsewhere: self
                .elsewhere
                .iter()
                .map(|(class, pairs)| (class.clone(), of(pairs)))
                .collect(),
        }
    }
}

/// The differences of the pairs that count, each with the number of its pair.
pub(crate) fn differences<'a>(
    pairs: impl Iterator<Item = &'a Pair>,
    metric: &Metric,
) -> impl Iterator<Item = (u32, f64)> {
    pairs.filter_map(|pair| {
        let difference = pair_of(pair, metric)?.difference(metric.direction)?;
        Some((pair.index, difference))
    })
}

/// Every value of one side, summarised as its metric specifies.
fn figures<'a>(cell: &Cell, pairs: &[&'a Pair], side: impl Fn(&'a Pair) -> &'a Sample) -> Figures {
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

/// The location of one sample is the judge's estimate against a constant, for
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

/// The same estimate where some value has no logarithm: the median of the
/// geometric means of all pairs of values, or of the arithmetic ones if any is
/// negative.
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

/// The middle value, or the mean of the two middle ones.
#[must_use]
pub fn median(values: Vec<f64>) -> Option<f64> {
    middle(values).map(|(low, high)| low + 0.5 * (high - low))
}

/// The two middle values, or the middle one twice.
fn middle(mut values: Vec<f64>) -> Option<(f64, f64)> {
    values.retain(|x| x.is_finite());
    values.sort_by(f64::total_cmp);
    let low = values.get(values.len().checked_sub(1)? / 2)?;
    Some((*low, values[values.len() / 2]))
}
