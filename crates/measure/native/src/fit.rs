//! The figures of this machine for a machine file, measured: how far apart
//! its CPUs are, its cycle, what a pause and an atomic operation cost.
//!
//! The cycle is measured as in a matrix. A transfer is the lesser of passes by
//! compare-and-swap and by stores. A figure that cannot be measured this way is
//! an assumption in the file, and marked as one.

use crate::contention::{self, Contention};
use crate::probe::Native;
use crate::round_trip::{self, median};
use crate::work::Calibration;
use locklab_document::number;
use locklab_harness::VERSION;
use locklab_harness::placement::gap;
use locklab_host::error::Error;
use locklab_host::topology::Topology;
use std::hint::{black_box, spin_loop};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// The most pairs of CPUs that are measured.
const MOST_PAIRS: usize = 64;
/// Sets how often each is measured, at different times.
const PASSES: usize = 3;
/// A pair whose figures differ by more than this factor was moved meanwhile.
const SLACK: f64 = 1.5;

/// The measured figures. Latencies are one way, in ns.
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    /// The latency of each pair of CPUs, ascending.
    pub one_way: Vec<f64>,
    /// Pairs that a virtual machine's host moved between two measurements.
    pub moved: usize,
    /// The time between CPUs that share a cache of their own.
    pub near: f64,
    /// The time between CPUs of one last-level cache.
    pub middle: f64,
    /// The time between CPUs of different last-level caches.
    pub far: f64,
    /// What two CPUs of the middle distance do with a line that both want, and the latency
    /// between these two; `None` if they never ran together.
    pub contention: Option<(Contention, f64)>,
    /// Cycles per nanosecond, measured as in the matrix.
    pub clock_ghz: f64,
    /// Cycles of one unit of the matrix's work.
    pub unit: f64,
    /// Time of one relax, in ns.
    pub pause: f64,
    /// Time of an uncontended atomic addition, in ns.
    pub rmw: f64,
}

impl Fit {
    /// Returns the machine file of this machine. What cannot be measured is in it as
    /// an assumption.
    #[must_use]
    pub fn machine_file(&self, topology: &Topology) -> String {
        let cycles = |ns: f64, most: f64| (ns * self.clock_ghz).round().clamp(1.0, most);
        let threads = topology.order.len().div_ceil(topology.cores.max(1));
        let nodes = topology.nodes.max(1);
        let cores = topology.cores.div_ceil(nodes).max(1);
        let (near, middle) = (self.near.max(1.0), self.middle.max(1.0));
        let remote = self.far.max(middle);
        let [core, transfer, directory] = self.contended_lines();
        format!(
            "# Made by `locklab machine fit`, {version}.\n\
             # One-way latency of {pairs} of CPUs, ns: least {least:.1}, median {median:.1}, greatest {most:.1}.\n\
             # Measured three times; moved meanwhile: {moved}.\n\
             name = \"this-machine\"\n\
             description = \"Measured where `locklab machine fit` ran\"\n\
             arch = \"{arch}\"\n\n\
             [topology]\nsource = \"/sys/devices/system/cpu, CPUs that may be used\"\n\
             sockets = {nodes}\ncores = {cores}\nthreads = {threads}\n\n\
             [core]\n\
             clock_ghz = {{ value = {clock:.2}, source = \"measured: a chain of dependent complements, as the matrix takes its cycle\" }}\n\
             pause_cycles = {{ value = {pause}, source = \"measured: a loop of relaxes\" }}\n\
             rmw_cycles = {{ value = {rmw}, source = \"measured: a loop of fetch_add on one core\" }}\n\
             unit_cycles = {{ value = {unit}, source = \"measured: as the matrix takes its unit\" }}\n\
             mask_cycles = {{ value = 0, source = \"a program masks no interrupts\" }}\n\
             {core}\
             l1_cycles = {{ value = 5, assumption = \"typical\" }}\n\
             l2_cycles = {{ value = 14, assumption = \"typical\" }}\n\
             store_buffer = {{ value = 56, assumption = \"typical\" }}\n\
             smt_slowdown = {{ value = 1.6, assumption = \"typical\", band = [1.3, 1.9] }}\n\n\
             [transfer]\n\
             cluster_ns = {{ value = {near:.1}, source = \"measured: the nearest pairs; the lesser of passes by compare-and-swap and by stores\" }}\n\
             socket_ns = {{ value = {middle:.1}, source = \"measured: pairs between the nearest and the farthest, or the next\" }}\n\
             remote_ns = {{ value = {remote:.1}, source = \"measured: the farthest pairs\" }}\n\
             memory_ns = {{ value = 90, assumption = \"typical\" }}\n\
             {transfer}\n\
             [directory]\n\
             shared_read_ns = {{ value = 5, assumption = \"cannot be measured so\", band = [2, 30] }}\n\
             invalidate_ns = {{ value = 2, assumption = \"cannot be measured so\", band = [0.3, 4] }}\n\
             {directory}\
             arbitration = {{ value = \"random\", assumption = \"cannot be measured so\" }}\n",
            version = VERSION,
            pairs = number::count(self.one_way.len(), "pair"),
            moved = number::count(self.moved, "pair"),
            clock = self.clock_ghz,
            least = self.one_way[0],
            median = self.one_way[self.one_way.len() / 2],
            most = self.one_way[self.one_way.len() - 1],
            arch = if cfg!(target_arch = "aarch64") {
                "aarch64"
            } else {
                "x86_64"
            },
            pause = cycles(self.pause, 1000.0),
            rmw = cycles(self.rmw, 200.0),
            unit = self.unit.round().clamp(1.0, 1000.0),
        )
    }
}

