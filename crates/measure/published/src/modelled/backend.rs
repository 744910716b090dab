//! The simulator as a backend of the harness.

use crate::modelled::extras::Extras;
use crate::modelled::pool::Pool;
use crate::modelled::score;
use crate::modelled::spec::Spec;
use locklab_document::Document;
use locklab_harness::backend::{Backend, Pairing, Schedule, Stopped, Turn};
use locklab_harness::experiment::{
    Cell, Design, Experiment, Facts, Labels, Provenance, Sample, Source, Values,
};
use locklab_harness::matrix::{
    CPU_NS, EQUAL_SHARE, HANDOFFS, JAIN, LATENCY_MAX, LATENCY_P50, LATENCY_P99, LATENCY_P999,
    MIN_OVER_MAX, OPS, READ_P50, READ_P99, READ_P999, READ_STARVED, STREAK_MAX, STREAK_MEAN,
    WRITE_P50, WRITE_P99, WRITE_P999, WRITE_STARVED, at_equal_share, metrics, min_over_max,
};
use locklab_host::error::Error;
use locklab_sim::{FIGURES, FigureKey, Machine, Origin, Outcome, SimError, run};
use locklab_workload::{Place, Unit, Work};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Both outcomes of a pair, the baseline's first, or the reason why there are
/// none.
type Both = Result<[Outcome; 2], SimError>;

/// Two locks on one modelled machine.
pub struct Simulated {
    spec: Spec,
    machine: Machine,
    places: Vec<Place>,
    workers: usize,
    interrupt: Arc<AtomicBool>,
    pool: Option<Pool<(usize, u32, u64), Both>>,
    extras: Extras,
}

impl Simulated {
    /// Prepares to simulate on `workers` threads of this machine; the figures
    /// do not depend on their number.
    ///
    /// # Errors
    /// The errors of [`Spec::check`]: a lock that cannot be simulated, more
    /// threads than CPUs, or settings that the machine does not have.
    pub fn new(
        spec: Spec,
        machine: Machine,
        workers: usize,
        interrupt: Arc<AtomicBool>,
    ) -> Result<Self, Error> {
        spec.check(&machine)?;
        Ok(Self {
            places: spec.cells.places(),
            spec,
            machine,
            workers,
            interrupt,
            pool: None,
            extras: Extras::default(),
        })
    }

    /// Shows this besides the cells.
    #[must_use]
    pub fn with(self, extras: Extras) -> Self {
        Self { extras, ..self }
    }
}

/// Returns what the samples of a simulation depend on: what is run, and every figure of
/// the machine.
pub(crate) fn fingerprint(run: Value, machine: &Machine) -> Value {
    let figures = machine.figures.iter();
    // These came later: a machine without them is found as it was stored.
    let is_later = |key: FigureKey, value: f64| match key {
        FigureKey::TopologySmallClusters
        | FigureKey::TopologyColumns
        | FigureKey::TransferStopNs
        | FigureKey::SchedulerLatencyUs
        | FigureKey::CoreOwnReuse
        | FigureKey::CoreReadsAhead
        | FigureKey::DirectoryMigrates => value == 0.0,
        FigureKey::CoreUnitCycles => value == 15.0,
        FigureKey::CoreMaskCycles => value == 20.0,
        FigureKey::CoreSmallSpeed => value == 1.0,
        FigureKey::SchedulerYieldUs => value == 0.4,
        FigureKey::SchedulerWakeNobodyUs => value == 0.15,
        _ => false,
    };
    let figures: Vec<_> = figures
        .filter(|(key, figure)| !is_later(**key, figure.value))
        .map(|(key, figure)| (key.name(), figure.value))
        .collect();
    json!([run, machine.name, machine.arbitration.name(), figures])
}

/// Returns the facts about the model and its workload.
pub(crate) fn facts(spec: &Spec, machine: &Machine) -> Facts {
    let unit = machine.get(FigureKey::CoreUnitCycles);
    let workload = match spec.cells.work {
        Work::Units => {
            let lengths = match spec.cells.unit {
                Unit::Units if unit == 15.0 => {
                    "length n is n + 1 units of about 15 cycles on Ice Lake".into()
                }
                Unit::Units => format!("length n is n + 1 units of {unit} cycles"),
                Unit::Nanoseconds => {
                    format!("lengths in ns, to the nearest unit of {unit} cycles")
                }
            };
            format!("loop {{ lock; critical; unlock; non-critical }} in threads; {lengths}")
        }
        Work::Fstat => "fstat(2) in threads, each on a file of its own".into(),
    };
    let mut facts: Facts = vec![
        ("Model".into(), machine.description.clone()),
        ("CPUs".into(), machine.cpus().to_string()),
        ("Arbitration".into(), machine.arbitration.name().into()),
        ("Workload".into(), workload),
        ("Placement".into(), spec.placement(machine).name().into()),
        ("Run".into(), spec.length(machine)),
    ];
    facts.extend(turns(spec.cells.words()));
    facts
}

