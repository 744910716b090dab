//! `locklab verify`: every promise of every lock under a model checker, and
//! every operation of its source changed in turn.

use crate::cli::Common;
use crate::output::print;
use clap::Args;
use locklab_host::error::Error;
use locklab_lab::progress::Progress;
use locklab_native::subject;
use locklab_verify::{
    LockResult, Options, THOROUGH_EXECUTIONS, THOROUGH_SCHEDULES, markdown, record, table, traces,
    verify,
};
use serde_json::json;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// `locklab verify`.
///
/// Exit code 1 if a promise is broken or a mutant survives.
#[derive(Debug, Args)]
pub struct VerifyArgs {
    /// The locks, and 'spin-then-park' [default: all]
    #[arg(value_name = "LOCK")]
    pub locks: Vec<String>,
    /// Change each operation in turn: each must break a promise
    ///
    /// Orderings one step weaker; stores, waits and wake-ups left out; bugs
    /// that people make planted in the source.
    #[arg(long)]
    pub mutants: bool,
    /// Sixty times the executions, fifty times the schedules: hours
    #[arg(long)]
    pub thorough: bool,
    /// Executions of a promise at most [default: 16000]
    ///
    /// What does not end with any number of preemptions is explored with as
    /// many as this allows; the table says how many.
    #[arg(long, value_name = "N", conflicts_with = "thorough",
          value_parser = clap::value_parser!(u64).range(1..))]
    pub executions: Option<u64>,
    /// Random schedules of each lock [default: 1000]
    #[arg(long, value_name = "N", conflicts_with = "thorough",
          value_parser = clap::value_parser!(u32).range(1..))]
    pub schedules: Option<u32>,
    /// Seconds for a promise at most [default: no limit]
    ///
    /// With it, what is found may depend on the machine.
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    pub seconds: Option<u64>,
    /// Also write one line a lock to this file, in the place of its old one
    ///
    /// What 'locklab locks' says of how a lock is verified comes from such a
    /// file, crates/verify/verified.tsv.
    #[arg(long, value_name = "FILE", requires = "mutants")]
    pub record: Option<PathBuf>,
    /// Also write the named bugs, and what found each, as Markdown
    #[arg(long, value_name = "FILE", requires = "mutants")]
    pub bugs: Option<PathBuf>,
    /// Also write every step of each failure to this file
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
}

/// Runs it.
///
/// # Errors
/// A name is no lock's, or standard output cannot be written.
pub fn run(args: &VerifyArgs, common: &Common) -> Result<ExitCode, Error> {
    let known = locklab_verify::names();
    for name in &args.locks {
        if !known.contains(&name.as_str()) {
            subject::find(name).map_err(Error::Usage)?;
            return Err(Error::Usage(format!(
                "'{name}' is not ours to verify: it is a peer's lock; 'locklab verify' takes \
                 those that 'locklab locks' lists with a paper"
            )));
        }
    }
    let names: Vec<String> = if args.locks.is_empty() {
        known.iter().map(|name| (*name).to_owned()).collect()
    } else {
        args.locks.clone()
    };
    let defaults = Options::default();
    let executions = match args.executions {
        Some(executions) => executions,
        None if args.thorough => THOROUGH_EXECUTIONS,
        None => defaults.executions,
    };
    let options = Options {
        mutants: args.mutants,
        executions,
        mutant_executions: executions,
        schedules: match args.schedules {
            Some(schedules) => schedules as usize,
            None if args.thorough => THOROUGH_SCHEDULES,
            None => defaults.schedules,
        },
        seed: common.seed,
        duration: args.seconds.map_or(defaults.duration, Duration::from_secs),
        ..defaults
    };
    if common.dry_run {
        return print(&plan(&names, options));
    }
    let bar = Progress::new(0, "models", common.quiet);
    let results = verify(&names, options, &|progress| {
        bar.set(progress.done as u64, progress.total as u64, &progress.what);
    })
    .map_err(|error| Error::Usage(error.to_string()))?;
    drop(bar);
    let write = |path: &Option<PathBuf>, text: &dyn Fn(&[LockResult]) -> String| {
        let Some(path) = path else { return Ok(()) };
        std::fs::write(path, text(&results))
            .map_err(|error| Error::Failed(format!("cannot write {}: {error}", path.display())))
    };
    let before = args
        .record
        .as_ref()
        .and_then(|path| std::fs::read_to_string(path).ok());
    write(&args.record, &|results| {
        record::lines(before.as_deref().unwrap_or(""), results)
    })?;
    write(&args.bugs, &markdown)?;
    write(&args.trace, &traces)?;
    let text = if common.json {
        format!(
            "{:#}\n",
            json!({
                "schema": 1,
                "provenance": {
                    "kind": "model",
                    "checkers": ["loom 0.7", "shuttle 0.9"],
                    "mutants": options.mutants,
                    "executions_at_most": options.executions,
                    "seconds_at_most": args.seconds,
                    "schedules": options.schedules,
                    "seed": options.seed,
                },
                "locks": results,
            })
        )
    } else {
        table(&results)
    };
    print(&text)?;
    Ok(if results.iter().all(proven) {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// No promise broken or left unexplored, nothing in the source without need.
fn proven(lock: &LockResult) -> bool {
    lock.holds() && lock.is_complete() && lock.survivors.is_empty()
}

fn plan(names: &[String], options: Options) -> String {
    let mut text = String::new();
    for name in names {
        let properties = locklab_verify::properties_of(name).unwrap_or_default();
        let promises: Vec<&str> = properties.iter().map(|property| property.name).collect();
        text.push_str(&format!("{name}: {}\n", promises.join("; ")));
    }
    text.push_str(&format!(
        "each with at most {} executions; then {} random schedules of each lock\n",
        options.executions, options.schedules
    ));
    if options.mutants {
        text.push_str("then the same with each operation changed in turn\n");
    }
    text
}
