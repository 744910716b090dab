//! A block: a number of pairs of slices by the same workers in the same memory.
//! It is one pair of the harness.
//!
//! Baseline and experiment are built in place, alternately, at one address,
//! with one set of contexts and one shared section; another pair of slices has
//! another address. (On one virtual machine, the address of a contended line changed
//! results by up to 25 % for the life of a process; see docs/matrix.md.) All
//! that must be done between slices is done by the worker that arrives last,
//! while the others wait: no controller thread wakes up. This module knows one
//! cell and no statistics.

mod run;

use crate::addresses::{Addresses, Sizes};
use crate::arena::{Arena, room};
use crate::clockwork::Clockwork;
use crate::disturbance::{Disturbance, Usage};
use crate::latency::LATENCIES;
use crate::rendezvous::Rendezvous;
use crate::replayer::Channel;
use crate::request::Request;
use crate::round_trip::{Ball, links};
use crate::script::{Script, posts};
use crate::slice::Tally;
use locklab_workload::Turn;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// The state that all workers share besides the lock; it lies in the arena.
#[derive(Default)]
pub(crate) struct Control {
    rendezvous: Rendezvous,
    clockwork: Clockwork,
    ball: Ball,
    /// Requests an end after this pair.
    pub(crate) stop: AtomicBool,
    /// The block is over. Written while all workers wait, or when one never
    /// arrived.
    over: AtomicBool,
    /// Grows with every slice: a block in which it does not is stuck.
    pub(crate) progress: AtomicU32,
    /// Number of workers that have finished.
    pub(crate) left: AtomicU32,
    /// Number of pairs that were run.
    pairs: AtomicU32,
    /// The lock that is built, by its number.
    side: AtomicU32,
    /// Says whether a lock's code has crashed: the word of a
    /// [`Watch`](crate::crash::Watch).
    pub(crate) crashed: AtomicU32,
    /// Start of the block, in ns.
    began: AtomicU64,
}

/// A worker's record of one slice.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct WorkerRecord {
    /// Holds what it did in the slice.
    pub(crate) tally: Tally,
    /// The resources that the machine gave it.
    pub(crate) usage: Usage,
}

/// The last worker's record of one slice.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct SliceRecord {
    /// Start and end of the measured time, in ns.
    pub(crate) measured: (u64, u64),
    /// Increments that were made under the lock and not lost.
    pub(crate) turns_kept: u64,
    /// The disturbance of the slice, or of its pair where there are two locks.
    pub(crate) disturbance: Disturbance,
}

/// The last worker's record of one pair.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct PairRecord {
    /// Round trip before it in ns; 0 where none was measured.
    pub(crate) trip: f64,
    /// The link on which the round trip was measured.
    pub(crate) link: usize,
}

/// Memory and plan of a block.
pub(crate) struct Block {
    pub(crate) request: Request,
    links: Vec<(usize, usize)>,
    /// The addresses of which each pair uses one set.
    addresses: Vec<Addresses>,
    /// The turns of each worker.
    turns: Vec<Vec<Turn>>,
    /// The script of each worker of the program that is replayed; none without one.
    scripts: Vec<Script>,
    /// The channels of that program.
    channels: Vec<Channel>,
    /// Posts of each of them where a slice begins.
    posts: Vec<Vec<u32>>,
    control: NonNull<Control>,
    most_pairs: usize,
    pairs: NonNull<PairRecord>,
    /// Records by pair and side.
    slices: NonNull<SliceRecord>,
    /// Records by pair, side and worker.
    workers: NonNull<WorkerRecord>,
    /// Counts by pair, side, worker and window.
    turns_at: NonNull<u64>,
    /// Latencies by worker, side and histogram.
    pub(crate) latencies: NonNull<u64>,
    /// Says in how many periods a CPU quota stopped threads while it ran.
    throttled: AtomicU64,
    /// The arena is last, because the rest lies in it.
    _arena: Arena,
}

// SAFETY: what the pointers lead to is shared by design (atomics, the lock,
// the section that it protects), used by one worker alone, or written by the
// last worker of a rendezvous while the others wait.
unsafe impl Send for Block {}
// SAFETY: as above.
unsafe impl Sync for Block {}

