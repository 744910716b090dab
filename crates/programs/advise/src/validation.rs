//! Counts how often a direction of the model was right where the answer is published, for
//! the kinds of question that the advice answers.
//!
//! The counts and their words are those of every report on models
//! ([`locklab_published::modelled::score`]). It must never give a kind of question the
//! score of another.

use crate::question::Question;
use crate::runs::Point;
use locklab_published::Question as Kind;
use locklab_published::modelled::score;
use locklab_sim::Machine;
use std::collections::BTreeSet;

/// Holds what became of predictions for recorded programs that were then measured: the
/// table of results/programs.md.
const PROGRAMS: &str = "Of recorded programs that were then measured (docs/record.md), 55 of 56 \
    simulated directions were right: confirm what this report says before you rely on it.";

/// Holds the same in the first paragraph, of locks that are predicted.
pub(crate) const CONFIDENCE: &str = "Of such predictions for programs that were measured \
    afterwards, 55 of 56 had the right direction.";
/// Holds the same where there is nothing to gain.
pub(crate) const CONFIDENCE_NOTHING: &str = "Where that was said of programs that were measured \
    afterwards, no lock gained, in 27 of 27 cases.";

/// Returns one sentence for each kind of question.
pub(crate) fn sentences<'a>(
    points: impl Iterator<Item = &'a Point>,
    question: &Question,
) -> Vec<String> {
    let kinds: BTreeSet<Kind> = points
        .map(|point| kind(&question.machines[point.machine], point.running))
        .collect();
    let mut sentences = score::sentences(&question.machines, kinds);
    sentences.push(PROGRAMS.to_owned());
    sentences
}

/// Returns the kind of question of so many threads, spread over a machine.
fn kind(machine: &Machine, running: usize) -> Kind {
    match running {
        0 | 1 => Kind::Uncontended,
        _ if running > machine.hardware_threads() => Kind::MoreThreads,
        _ if machine.sockets() > 1 => Kind::AcrossSockets,
        _ => Kind::SameSocket,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tables are measured, so their counts are written down twice; they must agree.
    #[test]
    fn the_counts_of_programs_are_those_of_the_docs() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/record.md");
        let page = std::fs::read_to_string(page).unwrap();
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let page = words(&page);
        assert!(page.contains("55 of 56 directions were right"));
        assert!(words(PROGRAMS).contains("55 of 56 simulated directions were right"));
        assert!(words(CONFIDENCE).contains("55 of 56 had the right direction"));
        assert!(page.contains("Where nothing was to gain, no lock gained in 27 of 27"));
        assert!(words(CONFIDENCE_NOTHING).contains("no lock gained, in 27 of 27"));
    }

    #[test]
    fn threads_and_a_machine_give_the_kind_of_question() {
        let two_sockets = Machine::builtin("epyc-7763-2s").unwrap();
        let one = Machine::builtin("flat-16").unwrap();
        assert_eq!(kind(&two_sockets, 32), Kind::AcrossSockets);
        assert_eq!(kind(&one, 16), Kind::SameSocket);
        assert_eq!(kind(&one, 1), Kind::Uncontended);
        assert_eq!(kind(&one, 17), Kind::MoreThreads);
    }
}
