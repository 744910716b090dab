//! Decides what RC11 allows: coherence, atomicity of updates, and the axiom of
//! sequentially consistent events (Lahav, Vafeiadis, Kang, Hur, Dreyer, *Repairing
//! Sequential Consistency in C/C++11*, PLDI 2017). Release sequences are those of C++20:
//! a write and the updates after it.
//!
//! That program order and reads-from have no cycle holds by construction: a read never
//! reads from what it precedes.

use crate::event::{Clock, Event, EventId, Kind, MAX_THREADS, NOWHERE, Source};
use crate::graph::Graph;

impl Graph {
    /// Returns the first position in coherence order that an access may see, or must
    /// follow, before which `before` has happened: no older one than those have seen.
    pub(crate) fn first_visible(&self, location: u32, before: &Clock) -> usize {
        let known = &self.locations[location as usize];
        let written = known.writes.iter().rposition(|&write| before.has(write));
        let mut first = written.map_or(0, |at| at + 1);
        // What a thread reads of a location never goes back: its last read counts.
        let mut seen = [false; MAX_THREADS];
        for &read in known.reads.iter().rev() {
            let event = self.get(read);
            if !seen[read.thread()] && before.has(read) && !event.stuck {
                seen[read.thread()] = true;
                first = first.max(self.position(location, event.source));
            }
        }
        first
    }

    /// Returns whether a write may be placed there: not between an update and what it read.
    pub(crate) fn may_place(&self, location: u32, position: usize) -> bool {
        let writes = &self.locations[location as usize].writes;
        let Some(&next) = writes.get(position) else {
            return true;
        };
        self.get(next).kind != Kind::UpdateWrite
            || self.previous(next).map(|read| read.source)
                != Some(self.source_at(location, position))
    }

    /// Returns whether the sequentially consistent events have an order.
    pub(crate) fn sc_has_order(&self) -> bool {
        let all: Vec<EventId> = self
            .added
            .iter()
            .copied()
            .filter(|&id| self.get(id).is_sc())
            .collect();
        let first = all.first().map(|id| id.thread);
        if all.iter().all(|id| Some(id.thread) == first) {
            return true;
        }
        let order = ScOrder::new(self);
        if all.iter().all(|&id| self.get(id).kind == Kind::Fence) {
            return is_acyclic(&order.of_fences(&all));
        }
        let edges: Vec<Vec<bool>> = all
            .iter()
            .map(|&from| order.successors(from, &all))
            .collect();
        is_acyclic(&edges)
    }
}

/// Returns whether a relation, given by the successors of each, has no cycle.
fn is_acyclic(edges: &[Vec<bool>]) -> bool {
    let mut state = vec![0_u8; edges.len()];
    fn visit(node: usize, edges: &[Vec<bool>], state: &mut [u8]) -> bool {
        state[node] = 1;
        for (next, &linked) in edges[node].iter().enumerate() {
            if linked && (state[next] == 1 || (state[next] == 0 && !visit(next, edges, state))) {
                return false;
            }
        }
        state[node] = 2;
        true
    }
    (0..edges.len()).all(|node| state[node] == 2 || visit(node, edges, &mut state))
}

/// The relation `psc` of a graph, computed event by event.
struct ScOrder<'g> {
    graph: &'g Graph,
    /// The position in coherence order of each access, by thread and index: of a write its
    /// own, of a read that of its source.
    positions: Vec<Vec<u32>>,
}

impl<'g> ScOrder<'g> {
    fn new(graph: &'g Graph) -> Self {
        let mut positions: Vec<Vec<u32>> = graph
            .threads
            .iter()
            .map(|events| vec![0; events.len()])
            .collect();
        for location in &graph.locations {
            for (at, write) in location.writes.iter().enumerate() {
                positions[write.thread()][write.index()] = at as u32 + 1;
            }
        }
        for &id in &graph.added {
            let event = graph.get(id);
            if event.kind.reads()
                && let Source::Write(write) = event.source
            {
                positions[id.thread()][id.index()] = positions[write.thread()][write.index()];
            }
        }
        Self { graph, positions }
    }

    fn hb(&self, from: EventId, to: EventId) -> bool {
        from != to && self.graph.get(to).hb.has(from)
    }

    fn position(&self, id: EventId) -> u32 {
        self.positions[id.thread()][id.index()]
    }

    /// Returns whether one comes before the other by coherence or from-reads, in one step:
    /// the closure under reads-from is [`Self::eco`].
    fn overwritten(&self, from: EventId, to: EventId) -> bool {
        let (a, b) = (self.graph.get(from), self.graph.get(to));
        a.location != NOWHERE
            && a.location == b.location
            && !a.stuck
            && (a.kind.reads() || writes(a))
            && writes(b)
            && self.position(from) < self.position(to)
    }

