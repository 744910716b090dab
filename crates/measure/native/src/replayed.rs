//! Turns of a recorded program: from its first acquisition to the release after
//! which a thread holds nothing, and what it does until the next. It allocates
//! nothing.

use crate::part::Act;
use crate::stage::{Stage, sleep_exactly};
use crate::turn::{Done, Kind, Taken, Turns, Worker};
use crate::work::steps;
use locklab_locks::{NativePlatform, RawLock};
use std::cell::Cell;

/// They are those of a recorded program.
pub(crate) struct AllReplayed;

impl Kind for AllReplayed {
    type Turns<'a, L: RawLock<NativePlatform>> = Replayed<'a, L>;
}

/// Turns of a recorded program.
pub(crate) struct Replayed<'a, L: RawLock<NativePlatform>> {
    stage: Stage<'a>,
    /// The next of the acts.
    at: Cell<usize>,
    lock: std::marker::PhantomData<&'a L>,
}

impl<'a, L: RawLock<NativePlatform>> Replayed<'a, L> {
    #[inline(always)]
    fn next(&self) -> Act {
        let (acts, at) = (&self.stage.part.acts, self.at.get());
        self.at.set(if at + 1 == acts.len() { 0 } else { at + 1 });
        acts[at]
    }

    #[inline(always)]
    fn taken<'b>(&self, worker: &'b Worker<'a>, place: u32) -> Taken<'b, L> {
        // SAFETY: the promise of `new`, for every place.
        unsafe { Taken::at(&worker.places[place as usize]) }
    }

    /// Acquires a lock.
    #[inline(always)]
    fn enter(&self, worker: &Worker<'a>, place: u32, shared: bool) {
        let taken = self.taken(worker, place);
        // SAFETY: the context is ours, for this lock, which we do not hold.
        unsafe {
            match shared {
                true => taken.lock.read_lock(taken.context),
                false => taken.lock.lock(taken.context),
            }
        }
    }

    /// Notes beside a section's first lock that the worker has it, and takes as long
    /// as it takes to move what it protects if another had it. Where the recording does
    /// not say how long, a line of its own is moved. The locks within the section have
    /// none: what they protect was moved with the first.
    #[inline(always)]
    fn note(&self, worker: &Worker<'a>, place: u32, shared: bool, done: &mut Done) {
        if !shared {
            done.increments += 1;
            let place = &worker.places[place as usize];
            // SAFETY: built with the lock, which we hold.
            let handoff = unsafe { place.head.as_ref() }.enter(worker.me);
            done.handoffs += u64::from(handoff);
            if handoff && place.moved > 0 {
                std::hint::black_box(steps(place.moved));
            }
        }
    }

    /// Goes on until it is about to acquire, or the slice is over: a thread may
    /// only wait for others, or post to them.
    fn go_on(&self) {
        while !self.stage.clockwork.is_over() {
            let at = self.at.get();
            match self.next() {
                Act::Acquire { .. } => {
                    self.at.set(at);
                    return;
                }
                act => self.alone(act),
            }
        }
    }

    /// What needs no lock.
    #[inline(always)]
    fn alone(&self, act: Act) {
        match act {
            Act::Compute(steps) => self.stage.compute(steps),
            Act::Await(channel) => self.stage.receive(channel),
            Act::Post(channel, times) => self.stage.channels[channel as usize].post(times),
            Act::Idle(ns) => self.stage.idle(ns),
            Act::Acquire { .. } | Act::Release { .. } => {}
        }
    }
}

impl<'a, L: RawLock<NativePlatform>> Turns<'a, L> for Replayed<'a, L> {
    unsafe fn new(worker: &Worker<'a>) -> Self {
        let stage = worker.stage.expect("a replay has a stage");
        sleep_exactly();
        let done = stage.entry.done;
        let replayed = Self {
            at: Cell::new(if done == stage.part.acts.len() {
                0
            } else {
                done
            }),
            stage,
            lock: std::marker::PhantomData,
        };
        replayed.alone(stage.entry.rest);
        replayed.go_on();
        replayed
    }

    #[inline(always)]
    fn acquire(&self, worker: &Worker<'a>) {
        // The act stays the next: what follows needs to know it.
        if let Act::Acquire { place, shared } = self.stage.part.acts[self.at.get()] {
            self.enter(worker, place, shared);
        }
    }

    #[inline(always)]
    fn inside_and_release(&self, worker: &Worker<'a>) -> Done {
        let mut done = Done::default();
        let mut held = 0_u32;
        if let Act::Acquire { place, shared } = self.next() {
            self.note(worker, place, shared, &mut done);
            held = 1;
        }
        while held > 0 {
            match self.next() {
                Act::Acquire { place, shared } => {
                    self.enter(worker, place, shared);
                    held += 1;
                }
                Act::Release { place, shared } => {
                    let taken = self.taken(worker, place);
                    // SAFETY: we hold it, with this context.
                    unsafe {
                        match shared {
                            true => taken.lock.read_unlock(taken.context),
                            false => taken.lock.unlock(taken.context),
                        }
                    }
                    held -= 1;
                }
                act => self.alone(act),
            }
        }
        done
    }

    #[inline(always)]
    fn outside(&mut self, _: &Worker<'a>) {
        self.go_on();
    }
}
