//! Mutants of all the source of a lock: copies of the locks have a switch at
//! each comparison, condition, constant, operator, field and statement
//! ([`locklab_lock_mutants`]), and their models are those of the locks.
//!
//! Must never put a switch on outside the process of its mutant.

use crate::copies::models;
use crate::coverage::Branch;
use crate::explore::{explore_within, pruning};
use crate::isolate::isolated;
use crate::journal::Place;
use crate::limits::Limits;
use crate::property::Property;
use crate::source;
use locklab_lock_mutants::switch::{self, ALWAYS_FALSE, ALWAYS_TRUE, BRANCH, SITES};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// A switch, by its number from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Switch(u32);

impl Switch {
    fn site(self) -> &'static switch::Site {
        &SITES[self.0 as usize - 1]
    }

    /// Returns the file, line and column of the switch.
    pub(crate) fn place(self) -> Place {
        let switch::Site {
            file, line, column, ..
        } = *self.site();
        Place { file, line, column }
    }

    /// Returns source file, line and column.
    pub(crate) fn line(self) -> String {
        let Place { file, line, column } = self.place();
        format!(
            "{}:{line}:{column}",
            file.rsplit('/').next().unwrap_or(file)
        )
    }

    /// Returns what stands on its line.
    pub(crate) fn source(self) -> &'static str {
        let Place { file, line, .. } = self.place();
        source::line(file, line).unwrap_or("").trim()
    }

    /// Says what was there and what is.
    pub(crate) fn change(self) -> &'static str {
        self.site().change
    }
}

/// The copy of a lock, and what its models pass.
#[derive(Default)]
pub(crate) struct Switched {
    properties: Vec<Property>,
    /// The switches passed by each model, in their order.
    passed: Vec<BTreeSet<Switch>>,
}

/// The executions of a model that show what it passes.
const EXECUTIONS: u64 = 300;

impl Switched {
    /// Returns the copy of the lock called `name`, if it is one of the catalogue.
    pub(crate) fn of(name: &str) -> Option<Self> {
        Some(Self {
            properties: models::properties_of(name)?,
            passed: Vec::new(),
        })
    }

    /// Returns how many models it has.
    pub(crate) fn models(&self) -> usize {
        self.properties.len()
    }

    /// Returns what a model passes, in a process of its own.
    pub(crate) fn pass(&self, model: usize) -> BTreeSet<Switch> {
        let property = &self.properties[model];
        let limits = Limits {
            executions: EXECUTIONS,
            ..Limits::default()
        };
        let ended = isolated(|| {
            switch::start();
            for preemptions in [Some(1), None] {
                explore_within(property, preemptions, pruning(preemptions), limits);
            }
            switch::stop()
        });
        let files = property.structure_of;
        let is_of = |file: &str| files.is_empty() || files.contains(&file);
        // A copy that crashes with all switches off passes nothing; that its
        // original holds is known.
        let passed = ended.answer.unwrap_or_default().into_iter();
        let switches = passed.map(|(number, _)| Switch(number));
        switches
            .filter(|switch| (1..=SITES.len()).contains(&(switch.0 as usize)))
            .filter(|switch| is_of(switch.place().file))
            .collect()
    }

    /// Adds what the next model passes.
    pub(crate) fn add(&mut self, passed: BTreeSet<Switch>) {
        self.passed.push(passed);
    }

    /// Returns all that some model passes.
    fn all_passed(&self) -> BTreeSet<Switch> {
        self.passed.iter().flatten().copied().collect()
    }

    /// Returns every mutant that a model can look at.
    pub(crate) fn mutants(&self) -> impl Iterator<Item = Switch> + use<> {
        let all = self.all_passed().into_iter();
        all.filter(|switch| switch.change() != BRANCH)
    }

    /// Returns the conditions and the branches without one of these source files, and what
    /// the models have found there.
    pub(crate) fn branches(&self, files: &[String]) -> Vec<(Place, Branch)> {
        let passed = self.all_passed();
        let structure_of = self.properties.first().map_or(&[][..], |p| p.structure_of);
        let is_of = |file: &str| structure_of.is_empty() || structure_of.contains(&file);
        let mut ways: BTreeMap<Place, Vec<(&str, bool)>> = BTreeMap::new();
        for number in 1..=SITES.len() {
            let switch = Switch(number as u32);
            let (place, change) = (switch.place(), switch.change());
            let is_of_file = is_of(place.file)
                && files
                    .iter()
                    .any(|file| Path::new(place.file).ends_with(file));
            if is_of_file && [ALWAYS_TRUE, ALWAYS_FALSE, BRANCH].contains(&change) {
                let found = passed.contains(&switch);
                ways.entry(place).or_default().push((change, found));
            }
        }
        let branch = |ways: &[(&str, bool)]| {
            // What changes a condition is passed where the condition is not that.
            let of = |name| ways.iter().find(|(change, _)| *change == name);
            let found = |name| of(name).is_some_and(|(_, found)| *found);
            // Of a loop's condition, and of one that takes a value apart, it is noted
            // only where it is true.
            let both = of(ALWAYS_TRUE).is_some() && of(ALWAYS_FALSE).is_some();
            match ways.iter().any(|(_, found)| *found) {
                false => Branch::NotReached,
                true if !both => Branch::Reached,
                true if !found(ALWAYS_FALSE) => Branch::NeverTrue,
                true if !found(ALWAYS_TRUE) => Branch::NeverFalse,
                true => Branch::BothWays,
            }
        };
        let places = ways.into_iter();
        places.map(|(place, ways)| (place, branch(&ways))).collect()
    }

    /// Returns the promises of the lock with this switch on that can tell it from the
    /// lock.
    pub(crate) fn properties(&self, on: Switch) -> Vec<Property> {
        let with_passed = self.properties.iter().zip(&self.passed);
        let able = with_passed.filter(|(_, passed)| passed.contains(&on));
        let on = move || switch::turn_on(on.0);
        able.map(|(property, _)| property.clone().after(on))
            .collect()
    }
}
