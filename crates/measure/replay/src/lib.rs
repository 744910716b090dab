//! A recording of a program: who waited for which lock, and the program that it
//! describes, so that it can be run again by the simulator, or by real threads that
//! compute, hold and wait as recorded.
//!
//! [`Recording::open`] reads a file, once, for every question about it.
//! [`Recording::contention_profile`] says who waited for which lock, and where.
//! [`Program::of`] reads one window of a recording: for each thread the sequence
//! of its steps, with nesting and many locks kept. Time in which a thread waited
//! for a lock is in no step, because another lock makes it longer or shorter;
//! waits for other threads (conditions, births, ends) are steps that another
//! thread's step ends. [`Program::cast`] says which threads run when there are
//! more or fewer than were recorded.
//!
//! Two readers go through the records, one of all ([`Survey`]) and one of the window
//! that is run again; who holds a lock and who waits is decided for both by `owners`.
//!
//! It must never print, name a call site, run anything, or panic, whatever the
//! recording is.

mod acquiring;
mod cause;
mod channels;
mod classes;
mod cpus;
mod extract;
mod fault;
mod finish;
mod growth;
mod made_locks;
mod migration;
mod owners;
mod parts;
mod preempted;
mod program;
mod reading;
mod recording;
mod shared;
mod spent;
mod survey;
mod surveyed;
mod thread;
mod wakes;
mod what_if;
mod windows;

pub use extract::Limits;
pub use fault::Fault;
pub use growth::{Growth, NoGrowth};
pub use program::{Class, Held, Lock, Program, Recorded, Role, Site, Step, Thread};
pub use recording::{NO_PLACE, Names, Recording};
pub use spent::SpentTicks;
pub use survey::Survey;
pub use surveyed::{Image, SurveyedLock, SurveyedSite, Tally, ThreadTimes};
pub use windows::{WINDOWS, WindowTimes};
