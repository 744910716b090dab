//! From what was asked to what will run: every cell with its units, and
//! every reason why it cannot, before anything is measured.

use crate::matrix::{Point, Spec, Work};
use crate::native::round_trip::links;
use crate::native::subject::{self, Subject};
use crate::native::work::Calibration;
use locklab_host::clock::nanos;
use locklab_host::topology::{Topology, ranges};
use std::time::Duration;

/// What will run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What was asked.
    pub spec: Spec,
    /// CPUs to pin to, best first.
    pub cpus: Vec<usize>,
    /// How long a unit takes.
    pub calibration: Calibration,
    /// The cells, in the order in which they run.
    pub cells: Vec<PlannedCell>,
}

/// One cell.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannedCell {
    /// Which.
    pub point: Point,
    /// Units of its critical section.
    pub critical: u64,
    /// Units of its non-critical section.
    pub non_critical: u64,
    /// More threads than CPUs.
    pub oversubscribed: bool,
    /// The pairs of CPUs whose round trip is measured around each run.
    pub links: Vec<(usize, usize)>,
}

/// Starting, ending and settling of a run, and one measured link: what they
/// take on a machine of this decade, for the estimate only.
const BESIDE_A_RUN: Duration = Duration::from_micros(1500);
const A_LINK: Duration = Duration::from_micros(700);

impl Plan {
    /// Plans `spec` for a machine.
    ///
    /// # Errors
    /// A sentence for what cannot run as asked.
    pub fn new(spec: Spec, topology: &Topology, calibration: Calibration) -> Result<Self, String> {
        let cpus = cpus(&spec, topology)?;
        for name in [&spec.baseline, &spec.experiment] {
            check_lock(&subject::find(name)?, &spec)?;
        }
        if spec.pairs == 0 {
            return Err("zero pairs show nothing; give --pairs 8 or more".into());
        }
        if nanos(spec.run) < 1_000_000 {
            return Err("a run shorter than 1 ms shows only noise; give --run-ms 1 or more".into());
        }
        let mut cells = Vec::new();
        for &non_critical in &spec.non_critical {
            for &threads in &spec.threads {
                for &critical in &spec.critical {
                    let point = Point {
                        threads,
                        critical,
                        non_critical,
                    };
                    let cell = PlannedCell {
                        point,
                        critical: match spec.work {
                            Work::Units => calibration.units(critical, spec.unit)?,
                            Work::Fstat => 0,
                        },
                        non_critical: calibration.units(non_critical, spec.unit)?,
                        oversubscribed: threads > cpus.len(),
                        links: links(&cpus[..threads.min(cpus.len())]),
                    };
                    cell.check_fits(&spec, &calibration)?;
                    cells.push(cell);
                }
            }
        }
        Ok(Self {
            spec,
            cpus,
            calibration,
            cells,
        })
    }

    /// Runs of one lock, without repeated pairs.
    #[must_use]
    pub fn runs(&self) -> u64 {
        2 * u64::from(self.spec.pairs) * self.cells.len() as u64
    }

    /// How long it takes if nothing is repeated.
    #[must_use]
    pub fn estimate(&self) -> Duration {
        let runs = 2 * self.spec.pairs;
        let one = self.spec.run + self.spec.warm_up + BESIDE_A_RUN;
        self.cells
            .iter()
            .map(|cell| {
                let links = u32::try_from(2 * cell.links.len()).unwrap_or(u32::MAX);
                one.saturating_add(A_LINK.saturating_mul(links))
                    .saturating_mul(runs)
            })
            .fold(Duration::ZERO, Duration::saturating_add)
    }
}

