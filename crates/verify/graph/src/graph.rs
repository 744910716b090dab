//! Holds an execution graph: the events of each thread, what each read reads from, and
//! the order of the writes of each location.
//!
//! It keeps the clocks of its events right, and must never decide what is consistent
//! ([`crate::consistency`]) or what comes next ([`crate::explore`]).

use crate::event::{Clock, Event, EventId, Exchange, Kind, NOWHERE, Place, Source};
use crate::event::{acquires, releases};
use std::sync::atomic::Ordering;

/// What the graph knows of a location.
#[derive(Clone, Debug, Default)]
pub(crate) struct Location {
    /// What it held at the beginning.
    pub(crate) initial: u64,
    /// Its writes, in coherence order; the initial one is not among them.
    pub(crate) writes: Vec<EventId>,
    /// How many of them are of the set-up, which is over before all other writes.
    pub(crate) fixed: usize,
    /// Its atomic reads.
    pub(crate) reads: Vec<EventId>,
    /// Its plain accesses and frees.
    pub(crate) plain: Vec<EventId>,
}

/// An execution graph.
#[derive(Clone, Debug, Default)]
pub(crate) struct Graph {
    pub(crate) threads: Vec<Vec<Event>>,
    pub(crate) locations: Vec<Location>,
    /// All events, as they were added.
    pub(crate) added: Vec<EventId>,
    pub(crate) next_stamp: u32,
}

/// What the caller says of a new event.
#[derive(Clone, Copy)]
pub(crate) struct Access {
    pub(crate) kind: Kind,
    pub(crate) order: Ordering,
    pub(crate) location: u32,
    pub(crate) value: u64,
    pub(crate) exchange: Option<Exchange>,
    pub(crate) place: Place,
}

impl Access {
    /// Returns an event without a location.
    pub(crate) fn nowhere(kind: Kind, order: Ordering, place: Place) -> Self {
        Self {
            kind,
            order,
            location: NOWHERE,
            value: 0,
            exchange: None,
            place,
        }
    }
}

impl Graph {
    pub(crate) fn get(&self, id: EventId) -> &Event {
        &self.threads[id.thread()][id.index()]
    }

    pub(crate) fn get_mut(&mut self, id: EventId) -> &mut Event {
        &mut self.threads[id.thread()][id.index()]
    }

    /// Returns how many events a thread has.
    pub(crate) fn len(&self, thread: usize) -> usize {
        self.threads.get(thread).map_or(0, Vec::len)
    }

    /// Returns the last event of a thread.
    pub(crate) fn last(&self, thread: usize) -> Option<&Event> {
        self.threads.get(thread).and_then(|events| events.last())
    }

    pub(crate) fn previous(&self, id: EventId) -> Option<&Event> {
        let index = id.index().checked_sub(1)?;
        self.threads[id.thread()].get(index)
    }

    /// Makes room for what the graph does not know yet of so many locations.
    pub(crate) fn reserve(&mut self, locations: usize) {
        if self.locations.len() < locations {
            self.locations.resize_with(locations, Location::default);
        }
    }

    /// Adds an event to a thread, as the newest. Its reads-from or its place in coherence
    /// order is set afterwards.
    pub(crate) fn add(
        &mut self,
        thread: usize,
        access: Access,
        parent: Option<EventId>,
    ) -> EventId {
        if self.threads.len() <= thread {
            self.threads.resize_with(thread + 1, Vec::new);
        }
        let id = EventId::new(thread, self.threads[thread].len());
        self.threads[thread].push(Event {
            kind: access.kind,
            order: access.order,
            location: access.location,
            value: access.value,
            source: Source::Initial,
            exchange: access.exchange,
            stuck: false,
            fixed: false,
            stamp: self.next_stamp,
            place: access.place,
            hb: Clock::default(),
            porf: Clock::default(),
            released: Clock::default(),
            pending: Clock::default(),
            message: Clock::default(),
        });
        self.next_stamp += 1;
        self.added.push(id);
        if access.location != NOWHERE {
            let location = &mut self.locations[access.location as usize];
            if access.kind.reads() {
                location.reads.push(id);
            } else if access.kind.is_plain() {
                location.plain.push(id);
            }
        }
        self.set_clocks(id, parent);
        id
    }

