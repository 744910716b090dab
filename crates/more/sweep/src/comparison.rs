//! Two locks in one workload on one modelled machine. A store keeps them as one
//! experiment; shards have the same experiment, each with a part of its cells.

use crate::own_locks;
use crate::plan::{Plan, Run};
use locklab_host::error::Error;
use locklab_lab::experiment::{Design, Experiment, Key};
use locklab_lab::session::key_of;
use locklab_lab::store::hash_of;
use locklab_modelled::Simulated;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// An experiment of a sweep, without pairs, and its key in a store.
pub(crate) struct Comparison {
    pub(crate) key: String,
    pub(crate) experiment: Experiment,
}

/// Cells, by their number in a block.
pub(crate) type Cells<'a> = &'a [usize];

impl Comparison {
    /// Returns the experiment of a pair of locks in a block, with these cells of it.
    ///
    /// # Errors
    /// The simulator refuses a lock or a cell on this machine.
    pub(crate) fn new(
        plan: &Plan,
        block: usize,
        pair: usize,
        cells: Cells<'_>,
    ) -> Result<Self, Error> {
        let block = &plan.blocks[block];
        let machine = plan.machines[block.machine].clone();
        let spec = plan.spec(block, &plan.pairs[pair]);
        let never = Arc::new(AtomicBool::new(false));
        let instrument = Simulated::new(spec, machine, 1, never)?;
        let file = &plan.file;
        let design = Design {
            seed: file.seed,
            delta: file.delta.fraction(),
            ..Design::usual(plan.replicates())
        };
        let mut experiment = instrument.experiment_of(cells.iter().copied(), design);
        for cell in &mut experiment.cells {
            // A deterministic instrument has no bias.
            cell.bias_band = Some(0.0);
        }
        if file.bands > 1 {
            experiment.spec["bands"] = json!(file.bands);
            experiment.caveats.push(format!(
                "Pairs are of {} machines drawn from the bands of the model's assumptions, {} \
                 seeds each: intervals are those over both.",
                file.bands, file.seeds
            ));
        }
        // Without a band, and with locks of the catalogue, the key is that of
        // 'locklab matrix', because the figures are the same.
        let mut key = key_of(&instrument, &experiment);
        if file.bands > 1 {
            key = hash_of(&(key, file.bands));
        }
        if let Some(sources) = own_locks::sources(&plan.pairs[pair]) {
            key = hash_of(&(key, &sources));
            experiment.spec["own_locks"] = json!(sources);
        }
        Ok(Self { key, experiment })
    }
}

/// Returns the key of the cell of a run.
pub(crate) fn key(plan: &Plan, run: &Run) -> Key {
    let block = &plan.blocks[run.block];
    let spec = plan.spec(block, &plan.pairs[run.pair]);
    spec.key(block.places[run.cell])
}
