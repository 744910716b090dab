//! Turns the records of a block into the two samples of a pair.
//!
//! Figures are sums over the slices that count; a lock that did nothing in one
//! slice did little work, but the slice is not left out for that. This module
//! judges nothing.

use crate::anova::between;
use crate::block::Block;
use crate::disturbance::Disturbance;
use crate::latency::{quantile, saved};
use crate::layout::LAYOUTS;
use crate::round_trip::median;
use hdrhistogram::Histogram;
use locklab_harness::experiment::{Invalid, Placement, Sample, Values};
use locklab_harness::matrix::{
    CPU_NS, CPU_SHARE, EQUAL_SHARE, HANDOFFS, JAIN, JAIN_1MS, LATENCY_MAX, LATENCY_P50,
    LATENCY_P99, LATENCY_P999, MIN_OVER_MAX, MIN_OVER_MAX_1MS, OPS, READ_P50, READ_P99, READ_P999,
    READ_STARVED, STREAK_MAX, STREAK_MEAN, WRITE_P50, WRITE_P99, WRITE_P999, WRITE_STARVED,
    at_equal_share, jain, min_over_max,
};
use locklab_workload::starving;
use serde::{Deserialize, Serialize};

/// Details of a block that only this backend knows; the same for both sides
/// except the first two and the outcome of their slices.
#[derive(Serialize, Deserialize)]
pub(crate) struct Detail {
    /// Acquisitions of each thread.
    per_thread: Vec<u64>,
    /// Acquisitions and nanoseconds in each code layout.
    pub(crate) layouts: Vec<(u64, u64)>,
    /// The address of the lock in the first pair of slices.
    address: String,
    /// The variance of the rate from one address to another, without that between
    /// slices, relative to the square of the rate; `None` if no address had two.
    #[serde(default)]
    pub(crate) address_variance: Option<f64>,
    /// The pairs of slices, by outcome.
    pub(crate) slices: Slices,
    /// Says in how many periods a CPU quota stopped threads during the block.
    #[serde(default)]
    pub(crate) throttled: u64,
}

impl Detail {
    /// Returns the details in a sample of this backend.
    pub(crate) fn of(sample: &Sample) -> Option<Self> {
        Self::deserialize(&sample.detail).ok()
    }
}

/// The outcome of the pairs of slices of a block.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Slices {
    /// Slices, or pairs of them, that count.
    pub(crate) kept: u32,
    /// Pairs in which another program had a CPU.
    pub(crate) preempted: u32,
    /// Pairs in which the hypervisor or interrupts had one.
    pub(crate) stolen: u32,
}

/// The pairs of a block that count for each side, and the placement of its
/// CPUs.
pub(crate) struct Sorted {
    pub(crate) kept: Vec<Vec<usize>>,
    pub(crate) slices: Vec<Slices>,
    placement: Option<Placement>,
}

impl Sorted {
    /// Returns the pairs that count and give the rates: those that were not timed.
    fn rated(&self, block: &Block, side: usize) -> impl Iterator<Item = usize> {
        let kept = self.kept[side].iter().copied();
        kept.filter(|pair| !block.request.is_timed(*pair))
    }
}

/// Sorts the pairs of a block.
pub(crate) fn sort(block: &Block) -> Sorted {
    let pairs = block.pairs();
    let sides = block.request.codes.len();
    let mut slices = vec![Slices::default(); sides];
    let links = pairs.iter().map(|p| p.link + 1).max().unwrap_or(0);
    let trips = |link: usize| {
        let of = pairs.iter().filter(move |p| p.link == link);
        of.map(|p| p.trip)
            .filter(|ns| *ns > 0.0)
            .collect::<Vec<f64>>()
    };
    let mut kept = vec![Vec::new(); sides];
    for pair in 0..pairs.len() {
        for (side, slices) in slices.iter_mut().enumerate() {
            match block.slice_record(pair, side).disturbance {
                Disturbance::Preempted => slices.preempted += 1,
                Disturbance::Stolen => slices.stolen += 1,
                Disturbance::None => {
                    slices.kept += 1;
                    kept[side].push(pair);
                }
            }
        }
    }
    // Links are at different distances: their geometric mean changes with each.
    let logs: Vec<f64> = (0..links)
        .map(|link| median(&trips(link)).ln())
        .filter(|log| log.is_finite())
        .collect();
    let typical = (logs.iter().sum::<f64>() / logs.len().max(1) as f64).exp();
    let seen = || pairs.iter().map(|p| p.trip).filter(|ns| *ns > 0.0);
    let placement = seen()
        .next()
        .zip(seen().next_back())
        .map(|(before, after)| Placement {
            before,
            after,
            typical: Some(typical),
        });
    Sorted {
        kept,
        slices,
        placement,
    }
}

