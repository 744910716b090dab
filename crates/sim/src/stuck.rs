//! The report on a simulated lock that does not work.
//!
//! A deadlock or livelock ends the simulation with the state of every CPU and
//! the word each waits on; so does a second holder.

use crate::engine::{Engine, Phase};
use std::fmt;

/// Why a simulation has no outcome.
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
        /// The lock.
        lock: String,
        /// The CPU that held it.
        holder: usize,
        /// The CPU that entered as well.
        intruder: usize,
        /// Simulated time.
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
    /// No lock of this name.
    #[error("there is no lock called `{0}`; `locklab locks` lists them")]
    UnknownLock(String),
    /// The error of a lock that simulates itself.
    #[error("{0}")]
    Foreign(String),
    /// The scenario cannot be run on its machine.
    #[error("{0}")]
    Scenario(String),
}

impl SimError {
    /// The state of the CPUs, if the error has one.
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
    /// The lock.
    pub lock: String,
    /// The machine.
    pub machine: String,
    /// The seed.
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

impl Engine {
    fn stuck(&self, now: u64) -> Box<StuckReport> {
        let cpus = self
            .cpus
            .iter()
            .enumerate()
            .map(|(number, cpu)| {
                let phase = cpu.phase.get();
                let waits = matches!(
                    phase,
                    Phase::Watching
                        | Phase::Polling
                        | Phase::SpinMiss
                        | Phase::Found
                        | Phase::Asleep
                        | Phase::Halted
                );
                let (address, size) = cpu.word.get();
                let known = waits && address != 0;
                // Labels hold no path of the machine that built this.
                let place = cpu.place.get().map(|place| {
                    let file = place.file();
                    let file = file.rfind("/crates/").map_or(file, |at| &file[at + 1..]);
                    format!("{file}:{}", place.line())
                });
                CpuState {
                    cpu: number,
                    doing: match phase {
                        Phase::Asleep => "spins on",
                        Phase::Watching | Phase::Polling | Phase::SpinMiss if !cpu.on.get() => {
                            "descheduled while spinning on"
                        }
                        Phase::Watching | Phase::Polling | Phase::SpinMiss | Phase::Found => {
                            "spins on"
                        }
                        Phase::Halted => "halted on",
                        Phase::Sync if !cpu.on.get() => "descheduled while running",
                        Phase::Sync => "runs",
                        Phase::Miss => "waits for a cache line",
                        Phase::Drain | Phase::DrainSlot => "waits for its store buffer",
                        Phase::Done => "is done",
                    }
                    .to_owned(),
                    word: known.then(|| self.describe(address)),
                    // SAFETY: the word of an atomic in the arena.
                    value: known.then(|| unsafe { crate::store_buffer::read(address, size) }),
                    place: place.filter(|_| waits),
                    since_ns: self.ns(cpu.since.get()),
                }
            })
            .collect();
        Box::new(StuckReport {
            lock: self.metrics.lock_name.clone(),
            machine: self.metrics.machine_name.clone(),
            seed: self.metrics.seed,
            at_ns: self.ns(now),
            acquisitions: self.metrics.total(),
            cpus,
        })
    }
}

/// Checks at intervals whether any CPU makes progress.
pub(crate) struct Watchdog {
    interval: u64,
    patience: u64,
    acquisitions: u64,
    writes: u64,
    fruitless: u64,
}

impl Watchdog {
    pub(crate) fn new(engine: &Engine) -> Self {
        // An interval outlasts anything that a CPU does without touching
        // shared memory, and a round of the hypervisor.
        let ghz = engine.costs.clock_ghz;
        let quiet = engine.metrics.longest_quiet_ns * ghz;
        let round = engine.hypervisor.round(engine.cpus.len());
        Self {
            interval: (5e6 * ghz) as u64 + 4 * quiet as u64 + round,
            patience: 20,
            acquisitions: 0,
            writes: 0,
            fruitless: 0,
        }
    }

    pub(crate) fn interval(&self) -> u64 {
        self.interval
    }

    pub(crate) fn look(&mut self, engine: &Engine, now: u64) -> Option<SimError> {
        let acquisitions = engine.metrics.total();
        let writes = engine.writes.get();
        if acquisitions != self.acquisitions {
            self.fruitless = 0;
        } else {
            self.fruitless += 1;
            let asleep = engine.cpus.iter().all(|cpu| {
                matches!(
                    cpu.phase.get(),
                    Phase::Watching | Phase::Polling | Phase::Asleep | Phase::Halted | Phase::Done
                ) && cpu.stores.is_empty()
            });
            if asleep && writes == self.writes {
                return Some(SimError::Deadlock(engine.stuck(now)));
            }
            if self.fruitless >= self.patience {
                return Some(SimError::Livelock(engine.stuck(now)));
            }
        }
        (self.acquisitions, self.writes) = (acquisitions, writes);
        None
    }
}
