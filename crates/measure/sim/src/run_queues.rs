//! The run queues of an operating system: which ready thread a CPU runs next.
//!
//! Each hardware thread has a queue of its own, as on Linux since 6.6, whose rules these
//! are (earliest eligible virtual deadline first, all threads of one weight): a thread is
//! eligible while it has run no more than the mean of its queue; of those the one with the
//! earliest deadline runs, and it keeps its CPU until its slice is used up or it is no
//! longer eligible when another wakes. Who sleeps and is not eligible stays in its queue
//! until the others have caught up (delayed dequeue). A woken thread goes to an idle CPU that shares a
//! cache with its last one, and else waits at its last one or at its waker's. A CPU that
//! runs out of threads takes one that waits elsewhere if it is usually idle for longer than
//! moving a thread is thought to cost; one that is idle at the system's tick takes one in any case. Where there are small cores, a woken thread goes to
//! an idle big one first, and threads start where the least work is for what a core can do.
//! Sources: `kernel/sched/fair.c` of Linux 6.18 (`pick_eevdf`, `place_entity`,
//! `select_idle_sibling`, `select_idle_capacity`, `sched_balance_newidle`).
//!
//! It holds no event and no clock: `scheduler` says what time it is.

use crate::distance::Distance;
use crate::latency_rule::LatencyRule;
use crate::topology::Topology;
use std::cell::{Cell, RefCell};

/// Describes what a queue knows of a thread. Times are cycles of the machine's clock.
#[derive(Default)]
struct Entity {
    /// Says how long it has run, as its queue counts.
    ran: Cell<i64>,
    /// The time at which its slice ends, in the same count.
    deadline: Cell<i64>,
    /// Says how long it had run when it was given its CPU.
    began: Cell<i64>,
    /// The time by which it had run less than the mean of its queue when it left that.
    lag: Cell<i64>,
    /// The time at which it left its CPU the last time.
    left: Cell<u64>,
    /// The queue in which it sleeps, until the others have caught up.
    sleeps_in: Cell<Option<usize>>,
}

/// The queue of one hardware thread.
#[derive(Default)]
struct Queue {
    waiting: RefCell<Vec<usize>>,
    /// Threads that sleep and have run more than the mean.
    asleep: RefCell<Vec<usize>>,
    running: Cell<Option<usize>>,
    /// The time until which what runs has been charged.
    charged: Cell<u64>,
    /// The least that a thread of it has run, which never falls.
    floor: Cell<i64>,
    /// The thread that yields, which is not the next.
    skipped: Cell<Option<usize>>,
    /// The time since which nothing runs, and the mean of such times.
    idle_since: Cell<Option<u64>>,
    mean_idle: Cell<u64>,
}

/// The queues of all hardware threads, in the order of the scheduler's.
pub(crate) struct RunQueues {
    queues: Box<[Queue]>,
    entities: Box<[Entity]>,
    slice: i64,
    /// The rule of older systems, if this is one.
    older: Option<LatencyRule>,
    /// The time from one look whether a slice is over to the next, by the rule of older
    /// systems.
    tick: u64,
    /// The time for which the cache of a CPU is thought to be warm for a thread that
    /// ran there. A CPU that is idle for less on average does not look elsewhere for a thread
    /// when it runs out of them: before Linux 5.16 by this figure, and in 6.17 and 6.18 because a look
    /// in vain makes the next one less likely, up to it (commit 155213a2aed4).
    warm: u64,
    /// The core of each hardware thread.
    cores: Box<[usize]>,
    /// The factor by which work takes longer there than on a big core, in 1024ths.
    slowness: Box<[u64]>,
}

impl RunQueues {
    /// Makes empty queues for this many threads on these hardware threads.
    pub(crate) fn new(
        threads: usize,
        hardware: &[usize],
        topology: &Topology,
        [slice, warm, small, latency, tick]: [u64; 5],
    ) -> Self {
        let core = |&id: &usize| id / topology.threads_per_core;
        let slowness = |id: &usize| match topology.is_small(core(id)) {
            true => small,
            false => 1024,
        };
        let queue = |_: &usize| Queue {
            mean_idle: Cell::new(2 * warm),
            ..Queue::default()
        };
        Self {
            queues: hardware.iter().map(queue).collect(),
            entities: (0..threads).map(|_| Entity::default()).collect(),
            slice: slice.max(1) as i64,
            older: LatencyRule::new(latency),
            tick: tick.max(1),
            warm,
            cores: hardware.iter().map(core).collect(),
            slowness: hardware.iter().map(slowness).collect(),
        }
    }

