//! Says how much is simulated for one answer. Exists so that every simulation of an
//! advice has the same limits; it must never depend on the recording.

/// The fewest draws that make a band.
pub(crate) const LEAST_DRAWS: usize = 2;

/// The most events of one simulation, so that an answer of some fifty takes seconds: one
/// that comes to them is cut short, and what it says is as much less sure as its halves differ.
pub(crate) const MOST_EVENTS: u64 = 4_000_000;
