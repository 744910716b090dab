//! `locklab matrix`: from arguments to a report.
//!
//! Says what it will take before it starts; whatever then happens to the
//! store or by Ctrl-C, what was measured is reported.

mod bias;
mod dry_run;
pub(crate) mod question;
#[cfg(test)]
mod tests;

use crate::cli::{Common, FailOn, MatrixArgs};
use crate::matrix::{Cell, Measured, Provenance};
use crate::matrix_run::{Recorder, Session, Stop};
use crate::native::bench::Native;
use crate::native::subject;
use crate::plan::{Plan, seconds};
use crate::progress::Bar;
use crate::report::{self, Colour, Context};
use crate::simulated;
use crate::store::Store;
use crate::verdicts::{self, Verdicts};
use locklab_host::error::Error;
use locklab_host::interrupt;
use locklab_host::topology::ranges;
use locklab_host::topology::real_time;
use locklab_judge::Verdict;
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Runs it.
///
/// # Errors
/// One sentence.
pub(crate) fn run(args: &MatrixArgs, common: &Common) -> Result<ExitCode, Error> {
    match &args.on {
        Some(machine) if machine != "native" => return simulated::run(args, common, machine),
        _ => {}
    }
    if let Some(option) = simulated::only_simulated(args) {
        return Err(Error::Usage(format!(
            "{option} is for simulated machines; say which, with --on MACHINE"
        )));
    }
    // Names first: nobody waits for a calibration to hear of a typo.
    for name in std::iter::once(&args.baseline).chain(&args.experiment) {
        subject::find(name).map_err(Error::Usage)?;
    }
    let native = Native::probe();
    let spec =
        question::spec(args, common.seed, native.topology.order.len()).map_err(Error::Usage)?;
    let plan = Plan::new(spec, &native.topology, native.calibration).map_err(Error::Usage)?;
    if common.dry_run {
        return dry_run::dry_run(&plan, &native, common);
    }
    if real_time() {
        return Err(Error::Failed(
            "this process has a real-time scheduling policy, under which spinning threads would \
             keep the machine from anything else, ending the run included; start it without chrt"
                .into(),
        ));
    }
    measure(args, common, &native, &plan)
}

fn summary(plan: &Plan) -> String {
    let spec = &plan.spec;
    format!(
        "{} cells x {} pairs of runs of {} ms: about {}",
        plan.cells.len(),
        spec.pairs,
        spec.run.as_millis(),
        seconds(plan.estimate().as_secs_f64())
    )
}

fn measure(
    args: &MatrixArgs,
    common: &Common,
    native: &Native,
    plan: &Plan,
) -> Result<ExitCode, Error> {
    let note = |text: &str| {
        if !common.quiet {
            eprintln!("{text}");
        }
    };
    let store = open_store(common)?;
    let failed = Error::Failed;
    let bands = bias::bands(&store, plan, &native.machine).map_err(failed)?;
    let mut measured = Measured {
        spec: plan.spec.clone(),
        provenance: Provenance::Hardware(native.machine.name.clone()),
        environment: native.facts(plan),
        caveats: native.caveats(plan),
        cells: plan
            .cells
            .iter()
            .map(|cell| Cell {
                point: cell.point,
                oversubscribed: cell.oversubscribed,
                bias_band: bands.get(&cell.point).copied(),
                pairs: Vec::new(),
            })
            .collect(),
        interrupted: None,
    };
    let key = key(&(&plan.spec, &native.machine, report::VERSION));
    let unfinished = if args.resume {
        store.unfinished(&key).map_err(Error::Failed)?
    } else {
        None
    };
    let (experiment, before) = match unfinished {
        Some(id) => (id, store.pairs(id).map_err(Error::Failed)?),
        None => {
            if args.resume {
                note("No interrupted matrix of this kind is in the store; starting a new one.");
            }
            let id = store
                .begin(&key, &command_line(), &measured)
                .map_err(Error::Failed)?;
            (id, HashMap::new())
        }
    };
    let listed = store.listed(Some(experiment)).map_err(Error::Failed)?;
    let context = Context {
        date: format!("{} UTC", listed.started),
        command: listed.command,
    };
    let done: usize = before.values().map(Vec::len).sum();
    if done > 0 {
        note(&format!(
            "Going on with experiment {experiment}: {done} pairs are there."
        ));
    }
    note(&format!("{}. Ctrl-C reports what is there.", summary(plan)));
    if plan.cpus.len() == 1 {
        note(&format!(
            "Only CPU {} may be used: threads take turns on it.",
            ranges(&plan.cpus)
        ));
    }

    let interrupt = interrupt::listen()?;
    let mut bench = native.bench(plan, &interrupt).map_err(Error::Failed)?;
    let mut recorder = Recorder::new(store, experiment);
    let mut bar = Bar::new(plan.runs(), common.quiet);
    let outcome = Session {
        plan,
        recorder: &mut recorder,
        listener: &mut bar,
        deadline: args
            .time_limit
            .map(|s| Instant::now() + Duration::from_secs(s.into())),
        before,
        bands,
    }
    .run(&mut bench);
    drop(bar);

    measured.cells = outcome.cells;
    if outcome.repeated > 0 {
        measured.caveats.push(match outcome.repeated {
            1 => "One pair was run again because its CPUs had moved or were taken.".into(),
            n => format!("{n} pairs were run again because their CPUs had moved or were taken."),
        });
    }
    measured.interrupted = outcome.stopped.as_ref().map(|stop| {
        let missing = plan.cells.len() - complete(&measured);
        let why = match stop {
            Stop::Interrupted => "interrupted".to_owned(),
            Stop::TimeLimit => "the time limit was reached".to_owned(),
            Stop::Fatal(why) => why.clone(),
        };
        format!(
            "{why}; {missing} of {} cells are not complete",
            plan.cells.len()
        )
    });
    if plan.spec.aa {
        bias::keep_bands(&mut recorder, &measured, &native.machine);
    }
    // The header without pairs, but with every cell that was planned.
    let header = Measured {
        cells: plan
            .cells
            .iter()
            .map(|cell| Cell {
                point: cell.point,
                oversubscribed: cell.oversubscribed,
                bias_band: measured
                    .cells
                    .iter()
                    .find(|c| c.point == cell.point)
                    .and_then(|c| c.bias_band),
                pairs: Vec::new(),
            })
            .collect(),
        ..measured.clone()
    };
    recorder.with(|store, id| store.finish(id, &header));

    let verdicts = report(&measured, &context, common, args.html.as_deref())?;
    if let Some(failure) = recorder.failure() {
        return Err(Error::Failed(format!(
            "{failure}; the report above is complete, but samples from then on are not stored"
        )));
    }
    match outcome.stopped {
        Some(Stop::Interrupted) => {
            return Err(Error::Interrupted(
                "interrupted; what was measured is stored, and the same command with --resume \
                 goes on"
                    .into(),
            ));
        }
        Some(Stop::Fatal(why)) => return Err(Error::Failed(why)),
        Some(Stop::TimeLimit) | None => {}
    }
    let worse = |v: &Verdicts| v.cells.iter().any(|c| c.judged.verdict == Verdict::Worse);
    if args.fail_on == Some(FailOn::Worse) && worse(&verdicts) {
        return Ok(ExitCode::from(3));
    }
    Ok(ExitCode::SUCCESS)
}

