//! Declares what threads do around locks: the [`Cells`] of a comparison, and turn by turn
//! whether a thread reads, how many lines it touches, which of several locks it
//! takes, and how long it stays outside.
//!
//! Both backends of locks take it from here, so that a question means the
//! same natively and in the simulator. It must never run anything, and no draw
//! may be made while a run is measured: they are [`turns`](turns::turns), made
//! before.

mod cells;
pub mod mix;
pub mod turns;

pub use cells::{Cells, MOST_THREADS, Place, Waits, Work};
pub use locklab_judge::fork_seed;
pub use mix::{Choice, Distribution, MOST_LINES, MOST_LOCKS, Mix, Unit};
pub use turns::{STARVED, TURNS, Turn, Use, starving, turns};
