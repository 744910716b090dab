//! The runs of a comparison: pairs by layout and seed, in a coin's order, and
//! from them verdicts.
//!
//! A pair is one link order and one seed, the same for both kernels. Both
//! runs of a pair may go at the same time, as counts do not depend on the
//! machine; under KVM, where time is measured, they go one after the other.
//! Every sample is written as its run ends.

use crate::error::Error;
use crate::kernel::boot::{Accelerator, Boot, Counts, Invalid, Measured, Outcome, Qemu};
use crate::kernel::guest;
use crate::kernel::recipe::Side;
use crate::kernel::tools::Lab;
use crate::kernel::workload::Load;
use crate::report::comparison::Row;
use indicatif::ProgressBar;
use locklab_judge::{
    Comparison, Direction, FaultKind, Pair, Role, Settings, coin, fork_seed, judge,
};
use serde::Serialize;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A kernel that can be booted.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// One image a layout.
    pub images: Vec<PathBuf>,
    /// Its modules, if it has any.
    pub modules: Option<PathBuf>,
    /// Command line.
    pub cmdline: String,
}

/// Both runs of one layout and seed.
#[derive(Clone, Debug)]
pub struct RunPair {
    /// Seed of link order and guest.
    pub seed: u64,
    /// The baseline's run.
    pub baseline: Outcome,
    /// The experiment's run.
    pub experiment: Outcome,
}

/// How runs are made.
pub struct Session<'a> {
    /// Cache and Ctrl-C.
    pub lab: &'a Lab<'a>,
    /// QEMU and plugin.
    pub qemu: &'a Qemu,
    /// TCG or KVM.
    pub accelerator: Accelerator,
    /// Longest boot.
    pub limit: Duration,
    /// Seeds, one a pair.
    pub seeds: Vec<u64>,
    /// Seed of coins.
    pub seed: u64,
    /// Samples, as JSON Lines.
    pub samples: PathBuf,
}

#[derive(Serialize)]
struct Sample<'a> {
    workload: &'a str,
    variant: &'a str,
    side: &'a str,
    seed: u64,
    measured: Option<&'a Measured>,
    invalid: Option<String>,
}

