//! The predictor of conditional branches that a front end has, and others that are alike but
//! for their hashes. Exists because how a processor hashes is not published, so that what
//! depends on it needs a band; must never let another change what the first predicts.

use crate::direction::{Direction, Hash, Path};
use crate::events::EventTally;
use crate::processor::Processor;

/// A predictor with its own path.
#[derive(Debug)]
struct Predictor {
    path: Path,
    tables: Direction,
}

impl Predictor {
    fn new(processor: &Processor, hash: Hash) -> Self {
        Predictor {
            path: Path::new(&processor.conditional_paths, hash),
            tables: Direction::new(
                processor.conditional_base.value as usize,
                processor.conditional_tagged.value as usize,
                processor.conditional_paths.len(),
                hash,
            ),
        }
    }
}

/// Holds the first predictor, which decides, and the others, whose mispredictions are counted.
#[derive(Debug)]
pub(crate) struct Conditional {
    first: Predictor,
    others: Vec<Predictor>,
}

impl Conditional {
    /// Makes the first predictor of a processor.
    pub(crate) fn new(processor: &Processor) -> Self {
        Conditional {
            first: Predictor::new(processor, Hash::FIRST),
            others: Vec::new(),
        }
    }

    /// Predicts by other hashes too from now on.
    pub(crate) fn try_other_hashes(&mut self, processor: &Processor) {
        let others = Hash::OTHERS.map(|hash| Predictor::new(processor, hash));
        self.others = others.into();
    }

    /// Returns the taken branches before now.
    #[inline(always)]
    pub(crate) fn path(&self) -> &Path {
        &self.first.path
    }

    /// Adds a taken branch to the path.
    #[inline(always)]
    pub(crate) fn pass(&mut self, branch: u64, target: u64) {
        self.first.path.push(branch, target);
        for other in &mut self.others {
            other.path.push(branch, target);
        }
    }

    /// Learns that the branch at `address` has always gone one way so far.
    pub(crate) fn always(&mut self, address: u64, taken: bool) {
        self.first.tables.always(address, taken);
        for other in &mut self.others {
            other.tables.always(address, taken);
        }
    }

    /// Predicts a branch of which nothing is known, by which code goes straight on; returns
    /// whether that was right.
    pub(crate) fn unseen(&self, taken: bool, events: &EventTally) -> bool {
        if taken {
            (0..self.others.len()).for_each(|hash| events.mispredicted(hash));
        }
        !taken
    }

    /// Predicts the branch at `address` and learns how it went; returns whether the first
    /// predictor was right.
    #[inline(always)]
    pub(crate) fn branch(&mut self, address: u64, taken: bool, events: &EventTally) -> bool {
        for (hash, other) in self.others.iter_mut().enumerate() {
            if !other.tables.branch(address, &other.path, taken) {
                events.mispredicted(hash);
            }
        }
        self.first.tables.branch(address, &self.first.path, taken)
    }
}
