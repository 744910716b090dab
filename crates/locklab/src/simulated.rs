//! `locklab matrix A B --on MACHINE`: the simulator as an instrument.
//!
//! The same question, judge and report as on hardware; a pair is one seed for
//! both locks. Nothing is stored: the same seed gives the same figures, which
//! the trace hash shows.

use crate::cli::{Common, FailOn, MatrixArgs, UnitArg};
use crate::matrix::{Cell, Latency, Measured, Point, Provenance, Run, RunPair, Spec};
use crate::matrix_command::{command_line, print, question};
use crate::native::subject;
use crate::report::{self, Colour, Context, Page};
use crate::verdicts;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use locklab_host::error::Error;
use locklab_judge::Verdict;
use locklab_sim::{
    Distance, Fstat, Machine, Origin, Outcome, Placement, Scenario, Stop, Workload, band, run_all,
    simulate,
};
use std::path::Path;
use std::process::ExitCode;

/// Acquisitions of one run: with the usual 14 pairs, 14,000 a cell and lock.
const ACQUISITIONS: u64 = 1000;

/// Time slices of one run where virtual CPUs share physical ones.
const SLICES: f64 = 5.0;

/// Runs it.
///
/// # Errors
/// One sentence.
pub(crate) fn run(args: &MatrixArgs, common: &Common, on: &str) -> Result<ExitCode, Error> {
    let machine = machine(on, args.vcpus).map_err(Error::Usage)?;
    let spec = spec(args, common, &machine).map_err(Error::Usage)?;
    let matrix = Matrix {
        machine: &machine,
        spec: &spec,
        physical: args.physical,
    };
    let scenarios = matrix.scenarios();
    if common.dry_run {
        return print(&format!(
            "Would simulate {} against {} on {}: {} cells x {} pairs of {ACQUISITIONS} acquisitions.\n",
            spec.experiment,
            spec.baseline,
            machine.name,
            scenarios.len() / 2 / spec.pairs as usize,
            spec.pairs
        ));
    }
    if let Some(path) = &args.trace {
        trace(&matrix, path)?;
    }
    let outcomes = simulate_all(&scenarios, 2 * spec.pairs as usize, common.quiet)?;
    let measured = matrix.measured(&outcomes);
    let swept = if args.band {
        Some(matrix.band(common.quiet)?)
    } else {
        None
    };
    let verdicts = verdicts::judge(&measured).map_err(|e| Error::Failed(e.to_string()))?;
    let context = Context {
        date: "any day: the same seed gives the same figures".to_owned(),
        command: command_line(),
    };
    let report = report::matrix::Report {
        measured: &measured,
        verdicts: &verdicts,
        context: &context,
    };
    if common.json {
        let mut document = report::matrix::json(&report);
        document["simulation"] = serde_json::json!({
            "machine": machine.name,
            "figures": figures(&machine),
            "trace_hash": format!("{:016x}", trace_hash(&outcomes)),
            "runs": outcomes,
            "band": swept,
        });
        print(&format!("{document:#}\n"))?;
    } else {
        print(&report::matrix::text(&report, Colour::for_stdout()))?;
        print(&matrix.beyond_hardware(&outcomes))?;
        if let Some(swept) = &swept {
            print(&matrix.band_text(swept))?;
        }
    }
    if let Some(path) = &args.html {
        std::fs::write(path, report::matrix::html(&report))
            .map_err(|e| Error::Failed(format!("cannot write {}: {e}", path.display())))?;
    }
    let worse = verdicts
        .cells
        .iter()
        .any(|cell| cell.judged.verdict == Verdict::Worse);
    if args.fail_on == Some(FailOn::Worse) && worse {
        return Ok(ExitCode::from(3));
    }
    Ok(ExitCode::SUCCESS)
}

