//! Many locks on one modelled machine: the backend of a ranking.
//!
//! A block is one machine of the band, one seed and one point, with every lock
//! on it. The reference is simulated once in a block; every pair of the block
//! has its sample.

use crate::modelled::backend::{caveats, facts, fingerprint, pool, sample};
use crate::modelled::pool::Pool;
use crate::modelled::spec::Spec;
use locklab_harness::backend::{Backend, Pairing, Schedule, Stopped, Turn};
use locklab_harness::experiment::{Cell, Design, Experiment, Labels, Provenance, Sample, Source};
use locklab_harness::matrix::metrics;
use locklab_harness::ranking::Question;
use locklab_host::error::Error;
use locklab_judge::fork_seed;
use locklab_sim::{Machine, Outcome, SimError, run};
use locklab_workload::{Place, Waits};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// One simulation: a point, a block and a lock, by their numbers.
type Task = (usize, u32, usize);

/// Many locks on one modelled machine.
pub struct Ranked {
    spec: Spec,
    question: Question,
    machine: Machine,
    places: Vec<Place>,
    seed: u64,
    workers: usize,
    interrupt: Arc<AtomicBool>,
    pool: Option<Pool<Task, Result<Outcome, SimError>>>,
    /// The reference's samples, by point and block.
    references: HashMap<(usize, u32), Sample>,
}

impl Ranked {
    /// Prepares to simulate the locks of `question`, the reference first, at
    /// the points of `spec`; its two locks are the first of these.
    ///
    /// # Errors
    /// The errors of [`Spec::check`].
    pub fn new(
        spec: Spec,
        question: Question,
        machine: Machine,
        seed: u64,
        workers: usize,
        interrupt: Arc<AtomicBool>,
    ) -> Result<Self, Error> {
        spec.check(&machine)?;
        Ok(Self {
            places: spec.cells.places(),
            spec,
            question,
            machine,
            seed,
            workers,
            interrupt,
            pool: None,
            references: HashMap::new(),
        })
    }

    fn task(&self, turn: &Turn) -> Task {
        let others = self.question.subjects.len() - 1;
        (turn.cell / others, turn.pair, 1 + turn.cell % others)
    }

    fn fetch(&self, task: Task) -> Result<Sample, Stopped> {
        let pool = pool(&self.pool)?;
        // Where a lock fails, the others go on.
        let outcome = pool.simulated(task, &self.interrupt, Stopped::Cell)?;
        Ok(sample(&self.spec.by_its_rule(outcome), true))
    }
}

impl Backend for Ranked {
    /// Returns the experiment. The pairs of the design are the blocks.
    fn experiment(&self, design: Design) -> Experiment {
        let (spec, machine) = (&self.spec, &self.machine);
        let others = &self.question.subjects[1..];
        let cells = self.places.iter().flat_map(|place| {
            let threads = usize::try_from(place[0]).unwrap_or(usize::MAX);
            others.iter().map(move |other| {
                let metrics = metrics(
                    threads,
                    spec.cells.waits().max(Waits::All),
                    Source::Simulation,
                );
                let mut cell = Cell::new(spec.key(*place).of_lock(&other.name), metrics);
                cell.oversubscribed = spec.is_oversubscribed(machine, threads);
                cell
            })
        });
        Experiment {
            kind: locklab_harness::ranking::KIND.into(),
            labels: Labels::new(&self.question.subjects[0].name, self.question.others()),
            spec: self.question.described(&self.spec),
            design,
            provenance: Provenance::Simulation(machine.name.clone()),
            facts: facts(spec, machine),
            caveats: caveats(spec, machine),
            cells: cells.collect(),
            interrupted: None,
        }
    }

    fn fingerprint(&self) -> Value {
        fingerprint(self.question.described(&self.spec), &self.machine)
    }

    fn pairing(&self) -> Pairing {
        Pairing::Together
    }

    fn schedule(&self) -> Schedule {
        Schedule::RoundByRound
    }

    fn announce(&mut self, turns: &[Turn]) {
        let mut tasks: Vec<Task> = Vec::with_capacity(turns.len());
        for turn in turns {
            let (point, block, lock) = self.task(turn);
            // The reference runs before the first of its block.
            if tasks
                .last()
                .is_none_or(|last| (last.0, last.1) != (point, block))
            {
                tasks.push((point, block, 0));
            }
            tasks.push((point, block, lock));
        }
        let blocks = turns.iter().map(|turn| turn.pair + 1).max().unwrap_or(0);
        let machines = self.spec.variants(&self.machine, blocks as usize);
        let (spec, places, seed) = (self.spec.clone(), self.places.clone(), self.seed);
        let subjects = &self.question.subjects;
        let locks: Vec<String> = subjects.iter().map(|s| s.lock.clone()).collect();
        // Copies of one lock (A/A) are runs of their own.
        let copies: Vec<u64> = (0..locks.len())
            .map(|i| locks[..i].iter().filter(|l| **l == locks[i]).count() as u64)
            .collect();
        self.pool = Some(Pool::start(
            tasks,
            self.workers,
            move |(point, block, lock)| {
                let seed = fork_seed(fork_seed(seed, point as u64), block.into());
                let seed = match copies[lock] {
                    0 => seed,
                    copy => fork_seed(seed, copy),
                };
                let machine = &machines[block as usize];
                let scenario = spec.scenario(machine, places[point], &locks[lock], seed);
                run(&scenario)
            },
        ));
    }

    fn run_together(&mut self, _: &Cell, turn: &Turn) -> Result<[Sample; 2], Stopped> {
        let task = self.task(turn);
        let block = (task.0, task.1);
        let reference = match self.references.get(&block) {
            Some(reference) => reference.clone(),
            None => {
                let reference = self.fetch((task.0, task.1, 0))?;
                // Blocks are fetched one after the other.
                self.references.retain(|(point, _), _| *point != task.0);
                self.references.insert(block, reference.clone());
                reference
            }
        };
        Ok([reference, self.fetch(task)?])
    }
}
