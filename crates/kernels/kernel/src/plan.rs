//! The plan of a comparison of two kernels, whatever runs them: the file with
//! the options of the command line applied, and what its workloads need of both
//! kernels. It builds nothing.

use crate::cache::Cache;
use crate::lock_profile::OPTIONS;
use crate::recipe::Experiment;
use crate::settings::ProbeOptions;
use crate::workload::{Load, Workload};
use locklab_harness::experiment::Design;
use locklab_host::error::Error;
use std::time::Duration;

/// The plan of an experiment with two kernels.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The experiment file, with the options of the command line applied.
    pub experiment: Experiment,
    /// The loads of the guests.
    pub loads: Vec<Load>,
    /// CPUs of a guest.
    pub vcpus: u64,
    /// Says whether to use KVM.
    pub probe: ProbeOptions,
    /// The time limit of a boot.
    pub limit: Duration,
    /// Its pairs are link orders, each with a seed of its own, of which the
    /// design's is the first.
    pub design: Design,
    /// Says whether layouts are linked: for locktorture alone none is.
    pub layouts: bool,
}

/// Adds to an experiment what its workloads, and the requested ones, need in
/// both kernels: a patch of Locklab and the option that enables it, or the options
/// without which locks cannot be profiled.
///
/// # Errors
/// If the cache cannot be written.
pub fn equipped(
    cache: &Cache<'_>,
    experiment: &Experiment,
    asked: impl IntoIterator<Item = Workload>,
) -> Result<Experiment, Error> {
    let mut experiment = experiment.clone();
    // An image that exists has what its workloads need, or says that it has not.
    if experiment.has_images() {
        return Ok(experiment);
    }
    // The options of the file are always added, because otherwise the same file would
    // be built twice.
    let of_file: Vec<Workload> = experiment.workload.iter().map(|entry| entry.name).collect();
    for workload in of_file.into_iter().chain(asked) {
        let Some([name, text, option]) = workload.needs() else {
            continue;
        };
        let patch = cache.folder("patches")?.join(name);
        std::fs::write(&patch, text).map_err(|e| cache.cannot_write(&patch, &e))?;
        experiment.kernel.equip(patch, option);
    }
    if experiment.guests.lock_profile {
        let options = OPTIONS.map(str::to_owned);
        experiment.kernel.options.extend(options);
    }
    Ok(experiment)
}
