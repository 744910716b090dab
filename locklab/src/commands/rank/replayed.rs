//! `locklab rank --replay FILE`: the locks under a recorded program.

use super::arguments::RankSettings;
use locklab_harness::settings::refuse;
use locklab_host::error::Error;
use locklab_native::{Native, Plan, Replay, Spec};
use locklab_replay::{Limits, Recording};
use std::path::Path;

/// Refuses what a recording says itself.
pub(super) fn check(args: &RankSettings, machine: Option<&str>) -> Result<(), Error> {
    const WHY: &str = "does not go with --replay: the recording says what threads do";
    if let Some(machine) = machine {
        return Err(Error::Usage(format!(
            "--replay is replayed on this machine; leave out --on {machine}"
        )));
    }
    let lengths = [
        ("--critical", args.locks.cells.critical.is_some()),
        ("--non-critical", args.locks.cells.non_critical.is_some()),
    ];
    if let Some((option, _)) = lengths.iter().find(|(_, given)| *given) {
        return Err(Error::Usage(format!("{option} {WHY}")));
    }
    refuse(&args.locks.turns, WHY)
}

/// Returns the program of the recording in `file`.
pub(super) fn replay(file: &Path) -> Result<Replay, Error> {
    let limits = Limits {
        locks: Replay::MOST_LOCKS,
        ..Limits::default()
    };
    let recording = Recording::open(file, limits)?;
    let program = recording
        .program()
        .map_err(|fault| Error::Failed(format!("{}: {fault}", file.display())))?;
    Replay::new(program, &file.display().to_string()).map_err(|e| Error::Failed(e.to_string()))
}

/// Returns the numbers of workers for the numbers of threads that were asked for.
pub(super) fn workers(args: &RankSettings, replay: &Replay) -> Result<Vec<usize>, Error> {
    let asked = match &args.locks.cells.threads {
        Some(threads) => threads.distinct().into_iter().map(Some).collect(),
        None => vec![None],
    };
    let workers = asked.into_iter().map(|threads| replay.workers(threads));
    workers.collect()
}

/// Returns the plan of the specification, with the program where there is one.
pub(super) fn plan(spec: Spec, replay: Option<Replay>, native: &Native) -> Result<Plan, Error> {
    match replay {
        Some(replay) => Plan::replaying(spec, replay, native),
        None => Plan::new(spec, native),
    }
}
