//! A second recording of the program, of fewer threads: how holds grow, and whether it
//! predicts the one of more.
//!
//! It must never compare recordings of different programs or machines, nor let a
//! prediction pass that counts work rather than progress: threads that only hold for
//! longer compute just as much.

use crate::here::as_recorded;
use crate::limits::MOST_EVENTS;
use locklab_host::error::Error;
use locklab_replay::{Growth, Limits, NoGrowth, Program, Recording};
use locklab_sim::{Machine, Placement, Replay, SimError, Subject, replay};
use locklab_trace::Info;
use std::path::Path;

/// Reads a second recording, and returns both in order of their threads: the one of more
/// is that which advice is for.
///
/// # Errors
/// [`Error::Failed`] if it is no recording of this version, or the two are not of one
/// program and machine with different numbers of threads.
pub(crate) fn with_second(first: Recording, other: &Path) -> Result<[Recording; 2], Error> {
    let second = Recording::open(other, Limits::default())?;
    let differ = |what: &str, [one, two]: [&str; 2]| {
        let why = format!("the two recordings are of different {what}: {one}, and {two}");
        Err(second.failed(why))
    };
    let (one, two) = (first.info(), second.info());
    if program_of(one) != program_of(two) {
        return differ("programs", [program_of(one), program_of(two)]);
    }
    if one.machine != two.machine {
        return differ("machines", [&one.machine, &two.machine]);
    }
    let threads = [threads(&first)?, threads(&second)?];
    if threads[0] == threads[1] {
        let why = format!(
            "both recordings have {} threads that take locks; record with another number of \
             threads",
            threads[0]
        );
        return Err(second.failed(why));
    }
    Ok(match threads[0] > threads[1] {
        true => [first, second],
        false => [second, first],
    })
}

/// Returns the program of a recording of fewer threads, in which there may be one.
fn read_as(recording: &Recording, with_recorder: bool) -> Result<Program, Error> {
    let limits = Limits {
        with_recorder,
        one_thread: true,
        ..Limits::default()
    };
    let program = recording.program_within(&limits);
    program.map_err(|fault| recording.failed(fault))
}

fn threads(recording: &Recording) -> Result<usize, Error> {
    Ok(read_as(recording, false)?.threads.len())
}

/// Returns the program of a recording, without its arguments.
fn program_of(info: &Info) -> &str {
    let command = info.command.as_str();
    command.split(' ').next().unwrap_or(command)
}

/// A recording of fewer threads.
#[derive(Clone, Debug)]
pub struct Fewer {
    /// The program, read with the recorder's part.
    pub program: Program,
    /// A model of the machine while it was recorded.
    pub here: Machine,
    /// Says how holds grow from it to the recording that advice is for; or why that is
    /// not known, and then they do not.
    pub growth: Result<Growth, NoGrowth>,
}

/// Describes what it says of the recording of more threads.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Predicted {
    /// Threads of the classes that scale: in it, and in the one of more.
    pub threads: [usize; 2],
    /// The acquisitions a second that it predicts, divided by those that were recorded; or
    /// the reason why it predicts none.
    pub ratio: Result<f64, String>,
    /// Says how holds grow, or why that is not known.
    pub growth: Result<Growth, NoGrowth>,
}

impl Fewer {
    /// Reads the recording of fewer threads beside `program`, which is that of more, on a
    /// model of the machine that recorded both.
    ///
    /// # Errors
    /// [`Error::Failed`] if the recording describes no program.
    pub(crate) fn of(
        recording: &Recording,
        program: &Program,
        machine: &Machine,
    ) -> Result<Self, Error> {
        let few = read_as(recording, false)?;
        Ok(Self {
            growth: Growth::between(&few, program),
            here: as_recorded(machine.clone(), &few.recorded, recording.info().apart())?,
            program: read_as(recording, true)?,
        })
    }

    /// Simulates the recording of more threads, read with the recorder's part, by what
    /// was recorded of fewer.
    pub(crate) fn predicts(&self, many: &Program, seed: u64) -> Result<Predicted, SimError> {
        Ok(Predicted {
            threads: [self.program.scaling_threads(), many.scaling_threads()],
            ratio: self.ratio(many, seed)?,
            growth: self.growth.clone(),
        })
    }

    fn ratio(&self, many: &Program, seed: u64) -> Result<Result<f64, String>, SimError> {
        let few = &self.program;
        if few.locks.is_empty() {
            return Ok(Err("no two of its threads use the same lock".into()));
        }
        if !few.can_be_extrapolated() {
            return Ok(Err("what its threads wait for is mostly not known".into()));
        }
        let Some(roles) = few.cast_as(many, seed) else {
            return Ok(Err("its threads are of other classes".into()));
        };
        let grown = match &self.growth {
            Ok(growth) => few.with_running(growth, many.running()),
            Err(_) => few.clone(),
        };
        let cpus = self.here.hardware_threads();
        let simulated = replay(&Replay {
            machine: &self.here,
            lock: Subject::Glibc,
            program: &grown,
            roles: &roles,
            hardware_threads: Some(many.recorded.cpus.map_or(cpus, |there| there.min(cpus))),
            placement: Placement::Spread,
            seed,
            work_ns: many.recorded.work_ns,
            most_events: MOST_EVENTS,
        })?;
        let acquired: u64 = many.locks.iter().map(|lock| lock.acquired).sum();
        let recorded = acquired as f64 / many.recorded.window_ns.max(1.0) * 1e9;
        Ok(Ok(simulated.acquisitions_per_s / recorded.max(1e-9)))
    }
}

impl Predicted {
    /// Returns a sentence on it, for the head of a report.
    pub(crate) fn words(&self) -> String {
        let [few, many] = self.threads;
        let growth = match &self.growth {
            Ok(growth) => format!(
                "holds take {:.2} times as long with {} threads at a time as with {}, at places \
                 of {:.0} % of the sections, so they grow with the power {:.2} of their number",
                growth.times,
                growth.running[1],
                growth.running[0],
                100.0 * growth.common,
                growth.overall()
            ),
            Err(why) => format!("how holds grow is not known: {why}"),
        };
        match &self.ratio {
            Ok(ratio) => format!(
                "the recording of {few} predicts {ratio:.2} times the acquisitions a second that \
                 were recorded of {many}; {growth}"
            ),
            Err(why) => format!(
                "the recording of {few} does not say what that of {many} has: {why}; {growth}"
            ),
        }
    }
}
