//! The whole question, for any number of locks: which promises hold, and
//! which orderings are needed. What `locklab verify` calls.

use crate::explore::{Failure, Limits, Outcome};
use crate::ordering::Mutation;
use crate::property::Property;
use crate::run::{self, Fate};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// How much to explore.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Also weaken every ordering in turn.
    pub mutants: bool,
    /// Also the properties that take long, and no limit on the others.
    pub thorough: bool,
    /// OS threads that explore at once.
    pub workers: usize,
    /// The most executions of one property, unless thorough.
    pub executions: u64,
    /// The longest time for one property.
    pub duration: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            mutants: false,
            thorough: false,
            workers: std::thread::available_parallelism().map_or(1, usize::from),
            executions: 100_000,
            duration: Duration::from_secs(60),
        }
    }
}

impl Options {
    fn limits(&self) -> Limits {
        Limits {
            executions: if self.thorough {
                u64::MAX
            } else {
                self.executions
            },
            duration: self.duration,
            ..Limits::default()
        }
    }
}

/// Whether a promise holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// In every execution within the bounds.
    Holds,
    /// In every execution explored before the limit came.
    Cut,
    /// Not in one execution.
    Fails,
}

/// One promise of one lock.
#[derive(Clone, Debug, Serialize)]
pub struct PropertyResult {
    /// The property.
    pub name: &'static str,
    /// Modelled threads.
    pub threads: usize,
    /// The most preemptions explored; `None`: any number.
    pub preemptions: Option<usize>,
    /// Executions explored.
    pub executions: u64,
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
        let mut properties =
            run::properties_of(name).ok_or_else(|| UnknownLock(name.to_string()))?;
        properties.retain(|property| options.thorough || !property.thorough);
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

    let jobs: Vec<(usize, usize)> = locks
        .iter()
        .enumerate()
        .flat_map(|(lock, (_, properties))| (0..properties.len()).map(move |p| (lock, p)))
        .collect();
    total.fetch_add(jobs.len(), Ordering::Relaxed);
    let checked = in_parallel(options.workers, jobs, |(lock, p)| {
        let (name, properties) = &locks[lock];
        let found = run::check_and_record(&properties[p], limits);
        tell(format!("{name}: {}", properties[p].name));
        found
    });
    let mut results = Vec::new();
    let mut mutations: Vec<BTreeSet<Mutation>> = Vec::new();
    let mut checked = checked.into_iter();
    for (name, properties) in &locks {
        let mut sites = BTreeSet::new();
        let mut shown = Vec::new();
        for property in properties {
            let (explored, passed) = checked.next().expect("one result for each job");
            sites.extend(passed);
            shown.push(result(property, explored.executions, explored.outcome));
        }
        mutations.push(sites);
        results.push(LockResult {
            name: name.to_string(),
            executions: shown.iter().map(|p| p.executions).sum(),
            properties: shown,
            mutants: None,
            killed: None,
            survivors: Vec::new(),
        });
    }
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
        let (fate, _) = run::try_mutant(properties, options.limits(), mutation);
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

fn result(property: &Property, executions: u64, outcome: Outcome) -> PropertyResult {
    let (outcome, failure) = match outcome {
        Outcome::Holds => (Verdict::Holds, None),
        Outcome::Cut => (Verdict::Cut, None),
        Outcome::Fails(failure) => (Verdict::Fails, Some(failure)),
    };
    let (failure, trace) = failure
        .map(|Failure { message, trace }| (message, trace))
        .unzip();
    PropertyResult {
        name: property.name,
        threads: property.threads,
        preemptions: property.preemptions,
        executions,
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
