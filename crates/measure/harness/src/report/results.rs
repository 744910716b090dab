//! The JSON results, whose shapes other tools rely on.
//!
//! Fields may be added; none is removed or changes its meaning. A figure of
//! which there is none (no pair counts, no finite limit) is null.

pub(super) mod shared;

use self::shared::{Place, Shared, fields, map, place, shared};
use super::inputs::Report;
use super::matrix::cells::handoffs_disagree;
use super::workload::{base_name, inside, rows};
use super::workloads::words::sentence;
use super::{rank, regions as regions_report};
use crate::experiment::{Role, Source};
use crate::verdicts::{Figures, JudgedCell, JudgedMetric};
use locklab_judge::{Direction, Verdict};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Returns the JSON schema of the results that every comparison writes with `--json`.
#[must_use]
pub fn schema() -> Value {
    // As it is written: a missing figure is null, not absent.
    let settings = schemars::generate::SchemaSettings::draft2020_12().for_serialize();
    let schema = settings.into_generator().into_root_schema_for::<Results>();
    schema.to_value()
}

/// The results of a comparison.
#[derive(JsonSchema)]
#[serde(untagged)]
#[allow(dead_code, reason = "the schema is made of it")]
enum Results {
    Matrix(Matrix),
    Workloads(Workloads),
    Rank(rank::results::Rank),
}

/// The results of a matrix.
#[derive(Clone, Debug, Serialize, JsonSchema)]
struct Matrix {
    #[serde(flatten)]
    shared: Shared,
    /// The findings, in sentences.
    summary: Vec<String>,
    /// Says how many placements of the CPUs the run saw, and whether the ratio depends
    /// on them.
    placements: Placements,
    /// Parts of the matrix, each judged as one: a family of their own.
    regions: Vec<RegionOfCells>,
    /// One entry for each cell; where the ratio depends on the placement of the
    /// CPUs, for each cell and placement.
    cells: Vec<MatrixCell>,
}

/// Part of a matrix, judged as one.
#[derive(Clone, Debug, Serialize, JsonSchema)]
struct RegionOfCells {
    /// The cells in words.
    name: String,
    /// Number of cells that have a pair.
    cells: usize,
    /// Number of their pairs.
    pairs: usize,
    /// The margin for flat, as a fraction.
    delta: f64,
    #[serde(flatten)]
    ratio: Ratio,
    #[schemars(extend("enum" = ["better", "worse", "flat", "unclear"]))]
    verdict: &'static str,
    /// The p-value adjusted for all regions (Holm).
    p_adjusted: f64,
}

/// Says where the CPUs of a virtual machine were.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
struct Placements {
    /// p of the test of interaction; null where only one was seen.
    p: Option<f64>,
    /// Says whether each placement has cells of its own.
    split: bool,
}

/// The results of programs and kernels.
#[derive(Clone, Debug, Serialize, JsonSchema)]
struct Workloads {
    #[serde(flatten)]
    shared: Shared,
    /// The findings, in sentences.
    conclusion: Vec<String>,
    /// One entry for each workload and variant.
    workloads: Vec<Workload>,
}

/// experiment / baseline of the primary metric, with its 95 % limits.
#[derive(Clone, Copy, Debug, Default, Serialize, JsonSchema)]
struct Ratio {
    ratio: Option<f64>,
    ratio_low: Option<f64>,
    ratio_high: Option<f64>,
}

/// A cell of a matrix, judged.
#[derive(Clone, Debug, Serialize, JsonSchema)]
struct MatrixCell {
    #[serde(flatten)]
    place: Place,
    /// Says whether there are more threads than CPUs.
    oversubscribed: bool,
    /// Says how it was measured, where that differs between cells; empty otherwise.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    setup: BTreeMap<String, String>,
    /// The placement of the CPUs in its pairs; null where it is over all.
    placement: Option<String>,
    /// Lowest and highest cache-line round trip around its runs, in ns.
    round_trip_ns: Option<[f64; 2]>,
    /// Figures of the baseline by their names.
    baseline: BTreeMap<String, Option<f64>>,
    /// Figures of the experiment by their names.
    experiment: BTreeMap<String, Option<f64>>,
    #[serde(flatten)]
    ratio: Ratio,
    /// `better`, `worse`, `flat`, `unclear` or `invalid`.
    #[schemars(extend("enum" = ["better", "worse", "flat", "unclear", "invalid"]))]
    verdict: &'static str,
    /// Number of pairs that count.
    pairs: usize,
    /// Number of pairs that do not count.
    pairs_set_aside: usize,
    /// Each pair that counts: what `locklab judge` reads.
    pair_ratios: Option<PairRatios>,
    /// The p-value of this comparison alone.
    p: Option<f64>,
    /// The p-value adjusted for the family.
    p_adjusted: Option<f64>,
    /// Says whether operations and handoffs point in opposite directions.
    handoffs_disagree: bool,
    /// Estimates of the metrics that explain and do not decide, as counters do.
    screening: Vec<Screened>,
    /// Warnings about the verdict.
    warnings: Vec<String>,
    #[serde(flatten)]
    more: More,
}

