//! The whole question, for any number of locks: which promises hold, and
//! which orderings are needed. What `locklab verify` calls.

use crate::coverage::{Coverage, Covered};
use crate::explore::{Explored, Failure, Limits, Outcome};
use crate::interposer::INTERPOSER;
use crate::mutants::{SourceMutant, try_mutants};
use crate::numbers::THREAD_NUMBERS;
use crate::property::Property;
use crate::random::{self, Drawn};
use crate::result::{Checker, Count, LockResult, PropertyResult, Verdict};
use crate::run::{self, Passed};
use crate::source;
use crate::spin_then_park::SPIN_THEN_PARK;
use locklab_locks::catalogue;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// How much to explore.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Also change every operation in turn.
    pub mutants: bool,
    /// Of locks of the catalogue, also every token of the source that can be.
    pub source: bool,
    /// OS threads that explore at once.
    pub workers: usize,
    /// The most executions of one property, all bounds together.
    pub executions: u64,
    /// The same for a mutant that few executions of each property have not
    /// killed; 0: it is not explored further.
    pub mutant_executions: u64,
    /// Random schedules of each lock.
    pub schedules: usize,
    /// What they are drawn from.
    pub seed: u64,
    /// The longest time for one property. What a run finds should not depend
    /// on the machine, so by default there is none.
    pub duration: Duration,
}

/// The most executions of one property, unless the caller says otherwise.
const EXECUTIONS: u64 = 16_000;

/// The same where time does not matter.
pub const THOROUGH_EXECUTIONS: u64 = 1_000_000;

/// Random schedules of each lock, unless the caller says otherwise.
const SCHEDULES: usize = 1_000;

/// The same where time does not matter.
pub const THOROUGH_SCHEDULES: usize = 50_000;

impl Default for Options {
    fn default() -> Self {
        Self {
            mutants: false,
            source: false,
            workers: std::thread::available_parallelism().map_or(1, usize::from),
            executions: EXECUTIONS,
            mutant_executions: EXECUTIONS,
            schedules: SCHEDULES,
            seed: 1,
            duration: Duration::MAX,
        }
    }
}

impl Options {
    pub(crate) fn limits(&self) -> Limits {
        Limits {
            executions: self.executions,
            duration: self.duration,
        }
    }
}

/// What is no lock of the catalogue.
const NO_LOCKS: [&str; 3] = [SPIN_THEN_PARK, THREAD_NUMBERS, INTERPOSER];

/// Everything that can be verified, in the order in which tables show it:
/// the locks of the catalogue, then the waiting policy that they can take, the
/// numbers of threads, by which some find their queue nodes, and what the
/// interposer does beside them.
pub fn names() -> Vec<&'static str> {
    let locks = catalogue::ALL.iter().map(|entry| entry.info.name);
    locks.chain(NO_LOCKS).collect()
}

/// How far a run has come.
#[derive(Clone, Debug)]
pub struct Progress {
    /// Properties and mutants done.
    pub done: usize,
    /// Properties and mutants known of so far.
    pub total: usize,
    /// What was done last.
    pub what: String,
}

/// No lock has this name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownLock(pub String);

impl fmt::Display for UnknownLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "there is no lock called '{}'; `locklab locks` lists them",
            self.0
        )
    }
}

impl std::error::Error for UnknownLock {}

/// A lock to verify.
pub struct Candidate {
    /// What tables call it.
    pub name: String,
    /// The promises to check, in the order of tables.
    pub properties: Vec<Property>,
    /// Whether random schedules are drawn of it, by its name.
    pub drawn: bool,
    /// Changes of its source that make other locks, beside what is changed
    /// while it runs.
    pub mutants: Vec<SourceMutant>,
}

impl Candidate {
    /// The one called `name`.
    ///
    /// # Errors
    /// There is none.
    pub fn named(name: &str) -> Result<Self, UnknownLock> {
        let properties = run::properties_of(name).ok_or_else(|| UnknownLock(name.to_owned()))?;
        Ok(Self {
            name: name.to_owned(),
            properties,
            drawn: !NO_LOCKS.contains(&name),
            mutants: Vec::new(),
        })
    }
}

/// Checks the locks called `names`, all workers at once; `progress` is told
/// after each property and each mutant, from any of them.
///
/// # Errors
/// If a name is not that of a lock; nothing is run then.
pub fn verify(
    names: &[String],
    options: Options,
    progress: &(dyn Fn(Progress) + Sync),
) -> Result<Vec<LockResult>, UnknownLock> {
    let locks: Result<Vec<_>, _> = names.iter().map(|name| Candidate::named(name)).collect();
    Ok(verify_these(&locks?, options, progress))
}

