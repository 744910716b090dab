//! The directory: which cores hold each line, and which gets it next.
//!
//! A line is exclusive to one core (MESI's M or E), or shared by some, with
//! or without a core that still owes memory the last write (MOESI's O). A
//! request travels to the directory for a part of the transfer time, waits
//! there ([`crate::requests`]) until it is picked; a snoop travels to
//! the owner, who loses the line when it arrives; then the data travels. So an
//! owner may continue to hit its line for a while after it got it, whichever
//! other core wants it, and nearby requests arrive first. A line that no core
//! holds exclusively is granted by the directory itself: it knows when the
//! grant is complete, and the next snoop follows at once. Nothing here knows of
//! locks or of values: what was written is written by the CPU when its request
//! completes, and no other CPU can have the line before that.
//!
//! Where the machine has far atomics (Arm's LSE), a read-modify-write of a
//! line that another core has used is done at the line's home: the line is
//! taken from the core that has it and stays there.

use crate::engine::{Engine, Phase};
use crate::requests::Requests;
use crate::topology::Distance;
use std::cell::{Cell, RefCell};
use std::ops::Range;

/// The most cores that fit a line's set of sharers.
pub(crate) const MAX_CORES: usize = 512;
const WORDS: usize = MAX_CORES / 64;
pub(crate) const NOBODY: u16 = u16::MAX;

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
}

/// One line's directory entry.
pub(crate) struct Line {
    pub(crate) exclusive: Cell<u16>,
    /// The last core that wrote, while no other has.
    pub(crate) owner: Cell<u16>,
    /// The time when the exclusive owner's copy arrives.
    ready: Cell<u64>,
    /// The time when the next request can be granted.
    pub(crate) free_at: Cell<u64>,
    /// Whether a request waits for that time: then the owner's next operation
    /// does not precede it, however fast the owner is.
    pub(crate) claimed: Cell<bool>,
    sharers: [Cell<u64>; WORDS],
    /// Number of sharers.
    copies: Cell<u32>,
    /// Whether the line was last used at its home, by a far atomic.
    at_home: Cell<bool>,
    /// Number of far atomics in a row by `owner`.
    far_streak: Cell<u8>,
    /// Whether only one CPU ever uses the line.
    pub(crate) private: Cell<bool>,
    /// The time of its next event, and the number of that event.
    pub(crate) event: Cell<(u64, u64)>,
    pub(crate) requests: RefCell<Requests>,
    watched: Cell<bool>,
    watchers: RefCell<Vec<u16>>,
    /// [`crate::engine::Cpu`]'s L1 generation when the owner last used it.
    pub(crate) generation: Cell<u32>,
}

impl Line {
    pub(crate) fn new() -> Self {
        Self {
            exclusive: Cell::new(NOBODY),
            owner: Cell::new(NOBODY),
            ready: Cell::new(0),
            free_at: Cell::new(0),
            claimed: Cell::new(false),
            sharers: [const { Cell::new(0) }; WORDS],
            copies: Cell::new(0),
            at_home: Cell::new(false),
            far_streak: Cell::new(0),
            private: Cell::new(false),
            event: Cell::new((u64::MAX, 0)),
            requests: RefCell::new(Requests::default()),
            watched: Cell::new(false),
            watchers: RefCell::new(Vec::new()),
            generation: Cell::new(0),
        }
    }

    /// Whether `core` has the only copy.
    #[inline(always)]
    pub(crate) fn owned(&self, core: usize, time: u64) -> bool {
        self.exclusive.get() == core as u16 && self.ready.get() <= time
    }

    /// Whether `core` can write without a request.
    #[inline(always)]
    pub(crate) fn writable(&self, core: usize, time: u64) -> bool {
        self.owned(core, time) && !(self.claimed.get() && self.free_at.get() <= time)
    }

    /// Whether `core` can read without a request.
    #[inline(always)]
    pub(crate) fn readable(&self, core: usize, time: u64) -> bool {
        if self.exclusive.get() == core as u16 {
            return self.ready.get() <= time;
        }
        self.sharers[core / 64].get() >> (core % 64) & 1 == 1
    }

    /// Whether no request for it is known, so that none can be granted
    /// before one that is made now has travelled.
    #[inline(always)]
    pub(crate) fn quiet(&self) -> bool {
        self.event.get().0 == u64::MAX && !self.watched.get()
    }

