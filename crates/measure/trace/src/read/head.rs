//! What the first page of a recording says of it.
//!
//! It must never trust a byte: the file may be foreign, cut off or damaged.

use super::index::Index;
use super::info::{Fault, InWindows, Info, Missing};
use super::records::{Thread, Trace};
use super::windows::Windows;
use crate::bytes::{Bytes, Payloads};
use crate::header::{BLOCK, FIRST, Fields, MAGIC, OLDEST, Source, Stopped, VERSION};
use std::collections::BTreeMap;
use std::ops::Range;

/// The fields of a header of a version that is read.
pub(super) struct Head<'a>(Fields<'a>);

impl<'a> Head<'a> {
    /// Returns the header at the start of these bytes.
    pub(super) fn of(bytes: &'a [u8]) -> Result<Self, Fault> {
        if !bytes.starts_with(&MAGIC) {
            return Err(match bytes.is_empty() {
                true => Fault::Short,
                false => Fault::Foreign,
            });
        }
        // The version has its place in all of them.
        if bytes.len() < 12 {
            return Err(Fault::Short);
        }
        let version = Fields(bytes).version();
        if !(OLDEST..=VERSION).contains(&version) {
            return Err(Fault::Version(version));
        }
        if bytes.len() < FIRST {
            return Err(Fault::Short);
        }
        Ok(Self(Fields(&bytes[..FIRST])))
    }

    /// Returns where the blocks are in a file of so many bytes; the last may be cut off.
    pub(super) fn blocks(&self, length: usize) -> Vec<Range<usize>> {
        let there = blocks_there(length).min(self.0.blocks_claimed() as usize);
        let block = |number: usize| {
            let from = FIRST + number * BLOCK;
            from..length.min(from + BLOCK)
        };
        (0..there).map(block).collect()
    }

    /// Returns the recording with these blocks; `bytes` says where they are.
    pub(super) fn trace(
        self,
        length: usize,
        index: Index,
        bytes: impl FnOnce(Payloads) -> Bytes,
    ) -> Trace {
        let header = self.0;
        let mut missing = Missing {
            damaged: index.damaged,
            blocks: index.cut,
        };
        let there = u32::try_from(blocks_there(length)).unwrap_or(u32::MAX);
        missing.blocks += header.blocks_claimed().saturating_sub(there);
        let mut threads: BTreeMap<u64, Thread> = BTreeMap::new();
        for piece in index.pieces.into_iter().filter(|piece| !piece.of_windows) {
            let thread = threads.entry(piece.thread).or_insert_with(|| Thread {
                number: piece.thread,
                image: piece.image,
                ran: None,
                pieces: Vec::new(),
            });
            thread.pieces.push((piece.tick, piece.bytes));
        }
        for (thread, account) in index.ran {
            if let Some(thread) = threads.get_mut(&thread) {
                thread.ran = Some(account);
            }
        }
        for thread in threads.values_mut() {
            thread.pieces.sort_by_key(|(tick, _)| *tick);
        }
        let nanoseconds_per_tick = f64::from_bits(header.nanoseconds_per_tick());
        let ended = match header.stopped() {
            0 => index.last,
            stopped => stopped,
        };
        let recording = header.began()..ended.max(header.began());
        let windows = Windows::of(&recording, index.turns);
        let shown = |tick: u64| match &windows {
            Some(windows) => windows.without_gaps(tick),
            None => tick,
        };
        for (tick, _) in threads
            .values_mut()
            .filter_map(|thread| thread.ran.as_mut())
        {
            *tick = shown(*tick);
        }
        let length = |range: Range<u64>| range.end.saturating_sub(range.start).max(1) as f64;
        let info = Info {
            // Only a damaged header has another; ticks stand for themselves then.
            nanoseconds_per_tick: if nanoseconds_per_tick.is_normal() && nanoseconds_per_tick > 0.0
            {
                nanoseconds_per_tick
            } else {
                1.0
            },
            began: header.began(),
            ended: shown(recording.end),
            windows: windows.as_ref().map(|windows| InWindows {
                count: windows.count(),
                share: length(recording.start..shown(recording.end)) / length(recording.clone()),
            }),
            stopped: Stopped::of(header.reason()),
            source: Source::of(header.source()),
            images: header.images(),
            machine: header.machine(),
            command: header.command(),
            folder: header.folder(),
            round_trips: header.round_trips(),
            cpus_used: header.cpus_used(),
        };
        Trace {
            info,
            missing,
            threads: threads.into_values().collect(),
            bytes: bytes(index.payloads),
            last: recording.end,
            windows,
            otherwise: Vec::new(),
        }
    }
}

/// Returns the number of blocks in a file of so many bytes, with one that is cut off.
fn blocks_there(length: usize) -> usize {
    length.saturating_sub(FIRST).div_ceil(BLOCK)
}
