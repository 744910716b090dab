//! From arguments and an experiment file to two sides of programs, measured
//! and reported.

use super::options::{CompareArgs, ProgramOptions};
use crate::cli::{Common, StoreArgs};
use crate::comparing::Comparing;
use crate::output::{check_writable, store_path, write_file};
use locklab_document::render;
use locklab_host::environment::Environment;
use locklab_host::error::Error;
use locklab_host::interrupt;
use locklab_host::machine::Machine;
use locklab_host::message;
use locklab_host::topology::Topology;
use locklab_judge::Family;
use locklab_lab::instrument::Instrument as _;
use locklab_lab::store::hash_of;
use locklab_programs::counters::Counters;
use locklab_programs::launcher::Launcher;
use locklab_programs::prepared::Prepared;
use locklab_programs::{Programs, Settings, Spec, build};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The number of pairs, unless another was given.
const PAIRS: u32 = 20;

/// Runs a comparison of programs.
///
/// # Errors
/// [`Error::Usage`] if a file, an option, a workload, a lock or a program is
/// wrong or missing; [`Error::Failed`] if a build or the store fails, or
/// nothing could be measured; [`Error::Interrupted`] after Ctrl-C. Samples that
/// were measured are stored.
pub(super) fn run(args: &CompareArgs, common: &Common) -> Result<ExitCode, Error> {
    let topology = Topology::read();
    let file = match &args.file {
        Some(path) => Settings::read(path)?,
        None => Settings::default(),
    };
    let options = &args.programs;
    let settings = options.settings(&args.settings, &args.command, args.comparing.aa, &file)?;
    let mut spec = settings.spec();
    spec.check(&topology)?;
    let design = settings
        .design
        .design(PAIRS, Family::Holm, args.comparing.aa)?;
    if let Some(plot) = &options.plot {
        check_writable(plot)?;
    }
    let interrupt = interrupt::listen()?;
    let prepared = (options.prepare && !common.dry_run).then(|| Prepared::new(Path::new("/")));
    let beside = beside_store(&args.comparing.store)?;
    // Lives until the end of the runs, if the store is in memory.
    let temporary;
    if let Some(template) = options.build.as_ref().filter(|_| !common.dry_run) {
        if !common.quiet {
            message::print("Building both sides.");
        }
        let folder = match &beside {
            Some(folder) => {
                let here = std::env::current_dir().ok();
                folder.join("builds").join(hash_of(&(template, here)))
            }
            None => {
                temporary = tempfile::tempdir()
                    .map_err(|e| Error::Failed(format!("no temporary folder: {e}")))?;
                temporary.path().to_path_buf()
            }
        };
        build::both(template, &mut spec, &folder, &interrupt)?;
    }
    let mut instrument = instrument(options, spec, &topology, beside, &interrupt)?;
    let mut experiment = instrument.experiment(design);
    if let Some(template) = &options.build {
        let built = ("Each built by".to_owned(), template.clone());
        experiment.facts.insert(0, built);
    }
    let notes = prepared.iter().flat_map(|p| p.notes.clone());
    experiment.caveats.extend(notes);
    let comparing = Comparing {
        args: &args.comparing,
        common,
        interrupt: &interrupt,
        time_limit: None,
        file: args.file.as_ref().map(|path| path.display().to_string()),
    };
    if common.dry_run {
        return comparing.carry_out(&mut instrument, experiment);
    }
    let judged = comparing.measure(&mut instrument, experiment)?;
    // The settings are restored before the report, because a pager may block
    // it.
    drop(prepared);
    if let Some(logs) = instrument.kept_logs().filter(|_| !common.quiet) {
        message::print(format_args!("Logs: {}", logs.display()));
    }
    drop(instrument);
    if let Some(path) = &options.plot {
        let svg = render::svg(&judged.document).ok_or_else(|| {
            Error::Failed("--plot shows workloads of call-sites, and none was measured".into())
        })?;
        write_file(path, &svg)?;
    }
    comparing.present(judged)
}

fn instrument(
    args: &ProgramOptions,
    spec: Spec,
    topology: &Topology,
    beside: Option<PathBuf>,
    interrupt: &Arc<AtomicBool>,
) -> Result<Programs, Error> {
    let limit = spec.run_limit.duration();
    let mut launcher = Launcher::new(topology.order.clone(), limit, Arc::clone(interrupt))?;
    launcher.cpus.clone_from(&spec.pin);
    launcher.counters =
        Counters::probe(spec.counters).map_err(locklab_programs::error::Error::from)?;
    if let Some(folder) = &args.logs {
        let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.clone());
        launcher.keep_logs(folder)?;
    }
    let environment = Environment::read();
    let machine = Machine::new(&environment, &topology.order);
    let instrument = Programs::new(spec, environment, machine, launcher)?;
    Ok(match beside {
        Some(folder) if args.logs.is_none() => instrument.with_logs_below(folder.join("logs")),
        _ => instrument,
    })
}

/// The folder of the store, if it is in one.
fn beside_store(args: &StoreArgs) -> Result<Option<PathBuf>, Error> {
    let path = store_path(args)?;
    if path == Path::new(":memory:") {
        return Ok(None);
    }
    let path = std::path::absolute(&path).unwrap_or(path);
    Ok(path.parent().map(Path::to_path_buf))
}
