//! The recordings that advice is asked of: one, or two of one program with different
//! numbers of threads.
//!
//! It must never compare recordings of different programs or machines.

use crate::fewer::Fewer;
use crate::machine::as_recorded;
use locklab_host::error::Error;
use locklab_replay::{Fault, Growth, Limits, Program, Recording};
use locklab_sim::Machine;
use locklab_trace::Info;
use std::path::Path;

/// The recording that advice is for, and perhaps one of fewer threads.
pub(crate) struct Recordings {
    /// Of the one with more threads.
    pub(crate) recording: Recording,
    fewer: Option<Recording>,
}

impl Recordings {
    /// Reads them, in any order.
    pub(crate) fn read(file: &Path, other: Option<&Path>) -> Result<Self, Error> {
        let recording = Recording::open(file, Limits::default())?;
        let Some(other) = other else {
            return Ok(Self {
                recording,
                fewer: None,
            });
        };
        let second = Recording::open(other, Limits::default())?;
        let differ = |what: &str, [one, two]: [&str; 2]| {
            let why = format!("the two recordings are of different {what}: {one}, and {two}");
            Err(failed(other, why))
        };
        let (one, two) = (recording.info(), second.info());
        if program_of(one) != program_of(two) {
            return differ("programs", [program_of(one), program_of(two)]);
        }
        if one.machine != two.machine {
            return differ("machines", [&one.machine, &two.machine]);
        }
        let threads = [threads(&recording)?, threads(&second)?];
        if threads[0] == threads[1] {
            let why = format!(
                "both recordings have {} threads that take locks; record with another number of \
                 threads",
                threads[0]
            );
            return Err(failed(other, why));
        }
        let (recording, fewer) = match threads[0] > threads[1] {
            true => (recording, second),
            false => (second, recording),
        };
        Ok(Self {
            recording,
            fewer: Some(fewer),
        })
    }

    /// What the one of fewer threads says of `program`, which is that of more, on a model
    /// of the machine that recorded both.
    pub(crate) fn fewer(
        &self,
        program: &Program,
        machine: &Machine,
    ) -> Result<Option<Fewer>, Error> {
        let Some(fewer) = &self.fewer else {
            return Ok(None);
        };
        let few = read_as(fewer, false)?;
        Ok(Some(Fewer {
            growth: Growth::between(&few, program),
            here: as_recorded(machine.clone(), &few.recorded, fewer.info().apart())?,
            program: read_as(fewer, true)?,
        }))
    }
}

/// What is wrong with a recording.
pub(crate) fn failed(file: &Path, why: impl std::fmt::Display) -> Error {
    Error::Failed(format!("{}: {why}", file.display()))
}

/// A recording of fewer threads, in which there may be one.
fn read_as(recording: &Recording, with_recorder: bool) -> Result<Program, Error> {
    let limits = Limits {
        with_recorder,
        one_thread: true,
        ..Limits::default()
    };
    let program = recording.program_within(&limits);
    program.map_err(|fault: Fault| failed(recording.path(), fault))
}

fn threads(recording: &Recording) -> Result<usize, Error> {
    Ok(read_as(recording, false)?.threads.len())
}

/// The program of a recording, without its arguments.
fn program_of(info: &Info) -> &str {
    let command = info.command.as_str();
    command.split(' ').next().unwrap_or(command)
}
