//! Locks that no lock can beat: to acquire one that is free, to release it, to
//! sleep and to wake costs nothing, and no thread loses its CPU while it holds
//! one. Only what conflicts waits.
//!
//! A bound, not an algorithm: it must never be listed among locks.

use crate::engine::Engine;
use crate::event::Kind;
use crate::scheduler::rest;
use locklab_workload::Use;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

#[derive(Default)]
struct State {
    written: Cell<bool>,
    readers: Cell<u32>,
    waiting: RefCell<VecDeque<usize>>,
}

/// The locks of one simulation.
pub(crate) struct Ideal(Vec<State>);

impl Ideal {
    pub(crate) fn new(locks: usize) -> Self {
        Self((0..locks).map(|_| State::default()).collect())
    }

    pub(crate) fn acquire(&self, engine: &Engine, lock: usize, to: Use) {
        let state = &self.0[lock];
        let who = engine.current.get();
        // So that a program of nothing but locks takes time.
        engine.work(1);
        engine.sync();
        let mut first = true;
        loop {
            let readers = state.readers.get();
            match to {
                Use::Read if !state.written.get() => return state.readers.set(readers + 1),
                Use::Write if !state.written.get() && readers == 0 => {
                    return state.written.set(true);
                }
                _ => {}
            }
            let mut waiting = state.waiting.borrow_mut();
            match first {
                true => waiting.push_back(who),
                false => waiting.push_front(who),
            }
            drop(waiting);
            first = false;
            rest(engine, 0);
        }
    }

    pub(crate) fn release(&self, engine: &Engine, lock: usize, from: Use) {
        let state = &self.0[lock];
        engine.sync();
        match from {
            Use::Read => state.readers.set(state.readers.get().saturating_sub(1)),
            Use::Write => state.written.set(false),
        }
        if state.readers.get() > 0 {
            return;
        }
        // All look again: which of them can go on is theirs to find out.
        let now = engine.time.get();
        for who in state.waiting.borrow_mut().drain(..) {
            engine.queue.push(now, Kind::Wake, who);
        }
    }
}
