//! Shows what a session of a simulated matrix has besides its cells, if that was asked.
//!
//! Nothing of it is stored, so a stored report does not have it.

use crate::modelled::assumptions::{band, band_section};
use crate::modelled::spec::Spec;
use locklab_document::Document;
use locklab_harness::progress::Progress;
use locklab_host::error::Error;
use locklab_sim::{Machine, Stop, simulate};
use serde_json::json;
use std::path::{Path, PathBuf};

/// Holds what is shown besides.
#[derive(Clone, Debug, Default)]
pub struct Extras {
    /// Says which of the model's assumptions a ratio depends on.
    pub band: bool,
    /// The file for a timeline of a short run of the experiment's lock.
    pub perfetto: Option<PathBuf>,
    /// The seed of these runs.
    pub seed: u64,
    /// Says whether the progress of the band is not shown.
    pub quiet: bool,
}

impl Extras {
    /// Makes what was asked for, on `workers` threads, and appends it.
    ///
    /// # Errors
    /// A lock does not work in the simulator, or the timeline cannot be written.
    pub(crate) fn append(
        &self,
        spec: &Spec,
        machine: &Machine,
        workers: usize,
        report: &mut Document,
    ) -> Result<(), Error> {
        if self.band {
            let progress = Progress::new(1, "simulations", self.quiet);
            let bands = band(spec, machine, self.seed, workers, |done, of| {
                progress.set(done as u64, of as u64, "band");
            });
            drop(progress);
            let bands = bands.map_err(|e| Error::Failed(e.to_string()))?;
            report.push(band_section(&bands));
            report.data.insert("band".into(), json!(bands));
        }
        match &self.perfetto {
            Some(path) => self.write_timeline(spec, machine, path),
            None => Ok(()),
        }
    }

    /// Writes the timeline of a run with the most threads.
    fn write_timeline(&self, spec: &Spec, machine: &Machine, path: &Path) -> Result<(), Error> {
        let Some(place) = spec.cells.places().into_iter().max_by_key(|place| place[0]) else {
            return Ok(());
        };
        let mut scenario = spec.scenario(machine, place, &spec.experiment, self.seed);
        scenario.stop = Stop::Acquisitions(50 + 4 * place[0]);
        scenario.trace = true;
        let simulation = simulate(&scenario).map_err(|e| Error::Failed(e.to_string()))?;
        std::fs::write(path, simulation.trace.unwrap_or_default())
            .map_err(|e| Error::Failed(format!("cannot write {}: {e}", path.display())))
    }
}
