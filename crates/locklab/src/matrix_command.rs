//! `locklab matrix`: from arguments to a report.
//!
//! Says what it will take before it starts; whatever then happens to the
//! store or by Ctrl-C, what was measured is reported.

use crate::cli::{Common, FailOn, MatrixArgs, UnitArg, WorkArg};
use crate::error::Error;
use crate::interrupt;
use crate::matrix::{Cell, Measured, Point, Provenance, Spec, Unit, Work};
use crate::matrix_run::{Recorder, Session, Stop};
use crate::native::bench::Native;
use crate::native::machine::Machine;
use crate::native::subject;
use crate::plan::{Plan, ranges, seconds};
use crate::progress::Bar;
use crate::report::{self, Colour, Context};
use crate::store::Store;
use crate::verdicts::{self, Verdicts};
use locklab_judge::{Order, Pair, Verdict, bias_band};
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
    // Names first: nobody waits for a calibration to hear of a typo.
    for name in std::iter::once(&args.baseline).chain(&args.experiment) {
        subject::find(name).map_err(Error::Usage)?;
    }
    let native = Native::probe();
    let spec = spec(args, common.seed, native.topology.order.len()).map_err(Error::Usage)?;
    let plan = Plan::new(spec, &native.topology, native.calibration).map_err(Error::Usage)?;
    if common.dry_run {
        return dry_run(&plan, &native, common);
    }
    measure(args, common, &native, &plan)
}

/// What the arguments ask for, with the defaults of a machine of so many
/// CPUs.
fn spec(args: &MatrixArgs, seed: u64, cpus: usize) -> Result<Spec, String> {
    let work = match args.workload {
        WorkArg::Units => Work::Units,
        WorkArg::Fstat => Work::Fstat,
    };
    let lengths = |given: &Option<crate::list::Lengths>, default: &[u64]| {
        distinct(given.as_ref().map_or(default, |list| &list.0))
    };
    if work == Work::Fstat && args.critical.is_some() {
        return Err("an fstat has no length; leave out --critical, or use --workload units".into());
    }
    let (critical, non_critical) = match work {
        // Those of the kernel benchmark of the virt-spin report.
        Work::Units => (
            lengths(&args.critical, &[0, 1, 2, 4, 8, 16, 32, 64, 128]),
            lengths(&args.non_critical, &[1, 32]),
        ),
        Work::Fstat => (vec![0], lengths(&args.non_critical, &[0])),
    };
    if !(args.delta > 0.0 && args.delta < 100.0) {
        return Err(format!(
            "--delta {} is no margin; give a percentage above 0 and below 100",
            args.delta
        ));
    }
    let pin = match &args.pin {
        None => None,
        Some(list) => Some(
            list.0
                .iter()
                .map(|cpu| {
                    usize::try_from(*cpu).map_err(|_| format!("--pin: there is no CPU {cpu}"))
                })
                .collect::<Result<Vec<usize>, String>>()?,
        ),
    };
    let cpus = pin.as_ref().map_or(cpus, Vec::len).max(1);
    Ok(Spec {
        baseline: args.baseline.clone(),
        experiment: match &args.experiment {
            Some(experiment) if !args.aa => experiment.clone(),
            _ => args.baseline.clone(),
        },
        threads: match &args.threads {
            Some(threads) => distinct(&threads.0),
            None => {
                let mut threads = vec![1, (cpus / 2).max(1), cpus, 2 * cpus];
                threads.dedup();
                threads.truncate(
                    threads
                        .iter()
                        .filter(|n| **n <= locklab_locks::MAX_CPUS)
                        .count(),
                );
                threads
            }
        },
        critical,
        non_critical,
        unit: match args.unit {
            UnitArg::Units => Unit::Units,
            UnitArg::Ns => Unit::Nanoseconds,
        },
        work,
        pairs: args.pairs,
        run: Duration::from_millis(args.run_ms.into()),
        warm_up: Duration::from_millis(args.warmup_ms.into()),
        seed,
        pin,
        processes: args.processes,
        latency: args.latency,
        aa: args.aa,
        delta: args.delta / 100.0,
    })
}

