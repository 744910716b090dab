//! The simulations behind the advice.

use crate::gate::Gate;
use crate::limits::{LEAST_DRAWS, MOST_EVENTS};
use crate::question::Question;
use locklab_host::error::Error;
use locklab_judge::fork_seed;
use locklab_replay::{Program, Role};
use locklab_sim::band::{draws, with_system};
use locklab_sim::{
    FigureKey, Machine, Placement, Replay, Replayed, SimError, Subject, Waiters, replay,
};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Acquisitions of one simulation, about.
const ACQUISITIONS: f64 = 12_000.0;
/// The number of times that each CPU at least passes, with more threads than CPUs, from
/// one thread to the next: a lock in order of arrival collapses once a waiter has lost
/// its CPU, and that may be after many of its turns.
const SLICES: f64 = 50.0;
/// The most simulated time of one, in nanoseconds of each thread's work.
const MOST_WORK: f64 = 300e6;

/// Describes what was simulated on one machine with one number of threads.
#[derive(Clone, Debug)]
pub(crate) struct Point {
    /// The place of the machine in [`Question::machines`].
    pub machine: usize,
    /// Threads of the classes that scale.
    pub threads: usize,
    /// All simulated threads, with those of which there is always one.
    pub running: usize,
    /// Today's lock, by draw of the machine.
    pub today: Vec<Replayed>,
    /// A lock that nothing can beat, by draw.
    pub ideal: Vec<Replayed>,
    /// The candidates, by draw; or why one cannot be simulated.
    pub locks: Vec<Result<Vec<Replayed>, SimError>>,
    /// The program without its locks, which shows whether they are what limits it.
    pub free: Replayed,
    /// Today's lock, used otherwise: what is different, and what came of it.
    pub what_ifs: Vec<(&'static str, Result<Replayed, SimError>)>,
    /// Says how many times as long the same takes as it was recorded, because holds
    /// grow.
    pub longer: f64,
}

/// Everything that was simulated.
#[derive(Clone, Debug)]
pub(crate) struct Advice {
    /// Says how far the model is from the recording.
    pub gate: Gate,
    /// Machine by machine, threads by threads.
    pub points: Vec<Point>,
}

/// Describes what is simulated: a place, a draw, and under what.
#[derive(Clone, Copy)]
struct Task {
    place: usize,
    draw: usize,
    what: What,
}

#[derive(Clone, Copy)]
enum What {
    Today,
    Ideal,
    Lock(usize),
    Free,
    Otherwise(usize),
}

/// The changes that are no locks.
const WHAT_IFS: [&str; 4] = [
    "the hottest lock were held for a quarter less time",
    "the hottest lock were split in two",
    "the hottest lock were split in eight",
    "nine of ten holds of the hottest lock only read (rw-queued)",
];

/// Returns the program with a change of [`WHAT_IFS`]. It is made where it is simulated, once: a
/// program of a large recording takes much memory.
fn changed(program: &Program, what_if: usize, seed: u64) -> Program {
    match what_if {
        0 => program.with_holds_of(0, 0.75),
        1 => program.with_split(0, 2, seed),
        2 => program.with_split(0, 8, seed),
        _ => program.with_readers_of(0, 10),
    }
}

/// Simulates the answer to a question about a program. Calls `progress` with the number of
/// simulations that are done, and of all.
///
/// # Errors
/// [`SimError`] if today's lock or no lock at all cannot be simulated: then
/// nothing can be said. `None` if it was interrupted.
pub(crate) fn points(
    program: &Program,
    question: &Question,
    interrupt: &AtomicBool,
    progress: impl Fn(usize, usize) + Sync,
) -> Result<Option<Vec<Point>>, SimError> {
    let threads = match question.threads.is_empty() {
        true => vec![program.scaling_threads()],
        false => question.threads.clone(),
    };
    let places: Vec<(usize, usize, Vec<Role>)> = (0..question.machines.len())
        .flat_map(|machine| threads.iter().map(move |&threads| (machine, threads)))
        .map(|(machine, threads)| {
            let roles = program.cast(Some(threads), question.seed);
            (machine, threads, roles)
        })
        .collect();
    let drawn: Vec<Vec<Machine>> = question
        .machines
        .iter()
        .map(|machine| {
            let draws = draws(machine, question.draws.max(LEAST_DRAWS));
            let numbered = draws.iter().enumerate();
            numbered
                .map(|(number, machine)| with_system(machine, number, question.seed))
                .collect()
        })
        .collect();
    let running = |machine: usize, roles: &[Role]| {
        let there = question.machines[machine].hardware_threads();
        there.min(roles.len())
    };
    // Holds are as long as with the threads that run at a time; without another
    // recording, always as long as recorded.
    let mut programs: BTreeMap<usize, Cow<'_, Program>> = BTreeMap::new();
    let growth = question
        .fewer
        .as_ref()
        .and_then(|fewer| fewer.growth.as_ref().ok());
    let which = |machine, roles: &[Role]| growth.map_or(0, |_| running(machine, roles));
    for (machine, _, roles) in &places {
        let running = which(*machine, roles);
        programs.entry(running).or_insert_with(|| match growth {
            Some(growth) => Cow::Owned(program.with_running(growth, running)),
            None => Cow::Borrowed(program),
        });
    }
    let tasks = tasks(places.len(), question);
    let run = |task: &Task| -> Result<Replayed, SimError> {
        let (machine, _, roles) = &places[task.place];
        let as_is = &*programs[&which(*machine, roles)];
        let otherwise = match task.what {
            What::Free => Some(as_is.without_locks()),
            What::Otherwise(number) => Some(changed(as_is, number, question.seed)),
            What::Today | What::Ideal | What::Lock(_) => None,
        };
        let program = otherwise.as_ref().unwrap_or(as_is);
        let lock = match task.what {
            What::Ideal | What::Free => Subject::Ideal,
            What::Lock(number) => question.locks[number].subject(),
            What::Otherwise(3) => Subject::Lock("rw-queued", Waiters::SpinThenPark),
            What::Today | What::Otherwise(_) => Subject::Glibc,
        };
        replay(&Replay {
            machine: &drawn[*machine][task.draw],
            lock,
            program,
            roles,
            hardware_threads: None,
            placement: Placement::Spread,
            // One seed for all that is compared.
            seed: fork_seed(
                fork_seed(question.seed, task.place as u64),
                task.draw as u64,
            ),
            work_ns: work(program, &question.machines[*machine], roles.len()),
            most_events: MOST_EVENTS,
        })
    };
    let Some(results) = all(&tasks, question.workers, interrupt, run, progress) else {
        return Ok(None);
    };
    let mut points = Vec::new();
    let mut results = tasks.iter().zip(results).peekable();
    for (place, (machine, threads, roles)) in places.iter().enumerate() {
        let mut point = Gathered::default();
        while let Some((task, result)) = results.next_if(|(task, _)| task.place == place) {
            point.add(task.what, result)?;
        }
        let mut point = point.point(*machine, *threads, roles.len(), question)?;
        let as_is = &programs[&which(*machine, roles)];
        point.longer = as_is.recorded.work_ns / program.recorded.work_ns.max(1.0);
        points.push(point);
    }
    Ok(Some(points))
}

fn tasks(places: usize, question: &Question) -> Vec<Task> {
    let draws = question.draws.max(LEAST_DRAWS);
    let mut tasks = Vec::new();
    for place in 0..places {
        for draw in 0..draws {
            let mut add = |what| tasks.push(Task { place, draw, what });
            add(What::Today);
            add(What::Ideal);
            (0..question.locks.len()).for_each(|lock| add(What::Lock(lock)));
            if draw == 0 {
                add(What::Free);
                (0..WHAT_IFS.len()).for_each(|number| add(What::Otherwise(number)));
            }
        }
    }
    tasks
}

/// Returns the work after which a simulation has seen enough.
fn work(program: &Program, machine: &Machine, running: usize) -> f64 {
    let recorded = &program.recorded;
    let each = recorded.work_ns / recorded.acquisitions.max(1) as f64;
    // Every thread gets to take its turn a few times.
    let acquisitions = ACQUISITIONS.max(100.0 * running as f64);
    let cpus = machine.hardware_threads();
    let slices = match running > cpus {
        true => SLICES * 1e3 * machine.get(FigureKey::SchedulerSliceUs) * cpus as f64,
        false => 0.0,
    };
    (each * acquisitions)
        .max(slices)
        .min(MOST_WORK * running as f64)
}

/// Runs each task on one of `workers` threads; `None` if it was interrupted.
fn all(
    tasks: &[Task],
    workers: usize,
    interrupt: &AtomicBool,
    run: impl Fn(&Task) -> Result<Replayed, SimError> + Sync,
    progress: impl Fn(usize, usize) + Sync,
) -> Option<Vec<Result<Replayed, SimError>>> {
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let results: Vec<Mutex<Option<Result<Replayed, SimError>>>> =
        tasks.iter().map(|_| Mutex::new(None)).collect();
    std::thread::scope(|scope| {
        for _ in 0..workers.clamp(1, tasks.len().max(1)) {
            scope.spawn(|| {
                while !interrupt.load(Ordering::Relaxed) {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(task) = tasks.get(at) else { break };
                    let result = run(task);
                    if let Ok(mut slot) = results[at].lock() {
                        *slot = Some(result);
                    }
                    progress(done.fetch_add(1, Ordering::Relaxed) + 1, tasks.len());
                }
            });
        }
    });
    let taken = results
        .into_iter()
        .map(|slot| slot.into_inner().ok().flatten());
    taken.collect()
}

/// A point whose results come one by one.
#[derive(Default)]
struct Gathered {
    today: Vec<Replayed>,
    ideal: Vec<Replayed>,
    locks: Vec<(usize, Result<Replayed, SimError>)>,
    free: Option<Replayed>,
    what_ifs: Vec<(&'static str, Result<Replayed, SimError>)>,
}

impl Gathered {
    fn add(&mut self, what: What, result: Result<Replayed, SimError>) -> Result<(), SimError> {
        match what {
            What::Today => self.today.push(result?),
            What::Ideal => self.ideal.push(result?),
            What::Free => self.free = Some(result?),
            What::Lock(number) => self.locks.push((number, result)),
            What::Otherwise(number) => self.what_ifs.push((WHAT_IFS[number], result)),
        }
        Ok(())
    }

