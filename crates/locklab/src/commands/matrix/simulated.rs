//! `locklab matrix A B --on MACHINE`: two locks on a modelled machine.

use super::{MatrixArgs, WorkArg, distinct};
use crate::cli::Common;
use crate::comparing::{Comparing, Judged, dry_run};
use crate::output::write_file;
use clap::Args;
use locklab_host::error::Error;
use locklab_host::interrupt;
use locklab_lab::COLUMNS;
use locklab_lab::document::Section;
use locklab_lab::progress::Progress;
use locklab_sim::{Machine, Stop, simulate};
use locklab_simulated::{CellBand, Simulated, Spec, Work, band};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Pairs of each cell, where nothing else was asked for.
const PAIRS: u32 = 14;

/// Options of a simulated machine.
#[derive(Debug, Args)]
pub struct SimulatedArgs {
    /// Virtual CPUs of a simulated virtual machine
    #[arg(long, value_name = "N")]
    pub vcpus: Option<usize>,
    /// Physical CPUs (hardware threads) that a simulated machine uses
    #[arg(long, value_name = "N")]
    pub physical: Option<usize>,
    /// Which CPUs simulated threads get
    #[arg(long, value_name = "WHERE", value_parser = ["compact", "spread", "random", "numbered"])]
    pub placement: Option<String>,
    /// Acquisitions of a simulated run, all threads together [default: until
    /// it is precise]
    #[arg(long, value_name = "N")]
    pub acquisitions: Option<u64>,
    /// Which of the model's assumptions a simulated ratio depends on
    #[arg(long)]
    pub band: bool,
    /// Write a trace of a short simulated run, for Perfetto
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
}

impl SimulatedArgs {
    /// The first of them that was given.
    pub(super) fn given(&self) -> Option<&'static str> {
        let all = [
            (self.vcpus.is_some(), "--vcpus"),
            (self.physical.is_some(), "--physical"),
            (self.placement.is_some(), "--placement"),
            (self.acquisitions.is_some(), "--acquisitions"),
            (self.trace.is_some(), "--trace"),
            (self.band, "--band"),
        ];
        all.into_iter()
            .find_map(|(given, name)| given.then_some(name))
    }
}

/// Runs it.
///
/// # Errors
/// One sentence.
pub(super) fn run(args: &MatrixArgs, common: &Common, on: &str) -> Result<ExitCode, Error> {
    let machine = machine(on, args.modelled.vcpus).map_err(Error::Usage)?;
    let spec = spec(args, &machine)?;
    let interrupt = interrupt::listen()?;
    let comparing = &args.comparing;
    let mut instrument = Simulated::new(spec.clone(), machine.clone(), workers(), &interrupt)
        .map_err(Error::Usage)?;
    let (pairs, delta) = (comparing.pairs(PAIRS)?, comparing.delta(1.0)?);
    let experiment = instrument.experiment(pairs, common.seed, delta, comparing.aa);
    if common.dry_run {
        return dry_run(&experiment, &instrument, common);
    }
    if let Some(path) = &args.modelled.trace {
        trace(&spec, &machine, common.seed, path)?;
    }
    let comparing = Comparing {
        args: comparing,
        common,
        interrupt: &interrupt,
        time_limit: None,
        file: None,
    };
    let mut judged = comparing.measure(&mut instrument, experiment)?;
    if args.modelled.band {
        let progress = Progress::new(1, "simulations", common.quiet);
        let bands = band(&spec, &machine, common.seed, workers(), |done, of| {
            progress.set(done as u64, of as u64, "band");
        });
        drop(progress);
        add_band(
            &mut judged,
            &bands.map_err(|e| Error::Failed(e.to_string()))?,
        );
    }
    comparing.present(judged)
}

/// A machine by its name or file, with as many virtual CPUs as asked.
fn machine(name: &str, vcpus: Option<usize>) -> Result<Machine, String> {
    let machine = Machine::named(name).map_err(|e| e.to_string())?;
    match vcpus {
        None => Ok(machine),
        Some(_) if machine.get("vm.vcpus") == 0.0 => Err(format!(
            "{} is no virtual machine; --vcpus is for those, such as xeon-8380-vm",
            machine.name
        )),
        Some(vcpus) => machine.with("vm.vcpus", vcpus as f64),
    }
}

fn spec(args: &MatrixArgs, machine: &Machine) -> Result<Spec, Error> {
    let cpus = machine.cpus();
    let (critical, non_critical) = args.lengths()?;
    let threads = match (&args.threads, args.modelled.vcpus) {
        (Some(threads), _) => distinct(&threads.0),
        (None, Some(vcpus)) => vec![vcpus],
        (None, None) => std::iter::successors(Some(1), |n| Some(n * 2))
            .take_while(|n| *n < cpus)
            .chain([cpus])
            .collect(),
    };
    Ok(Spec {
        baseline: args.baseline.clone(),
        experiment: args.experiment().to_owned(),
        threads,
        critical,
        non_critical,
        work: match args.workload {
            WorkArg::Units => Work::Units,
            WorkArg::Fstat => Work::Fstat,
        },
        latency: args.latency,
        acquisitions: args.modelled.acquisitions,
        placement: args.modelled.placement.clone(),
        physical: args.modelled.physical,
    })
}

/// Threads to simulate on. The results do not depend on it.
pub(crate) fn workers() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// A short run of the experiment's lock on most threads.
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

/// Which assumptions matter.
fn add_band(judged: &mut Judged, bands: &[CellBand]) {
    let head = "non-crit threads crit   low  high  lowest with, highest with";
    let mut lines = vec![head.to_owned()];
    for cell in bands {
        let figures = format!(
            "{:8} {:7} {:4} {:5.2} {:5.2}  ",
            cell.non_critical, cell.threads, cell.critical, cell.low, cell.high,
        );
        let hanging = " ".repeat(figures.len());
        let options = textwrap::Options::new(COLUMNS)
            .initial_indent(&figures)
            .subsequent_indent(&hanging);
        let ends = format!("{}, {}", cell.low_at, cell.high_at);
        lines.extend(
            textwrap::wrap(&ends, options)
                .iter()
                .map(ToString::to_string),
        );
    }
    let title = "Which assumption matters: the ratio with one at a time changed, one seed";
    judged
        .document
        .push(Section::new(title).preformatted(lines.join("\n")));
    judged.document.data.insert("band".into(), json!(bands));
}
