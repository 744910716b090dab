//! The backend that ranks many locks on this machine.
//!
//! All locks of a point share a block: slices of every lock by the same
//! threads, in an order drawn anew each round, at one address. The harness
//! asks for one lock after the other, as pairs with the reference; the first
//! that asks for a block has it run, and the others get their samples of it.
//! At looks fixed beforehand a lock that is far behind leaves; the time of its
//! slices goes to the others.

use crate::backend::Slices;
use crate::block::Block;
use crate::figures;
use crate::layout::LAYOUTS;
use crate::lock_code::LockCode;
use crate::plan::Plan;
use crate::probe::Native;
use crate::request::MOST_LOCKS;
use crate::settling::calibrate;
use crate::subject;
use crate::timeline::SliceLength;
use crate::workers::{Ending, LockFault};
use locklab_document::number::duration;
use locklab_harness::backend::{Backend, Pairing, Schedule, Stopped, Turn};
use locklab_harness::experiment::{Cell, Design, Experiment, Invalid, Labels, Sample};
use locklab_harness::matrix::OPS;
use locklab_harness::ranking::Question;
use locklab_host::error::Error;
use locklab_judge::{Direction, Interim, fork_seed, have_left};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// The part of the planned time that goes in addition to what the machine
/// disturbed, to measure it again.
const AGAIN: u32 = 4;

/// Many locks under threads or processes of this machine.
pub struct RankedSlices {
    slices: Slices,
    question: Question,
    design: Design,
    /// One for each point of the plan.
    points: Vec<AtPoint>,
    /// Holds what was wrong with the code of each lock, if something was: it is measured
    /// nowhere any more.
    faults: Vec<Option<String>>,
    /// The end of the requested time, from the first calibration on.
    end: Option<Instant>,
}

/// The state of one point.
#[derive(Default)]
struct AtPoint {
    /// Slices of each lock; empty before the calibration.
    slices: Vec<SliceLength>,
    /// Rates of each lock by block; not a number where it has none.
    rates: Vec<Vec<f64>>,
    /// Locks that are not measured any more.
    gone: Vec<bool>,
    /// The block whose samples have not all been fetched, by its number.
    block: Option<(u32, Vec<Option<Sample>>)>,
}

impl Native {
    /// Returns the experiment that ranks the locks of `question` at the points of
    /// `plan`, without pairs, and the backend that measures them.
    ///
    /// # Errors
    /// [`Error::Usage`] if one of the locks does not exist, [`Error::Failed`] if there are
    /// more than [`MOST_LOCKS`], or this process has a real-time scheduling policy.
    pub fn ranking(
        &self,
        question: Question,
        plan: Plan,
        design: Design,
        interrupt: Arc<AtomicBool>,
    ) -> Result<(RankedSlices, Experiment), Error> {
        let locks = question.subjects.len();
        if locks > MOST_LOCKS {
            return Err(Error::Failed(format!(
                "{locks} locks are more than the {} that share a block; name fewer",
                MOST_LOCKS
            )));
        }
        let code = |name: &str| subject::code(name).ok_or_else(|| subject::unknown(name, &[]));
        let codes: Result<Vec<LockCode>, Error> =
            question.subjects.iter().map(|s| code(&s.lock)).collect();
        let (mut slices, _) = self.backend_of(codes?, plan, design.clone(), interrupt)?;
        slices.blocks = slices.plan.blocks_of_many(locks, design.pairs);
        let points = slices.plan.cells.iter().map(|_| AtPoint {
            rates: vec![Vec::new(); locks],
            gone: vec![false; locks],
            ..AtPoint::default()
        });
        let ranked = RankedSlices {
            points: points.collect(),
            slices,
            question,
            design: design.clone(),
            faults: vec![None; locks],
            end: None,
        };
        let experiment = ranked.experiment(design);
        Ok((ranked, experiment))
    }
}

impl RankedSlices {
    /// Returns the point and the lock of a cell, by their numbers.
    fn place(&self, cell: usize) -> (usize, usize) {
        let others = self.question.subjects.len() - 1;
        (cell / others, 1 + cell % others)
    }

