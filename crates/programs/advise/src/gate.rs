//! The gate: the program under its own lock, as recorded, must get on as it did.

use crate::candidates::TODAYS;
use crate::fewer::Predicted;
use crate::here::Here;
use crate::question::Question;
use locklab_replay::Program;
use locklab_sim::{Placement, Replay, Replayed, SimError, replay};

/// By how much the simulated rate may differ from the recorded one.
pub const TOLERANCE: f64 = 0.15;

/// How the program's own rate was met.
#[derive(Clone, Debug)]
pub struct Gate {
    /// By real threads.
    pub here: Here,
    /// Threads that computed at a time, as recorded.
    pub recorded: f64,
    /// The same program under its own lock, simulated.
    pub simulated: Replayed,
    /// What a recording of fewer threads predicts, if there is one.
    pub fewer: Option<Predicted>,
}

impl Gate {
    /// Simulates a program, read with the recorder's part, on a model of the
    /// machine that recorded.
    pub(crate) fn of(program: &Program, question: &Question) -> Result<Self, SimError> {
        let (here, seed) = (&question.here, question.seed);
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
        let fewer = question.fewer.as_ref();
        let fewer = fewer.map(|fewer| fewer.predicts(program, seed));
        Ok(Self {
            here: question.replayed.clone(),
            recorded: program.recorded.rate(),
            simulated,
            fewer: fewer.transpose()?,
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
        within(self.ratio()) && self.passes_here() && self.predicted().is_none_or(within)
    }

    /// What a recording of fewer threads predicts of this one, by what it has.
    pub(crate) fn predicted(&self) -> Option<f64> {
        self.fewer.as_ref()?.ratio.as_ref().ok().copied()
    }

    /// Whether the replay by real threads does not forbid it.
    #[must_use]
    pub fn passes_here(&self) -> bool {
        match self.here {
            Here::Rate(ratio) => within(ratio),
            Here::Not(_) => true,
        }
    }

    /// Which rates were not met, in words; empty if all were.
    #[must_use]
    pub fn misses(&self) -> String {
        let simulated = match within(self.ratio()) {
            false => Some(format!(
                "the simulated program gets on at {:.2} times its recorded rate",
                self.ratio()
            )),
            true => None,
        };
        let here = match self.here {
            Here::Rate(ratio) if !within(ratio) => Some(format!(
                "replayed here by real threads it has {ratio:.2} times its recorded rate"
            )),
            _ => None,
        };
        let fewer = match self.predicted() {
            Some(ratio) if !within(ratio) => Some(format!(
                "the recording of fewer threads predicts {ratio:.2} times the acquisitions a \
                 second of the one of more"
            )),
            _ => None,
        };
        let all: Vec<String> = simulated.into_iter().chain(here).chain(fewer).collect();
        all.join(", and ")
    }
}

fn within(ratio: f64) -> bool {
    (1.0 - TOLERANCE..=1.0 + TOLERANCE).contains(&ratio)
}

#[cfg(test)]
mod tests {
    use super::*;
    use locklab_replay::NoGrowth;
    use locklab_sim::Latency;

    fn gate(simulated: f64, here: Here) -> Gate {
        Gate {
            here,
            recorded: 1.0,
            simulated: Replayed {
                rate: simulated,
                acquisitions_per_s: 0.0,
                wait: Latency::default(),
                waited: 0.0,
                burnt: 0.0,
                jain: 1.0,
                locks: Vec::new(),
                seconds: 1.0,
                forced: 0,
                trace_hash: 0,
                events: 0,
            },
            fewer: None,
        }
    }

    #[test]
    fn so_does_a_recording_of_fewer_threads_that_predicts_another_rate() {
        let with = |ratio| Gate {
            fewer: Some(Predicted {
                threads: [2, 8],
                ratio,
                growth: Err(NoGrowth::NoPlace),
            }),
            ..gate(1.0, Here::Rate(1.0))
        };
        assert!(with(Ok(0.9)).passes());
        assert!(with(Err("it has one thread".into())).passes());
        assert!(!with(Ok(1.3)).passes());
        assert_eq!(
            with(Ok(1.3)).misses(),
            "the recording of fewer threads predicts 1.30 times the acquisitions a second of the \
             one of more"
        );
    }

    #[test]
    fn either_replay_shuts_the_gate_and_none_does_not() {
        assert!(gate(1.1, Here::Rate(0.9)).passes());
        assert!(gate(1.1, Here::Not("it is elsewhere".into())).passes());
        let simulated = gate(1.5, Here::Rate(1.0));
        assert!(!simulated.passes() && simulated.passes_here());
        assert_eq!(
            simulated.misses(),
            "the simulated program gets on at 1.50 times its recorded rate"
        );
        let here = gate(1.0, Here::Rate(0.5));
        assert!(!here.passes());
        assert_eq!(
            here.misses(),
            "replayed here by real threads it has 0.50 times its recorded rate"
        );
    }
}
