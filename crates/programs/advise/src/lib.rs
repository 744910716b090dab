//! Advises on the locks of a program, from a recording of it.
//!
//! The recorded program is simulated on each machine and with each number of
//! threads: under today's lock, under each candidate, under an ideal lock whose
//! handoffs are free, and as if its locks were used otherwise. Before that,
//! today's lock is simulated as it was recorded: the farther that is from the
//! program's own rate, the wider is what is said, and far off there are directions
//! only. What no lock can exceed, and where the waiting goes, needs no model.
//!
//! It must never call a simulated figure measured, and never advise beyond what
//! the distance of the model and its band allow.

mod answer;
mod candidate;
mod chart;
mod confirm;
mod fewer;
mod gate;
mod here;
mod json;
mod limits;
mod many;
mod question;
mod report;
mod rules;
mod runs;
mod validation;
mod verdict;
mod words;

pub use answer::{Answer, Prepared, Request};
pub use candidate::Candidate;
pub use many::many;
pub use question::Question;
