//! Turns samples into judged cells.
//!
//! It groups the pairs that belong together (one cell, one placement class), and
//! says which metric decides.
//! It must never decide anything itself and never print.

pub use crate::judged::{Band, Figure, Figures, JudgedCell, JudgedMetric};
pub use crate::pairs::{median, primary_pairs};

use crate::experiment::{Cell, Experiment, Layout, Metric, Pair, Provenance, Role};
use crate::model;
use crate::pairs::{differences, fault, figures, pair_of};
use crate::placement::Places;
use crate::ranking::{self, Ranking};
use crate::regions::{self, JudgedPart};
use locklab_judge::{BadSetting, Comparison, Family, FaultKind, Settings, Verdict, pairs_needed};

/// An experiment with a verdict in each cell.
#[derive(Clone, Debug)]
pub struct Verdicts {
    /// The settings, decided before the run.
    pub settings: Settings,
    /// Says where the CPUs were, and whether that matters.
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

impl Verdicts {
    /// Returns the measured cells by the placement of their CPUs: those over all
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

    /// Returns every primary verdict: one for each cell, and one for each point of a
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
        looks: experiment.design.looks(),
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

/// Returns of each cell whether a primary metric is unclear, so that more pairs may
/// decide it.
///
/// # Errors
/// [`BadSetting`] if the margin or a bias band makes no sense.
pub fn undecided(experiment: &Experiment) -> Result<Vec<bool>, BadSetting> {
    let verdicts = judge(experiment)?;
    let mut undecided = vec![false; experiment.cells.len()];
    for cell in &verdicts.cells {
        let mut primary = cell
            .metrics
            .iter()
            .filter(|m| m.metric.role == Role::Primary);
        undecided[cell.cell] |=
            primary.any(|m| matches!(m.judged.verdict, Verdict::Unclear { .. }));
    }
    Ok(undecided)
}

/// The pairs of a cell that may be compared with one another.
struct Group<'a> {
    cell: &'a Cell,
    class: Option<String>,
    pairs: Vec<&'a Pair>,
    elsewhere: Vec<(String, Vec<&'a Pair>)>,
}

/// Returns the fewest pairs in the rarer placement of a cell that are judged apart: as
/// many as one of all these comparisons needs before it can be called. Fewer
/// could answer nothing, and would only make the family larger.
fn least_apart(experiment: &Experiment, places: &Places, settings: &Settings) -> usize {
    let cells = experiment.cells.iter().enumerate();
    let members = cells
        .map(|(index, cell)| by_class(index, cell, places, settings.min_pairs).len())
        .sum();
    pairs_needed(settings.family, members).max(settings.min_pairs)
}

/// Groups the pairs: one group of all, unless the ratio of this cell depends on the
/// placement of the CPUs; then a group for each placement. The first has most pairs,
/// and those without a placement: a run that failed. Others have at least `least`
/// pairs.
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

impl Group<'_> {
    /// Returns the comparison of a metric for the judge. `None` for a metric that only
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