    /// Returns the samples of a block of these locks, whose time is `part` of a block
    /// of all.
    fn samples(
        &mut self,
        point: usize,
        there: &[usize],
        seed: u64,
        part: f64,
    ) -> Result<Result<Vec<Sample>, LockFault>, Stopped> {
        let state = &self.points[point];
        let mut request = self.slices.request(point, seed);
        request.codes = there.iter().map(|lock| self.slices.codes[*lock]).collect();
        request.slices = match state.slices.as_slice() {
            [] => Vec::new(),
            slices => there.iter().map(|lock| slices[*lock]).collect(),
        };
        let round: u64 = (0..there.len())
            .map(|side| {
                let SliceLength { settle, length } = request.slice_of(side);
                settle + length
            })
            .sum();
        // The time of those that have left goes to the others.
        let time = self.slices.blocks[point] as f64 * part * self.pace();
        // A slice of a recorded program is long enough to stand alone.
        if self.slices.plan.replay.is_some() {
            request.least = 1;
        }
        request.time = (time as u64).max(round * u64::from(request.least));
        let longest = (0..there.len())
            .map(|side| request.slice_of(side).length)
            .max();
        request.windows.count =
            usize::try_from(longest.unwrap_or(0) / request.windows.length).unwrap_or(0);
        let block = Arc::new(Block::new(request).map_err(Stopped::Fatal)?);
        Ok(match self.slices.workers.run(&block)? {
            Ending::Well => Ok(figures::samples(&block)),
            Ending::Badly(why) => Ok(vec![Sample::invalid(why); there.len()]),
            Ending::Fault(fault) => Err(LockFault {
                side: there[fault.side],
                ..fault
            }),
        })
    }

    /// Returns the part of its planned time that a block has, so that those to come end
    /// in the requested time although calibrations and repetitions took some of it.
    fn pace(&self) -> f64 {
        let Some(end) = self.end else { return 1.0 };
        let left = end.saturating_duration_since(self.slices.workers.now());
        let blocks = self.points.iter().zip(&self.slices.blocks);
        let to_come: u64 = blocks
            .map(|(point, block)| {
                let done = point.block.as_ref().map_or(0, |(number, _)| number + 1);
                block * u64::from(self.design.pairs.saturating_sub(done))
            })
            .sum();
        (left.as_nanos() as f64 / to_come.max(1) as f64).min(1.0)
    }

    /// Leaves a lock out from now on.
    ///
    /// # Errors
    /// [`Stopped::Fatal`] if it is the one that all others are compared with.
    fn leave_out(&mut self, fault: LockFault) -> Result<(), Stopped> {
        if fault.side == 0 {
            return Err(Stopped::Fatal(format!(
                "{}; all others are compared with it: rank them without it",
                fault.why
            )));
        }
        self.faults[fault.side] = Some(fault.why);
        Ok(())
    }

    /// Runs a block of all locks that are still measured, and keeps their
    /// samples.
    fn block(&mut self, point: usize, number: u32, seed: u64) -> Result<(), Stopped> {
        let (there, samples) = loop {
            let there: Vec<usize> = (0..self.question.subjects.len())
                // The reference is in every block.
                .filter(|lock| *lock == 0 || !self.points[point].gone[*lock])
                .filter(|lock| self.faults[*lock].is_none())
                .collect();
            match self.samples(point, &there, seed, 1.0)? {
                Ok(samples) => break (there, samples),
                // The same block again, for the others.
                Err(fault) => self.leave_out(fault)?,
            }
        };
        let mut all: Vec<Option<Sample>> = vec![None; self.question.subjects.len()];
        for (lock, sample) in there.into_iter().zip(samples) {
            all[lock] = Some(sample);
        }
        let state = &mut self.points[point];
        for (lock, sample) in all.iter().enumerate() {
            if let Some(sample) = sample {
                note(&mut state.rates[lock], number, sample);
            }
        }
        state.block = Some((number, all));
        // After a look, which of them go on.
        let looks = self.question.looks(self.design.pairs);
        if looks.interim().contains(&(number as usize + 1)) {
            let left = have_left(&state.rates, Direction::HigherIsBetter, &looks);
            for (gone, left) in state.gone.iter_mut().zip(left) {
                *gone |= left;
            }
        }
        Ok(())
    }
}

fn note(rates: &mut Vec<f64>, number: u32, sample: &Sample) {
    let number = number as usize;
    if rates.len() <= number {
        rates.resize(number + 1, f64::NAN);
    }
    if sample.invalid.is_none() {
        rates[number] = sample.values.get(OPS).copied().unwrap_or(f64::NAN);
    }
}

impl Backend for RankedSlices {
    /// Returns the experiment. The pairs of the design are the blocks.
    fn experiment(&self, design: Design) -> Experiment {
        let of_two = self.slices.experiment(design);
        let others = &self.question.subjects[1..];
        let cells = of_two.cells.iter().flat_map(|cell| {
            others.iter().map(|other| Cell {
                key: cell.key.clone().of_lock(&other.name),
                ..cell.clone()
            })
        });
        let cells = cells.collect();
        let mut experiment = Experiment {
            kind: locklab_harness::ranking::KIND.into(),
            labels: Labels::new(&self.question.subjects[0].name, self.question.others()),
            spec: self.question.described(&self.slices.plan.spec),
            cells,
            ..of_two
        };
        for (name, fact) in &mut experiment.facts {
            if name == "Method" {
                *fact = format!(
                    "slices of every lock by the same threads, in an order drawn anew each round, \
                     all of a round at one address; another address each round; {} code layouts \
                     in turn",
                    LAYOUTS
                );
            }
        }
        experiment
    }