    #[inline(always)]
    pub(crate) fn watched(&self) -> bool {
        self.watched.get()
    }

    /// Keeps the line with its owner for the duration of a locked operation.
    #[inline(always)]
    pub(crate) fn lock_until(&self, time: u64) {
        if self.free_at.get() < time {
            self.free_at.set(time);
        }
    }

    fn share(&self, core: usize) {
        let word = &self.sharers[core / 64];
        let old = word.get();
        let new = old | 1 << (core % 64);
        word.set(new);
        self.copies.set(self.copies.get() + u32::from(old != new));
    }

    /// Those of 64 cores from `first` on that share the line and are of a
    /// range.
    #[inline]
    fn sharers_in(&self, cores: &Range<usize>, first: usize) -> u64 {
        let mut word = self.sharers[first / 64].get();
        if cores.start > first {
            word &= u64::MAX << (cores.start - first);
        }
        if cores.end < first + 64 {
            word &= (1 << (cores.end - first)) - 1;
        }
        word
    }

    /// Number of cores of a range that share the line.
    fn copies_in(&self, cores: Range<usize>) -> u32 {
        (cores.start / 64..cores.end.div_ceil(64))
            .map(|index| self.sharers_in(&cores, index * 64).count_ones())
            .sum()
    }

    /// Whether a core of a range shares the line that is not `core`.
    #[inline]
    fn has_other_in(&self, cores: Range<usize>, core: usize) -> bool {
        (cores.start / 64..cores.end.div_ceil(64)).any(|index| {
            let own = if core / 64 == index {
                1 << (core % 64)
            } else {
                0
            };
            self.sharers_in(&cores, index * 64) & !own != 0
        })
    }

    /// Checks that its fields are consistent.
    pub(crate) fn check(&self) -> Result<(), String> {
        let exclusive = self.exclusive.get();
        let sharers = self.copies_in(0..MAX_CORES);
        if sharers != self.copies.get() {
            return Err("the number of copies is wrong".to_owned());
        }
        if exclusive != NOBODY && sharers > 0 {
            return Err(format!(
                "core {exclusive} is the only owner, and {sharers} share"
            ));
        }
        if self.watched.get() == self.watchers.borrow().is_empty() {
            return Err("the mark for watchers is wrong".to_owned());
        }
        Ok(())
    }
}

impl Engine {
    /// The distance of the nearest other copy of a line.
    #[inline]
    fn nearest(&self, line: &Line, core: usize) -> Option<Distance> {
        let topology = &self.topology;
        let exclusive = line.exclusive.get();
        if exclusive != NOBODY {
            return Some(topology.distance(core, exclusive as usize));
        }
        let mine = u32::from(line.readable(core, u64::MAX));
        if line.copies.get() == mine {
            None
        } else if line.has_other_in(topology.cluster_range(core), core) {
            Some(Distance::Cluster)
        } else if line.has_other_in(topology.socket_range(core), core) {
            Some(Distance::Socket)
        } else {
            Some(Distance::Remote)
        }
    }

    /// The distance of the farthest other copy of a line.
    fn farthest(&self, line: &Line, core: usize) -> Option<Distance> {
        let topology = &self.topology;
        let exclusive = line.exclusive.get();
        if exclusive != NOBODY {
            return Some(topology.distance(core, exclusive as usize));
        }
        let total = line.copies.get();
        if total == u32::from(line.readable(core, u64::MAX)) {
            None
        } else if line.copies_in(topology.cluster_range(core)) == total {
            Some(Distance::Cluster)
        } else if line.copies_in(topology.socket_range(core)) == total {
            Some(Distance::Socket)
        } else {
            Some(Distance::Remote)
        }
    }

    /// Whether another core of this one's socket has a copy of a line that no
    /// core has exclusively: what most reads of waiters find.
    #[inline]
    fn is_in_socket(&self, line: &Line, core: usize) -> bool {
        let copies = line.copies.get();
        if copies == 0 {
            return false;
        }
        if self.topology.sockets > 1 {
            return line.has_other_in(self.topology.socket_range(core), core);
        }
        let mine = line.sharers[core / 64].get() >> (core % 64) & 1;
        copies > mine as u32
    }

