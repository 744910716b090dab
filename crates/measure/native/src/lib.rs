//! The backend of real hardware: two locks under threads or processes of
//! this machine, in alternating slices.
//!
//! ```text
//! Spec -> Plan -> Slices (a Backend) -> block -> workers -> slice -> lock
//! ```
//!
//! This crate knows nothing of statistics, stores nothing and prints nothing.
//! The method, its calibration and its limits are in docs/matrix.md.

mod addresses;
mod anova;
mod arena;
pub mod backend;
mod block;
mod clockwork;
pub mod contention;
pub mod crash;
mod disturbance;
pub mod doctor;
pub mod every_lock;
mod facts;
mod figures;
pub mod fit;
pub mod gate;
mod latency;
pub mod layout;
pub mod lock_code;
pub mod peers;
mod peers_with_readers;
pub mod plan;
pub mod probe;
mod rank;
mod rendezvous;
mod replay;
mod replayed;
mod replayer;
mod request;
pub mod resolution;
pub mod round_trip;
pub mod scheduling;
mod script;
mod settling;
mod slice;
pub mod subject;
mod timeline;
mod turn;
mod variance;
pub mod work;
mod workers;

pub use backend::{Slices, pairs_for};
pub use layout::LAYOUTS;
pub use lock_code::LockCode;
pub use plan::{Plan, Spec, default_threads};
pub use probe::Native;
pub use rank::RankedSlices;
pub use replay::Replay;
pub use request::MOST_LOCKS;
pub use variance::{WORDS, append};
