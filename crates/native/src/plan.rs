//! From the specification to a plan: every cell with its units and its share of
//! the time, and every reason why it cannot run, before anything is measured.

use crate::error::PlanError;
use crate::layout::LAYOUTS;
use crate::probe::Native;
use crate::replay::{Replay, act_ns};
use crate::spec::{Spec, Work};
use crate::subject::{self, Subject};
use crate::timeline::{SliceLength, pause};
use crate::work::Calibration;
use locklab_host::clock::{self, nanos};
use locklab_host::topology::{Topology, ranges};
use locklab_lab::experiment::Key;
use locklab_workload::{mix, turns::longest};
use std::sync::Arc;
use std::time::Duration;

/// The plan of an experiment.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What was asked for, with every default decided.
    pub spec: Spec,
    /// CPUs to pin to, best first.
    pub cpus: Vec<usize>,
    /// Calibration of a unit of work.
    pub calibration: Calibration,
    /// The times by which this machine measures.
    pub beat: Beat,
    /// The cells, in the order of the report.
    pub cells: Vec<PlannedCell>,
    /// The recorded program that all cells replay.
    pub replay: Option<Arc<Replay>>,
}

/// The times by which a machine measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Beat {
    /// From one read of the clock to the next, in ns.
    pub clock_interval: u64,
    /// A tick of its kernel, in ns: with more threads than CPUs, one waits so
    /// long for its turn.
    pub tick: u64,
    /// The time to start and end the threads of a block, in ns: of one, and of as
    /// many as there are CPUs.
    pub start: [u64; 2],
}

impl Beat {
    /// Reads those of this machine.
    #[must_use]
    pub fn of(native: &Native) -> Self {
        Self {
            clock_interval: pause(native.clock_cost),
            tick: clock::tick(),
            start: native.start,
        }
    }

    /// The time to start and end a block of `threads` on `cpus` CPUs, in ns.
    fn start_of(&self, threads: usize, cpus: usize) -> u64 {
        let [one, all] = self.start;
        let each = all.saturating_sub(one) / (cpus.max(2) as u64 - 1);
        one + each * (threads as u64 - 1)
    }
}

/// One cell of the plan.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannedCell {
    /// Threads, or processes.
    pub threads: usize,
    /// Length of its critical section, as specified.
    pub critical: u64,
    /// Length of its non-critical section, as specified.
    pub non_critical: u64,
    /// Number of locks that are used at once.
    pub locks: u32,
    /// Units of its critical section.
    pub critical_units: u64,
    /// Units of its non-critical section.
    pub non_critical_units: u64,
    /// Whether there are more threads than CPUs.
    pub oversubscribed: bool,
    /// Duration of one turn of every thread, in ns.
    pub round: f64,
}

/// Measured part of a slice, unless the lock settles more slowly, in looks at the
/// clock: its two ends are known to within one.
const SLICE: u64 = 25;
/// The same for one thread: a lock without waiters keeps no state, and a
/// shorter slice is disturbed less often.
const SLICE_ALONE: u64 = 5;
/// The least and the most measured part of a slice of a recorded program, in ns,
/// and how many turns of its slowest thread it should have.
const REPLAYED: [u64; 2] = [10_000_000, 100_000_000];
const TURNS_REPLAYED: f64 = 20.0;
/// The part left out at its start, in looks.
const SETTLE_ALONE: u64 = 1;
/// The least part left out at the start of a slice of several threads, in looks:
/// queues form, caches warm up.
const SETTLE: u64 = 6;
/// The share of the time of all cells that their calibrations may take.
const CALIBRATIONS: u64 = 10;
/// The share of its time that starting and ending a block may take.
const STARTS: u64 = 12;
/// The part of its time in which a cell has the pairs that let it be called. Many
/// short blocks are worth more than a few long ones: what the moment and the place
/// of its CPUs do to a ratio scatters more than its slices.
const FIRST_ROUNDS: u64 = 7;
/// The longest block, in ns: within some seconds each cell of a matrix has its
/// turn, so that a noisy one affects all of them.
const LONGEST_BLOCK: u64 = 400_000_000;

impl Plan {
    /// Plans `spec` for this machine.
    ///
    /// # Errors
    /// If a lock does not exist or does not work as required, the time or the
    /// slices are too short, or a number is out of range. The message says what
    /// to change.
    pub fn new(spec: Spec, native: &Native) -> Result<Self, PlanError> {
        let beat = Beat::of(native);
        Self::of(spec, &native.topology, native.calibration, beat)
    }

