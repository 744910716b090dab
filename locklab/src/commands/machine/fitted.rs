//! A model of this machine, measured. It is written nowhere here.

use locklab_host::error::Error;
use locklab_host::topology::Topology;
use locklab_native::fit::{self, Fit};
use locklab_native::{Native, scheduling};
use locklab_sim::Machine;
use std::path::Path;

/// Returns the pairs of CPUs that are measured.
pub(super) fn pairs(topology: &Topology) -> Result<Vec<(usize, usize)>, Error> {
    let pairs = fit::pairs(&topology.order);
    match pairs.is_empty() {
        true => Err(Error::Failed(
            "only one CPU may be used, so there is no distance to measure; allow more (taskset)"
                .into(),
        )),
        false => Ok(pairs),
    }
}

/// Measures this machine, and returns the text of its file.
pub(super) fn fitted(
    native: &Native,
    pairs: &[(usize, usize)],
    file: &Path,
) -> Result<(Fit, String), Error> {
    let fit = fit::measure(native, pairs)?;
    let mut text = fit.machine_file(&native.topology);
    let (a, b) = pairs[0];
    if let Some(scheduling) = scheduling::measure(a, b) {
        text.push_str(&scheduling.table());
    }
    Machine::parse(&file.display().to_string(), &text)
        .map_err(|e| Error::Failed(format!("what was measured makes no machine: {e}")))?;
    Ok((fit, text))
}