    /// Returns whether one comes before the other by extended coherence order.
    fn eco(&self, from: EventId, to: EventId) -> bool {
        let (a, b) = (self.graph.get(from), self.graph.get(to));
        if a.location == NOWHERE || a.location != b.location || a.stuck || b.stuck {
            return false;
        }
        let (pa, pb) = (self.position(from), self.position(to));
        match (writes(a), writes(b)) {
            (true, false) if b.kind.reads() => pa <= pb,
            (false, false) if a.kind.reads() && b.kind.reads() => pa < pb,
            _ => self.overwritten(from, to),
        }
    }

    /// Returns whether `from` comes before `to` by `scb`.
    fn scb(&self, from: EventId, to: EventId) -> bool {
        if from == to {
            return false;
        }
        if from.thread == to.thread {
            if from.index < to.index {
                return true;
            }
        } else if self.hb(from, to) {
            let (a, b) = (self.graph.get(from), self.graph.get(to));
            if a.location != NOWHERE && a.location == b.location {
                return true;
            }
            if let (Some(after), Some(before)) =
                (self.next_elsewhere(from), self.last_elsewhere(to))
                && self.hb(after, before)
            {
                return true;
            }
        }
        self.overwritten(from, to)
    }

    /// Returns the first event after it in its thread that is not of the same location.
    fn next_elsewhere(&self, id: EventId) -> Option<EventId> {
        let events = &self.graph.threads[id.thread()];
        let location = events[id.index()].location;
        let elsewhere = |event: &Event| location == NOWHERE || event.location != location;
        let found = events[id.index() + 1..].iter().position(elsewhere)?;
        Some(EventId::new(id.thread(), id.index() + 1 + found))
    }

    /// Returns the last event before it in its thread that is not of the same location.
    fn last_elsewhere(&self, id: EventId) -> Option<EventId> {
        let events = &self.graph.threads[id.thread()];
        let location = events[id.index()].location;
        let elsewhere = |event: &Event| location == NOWHERE || event.location != location;
        let found = events[..id.index()].iter().rposition(elsewhere)?;
        Some(EventId::new(id.thread(), found))
    }

    /// Returns the relation where all are fences: one then comes before another if it
    /// happens before it, or before an access that comes before one, by extended coherence
    /// order, that happens before the other.
    fn of_fences(&self, all: &[EventId]) -> Vec<Vec<bool>> {
        let graph = self.graph;
        // Of the writes and of the reads of each location: the first after each fence, and
        // the last before it.
        let locations = graph.locations.len();
        let mut after = vec![[u32::MAX; 2]; all.len() * locations];
        let mut before = vec![[None; 2]; all.len() * locations];
        for &id in &graph.added {
            let event = graph.get(id);
            let reads = event.kind.reads();
            if event.location == NOWHERE || event.stuck || !(reads || writes(event)) {
                continue;
            }
            let (position, kind) = (self.position(id), usize::from(reads));
            for (at, &fence) in all.iter().enumerate() {
                let at = at * locations + event.location as usize;
                if event.hb.has(fence) {
                    after[at][kind] = after[at][kind].min(position);
                } else if graph.get(fence).hb.has(id) {
                    before[at][kind] = before[at][kind].max(Some(position));
                }
            }
        }
        let by_accesses = |from: usize, to: usize| {
            (0..locations).any(|location| {
                let [write, read] = after[from * locations + location];
                let [last_write, last_read] = before[to * locations + location];
                last_write.is_some_and(|last| write.min(read) < last)
                    || last_read.is_some_and(|last| write <= last || read < last)
            })
        };
        let before = |from: usize, to: usize| {
            from != to && (self.hb(all[from], all[to]) || by_accesses(from, to))
        };
        let all = || 0..all.len();
        all()
            .map(|from| all().map(|to| before(from, to)).collect())
            .collect()
    }

    /// Returns which of `all`, the sequentially consistent events, come after `from`.
    fn successors(&self, from: EventId, all: &[EventId]) -> Vec<bool> {
        let graph = self.graph;
        let is_fence = |id: EventId| graph.get(id).kind == Kind::Fence;
        // What starts a step of `scb`: the event, or after a fence what happens after it.
        let starts: Vec<EventId> = match is_fence(from) {
            false => vec![from],
            true => graph
                .added
                .iter()
                .copied()
                .filter(|&id| id == from || self.hb(from, id))
                .collect(),
        };
        let starts_with = |to: EventId| starts.iter().any(|&start| self.scb(start, to));
        let reached: Vec<EventId> = graph
            .added
            .iter()
            .copied()
            .filter(|&id| starts_with(id))
            .collect();
        // What two accesses put between two fences.
        let by_eco = |to: EventId| {
            starts.iter().filter(|&&start| start != from).any(|&start| {
                graph
                    .added
                    .iter()
                    .any(|&end| self.eco(start, end) && self.hb(end, to))
            })
        };
        all.iter()
            .map(|&to| {
                reached.contains(&to)
                    || (is_fence(to)
                        && (reached.iter().any(|&end| self.hb(end, to))
                            || (is_fence(from) && (self.hb(from, to) || by_eco(to)))))
            })
            .collect()
    }
}

fn writes(event: &Event) -> bool {
    event.kind.writes() || event.kind == Kind::PlainWrite
}