    /// Returns whether a thread waits for this hardware thread.
    pub(crate) fn waits(&self, place: usize) -> bool {
        !self.queues[place].waiting.borrow().is_empty()
    }

    /// Returns the threads that want this hardware thread, the running one too.
    fn length(&self, place: usize) -> usize {
        let queue = &self.queues[place];
        queue.waiting.borrow().len() + usize::from(queue.running.get().is_some())
    }

    /// Charges the running thread for its time until `now`.
    fn charge(&self, place: usize, now: u64) {
        let queue = &self.queues[place];
        if let Some(who) = queue.running.get() {
            let ran = &self.entities[who].ran;
            ran.set(ran.get() + now.saturating_sub(queue.charged.get()) as i64);
        }
        queue.charged.set(now.max(queue.charged.get()));
        if self.older.is_some() {
            let waiting = queue.waiting.borrow();
            let all = waiting.iter().copied().chain(queue.running.get());
            let least = all.map(|who| self.entities[who].ran.get()).min();
            queue
                .floor
                .set(queue.floor.get().max(least.unwrap_or(i64::MIN)));
        }
    }

    /// Returns the mean of what the threads of a queue have run; 0 of none.
    fn mean(&self, place: usize) -> i64 {
        let queue = &self.queues[place];
        let (waiting, asleep) = (queue.waiting.borrow(), queue.asleep.borrow());
        let all = waiting.iter().chain(asleep.iter()).copied();
        let all = all.chain(queue.running.get());
        let (count, sum) = all.fold((0_i64, 0_i128), |(count, sum), who| {
            (count + 1, sum + i128::from(self.entities[who].ran.get()))
        });
        (sum / i128::from(count.max(1))) as i64
    }

    fn eligible(&self, who: usize, mean: i64) -> bool {
        self.entities[who].ran.get() <= mean
    }

    /// Returns the eligible thread that waits with the earliest deadline.
    fn first(&self, place: usize, mean: i64) -> Option<usize> {
        let waiting = self.queues[place].waiting.borrow();
        if self.older.is_some() {
            let skipped = self.queues[place].skipped.take();
            let others = waiting.iter().copied().filter(|who| Some(*who) != skipped);
            let least = others.min_by_key(|&who| self.entities[who].ran.get());
            return least.or(skipped.filter(|who| waiting.contains(who)));
        }
        let eligible = waiting
            .iter()
            .copied()
            .filter(|&who| self.eligible(who, mean));
        eligible.min_by_key(|&who| self.entities[who].deadline.get())
    }

    /// Adds a thread to a queue: where it was if it slept there, or as far from the mean as
    /// when it left its queue.
    pub(crate) fn add(&self, place: usize, who: usize, now: u64) {
        self.charge(place, now);
        let entity = &self.entities[who];
        if let Some(older) = self.older {
            // Its count is its last queue's.
            let floor = self.queues[place].floor.get();
            let last = entity
                .sleeps_in
                .take()
                .map(|last| self.queues[last].floor.get());
            let ran = entity.ran.get() - last.unwrap_or(floor) + floor;
            entity.ran.set(older.placed(ran, floor));
            return self.queues[place].waiting.borrow_mut().push(who);
        }
        if let Some(last) = entity.sleeps_in.take() {
            let mean = self.mean(last);
            let mut asleep = self.queues[last].asleep.borrow_mut();
            asleep.retain(|&other| other != who);
            entity.lag.set((mean - entity.ran.get()).min(0));
            if last == place && entity.lag.get() < 0 {
                return self.queues[place].waiting.borrow_mut().push(who);
            }
        }
        let mut lag = entity.lag.get();
        let others = self.length(place) + self.queues[place].asleep.borrow().len();
        if others > 0 {
            // It moves the mean by which it is placed.
            lag += lag / others as i64;
        }
        let ran = self.mean(place) - lag;
        entity.ran.set(ran);
        entity.deadline.set(ran + self.slice);
        self.queues[place].waiting.borrow_mut().push(who);
    }

    /// Lets a thread have run as much as one that is started when the others of its queue have
    /// already slept.
    pub(crate) fn start_after_others(&self, place: usize, who: usize) {
        if let Some(older) = self.older {
            let waiting = self.queues[place].waiting.borrow();
            let others = waiting.iter().map(|&other| self.entities[other].ran.get());
            let last = others.max().unwrap_or(0);
            self.entities[who].ran.set(older.started(last));
        }
    }

