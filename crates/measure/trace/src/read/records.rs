//! A recording with other records of its threads: what was recorded, seen otherwise.
//!
//! Must never change what the header says.

use super::{Thread, Trace};
use crate::encode::Encoder;
use crate::event::Event;
use crate::header::BLOCK;
use std::ops::Range;

impl Trace {
    /// Returns the recording with other records of each thread. `records` is called with the
    /// place of a thread in [`Trace::threads`] and with what takes its records, in order of
    /// time, so that they need not be in memory all at once.
    ///
    /// # Panics
    /// If a record is longer than a block.
    #[must_use]
    pub fn with_records(
        &self,
        mut records: impl FnMut(usize, &mut dyn FnMut(u64, Event<'_>)),
    ) -> Self {
        let mut bytes = Vec::new();
        let threads = self.threads.iter().enumerate().map(|(place, thread)| {
            let mut blocks = Blocks::of(thread, &mut bytes);
            records(place, &mut |tick, event| blocks.write(tick, &event));
            Thread {
                pieces: blocks.end(),
                ..thread.clone()
            }
        });
        Self {
            threads: threads.collect(),
            info: self.info.clone(),
            missing: self.missing,
            bytes,
        }
    }
}

/// The blocks of a thread, as they are written one behind the other.
struct Blocks<'a> {
    bytes: &'a mut Vec<u8>,
    begin: Event<'static>,
    encoder: Encoder,
    pieces: Vec<(u64, Range<usize>)>,
    at: usize,
}

impl<'a> Blocks<'a> {
    fn of(thread: &Thread, bytes: &'a mut Vec<u8>) -> Self {
        Self {
            at: bytes.len(),
            bytes,
            begin: Event::Begin {
                thread: thread.number,
                image: thread.image,
            },
            encoder: Encoder::default(),
            pieces: Vec::new(),
        }
    }

    fn write(&mut self, tick: u64, event: &Event<'_>) {
        if !self.add(tick, event) {
            self.close();
            self.pieces.push((tick, self.at..self.at));
            self.bytes.resize(self.at + BLOCK, 0);
            let begin = self.begin;
            let there = self.add(tick, &begin) && self.add(tick, event);
            assert!(there, "a block has room for a record");
        }
    }

    /// Writes a record if the block has room for it.
    fn add(&mut self, tick: u64, event: &Event<'_>) -> bool {
        let room = &mut self.bytes[self.at..];
        let used = self.encoder.write(tick, event, room);
        self.at += used.unwrap_or(0);
        used.is_some()
    }

    /// Ends the last block where its records end.
    fn close(&mut self) {
        self.bytes.truncate(self.at);
        if let Some((_, range)) = self.pieces.last_mut() {
            range.end = self.at;
        }
    }

    fn end(mut self) -> Vec<(u64, Range<usize>)> {
        self.close();
        self.pieces
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::header::Header;
    use crate::write::file;

    #[test]
    fn records_that_are_given_are_read_again() {
        let header = Header::new(1.0, 0, 64, "a machine", "program");
        let records = |lock: u64| -> Vec<(u64, Event<'static>)> {
            (0..30_000)
                .map(|at| (10 * at, Event::Release { lock }))
                .collect()
        };
        let both = [records(0x100), records(0x200)];
        let trace = Trace::read(file(&header, &both, 400_000).unwrap()).unwrap();
        let turned = [both[1].clone(), both[0].clone()];
        let turned = trace.with_records(|place, write| {
            for (tick, event) in &turned[place] {
                write(*tick, *event);
            }
        });
        for (thread, wanted) in turned.threads.iter().zip([&both[1], &both[0]]) {
            let events = turned.events(thread);
            let read: Vec<_> = events
                .filter(|(_, event)| !matches!(event, Event::Begin { .. }))
                .collect();
            assert_eq!(&read, wanted);
            assert!(thread.pieces.len() > 1);
        }
    }
}
