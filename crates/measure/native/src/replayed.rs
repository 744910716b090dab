//! Turns of a recorded program: from its first acquisition to the release after
//! which a thread holds nothing, and what it does until the next. It allocates
//! nothing.

use crate::replayer::{Replayer, sleep_exactly};
use crate::script::Action;
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
    replayer: Replayer<'a>,
    /// The next of the actions.
    at: Cell<usize>,
    lock: std::marker::PhantomData<&'a L>,
}

impl<'a, L: RawLock<NativePlatform>> Replayed<'a, L> {
    #[inline(always)]
    fn next(&self) -> Action {
        let (actions, at) = (&self.replayer.script.actions, self.at.get());
        self.at
            .set(if at + 1 == actions.len() { 0 } else { at + 1 });
        actions[at]
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
            if handoff && place.migration > 0 {
                std::hint::black_box(steps(place.migration));
            }
        }
    }

    /// Goes on until it is about to acquire, or the slice is over: a thread may
    /// only wait for others, or post to them.
    fn go_on(&self) {
        while !self.replayer.clockwork.is_over() {
            let at = self.at.get();
            match self.next() {
                Action::Acquire { .. } => {
                    self.at.set(at);
                    return;
                }
                action => self.alone(action),
            }
        }
    }

    /// Returns what needs no lock.
    #[inline(always)]
    fn alone(&self, action: Action) {
        match action {
            Action::Compute(steps) => self.replayer.compute(steps),
            Action::Await(channel) => self.replayer.receive(channel),
            Action::Post(channel, times) => self.replayer.channels[channel as usize].post(times),
            Action::Idle(ns) => self.replayer.idle(ns),
            Action::Acquire { .. } | Action::Release { .. } => {}
        }
    }
}

impl<'a, L: RawLock<NativePlatform>> Turns<'a, L> for Replayed<'a, L> {
    unsafe fn new(worker: &Worker<'a>) -> Self {
        let replayer = worker.replayer.expect("a replay has a replayer");
        sleep_exactly();
        let done = replayer.entry.done;
        let replayed = Self {
            at: Cell::new(if done == replayer.script.actions.len() {
                0
            } else {
                done
            }),
            replayer,
            lock: std::marker::PhantomData,
        };
        replayed.alone(replayer.entry.rest);
        replayed.go_on();
        replayed
    }

    #[inline(always)]
    fn acquire(&self, worker: &Worker<'a>) {
        // The action stays the next: what follows needs to know it.
        if let Action::Acquire { place, shared } = self.replayer.script.actions[self.at.get()] {
            self.enter(worker, place, shared);
        }
    }

    #[inline(always)]
    fn inside_and_release(&self, worker: &Worker<'a>) -> Done {
        let mut done = Done::default();
        let mut held = 0_u32;
        if let Action::Acquire { place, shared } = self.next() {
            self.note(worker, place, shared, &mut done);
            held = 1;
        }
        while held > 0 {
            match self.next() {
                Action::Acquire { place, shared } => {
                    self.enter(worker, place, shared);
                    held += 1;
                }
                Action::Release { place, shared } => {
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
                action => self.alone(action),
            }
        }
        done
    }

    #[inline(always)]
    fn outside(&mut self, _: &Worker<'a>) {
        self.go_on();
    }
}
