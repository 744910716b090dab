//! `locklab verify`: every promise of every lock under a model checker, and
//! every memory ordering weakened in turn.

use crate::cli::{Common, VerifyArgs};
use crate::matrix_command::print;
use crate::native::subject;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use locklab_host::error::Error;
use locklab_verify::{
    LockResult, Options, THOROUGH_EXECUTIONS, THOROUGH_SCHEDULES, record, table, verify,
};
use serde_json::json;
use std::process::ExitCode;
use std::time::Duration;

/// Runs it.
///
/// # Errors
/// A name is no lock's, or standard output cannot be written.
pub(crate) fn run(args: &VerifyArgs, common: &Common) -> Result<ExitCode, Error> {
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
    let options = Options {
        mutants: args.mutants,
        executions: match args.executions {
            Some(executions) => executions,
            None if args.thorough => THOROUGH_EXECUTIONS,
            None => defaults.executions,
        },
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
    let bar = bar(common.quiet);
    let results = verify(&names, options, &|progress| {
        bar.set_length(progress.total as u64);
        bar.set_position(progress.done as u64);
        bar.set_message(progress.what);
    })
    .map_err(|error| Error::Usage(error.to_string()))?;
    bar.finish_and_clear();
    if let Some(path) = &args.record {
        std::fs::write(path, record::lines(&results))
            .map_err(|error| Error::Failed(format!("cannot write {}: {error}", path.display())))?;
    }
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

/// No promise broken or left unexplored, no ordering without need.
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
        text.push_str("then the same with each memory ordering one step weaker\n");
    }
    text
}

fn bar(quiet: bool) -> ProgressBar {
    let target = if quiet {
        ProgressDrawTarget::hidden()
    } else {
        ProgressDrawTarget::stderr()
    };
    let bar = ProgressBar::with_draw_target(Some(0), target);
    if let Ok(style) = ProgressStyle::with_template("{bar:20} {pos}/{len}, {eta} left  {msg}") {
        bar.set_style(style);
    }
    bar
}
