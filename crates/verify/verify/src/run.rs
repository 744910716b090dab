//! Runs the properties of locks by name, and their mutants, each in a process
//! of its own.

use crate::coverage::{self, Coverage};
use crate::explore::{
    explore, explore_by_loom, explore_fully, explore_reads, explore_within, pruning,
};
use crate::graphs::Graphs;
use crate::interposer::{INTERPOSER, interposer_properties};
use crate::isolate::{Crash, Ended, isolated};
use crate::journal::{Journal, Place};
use crate::limits::Limits;
use crate::mutation::{self, Mutation};
use crate::numbers::{THREAD_NUMBERS, number_properties};
use crate::originals::models;
use crate::outcome::{Explored, Failure, Outcome};
use crate::platform::Loom;
use crate::property::{Property, exclusion_of_four};
use crate::source;
use crate::spin_then_park::{SPIN_THEN_PARK, park_properties};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Returns the properties of the lock called `name`, the cheapest first; `None` if
/// there is no such lock.
pub fn properties_of(name: &str) -> Option<Vec<Property>> {
    match name {
        SPIN_THEN_PARK => Some(park_properties()),
        THREAD_NUMBERS => Some(number_properties()),
        INTERPOSER => Some(interposer_properties()),
        _ => {
            let graphs = models::model::<Graphs, { models::ROOM }>(name)?;
            let graphs = models::properties_of_model(&graphs);
            Some(with_graphs(models::properties_of(name)?, &graphs))
        }
    }
}

/// Returns what the lock promises that is no part of the record.
pub(crate) fn unrecorded(name: &str) -> Vec<Property> {
    let graphs = models::model::<Graphs, { models::ROOM }>(name);
    let loom = models::model::<Loom, { models::ROOM }>(name);
    let (Some(graphs), Some(loom)) = (graphs, loom) else {
        return Vec::new();
    };
    let info = loom.info();
    if info.parks || info.held_locks {
        return Vec::new();
    }
    with_graphs(
        vec![exclusion_of_four(&loom)],
        &[exclusion_of_four(&graphs)],
    )
}

/// Returns the properties, each with the model of its namesake among `graphs`, whose lock
/// is of this engine.
fn with_graphs(mut all: Vec<Property>, graphs: &[Property]) -> Vec<Property> {
    for property in &mut all {
        let mut same = graphs.iter().filter(|graph| graph.name == property.name);
        if let (Some(graph), None) = (same.next(), same.next()) {
            property.graphs = graph.graphs.clone();
        }
    }
    all
}

/// Explores in a process of its own; its crash is a failed promise.
fn explored_apart(
    preemptions: Option<usize>,
    work: impl FnOnce() -> (Explored, Passed),
) -> (Explored, Passed) {
    let Ended { answer, cpu } = isolated(work);
    let (explored, passed) = answer.unwrap_or_else(|crash: Crash| {
        let explored = Explored::crashed(crash.failure, preemptions, crash.executions);
        (explored, Passed::default())
    });
    let explored = Explored {
        took: cpu,
        ..explored
    };
    (explored, passed)
}

/// Checks one property of a lock, with one operation changed if so asked. Only loom's world
/// can change an operation.
pub fn check(property: &Property, limits: Limits, mutation: Option<Mutation>) -> Explored {
    let explored = || match mutation {
        None => explore_fully(property, limits, false),
        Some(_) => explore_by_loom(property, limits),
    };
    let work = || {
        let explored = mutation::with(mutation, explored);
        (explored, Passed::default())
    };
    explored_apart(None, work).0
}

/// Checks one property with at most so many preemptions, pruned after so many
/// fruitless reads of one wait, or not at all.
pub fn check_within(property: &Property, preemptions: usize, prune_after: Option<u32>) -> Explored {
    let preemptions = Some(preemptions);
    let work = || {
        let limits = Limits::default();
        let explored = explore_within(property, preemptions, prune_after, limits);
        (explored, Passed::default())
    };
    explored_apart(preemptions, work).0
}

/// Holds what the executions of a property have passed.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Passed {
    /// Holds the places of operations that can be changed.
    pub places: BTreeSet<Place>,
    /// Holds the mutants that the property is there to kill.
    pub mutants: Vec<Mutation>,
    /// Holds what else is known of them.
    pub coverage: Coverage,
    /// Holds the text of the files that are not ours, by the names of their places.
    pub texts: Vec<(String, String)>,
}

