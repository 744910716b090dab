//! The picture of a sweep that everybody looks for: throughput over threads, a
//! line a lock, and the p99 of the wait beside it; in text the same as bars.
//!
//! It is made of the figures of the runs alone, like [`crate::summary`].

use crate::collect::{Figures, OfRun};
use crate::plan::Plan;
use crate::summary::Quantiles;
use locklab_document::lines::COLOURED;
use locklab_document::number::{self, count, label};
use locklab_document::{BarRow, Bars, Line, LinePoint, Lines, Medium, Part, Section};
use std::collections::{BTreeMap, BTreeSet};

/// Says which of the figures of a run is drawn.
const THROUGHPUT: usize = 0;
const P99: usize = 2;

/// The most pictures that are not folded, and tables with bars that a text has.
const SHOWN: usize = 6;
/// Locks of one table with bars.
const ROWS: usize = 15;

/// Names what one picture is of: a block of the plan, both lengths, and the number of
/// locks where that varies.
type Of = (usize, [u64; 3]);

/// The figures of one picture: by lock and threads, one for each replicate.
#[derive(Default)]
struct Gathered {
    locks: BTreeMap<String, BTreeMap<u64, Vec<OfRun>>>,
    baselines: BTreeSet<String>,
}

/// Returns the sections with the pictures, one for each machine, workload and pair of
/// lengths that has several numbers of threads.
pub(crate) fn sections(plan: &Plan, figures: &[Figures]) -> Vec<Section> {
    let mut pictures: BTreeMap<Of, Gathered> = BTreeMap::new();
    for ((_, run), figures) in plan.runs_of(0..plan.runs()).zip(figures) {
        let [threads, lengths @ ..] = plan.blocks[run.block].places[run.cell];
        let pair = &plan.pairs[run.pair];
        let picture = pictures.entry((run.block, lengths)).or_default();
        // The baseline's run is the same for all locks of a cell and replicate.
        picture.baselines.insert(pair.baseline.clone());
        let known = || picture.locks.get(&pair.baseline)?.get(&threads);
        let replicate = run.replicate as usize;
        if known().is_none_or(|of| of.len() <= replicate) {
            picture.add(&pair.baseline, threads, figures.baseline);
        }
        picture.add(&pair.experiment, threads, figures.experiment);
    }
    pictures.retain(|_, picture| picture.threads().len() > 1);
    let folded = pictures.len() > SHOWN;
    let coloured = coloured(&pictures);
    let mut sections = Vec::new();
    if !pictures.is_empty() {
        sections.push(
            Section::new("Throughput over threads")
                .note(
                    "A band holds nine of ten replicates. The baseline and the locks that lead \
                     somewhere have a colour; all others are grey. A pointer on a mark shows its \
                     figure.",
                )
                .only(Medium::Page),
        );
    }
    for (of, picture) in &pictures {
        let title = title(plan, of);
        let charts = [
            (THROUGHPUT, "operations a second", false),
            (P99, "p99 of the wait, ns", true),
        ];
        let charts = charts.map(|(which, title, logarithmic)| {
            let lines = picture.lines(which, title, logarithmic, &coloured);
            (!lines.is_empty()).then_some(lines)
        });
        let charts: Vec<Lines> = charts.into_iter().flatten().collect();
        if !charts.is_empty() {
            sections.push(
                Section::minor(title.clone())
                    .with(Part::Lines(charts))
                    .folded(folded)
                    .only(Medium::Page),
            );
        }
        if !folded && let Some((threads, lines)) = picture.bars() {
            sections.push(
                Section::minor(format!("{title}, {threads}"))
                    .preformatted(lines.join("\n"))
                    .only(Medium::Text),
            );
        }
    }
    sections
}

/// Returns the locks that have a colour of their own, the same one in all pictures:
/// those that others are compared with, then those that lead most often, then
/// others while there are colours.
fn coloured(pictures: &BTreeMap<Of, Gathered>) -> Vec<String> {
    let mut leads: BTreeMap<&String, usize> = BTreeMap::new();
    let mut baselines: BTreeSet<&String> = BTreeSet::new();
    for picture in pictures.values() {
        baselines.extend(&picture.baselines);
        for lock in picture.locks.keys() {
            leads.entry(lock).or_default();
        }
        for threads in picture.threads() {
            let first = picture.order_at(threads).first().copied();
            if let Some(leads) = first.and_then(|lock| leads.get_mut(lock)) {
                *leads += 1;
            }
        }
    }
    let mut order: Vec<(&String, usize)> = leads.into_iter().collect();
    order.sort_by_key(|(lock, leads)| (!baselines.contains(lock), std::cmp::Reverse(*leads)));
    let names = order.into_iter().map(|(lock, _)| lock.clone());
    names.take(COLOURED).collect()
}