/// A list without what it repeats.
fn distinct<T: Copy + PartialEq>(list: &[T]) -> Vec<T> {
    let mut distinct = Vec::with_capacity(list.len());
    for n in list {
        if !distinct.contains(n) {
            distinct.push(*n);
        }
    }
    distinct
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

fn dry_run(plan: &Plan, native: &Native, common: &Common) -> Result<ExitCode, Error> {
    let spec = &plan.spec;
    if common.json {
        let cells: Vec<&Point> = plan.cells.iter().map(|cell| &cell.point).collect();
        let document = serde_json::json!({
            "schema": 1,
            "spec": spec,
            "cpus": plan.cpus,
            "cells": cells,
            "seconds": plan.estimate().as_secs_f64(),
        });
        return print(&format!("{document:#}\n"));
    }
    let mut text = String::new();
    let _ = writeln!(
        text,
        "Would run {} against {}.",
        spec.experiment, spec.baseline
    );
    let _ = writeln!(text, "{}", summary(plan));
    let over: Vec<usize> = spec
        .threads
        .iter()
        .copied()
        .filter(|n| *n > plan.cpus.len())
        .collect();
    let list = |numbers: &[u64]| {
        let texts: Vec<String> = numbers.iter().map(ToString::to_string).collect();
        texts.join(",")
    };
    let threads: Vec<u64> = spec.threads.iter().map(|n| *n as u64).collect();
    let over: Vec<u64> = over.iter().map(|n| *n as u64).collect();
    let _ = writeln!(
        text,
        "{:<14}{}{}",
        if spec.processes {
            "processes"
        } else {
            "threads"
        },
        list(&threads),
        if over.is_empty() {
            String::new()
        } else {
            format!(" (oversubscribed: {})", list(&over))
        }
    );
    match spec.work {
        Work::Units => {
            let _ = writeln!(text, "{:<14}{}", "critical", list(&spec.critical));
        }
        Work::Fstat => {
            let _ = writeln!(text, "{:<14}one fstat(2)", "critical");
        }
    }
    let _ = writeln!(text, "{:<14}{}", "non-critical", list(&spec.non_critical));
    for (name, value) in native.facts(plan) {
        let _ = writeln!(text, "{:<14}{value}", name);
    }
    print(&text)
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
    let bands = bands(&store, plan, &native.machine).map_err(failed)?;
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
            1 => "One pair was run again because its CPUs had moved.".into(),
            n => format!("{n} pairs were run again because their CPUs had moved."),
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
        keep_bands(&mut recorder, &measured, &native.machine);
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

/// What a set-up's bias depends on, beside the cell.
fn setup_key(spec: &Spec, machine: &Machine) -> String {
    key(&(
        &spec.baseline,
        (spec.unit, spec.work, spec.run, spec.warm_up),
        (&spec.pin, spec.processes, spec.latency),
        machine,
        report::VERSION,
    ))
}

fn bands(store: &Store, plan: &Plan, machine: &Machine) -> Result<HashMap<Point, f64>, String> {
    let mut bands = HashMap::new();
    if plan.spec.aa {
        // A/A runs are judged without the band that they make.
        return Ok(bands);
    }
    let setup = setup_key(&plan.spec, machine);
    for cell in &plan.cells {
        if let Some(band) = store.band(&setup, &cell.point)? {
            bands.insert(cell.point, band);
        }
    }
    Ok(bands)
}

fn keep_bands(recorder: &mut Recorder, measured: &Measured, machine: &Machine) {
    let setup = setup_key(&measured.spec, machine);
    for cell in &measured.cells {
        let pairs: Vec<Pair> = cell
            .pairs
            .iter()
            .filter(|pair| pair.baseline.invalid.is_none() && pair.experiment.invalid.is_none())
            .map(|pair| {
                let order = if pair.baseline_first {
                    Order::BaselineFirst
                } else {
                    Order::ExperimentFirst
                };
                Pair::new(pair.baseline.ops_per_s, pair.experiment.ops_per_s, order)
            })
            .collect();
        if let Some(band) = bias_band(&pairs) {
            recorder.with(|store, id| store.keep_band(&setup, &cell.point, band, id));
        }
    }
}

/// The same for the same value, in every version of this program.
fn key<T: serde::Serialize>(value: &T) -> String {
    let json = serde_json::to_string(value).unwrap_or_default();
    let digest = Sha256::digest(json.as_bytes());
    digest.iter().take(16).fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

/// The command line, with the program's name alone: where it lies on this
/// machine is nobody's business.
fn command_line() -> String {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::RunPair;
    use crate::native::test_run;
    use crate::native::topology::Topology;
    use crate::native::work::Calibration;
    use clap::Parser;

    fn spec_of(arguments: &str, cpus: usize) -> Result<Spec, String> {
        let words = ["locklab", "matrix"].into_iter();
        let cli = crate::cli::Cli::try_parse_from(words.chain(arguments.split(' '))).unwrap();
        match cli.command {
            crate::cli::Command::Matrix(args) => spec(&args, cli.common.seed, cpus),
            _ => unreachable!("it says matrix"),
        }
    }

    fn machine() -> Machine {
        Machine {
            name: "test".into(),
            kernel: "Linux".into(),
            compiler: "rustc".into(),
            host: "here".into(),
            cpus: vec![0, 1],
        }
    }

    fn plan_of(arguments: &str) -> Plan {
        let topology = Topology {
            order: vec![0, 1],
            known: true,
            cores: 2,
            nodes: 1,
        };
        let calibration = Calibration {
            unit_ns: 4.0,
            cycle_ns: 0.25,
        };
        Plan::new(spec_of(arguments, 2).unwrap(), &topology, calibration).unwrap()
    }

    #[test]
    fn the_default_matrix_takes_about_two_minutes_and_can_call_a_lone_cell() {
        let locks = "virt-spin virt-spin-backoff";
        let threads = |cpus| spec_of(locks, cpus).unwrap().threads;
        assert_eq!(threads(1), [1, 2]);
        assert_eq!(threads(2), [1, 2, 4]);
        assert_eq!(threads(8), [1, 4, 8, 16]);
        let plan = plan_of(locks);
        let time = plan.estimate().as_secs();
        assert!((60..=120).contains(&time), "{time} s");
        assert_eq!(
            locklab_judge::fewest_callable(
                locklab_judge::Family::FalseDiscovery,
                plan.cells.len(),
                plan.spec.pairs as usize
            ),
            Some(1)
        );
    }

    #[test]
    fn lists_lose_their_repetitions() {
        let spec = spec_of("ticket mcs --threads 2,1,2 --critical 3,3", 2).unwrap();
        assert_eq!((spec.threads, spec.critical), (vec![2, 1], vec![3]));
        let spec = spec_of("ticket mcs --pin 1,0 --unit ns --seed 9", 8).unwrap();
        assert_eq!(spec.pin, Some(vec![1, 0]));
        assert_eq!(spec.threads, [1, 2, 4]);
        assert_eq!((spec.unit, spec.seed), (Unit::Nanoseconds, 9));
    }

    #[test]
    fn an_aa_run_teaches_its_set_up_and_no_other() {
        let plan = plan_of("ticket --aa --threads 2 --critical 0 --non-critical 1");
        let measured = Measured {
            spec: plan.spec.clone(),
            provenance: Provenance::Hardware("test".into()),
            environment: vec![],
            caveats: vec![],
            cells: vec![Cell {
                point: plan.cells[0].point,
                oversubscribed: false,
                bias_band: None,
                pairs: (0..10_u32)
                    .map(|index| {
                        let mut experiment = test_run();
                        experiment.ops_per_s *= 1.0 + 0.001 * f64::from(index);
                        RunPair {
                            index,
                            baseline_first: index % 2 == 0,
                            baseline: test_run(),
                            experiment,
                        }
                    })
                    .collect(),
            }],
            interrupted: None,
        };
        let store = Store::open(Path::new(":memory:")).unwrap();
        let id = store.begin("key", "", &measured).unwrap();
        let mut recorder = Recorder::new(store, id);
        keep_bands(&mut recorder, &measured, &machine());
        recorder.with(|store, _| {
            let cell = "--threads 2,4 --critical 0 --non-critical 1";
            let bands_of = |arguments: &str, machine: &Machine| {
                bands(store, &plan_of(&format!("{arguments} {cell}")), machine).unwrap()
            };
            let known = bands_of("ticket mcs", &machine());
            assert_eq!(known.len(), 1);
            let band = known[&plan.cells[0].point];
            assert!(band > 0.004 && band < 0.01, "{band}");
            // Another baseline, another set-up, another machine.
            assert!(bands_of("mcs ticket", &machine()).is_empty());
            assert!(bands_of("ticket mcs --run-ms 51", &machine()).is_empty());
            let other = Machine {
                host: "there".into(),
                ..machine()
            };
            assert!(bands_of("ticket mcs", &other).is_empty());
            // An A/A run is judged without the band that it makes.
            assert!(bands_of("ticket --aa", &machine()).is_empty());
            Ok(())
        });
        assert_eq!(recorder.failure(), None);
    }
}
