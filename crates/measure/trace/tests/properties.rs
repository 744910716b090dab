//! Tests that what is written is read back, whatever is cut off, and that no file
//! makes the reader panic.

use locklab_trace::{
    Access, Attempt, BLOCK, Encoder, Event, FIRST, Fault, Frames, Header, Payload, Stopped, Trace,
    VERSION, close, file_bytes,
};
use proptest::prelude::*;
use std::io::{Seek as _, Write as _};

/// A record that owns what it says.
#[derive(Clone, Debug)]
enum Owned {
    Plain(Event<'static>),
    /// An operation that took no time.
    Whole(Event<'static>),
    Module(u64, u64, u64, Vec<u8>),
    Stack(u64, Vec<[u8; 8]>),
}

impl Owned {
    fn event(&self) -> Event<'_> {
        match self {
            Self::Plain(event) | Self::Whole(event) => *event,
            Self::Module(from, to, offset, path) => Event::Module {
                from: *from,
                to: *to,
                offset: *offset,
                path: Payload(path),
            },
            Self::Stack(number, frames) => Event::Stack {
                number: *number,
                frames: Frames(frames),
            },
        }
    }

    /// Returns the second event of the record.
    fn then(&self) -> Option<Event<'_>> {
        match self {
            Self::Whole(Event::Request { .. }) => Some(Event::Acquired),
            Self::Whole(_) => Some(Event::Released),
            _ => None,
        }
    }
}

/// Returns addresses: few, as in programs, or any number.
fn address() -> impl Strategy<Value = u64> {
    prop_oneof![
        4 => (0_u64..12).prop_map(|number| 0x7f00_1234_5000 + number * 40),
        1 => any::<u64>(),
    ]
}

fn access() -> impl Strategy<Value = Access> {
    (any::<bool>(), 0_usize..4).prop_map(|(shared, attempt)| Access {
        shared,
        attempt: [
            Attempt::Waits,
            Attempt::Timed,
            Attempt::Once,
            Attempt::FoundHeld,
        ][attempt],
    })
}

fn record() -> impl Strategy<Value = Owned> {
    let plain = prop_oneof![
        (address(), any::<u64>(), access()).prop_map(|(lock, stack, access)| Event::Request {
            lock,
            stack,
            access
        }),
        Just(Event::Acquired),
        Just(Event::Refused),
        address().prop_map(|lock| Event::Release { lock }),
        Just(Event::Released),
        (address(), address(), any::<u64>(), any::<bool>()).prop_map(
            |(condition, lock, stack, timed)| Event::Wait {
                condition,
                lock,
                stack,
                timed
            }
        ),
        any::<bool>().prop_map(|timed_out| Event::Woken { timed_out }),
        (address(), any::<bool>()).prop_map(|(condition, broadcast)| Event::Signal {
            condition,
            broadcast
        }),
        any::<u64>().prop_map(|thread| Event::Create { thread }),
        any::<u64>().prop_map(|handle| Event::Join { handle }),
        Just(Event::Joined),
        any::<bool>().prop_map(|timed| Event::Sleep { timed }),
        Just(Event::Slept),
        (any::<u64>(), any::<u64>()).prop_map(|(handle, task)| Event::Started { handle, task }),
        Just(Event::Ended),
        (any::<u64>(), any::<u64>(), any::<u64>(), any::<u64>()).prop_map(
            |(voluntary, involuntary, ran_ns, took)| Event::Switches {
                voluntary,
                involuntary,
                ran_ns,
                took
            }
        ),
        any::<u64>().prop_map(|ticks| Event::Cost { ticks }),
        (any::<u64>(), any::<u64>(), any::<bool>()).prop_map(|(process, parent, forked)| {
            Event::Image {
                process,
                parent,
                forked,
            }
        }),
    ];
    let whole = prop_oneof![
        (address(), any::<u64>(), access()).prop_map(|(lock, stack, access)| Event::Request {
            lock,
            stack,
            access
        }),
        address().prop_map(|lock| Event::Release { lock }),
    ];
    prop_oneof![
        12 => plain.prop_map(Owned::Plain),
        4 => whole.prop_map(Owned::Whole),
        1 => (any::<u64>(), any::<u64>(), any::<u64>(), prop::collection::vec(any::<u8>(), 0..200))
            .prop_map(|(from, to, offset, path)| Owned::Module(from, to, offset, path)),
        1 => (any::<u64>(), prop::collection::vec(any::<[u8; 8]>(), 0..12))
            .prop_map(|(number, frames)| Owned::Stack(number, frames)),
    ]
}