/// Returns what turns do that is not as usual, as a fact.
fn turns(words: Vec<String>) -> Option<(String, String)> {
    (!words.is_empty()).then(|| ("Turns".into(), words.join("; ")))
}

/// Returns the caveats that a reader of a simulated figure must know.
pub(crate) fn caveats(spec: &Spec, machine: &Machine) -> Vec<String> {
    let assumed: Vec<String> = machine
        .figures
        .iter()
        .filter(|(key, figure)| {
            matches!(figure.origin, Origin::Assumption(_)) && !machine.defaulted.contains(key)
        })
        .map(|(key, figure)| format!("{key} {}", figure.value))
        .collect();
    let mut caveats = vec![
        format!(
            "Simulated on a model. Each pair runs with its own seed on its own variant of the \
             machine, drawn from the bands of the figures that are assumed and not measured ({}). \
             Better and worse are printed only where nine of ten pairs agree. --band shows which \
             assumption matters.",
            assumed.join(", ")
        ),
        "Not modelled: cache capacity, prefetch, speculation, frequency changes, memory \
         bandwidth."
            .into(),
    ];
    caveats.extend(system(spec, machine));
    caveats.extend(score::sentences([machine], score::questions(spec, machine)));
    caveats
}

/// Returns that the operating system's costs are not the machine's, where threads share its
/// CPUs and its file has none of them.
fn system(spec: &Spec, machine: &Machine) -> Option<String> {
    let says = FIGURES
        .iter()
        .filter(|figure| figure.key.table() == "scheduler")
        .any(|figure| !machine.defaulted.contains(&figure.key));
    let shares = |threads: &usize| spec.is_oversubscribed(machine, *threads);
    let asks = machine.get(FigureKey::VmVcpus) == 0.0 && spec.cells.threads.iter().any(shares);
    (asks && !says).then(|| {
        format!(
            "The file of {} has no [scheduler]: what calls, wake-ups and switches of threads \
             cost is the format's, and each pair draws it within a factor of two.",
            machine.name
        )
    })
}

impl Backend for Simulated {
    fn experiment(&self, design: Design) -> Experiment {
        let (spec, machine) = (&self.spec, &self.machine);
        let cells = self.places.iter().map(|place| {
            let threads = usize::try_from(place[0]).unwrap_or(usize::MAX);
            let metrics = metrics(threads, spec.cells.waits(), Source::Simulation);
            let mut cell = Cell::new(spec.key(*place), metrics);
            cell.oversubscribed = spec.is_oversubscribed(machine, threads);
            cell
        });
        Experiment {
            kind: locklab_harness::matrix::KIND.into(),
            labels: Labels::new(&spec.baseline, &spec.experiment),
            spec: json!(spec),
            design,
            provenance: Provenance::Simulation(machine.name.clone()),
            facts: facts(spec, machine),
            caveats: caveats(spec, machine),
            cells: cells.collect(),
            interrupted: None,
        }
    }

    fn fingerprint(&self) -> Value {
        fingerprint(json!(self.spec), &self.machine)
    }

    fn pairing(&self) -> Pairing {
        Pairing::Together
    }

    fn schedule(&self) -> Schedule {
        Schedule::RoundByRound
    }

    fn announce(&mut self, turns: &[Turn]) {
        let tasks = turns.iter().map(task).collect();
        let (spec, places) = (self.spec.clone(), self.places.clone());
        // The rounds of all cells are announced together, including the last.
        let pairs = turns.iter().map(|turn| turn.pair + 1).max().unwrap_or(0);
        let machines = self.spec.variants(&self.machine, pairs as usize);
        self.pool = Some(Pool::start(
            tasks,
            self.workers,
            move |(cell, pair, seed)| {
                let machine = &machines[pair as usize];
                let one = |lock: &str| run(&spec.scenario(machine, places[cell], lock, seed));
                Ok([one(&spec.baseline)?, one(&spec.experiment)?])
            },
        ));
    }

    fn run_together(&mut self, _: &Cell, turn: &Turn) -> Result<[Sample; 2], Stopped> {
        let both = pool(&self.pool)?.simulated(task(turn), &self.interrupt, Stopped::Fatal)?;
        let of =
            |outcome: Outcome| sample(&self.spec.by_its_rule(outcome), self.spec.cells.latency);
        Ok(both.map(of))
    }

    fn finish(&mut self, report: &mut Document) -> Result<Option<String>, Error> {
        let extras = &self.extras;
        extras.append(&self.spec, &self.machine, self.workers, report)?;
        Ok(None)
    }
}

fn task(turn: &Turn) -> (usize, u32, u64) {
    (turn.cell, turn.pair, turn.seed)
}

