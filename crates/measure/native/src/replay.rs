//! A recorded program in the form in which workers run it again: its lengths in
//! steps of this machine, and which thread each worker is.
//!
//! It must never change what a thread does or in which order; only threads that
//! scale may be more or fewer than were recorded.

use crate::script::{Action, Script};
use crate::work::steps;
use locklab_document::number;
use locklab_host::clock;
use locklab_host::error::Error;
use locklab_judge::fork_seed;
use locklab_replay::{Program, Role, Step};
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// A recorded program that can be run again on this machine.
#[derive(Clone, Debug)]
pub struct Replay {
    program: Program,
    /// The file that it is from.
    file: String,
    /// Holds what a piece of work takes here beside its steps, in nanoseconds.
    act_ns: f64,
    /// Says by how much later than it has asked a thread wakes up here, in nanoseconds.
    late_ns: u64,
}

impl Replay {
    /// The most locks of a program that are run again here; what is done with others is
    /// work.
    pub const MOST_LOCKS: usize = 64;

    /// Returns the program of the recording in `file`.
    ///
    /// # Errors
    /// If there is no lock that several threads use.
    pub fn new(program: Program, file: &str) -> Result<Self, Error> {
        if program.locks.is_empty() {
            return Err(Error::Usage(format!(
                "{file}: no lock in it is used by two threads, so no other lock can matter"
            )));
        }
        Ok(Self {
            program,
            file: file.into(),
            act_ns: 0.0,
            late_ns: 0,
        })
    }

    /// Returns the same, where a piece of work takes so long beside its steps, and a sleep
    /// so much longer than it should.
    pub(crate) fn on_machine(self, act_ns: f64, late_ns: u64) -> Self {
        Self {
            act_ns,
            late_ns,
            ..self
        }
    }

    /// Returns the file with what tells it from another of the same name.
    #[must_use]
    pub fn name(&self) -> String {
        let mut hasher = DefaultHasher::new();
        for thread in &self.program.threads {
            thread.steps.hash(&mut hasher);
        }
        format!("{}#{:016x}", self.file, hasher.finish())
    }

    /// Returns the number of locks.
    #[must_use]
    pub fn locks(&self) -> usize {
        self.program.locks.len()
    }

    /// Returns whether the lock with the most waiting has readers.
    pub(crate) fn hottest_is_shared(&self) -> bool {
        self.program.locks.first().is_some_and(|lock| lock.shared)
    }

    /// Returns the workers if the classes that scale have `threads` in all; as recorded
    /// without a number.
    ///
    /// # Errors
    /// If the recording does not say what other numbers would do.
    pub fn workers(&self, threads: Option<usize>) -> Result<usize, Error> {
        match threads {
            None => Ok(self.program.threads.len()),
            Some(0) => Err(Error::Usage(
                "--threads 0 takes no lock; give --threads 1 or more".into(),
            )),
            Some(_) if !self.program.can_be_extrapolated() => Err(Error::Usage(format!(
                "{}: its threads wait for what was not recorded, so that it can be run again with \
                 its own number of threads only; leave out --threads",
                self.file
            ))),
            Some(threads) => Ok(self.program.cast(Some(threads), 0).len()),
        }
    }

    /// Returns which thread each of so many workers is.
    fn cast(&self, workers: usize, seed: u64) -> Vec<Role> {
        let all = self.program.threads.len();
        let roles = self.program.scaling_threads();
        let scaling = workers.saturating_sub(all - roles.min(all));
        let cast = match workers == all {
            true => self.program.cast(None, seed),
            false => self.program.cast(Some(scaling), seed),
        };
        debug_assert_eq!(cast.len(), workers);
        cast
    }

    /// Returns the scripts of all workers, where a step takes `step_ns`.
    pub(crate) fn scripts(&self, workers: usize, step_ns: f64, seed: u64) -> Vec<Script> {
        let mut actions: BTreeMap<usize, Vec<Action>> = BTreeMap::new();
        let cast = self.cast(workers, seed);
        let scripts = cast.into_iter().map(|Role { thread, start }| {
            let of_thread = actions.entry(thread).or_insert_with(|| {
                of_steps(&self.program.threads[thread].steps, step_ns, self.act_ns)
            });
            let mut actions = of_thread.clone();
            actions.rotate_left(start);
            Script {
                late_ns: self.late_ns,
                ..Script::new(actions, step_ns)
            }
        });
        scripts.collect()
    }

    /// Returns for each lock by how many steps a section is longer if another worker had it, if
    /// that was recorded.
    pub(crate) fn migration_steps(&self, step_ns: f64) -> Vec<Option<u64>> {
        let in_steps = |ns: f64| (ns / step_ns).round() as u64;
        let locks = self.program.locks.iter();
        locks.map(|lock| lock.migration_ns.map(in_steps)).collect()
    }

