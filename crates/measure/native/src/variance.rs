//! The effect of a lock's address and of its code layout, from the
//! blocks of an experiment: a program gets one address and one layout, and
//! both are a matter of chance.
//!
//! A ratio is over addresses and layouts, so neither changes it; this module
//! gives how much either changes one lock's own rate. It judges nothing.

use crate::anova::{between, mean, variance};
use crate::figures::Detail;
use crate::resolution;
use crate::round_trip::median;
use locklab_document::number;
use locklab_document::{Column, ColumnGroup, Document, Part, Section, Table};
use locklab_harness::experiment::{Cell, Experiment, Provenance, Sample};
use locklab_harness::matrix::OPS;
use locklab_harness::placement::gap;
use locklab_harness::report::Words;
use locklab_harness::verdicts::Verdicts;
use serde::Serialize;
use std::collections::BTreeMap;

/// The fewest blocks from which a spread is estimated.
const LEAST_BLOCKS: usize = 6;

/// The fewest blocks of one of two modes.
const LEAST_OF_A_MODE: usize = 8;
/// The least ratio between two modes: less would not make an interval wide.
const APART: f64 = 1.02;

/// Standard deviations of one lock's rate, as fractions of it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Deviations {
    /// The deviation from one block to another: other addresses, and another moment.
    pub(crate) blocks: f64,
    /// The deviation from one address to another, within a block; without the noise of the
    /// slices. `None` where blocks are too short to tell.
    pub(crate) addresses: Option<f64>,
    /// The deviation from one code layout to another, within a block; without the noise of
    /// the slices. `None` where one layout was fixed.
    pub(crate) layouts: Option<f64>,
}

/// Both locks with one number of threads: the medians over the cells.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct Row {
    threads: u64,
    baseline: Deviations,
    experiment: Deviations,
}

/// The words in which reports speak of locks, measured or simulated.
pub const WORDS: Words = Words {
    subject: "lock",
    lean: ["waiters without memory", "if waiters bring no queue node"],
    oversubscribed: "a holder or the next in line may be off its CPU; the figures include the \
                     scheduler",
    off_cpu: "something else ran, or the lock sleeps",
    handoffs: "a lock that its last owner keeps re-taking looks fast",
};

/// Appends to the report of a measured matrix the variation from place and layout, what
/// a CPU quota stopped, and what became of the prediction.
pub fn append(experiment: &Experiment, verdicts: &Verdicts, report: &mut Document) {
    if !matches!(experiment.provenance, Provenance::Hardware(_)) {
        return;
    }
    let rows = rows(&experiment.cells);
    if !rows.is_empty() {
        // Our own types, with string keys: this cannot fail.
        let value = serde_json::to_value(&rows).unwrap_or_default();
        report.data.insert("spread".into(), value);
        let mut section = section(&rows);
        if let Some(note) = modes_note(&modes(&experiment.cells)) {
            section = section.note(note);
        }
        report.push(section);
    }
    let stopped = throttled(&experiment.cells);
    if stopped.0 > 0 {
        report
            .data
            .insert("throttled_periods".into(), stopped.1.into());
        report.push(quota(stopped));
    }
    if let Some(sentence) = resolution::outcome(experiment, verdicts) {
        report.push(Section::new("What was predicted").prose(sentence));
    }
}

/// Returns in how many blocks a CPU quota stopped threads, and in how many of its periods.
fn throttled(cells: &[Cell]) -> (u64, u64) {
    let pairs = cells.iter().flat_map(|cell| &cell.pairs);
    let periods = pairs.filter_map(|pair| Some(Detail::of(&pair.baseline)?.throttled));
    periods
        .filter(|n| *n > 0)
        .fold((0, 0), |(blocks, all), n| (blocks + 1, all + n))
}

fn quota((blocks, periods): (u64, u64)) -> Section {
    Section::new("The CPU quota stopped threads").note(format!(
        "In {periods} periods of the control group's quota, in {blocks} blocks of slices, threads \
         were stopped because it was used up. With no more threads than CPUs, the slices in \
         which that happened were left out."
    ))
}

fn section(rows: &[Row]) -> Section {
    let percent = |x: f64| match x {
        0.0 => "none".into(),
        _ => format!("{} %", number::percent(100.0 * x)),
    };
    let sides = |title: &str| {
        let columns = ["base", "exp"].map(|name| Column::new(name, 6));
        ColumnGroup::new(title, columns.to_vec())
    };
    let table = Table {
        groups: vec![
            ColumnGroup::new("", vec![Column::new("threads", 7)]),
            sides("block to block"),
            sides("addresses"),
            sides("code layouts"),
        ],
        rows: rows
            .iter()
            .map(|row| {
                let sides = [&row.baseline, &row.experiment];
                let mut line = vec![row.threads.to_string()];
                line.extend(sides.map(|spread| percent(spread.blocks)));
                line.extend(sides.map(|spread| number::or_dash(spread.addresses, percent)));
                line.extend(sides.map(|spread| number::or_dash(spread.layouts, percent)));
                line
            })
            .collect(),
    };
    Section::new("Variation from place and layout")
        .note(
            "Standard deviation of one lock's own rate, median over the cells: from one block \
             to another (another moment and place), and within a block between addresses and \
             between layouts of the same code (none: no more than chance). Ratios are over all \
             of them; a program gets one place and one layout.",
        )
        .with(Part::Table(table))
}

