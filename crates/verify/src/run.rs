//! Runs the properties of locks by name, and their mutants.

use crate::explore::{Explored, Limits, Outcome, explore};
use crate::models;
use crate::ordering::{self, Mutation};
use crate::platform::Loom;
use crate::property::{Property, big_properties, properties};
use locklab_locks::catalogue::{BigVisitor, Visitor};
use locklab_locks::{BigLock, RawLock};

struct Properties;

impl Visitor<Loom> for Properties {
    type Output = Vec<Property>;
    fn visit<L: RawLock<Loom>>(self) -> Vec<Property> {
        properties::<L>()
    }
}

impl BigVisitor<Loom> for Properties {
    type Output = Vec<Property>;
    fn visit<L: BigLock<Loom>>(self) -> Vec<Property> {
        big_properties::<L>()
    }
}

/// The properties of the lock called `name`, the cheapest first; `None` if
/// there is no such lock.
pub fn properties_of(name: &str) -> Option<Vec<Property>> {
    let mut all = models::visit(name, Properties)?;
    all.extend(models::visit_big(name, Properties).into_iter().flatten());
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

/// Runs one mutant under each property in turn until one fails.
pub fn try_mutant(properties: &[Property], limits: Limits, mutation: Mutation) -> (Fate, u64) {
    let mut executions = 0;
    let mut fate = Fate::Survived;
    for property in properties {
        let explored = check(property, limits, Some(mutation));
        executions += explored.executions;
        match explored.outcome {
            Outcome::Holds => {}
            Outcome::Cut => fate = Fate::Undecided,
            Outcome::Fails(failure) => {
                let how = failure.message;
                let by = property.name;
                return (Fate::Killed { by, how }, executions);
            }
        }
    }
    (fate, executions)
}