    /// Computes the clocks of an event from its predecessors: the one in its thread, its
    /// source, and another thread's event that it follows.
    pub(crate) fn set_clocks(&mut self, id: EventId, parent: Option<EventId>) {
        let mut clocks = self.previous(id).map_or_else(Clocks::default, Clocks::of);
        clocks.hb.include(id);
        clocks.porf.include(id);
        if let Some(parent) = parent {
            let parent = self.get(parent);
            clocks.hb.join(&parent.hb);
            clocks.porf.join(&parent.porf);
        }
        let event = self.get(id);
        if event.kind.reads()
            && !event.stuck
            && let Source::Write(write) = event.source
        {
            let write = self.get(write);
            clocks.porf.join(&write.porf);
            clocks.pending.join(&write.message);
            if acquires(event.order) {
                clocks.hb.join(&write.message);
            }
        }
        if event.kind == Kind::Fence {
            if acquires(event.order) {
                clocks.hb.join(&clocks.pending);
            }
            if releases(event.order) {
                clocks.released = clocks.hb;
            }
        }
        let mut message = Clock::default();
        if event.kind.writes() {
            message = match releases(event.order) {
                true => clocks.hb,
                false => clocks.released,
            };
            // An update carries on the release sequence of what it has read.
            if event.kind == Kind::UpdateWrite
                && let Some(read) = self.previous(id)
                && let Source::Write(write) = read.source
            {
                message.join(&self.get(write).message);
            }
        }
        let event = self.get_mut(id);
        event.hb = clocks.hb;
        event.porf = clocks.porf;
        event.released = clocks.released;
        event.pending = clocks.pending;
        event.message = message;
    }

    /// Makes a read read from there, whether that ends its wait or not.
    pub(crate) fn set_source(&mut self, read: EventId, source: Source, stuck: bool) {
        let value = self.written(self.get(read).location, source);
        let event = self.get_mut(read);
        event.source = source;
        event.stuck = stuck;
        event.value = value;
        if let Some(exchange) = event.exchange {
            event.order = match value == exchange.expected {
                true => exchange.success,
                false => exchange.failure,
            };
        }
        self.set_clocks(read, None);
    }

    /// Returns what was written there.
    pub(crate) fn written(&self, location: u32, source: Source) -> u64 {
        match source {
            Source::Initial => self.locations[location as usize].initial,
            Source::Write(write) => self.get(write).value,
        }
    }

    /// Returns the source at this position of coherence order: 0 is the initial one.
    pub(crate) fn source_at(&self, location: u32, position: usize) -> Source {
        match position {
            0 => Source::Initial,
            _ => Source::Write(self.locations[location as usize].writes[position - 1]),
        }
    }

    /// Returns the position of a source in coherence order.
    pub(crate) fn position(&self, location: u32, source: Source) -> usize {
        let Source::Write(write) = source else {
            return 0;
        };
        let writes = &self.locations[location as usize].writes;
        // Newer writes are asked for more often.
        let found = writes.iter().rposition(|&other| other == write);
        found.expect("a write of this location") + 1
    }

    /// Returns the newest write of a location.
    pub(crate) fn newest(&self, location: u32) -> Source {
        let writes = &self.locations[location as usize].writes;
        writes
            .last()
            .map_or(Source::Initial, |&write| Source::Write(write))
    }

    /// Puts a write right after the source at this position.
    pub(crate) fn place_write(&mut self, write: EventId, position: usize) {
        let location = self.get(write).location as usize;
        self.locations[location].writes.insert(position, write);
    }

    /// Takes a write out of coherence order, to be placed elsewhere.
    pub(crate) fn unplace_write(&mut self, write: EventId) {
        let location = self.get(write).location as usize;
        self.locations[location]
            .writes
            .retain(|&other| other != write);
    }

