//! `locklab matrix`: its arguments, the choice of this machine or a modelled one, and the
//! comparison on this machine.

pub(crate) mod settings;
mod simulated;

use crate::arguments::{Common, ComparingArgs, check_shared};
use crate::comparison::{Comparison, Options};
use crate::own;
use clap::Args;
use locklab_host::error::Error;
use locklab_host::interrupt;
use locklab_host::topology::ranges;
use locklab_judge::Family;
use locklab_lab::file;
use locklab_lab::settings::{DesignSettings, Limit, over};
use locklab_native::{Native, Plan, Spec, default_threads, pairs_for, resolution, subject};
use settings::MatrixSettings;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// `locklab matrix`.
///
/// Without options it takes about a minute.
#[derive(Debug, Args)]
pub struct MatrixArgs {
    #[command(flatten)]
    #[allow(missing_docs, reason = "its options have their own")]
    pub settings: MatrixSettings,
    #[command(flatten)]
    pub(crate) comparing: ComparingArgs,
}

/// Returns the settings of an experiment file; the design of the command line takes
/// precedence.
///
/// # Errors
/// [`Error::Usage`] if the file cannot be read or is invalid.
pub(super) fn settings(
    path: &Path,
    design: &DesignSettings,
    aa: bool,
) -> Result<MatrixSettings, Error> {
    let mut settings: MatrixSettings = file::settings(path)?;
    settings.design = over(design, &settings.design)?;
    if settings.experiment.is_none() && !aa {
        return Err(Error::Usage(format!(
            "{} has no experiment, the lock that is compared with {}; name one, or give --aa",
            path.display(),
            settings.baseline
        )));
    }
    Ok(settings)
}

/// Returns the comparison of two locks, measured or simulated.
///
/// # Errors
/// [`Error::Usage`] if a lock, a machine or a setting is wrong or does not
/// apply, [`Error::Failed`] if the machine fails.
pub fn comparison<'a>(
    settings: &MatrixSettings,
    args: &'a ComparingArgs,
    common: &'a Common,
) -> Result<Comparison<'a>, Error> {
    args.check()?;
    let machine = settings.machine()?;
    let locks = [&settings.baseline]
        .into_iter()
        .chain(&settings.experiment)
        .map(String::as_str);
    own::register(locks.clone(), &settings.own, machine.is_none())?;
    let mix = settings.turns.mix();
    if mix.reads > 0 {
        let subjects = locks.map(|name| own::subject(name, &settings.own));
        let subjects: Vec<_> = subjects.collect::<Result<_, _>>()?;
        check_shared(&mix, subjects.iter())?;
    }
    match machine {
        Some(machine) => simulated::comparison(settings, args, common, machine),
        None => native_comparison(settings, args, common),
    }
}

/// Returns the comparison of two locks on this machine.
///
/// # Errors
/// [`Error::Usage`] if a lock does not exist or an option cannot be carried
/// out, [`Error::Failed`] if the machine fails.
fn native_comparison<'a>(
    settings: &MatrixSettings,
    args: &'a ComparingArgs,
    common: &'a Common,
) -> Result<Comparison<'a>, Error> {
    // Names are checked first, so that a typo is reported before the
    // calibration.
    for name in std::iter::once(&settings.baseline).chain(&settings.experiment) {
        subject::find(name)?;
    }
    let native = Native::probe();
    let spec = spec(settings, args.aa, native.topology.order.len())?;
    let plan = Plan::new(spec, &native)?;
    let pairs = pairs_for(plan.cells.len());
    let design = settings
        .design
        .without_retry("is for programs and kernels: a matrix goes on with open cells until its --time is used up")?
        .design(pairs, Family::FalseDiscovery, args.aa)?;
    let only = (plan.cpus.len() == 1).then(|| ranges(&plan.cpus));
    let interrupt = interrupt::listen()?;
    // Without a store there is no resolution either.
    let prediction = args
        .store
        .path()
        .ok()
        .and_then(|store| resolution::read(&resolution::path(&store)?))
        .and_then(|resolution| resolution.predict(&plan, &design, &native.machine));
    let (instrument, mut experiment) = native.instrument(plan, design, Arc::clone(&interrupt))?;
    if let Some(prediction) = prediction {
        prediction.note(&mut experiment);
    }
    let mut options = Options::new(args, common, &interrupt);
    options.time_limit = settings.here.time_limit.map(Limit::duration);
    Ok(Comparison {
        instrument: Box::new(instrument),
        experiment,
        options,
        note: only.map(|cpu| format!("Only CPU {cpu} may be used: threads take turns on it.")),
    })
}

/// Returns the specification of the settings, with the defaults of a machine of `cpus`
/// CPUs.
fn spec(settings: &MatrixSettings, aa: bool, cpus: usize) -> Result<Spec, Error> {
    let here = &settings.here;
    let pin = here.pin.as_ref().map(|cpus| cpus.0.clone());
    let cpus = pin.as_ref().map_or(cpus, Vec::len).max(1);
    Ok(Spec {
        cells: settings.cells(|| default_threads(cpus))?,
        pin,
        processes: here.processes,
        slice: here.slice_us.map(|us| Duration::from_micros(us.into())),
        layout: here.layout,
        time: Duration::from_secs(here.time.unwrap_or(60).into()),
        ..Spec::new(&settings.baseline, settings.experiment(aa))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Cli, Command};
    use clap::Parser;

    fn spec_of(arguments: &str, cpus: usize) -> Spec {
        let words = ["locklab", "matrix"].into_iter();
        let cli = Cli::try_parse_from(words.chain(arguments.split(' '))).unwrap();
        match cli.command {
            Command::Matrix(args) => spec(&args.settings, false, cpus).unwrap(),
            _ => unreachable!("it says matrix"),
        }
    }

    #[test]
    fn lists_lose_their_repetitions() {
        let spec = spec_of("ticket mcs --threads 2,1,2 --critical 3,3", 2);
        assert_eq!(
            (spec.cells.threads, spec.cells.critical),
            (vec![2, 1], vec![3])
        );
        let spec = spec_of("ticket mcs --pin 1,0 --unit ns", 8);
        assert_eq!(spec.pin, Some(vec![1, 0]));
        assert_eq!(spec.cells.threads, [1, 2]);
        assert_eq!(spec.cells.unit, locklab_workload::Unit::Nanoseconds);
    }
}