impl Fit {
    /// Returns the lines of a machine file, in `[core]`, `[transfer]` and `[directory]`, that
    /// say what becomes of a contended line; none if that could not be measured.
    fn contended_lines(&self) -> [String; 3] {
        let Some((found, one_way)) = self.contention else {
            return Default::default();
        };
        let by = |key: &str| {
            match key {
            "core.reads_ahead" => "an addition to the other CPU's line after a computation, without and with a read of another such line".into(),
            "transfer.request_share" => format!(
                "two CPUs that add to one word, {:.0} ns from a visit of the line to the next",
                found.visit
            ),
            "transfer.snoop_share" => {
                format!("the same, a core keeps the line for {:.0} ns", found.kept)
            }
            _ => "an addition to the other CPU's line, without and with a read of it before".into(),
        }
        };
        ["core.", "transfer.", "directory."].map(|table| {
            let lines = found.figures(one_way).map(|(key, value)| {
                let by: String = by(key);
                key.strip_prefix(table).map(|key| {
                    format!("{key} = {{ value = {value:.2}, source = \"measured: {by}\" }}\n")
                })
            });
            lines.into_iter().flatten().collect()
        })
    }
}

/// Returns the pairs of CPUs that are measured: every k-th of all, so that all
/// distances are among them.
#[must_use]
pub fn pairs(cpus: &[usize]) -> Vec<(usize, usize)> {
    let all: Vec<_> = cpus
        .iter()
        .enumerate()
        .flat_map(|(at, a)| cpus[at + 1..].iter().map(move |b| (*a, *b)))
        .collect();
    let step = all.len().div_ceil(MOST_PAIRS).max(1);
    all.into_iter().step_by(step).collect()
}

/// Measures `pairs`.
///
/// # Errors
/// If no two CPUs could exchange a cache line because the machine is too busy.
pub fn measure(native: &Native, pairs: &[(usize, usize)]) -> Result<Fit, Error> {
    let mut passes = vec![Vec::new(); pairs.len()];
    for _ in 0..PASSES {
        for (trips, (a, b)) in passes.iter_mut().zip(pairs) {
            trips.extend(round_trip::transfers(*a, *b));
        }
    }
    let medians: Vec<f64> = passes.iter().map(|trips| median(trips)).collect();
    let Calibration { unit_ns, cycle_ns } = native.calibration;
    let mut fit = of_round_trips(passes, cycle_ns)?;
    fit.unit = unit_ns / cycle_ns;
    // Of the pairs at the middle distance, one.
    let off = |at: &usize| (medians[*at] / 2.0 - fit.middle).abs();
    let measured = (0..pairs.len()).filter(|at| medians[*at].is_finite());
    fit.contention = measured
        .min_by(|one, other| off(one).total_cmp(&off(other)))
        .and_then(|at| {
            let (a, b) = pairs[at];
            Some((contention::measure(a, b)?, medians[at] / 2.0))
        });
    Ok(fit)
}

