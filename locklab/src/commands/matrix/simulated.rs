//! `locklab matrix A B --on MACHINE`: two locks on a modelled machine.

use super::settings::MatrixSettings;
use crate::arguments::{Common, ComparingArgs, workers};
use crate::comparison::{Comparison, Options};
use crate::output::check_writable;
use locklab_host::error::Error;
use locklab_host::interrupt;
use locklab_judge::Family;
use locklab_lab::instrument::Instrument as _;
use locklab_published::modelled::{Extras, Simulated, Spec, default_threads, with_vcpus};
use locklab_sim::Machine;
use std::sync::Arc;

/// The default number of pairs of each cell.
const PAIRS: u32 = 14;

/// Returns the comparison of two locks on the modelled machine `on`.
///
/// # Errors
/// [`Error::Usage`] if a lock or a machine does not exist, or the machine
/// cannot do what is asked.
pub(super) fn comparison<'a>(
    settings: &MatrixSettings,
    args: &'a ComparingArgs,
    common: &'a Common,
    on: &str,
) -> Result<Comparison<'a>, Error> {
    let (modelled, extras) = (&settings.modelled, &settings.extras);
    if let Some(path) = &extras.trace {
        check_writable(path)?;
    }
    let machine = with_vcpus(Machine::named(on)?, modelled.vcpus)?;
    let spec = spec(settings, args.aa, &machine)?;
    let design = settings
        .design
        .without_retry("is for what is measured, and this is simulated; give more --pairs")?
        .design(PAIRS, Family::FalseDiscovery, args.aa)?;
    let interrupt = interrupt::listen()?;
    let instrument =
        Simulated::new(spec, machine, workers(), Arc::clone(&interrupt))?.with(Extras {
            band: extras.band,
            trace: extras.trace.clone(),
            seed: design.seed,
            quiet: common.quiet,
        });
    Ok(Comparison {
        experiment: instrument.experiment(design),
        instrument: Box::new(instrument),
        options: Options::new(args, common, &interrupt),
        note: None,
    })
}

fn spec(settings: &MatrixSettings, aa: bool, machine: &Machine) -> Result<Spec, Error> {
    let modelled = &settings.modelled;
    let threads = || {
        modelled
            .vcpus
            .map_or_else(|| default_threads(machine), |n| vec![n])
    };
    Ok(Spec {
        acquisitions: modelled.acquisitions,
        operations: modelled.operations,
        placement: modelled.placement,
        physical: modelled.physical,
        ..Spec::new(
            &settings.baseline,
            settings.experiment(aa),
            settings.cells(threads)?,
        )
    })
}