/// Returns the samples of all locks of a block.
pub(crate) fn samples(block: &Block) -> Vec<Sample> {
    let sorted = sort(block);
    let alone = rates_alone(block, &sorted);
    let of = |side: usize| {
        let rate = alone.as_ref().map(|rates| rates[side]);
        let mut sample = sample(block, &sorted, side, rate);
        if sample.invalid.is_none() {
            sample.invalid = disturbed(block, sorted.slices[side]);
        }
        sample
    };
    (0..block.request.codes.len()).map(of).collect()
}

/// Returns the rates of all locks of one thread alone, so that a few slices that the
/// machine disturbed unseen decide nothing: the middle half of the first
/// one's rates, and of the ratios to it of the others in the same pairs. There
/// is no contention, so what varies between slices is the machine. With several
/// threads it is the lock too, and all slices count alike.
fn rates_alone(block: &Block, sorted: &Sorted) -> Option<Vec<f64>> {
    if block.request.threads > 1 {
        return None;
    }
    let rate = |pair: usize, side: usize| {
        let (began, ended) = block.slice_record(pair, side).measured;
        let worker = &block.workers(pair, side)[0];
        // What it lost below the limit is not its own; it lost it anywhere in
        // the slice.
        let lost = worker.usage.lost().saturating_sub(block.request.grain) as f64;
        let had = 1.0 - lost / worker.usage.wall.max(1) as f64;
        let length = ended.saturating_sub(began).max(1) as f64 * had.max(0.5);
        (worker.tally.turns as f64 / (length * 1e-9)).ln()
    };
    let sound = |logs: Vec<f64>| logs.into_iter().filter(|log| log.is_finite()).collect();
    let first = sorted.rated(block, 0).map(|pair| rate(pair, 0)).collect();
    let first = middle_half(sound(first))?;
    let of = |side: usize| {
        let both = sorted
            .rated(block, side)
            .filter(|pair| sorted.kept[0].contains(pair));
        let ratios = both.map(|pair| rate(pair, side) - rate(pair, 0)).collect();
        Some((first + middle_half(sound(ratios))?).exp())
    };
    let others: Option<Vec<f64>> = (1..block.request.codes.len()).map(of).collect();
    Some(std::iter::once(first.exp()).chain(others?).collect())
}

/// Returns the mean of the values between the quartiles.
fn middle_half(mut list: Vec<f64>) -> Option<f64> {
    list.sort_by(f64::total_cmp);
    let cut = list.len() / 4;
    let half = list
        .get(cut..list.len() - cut)
        .filter(|half| !half.is_empty())?;
    Some(half.iter().sum::<f64>() / half.len() as f64)
}

/// Returns the reason why too little of the block is left, if so.
fn disturbed(block: &Block, slices: Slices) -> Option<Invalid> {
    let Slices {
        kept,
        preempted,
        stolen,
    } = slices;
    let of = kept + preempted + stolen;
    (kept < block.request.least.min(of.max(1))).then(|| {
        Invalid::Disturbed(format!(
            "of {of} pairs of slices, {preempted} were cut by other programs and {stolen} by the \
             hypervisor or interrupts"
        ))
    })
}

