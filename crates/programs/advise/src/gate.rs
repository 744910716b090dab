//! Measures how far the model is from the recording: the program under its own lock, as recorded,
//! should get on as it did. The farther it is, the wider is what is said; it must never
//! be a reason to say nothing.

use crate::fewer::Predicted;
use crate::here::Here;
use crate::limits::MOST_EVENTS;
use crate::question::Question;
use locklab_replay::Program;
use locklab_sim::{Placement, Replay, Replayed, SimError, Subject, replay};

/// The width by which a band is wider at each end than what the variants of the model span, as
/// the logarithm of a factor: with it nine of ten predictions for programs that were
/// measured afterwards held (`truth.tsv`, of a Zen 5; a test counts them).
pub(crate) const SPREAD: f64 = 0.2;

/// The least part of the recorded rate with which the model says how much a lock gains;
/// its inverse is the greatest. Beyond these it says only in which direction.
const SIZES: f64 = 0.7;

/// The part by which the simulated rate may differ from the recorded one.
pub(crate) const TOLERANCE: f64 = 0.15;

/// Describes how the program's own rate was met.
#[derive(Clone, Debug)]
pub(crate) struct Gate {
    /// It was replayed by real threads.
    pub here: Here,
    /// Threads that computed at a time, as recorded.
    pub recorded: f64,
    /// Holds the same program under its own lock, simulated.
    pub simulated: Replayed,
    /// Holds what a recording of fewer threads predicts, if there is one.
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
            lock: Subject::Glibc,
            program,
            roles: &roles,
            hardware_threads: Some(program.recorded.cpus.map_or(cpus, |there| there.min(cpus))),
            placement: Placement::Spread,
            seed,
            work_ns: program.recorded.work_ns,
            most_events: MOST_EVENTS,
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

    /// Returns the simulated rate by the recorded one.
    #[must_use]
    pub(crate) fn ratio(&self) -> f64 {
        self.simulated.rate / self.recorded.max(1e-9)
    }

    /// Returns whether the simulated rate is that of the recording, within the tolerance.
    #[must_use]
    pub(crate) fn passes(&self) -> bool {
        within(self.ratio()) && self.predicted().is_none_or(within)
    }

    /// Returns how far the model is off, as the logarithm of a factor.
    pub(crate) fn distance(&self) -> f64 {
        let off = |ratio: f64| ratio.max(1e-3).ln().abs();
        let cut = self.simulated.cut.unwrap_or(0.0);
        off(self.ratio()).max(self.predicted().map_or(0.0, off)) + cut
    }

    /// Returns whether the model is near enough for sizes, and not only for directions.
    pub(crate) fn gives_sizes(&self) -> bool {
        self.distance() <= -SIZES.ln()
    }

    /// Returns by how much a lock has to be ahead to be called better: so that its whole band
    /// is, or where there is none, by more than the model is off.
    pub(crate) fn doubt(&self) -> f64 {
        match self.gives_sizes() {
            true => self.spread(),
            false => self.distance(),
        }
    }

    /// Returns by how much a band is wider than the model's own at each end, as a logarithm.
    pub(crate) fn spread(&self) -> f64 {
        SPREAD + self.distance()
    }

    /// Returns the part of the waits for other threads that nobody could end in the
    /// simulation.
    pub(crate) fn forced(&self) -> f64 {
        self.simulated.forced as f64 / self.simulated.awaited.max(1) as f64
    }

    /// Returns what a recording of fewer threads predicts of this one, by what it has.
    pub(crate) fn predicted(&self) -> Option<f64> {
        self.fewer.as_ref()?.ratio.as_ref().ok().copied()
    }
}

fn within(ratio: f64) -> bool {
    (1.0 - TOLERANCE..=1.0 + TOLERANCE).contains(&ratio)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::{Class, Verdict};
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
                awaited: 0,
                forced: 0,
                cut: None,
                trace_hash: 0,
                events: 0,
            },
            fewer: None,
        }
    }

    #[test]
    fn a_model_that_is_off_widens_what_it_says_and_far_off_says_no_sizes() {
        let near = gate(0.83, Here::Rate(0.5));
        assert!(near.gives_sizes() && !near.passes());
        assert!(near.spread() > gate(1.0, Here::Rate(1.0)).spread());
        assert!(!gate(0.3, Here::Rate(1.0)).gives_sizes());
        assert!(near.doubt() == near.spread() && gate(0.3, Here::Rate(1.0)).doubt() > 1.0);
        assert!(!gate(3.0, Here::Rate(1.0)).gives_sizes());
        let fewer = Gate {
            fewer: Some(Predicted {
                threads: [2, 8],
                ratio: Ok(0.4),
                growth: Err(NoGrowth::NoPlace),
            }),
            ..gate(1.0, Here::Rate(1.0))
        };
        assert!(!fewer.gives_sizes(), "it predicts another rate");
    }

    /// Returns what is said with nine in ten is right in 85 to 95 of 100, where it was
    /// measured.
    #[test]
    fn bands_hold_what_was_measured_of_programs() {
        let table = include_str!("../truth.tsv");
        let rows = table.lines().filter(|line| !line.starts_with('#'));
        let (mut held, mut all) = (0, 0);
        for row in rows {
            let fields: Vec<&str> = row.split('\t').collect();
            let figure = |place: usize| fields[place].parse::<f64>().unwrap();
            let (ratio, model, measured) = (figure(1), figure(3), figure(6));
            let verdict = Verdict {
                ratio: model,
                low: figure(4),
                high: figure(5),
                class: Class::Unclear,
            };
            let [low, high] = verdict.widened(SPREAD + ratio.ln().abs());
            all += 1;
            held += u32::from((low..=high).contains(&measured));
        }
        let part = f64::from(held) / f64::from(all);
        assert!(
            all >= 50 && (0.85..=0.95).contains(&part),
            "{held} of {all}"
        );
    }
}
