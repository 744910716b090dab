//! Runs an experiment pair by pair, in the order that the coin decides.
//!
//! Every sample is stored as its run ends. A pair that the machine disturbed
//! is run again, within a budget of repetitions or until the time of the design
//! is used up, so that a run on a noisy machine ends too. Repetition depends on
//! the machine alone, never on the results of the subjects.
//!
//! The runner measures nothing itself (see [`Backend`]) and judges nothing.

mod shared;

use crate::backend::{Backend, Pairing, Schedule, Stopped, Turn};
use crate::experiment::{Cell, Design, Experiment, Invalid, Order, Pair, Sample};
use crate::progress::Progress;
use crate::store::{Recorder, Slot};
use locklab_judge::{Interim, Settings, Side, coin, fork_seed};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Describes how an experiment ended.
#[derive(Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Pairs that were run again because the machine disturbed them.
    pub repeated: u32,
    /// Says why it is not complete, if so.
    pub stopped: Option<Stop>,
}

/// Says why an experiment is not complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// SIGINT or SIGTERM.
    Interrupted,
    /// The time limit was reached.
    TimeLimit,
    /// The longest time that the backend allows itself was used up, as by pairs
    /// that were run again.
    UsedUp,
    /// Nothing more can be measured, for this reason.
    Fatal(String),
}

/// An experiment under way.
pub struct Runner<'a> {
    /// The choices made before the first run.
    pub design: &'a Design,
    /// The destination of samples.
    pub recorder: &'a mut Recorder,
    /// Shows how much is done, and for how long it will go on.
    pub progress: &'a Progress,
    /// The time after which no pair is started.
    pub deadline: Option<Instant>,
    /// Set by a signal.
    pub interrupt: &'a AtomicBool,
    /// Says of each cell whether it is undecided, at a look that the design allows
    /// ([`Design::retry`]).
    pub undecided: &'a dyn Fn(Vec<Cell>) -> Vec<bool>,
}

/// Runs an experiment whose samples are kept nowhere else, and shows no
/// progress.
pub fn run_unrecorded(
    backend: &mut dyn Backend,
    experiment: &mut Experiment,
    interrupt: &AtomicBool,
) -> Outcome {
    Runner {
        design: &experiment.design,
        recorder: &mut Recorder::nowhere(),
        progress: &Progress::hidden(),
        deadline: None,
        interrupt,
        undecided: &|_| Vec::new(),
    }
    .run(backend, &mut experiment.cells)
}

/// The runner's state of a cell besides its pairs.
#[derive(Clone, Default)]
struct Standing {
    begun: bool,
    closed: bool,
    /// Its verdict was beyond doubt at an interim analysis.
    decided: bool,
    /// Pairs that may still be repeated.
    budget: u32,
    /// Rounds of pairs that it got after the first.
    rounds: u32,
    /// Its turns in this session, and the time that they took.
    turns: u32,
    spent: Duration,
}

/// Counts how many pairs an open cell has for one of a cell that is decided and still
/// wide.
const OPEN_FIRST: f64 = 4.0;

impl Standing {
    /// Returns that of a cell with the pairs of an interrupted session.
    fn of(cell: &Cell, backend: &dyn Backend, budget: u32) -> Self {
        let mut then = Cell {
            pairs: Vec::new(),
            ..cell.clone()
        };
        let decided = cell.pairs.iter().any(|pair| {
            then.pairs.push(pair.clone());
            backend.interim(&then).is_beyond_doubt()
        });
        Self {
            decided,
            budget,
            ..Self::default()
        }
    }

    /// Returns a figure; the cell with the least has the next turn. In a design by
    /// time the pairs of a cell are as the inverse square root of what one costs,
    /// which gives the narrowest intervals altogether if cells scatter alike (J. Neyman
    /// 1934). What the lock of a cell did plays no part in it.
    fn due(&self, pairs: usize, by_time: bool) -> f64 {
        let cost = match by_time {
            true => self.spent.as_secs_f64() / f64::from(self.turns.max(1)),
            false => 1.0,
        };
        pairs as f64 * cost.sqrt() * if self.decided { OPEN_FIRST } else { 1.0 }
    }
}

