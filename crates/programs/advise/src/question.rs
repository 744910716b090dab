//! Holds the question: which machines, how many threads, which locks.

use crate::candidate::Candidate;
use crate::fewer::Fewer;
use crate::here::Here;
use locklab_host::error::Error;
use locklab_sim::{FigureKey, Machine};

/// Describes what is asked.
#[derive(Clone, Debug)]
pub struct Question {
    /// The machines to advise for.
    pub machines: Vec<Machine>,
    /// A model of the machine that recorded.
    pub here: Machine,
    /// Holds what a replay by real threads on the machine that recorded gave.
    pub replayed: Here,
    /// A recording of fewer threads, if there is one.
    pub fewer: Option<Fewer>,
    /// Numbers of threads; none for as recorded.
    pub threads: Vec<usize>,
    /// The locks to try.
    pub locks: Vec<Candidate>,
    /// Number of machines that the assumptions of each allow, itself included.
    pub draws: usize,
    /// The seed of all random choices.
    pub seed: u64,
    /// Number of simulations at a time.
    pub workers: usize,
}

/// Returns a machine of so many equal cores, for one of which nothing else is known.
///
/// # Errors
/// [`Error::Failed`] if there are too many.
pub(crate) fn generic(cpus: usize) -> Result<Machine, Error> {
    let flat = Machine::builtin("flat-16")
        .ok_or_else(|| Error::Failed("there is no machine flat-16".into()))?;
    let mut machine = flat
        .with(FigureKey::TopologyCores, cpus as f64)
        .map_err(|error| Error::Failed(error.into()))?;
    machine.name = "the machine that recorded".to_owned();
    machine.description = format!("a model of which only the number of CPUs is known: {cpus}");
    Ok(machine)
}
