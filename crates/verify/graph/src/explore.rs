//! Decides which executions are explored: each that is consistent, once.
//!
//! The algorithm is that of Kokologiannakis, Marmanis, Gladstein and Vafeiadis, *Truly
//! Stateless, Optimal Dynamic Partial Order Reduction* (POPL 2022). An event that is added
//! takes the newest value, or the newest place in coherence order, at first; the other
//! choices are noted as work. A write that is added may also be what an older read should
//! have read: that read is then *revisited*, and what was added after it and does not
//! lead to the write is removed. So that nothing is explored twice, this is done only
//! where all that is removed had taken the newest.
//!
//! It must never run code of a test: that is [`crate::run`]'s.

use crate::event::{Clock, Event, EventId, Kind, Place, Source};
use crate::graph::{Access, Graph};
use crate::replay::Guide;
use crate::report::{Failure, FailureKind, Step, steps};
use std::collections::HashMap;
use std::sync::atomic::Ordering;

/// Something that remains to be explored of a graph.
#[derive(Clone, Copy, Debug)]
enum Item {
    /// A read reads from this position of coherence order.
    Read { read: EventId, position: usize },
    /// A write has this place.
    Place { write: EventId, position: usize },
    /// A choice is this one.
    Choose { event: EventId, value: u64 },
    /// An older read reads from a write.
    Revisit { write: EventId, read: EventId },
    /// The same, and the write has this place.
    Revisited {
        write: EventId,
        read: EventId,
        position: usize,
    },
}

impl Item {
    fn event(self) -> EventId {
        match self {
            Self::Read { read, .. } => read,
            Self::Place { write, .. }
            | Self::Revisit { write, .. }
            | Self::Revisited { write, .. } => write,
            Self::Choose { event, .. } => event,
        }
    }
}

/// A graph, and what remains to be explored of it.
#[derive(Default)]
struct Frame {
    graph: Graph,
    work: Vec<Item>,
}

/// The state of an exploration.
#[derive(Default)]
pub(crate) struct Exploration {
    pub(crate) graph: Graph,
    work: Vec<Item>,
    below: Vec<Frame>,
    /// The numbers of locations, which stay from execution to execution.
    numbers: HashMap<(u64, u32), u32>,
    /// The address and the size of each.
    pub(crate) keys: Vec<(u64, u32)>,
    /// The locations that have bytes in an aligned word of eight.
    in_word: HashMap<u64, Vec<u32>>,
    /// The other locations that share bytes with each.
    overlapping: Vec<Vec<u32>>,
    /// The one execution that is to be run, if only one is.
    pub(crate) guide: Option<Guide>,
    /// Whether what is added is part of a set-up: it takes the newest, and stays so.
    pub(crate) quiet: bool,
    /// Whether the current execution stands for nothing: another one does.
    pub(crate) discarded: bool,
    /// What was found wrong.
    pub(crate) failure: Option<Failure>,
}

/// The current execution cannot be continued: another one stands for it.
pub(crate) struct Discarded;

impl Exploration {
    /// Makes the graph that which is explored next; returns whether there is one.
    pub(crate) fn next(&mut self) -> bool {
        loop {
            let Some(item) = self.work.pop() else {
                let Some(frame) = self.below.pop() else {
                    return false;
                };
                (self.graph, self.work) = (frame.graph, frame.work);
                continue;
            };
            let stamp = self.graph.get(item.event()).stamp;
            self.graph.truncate(stamp);
            if self.apply(item) {
                return true;
            }
        }
    }

    /// Returns the events of the current graph.
    pub(crate) fn steps(&self) -> Vec<Step> {
        steps(&self.graph, &self.keys)
    }

    /// Returns whether nothing remains to be explored beside the current execution.
    pub(crate) fn is_one(&self) -> bool {
        self.work.is_empty() && self.below.is_empty()
    }

    /// Returns how many events there are in graphs that are not explored yet.
    pub(crate) fn events_kept(&self) -> usize {
        self.below.iter().map(|frame| frame.graph.added.len()).sum()
    }