/// Times since the record before, and records.
fn records() -> impl Strategy<Value = Vec<(u64, Owned)>> {
    let since = prop_oneof![8 => 0_u64..2000, 1 => 0_u64..1 << 40];
    prop::collection::vec((since, record()), 0..400)
}

/// The file of some threads, as the library in the program writes it, and for
/// each thread what it wrote. Times begin at 1000.
struct File {
    bytes: Vec<u8>,
    written: Vec<Vec<(u64, Owned)>>,
}

fn write(threads: &[Vec<(u64, Owned)>], blocks: u32) -> File {
    let header = Header::new(0.5, 1000, blocks, "a machine", "program --threads 2");
    let mut bytes = vec![0; usize::try_from(file_bytes(blocks)).unwrap()];
    let mut written = Vec::new();
    'threads: for (number, records) in threads.iter().enumerate() {
        written.push(Vec::new());
        let mut encoder = Encoder::default();
        let mut tick = 1000;
        let (mut at, mut end) = (0, 0);
        for (since, record) in records {
            tick += since;
            loop {
                let room = &mut bytes[at..end];
                let used = match record {
                    Owned::Whole(event) => encoder.write_whole(tick, event, room),
                    record => encoder.write(tick, &record.event(), room),
                };
                match used {
                    Some(used) => {
                        at += used;
                        written[number].push((tick, record.clone()));
                        break;
                    }
                    None => {
                        let Some(block) = header.claim() else {
                            break 'threads;
                        };
                        (at, end) = (block, block + BLOCK);
                        let begin = Event::Begin {
                            thread: number as u64,
                            image: 0,
                        };
                        at += encoder.write(tick, &begin, &mut bytes[at..end]).unwrap();
                    }
                }
            }
        }
    }
    header.stop(u64::MAX, Stopped::Ended);
    bytes.truncate(usize::try_from(close(&header)).unwrap());
    bytes[..FIRST].copy_from_slice(header.bytes());
    File { bytes, written }
}

/// Returns what a thread of a trace did, without where its blocks begin.
fn read(trace: &Trace, number: usize) -> Vec<(u64, Event<'_>)> {
    trace
        .threads
        .iter()
        .find(|thread| thread.number == number as u64)
        .into_iter()
        .flat_map(|thread| trace.events(thread))
        .filter(|(_, event)| !matches!(event, Event::Begin { .. }))
        .collect()
}

