//! A recording that was made elsewhere, as a file of this format.
//!
//! It must never be used in the program that is recorded: it allocates.

use crate::encode::Encoder;
use crate::event::Event;
use crate::header::{BLOCK, FIRST, Header, Stopped, close};
use std::sync::atomic::Ordering;

/// Returns the file of `threads`, each with its records in order of time, that ended at
/// `ended`. The threads are numbered in this order, and all of one image.
/// `None` if it would have more blocks than the header allows.
#[must_use]
pub fn file(header: &Header, threads: &[Vec<(u64, Event<'_>)>], ended: u64) -> Option<Vec<u8>> {
    let mut bytes = vec![0; FIRST];
    for (thread, records) in threads.iter().enumerate() {
        let begin = Event::Begin {
            thread: thread as u64,
            image: 0,
        };
        let mut encoder = Encoder::default();
        let (mut at, mut end) = (0, 0);
        for (tick, event) in records {
            let used = match encoder.write(*tick, event, &mut bytes[at..end]) {
                Some(used) => used,
                None => {
                    at = header.claim()?;
                    end = at + BLOCK;
                    bytes.resize(end, 0);
                    at += encoder.write(*tick, &begin, &mut bytes[at..end])?;
                    encoder.write(*tick, event, &mut bytes[at..end])?
                }
            };
            at += used;
        }
    }
    header.images.store(1, Ordering::Relaxed);
    header.stop(ended, Stopped::Ended);
    let claimed = usize::try_from(close(header)).ok()?;
    debug_assert_eq!(claimed, bytes.len());
    bytes[..FIRST].copy_from_slice(header.bytes());
    Some(bytes)
}