fn machine(name: &str, vcpus: Option<usize>) -> Result<Machine, String> {
    let machine = Machine::named(name).map_err(|e| e.to_string())?;
    match vcpus {
        None => Ok(machine),
        Some(_) if machine.get("vm.vcpus") == 0.0 => Err(format!(
            "{} is no virtual machine; --vcpus is for those, such as xeon-8380-vm",
            machine.name
        )),
        Some(vcpus) => machine.with("vm.vcpus", vcpus as f64),
    }
}

fn spec(args: &MatrixArgs, common: &Common, machine: &Machine) -> Result<Spec, String> {
    for (given, option) in [
        (args.processes, "--processes"),
        (args.pin.is_some(), "--pin"),
        (args.resume, "--resume"),
        (args.unit == UnitArg::Ns, "--unit ns"),
        (args.aa, "--aa"),
    ] {
        if given {
            return Err(format!(
                "{option} is for this machine; leave it out with --on"
            ));
        }
    }
    for name in std::iter::once(&args.baseline).chain(&args.experiment) {
        subject::find(name)?;
        if !locklab_locks::catalogue::ALL
            .iter()
            .any(|entry| entry.info.name == *name)
        {
            return Err(format!(
                "{name} cannot be simulated; only the locks of `locklab locks` can"
            ));
        }
    }
    let cpus = machine.cpus();
    let mut spec = question::spec(args, common.seed, cpus)?;
    if args.threads.is_none() {
        spec.threads = match args.vcpus {
            Some(vcpus) => vec![vcpus],
            None => std::iter::successors(Some(1), |n| Some(n * 2))
                .take_while(|n| *n < cpus)
                .chain([cpus])
                .collect(),
        };
    }
    if let Some(more) = spec.threads.iter().find(|threads| **threads > cpus) {
        return Err(format!(
            "{more} threads on {}, which has {cpus} CPUs: a simulated thread has a CPU of its own",
            machine.name
        ));
    }
    let there = machine.hardware_threads();
    if args
        .physical
        .is_some_and(|physical| physical == 0 || physical > there)
    {
        return Err(format!(
            "--physical must be from 1 to {there}, what {} has",
            machine.name
        ));
    }
    Ok(spec)
}

/// Runs scenarios with a bar, on as many threads as there are CPUs. Each of
/// the groups of so many scenarios is a cell; one of every cell is run before
/// a second of any, so that the time that is left can be foretold from what
/// is done.
fn simulate_all(scenarios: &[Scenario], group: usize, quiet: bool) -> Result<Vec<Outcome>, Error> {
    let mut order: Vec<usize> = (0..scenarios.len()).collect();
    order.sort_by_key(|at| at % group);
    let in_order: Vec<Scenario> = order.iter().map(|&at| scenarios[at].clone()).collect();
    let bar = bar(scenarios.len(), quiet);
    let outcomes = run_all(&in_order, workers(), |done| bar.set_position(done as u64));
    bar.finish_and_clear();
    let outcomes = outcomes.map_err(|e| Error::Failed(e.to_string()))?;
    let mut back: Vec<(usize, Outcome)> = order.into_iter().zip(outcomes).collect();
    back.sort_by_key(|(at, _)| *at);
    Ok(back.into_iter().map(|(_, outcome)| outcome).collect())
}

/// Threads to simulate on. The results do not depend on it.
pub(crate) fn workers() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// A bar on a terminal.
pub(crate) fn bar(length: usize, quiet: bool) -> ProgressBar {
    let target = if quiet {
        ProgressDrawTarget::hidden()
    } else {
        ProgressDrawTarget::stderr()
    };
    let bar = ProgressBar::with_draw_target(Some(length as u64), target);
    if let Ok(style) =
        ProgressStyle::with_template("{wide_bar} {pos}/{len} simulations, {eta} left")
    {
        bar.set_style(style);
    }
    bar
}