    fn point(
        self,
        machine: usize,
        threads: usize,
        running: usize,
        question: &Question,
    ) -> Result<Point, SimError> {
        let none = || Error::Failed("a simulation ended without an outcome".into());
        let of = |number: usize| -> Result<Vec<Replayed>, SimError> {
            let of_lock = self.locks.iter().filter(|(lock, _)| *lock == number);
            of_lock.map(|(_, result)| result.clone()).collect()
        };
        Ok(Point {
            machine,
            threads,
            running,
            locks: (0..question.locks.len()).map(of).collect(),
            today: self.today,
            ideal: self.ideal,
            free: self.free.ok_or_else(none)?,
            what_ifs: self.what_ifs,
            longer: 1.0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::question::generic;
    use locklab_replay::Recorded;

    #[test]
    fn more_threads_than_cpus_are_simulated_for_many_slices() {
        let program = Program {
            locks: Vec::new(),
            threads: Vec::new(),
            channels: 0,
            classes: Vec::new(),
            modules: Vec::new(),
            holds: Vec::new(),
            recorded: Recorded {
                work_ns: 1e6,
                acquisitions: 1000,
                ..Recorded::default()
            },
        };
        let machine = generic(2).unwrap();
        assert_eq!(work(&program, &machine, 2), 12e6);
        assert_eq!(work(&program, &machine, 8), 50.0 * 2.8e6 * 2.0);
    }
}
