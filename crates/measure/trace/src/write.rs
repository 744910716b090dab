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
    let threads: Vec<_> = threads.iter().map(|records| (0, &records[..])).collect();
    file_of_images(header, &threads, ended)
}

/// Does the same for threads of several images, each with the number of its own.
#[must_use]
pub fn file_of_images(
    header: &Header,
    threads: &[(u64, &[(u64, Event<'_>)])],
    ended: u64,
) -> Option<Vec<u8>> {
    let images = threads.iter().map(|(image, _)| *image as u32 + 1).max();
    header.images.store(images.unwrap_or(1), Ordering::Relaxed);
    let threads = threads
        .iter()
        .enumerate()
        .map(|(number, (image, records))| (number as u64, *image, *records));
    whole(header, threads, (ended, Stopped::Ended))
}

/// Returns the file of threads, each with its number, that of its image, and its records in
/// order of time. `None` if it would have more blocks than the header allows.
pub(crate) fn whole<'a>(
    header: &Header,
    threads: impl Iterator<Item = (u64, u64, &'a [(u64, Event<'a>)])>,
    (ended, why): (u64, Stopped),
) -> Option<Vec<u8>> {
    let mut bytes = vec![0; FIRST];
    for (thread, image, records) in threads {
        let begin = Event::Begin { thread, image };
        let mut encoder = Encoder::default();
        let (mut at, mut end) = (0, 0);
        let mut records = records.iter().peekable();
        while let Some((tick, event)) = records.next() {
            let ends_at_once = records.next_if(|(then, end)| {
                then == tick
                    && matches!(
                        (event, end),
                        (Event::Request { .. }, Event::Acquired)
                            | (Event::Release { .. }, Event::Released)
                    )
            });
            let write = match ends_at_once {
                Some(_) => Encoder::write_whole,
                None => Encoder::write,
            };
            let used = match write(&mut encoder, *tick, event, &mut bytes[at..end]) {
                Some(used) => used,
                None => {
                    at = header.claim()?;
                    end = at + BLOCK;
                    bytes.resize(end, 0);
                    at += encoder.write(*tick, &begin, &mut bytes[at..end])?;
                    write(&mut encoder, *tick, event, &mut bytes[at..end])?
                }
            };
            at += used;
        }
    }
    header.stop(ended, why);
    let claimed = usize::try_from(close(header)).ok()?;
    debug_assert_eq!(claimed, bytes.len());
    bytes[..FIRST].copy_from_slice(header.bytes());
    Some(bytes)
}
