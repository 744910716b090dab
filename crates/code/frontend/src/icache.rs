//! A model of an L1 instruction cache, for machines whose counters cannot be
//! read. It is pure: code addresses in, counts out. `locklab-qemu-plugin`
//! feeds it from QEMU.
//!
//! ```
//! use locklab_frontend::icache::{Cache, CodeMap, Geometry, Prefetch, Tally};
//!
//! let geometry = Geometry::default(); // 32 KiB, 8-way, 64-byte lines
//! let mut code = CodeMap::new(geometry);
//! let mut cache = Cache::new(geometry, Prefetch::None);
//! let tally = Tally::default();
//!
//! // 5 instructions in 20 bytes that cross a line, run ten times.
//! for block in code.blocks(0x40_1038, 20, 5) {
//!     for _ in 0..10 {
//!         cache.run(block, &tally);
//!     }
//! }
//! let counts = tally.read();
//! assert_eq!(counts.instructions, 50);
//! assert_eq!(counts.fetches, 20);
//! assert_eq!(counts.misses, 2);
//! ```
//!
//! # Limits
//! The model counts the misses of a demand-fetched, physically or virtually
//! tagged cache with true LRU replacement. It has no prefetcher (unless
//! [`Prefetch::NextLine`] is selected), no micro-op cache in front of it, no
//! speculative or wrong-path fetches, no L2 behind it, and so no miss costs.
//! Real cores have all of them, and most replace by an approximation of LRU.
//! Its counts compare two programs or two kernels; they do not predict
//! either's counters.

mod cache;
mod code;
mod geometry;
pub mod marker;
mod tally;

pub use cache::{Cache, Fetch, Prefetch};
pub use code::{Block, CodeMap, LineId};
pub use geometry::{Geometry, GeometryError};
pub use tally::{Counts, Tally};
