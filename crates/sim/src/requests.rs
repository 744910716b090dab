//! Requests for one line: on their way to the directory, waiting there, and
//! which of them is next.
//!
//! A release of a ticket lock makes every waiter read the line again, so a
//! line may have as many requests as there are CPUs, again and again. Those on
//! their way are in a heap by the time of their arrival; those that have
//! arrived are in the order of arrival, their cores apart in an array of
//! their own, which is searched for the nearest sixteen at a time. The reads
//! of CPUs that spin are answered here, one after the other as long as nothing
//! else happens anywhere, without an event or a switch for each.

use crate::coherence::{Line, NOBODY, Want};
use crate::engine::Engine;
use crate::event::Kind;
use crate::machine::Arbitration;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::ops::Range;

/// In order of arrival, and then by CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Request {
    arrives: u64,
    cpu: u16,
    want: Want,
    core: u16,
    /// Of a read in a spin: which of that CPU's; it counts while it is the
    /// latest.
    turn: Option<u32>,
}

/// What waits for a line.
#[derive(Default)]
pub(crate) struct Requests {
    coming: BinaryHeap<Reverse<Request>>,
    here: VecDeque<Request>,
    /// The cores of `here`.
    cores: VecDeque<u16>,
}

impl Requests {
    pub(crate) fn is_empty(&self) -> bool {
        self.here.is_empty() && self.coming.is_empty()
    }

    /// Lets those come in that arrive by `now`.
    fn arrive(&mut self, now: u64) {
        while let Some(Reverse(request)) = self.coming.peek()
            && request.arrives <= now
        {
            self.here.push_back(*request);
            self.cores.push_back(request.core);
            self.coming.pop();
        }
    }

    fn take(&mut self, place: usize) -> Option<Request> {
        self.cores.remove(place);
        self.here.remove(place)
    }

    /// The first to have arrived of those from some cores.
    fn first_from(&self, cores: &Range<usize>) -> Option<usize> {
        const LANES: usize = 16;
        let (start, length) = (cores.start as u16, cores.len() as u16);
        let within = |core: &u16| core.wrapping_sub(start) < length;
        let (front, back) = self.cores.as_slices();
        let search = |cores: &[u16]| {
            let whole = cores
                .chunks(LANES)
                .position(|chunk| chunk.iter().fold(false, |any, core| any | within(core)))?;
            let first = whole * LANES;
            Some(first + cores[first..].iter().position(within)?)
        };
        search(front).or_else(|| Some(front.len() + search(back)?))
    }
}

impl Engine {
    /// Puts a request of a CPU that asks at `asks` on its way. Of a spin it
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
        line.requests.borrow_mut().coming.push(Reverse(Request {
            arrives,
            cpu: cpu as u16,
            want,
            core: core as u16,
            turn,
        }));
        self.arm(index, arrives.max(line.free_at.get()));
    }

    /// Sees to it that the line is looked at no later than `time`.
    fn arm(&self, index: usize, time: u64) {
        let line = &self.lines[index];
        if line.event.get().0 > time {
            let seq = self.queue.push(time, Kind::Line, index);
            line.event.set((time, seq));
        }
    }

    /// The time of a line's event has come.
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
            // Nothing happens anywhere before: no need to queue for it.
            if next >= self.queue.horizon() {
                return self.arm(index, next);
            }
            self.events.set(self.events.get() + 1);
            now = next;
        }
    }

    /// Grants a line to one request, if it is free; returns when to look
    /// again.
    fn serve(&self, index: usize, line: &Line, now: u64) -> u64 {
        if line.free_at.get() > now {
            return line.free_at.get();
        }
        let mut requests = line.requests.borrow_mut();
        requests.arrive(now);
        let Some(place) = self.arbitrate(line, &requests) else {
            return requests
                .coming
                .peek()
                .map_or(u64::MAX, |Reverse(first)| first.arrives);
        };
        let Some(request) = requests.take(place) else {
            return u64::MAX;
        };
        drop(requests);
        let (cpu, core) = (request.cpu as usize, request.core as usize);
        match request.turn {
            // Made by a CPU that has been descheduled since.
            Some(turn) if self.cpus[cpu].spin.turn.get() != turn => return now,
            // A sibling thread has fetched it meanwhile.
            Some(_) if line.readable(core, now) => {
                self.spin_read(index, cpu, now + self.costs.l1);
                return now;
            }
            Some(_) => {
                let done = self.grant(index, core, cpu, request.want, now);
                self.spin_read(index, cpu, done);
            }
            None => {
                let done = self.grant(index, core, cpu, request.want, now);
                if request.want == Want::Drain {
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

    fn arbitrate(&self, line: &Line, requests: &Requests) -> Option<usize> {
        match requests.here.len() {
            0 => return None,
            1 => return Some(0),
            _ => {}
        }
        match self.arbitration {
            Arbitration::Random => Some(self.rng.below(requests.here.len())),
            Arbitration::Fifo => Some(0),
            Arbitration::Nearest => {
                let owner = match line.exclusive.get() {
                    NOBODY => line.owner.get(),
                    owner => owner,
                };
                if owner == NOBODY {
                    return Some(0);
                }
                let owner = owner as usize;
                [
                    owner..owner + 1,
                    self.topology.cluster_range(owner),
                    self.topology.socket_range(owner),
                ]
                .iter()
                .find_map(|cores| requests.first_from(cores))
                .or(Some(0))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_to_arrive_of_those_near_is_found() {
        let mut requests = Requests::default();
        for (cpu, arrives) in (0..100u16).rev().zip(1..) {
            requests.coming.push(Reverse(Request {
                arrives,
                cpu,
                want: Want::Shared,
                core: cpu,
                turn: None,
            }));
        }
        requests.arrive(90);
        assert_eq!(requests.here.len(), 90);
        assert_eq!(requests.first_from(&(40..60)), Some(40));
        assert_eq!(requests.take(40).unwrap().cpu, 59);
        assert_eq!(requests.first_from(&(40..60)), Some(40));
        assert_eq!(requests.take(40).unwrap().cpu, 58);
        assert_eq!(requests.first_from(&(0..5)), None);
        requests.arrive(100);
        assert_eq!(requests.first_from(&(0..5)), Some(93));
    }
}
