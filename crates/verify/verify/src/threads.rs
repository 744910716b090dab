//! The threads of a model and the plain data that they share, in the engine that runs it:
//! loom, or the one of execution graphs ([`crate::graphs`]). So each model is written once.
//!
//! It must know no lock.

use crate::execution;
use crate::graphs::{Graphs, world};
use crate::platform::Loom;
use locklab_locks::platform::Platform;

/// Plain data, whose accesses are checked for races.
pub(crate) enum Data {
    Loom(loom::cell::UnsafeCell<u32>),
    Graphs(locklab_graph::cell::UnsafeCell<u32>),
}

impl Data {
    pub(crate) fn new() -> Self {
        match world::is_running() {
            true => Self::Graphs(locklab_graph::cell::UnsafeCell::new(0)),
            false => Self::Loom(loom::cell::UnsafeCell::new(0)),
        }
    }

    /// Reads it, where others may read too.
    pub(crate) fn read(&self) -> u32 {
        // SAFETY: this is what is being checked; a race is reported before the access.
        let read = |data: *const u32| unsafe { *data };
        match self {
            Self::Loom(data) => data.with(read),
            Self::Graphs(data) => data.with(read),
        }
    }

    /// Adds to it, and returns what it is then.
    pub(crate) fn add(&self, more: u32) -> u32 {
        // SAFETY: as `read`.
        let add = |data: *mut u32| unsafe {
            *data = data.read().wrapping_add(more);
            *data
        };
        match self {
            Self::Loom(data) => data.with_mut(add),
            Self::Graphs(data) => data.with_mut(add),
        }
    }
}

/// A thread of a model, to be waited for.
pub(crate) enum Thread {
    Loom(loom::thread::JoinHandle<()>),
    Graphs(locklab_graph::thread::JoinHandle<()>),
}

pub(crate) fn spawn(cpu: usize, body: impl FnOnce() + 'static) -> Thread {
    spawn_boxed(cpu, Box::new(body))
}

/// Spawns a thread: one function for the bodies of all models.
fn spawn_boxed(cpu: usize, body: Box<dyn FnOnce()>) -> Thread {
    execution::set_part(cpu, true);
    let body = move || {
        execution::set_cpu(cpu);
        body();
        execution::set_part(cpu, false);
    };
    match world::is_running() {
        true => Thread::Graphs(locklab_graph::thread::spawn(body)),
        false => Thread::Loom(loom::thread::spawn(body)),
    }
}

pub(crate) fn join(thread: Thread) {
    execution::set_part(execution::cpu(), false);
    match thread {
        Thread::Loom(thread) => thread
            .join()
            .expect("a modelled thread fails the model as a whole"),
        Thread::Graphs(thread) => thread.join(),
    }
    execution::set_part(execution::cpu(), true);
}

pub(crate) fn join_all(threads: impl IntoIterator<Item = Thread>) {
    threads.into_iter().for_each(join);
}

/// Ends a round of a loop that waits.
#[track_caller]
pub(crate) fn relax() {
    match world::is_running() {
        true => Graphs::relax(),
        false => Loom::relax(),
    }
}
