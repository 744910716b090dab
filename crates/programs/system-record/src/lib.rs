//! Records what the kernel sees of a program's locks, whatever language they are written in.
//!
//! A program waits for a lock in the kernel, and another wakes it there. So the kernel's
//! events (futex calls, context switches, wake-ups) show who waited, for how long, and what
//! the others did meanwhile; the stack of calls shows for which lock. The waits for the
//! kernel's own locks come the same way.
//!
//! [`Target`] says whose events, [`SystemRecording`] records them into a file, and
//! [`SystemRecorded`] says what is in the file. What is not in the kernel (locks of goroutines) is
//! not seen, and the report must never pretend otherwise.

mod acquire;
mod addresses;
mod collect;
mod cost;
mod fault;
mod found;
mod json;
mod kernel_symbols;
mod kernel_waits;
mod kinds;
mod lock_names;
mod open;
mod raw;
mod record;
mod recording;
mod report;
mod semaphores;
mod shared_words;
mod spin_loops;
mod start;
mod tables;
mod target;
mod tracepoints;
mod unwind;
mod waits;
mod windows;
mod without_pthread;
mod words;

pub use lock_names::{Identity, Kind, TABLE};
pub use open::is_permitted;
pub use record::{ReadyForSystem, SystemRecording};
pub use recording::{Events, Source, is_system_recording};
pub use report::SystemRecorded;
pub use target::Target;
pub use without_pthread::takes_no_pthread_lock;
