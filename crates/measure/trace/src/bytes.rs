//! The bytes of a recording: in memory, or in their file, of which a block at a time is
//! read.
//!
//! A recording may be larger than memory. What records hold besides numbers, stacks and
//! paths, is little and kept, so that a record outlives the block that it was read from.
//! It must never fail because the file has become shorter.

use crate::decode::Position;
use crate::event::Event;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

/// Where the bytes are.
#[derive(Clone, Debug)]
pub(crate) enum Bytes {
    /// They are here.
    Memory(Arc<[u8]>),
    /// They are in a file.
    File(Arc<File>, Arc<Payloads>),
}

impl Bytes {
    /// Returns these bytes, or as many of them as there are.
    pub(crate) fn part(&self, range: Range<usize>) -> Part<'_> {
        match self {
            Self::Memory(all) => Part::Here(all.get(range).unwrap_or_default()),
            Self::File(file, payloads) => Part::Read {
                from: range.start,
                bytes: read(file, range),
                payloads,
            },
        }
    }
}

/// Reads a range of a file as far as it goes.
pub(crate) fn read(file: &File, range: Range<usize>) -> Vec<u8> {
    let mut bytes = vec![0; range.len()];
    let mut there = 0;
    while there < bytes.len() {
        match file.read_at(&mut bytes[there..], (range.start + there) as u64) {
            Ok(0) => break,
            Ok(more) => there += more,
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    bytes.truncate(there);
    bytes
}

/// A part of the bytes, of one block.
pub(crate) enum Part<'a> {
    Here(&'a [u8]),
    Read {
        from: usize,
        bytes: Vec<u8>,
        payloads: &'a Payloads,
    },
}

impl<'a> Part<'a> {
    /// Reads the next record.
    #[inline]
    pub(crate) fn next(&self, position: &mut Position) -> Option<(u64, Event<'a>)> {
        match self {
            Self::Here(bytes) => position.next(bytes, |_, payload| Some(payload)),
            Self::Read {
                from,
                bytes,
                payloads,
            } => position.next(bytes, |at, payload| payloads.of(from + at, payload.len())),
        }
    }
}

/// The stacks and paths of a file.
#[derive(Debug, Default)]
pub(crate) struct Payloads {
    /// Says where they are in the file, in that order, and where here.
    places: Vec<(usize, usize)>,
    bytes: Vec<u8>,
}

impl Payloads {
    /// Keeps what lies at a place of the file, behind all that is kept.
    pub(crate) fn keep(&mut self, at: usize, bytes: &[u8]) {
        self.places.push((at, self.bytes.len()));
        self.bytes.extend_from_slice(bytes);
    }

    /// Keeps what others are, of a later part of the file.
    pub(crate) fn append(&mut self, later: &Self) {
        let before = self.bytes.len();
        let moved = later.places.iter().map(|(at, here)| (*at, before + here));
        self.places.extend(moved);
        self.bytes.extend_from_slice(&later.bytes);
    }

    /// Returns what lies at a place of the file, if that was kept.
    fn of(&self, at: usize, length: usize) -> Option<&[u8]> {
        let place = self.places.binary_search_by_key(&at, |(at, _)| *at).ok()?;
        let from = self.places[place].1;
        self.bytes.get(from..from.checked_add(length)?)
    }
}