/// Checks one property and lists the mutants of every operation that its
/// executions pass.
pub fn check_and_record(property: &Property, limits: Limits) -> (Explored, Passed) {
    explored_apart(None, || {
        mutation::start_recording();
        coverage::start();
        let explored = explore_fully(property, limits, true);
        let coverage = coverage::stop();
        let mut mutants = mutation::stop_recording();
        let places = mutants.iter().map(|mutant| mutant.place).collect();
        if let Some(file) = property.orderings_of {
            let named = |mutant: &Mutation| property.structure_of.contains(&mutant.place.file);
            mutants.retain(|mutant| mutant.place.file.ends_with(file) || named(mutant));
        }
        if !property.structure_of.is_empty() {
            mutants.retain(|mutant| {
                let files = property.structure_of;
                mutant.is_ordering() || files.iter().any(|file| mutant.place.file.ends_with(file))
            });
        }
        if property.unrecorded {
            // It is there to show no operation needed.
            mutants.clear();
        }
        let passed = Passed {
            places,
            mutants,
            coverage,
            texts: source::all_added(),
        };
        (explored, passed)
    })
}

/// Tells what became of a mutant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Fate {
    /// Says that a property fails under it: what it changes is needed.
    Killed {
        /// Names the property.
        by: String,
        /// Says how the property fails, as a sentence.
        how: String,
    },
    /// Says that no property fails, and none was cut short.
    Survived,
    /// Says that no property fails, but some were cut short.
    Undecided,
}

/// Limits each round of [`try_mutant`], in preemptions (`None`: any number) and executions
/// of each property: most mutants fall to few executions of the right property, which is
/// not always the first.
const ROUNDS: [(Option<usize>, u64); 5] = [
    (Some(1), 40),
    (Some(1), 400),
    (None, 300),
    (Some(2), 3_000),
    (None, 3_000),
];

/// Counts the rounds of a mutant of which it is known why it breaks no promise.
const BRIEF: usize = 2;

/// Runs one mutant (by `mutation`, or of a lock that is one itself) under each
/// property in turn until one fails, first a little, then as far as the
/// property itself is explored; with `thorough` false, only a little. Returns what
/// became of it, and the CPU time that it took.
///
/// One process for all of it: when that crashes, the mutant has fallen.
pub fn try_mutant<'a>(
    properties: impl IntoIterator<Item = &'a Property>,
    limits: Limits,
    mutation: Option<Mutation>,
    thorough: bool,
) -> (Fate, Duration) {
    let properties: Vec<&Property> = properties.into_iter().collect();
    let Ended { answer, cpu } =
        isolated(|| mutation::with(mutation, || try_properties(&properties, limits, thorough)));
    let fate = answer.unwrap_or_else(|crash: Crash| Fate::Killed {
        by: properties
            .get(crash.property)
            .map_or("", |property| property.name)
            .into(),
        how: crash.failure.message,
    });
    (fate, cpu)
}

/// Notes which property is explored, for whoever finds this process crashed.
fn begin_property(number: usize) {
    let journal = Journal::current();
    journal.property.store(number as u32, Ordering::Relaxed);
}

/// Runs properties, whose lock is a mutant, until one fails.
fn try_properties(properties: &[&Property], limits: Limits, thorough: bool) -> Fate {
    let killed = |property: &Property, explored: &Explored| match &explored.outcome {
        Outcome::Fails(Failure { message, .. }) => Some(Fate::Killed {
            by: property.name.into(),
            how: message.clone(),
        }),
        Outcome::Holds | Outcome::Cut => None,
    };
    let mut complete = vec![false; properties.len()];
    let rounds = if thorough {
        &ROUNDS[..]
    } else {
        &ROUNDS[..BRIEF]
    };
    for &(preemptions, executions) in rounds {
        let limits = Limits {
            executions,
            ..limits
        };
        for (number, (property, complete)) in properties.iter().zip(&mut complete).enumerate() {
            if *complete {
                continue;
            }
            begin_property(number);
            let explored = explore_within(property, preemptions, pruning(preemptions), limits);
            if let Some(fate) = killed(property, &explored) {
                return fate;
            }
            *complete = explored.preemptions.is_none() && explored.outcome == Outcome::Holds;
        }
    }
    if !thorough {
        return Fate::Undecided;
    }
    let mut survived = Fate::Survived;
    for (number, (property, complete)) in properties.iter().zip(complete).enumerate() {
        if complete {
            continue;
        }
        begin_property(number);
        let explored = explore(property, limits);
        if explored.outcome == Outcome::Cut {
            survived = Fate::Undecided;
        }
        if let Some(fate) = killed(property, &explored) {
            return fate;
        }
        let once_more = property.drawn.is_none() && !property.setting.reads_conflict;
        if once_more
            && let Err(fails) = explore_reads(property, &explored, limits)
            && let Some(fate) = killed(property, &fails)
        {
            return fate;
        }
    }
    survived
}
