//! Lists what can be verified: the locks of the catalogue and what else has promises,
//! by name, and locks of the user's own.

use crate::interposer::INTERPOSER;
use crate::numbers::THREAD_NUMBERS;
use crate::property::Property;
use crate::run;
use crate::spin_then_park::SPIN_THEN_PARK;
use locklab_library_models::catalogue as library_models;
use locklab_locks::catalogue;
use std::fmt;

/// Names what is no lock of the catalogue.
const NO_LOCKS: [&str; 3] = [SPIN_THEN_PARK, THREAD_NUMBERS, INTERPOSER];

/// Returns everything that can be verified, in the order in which tables show it:
/// the locks of the catalogue, the models of other libraries' locks, then the waiting policy that they can take, the
/// numbers of threads, by which some find their queue nodes, and what the
/// interposer does beside them.
pub fn names() -> Vec<&'static str> {
    let locks = catalogue::ALL.iter().chain(library_models::ALL);
    let names = locks.map(|entry| entry.info.name);
    names.chain(NO_LOCKS).collect()
}

/// A change of a lock's source that makes another lock.
pub struct SourceMutant {
    /// Source file, line and column.
    pub line: String,
    /// Holds the text of that line.
    pub source: String,
    /// Says what was there and what is, as "== -> !=".
    pub change: String,
    /// The promises of the lock with the change; `None` if there is no such
    /// lock, or it is the same as without.
    pub promises: Promises,
}

/// Makes a lock, and names its promises.
pub type Promises = Box<dyn Fn() -> Option<Vec<Property>> + Send + Sync>;

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
    /// Names it in tables.
    pub name: String,
    /// The promises to check, in the order of tables.
    pub properties: Vec<Property>,
    /// Says whether random schedules are drawn of it, by its name.
    pub drawn: bool,
    /// Changes of its source that make other locks, beside what is changed
    /// while it runs.
    pub mutants: Vec<SourceMutant>,
}

impl Candidate {
    /// Returns the one called `name`.
    ///
    /// # Errors
    /// There is none.
    pub fn named(name: &str) -> Result<Self, UnknownLock> {
        let properties = run::properties_of(name);
        let mut properties = properties.ok_or_else(|| UnknownLock(name.to_owned()))?;
        properties.extend(run::unrecorded(name));
        Ok(Self {
            name: name.to_owned(),
            properties,
            drawn: !NO_LOCKS.contains(&name),
            mutants: Vec::new(),
        })
    }
}
