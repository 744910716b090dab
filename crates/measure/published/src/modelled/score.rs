//! Counts how often a direction of the model was right where the answer is published,
//! for the kinds of question that a comparison asks.
//!
//! The counts are those of `locklab_published`. Every report on models quotes them
//! from here, so that none claims more than another for the same question.

use crate::modelled::spec::Spec;
use crate::{Question, Validation};
use locklab_sim::Machine;
use std::collections::{BTreeMap, BTreeSet};

/// Returns the kinds of question that the cells of `spec` ask on `machine`.
#[must_use]
pub fn questions(spec: &Spec, machine: &Machine) -> BTreeSet<Question> {
    // Of a cell only its threads matter, and a sweep has a hundred thousand cells.
    let by_threads: BTreeMap<u64, _> = spec
        .cells
        .places()
        .into_iter()
        .map(|place| (place[0], place))
        .collect();
    by_threads
        .into_values()
        .map(|place| Question::of(&spec.scenario(machine, place, &spec.experiment, 1)))
        .collect()
}

/// Says how often a direction was right: of machines that were checked with every lock what that
/// found, and otherwise for each kind of question.
#[must_use]
pub fn sentences<'a>(
    machines: impl IntoIterator<Item = &'a Machine>,
    questions: impl IntoIterator<Item = Question>,
) -> Vec<String> {
    let found: Option<BTreeSet<_>> = machines.into_iter().map(|m| m.checked.clone()).collect();
    match found {
        Some(found) if !found.is_empty() => found.into_iter().collect(),
        _ => {
            let sentence = |question| Validation::of(question).sentence(question);
            questions.into_iter().map(sentence).collect()
        }
    }
}
