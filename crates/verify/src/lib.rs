//! The locks under a model checker: every promise of every lock, and every
//! memory ordering shown to be needed.
//!
//! - [`Loom`] is the platform of the checker's world: all interleavings and
//!   all values that weak memory lets a load see.
//! - [`Property`]: what a lock promises, as a model.
//! - [`Mutation`]: one ordering of one source line, one step weaker; each
//!   must break a property, or the lock asks for more than it needs.
//!
//! docs/verification.md says what is explored, what is pruned and why that
//! is sound, and what no exploration here can see.

mod execution;
mod explore;
mod models;
mod ordering;
mod parking;
mod platform;
mod property;
pub mod random;
pub mod record;
mod run;
mod table;
mod verify;

pub use execution::MAX_THREADS;
pub use explore::{Explored, Failure, Limits, Outcome};
pub use ordering::{Mutation, Part, Site};
pub use parking::SPIN_THEN_PARK;
pub use platform::{Loom, Word};
pub use property::{Property, properties};
pub use run::{Fate, check, check_and_record, check_within, properties_of, try_mutant};
pub use table::table;
pub use verify::{
    Checker, LockResult, Options, Progress, PropertyResult, Survivor, THOROUGH_EXECUTIONS,
    THOROUGH_SCHEDULES, UnknownLock, Verdict, names, verify,
};
