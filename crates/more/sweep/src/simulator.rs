//! One run of a sweep: both locks of a pair, simulated with one seed.
//!
//! The result of a run depends on its number in the plan alone. Runs that differ
//! only in their locks have consecutive numbers, so each lock is simulated once
//! for all pairs that it is in.

use crate::plan::{Plan, Run};
use locklab_judge::fork_seed;
use locklab_lab::experiment::{Invalid, Sample};
use locklab_modelled::{Spec, sample};
use locklab_sim::{Machine, band};
use serde_json::json;
use std::collections::HashMap;

/// Carries out runs in any order; the order of the plan is the fastest.
pub(crate) struct Simulator<'a> {
    plan: &'a Plan,
    /// Index of the last run's machine, and the machines drawn from its band.
    drawn: Option<(usize, Vec<Machine>)>,
    /// Index of the last run's block, and its specification for the simulator.
    spec: Option<(usize, Spec)>,
    /// Block, cell and replicate of the last run.
    at: Option<(usize, usize, u32)>,
    /// The sample of each lock there.
    samples: HashMap<String, Sample>,
}

impl<'a> Simulator<'a> {
    pub(crate) fn new(plan: &'a Plan) -> Self {
        Self {
            plan,
            drawn: None,
            spec: None,
            at: None,
            samples: HashMap::new(),
        }
    }

    /// Simulates a run; returns both samples, the baseline's first.
    pub(crate) fn run(&mut self, run: &Run) -> [Sample; 2] {
        let at = (run.block, run.cell, run.replicate);
        if self.at != Some(at) {
            self.samples.clear();
            self.at = Some(at);
        }
        let plan = self.plan;
        let pair = &plan.pairs[run.pair];
        [&pair.baseline, &pair.experiment].map(|lock| match self.samples.get(lock) {
            Some(sample) => sample.clone(),
            None => {
                let sample = self.simulate(run, lock);
                self.samples.insert(lock.clone(), sample.clone());
                sample
            }
        })
    }

    fn simulate(&mut self, run: &Run, lock: &str) -> Sample {
        let plan = self.plan;
        let block = &plan.blocks[run.block];
        if self.spec.as_ref().is_none_or(|(of, _)| *of != run.block) {
            self.spec = Some((run.block, plan.spec(block, &plan.pairs[run.pair])));
        }
        if self
            .drawn
            .as_ref()
            .is_none_or(|(of, _)| *of != block.machine)
        {
            self.drawn = Some((block.machine, drawn(plan, block.machine)));
        }
        let (Some((_, spec)), Some((_, machines))) = (&self.spec, &self.drawn) else {
            return failed("it has no machine".into());
        };
        // 'locklab matrix' derives the seed of a pair in the same way.
        let seed = fork_seed(
            fork_seed(plan.file.seed, run.cell as u64),
            run.replicate.into(),
        );
        let machine = &machines[(run.replicate / plan.file.seeds) as usize];
        let scenario = spec.scenario(machine, block.places[run.cell], lock, seed);
        match locklab_sim::run(&scenario) {
            Ok(outcome) => {
                let mut sample = sample(&outcome, spec.cells.latency);
                // No reader of a sweep needs these up to 288 numbers.
                sample.detail["ops_by_thread"] = json!([]);
                sample
            }
            Err(e) => failed(e.to_string()),
        }
    }
}

/// Returns the sample of a run that failed; other locks' runs are not affected.
fn failed(why: String) -> Sample {
    Sample::invalid(Invalid::Failed(why))
}

/// Returns the machines drawn from the band of one of the plan's; the first is the model
/// itself.
fn drawn(plan: &Plan, machine: usize) -> Vec<Machine> {
    let machine = &plan.machines[machine];
    band::draws(machine, plan.file.bands as usize)
}
