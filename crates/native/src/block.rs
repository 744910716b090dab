//! A block: a number of pairs of slices by the same workers in the same memory.
//! It is one pair of the laboratory.
//!
//! Baseline and experiment are built in place, alternately, at one address,
//! with one set of contexts and one shared section; another pair of slices has
//! another address. (On one virtual machine, the address of a contended line changed
//! results by up to 25 % for the life of a process; see docs/native.md.) All
//! that must be done between slices is done by the worker that arrives last,
//! while the others wait: no controller thread wakes up. This module knows one
//! cell and no statistics.

use crate::addresses::{Addresses, Sizes};
use crate::arena::{Arena, room};
use crate::clockwork::Clockwork;
use crate::disturbance::{self, Account, Disturbance, Usage};
use crate::latency::{LATENCIES, Latencies};
use crate::lock_code::TurnKind;
use crate::rendezvous::{Rendezvous, wake_all};
use crate::replay::Part;
use crate::request::Request;
use crate::round_trip::{Ball, links};
use crate::slice::{Slice, Tally};
use crate::stage::{Channel, Stage};
use crate::timeline::Timeline;
use crate::turn::{Place, Worker};
use crate::work::{Head, Section};
use locklab_host::clock;
use locklab_workload::Turn;
use std::cell::{Cell, RefCell};
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
    /// Whether a lock's code has crashed: the word of a
    /// [`Watch`](crate::crash::Watch).
    pub(crate) crashed: AtomicU32,
    /// Start of the block, in ns.
    began: AtomicU64,
}