/// experiment / baseline of each pair that counts, in order.
#[derive(Clone, Debug, Serialize, JsonSchema)]
struct PairRatios {
    /// The primary metric.
    metric: String,
    /// Says which way it improves.
    #[schemars(with = "String")]
    direction: Direction,
    ratios: Vec<f64>,
}

/// A screening metric.
#[derive(Clone, Debug, Serialize, JsonSchema)]
struct Screened {
    metric: String,
    #[serde(flatten)]
    ratio: Ratio,
    #[schemars(extend("enum" = ["better", "worse", "flat", "unclear", "invalid"]))]
    verdict: &'static str,
    p_adjusted: f64,
}

/// Fields that only some verdicts have.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
struct More {
    /// Says for a flat verdict whether zero is outside the 95 % interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    flat_but_not_zero: Option<bool>,
    /// The effect, for an unclear verdict, that this many pairs find four times
    /// in five.
    #[serde(skip_serializing_if = "Option::is_none")]
    detectable: Option<Option<f64>>,
    /// The pairs, for an unclear verdict, that would show flat if there were no difference.
    #[serde(skip_serializing_if = "Option::is_none")]
    pairs_for_flat: Option<Option<u64>>,
    /// The range, for a simulation, of nine of ten ratios, over the machines
    /// that the assumptions allow.
    #[serde(skip_serializing_if = "Option::is_none")]
    band: Option<[f64; 2]>,
    /// Says for an unclear verdict why a firm verdict is held back, since it
    /// depends on the model's assumptions.
    #[serde(skip_serializing_if = "Option::is_none")]
    unclear_because: Option<&'static str>,
    /// The reasons of an invalid verdict.
    #[serde(skip_serializing_if = "Option::is_none")]
    reasons: Option<Vec<String>>,
}

/// A workload with its metrics, judged.
#[derive(Clone, Debug, Serialize, JsonSchema)]
struct Workload {
    name: String,
    /// The variant; empty if there is only one.
    variant: String,
    /// A description of a run.
    about: String,
    /// Facts about the set-up.
    setup: BTreeMap<String, String>,
    /// Number of pairs that were run.
    pairs: usize,
    /// The pairs that do not count.
    pairs_set_aside: Vec<SetAside>,
    /// Each pair that counts: what `locklab judge` reads.
    pair_ratios: Option<PairRatios>,
    /// The placement of the CPUs in its pairs; null where it is over all.
    placement: Option<String>,
    /// Says why it was not run, or not to the end.
    stopped: Option<String>,
    /// The findings, in sentences.
    summary: String,
    /// One entry for each metric.
    metrics: Vec<Metric>,
    /// Metrics that were not judged because they were zero in some run.
    not_judged: Vec<String>,
    /// The matrix that each run gives, if it gives one.
    cells: Vec<InsideCell>,
}

/// A pair that does not count.
#[derive(Clone, Debug, Serialize, JsonSchema)]
struct SetAside {
    /// Number of the pair, from 1.
    pair: u32,
    why: String,
}

/// A metric of a workload.
#[derive(Clone, Debug, Serialize, JsonSchema)]
struct Metric {
    name: String,
    /// The unit; empty for a count or a ratio.
    unit: String,
    /// The baseline's figure, in `unit`; `None` if no pair counts.
    baseline: Option<f64>,
    /// The experiment's figure, by the same estimator.
    experiment: Option<f64>,
    /// The change in percent of the baseline.
    delta_percent: Option<f64>,
    /// Lower 95 % limit of the change.
    low: Option<f64>,
    /// Upper 95 % limit of the change.
    high: Option<f64>,
    /// The verdict; null for a descriptive metric.
    #[schemars(extend("enum" = ["better", "worse", "flat", "unclear", "invalid", null]))]
    verdict: Option<&'static str>,
    /// The text of the `Sig` column.
    sig: &'static str,
    /// Says whether it is the primary metric.
    primary: bool,
    /// The p-value adjusted for the family.
    p_adjusted: Option<f64>,
    /// The source of the figure.
    source: Source,
}

