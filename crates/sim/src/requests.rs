//! Requests for one line: in transit to the directory, waiting there, and
//! the choice of the next one.
//!
//! A release of a ticket lock makes every waiter read the line again, so a
//! line may have as many requests as there are CPUs, again and again. Those in
//! transit are sorted by arrival, many at a time; those that have arrived are in
//! that order, reads and writes apart.
//! Where `directory.writes_first` says so, a write goes before the reads that
//! wait with it, so that a release is not held up by all the waiters. The reads
//! of CPUs that spin are answered here, one after the other as long as no
//! other event is due, without an event or a switch for each.

use crate::coherence::{Line, NOBODY, Want};
use crate::engine::Engine;
use crate::event::Kind;
use crate::machine::Arbitration;
use std::collections::VecDeque;
use std::ops::Range;

/// One request as a number, so that sorting compares nothing else: the time
/// when it arrives, the CPU, its core, what it wants, and for a read in a spin
/// which of that CPU's it is. Ordered by arrival, and then by CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Request(u128);

impl Request {
    const WANTS: [Want; 5] = [
        Want::Shared,
        Want::Exclusive,
        Want::Locked,
        Want::Drain,
        Want::Far,
    ];

    fn new(arrives: u64, cpu: usize, core: usize, want: Want, turn: Option<u32>) -> Self {
        let turn = turn.map_or(0, |turn| 1 | u64::from(turn) << 1);
        let low = (cpu as u64) << 52 | (core as u64) << 40 | (want as u64) << 36 | turn;
        Self(u128::from(arrives) << 64 | u128::from(low))
    }

    fn arrives(self) -> u64 {
        (self.0 >> 64) as u64
    }

    fn cpu(self) -> usize {
        (self.0 as u64 >> 52) as usize
    }

    fn core(self) -> u16 {
        (self.0 as u64 >> 40) as u16 & 0xfff
    }

    fn want(self) -> Want {
        Self::WANTS[(self.0 as u64 >> 36) as usize & 0xf]
    }

    /// For a read in a spin, which of that CPU's it is; it is valid while it is
    /// the latest.
    fn turn(self) -> Option<u32> {
        let low = self.0 as u64;
        (low & 1 == 1).then_some((low >> 1) as u32)
    }
}

/// Requests of one kind, in transit or arrived. A release makes all waiters send
/// one at once, so that most are added many at a time: they are sorted when the
/// first of them is due.
#[derive(Default)]
struct Side {
    /// The earliest first.
    sorted: VecDeque<Request>,
    /// Those that have been sent since it was sorted, and the earliest of them.
    fresh: Vec<Request>,
    earliest_fresh: Option<Request>,
    /// The latest time of a choice. What is sent after it comes behind those
    /// that had arrived, even if it arrives at that very time.
    until: u64,
}

impl Side {
    fn is_empty(&self) -> bool {
        self.sorted.is_empty() && self.fresh.is_empty()
    }

    fn push(&mut self, request: Request) {
        self.fresh.push(request);
        if self.earliest_fresh.is_none_or(|first| request < first) {
            self.earliest_fresh = Some(request);
        }
    }

    /// The time when the next one arrives or has arrived.
    fn next(&self) -> Option<u64> {
        let first = match (self.sorted.front(), &self.earliest_fresh) {
            (Some(sorted), Some(fresh)) => sorted.min(fresh),
            (sorted, fresh) => sorted.or(fresh.as_ref())?,
        };
        Some(first.arrives())
    }

    /// Sorts what has arrived by `now`, for the other methods.
    fn arrive(&mut self, now: u64) {
        let until = std::mem::replace(&mut self.until, now);
        if self
            .earliest_fresh
            .is_none_or(|fresh| fresh.arrives() > now)
        {
            return;
        }
        self.earliest_fresh = None;
        self.fresh.sort_unstable();
        // Few of an earlier release are in transit when those of the next are
        // due: most go to the end.
        for request in self.fresh.drain(..) {
            let before = |other: &Request| *other < request || other.arrives() <= until;
            if self.sorted.back().is_none_or(before) {
                self.sorted.push_back(request);
            } else {
                let place = self.sorted.partition_point(before);
                self.sorted.insert(place, request);
            }
        }
    }

    /// Whether one has arrived by `now`.
    fn has_arrived(&self, now: u64) -> bool {
        let first = self.sorted.front();
        first.is_some_and(|request| request.arrives() <= now)
    }

    /// The first of those from some cores that have arrived by `now`.
    fn first_from(&self, cores: &Range<usize>, now: u64) -> Option<usize> {
        let (start, length) = (cores.start as u16, cores.len() as u16);
        self.sorted
            .iter()
            .take_while(|request| request.arrives() <= now)
            .position(|request| request.core().wrapping_sub(start) < length)
    }

    /// How many have arrived by `now`.
    fn arrived(&self, now: u64) -> usize {
        self.sorted
            .partition_point(|request| request.arrives() <= now)
    }
}

