//! A model of a processor's front end, for machines whose counters cannot be read. Blocks of
//! code go in, in the order in which they were executed; events come out, and cycles by cause.
//! It is pure. `locklab-qemu-plugin` feeds it from QEMU.
//!
//! ```
//! use locklab_frontend::{Cause, Event, EventTally, Frontend, Instruction, Processor, Sites};
//! use locklab_frontend::branch;
//! use locklab_frontend::icache::{Geometry, Prefetch, Tally};
//!
//! let processor = Processor::named("zen-3").unwrap();
//! let l1i = Geometry::default();
//! let mut sites = Sites::new(&processor, l1i).unwrap();
//! let mut frontend = Frontend::new(&processor, l1i, Prefetch::None).unwrap();
//! let (tally, events) = (Tally::default(), EventTally::default());
//!
//! // A jump to itself.
//! let blocks = sites.code().blocks(0x1000, 2, 1);
//! let jump = Instruction { address: 0x1000, place: 0x1000, bytes: 2 };
//! let site = sites.site(&[jump], blocks, branch::exit(0x1000, &[0xeb, 0xfe]));
//! for _ in 0..1000 {
//!     frontend.run(&site, &tally, &events);
//! }
//! let events = events.read();
//! assert_eq!(events[Event::Taken], 999);
//! assert_eq!(events[Event::TargetDecoded], 1, "the first time");
//! assert!(processor.lost(&events, Cause::Targets).value < 20.0);
//! ```
//!
//! # Limits
//! An instruction is one operation. There is no wrong path, nothing of the data side, no
//! second thread on the core. Replacement is least-recently-used everywhere. How the
//! predictor of conditional branches of a processor works is published in part only: ours has
//! its sizes, not its hashes.

pub mod branch;
mod conditional;
mod cost;
mod direction;
mod events;
mod frontend;
pub mod icache;
mod ops;
mod processor;
mod sets;
mod site;
mod stretch;
mod targets;

pub use branch::{Exit, Kind};
pub use cost::{Account, Cause, Cycles, Lost};
pub use events::{Event, EventTally, Events, OTHER_HASHES};
pub use frontend::Frontend;
pub use processor::{Figure, Identity, Processor, ProcessorError};
pub use site::{CacheMismatch, Instruction, Site, Sites};
