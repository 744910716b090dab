//! The whole question, for any number of locks: which promises hold, and
//! which orderings are needed. What `locklab verify` calls.

use crate::explore::{Explored, Failure, Limits, Outcome};
use crate::ordering::Mutation;
use crate::parking::SPIN_THEN_PARK;
use crate::property::Property;
use crate::random::{self, Drawn};
use crate::run::{self, Fate};
use locklab_locks::catalogue;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// How much to explore.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Also weaken every ordering in turn.
    pub mutants: bool,
    /// OS threads that explore at once.
    pub workers: usize,
    /// The most executions of one property, all bounds together.
    pub executions: u64,
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
            workers: std::thread::available_parallelism().map_or(1, usize::from),
            executions: EXECUTIONS,
            schedules: SCHEDULES,
            seed: 1,
            duration: Duration::MAX,
        }
    }
}

impl Options {
    fn limits(&self) -> Limits {
        Limits {
            executions: self.executions,
            duration: self.duration,
        }
    }
}

/// Whether a promise holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// In every execution within the bound.
    Holds,
    /// In every execution explored, but not all with one preemption were.
    Cut,
    /// In every schedule drawn at random.
    Passes,
    /// Not in one execution.
    Fails,
}

/// Who looked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Checker {
    /// Every execution within a bound, weak memory included.
    Loom,
    /// Random schedules, sequentially consistent.
    Shuttle,
}

/// One promise of one lock.
#[derive(Clone, Debug, Serialize)]
pub struct PropertyResult {
    /// The property.
    pub name: &'static str,
    /// Who checked it.
    pub checker: Checker,
    /// Modelled threads.
    pub threads: usize,
    /// The most preemptions explored; `None`: any number.
    pub preemptions: Option<usize>,
    /// Executions explored, or schedules drawn.
    pub executions: u64,
    /// How long that took, in seconds.
    pub seconds: f64,
    /// Whether it holds.
    pub outcome: Verdict,
    /// How it fails: the message, and the steps that lead there.
    pub failure: Option<String>,
    /// The steps of the failing execution.
    pub trace: Vec<String>,
}

/// A mutant that no property has failed.
#[derive(Clone, Debug, Serialize)]
pub struct Survivor {
    /// Source file, line and column.
    pub line: String,
    /// What was weakened, and to what.
    pub weakened: String,
    /// Whether every property was explored to its end. If not, a longer run
    /// may yet kill it.
    pub decided: bool,
}

/// What is known of one lock.
#[derive(Clone, Debug, Serialize)]
pub struct LockResult {
    /// Its name.
    pub name: String,
    /// Its promises.
    pub properties: Vec<PropertyResult>,
    /// Executions explored, mutants not counted.
    pub executions: u64,
    /// How many one-step weakenings its orderings have; `None` if they were
    /// not tried.
    pub mutants: Option<usize>,
    /// How many of them break a promise.
    pub killed: Option<usize>,
    /// The others.
    pub survivors: Vec<Survivor>,
}

impl LockResult {
    /// Whether no promise is broken.
    pub fn holds(&self) -> bool {
        self.properties
            .iter()
            .all(|property| property.outcome != Verdict::Fails)
    }

    /// Whether every promise was explored to the end within its bound.
    pub fn is_complete(&self) -> bool {
        self.properties
            .iter()
            .all(|property| property.outcome != Verdict::Cut)
    }
}

