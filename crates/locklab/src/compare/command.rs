//! `locklab compare`: from arguments and a file to a report.
//!
//! Whatever happens to a workload, to the store or by Ctrl-C, what was
//! measured is reported.

use super::arguments::CompareArgs;
use super::asked::spec;
use super::experiment::EXAMPLE;
use super::lab::{Lab, process_metrics};
use super::outcome::{footprint, render};
use super::progress::Bar;
use super::records::Recorder;
use super::session::Session;
use super::{Measured, Measurement, Spec, Subject, build, verdicts};
use crate::cli::{Common, FailOn};
use crate::counters::Counters;
use crate::counters::settings::Prepared;
use crate::matrix_command::{command_line, key, open_store, print};
use crate::report::{Context, compare as report};
use crate::store::Store;
use crate::workloads::{Asked, Workload};
use locklab_host::environment::Environment;
use locklab_host::error::Error;
use locklab_host::interrupt;
use locklab_host::machine::Machine;
use locklab_host::topology::Topology;
use locklab_judge::{Validity, bias_band};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

/// Runs it.
///
/// # Errors
/// One sentence.
pub(crate) fn run(args: &CompareArgs, common: &Common) -> Result<ExitCode, Error> {
    if args.example {
        return print(EXAMPLE);
    }
    let topology = Topology::read();
    let spec = spec(args, common, &topology).map_err(Error::Usage)?;
    let workloads = spec.workloads.iter().map(Asked::make);
    let workloads = workloads
        .collect::<Result<Vec<_>, _>>()
        .map_err(Error::Usage)?;
    if common.dry_run {
        return dry_run(&spec, &workloads, args.build.as_deref(), common);
    }
    measure(args, common, spec, workloads, &topology)
}

fn dry_run(
    spec: &Spec,
    workloads: &[Box<dyn Workload>],
    build: Option<&str>,
    common: &Common,
) -> Result<ExitCode, Error> {
    if common.json {
        let document = serde_json::json!({ "schema": 1, "spec": spec });
        return print(&format!("{document:#}\n"));
    }
    let mut text = format!(
        "Would run {} against {}: {} workloads x {} pairs.\n",
        spec.experiment.label(),
        spec.baseline.label(),
        workloads.len(),
        spec.pairs
    );
    if let Some(template) = build {
        text += &format!("Would build each by: {template}\n");
    }
    for (asked, workload) in spec.workloads.iter().zip(workloads) {
        text += &format!("{}: {}\n", asked.title(), workload.about());
    }
    print(&text)
}

/// A workload before its first run.
fn empty(asked: &Asked, workload: &dyn Workload, lab: &Lab) -> Measurement {
    let mut metrics = workload.metrics();
    for metric in lab.counters.metrics().into_iter().chain(process_metrics()) {
        if metrics.iter().all(|m| m.name != metric.name) {
            metrics.push(metric);
        }
    }
    Measurement {
        name: asked.title(),
        about: workload.about(),
        setup: workload.setup(lab),
        metrics,
        bias_band: None,
        pairs: Vec::new(),
        stopped: None,
    }
}

