//! The cells of a matrix at their places, and which of them tables show together.

use crate::experiment::AT_ONCE;
use crate::matrix::{EQUAL_SHARE, HANDOFFS};
use crate::report::inputs::{Lengths, Report};
use crate::report::placed::{Placed, axis};
use crate::verdicts::{Figures, JudgedCell};
use locklab_document::number;
use locklab_judge::Verdict;

/// The number of cells beyond which tables of every cell are folded.
pub(super) const MANY: usize = 40;

/// Returns a judged cell at its place; `None` where it has no primary metric.
pub(super) fn placed<'a>(report: &Report<'a>, judged: &'a JudgedCell) -> Option<Placed<'a>> {
    let cell = report.cell(judged);
    let primary = judged.primary()?;
    let name = &primary.metric.name;
    let on = |axis: &str| cell.key.number(axis).unwrap_or(0);
    let rate = |figures: &Figures| number::or_dash(figures.get(name), number::short);
    let labels = &report.experiment.labels;
    Some(Placed {
        threads: on("threads"),
        critical: on("critical"),
        non_critical: on("non_critical"),
        at_once: cell.key.number(AT_ONCE),
        judged: &primary.judged,
        ratio: primary.ratio(),
        crowded: cell.oversubscribed,
        disagrees: handoffs_disagree(judged),
        held_back: judged.is_held_back(),
        detail: format!(
            "; {}: {}/s, {}: {}/s; {}",
            labels.baseline,
            rate(&judged.baseline),
            labels.experiment,
            rate(&judged.experiment),
            number::count(judged.differences.len(), "pair"),
        ),
    })
}

/// Returns whether operations point in the opposite direction of those at equal share, or
/// of handoffs: a lock that one owner repeatedly re-acquires looks fast.
pub(crate) fn handoffs_disagree(cell: &JudgedCell) -> bool {
    let wanted = match cell.verdict() {
        Some(Verdict::Better) => Verdict::Worse,
        Some(Verdict::Worse) => Verdict::Better,
        _ => return false,
    };
    if cell
        .metric(EQUAL_SHARE)
        .is_some_and(|share| share.verdict == wanted)
    {
        return true;
    }
    match cell.metric(HANDOFFS) {
        Some(handoffs) => handoffs.verdict == wanted,
        // Avoids the logarithm of zero, for a lock without any handoff.
        None => {
            let b = cell.baseline.get(HANDOFFS);
            let e = cell.experiment.get(HANDOFFS);
            match wanted {
                Verdict::Worse => b > Some(0.0) && e == Some(0.0),
                _ => e > Some(0.0) && b == Some(0.0),
            }
        }
    }
}

/// Cells that tables show together.
pub(super) struct Group<'a> {
    /// The placement class of their CPUs; none where they are over all.
    pub(super) class: Option<&'a str>,
    /// Says whether other cells are split by it.
    split: bool,
    /// Number of subjects in use at once, where that was asked.
    at_once: Option<u64>,
    lengths: Lengths,
    pub(super) cells: Vec<&'a JudgedCell>,
}

impl Group<'_> {
    /// Returns how many are in use at once, and the class, each where there is one.
    pub(super) fn words(&self, class: impl FnOnce(&str) -> String) -> Vec<String> {
        let at_once = self.lengths.at_once(self.at_once);
        let at_once = at_once.strip_prefix(", ").map(str::to_owned);
        let over_all = self.split.then(|| "over all placements".to_owned());
        let class = self.class.map(class).or(over_all);
        at_once.into_iter().chain(class).collect()
    }
}

/// Returns the cells of each number in use at once and placement class.
pub(super) fn groups<'a>(report: &Report<'a>) -> Vec<Group<'a>> {
    let mut groups = Vec::new();
    let classes = report.verdicts.by_class();
    let split = classes.len() > 1;
    for (class, cells) in classes {
        let count = |c: &&JudgedCell| report.cell(c).key.number(AT_ONCE);
        for at_once in axis(&cells, count) {
            let of = cells.iter().filter(|c| count(c) == at_once).copied();
            groups.push(Group {
                class,
                split,
                at_once,
                lengths: report.lengths,
                cells: of.collect(),
            });
        }
    }
    groups
}

/// Returns the cells of each placement class and non-critical length, with a title.
pub(super) fn blocks<'a>(report: &Report<'a>) -> Vec<(String, Vec<&'a JudgedCell>)> {
    let length = |c: &&JudgedCell| report.cell(c).key.number("non_critical").unwrap_or(0);
    let mut blocks = Vec::new();
    for group in groups(report) {
        let words = group.words(|class| format!("CPUs placed as \"{class}\""));
        let placed: String = words.iter().map(|word| format!(", {word}")).collect();
        for of in axis(&group.cells, length) {
            let title = format!("Non-critical length {of}{}{placed}", report.lengths.unit());
            let block = group.cells.iter().filter(|c| length(c) == of).copied();
            blocks.push((title, block.collect()));
        }
    }
    blocks
}

pub(super) fn all_placed<'a>(report: &Report<'a>, cells: &[&'a JudgedCell]) -> Vec<Placed<'a>> {
    cells.iter().filter_map(|c| placed(report, c)).collect()
}
