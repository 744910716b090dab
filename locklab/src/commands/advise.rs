//! `locklab advise`: a recorded program, simulated under other locks, on other
//! machines and with other numbers of threads.

mod here;
mod recordings;

use crate::arguments::locks::workers;
use crate::arguments::{Common, ReportFiles};
use crate::commands::rank::MOST_LOCKS;
use crate::comparison::show;
use crate::output::print;
use clap::Args;
use locklab_advise::{Candidate, Here, Question, TODAY, advise, candidates, document, generic};
use locklab_document::number::{count, percent};
use locklab_host::error::Error;
use locklab_host::interrupt;
use locklab_lab::progress::Progress;
use locklab_lab::settings::SEED;
use locklab_lab::workload::Threads;
use locklab_preload_run::Symbols;
use locklab_replay::{Fault, Limits, Program, Site};
use locklab_sim::Machine;
use locklab_system_record::{SystemRecorded, is_system_recording};
use locklab_trace::{Info, Trace, calls};
use recordings::{Recordings, failed};
use serde_json::Value;
use std::path::PathBuf;
use std::process::ExitCode;

/// `locklab advise`.
#[derive(Debug, Args)]
pub struct AdviseArgs {
    /// The recording, of `locklab record`
    pub file: PathBuf,
    /// A second recording of the program, with another number of threads: how much
    /// longer holds take with more threads is taken from the two
    #[arg(value_name = "FILE2")]
    pub other: Option<PathBuf>,
    /// Machines to advise for: names of `locklab machine list`, or files
    /// [default: a model of the machine that made the recording]
    #[arg(long, value_name = "MACHINE", value_delimiter = ',')]
    pub on: Vec<String>,
    /// Numbers of threads, such as 8,32,64; a thread with a special role, such
    /// as the only writer, is added to these [default: as recorded]
    #[arg(long, value_name = "LIST")]
    pub threads: Option<Threads>,
    /// Locks to try, whose waiters spin and then sleep; NAME:spin only spins
    /// [default: one of each family]
    #[arg(long, value_name = "LOCK", value_delimiter = ',')]
    pub locks: Vec<String>,
    /// A model of the machine that made the recording: a file that `locklab
    /// machine fit` wrote [default: as many equal cores as it has]
    #[arg(long, value_name = "MACHINE")]
    pub here: Option<String>,
    /// Do not replay the program by real threads on this machine, such as while it
    /// is busy; then only the simulation has to give its rate
    #[arg(long)]
    pub no_replay: bool,
    /// Variants of each machine for the band, its own figures included; the
    /// others are drawn from the range of each assumption
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(2..=64))]
    pub draws: u16,
    /// Seed of every random choice
    #[arg(long, value_name = "N", default_value_t = SEED)]
    pub seed: u64,
    #[command(flatten)]
    pub(crate) files: ReportFiles,
}

/// The share of waiting below which no other lock is worth trying.
const NOTHING: f64 = 0.002;