    pub(crate) fn of(
        spec: Spec,
        topology: &Topology,
        calibration: Calibration,
        beat: Beat,
    ) -> Result<Self, PlanError> {
        let cpus = cpus(&spec, topology)?;
        for name in [&spec.baseline, &spec.experiment] {
            spec.fits(&subject::find(name)?)?;
        }
        if spec.time.is_zero() {
            return Err(PlanError::NoTime);
        }
        if spec.slice.is_some_and(|slice| nanos(slice) < 50_000) {
            return Err(PlanError::ShortSlice);
        }
        if let Some(layout) = spec.layout
            && layout >= LAYOUTS
        {
            return Err(PlanError::NoLayout {
                asked: layout,
                last: LAYOUTS - 1,
            });
        }
        check_mix(&spec)?;
        let mut cells = Vec::new();
        let several = spec.locks.iter().flat_map(|locks| {
            let lengths = spec.non_critical.iter();
            lengths.map(|non_critical| (*locks, *non_critical))
        });
        for (locks, non_critical) in several {
            for &threads in &spec.threads {
                for &critical in &spec.critical {
                    let critical_units = match spec.work {
                        Work::Units => calibration.units(critical, spec.unit)?,
                        Work::Fstat => 0,
                    };
                    if spec.work == Work::Units {
                        spec.mix.check_fits(critical_units, critical, spec.unit)?;
                    }
                    let non_critical_units = calibration.units(non_critical, spec.unit)?;
                    let units = critical_units as f64 * threads as f64 + non_critical_units as f64;
                    let cell = PlannedCell {
                        threads,
                        critical,
                        non_critical,
                        locks,
                        critical_units,
                        non_critical_units,
                        oversubscribed: threads > cpus.len(),
                        round: units * calibration.unit_ns,
                    };
                    cell.check_fits(&spec, calibration)?;
                    cells.push(cell);
                }
            }
        }
        Ok(Self {
            spec,
            cpus,
            calibration,
            beat,
            cells,
            replay: None,
        })
    }

    /// Plans cells in which a recorded program is replayed; the threads of the
    /// specification are its workers.
    ///
    /// # Errors
    /// As of [`Self::new`], and if the specification asks for processes.
    pub fn replaying(spec: Spec, replay: Replay, native: &Native) -> Result<Self, PlanError> {
        let beat = Beat::of(native);
        let calibration = native.calibration;
        let replay = replay.with_acts_of(act_ns(calibration.unit_ns));
        Self::replay(spec, replay, &native.topology, calibration, beat)
    }

    pub(crate) fn replay(
        spec: Spec,
        replay: Replay,
        topology: &Topology,
        calibration: Calibration,
        beat: Beat,
    ) -> Result<Self, PlanError> {
        if spec.processes {
            return Err(PlanError::ReplayedProcesses);
        }
        let turn = replay.turn_ns();
        let slice = (TURNS_REPLAYED * turn) as u64;
        let [least, most] = REPLAYED;
        let spec = Spec {
            critical: vec![0],
            non_critical: vec![0],
            locks: vec![u32::try_from(replay.locks()).unwrap_or(u32::MAX)],
            trace: Some(replay.name()),
            slice: spec
                .slice
                .or(Some(Duration::from_nanos(slice.clamp(least, most)))),
            ..spec
        };
        let mut plan = Self::of(spec, topology, calibration, beat)?;
        for cell in &mut plan.cells {
            cell.round = turn.min(least as f64);
        }
        plan.replay = Some(Arc::new(replay));
        Ok(plan)
    }

    /// The slices of a cell before calibration.
    #[must_use]
    pub fn slice(&self, cell: &PlannedCell) -> SliceLength {
        let a_cpu = cell.threads.div_ceil(self.cpus.len()) as u64;
        // Long enough that every thread has a hundred turns, or a few where its
        // sections are long.
        let rounds = (20.0 * cell.round) as u64;
        let Beat {
            clock_interval,
            tick,
            ..
        } = self.beat;
        let usual = if cell.oversubscribed {
            SliceLength {
                settle: a_cpu * tick,
                length: (2 * a_cpu * tick).max(rounds),
            }
        } else {
            let (settle, length) = match cell.threads {
                1 => (SETTLE_ALONE, SLICE_ALONE),
                _ => (SETTLE, SLICE),
            };
            SliceLength {
                settle: (clock_interval * settle).max((2.0 * cell.round) as u64),
                length: (clock_interval * length).max(rounds.min(50 * SLICE * clock_interval)),
            }
        };
        match self.spec.slice {
            Some(slice) => SliceLength {
                length: nanos(slice),
                ..usual
            },
            None => usual,
        }
    }