/// The machine's figures with where each is from.
fn figures(machine: &Machine) -> serde_json::Value {
    machine
        .figures
        .iter()
        .map(|(key, figure)| {
            let (origin, why) = match &figure.origin {
                Origin::Source(source) => ("source", source.as_str()),
                Origin::Assumption(why) => ("assumption", why.as_str()),
                Origin::Override => ("override", "set on the command line"),
            };
            let value =
                serde_json::json!({"value": figure.value, origin: why, "band": figure.band});
            ((*key).to_owned(), value)
        })
        .collect::<serde_json::Map<_, _>>()
        .into()
}

fn trace_hash(outcomes: &[Outcome]) -> u64 {
    outcomes.iter().fold(0, |hash: u64, outcome| {
        hash.rotate_left(5) ^ outcome.trace_hash
    })
}

fn trace(matrix: &Matrix<'_>, path: &Path) -> Result<(), Error> {
    let points = matrix.points();
    let Some(last) = points.iter().max_by_key(|point| point.threads) else {
        return Ok(());
    };
    let mut scenario = matrix.scenario(*last, &matrix.spec.experiment, matrix.spec.seed);
    scenario.stop = Stop::Acquisitions(50 + 4 * last.threads as u64);
    scenario.trace = true;
    let simulation = simulate(&scenario).map_err(|e| Error::Failed(e.to_string()))?;
    std::fs::write(path, simulation.trace.unwrap_or_default())
        .map_err(|e| Error::Failed(format!("cannot write {}: {e}", path.display())))
}

/// One question on one machine.
struct Matrix<'a> {
    machine: &'a Machine,
    spec: &'a Spec,
    physical: Option<usize>,
}