    fn apply(&mut self, item: Item) -> bool {
        match item {
            Item::Read { read, position } => {
                let source = self
                    .graph
                    .source_at(self.graph.get(read).location, position);
                self.graph.set_source(read, source, false);
                self.check_races(read);
                self.graph.sc_has_order()
            }
            Item::Place { write, position } => {
                self.graph.unplace_write(write);
                self.graph.place_write(write, position);
                self.graph.sc_has_order()
            }
            Item::Choose { event, value } => {
                self.graph.get_mut(event).value = value;
                true
            }
            Item::Revisit { write, read } => {
                self.revisit(write, read);
                false
            }
            Item::Revisited {
                write,
                read,
                position,
            } => {
                self.graph.unplace_write(write);
                self.graph.place_write(write, position);
                self.graph.set_source(read, Source::Write(write), false);
                self.check_races(read);
                self.graph.sc_has_order()
            }
        }
    }

    /// Makes the graph that in which `read` can read from `write`, and notes where `write`
    /// may be in it.
    fn revisit(&mut self, write: EventId, read: EventId) {
        let mut graph = match self.work.is_empty() {
            true => std::mem::take(&mut self.graph),
            false => {
                let graph = self.graph.clone();
                let old = std::mem::take(&mut self.graph);
                self.below.push(Frame {
                    graph: old,
                    work: std::mem::take(&mut self.work),
                });
                graph
            }
        };
        let leads: Clock = graph.get(write).porf;
        let from = graph.get(read).stamp;
        graph.unplace_write(write);
        graph.restrict(|id, event| event.stamp <= from || leads.has(id));
        let location = graph.get(write).location;
        let before_read = graph.previous(read).map(|event| event.hb);
        let seen = before_read.map_or(0, |before| graph.first_visible(location, &before));
        let seen = seen.max(graph.locations[location as usize].fixed);
        let positions = match graph.get(write).kind {
            Kind::UpdateWrite => {
                let source = graph.previous(write).expect("the read of an update").source;
                let position = graph.position(location, source);
                match position >= seen && graph.update_of(location, source, write).is_none() {
                    true => vec![position],
                    false => Vec::new(),
                }
            }
            _ => {
                let first = seen.max(graph.first_visible(location, &graph.get(write).hb));
                let last = graph.locations[location as usize].writes.len();
                (first..=last)
                    .filter(|&position| graph.may_place(location, position))
                    .collect()
            }
        };
        // The write is taken out again before it is placed.
        self.graph = graph;
        self.work
            .extend(positions.into_iter().map(|position| Item::Revisited {
                write,
                read,
                position,
            }));
        if let Some(&Item::Revisited { position, .. }) = self.work.last() {
            self.graph.place_write(write, position);
        }
    }

    /// Adds an event that has no choice.
    pub(crate) fn add(
        &mut self,
        thread: usize,
        kind: Kind,
        order: Ordering,
        place: Place,
    ) -> EventId {
        self.add_after(thread, kind, order, place, None)
    }

    /// Adds such an event, which follows one of another thread too.
    pub(crate) fn add_after(
        &mut self,
        thread: usize,
        kind: Kind,
        order: Ordering,
        place: Place,
        parent: Option<EventId>,
    ) -> EventId {
        self.guided();
        self.graph
            .add(thread, Access::nowhere(kind, order, place), parent)
    }

    /// Returns how far from the newest the next event is, and goes on to the one after it, if
    /// only one execution is run.
    fn guided(&mut self) -> Option<usize> {
        let guide = self.guide.as_mut()?;
        guide.pop_front().map(|(_, choice)| choice)
    }

    /// Returns the position that is so far from the newest.
    fn position_from(&mut self, last: usize, choice: usize, place: Place) -> usize {
        last.checked_sub(choice).unwrap_or_else(|| {
            let message = format!("the replay string is of another test: see {place}");
            self.fail(FailureKind::NotDeterministic, message, place);
            last
        })
    }

    /// Adds an atomic read. `ends`, of a wait, says which values end it. Returns the event.
    pub(crate) fn add_read(
        &mut self,
        thread: usize,
        access: Access,
        mut ends: impl FnMut(u64) -> bool,
    ) -> EventId {
        let location = access.location;
        let before = self
            .graph
            .last(thread)
            .map_or_else(Clock::default, |event| event.hb);
        let read = self.graph.add(thread, access, None);
        let mut first = self.graph.first_visible(location, &before);
        if access.kind == Kind::UpdateRead {
            first = first.max(self.graph.locations[location as usize].fixed);
        }
        let last = self.graph.locations[location as usize].writes.len();
        if let Some(choice) = self.guided() {
            let position = self.position_from(last, choice, access.place);
            let source = self.graph.source_at(location, position);
            let stuck = !ends(self.graph.written(location, source));
            self.graph.set_source(read, source, stuck);
            self.check_races(read);
            return read;
        }
        for position in first..last {
            let source = self.graph.source_at(location, position);
            if !self.quiet && ends(self.graph.written(location, source)) {
                self.work.push(Item::Read { read, position });
            }
        }
        let source = self.graph.source_at(location, last);
        let stuck = !ends(self.graph.written(location, source));
        self.graph.set_source(read, source, stuck);
        self.graph.get_mut(read).fixed = self.quiet;
        self.check_races(read);
        read
    }