impl PlannedCell {
    /// A run in which not everybody had a turn says nothing.
    fn check_fits(&self, spec: &Spec, calibration: &Calibration) -> Result<(), String> {
        let round = (self.critical as f64 * self.point.threads as f64 + self.non_critical as f64)
            * calibration.unit_ns;
        if round <= nanos(spec.run) as f64 {
            return Ok(());
        }
        let Point {
            threads,
            critical,
            non_critical,
        } = self.point;
        Err(format!(
            "with critical length {critical} and non-critical length {non_critical}, one turn of \
             {threads} {} takes {}, more than the run of {} ms; shorten the lengths or give a \
             longer --run-ms",
            if threads == 1 { "thread" } else { "threads" },
            seconds(round * 1e-9),
            spec.run.as_millis()
        ))
    }
}

/// A time for people.
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

fn cpus(spec: &Spec, topology: &Topology) -> Result<Vec<usize>, String> {
    let Some(pin) = &spec.pin else {
        return Ok(topology.order.clone());
    };
    for (i, cpu) in pin.iter().enumerate() {
        if !topology.order.contains(cpu) {
            let mut allowed = topology.order.clone();
            allowed.sort_unstable();
            return Err(format!(
                "--pin names CPU {cpu}, which this process may not use; it may use {}",
                ranges(&allowed)
            ));
        }
        if pin[..i].contains(cpu) {
            return Err(format!("--pin names CPU {cpu} twice; name each CPU once"));
        }
    }
    Ok(pin.clone())
}

fn check_lock(subject: &Subject, spec: &Spec) -> Result<(), String> {
    let info = &subject.info;
    if spec.processes && !info.shared_memory {
        let able: Vec<&str> = subject::all()
            .iter()
            .filter(|s| s.info.shared_memory)
            .map(|s| s.info.name)
            .collect();
        return Err(format!(
            "'{}' does not work between processes, because it holds pointers or memory of one \
             process; those that do are {}",
            info.name,
            able.join(", ")
        ));
    }
    match spec.threads.iter().max() {
        Some(most) if *most > info.max_cpus => Err(format!(
            "'{}' serves at most {} threads, and {most} were asked for; ask for fewer",
            info.name, info.max_cpus
        )),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::Unit;

    fn spec() -> Spec {
        Spec {
            baseline: "ticket".into(),
            experiment: "mcs".into(),
            threads: vec![1, 4],
            critical: vec![0, 2],
            non_critical: vec![1],
            unit: Unit::Units,
            work: Work::Units,
            pairs: 12,
            run: Duration::from_millis(50),
            warm_up: Duration::from_millis(10),
            seed: 1,
            pin: None,
            processes: false,
            latency: false,
            aa: false,
            delta: 0.01,
        }
    }

    fn plan(spec: Spec) -> Result<Plan, String> {
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
        Plan::new(spec, &topology, calibration)
    }

    #[test]
    fn a_plan_has_every_cell_in_the_order_of_the_report() {
        let plan = plan(spec()).unwrap();
        let points: Vec<(usize, u64, bool)> = plan
            .cells
            .iter()
            .map(|c| (c.point.threads, c.critical, c.oversubscribed))
            .collect();
        assert_eq!(
            points,
            [(1, 1, false), (1, 3, false), (4, 1, true), (4, 3, true)]
        );
        assert_eq!(plan.runs(), 96);
        assert!(plan.cells[0].links.is_empty());
        assert_eq!(plan.cells[2].links, [(0, 2), (2, 1), (0, 1)]);
    }

    #[test]
    fn what_cannot_run_is_refused_in_a_sentence() {
        let refused = |change: fn(&mut Spec), part: &str| {
            let mut spec = spec();
            change(&mut spec);
            let text = plan(spec).unwrap_err();
            assert!(text.contains(part), "{text}");
        };
        refused(|s| s.baseline = "tiket".into(), "the closest are ticket");
        refused(|s| s.experiment = "tickett".into(), "ticket");
        refused(|s| s.pairs = 0, "zero pairs");
        refused(|s| s.run = Duration::from_micros(10), "shorter than 1 ms");
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
        refused(|s| s.pin = Some(vec![0, 7]), "may use 0-2");
        refused(|s| s.pin = Some(vec![0, 0]), "twice");
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