/// The time of samples and of the design.
struct Clock {
    started: Instant,
    /// The time of the last sample of a resumed experiment, in seconds.
    offset: f64,
    /// The end of a design by time.
    end: Option<Instant>,
    /// The time from which on a backend begins nothing more.
    latest: Option<Instant>,
}

impl Clock {
    fn start(cells: &[Cell], backend: &dyn Backend) -> Self {
        let (started, time) = (backend.now(), backend.time());
        let samples = cells.iter().flat_map(|c| &c.pairs).flat_map(Pair::samples);
        let offset = samples.filter_map(|s| s.started).fold(0.0, f64::max);
        let spent = Duration::try_from_secs_f64(offset).unwrap_or_default();
        Self {
            started,
            offset,
            end: time.map(|time| started + time.saturating_sub(spent)),
            latest: backend
                .longest(cells)
                .map(|longest| started + longest.saturating_sub(spent)),
        }
    }

    /// Returns the seconds from the start of the experiment to `now`.
    fn at(&self, now: Instant) -> f64 {
        self.offset + now.saturating_duration_since(self.started).as_secs_f64()
    }
}

impl Runner<'_> {
    /// Runs until all is done or something stops it. `cells` have the pairs
    /// that an interrupted session left, and get those that are new.
    pub fn run(mut self, backend: &mut dyn Backend, cells: &mut [Cell]) -> Outcome {
        let mut outcome = Outcome {
            repeated: 0,
            stopped: None,
        };
        let clock = Clock::start(cells, backend);
        if let Some(end) = clock.end.or(clock.latest) {
            backend.until(end);
        }
        let budget = self.design.pairs;
        let mut standings: Vec<Standing> = cells
            .iter()
            .map(|cell| Standing::of(cell, backend, budget))
            .collect();
        if backend.schedule() != Schedule::Shared {
            backend.announce(&self.turns(backend.pairing(), backend.schedule(), cells));
        }
        let mut looks = 0;
        loop {
            let next = match backend.schedule() {
                Schedule::CellByCell => {
                    (0..cells.len()).find(|i| self.open(backend, cells, &standings, *i, &clock))
                }
                Schedule::RoundByRound | Schedule::Shared => (0..cells.len())
                    .filter(|i| self.open(backend, cells, &standings, *i, &clock))
                    .min_by(|a, b| {
                        let due =
                            |i: usize| standings[i].due(cells[i].pairs.len(), clock.end.is_some());
                        due(*a).total_cmp(&due(*b))
                    }),
            };
            for index in 0..cells.len() {
                let standing = &mut standings[index];
                let over = Some(index) != next
                    && !self.wants_more(backend, &cells[index], standing, &clock);
                if standing.begun && over && !standing.closed {
                    backend.end(&mut cells[index]);
                    standing.closed = true;
                }
            }
            let Some(index) = next else {
                if self.look(cells, &mut standings, looks) {
                    looks += 1;
                    continue;
                }
                break;
            };
            let stopped = if backend.schedule() == Schedule::Shared {
                let all = (0..cells.len())
                    .filter(|i| self.open(backend, cells, &standings, *i, &clock))
                    .collect();
                self.shared(backend, cells, &mut standings, all, &clock, &mut outcome)
            } else {
                self.turn(backend, cells, &mut standings, index, &clock, &mut outcome)
            };
            match stopped {
                Ok(()) => {}
                Err(Stopped::Cell(why)) => {
                    // A reason that holds in many cells is reported once.
                    let told = |cell: &Cell| cell.stopped.as_ref() == Some(&why);
                    if !cells.iter().any(told) {
                        self.progress.note(&format!("{}: {why}", cells[index].key));
                    }
                    cells[index].stopped = Some(why);
                }
                Err(Stopped::Interrupted) => outcome.stopped = Some(Stop::Interrupted),
                Err(Stopped::Fatal(why)) => outcome.stopped = Some(Stop::Fatal(why)),
            }
            if outcome.stopped.is_some() {
                break;
            }
        }
        for (cell, standing) in cells.iter_mut().zip(&standings) {
            if standing.begun && !standing.closed {
                backend.end(cell);
            }
        }
        outcome
    }

    /// Looks at the cells after a round, and gives those that are undecided another, if
    /// the design has one. What it sees is what a session sees that was not
    /// interrupted: the pairs of the rounds so far.
    fn look(&self, cells: &[Cell], standings: &mut [Standing], looks: u32) -> bool {
        if looks >= self.design.retry {
            return false;
        }
        let then = cells.iter().zip(&*standings).map(|(cell, standing)| Cell {
            pairs: first(&cell.pairs, self.asked(standing)),
            ..cell.clone()
        });
        let undecided = (self.undecided)(then.collect());
        let mut any = false;
        for ((cell, standing), undecided) in cells.iter().zip(standings).zip(undecided) {
            if undecided && cell.stopped.is_none() && standing.rounds == looks {
                standing.rounds += 1;
                standing.budget += self.design.pairs;
                (standing.begun, standing.closed) = (false, false);
                any = true;
            }
        }
        any
    }

    /// Returns how many pairs a cell is to have.
    fn asked(&self, standing: &Standing) -> u32 {
        self.design.pairs * (standing.rounds + 1)
    }

    fn open(
        &self,
        backend: &dyn Backend,
        cells: &[Cell],
        standings: &[Standing],
        index: usize,
        clock: &Clock,
    ) -> bool {
        cells[index].stopped.is_none()
            && self.wants_more(backend, &cells[index], &standings[index], clock)
    }

    fn wants_more(
        &self,
        backend: &dyn Backend,
        cell: &Cell,
        standing: &Standing,
        clock: &Clock,
    ) -> bool {
        let asked = match clock.end {
            None => self.asked(standing),
            Some(end) if backend.now() < end => u32::MAX,
            Some(_) => return false,
        };
        standing.budget > 0
            && !enough(&cell.pairs, asked)
            && matches!(backend.interim(cell), Interim::Open | Interim::Wide)
    }

    /// Returns the pairs that are missing, in the order in which they will be run.
    fn turns(&self, pairing: Pairing, schedule: Schedule, cells: &[Cell]) -> Vec<Turn> {
        let mut turns: Vec<Turn> = cells
            .iter()
            .enumerate()
            .filter(|(_, cell)| cell.stopped.is_none())
            .flat_map(|(index, cell)| {
                let first = next_number(&cell.pairs);
                (first..self.design.pairs).map(move |pair| (index, pair))
            })
            .map(|(index, pair)| self.turn_of(pairing, index, pair))
            .collect();
        if schedule == Schedule::RoundByRound {
            turns.sort_by_key(|turn| turn.pair);
        }
        turns
    }

    fn turn_of(&self, pairing: Pairing, cell: usize, pair: u32) -> Turn {
        let cell_seed = fork_seed(self.design.seed, cell as u64);
        Turn {
            cell,
            pair,
            order: match pairing {
                Pairing::InTurn => coin(cell_seed, pair.into()).into(),
                Pairing::Together => Order::Together,
            },
            seed: fork_seed(cell_seed, pair.into()),
        }
    }

    /// Runs one pair of a cell.
    fn turn(
        &mut self,
        backend: &mut dyn Backend,
        cells: &mut [Cell],
        standings: &mut [Standing],
        index: usize,
        clock: &Clock,
        outcome: &mut Outcome,
    ) -> Result<(), Stopped> {
        self.show(backend, (cells, standings), index, clock);
        if self.deadline.is_some_and(|end| Instant::now() >= end) {
            outcome.stopped = Some(Stop::TimeLimit);
            return Ok(());
        }
        if clock.latest.is_some_and(|latest| backend.now() >= latest) {
            outcome.stopped = Some(Stop::UsedUp);
            return Ok(());
        }
        if self.interrupt.load(Ordering::Relaxed) {
            return Err(Stopped::Interrupted);
        }
        let cell = &mut cells[index];
        let standing = &mut standings[index];
        if !standing.begun {
            standing.begun = true;
            backend.begin(cell, index)?;
        }
        let turn = self.turn_of(backend.pairing(), index, next_number(&cell.pairs));
        let begun = backend.now();
        let (pair, rows) = self.pair(backend, cell, &turn, clock)?;
        standing.turns += 1;
        standing.spent += backend.now().saturating_duration_since(begun);
        self.close(backend, cell, standing, pair, rows, clock, outcome)
    }

    /// Keeps a pair whose runs are done, or has it run again.
    #[allow(clippy::too_many_arguments, reason = "the state of a runner, in parts")]
    fn close(
        &mut self,
        backend: &mut dyn Backend,
        cell: &mut Cell,
        standing: &mut Standing,
        mut pair: Pair,
        rows: [Option<i64>; 2],
        clock: &Clock,
        outcome: &mut Outcome,
    ) -> Result<(), Stopped> {
        backend.settle(&mut pair);
        let steady = !pair.is_disturbed();
        // Where the design is by time, repeats cost time and nothing else,
        // until that is used up.
        let counted = clock.end.is_none_or(|end| backend.now() >= end);
        // The last pair of the budget is kept.
        let kept = steady || standing.budget == 1;
        let closing = [(rows[0], &pair.baseline), (rows[1], &pair.experiment)];
        self.recorder.with(|store, _| store.close(closing, kept));
        if !steady {
            outcome.repeated += 1;
            standing.budget -= u32::from(counted);
        }
        if kept {
            let unsound = match pair.invalid() {
                Some(Invalid::CheckFailed(why)) => Some(why.clone()),
                _ => None,
            };
            cell.pairs.push(pair);
            standing.decided |= backend.interim(cell).is_beyond_doubt();
            if let Some(why) = unsound {
                return Err(Stopped::Cell(why));
            }
            return self.tolerate(&cell.pairs);
        }
        Ok(())
    }

    /// Abandons a cell in which run after run fails. Two failures may be
    /// chance, whatever the number of pairs.
    fn tolerate(&self, pairs: &[Pair]) -> Result<(), Stopped> {
        let tolerated = Settings::default().tolerated_failures * f64::from(self.design.pairs);
        let failed: Vec<&Invalid> = pairs
            .iter()
            .filter_map(Pair::invalid)
            .filter(|i| matches!(i, Invalid::Failed(_) | Invalid::Counter(_)))
            .collect();
        match failed.last() {
            Some(last) if failed.len() as f64 > tolerated.max(2.0) => Err(Stopped::Cell(format!(
                "given up after {} failed pairs; the last because {}",
                failed.len(),
                last.why()
            ))),
            _ => Ok(()),
        }
    }

    /// Runs both sides and stores each sample as its run ends.
    fn pair(
        &mut self,
        backend: &mut dyn Backend,
        cell: &Cell,
        turn: &Turn,
        clock: &Clock,
    ) -> Result<(Pair, [Option<i64>; 2]), Stopped> {
        let sides = match turn.order {
            Order::Together => {
                let at = clock.at(backend.now());
                let [mut baseline, mut experiment] = backend.run_together(cell, turn)?;
                for sample in [&mut baseline, &mut experiment] {
                    sample.started.get_or_insert(at);
                }
                [(Side::Baseline, baseline), (Side::Experiment, experiment)]
                    .map(|(side, sample)| (side, self.keep(cell, turn, side, &sample), sample))
                    .into()
            }
            order => {
                let mut done: Vec<(Side, Option<i64>, Sample)> = Vec::with_capacity(2);
                for side in order.judged().sides() {
                    let at = clock.at(backend.now());
                    let sample = backend.run(cell, turn, side);
                    let mut sample = match sample {
                        Ok(sample) => sample,
                        Err(stopped) => {
                            self.keep_half(cell, turn, &done);
                            return Err(stopped);
                        }
                    };
                    sample.started.get_or_insert(at);
                    let row = self.keep(cell, turn, side, &sample);
                    done.push((side, row, sample));
                }
                done
            }
        };
        let mut rows = [None, None];
        let mut pair = Pair {
            index: turn.pair,
            order: turn.order,
            baseline: Sample::default(),
            experiment: Sample::default(),
        };
        for (side, row, sample) in sides {
            match side {
                Side::Baseline => (rows[0], pair.baseline) = (row, sample),
                Side::Experiment => (rows[1], pair.experiment) = (row, sample),
            }
        }
        Ok((pair, rows))
    }

    fn keep(&mut self, cell: &Cell, turn: &Turn, side: Side, sample: &Sample) -> Option<i64> {
        let slot = Slot {
            cell: &cell.key,
            pair: turn.pair,
            side,
            order: turn.order,
        };
        self.recorder
            .with(|store, experiment| store.add(experiment, &slot, sample))
    }

    /// Keeps the run that was made in the store, with a sample that marks
    /// the other as not run; its pair is run again.
    fn keep_half(&mut self, cell: &Cell, turn: &Turn, done: &[(Side, Option<i64>, Sample)]) {
        let [(side, ..)] = done else { return };
        let other = match side {
            Side::Baseline => Side::Experiment,
            Side::Experiment => Side::Baseline,
        };
        let not_run = Invalid::Interrupted("interrupted before it ran".into());
        self.keep(cell, turn, other, &Sample::invalid(not_run));
    }

    fn show(
        &self,
        backend: &dyn Backend,
        (cells, standings): (&[Cell], &[Standing]),
        now: usize,
        clock: &Clock,
    ) {
        let all = cells.iter().zip(standings);
        let running = || all.clone().filter(|(c, _)| c.stopped.is_none());
        let of: u64 = running()
            .map(|(_, standing)| 2 * u64::from(self.asked(standing)))
            .sum();
        let key = &cells[now].key;
        let (Some(end), Some(time)) = (clock.end, backend.time()) else {
            let done = |(cell, standing): (&Cell, &Standing)| {
                2 * u64::from(usable(&cell.pairs).min(self.asked(standing)))
            };
            let done = running().map(done).sum();
            self.progress.set(done, of, &key.to_string());
            return;
        };
        let left = end.saturating_duration_since(backend.now());
        let done = 1.0 - left.as_secs_f64() / time.as_secs_f64().max(1e-9);
        let decided = standings.iter().filter(|standing| standing.decided).count();
        let now = format!("{decided} of {} cells decided; {key}", cells.len());
        self.progress
            .set((done.clamp(0.0, 1.0) * of as f64) as u64, of, &now);
    }
}

fn next_number(pairs: &[Pair]) -> u32 {
    pairs.last().map_or(0, |pair| pair.index + 1)
}

/// Returns the number of pairs that need not be run again.
fn usable(pairs: &[Pair]) -> u32 {
    let counts = |pair: &&Pair| !pair.is_disturbed() && !pair.is_half();
    let usable = pairs.iter().filter(counts).count();
    u32::try_from(usable).unwrap_or(u32::MAX)
}

/// Returns the first pairs, up to so many that need not be run again.
fn first(pairs: &[Pair], count: u32) -> Vec<Pair> {
    let end = (0..=pairs.len()).find(|end| usable(&pairs[..*end]) >= count);
    pairs[..end.unwrap_or(pairs.len())].to_vec()
}

/// Returns whether there are all the requested pairs. Pairs that failed count: they are
/// not repeated until they succeed. A subject that failed its own check is not run again.
fn enough(pairs: &[Pair], asked: u32) -> bool {
    let lost = |pair: &Pair| matches!(pair.invalid(), Some(Invalid::CheckFailed(_)));
    pairs.iter().any(lost) || usable(pairs) >= asked
}