    /// The shortest block of a cell, in ns, with these many locks: every layout of
    /// each has a slice, and starting it takes little of it. Where there are more
    /// threads than CPUs, slices are long, and one of each is enough.
    fn least_block(&self, cell: &PlannedCell, locks: u64) -> u64 {
        let SliceLength { settle, length } = self.slice(cell);
        let turns = match cell.oversubscribed || self.spec.slice.is_some() {
            true => 1,
            false => LAYOUTS as u64,
        };
        let start = self.beat.start_of(cell.threads, self.cpus.len());
        (locks * turns * (settle + length)).max(STARTS * start)
    }

    /// The time of a block of each cell, with starting and ending it.
    fn with_starts(&self, blocks: impl Iterator<Item = u64>) -> u64 {
        let start = |cell: &PlannedCell| self.beat.start_of(cell.threads, self.cpus.len());
        blocks
            .zip(&self.cells)
            .map(|(block, cell)| block + start(cell))
            .sum()
    }

    /// The time of one block of each cell, in ns, so that `pairs` rounds take
    /// a small part of the requested time: more where threads contend, because
    /// one thread alone is decided in less. The rest goes to the cells that are
    /// still open after those rounds.
    #[must_use]
    pub fn blocks(&self, pairs: u32) -> Vec<u64> {
        let time = nanos(self.spec.time) / u64::from(pairs.max(1));
        let least = |cell: &PlannedCell| self.least_block(cell, 2);
        let crowded = self.cells.iter().filter(|cell| cell.oversubscribed);
        let crowded: u64 = crowded.map(least).sum();
        // Slices of crowded cells are long: most of a round is for the others.
        let round = (time / FIRST_ROUNDS).max(3 * crowded).min(time / 10 * 6);
        let weight = |cell: &PlannedCell| match cell.threads {
            _ if cell.oversubscribed => 0.0,
            1 => 0.3,
            _ => 1.0,
        };
        let fixed = self.with_starts(self.cells.iter().map(least));
        let weights: f64 = self.cells.iter().map(weight).sum();
        let spare = round.saturating_sub(fixed) as f64;
        self.cells
            .iter()
            .map(|cell| {
                let part = if weights > 0.0 {
                    spare * weight(cell) / weights
                } else {
                    0.0
                };
                let least = least(cell);
                (least + part as u64).min(LONGEST_BLOCK.max(least))
            })
            .collect()
    }

    /// The number of such rounds that the requested time has room for.
    #[must_use]
    pub(crate) fn rounds(&self, pairs: u32) -> f64 {
        let round = self.with_starts(self.blocks(pairs).into_iter());
        nanos(self.spec.time) as f64 / round.max(1) as f64
    }

    /// The time of the calibration of one cell, in ns, of those that have one.
    #[must_use]
    pub fn calibration_time(&self) -> u64 {
        let calibrated = self
            .cells
            .iter()
            .filter(|c| c.threads > 1 && !c.oversubscribed);
        nanos(self.spec.time) / CALIBRATIONS / calibrated.count().max(1) as u64
    }

    /// The time of one block of `locks` locks at each point, in ns, so that
    /// `blocks` rounds take the requested time; a block has one slice of each
    /// lock at least.
    #[must_use]
    pub fn blocks_of_many(&self, locks: usize, blocks: u32) -> Vec<u64> {
        let least = |cell: &PlannedCell| {
            let slice = self.slice(cell);
            locks as u64 * (slice.settle + slice.length)
        };
        let fixed = self.with_starts(self.cells.iter().map(least));
        let round = nanos(self.spec.time) / u64::from(blocks.max(1));
        // Where there are more threads than CPUs a slice is long enough.
        let crowded = |cell: &&PlannedCell| !cell.oversubscribed;
        let sharing = self.cells.iter().filter(crowded).count() as u64;
        let spare = round.saturating_sub(fixed) / sharing.max(1);
        let time = |cell: &PlannedCell| match cell.oversubscribed {
            true => least(cell),
            false => (least(cell) + spare).max(self.least_block(cell, 1)),
        };
        self.cells.iter().map(time).collect()
    }

    /// The time of `blocks` such rounds.
    #[must_use]
    pub fn estimate_of_many(&self, locks: usize, blocks: u32) -> Duration {
        let one = self.with_starts(self.blocks_of_many(locks, blocks).into_iter());
        Duration::from_nanos(one.saturating_mul(blocks.into()))
    }

    /// The total time if no cell is decided early.
    #[must_use]
    pub fn estimate(&self, pairs: u32) -> Duration {
        let one = self.with_starts(self.blocks(pairs).into_iter());
        Duration::from_nanos(one.saturating_mul(pairs.into())).max(self.spec.time)
    }
}

