//! What a reader must know before believing a matrix, for text and HTML.
//!
//! Caveats of the instrument, of the machine, and of the judge; each kind
//! once, with the number of cells that it concerns.

use super::{Report, axis};
use crate::matrix::{Measured, Provenance};
use crate::report::number;
use crate::verdicts::JudgedCell;
use locklab_judge::{Reason, Verdict, Warning};
use std::collections::BTreeMap;
use std::mem::discriminant;

/// More pairs than this are not a remedy.
const HOPELESS: u64 = 500;

/// Below this share of CPU time something else ran, or the lock sleeps.
const FULL_CPU: f64 = 0.95;

/// What it would take to settle the unclear cells.
pub(super) fn unclear(report: &Report) -> Option<String> {
    let mut detectable = Vec::new();
    let mut needed = Vec::new();
    let (mut cells, mut blind) = (0, 0);
    for cell in &report.verdicts.cells {
        if let Verdict::Unclear {
            detectable: effect,
            pairs_for_flat,
        } = &cell.judged.verdict
        {
            cells += 1;
            match effect {
                Some(effect) => detectable.push(100.0 * effect),
                None => blind += 1,
            }
            needed.extend(pairs_for_flat);
        }
    }
    if cells == 0 {
        return None;
    }
    let mut words = vec![format!(
        "{cells} unclear: neither shown to differ nor shown to be equal."
    )];
    detectable.sort_by(f64::total_cmp);
    if let (Some(low), Some(high)) = (detectable.first(), detectable.last()) {
        let middle = detectable[detectable.len() / 2];
        let [low, high, middle] = [*low, *high, middle].map(effect);
        words.push(if low == high {
            format!("So many pairs find a difference of {low} four times in five.")
        } else {
            format!(
                "So many pairs find a difference of {low} to {high} (half the cells: {middle}) \
                 four times in five."
            )
        });
    }
    if blind > 0 {
        words.push(format!(
            "In {} so few pairs cannot call any difference, however large.",
            number::count(blind, "cell")
        ));
    }
    needed.sort_unstable();
    if let (Some(low), Some(high)) = (needed.first(), needed.last()) {
        let middle = needed[needed.len() / 2];
        let [few, many] = [*low, *high].map(number::grouped);
        words.push(if low == high {
            format!("Where there is none, about {few} pairs a cell would show it flat.")
        } else {
            format!(
                "Where there is none, about {few} to {many} pairs a cell would show it flat \
                 (half the cells: {}).",
                number::grouped(middle)
            )
        });
        if middle > HOPELESS {
            words.push(
                match report.measured.provenance {
                    Provenance::Hardware(_) => {
                        "That is out of reach: quiet the machine, take longer runs, or settle \
                         for a wider margin before the next run."
                    }
                    Provenance::Simulation(_) | Provenance::Model(_) => {
                        "That is out of reach: settle for a wider margin before the next run."
                    }
                }
                .into(),
            );
        }
    }
    Some(words.join(" "))
}

/// A difference in percent; beyond a factor of ten the figure means nothing.
fn effect(percent: f64) -> String {
    if percent > 1000.0 {
        "over 1000 %".into()
    } else {
        format!("{} %", number::percent(percent))
    }
}

/// What a reader must know before believing the figures.
pub(super) fn all(report: &Report) -> Vec<String> {
    let Measured {
        spec,
        caveats,
        interrupted,
        ..
    } = report.measured;
    let verdicts = report.verdicts;
    let mut list = Vec::new();
    if let Some(missing) = interrupted {
        list.push(format!("Interrupted: {missing}"));
    }
    if !verdicts.missing.is_empty() {
        list.push(format!(
            "{} not measured ('.' in the tables); --resume goes on.",
            number::count(verdicts.missing.len(), "cell")
        ));
    }
    list.extend(caveats.iter().cloned());
    let crowded: Vec<&JudgedCell> = verdicts.cells.iter().filter(|c| c.oversubscribed).collect();
    if !crowded.is_empty() {
        let threads: Vec<String> = axis(&crowded, |c| c.point.threads)
            .iter()
            .map(ToString::to_string)
            .collect();
        list.push(format!(
            "Oversubscribed ('o'): {} {} are more than the CPUs, so a holder or the next in line \
             may be off its CPU; this measures the scheduler with the lock.",
            threads.join(", "),
            if spec.processes {
                "processes"
            } else {
                "threads"
            }
        ));
    }
    let disturbed = |c: &&JudgedCell| {
        let starved = |share: Option<f64>| share.is_some_and(|s| s < FULL_CPU);
        starved(c.baseline.cpu_share) || starved(c.experiment.cpu_share)
    };
    match verdicts.cells.iter().filter(disturbed).count() {
        0 => {}
        n => list.push(format!(
            "In {} the threads were off their CPUs for over {:.0} % of the time that they could \
             have had: something else ran, or the lock sleeps.",
            number::count(n, "cell"),
            100.0 * (1.0 - FULL_CPU)
        )),
    }
    list.extend(placement(report));
    let streaky = verdicts.cells.iter().filter(|c| c.streaky()).count();
    if streaky > 0 {
        list.push(format!(
            "In {} ('s') operations and handoffs between threads point opposite ways: a lock that \
             its last owner keeps re-taking looks fast. Read the handoffs beside the ratio.",
            number::count(streaky, "cell")
        ));
    }
    list.extend(invalid(report));
    list.extend(warnings(report));
    list
}