/// Makes a fit from the round trips of each pair and the length of a cycle.
fn of_round_trips(passes: Vec<Vec<f64>>, cycle: f64) -> Result<Fit, Error> {
    let mut moved = 0;
    let mut trips = Vec::new();
    for mut pair in passes {
        pair.sort_by(f64::total_cmp);
        if let (Some(least), Some(most)) = (pair.first(), pair.last()) {
            moved += usize::from(*most > least * SLACK);
            trips.push(pair[pair.len() / 2]);
        }
    }
    if trips.is_empty() {
        return Err(Error::Failed(
            "no two CPUs ran at the same time; the machine is too busy, try again".into(),
        ));
    }
    trips.sort_by(f64::total_cmp);
    let one_way: Vec<f64> = trips.iter().map(|trip| trip / 2.0).collect();
    // Where the figures have gaps, as a matrix distinguishes placements.
    // Once more in the part that is wider: there are three distances at most.
    let mut bounds: Vec<f64> = gap(trips.clone(), 1).into_iter().collect();
    if let [far] = bounds[..] {
        let (nearer, farther): (Vec<f64>, Vec<f64>) = trips.iter().partition(|trip| **trip < far);
        let width = |part: &[f64]| part[part.len() - 1] / part[0];
        let wider = if width(&nearer) > width(&farther) {
            nearer
        } else {
            farther
        };
        bounds.extend(gap(wider, 1));
        bounds.sort_by(f64::total_cmp);
    }
    let class = |from: f64, to: f64| {
        let of: Vec<f64> = trips
            .iter()
            .filter(|trip| (from..to).contains(*trip))
            .map(|trip| trip / 2.0)
            .collect();
        of.get(of.len() / 2).copied()
    };
    let classes = match bounds[..] {
        [] => [class(0.0, f64::INFINITY), None, None],
        [far] => [class(0.0, far), None, class(far, f64::INFINITY)],
        [middle, far, ..] => [
            class(0.0, middle),
            class(middle, far),
            class(far, f64::INFINITY),
        ],
    };
    // Where a distance does not occur, the next one that does is used.
    let or = |order: [usize; 3]| order.iter().find_map(|at| classes[*at]).unwrap_or(1.0);
    Ok(Fit {
        near: or([0, 1, 2]),
        middle: or([1, 2, 0]),
        far: or([2, 1, 0]),
        contention: None,
        one_way,
        moved,
        clock_ghz: 1.0 / cycle,
        unit: 15.0,
        pause: nanoseconds(20_000, spin_loop),
        rmw: {
            let word = AtomicU64::new(0);
            nanoseconds(20_000, || {
                black_box(word.fetch_add(1, Ordering::SeqCst));
            })
        },
    })
}

/// Returns the mean time of `once` in nanoseconds.
fn nanoseconds(times: u32, mut once: impl FnMut()) -> f64 {
    let best = (0..5).map(|_| {
        let start = Instant::now();
        for _ in 0..times {
            once();
        }
        start.elapsed().as_nanos() as f64 / f64::from(times)
    });
    best.fold(f64::INFINITY, f64::min)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_classes_of_placement_and_a_moved_pair_is_counted() {
        let fit = of_round_trips(
            vec![
                vec![20.0, 22.0, 21.0],
                vec![100.0, 90.0, 95.0],
                vec![300.0, 310.0, 290.0],
                vec![22.0, 240.0, 250.0],
                Vec::new(),
            ],
            0.4,
        )
        .unwrap();
        assert_eq!((fit.near, fit.middle), (10.5, 47.5));
        assert_eq!(fit.far, 150.0);
        assert_eq!((fit.moved, fit.one_way.len()), (1, 4));
        assert!((fit.clock_ghz - 2.5).abs() < 1e-9);
        // All are at one distance, so the other distances equal it.
        let fit = of_round_trips(vec![vec![60.0; 3]], 0.4).unwrap();
        assert_eq!((fit.near, fit.middle, fit.far), (30.0, 30.0, 30.0));
        assert!(of_round_trips(vec![Vec::new()], 0.4).is_err());
    }

    #[test]
    fn pairs_are_spread_over_all() {
        assert_eq!(pairs(&[3, 5]), [(3, 5)]);
        let cpus: Vec<usize> = (0..64).collect();
        let pairs = pairs(&cpus);
        assert!(pairs.len() <= MOST_PAIRS && pairs.iter().any(|(_, b)| *b == 63));
    }
}
