//! What A/A runs teach: the bias band of each cell of a set-up.

use super::key;
use crate::matrix::{Measured, Point, Spec};
use crate::matrix_run::Recorder;
use crate::plan::Plan;
use crate::report;
use crate::store::Store;
use locklab_host::machine::Machine;
use locklab_judge::{Order, Pair, bias_band};
use std::collections::HashMap;

/// What a set-up's bias depends on, beside the cell.
fn setup_key(spec: &Spec, machine: &Machine) -> String {
    key(&(
        &spec.baseline,
        (spec.unit, spec.work, spec.run, spec.warm_up),
        (&spec.pin, spec.processes, spec.latency),
        machine,
        report::VERSION,
    ))
}

/// The bands that earlier A/A runs of this set-up and baseline left.
///
/// # Errors
/// The store failed.
pub(super) fn bands(
    store: &Store,
    plan: &Plan,
    machine: &Machine,
) -> Result<HashMap<Point, f64>, String> {
    let mut bands = HashMap::new();
    if plan.spec.aa {
        // A/A runs are judged without the band that they make.
        return Ok(bands);
    }
    let setup = setup_key(&plan.spec, machine);
    for cell in &plan.cells {
        if let Some(band) = store.band(&setup, &cell.point)? {
            bands.insert(cell.point, band);
        }
    }
    Ok(bands)
}

/// Keeps the bands of an A/A run for later ones.
pub(super) fn keep_bands(recorder: &mut Recorder, measured: &Measured, machine: &Machine) {
    let setup = setup_key(&measured.spec, machine);
    for cell in &measured.cells {
        let pairs: Vec<Pair> = cell
            .pairs
            .iter()
            .filter(|pair| pair.baseline.invalid.is_none() && pair.experiment.invalid.is_none())
            .map(|pair| {
                let order = if pair.baseline_first {
                    Order::BaselineFirst
                } else {
                    Order::ExperimentFirst
                };
                Pair::new(pair.baseline.ops_per_s, pair.experiment.ops_per_s, order)
            })
            .collect();
        if let Some(band) = bias_band(&pairs) {
            recorder.with(|store, id| store.keep_band(&setup, &cell.point, band, id));
        }
    }
}