fn expected(written: &[(u64, Owned)]) -> Vec<(u64, Event<'_>)> {
    written
        .iter()
        .flat_map(|(tick, record)| {
            let first = (*tick, record.event());
            std::iter::once(first).chain(record.then().map(|then| (*tick, then)))
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn what_is_written_is_read_back(
        threads in prop::collection::vec(records(), 1..4),
        blocks in 1_u32..6,
    ) {
        let file = write(&threads, blocks);
        let mut stored = tempfile::tempfile().unwrap();
        stored.write_all(&file.bytes).unwrap();
        stored.rewind().unwrap();
        let stored = Trace::open(stored).unwrap();
        let trace = Trace::read(file.bytes).unwrap();
        prop_assert_eq!(&stored.info, &trace.info);
        let of_file = stored.in_order().map(|(thread, tick, event)| format!("{thread} {tick} {event:?}"));
        let here = trace.in_order().map(|(thread, tick, event)| format!("{thread} {tick} {event:?}"));
        prop_assert!(of_file.eq(here));
        prop_assert_eq!(trace.missing, locklab_trace::Missing::default());
        prop_assert_eq!(trace.info.machine.as_str(), "a machine");
        for (number, written) in file.written.iter().enumerate() {
            prop_assert_eq!(read(&trace, number), expected(written));
        }
        let times: Vec<u64> = trace.in_order().map(|(_, tick, _)| tick).collect();
        prop_assert!(times.is_sorted());
    }

    #[test]
    fn any_part_is_read_up_to_its_last_whole_record(
        threads in prop::collection::vec(records(), 1..3),
        cut in 0.0..1.0,
    ) {
        let file = write(&threads, 4);
        let length = (file.bytes.len() as f64 * cut) as usize;
        match Trace::read(file.bytes[..length].to_vec()) {
            Err(fault) => prop_assert!(fault == Fault::Short && length < FIRST),
            Ok(trace) => {
                prop_assert!(trace.missing.blocks > 0);
                prop_assert_eq!(trace.missing.damaged, 0);
                for (number, written) in file.written.iter().enumerate() {
                    let there = read(&trace, number);
                    prop_assert_eq!(&there[..], &expected(written)[..there.len()]);
                }
            }
        }
    }

    #[test]
    fn no_bytes_make_the_reader_panic(
        threads in prop::collection::vec(records(), 1..3),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..200),
    ) {
        let mut bytes = write(&threads, 3).bytes;
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Ok(trace) = Trace::read(bytes) {
            prop_assert!(trace.in_order().count() < 1 << 20);
        }
    }
}

#[test]
fn what_is_no_recording_is_said_in_a_sentence() {
    let file = write(&[], 1).bytes;
    let fault = |bytes: &[u8]| Trace::read(bytes.to_vec()).unwrap_err();
    assert_eq!(fault(b""), Fault::Short);
    assert_eq!(fault(b"\x7fELF and so on"), Fault::Foreign);
    assert_eq!(fault(&file[..11]), Fault::Short);
    assert_eq!(fault(&file[..FIRST - 1]), Fault::Short);
    let mut other = file;
    other[8] = VERSION as u8 + 1;
    let (next, today) = (VERSION + 1, VERSION);
    assert_eq!(
        fault(&other).to_string(),
        format!(
            "it is a recording of format {next}, and this locklab reads format {today}: record \
             again, or use the locklab that recorded it"
        )
    );
}

/// An hour of a fast program must fit where a minute of a chatty format does.
#[test]
fn a_pair_takes_fourteen_bytes_and_nine_if_nobody_waits() {
    let mut encoder = Encoder::default();
    let mut bytes = vec![0; 1 << 16];
    let mut at = 0;
    let mut write = |tick, event: Event<'_>, whole| {
        at += match whole {
            true => encoder.write_whole(tick, &event, &mut bytes[at..]),
            false => encoder.write(tick, &event, &mut bytes[at..]),
        }
        .unwrap();
        at
    };
    let mut tick = 1 << 50;
    let mut before = write(
        tick,
        Event::Begin {
            thread: 3,
            image: 0,
        },
        false,
    );
    let access = Access {
        shared: false,
        attempt: Attempt::Waits,
    };
    for round in 0..100 {
        let lock = 0x7fff_1234_5678;
        let request = Event::Request {
            lock,
            stack: 9,
            access,
        };
        write(tick + 400, request, false);
        write(tick + 460, Event::Acquired, false);
        write(tick + 700, Event::Release { lock }, false);
        tick += 750;
        let now = write(tick, Event::Released, false);
        assert!(round == 0 || now - before <= 14, "{} bytes", now - before);
        write(tick + 400, request, true);
        tick += 700;
        before = write(tick, Event::Release { lock }, true);
        assert!(before - now <= 9, "{} bytes", before - now);
    }
}
