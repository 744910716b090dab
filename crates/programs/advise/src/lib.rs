//! What to do about the locks of a program, from a recording of it.
//!
//! The recorded program is simulated on each machine and with each number of
//! threads: under today's lock, under each candidate, under an ideal lock whose
//! handoffs are free, and as if its locks were used otherwise. Before that,
//! today's lock is simulated as it was recorded: if that does not give the
//! program's own rate, no advice is given.
//!
//! It must never call a simulated figure measured, and never advise beyond what
//! the gate and the model's band allow.

mod candidates;
mod chart;
mod fewer;
mod gate;
mod here;
mod json;
mod question;
mod report;
mod runs;
mod timeline;
mod validation;
mod verdict;
mod words;

pub use candidates::{Candidate, TODAY, candidates};
pub use fewer::{Fewer, Predicted};
pub use gate::{Gate, TOLERANCE};
pub use here::Here;
pub use question::{Question, generic};
pub use report::{document, nothing};
pub use runs::{Advice, Point, advise};
pub use verdict::{Class, Verdict};
