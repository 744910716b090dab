//! A pair of every cell at once, where one run of a side measures all of them:
//! a boot of a kernel that costs minutes.
//!
//! One coin decides the order for all cells of a pair. Every sample is stored as
//! soon as the backend has it, so that a run that breaks off loses nothing
//! that was measured.

use super::{Clock, Outcome, Runner, Standing, next_number};
use crate::backend::{Backend, Stopped, Turn};
use crate::experiment::{Cell, Pair, Sample};
use locklab_judge::{Side, coin, fork_seed};
use std::sync::atomic::Ordering;
use std::time::Instant;

/// Names what one side of a cell gave: its row in the store, and the sample.
type Half = Option<(Option<i64>, Sample)>;

impl Runner<'_> {
    /// Runs one pair of all these cells.
    pub(super) fn shared(
        &mut self,
        backend: &mut dyn Backend,
        cells: &mut [Cell],
        standings: &mut [Standing],
        mut open: Vec<usize>,
        clock: &Clock,
        outcome: &mut Outcome,
    ) -> Result<(), Stopped> {
        if let Some(first) = open.first() {
            self.show(backend, (cells, standings), *first, clock);
        }
        if self.deadline.is_some_and(|end| Instant::now() >= end) {
            outcome.stopped = Some(super::Stop::TimeLimit);
            return Ok(());
        }
        if self.interrupt.load(Ordering::Relaxed) {
            return Err(Stopped::Interrupted);
        }
        for index in open.clone() {
            if std::mem::replace(&mut standings[index].begun, true) {
                continue;
            }
            match backend.begin(&mut cells[index], index) {
                Err(Stopped::Cell(why)) => {
                    self.stop(&mut cells[index], why);
                    open.retain(|other| *other != index);
                }
                begun => begun?,
            }
        }
        let turns = self.turns_of(cells, &open);
        let Some(order) = turns.first().map(|turn| turn.order) else {
            return Ok(());
        };
        let mut halves: Vec<[Half; 2]> = turns.iter().map(|_| [None, None]).collect();
        let mut stopped = Ok(());
        for side in order.judged().sides() {
            let at = clock.at(backend.now());
            stopped = backend.run_shared(&turns, side, &mut |cell, mut sample| {
                sample.started.get_or_insert(at);
                let Some(which) = turns.iter().position(|turn| turn.cell == cell) else {
                    return;
                };
                let row = self.keep(&cells[cell], &turns[which], side, &sample);
                halves[which][usize::from(side == Side::Experiment)] = Some((row, sample));
            });
            if stopped.is_err() {
                break;
            }
        }
        for (turn, [baseline, experiment]) in turns.iter().zip(halves) {
            let cell = &mut cells[turn.cell];
            let (baseline, experiment) = match (baseline, experiment) {
                (Some(baseline), Some(experiment)) => (baseline, experiment),
                (one, other) => {
                    let of = |side, half: Half| half.map(|(row, sample)| (side, row, sample));
                    let done = of(Side::Baseline, one).or(of(Side::Experiment, other));
                    self.keep_half(cell, turn, done.as_slice());
                    if stopped.is_ok() {
                        self.stop(cell, "its backend gave no sample".into());
                    }
                    continue;
                }
            };
            let pair = Pair {
                index: turn.pair,
                order: turn.order,
                baseline: baseline.1,
                experiment: experiment.1,
            };
            let rows = [baseline.0, experiment.0];
            let standing = &mut standings[turn.cell];
            match self.close(backend, cell, standing, pair, rows, clock, outcome) {
                Err(Stopped::Cell(why)) => self.stop(cell, why),
                closed => closed?,
            }
        }
        stopped
    }

    fn stop(&self, cell: &mut Cell, why: String) {
        self.progress.note(&format!("{}: {why}", cell.key));
        cell.stopped = Some(why);
    }

    /// Returns the turns of these cells: one number, which none of them has had, and
    /// one coin.
    fn turns_of(&self, cells: &[Cell], open: &[usize]) -> Vec<Turn> {
        let numbers = open.iter().map(|index| next_number(&cells[*index].pairs));
        let pair = numbers.max().unwrap_or(0);
        let order = coin(self.design.seed, pair.into()).into();
        open.iter()
            .map(|&cell| Turn {
                cell,
                pair,
                order,
                seed: fork_seed(fork_seed(self.design.seed, cell as u64), pair.into()),
            })
            .collect()
    }
}