    /// Adds an atomic write.
    pub(crate) fn add_write(
        &mut self,
        thread: usize,
        access: Access,
    ) -> Result<EventId, Discarded> {
        let location = access.location;
        let before = self
            .graph
            .last(thread)
            .map_or_else(Clock::default, |event| event.hb);
        let mut first = self.graph.first_visible(location, &before);
        first = first.max(self.graph.locations[location as usize].fixed);
        let write = self.graph.add(thread, access, None);
        let last = self.graph.locations[location as usize].writes.len();
        let mut conflict = false;
        if let Some(choice) = self.guided() {
            let position = self.position_from(last, choice, access.place);
            self.graph.place_write(write, position);
            self.check_races(write);
            return Ok(write);
        }
        if access.kind == Kind::UpdateWrite {
            let source = self
                .graph
                .previous(write)
                .expect("the read of an update")
                .source;
            let position = self.graph.position(location, source);
            conflict = self.graph.update_of(location, source, write).is_some();
            self.graph.place_write(write, position);
            conflict |= position != last && !self.graph.sc_has_order();
        } else {
            for position in first..last {
                if !self.quiet && self.graph.may_place(location, position) {
                    self.work.push(Item::Place { write, position });
                }
            }
            self.graph.place_write(write, last);
        }
        self.check_races(write);
        self.note_revisits(write);
        match conflict {
            true => Err(Discarded),
            false => Ok(write),
        }
    }

    /// Adds a choice among so many.
    pub(crate) fn add_choice(&mut self, thread: usize, of: u32, place: Place) {
        let guided = self.guide.as_ref().and_then(|guide| guide.front().copied());
        let event = self.add(thread, Kind::Choice(of), Ordering::Relaxed, place);
        if let Some((_, choice)) = guided {
            self.graph.get_mut(event).value = choice as u64 % u64::from(of);
            return;
        }
        let others = if self.quiet { 1 } else { u64::from(of) };
        for value in (1..others).rev() {
            self.work.push(Item::Choose { event, value });
        }
    }

    /// Adds a plain access.
    pub(crate) fn add_plain(&mut self, thread: usize, access: Access) -> EventId {
        self.guided();
        let event = self.graph.add(thread, access, None);
        if access.kind != Kind::PlainRead {
            let last = self.graph.locations[access.location as usize].writes.len();
            self.graph.place_write(event, last);
        }
        self.check_races(event);
        event
    }

    /// Reports a data race of an event with an older one: they conflict, one of them is not
    /// atomic, and neither happens before the other.
    fn check_races(&mut self, id: EventId) {
        let event = self.graph.get(id);
        let here = event.location as usize;
        let same = std::iter::once((event.location, true));
        let others = self.overlapping[here].iter().map(|&other| (other, false));
        let (plain, writes) = (event.kind.is_plain(), changes(event));
        let mut found = None;
        for (location, same) in same.chain(others) {
            // One that was met in other executions only has no events here.
            let Some(known) = self.graph.locations.get(location as usize) else {
                continue;
            };
            let atomic = known.reads.iter().chain(&known.writes);
            for &other in known.plain.iter().chain(atomic) {
                let against = self.graph.get(other);
                let atomics = !plain && !against.kind.is_plain();
                if other == id || (atomics && same) {
                    continue;
                }
                let ended = against.kind == Kind::Free;
                let ends = event.kind == Kind::Free && !event.hb.has(other);
                if ended || ends {
                    found = Some((FailureKind::UseAfterFree, other));
                } else if atomics {
                    found = Some((FailureKind::MixedSize, other));
                } else if (writes || changes(against)) && !event.hb.has(other) {
                    found = Some((FailureKind::DataRace, other));
                }
            }
        }
        if let Some((kind, other)) = found {
            let (place, earlier) = (event.place, self.graph.get(other).place);
            let message = match kind {
                FailureKind::DataRace => format!(
                    "data race: the {} at {place} and the {} at {earlier} are not ordered",
                    name(event.kind),
                    name(self.graph.get(other).kind)
                ),
                FailureKind::UseAfterFree => format!(
                    "use after free: the {} at {place} does not come before the end of the \
                     memory's life; the other access is at {earlier}",
                    name(event.kind)
                ),
                _ => format!(
                    "atomic accesses of different sizes to the same bytes, at {place} and at \
                     {earlier}, are not supported"
                ),
            };
            self.fail(kind, message, place);
        }
    }

