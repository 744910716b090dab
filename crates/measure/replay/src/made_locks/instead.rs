//! The records of threads with an acquisition or a release of a lock instead of each
//! section that makes one.
//!
//! It must never change a record outside of such a section.

use super::pairs::Pair;
use super::sections::{Deed, Deeds, Place, Section, Sections};
use locklab_trace::{Access, Attempt, Event, LockKind, Otherwise, Records, Thread};
use std::collections::VecDeque;

/// A recording with the sections of a pair as acquisitions and releases of a lock.
#[derive(Debug)]
pub(super) struct Made(pub(super) Pair);

impl Otherwise for Made {
    fn records<'a>(
        &'a self,
        thread: &'a Thread,
        records: Records<'a>,
    ) -> Box<dyn Iterator<Item = (u64, Event<'a>)> + Send + 'a> {
        if thread.image != self.0.image {
            return Box::new(records);
        }
        Box::new(Instead {
            records,
            pair: self.0,
            sections: Sections::of(self.0),
            deeds: Deeds::default(),
            held: Vec::new(),
            ready: VecDeque::new(),
            named: false,
        })
    }
}

/// The records of a thread with those of a lock instead of its sections.
struct Instead<'a> {
    records: Records<'a>,
    pair: Pair,
    sections: Sections,
    deeds: Deeds,
    /// The records of a section, until it is known what becomes of them.
    held: Vec<(u64, Event<'a>)>,
    ready: VecDeque<(u64, Event<'a>)>,
    named: bool,
}

impl<'a> Iterator for Instead<'a> {
    type Item = (u64, Event<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(record) = self.ready.pop_front() {
                return Some(record);
            }
            let Some((tick, event)) = self.records.next() else {
                self.ready.extend(self.held.drain(..));
                return self.ready.pop_front();
            };
            if let Event::Begin { .. } = event
                && !self.held.is_empty()
            {
                // It ends nothing that the thread does.
                continue;
            }
            match self.sections.next(tick, &event) {
                Place::Outside => {
                    if self.held.is_empty() {
                        return Some((tick, event));
                    }
                    self.ready.extend(self.held.drain(..));
                    self.ready.push_back((tick, event));
                }
                Place::Begins => {
                    self.ready.extend(self.held.drain(..));
                    self.held.push((tick, event));
                }
                Place::Within => self.held.push((tick, event)),
                Place::Ends(section) => {
                    self.held.push((tick, event));
                    self.ends(&section);
                }
                Place::Forgotten => {
                    self.ready.extend(self.held.drain(..));
                    if self.deeds.forget() {
                        let lock = self.pair.condition;
                        self.ready.push_back((tick, Event::Release { lock }));
                        self.ready.push_back((tick, Event::Released));
                    }
                    self.ready.push_back((tick, event));
                }
            }
        }
    }
}

impl Instead<'_> {
    /// Makes ready what stands for the records of a section.
    fn ends(&mut self, section: &Section) {
        let deed = self.deeds.next(section);
        if let Deed::Looks | Deed::Other = deed {
            self.ready.extend(self.held.drain(..));
            return;
        }
        let lock = self.pair.condition;
        if !std::mem::replace(&mut self.named, true) {
            let kind = LockKind::MADE;
            self.ready
                .push_back((section.asked, Event::Kind { lock, kind }));
        }
        // What explains other records is kept, and was known before.
        let explains = self.held.drain(..).filter(|(_, event)| {
            matches!(
                event,
                Event::Stack { .. } | Event::Module { .. } | Event::Image { .. }
            )
        });
        self.ready
            .extend(explains.map(|(_, event)| (section.asked, event)));
        let (first, last) = match deed {
            Deed::Takes => {
                let access = Access {
                    shared: false,
                    attempt: Attempt::Waits,
                };
                let stack = section.stack;
                let request = Event::Request {
                    lock,
                    stack,
                    access,
                };
                (request, (section.given_up, Event::Acquired))
            }
            _ => (Event::Release { lock }, (section.freed, Event::Released)),
        };
        self.ready.extend([(section.asked, first), last]);
    }
}