/// The requests for a line.
#[derive(Default)]
pub(crate) struct Requests {
    reads: Side,
    writes: Side,
    /// Those that have arrived by then are served in the current round.
    round: u64,
}

/// A request that has arrived: whether it writes, and its place in the order.
type Pick = (bool, usize);

impl Requests {
    pub(crate) fn is_empty(&self) -> bool {
        self.reads.is_empty() && self.writes.is_empty()
    }

    fn push(&mut self, request: Request) {
        match request.want() {
            Want::Shared => self.reads.push(request),
            _ => self.writes.push(request),
        }
    }

    fn arrive(&mut self, now: u64) {
        self.reads.arrive(now);
        self.writes.arrive(now);
    }

    /// The time when the next one arrives or has arrived.
    fn next(&self) -> Option<u64> {
        match (self.reads.next(), self.writes.next()) {
            (Some(read), Some(write)) => Some(read.min(write)),
            (read, write) => read.or(write),
        }
    }

    fn take(&mut self, (write, place): Pick) -> Option<Request> {
        let side = if write {
            &mut self.writes
        } else {
            &mut self.reads
        };
        side.sorted.remove(place)
    }

    /// The earlier of a read and a write.
    fn earlier(&self, read: Option<usize>, write: Option<usize>) -> Option<Pick> {
        match (read, write) {
            (None, None) => None,
            (Some(read), None) => Some((false, read)),
            (None, Some(write)) => Some((true, write)),
            (Some(read), Some(write)) => {
                if self.reads.sorted[read] < self.writes.sorted[write] {
                    Some((false, read))
                } else {
                    Some((true, write))
                }
            }
        }
    }

    /// Begins a round over all that have arrived when the previous one is over.
    fn begin_round(&mut self, now: u64) {
        let round = self.round;
        if !self.reads.has_arrived(round) && !self.writes.has_arrived(round) {
            self.round = now;
        }
    }

    /// The first to have arrived; of writes only, if `writes_only`.
    fn first(&self, now: u64, writes_only: bool) -> Option<Pick> {
        let first = |side: &Side| side.has_arrived(now).then_some(0);
        let read = if writes_only {
            None
        } else {
            first(&self.reads)
        };
        self.earlier(read, first(&self.writes))
    }

    /// The first of the round of those from some cores.
    fn first_from(&self, cores: &Range<usize>, writes_only: bool) -> Option<Pick> {
        let read = if writes_only {
            None
        } else {
            self.reads.first_from(cores, self.round)
        };
        self.earlier(read, self.writes.first_from(cores, self.round))
    }
}

impl Engine {
    /// Sends a request of a CPU at time `asks`. In a spin it
    /// has a `turn`.
    pub(crate) fn request(
        &self,
        index: usize,
        cpu: usize,
        want: Want,
        asks: u64,
        turn: Option<u32>,
    ) {
        let line = &self.lines[index];
        let core = self.cpus[cpu].core.get();
        let arrives = asks + self.travel(self.distant(line, core, want));
        let request = Request::new(arrives, cpu, core, want, turn);
        line.requests.borrow_mut().push(request);
        self.arm(index, arrives.max(line.free_at.get()));
    }

    /// Ensures that the line is served no later than `time`.
    fn arm(&self, index: usize, time: u64) {
        let line = &self.lines[index];
        if line.event.get().0 > time {
            let seq = self.queue.push(time, Kind::Line, index);
            line.event.set((time, seq));
        }
    }

    /// Handles the event of a line.
    pub(crate) fn line_free(&self, index: usize, seq: u64, now: u64) {
        let line = &self.lines[index];
        if line.event.get().1 != seq {
            return;
        }
        line.event.set((u64::MAX, 0));
        let mut now = now;
        loop {
            let next = self.serve(index, line, now);
            if next == u64::MAX {
                return;
            }
            // No other event happens before: there is no need to queue it.
            if next >= self.queue.horizon() {
                return self.arm(index, next);
            }
            self.events.set(self.events.get() + 1);
            now = next;
        }
    }

    /// Grants a line to one request, if it is free; returns when to try
    /// again.
    fn serve(&self, index: usize, line: &Line, now: u64) -> u64 {
        if line.free_at.get() > now {
            line.claimed.set(true);
            return line.free_at.get();
        }
        let mut requests = line.requests.borrow_mut();
        requests.arrive(now);
        let Some(place) = self.arbitrate(line, &mut requests, now) else {
            return requests.next().unwrap_or(u64::MAX);
        };
        let Some(request) = requests.take(place) else {
            return u64::MAX;
        };
        drop(requests);
        let (cpu, core) = (request.cpu(), usize::from(request.core()));
        match request.turn() {
            // The CPU that made it has been descheduled since.
            Some(turn) if self.cpus[cpu].spin.turn.get() != turn => return now,
            // A sibling thread has fetched it meanwhile.
            Some(_) if line.readable(core, now) => {
                self.spin_read(index, cpu, now + self.costs.l1);
                return now;
            }
            Some(_) => {
                let done = self.grant(index, core, cpu, request.want(), now);
                self.spin_read(index, cpu, done);
            }
            None => {
                let done = self.grant(index, core, cpu, request.want(), now);
                if request.want() == Want::Drain {
                    self.comes(cpu, index, done);
                    self.queue.push(done, Kind::Drain, cpu);
                } else {
                    self.schedule(cpu, done);
                }
            }
        }
        if line.requests.borrow().is_empty() {
            return u64::MAX;
        }
        line.free_at.get().max(now + 1)
    }

