//! `locklab compare`: from arguments and a file to a report.
//!
//! Whatever happens to a workload, to the store or by Ctrl-C, what was
//! measured is reported.

use super::arguments::CompareArgs;
use super::experiment::{EXAMPLE, File};
use super::lab::{Lab, process_metrics};
use super::records::Recorder;
use super::session::{Listener, Session};
use super::{Inline, Measured, Measurement, Spec, Subject, verdicts};
use crate::cli::{Common, FailOn};
use crate::counters::Counters;
use crate::counters::settings::Prepared;
use crate::environment::Environment;
use crate::error::Error;
use crate::interrupt;
use crate::matrix_command::{command_line, key, open_store, print};
use crate::native::machine::Machine;
use crate::native::topology::Topology;
use crate::report::{Context, compare as report};
use crate::store::Store;
use crate::workloads::{Asked, NAMES, Pattern, Workload};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use locklab_footprint::Footprint;
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
        return dry_run(&spec, &workloads, common);
    }
    measure(args, common, spec, workloads, &topology)
}

/// What a file and the flags ask for; flags win.
fn spec(args: &CompareArgs, common: &Common, topology: &Topology) -> Result<Spec, String> {
    let file = match &args.file {
        Some(path) => File::read(path)?,
        None => File::default(),
    };
    let mut baseline = file.baseline;
    let mut experiment = file.experiment;
    let pairs = [
        (
            &mut baseline,
            (
                &args.baseline,
                &args.baseline_lock,
                &args.baseline_build,
                &args.baseline_env,
            ),
        ),
        (
            &mut experiment,
            (
                &args.experiment,
                &args.experiment_lock,
                &args.experiment_build,
                &args.experiment_env,
            ),
        ),
    ];
    for (subject, (command, lock, build, env)) in pairs {
        if command.is_some() {
            subject.command.clone_from(command);
        }
        if lock.is_some() {
            subject.lock.clone_from(lock);
        }
        if build.is_some() {
            subject.build.clone_from(build);
        }
        for one in env {
            let (name, value) = one
                .split_once('=')
                .filter(|(n, _)| !n.is_empty())
                .ok_or_else(|| format!("'{one}' sets no variable; write NAME=VALUE"))?;
            subject.env.insert(name.into(), value.into());
        }
        check_subject(subject)?;
    }
    if let Some(inline) = &args.inline {
        let [b, e] = Inline::parse_pair(inline)?;
        (baseline.inline, experiment.inline) = (Some(b), Some(e));
    }
    if args.aa {
        experiment = baseline.clone();
    }
    let mut workloads = file.workload;
    if !args.workload.is_empty() {
        let asked = args.workload.iter().map(|name| Asked::parse(name));
        workloads = asked.collect::<Result<_, _>>()?;
    }
    let command = (!args.command.is_empty())
        .then(|| shlex::try_join(args.command.iter().map(String::as_str)))
        .transpose()
        .map_err(|e| format!("the command after -- cannot be written as a line: {e}"))?;
    let has_command = command.is_some() || baseline.command.is_some();
    if workloads.is_empty() && has_command {
        workloads.push(Asked {
            name: "command".into(),
            ..Asked::default()
        });
    }
    if workloads.is_empty() {
        return Err(format!(
            "nothing to run; give --workload ({}), or --baseline CMD --experiment CMD, or an \
             experiment file ('locklab compare --example' prints one)",
            NAMES.map(|(name, _)| name).join(", ")
        ));
    }
    for asked in &mut workloads {
        if let Some(scale) = args.scale {
            asked.scale = Some(scale);
        }
        if asked.name == "command" {
            if let Some(command) = &command {
                asked.command = Some(command.clone());
            }
            for metric in &args.metric {
                asked.metric.push(Pattern::parse(metric)?);
            }
        }
        asked.make()?;
    }
    for (n, asked) in workloads.iter().enumerate() {
        if workloads[..n]
            .iter()
            .any(|other| other.title() == asked.title())
        {
            return Err(format!(
                "there are two workloads '{}'; give one of them another title",
                asked.title()
            ));
        }
    }
    let delta = args.delta.or(file.delta).unwrap_or(1.0);
    if !(delta > 0.0 && delta < 100.0) {
        return Err(format!(
            "--delta {delta} is no margin; give a percentage above 0 and below 100"
        ));
    }
    let pairs = args.pairs.or(file.pairs).unwrap_or(20);
    if pairs == 0 || pairs > 100_000 {
        return Err(format!(
            "{pairs} pairs show nothing; give --pairs 8 or more"
        ));
    }
    let time_limit = args.time_limit.or(file.time_limit).unwrap_or(120.0);
    if !(time_limit > 0.0 && time_limit <= 1e7) {
        return Err(format!(
            "a time limit of {time_limit} s is none; give seconds above 0"
        ));
    }
    let pin = match &args.pin {
        Some(list) => list
            .0
            .iter()
            .map(|cpu| usize::try_from(*cpu).map_err(|e| e.to_string()))
            .collect::<Result<Vec<_>, _>>()?,
        None => file.pin.unwrap_or_default(),
    };
    if let Some(cpu) = pin.iter().find(|cpu| !topology.order.contains(cpu)) {
        return Err(format!(
            "CPU {cpu} cannot be pinned to; this process may use {}",
            crate::plan::ranges(&topology.order)
        ));
    }
    Ok(Spec {
        baseline,
        experiment,
        workloads,
        pairs,
        warm_up: args.warm_up.or(file.warm_up).unwrap_or(1),
        // The flag has a default, so only another value can win.
        seed: match file.seed {
            Some(seed) if common.seed == 1 => seed,
            _ => common.seed,
        },
        delta: delta / 100.0,
        time_limit,
        pin,
        counters: args.counters.or(file.counters).unwrap_or_default(),
        aa: args.aa,
    })
}

