//! Makes of arguments and an experiment file two sides of programs, built and ready.

use super::options::{CompareArgs, Named, ProgramOptions};
use crate::arguments::{Common, StoreArgs};
use crate::comparison::{Comparison, Options, Planned};
use crate::output::{FileFormat, check_writable};
use locklab_harness::backend::Backend as _;
use locklab_harness::experiment::Design;
use locklab_harness::store::hash_of;
use locklab_host::environment::Environment;
use locklab_host::error::Error;
use locklab_host::interrupt;
use locklab_host::machine::Machine;
use locklab_host::message;
use locklab_host::topology::Topology;
use locklab_judge::Family;
use locklab_programs::counters::Counters;
use locklab_programs::launcher::Launcher;
use locklab_programs::prepared::Prepared;
use locklab_programs::{Programs, Settings, Spec, build};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::TempDir;

/// The number of pairs, unless another was given.
const PAIRS: u32 = 20;

/// A comparison of programs, before anything is built or changed.
pub(super) struct PlannedPrograms<'a> {
    programs: &'a ProgramOptions,
    /// The folder of the runs' logs, if it was named.
    logs: Option<PathBuf>,
    spec: Spec,
    design: Design,
    topology: Topology,
    /// The folder of the store, if it is in one.
    beside: Option<PathBuf>,
    options: Options<'a>,
}

/// Describes what was made for the runs of a comparison, and ends with them.
#[derive(Default)]
struct Made {
    /// Settings of the machine that reduce noise.
    prepared: Option<Prepared>,
    /// The folder of the builds, if the store is in memory.
    builds: Option<TempDir>,
}

/// Returns the comparison of programs that the arguments ask for.
///
/// # Errors
/// [`Error::Usage`] if a file, an option, a workload, a lock or a program is
/// wrong or missing.
pub(super) fn planned<'a>(
    args: &'a CompareArgs,
    common: &'a Common,
) -> Result<PlannedPrograms<'a>, Error> {
    args.comparing.check(common)?;
    let topology = Topology::read();
    let set = &args.comparing.set;
    let (path, commands) = match args.named()? {
        Named::Nothing => (None, Vec::new()),
        Named::File(path) => (Some(path), Vec::new()),
        Named::Commands(commands) => (None, commands),
    };
    let file = match path {
        Some(path) => Settings::read(path, set)?,
        None => Settings::parse_with("kind = 'compare'", set)?,
    };
    let programs = &args.programs;
    let settings = programs.settings(args, &commands, &file)?;
    let spec = settings.spec();
    spec.check(&topology)?;
    let design = settings
        .design
        .design(PAIRS, Family::Holm, args.comparing.aa)?;
    if let Some(plot) = &programs.plot {
        check_writable(plot, FileFormat::Picture, common.force)?;
    }
    let mut options = Options::new(&args.comparing, common, &interrupt::listen()?);
    options.file = path.map(|path| path.display().to_string());
    options.plot = programs.plot.as_deref();
    Ok(PlannedPrograms {
        programs,
        logs: settings.logs,
        spec,
        design,
        topology,
        beside: beside_store(&args.comparing.store)?,
        options,
    })
}

impl<'a> Planned<'a> for PlannedPrograms<'a> {
    fn would_run(&self, json: bool) -> Result<String, Error> {
        let comparison = self.comparison(self.spec.clone(), Made::default())?;
        comparison.would_run(json)
    }

    /// Changes the machine's settings and builds both sides, if that was asked.
    fn prepare(self) -> Result<Comparison<'a>, Error> {
        let mut made = Made {
            prepared: self.programs.prepare.then(|| Prepared::new(Path::new("/"))),
            builds: None,
        };
        let mut spec = self.spec.clone();
        if let Some(template) = &self.programs.build {
            if !self.options.common.quiet {
                message::print("Building both sides.");
            }
            let folder = match &self.beside {
                Some(folder) => {
                    let here = std::env::current_dir().ok();
                    folder.join("builds").join(hash_of(&(template, here)))
                }
                None => {
                    let folder = tempfile::tempdir()
                        .map_err(|e| Error::Failed(format!("no temporary folder: {e}")))?;
                    made.builds.insert(folder).path().to_path_buf()
                }
            };
            build::both(template, &mut spec, &folder, &self.options.interrupt)?;
        }
        self.comparison(spec, made)
    }
}

impl<'a> PlannedPrograms<'a> {
    fn comparison(&self, spec: Spec, made: Made) -> Result<Comparison<'a>, Error> {
        let notes = made.prepared.iter().flat_map(|p| p.notes.clone());
        let notes: Vec<String> = notes.collect();
        let backend = self.backend(spec)?.ending(made.prepared, made.builds);
        let mut experiment = backend.experiment(self.design.clone());
        if let Some(template) = &self.programs.build {
            let built = ("Each built by".to_owned(), template.clone());
            experiment.facts.insert(0, built);
        }
        experiment.caveats.extend(notes);
        Ok(Comparison {
            backend: Box::new(backend),
            experiment,
            options: self.options.clone(),
            note: None,
        })
    }

    fn backend(&self, spec: Spec) -> Result<Programs, Error> {
        let (order, limit) = (&self.topology.order, spec.run_limit.duration());
        let interrupt = Arc::clone(&self.options.interrupt);
        let mut launcher = Launcher::new(order.clone(), limit, interrupt)?;
        launcher.cpus.clone_from(&spec.pin);
        launcher.counters = Counters::probe(spec.counters)?;
        let logs = &self.logs;
        if let Some(folder) = logs {
            let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.clone());
            launcher.keep_logs(folder)?;
        }
        let environment = Environment::read();
        let machine = Machine::new(&environment, order);
        let backend = Programs::new(spec, environment, machine, launcher)?;
        Ok(match &self.beside {
            Some(folder) if logs.is_none() => backend.with_logs_below(folder.join("logs")),
            _ => backend,
        })
    }
}

/// Returns the folder of the store, if it is in one.
fn beside_store(args: &StoreArgs) -> Result<Option<PathBuf>, Error> {
    let path = args.path()?;
    if path == Path::new(":memory:") {
        return Ok(None);
    }
    let path = std::path::absolute(&path).unwrap_or(path);
    Ok(path.parent().map(Path::to_path_buf))
}
