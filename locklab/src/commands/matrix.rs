//! `locklab matrix`: its arguments, the choice of this machine or a modelled one, and the
//! comparison on this machine.

mod preset;
pub(crate) mod settings;
mod simulated;

use crate::arguments::{Common, ComparingArgs, check_shared};
use crate::comparison::{Comparison, Options};
use crate::own;
use clap::Args;
use locklab_harness::file;
use locklab_harness::settings::{DesignSettings, Limit, over};
use locklab_host::error::Error;
use locklab_host::interrupt;
use locklab_host::topology::ranges;
use locklab_judge::Family;
use locklab_native::{Native, Plan, default_threads, pairs_for, resolution, subject};
use settings::{Kind, LockSettings, MatrixSettings, SimulatedExtras};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// The time of all cells together, unless another was given.
const TIME: Duration = Duration::from_secs(60);

/// `locklab matrix`.
///
/// Without options it takes about a minute.
#[derive(Debug, Args)]
pub struct MatrixArgs {
    /// The lock to compare with
    pub baseline: String,
    /// The lock that is compared with it; optional with --aa
    #[arg(required_unless_present = "aa")]
    pub experiment: Option<String>,
    #[command(flatten)]
    pub(crate) locks: LockSettings,
    #[command(flatten)]
    pub(crate) extras: SimulatedExtras,
    #[command(flatten)]
    pub(crate) comparing: ComparingArgs,
}

impl MatrixArgs {
    /// Returns the settings of the command line.
    ///
    /// # Errors
    /// [`Error::Usage`] if one of `--set` is none.
    fn settings(&self) -> Result<MatrixSettings, Error> {
        Ok(MatrixSettings {
            kind: Kind::default(),
            baseline: self.baseline.clone(),
            experiment: self.experiment.clone(),
            locks: self.locks.with_set(&self.comparing.set)?,
            extras: self.extras.clone(),
            trace: None,
        })
    }
}

/// Returns the settings of an experiment file; the design of the command line takes
/// precedence.
///
/// # Errors
/// [`Error::Usage`] if the file cannot be read or is invalid.
pub(super) fn settings(
    path: &Path,
    design: &DesignSettings,
    comparing: &ComparingArgs,
) -> Result<MatrixSettings, Error> {
    let mut settings: MatrixSettings = file::settings(path, &comparing.set)?;
    settings.locks.design = over(design, &settings.locks.design)?;
    if settings.experiment.is_none() && !comparing.aa {
        return Err(Error::Usage(format!(
            "{} has no experiment, the lock that is compared with {}; name one, or give --aa",
            path.display(),
            settings.baseline
        )));
    }
    Ok(settings)
}

/// Returns the comparison that the command line asks for.
///
/// # Errors
/// The errors of `comparison`.
pub fn asked<'a>(args: &'a MatrixArgs, common: &'a Common) -> Result<Comparison<'a>, Error> {
    comparison(&args.settings()?, &args.comparing, common)
}

/// Returns the comparison of two locks, measured or simulated.
///
/// # Errors
/// [`Error::Usage`] if a lock, a machine or a setting is wrong or does not
/// apply, [`Error::Failed`] if the machine fails.
pub(super) fn comparison<'a>(
    settings: &MatrixSettings,
    args: &'a ComparingArgs,
    common: &'a Common,
) -> Result<Comparison<'a>, Error> {
    args.check(common)?;
    let settings = &MatrixSettings {
        locks: settings.locks.with_preset(false)?,
        ..settings.clone()
    };
    let machine = settings.machine()?;
    let locks = [&settings.baseline]
        .into_iter()
        .chain(&settings.experiment)
        .map(String::as_str);
    own::register(locks.clone(), &settings.locks.own, machine.is_none())?;
    let mix = settings.locks.turns.mix();
    if mix.reads > 0 {
        let subjects = locks.map(|name| own::subject(name, &settings.locks.own));
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
    let cpus = settings.locks.cpus(native.topology.order.len());
    let cells = settings.cells(cpus, || default_threads(cpus))?;
    let locks = [settings.baseline.as_str(), settings.experiment(args.aa)];
    let spec = settings.locks.spec_here(locks, cells, TIME);
    let plan = Plan::new(spec, &native)?;
    let pairs = pairs_for(plan.cells.len());
    let design = settings
        .locks
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
    let (backend, mut experiment) = native.backend(plan, design, Arc::clone(&interrupt))?;
    if let Some(prediction) = prediction {
        prediction.note(&mut experiment);
    }
    let mut options = Options::new(args, common, &interrupt);
    options.time_limit = settings.locks.here.time_limit.map(Limit::duration);
    Ok(Comparison {
        backend: Box::new(backend),
        experiment,
        options,
        note: only.map(|cpu| format!("Only CPU {cpu} may be used: threads take turns on it.")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Cli, Command};
    use clap::Parser;

    fn spec_of(arguments: &str, cpus: usize) -> locklab_native::Spec {
        let words = ["locklab", "matrix"].into_iter();
        let cli = Cli::try_parse_from(words.chain(arguments.split(' '))).unwrap();
        let Command::Matrix(args) = cli.command else {
            unreachable!("it says matrix")
        };
        let settings = args.settings().unwrap();
        let cpus = settings.locks.cpus(cpus);
        let cells = settings.cells(cpus, || default_threads(cpus)).unwrap();
        settings.locks.spec_here(["ticket", "mcs"], cells, TIME)
    }

    #[test]
    fn lists_lose_their_repetitions() {
        let spec = spec_of(
            "ticket mcs --threads 2,1,2 --critical 3,3 --set layout=2",
            2,
        );
        assert_eq!(
            (spec.cells.threads, spec.cells.critical),
            (vec![2, 1], vec![3])
        );
        assert_eq!(spec.layout, Some(2));
        let spec = spec_of("ticket mcs --pin 1,0 --unit ns", 8);
        assert_eq!(spec.pin, Some(vec![1, 0]));
        assert_eq!(spec.cells.threads, [1, 2]);
        assert_eq!(spec.cells.unit, locklab_workload::Unit::Nanoseconds);
    }
}