fn placement(report: &Report) -> Vec<String> {
    let groups = report.verdicts.by_class();
    let mut list = Vec::new();
    for (class, cells) in &groups {
        let Some(class) = class else { continue };
        let trips = || cells.iter().filter_map(|c| c.round_trip);
        let low = trips().map(|t| t.0).fold(f64::INFINITY, f64::min);
        let high = trips().map(|t| t.1).fold(0.0, f64::max);
        list.push(format!(
            "Placement \"{class}\": {}, a cache line went there and back in {} to {} ns.",
            number::count(cells.iter().filter(|c| c.class.is_some()).count(), "cell"),
            number::short(low),
            number::short(high)
        ));
    }
    if groups.len() > 1 {
        list.push(
            "The CPUs moved while this was measured: tables of different placements must not be \
             compared with one another."
                .into(),
        );
    }
    let mut elsewhere: BTreeMap<&str, usize> = BTreeMap::new();
    for (class, pairs) in report.verdicts.cells.iter().flat_map(|c| &c.elsewhere) {
        *elsewhere.entry(class).or_default() += pairs;
    }
    for (class, pairs) in elsewhere {
        list.push(format!(
            "{} in placement \"{class}\" left out: too few in their cells to be judged.",
            number::count(pairs, "pair")
        ));
    }
    list
}

/// Each kind of reason once, with the number of cells that have it.
fn invalid(report: &Report) -> Vec<String> {
    let mut kinds: Vec<(&Reason, usize)> = Vec::new();
    let same = |a: &Reason, b: &Reason| match (a, b) {
        (Reason::Fatal { fault: a, .. }, Reason::Fatal { fault: b, .. }) => {
            (a.kind, a.side) == (b.kind, b.side)
        }
        _ => discriminant(a) == discriminant(b),
    };
    for cell in &report.verdicts.cells {
        let Verdict::Invalid(reasons) = &cell.judged.verdict else {
            continue;
        };
        for reason in reasons {
            match kinds.iter_mut().find(|(kind, _)| same(kind, reason)) {
                Some((_, n)) => *n += 1,
                None => kinds.push((reason, 1)),
            }
        }
    }
    kinds.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
    kinds
        .into_iter()
        .map(|(reason, n)| match n {
            1 => format!("Invalid in 1 cell: {reason}."),
            n => format!("Invalid in {n} cells, the first of which: {reason}."),
        })
        .collect()
}

/// Each kind of warning once, with the number of cells that carry it.
fn warnings(report: &Report) -> Vec<String> {
    let mut kinds: Vec<(&Warning, usize)> = Vec::new();
    let judged = report.verdicts.cells.len();
    for warning in report
        .verdicts
        .cells
        .iter()
        .flat_map(|c| &c.judged.warnings)
    {
        match kinds
            .iter_mut()
            .find(|(w, _)| discriminant(*w) == discriminant(warning))
        {
            Some((_, n)) => *n += 1,
            None => kinds.push((warning, 1)),
        }
    }
    kinds
        .into_iter()
        .map(|(warning, n)| match warning {
            // True of all, so the number says nothing.
            Warning::BandUnknown | Warning::TooFewForFamily { .. } => {
                sentence_case(&format!("{warning}."))
            }
            Warning::Autocorrelated { .. } => format!(
                "In {} of {judged} the pairs remember one another (lag-1 autocorrelation beyond \
                 2/sqrt(n); chance alone gives about {}): their error rate may not be 5 %.",
                number::count(n, "cell"),
                (0.05 * judged as f64).round()
            ),
            _ if n == 1 => format!("In 1 cell: {warning}."),
            _ => format!(
                "In {}, the first of which: {warning}.",
                number::count(n, "cell")
            ),
        })
        .collect()
}

fn sentence_case(text: &str) -> String {
    let mut chars = text.chars();
    chars
        .next()
        .map(|c| c.to_uppercase().chain(chars).collect())
        .unwrap_or_default()
}
