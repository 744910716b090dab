//! Guests that run a load: what each is given, and what came of it.

use crate::boot::{Accelerator, Boot, Qemu};
use crate::cache::Cache;
use crate::guest;
use crate::making::Kernel;
use crate::outcome::{Measured, Outcome};
use crate::workload::Load;
use locklab_harness::experiment::Sample;
use locklab_host::error::Error;
use std::path::Path;
use std::time::Duration;

/// Says how guests are run.
#[derive(Clone, Copy)]
pub struct Guests<'a> {
    /// The cache, and the flag of Ctrl-C.
    pub cache: &'a Cache<'a>,
    /// QEMU and plugin.
    pub qemu: &'a Qemu,
    /// TCG or KVM.
    pub accelerator: Accelerator,
    /// The time limit of a boot.
    pub limit: Duration,
}

/// The parameters of one guest.
#[derive(Clone, Copy)]
pub struct GuestRun<'a> {
    /// The kernel that is booted, with an image for each layout.
    pub kernel: &'a Kernel,
    /// The number of the layout.
    pub layout: usize,
    /// The workload that the guest runs, with its amount of work.
    pub load: &'a Load,
    /// Seed of all randomness in the guest.
    pub seed: u64,
    /// Says whether the plugin counts.
    pub counted: bool,
    /// Says whether the hypervisor bit is hidden from the guest, which then takes itself
    /// for a machine; it always is from a translated guest whose locks are profiled.
    pub alone: bool,
}

impl Guests<'_> {
    /// Boots one guest, runs its load, and waits for its end.
    ///
    /// # Errors
    /// If a file cannot be written, QEMU itself fails, or after Ctrl-C. A
    /// failure inside the guest is an outcome.
    pub fn run(&self, run: &GuestRun<'_>) -> Result<Outcome, Error> {
        let runs = self.cache.folder("runs")?;
        let folder = tempfile::Builder::new()
            .prefix("run-")
            .tempdir_in(&runs)
            .map_err(|e| self.cache.cannot_write(&runs, &e))?;
        let initramfs = folder.path().join("initramfs");
        let (kernel, load) = (run.kernel, run.load);
        guest::write_initramfs(self.cache, load, kernel, &initramfs)?;
        let cmdline = format!("{} {}", load.cmdline(), kernel.cmdline);
        let boot = self.parameters(run, &initramfs, cmdline.trim())?;
        self.qemu.boot(&boot, folder.path(), self.cache.interrupt)
    }

    /// Returns how QEMU boots a guest.
    pub(crate) fn parameters<'b>(
        &self,
        run: &GuestRun<'b>,
        initramfs: &'b Path,
        cmdline: &'b str,
    ) -> Result<Boot<'b>, Error> {
        let load = run.load;
        let told_by_tracepoints = load.profile && self.accelerator == Accelerator::Tcg;
        Ok(Boot {
            image: run.kernel.image(run.layout)?,
            initramfs,
            cmdline,
            memory_mib: load.workload.memory_mib(),
            vcpus: load.vcpus,
            in_turn: load.in_turn(),
            counted_cpu: load.counted_cpu(),
            seed: run.seed,
            accelerator: self.accelerator,
            counted: run.counted && !load.profile,
            alone: run.alone || told_by_tracepoints,
            limit: self.limit,
        })
    }
}

/// Returns the measured outcome of a sample.
pub(crate) fn measured(sample: &Sample) -> Option<Measured> {
    serde_json::from_value(sample.detail["measured"].clone()).ok()
}
