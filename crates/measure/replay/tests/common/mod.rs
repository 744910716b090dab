//! Recordings that are written down, by the writer of the format.

use locklab_trace::{
    Access, Attempt, BLOCK, Encoder, Event, FIRST, Header, Stopped, Trace, close, file_bytes,
};

pub(crate) const WRITE: Access = Access {
    shared: false,
    attempt: Attempt::Waits,
};

/// The records of one thread: times in nanoseconds, and what happened.
pub(crate) type Records = Vec<(u64, Event<'static>)>;

/// Returns an acquisition and its release: asked for, had, given up; each operation takes
/// 20 ns.
pub(crate) fn hold(lock: u64, stack: u64, [asked, had, given_up]: [u64; 3]) -> Records {
    vec![
        (
            asked,
            Event::Request {
                lock,
                stack,
                access: WRITE,
            },
        ),
        (had, Event::Acquired),
        (given_up, Event::Release { lock }),
        (given_up + 20, Event::Released),
    ]
}

/// Returns the recording of these threads on a machine of so many CPUs, from 0 to the
/// last record. Times begin at 1000.
pub(crate) fn trace(threads: &[Records], cpus: usize) -> Trace {
    let blocks = 4096;
    let machine = format!("a machine, {cpus} CPUs");
    let header = Header::new(1.0, 1000, blocks, &machine, "program");
    let mut bytes = vec![0; usize::try_from(file_bytes(blocks)).unwrap()];
    let mut last = 0;
    for (number, records) in threads.iter().enumerate() {
        let thread = number as u64;
        let begin = Event::Begin { thread, image: 0 };
        let mut encoder = Encoder::default();
        let (mut at, mut end) = (0, 0);
        for (tick, event) in records {
            let tick = tick.saturating_add(1000);
            last = last.max(tick);
            let used = match encoder.write(tick, event, &mut bytes[at..end]) {
                Some(used) => used,
                None => {
                    at = header.claim().expect("room for the records");
                    end = at + BLOCK;
                    at += encoder.write(tick, &begin, &mut bytes[at..end]).unwrap();
                    encoder.write(tick, event, &mut bytes[at..end]).unwrap()
                }
            };
            at += used;
        }
    }
    header.stop(last, Stopped::Ended);
    bytes.truncate(usize::try_from(close(&header)).unwrap());
    bytes[..FIRST].copy_from_slice(header.bytes());
    Trace::read(bytes).unwrap()
}
