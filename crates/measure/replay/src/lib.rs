//! The program that a recording describes, so that it can be run again: by the
//! simulator, or by real threads that compute, hold and wait as recorded.
//!
//! [`Program::of`] reads one window of a recording: for each thread the sequence
//! of its steps, with nesting and many locks kept. Time in which a thread waited
//! for a lock is in no step, because another lock makes it longer or shorter;
//! waits for other threads (conditions, births, ends) are steps that another
//! thread's step ends. [`Program::cast`] says which threads run when there are
//! more or fewer than were recorded.
//!
//! Pure: a recording in, a program out. It must never print, name a call site,
//! run anything, or panic, whatever the recording is.

mod acquiring;
mod cause;
mod channels;
mod classes;
mod fault;
mod finish;
mod growth;
mod moved;
mod opening;
mod preempted;
mod program;
mod reading;
mod shared;
mod thread;
mod timeline;
mod wakes;
mod what_if;
mod window;

pub use fault::Fault;
pub use growth::{Growth, NoGrowth};
pub use program::{Class, Held, Lock, Program, Recorded, Role, Site, Step, Thread};
pub use timeline::Moment;
pub use window::Limits;