/// Everything that can be verified, in the order in which tables show it:
/// the locks of the catalogue, then the waiting policy that they can take.
pub fn names() -> Vec<&'static str> {
    let locks = catalogue::ALL.iter().map(|entry| entry.info.name);
    locks.chain([SPIN_THEN_PARK]).collect()
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
    let mut locks = Vec::new();
    for name in names {
        let properties = run::properties_of(name).ok_or_else(|| UnknownLock(name.to_string()))?;
        locks.push((name, properties));
    }
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
        .flat_map(|(lock, (name, properties))| {
            let explored = (0..properties.len()).map(Job::Explore);
            let drawn = (name.as_str() != SPIN_THEN_PARK).then_some(Job::Draw);
            explored.chain(drawn).map(move |job| (lock, job))
        })
        .collect();
    total.fetch_add(jobs.len(), Ordering::Relaxed);
    let checked = in_parallel(options.workers, jobs.clone(), |(lock, job)| {
        let (name, properties) = &locks[lock];
        let (found, mutations) = match job {
            Job::Explore(p) => {
                let (explored, mutations) = run::check_and_record(&properties[p], limits);
                (result(&properties[p], explored), mutations)
            }
            Job::Draw => (draw(name, options), Vec::new()),
        };
        tell(format!("{name}: {}", found.name));
        (found, mutations)
    });
    let mut mutations = vec![BTreeSet::new(); locks.len()];
    let mut shown = vec![Vec::new(); locks.len()];
    for ((lock, _), (found, passed)) in jobs.into_iter().zip(checked) {
        shown[lock].push(found);
        mutations[lock].extend(passed);
    }
    let mut results: Vec<LockResult> = locks
        .iter()
        .zip(shown)
        .map(|((name, _), properties)| LockResult {
            name: name.to_string(),
            executions: properties.iter().map(|p| p.executions).sum(),
            properties,
            mutants: None,
            killed: None,
            survivors: Vec::new(),
        })
        .collect();
    if options.mutants {
        try_mutants(&locks, &mutations, &mut results, options, &total, &tell);
    }
    Ok(results)
}

fn try_mutants(
    locks: &[(&String, Vec<Property>)],
    mutations: &[BTreeSet<Mutation>],
    results: &mut [LockResult],
    options: Options,
    total: &AtomicUsize,
    tell: &(dyn Fn(String) + Sync),
) {
    let jobs: Vec<(usize, Mutation)> = mutations
        .iter()
        .enumerate()
        .filter(|&(lock, _)| results[lock].holds())
        .flat_map(|(lock, sites)| sites.iter().map(move |&mutation| (lock, mutation)))
        .collect();
    total.fetch_add(jobs.len(), Ordering::Relaxed);
    let fates = in_parallel(options.workers, jobs.clone(), |(lock, mutation)| {
        let (name, properties) = &locks[lock];
        let fate = run::try_mutant(properties, options.limits(), mutation);
        tell(format!("{name}: {mutation}"));
        fate
    });
    let mut of_lock: BTreeMap<usize, Vec<(Mutation, Fate)>> = BTreeMap::new();
    for ((lock, mutation), fate) in jobs.into_iter().zip(fates) {
        of_lock.entry(lock).or_default().push((mutation, fate));
    }
    for (lock, result) in results.iter_mut().enumerate() {
        if !result.holds() {
            // A lock with a fault fails under every mutant: that says
            // nothing of them.
            continue;
        }
        let fates = of_lock.remove(&lock).unwrap_or_default();
        result.mutants = Some(fates.len());
        for (mutation, fate) in &fates {
            if !matches!(fate, Fate::Killed { .. }) {
                result.survivors.push(Survivor {
                    line: mutation.site.to_string(),
                    weakened: mutation.weakening(),
                    decided: *fate == Fate::Survived,
                });
            }
        }
        result.killed = Some(fates.len() - result.survivors.len());
    }
}

/// A piece of work on a lock.
#[derive(Clone, Copy)]
enum Job {
    /// One of its properties, by its place.
    Explore(usize),
    /// Its random schedules.
    Draw,
}

fn draw(name: &str, options: Options) -> PropertyResult {
    let start = Instant::now();
    let Drawn { schedules, failure } =
        random::draw(name, options.seed, options.schedules).expect("only names of locks come here");
    let (failure, trace) = failure
        .map(|Failure { message, trace }| (message, trace))
        .unzip();
    PropertyResult {
        name: "random schedules",
        checker: Checker::Shuttle,
        threads: random::THREADS,
        preemptions: None,
        executions: schedules,
        seconds: start.elapsed().as_secs_f64(),
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
/// of the jobs.
fn in_parallel<J: Send, R: Send>(
    workers: usize,
    jobs: Vec<J>,
    work: impl Fn(J) -> R + Sync,
) -> Vec<R> {
    let count = jobs.len();
    let queue = Mutex::new(jobs.into_iter().enumerate().collect::<VecDeque<_>>());
    let results = Mutex::new(BTreeMap::new());
    std::thread::scope(|scope| {
        for _ in 0..workers.clamp(1, count.max(1)) {
            scope.spawn(|| {
                loop {
                    let Some((place, job)) = queue.lock().expect("no worker panics").pop_front()
                    else {
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