    /// Returns the number of channels.
    pub(crate) fn channels(&self) -> usize {
        self.program.channels
    }

    /// Returns the longest mean time of a turn of any thread, in nanoseconds.
    pub(crate) fn turn_ns(&self) -> f64 {
        let of = |thread: &locklab_replay::Thread| {
            let takes = |step: &&Step| matches!(step, Step::Acquire { .. });
            let turns = thread.steps.iter().filter(takes).count();
            thread.work_ns / turns.max(1) as f64
        };
        self.program.threads.iter().map(of).fold(0.0, f64::max)
    }

    /// Returns what is replayed, for the head of a report.
    pub(crate) fn facts(&self) -> Vec<(String, String)> {
        let recorded = &self.program.recorded;
        vec![
            (
                "Program".into(),
                format!(
                    "{}: {} and {}, replayed from {:.1} ms of {:.1} ms",
                    self.file,
                    number::count(self.program.threads.len(), "thread"),
                    number::count(self.program.locks.len(), "lock"),
                    recorded.window_ns * 1e-6,
                    recorded.whole_ns * 1e-6,
                ),
            ),
            (
                "Recorded".into(),
                format!(
                    "{:.0} sections a second with its own locks and the recorder, which took {:.0} \
                     ns of each operation",
                    self.recorded_per_s(),
                    recorded.recorder_ns,
                ),
            ),
        ]
    }

    /// Sections a second as they were recorded.
    pub(crate) fn recorded_per_s(&self) -> f64 {
        self.sections() as f64 / (self.program.recorded.window_ns * 1e-9).max(1e-9)
    }

    /// Sections in the window, which hold a lock from first to last: what a
    /// worker counts as turns.
    fn sections(&self) -> usize {
        let of = |thread: &locklab_replay::Thread| {
            let (mut held, mut sections) = (0_usize, 0);
            for step in &thread.steps {
                match step {
                    Step::Acquire { .. } => {
                        sections += usize::from(held == 0);
                        held += 1;
                    }
                    Step::Release { .. } => held = held.saturating_sub(1),
                    _ => {}
                }
            }
            sections
        };
        self.program.threads.iter().map(of).sum()
    }
}

/// Returns what a piece of work takes beside its steps: to find out what the next action
/// is, and how long it lasts, both of which no processor foresees.
pub(crate) fn act_ns(step_ns: f64) -> f64 {
    const PIECES: u64 = 4096;
    const ROUNDS: usize = 20;
    let lengths = (0..PIECES).map(|piece| 1 + fork_seed(piece, 0) % 24);
    // As in a program, there is an action of another kind between two.
    let other = |piece: u64| match fork_seed(piece, 1) % 2 {
        0 => Action::Post(0, 0),
        _ => Action::Idle(0),
    };
    let actions: Vec<Action> = lengths
        .clone()
        .zip(0..)
        .flat_map(|(length, piece)| [Action::Compute(length), other(piece)])
        .collect();
    let mut others = [0_u64; 2];
    let round = |others: &mut [u64; 2]| {
        let start = clock::now();
        for action in &actions {
            match *action {
                Action::Compute(length) => {
                    std::hint::black_box(steps(length));
                }
                Action::Post(..) => others[0] += 1,
                _ => others[1] += 1,
            }
        }
        clock::now() - start
    };
    let least = (0..ROUNDS).map(|_| round(&mut others)).min().unwrap_or(0);
    std::hint::black_box(others);
    let alone = lengths.sum::<u64>() as f64 * step_ns;
    ((least as f64 - alone) / PIECES as f64).clamp(0.0, 50.0)
}

fn of_steps(steps: &[Step], step_ns: f64, act_ns: f64) -> Vec<Action> {
    let mut shares: BTreeMap<u32, bool> = BTreeMap::new();
    let action = |step: &Step| match *step {
        // What the action itself takes is part of what was recorded.
        Step::Work(ns) => Action::Compute(((ns as f64 - act_ns).max(0.0) / step_ns).round() as u64),
        Step::Acquire { lock, shared } => {
            shares.insert(lock, shared);
            Action::Acquire {
                place: lock,
                shared,
            }
        }
        Step::Release { lock } => Action::Release {
            place: lock,
            shared: shares.get(&lock).copied().unwrap_or(false),
        },
        Step::Await { channel } => Action::Await(channel),
        Step::Post { channel, times } => Action::Post(channel, times),
        Step::Idle(ns) => Action::Idle(ns),
    };
    steps.iter().map(action).collect()
}