/// The same, of these locks.
pub fn verify_these(
    locks: &[Candidate],
    options: Options,
    progress: &(dyn Fn(Progress) + Sync),
) -> Vec<LockResult> {
    let limits = options.limits();
    let total = AtomicUsize::new(0);
    let done = AtomicUsize::new(0);
    let tell = |what: String| {
        progress(Progress {
            done: done.fetch_add(1, Ordering::Relaxed) + 1,
            total: total.load(Ordering::Relaxed),
            what,
        });
    };

    let jobs: Vec<(usize, Job)> = locks
        .iter()
        .enumerate()
        .flat_map(|(lock, candidate)| {
            let explored = (0..candidate.properties.len()).map(Job::Explore);
            let drawn = candidate.drawn.then_some(Job::Draw);
            explored.chain(drawn).map(move |job| (lock, job))
        })
        .collect();
    total.fetch_add(jobs.len(), Ordering::Relaxed);
    let checked = in_parallel(options.workers, jobs.clone(), |(lock, job)| {
        let Candidate {
            name, properties, ..
        } = &locks[lock];
        let (found, passed) = match job {
            Job::Explore(p) => {
                let (explored, passed) = run::check_and_record(&properties[p], limits);
                (result(&properties[p], explored), Some(passed))
            }
            Job::Draw => (draw(name, options), None),
        };
        tell(format!("{name}: {}", found.name));
        (found, passed)
    });
    // Of each lock, by property.
    let mut passed: Vec<Vec<Passed>> = vec![Vec::new(); locks.len()];
    let mut shown = vec![Vec::new(); locks.len()];
    for ((lock, _), (found, of_property)) in jobs.into_iter().zip(checked) {
        shown[lock].push(found);
        passed[lock].extend(of_property);
    }
    for passed in passed.iter().flatten() {
        source::add_all(&passed.texts);
    }
    let mut results: Vec<LockResult> = locks
        .iter()
        .zip(shown)
        .zip(&passed)
        .map(|((candidate, properties), passed)| LockResult {
            name: candidate.name.clone(),
            sources: sources(passed),
            covered: covered(&candidate.name, passed),
            executions: properties.iter().map(|p| p.executions).sum(),
            seconds: properties.iter().map(|p| p.seconds).sum(),
            properties,
            mutants: None,
            killed: None,
            orderings: Count::default(),
            structure: Count::default(),
            planted: Count::default(),
            survivors: Vec::new(),
            argued: Vec::new(),
            dead: Vec::new(),
        })
        .collect();
    if options.mutants {
        try_mutants(locks, &passed, &mut results, options, &total, &tell);
    }
    results
}

/// The files in which a lock's operations stand.
fn sources(passed: &[Passed]) -> Vec<(String, u64)> {
    let mutants = passed.iter().flat_map(|passed| &passed.mutants);
    let files: BTreeSet<_> = mutants.map(|mutant| mutant.place.file).collect();
    files
        .into_iter()
        .filter_map(source::fingerprint)
        .map(|(name, hash)| (name.to_owned(), hash))
        .collect()
}

/// What the models of a lock reach of the files whose operations it is there
/// to show needed.
fn covered(lock: &str, passed: &[Passed]) -> Covered {
    let mut all = Coverage::default();
    for passed in passed {
        all.add(&passed.coverage);
    }
    let mutants = passed.iter().flat_map(|passed| &passed.mutants);
    let files: BTreeSet<_> = mutants.map(|mutant| mutant.place.file).collect();
    let name = |file: &str| source::name_of(file).unwrap_or(file).to_owned();
    all.covered(lock, &files.into_iter().map(name).collect::<Vec<_>>())
}

/// A piece of work on a lock.
#[derive(Clone, Copy)]
enum Job {
    /// One of its properties, by its place.
    Explore(usize),
    /// To run its random schedules.
    Draw,
}

fn draw(name: &str, options: Options) -> PropertyResult {
    let Drawn {
        schedules,
        failure,
        took,
    } = random::draw(name, options.seed, options.schedules).expect("only names of locks come here");
    let (failure, trace) = failure
        .map(|Failure { message, trace }| (message, trace))
        .unzip();
    PropertyResult {
        name: "random schedules",
        checker: Checker::Shuttle,
        threads: random::THREADS,
        preemptions: None,
        executions: schedules,
        seconds: took.as_secs_f64(),
        outcome: if failure.is_some() {
            Verdict::Fails
        } else {
            Verdict::Passes
        },
        failure,
        trace: trace.unwrap_or_default(),
    }
}

fn result(property: &Property, explored: Explored) -> PropertyResult {
    let (outcome, failure) = match explored.outcome {
        Outcome::Holds => (Verdict::Holds, None),
        Outcome::Cut => (Verdict::Cut, None),
        Outcome::Fails(failure) => (Verdict::Fails, Some(failure)),
    };
    let (failure, trace) = failure
        .map(|Failure { message, trace }| (message, trace))
        .unzip();
    PropertyResult {
        name: property.name,
        checker: Checker::Loom,
        threads: property.threads,
        preemptions: explored.preemptions,
        executions: explored.executions,
        seconds: explored.took.as_secs_f64(),
        outcome,
        failure,
        trace: trace.unwrap_or_default(),
    }
}

/// Runs `work` on each of `jobs`, `workers` at a time; results in the order
/// of the jobs. The last comes first: the models of locks that park are the
/// longest, and are the last, and one worker alone would end with them.
pub(crate) fn in_parallel<J: Send, R: Send>(
    workers: usize,
    jobs: Vec<J>,
    work: impl Fn(J) -> R + Sync,
) -> Vec<R> {
    let count = jobs.len();
    let queue = Mutex::new(jobs.into_iter().enumerate().collect::<Vec<_>>());
    let results = Mutex::new(BTreeMap::new());
    std::thread::scope(|scope| {
        for _ in 0..workers.clamp(1, count.max(1)) {
            scope.spawn(|| {
                loop {
                    let Some((place, job)) = queue.lock().expect("no worker panics").pop() else {
                        return;
                    };
                    let result = work(job);
                    results
                        .lock()
                        .expect("no worker panics")
                        .insert(place, result);
                }
            });
        }
    });
    results
        .into_inner()
        .expect("no worker panics")
        .into_values()
        .collect()
}
