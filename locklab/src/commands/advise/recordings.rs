//! The recordings that advice is asked of: one, or two of one program with different
//! numbers of threads.
//!
//! It must never compare recordings of different programs or machines.

use super::here;
use locklab_advise::Fewer;
use locklab_host::error::Error;
use locklab_replay::{Fault, Growth, Limits, Program};
use locklab_sim::Machine;
use locklab_trace::{Info, Trace};
use std::path::Path;

/// The recording that advice is for, and perhaps one of fewer threads.
pub(super) struct Recordings<'a> {
    /// Of the one with more threads.
    pub(super) file: &'a Path,
    pub(super) trace: Trace,
    fewer: Option<(&'a Path, Trace)>,
}

impl<'a> Recordings<'a> {
    /// Reads them, in any order.
    pub(super) fn read(file: &'a Path, other: Option<&'a Path>) -> Result<Self, Error> {
        let (trace, fewer) = (read(file)?, None);
        let Some(other) = other else {
            return Ok(Self { file, trace, fewer });
        };
        let second = read(other)?;
        let differ = |what: &str, [one, two]: [&str; 2]| {
            let why = format!("the two recordings are of different {what}: {one}, and {two}");
            Err(failed(other, why))
        };
        let (one, two) = (&trace.info, &second.info);
        if program_of(one) != program_of(two) {
            return differ("programs", [program_of(one), program_of(two)]);
        }
        if one.machine != two.machine {
            return differ("machines", [&one.machine, &two.machine]);
        }
        let threads = [threads(file, &trace)?, threads(other, &second)?];
        if threads[0] == threads[1] {
            let why = format!(
                "both recordings have {} threads that take locks; record with another number of \
                 threads",
                threads[0]
            );
            return Err(failed(other, why));
        }
        Ok(match threads[0] > threads[1] {
            true => Self {
                file,
                trace,
                fewer: Some((other, second)),
            },
            false => Self {
                file: other,
                trace: second,
                fewer: Some((file, trace)),
            },
        })
    }

    /// What the one of fewer threads says of `program`, which is that of more, on a model
    /// of the machine that recorded both.
    pub(super) fn fewer(
        &self,
        program: &Program,
        machine: &Machine,
    ) -> Result<Option<Fewer>, Error> {
        let Some((file, trace)) = &self.fewer else {
            return Ok(None);
        };
        let few = read_as(file, trace, false)?;
        Ok(Some(Fewer {
            growth: Growth::between(&few, program),
            here: here::as_recorded(machine.clone(), &few.recorded, trace.info.apart())?,
            program: read_as(file, trace, true)?,
        }))
    }
}

/// What is wrong with a recording.
pub(super) fn failed(file: &Path, why: impl std::fmt::Display) -> Error {
    Error::Failed(format!("{}: {why}", file.display()))
}

fn read(file: &Path) -> Result<Trace, Error> {
    let bytes = std::fs::read(file).map_err(|e| failed(file, format!("cannot be read: {e}")))?;
    Trace::read(bytes).map_err(|fault| failed(file, fault))
}

/// A recording of fewer threads, in which there may be one.
fn read_as(file: &Path, trace: &Trace, with_recorder: bool) -> Result<Program, Error> {
    let limits = Limits {
        with_recorder,
        one_thread: true,
        ..Limits::default()
    };
    Program::of(trace, &limits).map_err(|fault: Fault| failed(file, fault))
}

fn threads(file: &Path, trace: &Trace) -> Result<usize, Error> {
    Ok(read_as(file, trace, false)?.threads.len())
}

/// The program of a recording, without its arguments.
fn program_of(info: &Info) -> &str {
    let command = info.command.as_str();
    command.split(' ').next().unwrap_or(command)
}
