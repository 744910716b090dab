//! The interface of a backend.
//!
//! To add one is to implement [`Backend`]: the runner gives it resume,
//! A/A runs, the store, progress and every form of report.

use crate::experiment::{Cell, Design, Experiment, Order, Pair, Sample};
use locklab_document::Document;
use locklab_host::error::Error;
use locklab_judge::{Interim, Side};
use serde_json::Value;
use std::time::{Duration, Instant};

/// Code that can run one side of one pair of a cell.
pub trait Backend {
    /// Returns the experiment before its first run, of this design: its kind, the names
    /// of its sides, its specification, facts and caveats, and its cells, which
    /// have no pairs yet.
    fn experiment(&self, design: Design) -> Experiment;

    /// Returns everything that a sample depends on besides the design: the machine, the
    /// subjects, the settings. Two experiments with the same fingerprint and
    /// the same design are the same question, so `--resume` may continue the
    /// one that was interrupted.
    fn fingerprint(&self) -> Value;

    /// Returns everything that the bias of a cell depends on, besides its key: the
    /// fingerprint without what belongs to the experiment only. `None` where an
    /// A/A run could not show a bias: two simulations with one seed are identical, and in a
    /// ranking a bias hits all locks of a block alike.
    fn bias_fingerprint(&self, _cell: &Cell) -> Option<Value> {
        None
    }

    /// Returns how the runs of a pair relate to one another.
    fn pairing(&self) -> Pairing {
        Pairing::InTurn
    }

    /// Returns the order in which the cells are run.
    fn schedule(&self) -> Schedule {
        Schedule::CellByCell
    }

    /// Returns the total time if nothing is repeated, where that can be
    /// known.
    fn estimate(&self, _cells: &[Cell], _pairs: u32) -> Option<Duration> {
        None
    }

    /// Receives the number of the experiment in the store, before
    /// anything is run: files that a backend writes besides its samples,
    /// such as logs, may carry the number.
    fn numbered(&mut self, _experiment: i64) {}

    /// Returns the time limit of all cells together, where the design is by time: then
    /// cells that are still open continue beyond the design's pairs until it is
    /// used up.
    fn time(&self) -> Option<Duration> {
        None
    }

    /// Returns the longest that these cells may take, pairs that are run again
    /// included, where the design is not by time: from then on no pair is begun,
    /// and what is not measured is missing. `None` where the number of repetitions
    /// is limit enough.
    fn longest(&self, _cells: &[Cell]) -> Option<Duration> {
        None
    }

    /// Returns the present time, by which those limits are kept. Only a modelled machine
    /// has another clock than this one.
    fn now(&self) -> Instant {
        Instant::now()
    }

    /// Receives the end of the time of the design, or of the longest time, before
    /// anything is run: nothing may be begun after it.
    fn until(&mut self, _end: Instant) {}

    /// Returns the state of a cell; unless it is open, its time goes to the others. It
    /// follows a rule that was fixed before the first run and makes no wrong
    /// call more likely, such as [`locklab_judge::interim`].
    fn interim(&self, _cell: &Cell) -> Interim {
        Interim::Open
    }

    /// Receives every turn that will be requested, before the first: an
    /// backend that works on several processors may start now. Not called
    /// with [`Schedule::Shared`].
    fn announce(&mut self, _turns: &[Turn]) {}

    /// Prepares a cell, and checks that it can run. Called before
    /// its first pair of this session.
    ///
    /// # Errors
    /// [`Stopped::Cell`] if this cell cannot run, [`Stopped::Fatal`] if nothing
    /// can, [`Stopped::Interrupted`] after a signal.
    fn begin(&mut self, _cell: &mut Cell, _index: usize) -> Result<(), Stopped> {
        Ok(())
    }

    /// Runs one side of a pair. It is never called, and need not be written,
    /// with [`Pairing::Together`] or [`Schedule::Shared`].
    ///
    /// A run that fails is a sample with the reason; an error means that there
    /// is no sample, and will be none.
    ///
    /// # Errors
    /// [`Stopped::Cell`] if nothing more can be measured in this cell,
    /// [`Stopped::Fatal`] if nothing at all can, [`Stopped::Interrupted`] after
    /// a signal.
    fn run(&mut self, _cell: &Cell, _turn: &Turn, _side: Side) -> Result<Sample, Stopped> {
        Err(Stopped::Fatal(
            "the backend has no run of one side alone".into(),
        ))
    }

    /// Runs both sides of a pair, the baseline's sample first. Only called
    /// with [`Pairing::Together`].
    ///
    /// # Errors
    /// The same errors as [`Backend::run`].
    fn run_together(&mut self, cell: &Cell, turn: &Turn) -> Result<[Sample; 2], Stopped> {
        Ok([
            self.run(cell, turn, Side::Baseline)?,
            self.run(cell, turn, Side::Experiment)?,
        ])
    }

    /// Runs one side of a pair in every cell of `turns`, and gives each sample
    /// to `keep` with the index of its cell as soon as it is there. Only called
    /// with [`Schedule::Shared`]; the turns have one number and one order.
    ///
    /// # Errors
    /// [`Stopped::Fatal`] if nothing more can be measured,
    /// [`Stopped::Interrupted`] after a signal. A cell without a sample then is
    /// one that was not run.
    fn run_shared(
        &mut self,
        turns: &[Turn],
        side: Side,
        keep: &mut dyn FnMut(usize, Sample),
    ) -> Result<(), Stopped> {
        let _ = (turns, side, keep);
        Err(Stopped::Fatal(
            "this backend runs no cells together, although it says so".into(),
        ))
    }

    /// Examines a pair whose two runs are done: marks them invalid where they
    /// cannot be compared. A pair that the machine disturbed is run again.
    fn settle(&mut self, _pair: &mut Pair) {}

    /// Is called after the last pair of a cell in this session.
    fn end(&mut self, _cell: &mut Cell) {}

    /// Is called when the experiment is judged, before its report is shown: gives
    /// back what was changed of a machine, and appends to the report what only
    /// the session that has just ended can show. Returns what else the user
    /// should know.
    ///
    /// # Errors
    /// If something could not be given back or written. The report is shown all
    /// the same.
    fn finish(&mut self, _report: &mut Document) -> Result<Option<String>, Error> {
        Ok(None)
    }
}

/// Says how the two runs of a pair relate to one another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pairing {
    /// One after the other; a coin decides which is first.
    InTurn,
    /// They run at the same time, interleaved, or deterministically: no order of the two
    /// can matter, and none is recorded.
    Together,
}

/// The order in which cells are run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Schedule {
    /// A cell is finished before the next begins, because the machine changes
    /// meanwhile or a cell takes long to make ready.
    CellByCell,
    /// One pair of every cell before a second of any, so that the time that
    /// is left can be predicted.
    RoundByRound,
    /// One run of a side measures a pair of every cell, as a boot does that
    /// costs minutes: one coin decides for all of them.
    Shared,
}

/// One pair to be run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// Index of its cell in the experiment.
    pub cell: usize,
    /// Number of the pair in the cell.
    pub pair: u32,
    /// Says which side goes first.
    pub order: Order,
    /// Seed of all other random choices in this pair; the same for both sides,
    /// and different for every pair of every cell.
    pub seed: u64,
}

/// Says why there is no sample.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// SIGINT or SIGTERM.
    Interrupted,
    /// This cell cannot be measured, for this reason; others can.
    Cell(String),
    /// Nothing more can be measured, for this reason.
    Fatal(String),
}