/// Returns the pool that was started when the turns were announced.
pub(crate) fn pool<P>(started: &Option<P>) -> Result<&P, Stopped> {
    let missing = || Stopped::Fatal("no simulation was announced".into());
    started.as_ref().ok_or_else(missing)
}

/// Returns the metrics of one simulation, by the names used in a matrix.
#[must_use]
pub fn sample(outcome: &Outcome, latency: bool) -> Sample {
    let others: u64 = outcome.handoffs[1..].iter().sum();
    let operations: u64 = outcome.ops_by_thread.iter().sum();
    let acquisitions = outcome.acquisitions.max(1) as f64;
    // It is a whole number, except for operations under way when counting ends.
    let per_operation = (acquisitions / operations.max(1) as f64).round().max(1.0);
    // Both rates of a run are over the same time, however its threads ended.
    let handoffs_per_s = outcome.ops_per_s * per_operation * others as f64 / acquisitions;
    let equal_share = outcome.ops_per_s * at_equal_share(&outcome.ops_by_thread) as f64
        / operations.max(1) as f64;
    let mut values = Values::from(
        [
            (OPS, outcome.ops_per_s),
            (CPU_NS, outcome.cpu_ns),
            (HANDOFFS, handoffs_per_s),
            (EQUAL_SHARE, equal_share),
            (JAIN, outcome.jain),
            (MIN_OVER_MAX, min_over_max(&outcome.ops_by_thread)),
            (STREAK_MEAN, outcome.mean_streak),
            (STREAK_MAX, outcome.longest_streak as f64),
        ]
        .map(|(name, value)| (name.to_owned(), value)),
    );
    if latency {
        for (name, ns) in [
            (LATENCY_P50, outcome.latency.p50),
            (LATENCY_P99, outcome.latency.p99),
            (LATENCY_P999, outcome.latency.p999),
            (LATENCY_MAX, outcome.latency.max),
        ] {
            values.insert(name.into(), ns);
        }
        if let Some(waits) = &outcome.by_use {
            let (readers, writers) = (waits.readers, waits.writers);
            for (name, value) in [
                (READ_P50, readers.latency.p50),
                (READ_P99, readers.latency.p99),
                (READ_P999, readers.latency.p999),
                (READ_STARVED, readers.starved),
                (WRITE_P50, writers.latency.p50),
                (WRITE_P99, writers.latency.p99),
                (WRITE_P999, writers.latency.p999),
                (WRITE_STARVED, writers.starved),
            ] {
                values.insert(name.into(), value);
            }
        }
    }
    Sample {
        values,
        detail: json!(outcome),
        ..Sample::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use locklab_sim::{Scenario, Stop, Workload};

    #[test]
    fn a_report_says_the_unit_of_its_machine() {
        let machine = Machine::builtin("flat-16").unwrap();
        let spec = Spec::new("mcs", "ticket", locklab_workload::Cells::default());
        for (cycles, words) in [
            (15.0, "about 15 cycles on Ice Lake"),
            (9.0, "units of 9 cycles"),
        ] {
            let machine = machine.clone().with(FigureKey::CoreUnitCycles, cycles);
            let facts = facts(&spec, &machine.unwrap());
            assert!(
                facts.iter().any(|(_, fact)| fact.ends_with(words)),
                "{facts:?}"
            );
        }
    }

    /// In a run of less than one acquisition a thread, and in one where each
    /// thread ends by itself.
    #[test]
    fn rates_and_streaks_of_a_run_agree() {
        for (lock, threads) in [("mcs", 48), ("tas", 8), ("ticket", 1)] {
            for stop in [Stop::Acquisitions(40), Stop::Each(20)] {
                let machine = Machine::builtin("xeon-8380-2s").unwrap();
                let workload = Workload::Matrix {
                    critical: 4,
                    non_critical: 100,
                };
                let mut scenario = Scenario::new(machine, lock, workload, threads);
                scenario.stop = stop;
                let outcome = run(&scenario).unwrap();
                let values = sample(&outcome, false).values;
                let (ops, handoffs) = (values[OPS], values[HANDOFFS]);
                let streak = values[STREAK_MEAN];
                assert!(streak >= 1.0, "{lock}: {streak}");
                // Both are quotients, which round on their own.
                assert!(
                    handoffs <= ops * (1.0 + 1e-12),
                    "{lock}: {handoffs} of {ops}"
                );
                // They agree except for one streak, which began before counting
                // did.
                let count: u64 = outcome.handoffs[1..].iter().sum();
                if count > 0 {
                    let product = handoffs * streak / ops;
                    let least = count as f64 / (count + 1) as f64;
                    assert!(
                        (least - 1e-9..1.0 + 1e-9).contains(&product),
                        "{lock}: {product}"
                    );
                }
            }
        }
    }
}
