//! The whole question, for any number of locks: which promises hold, and
//! which orderings are needed. What `locklab verify` calls.

use crate::argued;
use crate::explore::{Explored, Failure, Limits, Outcome};
use crate::mutation::Mutation;
use crate::parking::SPIN_THEN_PARK;
use crate::planted::{self, Planted};
use crate::property::Property;
use crate::random::{self, Drawn};
use crate::result::{
    Checker, Count, Killed, LockResult, MutantKind, PropertyResult, Survivor, Verdict,
};
use crate::run::{self, Fate};
use crate::source;
use locklab_locks::catalogue;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// How much to explore.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Also change every operation in turn.
    pub mutants: bool,
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
    fn limits(&self) -> Limits {
        Limits {
            executions: self.executions,
            duration: self.duration,
        }
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

/// A lock to verify.
pub struct Candidate {
    /// What tables call it.
    pub name: String,
    /// What it promises.
    pub properties: Vec<Property>,
    /// Whether random schedules are drawn of it, by its name.
    pub drawn: bool,
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
            drawn: name != SPIN_THEN_PARK,
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
        .zip(&mutations)
        .map(|((candidate, properties), passed)| LockResult {
            name: candidate.name.clone(),
            sources: sources(passed),
            executions: properties.iter().map(|p| p.executions).sum(),
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
        try_mutants(locks, &mutations, &mut results, options, &total, &tell);
    }
    results
}

/// The files in which a lock's operations stand.
fn sources(passed: &BTreeSet<Mutation>) -> Vec<(String, u64)> {
    let files: BTreeSet<_> = passed.iter().map(|mutation| mutation.place.file).collect();
    files
        .into_iter()
        .filter_map(source::fingerprint)
        .map(|(name, hash)| (name.to_owned(), hash))
        .collect()
}

/// A mutant of one lock.
#[derive(Clone, Copy)]
enum Mutant {
    /// By the platform.
    Of(Mutation),
    /// In the source.
    In(&'static Planted),
}

impl Mutant {
    fn kind(self) -> MutantKind {
        match self {
            Self::Of(mutation) if mutation.is_ordering() => MutantKind::Ordering,
            Self::Of(_) => MutantKind::Structure,
            Self::In(_) => MutantKind::Planted,
        }
    }

    /// What the bug is called, if it has a name.
    fn bug(self, lock: &str) -> Option<String> {
        match self {
            Self::Of(mutation) => planted::name_of(lock, &mutation).map(str::to_owned),
            Self::In(planted) => Some(planted.what.to_owned()),
        }
    }

    fn line(self) -> String {
        match self {
            Self::Of(mutation) => mutation.site(),
            Self::In(planted) => planted.file.to_owned(),
        }
    }

    fn description(self) -> String {
        match self {
            Self::Of(mutation) => mutation.description(),
            Self::In(_) => "planted in the source".to_owned(),
        }
    }

    fn because(self) -> Option<&'static str> {
        match self {
            Self::Of(mutation) => argued::because(&mutation),
            Self::In(planted) => planted.because,
        }
    }

    fn run(self, properties: &[Property], options: Options) -> Fate {
        // What is argued is not explored for ever.
        let thorough = self.because().is_none() && options.mutant_executions > 0;
        let limits = Limits {
            executions: options.mutant_executions,
            ..options.limits()
        };
        match self {
            Self::Of(mutation) => run::try_mutant(properties, limits, Some(mutation), thorough),
            Self::In(planted) => run::try_mutant(&planted.properties(), limits, None, thorough),
        }
    }
}

fn try_mutants(
    locks: &[Candidate],
    mutations: &[BTreeSet<Mutation>],
    results: &mut [LockResult],
    options: Options,
    total: &AtomicUsize,
    tell: &(dyn Fn(String) + Sync),
) {
    let jobs: Vec<(usize, Mutant)> = mutations
        .iter()
        .enumerate()
        // A lock with a fault fails under every mutant: that says nothing of
        // them.
        .filter(|&(lock, _)| results[lock].holds())
        .flat_map(|(lock, sites)| {
            let of = sites.iter().copied().map(Mutant::Of);
            let planted = planted::in_source(&locks[lock].name).map(Mutant::In);
            of.chain(planted).map(move |mutant| (lock, mutant))
        })
        .collect();
    total.fetch_add(jobs.len(), Ordering::Relaxed);
    let fates = in_parallel(options.workers, jobs.clone(), |(lock, mutant)| {
        let Candidate {
            name, properties, ..
        } = &locks[lock];
        let fate = mutant.run(properties, options);
        tell(format!("{name}: {}", mutant.line()));
        fate
    });
    for (lock, result) in results.iter_mut().enumerate() {
        if result.holds() {
            let of_lock = jobs.iter().zip(&fates).filter(|((l, _), _)| *l == lock);
            count(result, of_lock.map(|((_, mutant), fate)| (*mutant, fate)));
        }
    }
}

fn count<'a>(result: &mut LockResult, fates: impl Iterator<Item = (Mutant, &'a Fate)>) {
    for (mutant, fate) in fates {
        let bug = mutant.bug(&result.name);
        let (line, weakened, kind) = (mutant.line(), mutant.description(), mutant.kind());
        let count = match kind {
            MutantKind::Ordering => &mut result.orderings,
            MutantKind::Structure => &mut result.structure,
            MutantKind::Planted => &mut result.planted,
        };
        count.mutants += 1;
        if let Fate::Killed { by, how } = fate {
            count.killed += 1;
            result.dead.push(Killed {
                bug,
                line,
                weakened,
                kind,
                by: by.clone(),
                how: how.clone(),
            });
            continue;
        }
        let because = mutant.because().map(str::to_owned);
        let survivors = if because.is_some() {
            &mut result.argued
        } else {
            &mut result.survivors
        };
        survivors.push(Survivor {
            bug,
            line,
            weakened,
            kind,
            decided: *fate == Fate::Survived,
            because,
        });
    }
    let counts = [result.orderings, result.structure, result.planted];
    result.mutants = Some(counts.iter().map(|count| count.mutants).sum());
    result.killed = Some(counts.iter().map(|count| count.killed).sum());
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
/// of the jobs. The last comes first: the models of locks that park are the
/// longest, and are the last, and one worker alone would end with them.
fn in_parallel<J: Send, R: Send>(
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
