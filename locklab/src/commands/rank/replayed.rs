//! `locklab rank --trace FILE`: the locks under a recorded program.

use super::arguments::RankSettings;
use locklab_host::error::Error;
use locklab_lab::settings::refuse;
use locklab_native::{Native, Plan, Replay, Spec};
use locklab_replay::{Limits, Program};
use locklab_trace::Trace;
use std::path::Path;

/// The most locks that are replayed; what is done with others is work.
pub(crate) const MOST_LOCKS: usize = 64;

/// Refuses what a recording says itself.
pub(super) fn check(args: &RankSettings, machine: Option<&str>) -> Result<(), Error> {
    const WHY: &str = "does not go with --trace: the recording says what threads do";
    if let Some(machine) = machine {
        return Err(Error::Usage(format!(
            "--trace is replayed on this machine; leave out --on {machine}"
        )));
    }
    let lengths = [
        ("--critical", args.cells.critical.is_some()),
        ("--non-critical", args.cells.non_critical.is_some()),
    ];
    if let Some((option, _)) = lengths.iter().find(|(_, given)| *given) {
        return Err(Error::Usage(format!("{option} {WHY}")));
    }
    refuse(&args.turns, WHY)
}

/// Returns the program of the recording in `file`.
pub(super) fn replay(file: &Path) -> Result<Replay, Error> {
    let failed = |why: String| Error::Failed(format!("{}: {why}", file.display()));
    let bytes = std::fs::read(file).map_err(|e| failed(format!("cannot be read: {e}")))?;
    let trace = Trace::read(bytes).map_err(|fault| failed(fault.to_string()))?;
    let limits = Limits {
        locks: MOST_LOCKS,
        ..Limits::default()
    };
    let program = Program::of(&trace, &limits).map_err(|fault| failed(fault.to_string()))?;
    Replay::new(program, &file.display().to_string()).map_err(|e| Error::Failed(e.to_string()))
}

/// Returns the numbers of workers for the numbers of threads that were asked for.
pub(super) fn workers(args: &RankSettings, replay: &Replay) -> Result<Vec<usize>, Error> {
    let asked = match &args.cells.threads {
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