/// Names of locks and folders, before anything runs.
fn check_subject(subject: &Subject) -> Result<(), String> {
    if let Some(lock) = &subject.lock
        && lock != "pthread"
    {
        if lock != "pthread-interposed" && crate::native::subject::find(lock)?.peer {
            return Err(format!(
                "'{lock}' cannot be put under pthread mutexes; 'locklab locks' lists those that can"
            ));
        }
        crate::parts::preload_library()?;
    }
    match &subject.build {
        Some(build) if !build.is_dir() => Err(format!(
            "there is no folder {}; a build is the folder with its programs",
            build.display()
        )),
        _ => Ok(()),
    }
}

fn dry_run(
    spec: &Spec,
    workloads: &[Box<dyn Workload>],
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
    spec: Spec,
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

fn logs(args: &CompareArgs, store: &Store, experiment: i64) -> Option<PathBuf> {
    let folder = match (&args.logs, store.path()) {
        (Some(folder), _) => folder.clone(),
        (None, path) if path == Path::new(":memory:") => return None,
        (None, path) => path.parent()?.join("logs").join(experiment.to_string()),
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

/// Of two builds, which are folders of ELF files.
fn footprint(spec: &Spec, caveats: &mut Vec<String>) -> Option<Footprint> {
    let (Some(old), Some(new)) = (&spec.baseline.build, &spec.experiment.build) else {
        return None;
    };
    let options = locklab_footprint::Options::default();
    match locklab_footprint::compare(old, new, &options) {
        Ok(footprint) => Some(footprint),
        Err(e) => {
            caveats.push(format!("There is no footprint: {e}"));
            None
        }
    }
}

/// Judges and prints; says whether something is worse.
///
/// # Errors
/// It cannot be judged, or the HTML cannot be written.
fn render(
    measured: &Measured,
    footprint: Option<&Footprint>,
    context: &Context,
    common: &Common,
    html: Option<&Path>,
) -> Result<bool, Error> {
    let verdicts = verdicts::judge(measured).map_err(|e| Error::Failed(e.to_string()))?;
    let report = report::Report {
        measured,
        verdicts: &verdicts,
        footprint,
        context,
    };
    print(&if common.json {
        format!("{:#}\n", report::json(&report))
    } else {
        report::text(&report)
    })?;
    if let Some(path) = html {
        std::fs::write(path, report::html(&report)).map_err(|e| {
            Error::Failed(format!(
                "cannot write {}: {e}; the samples are stored, so 'locklab results show' with \
                 another --html FILE makes it again",
                path.display()
            ))
        })?;
    }
    Ok(verdicts
        .workloads
        .iter()
        .any(verdicts::JudgedWorkload::is_worse))
}

/// The report of a stored comparison again.
///
/// # Errors
/// As of a new one.
pub(crate) fn show(
    measured: &mut Measured,
    context: &Context,
    common: &Common,
    html: Option<&Path>,
) -> Result<ExitCode, Error> {
    let footprint = footprint(&measured.spec, &mut measured.caveats);
    render(measured, footprint.as_ref(), context, common, html)?;
    Ok(ExitCode::SUCCESS)
}

/// A bar with the time left, drawn between runs, on a terminal only.
struct Bar {
    bar: ProgressBar,
    quiet: bool,
}

impl Bar {
    fn new(quiet: bool) -> Self {
        let target = if quiet {
            ProgressDrawTarget::hidden()
        } else {
            ProgressDrawTarget::stderr()
        };
        let bar = ProgressBar::with_draw_target(Some(0), target);
        let style = "{wide_bar} {pos}/{len} runs, {eta} left  {msg}";
        if let Ok(style) = ProgressStyle::with_template(style) {
            bar.set_style(style);
        }
        Self { bar, quiet }
    }
}

impl Listener for Bar {
    fn progress(&mut self, done: u64, of: u64, workload: &str) {
        self.bar.set_length(of);
        self.bar.set_message(workload.to_owned());
        self.bar.set_position(done);
    }

    fn note(&mut self, text: &str) {
        if !self.quiet {
            self.bar.suspend(|| eprintln!("{text}"));
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