    /// Lets those go who sleep in a queue and have run no more than its mean.
    fn let_go(&self, place: usize) {
        let queue = &self.queues[place];
        loop {
            let mean = self.mean(place);
            let mut asleep = queue.asleep.borrow_mut();
            let Some(at) = asleep.iter().position(|&who| self.eligible(who, mean)) else {
                return;
            };
            let entity = &self.entities[asleep.swap_remove(at)];
            entity.sleeps_in.set(None);
            entity.lag.set(0);
        }
    }

    /// Takes a thread that waits out of its queue, and notes by how much it is behind.
    fn remove(&self, place: usize, who: usize) {
        if self.older.is_some() {
            self.entities[who].sleeps_in.set(Some(place));
        }
        let lag = self.mean(place) - self.entities[who].ran.get();
        let most = 2 * self.slice;
        self.entities[who].lag.set(lag.clamp(-most, most));
        self.queues[place]
            .waiting
            .borrow_mut()
            .retain(|&other| other != who);
    }

    /// Gives a hardware thread that has run out of threads to the first of its queue, or to one that
    /// waits elsewhere. Returns the thread.
    pub(crate) fn next(&self, place: usize, topology: &Topology, now: u64) -> Option<usize> {
        let queue = &self.queues[place];
        let looks = queue.mean_idle.get() >= self.warm;
        let next = self.find(place, topology, now, looks);
        if next.is_none() && queue.idle_since.get().is_none() {
            queue.idle_since.set(Some(now));
        }
        next
    }

    /// Does the same at the system's tick for one that is idle.
    pub(crate) fn next_at_tick(
        &self,
        place: usize,
        topology: &Topology,
        now: u64,
    ) -> Option<usize> {
        self.find(place, topology, now, true)
    }

    fn find(&self, place: usize, topology: &Topology, now: u64, looks: bool) -> Option<usize> {
        self.let_go(place);
        let who = match self.first(place, self.mean(place)) {
            Some(who) => who,
            None if looks => self.steal(place, topology, now)?,
            None => return None,
        };
        let queue = &self.queues[place];
        queue.waiting.borrow_mut().retain(|&other| other != who);
        Some(who)
    }

    /// Moves the thread that left its CPU first, of the nearest queue where one waits whose
    /// cache has gone cold or is this one's, to this queue. Returns it.
    fn steal(&self, place: usize, topology: &Topology, now: u64) -> Option<usize> {
        let distance = |other: usize| topology.distance(self.cores[place], self.cores[other]);
        let first = |other: usize| {
            let shares = distance(other) <= Distance::Core;
            let waiting = self.queues[other].waiting.borrow();
            let left = |who: &usize| self.entities[*who].left.get();
            let who = waiting.iter().copied();
            who.filter(|who| shares || now.saturating_sub(left(who)) >= self.warm)
                .min_by_key(left)
        };
        let from = (0..self.queues.len())
            .filter(|&other| other != place && self.queues[other].running.get().is_some())
            .filter_map(|other| first(other).map(|who| (other, who)))
            .min_by_key(|&(other, _)| (distance(other) as usize, usize::MAX - self.length(other)));
        let (other, who) = from?;
        self.charge(other, now);
        self.remove(other, who);
        self.add(place, who, now);
        Some(who)
    }

    /// Notes that a thread runs from `now` on.
    pub(crate) fn runs(&self, place: usize, who: usize, now: u64) {
        let queue = &self.queues[place];
        if let Some(since) = queue.idle_since.take() {
            let mean = queue.mean_idle.get();
            let idle = now.saturating_sub(since);
            queue
                .mean_idle
                .set(((7 * mean + idle) / 8).min(2 * self.warm));
        }
        queue.running.set(Some(who));
        queue.charged.set(now);
        self.entities[who].began.set(self.entities[who].ran.get());
    }

    /// Returns how long the slice of the running thread still is; a new one if it is used
    /// up.
    pub(crate) fn slice_left(&self, place: usize, now: u64) -> u64 {
        self.charge(place, now);
        let Some(who) = self.queues[place].running.get() else {
            return self.slice as u64;
        };
        if self.older.is_some() {
            return self.tick - now % self.tick;
        }
        let entity = &self.entities[who];
        if entity.deadline.get() <= entity.ran.get() {
            entity.deadline.set(entity.ran.get() + self.slice);
        }
        (entity.deadline.get() - entity.ran.get()) as u64
    }

    /// Lets a thread begin with so much of a slice: in a long run they are not in step.
    pub(crate) fn begin_with(&self, who: usize, part: u64) {
        let entity = &self.entities[who];
        entity.deadline.set(entity.ran.get() + part.max(1) as i64);
    }