    /// Notes what was found wrong, unless something was before.
    pub(crate) fn fail(&mut self, kind: FailureKind, message: String, place: Place) {
        if self.failure.is_none() {
            self.failure = Some(Failure::new(kind, message, place, &self.graph, &self.keys));
        }
    }

    /// Notes which older reads may read from a new write.
    fn note_revisits(&mut self, write: EventId) {
        if self.quiet {
            return;
        }
        let graph = &self.graph;
        let event = graph.get(write);
        for &read in &graph.locations[event.location as usize].reads {
            let may_change = !graph.get(read).fixed && !event.porf.has(read);
            if may_change && self.is_newest_after(read, write) {
                self.work.push(Item::Revisit { write, read });
            }
        }
    }

    /// Returns whether `read`, and all that a revisit of it by `write` removes, have taken
    /// the newest.
    fn is_newest_after(&self, read: EventId, write: EventId) -> bool {
        let graph = &self.graph;
        let leads = &graph.get(write).porf;
        let from = graph.get(read).stamp;
        let mut later = graph.added.iter().rev();
        later
            .by_ref()
            .take_while(|&&id| graph.get(id).stamp >= from)
            .all(|&id| leads.has(id) || self.is_newest(id, write))
    }

    /// Returns whether an event has taken the newest of what was there before it, or leads
    /// to `write`.
    fn is_newest(&self, id: EventId, write: EventId) -> bool {
        let graph = &self.graph;
        let event = graph.get(id);
        let leads = &graph.get(write).porf;
        let before = |other: EventId| {
            other != write && (graph.get(other).stamp <= event.stamp || leads.has(other))
        };
        match event.kind {
            Kind::Choice(_) => event.value == 0,
            kind if kind.reads() => {
                let writes = &graph.locations[event.location as usize].writes;
                let newest = writes.iter().rev().find(|&&other| before(other));
                event.source == newest.map_or(Source::Initial, |&newest| Source::Write(newest))
            }
            kind if kind.writes() => {
                let location = &graph.locations[event.location as usize];
                let newest = location.writes.iter().rev().find(|&&other| before(other));
                let reads = || location.reads.iter().filter(|&&read| before(read));
                newest == Some(&id)
                    && !reads().any(|&read| graph.get(read).source == Source::Write(id))
            }
            _ => true,
        }
    }

    /// Returns the number of a location, which is made if need be.
    pub(crate) fn location(&mut self, key: u64, size: u32) -> u32 {
        if let Some(&number) = self.numbers.get(&(key, size)) {
            self.graph.reserve(self.keys.len());
            return number;
        }
        let number = self.keys.len() as u32;
        self.keys.push((key, size));
        self.numbers.insert((key, size), number);
        let end = key + u64::from(size.max(1)) - 1;
        let mut overlaps = Vec::new();
        for word in key >> 3..=end >> 3 {
            let others = self.in_word.entry(word).or_default();
            for &other in others.iter() {
                let (start, bytes) = self.keys[other as usize];
                if start <= end && key < start + u64::from(bytes) && !overlaps.contains(&other) {
                    overlaps.push(other);
                }
            }
            others.push(number);
        }
        self.overlapping.push(Vec::new());
        for &other in &overlaps {
            self.overlapping[other as usize].push(number);
        }
        self.overlapping[number as usize] = overlaps;
        self.graph.reserve(self.keys.len());
        number
    }
}

/// Returns whether an event changes memory.
fn changes(event: &Event) -> bool {
    event.kind.writes() || matches!(event.kind, Kind::PlainWrite | Kind::Free)
}

/// Names an access in a message.
fn name(kind: Kind) -> &'static str {
    match kind {
        Kind::PlainRead => "plain read",
        Kind::PlainWrite => "plain write",
        Kind::Free => "end of the memory",
        kind if kind.reads() => "atomic read",
        _ => "atomic write",
    }
}
