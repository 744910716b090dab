//! Counts how often a direction that the simulator prints was right where the answer is
//! published: the counts of `reproduce all`, kept in
//! `reference/scores.toml` so that every simulated report can quote them.

use crate::agreement::{FLAT, factor_error};
use crate::reproduction::{Question, Reproduction};
use crate::split::Group;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// A simulated ratio is a large one if it is at least this, or at most its inverse: smaller ones
/// are more often on the wrong side of 1.
pub(crate) const LARGE: f64 = 1.5;
/// The number of large ratios below which they say nothing.
const FEWEST: u32 = 5;

/// Figures of one kind of question whose simulated ratio has a direction, and
/// those of them whose published ratio is on the same side of 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Validation {
    /// Simulated ratios that are off 1 by more than [`FLAT`].
    pub printed: u32,
    /// The number whose direction is the published one.
    pub right: u32,
    /// The number that is at least 1.5, or at most 1/1.5.
    pub large: u32,
    /// The number of those whose direction is the published one.
    pub large_right: u32,
}

static KEPT: LazyLock<BTreeMap<String, Validation>> = LazyLock::new(|| {
    /// The part of the file of scores that reports quote.
    #[derive(Deserialize)]
    struct Kept {
        counts: BTreeMap<String, Validation>,
    }
    let kept: Kept =
        toml::from_str(include_str!("../reference/scores.toml")).expect("tests read it");
    kept.counts
});

impl Validation {
    /// Returns the counts of a kind of question.
    pub fn of(question: Question) -> Self {
        KEPT.get(question.key()).copied().unwrap_or_default()
    }

    /// Counts anew.
    pub fn count(question: Question, reports: &[Reproduction]) -> Self {
        // What evaluates locks that sleep, and more threads than CPUs, is apart.
        let apart = |group: Option<Group>| group == Some(Group::Sleeping);
        let of = apart(Some(question.judged_by()));
        let reports = (reports.iter())
            .filter(|report| report.group != Some(Group::Unnamed) && apart(report.group) == of);
        let figures = reports.flat_map(|report| &report.figures);
        let mut counts = Self::default();
        for figure in figures.filter(|figure| figure.question == question) {
            let Some(theirs) = figure.theirs() else {
                continue;
            };
            if (figure.ours - 1.0).abs() > FLAT {
                counts.printed += 1;
                let right = u32::from(theirs.agrees(figure.ours));
                let large = u32::from(factor_error(1.0, figure.ours) >= LARGE);
                counts.right += right;
                counts.large += large;
                counts.large_right += right * large;
            }
        }
        counts
    }

    /// Returns the 95 % interval of the chance that a direction is right (Wilson's); from
    /// 0 to 1 where nothing was counted.
    pub fn interval(self) -> (f64, f64) {
        const Z: f64 = 1.96;
        let n = f64::from(self.printed);
        if self.printed == 0 {
            return (0.0, 1.0);
        }
        let share = f64::from(self.right) / n;
        let centre = share + Z * Z / (2.0 * n);
        let half = Z * (share * (1.0 - share) / n + Z * Z / (4.0 * n * n)).sqrt();
        let scale = 1.0 + Z * Z / n;
        ((centre - half) / scale, (centre + half) / scale)
    }

    /// Returns what it means for a reader.
    pub fn sentence(self, question: Question) -> String {
        if self.printed == 0 {
            return format!(
                "No comparison of this kind ({}) has published figures: how often a direction is \
                 right is not known.",
                question.title()
            );
        }
        let (low, high) = self.interval();
        // Where all are large, that says nothing more.
        let large = match (FEWEST..self.printed).contains(&self.large) {
            true => format!(
                " Of ratios of at least {LARGE}, or at most 1/{LARGE}, {} of {} were right.",
                self.large_right, self.large
            ),
            false => String::new(),
        };
        format!(
            "Of comparisons of this kind ({}) with published figures, {} of {} simulated \
             directions were right: a printed better or worse is right with a probability of \
             {:.0} to {:.0} % (95 % interval).{large}",
            question.title(),
            self.right,
            self.printed,
            100.0 * low,
            100.0 * high
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_figures_make_a_wide_interval() {
        let of = |right, printed| {
            let counts = Validation {
                printed,
                right,
                ..Validation::default()
            };
            counts.interval()
        };
        assert_eq!(of(0, 0), (0.0, 1.0));
        let (low, high) = of(93, 100);
        assert!((0.86..0.87).contains(&low) && (0.96..0.97).contains(&high));
        let (low, high) = of(4, 4);
        assert!((0.5..0.52).contains(&low) && high > 0.99);
        assert!(KEPT.values().all(|counts| {
            counts.right <= counts.printed
                && counts.large_right <= counts.large.min(counts.right)
                && counts.large <= counts.printed
        }));
    }

    #[test]
    fn the_sentence_says_how_many() {
        let mut counts = Validation {
            printed: 10,
            right: 9,
            large: 6,
            large_right: 6,
        };
        let sentence = counts.sentence(Question::SameSocket);
        assert!(sentence.contains("9 of 10"), "{sentence}");
        assert!(sentence.ends_with("6 of 6 were right."), "{sentence}");
        counts.large = 10;
        let sentence = counts.sentence(Question::SameSocket);
        assert!(sentence.ends_with("interval)."), "{sentence}");
        let none = Validation::default().sentence(Question::Oversubscribed);
        assert!(none.starts_with("No comparison"), "{none}");
    }
}