    /// Notes that the running thread gives its CPU up: to wait for it again, or for something
    /// else.
    pub(crate) fn leaves(&self, place: usize, now: u64, waits: bool) {
        self.charge(place, now);
        let queue = &self.queues[place];
        let Some(who) = queue.running.get() else {
            return;
        };
        let entity = &self.entities[who];
        entity.left.set(now);
        if waits {
            queue.running.set(None);
            queue.waiting.borrow_mut().push(who);
            return;
        }
        if self.older.is_some() {
            entity.sleeps_in.set(Some(place));
            return queue.running.set(None);
        }
        let lag = self.mean(place) - entity.ran.get();
        queue.running.set(None);
        if lag < 0 {
            entity.sleeps_in.set(Some(place));
            queue.asleep.borrow_mut().push(who);
        } else {
            entity.lag.set(lag.min(2 * self.slice));
        }
    }

    /// Returns whether the running thread must give its CPU up at `now`, because its slice is
    /// over or because the first of those that wait is `woken` and it has run more than its
    /// share.
    pub(crate) fn must_leave(&self, place: usize, now: u64, woken: Option<usize>) -> bool {
        self.charge(place, now);
        let Some(running) = self.queues[place].running.get() else {
            return false;
        };
        let mean = self.mean(place);
        let Some(first) = self.first(place, mean) else {
            return false;
        };
        let entity = &self.entities[running];
        if let Some(older) = self.older {
            let (ran, first) = (entity.ran.get(), self.entities[first].ran.get());
            return match woken {
                Some(woken) => older.preempts(ran, self.entities[woken].ran.get()),
                None => older.ends(ran - entity.began.get(), ran - first, self.length(place)),
            };
        }
        match woken {
            Some(woken) => first == woken && !self.eligible(running, mean),
            None if entity.ran.get() < entity.deadline.get() => false,
            None => {
                let deadline = entity.ran.get() + self.slice;
                entity.deadline.set(deadline);
                !self.eligible(running, mean) || self.entities[first].deadline.get() <= deadline
            }
        }
    }

    /// Lets the running thread give up what is left of its slice. Returns whether another
    /// runs then.
    pub(crate) fn yields(&self, place: usize, now: u64) -> bool {
        self.charge(place, now);
        let Some(running) = self.queues[place].running.get() else {
            return false;
        };
        let entity = &self.entities[running];
        if !self.waits(place) {
            return false;
        }
        if let Some(older) = self.older {
            let first = self
                .first(place, 0)
                .map(|first| self.entities[first].ran.get());
            let yields = first.is_some_and(|first| older.yields_to(entity.ran.get(), first));
            self.queues[place].skipped.set(yields.then_some(running));
            return yields;
        }
        if self.eligible(running, self.mean(place)) {
            entity.ran.set(entity.deadline.get());
        }
        entity.deadline.set(entity.deadline.get() + self.slice);
        self.first(place, self.mean(place)).is_some()
    }

    /// Returns where a woken thread goes that ran at `last`, woken by one that runs at
    /// `waker`; `idle` says of a hardware thread that nothing runs there.
    pub(crate) fn place_of(
        &self,
        who: usize,
        (last, waker): (usize, Option<usize>),
        topology: &Topology,
        idle: impl Fn(usize) -> bool,
    ) -> usize {
        // Who has not left its queue is not moved.
        let is_there = self.older.is_none() && self.entities[who].sleeps_in.get() == Some(last);
        if idle(last) || is_there {
            return last;
        }
        let busy = |place: usize| self.length(place);
        let target = match waker {
            Some(waker) if busy(waker) < busy(last) => waker,
            _ => last,
        };
        let near = topology.cluster(self.cores[target]);
        let is_near = |place: usize| topology.cluster(self.cores[place]) == near;
        // Where cores differ, an idle big one is taken wherever it is.
        let free = (0..self.queues.len())
            .filter(|&place| idle(place) && (is_near(place) || topology.has_small()));
        // A core whose siblings are idle too is taken before one whose are not.
        let shared = |&place: &usize| {
            (0..self.queues.len())
                .any(|other| self.cores[other] == self.cores[place] && !idle(other))
        };
        free.min_by_key(|place| (self.slowness[*place], !is_near(*place), shared(place)))
            .unwrap_or(target)
    }

    /// Returns the queue with the least work for what its core can do, of the first of
    /// several: where a thread starts.
    pub(crate) fn shortest(&self) -> usize {
        (0..self.queues.len())
            .min_by_key(|&place| (self.length(place) as u64 + 1) * self.slowness[place])
            .unwrap_or(0)
    }
}

#[cfg(test)]
#[path = "../tests/unit/run_queues.rs"]
mod tests;