fn measure(
    args: &CompareArgs,
    common: &Common,
    mut spec: Spec,
    mut workloads: Vec<Box<dyn Workload>>,
    topology: &Topology,
) -> Result<ExitCode, Error> {
    let note = |text: &str| {
        if !common.quiet {
            eprintln!("{text}");
        }
    };
    let interrupt = interrupt::listen()?;
    let prepared = args.prepare.then(|| Prepared::new(Path::new("/")));
    let counters = Counters::probe(spec.counters).map_err(Error::Usage)?;
    let environment = Environment::read();
    let machine = Machine::new(&environment, &topology.order);
    let mut caveats = environment.caveats();
    if environment.is_virtual() {
        // The first is about the cells of a matrix, whose distances are
        // measured.
        caveats[0] = "A virtual machine: the host moves its CPUs and runs others on them. Pairs \
                      share most of that luck; how far apart CPUs were is not measured here."
            .into();
    }
    caveats.extend(prepared.iter().flat_map(|p| p.notes.clone()));
    caveats.extend(counters.why.clone());
    caveats.extend(lock_caveats(&spec));

    let store = open_store(common)?;
    let command = command_line();
    let kept;
    if let Some(template) = &args.build {
        note("Building both sides.");
        let folder = match beside(&store) {
            Some(folder) => folder
                .join("builds")
                .join(key(&(template, std::env::current_dir().ok()))),
            None => {
                kept = tempfile::tempdir()
                    .map_err(|e| Error::Failed(format!("no temporary folder: {e}")))?;
                kept.path().to_path_buf()
            }
        };
        build::both(template, &mut spec, &folder, &interrupt).map_err(Error::Failed)?;
    }
    let question = key(&(&spec, &machine, crate::report::VERSION));
    let unfinished = if args.resume {
        store.unfinished(&question).map_err(Error::Failed)?
    } else {
        None
    };
    let mut measured = Measured {
        machine: machine.name.clone(),
        environment: environment.facts(),
        caveats,
        workloads: Vec::new(),
        interrupted: None,
        spec,
    };
    let (experiment, mut before) = match unfinished {
        Some(id) => (id, store.program_pairs(id).map_err(Error::Failed)?),
        None => {
            if args.resume {
                note("No interrupted comparison of this kind is in the store; starting a new one.");
            }
            let begun = store.begin_comparison(&question, &command, &measured);
            (begun.map_err(Error::Failed)?, HashMap::new())
        }
    };
    let logs = logs(args, &store, experiment);
    let mut lab = Lab::new(
        logs.clone(),
        topology.order.clone(),
        measured.spec.pin.clone(),
        Duration::from_secs_f64(measured.spec.time_limit),
        Arc::clone(&interrupt),
        counters,
    )
    .map_err(Error::Failed)?;
    for (asked, workload) in measured.spec.workloads.iter().zip(&workloads) {
        let mut measurement = empty(asked, workload.as_ref(), &lab);
        measurement.pairs = before.remove(&measurement.name).unwrap_or_default();
        if !measured.spec.aa {
            let setup = setup_key(&measured.spec, asked, &machine);
            measurement.bias_band = store
                .program_band(&setup, &measurement.metrics[0].name)
                .map_err(Error::Failed)?;
        }
        measured.workloads.push(measurement);
    }
    let done: usize = measured.workloads.iter().map(|m| m.pairs.len()).sum();
    if done > 0 {
        note(&format!(
            "Going on with experiment {experiment}: {done} pairs are there."
        ));
    }
    note(&format!(
        "{} workloads x {} pairs. Ctrl-C reports what is there.{}",
        workloads.len(),
        measured.spec.pairs,
        logs.map_or(String::new(), |l| format!(" Logs: {}", l.display()))
    ));
    let mut recorder = Recorder::new(store, experiment);
    let mut bar = Bar::new(common.quiet);
    let interrupted = Session {
        spec: &measured.spec,
        lab: &mut lab,
        recorder: &mut recorder,
        listener: &mut bar,
    }
    .run(&mut workloads, &mut measured.workloads);
    drop(bar);
    for (measurement, workload) in measured.workloads.iter_mut().zip(&workloads) {
        measurement.setup = workload.setup(&lab);
    }
    // Before the report: a reader may take his time.
    drop(prepared);
    drop(workloads);
    if interrupted {
        measured.interrupted = Some("interrupted".into());
    }
    if measured.spec.aa {
        keep_bands(&mut recorder, &measured, &machine);
    }
    recorder.finish(&measured);

    let footprint = footprint(&measured.spec, &mut measured.caveats);
    let context = Context {
        date: String::new(),
        command,
    };
    let worse = render(
        &measured,
        footprint.as_ref(),
        &context,
        common,
        args.html.as_deref(),
    )?;
    if let Some(path) = &args.plot {
        let svg = report::call_sites_svg(&measured).ok_or_else(|| {
            Error::Failed("--plot shows workloads of call-sites, and none was measured".into())
        })?;
        std::fs::write(path, svg)
            .map_err(|e| Error::Failed(format!("cannot write {}: {e}", path.display())))?;
    }
    if let Some(failure) = recorder.failure() {
        return Err(Error::Failed(format!(
            "{failure}; the report above is complete, but samples from then on are not stored"
        )));
    }
    if interrupted {
        return Err(Error::Interrupted(
            "interrupted; what was measured is stored, and the same command with --resume goes on"
                .into(),
        ));
    }
    let missing: Vec<&str> = measured
        .workloads
        .iter()
        .filter(|m| m.stopped.is_some())
        .map(|m| m.name.as_str())
        .collect();
    if !missing.is_empty() {
        return Err(Error::Failed(format!(
            "not complete: {}; the report says why",
            missing.join(", ")
        )));
    }
    if args.fail_on == Some(FailOn::Worse) && worse {
        return Ok(ExitCode::from(3));
    }
    Ok(ExitCode::SUCCESS)
}

/// What a lock under pthread mutexes brings with it.
fn lock_caveats(spec: &Spec) -> Vec<String> {
    let bare = |s: &Subject| s.lock.as_deref().is_none_or(|l| l == "pthread");
    let [b, e] = spec.subjects();
    if bare(b) == bare(e) {
        return Vec::new();
    }
    vec![
        "One side's lock is interposed and the other's is glibc's own: the difference includes \
         the interposer. 'pthread-interposed' on the other side takes that out."
            .into(),
    ]
}

/// The folder of the store, if it is in one.
fn beside(store: &Store) -> Option<PathBuf> {
    if store.path() == Path::new(":memory:") {
        return None;
    }
    let path = std::path::absolute(store.path()).ok()?;
    path.parent().map(Path::to_path_buf)
}

fn logs(args: &CompareArgs, store: &Store, experiment: i64) -> Option<PathBuf> {
    let folder = match &args.logs {
        Some(folder) => folder.clone(),
        None => beside(store)?.join("logs").join(experiment.to_string()),
    };
    std::path::absolute(&folder).ok().or(Some(folder))
}

/// What a set-up's bias depends on.
fn setup_key(spec: &Spec, asked: &Asked, machine: &Machine) -> String {
    key(&(
        &spec.baseline,
        asked,
        &spec.pin,
        machine,
        crate::report::VERSION,
    ))
}

fn keep_bands(recorder: &mut Recorder, measured: &Measured, machine: &Machine) {
    for (measurement, asked) in measured.workloads.iter().zip(&measured.spec.workloads) {
        let Some(metric) = measurement.metrics.first() else {
            continue;
        };
        let mut pairs = verdicts::pairs(measurement, metric);
        pairs.retain(|pair| pair.validity == Validity::Valid);
        if let Some(band) = bias_band(&pairs) {
            let setup = setup_key(&measured.spec, asked, machine);
            recorder.with(|store, id| store.keep_program_band(&setup, &metric.name, band, id));
        }
    }
}