impl PlannedCell {
    /// Its key in an experiment of `spec`, which has an axis for the locks
    /// where that is asked.
    #[must_use]
    pub fn key(&self, spec: &Spec) -> Key {
        let key = Key::point(self.threads, self.critical, self.non_critical);
        match mix::is_one_lock(&spec.locks) {
            true => key,
            false => key.at_once(self.locks),
        }
    }

    /// Checks that every thread can have a turn in each slice.
    fn check_fits(&self, spec: &Spec, calibration: Calibration) -> Result<(), PlanError> {
        let limit = spec.slice.unwrap_or(Duration::from_millis(50));
        let longest = longest(spec.mix.distribution) - 1.0;
        let beyond = longest * self.non_critical_units as f64 * calibration.unit_ns;
        if self.round + beyond.max(0.0) <= nanos(limit) as f64 {
            return Ok(());
        }
        Err(PlanError::LongTurn {
            critical: self.critical,
            non_critical: self.non_critical,
            threads: self.threads,
            turn: seconds(self.round * 1e-9),
            slice: seconds(limit.as_secs_f64()),
        })
    }
}

/// A duration as text.
#[must_use]
pub fn seconds(s: f64) -> String {
    match s {
        _ if s < 0.1 => format!("{:.1} ms", s * 1e3),
        _ if s < 100.0 => format!("{s:.0} s"),
        _ if s < 6000.0 => format!("{:.0} min {:02.0} s", (s / 60.0).floor(), s % 60.0),
        _ if s < 100.0 * 3600.0 => format!("{:.1} hours", s / 3600.0),
        _ if s < 1e5 * 86_400.0 => format!("{:.0} days", s / 86_400.0),
        _ => format!("{:.0e} years", s / (365.25 * 86_400.0)),
    }
}

fn cpus(spec: &Spec, topology: &Topology) -> Result<Vec<usize>, PlanError> {
    let Some(pin) = &spec.pin else {
        return Ok(topology.order.clone());
    };
    for (i, cpu) in pin.iter().enumerate() {
        if !topology.order.contains(cpu) {
            let mut allowed = topology.order.clone();
            allowed.sort_unstable();
            return Err(PlanError::ForeignCpu {
                cpu: *cpu,
                allowed: ranges(&allowed),
            });
        }
        if pin[..i].contains(cpu) {
            return Err(PlanError::CpuTwice(*cpu));
        }
    }
    if pin.is_empty() {
        return Err(PlanError::NoCpu);
    }
    Ok(pin.clone())
}

impl Spec {
    /// Whether a lock can do what is asked.
    ///
    /// # Errors
    /// A sentence that says why it cannot, and what could.
    pub fn fits(&self, subject: &Subject) -> Result<(), PlanError> {
        check_lock(subject, self)
    }
}

/// Whether what a turn does makes sense.
fn check_mix(spec: &Spec) -> Result<(), PlanError> {
    spec.mix.check(&spec.locks)?;
    let usual = spec.mix.is_usual() && mix::is_one_lock(&spec.locks);
    if spec.work == Work::Fstat && !usual {
        return Err(PlanError::Fstat);
    }
    Ok(())
}

