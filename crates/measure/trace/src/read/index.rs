//! Where the records of each thread are in a recording, found by one look at each block.
//!
//! Blocks are read by themselves, so this is done on all CPUs at a time. It must never
//! depend on which of them was read first.

use crate::bytes::Payloads;
use crate::decode::Decoder;
use crate::event::Event;
use crate::header::BLOCK;
use std::borrow::Cow;
use std::ops::Range;

/// Records of one thread, one behind the other.
pub(super) struct Piece {
    pub(super) thread: u64,
    pub(super) image: u64,
    /// The time of the first.
    pub(super) tick: u64,
    pub(super) bytes: Range<usize>,
    /// Says whether it only says when windows begin and end.
    pub(super) of_windows: bool,
}

/// Describes what blocks have.
#[derive(Default)]
pub(super) struct Index {
    pub(super) pieces: Vec<Piece>,
    /// Holds the accounts of threads that had not ended: when, and the nanoseconds with a CPU.
    pub(super) ran: Vec<(u64, (u64, u64))>,
    /// The times at which windows begin (`true`) and end.
    pub(super) turns: Vec<(u64, bool)>,
    /// The time of the last record.
    pub(super) last: u64,
    /// Number of blocks that end in bytes that are no record, and of those cut off.
    pub(super) damaged: u32,
    pub(super) cut: u32,
    pub(super) payloads: Payloads,
}

/// The fewest blocks that are worth a thread.
const WORTH: usize = 16;

/// Returns what these blocks have; `read` returns the bytes of one.
pub(super) fn of<'a>(
    blocks: Vec<Range<usize>>,
    read: impl Fn(Range<usize>) -> Cow<'a, [u8]> + Sync,
) -> Index {
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let each = blocks.len().div_ceil(workers).max(WORTH);
    let part = |blocks: &[Range<usize>]| {
        let mut index = Index::default();
        for block in blocks {
            index.add(block.clone(), &read(block.clone()));
        }
        index
    };
    let mut all = Index::default();
    std::thread::scope(|scope| {
        let parts: Vec<_> = blocks
            .chunks(each)
            .map(|blocks| scope.spawn(|| part(blocks)))
            .collect();
        for later in parts {
            match later.join() {
                Ok(later) => all.append(later),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
    });
    all
}

impl Index {
    fn add(&mut self, block: Range<usize>, bytes: &[u8]) {
        let mut decoder = Decoder::new(bytes);
        let mut piece: Option<Piece> = None;
        let mut at = 0;
        while let Some((tick, event)) = decoder.next() {
            let after = decoder.at();
            match event {
                Event::Begin { thread, image } => {
                    self.pieces.extend(piece.replace(Piece {
                        thread,
                        image,
                        tick,
                        bytes: block.start + at..block.start + at,
                        of_windows: false,
                    }));
                }
                Event::Window { begins } => {
                    self.turns.push((tick, begins));
                    if let Some(piece) = &mut piece {
                        piece.of_windows = true;
                    }
                }
                Event::Ran { thread, ran_ns } => self.ran.push((thread, (tick, ran_ns))),
                // What a record has of its own is at its end.
                Event::Stack { frames, .. } => {
                    let frames = frames.0.as_flattened();
                    self.payloads
                        .keep(block.start + after - frames.len(), frames);
                }
                Event::Module { path, .. } => {
                    self.payloads
                        .keep(block.start + after - path.0.len(), path.0);
                }
                _ => {}
            }
            at = after;
            if let Some(piece) = &mut piece {
                piece.bytes.end = block.start + at;
            }
            self.last = self.last.max(tick);
        }
        self.pieces.extend(piece);
        self.damaged += u32::from(decoder.damaged());
        self.cut += u32::from(bytes.len() < BLOCK);
    }

    fn append(&mut self, later: Self) {
        self.pieces.extend(later.pieces);
        self.ran.extend(later.ran);
        self.turns.extend(later.turns);
        self.last = self.last.max(later.last);
        self.damaged += later.damaged;
        self.cut += later.cut;
        self.payloads.append(&later.payloads);
    }
}