/// Returns the sample of one side; its rate is that over all slices, unless `alone`
/// says otherwise.
fn sample(block: &Block, sorted: &Sorted, side: usize, alone: Option<f64>) -> Sample {
    let request = &block.request;
    let code = &request.codes[side];
    let mut per_thread = vec![0_u64; request.threads];
    let mut layouts = vec![(0_u64, 0_u64); LAYOUTS];
    let mut at_addresses = vec![Vec::new(); block.addresses()];
    let (mut took, mut handoffs, mut streak_max, mut writes) = (0_u64, 0_u64, 0_u64, 0_u64);
    let (mut cpu, mut available, mut walls) = (0.0, 0.0, 0.0);
    let mut windows: Vec<Vec<u64>> = Vec::new();
    let mut windowed = 0_u64;
    let at_once = request.threads.min(request.cpus.len()) as f64;
    for pair in sorted.rated(block, side) {
        let (began, ended) = block.slice_record(pair, side).measured;
        let length = ended.saturating_sub(began);
        let workers = block.workers(pair, side);
        let turns: u64 = workers.iter().map(|w| w.tally.turns).sum();
        took += length;
        let layout = &mut layouts[request.layout_of(pair, side) % LAYOUTS];
        *layout = (layout.0 + turns, layout.1 + length);
        at_addresses[block.address_of(pair)].push(turns as f64 / length.max(1) as f64);
        for (worker, sum) in workers.iter().zip(&mut per_thread) {
            *sum += worker.tally.turns;
            writes += worker.tally.writes;
            handoffs += worker.tally.handoffs;
            streak_max = streak_max.max(worker.tally.streak_max);
            cpu += worker.usage.cpu as f64;
        }
        let wall = workers.iter().map(|w| w.usage.wall).max().unwrap_or(0);
        available += wall as f64 * at_once;
        walls += wall as f64;
        match request.windows_of(side).count {
            0 => {}
            1 => {
                windows.push(workers.iter().map(|w| w.tally.turns).collect());
                windowed += length;
            }
            count => {
                windowed += count as u64 * request.windows.length;
                windows.extend((0..count).map(|window| {
                    let done = |worker| {
                        let at: &[u64] = block.turns_at(pair, side, worker);
                        at[window].saturating_sub(if window == 0 { 0 } else { at[window - 1] })
                    };
                    (0..request.threads).map(done).collect()
                }));
            }
        }
    }
    let turns: u64 = per_thread.iter().sum();
    let seconds = (took as f64 * 1e-9).max(1e-9);
    let mut values = Values::new();
    let mut set = |name: &str, value: f64| values.insert(name.to_owned(), value);
    set(OPS, alone.unwrap_or(turns as f64 / seconds));
    set(HANDOFFS, handoffs as f64 / seconds);
    // A streak ends with a handoff, the last one with the slice. Without any
    // acquisition there was none.
    if writes > 0 {
        set(STREAK_MEAN, writes as f64 / handoffs.max(1) as f64);
    }
    set(STREAK_MAX, streak_max as f64);
    // Threads that take turns on a CPU have their share over the run only.
    let crowded = request.threads > request.cpus.len();
    let least: u64 = windows.iter().map(|shares| at_equal_share(shares)).sum();
    let equal_share = match (alone, crowded || windowed == 0) {
        (Some(rate), _) => rate,
        (None, true) => at_equal_share(&per_thread) as f64 / seconds,
        (None, false) => least as f64 / (windowed as f64 * 1e-9),
    };
    set(EQUAL_SHARE, equal_share);
    set(JAIN, jain(&per_thread));
    set(MIN_OVER_MAX, min_over_max(&per_thread));
    if available > 0.0 {
        set(CPU_SHARE, (cpu / available).min(1.0));
    }
    if walls > 0.0 && turns > 0 {
        // Their account is of the time until a slice had settled too.
        set(CPU_NS, cpu / walls * took as f64 / turns as f64);
    }
    windows.retain(|shares| shares.iter().any(|x| *x > 0));
    if !windows.is_empty() {
        let middle = |of: fn(&[u64]) -> f64| {
            median(
                &windows
                    .iter()
                    .map(|shares| of(shares))
                    .collect::<Vec<f64>>(),
            )
        };
        set(JAIN_1MS, middle(jain));
        set(MIN_OVER_MAX_1MS, middle(min_over_max));
    }
    if request.latency {
        let of_side = request.histograms();
        let all_histograms = of_side * request.codes.len();
        let of = |number: usize| {
            // SAFETY: all workers have left and saved theirs there.
            unsafe {
                let (place, all) = (block.latencies, (request.threads, all_histograms));
                saved(place, all, of_side * side + number)
            }
        };
        let latencies: Vec<Histogram<u64>> = (0..of_side).map(of).collect();
        for (name, value) in waits(block, sorted, side, &latencies) {
            set(name, value);
        }
    }
    let detail = Detail {
        per_thread,
        layouts,
        address: format!("{:#x}", block.address(0)),
        address_variance: between(&at_addresses)
            .map(|of| of / (turns as f64 / took.max(1) as f64).powi(2)),
        slices: sorted.slices[side],
        throttled: block.throttled(),
    };
    Sample {
        started: None,
        values,
        placement: sorted.placement,
        invalid: check(block, side, code.info.name).or_else(|| {
            // This is not the lock's doing: it was not used.
            let asked = available == 0.0 || cpu >= 0.01 * available;
            (turns == 0 && !asked).then(|| {
                Invalid::Disturbed(
                    "no thread had a CPU in the measured time: the machine is overloaded".into(),
                )
            })
        }),
        // Our own types, with string keys: this cannot fail.
        detail: serde_json::to_value(detail).unwrap_or_default(),
    }
}

