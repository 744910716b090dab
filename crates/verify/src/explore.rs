//! Runs one model to its end, or to the first execution that breaks a
//! promise.
//!
//! Must never call an exploration that was cut short complete.

use crate::execution::{self, Again};
use crate::property::Property;
use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};
use std::sync::Arc;
use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How far a model is explored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Executions after which the exploration is cut.
    pub executions: u64,
    /// Time after which it is cut.
    pub duration: Duration,
    /// Whether fruitless reads are pruned as the property says. Without,
    /// few models of three threads end.
    pub prune: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            executions: u64::MAX,
            duration: Duration::MAX,
            prune: true,
        }
    }
}

/// What came of exploring a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Every execution within the bounds keeps the promise.
    Holds,
    /// No execution explored breaks it, but the limit of executions or of
    /// time came first.
    Cut,
    /// One execution breaks it.
    Fails(Failure),
}

/// An execution that breaks a promise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What is wrong.
    pub message: String,
    /// Its steps: thread, source line, operation.
    pub trace: Vec<String>,
}

/// An exploration's outcome and its size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explored {
    /// What came of it.
    pub outcome: Outcome,
    /// How many executions were run.
    pub executions: u64,
}

struct LimitReached;

thread_local! {
    static SILENT: Cell<bool> = const { Cell::new(false) };
}

/// A broken promise is a panic of the model; it is reported, not printed.
fn silence_panics() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !SILENT.get() {
                before(info);
            }
        }));
    });
    SILENT.set(true);
}

/// A branch more than this in one execution: the lock makes no progress.
const MAX_BRANCHES: usize = 4_000;

/// Explores the model of a property.
pub(crate) fn explore(property: &Property, limits: Limits) -> Explored {
    let model = property.model;
    silence_panics();
    execution::configure(
        limits.prune.then_some(property.prune_after),
        property.coins,
        property.virtualized,
    );
    let start = Instant::now();
    let mut executions;
    let outcome = loop {
        let counter = Arc::new(AtomicU64::new(0));
        let counted = counter.clone();
        let mut builder = loom::model::Builder::new();
        builder.max_branches = MAX_BRANCHES;
        builder.preemption_bound = property.preemptions;
        builder.max_permutations = None;
        builder.max_duration = None;
        builder.checkpoint_file = None;
        builder.checkpoint_interval = usize::MAX;
        builder.location = false;
        builder.log = false;
        execution::end();
        let result = catch_unwind(AssertUnwindSafe(|| {
            builder.check(move || {
                let count = counted.fetch_add(1, Ordering::Relaxed);
                if count >= limits.executions
                    || (count % 256 == 255 && start.elapsed() >= limits.duration)
                {
                    panic_any(LimitReached);
                }
                execution::begin();
                model();
                execution::end();
            });
        }));
        executions = counter.load(Ordering::Relaxed);
        match result {
            Ok(()) => break Outcome::Holds,
            Err(payload) if payload.is::<LimitReached>() => {
                executions -= 1;
                break Outcome::Cut;
            }
            Err(payload) if payload.is::<Again>() => {}
            Err(payload) => {
                break Outcome::Fails(Failure {
                    message: message(&*payload),
                    trace: execution::trace(),
                });
            }
        }
    };
    SILENT.set(false);
    Explored {
        outcome,
        executions,
    }
}

/// The first line of what a model says when it fails.
fn message(payload: &(dyn Any + Send)) -> String {
    let text = payload
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| payload.downcast_ref::<&str>().copied())
        .unwrap_or("the model failed without a message");
    let first = text.lines().map(str::trim).find(|line| !line.is_empty());
    let first = first.unwrap_or(text);
    if first.starts_with("Causality violation") {
        "two critical sections are not ordered: one does not see the other's writes".into()
    } else if first.starts_with("Model exceeded") {
        format!("no progress: {MAX_BRANCHES} steps without an end")
    } else {
        first.into()
    }
}