    #[inline]
    fn transfer(&self, distance: Option<Distance>) -> u64 {
        match distance {
            Some(distance) => self.costs.transfer[distance as usize],
            None => self.costs.memory,
        }
    }

    /// The time that `want` of `core` would take if granted at once.
    fn transfer_for(&self, line: &Line, core: usize, want: Want) -> (u64, u64) {
        if want == Want::Shared && self.costs.llc_is_nearest && self.is_in_socket(line, core) {
            return (self.costs.llc, 0);
        }
        let unowned = line.exclusive.get() == NOBODY;
        // No core has it, and it is not in memory: the home has it.
        let home = |distance| match distance {
            // A machine without a figure for that treats it as a neighbour's
            // copy.
            None if line.at_home.get() => {
                let neighbour = self.costs.transfer[Distance::Cluster as usize];
                if self.costs.llc == u64::MAX {
                    neighbour
                } else {
                    self.costs.llc
                }
            }
            _ => self.transfer(distance),
        };
        if want == Want::Shared {
            // Read from the last-level cache of the socket that has it.
            let nearest = self.nearest(line, core);
            return match nearest {
                Some(Distance::Cluster | Distance::Socket) if unowned => {
                    (self.costs.llc.min(self.transfer(nearest)), 0)
                }
                _ => (home(nearest), 0),
            };
        }
        let farthest = self.farthest(line, core);
        if !unowned {
            return (self.transfer(farthest), 0);
        }
        let mine = u32::from(line.readable(core, u64::MAX));
        let others = u64::from(line.copies.get() - mine);
        if others == 0 && mine == 1 {
            // An upgrade goes to the directory, which is as far as a neighbour.
            return (self.transfer(Some(Distance::Cluster)), 0);
        }
        (
            home(farthest),
            others.saturating_sub(1) * self.costs.invalidate,
        )
    }

    /// The kind of request for a read-modify-write of `core`, which does not
    /// own the line: it is done at the line's home if another core has used it
    /// last.
    pub(crate) fn atomic(&self, line: &Line, core: usize) -> Want {
        /// Far atomics in a row until a core takes the line for itself.
        const NEAR_AGAIN: u8 = 3;
        if !self.costs.far_atomics {
            return Want::Locked;
        }
        let owner = line.owner.get();
        let own = owner == core as u16 || (owner == NOBODY && line.copies.get() == 0);
        if !own || (line.at_home.get() && line.far_streak.get() < NEAR_AGAIN) {
            Want::Far
        } else {
            Want::Locked
        }
    }

    /// The time that a request of `core` would take, without invalidations.
    pub(crate) fn distant(&self, line: &Line, core: usize, want: Want) -> u64 {
        self.transfer_for(line, core, want).0
    }

    /// Requests a line on behalf of a CPU's running code, which continues when
    /// the line has arrived. Must be called between `sync` and the access.
    pub(crate) fn miss(&self, index: usize, want: Want) {
        let cpu = self.current();
        let asked = self.time.get();
        let line = &self.lines[index];
        if line.requests.borrow().is_empty() && line.free_at.get() <= asked {
            let (transfer, extra) = self.transfer_for(line, cpu.core.get(), want);
            if asked + transfer + ((transfer * self.costs.spread) >> 10) + extra + 1
                < self.queue.horizon()
            {
                // No other event happens before it completes.
                let travel = self.travel(transfer);
                let done = self.grant(
                    index,
                    cpu.core.get(),
                    self.current.get(),
                    want,
                    asked + travel,
                );
                self.time.set(done);
                cpu.stalled.set(cpu.stalled.get() + (done - asked));
                return;
            }
        }
        self.request(index, self.current.get(), want, asked, None);
        self.suspend(Phase::Miss);
        let done = self.time.get();
        cpu.stalled.set(cpu.stalled.get() + (done - asked));
    }

    /// The part of a transfer until the owner loses the line, if it is free.
    #[inline]
    pub(crate) fn travel(&self, transfer: u64) -> u64 {
        (transfer * self.costs.travel_share) >> 10
    }

    /// A time that is varied by the spread.
    #[inline]
    fn vary(&self, cycles: u64) -> u64 {
        let spread = (cycles * self.costs.spread) >> 10;
        if spread == 0 {
            return cycles;
        }
        cycles - spread + self.rng.below(2 * spread as usize + 1) as u64
    }