/// A cell of one thread whose ratio was one of two from block to block.
struct Modes {
    /// Critical and non-critical length, in units.
    lengths: [u64; 2],
    /// The two ratios: medians over their blocks.
    ratios: [f64; 2],
    /// The number of blocks with each.
    blocks: [usize; 2],
}

/// Returns the cells of one thread whose ratio was one of two, the farthest apart first.
/// Placement explains no such thing with one thread, and each block is over
/// addresses and layouts.
fn modes(cells: &[Cell]) -> Vec<Modes> {
    let one = cells.iter().filter(|c| c.key.number("threads") == Some(1));
    let mut found: Vec<Modes> = one
        .filter_map(|cell| {
            let sound = cell.pairs.iter().filter(|p| p.invalid().is_none());
            let ratios: Vec<f64> = sound
                .filter_map(|p| Some(p.experiment.values.get(OPS)? / p.baseline.values.get(OPS)?))
                .collect();
            let upper = gap(ratios.clone(), LEAST_OF_A_MODE)?;
            let (high, low): (Vec<f64>, Vec<f64>) = ratios.iter().partition(|r| **r >= upper);
            let mode = Modes {
                lengths: [
                    cell.key.number("critical")?,
                    cell.key.number("non_critical")?,
                ],
                ratios: [median(&low), median(&high)],
                blocks: [low.len(), high.len()],
            };
            (mode.ratios[1] / mode.ratios[0] > APART).then_some(mode)
        })
        .collect();
    found.sort_by(|a, b| b.apart().total_cmp(&a.apart()));
    found
}

impl Modes {
    fn apart(&self) -> f64 {
        self.ratios[1] / self.ratios[0]
    }
}

fn modes_note(modes: &[Modes]) -> Option<String> {
    let first = modes.first()?;
    let ([low, high], [of_low, of_high]) = (first.ratios, first.blocks);
    Some(format!(
        "In {} of one thread the ratio was one of two from block to block (critical length {}, \
         non-critical length {}: {low:.2} in {of_low} blocks, {high:.2} in {of_high}), so intervals are wide there. Every block has \
         many addresses and layouts, so these do not explain it: the processor, or its host, \
         runs the same instructions at two speeds.",
        number::count(modes.len(), "cell"),
        first.lengths[0],
        first.lengths[1],
    ))
}

/// Returns a row for each number of threads that has enough blocks.
fn rows(cells: &[Cell]) -> Vec<Row> {
    let mut by_threads: BTreeMap<u64, [Vec<Deviations>; 2]> = BTreeMap::new();
    for cell in cells {
        let Some(threads) = cell.key.number("threads") else {
            continue;
        };
        let sound: Vec<_> = cell
            .pairs
            .iter()
            .filter(|p| p.invalid().is_none())
            .collect();
        let sides = [
            deviations(sound.iter().map(|pair| &pair.baseline)),
            deviations(sound.iter().map(|pair| &pair.experiment)),
        ];
        if let [Some(baseline), Some(experiment)] = sides {
            let lists = by_threads.entry(threads).or_default();
            lists[0].push(baseline);
            lists[1].push(experiment);
        }
    }
    by_threads
        .into_iter()
        .map(|(threads, [baseline, experiment])| Row {
            threads,
            baseline: middle(&baseline),
            experiment: middle(&experiment),
        })
        .collect()
}

/// Returns the medians of each figure.
fn middle(spreads: &[Deviations]) -> Deviations {
    let known = |of: fn(&Deviations) -> Option<f64>| {
        let list: Vec<f64> = spreads.iter().filter_map(of).collect();
        (!list.is_empty()).then(|| median(&list))
    };
    let blocks: Vec<f64> = spreads.iter().map(|s| s.blocks).collect();
    Deviations {
        blocks: median(&blocks),
        addresses: known(|s| s.addresses),
        layouts: known(|s| s.layouts),
    }
}

