//! Measures many locks at some points in short alternating slices, block by block, each block
//! with the round trip of a cache line while it ran: for a comparison with a model of this machine.
//!
//! It must never judge or simulate: a block that the machine disturbed has no figure.

use crate::plan::{Plan, Spec};
use crate::probe::Native;
use locklab_harness::backend::{Backend as _, Stopped, Turn};
use locklab_harness::experiment::{Design, Order, Sample};
use locklab_harness::matrix::OPS;
use locklab_harness::ranking::{Question, Subject};
use locklab_host::error::Error;
use locklab_workload::Cells;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// The time of a block of all locks, beyond what their slices need.
const BLOCK: Duration = Duration::from_millis(300);

/// One lock in one block.
#[derive(Clone, Debug)]
pub struct Measured {
    /// The number of the lock.
    pub lock: usize,
    /// Number of threads.
    pub threads: usize,
    /// Lengths of the critical and the non-critical section.
    pub lengths: [u64; 2],
    /// The round trip of a cache line between the CPUs, in ns; none with one thread.
    pub round_trip: Option<f64>,
    /// Acquisitions a second; none if the machine disturbed the block.
    pub rate: Option<f64>,
}

/// Measures `locks`, of which there are two at least, in `blocks` blocks of each cell, and calls
/// `between` before each round of blocks.
///
/// # Errors
/// If a lock does not exist or does not work, after Ctrl-C, or if `between` fails.
pub fn measure(
    native: &Native,
    locks: &[String],
    cells: &Cells,
    blocks: u32,
    interrupt: Arc<AtomicBool>,
    mut between: impl FnMut(u32) -> Result<(), Error>,
) -> Result<Vec<Measured>, Error> {
    let subject = |name: &String| Subject {
        name: name.clone(),
        lock: name.clone(),
        ..Subject::default()
    };
    let question = Question {
        subjects: locks.iter().map(subject).collect(),
        ..Question::default()
    };
    let points = cells.places().len() as u32;
    let spec = Spec {
        cells: cells.clone(),
        time: BLOCK * blocks * points,
        ..Spec::new(&locks[0], &locks[1])
    };
    let plan = Plan::new(spec, native)?;
    let planned = plan.cells.clone();
    let design = Design::usual(blocks);
    let (mut backend, experiment) = native.ranking(question, plan, design, interrupt)?;
    let mut of_cells = experiment.cells;
    let stopped = |why| match why {
        Stopped::Interrupted => Error::Interrupted("the locks were not all measured".into()),
        Stopped::Cell(why) | Stopped::Fatal(why) => Error::Failed(why),
    };
    let others = locks.len() - 1;
    let mut measured = Vec::new();
    for block in 0..blocks {
        between(block)?;
        for (number, cell) in of_cells.iter_mut().enumerate() {
            let (point, lock) = (&planned[number / others], 1 + number % others);
            if block == 0 && lock == 1 {
                backend.begin(cell, number).map_err(stopped)?;
            }
            let turn = Turn {
                cell: number,
                pair: block,
                order: Order::Together,
                seed: u64::from(block) + 1,
            };
            let samples = match backend.run_together(cell, &turn) {
                // The others go on.
                Err(Stopped::Cell(_)) => continue,
                samples => samples.map_err(stopped)?,
            };
            let mut note = |lock: usize, sample: &Sample| {
                let valid = sample.invalid.is_none();
                measured.push(Measured {
                    lock,
                    threads: point.threads,
                    lengths: [point.critical, point.non_critical],
                    round_trip: sample.placement.map(|placement| placement.round_trip()),
                    rate: (sample.values.get(OPS).copied()).filter(|_| valid),
                });
            };
            // The reference has the same sample in all pairs of a block.
            if lock == 1 {
                note(0, &samples[0]);
            }
            note(lock, &samples[1]);
        }
    }
    Ok(measured)
}