/// A point of a matrix that each run gives whole.
#[derive(Clone, Debug, Serialize, JsonSchema)]
struct InsideCell {
    #[serde(flatten)]
    place: Place,
    baseline: BTreeMap<String, Option<f64>>,
    experiment: BTreeMap<String, Option<f64>>,
    #[serde(flatten)]
    ratio: Ratio,
    #[schemars(extend("enum" = ["better", "worse", "flat", "unclear", "invalid"]))]
    verdict: &'static str,
    p_adjusted: f64,
}

/// Returns the results of a matrix.
pub(super) fn matrix(
    report: &Report,
    summary: &[String],
    caveats: &[String],
) -> Map<String, Value> {
    fields(&Matrix {
        shared: shared(report, caveats),
        summary: summary.to_vec(),
        placements: Placements {
            p: report.verdicts.places.p,
            split: report.verdicts.places.matter(),
        },
        regions: report
            .verdicts
            .regions
            .iter()
            .map(|r| RegionOfCells {
                name: regions_report::name(r.part, report.lengths),
                cells: r.cells,
                pairs: r.judged.pairs,
                delta: r.delta,
                ratio: ratio(r.judged.ratio()),
                verdict: r.judged.verdict.word(),
                p_adjusted: r.judged.p_adjusted,
            })
            .collect(),
        cells: report.measured().map(|c| matrix_cell(report, c)).collect(),
    })
}

fn ratio(of: Option<locklab_judge::Shown>) -> Ratio {
    Ratio {
        ratio: of.map(|r| r.value),
        ratio_low: of.map(|r| r.low),
        ratio_high: of.map(|r| r.high),
    }
}

fn more(verdict: Option<&Verdict>) -> More {
    let mut more = More::default();
    match verdict {
        Some(Verdict::Flat { nonzero }) => more.flat_but_not_zero = Some(*nonzero),
        Some(Verdict::Unclear {
            detectable,
            pairs_for_flat,
        }) => {
            more.detectable = Some(*detectable);
            more.pairs_for_flat = Some(*pairs_for_flat);
        }
        Some(Verdict::Invalid(reasons)) => {
            more.reasons = Some(reasons.iter().map(ToString::to_string).collect());
        }
        Some(Verdict::Better | Verdict::Worse) | None => {}
    }
    more
}

/// Returns every figure of a side that the cell's metrics name, and the limits of
/// the primary one as `ops_low` and `ops_high` beside `ops_per_s`.
fn side(metrics: &[crate::experiment::Metric], figures: &Figures) -> BTreeMap<String, Option<f64>> {
    let mut side = BTreeMap::new();
    for metric in metrics.iter().filter(|m| m.at.is_none()) {
        let figure = figures.0.get(&metric.name);
        side.insert(metric.name.clone(), figure.map(|f| f.value));
        if metric.role == Role::Primary {
            let name = metric.name.strip_suffix("_per_s").unwrap_or(&metric.name);
            side.insert(format!("{name}_low"), figure.and_then(|f| f.low));
            side.insert(format!("{name}_high"), figure.and_then(|f| f.high));
        }
    }
    side
}

