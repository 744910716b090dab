//! A comparison as a gate in continuous integration: the verdicts that fail it,
//! whether the number of pairs can decide anything, and why it is not complete.
//!
//! It judges nothing itself. A gate that judged nothing fails: success would
//! mean that nothing is worse.

use crate::chunk::is_elsewhere;
use crate::experiment::{Cell, Experiment, Layout, Role};
use crate::ranking::Point;
use crate::ranking::{Question, Ranking};
use crate::verdicts::Verdicts;
use clap::ValueEnum;
use locklab_document::number::count;
use locklab_host::error::Error;
use locklab_judge::{Family, MIN_PAIRS, Verdict, blocks_needed, fewest_callable, pairs_needed};
use serde::Serialize;

/// The verdicts that a gate fails on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FailOn {
    /// A regression
    Worse,
    /// Neither shown to differ nor to be flat
    Unclear,
    /// Cannot be read: failed runs, too few pairs
    Invalid,
    /// A cell without all its pairs
    Incomplete,
}

impl FailOn {
    /// Returns the word on the command line.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Worse => "worse",
            Self::Unclear => "unclear",
            Self::Invalid => "invalid",
            Self::Incomplete => "incomplete",
        }
    }

    /// Returns the exit code of a gate that fails for this reason.
    #[must_use]
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Worse => 3,
            Self::Unclear => 4,
            Self::Invalid => 5,
            Self::Incomplete => 6,
        }
    }

    /// Returns those that were named, the weightiest first: what is worse was shown, what
    /// is invalid or missing was not.
    pub fn by_weight(named: &[Self]) -> impl Iterator<Item = Self> {
        let order = [Self::Worse, Self::Invalid, Self::Incomplete, Self::Unclear];
        order.into_iter().filter(|word| named.contains(word))
    }
}

/// Returns the weightiest of the verdicts on which the gate fails, if it fails.
///
/// # Errors
/// If no cell has a verdict, so that nothing was judged.
pub fn fails(
    fail_on: &[FailOn],
    experiment: &Experiment,
    verdicts: &Verdicts,
) -> Result<Option<FailOn>, Error> {
    if let Some(ranking) = &verdicts.ranking {
        return fails_today(fail_on, experiment, ranking);
    }
    let is_invalid = |v: &Verdict| matches!(v, Verdict::Invalid(_));
    let judged = verdicts
        .cells
        .iter()
        .flat_map(|cell| &cell.metrics)
        .filter(|m| m.metric.role == Role::Primary)
        .any(|m| m.judged.was_judged());
    if !fail_on.is_empty() && !judged {
        return Err(Error::Failed(
            "--fail-on judged nothing: no cell has a verdict; give more --pairs or more time"
                .into(),
        ));
    }
    let incomplete = experiment.interrupted.is_some()
        || experiment.cells.iter().any(|cell| {
            cell.stopped.is_some() || cell.pairs.len() < experiment.design.pairs as usize
        });
    Ok(FailOn::by_weight(fail_on).find(|fail_on| match fail_on {
        FailOn::Worse => verdicts.primaries().any(|v| *v == Verdict::Worse),
        FailOn::Unclear => verdicts
            .primaries()
            .any(|v| matches!(v, Verdict::Unclear { .. })),
        FailOn::Invalid => verdicts.primaries().any(is_invalid),
        FailOn::Incomplete => incomplete,
    }))
}

/// Returns whether what is in use today fails against the best of the others.
fn fails_today(
    fail_on: &[FailOn],
    experiment: &Experiment,
    ranking: &Ranking,
) -> Result<Option<FailOn>, Error> {
    let words = ranking.points.iter().filter_map(Point::today);
    let words: Vec<&str> = words.collect();
    if !fail_on.is_empty() && words.iter().all(|word| *word == "invalid") {
        return Err(Error::Failed(
            "--fail-on judged nothing: what is in use today has a rank at no point; give more \
             --pairs or more time"
                .into(),
        ));
    }
    let stopped = |cell: &Cell| cell.stopped.is_some();
    let incomplete = experiment.interrupted.is_some() || experiment.cells.iter().any(stopped);
    Ok(FailOn::by_weight(fail_on).find(|fail_on| match fail_on {
        FailOn::Incomplete => incomplete,
        other => words.contains(&other.word()),
    }))
}

/// Returns a warning, before anything runs, that this few pairs can decide nothing, or
/// no single comparison alone.
#[must_use]
pub fn too_few_pairs(experiment: &Experiment) -> Option<String> {
    if experiment.layout() == Layout::Ranking {
        return too_few_blocks(experiment);
    }
    let metrics = experiment.cells.iter().flat_map(|cell| &cell.metrics);
    let (inside, alone): (Vec<_>, Vec<_>) = metrics
        .filter(|metric| metric.role == Role::Primary)
        .partition(|metric| metric.at.is_some());
    // A look has its part of the 5 %, as if there were so many times the members.
    let looks = experiment.design.looks() as usize;
    let pairs = experiment.design.pairs as usize * looks;
    // The places of a matrix that one run gives are a family of their own.
    let families = [
        (experiment.design.family, alone.len().max(1)),
        (Family::FalseDiscovery, inside.len()),
    ];
    families
        .into_iter()
        .filter(|(_, judged)| *judged > 0)
        .find_map(|(family, judged)| too_few_for(family, judged, looks, pairs))
}

fn too_few_blocks(experiment: &Experiment) -> Option<String> {
    let subjects = Question::of(experiment)?.subjects.len();
    let (blocks, needed) = (experiment.design.pairs as usize, blocks_needed(subjects));
    (blocks < needed).then(|| {
        format!(
            "Too few: {} cannot rank {subjects}; give --pairs {needed} or more.",
            count(blocks, "block")
        )
    })
}

fn too_few_for(family: Family, judged: usize, looks: usize, pairs: usize) -> Option<String> {
    let needed = pairs_needed(family, judged * looks).max(MIN_PAIRS);
    if pairs >= needed {
        return None;
    }
    let together = fewest_callable(family, judged * looks, pairs).filter(|_| pairs >= MIN_PAIRS);
    let (pairs, of) = (count(pairs, "pair"), count(judged, "comparison"));
    Some(match together {
        None => format!(
            "Too few: with {pairs} no verdict on {of} can be better or worse; give --pairs {needed} or more."
        ),
        Some(together) => format!(
            "Few: with {pairs} one of {of} alone cannot be called, {together} must agree; --pairs \
             {needed} lets each be called."
        ),
    })
}

/// Returns why cells are not complete, if some are not that were not left to another chunk.
#[must_use]
pub fn not_complete(experiment: &Experiment) -> Option<String> {
    let is_stopped = |cell: &&Cell| cell.stopped.is_some() && !is_elsewhere(cell);
    let stopped = || experiment.cells.iter().filter(is_stopped);
    let names: Vec<String> = stopped().map(|cell| cell.key.to_string()).collect();
    let mut reasons: Vec<&str> = stopped().filter_map(|c| c.stopped.as_deref()).collect();
    reasons.dedup();
    match reasons[..] {
        [] => None,
        [why] => Some(format!("not complete: {} ({why})", names.join("; "))),
        _ => Some(format!(
            "not complete: {}; the report says why",
            names.join("; ")
        )),
    }
}
