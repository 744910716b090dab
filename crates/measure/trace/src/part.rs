//! A part of a recording, as a recording of its own: small enough to be kept or mailed.
//!
//! It must never invent an operation: what a thread holds when the part begins is not known
//! there, as at the begin of any recording of a program that runs already.

use crate::event::Event;
use crate::header::{Header, Stopped, room};
use crate::read::{Thread, Trace};
use crate::write::whole;
use std::collections::HashSet;
use std::ops::Range;
use std::sync::atomic::Ordering;

/// The most room for a part, in units of 2^20 bytes.
const MEGABYTES: u32 = 1 << 10;

impl Trace {
    /// Returns the file of what happened within `ticks`, with what says which images, threads
    /// and locks there are, and what each thread waited for when it began.
    /// `None` if that is more than a gigabyte.
    #[must_use]
    pub fn part(&self, ticks: Range<u64>) -> Option<Vec<u8>> {
        let info = &self.info;
        let blocks = room(MEGABYTES);
        let per_tick = info.nanoseconds_per_tick;
        let mut header = Header::new(per_tick, ticks.start, blocks, &info.machine, &info.command);
        header.source = info.source.number();
        header.note_folder(&info.folder);
        header.images.store(info.images, Ordering::Relaxed);
        for (end, ns) in [false, true].into_iter().zip(info.round_trips) {
            if let Some(ns) = ns {
                header.note_round_trip(end, ns);
            }
        }
        if let Some([program, others]) = info.cpus_used {
            header.note_cpus_used(program, others);
        }
        let of = |thread| self.part_of(thread, &ticks);
        let records: Vec<_> = self.threads.iter().map(of).collect();
        let threads = self.threads.iter().zip(&records);
        let threads = threads.map(|(thread, records)| (thread.number, thread.image, &records[..]));
        whole(&header, threads, (ticks.end, Stopped::Deadline))
    }

    /// Returns the records of a thread that belong to the part.
    fn part_of<'a>(&'a self, thread: &'a Thread, ticks: &Range<u64>) -> Vec<(u64, Event<'a>)> {
        let used = self.stacks_used(thread, ticks);
        let mut records = Vec::new();
        let (mut goes_on, mut switches) = (None, None);
        let mut before = true;
        for (tick, event) in self.events(thread) {
            if tick >= ticks.end {
                break;
            }
            if before && tick >= ticks.start {
                before = false;
                let begin = [switches.take(), goes_on.take()].into_iter().flatten();
                records.extend(begin.map(|event| (ticks.start, event)));
            }
            match event {
                Event::Stack { number, .. } if !used.contains(&number) => {}
                // A file has these apart from all threads, and a part has no windows.
                Event::Window { .. } => {}
                Event::Image { .. }
                | Event::Module { .. }
                | Event::Stack { .. }
                | Event::Kind { .. }
                | Event::Create { .. }
                | Event::Started { .. }
                | Event::Ended => records.push((tick.max(ticks.start), event)),
                _ if !before => records.push((tick, event)),
                Event::Switches { .. } => switches = Some(event),
                Event::Request { .. }
                | Event::Wait { .. }
                | Event::Join { .. }
                | Event::Sleep { .. }
                | Event::Release { .. } => goes_on = Some(event),
                Event::Acquired
                | Event::Refused
                | Event::Released
                | Event::Woken { .. }
                | Event::Joined
                | Event::Slept => goes_on = None,
                _ => {}
            }
        }
        let begin = [switches, goes_on].into_iter().flatten();
        records.extend(begin.map(|event| (ticks.start, event)));
        records
    }

    /// Returns the numbers of the stacks that a thread's operations in the part have, and that
    /// of the one that goes on when it begins.
    fn stacks_used(&self, thread: &Thread, ticks: &Range<u64>) -> HashSet<u64> {
        let mut used = HashSet::new();
        let mut last = None;
        for (tick, event) in self
            .events(thread)
            .take_while(|(tick, _)| *tick < ticks.end)
        {
            match event {
                Event::Request { stack, .. } | Event::Wait { stack, .. } => {
                    match tick < ticks.start {
                        true => last = Some(stack),
                        false => drop(used.insert(stack)),
                    }
                }
                Event::Acquired | Event::Refused | Event::Woken { .. } if tick < ticks.start => {
                    last = None;
                }
                _ => {}
            }
        }
        used.extend(last);
        used
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Access, Attempt, Frames};
    use crate::write::file;

    fn request(lock: u64, stack: u64) -> Event<'static> {
        let access = Access {
            shared: false,
            attempt: Attempt::Waits,
        };
        Event::Request {
            lock,
            stack,
            access,
        }
    }

    /// The first thread takes a lock before the part, and once in it; the second waits for it
    /// when the part begins.
    #[test]
    fn a_part_has_what_happens_in_it_and_what_goes_on_when_it_begins() {
        let stack = |number| Event::Stack {
            number,
            frames: Frames(&[[1; 8]]),
        };
        let lock = 64;
        let first = vec![
            (10, Event::Started { handle: 5, task: 7 }),
            (11, stack(0)),
            (12, request(lock, 0)),
            (12, Event::Acquired),
            (40, Event::Release { lock }),
            (41, Event::Released),
            (60, stack(1)),
            (60, request(lock, 1)),
            (60, Event::Acquired),
            (70, Event::Release { lock }),
            (70, Event::Released),
            (90, request(lock, 1)),
            (90, Event::Acquired),
        ];
        let second = vec![
            (11, stack(0)),
            (12, request(lock, 0)),
            (55, Event::Acquired),
        ];
        let header = Header::new(1.0, 1, 9, "a machine", "program");
        let whole = Trace::read(file(&header, &[first, second], 100).unwrap()).unwrap();
        let part = Trace::read(whole.part(50..80).unwrap()).unwrap();
        assert_eq!((part.info.began, part.info.ended), (50, 80));
        assert_eq!(part.info.stopped, Stopped::Deadline);
        let events = |number: usize| -> Vec<_> {
            let events = part.events(&part.threads[number]);
            events
                .filter(|(_, event)| !matches!(event, Event::Begin { .. }))
                .collect()
        };
        assert_eq!(
            events(0),
            [
                (50, Event::Started { handle: 5, task: 7 }),
                (60, stack(1)),
                (60, request(lock, 1)),
                (60, Event::Acquired),
                (70, Event::Release { lock }),
                (70, Event::Released),
            ]
        );
        assert_eq!(
            events(1),
            [
                (50, stack(0)),
                (50, request(lock, 0)),
                (55, Event::Acquired)
            ]
        );
    }

    #[test]
    fn a_part_of_a_recording_in_windows_has_its_threads() {
        let lock = 64;
        let takes = |at| [(at, request(lock, 0)), (at, Event::Acquired)];
        let first = [takes(10), takes(70)].concat();
        let turns = vec![
            (20, Event::Window { begins: false }),
            (60, Event::Window { begins: true }),
        ];
        let header = Header::new(1.0, 1, 9, "a machine", "program");
        let whole = Trace::read(file(&header, &[first, turns], 100).unwrap()).unwrap();
        let part = Trace::read(whole.part(5..50).unwrap()).unwrap();
        let events = part.events(&part.threads[0]).map(|(_, event)| event);
        let acquired = events.filter(|event| matches!(event, Event::Acquired));
        assert_eq!(acquired.count(), 2);
    }
}
