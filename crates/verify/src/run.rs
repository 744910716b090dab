//! Runs the properties of locks by name, and their mutants.

use crate::explore::{Explored, Limits, Outcome, explore, explore_within, pruning};
use crate::models;
use crate::ordering::{self, Mutation};
use crate::parking::{SPIN_THEN_PARK, park_properties};
use crate::platform::Loom;
use crate::property::{Property, properties};
use locklab_locks::RawLock;
use locklab_locks::catalogue::Visitor;

struct Properties;

impl Visitor<Loom> for Properties {
    type Output = Vec<Property>;
    fn visit<L: RawLock<Loom>>(self) -> Vec<Property> {
        properties::<L>()
    }
}

/// The properties of the lock called `name`, the cheapest first; `None` if
/// there is no such lock.
pub fn properties_of(name: &str) -> Option<Vec<Property>> {
    if name == SPIN_THEN_PARK {
        return Some(park_properties());
    }
    let mut all = models::visit::<Loom, _, { models::ROOM }>(name, Properties)?;
    all.extend(models::more_properties(name));
    for property in &mut all {
        property.orderings_of = property.orderings_of.or(models::orderings_of(name));
    }
    Some(all)
}

/// Checks one property of a lock, with one ordering weakened if so asked.
pub fn check(property: &Property, limits: Limits, mutation: Option<Mutation>) -> Explored {
    ordering::with(mutation, || explore(property, limits))
}

/// Checks one property with at most so many preemptions, pruned after so many
/// fruitless reads of one wait, or not at all.
pub fn check_within(property: &Property, preemptions: usize, prune_after: Option<u32>) -> Explored {
    explore_within(property, Some(preemptions), prune_after, Limits::default())
}

/// Checks one property and lists the mutants of every ordering that its
/// executions pass.
pub fn check_and_record(property: &Property, limits: Limits) -> (Explored, Vec<Mutation>) {
    ordering::start_recording();
    let explored = explore(property, limits);
    let mut mutants = ordering::stop_recording();
    if let Some(file) = property.orderings_of {
        mutants.retain(|mutant| mutant.site.file.ends_with(file));
    }
    (explored, mutants)
}

/// What became of a mutant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// A property fails under it: the ordering is needed.
    Killed {
        /// Which property.
        by: &'static str,
        /// How it fails.
        how: String,
    },
    /// No property fails, and none was cut short.
    Survived,
    /// No property fails, but some were cut short.
    Undecided,
}

/// How far each property is explored in each round of [`try_mutant`]: most
/// mutants fall to few executions of the right property, which is not always
/// the first. `None` as a bound: any number of preemptions.
const ROUNDS: [(Option<usize>, u64); 4] =
    [(Some(1), 300), (None, 300), (Some(2), 3_000), (None, 3_000)];

/// Runs one mutant under each property in turn until one fails, first a
/// little, then as far as the property itself is explored.
pub fn try_mutant(properties: &[Property], limits: Limits, mutation: Mutation) -> Fate {
    let killed = |property: &Property, explored: Explored| match explored.outcome {
        Outcome::Fails(failure) => Some(Fate::Killed {
            by: property.name,
            how: failure.message,
        }),
        Outcome::Holds | Outcome::Cut => None,
    };
    for (preemptions, executions) in ROUNDS {
        let limits = Limits {
            executions: limits.executions.min(executions),
            ..limits
        };
        for property in properties {
            let explored = ordering::with(Some(mutation), || {
                explore_within(property, preemptions, pruning(preemptions), limits)
            });
            if let Some(fate) = killed(property, explored) {
                return fate;
            }
        }
    }
    let mut survived = Fate::Survived;
    for property in properties {
        let explored = check(property, limits, Some(mutation));
        if explored.outcome == Outcome::Cut {
            survived = Fate::Undecided;
        }
        if let Some(fate) = killed(property, explored) {
            return fate;
        }
    }
    survived
}