/// Returns the figures of these latencies of one side: of all, or of readers and of writers.
fn waits(
    block: &Block,
    sorted: &Sorted,
    side: usize,
    latencies: &[Histogram<u64>],
) -> Vec<(&'static str, f64)> {
    let mut figures = Vec::new();
    let mut all = latencies[0].clone();
    for other in &latencies[1..] {
        // The ranges are the same, so this cannot fail.
        let _ = all.add(other);
    }
    if !all.is_empty() {
        figures.extend([
            (LATENCY_P50, quantile(&all, 0.5)),
            (LATENCY_P99, quantile(&all, 0.99)),
            (LATENCY_P999, quantile(&all, 0.999)),
            (LATENCY_MAX, all.max() as f64),
        ]);
    }
    let [readers, writers] = latencies else {
        return figures;
    };
    let timed = sorted.kept[side].iter();
    let timed = timed.filter(|pair| block.request.is_timed(**pair));
    let took = timed.map(|pair| {
        let (began, ended) = block.slice_record(*pair, side).measured;
        ended.saturating_sub(began)
    });
    let least = starving(block.request.threads, all.len(), took.sum());
    for (waits, names) in [
        (readers, [READ_P50, READ_P99, READ_P999, READ_STARVED]),
        (writers, [WRITE_P50, WRITE_P99, WRITE_P999, WRITE_STARVED]),
    ] {
        if waits.is_empty() {
            continue;
        }
        let starved = waits.count_between(least, u64::MAX) as f64 / waits.len() as f64;
        let [p50, p99, p999] = [0.5, 0.99, 0.999].map(|of| quantile(waits, of));
        figures.extend(names.into_iter().zip([p50, p99, p999, starved]));
    }
    figures
}

/// Returns a failure of the workload itself in any slice.
fn check(block: &Block, side: usize, name: &str) -> Option<Invalid> {
    for i in 0..block.pairs().len() {
        let workers = block.workers(i, side);
        let made: u64 = workers.iter().map(|w| w.tally.increments_ever).sum();
        let torn: u64 = workers.iter().map(|w| w.tally.torn_reads).sum();
        let failed: u64 = workers.iter().map(|w| w.tally.failed_calls).sum();
        let kept = block.slice_record(i, side).turns_kept;
        if kept != made {
            return Some(Invalid::CheckFailed(format!(
                "mutual exclusion was lost by {name}: of {made} increments under the lock \
                 {kept} were kept"
            )));
        }
        if torn > 0 {
            return Some(Invalid::CheckFailed(format!(
                "mutual exclusion was lost by {name}: {torn} readers saw a writer at work"
            )));
        }
        if failed > 0 {
            return Some(Invalid::CheckFailed(format!(
                "{failed} calls of fstat failed"
            )));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quarter_of_disturbed_slices_decides_nothing() {
        assert_eq!(middle_half(vec![]), None);
        assert_eq!(middle_half(vec![3.0]), Some(3.0));
        assert_eq!(middle_half(vec![1.0, 2.0]), Some(1.5));
        assert_eq!(
            middle_half(vec![-700.0, 1.0, 2.0, 2.0, 3.0]),
            Some(5.0 / 3.0)
        );
        let mut slices = vec![0.5; 30];
        slices.extend([-9.0; 10]);
        assert_eq!(middle_half(slices), Some(0.5));
    }
}