    fn fingerprint(&self) -> Value {
        let spec = self.question.described(&self.slices.plan.spec);
        json!({ "spec": spec, "machine": self.slices.machine })
    }

    fn pairing(&self) -> Pairing {
        Pairing::Together
    }

    fn schedule(&self) -> Schedule {
        Schedule::RoundByRound
    }

    fn estimate(&self, _cells: &[Cell], blocks: u32) -> Option<Duration> {
        let locks = self.question.subjects.len();
        Some(self.slices.plan.estimate_of_many(locks, blocks))
    }

    fn longest(&self, cells: &[Cell]) -> Option<Duration> {
        let planned = self.estimate(cells, self.design.pairs)?;
        Some(planned + planned / AGAIN)
    }

    fn until(&mut self, end: Instant) {
        self.slices.until(end);
    }

    fn interim(&self, cell: &Cell) -> Interim {
        let lock = self
            .question
            .subjects
            .iter()
            .position(|s| Some(s.name.as_str()) == cell.key.lock());
        let plan = &self.slices.plan;
        let place = cell.key.point_of();
        let point = plan.cells.iter().position(|c| c.key(&plan.spec) == place);
        match (point, lock) {
            (Some(point), Some(lock)) if self.points[point].gone[lock] => {
                // It has the samples of the block after which it left.
                let last = self.points[point].rates[lock].len();
                match cell.pairs.last() {
                    Some(pair) if pair.index as usize + 1 >= last => Interim::Decided,
                    _ => Interim::Open,
                }
            }
            _ => Interim::Open,
        }
    }

    fn begin(&mut self, cell: &mut Cell, index: usize) -> Result<(), Stopped> {
        let (point, lock) = self.place(index);
        let now = self.slices.workers.now();
        self.end.get_or_insert(now + self.slices.plan.spec.time);
        // What an interrupted session left.
        for pair in &cell.pairs {
            note(&mut self.points[point].rates[0], pair.index, &pair.baseline);
            note(
                &mut self.points[point].rates[lock],
                pair.index,
                &pair.experiment,
            );
        }
        let planned = &self.slices.plan.cells[point];
        let fixed = self.slices.plan.spec.slice.is_some();
        let calibrates = !fixed && planned.threads > 1 && !planned.oversubscribed;
        if calibrates && self.points[point].slices.is_empty() {
            let request = self.slices.request(point, point as u64);
            let usual = vec![self.slices.slices[point]; self.slices.codes.len()];
            let time = self.slices.plan.calibration_time();
            let found = calibrate(&request, time, &mut *self.slices.workers)?;
            self.points[point].slices = found.unwrap_or(usual);
        }
        let of = self.points[point].slices.get(lock);
        let SliceLength { settle, length } = *of.unwrap_or(&self.slices.slices[point]);
        let [settle, length] = [settle, length].map(|ns| duration(Duration::from_nanos(ns)));
        cell.facts.retain(|(name, _)| name != "Slices");
        cell.facts
            .push(("Slices".into(), format!("{length} after {settle} left out")));
        Ok(())
    }

    fn run_together(&mut self, _: &Cell, turn: &Turn) -> Result<[Sample; 2], Stopped> {
        let (point, lock) = self.place(turn.cell);
        if let Some(why) = &self.faults[lock] {
            return Err(Stopped::Cell(why.clone()));
        }
        // Another try of the same number is another block.
        let seed = fork_seed(fork_seed(self.design.seed, point as u64), turn.pair.into());
        let seed = fork_seed(seed, turn.seed);
        let made = self.points[point].block.as_ref();
        match made.filter(|(number, _)| *number == turn.pair) {
            Some((_, samples)) if samples[lock].is_some() => {}
            // Its slices were disturbed and those of the reference were not.
            Some((_, samples)) if samples[0].as_ref().is_some_and(|s| s.invalid.is_none()) => {
                let part = 2.0 / self.question.subjects.len() as f64;
                match self.samples(point, &[0, lock], seed, part)? {
                    Ok(both) => {
                        let mut both = both.into_iter();
                        return Ok([(); 2].map(|()| both.next().unwrap_or_default()));
                    }
                    Err(fault) => self.leave_out(fault)?,
                }
            }
            _ => self.block(point, turn.pair, seed)?,
        }
        if let Some(why) = &self.faults[lock] {
            let unsound = Sample::invalid(Invalid::CheckFailed(why.clone()));
            let cut = Invalid::Failed("the other lock's fault ended its block".into());
            return Ok([Sample::invalid(cut), unsound]);
        }
        let block = self.points[point].block.as_mut();
        let Some((_, samples)) = block else {
            return Err(Stopped::Fatal("a block ended without samples".into()));
        };
        let reference = samples[0].clone().unwrap_or_default();
        let own = samples[lock].take().unwrap_or_default();
        Ok([reference, own])
    }
}

#[cfg(test)]
mod tests;