/// The store that the arguments name.
///
/// # Errors
/// It cannot be used.
pub(crate) fn open_store(common: &Common) -> Result<Store, Error> {
    let path = match &common.store {
        Some(path) => path.clone(),
        None => Store::default_path().map_err(Error::Failed)?,
    };
    Store::open(&path).map_err(Error::Failed)
}

/// Cells with all their pairs.
fn complete(measured: &Measured) -> usize {
    measured
        .cells
        .iter()
        .filter(|cell| cell.pairs.len() >= measured.spec.pairs as usize)
        .count()
}

/// The same for the same value, in every version of this program.
pub(crate) fn key<T: serde::Serialize>(value: &T) -> String {
    let json = serde_json::to_string(value).unwrap_or_default();
    let digest = Sha256::digest(json.as_bytes());
    digest.iter().take(16).fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

/// The command line, with the program's name alone: where it lies on this
/// machine is nobody's business.
pub(crate) fn command_line() -> String {
    let mut words = vec!["locklab".to_owned()];
    words.extend(std::env::args().skip(1).map(|word| {
        if word.is_empty() || word.contains(|c: char| c.is_whitespace() || "'\"$\\".contains(c)) {
            format!("'{}'", word.replace('\'', "'\\''"))
        } else {
            word
        }
    }));
    words.join(" ")
}

/// Judges and prints a matrix.
///
/// # Errors
/// It cannot be judged, or the HTML cannot be written.
pub(crate) fn report(
    measured: &Measured,
    context: &Context,
    common: &Common,
    html: Option<&Path>,
) -> Result<Verdicts, Error> {
    let verdicts = verdicts::judge(measured).map_err(|e| Error::Failed(e.to_string()))?;
    let report = report::matrix::Report {
        measured,
        verdicts: &verdicts,
        context,
    };
    let text = if common.json {
        format!("{:#}\n", report::matrix::json(&report))
    } else {
        report::matrix::text(&report, Colour::for_stdout())
    };
    print(&text)?;
    if let Some(path) = html {
        std::fs::write(path, report::matrix::html(&report)).map_err(|e| {
            Error::Failed(format!(
                "cannot write {}: {e}; the samples are stored, so 'locklab results show' with \
                 another --html FILE makes it again",
                path.display()
            ))
        })?;
    }
    Ok(verdicts)
}

/// Writes to standard output. A reader that has gone is no failure.
///
/// # Errors
/// It cannot be written: a full disk.
pub(crate) fn print(text: &str) -> Result<ExitCode, Error> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Error::Failed(format!("cannot write the report: {e}")))
        }
        _ => Ok(ExitCode::SUCCESS),
    }
}
