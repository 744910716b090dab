//! The assumptions of the model that a simulated ratio depends on: each is set
//! to the ends of its band alone, with the others unchanged and one seed.
//! The ratio and its uncertainty are in the report, whose pairs
//! draw all assumptions together.

use crate::modelled::spec::Spec;
use locklab_document::Section;
use locklab_document::page::wrapped;
use locklab_sim::{Machine, Scenario, SimError, band as variants, run_all};
use serde::Serialize;

/// The ends of a cell's ratio with one assumption at a time changed.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct CellBand {
    /// Says how many threads contend.
    pub threads: u64,
    /// Length of the critical section.
    pub critical: u64,
    /// Length of the non-critical section.
    pub non_critical: u64,
    /// The lowest ratio of experiment to baseline.
    pub low: f64,
    /// The assumption that was changed for it.
    pub low_at: String,
    /// The highest ratio of experiment to baseline.
    pub high: f64,
    /// The assumption that was changed for it.
    pub high_at: String,
}

/// Simulates every cell with each assumption at the ends of its band, on
/// `workers` threads; calls `progress` with the number of simulations done and
/// their total.
///
/// # Errors
/// The error of the first simulation that failed.
pub(crate) fn band(
    spec: &Spec,
    machine: &Machine,
    seed: u64,
    workers: usize,
    progress: impl Fn(usize, usize) + Sync,
) -> Result<Vec<CellBand>, SimError> {
    let mut changed = vec![("as it stands".to_owned(), machine.clone())];
    changed.extend(variants::variants(machine));
    let places = spec.cells.places();
    let scenarios: Vec<Scenario> = changed
        .iter()
        .flat_map(|(_, machine)| places.iter().map(move |place| (machine, *place)))
        .flat_map(|(machine, place)| {
            [&spec.baseline, &spec.experiment].map(|lock| spec.scenario(machine, place, lock, seed))
        })
        .collect();
    let outcomes = run_all(&scenarios, workers, |done| progress(done, scenarios.len()))?;
    let ratios: Vec<f64> = outcomes
        .chunks(2)
        .map(|pair| pair[1].ops_per_s / pair[0].ops_per_s)
        .collect();
    let bands = places.iter().enumerate().map(|(at, place)| {
        let of = |variant: usize| ratios[variant * places.len() + at];
        let order = |a: &usize, b: &usize| of(*a).total_cmp(&of(*b));
        let low = (0..changed.len()).min_by(order).unwrap_or(0);
        let high = (0..changed.len()).max_by(order).unwrap_or(0);
        CellBand {
            threads: place[0],
            critical: place[1],
            non_critical: place[2],
            low: of(low),
            low_at: changed[low].0.clone(),
            high: of(high),
            high_at: changed[high].0.clone(),
        }
    });
    Ok(bands.collect())
}

/// Returns the section with the ends of each cell and their assumptions, in 72 columns.
#[must_use]
pub(crate) fn band_section(bands: &[CellBand]) -> Section {
    let head = "non-crit threads crit   low  high  lowest with, highest with";
    let mut lines = vec![head.to_owned()];
    for cell in bands {
        let figures = format!(
            "{:8} {:7} {:4} {:5.2} {:5.2}  ",
            cell.non_critical, cell.threads, cell.critical, cell.low, cell.high,
        );
        let ends = format!("{}, {}", cell.low_at, cell.high_at);
        lines.push(wrapped(&figures, &ends));
    }
    Section::new("Which assumption matters: the ratio with one at a time changed, one seed")
        .preformatted(lines.join("\n"))
}
