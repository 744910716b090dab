//! Requests for one line: in transit to the directory, waiting there, in the
//! order of their arrival.
//!
//! A release of a ticket lock makes every waiter read the line again, so a
//! line may have as many requests as there are CPUs, again and again. Those in
//! transit are sorted by arrival, many at a time; those that have arrived are in
//! that order, reads and writes apart. Which is served is the directory's choice.

use std::collections::VecDeque;
use std::ops::Range;

/// The kind of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Want {
    /// A copy to read.
    Shared,
    /// The only copy, to write.
    Exclusive,
    /// The only copy, for a read-modify-write that locks the line.
    Locked,
    /// The only copy, for an entry of the CPU's store buffer.
    Drain,
    /// A read-modify-write at the line's home; no core has a copy afterwards.
    Far,
    /// A copy to read, which no CPU waits for yet.
    Ahead,
    /// The only copy, which no CPU waits for yet.
    AheadToWrite,
}

impl Want {
    /// Returns whether a copy to read is enough.
    #[inline]
    pub(crate) fn is_read(self) -> bool {
        matches!(self, Self::Shared | Self::Ahead)
    }
}

/// One request as a number, so that sorting compares nothing else: the time
/// when it arrives, the CPU, its core, what it wants, and for a read in a spin
/// which of that CPU's it is. Ordered by arrival, and then by CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Request(u128);

impl Request {
    const WANTS: [Want; 7] = [
        Want::Shared,
        Want::Exclusive,
        Want::Locked,
        Want::Drain,
        Want::Far,
        Want::Ahead,
        Want::AheadToWrite,
    ];

    pub(crate) fn new(
        arrives: u64,
        cpu: usize,
        core: usize,
        want: Want,
        turn: Option<u32>,
    ) -> Self {
        let turn = turn.map_or(0, |turn| 1 | u64::from(turn) << 1);
        let low = (cpu as u64) << 52 | (core as u64) << 40 | (want as u64) << 36 | turn;
        Self(u128::from(arrives) << 64 | u128::from(low))
    }

    pub(crate) fn arrives(self) -> u64 {
        (self.0 >> 64) as u64
    }

    pub(crate) fn cpu(self) -> usize {
        (self.0 as u64 >> 52) as usize
    }

    pub(crate) fn core(self) -> u16 {
        (self.0 as u64 >> 40) as u16 & 0xfff
    }

    pub(crate) fn want(self) -> Want {
        Self::WANTS[(self.0 as u64 >> 36) as usize & 0xf]
    }

    /// Returns the same request of a CPU that waits for it.
    fn awaited(self) -> Self {
        let want = match self.want().is_read() {
            true => Want::Shared,
            false => Want::Exclusive,
        };
        let low = self.0 as u64 & !(0xf << 36) | (want as u64) << 36;
        Self(self.0 >> 64 << 64 | u128::from(low))
    }

    /// Returns, for a read in a spin, which of that CPU's it is; it is valid while it is
    /// the latest.
    pub(crate) fn turn(self) -> Option<u32> {
        let low = self.0 as u64;
        (low & 1 == 1).then_some((low >> 1) as u32)
    }
}

/// Requests of one kind, in transit or arrived. A release makes all waiters send
/// one at once, so that most are added many at a time: they are sorted when the
/// first of them is due.
#[derive(Default)]
pub(crate) struct Side {
    /// The earliest first.
    sorted: VecDeque<Request>,
    /// Requests that have been sent since it was sorted, and the earliest of them.
    fresh: Vec<Request>,
    earliest_fresh: Option<Request>,
    /// The latest time of a choice. What is sent after it comes behind those
    /// that had arrived, even if it arrives at that very time.
    until: u64,
}

impl Side {
    pub(crate) fn is_empty(&self) -> bool {
        self.sorted.is_empty() && self.fresh.is_empty()
    }

    pub(crate) fn push(&mut self, request: Request) {
        self.fresh.push(request);
        if self.earliest_fresh.is_none_or(|first| request < first) {
            self.earliest_fresh = Some(request);
        }
    }

    /// Returns the time when the next one arrives or has arrived.
    pub(crate) fn next(&self) -> Option<u64> {
        let first = match (self.sorted.front(), &self.earliest_fresh) {
            (Some(sorted), Some(fresh)) => sorted.min(fresh),
            (sorted, fresh) => sorted.or(fresh.as_ref())?,
        };
        Some(first.arrives())
    }

