//! The gate: the program under its own lock, as recorded, must get on as it did.

use crate::candidates::TODAYS;
use locklab_replay::Program;
use locklab_sim::{Machine, Placement, Replay, Replayed, SimError, replay};

/// By how much the simulated rate may differ from the recorded one.
pub const TOLERANCE: f64 = 0.15;

/// How the program's own rate was met.
#[derive(Clone, Debug)]
pub struct Gate {
    /// Threads that computed at a time, as recorded.
    pub recorded: f64,
    /// The same program under its own lock, simulated.
    pub simulated: Replayed,
}

impl Gate {
    /// Simulates a program, read with the recorder's part, on a model of the
    /// machine that recorded.
    pub(crate) fn of(program: &Program, here: &Machine, seed: u64) -> Result<Self, SimError> {
        let roles = program.cast(None, seed);
        let cpus = here.hardware_threads();
        let simulated = replay(&Replay {
            machine: here,
            lock: TODAYS,
            program,
            roles: &roles,
            hardware_threads: Some(program.recorded.cpus.map_or(cpus, |there| there.min(cpus))),
            placement: Placement::Spread,
            seed,
            work_ns: program.recorded.work_ns,
        })?;
        Ok(Self {
            recorded: program.recorded.rate(),
            simulated,
        })
    }

    /// The simulated rate by the recorded one.
    #[must_use]
    pub fn ratio(&self) -> f64 {
        self.simulated.rate / self.recorded.max(1e-9)
    }

    /// Whether advice may be given.
    #[must_use]
    pub fn passes(&self) -> bool {
        (1.0 - TOLERANCE..=1.0 + TOLERANCE).contains(&self.ratio())
    }
}
