//! The locks under a model checker: every promise of every lock, and every
//! memory ordering shown to be needed.
//!
//! - [`Loom`] is the platform of the checker's world: all interleavings and
//!   all values that weak memory lets a load see.
//! - [`Subject`]: a lock as a value; one that comes at run time is checked as
//!   the catalogue's are.
//! - [`Property`]: what a lock promises, as a model, which runs in a process
//!   of its own.
//! - [`Mutation`]: one operation of one source line, changed; each must break
//!   a property, or the lock does not need what it says there.
//!
//! docs/verification.md says what is explored, what is pruned and why that
//! is sound, and what no exploration here can see.

mod argued;
mod bugs;
mod candidate;
mod copies;
mod coverage;
mod execution;
mod explore;
mod graphs;
mod interposer;
mod isolate;
mod journal;
mod limits;
mod litmus;
mod mutants;
mod mutation;
mod numbers;
mod options;
mod originals;
mod outcome;
mod parking;
mod planted;
mod platform;
mod pointer;
mod property;
pub mod random;
pub mod record;
mod result;
mod run;
mod source;
pub mod specification;
mod spin_then_park;
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
#[doc(hidden)]
pub mod stacks;
mod subject;
mod switched;
mod threads;
mod trace;
mod verify;

pub use bugs::{BUGS, markdown};
pub use candidate::{Candidate, Promises, SourceMutant, UnknownLock, names};
pub use coverage::{Access, Coverage, Covered, Hole, Share, note_access, note_call};
pub use execution::MAX_THREADS;
pub use interposer::INTERPOSER;
pub use journal::{Place, beat};
pub use limits::Limits;
pub use litmus::{litmus, outcomes, reaches};
pub use mutation::{Change, Mutation, Part, effective};
pub use numbers::THREAD_NUMBERS;
pub use options::{Options, THOROUGH_EXECUTIONS, THOROUGH_SCHEDULES};
pub use outcome::{Explored, Failure, Outcome, Reads};
pub use platform::{Loom, Word};
pub use property::{Property, promises, properties};
pub use result::{
    Checker, Count, Killed, LockResult, MutantKind, PropertyResult, Survivor, Verdict,
};
pub use run::{Fate, Passed, check, check_and_record, check_within, properties_of, try_mutant};
pub use source::add_source;
pub use spin_then_park::SPIN_THEN_PARK;
pub use subject::{Context, Instance, Subject, subject};
pub use trace::{LEGEND, SHOWN, Step, interleaving};
pub use verify::{Progress, verify, verify_these};
