//! Recordings of what a program's threads do with locks: the format, its writer
//! and its reader.
//!
//! A recording is one file: a [`Header`], then blocks of [`BLOCK`] bytes. The
//! processes of the program map all of it, and each of their threads claims a
//! block at a time for itself. A record's first byte is written last, and the
//! rest of a block is zeros: so the file is whole up to the last record of each
//! thread however the program ends, and nothing has to be written at the end.
//!
//! A record is a byte with its kind, the time since the record before as a
//! varint, and varints. An address that was seen lately takes a byte (the
//! number of its place in a small cache that both sides keep). Each block begins
//! with whole values, so that it can be read by itself.
//!
//! Where that would slow the program too much, operations that wait for nobody are recorded
//! in windows, and the reader shows these as one recording without gaps.
//!
//! A kernel's locks have another source, the text of its tracepoints, from which
//! [`recording_of_perf`] makes a recording.
//!
//! The writer must never allocate, and the reader must never trust a byte: any
//! file is read without a panic.

mod addresses;
mod bytes;
mod decode;
mod encode;
mod event;
mod header;
mod kernel_callers;
mod modules;
mod order;
mod part;
mod perf;
mod perf_lines;
mod perf_tables;
mod read;
mod without_cpu;
mod write;

pub use decode::Decoder;
pub use encode::{Encoder, MOST};
pub use event::{Access, Attempt, Event, Frames, LockKind, Payload};
pub use header::{
    BLOCK, FIRST, Header, MAGIC, MOST_BLOCKS, Source, Stopped, VERSION, close, file_bytes, room,
};
pub use kernel_callers::kernel_caller;
pub use modules::{Module, calls};
pub use order::InOrder;
pub use perf::{KernelWait, KernelWaits, kernel_waits, kernel_waits_of, recording_of_perf};
pub use perf_lines::{PerfError, PerfEvent, Point};
pub use perf_tables::{LockRow, LockTable, lock_table};
pub use read::{
    Apart, Fault, InWindows, Info, Missing, Otherwise, Records, Thread, Trace, Unreadable,
    is_crowded,
};
pub use without_cpu::{CpuTime, WithoutCpu};
pub use write::{file, file_of_images};

/// The variable that names the file to the library in the program.
pub const FILE_VARIABLE: &str = "LOCKLAB_RECORD";