/// A worker's record of one slice.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct WorkerRecord {
    /// What it did in the slice.
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
    /// The part of each worker in the program that is replayed; none without one.
    parts: Vec<Part>,
    /// The channels of that program.
    channels: Vec<Channel>,
    control: NonNull<Control>,
    most_pairs: usize,
    pairs: NonNull<PairRecord>,
    /// Records by pair and side.
    slices: NonNull<SliceRecord>,
    /// Records by pair, side and worker.
    workers: NonNull<WorkerRecord>,
    /// Counts by pair, side, worker and window.
    turns_at: NonNull<u64>,
    /// Latencies by side and worker.
    pub(crate) latencies: NonNull<u64>,
    /// In how many periods a CPU quota stopped threads while it ran.
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
            sides * threads * 2 * LATENCIES
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
        Ok(Self {
            links: links(threads.min(request.cpus.len())),
            addresses: sizes.draw(&mut arena, &request),
            turns: (0..threads).map(|worker| request.turns(worker)).collect(),
            parts: request.parts(),
            channels: match &request.replay {
                Some((replay, _)) => (0..replay.channels()).map(|_| Channel::default()).collect(),
                None => Vec::new(),
            },
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

    /// The state that the workers share.
    pub(crate) fn control(&self) -> &Control {
        // SAFETY: in our arena; shared by design.
        unsafe { self.control.as_ref() }
    }

    /// The lock that is built, or was last, by its number.
    pub(crate) fn side(&self) -> usize {
        self.control().side.load(Ordering::Relaxed) as usize
    }

    /// The number of sets of addresses.
    pub(crate) fn addresses(&self) -> usize {
        self.addresses.len()
    }

    /// All sets of addresses.
    #[cfg(test)]
    pub(crate) fn sets(&self) -> &[Addresses] {
        &self.addresses
    }

    /// The set of addresses that a pair uses, by its number.
    pub(crate) fn address_of(&self, pair: usize) -> usize {
        self.request.turn_of(pair) % self.addresses.len()
    }

    /// The address of the lock of a pair, the first if there are several.
    pub(crate) fn address(&self, pair: usize) -> usize {
        let places = self.addresses[self.address_of(pair)].places(0);
        places[0].lock.as_ptr().addr()
    }

    /// Notes that a CPU quota stopped threads in so many periods.
    pub(crate) fn note_throttled(&self, periods: u64) {
        self.throttled.store(periods, Ordering::Relaxed);
    }

    /// In how many periods a CPU quota stopped threads.
    pub(crate) fn throttled(&self) -> u64 {
        self.throttled.load(Ordering::Relaxed)
    }

    /// The records of the pairs that were run. Only to be called while no
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

    /// The record of one slice of a pair that was run.
    pub(crate) fn slice_record(&self, pair: usize, side: usize) -> &SliceRecord {
        // SAFETY: zeroed or written by the last worker of a rendezvous that we
        // have passed, and no more; all zeros are legal.
        unsafe { self.slice_at(pair, side).as_ref() }
    }

    /// The workers' records of one slice. Only to be called while no worker
    /// runs.
    pub(crate) fn workers(&self, pair: usize, side: usize) -> &[WorkerRecord] {
        let threads = self.request.threads;
        // SAFETY: in bounds, zeroed or written; all zeros are legal.
        unsafe {
            let first = self.workers.as_ptr().add(self.at(pair, side));
            std::slice::from_raw_parts(first, threads)
        }
    }

    /// One worker's turns at the ends of the windows of one slice. Only to be
    /// called while no worker runs.
    pub(crate) fn turns_at(&self, pair: usize, side: usize, worker: usize) -> &[u64] {
        let count = self.request.windows.count;
        // SAFETY: as in `workers`.
        unsafe {
            let first = (self.at(pair, side) + worker) * count;
            std::slice::from_raw_parts(self.turns_at.as_ptr().add(first), count)
        }
    }

    /// Waits for the others; the last one runs `serial`.
    fn meet(&self, serial: impl FnOnce(&Control)) {
        // With more workers than CPUs, a spinning worker keeps others from
        // arriving.
        let spins = if self.request.oversubscribed() {
            0
        } else {
            4000
        };
        let control = self.control();
        let all = self.request.threads;
        control.rendezvous.meet(all, spins, || serial(control));
    }

    /// Ends a block whose workers cannot all arrive.
    pub(crate) fn abandon(&self) {
        self.control().over.store(true, Ordering::Relaxed);
        self.control().rendezvous.abandon();
    }

    /// Runs one worker from start to end.
    pub(crate) fn work(&self, worker: usize, mut latencies: Option<Latencies>) {
        let control = self.control();
        let account = Account::open();
        self.meet(|control| control.began.store(clock::now(), Ordering::Relaxed));
        'pairs: for pair in 0..self.most_pairs {
            if control.over.load(Ordering::Relaxed) {
                break;
            }
            self.measure_link(pair, worker);
            let draw = self.request.draw(pair);
            let sides = draw.sides();
            self.meet(|control| self.build(control, pair, sides[0]));
            for (at, &side) in sides.iter().enumerate() {
                if control.over.load(Ordering::Relaxed) {
                    break 'pairs;
                }
                self.slice(pair, side, worker, (&account, latencies.as_ref()));
                self.meet(|control| {
                    self.tear_down(control, pair, side);
                    match sides.get(at + 1) {
                        Some(next) => self.build(control, pair, *next),
                        None => self.end_pair(control, pair),
                    }
                });
            }
            if let Some(latencies) = &mut latencies {
                latencies
                    .close(|side| self.slice_record(pair, side).disturbance == Disturbance::None);
            }
        }
        if let Some(latencies) = latencies {
            let own = worker * self.request.codes.len() * 2 * LATENCIES;
            // SAFETY: this worker's own part, of this size.
            unsafe { latencies.save(self.latencies.add(own)) };
        }
        // B4: Release pairs with the controller's Acquire of `left`.
        control.left.fetch_add(1, Ordering::Release);
        wake_all(&control.left);
    }

    /// Lets two workers measure the round trip between them; the others
    /// continue.
    fn measure_link(&self, pair: usize, worker: usize) {
        if self.links.is_empty() {
            return;
        }
        let link = pair % self.links.len();
        let (a, b) = self.links[link];
        let ball = &self.control().ball;
        if worker == a {
            let trip = ball.throw().unwrap_or(0.0);
            // SAFETY: in bounds; nobody else uses it now.
            unsafe {
                let record = self.pairs.add(pair).as_ptr();
                (*record).trip = trip;
                (*record).link = link;
            }
        } else if worker == b {
            ball.throw_back();
        }
    }

    /// Builds a lock and starts the clock, while all workers wait.
    fn build(&self, control: &Control, pair: usize, side: usize) {
        control.side.store(side as u32, Ordering::Relaxed);
        let code = &self.request.codes[side];
        let addresses = &self.addresses[self.address_of(pair)];
        // SAFETY: the places are for this, hold nothing, and all others wait.
        unsafe {
            for place in addresses.places(0) {
                for line in 0..place.lines {
                    place.shared.add(line).write(Section::default());
                }
                place.head.write(Head::default());
            }
            for (lock, contexts) in addresses.locks() {
                code.build(lock, contexts);
            }
        }
        for channel in &self.channels {
            channel.reset();
        }
        let of = self.request.slice_of(side);
        control.clockwork.set(clock::now() + of.settle, of.length);
    }

    /// Records the results of a slice, while all workers wait.
    fn tear_down(&self, control: &Control, pair: usize, side: usize) {
        // SAFETY: in our arena, shared by design.
        let kept = |place: &Place| unsafe { place.head.as_ref() }.turns();
        let addresses = &self.addresses[self.address_of(pair)];
        let turns_kept = addresses.places(0).iter().map(kept).sum();
        // SAFETY: built by `build`, idle since all workers are here; and the
        // record is in bounds and used by nobody else now.
        unsafe {
            for (lock, contexts) in addresses.locks() {
                self.request.codes[side].tear_down(lock, contexts);
            }
            self.slice_at(pair, side).write(SliceRecord {
                measured: control.clockwork.measured(),
                turns_kept,
                disturbance: Disturbance::None,
            });
        }
        control.progress.fetch_add(1, Ordering::Relaxed);
    }

    /// Decides whether the pair counts, and whether there will be another,
    /// while all workers wait.
    fn end_pair(&self, control: &Control, pair: usize) {
        self.note_disturbances(pair);
        control.ball.reset();
        let run = pair as u32 + 1;
        control.pairs.store(run, Ordering::Relaxed);
        let undisturbed = (0..self.request.codes.len())
            .map(|side| self.undisturbed(run, side))
            .min()
            .unwrap_or(0);
        let now = clock::now();
        let spent = now.saturating_sub(control.began.load(Ordering::Relaxed));
        let over = self.request.is_over(run, undisturbed, spent, now)
            || control.stop.load(Ordering::Relaxed);
        control.over.store(over, Ordering::Relaxed);
    }

    /// Slices of a lock that count, of the first `run` pairs.
    fn undisturbed(&self, run: u32, side: usize) -> u32 {
        let count = (0..run as usize)
            .filter(|pair| self.slice_record(*pair, side).disturbance == Disturbance::None)
            .count();
        u32::try_from(count).unwrap_or(u32::MAX)
    }

    /// Records the disturbances of a pair whose workers' records are complete.
    /// Of two locks both slices count or none; of many each by itself, since
    /// some slice of forty is disturbed nearly always.
    fn note_disturbances(&self, pair: usize) {
        let sides = 0..self.request.codes.len();
        let usages = |side| self.workers(pair, side).iter().map(|worker| worker.usage);
        let of_pair =
            (sides.len() == 2).then(|| disturbance::of(usages(0).chain(usages(1)), &self.request));
        for side in sides {
            let disturbance =
                of_pair.unwrap_or_else(|| disturbance::of(usages(side), &self.request));
            // SAFETY: as in `tear_down`.
            unsafe { (*self.slice_at(pair, side).as_ptr()).disturbance = disturbance };
        }
    }

    /// Fills in what workers would have recorded of the next pair.
    #[cfg(test)]
    pub(crate) fn play(
        &self,
        record: PairRecord,
        slices: [SliceRecord; 2],
        workers: [&[WorkerRecord]; 2],
    ) -> Disturbance {
        let control = self.control();
        let pair = control.pairs.fetch_add(1, Ordering::Relaxed) as usize;
        assert!(pair < self.most_pairs);
        for (side, workers) in workers.into_iter().enumerate() {
            for (worker, played) in workers.iter().enumerate() {
                // SAFETY: in bounds, and no worker runs.
                unsafe {
                    self.workers
                        .add(self.at(pair, side) + worker)
                        .write(*played)
                };
            }
        }
        let windows = self.request.windows.count;
        for (side, workers) in workers.into_iter().enumerate() {
            for (worker, played) in workers.iter().enumerate() {
                // The same rate in every window.
                for window in 0..windows {
                    let turns = played.tally.turns * (window as u64 + 1) / windows as u64;
                    let at = (self.at(pair, side) + worker) * windows + window;
                    // SAFETY: as above.
                    unsafe { self.turns_at.add(at).write(turns) };
                }
            }
        }
        // SAFETY: as above.
        unsafe { self.pairs.add(pair).write(record) };
        for (side, slice) in slices.into_iter().enumerate() {
            // SAFETY: as above.
            unsafe { self.slice_at(pair, side).write(slice) };
        }
        self.note_disturbances(pair);
        self.slice_record(pair, 0).disturbance
    }

    /// Runs one worker's part of one slice.
    fn slice(
        &self,
        pair: usize,
        side: usize,
        worker: usize,
        (account, latencies): (&Account, Option<&Latencies>),
    ) {
        let request = &self.request;
        let windows = request.windows;
        let at = self.at(pair, side) + worker;
        // SAFETY: this worker's own part of this slice, in bounds.
        let turns_at = unsafe {
            let first = self.turns_at.as_ptr().add(at * windows.count);
            std::slice::from_raw_parts_mut(first, windows.count)
        };
        let timed = request.is_timed(pair);
        let addresses = &self.addresses[self.address_of(pair)];
        let before = account.read();
        let slice = Slice {
            worker: Worker {
                me: worker as u64 + 1,
                places: addresses.places(worker),
                turns: &self.turns[worker],
                // SAFETY: in our arena; this worker's own.
                private: unsafe { addresses.private(worker).as_ref() },
                critical: request.critical[worker],
                non_critical: request.non_critical,
                stage: self.parts.get(worker).map(|part| Stage {
                    part,
                    clockwork: &self.control().clockwork,
                    channels: &self.channels,
                }),
            },
            clockwork: &self.control().clockwork,
            timeline: RefCell::new(Timeline::new(
                request.windows_of(side),
                turns_at,
                clock::now(),
                request.clock_cost,
            )),
            latencies: latencies
                .filter(|_| timed)
                .map(|latencies| latencies.slice(side)),
            tally: Cell::default(),
        };
        let turns = match (self.parts.is_empty(), self.turns[worker].is_empty()) {
            (false, _) => TurnKind::Replayed,
            (true, true) => TurnKind::Alike,
            (true, false) => TurnKind::Drawn,
        };
        let work = request.codes[side].slice(request.layout_of(pair, side), timed, turns);
        // SAFETY: `build` has built this side's lock and contexts here, and
        // they stay until all workers have met again.
        unsafe { work(&slice) };
        let record = WorkerRecord {
            tally: slice.tally.get(),
            usage: account.read().since(&before),
        };
        // SAFETY: this worker's own record of this slice, in bounds.
        unsafe { self.workers.add(at).write(record) };
    }
}