fn matrix_cell(report: &Report, judged: &JudgedCell) -> MatrixCell {
    let cell = report.cell(judged);
    let primary = judged.primary();
    let explains = |m: &&JudgedMetric| m.metric.role == Role::Screening && m.metric.at.is_none();
    let screened = |m: &JudgedMetric| Screened {
        metric: m.metric.name.clone(),
        ratio: ratio(m.judged.estimate.map(|e| e.ratio())),
        verdict: m.judged.verdict.word(),
        p_adjusted: m.judged.p_adjusted,
    };
    MatrixCell {
        place: place(&cell.key),
        oversubscribed: cell.oversubscribed,
        setup: map(&cell.facts),
        placement: judged.class.clone(),
        round_trip_ns: judged.round_trip.map(|(low, high)| [low, high]),
        baseline: side(&cell.metrics, &judged.baseline),
        experiment: side(&cell.metrics, &judged.experiment),
        ratio: ratio(judged.ratio()),
        verdict: judged.verdict().map_or("invalid", Verdict::word),
        pairs: judged.differences.len(),
        pairs_set_aside: primary.map_or(0, |m| m.judged.set_aside.len()),
        pair_ratios: pair_ratios(judged),
        p: primary.map(|m| m.judged.p),
        p_adjusted: primary.map(|m| m.judged.p_adjusted),
        handoffs_disagree: handoffs_disagree(judged),
        screening: judged
            .metrics
            .iter()
            .filter(explains)
            .map(screened)
            .collect(),
        warnings: primary.map_or(Vec::new(), |m| {
            m.judged.warnings.iter().map(ToString::to_string).collect()
        }),
        more: More {
            band: judged.band.map(|band| [band.low, band.high]),
            unclear_because: judged.is_held_back().then_some("model"),
            ..more(judged.verdict())
        },
    }
}

fn pair_ratios(judged: &JudgedCell) -> Option<PairRatios> {
    let metric = &judged.primary()?.metric;
    let sign = metric.direction.sign();
    Some(PairRatios {
        metric: metric.name.clone(),
        direction: metric.direction,
        ratios: judged
            .differences
            .iter()
            .map(|d| (sign * d).exp())
            .collect(),
    })
}

/// Returns the results of programs and kernels.
pub(super) fn workloads(
    report: &Report,
    conclusion: &[String],
    caveats: &[String],
) -> Map<String, Value> {
    fields(&Workloads {
        shared: shared(report, caveats),
        conclusion: conclusion.to_vec(),
        workloads: report
            .verdicts
            .cells
            .iter()
            .map(|c| workload(report, c))
            .collect(),
    })
}

fn workload(report: &Report, judged: &JudgedCell) -> Workload {
    let cell = report.cell(judged);
    let axis = |name: &str| cell.key.get(name).map(ToString::to_string);
    let set_aside = cell.pairs.iter().filter_map(|pair| {
        Some(SetAside {
            pair: pair.index + 1,
            why: pair.invalid()?.why().to_owned(),
        })
    });
    Workload {
        name: axis("workload").unwrap_or_else(|| cell.key.to_string()),
        variant: axis("variant").unwrap_or_default(),
        about: cell.about.clone(),
        setup: map(&cell.facts),
        pairs: judged.pairs,
        pairs_set_aside: set_aside.collect(),
        pair_ratios: pair_ratios(judged),
        placement: judged.class.clone(),
        stopped: cell.stopped.clone(),
        summary: sentence(report, judged),
        metrics: metrics(report, judged),
        not_judged: judged.zero.clone(),
        cells: inside(judged)
            .into_iter()
            .map(|(metric, placed)| {
                let name = base_name(metric);
                let figure =
                    |side: &Figures| BTreeMap::from([(name.to_owned(), side.get(&metric.name))]);
                InsideCell {
                    place: Place {
                        threads: placed.threads,
                        critical: placed.critical,
                        non_critical: placed.non_critical,
                        locks: placed.at_once,
                    },
                    baseline: figure(&judged.baseline),
                    experiment: figure(&judged.experiment),
                    ratio: ratio(placed.ratio),
                    verdict: placed.judged.verdict.word(),
                    p_adjusted: placed.judged.p_adjusted,
                }
            })
            .collect(),
    }
}

fn metrics(report: &Report, judged: &JudgedCell) -> Vec<Metric> {
    if !judged.is_measured() {
        return Vec::new();
    }
    let cell = report.cell(judged);
    rows(cell, judged)
        .into_iter()
        .filter_map(|row| {
            let of = cell.metrics.iter().find(|m| m.name == row.name)?;
            Some(Metric {
                unit: row.unit.clone(),
                baseline: row.baseline,
                experiment: row.experiment,
                delta_percent: row.delta.map(|d| d.value),
                low: row.delta.map(|d| d.low),
                high: row.delta.map(|d| d.high),
                verdict: row.verdict.as_ref().map(Verdict::word),
                sig: row.sig(),
                primary: row.role == Role::Primary,
                p_adjusted: judged.metric(&row.name).map(|j| j.p_adjusted),
                source: of.source,
                name: row.name,
            })
        })
        .collect()
}
