//! The runs of a comparison: pairs by layout and seed, in a coin's order.
//!
//! A pair is one link order and one seed, the same for both kernels. Both
//! runs of a pair may go at the same time, as counts do not depend on the
//! machine; under KVM, where time is measured, they go one after the other.
//! Every sample is written as its run ends.

use crate::error::Error;
use crate::kernel::boot::{Accelerator, Boot, Qemu};
use crate::kernel::guest;
use crate::kernel::outcome::{Measured, Outcome};
use crate::kernel::recipe::Side;
use crate::kernel::tools::Lab;
use crate::kernel::workload::Load;
use indicatif::ProgressBar;
use locklab_judge::{coin, fork_seed};
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
            vcpus: load.vcpus,
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
