//! Executions of a model, one after the other: those that loom explores, and those that
//! are drawn.
//!
//! Must never take a promise as kept that no execution could have broken.

use super::panics::{message, says_no_end, silently};
use crate::execution::{self, Again};
use crate::journal::Journal;
use crate::limits::{Budget, Limits, MAX_BRANCHES};
use crate::outcome::{Explored, Failure, Outcome, Reads};
use crate::property::Property;
use crate::trace;
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// Names an execution that is a schedule of a model, and one that draws what it does.
pub(super) const SCHEDULE: &str = "random schedule";
pub(super) const PROGRAM: &str = "program";

struct LimitReached;

/// Runs the executions of a property that draws them, each in the one order that it draws
/// too; `what` names such an execution.
pub(super) fn explore_drawn(property: &Property, limits: Limits, what: &str) -> Explored {
    execution::configure(None, property.setting);
    let start = Instant::now();
    let all = property.drawn.unwrap_or(0);
    let programs = all.min(limits.executions);
    let mut executions = 0;
    let mut outcome = if programs < all {
        Outcome::Cut
    } else {
        Outcome::Holds
    };
    for program in 0..programs {
        if start.elapsed() >= limits.duration {
            outcome = Outcome::Cut;
            break;
        }
        execution::draw_execution(program);
        let one = Limits {
            executions: 1,
            ..limits
        };
        executions += 1;
        let failed = run_once(property, None, one).outcome;
        if let Outcome::Fails(Failure { message, trace }) = failed {
            if what == SCHEDULE && says_no_end(&message) {
                // It is not known to have no end: the others may not have had their turn.
                executions -= 1;
                continue;
            }
            outcome = Outcome::Fails(Failure {
                message: format!("{message} ({what} {program})"),
                trace,
            });
            break;
        }
    }
    Explored {
        outcome,
        preemptions: None,
        executions,
        took: start.elapsed(),
        left_out: Vec::new(),
        schedules: 0,
        reads: Reads::One,
        every: false,
    }
}

/// Explores a model with at most so many preemptions, and with interrupts where they are
/// set.
pub(super) fn explore_once(
    property: &Property,
    preemptions: Option<usize>,
    prune_after: Option<u32>,
    limits: Limits,
) -> Explored {
    execution::configure(prune_after, property.setting);
    execution::take_witness();
    run_once(property, preemptions, limits)
}

/// Explores a model as it is configured, until loom has no further execution.
fn run_once(property: &Property, preemptions: Option<usize>, limits: Limits) -> Explored {
    let start = Instant::now();
    let budget = Budget::new(limits);
    let mut executions;
    let outcome = loop {
        let model = property.model.clone();
        let counter = Arc::new(AtomicU64::new(0));
        let counted = counter.clone();
        let mut builder = loom::model::Builder::new();
        builder.max_branches = MAX_BRANCHES;
        builder.preemption_bound = preemptions;
        builder.max_permutations = None;
        builder.max_duration = None;
        builder.checkpoint_file = None;
        builder.checkpoint_interval = usize::MAX;
        builder.location = false;
        builder.log = false;
        execution::end();
        let run = AssertUnwindSafe(|| {
            if let Some(first) = &property.first {
                first();
            }
            builder.check(move || {
                let count = counted.fetch_add(1, Ordering::Relaxed);
                if count >= limits.executions
                    || (count > 0 && budget.spent() >= limits.steps)
                    || (count % 256 == 255 && start.elapsed() >= limits.duration)
                {
                    panic_any(LimitReached);
                }
                Journal::current()
                    .executions
                    .fetch_add(1, Ordering::Relaxed);
                execution::begin();
                model();
                execution::end();
            });
        });
        let result = silently(|| catch_unwind(run));
        executions = counter.load(Ordering::Relaxed);
        match result {
            Ok(()) => break Outcome::Holds,
            Err(payload) if payload.is::<LimitReached>() => {
                executions -= 1;
                break Outcome::Cut;
            }
            Err(payload) if payload.is::<Again>() => {}
            Err(payload) => {
                break Outcome::Fails(failed(message(&*payload)));
            }
        }
    };
    let outcome = match outcome {
        Outcome::Holds if property.needs_witness && !execution::take_witness() => {
            Outcome::Fails(Failure {
                message: "no execution does what at least one must do".into(),
                trace: Vec::new(),
            })
        }
        outcome => outcome,
    };
    Explored {
        outcome,
        preemptions,
        executions,
        took: start.elapsed(),
        left_out: Vec::new(),
        schedules: 0,
        reads: Reads::One,
        every: false,
    }
}

/// Returns the failure that ends the execution under way.
pub(super) fn failed(message: String) -> Failure {
    let entries = Journal::current().entries();
    Failure {
        message,
        trace: trace::steps(&entries),
    }
}