impl Block {
    /// Allocates the memory of a block.
    ///
    /// # Errors
    /// If the kernel cannot map it.
    pub(crate) fn new(request: Request) -> Result<Self, String> {
        let threads = request.threads;
        let most_pairs = request.most_pairs();
        let sides = request.codes.len();
        let slices = sides * most_pairs * threads;
        let latencies = if request.latency {
            sides * request.histograms() * threads * 2 * LATENCIES
        } else {
            1
        };
        let sizes = Sizes::of(&request)?;
        let size = sizes.room()
            + room(size_of::<Control>())
            + room(size_of::<PairRecord>() * most_pairs)
            + room(size_of::<SliceRecord>() * most_pairs * sides)
            + room(size_of::<WorkerRecord>() * slices)
            + room(8 * (slices * request.windows.count).max(1))
            + room(8 * latencies);
        let mut arena = Arena::new(size)?;
        let scripts = request.scripts();
        let channels = match &request.replay {
            Some((replay, _)) => replay.channels(),
            None => 0,
        };
        Ok(Self {
            links: links(threads.min(request.cpus.len())),
            addresses: sizes.draw(&mut arena, &request),
            turns: (0..threads).map(|worker| request.turns(worker)).collect(),
            channels: (0..channels).map(|_| Channel::default()).collect(),
            posts: (0..channels as u32)
                .map(|channel| posts(&scripts, channel))
                .collect(),
            scripts,
            control: arena.put(Control::default()),
            most_pairs,
            pairs: arena.take(most_pairs),
            slices: arena.take(most_pairs * sides),
            workers: arena.take(slices),
            turns_at: arena.take((slices * request.windows.count).max(1)),
            latencies: arena.take(latencies),
            throttled: AtomicU64::new(0),
            _arena: arena,
            request,
        })
    }

    /// Returns the state that the workers share.
    pub(crate) fn control(&self) -> &Control {
        // SAFETY: in our arena; shared by design.
        unsafe { self.control.as_ref() }
    }

    /// Returns the lock that is built, or was last, by its number.
    pub(crate) fn side(&self) -> usize {
        self.control().side.load(Ordering::Relaxed) as usize
    }

    /// Returns the number of sets of addresses.
    pub(crate) fn addresses(&self) -> usize {
        self.addresses.len()
    }

    /// Returns all sets of addresses.
    #[cfg(test)]
    pub(crate) fn sets(&self) -> &[Addresses] {
        &self.addresses
    }

    /// Returns the set of addresses that a pair uses, by its number.
    pub(crate) fn address_of(&self, pair: usize) -> usize {
        self.request.turn_of(pair) % self.addresses.len()
    }

    /// Returns the address of the lock of a pair, the first if there are several.
    pub(crate) fn address(&self, pair: usize) -> usize {
        let places = self.addresses[self.address_of(pair)].places(0);
        places[0].lock.as_ptr().addr()
    }

    /// Notes that a CPU quota stopped threads in so many periods.
    pub(crate) fn note_throttled(&self, periods: u64) {
        self.throttled.store(periods, Ordering::Relaxed);
    }

    /// Returns in how many periods a CPU quota stopped threads.
    pub(crate) fn throttled(&self) -> u64 {
        self.throttled.load(Ordering::Relaxed)
    }

    /// Returns the records of the pairs that were run. Only to be called while no
    /// worker runs.
    pub(crate) fn pairs(&self) -> &[PairRecord] {
        let count = self.control().pairs.load(Ordering::Relaxed) as usize;
        // SAFETY: this many lie there, zeroed or written; all zeros are valid.
        unsafe { std::slice::from_raw_parts(self.pairs.as_ptr(), count.min(self.most_pairs)) }
    }

    fn at(&self, pair: usize, side: usize) -> usize {
        (self.request.codes.len() * pair + side) * self.request.threads
    }

    fn slice_at(&self, pair: usize, side: usize) -> NonNull<SliceRecord> {
        // SAFETY: in bounds, for a pair and a side that there are.
        unsafe { self.slices.add(self.request.codes.len() * pair + side) }
    }

    /// Returns the record of one slice of a pair that was run.
    pub(crate) fn slice_record(&self, pair: usize, side: usize) -> &SliceRecord {
        // SAFETY: zeroed or written by the last worker of a rendezvous that we
        // have passed, and no more; all zeros are legal.
        unsafe { self.slice_at(pair, side).as_ref() }
    }

    /// Returns the workers' records of one slice. Only to be called while no worker
    /// runs.
    pub(crate) fn workers(&self, pair: usize, side: usize) -> &[WorkerRecord] {
        let threads = self.request.threads;
        // SAFETY: in bounds, zeroed or written; all zeros are legal.
        unsafe {
            let first = self.workers.as_ptr().add(self.at(pair, side));
            std::slice::from_raw_parts(first, threads)
        }
    }

    /// Returns one worker's turns at the ends of the windows of one slice. Only to be
    /// called while no worker runs.
    pub(crate) fn turns_at(&self, pair: usize, side: usize, worker: usize) -> &[u64] {
        let count = self.request.windows.count;
        // SAFETY: as in `workers`.
        unsafe {
            let first = (self.at(pair, side) + worker) * count;
            std::slice::from_raw_parts(self.turns_at.as_ptr().add(first), count)
        }
    }
}