fn check_lock(subject: &Subject, spec: &Spec) -> Result<(), PlanError> {
    let info = &subject.info;
    if spec.processes && !info.shared_memory {
        let able = subject::all()
            .iter()
            .filter(|s| s.info.shared_memory)
            .map(|s| s.info.name)
            .collect();
        return Err(PlanError::NotShared {
            lock: info.name,
            able,
        });
    }
    match spec.threads.iter().max() {
        Some(&asked) if asked > info.max_cpus => Err(PlanError::TooManyThreads {
            lock: info.name,
            most: info.max_cpus,
            asked,
        }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::Unit;
    use locklab_workload::Distribution;

    fn plan(change: impl FnOnce(&mut Spec)) -> Result<Plan, PlanError> {
        let topology = Topology {
            order: vec![0, 2, 1],
            known: true,
            cores: 3,
            nodes: 1,
        };
        let calibration = Calibration {
            unit_ns: 4.0,
            cycle_ns: 0.25,
        };
        let mut spec = Spec {
            threads: vec![1, 4],
            critical: vec![0, 2],
            ..Spec::new("ticket", "mcs")
        };
        change(&mut spec);
        let beat = Beat {
            clock_interval: 10_000,
            tick: 4_000_000,
            start: [100_000, 300_000],
        };
        Plan::of(spec, &topology, calibration, beat)
    }

    #[test]
    fn a_plan_has_every_cell_in_the_order_of_the_report() {
        let plan = plan(|_| {}).unwrap();
        let cells: Vec<(usize, u64, bool)> = plan
            .cells
            .iter()
            .map(|c| (c.threads, c.critical_units, c.oversubscribed))
            .collect();
        assert_eq!(
            cells,
            [(1, 1, false), (1, 3, false), (4, 1, true), (4, 3, true)]
        );
    }

    #[test]
    fn each_number_of_locks_has_cells_of_its_own() {
        let plan = plan(|spec| {
            spec.locks = vec![1, 8];
            spec.critical = vec![0];
        })
        .unwrap();
        let keys: Vec<String> = plan
            .cells
            .iter()
            .map(|cell| cell.key(&plan.spec).to_string())
            .collect();
        assert_eq!(
            keys,
            [
                "1 x 0 x 1 x 1",
                "4 x 0 x 1 x 1",
                "1 x 0 x 1 x 8",
                "4 x 0 x 1 x 8"
            ]
        );
    }

    #[test]
    fn the_time_asked_for_is_shared_out_and_kept() {
        let plan = plan(|spec| {
            spec.threads = vec![1, 2, 4];
            spec.time = Duration::from_secs(20);
        })
        .unwrap();
        for pairs in [8, 14] {
            let blocks = plan.blocks(pairs);
            let all = blocks.iter().sum::<u64>() * u64::from(pairs);
            let asked = nanos(plan.spec.time);
            assert!(all <= asked / 10 * 6, "{pairs} pairs: {all}");
            assert!(all >= asked / 8, "{pairs} pairs: {all}");
            let crowded: u64 = blocks[4..].iter().sum();
            assert!(crowded < blocks[..4].iter().sum());
            // Contended cells have more than those of one thread; those of
            // more threads than CPUs have one pair of slices.
            assert!(blocks[2] > blocks[0]);
            let slice = plan.slice(&plan.cells[4]);
            assert_eq!(blocks[4], 2 * (slice.settle + slice.length));
            assert!(slice.length >= 3 * plan.beat.tick);
            // Contended slices follow the clock of the machine.
            let contended = plan.slice(&plan.cells[2]);
            assert_eq!((contended.settle, contended.length), (60_000, 250_000));
        }
        // What does not fit takes longer, and is announced.
        assert!(plan.estimate(1000) > Duration::from_secs(20));
    }

    #[test]
    fn what_cannot_run_is_refused_in_a_sentence() {
        let refused = |change: fn(&mut Spec), part: &str| {
            let text = plan(change).unwrap_err().to_string();
            assert!(text.contains(part), "{text}");
        };
        refused(|s| s.baseline = "tiket".into(), "the closest are ticket");
        refused(|s| s.experiment = "tickett".into(), "ticket");
        refused(|s| s.time = Duration::ZERO, "--time");
        refused(
            |s| s.slice = Some(Duration::from_micros(10)),
            "--slice-us 50",
        );
        refused(|s| s.layout = Some(99), "--layout 0 to 7");
        refused(
            |s| s.critical = vec![u64::MAX],
            "more than a machine can count",
        );
        refused(|s| s.critical = vec![u64::MAX - 1], "years");
        refused(
            |s| s.non_critical = vec![1 << 40],
            "one turn of 1 thread takes",
        );
        refused(
            |s| {
                s.unit = Unit::Nanoseconds;
                s.critical = vec![u64::MAX];
            },
            "years",
        );
        refused(|s| s.mix.lines = 4, "length 0 touches, which is 1");
        refused(|s| s.mix.reads = 101, "--reads 0 to 100");
        refused(|s| s.locks = vec![2, 1000], "--locks 1 to 256");
        refused(
            |s| {
                s.work = Work::Fstat;
                s.mix.reads = 5;
            },
            "an fstat touches no lines",
        );
        refused(
            |s| {
                s.mix.distribution = Distribution::Bursty;
                s.non_critical = vec![500_000];
            },
            "one turn of",
        );
        refused(|s| s.pin = Some(vec![0, 7]), "may use 0-2");
        refused(|s| s.pin = Some(vec![0, 0]), "twice");
        refused(|s| s.pin = Some(vec![]), "names no CPU");
        refused(
            |s| s.processes = true,
            "'mcs' does not work between processes",
        );
        refused(
            |s| {
                s.baseline = "mplock-ticket".into();
                s.threads = vec![600];
            },
            "at most 512 threads",
        );
    }

    #[test]
    fn numbers_for_people() {
        assert_eq!(seconds(0.0123), "12.3 ms");
        assert_eq!(seconds(107.0), "1 min 47 s");
        assert_eq!(seconds(1e11), "3e3 years");
    }
}