/// Runs `locklab advise`.
///
/// # Errors
/// [`Error::Usage`] if a machine or a lock does not exist; [`Error::Failed`] if
/// the file is no recording of this version, describes no program that can be
/// run again, or the simulated program does not run as fast as the recorded one;
/// [`Error::Interrupted`] after Ctrl-C.
pub fn run(args: &AdviseArgs, common: &Common) -> Result<ExitCode, Error> {
    args.files.check()?;
    if is_system_recording(&args.file) {
        // There is nothing to simulate: holds are not in it.
        let document = SystemRecorded::read(&args.file)?.document();
        let code = show(&document, common)?;
        args.files.write(&document, &[])?;
        return Ok(code);
    }
    let on = args.on.iter().map(|name| named(name));
    let on: Vec<Machine> = on.collect::<Result<_, _>>()?;
    let locks = args.locks.iter().map(|name| {
        Candidate::named(name).ok_or_else(|| {
            Error::Usage(format!(
                "there is no lock '{name}' that can be simulated; 'locklab locks' lists them"
            ))
        })
    });
    let locks: Vec<Candidate> = locks.collect::<Result<_, _>>()?;
    let recordings = Recordings::read(&args.file, args.other.as_deref())?;
    let (file, trace) = (recordings.file, &recordings.trace);
    let program = match self::program(trace, SPLIT_LOCKS, false) {
        // Nor is there more of it elsewhere, or with more threads.
        Err(fault @ (Fault::OneThread | Fault::OneThreadThere)) => {
            let words = sentence(&fault.to_string());
            return nothing(args, (&words, 0.0), &trace.info, common);
        }
        program => program.map_err(|fault| failed(file, fault))?,
    };
    let recorded = &program.recorded;
    // Elsewhere, or with more threads, there may be more of it.
    if recorded.waiting() < NOTHING && on.is_empty() && args.threads.is_none() {
        let waiting = recorded.waiting();
        let words = format!(
            "Nothing to gain: {} % of the time is spent waiting for locks.",
            percent(100.0 * waiting)
        );
        return nothing(args, (&words, waiting), &trace.info, common);
    }
    let threads = args
        .threads
        .as_ref()
        .map_or_else(Vec::new, Threads::distinct);
    let others = threads
        .iter()
        .any(|&threads| threads != program.scaling_threads());
    if others && !program.can_be_extrapolated() {
        return Err(Error::Failed(format!(
            "{}: for {} % of the time in which threads had no work, it is not recorded what they \
             waited for (input, files, semaphores, a signal of no thread), so it is not known what \
             other numbers of threads would do; leave out --threads",
            file.display(),
            percent(100.0 * recorded.unmatched())
        )));
    }
    let mut question = question(args, &program, on, (threads, locks))?;
    if common.dry_run {
        return dry_run(&question);
    }
    let interrupt = interrupt::listen()?;
    let native = here::native(&trace.info);
    let mut machine = question.here.clone();
    if let (None, Ok(native)) = (&args.here, &native) {
        machine = here::measured(machine, native, trace.info.apart())?;
    }
    question.fewer = recordings.fewer(&program, &machine)?;
    machine = here::as_recorded(machine, &program.recorded, trace.info.apart())?;
    if question.machines == [question.here.clone()] {
        question.machines = here::places(&machine, trace.info.apart())?;
    }
    question.here = machine;
    let checked = self::program(trace, SPLIT_LOCKS, true).map_err(|fault| failed(file, fault))?;
    let recorded = || self::program(trace, MOST_LOCKS, true).map_err(|fault| failed(file, fault));
    question.replayed = match args.no_replay {
        true => Here::Not("by --no-replay".into()),
        false => here::replayed(native, recorded, (file, trace.info.apart()), &interrupt)?,
    };
    let bar = Progress::new(1, "simulations", common.quiet);
    let progress = |done: usize, of: usize| bar.set(done as u64, of as u64, "");
    let advice = advise(&program, &checked, &question, &interrupt, progress)
        .map_err(|why| Error::Failed(format!("{}: {why}", file.display())))?;
    drop(bar);
    let Some(advice) = advice else {
        return Err(Error::Interrupted("interrupted; nothing is kept".into()));
    };
    let mut symbols = Symbols::default();
    let mut name = |site: &Site| symbols.place(&calls(&program.modules, site.image, &site.frames));
    let document = document(&advice, &program, &question, &trace.info, &mut name);
    let code = show(&document, common)?;
    args.files.write(&document, &[])?;
    match advice.gate.passes() {
        true => Ok(code),
        false => Err(Error::Failed(format!(
            "no advice: {}",
            advice.gate.misses()
        ))),
    }
}

fn named(name: &str) -> Result<Machine, Error> {
    Machine::named(name).map_err(|e| Error::Usage(e.to_string()))
}

/// The locks of a program that can be simulated: one that is split becomes eight.
const SPLIT_LOCKS: usize = locklab_sim::MOST_LOCKS - 7;

fn program(trace: &Trace, locks: usize, with_recorder: bool) -> Result<Program, Fault> {
    let limits = Limits {
        locks,
        with_recorder,
        ..Limits::default()
    };
    Program::of(trace, &limits)
}

/// A clause as a sentence.
fn sentence(clause: &str) -> String {
    let mut letters = clause.chars();
    let first = letters.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(letters).chain(['.']).collect()
}

/// Nothing to gain: a sentence, and a page or a document that says no more.
fn nothing(
    args: &AdviseArgs,
    (words, waiting): (&str, f64),
    info: &Info,
    common: &Common,
) -> Result<ExitCode, Error> {
    let document = locklab_advise::nothing(words, waiting, info);
    args.files.write(&document, &[])?;
    match common.json {
        true => print(&format!("{:#}\n", Value::Object(document.data))),
        false => print(&format!("{words}\n")),
    }
}

fn question(
    args: &AdviseArgs,
    program: &Program,
    on: Vec<Machine>,
    (threads, mut locks): (Vec<usize>, Vec<Candidate>),
) -> Result<Question, Error> {
    let here = match &args.here {
        Some(name) => named(name)?,
        None => here(program)?,
    };
    let machines = if on.is_empty() {
        vec![here.clone()]
    } else {
        on
    };
    let readers = program.locks.iter().any(|lock| lock.shared);
    if locks.is_empty() {
        locks = candidates(&machines, readers);
    }
    locks.retain(|candidate| !TODAY.contains(&candidate.lock.as_str()));
    Ok(Question {
        machines,
        here,
        replayed: Here::Not("it was not asked for".into()),
        fewer: None,
        threads,
        locks,
        draws: args.draws.into(),
        seed: args.seed,
        workers: workers(),
    })
}

/// A model of the machine that recorded, of what the recording says.
fn here(program: &Program) -> Result<Machine, Error> {
    let cpus = program.recorded.cpus;
    let cpus = cpus.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    generic(cpus).map_err(Error::Failed)
}

fn dry_run(question: &Question) -> Result<ExitCode, Error> {
    let machines: Vec<&str> = question.machines.iter().map(|m| m.name.as_str()).collect();
    let locks: Vec<String> = question.locks.iter().map(Candidate::name).collect();
    print(&format!(
        "Would simulate the recorded program on {}, under {} ({}).\n",
        machines.join(", "),
        count(locks.len(), "other lock"),
        locks.join(", ")
    ))
}