    /// Sorts what has arrived by `now`, for the other methods.
    pub(crate) fn arrive(&mut self, now: u64) {
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

    /// Makes a CPU wait for what it has asked for ahead; returns whether it has.
    fn await_ahead(&mut self, cpu: usize) -> bool {
        let ahead = |one: &&mut Request| {
            one.cpu() == cpu && matches!(one.want(), Want::Ahead | Want::AheadToWrite)
        };
        let Some(one) = (self.sorted.iter_mut().chain(&mut self.fresh)).find(ahead) else {
            return false;
        };
        let before = std::mem::replace(one, one.awaited());
        if self.earliest_fresh == Some(before) {
            self.earliest_fresh = Some(before.awaited());
        }
        true
    }

    /// Returns whether one has arrived by `now`.
    pub(crate) fn has_arrived(&self, now: u64) -> bool {
        let first = self.sorted.front();
        first.is_some_and(|request| request.arrives() <= now)
    }

    /// Returns the first of those from some cores that have arrived by `now`.
    pub(crate) fn first_from(&self, cores: &Range<usize>, now: u64) -> Option<usize> {
        let (start, length) = (cores.start as u16, cores.len() as u16);
        self.sorted
            .iter()
            .take_while(|request| request.arrives() <= now)
            .position(|request| request.core().wrapping_sub(start) < length)
    }

    /// Returns how many have arrived by `now`.
    pub(crate) fn arrived(&self, now: u64) -> usize {
        self.sorted
            .partition_point(|request| request.arrives() <= now)
    }
}

/// The requests for a line.
#[derive(Default)]
pub(crate) struct Requests {
    pub(crate) reads: Side,
    pub(crate) writes: Side,
    /// The time by which a request must have arrived to be served in the current round.
    pub(crate) round: u64,
}

/// A request that has arrived: whether it writes, and its place in the order.
pub(crate) type Pick = (bool, usize);

impl Requests {
    pub(crate) fn is_empty(&self) -> bool {
        self.reads.is_empty() && self.writes.is_empty()
    }

    pub(crate) fn push(&mut self, request: Request) {
        match request.want().is_read() {
            true => self.reads.push(request),
            false => self.writes.push(request),
        }
    }

    pub(crate) fn arrive(&mut self, now: u64) {
        self.reads.arrive(now);
        self.writes.arrive(now);
    }

    /// Returns the time when the next one arrives or has arrived.
    pub(crate) fn next(&self) -> Option<u64> {
        match (self.reads.next(), self.writes.next()) {
            (Some(read), Some(write)) => Some(read.min(write)),
            (read, write) => read.or(write),
        }
    }

    pub(crate) fn take(&mut self, (write, place): Pick) -> Option<Request> {
        let side = if write {
            &mut self.writes
        } else {
            &mut self.reads
        };
        side.sorted.remove(place)
    }

    /// Returns the earlier of a read and a write.
    pub(crate) fn earlier(&self, read: Option<usize>, write: Option<usize>) -> Option<Pick> {
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

    /// Makes a CPU wait for what it has asked for ahead; returns whether it has.
    pub(crate) fn await_ahead(&mut self, cpu: usize) -> bool {
        self.reads.await_ahead(cpu) || self.writes.await_ahead(cpu)
    }

    /// Takes a write of another CPU of a core, which has been sent by `until`.
    pub(crate) fn take_write_of(&mut self, core: usize, until: u64) -> Option<Request> {
        let place = self
            .writes
            .sorted
            .iter()
            .take_while(|request| request.arrives() <= until)
            .position(|request| {
                usize::from(request.core()) == core && request.want() != Want::Far
            })?;
        self.writes.sorted.remove(place)
    }

    /// Begins a round over all that have arrived when the previous one is over.
    pub(crate) fn begin_round(&mut self, now: u64) {
        let round = self.round;
        if !self.reads.has_arrived(round) && !self.writes.has_arrived(round) {
            self.round = now;
        }
    }

    /// Returns the first to have arrived; of writes only, if `writes_only`.
    pub(crate) fn first(&self, now: u64, writes_only: bool) -> Option<Pick> {
        let first = |side: &Side| side.has_arrived(now).then_some(0);
        let read = if writes_only {
            None
        } else {
            first(&self.reads)
        };
        self.earlier(read, first(&self.writes))
    }

    /// Returns the first of the round of those from some cores.
    pub(crate) fn first_from(&self, cores: &Range<usize>, writes_only: bool) -> Option<Pick> {
        let read = if writes_only {
            None
        } else {
            self.reads.first_from(cores, self.round)
        };
        self.earlier(read, self.writes.first_from(cores, self.round))
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