    fn arbitrate(&self, line: &Line, requests: &mut Requests, now: u64) -> Option<Pick> {
        let both = requests.reads.has_arrived(now) && requests.writes.has_arrived(now);
        let writes_only =
            both && self.costs.writes_first > 0 && self.rng.below(1024) < self.costs.writes_first;
        let (reads, writes) = (&requests.reads, &requests.writes);
        match self.arbitration {
            Arbitration::Fifo => requests.first(now, writes_only),
            _ if reads.arrived(now) + writes.arrived(now) <= 1 => requests.first(now, false),
            Arbitration::Random if writes_only => Some((true, self.rng.below(writes.arrived(now)))),
            Arbitration::Random => {
                let (reads, writes) = (reads.arrived(now), writes.arrived(now));
                let place = self.rng.below(reads + writes);
                Some(match place.checked_sub(reads) {
                    None => (false, place),
                    Some(place) => (true, place),
                })
            }
            Arbitration::Nearest => {
                let owner = match line.exclusive.get() {
                    NOBODY => line.owner.get(),
                    owner => owner,
                };
                if owner == NOBODY {
                    return requests.first(now, writes_only);
                }
                let owner = owner as usize;
                requests.begin_round(now);
                let writes_only = writes_only && requests.writes.has_arrived(requests.round);
                [
                    self.topology.cluster_range(owner),
                    self.topology.socket_range(owner),
                ]
                .iter()
                .find_map(|cores| requests.first_from(cores, writes_only))
                .or_else(|| requests.first(now, writes_only))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_as_it_was_made() {
        for want in Request::WANTS {
            for turn in [None, Some(0), Some(u32::MAX)] {
                let request = Request::new(u64::MAX - 1, 1023, 511, want, turn);
                assert_eq!((request.arrives(), request.cpu()), (u64::MAX - 1, 1023));
                assert_eq!((request.core(), request.want()), (511, want));
                assert_eq!(request.turn(), turn);
            }
        }
        let early = Request::new(1, 9, 9, Want::Far, Some(9));
        assert!(early < Request::new(2, 0, 0, Want::Shared, None));
        assert!(early > Request::new(1, 8, 0, Want::Shared, None));
    }

    #[test]
    fn requests_arrive_in_order_however_many_are_sent_at_once() {
        let rng = crate::rng::Rng::new(1);
        let mut side = Side::default();
        let mut expected = std::collections::BTreeSet::new();
        let mut now = 0;
        for _ in 0..2_000 {
            for _ in 0..rng.below(3) * rng.below(40) {
                let (arrives, cpu) = (now + rng.below(500) as u64, rng.below(1024));
                let request = Request::new(arrives, cpu, cpu / 2, Want::Shared, None);
                if expected.insert(request) {
                    side.push(request);
                }
            }
            now += rng.below(300) as u64;
            side.arrive(now);
            let due = expected.iter().take_while(|due| due.arrives() <= now);
            assert_eq!(side.arrived(now), due.count());
            while side.has_arrived(now) {
                assert_eq!(expected.pop_first(), side.sorted.pop_front());
            }
            let next = expected.first().map(|request| request.arrives());
            assert!(next.is_none_or(|next| next > now));
            assert_eq!(side.next(), next);
            assert_eq!(side.is_empty(), expected.is_empty());
        }
    }

    #[test]
    fn the_first_to_arrive_of_those_near_is_found() {
        let mut requests = Requests::default();
        for (cpu, arrives) in (0..100).rev().zip(1..) {
            requests.push(Request::new(arrives, cpu, cpu, Want::Shared, Some(7)));
        }
        requests.arrive(90);
        assert_eq!(requests.reads.arrived(90), 90);
        requests.begin_round(90);
        let from = |requests: &Requests, cores| requests.first_from(&cores, false);
        assert_eq!(from(&requests, 40..60), Some((false, 40)));
        assert_eq!(requests.take((false, 40)).unwrap().cpu(), 59);
        assert_eq!(from(&requests, 40..60), Some((false, 40)));
        assert_eq!(requests.take((false, 40)).unwrap().cpu(), 58);
        assert_eq!(from(&requests, 0..5), None);
        // Requests that arrive now wait until this round is over.
        requests.arrive(100);
        requests.begin_round(100);
        assert_eq!(from(&requests, 0..5), None);
        for _ in 0..88 {
            requests.take((false, 0)).unwrap();
        }
        requests.begin_round(100);
        assert_eq!(from(&requests, 0..5), Some((false, 5)));
        assert_eq!(requests.first_from(&(0..5), true), None);
        assert_eq!(requests.first(100, true), None);
    }
}
