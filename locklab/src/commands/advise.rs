//! `locklab advise`: a recorded program, simulated under other locks, on other
//! machines and with other numbers of threads.

use crate::arguments::report_files::ReportFiles;
use crate::arguments::{Common, workers};
use crate::commands::record::of_runtime;
use crate::comparison::show;
use crate::output::{is_recording, print};
use clap::Args;
use locklab_advise::{Answer, Candidate, Question, Request, many};
use locklab_document::number::count;
use locklab_harness::progress::Progress;
use locklab_harness::settings::SEED;
use locklab_harness::workload::Threads;
use locklab_host::error::Error;
use locklab_host::interrupt;
use locklab_preload_run::Symbols;
use locklab_sim::Machine;
use locklab_system_record::{SystemRecorded, is_system_recording};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// `locklab advise`.
#[derive(Debug, Args)]
pub struct AdviseArgs {
    /// The recording, of `locklab record`. Two recordings of one program with
    /// different numbers of threads show how much longer holds take with more
    /// threads; more files, or a folder of them, get one answer with the share of
    /// each
    #[arg(value_name = "FILE", required = true)]
    pub recordings: Vec<PathBuf>,
    /// Simulate a modelled machine: names of `locklab machine list`, or files [default: a
    /// model of the machine that made the recording]
    #[arg(long, value_name = "MACHINE", value_delimiter = ',')]
    pub on: Vec<String>,
    /// Numbers of threads, such as 1,2,4..64; a thread with a special role, such
    /// as the only writer, is added to these
    #[arg(long, short, value_name = "LIST")]
    pub threads: Option<Threads>,
    /// Locks to try, whose waiters spin and then sleep; NAME:spin only spins, and
    /// running threads pass NAME:barging
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
    /// Seed of every random choice [default: 1]
    #[arg(long, value_name = "N", default_value_t = SEED, hide_default_value = true)]
    pub seed: u64,
    #[command(flatten)]
    pub(crate) files: ReportFiles,
}

/// Runs `locklab advise`.
///
/// # Errors
/// [`Error::Usage`] if a machine or a lock does not exist; [`Error::Failed`] if
/// the file is no recording of this version, or describes no program that can be
/// run again;
/// [`Error::Interrupted`] after Ctrl-C.
pub fn run(args: &AdviseArgs, common: &Common) -> Result<ExitCode, Error> {
    args.files.check(common.force)?;
    let Some((file, other)) = one_program(&args.recordings) else {
        return of_many(args, common);
    };
    if is_system_recording(file) {
        // There is nothing to simulate: holds are not in it.
        let document = SystemRecorded::read(file)?.document();
        let code = show(&document, common)?;
        args.files.write(&document, &[])?;
        return Ok(code);
    }
    if !is_recording(file)
        && let Some(code) = of_runtime(file, common)?
    {
        return Ok(code);
    }
    let asking = asked(args, file, other)?.read()?;
    if common.dry_run
        && let Some(question) = asking.question()
    {
        return dry_run(question);
    }
    let interrupt = interrupt::listen()?;
    let mut symbols = Symbols::default();
    let bar = Progress::new(1, "simulations", common.quiet);
    let progress = |done: usize, of: usize| bar.set(done as u64, of as u64, "");
    let answer = asking.answer(&mut symbols, &interrupt, progress)?;
    drop(bar);
    answered(&answer, args, common)
}

/// Returns the recording of one program, perhaps with one of another number of threads;
/// none if there are more.
fn one_program(files: &[PathBuf]) -> Option<(&Path, Option<&Path>)> {
    match files {
        [one] if !one.is_dir() => Some((one, None)),
        [one, two] if !one.is_dir() && !two.is_dir() => Some((one, Some(two))),
        _ => None,
    }
}

/// Answers for many recordings together.
fn of_many(args: &AdviseArgs, common: &Common) -> Result<ExitCode, Error> {
    let simulates = !args.on.is_empty() || args.threads.is_some() || !args.locks.is_empty();
    if simulates {
        return Err(Error::Usage(
            "--on, --threads and --locks are for one recording: several are not simulated".into(),
        ));
    }
    let mut files = Vec::new();
    for named in &args.recordings {
        match named.is_dir() {
            true => files.extend(recordings_in(named)?),
            false => files.push(named.clone()),
        }
    }
    if common.dry_run {
        return print(&format!(
            "Would read {}.\n",
            count(files.len(), "recording")
        ));
    }
    let bar = Progress::new(1, "recordings", common.quiet);
    let progress = |done: usize, of: usize| bar.set(done as u64, of as u64, "");
    let document = many(&files, (workers(), args.seed), Symbols::default, progress)?;
    drop(bar);
    args.files.write(&document, &[])?;
    show(&document, common)
}

/// Returns the recordings of programs' locks in a folder, by name; others are left out.
fn recordings_in(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let failed =
        |e: std::io::Error| Error::Failed(format!("{}: cannot be read: {e}", folder.display()));
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let file = entry.map_err(failed)?.path();
        if is_recording(&file) {
            files.push(file);
        }
    }
    files.sort();
    match files.is_empty() {
        true => Err(Error::Failed(format!(
            "{}: has no recording of 'locklab record' of a program's locks",
            folder.display()
        ))),
        false => Ok(files),
    }
}

/// Returns the question that the arguments ask.
fn asked<'a>(
    args: &'a AdviseArgs,
    file: &'a Path,
    other: Option<&'a Path>,
) -> Result<Request<'a>, Error> {
    let on = args.on.iter().map(|name| named(name));
    let locks = args.locks.iter().map(|name| {
        Candidate::named(name.trim()).ok_or_else(|| {
            Error::Usage(format!(
                "there is no lock '{name}' that can be simulated; 'locklab locks' lists them"
            ))
        })
    });
    let threads = args.threads.as_ref();
    Ok(Request {
        file,
        other,
        on: on.collect::<Result<_, _>>()?,
        here: args.here.as_deref().map(named).transpose()?,
        threads: threads.map_or_else(Vec::new, Threads::distinct),
        locks: locks.collect::<Result<_, _>>()?,
        replay: !args.no_replay,
        draws: args.draws.into(),
        seed: args.seed,
        workers: workers(),
    })
}

fn named(name: &str) -> Result<Machine, Error> {
    Machine::named(name.trim()).map_err(|e| Error::Usage(e.to_string()))
}

/// Shows an answer, and writes its files.
fn answered(answer: &Answer, args: &AdviseArgs, common: &Common) -> Result<ExitCode, Error> {
    let document = &answer.document;
    args.files.write(document, &[])?;
    if let Some(words) = &answer.nothing {
        return match common.json {
            true => print(&format!("{:#}\n", Value::Object(document.data.clone()))),
            false => print(&format!("{words}\n")),
        };
    }
    show(document, common)
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