impl Matrix<'_> {
    fn points(&self) -> Vec<Point> {
        let mut points = Vec::new();
        for &non_critical in &self.spec.non_critical {
            for &threads in &self.spec.threads {
                for &critical in &self.spec.critical {
                    points.push(Point {
                        threads,
                        critical,
                        non_critical,
                    });
                }
            }
        }
        points
    }

    fn scenario(&self, point: Point, lock: &str, seed: u64) -> Scenario {
        let length = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
        let workload = match self.spec.work {
            crate::matrix::Work::Units => Workload::Matrix {
                critical: length(point.critical),
                non_critical: length(point.non_critical),
            },
            crate::matrix::Work::Fstat => Workload::Fstat(Fstat::default()),
        };
        let mut scenario = Scenario::new(self.machine.clone(), lock, workload, point.threads);
        scenario.hardware_threads = self.physical;
        scenario.seed = seed;
        scenario.stop = if self.oversubscribed(point) {
            Stop::Milliseconds(SLICES * self.machine.get("vm.slice_us") / 1e3)
        } else {
            Stop::Acquisitions(ACQUISITIONS)
        };
        if self.machine.get("vm.vcpus") > 0.0 {
            scenario.placement = Placement::Numbered;
        }
        scenario
    }

    fn oversubscribed(&self, point: Point) -> bool {
        point.threads
            > self
                .physical
                .unwrap_or_else(|| self.machine.hardware_threads())
    }

    /// Cell by cell, pair by pair, the baseline first.
    fn scenarios(&self) -> Vec<Scenario> {
        let mut scenarios = Vec::new();
        for point in self.points() {
            for pair in 0..u64::from(self.spec.pairs) {
                let seed = self.spec.seed.wrapping_mul(0x1000_0001).wrapping_add(pair);
                for lock in [&self.spec.baseline, &self.spec.experiment] {
                    scenarios.push(self.scenario(point, lock, seed));
                }
            }
        }
        scenarios
    }

    fn measured(&self, outcomes: &[Outcome]) -> Measured {
        let machine = self.machine;
        let pairs = self.spec.pairs as usize;
        let assumed: Vec<_> = machine
            .figures
            .iter()
            .filter(|(key, figure)| {
                figure.origin != Origin::Override
                    && matches!(figure.origin, Origin::Assumption(_))
                    && !machine.defaulted.contains(key)
            })
            .map(|(key, figure)| format!("{key} {}", figure.value))
            .collect();
        Measured {
            spec: self.spec.clone(),
            provenance: Provenance::Simulation(machine.name.clone()),
            environment: vec![
                ("model".into(), machine.description.clone()),
                ("CPUs".into(), machine.cpus().to_string()),
                ("arbitration".into(), machine.arbitration.name().into()),
                ("trace hash".into(), format!("{:016x}", trace_hash(outcomes))),
            ],
            caveats: vec![
                format!(
                    "Simulated on a model: intervals are those over seeds, not over machines. Assumed, not \
                     measured: {}. --band shows how far the ratio depends on that.",
                    assumed.join(", ")
                ),
                "Not modelled: cache capacity, prefetch, speculation, frequency changes, memory bandwidth.".into(),
            ],
            cells: self
                .points()
                .into_iter()
                .zip(outcomes.chunks(2 * pairs))
                .map(|(point, runs)| Cell {
                    point,
                    oversubscribed: self.oversubscribed(point),
                    // Two runs of one lock with one seed do not differ at
                    // all: a simulation has no bias, which is not accuracy.
                    bias_band: Some(0.0),
                    pairs: runs
                        .chunks(2)
                        .enumerate()
                        .map(|(index, pair)| RunPair {
                            index: index as u32,
                            // There is no order in which they could disturb.
                            baseline_first: index % 2 == 0,
                            baseline: self.run(&pair[0]),
                            experiment: self.run(&pair[1]),
                        })
                        .collect(),
                })
                .collect(),
            interrupted: None,
        }
    }

    fn run(&self, outcome: &Outcome) -> Run {
        let ops = &outcome.ops_by_thread;
        let (least, most) = (ops.iter().min(), ops.iter().max());
        let others: u64 = outcome.handoffs[1..].iter().sum();
        let ns = |ns: f64| ns.round() as u64;
        Run {
            started: None,
            ops_per_s: outcome.ops_per_s,
            handoffs_per_s: others as f64 / outcome.seconds,
            streak_mean: outcome.mean_streak,
            streak_max: outcome.longest_streak,
            per_thread: ops.clone(),
            jain: outcome.jain,
            min_over_max: match (least, most) {
                (Some(least), Some(most)) if *most > 0 => *least as f64 / *most as f64,
                _ => 0.0,
            },
            jain_1ms: None,
            min_over_max_1ms: None,
            latency: self.spec.latency.then(|| Latency {
                p50: ns(outcome.latency.p50),
                p99: ns(outcome.latency.p99),
                p999: ns(outcome.latency.p999),
                max: ns(outcome.latency.max),
            }),
            round_trip: None,
            cpu_share: None,
            invalid: None,
        }
    }

    /// What no counter of real hardware shows, for the shortest lengths.
    fn beyond_hardware(&self, outcomes: &[Outcome]) -> String {
        let pairs = self.spec.pairs as usize;
        let mut page = Page::default();
        page.heading("What hardware cannot show");
        page.paragraph(&format!(
            "Critical length {}, non-critical length {}, one seed. For one acquisition: lines \
             moved, waiting for lines and for the lock (mean, ns). Longest wait, us. Handoffs in \
             percent: to another thread of the same core, the cluster, the socket, another \
             socket; the rest are the same thread again.",
            self.spec.critical[0], self.spec.non_critical[0]
        ));
        for (which, lock) in [&self.spec.baseline, &self.spec.experiment]
            .into_iter()
            .enumerate()
        {
            page.heading(lock);
            let head = "threads  lines line ns lock ns longest core cluster socket other starved";
            page.row(head, head.len());
            for (point, runs) in self.points().into_iter().zip(outcomes.chunks(2 * pairs)) {
                if point.critical != self.spec.critical[0]
                    || point.non_critical != self.spec.non_critical[0]
                {
                    continue;
                }
                let run = &runs[which];
                let share = |distance: Distance| {
                    100.0 * run.handoffs[distance as usize] as f64 / run.acquisitions.max(1) as f64
                };
                let row = format!(
                    "{:7} {:6.1} {:7.0} {:7.0} {:7.0} {:4.0} {:7.0} {:6.0} {:5.0} {:>7}",
                    point.threads,
                    run.lines_moved,
                    run.line_wait_ns,
                    run.lock_wait_ns,
                    run.longest_wait_ns / 1e3,
                    share(Distance::Core),
                    share(Distance::Cluster),
                    share(Distance::Socket),
                    share(Distance::Remote),
                    match run.starved.len() {
                        0 => String::new(),
                        starved => starved.to_string(),
                    }
                );
                page.row(&row, row.trim_end().len());
            }
        }
        format!("\n{}", page.finish())
    }

    /// The ratio with each assumption at the ends of its band.
    fn band(&self, quiet: bool) -> Result<Vec<Swept>, Error> {
        let mut variants = vec![("as it stands".to_owned(), self.machine.clone())];
        variants.extend(band::variants(self.machine));
        let points = self.points();
        let mut scenarios = Vec::new();
        for (_, machine) in &variants {
            for &point in &points {
                for lock in [&self.spec.baseline, &self.spec.experiment] {
                    let mut scenario = self.scenario(point, lock, self.spec.seed);
                    scenario.machine = machine.clone();
                    scenarios.push(scenario);
                }
            }
        }
        let outcomes = simulate_all(&scenarios, 2 * points.len(), quiet)?;
        let ratios: Vec<f64> = outcomes
            .chunks(2)
            .map(|pair| pair[1].ops_per_s / pair[0].ops_per_s)
            .collect();
        Ok(points
            .iter()
            .enumerate()
            .map(|(at, point)| {
                let of = |variant: usize| ratios[variant * points.len() + at];
                let order = |a: &usize, b: &usize| of(*a).total_cmp(&of(*b));
                let low = (0..variants.len()).min_by(order).unwrap_or(0);
                let high = (0..variants.len()).max_by(order).unwrap_or(0);
                Swept {
                    point: *point,
                    ratio: of(0),
                    low: of(low),
                    low_at: variants[low].0.clone(),
                    high: of(high),
                    high_at: variants[high].0.clone(),
                }
            })
            .collect())
    }

    fn band_text(&self, swept: &[Swept]) -> String {
        let mut page = Page::default();
        page.heading("Band: lowest and highest ratio with one assumption at a time changed");
        page.blank();
        let head = "non-crit threads crit ratio   low  high  lowest at, highest at";
        page.row(head, head.len());
        for cell in swept {
            page.hanging(
                &format!(
                    "{:8} {:7} {:4} {:5.2} {:5.2} {:5.2}  ",
                    cell.point.non_critical,
                    cell.point.threads,
                    cell.point.critical,
                    cell.ratio,
                    cell.low,
                    cell.high,
                ),
                &format!("{}, {}", cell.low_at, cell.high_at),
            );
        }
        format!("\n{}", page.finish())
    }
}

/// A cell's ratio over the band of the machine's assumptions.
#[derive(Clone, Debug, serde::Serialize)]
struct Swept {
    point: Point,
    ratio: f64,
    low: f64,
    low_at: String,
    high: f64,
    high_at: String,
}

/// Whether the arguments ask for what only a simulation has.
pub(crate) fn only_simulated(args: &MatrixArgs) -> Option<&'static str> {
    [
        (args.vcpus.is_some(), "--vcpus"),
        (args.physical.is_some(), "--physical"),
        (args.trace.is_some(), "--trace"),
        (args.band, "--band"),
    ]
    .into_iter()
    .find_map(|(given, option)| given.then_some(option))
}
