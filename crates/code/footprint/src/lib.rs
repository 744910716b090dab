//! Compares the contents of two ELF files symbol by symbol, old against new:
//! executables, objects, archives, kernel images, or folders of them. It says what
//! `scripts/bloat-o-meter` says (and agrees with it, see [`bloat_o_meter_totals`]).
//! Besides, it matches symbols that a compiler cloned or renamed, finds inlined
//! copies by debug information, and says how much of the code is hot.
//!
//! ```no_run
//! use locklab_footprint::{Options, compare, render};
//! use std::path::Path;
//!
//! let options = Options {
//!     call_sites_of: Some("spin_unlock".into()),
//!     ..Options::default()
//! };
//! let footprint = compare(Path::new("old/vmlinux"), Path::new("new/vmlinux"), &options)?;
//! println!("{}", render(&footprint, 20));
//! # Ok::<(), locklab_host::error::Error>(())
//! ```
//!
//! Reads files only; runs nothing. A file is mapped, not copied, and debug
//! information is read unit by unit, so a kernel image takes memory in
//! proportion to its number of functions.
//!
//! Limits, which a report says where they apply: debug information in other
//! files (`.dwo`, dwz) is not followed; functions of one name (statics of
//! several files, generic instances that differ in a hash) are summed.

mod bloat;
mod compare;
mod elf;
mod error;
mod execution;
mod footprint;
mod hot;
mod inlined;
mod input;
mod names;
mod options;
mod origins;
mod pairing;
mod render;
mod tally;

pub use bloat::{BloatOMeter, BloatTotals};
pub use compare::{bloat_o_meter_totals, compare};
pub use elf::Class;
pub use footprint::{
    CallSite, CallSites, Change, Changes, ClassSize, DataSize, FileSize, Footprint, HotPair,
    InlinedCopies, InlinedFunction, InputSummary, Pair, SectionSize, SymbolSize,
};
pub use hot::{
    BLOCKS, Executed, HotText, LINE_BYTES, PROGRAM, Place, SHARE, hot_text, parse_counts,
};
pub use names::normalise;
pub use options::{HotCounts, Options};
pub use render::render;