    /// Grants the line to `core`; returns when it arrives.
    pub(crate) fn grant(&self, index: usize, core: usize, cpu: usize, want: Want, now: u64) -> u64 {
        let line = &self.lines[index];
        line.claimed.set(false);
        let (transfer, extra) = self.transfer_for(line, core, want);
        let exclusive = line.exclusive.get();
        let rest = self.vary(transfer - self.travel(transfer));
        self.count_transfer(index, cpu, want, now, transfer);
        if exclusive == core as u16 && want != Want::Far {
            // The core has it already (the store buffer of a sibling fetched
            // it).
            let done = (now + 1).max(line.ready.get());
            line.free_at.set(done);
            return done;
        }
        if want == Want::Shared {
            let done = now + rest.max(1);
            if exclusive == NOBODY {
                line.free_at.set(now + self.costs.shared_read);
            } else {
                // The owner's copy goes to the reader and to the directory.
                line.exclusive.set(NOBODY);
                line.share(exclusive as usize);
                line.free_at.set(done.max(line.ready.get()));
            }
            line.share(core);
            debug_assert_eq!(line.check(), Ok(()), "line {index}");
            return done;
        }
        let done = now + (rest + extra).max(1);
        for word in &line.sharers {
            word.set(0);
        }
        line.copies.set(0);
        if want == Want::Far {
            return self.grant_far(index, core, now, done);
        }
        line.at_home.set(false);
        line.far_streak.set(0);
        line.exclusive.set(core as u16);
        line.owner.set(core as u16);
        line.ready.set(done);
        // The next request waits at the directory, whose snoop has yet to reach
        // the new owner: a part of a transfer after the old owner's answer, or
        // right after a grant that the directory itself has made.
        let mut snoop = self.vary((transfer * self.costs.snoop_share) >> 10);
        if exclusive == NOBODY {
            snoop = snoop.min(self.costs.shared_read);
        }
        let held = if want == Want::Locked {
            self.costs.rmw
        } else {
            1
        };
        line.free_at.set(done + snoop.max(held));
        line.generation.set(self.l1_generation(core));
        debug_assert_eq!(line.check(), Ok(()), "line {index}");
        if line.watched() {
            self.wake_watchers(index, now, Some(core));
        }
        done
    }

    /// Does a read-modify-write at the line's home, whose result is back at
    /// `done`. The line is free for the next request when the operation is
    /// complete.
    fn grant_far(&self, index: usize, core: usize, now: u64, done: u64) -> u64 {
        let line = &self.lines[index];
        let owned = line.exclusive.get() != NOBODY;
        let same = line.at_home.get() && line.owner.get() == core as u16;
        line.far_streak.set(if same {
            line.far_streak.get().saturating_add(1)
        } else {
            1
        });
        line.exclusive.set(NOBODY);
        line.owner.set(core as u16);
        line.at_home.set(true);
        // If there is an owner, its data is fetched first.
        let start = if owned { (now + done) / 2 } else { now };
        line.free_at.set(start + self.costs.far_rmw);
        debug_assert_eq!(line.check(), Ok(()), "line {index}");
        if line.watched() {
            self.wake_watchers(index, now, None);
        }
        done.max(line.free_at.get())
    }

    /// Makes a CPU sleep until the line changes.
    pub(crate) fn watch(&self, index: usize, cpu: usize) {
        let line = &self.lines[index];
        line.watchers.borrow_mut().push(cpu as u16);
        line.watched.set(true);
    }

    /// Ends the sleep of the CPUs that watch a line, except those on core
    /// `but`, whose copy is still valid.
    pub(crate) fn wake_watchers(&self, index: usize, now: u64, but: Option<usize>) {
        let line = &self.lines[index];
        let mut watchers = line.watchers.borrow_mut();
        watchers.retain(|&cpu| {
            let stays = Some(self.cpus[cpu as usize].core.get()) == but;
            if !stays {
                self.disturb(index, cpu as usize, now);
            }
            stays
        });
        line.watched.set(!watchers.is_empty());
    }

    /// Removes one CPU from the list of those that watch a line.
    pub(crate) fn unwatch(&self, index: usize, cpu: usize) {
        let line = &self.lines[index];
        let mut watchers = line.watchers.borrow_mut();
        watchers.retain(|&watcher| watcher as usize != cpu);
        line.watched.set(!watchers.is_empty());
    }
}
