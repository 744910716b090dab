//! One run of a sweep: both locks of a pair, simulated with one seed.
//!
//! What comes of a run depends on its number in the plan alone. Runs that
//! differ in their locks alone follow one another, so each lock is simulated
//! once for all pairs that it is in.

use crate::plan::{Plan, Run};
use locklab_judge::fork_seed;
use locklab_lab::experiment::{Invalid, Sample};
use locklab_sim::{Machine, band};
use locklab_simulated::{Spec, sample};
use serde_json::json;
use std::collections::HashMap;

/// Carries out runs, in any order; best in that of the plan.
pub(crate) struct Simulator<'a> {
    plan: &'a Plan,
    /// The machine of the last run, and those drawn from its band.
    drawn: Option<(usize, Vec<Machine>)>,
    /// The block of the last run, and what is asked of the simulator there.
    spec: Option<(usize, Spec)>,
    /// Block, cell and replicate of the last run.
    at: Option<(usize, usize, u32)>,
    /// What came of each lock there.
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

    /// Both samples of a run, the baseline's first.
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
        // As 'locklab matrix' has it: the seed of a cell, then that of a pair.
        let seed = fork_seed(
            fork_seed(plan.file.seed, run.cell as u64),
            run.replicate.into(),
        );
        let machine = &machines[(run.replicate / plan.file.seeds) as usize];
        let scenario = spec.scenario(machine, block.places[run.cell], lock, seed);
        match locklab_sim::run(&scenario) {
            Ok(outcome) => {
                let mut sample = sample(&outcome, spec.latency);
                // Up to 288 numbers, which nothing of a sweep reads.
                sample.detail["ops_by_thread"] = json!([]);
                sample
            }
            Err(e) => failed(e.to_string()),
        }
    }
}

/// A lock that fails costs its own runs, not those of the others.
fn failed(why: String) -> Sample {
    Sample::invalid(Invalid::Failed(why))
}

/// The machines of the band of one of the plan's, itself the first.
fn drawn(plan: &Plan, machine: usize) -> Vec<Machine> {
    let machine = &plan.machines[machine];
    band::draws(machine, plan.file.bands as usize)
}
