//! The whole question, for any number of locks: which promises hold, and
//! which orderings are needed. What `locklab verify` calls.

use crate::candidate::{Candidate, UnknownLock};
use crate::coverage::{Coverage, Covered};
use crate::mutants::{switched, try_mutants};
use crate::options::{Options, in_parallel};
use crate::outcome::{Explored, Failure, Outcome, Reads};
use crate::property::Property;
use crate::random::{self, Drawn};
use crate::result::{Checker, Count, LockResult, PropertyResult, Verdict};
use crate::run::{self, Passed};
use crate::source;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Tells how far a run has come.
#[derive(Clone, Debug)]
pub struct Progress {
    /// Properties and mutants done.
    pub done: usize,
    /// Properties and mutants known of so far.
    pub total: usize,
    /// Names what was done last.
    pub what: String,
}

/// Checks the locks called `names`, all workers at once; `progress` is called
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

/// Does the same with these locks.
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
            let asked = |&p: &usize| !(options.mutants && candidate.properties[p].unrecorded);
            let explored = (0..candidate.properties.len()).filter(asked);
            let explored = explored.map(Job::Explore);
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
    let switched = switched(locks, &results, options, &total, &tell);
    if options.branches {
        for (((lock, copy), passed), result) in
            locks.iter().zip(&switched).zip(&passed).zip(&mut results)
        {
            if copy.models() > 0 {
                let branches = copy.branches(&source_files(passed));
                result.covered.add_branches(&lock.name, branches);
            }
        }
    }
    if options.mutants {
        try_mutants(
            locks,
            &passed,
            &switched,
            &mut results,
            options,
            &total,
            &tell,
        );
    }
    results
}

/// Returns the files in which a lock's operations stand.
fn sources(passed: &[Passed]) -> Vec<(String, u64)> {
    let mutants = passed.iter().flat_map(|passed| &passed.mutants);
    let files: BTreeSet<_> = mutants.map(|mutant| mutant.place.file).collect();
    files
        .into_iter()
        .filter_map(source::fingerprint)
        .map(|(name, hash)| (name.to_owned(), hash))
        .collect()
}

/// Returns what the models of a lock reach of the files whose operations it is there to show
/// needed.
fn covered(lock: &str, passed: &[Passed]) -> Covered {
    let mut all = Coverage::default();
    for passed in passed {
        all.add(&passed.coverage);
    }
    all.covered(lock, &source_files(passed))
}

/// Returns the files whose operations the models of a lock are there to show needed.
fn source_files(passed: &[Passed]) -> Vec<String> {
    let mutants = passed.iter().flat_map(|passed| &passed.mutants);
    let files: BTreeSet<_> = mutants.map(|mutant| mutant.place.file).collect();
    let name = |file: &str| source::name_of(file).unwrap_or(file).to_owned();
    files.into_iter().map(name).collect()
}

/// A piece of work on a lock.
#[derive(Clone, Copy)]
enum Job {
    /// One of its properties, by its place.
    Explore(usize),
    /// It runs random schedules.
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
        left_out: Vec::new(),
        schedules: 0,
        reads: Reads::One,
        failure,
        trace: trace.unwrap_or_default(),
    }
}

fn result(property: &Property, explored: Explored) -> PropertyResult {
    let (outcome, failure) = match explored.outcome {
        Outcome::Holds if property.drawn.is_some() => (Verdict::Passes, None),
        Outcome::Holds => (Verdict::Holds, None),
        Outcome::Cut => (Verdict::Cut, None),
        Outcome::Fails(failure) => (Verdict::Fails, Some(failure)),
    };
    let (failure, trace) = failure
        .map(|Failure { message, trace }| (message, trace))
        .unzip();
    PropertyResult {
        name: property.name,
        checker: match property.drawn {
            Some(_) => Checker::Programs,
            None if explored.every => Checker::Graphs,
            None => Checker::Loom,
        },
        threads: property.threads,
        preemptions: explored.preemptions,
        executions: explored.executions,
        seconds: explored.took.as_secs_f64(),
        outcome,
        left_out: explored.left_out,
        schedules: explored.schedules,
        reads: explored.reads,
        failure,
        trace: trace.unwrap_or_default(),
    }
}
