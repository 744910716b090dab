//! What a report knows besides the simulations: the recording itself.

use locklab_lock_use::{Bound, LockUse};
use locklab_trace::Info;

/// What a report knows besides the simulations.
pub(crate) struct Context<'a> {
    /// What the recording's header says.
    pub(crate) info: &'a Info,
    /// Who waited for which lock, over the whole recording.
    pub(crate) used: &'a LockUse,
    /// The name of the lock that the window waits for most, if it has one.
    pub(crate) hottest: Option<String>,
    /// What no lock can exceed, by the recording.
    pub(crate) bound: Bound,
    /// Why the lock that is waited for most cannot be replaced, as a clause.
    pub(crate) kept: Option<String>,
    /// The part of all threads' time that the model repeats as it was recorded, because it
    /// does not understand what was waited for.
    pub(crate) repeated: f64,
    /// Whether the question is about the machine and the threads of the recording.
    pub(crate) as_recorded: bool,
    /// Why nothing could be simulated, if so.
    pub(crate) not_simulated: Option<String>,
}