    /// Removes what was added after this stamp.
    pub(crate) fn truncate(&mut self, stamp: u32) {
        while let Some(&id) = self.added.last() {
            if self.get(id).stamp <= stamp {
                break;
            }
            self.added.pop();
            let event = self.threads[id.thread()]
                .pop()
                .expect("an event that was added");
            forget(&mut self.locations, &event, id);
        }
        while self.threads.last().is_some_and(Vec::is_empty) {
            self.threads.pop();
        }
        self.next_stamp = stamp + 1;
    }

    /// Makes these events, which have no successors but each other, the newest.
    pub(crate) fn make_newest(&mut self, events: &[EventId]) {
        self.added.retain(|id| !events.contains(id));
        for &id in events {
            let stamp = self.next_stamp;
            self.next_stamp += 1;
            self.get_mut(id).stamp = stamp;
            self.added.push(id);
        }
    }

    /// Removes the events for which `keep` does not hold, which have no successors that stay.
    pub(crate) fn restrict(&mut self, keep: impl Fn(EventId, &Event) -> bool) {
        let mut added = std::mem::take(&mut self.added);
        let mut removed = Vec::new();
        added.retain(|&id| {
            let stays = keep(id, self.get(id));
            if !stays {
                removed.push(id);
            }
            stays
        });
        self.added = added;
        for &id in removed.iter().rev() {
            debug_assert_eq!(id.index() + 1, self.len(id.thread()));
            let event = self.threads[id.thread()]
                .pop()
                .expect("an event that was added");
            forget(&mut self.locations, &event, id);
        }
        while self.threads.last().is_some_and(Vec::is_empty) {
            self.threads.pop();
        }
    }

    /// Returns the write of the update that reads from there, if there is one, beside `but`.
    pub(crate) fn update_of(&self, location: u32, source: Source, but: EventId) -> Option<EventId> {
        let position = self.position(location, source);
        let &next = self.locations[location as usize].writes.get(position)?;
        let takes = next != but
            && self.get(next).kind == Kind::UpdateWrite
            && self
                .previous(next)
                .is_some_and(|read| read.source == source);
        takes.then_some(next)
    }
}

/// Removes an event from what is known of its location.
fn forget(locations: &mut [Location], event: &Event, id: EventId) {
    if event.location == NOWHERE {
        return;
    }
    let location = &mut locations[event.location as usize];
    let remove = |list: &mut Vec<EventId>| {
        if let Some(at) = list.iter().rposition(|&other| other == id) {
            list.remove(at);
        }
    };
    if event.kind.reads() {
        remove(&mut location.reads);
    } else {
        remove(&mut location.writes);
        if event.kind.is_plain() {
            remove(&mut location.plain);
        }
    }
}

/// What a thread carries from event to event.
#[derive(Default)]
struct Clocks {
    hb: Clock,
    porf: Clock,
    released: Clock,
    pending: Clock,
}

impl Clocks {
    fn of(event: &Event) -> Self {
        Self {
            hb: event.hb,
            porf: event.porf,
            released: event.released,
            pending: event.pending,
        }
    }
}

impl Graph {
    /// Returns all events, each after what it reads from and follows.
    pub(crate) fn linear(&self) -> Vec<EventId> {
        let mut at = vec![0; self.threads.len()];
        let mut all = Vec::with_capacity(self.added.len());
        while all.len() < self.added.len() {
            let before = all.len();
            for thread in 0..at.len() {
                while at[thread] < self.threads[thread].len() {
                    let id = EventId::new(thread, at[thread]);
                    let porf = &self.get(id).porf;
                    let ready = |other: usize| other == thread || porf.of(other) <= at[other];
                    if !(0..at.len()).all(ready) {
                        break;
                    }
                    at[thread] += 1;
                    all.push(id);
                }
            }
            if all.len() == before {
                break;
            }
        }
        all
    }
}
