//! Tells who waited for which lock, and where.
//!
//! Whoever observes locks (a recording of a program, the interposer's profile, a kernel's
//! tracepoints, a table of another tool) fills rows of [`Used`]; reports show them by
//! [`ContentionProfile::table`], a comparison by [`BothSides::table`], and all by [`Counts::json`], so
//! that the same figures have the same names everywhere.
//!
//! Times are in nanoseconds. What an observer did not see is `None`, and has no column.
//!
//! No I/O. It must never decide what to do about a lock.

mod both_sides;
mod bound;
mod counts;
mod spent;
mod table;
mod times;

pub use both_sides::BothSides;
pub use bound::{Bound, Limit, Seen};
pub use counts::Counts;
pub use spent::Spent;
pub use table::{ContentionProfile, Used};
pub use times::{NOTHING_TO_GAIN, Times};