/// Returns the spread of one lock in one cell, from its samples.
fn deviations<'a>(samples: impl Iterator<Item = &'a Sample>) -> Option<Deviations> {
    let (mut rates, mut of_addresses) = (Vec::new(), Vec::new());
    let mut of_layout: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    for sample in samples {
        let rate = *sample.values.get(OPS)?;
        let detail = Detail::of(sample)?;
        rates.push(rate);
        of_addresses.extend(detail.address_variance);
        for (layout, (turns, ns)) in detail.layouts.iter().enumerate() {
            if *ns > 0 {
                // Relative to the block's own rate, because the block's effect
                // is not the layout's.
                let part = *turns as f64 / (*ns as f64 * 1e-9) / rate;
                of_layout.entry(layout).or_default().push(part);
            }
        }
    }
    (rates.len() >= LEAST_BLOCKS).then(|| Deviations {
        blocks: variance(&rates).sqrt() / mean(&rates),
        addresses: (of_addresses.len() >= LEAST_BLOCKS)
            .then(|| mean(&of_addresses).max(0.0).sqrt()),
        layouts: between(&of_layout.into_values().collect::<Vec<_>>())
            .map(|component| component.max(0.0).sqrt()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Returns a block with a rate and the rates of its layouts.
    fn sample(rate: f64, layouts: &[f64]) -> Sample {
        let layouts: Vec<(u64, u64)> = layouts
            .iter()
            .map(|rate| ((rate * 1e3) as u64, 1_000_000_000_000))
            .collect();
        Sample {
            values: [(OPS.to_owned(), rate)].into(),
            detail: json!({
                "per_thread": [1],
                "layouts": layouts,
                "address": "0x0",
                "slices": { "kept": 1, "preempted": 0, "stolen": 0 },
            }),
            ..Sample::default()
        }
    }

    #[test]
    fn blocks_and_layouts_are_told_apart() {
        // Blocks differ by 10 % either way, layouts of one block by 1 %.
        let blocks: Vec<Sample> = (0..8)
            .map(|i| {
                let rate = if i % 2 == 0 { 900.0 } else { 1100.0 };
                sample(rate, &[0.99 * rate, 1.01 * rate])
            })
            .collect();
        let spread = deviations(blocks.iter()).unwrap();
        assert!((spread.blocks - 0.1069).abs() < 1e-3, "{spread:?}");
        assert!(
            (spread.layouts.unwrap() - 0.01414).abs() < 1e-4,
            "{spread:?}"
        );
    }

    #[test]
    fn what_addresses_are_worth_is_the_mean_over_blocks() {
        // Chance makes some components negative; what counts is their mean.
        let blocks: Vec<Sample> = [0.0009, -0.0001, 0.0004, 0.0004, 0.0004, 0.0004]
            .map(|component| {
                let mut block = sample(1000.0, &[1000.0]);
                block.detail["address_variance"] = component.into();
                block
            })
            .into();
        let addresses = deviations(blocks.iter()).unwrap().addresses.unwrap();
        assert!((addresses - 0.02).abs() < 1e-9, "{addresses}");
        assert_eq!(
            deviations(blocks[..5].iter().chain([&sample(1000.0, &[1000.0])]))
                .unwrap()
                .addresses,
            None
        );
    }

    #[test]
    fn a_ratio_that_is_one_of_two_is_reported() {
        use locklab_harness::experiment::{Key, Order, Pair};
        let cell = |threads, ratio: fn(u32) -> f64| {
            let mut cell = Cell::new(Key::point(threads, 2, 1), vec![]);
            cell.pairs.extend((0..30).map(|index| Pair {
                index,
                order: Order::BaselineFirst,
                baseline: sample(1000.0, &[1000.0]),
                experiment: sample(1000.0 * ratio(index), &[1000.0]),
            }));
            cell
        };
        let wobble = |index: u32| 1.0 + 0.001 * f64::from(index % 5);
        let two = |index| if index % 3 == 0 { 0.94 } else { 1.13 };
        let found = modes(&[cell(1, wobble), cell(1, two), cell(2, two)]);
        assert_eq!(found.len(), 1);
        let note = modes_note(&found).unwrap();
        assert!(
            note.contains("In 1 cell of one thread")
                && note.contains("0.94 in 10 blocks, 1.13 in 20"),
            "{note}"
        );
        assert_eq!(modes_note(&modes(&[cell(1, wobble)])), None);
    }

    #[test]
    fn what_a_quota_stopped_is_counted_and_said() {
        use locklab_harness::experiment::{Key, Order, Pair};
        let mut cell = Cell::new(Key::point(2, 8, 1), vec![]);
        for (index, periods) in [(0, 0), (1, 2), (2, 3)] {
            let mut baseline = sample(1000.0, &[1000.0]);
            baseline.detail["throttled"] = periods.into();
            cell.pairs.push(Pair {
                index,
                order: Order::BaselineFirst,
                baseline,
                experiment: sample(1000.0, &[1000.0]),
            });
        }
        assert_eq!(throttled(&[cell]), (2, 5));
        let said = format!("{:?}", quota((2, 5)));
        assert!(
            said.contains("In 5 periods") && said.contains("in 2 blocks"),
            "{said}"
        );
    }

    #[test]
    fn too_few_blocks_or_a_fixed_layout_say_so() {
        let few: Vec<Sample> = (0..3).map(|_| sample(1000.0, &[1000.0, 1000.0])).collect();
        assert_eq!(deviations(few.iter()), None);
        let fixed: Vec<Sample> = (0..8).map(|_| sample(1000.0, &[1000.0])).collect();
        assert_eq!(deviations(fixed.iter()).unwrap().layouts, None);
    }
}
