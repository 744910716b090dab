//! Synthetic experiments for tests of reports: the same figures every time.

#![allow(dead_code, reason = "each test takes what it needs")]

pub(crate) mod golden;
pub(crate) mod script;

use locklab_harness::experiment::{
    Cell, Coordinate, Design, Experiment, Invalid, Key, Labels, Metric, Order, Pair, Placement,
    Provenance, Role, Sample, Source,
};
use locklab_harness::matrix::metrics;
use locklab_harness::report::{Context, Words};
use locklab_harness::verdicts::{Verdicts, judge};
use locklab_judge::{Direction, Family};
use locklab_workload::Waits;
use serde_json::json;

/// Numbers from -1 to 1 (xorshift).
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new() -> Self {
        Self(0x2545_f491_4f6c_dd1d)
    }

    pub(crate) fn next(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
    }
}

pub(crate) fn fact(name: &str, value: &str) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

/// Returns a matrix whose true effects are known: the experiment's rate is the
/// baseline's times `effect`, with the given relative noise.
pub(crate) fn matrix(
    threads: &[usize],
    critical: &[u64],
    non_critical: &[u64],
    pairs: u32,
    noise: f64,
    effect: impl Fn(usize, u64) -> f64,
) -> Experiment {
    let mut random = Random::new();
    let mut clock = 0.0_f64;
    let mut cells = Vec::new();
    for &non_critical in non_critical {
        for &threads in threads {
            for &critical in critical {
                let rate = 4.0e7 / (1.0 + critical as f64 / 3.0 + threads as f64 / 8.0);
                let streak = if critical == 0 { 2.5 } else { 1.02 };
                let mut cell = Cell::new(
                    Key::point(threads, critical, non_critical),
                    metrics(threads, Waits::None, Source::Backend),
                );
                cell.oversubscribed = threads > 16;
                cell.bias_band = Some(0.002);
                for index in 0..pairs {
                    clock += 0.11;
                    // Both runs of a pair share the mood of the moment.
                    let mood = 1.0 + 0.05 * (clock / 40.0).sin();
                    let b = rate * mood * (1.0 + noise * random.next());
                    let e = rate * mood * effect(threads, critical) * (1.0 + noise * random.next());
                    let order = if random.next() > 0.0 {
                        Order::BaselineFirst
                    } else {
                        Order::ExperimentFirst
                    };
                    cell.pairs.push(Pair {
                        index,
                        order,
                        baseline: lock_run(threads, b, 1.0, clock),
                        experiment: lock_run(threads, e, streak, clock + 0.055),
                    });
                }
                cells.push(cell);
            }
        }
    }
    Experiment {
        kind: "matrix".into(),
        labels: Labels::new("virt-spin", "virt-spin-backoff"),
        spec: json!({ "unit": "units", "processes": false, "critical": critical }),
        design: Design {
            seed: 7,
            ..Design::usual(pairs)
        },
        provenance: Provenance::Hardware("Example 9000, 16 CPUs".into()),
        facts: vec![
            fact("Machine", "Example 9000, 1 socket, 8 cores, 16 CPUs"),
            fact("Kernel", "Linux 6.19.0 x86_64"),
            fact("Governor", "unknown (no cpufreq: a virtual machine)"),
            fact(
                "Mitigations",
                "vulnerable: spec_store_bypass; mitigated: spectre_v1, spectre_v2 (Retpolines; \
                 STIBP disabled; RSB filling); the others do not concern this CPU",
            ),
            fact(
                "Workload",
                "loop { lock; critical; unlock; non-critical } in threads; length n is n + 1 \
                 units of about 15 cycles on Ice Lake",
            ),
            fact("Runs", "50 ms after 5 ms of warm-up"),
        ],
        caveats: vec![],
        cells,
        interrupted: None,
    }
}

fn lock_run(threads: usize, ops: f64, streak: f64, started: f64) -> Sample {
    let alone = threads == 1;
    let values = [
        ("ops_per_s", ops),
        ("handoffs_per_s", if alone { 0.0 } else { ops / streak }),
        (
            "equal_share_per_s",
            if alone {
                ops
            } else {
                ops * (1.01 - 0.01 * streak)
            },
        ),
        ("streak_mean", if alone { ops * 0.05 } else { streak }),
        ("streak_max", (streak * 40.0).floor()),
        ("jain", if alone { 1.0 } else { 0.999 - 0.01 * streak }),
        (
            "min_over_max",
            if alone { 1.0 } else { 0.95 - 0.05 * streak },
        ),
        ("cpu_share", 0.999),
    ];
    Sample {
        started: Some(started),
        values: values.map(|(name, x)| (name.to_owned(), x)).into(),
        placement: (!alone).then_some(Placement {
            before: 64.0 + streak,
            after: 66.5,
            typical: Some(66.0),
        }),
        ..Sample::default()
    }
}

