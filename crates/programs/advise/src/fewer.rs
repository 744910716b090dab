//! A second recording of the program, of fewer threads: how holds grow, and whether it
//! predicts the one of more.
//!
//! It must never let a prediction pass that counts work rather than progress: threads
//! that only hold for longer compute just as much.

use crate::candidates::TODAYS;
use locklab_replay::{Growth, NoGrowth, Program};
use locklab_sim::{Machine, Placement, Replay, SimError, replay};

/// A recording of fewer threads.
#[derive(Clone, Debug)]
pub struct Fewer {
    /// The program, read with the recorder's part.
    pub program: Program,
    /// A model of the machine while it was recorded.
    pub here: Machine,
    /// How holds grow from it to the recording that advice is for; or why that is not
    /// known, and then they do not.
    pub growth: Result<Growth, NoGrowth>,
}

/// What it says of the recording of more threads.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Predicted {
    /// Threads of the classes that scale: in it, and in the one of more.
    pub threads: [usize; 2],
    /// Acquisitions a second that it predicts, by those that were recorded; or why it
    /// says none.
    pub ratio: Result<f64, String>,
    /// How holds grow, or why that is not known.
    pub growth: Result<Growth, NoGrowth>,
}

impl Fewer {
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
            lock: TODAYS,
            program: &grown,
            roles: &roles,
            hardware_threads: Some(many.recorded.cpus.map_or(cpus, |there| there.min(cpus))),
            placement: Placement::Spread,
            seed,
            work_ns: many.recorded.work_ns,
        })?;
        let acquired: u64 = many.locks.iter().map(|lock| lock.acquired).sum();
        let recorded = acquired as f64 / many.recorded.window_ns.max(1.0) * 1e9;
        Ok(Ok(simulated.acquisitions_per_s / recorded.max(1e-9)))
    }
}

impl Predicted {
    /// In a sentence, for the head of a report.
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
