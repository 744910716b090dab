//! The runs of a comparison: pairs by layout and seed, in a coin's order.
//!
//! A pair is one link order and one seed, the same for both kernels. Both
//! runs of a pair may go at the same time, as counts do not depend on the
//! machine; under KVM, where time is measured, they go one after the other.
//! Every sample is written as its run ends, and a comparison that was
//! interrupted goes on from there.

use crate::kernel::boot::{Accelerator, Boot, Qemu};
use crate::kernel::guest;
use crate::kernel::outcome::Outcome;
use crate::kernel::recipe::Side;
use crate::kernel::samples::{Sample, Samples};
use crate::kernel::tools::{Lab, key};
use crate::kernel::workload::Load;
use indicatif::ProgressBar;
use locklab_host::error::Error;
use locklab_judge::{coin, fork_seed};
use serde_json::json;
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
    /// What has been measured.
    pub samples: Samples,
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
        let what = self.what(kernels, load, variant, &initramfs)?;
        let coins = fork_seed(self.seed, load.workload as u64);
        let mut pairs = Vec::new();
        let mut kept = 0;
        for (index, seed) in self.seeds.iter().enumerate() {
            let mut images = Vec::new();
            for kernel in kernels {
                let image = kernel.images.get(index).or(kernel.images.first());
                images
                    .push(image.ok_or_else(|| Error::Failed("there is no image to boot".into()))?);
            }
            let name = key([
                what.as_bytes(),
                images[0].as_os_str().as_encoded_bytes(),
                images[1].as_os_str().as_encoded_bytes(),
                &seed.to_le_bytes(),
            ]);
            if let Some([baseline, experiment]) = self.samples.pair(&name) {
                kept += 1;
                bar.inc(2);
                pairs.push(RunPair {
                    seed: *seed,
                    baseline,
                    experiment,
                });
                continue;
            }
            let run = |at: usize| {
                let cmdline = format!("{} {}", load.workload.cmdline(), kernels[at].cmdline);
                self.run(
                    images[at],
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
            self.write(&name, &pair, &images, load, variant)?;
            for outcome in [&pair.baseline, &pair.experiment] {
                if let Err(invalid) = outcome {
                    self.lab.note(&format!("layout {seed}: {invalid}"));
                }
            }
            bar.inc(2);
            pairs.push(pair);
        }
        if kept > 0 {
            self.lab.note(&format!(
                "{}: {kept} of {} pairs were there, of a comparison that was interrupted",
                load.workload.name(),
                pairs.len()
            ));
        }
        Ok(pairs)
    }

    /// All that decides what a run gives, but for image and seed.
    fn what(
        &self,
        kernels: [&Kernel; 2],
        load: &Load,
        variant: &str,
        initramfs: &[PathBuf],
    ) -> Result<String, Error> {
        let mut parts = vec![
            json!({
                "load": load,
                "variant": variant,
                "cmdline": kernels.map(|kernel| &kernel.cmdline),
                "accelerator": format!("{:?}", self.accelerator),
                "qemu": self.qemu.version,
            })
            .to_string()
            .into_bytes(),
        ];
        for file in initramfs.iter().chain([&self.qemu.plugin]) {
            let bytes = std::fs::read(file)
                .map_err(|e| Error::Failed(format!("cannot read {}: {e}", file.display())))?;
            parts.push(bytes);
        }
        Ok(key(parts.iter().map(Vec::as_slice)))
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

    fn write(
        &self,
        run: &str,
        pair: &RunPair,
        images: &[&PathBuf],
        load: &Load,
        variant: &str,
    ) -> Result<(), Error> {
        let outcomes = [&pair.baseline, &pair.experiment];
        let samples: Vec<Sample> = (Side::BOTH.iter().zip(outcomes).zip(images))
            .map(|((side, outcome), image)| Sample {
                run: run.into(),
                workload: load.workload.name().into(),
                variant: variant.into(),
                side: side.word().into(),
                image: image.to_string_lossy().into_owned(),
                seed: pair.seed,
                measured: outcome.as_ref().ok().cloned(),
                invalid: outcome.as_ref().err().map(ToString::to_string),
            })
            .collect();
        self.samples.write(self.lab, &samples)
    }
}