impl Session<'_> {
    /// All pairs of one workload.
    ///
    /// # Errors
    /// QEMU fails, or Ctrl-C; what was measured is in the samples.
    pub fn pairs(
        &self,
        kernels: [&Kernel; 2],
        load: &Load,
        variant: &str,
        bar: &ProgressBar,
    ) -> Result<Vec<RunPair>, Error> {
        let runs = self.lab.folder("runs")?;
        let folder = tempfile::Builder::new()
            .prefix("run-")
            .tempdir_in(&runs)
            .map_err(|e| self.lab.cannot_write(&runs, &e))?;
        let mut initramfs = Vec::new();
        for (kernel, side) in kernels.iter().zip(Side::BOTH) {
            let path = folder.path().join(format!("{}.cpio", side.word()));
            guest::write_initramfs(self.lab, load, kernel.modules.as_deref(), &path)?;
            initramfs.push(path);
        }
        let coins = fork_seed(self.seed, load.workload as u64);
        let mut pairs = Vec::new();
        for (index, seed) in self.seeds.iter().enumerate() {
            let run = |at: usize| {
                let kernel = kernels[at];
                let image = kernel.images.get(index).or(kernel.images.first());
                let Some(image) = image else {
                    return Err(Error::Failed("there is no image to boot".into()));
                };
                let cmdline = format!("{} {}", load.workload.cmdline(), kernel.cmdline);
                self.run(
                    image,
                    &initramfs[at],
                    cmdline.trim(),
                    load,
                    *seed,
                    &folder.path().join(at.to_string()),
                )
            };
            let (baseline, experiment) = if self.accelerator == Accelerator::Tcg {
                std::thread::scope(|scope| {
                    let other = scope.spawn(|| run(1));
                    let first = run(0);
                    let second = other
                        .join()
                        .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
                    (first, second)
                })
            } else {
                let order = coin(coins, index as u64).sides();
                if order[0] == locklab_judge::Side::Baseline {
                    let first = run(0);
                    (first, run(1))
                } else {
                    let first = run(1);
                    (run(0), first)
                }
            };
            let pair = RunPair {
                seed: *seed,
                baseline: baseline?,
                experiment: experiment?,
            };
            self.write(&pair, load, variant)?;
            for outcome in [&pair.baseline, &pair.experiment] {
                if let Err(invalid) = outcome {
                    self.lab.note(&format!("layout {seed}: {invalid}"));
                }
            }
            bar.inc(2);
            pairs.push(pair);
        }
        Ok(pairs)
    }

    fn run(
        &self,
        image: &Path,
        initramfs: &Path,
        cmdline: &str,
        load: &Load,
        seed: u64,
        folder: &Path,
    ) -> Result<Outcome, Error> {
        let boot = Boot {
            image,
            initramfs,
            cmdline,
            memory_mib: load.workload.memory_mib(),
            seed,
            accelerator: self.accelerator,
            counted: true,
            limit: self.limit,
        };
        self.qemu.boot(&boot, folder, self.lab.interrupt)
    }

    fn write(&self, pair: &RunPair, load: &Load, variant: &str) -> Result<(), Error> {
        let cannot = |e: std::io::Error| self.lab.cannot_write(&self.samples, &e);
        let mut file = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(&self.samples)
            .map_err(cannot)?;
        for (side, outcome) in [
            ("baseline", &pair.baseline),
            ("experiment", &pair.experiment),
        ] {
            let sample = Sample {
                workload: load.workload.name(),
                variant,
                side,
                seed: pair.seed,
                measured: outcome.as_ref().ok(),
                invalid: outcome.as_ref().err().map(ToString::to_string),
            };
            let line = serde_json::to_string(&sample)
                .map_err(|e| Error::Failed(format!("cannot write a sample: {e}")))?;
            writeln!(file, "{line}").map_err(cannot)?;
        }
        Ok(())
    }
}

type Metric = (
    &'static str,
    &'static str,
    Role,
    fn(&Measured) -> Option<f64>,
);

fn per_unit(measured: &Measured, of: impl Fn(&Counts) -> u64) -> Option<f64> {
    Some(of(measured.counts.as_ref()?) as f64 / measured.work as f64)
}

/// Misses per thousand instructions of both modes, as the reports define it.
fn mpki(measured: &Measured, of: impl Fn(&Counts) -> u64) -> Option<f64> {
    let counts = measured.counts.as_ref()?;
    let all = counts.user.instructions + counts.kernel.instructions;
    Some(of(counts) as f64 * 1000.0 / all as f64)
}

const TCG: &[Metric] = &[
    ("l1i-misses:k", "/unit", Role::Primary, |m| {
        per_unit(m, |c| c.kernel.l1i_misses)
    }),
    ("l1i-misses:u", "/unit", Role::Screening, |m| {
        per_unit(m, |c| c.user.l1i_misses)
    }),
    ("l1i-mpki:k", "", Role::Screening, |m| {
        mpki(m, |c| c.kernel.l1i_misses)
    }),
    ("l1i-mpki:u", "", Role::Screening, |m| {
        mpki(m, |c| c.user.l1i_misses)
    }),
    ("instructions", "/unit", Role::Screening, |m| {
        per_unit(m, |c| c.user.instructions + c.kernel.instructions)
    }),
    ("instructions:k", "/unit", Role::Screening, |m| {
        per_unit(m, |c| c.kernel.instructions)
    }),
    ("instructions:u", "/unit", Role::Screening, |m| {
        per_unit(m, |c| c.user.instructions)
    }),
];

const KVM: &[Metric] = &[("time", "ns/unit", Role::Primary, |m| {
    Some(m.elapsed_ns as f64 / m.work as f64)
})];

