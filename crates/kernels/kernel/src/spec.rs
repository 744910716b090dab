//! The specification of a comparison of kernels, as it is stored, with the sizes of
//! what was built.

use crate::build::Build;
use crate::recipe::Variant;
use locklab_footprint::Footprint;
use locklab_harness::experiment::Experiment;
use locklab_host::error::Error;
use locklab_published::kernels::KernelSizes;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::path::Path;

/// The most functions whose inlined copies are listed.
const MOST_COPIES: usize = 8;

/// Sizes of the two kernels of a variant.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct VariantSizes {
    /// Its name; empty for the only one.
    pub variant: String,
    /// Totals by the rules of bloat-o-meter, in one line.
    pub totals: String,
    /// Bytes of all functions and objects, by the same rules.
    pub bytes: [u64; 2],
    /// Holds the same as JSON.
    pub bloat_o_meter: Value,
    /// Bytes of function symbols.
    pub text: Value,
    /// bzImage, in bytes.
    pub bzimage: [Option<u64>; 2],
    /// Inlined copies of a function: its name, and their number in each kernel.
    pub inlined: Vec<(String, [u64; 2])>,
}

impl VariantSizes {
    /// Returns the sizes that have published counterparts.
    pub(crate) fn published(&self) -> KernelSizes {
        KernelSizes {
            variant: self.variant.clone(),
            bytes: self.bytes,
            bzimage: self.bzimage,
        }
    }
}

/// Returns the sizes of two builds.
///
/// # Errors
/// [`Error::Failed`] if an image cannot be read.
pub(crate) fn sizes(variant: &Variant, old: &Build, new: &Build) -> Result<VariantSizes, Error> {
    let options = locklab_footprint::Options::default();
    let footprint: Footprint = locklab_footprint::compare(&old.vmlinux, &new.vmlinux, &options)
        .map_err(|e| Error::Failed(e.to_string()))?;
    let bytes = |path: &Path| path.metadata().ok().map(|facts| facts.len());
    let totals = &footprint.bloat_o_meter.totals;
    let functions = footprint.inlined.as_ref().map_or(&[][..], |i| &i.functions);
    let changed = functions.iter().filter(|c| c.call_sites.delta() != 0);
    Ok(VariantSizes {
        variant: variant.name.clone(),
        totals: totals.to_string(),
        bytes: [totals.before, totals.after],
        inlined: changed
            .take(MOST_COPIES)
            .map(|c| {
                (
                    c.name.clone(),
                    [c.call_sites.baseline, c.call_sites.experiment],
                )
            })
            .collect(),
        bloat_o_meter: json!(footprint.bloat_o_meter),
        text: json!(footprint.text),
        bzimage: [bytes(&old.bzimage), bytes(&new.bzimage)],
    })
}

/// The specification of a comparison of kernels, as it is stored.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Spec {
    pub(crate) name: String,
    /// The question in one line.
    pub(crate) question: String,
    /// Name of the published report.
    pub(crate) reference: Option<String>,
    pub(crate) loads: Value,
    pub(crate) vcpus: u64,
    /// The unit of the guests' clock.
    pub(crate) clock_unit: String,
    pub(crate) sizes: Vec<VariantSizes>,
    /// The experiment's change.
    pub(crate) patch: String,
}

impl Spec {
    /// Returns that of an experiment; an empty one if another version stored it.
    pub(crate) fn of(experiment: &Experiment) -> Self {
        Self::deserialize(&experiment.spec).unwrap_or_default()
    }
}

/// Returns the change in percent.
pub(crate) fn percent(old: u64, new: u64) -> f64 {
    (new as f64 / old as f64 - 1.0) * 100.0
}
