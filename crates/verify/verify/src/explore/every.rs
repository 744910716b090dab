//! Explores a model as execution graphs: every execution, each once, with no bound on
//! preemptions.
//!
//! A graph stands for all interleavings that differ only in the order of what does not
//! meet, so three and four threads of most locks are explored to their end. What a model
//! may ask of the world that is not here (an interrupt before any access, a clock that all
//! share) is loom's.
//!
//! Must never call an exploration that a limit has ended complete.

use super::executions::failed;
use crate::execution;
use crate::graphs::{in_journal, world};
use crate::journal::Journal;
use crate::limits::Limits;
use crate::outcome::{Explored, Outcome, Reads};
use crate::property::Property;
use locklab_graph::{Explorer, Failure, FailureKind, Options};
use std::sync::atomic::Ordering;

/// The most events of a thread: none of a lock that ends has a hundred.
const EVENTS: usize = 1_000;

/// Stretches the limit of executions for what is no part of the record.
const UNRECORDED_SHARE: u64 = 8;

/// Explores every execution of a property, as far as the limits allow. Returns `None` if that
/// comes to no end, or the property has no model for it.
pub(super) fn explore_every(property: &Property, limits: Limits) -> Option<Explored> {
    let model = property.graphs.clone()?;
    let setting = property.setting;
    if property.drawn.is_some() || setting.interrupts || setting.last_names {
        return None;
    }
    execution::configure(None, setting);
    execution::take_witness();
    world::configure();
    let share = if property.unrecorded {
        UNRECORDED_SHARE
    } else {
        1
    };
    let options = Options {
        executions: limits.executions.saturating_mul(share),
        duration: Some(limits.duration),
        events: EVENTS,
        ..Options::default()
    };
    let report = loop {
        let asked = world::asked();
        let model = model.clone();
        let test = move || {
            Journal::current()
                .executions
                .fetch_add(1, Ordering::Relaxed);
            execution::begin_any();
            world::begin();
            model();
        };
        let report = Explorer::new(options.clone()).check(test);
        world::end();
        if world::asked() == asked {
            break report;
        }
    };
    let ended = report.limit.is_none() && report.bounded.is_empty();
    let beyond = world::was_beyond()
        || matches!(
            &report.error,
            Some(error) if matches!(error.kind, FailureKind::TooLong | FailureKind::NotDeterministic)
        );
    if beyond || (report.error.is_none() && !ended) {
        return None;
    }
    let outcome = match &report.error {
        Some(error) => Outcome::Fails(failed(message(error))),
        None if property.needs_witness && !execution::take_witness() => {
            return None;
        }
        None => Outcome::Holds,
    };
    Some(Explored {
        outcome,
        preemptions: None,
        executions: report.executions,
        took: report.took,
        left_out: Vec::new(),
        schedules: 0,
        reads: Reads::Either,
        every: true,
    })
}

/// Says what is wrong in the words in which loom's explorations say it.
fn message(error: &Failure) -> String {
    match error.kind {
        FailureKind::DataRace | FailureKind::UseAfterFree => {
            "two accesses are not ordered: one does not see the other's writes".into()
        }
        FailureKind::Deadlock => {
            let place = in_journal(error.place);
            format!("deadlock: every thread waits, the last at {place}")
        }
        _ => {
            let place = format!(" at {}", error.place);
            let text = error.message.strip_suffix(&place);
            text.unwrap_or(&error.message).to_owned()
        }
    }
}

#[cfg(test)]
#[path = "../../tests/unit/graphs.rs"]
mod tests;
