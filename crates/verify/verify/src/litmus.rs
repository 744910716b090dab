//! Runs small programs of which every outcome is wanted: what the checker reaches of
//! a memory model, and whether its rule for waits loses anything.
//!
//! A program has the form of a lock, as that is what can be written in Rust and in C:
//! each of its threads calls one operation, once. Must never judge an outcome.

use crate::execution;
use crate::explore::{explore, explore_within};
use crate::isolate::isolated;
use crate::limits::Limits;
use crate::outcome::Explored;
use crate::property::Property;
use crate::subject::{Context, Instance, Subject};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::Arc;

thread_local! {
    static OUTCOMES: RefCell<BTreeSet<u64>> = const { RefCell::new(BTreeSet::new()) };
}

/// A program in the form of a lock, and the context of each thread.
struct Program {
    lock: Box<dyn Instance>,
    contexts: Vec<Context>,
}

impl Program {
    /// Runs what thread `cpu` does.
    fn act(&self, cpu: usize) {
        let context = &self.contexts[cpu];
        // SAFETY: the operations of a program have no conditions; each thread has a
        // context of its own.
        unsafe {
            match cpu {
                0 => self.lock.lock(context),
                1 => self.lock.unlock(context),
                2 => self.lock.read(context),
                _ => self.lock.read_unlock(context),
            }
        }
        execution::leave_lock();
    }
}

/// Returns the model of a program of so many threads: the first calls `lock`, the others
/// `unlock`, `read` and `read_unlock`.
pub fn litmus(program: &Arc<dyn Subject>, threads: usize) -> Property {
    let program = program.clone();
    Property::of_files(&[], "litmus", threads, move || {
        let lock = program.make(false);
        let contexts = (0..threads).map(|_| lock.context().0).collect();
        // For ever if the model fails: what loom has abandoned must not be dropped.
        let program: &'static Program = Box::leak(Box::new(Program { lock, contexts }));
        let others: Vec<_> = (1..threads)
            .map(|cpu| crate::property::spawn(cpu, move || program.act(cpu)))
            .collect();
        program.act(0);
        crate::property::join_all(others);
        let outcome = program.lock.outcome();
        reaches(outcome);
        // SAFETY: made above; the other threads have ended.
        drop(unsafe { Box::from_raw(std::ptr::from_ref(program).cast_mut()) });
    })
    .with(|setting| {
        setting.reads_conflict = true;
        setting.reads_words_only = true;
    })
}

/// Notes an outcome of the program that runs, for [`outcomes`].
pub fn reaches(outcome: u64) {
    OUTCOMES.with_borrow_mut(|outcomes| outcomes.insert(outcome));
}

/// Explores such a model, and returns what [`Instance::outcome`] was at the end of its
/// executions. If it is not `pruned`, no fruitless read ends the exploration of an
/// execution's branches, and no bound on preemptions is tried.
pub fn outcomes(litmus: &Property, limits: Limits, pruned: bool) -> (Explored, BTreeSet<u64>) {
    let ended = isolated(|| {
        OUTCOMES.take();
        let explored = match pruned {
            true => explore(litmus, limits),
            false => explore_within(litmus, None, None, limits),
        };
        (explored, OUTCOMES.take())
    });
    ended.answer.unwrap_or_else(|crash| {
        let explored = Explored::crashed(crash.failure, None, crash.executions);
        (explored, BTreeSet::new())
    })
}