/// Returns a matrix with every verdict: better at many threads, worse with long
/// critical sections, flat alone.
pub(crate) fn mixed() -> Experiment {
    let (threads, critical) = ([1, 2, 4, 8, 16, 32], [0, 1, 2, 4, 8, 16, 32, 64, 128]);
    matrix(
        &threads,
        &critical,
        &[1, 32],
        13,
        0.008,
        |threads, c| match (threads, c) {
            (1, _) => 1.0,
            (2, _) => 1.006,
            (t, c) if c <= 16 => 1.0 + 0.08 * (t as f64).log2() + 0.02 * (c as f64),
            (_, 128) => 0.93,
            _ => 1.004,
        },
    )
}

/// Returns what goes wrong, all at once: interrupted, moved, failed, handed to one owner,
/// timed.
pub(crate) fn troubled() -> Experiment {
    let mut experiment = matrix(&[2, 4], &[0, 8], &[1], 10, 0.01, |_, _| 1.3);
    experiment.interrupted = Some("interrupted".into());
    experiment.caveats = vec!["A virtual machine: its CPUs may move.".into()];
    experiment.cells[3].pairs.clear();
    // The first cell saw two placements.
    let first = &mut experiment.cells[0];
    first.facts = vec![("Slices".into(), "1.5 ms after 0.4 ms left out".into())];
    for pair in &mut first.pairs[..2] {
        for sample in pair.samples_mut() {
            sample.placement = Some(Placement {
                before: 320.0,
                after: 326.0,
                typical: Some(322.0),
            });
        }
    }
    first.pairs[4].experiment.invalid = Some(Invalid::Disturbed("the machine slept".into()));
    // In the second the experiment keeps the lock to itself.
    let second = &mut experiment.cells[1];
    second.metrics = metrics(2, Waits::All, Source::Backend);
    for pair in &mut second.pairs {
        for (sample, latencies, times) in [
            (&mut pair.baseline, [80.0, 410.0, 2_300.0, 81_000.0], 1.0),
            (&mut pair.experiment, [24.0, 9_800.0, 71_000.0, 1.2e6], 20.0),
        ] {
            let names = ["latency_p50", "latency_p99", "latency_p999", "latency_max"];
            for (name, value) in names.into_iter().zip(latencies) {
                sample.values.insert(name.into(), value);
            }
            *sample.values.get_mut("handoffs_per_s").unwrap() /= times;
            *sample.values.get_mut("streak_mean").unwrap() *= times;
            *sample.values.get_mut("equal_share_per_s").unwrap() /= times.sqrt();
        }
    }
    // In the third mutual exclusion was lost once, and a run was killed.
    let third = &mut experiment.cells[2];
    third.pairs[3].experiment.invalid = Some(Invalid::CheckFailed("two holders at once".into()));
    third.pairs[5].baseline.invalid = Some(Invalid::Failed("the clock jumped".into()));
    experiment
}

/// Returns a workload with pairs around known figures, with noise of so many percent.
pub(crate) fn workload(name: &str, metrics: &[(Metric, f64, f64, f64)]) -> Cell {
    let mut random = Random::new();
    let mut run = |experiment: bool, started| Sample {
        started: Some(started),
        values: metrics
            .iter()
            .map(|(metric, b, e, noise)| {
                let value = if experiment { *e } else { *b };
                (metric.name.clone(), value * (1.0 + noise * random.next()))
            })
            .collect(),
        ..Sample::default()
    };
    let pairs = (0..20).map(|index| {
        let at = f64::from(index) * 9.0;
        Pair {
            index,
            order: if index % 3 == 0 {
                Order::BaselineFirst
            } else {
                Order::ExperimentFirst
            },
            baseline: run(false, at),
            experiment: run(true, at + 4.4),
        }
    });
    let pairs = pairs.collect();
    let mut list: Vec<Metric> = metrics.iter().map(|(metric, ..)| metric.clone()).collect();
    if let Some(first) = list.first_mut().filter(|m| m.at.is_none()) {
        first.role = Role::Primary;
    }
    Cell {
        about: format!("What {name} does in a run."),
        facts: vec![fact("CPUs", "pinned to 0")],
        bias_band: Some(0.001),
        pairs,
        ..Cell::new(Key::workload(name, ""), list)
    }
}

