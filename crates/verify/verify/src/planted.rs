//! Bugs that people make, by name: `planted.txt` lists them.
//!
//! Some the platform makes, as a [`Mutation`] of one line; for the others the
//! build makes a copy of the lock's source with one edit. Each must break a
//! promise of its lock, or say why it breaks none.

use crate::mutation::Mutation;
use crate::originals::models::properties_of_model;
use crate::property::Property;
use crate::source;
use crate::subject::{self, Subject};
use std::sync::Arc;

/// One bug of one lock.
pub(crate) struct Planted {
    pub(crate) lock: &'static str,
    pub(crate) file: &'static str,
    pub(crate) what: &'static str,
    /// The reason why it breaks no promise.
    pub(crate) because: Option<&'static str>,
    pub(crate) made: Made,
}

/// Tells how a bug is made.
pub(crate) enum Made {
    /// It is made by this change of a line that has this part.
    ByPlatform {
        change: &'static str,
        line: &'static str,
    },
    /// It is made in a copy of the source.
    InSource(fn() -> Arc<dyn Subject>),
    /// Its place is no longer in the source.
    #[allow(dead_code, reason = "made by the build, when it must")]
    Nowhere,
}

impl Planted {
    /// Returns the promises of the lock that has the bug; none if the platform makes
    /// it.
    pub(crate) fn properties(&self) -> Vec<Property> {
        let Made::InSource(make) = self.made else {
            return Vec::new();
        };
        properties_of_model(&make())
    }

    /// Returns whether this mutant is the bug, if its statement stands on this line.
    fn is_at(&self, mutation: &Mutation, number: u32) -> bool {
        let Made::ByPlatform { change, line } = self.made else {
            return false;
        };
        let file = mutation.place.file;
        let has_it = || {
            file.ends_with(self.file)
                && source::line(file, number).is_some_and(|text| text.contains(line))
        };
        (file == line || has_it()) && mutation.description() == change
    }
}

/// Returns the bugs of the lock called `name` that are planted in its source.
pub(crate) fn in_source(name: &str) -> impl Iterator<Item = &'static Planted> + use<> {
    let name = name.to_owned();
    ALL.iter()
        .filter(move |bug| bug.lock == name && matches!(bug.made, Made::InSource(_)))
}

/// Returns the names of the bugs of the lock called `name`.
pub(crate) fn names(name: &str) -> impl Iterator<Item = &'static str> + use<> {
    let name = name.to_owned();
    let of_lock = ALL.iter().filter(move |bug| bug.lock == name);
    of_lock.map(|bug| bug.what)
}

/// Returns the name of a mutant of the lock called `name`, if it is a bug that has
/// one. What stands on its line comes before what stands on the line above,
/// where a call may begin.
pub(crate) fn name_of(name: &str, mutation: &Mutation) -> Option<&'static str> {
    let line = mutation.place.line;
    let bug = [line, line.saturating_sub(1)]
        .into_iter()
        .find_map(|number| {
            ALL.iter()
                .find(|bug| bug.lock == name && bug.is_at(mutation, number))
        });
    bug.map(|bug| bug.what)
}

#[allow(unused_imports)]
#[path = "../planted/world.rs"]
mod world;

include!(concat!(env!("OUT_DIR"), "/planted.rs"));

#[cfg(test)]
#[path = "../tests/unit/planted.rs"]
mod tests;
