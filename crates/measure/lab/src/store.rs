//! The store: one SQLite file with every sample, written as its run ends.
//!
//! It lets an interrupted experiment continue where it stopped, an A/A run's
//! bias bands be found by later ones, and any figure in a report be
//! traced to its samples. A sample is kept even if its pair was repeated; only
//! its state differs. The store knows nothing of instruments and judges
//! nothing.

mod alone;
mod database;
pub mod export;
mod merge;
mod prune;
mod reading;
mod recorder;
mod schema;

pub use database::{Slot, Store, StoredRow, hash_of};
pub use merge::Merged;
pub use prune::{Prune, Pruned};
pub use reading::{DamagedRow, Listed, StoredSample, listing};
pub use recorder::Recorder;
