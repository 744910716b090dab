//! Synthetic matrices for tests of reports: the same figures every time.

use locklab::matrix::{
    Cell, Invalid, Latency, Measured, Point, Provenance, RoundTrip, Run, RunPair, Spec, Unit, Work,
};
use locklab::report::Context;
use std::time::Duration;

/// Builds a [`Measured`] whose true effects are known.
pub(crate) struct Sample {
    pub(crate) measured: Measured,
    state: u64,
}

impl Sample {
    pub(crate) fn new(threads: &[usize], critical: &[u64], non_critical: &[u64]) -> Self {
        let spec = Spec {
            baseline: "virt-spin".into(),
            experiment: "virt-spin-backoff".into(),
            threads: threads.to_vec(),
            critical: critical.to_vec(),
            non_critical: non_critical.to_vec(),
            unit: Unit::Units,
            work: Work::Units,
            pairs: 10,
            delta: 0.01,
            run: Duration::from_millis(50),
            warm_up: Duration::from_millis(5),
            seed: 7,
            pin: None,
            processes: false,
            latency: false,
            aa: false,
        };
        let fact = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        Self {
            measured: Measured {
                spec,
                provenance: Provenance::Hardware("Example 9000, 16 CPUs".into()),
                environment: vec![
                    fact("Machine", "Example 9000, 1 socket, 8 cores, 16 CPUs"),
                    fact("Kernel", "Linux 6.19.0 x86_64"),
                    fact("Governor", "unknown (no cpufreq: a virtual machine)"),
                    fact(
                        "Mitigations",
                        "vulnerable: spec_store_bypass; mitigated: \
                        spectre_v1, spectre_v2 (Retpolines; STIBP disabled; RSB filling); the \
                        others do not concern this CPU",
                    ),
                ],
                caveats: vec![],
                cells: vec![],
                interrupted: None,
            },
            state: 0x2545_f491_4f6c_dd1d,
        }
    }

    /// Fills every cell: the experiment's rate is the baseline's times
    /// `effect`, with the given relative noise.
    pub(crate) fn fill(mut self, pairs: u32, noise: f64, effect: impl Fn(Point) -> f64) -> Self {
        let spec = self.measured.spec.clone();
        self.measured.spec.pairs = pairs;
        let mut clock = 0.0_f64;
        for &non_critical in &spec.non_critical {
            for &threads in &spec.threads {
                for &critical in &spec.critical {
                    let point = Point {
                        threads,
                        critical,
                        non_critical,
                    };
                    let rate = 4.0e7 / (1.0 + critical as f64 / 3.0 + threads as f64 / 8.0);
                    let streak = if critical == 0 { 2.5 } else { 1.02 };
                    let pairs = (0..pairs)
                        .map(|index| {
                            clock += 0.11;
                            // Both runs of a pair share the mood of the moment.
                            let mood = 1.0 + 0.05 * (clock / 40.0).sin();
                            let b = rate * mood * (1.0 + noise * self.random());
                            let e = rate * mood * effect(point) * (1.0 + noise * self.random());
                            RunPair {
                                index,
                                baseline_first: self.random() > 0.0,
                                baseline: run(point, b, 1.0, clock),
                                experiment: run(point, e, streak, clock + 0.055),
                            }
                        })
                        .collect();
                    self.measured.cells.push(Cell {
                        point,
                        oversubscribed: threads > 16,
                        bias_band: Some(0.002),
                        pairs,
                    });
                }
            }
        }
        self
    }

    /// From -1 to 1 (xorshift).
    fn random(&mut self) -> f64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        (self.state >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
    }
}

fn run(point: Point, ops: f64, streak: f64, started: f64) -> Run {
    let alone = point.threads == 1;
    let share = (ops * 0.05 / point.threads as f64) as u64;
    Run {
        started: Some(started),
        ops_per_s: ops,
        handoffs_per_s: if alone { 0.0 } else { ops / streak },
        streak_mean: if alone { ops * 0.05 } else { streak },
        streak_max: (streak * 40.0) as u64,
        per_thread: vec![share; point.threads],
        jain: if alone { 1.0 } else { 0.999 - 0.01 * streak },
        min_over_max: if alone { 1.0 } else { 0.95 - 0.05 * streak },
        jain_1ms: None,
        min_over_max_1ms: None,
        latency: None,
        round_trip: (!alone).then(|| RoundTrip {
            before: 64.0 + streak,
            after: 66.5,
            class: "same cache".into(),
        }),
        cpu_share: Some(0.999),
        invalid: None,
    }
}

/// A matrix with every verdict: better at many threads, worse with long
/// critical sections, flat alone.
pub(crate) fn mixed() -> Measured {
    let mut sample = Sample::new(
        &[1, 2, 4, 8, 16, 32],
        &[0, 1, 2, 4, 8, 16, 32, 64, 128],
        &[1, 32],
    );
    sample.measured.spec.experiment = "virt-spin-backoff".into();
    sample
        .fill(13, 0.008, |p| match (p.threads, p.critical) {
            (1, _) => 1.0,
            (2, _) => 1.006,
            (t, c) if c <= 16 => 1.0 + 0.08 * (t as f64).log2() + 0.02 * (c as f64),
            (_, 128) => 0.93,
            _ => 1.004,
        })
        .measured
}

/// What goes wrong, all at once: interrupted, moved, failed, handed to one
/// owner, timed.
pub(crate) fn troubled() -> Measured {
    let mut measured = Sample::new(&[2, 4], &[0, 8], &[1])
        .fill(10, 0.01, |_| 1.3)
        .measured;
    measured.interrupted = Some("1 of 4 cells was not measured.".into());
    measured.caveats = vec!["A virtual machine: its CPUs may move.".into()];
    measured.cells.pop();
    // The first cell saw two placements, and a pair that fell between them.
    let first = &mut measured.cells[0];
    for pair in &mut first.pairs[..2] {
        for run in [&mut pair.baseline, &mut pair.experiment] {
            if let Some(trip) = &mut run.round_trip {
                *trip = RoundTrip {
                    before: 320.0,
                    after: 326.0,
                    class: "far".into(),
                };
            }
        }
    }
    if let Some(trip) = &mut first.pairs[4].experiment.round_trip {
        trip.class = "far".into();
    }
    // In the second the experiment keeps the lock to itself.
    for pair in &mut measured.cells[1].pairs {
        pair.experiment.handoffs_per_s /= 20.0;
        pair.experiment.streak_mean *= 20.0;
        pair.baseline.latency = Some(Latency {
            p50: 80,
            p99: 410,
            p999: 2_300,
            max: 81_000,
        });
        pair.experiment.latency = Some(Latency {
            p50: 24,
            p99: 9_800,
            p999: 71_000,
            max: 1_200_000,
        });
    }
    // In the third mutual exclusion was lost once, and a run was killed.
    let third = &mut measured.cells[2];
    third.pairs[3].experiment.invalid = Some(Invalid::CheckFailed("two holders at once".into()));
    third.pairs[5].baseline.invalid = Some(Invalid::Failed("the clock jumped".into()));
    measured
}

pub(crate) fn context() -> Context {
    Context {
        date: "2026-11-20 12:00 UTC".into(),
        command: "locklab matrix virt-spin virt-spin-backoff --seed 7".into(),
    }
}