/// Returns the comparison of the mail on inlining `spin_unlock()`, whose published
/// figures are reproduced here with made-up noise.
pub(crate) fn programs() -> Experiment {
    let count = |name: &str| Metric::lower(name, "", Source::Hardware);
    let mut nginx = workload(
        "nginx-churn",
        &[
            (
                Metric::higher("requests", "req/s", Source::Output),
                25_113.0,
                24_795.0,
                0.003,
            ),
            (count("instructions"), 5.86e9, 5.83e9, 0.0005),
            (count("l1i-misses:k"), 0.41e9, 0.42e9, 0.002),
            (
                Metric::higher("ipc", "", Source::Hardware),
                1.215,
                1.213,
                0.02,
            ),
            (
                Metric::lower("elapsed", "s", Source::Output),
                4.077,
                4.129,
                0.003,
            ),
            (
                Metric::lower("major-faults", "", Source::Process),
                0.0,
                0.0,
                0.0,
            ),
        ],
    );
    nginx.pairs[4].experiment.invalid = Some(Invalid::Failed("exit status 1".into()));
    let rocksdb = workload(
        "rocksdb-deleteseq",
        &[
            (
                Metric::higher("throughput", "ops/s", Source::Output),
                431_398.0,
                432_897.0,
                0.02,
            ),
            (count("l1i-misses:k"), 198_588_165.0, 216_672_536.0, 0.002),
        ],
    );
    let mut build = workload(
        "kernel-build",
        &[(
            Metric::lower("elapsed", "s", Source::Process),
            105.221,
            105.373,
            0.002,
        )],
    );
    build.bias_band = Some(0.002);
    let mut absent = workload("fs-mark", &[(count("files"), 1.0, 1.0, 0.0)]);
    absent.pairs.clear();
    absent.stopped = Some("fs_mark is not installed; apt-get install fsmark".into());
    Experiment {
        kind: "compare".into(),
        labels: Labels::new("unlock out of line", "unlock inlined"),
        spec: json!({ "warm_up": 1 }),
        design: Design {
            seed: 7,
            family: Family::Holm,
            ..Design::usual(20)
        },
        provenance: Provenance::Hardware("Example 9000, 16 CPUs".into()),
        facts: vec![
            fact("Machine", "Example 9000, 1 socket, 8 cores, 16 CPUs"),
            fact("Kernel", "Linux 6.19.0 x86_64"),
        ],
        caveats: vec!["A virtual machine: its CPUs may move.".into()],
        cells: vec![rocksdb, build, nginx, absent],
        interrupted: None,
    }
}

/// Kernels under a workload whose runs give a whole matrix of a spinlock.
pub(crate) fn kernels() -> Experiment {
    let mut metrics = Vec::new();
    for threads in [1, 2, 4] {
        for critical in [0, 16] {
            let key = Key::point(threads, critical, 1);
            let name = format!("ops_per_s@{threads}x{critical}x1");
            let metric = Metric {
                at: Some(key),
                direction: Direction::HigherIsBetter,
                ..Metric::higher(&name, "acquisitions/s", Source::Backend)
            }
            .with_role(Role::Primary);
            let effect = if threads == 4 { 1.25 } else { 1.0 };
            let rate = 1e7 / (threads as f64 + critical as f64);
            metrics.push((metric, rate, rate * effect, 0.004));
        }
    }
    let mut spinlock = workload("spinlock", &metrics);
    spinlock.key = Key(vec![
        ("workload".into(), Coordinate::Name("spinlock".into())),
        ("variant".into(), Coordinate::Name("tiny".into())),
    ]);
    spinlock.bias_band = None;
    let mut fstat = workload(
        "fstat",
        &[(
            Metric::lower("l1i-misses:k", "a call", Source::Model),
            12.25,
            13.5,
            0.001,
        )],
    );
    fstat.key = Key::workload("fstat", "tiny");
    Experiment {
        kind: "kernel".into(),
        labels: Labels::new("6.12", "6.12 with the patch"),
        spec: json!({ "vcpus": 1 }),
        provenance: Provenance::Model("QEMU and an L1i of 32 KiB".into()),
        facts: vec![fact("QEMU", "7.2")],
        caveats: vec![],
        cells: vec![spinlock, fstat],
        ..programs()
    }
}

/// The words of a backend of locks.
const WORDS: Words = Words {
    subject: "lock",
    lean: ["waiters without memory", "if waiters bring no queue node"],
    oversubscribed: "a holder or the next in line may be off its CPU; the figures include the \
                     scheduler",
    off_cpu: "something else ran, or the lock sleeps",
    handoffs: "a lock that its last owner keeps re-taking looks fast",
};

pub(crate) fn context() -> Context {
    Context {
        date: "2026-11-20 12:00 UTC".into(),
        command: "locklab matrix virt-spin virt-spin-backoff --seed 7".into(),
        file: None,
        started: Some("2026-11-20T12:00:00".into()),
        words: WORDS,
    }
}

pub(crate) fn judged(experiment: &Experiment) -> Verdicts {
    judge(experiment).unwrap()
}

/// Returns a page or a picture as XML.
pub(crate) fn xml(text: &str) -> roxmltree::Document<'_> {
    let options = roxmltree::ParsingOptions {
        allow_dtd: true,
        ..Default::default()
    };
    roxmltree::Document::parse_with_options(text, options).unwrap()
}
