//! Runs one model: to its end with any number of preemptions if that comes
//! soon enough, otherwise with as many as it does come with; or to the first
//! execution that breaks a promise.
//!
//! Begin with [`explore_fully`]. It uses, from above: [`every`], as graphs; [`bounds`], how many
//! preemptions; [`executions`], one after the other; [`panics`], how a promise is broken.
//!
//! Must never call an exploration that was cut short complete.

mod bounds;
mod every;
mod executions;
mod panics;

use crate::execution;
use crate::limits::Limits;
use crate::outcome::{Explored, Outcome, Reads};
use crate::property::Property;
use bounds::explore_bounds;
pub(crate) use bounds::{explore_within, pruning};
use every::explore_every;
use executions::{SCHEDULE, explore_drawn};
pub(crate) use panics::{message, silently, warm_up};
use std::sync::Arc;
use std::time::Instant;

/// Divides the executions allowed: such a part goes to each bound of a second exploration,
/// in which reads come in either order. It may not take longer than the first.
const READS_SHARE: u64 = 4;

/// Explores a model with reads in either order ([`Setting::reads_conflict`]), up to the
/// bound of a first exploration, as far as so few executions reach. Returns the
/// exploration that failed instead, if one does.
///
/// [`Setting::reads_conflict`]: execution::Setting
pub(crate) fn explore_reads(
    property: &Property,
    first: &Explored,
    limits: Limits,
) -> Result<Reads, Box<Explored>> {
    let mut property = property
        .clone()
        .with(|setting| setting.reads_conflict = true);
    // The first exploration had one.
    property.needs_witness = false;
    let limits = Limits {
        executions: limits.executions / READS_SHARE,
        ..limits
    };
    let mut reached = Reads::One;
    let bounds = [None].into_iter().chain((1..).map(Some));
    for bound in bounds {
        let explored = explore_within(&property, bound, pruning(bound), limits);
        match explored.outcome {
            Outcome::Fails(_) => return Err(Box::new(explored)),
            Outcome::Holds => {
                reached = Reads::Within {
                    preemptions: bound,
                    executions: explored.executions,
                };
            }
            Outcome::Cut if bound.is_some() => break,
            Outcome::Cut => {}
        }
        if reached.reach(first.preemptions) {
            break;
        }
    }
    Ok(reached)
}

/// Divides the executions allowed: so many schedules are drawn where some were left out.
const DRAWN_SHARE: u64 = 16;

/// Limits those schedules.
const MOST_DRAWN: u64 = 10_000;

/// Limits the executions of loom that note what a model passes, of one that is explored as
/// graphs.
const NOTED: u64 = 400;

/// Explores the model of a property: as graphs if that comes to an end, and by loom
/// otherwise, or if two opinions are asked for. With `noted`, a few of loom's executions note
/// what the model passes in either case.
pub(crate) fn explore_fully(property: &Property, limits: Limits, noted: bool) -> Explored {
    let Some(every) = explore_every(property, limits) else {
        return explore_by_loom(property, limits);
    };
    if matches!(every.outcome, Outcome::Fails(_)) {
        return every;
    }
    let second = match (limits.both, noted) {
        (true, _) => explore_by_loom(property, limits),
        (false, true) => explore(
            property,
            Limits {
                executions: limits.executions.min(NOTED),
                ..limits
            },
        ),
        (false, false) => return every,
    };
    match second.outcome {
        Outcome::Fails(_) => second,
        _ => every,
    }
}

/// Explores the model of a property by loom, then with reads in either order if they were not, and
/// where executions were left out, runs random fair schedules of it: one of those may break
/// the promise after a round that no exploration comes to.
pub(crate) fn explore_by_loom(property: &Property, limits: Limits) -> Explored {
    let start = Instant::now();
    if let Some(explorer) = &property.explorer {
        return explorer(limits);
    }
    let mut explored = explore(property, limits);
    if property.drawn.is_some() || matches!(explored.outcome, Outcome::Fails(_)) {
        return explored;
    }
    explored.reads = match property.setting.reads_conflict {
        true => Reads::Either,
        false => match explore_reads(property, &explored, limits) {
            Ok(reads) => reads,
            Err(fails) => return *fails,
        },
    };
    explored.took = start.elapsed();
    // An interrupt comes before an access by its number, which another schedule has not.
    if explored.outcome != Outcome::Cut || property.setting.interrupts {
        return explored;
    }
    let model = property.model.clone();
    let schedules = Property {
        drawn: Some((limits.executions / DRAWN_SHARE).min(MOST_DRAWN)),
        needs_witness: false,
        model: Arc::new(move || execution::in_a_drawn_schedule(|| model())),
        ..property.clone()
    };
    let limits = Limits {
        duration: limits.duration.saturating_sub(explored.took),
        ..limits
    };
    let drawn = explore_drawn(&schedules, limits, SCHEDULE);
    let outcome = match drawn.outcome {
        fails @ Outcome::Fails(_) => fails,
        _ => Outcome::Cut,
    };
    Explored {
        outcome,
        schedules: drawn.executions,
        took: explored.took + drawn.took,
        ..explored
    }
}

/// Explores the model of a property, as far as the limits allow.
pub(crate) fn explore(property: &Property, limits: Limits) -> Explored {
    match &property.explorer {
        Some(explorer) => explorer(limits),
        None => explore_bounds(property, limits),
    }
}
