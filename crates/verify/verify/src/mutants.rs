//! The mutants of locks: which there are, under which promises each is run,
//! and what became of it.
//!
//! Must never count as killed what has broken no promise.

use crate::argued;
use crate::candidate::{Candidate, SourceMutant};
use crate::limits::Limits;
use crate::mutation::Mutation;
use crate::options::{Options, in_parallel};
use crate::planted::{self, Planted};
use crate::property::Property;
use crate::result::{Killed, LockResult, MutantKind, Survivor};
use crate::run::{self, Fate, Passed};
use crate::switched::{Switch, Switched};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// A mutant of one lock.
#[derive(Clone, Copy)]
enum Mutant<'a> {
    /// An operation that the platform performs otherwise.
    Of(Mutation),
    /// A bug that is planted in the lock's source.
    In(&'static Planted),
    /// It is in the source of a lock that is not ours.
    Other(&'a SourceMutant),
    /// It is made by a switch in a copy of the source.
    By(Switch),
}

impl<'a> Mutant<'a> {
    fn kind(self) -> MutantKind {
        match self {
            Self::Of(mutation) if mutation.is_ordering() => MutantKind::Ordering,
            Self::Of(_) | Self::Other(_) | Self::By(_) => MutantKind::Structure,
            Self::In(_) => MutantKind::Planted,
        }
    }

    /// Returns what the bug is called, if it has a name.
    fn bug(self, lock: &str) -> Option<String> {
        match self {
            Self::Of(mutation) => planted::name_of(lock, &mutation).map(str::to_owned),
            Self::In(planted) => Some(planted.what.to_owned()),
            Self::Other(_) | Self::By(_) => None,
        }
    }

    fn line(self) -> String {
        match self {
            Self::Of(mutation) => mutation.site(),
            Self::In(planted) => planted.file.to_owned(),
            Self::Other(mutant) => mutant.line.clone(),
            Self::By(switch) => switch.line(),
        }
    }

    /// Returns what stands in the source where it is made.
    fn source(self) -> String {
        match self {
            Self::Of(mutation) => mutation.text(),
            Self::In(planted) => planted.what.to_owned(),
            Self::Other(mutant) => mutant.source.clone(),
            Self::By(switch) => switch.source().to_owned(),
        }
    }

    fn description(self) -> String {
        match self {
            Self::Of(mutation) => mutation.description(),
            Self::In(_) => "planted in the source".to_owned(),
            Self::Other(mutant) => mutant.change.clone(),
            Self::By(switch) => switch.change().to_owned(),
        }
    }

    fn because(self, lock: &str) -> Option<&'static str> {
        match self {
            Self::Of(mutation) => argued::because(lock, mutation.place, &mutation.description()),
            Self::In(planted) => planted.because,
            Self::Other(_) => None,
            Self::By(switch) => argued::because(lock, switch.place(), switch.change()),
        }
    }

    /// Returns the properties that can tell it from the lock: those whose executions
    /// pass the place. For the others it is the lock itself, as far as that is
    /// explored.
    fn properties<'p>(self, all: &'p [Property], passed: &[Passed]) -> Vec<&'p Property> {
        let Self::Of(mutation) = self else {
            return all.iter().collect();
        };
        let passes = |passed: &Passed| passed.places.contains(&mutation.place);
        let with_passed = all.iter().zip(passed);
        with_passed
            .filter(|(_, passed)| passes(passed))
            .map(|(property, _)| property)
            .collect()
    }

    /// Returns what becomes of it; `None` if there is no such mutant.
    fn run(
        self,
        lock: &str,
        properties: &[&Property],
        switched: &Switched,
        options: Options,
    ) -> Option<(Fate, Duration)> {
        // What is argued is not explored for ever.
        let thorough = self.because(lock).is_none() && options.mutant_executions > 0;
        let limits = Limits {
            executions: options.mutant_executions,
            ..options.limits()
        };
        Some(match self {
            Self::Of(mutation) => {
                let properties = properties.iter().copied();
                run::try_mutant(properties, limits, Some(mutation), thorough)
            }
            Self::In(planted) => run::try_mutant(&planted.properties(), limits, None, thorough),
            Self::Other(mutant) => run::try_mutant(&(mutant.promises)()?, limits, None, thorough),
            Self::By(switch) => {
                run::try_mutant(&switched.properties(switch), limits, None, thorough)
            }
        })
    }
}

