//! Runs the properties of locks by name, and their mutants.

use crate::explore::{Explored, Limits, Outcome, explore};
use crate::models;
use crate::ordering::{self, Mutation};
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
    let mut all = models::visit(name, Properties)?;
    all.extend(models::more_properties(name));
    Some(all)
}

/// Checks one property of a lock, with one ordering weakened if so asked.
pub fn check(property: &Property, limits: Limits, mutation: Option<Mutation>) -> Explored {
    ordering::with(mutation, || explore(property, limits))
}

/// Checks one property and lists the mutants of every ordering that its
/// executions pass.
pub fn check_and_record(property: &Property, limits: Limits) -> (Explored, Vec<Mutation>) {
    ordering::start_recording();
    let explored = explore(property, limits);
    (explored, ordering::stop_recording())
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

/// Executions of each property in each round of [`try_mutant`]: most mutants
/// fall to the first few hundred of the right property, which is not always
/// the first.
const ROUNDS: [u64; 3] = [1_000, 10_000, u64::MAX];

/// Runs one mutant under each property in turn until one fails, first a
/// little, then up to the limits.
pub fn try_mutant(properties: &[Property], limits: Limits, mutation: Mutation) -> (Fate, u64) {
    let mut executions = 0;
    let mut undecided: Vec<&Property> = properties.iter().collect();
    for round in ROUNDS {
        let limits = Limits {
            executions: limits.executions.min(round),
            ..limits
        };
        let mut cut = Vec::new();
        for property in undecided {
            let explored = check(property, limits, Some(mutation));
            executions += explored.executions;
            match explored.outcome {
                Outcome::Holds => {}
                Outcome::Cut => cut.push(property),
                Outcome::Fails(failure) => {
                    let how = failure.message;
                    let by = property.name;
                    return (Fate::Killed { by, how }, executions);
                }
            }
        }
        undecided = cut;
        if undecided.is_empty() {
            return (Fate::Survived, executions);
        }
    }
    (Fate::Undecided, executions)
}
