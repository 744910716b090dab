//! The number of preemptions up to which a model is explored, and the accesses before
//! which an interrupt comes.
//!
//! Must never name a bound that was not explored to its end.

use super::executions::{PROGRAM, explore_drawn, explore_once};
use crate::execution;
use crate::limits::{Budget, Limits};
use crate::outcome::{Explored, Outcome, Reads};
use crate::property::Property;

/// Divides the executions: such a part may go to any number of preemptions before a bound
/// is tried.
const UNBOUNDED_SHARE: u64 = 4;

/// Counts the fruitless reads after which a bounded exploration is pruned: where one would
/// let another thread run for nothing, the equal execution without it costs a preemption.
const BOUNDED_PRUNE_AFTER: u32 = 2;

/// Stretches the limit of executions for one preemption, without which nothing is proven.
const ONE_SHARE: u64 = 10;

/// Stretches it for the bound that is aimed at.
const AIM_SHARE: u64 = 2;

/// Estimates the executions of the next bound: at least so many times those of this one.
const GROWTH: u64 = 2;

/// Estimates those of the second bound: so many times those of the first, in most models.
const AIM_GROWTH: u64 = 5;

/// Explores a model with any number of preemptions if that ends soon enough, otherwise
/// with the most with which it does.
pub(super) fn explore_bounds(property: &Property, limits: Limits) -> Explored {
    if property.drawn.is_some() {
        let drawn = explore_drawn(property, limits, PROGRAM);
        // As many as are allowed: there is no end that they could come to.
        let outcome = match drawn.outcome {
            Outcome::Cut => Outcome::Holds,
            outcome => outcome,
        };
        return Explored { outcome, ..drawn };
    }
    let budget = Budget::new(limits);
    let left = |executions| budget.left(executions);
    let done = |explored| Explored {
        took: budget.elapsed(),
        ..explored
    };
    let any = explore_within(
        property,
        None,
        pruning(None),
        left(limits.executions / UNBOUNDED_SHARE),
    );
    if any.outcome != Outcome::Cut {
        return done(any);
    }
    let mut spent = any.executions;
    let mut reached: Option<Explored> = None;
    let mut before = 0;
    for preemptions in 1.. {
        let mut executions = limits.executions.saturating_sub(spent);
        // Not begun if it would not end.
        let mut growth = GROWTH;
        if preemptions == 1 {
            executions = limits.executions.saturating_mul(ONE_SHARE);
        } else if preemptions <= property.aim {
            executions = limits.executions.saturating_mul(AIM_SHARE);
            growth = AIM_GROWTH;
        } else if let Some(reached) = &reached {
            growth = growth.max(reached.executions / before.max(1));
        }
        if let Some(reached) = &reached
            && reached.executions.saturating_mul(growth) > executions
        {
            break;
        }
        before = reached.as_ref().map_or(0, |reached| reached.executions);
        let bound = Some(preemptions);
        let next = explore_within(property, bound, pruning(bound), left(executions));
        spent += next.executions;
        match next.outcome {
            Outcome::Holds => reached = Some(next),
            Outcome::Cut => break,
            Outcome::Fails(_) => return done(next),
        }
    }
    done(match reached {
        Some(reached) => reached,
        None => Explored {
            executions: spent,
            preemptions: Some(1),
            left_out: match any.left_out.is_empty() {
                true => vec![format!(
                    "executions with one preemption, after the first {spent}: \
                     --executions N allows more"
                )],
                false => any.left_out,
            },
            ..any
        },
    })
}

/// Returns after how many fruitless reads of one wait an execution is pruned.
pub(crate) fn pruning(preemptions: Option<usize>) -> Option<u32> {
    Some(preemptions.map_or(1, |_| BOUNDED_PRUNE_AFTER))
}

/// Counts the accesses before which an interrupt is tried.
const MOST_ACCESSES: u32 = 100;

/// Divides the executions: such a part goes to one of those accesses.
const INTERRUPT_SHARE: u64 = 16;

/// Explores the model of a property with at most so many preemptions. Without
/// pruning, few models of three threads end.
pub(crate) fn explore_within(
    property: &Property,
    preemptions: Option<usize>,
    prune_after: Option<u32>,
    limits: Limits,
) -> Explored {
    if let Some(explorer) = &property.explorer {
        return explorer(limits);
    }
    if property.drawn.is_some() {
        return explore_drawn(property, limits, PROGRAM);
    }
    if !property.setting.interrupts {
        return explore_once(property, preemptions, prune_after, limits);
    }
    let budget = Budget::new(limits);
    let of_one = limits.executions.div_ceil(INTERRUPT_SHARE);
    let mut executions = 0;
    let mut outcome = Outcome::Holds;
    let mut left_out = Vec::new();
    let mut at = [0; 2];
    while at.iter().all(|&access| access < MOST_ACCESSES) {
        execution::interrupt_at(at);
        let explored = explore_once(property, preemptions, prune_after, budget.left(of_one));
        executions += explored.executions;
        if explored.outcome != Outcome::Holds {
            (outcome, left_out) = (explored.outcome, explored.left_out);
        }
        if matches!(outcome, Outcome::Fails(_)) {
            break;
        }
        at = match execution::interrupted() {
            0 => break,
            1 => [at[0] + 1, 0],
            _ => [at[0], at[1] + 1],
        };
    }
    Explored {
        outcome,
        preemptions,
        executions,
        took: budget.elapsed(),
        left_out,
        schedules: 0,
        reads: Reads::One,
        every: false,
    }
}
