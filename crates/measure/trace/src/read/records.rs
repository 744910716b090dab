//! A recording with other records of its threads: what was recorded, seen otherwise.
//!
//! Must never change what the header says.

use super::{Thread, Trace};
use crate::encode::Encoder;
use crate::event::Event;
use crate::header::BLOCK;

impl Trace {
    /// Returns the recording with these records of each thread, in the order of
    /// [`Trace::threads`] and each in order of time.
    ///
    /// # Panics
    /// If there are records of more threads, or a record is longer than a block.
    #[must_use]
    pub fn with_records(&self, records: &[Vec<(u64, Event<'_>)>]) -> Self {
        assert!(records.len() <= self.threads.len());
        let mut bytes = Vec::new();
        let threads = records.iter().zip(&self.threads).map(|(records, thread)| {
            let begin = Event::Begin {
                thread: thread.number,
                image: thread.image,
            };
            let (mut encoder, mut pieces) = (Encoder::default(), Vec::new());
            let mut block: Option<(u64, Vec<u8>, usize)> = None;
            for (tick, event) in records {
                if let Some((_, room, at)) = &mut block
                    && let Some(used) = encoder.write(*tick, event, &mut room[*at..])
                {
                    *at += used;
                    continue;
                }
                pieces.extend(block.take().map(|full| put(&mut bytes, full)));
                let mut room = vec![0; BLOCK];
                let mut at = encoder.write(*tick, &begin, &mut room);
                at = at.and_then(|at| Some(at + encoder.write(*tick, event, &mut room[at..])?));
                block = Some((*tick, room, at.expect("a block has room for a record")));
            }
            pieces.extend(block.map(|last| put(&mut bytes, last)));
            Thread {
                pieces,
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

/// Appends the used part of a block. Returns its time and where it is.
fn put(
    bytes: &mut Vec<u8>,
    (tick, block, used): (u64, Vec<u8>, usize),
) -> (u64, std::ops::Range<usize>) {
    let from = bytes.len();
    bytes.extend_from_slice(&block[..used]);
    (tick, from..bytes.len())
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
        let turned = trace.with_records(&turned);
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
