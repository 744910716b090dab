//! Runs the workers of a block, from its start to its end: they meet, measure
//! how far apart they are, run a slice of each lock, and meet again. No controller
//! thread wakes up meanwhile.

use super::{Block, Control, SliceRecord, WorkerRecord};
use crate::disturbance::{self, Account, Disturbance};
use crate::latency::{LATENCIES, Latencies};
use crate::lock_code::TurnKind;
use crate::rendezvous::wake_all;
use crate::replayer::Replayer;
use crate::slice::Slice;
use crate::timeline::Timeline;
use crate::turn::{Place, Worker};
use crate::work::{Head, Section};
use locklab_host::clock;
use std::cell::{Cell, RefCell};
use std::sync::atomic::Ordering;

impl Block {
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
            let own = worker * self.request.codes.len() * self.request.histograms() * 2 * LATENCIES;
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
        let entry = self.request.entry_of(pair);
        for (channel, posts) in self.channels.iter().zip(&self.posts) {
            channel.reset(posts[entry]);
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
        record: super::PairRecord,
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
                hold_sleep_ns: request.mix.hold_sleep_ns,
                non_critical: request.non_critical,
                replayer: self.scripts.get(worker).map(|script| Replayer {
                    script,
                    entry: script.entries[request.entry_of(pair)],
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
        let turns = match (self.scripts.is_empty(), self.turns[worker].is_empty()) {
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
