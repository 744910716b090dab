//! Says why a simulation has no outcome, and reports on a lock that does not work.
//!
//! A deadlock or livelock ends the simulation with the state of every CPU and
//! the word each waits on; so does a second holder.

use locklab_host::error::Error;
use std::fmt;

/// Says why a simulation has no outcome.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SimError {
    /// Every CPU waits for a word that no CPU will write.
    #[error("deadlock in simulation: {0}")]
    Deadlock(Box<StuckReport>),
    /// CPUs run, but none acquires the lock.
    #[error("livelock in simulation: {0}")]
    Livelock(Box<StuckReport>),
    /// The lock admitted two at a time.
    #[error(
        "{lock} admitted CPU {intruder} while CPU {holder} held it, at {at_ns:.0} ns of simulated time (seed {seed}): it does not exclude"
    )]
    TwoHolders {
        /// The name of the lock in the catalogue.
        lock: String,
        /// The CPU that held it.
        holder: usize,
        /// The CPU that entered as well.
        intruder: usize,
        /// Simulated time since the start, in nanoseconds.
        at_ns: f64,
        /// The seed that reproduces it.
        seed: u64,
    },
    /// The lock touched an atomic that is not in simulated memory.
    #[error(
        "the lock used an atomic outside simulated memory ({address:#x}): its state must be in the lock, its context, or the outermost 2 KiB of a stack"
    )]
    Outside {
        /// The address of the access.
        address: usize,
    },
    /// Nothing was simulated: there is no such lock, or the scenario cannot be
    /// run on its machine.
    #[error(transparent)]
    Refused(#[from] Error),
}

/// Converts it to an error with the exit code of a command.
impl From<SimError> for Error {
    fn from(error: SimError) -> Self {
        match error {
            SimError::Refused(error) => error,
            error => Self::Failed(error.to_string()),
        }
    }
}

/// Returns the refusal of a scenario that cannot be run on its machine.
pub(crate) fn refused(why: String) -> SimError {
    SimError::Refused(Error::Usage(why))
}

/// Returns the refusal of a lock that does not exist.
pub(crate) fn unknuser_lock(name: &str) -> SimError {
    refused(format!(
        "there is no lock called `{name}`; `locklab locks` lists them"
    ))
}

impl SimError {
    /// Returns the state of the CPUs, if the error has one.
    pub(crate) fn report_mut(&mut self) -> Option<&mut StuckReport> {
        match self {
            Self::Deadlock(report) | Self::Livelock(report) => Some(report),
            _ => None,
        }
    }
}

/// The state of every CPU.
#[derive(Clone, Debug, PartialEq)]
pub struct StuckReport {
    /// The name of the lock in the catalogue.
    pub lock: String,
    /// The name of the modelled machine.
    pub machine: String,
    /// The seed that reproduces it.
    pub seed: u64,
    /// Simulated time, in ns.
    pub at_ns: f64,
    /// Acquisitions until then.
    pub acquisitions: u64,
    /// One entry for each CPU.
    pub cpus: Vec<CpuState>,
}

/// The state of one CPU.
#[derive(Clone, Debug, PartialEq)]
pub struct CpuState {
    /// The number of the CPU.
    pub cpu: usize,
    /// A description of its state.
    pub doing: String,
    /// The word it waits on, if it does: `lock+2`.
    pub word: Option<String>,
    /// That word's value.
    pub value: Option<u64>,
    /// The place in the lock's source.
    pub place: Option<String>,
    /// The time since when, in ns.
    pub since_ns: f64,
}

impl fmt::Display for StuckReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} on {}, seed {}, after {} acquisitions and {:.0} ns",
            self.lock, self.machine, self.seed, self.acquisitions, self.at_ns
        )?;
        for cpu in &self.cpus {
            write!(f, "\n  CPU {:3}  {}", cpu.cpu, cpu.doing)?;
            if let (Some(word), Some(value)) = (&cpu.word, cpu.value) {
                write!(f, " {word} = {value:#x}")?;
            }
            write!(f, " since {:.0} ns", cpu.since_ns)?;
            if let Some(place) = &cpu.place {
                write!(f, ", at {place}")?;
            }
        }
        Ok(())
    }
}