/// Tries the mutants of every lock that keeps its promises; `passed` is by
/// lock and by property.
pub(crate) fn try_mutants(
    locks: &[Candidate],
    passed: &[Vec<Passed>],
    switched: &[Switched],
    results: &mut [LockResult],
    options: Options,
    total: &AtomicUsize,
    tell: &(dyn Fn(String) + Sync),
) {
    let jobs: Vec<(usize, Mutant<'_>)> = passed
        .iter()
        .enumerate()
        // A lock with a fault fails under every mutant: that says nothing of
        // them.
        .filter(|&(lock, _)| results[lock].holds())
        .flat_map(|(lock, passed)| {
            let of: BTreeSet<Mutation> = passed
                .iter()
                .flat_map(|passed| passed.mutants.iter().copied())
                .collect();
            let of = of.into_iter().map(Mutant::Of);
            let planted = planted::in_source(&locks[lock].name).map(Mutant::In);
            let other = locks[lock].mutants.iter().map(Mutant::Other);
            let by = switched[lock].mutants().filter(|_| options.source);
            let by = by.map(Mutant::By);
            let all = of.chain(planted).chain(other).chain(by);
            all.map(move |mutant| (lock, mutant))
        })
        .collect();
    total.fetch_add(jobs.len(), Ordering::Relaxed);
    let fates = in_parallel(options.workers, jobs.clone(), |(lock, mutant)| {
        let Candidate {
            name, properties, ..
        } = &locks[lock];
        let able = mutant.properties(properties, &passed[lock]);
        let tried = mutant.run(name, &able, &switched[lock], options);
        tell(format!("{name}: {}", mutant.line()));
        tried
    });
    for (lock, result) in results.iter_mut().enumerate() {
        if result.holds() {
            let of_lock = jobs.iter().zip(&fates).filter(|((l, _), _)| *l == lock);
            let made = of_lock.filter_map(|((_, mutant), fate)| Some((*mutant, fate.as_ref()?)));
            count(result, made);
        }
    }
}

/// Returns the copies with switches of the locks that keep their promises, each with
/// the switches that its models pass.
pub(crate) fn switched(
    locks: &[Candidate],
    results: &[LockResult],
    options: Options,
    total: &AtomicUsize,
    tell: &(dyn Fn(String) + Sync),
) -> Vec<Switched> {
    let copies = locks.iter().zip(results).map(|(lock, result)| {
        let asked = options.source || options.branches;
        let copy = (asked && lock.drawn && result.holds()).then(|| Switched::of(&lock.name));
        copy.flatten().unwrap_or_default()
    });
    let mut copies: Vec<Switched> = copies.collect();
    let jobs: Vec<(usize, usize)> = copies
        .iter()
        .enumerate()
        .flat_map(|(lock, copy)| (0..copy.models()).map(move |model| (lock, model)))
        .collect();
    total.fetch_add(jobs.len(), Ordering::Relaxed);
    let passed = in_parallel(options.workers, jobs.clone(), |(lock, model)| {
        let passed = copies[lock].pass(model);
        tell(format!("{}: its source", locks[lock].name));
        passed
    });
    for ((lock, _), passed) in jobs.into_iter().zip(passed) {
        copies[lock].add(passed);
    }
    copies
}

fn count<'a>(
    result: &mut LockResult,
    tried: impl Iterator<Item = (Mutant<'a>, &'a (Fate, Duration))>,
) {
    for (mutant, (fate, took)) in tried {
        let seconds = took.as_secs_f64();
        result.seconds += seconds;
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
                seconds,
                by: by.clone(),
                how: how.clone(),
            });
            continue;
        }
        let because = mutant.because(&result.name).map(str::to_owned);
        let survivors = if because.is_some() {
            &mut result.argued
        } else {
            &mut result.survivors
        };
        survivors.push(Survivor {
            bug,
            line,
            source: mutant.source(),
            weakened,
            kind,
            seconds,
            decided: *fate == Fate::Survived,
            because,
        });
    }
    let counts = [result.orderings, result.structure, result.planted];
    result.mutants = Some(counts.iter().map(|count| count.mutants).sum());
    result.killed = Some(counts.iter().map(|count| count.killed).sum());
}