/// Returns a text such as "epyc-7763-2s, critical 1, non-critical 32".
fn title(plan: &Plan, (block, [critical, non_critical, locks]): &Of) -> String {
    let block = &plan.blocks[*block];
    let workload = &plan.file.workloads[block.workload];
    let mut title = plan.machines[block.machine].name.clone();
    if plan.file.workloads.len() > 1 {
        title.push_str(&format!(", workload {}", block.workload + 1));
    }
    title.push_str(&match workload.work.word() {
        "fstat" => format!(", fstat, non-critical {}", label(*non_critical)),
        _ => format!(
            ", critical {}, non-critical {}",
            label(*critical),
            label(*non_critical)
        ),
    });
    if *locks > 1 {
        title.push_str(&format!(", {locks} locks"));
    }
    title
}

impl Gathered {
    fn add(&mut self, lock: &str, threads: u64, figures: OfRun) {
        let of = self.locks.entry(lock.to_owned()).or_default();
        of.entry(threads).or_default().push(figures);
    }

    fn threads(&self) -> BTreeSet<u64> {
        self.locks
            .values()
            .flat_map(BTreeMap::keys)
            .copied()
            .collect()
    }

    /// Returns a figure of a lock over its replicates; `None` where one has none.
    fn quantiles(&self, lock: &str, threads: u64, which: usize) -> Option<Quantiles> {
        let runs = self.locks.get(lock)?.get(&threads)?;
        let values: Vec<f64> = runs.iter().map(|figures| figures[which]).collect();
        values
            .iter()
            .all(|value| value.is_finite())
            .then(|| Quantiles::of(values))?
    }

    /// Returns the locks by their throughput with most threads, the best first.
    fn order(&self) -> Vec<&String> {
        self.order_at(self.threads().last().copied().unwrap_or(0))
    }

    fn order_at(&self, threads: u64) -> Vec<&String> {
        let rate = |lock: &String| {
            let spread = self.quantiles(lock, threads, THROUGHPUT);
            spread.map_or(f64::NEG_INFINITY, |spread| spread.median)
        };
        let mut order: Vec<&String> = self.locks.keys().collect();
        order.sort_by(|a, b| rate(b).total_cmp(&rate(a)));
        order
    }

    fn lines(&self, which: usize, title: &str, logarithmic: bool, coloured: &[String]) -> Lines {
        let threads: Vec<u64> = self.threads().into_iter().collect();
        let line = |lock: &String| {
            let points = threads.iter().enumerate().filter_map(|(place, threads)| {
                let spread = self.quantiles(lock, *threads, which)?;
                let runs = self.locks[lock][threads].len();
                Some(LinePoint {
                    place,
                    value: spread.median,
                    limits: (runs > 1).then_some((spread.low, spread.high)),
                    detail: format!(
                        "{lock}, {}: {}",
                        count(usize::try_from(*threads).unwrap_or(usize::MAX), "thread"),
                        number::short(spread.median)
                    ),
                })
            });
            Line {
                name: lock.clone(),
                points: points.collect(),
                colour: coloured.iter().position(|name| name == lock),
                bold: self.baselines.contains(lock),
            }
        };
        Lines {
            title: title.into(),
            x_title: "threads".into(),
            names: threads.iter().map(|n| label(*n)).collect(),
            lines: self.order().into_iter().map(line).collect(),
            logarithmic,
        }
    }

    /// Returns the locks at the most threads, with bars.
    fn bars(&self) -> Option<(String, Vec<String>)> {
        let most = self.threads().last().copied()?;
        let order = self.order();
        let rate = |lock: &str| self.quantiles(lock, most, THROUGHPUT).map(|s| s.median);
        let best = rate(order.first()?)?;
        let waits = order.iter().any(|l| self.quantiles(l, most, P99).is_some());
        let rows = order.iter().filter_map(|lock| {
            let rate = rate(lock)?;
            let mut cells = vec![number::short(rate), number::ratio(rate / best)];
            if waits {
                let p99 = self.quantiles(lock, most, P99).map(|s| s.median);
                cells.push(number::or_dash(p99, number::short));
            }
            let today = self.baselines.contains(*lock);
            Some(BarRow {
                name: format!("{lock}{}", if today { " <" } else { "" }),
                cells,
                share: rate / best,
            })
        });
        let mut rows: Vec<BarRow> = rows.collect();
        let more = rows.len().saturating_sub(ROWS);
        rows.truncate(ROWS);
        let mut columns = vec![("ops/s".to_owned(), 6), ("share".to_owned(), 5)];
        if waits {
            columns.push(("p99 ns".to_owned(), 6));
        }
        let bars = Bars {
            title: "lock".into(),
            columns,
            rows,
        };
        let mut lines = bars.lines();
        if more > 0 {
            lines.push(format!("{} behind these", count(more, "lock")));
        }
        let threads = count(usize::try_from(most).unwrap_or(usize::MAX), "thread");
        Some((threads, lines))
    }
}
