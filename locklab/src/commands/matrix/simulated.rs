//! `locklab matrix A B --on MACHINE`: two locks on a modelled machine.

use super::settings::MatrixSettings;
use crate::arguments::{Common, ComparingArgs, workers};
use crate::comparison::{Comparison, Options};
use crate::output::{FileFormat, check_writable};
use locklab_harness::backend::Backend as _;
use locklab_host::error::Error;
use locklab_host::interrupt;
use locklab_judge::Family;
use locklab_published::modelled::{Extras, Simulated, with_vcpus};
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
    let (locks, extras) = (&settings.locks, &settings.extras);
    if let Some(path) = &extras.perfetto {
        check_writable(path, FileFormat::Timeline, common.force)?;
    }
    let machine = with_vcpus(Machine::named(on)?, locks.modelled.vcpus)?;
    let cells = settings.cells(machine.cpus(), || locks.threads_on(&machine))?;
    let names = [settings.baseline.as_str(), settings.experiment(args.aa)];
    let spec = locks.spec_modelled(names, cells);
    let design = locks
        .design
        .without_retry("is for what is measured, and this is simulated; give more --pairs")?
        .design(PAIRS, Family::FalseDiscovery, args.aa)?;
    let interrupt = interrupt::listen()?;
    let backend = Simulated::new(spec, machine, workers(), Arc::clone(&interrupt))?.with(Extras {
        band: extras.band,
        perfetto: extras.perfetto.clone(),
        seed: design.seed,
        quiet: common.quiet,
    });
    Ok(Comparison {
        experiment: backend.experiment(design),
        backend: Box::new(backend),
        options: Options::new(args, common, &interrupt),
        note: None,
    })
}
