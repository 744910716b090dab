//! `locklab matrix A B --on MACHINE`: two locks on a modelled machine.

use super::settings::MatrixSettings;
use crate::cli::Common;
use crate::comparing::{Comparing, ComparingArgs, dry_run};
use crate::output::write_file;
use locklab_host::error::Error;
use locklab_host::interrupt;
use locklab_judge::Family;
use locklab_lab::instrument::Instrument as _;
use locklab_lab::progress::Progress;
use locklab_sim::{Machine, Stop, simulate};
use locklab_sim_instrument::{Simulated, Spec, band, band_section, default_threads, with_vcpus};
use serde_json::json;
use std::path::Path;
use std::process::ExitCode;

/// The default number of pairs of each cell.
const PAIRS: u32 = 14;

/// Simulates a matrix.
///
/// # Errors
/// [`Error::Usage`] if a lock or a machine does not exist, or the machine
/// cannot do what is asked; [`Error::Failed`] if a lock does not work in the
/// simulator or the store fails, [`Error::Interrupted`] after Ctrl-C.
pub(super) fn run(
    settings: &MatrixSettings,
    args: &ComparingArgs,
    common: &Common,
    on: &str,
) -> Result<ExitCode, Error> {
    let modelled = &settings.modelled;
    let machine = Machine::named(on)
        .map_err(|e| e.to_string())
        .and_then(|machine| with_vcpus(machine, modelled.vcpus))
        .map_err(Error::Usage)?;
    let spec = spec(settings, args.aa, &machine)?;
    let interrupt = interrupt::listen()?;
    let mut instrument = Simulated::new(spec.clone(), machine.clone(), workers(), &interrupt)
        .map_err(Error::Usage)?;
    let design = settings
        .design
        .design(PAIRS, Family::FalseDiscovery, args.aa)?;
    let seed = design.seed;
    let experiment = instrument.experiment(design);
    if common.dry_run {
        return dry_run(&experiment, &instrument, common);
    }
    if let Some(path) = &settings.extras.trace {
        trace(&spec, &machine, seed, path)?;
    }
    let comparing = Comparing {
        args,
        common,
        interrupt: &interrupt,
        time_limit: None,
        file: None,
    };
    let mut judged = comparing.measure(&mut instrument, experiment)?;
    if settings.extras.band {
        let progress = Progress::new(1, "simulations", common.quiet);
        let bands = band(&spec, &machine, seed, workers(), |done, of| {
            progress.set(done as u64, of as u64, "band");
        });
        drop(progress);
        let bands = bands.map_err(|e| Error::Failed(e.to_string()))?;
        judged.document.push(band_section(&bands));
        judged.document.data.insert("band".into(), json!(bands));
    }
    comparing.present(judged)
}

fn spec(settings: &MatrixSettings, aa: bool, machine: &Machine) -> Result<Spec, Error> {
    let MatrixSettings {
        cells, modelled, ..
    } = settings;
    let (critical, non_critical) = cells.lengths()?;
    let threads = match (cells.threads(), modelled.vcpus) {
        (Some(threads), _) => threads,
        (None, Some(vcpus)) => vec![vcpus],
        (None, None) => default_threads(machine),
    };
    Ok(Spec {
        baseline: settings.baseline.clone(),
        experiment: settings.experiment(aa).to_owned(),
        threads,
        critical,
        non_critical,
        unit: settings.turns.unit(),
        locks: settings.turns.locks(),
        mix: settings.turns.mix(),
        work: cells.workload.unwrap_or_default(),
        latency: cells.latency,
        acquisitions: modelled.acquisitions,
        placement: modelled.placement,
        physical: modelled.physical,
    })
}

/// The number of threads to simulate on. The results do not depend on it.
pub(crate) fn workers() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Writes the trace of a short run of the experiment's lock with the most
/// threads.
fn trace(spec: &Spec, machine: &Machine, seed: u64, path: &Path) -> Result<(), Error> {
    let Some(place) = spec.places().into_iter().max_by_key(|place| place[0]) else {
        return Ok(());
    };
    let mut scenario = spec.scenario(machine, place, &spec.experiment, seed);
    scenario.stop = Stop::Acquisitions(50 + 4 * place[0]);
    scenario.trace = true;
    let simulation = simulate(&scenario).map_err(|e| Error::Failed(e.to_string()))?;
    write_file(path, &simulation.trace.unwrap_or_default())
}