/// Judged metrics of one workload; less is better in all of them.
///
/// # Errors
/// A setting that makes no sense.
pub fn judged(pairs: &[RunPair], accelerator: Accelerator, seed: u64) -> Result<Vec<Row>, Error> {
    let metrics = if accelerator == Accelerator::Tcg {
        TCG
    } else {
        KVM
    };
    let mut kept = Vec::new();
    let mut comparisons = Vec::new();
    for metric in metrics {
        let made: Vec<Pair> = pairs
            .iter()
            .enumerate()
            .map(|(index, pair)| paired(pair, metric, coin(seed, index as u64)))
            .collect();
        // A counter that never counted says nothing; the primary one must.
        let silent = made
            .iter()
            .all(|p| p.baseline == 0.0 && p.experiment == 0.0);
        if silent && metric.2 == Role::Screening {
            continue;
        }
        kept.push(metric);
        comparisons.push(Comparison {
            role: metric.2,
            ..Comparison::primary(made, Direction::LowerIsBetter)
        });
    }
    let verdicts =
        judge(&comparisons, &Settings::default()).map_err(|e| Error::Usage(e.to_string()))?;
    Ok(kept
        .iter()
        .zip(verdicts)
        .map(|(metric, judged)| Row {
            name: metric.0.into(),
            unit: metric.1.into(),
            judged,
        })
        .collect())
}

fn paired(pair: &RunPair, metric: &Metric, order: locklab_judge::Order) -> Pair {
    let fault = |invalid: &Invalid, side| {
        Pair::invalid(FaultKind::RunFailed, Some(side), invalid.why.clone(), order)
    };
    match (&pair.baseline, &pair.experiment) {
        (Err(invalid), _) => fault(invalid, locklab_judge::Side::Baseline),
        (_, Err(invalid)) => fault(invalid, locklab_judge::Side::Experiment),
        (Ok(baseline), Ok(experiment)) => {
            let value = |measured| metric.3(measured).unwrap_or(f64::NAN);
            Pair::new(value(baseline), value(experiment), order)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::boot::ModeCounts;
    use locklab_judge::Verdict;

    fn run(misses: u64) -> Outcome {
        let mode = |instructions, l1i_misses| ModeCounts {
            instructions,
            l1i_fetches: 1,
            l1i_misses,
        };
        Ok(Measured {
            work: 10,
            unit: "call".into(),
            elapsed_ns: 1,
            counts: Some(Counts {
                user: mode(1000, 0),
                kernel: mode(4000, misses),
            }),
            said: Default::default(),
            wall_seconds: 1.0,
            cpu_seconds: 1.0,
        })
    }

    #[test]
    fn more_misses_in_every_layout_are_worse_and_silent_counters_are_left_out() {
        let pairs: Vec<RunPair> = (0..10)
            .map(|i| RunPair {
                seed: i,
                baseline: run(1000 + i),
                experiment: run(1100 + 2 * i),
            })
            .collect();
        let rows = judged(&pairs, Accelerator::Tcg, 1).unwrap();
        assert_eq!(rows[0].name, "l1i-misses:k");
        assert_eq!(rows[0].judged.verdict, Verdict::Worse);
        assert!(rows.iter().all(|row| row.name != "l1i-misses:u"));
        let mpki = rows.iter().find(|row| row.name == "l1i-mpki:k").unwrap();
        let value = mpki.judged.estimate.unwrap().baseline;
        assert!((200.0..202.0).contains(&value), "{value}");
    }

    #[test]
    fn guests_that_fail_make_the_comparison_invalid() {
        let failed = || {
            Err(Invalid {
                why: "the guest's kernel panicked".into(),
                console: vec![],
            })
        };
        let pairs: Vec<RunPair> = (0..10)
            .map(|i| RunPair {
                seed: i,
                baseline: run(9),
                experiment: failed(),
            })
            .collect();
        let rows = judged(&pairs, Accelerator::Tcg, 1).unwrap();
        assert!(matches!(rows[0].judged.verdict, Verdict::Invalid(_)));
    }
}
