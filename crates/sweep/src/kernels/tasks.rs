//! The tasks of a sweep of kernels: a build, or a layout measured into its shard.

use super::{KernelSweep, apart};
use crate::folder::Status;
use crate::shard::Shard;
use crate::task::COMMAND;
use crate::{state, tool};
use locklab_host::error::Error;
use locklab_kernel::recipe::Side;
use locklab_kernel::{Scope, equipped, made, prepare};
use std::sync::atomic::AtomicBool;

impl KernelSweep {
    /// Builds one kernel: an even number is a baseline, the next one the
    /// experiment of the same variant.
    ///
    /// # Errors
    /// There is no such build, it fails, or Ctrl-C.
    pub fn build(&self, number: usize, interrupt: &AtomicBool, quiet: bool) -> Result<(), Error> {
        let variants = self.experiment.variants();
        let variant = variants.get(number / 2).ok_or_else(|| {
            Error::Failed(format!(
                "there is no build {number}; this sweep has {}",
                self.builds()
            ))
        })?;
        let cache = self.cache(interrupt, quiet);
        let plan = self.plan(Scope::Whole)?;
        let asked = plan.loads.iter().map(|load| load.workload);
        let experiment = equipped(&cache, &plan.experiment, asked)?;
        made(&cache, &experiment, variant, Side::BOTH[number % 2]).map(|_| ())
    }

    /// Measures one layout into its shard; returns false if it was interrupted.
    ///
    /// # Errors
    /// There is no such layout, QEMU or its plugin is missing, or the shard
    /// cannot be written. A kernel that cannot be built, or a guest that fails,
    /// is an invalid sample and no error.
    pub fn measure(&self, layout: usize, interrupt: &AtomicBool) -> Result<bool, Error> {
        if layout >= self.layouts() {
            return Err(Error::Failed(format!(
                "there is no layout {layout}; this sweep has {}",
                self.layouts()
            )));
        }
        let mut status = Status {
            node: tool::node(),
            of: 1,
            ..Status::default()
        };
        let note = |status: &Status| {
            // The status only informs people who wait, so a failure is ignored.
            let _ = state::write_json(&self.status_file(layout), status);
        };
        note(&status);
        let measured = self.measured(layout, interrupt);
        match &measured {
            Ok(true) => status.done = 1,
            Ok(false) => status.stopped = Some("it was interrupted".into()),
            Err(why) => status.stopped = Some(why.to_string()),
        }
        note(&status);
        measured
    }

    fn measured(&self, layout: usize, interrupt: &AtomicBool) -> Result<bool, Error> {
        let number = u32::try_from(layout).unwrap_or(u32::MAX);
        let cache = self.cache(interrupt, true);
        let (kernels, experiment) = prepare(&cache, &self.plan(Scope::Layout(number))?)?;
        let (mut kernels, experiment) = apart(kernels, &experiment, number);
        let shard = Shard {
            path: &self.shard(layout),
            command: COMMAND.into(),
            interrupt,
            quiet: true,
        };
        let measured = shard.measure(&mut kernels, experiment);
        let measured = measured.map_err(Error::Failed)?;
        Ok(measured.is_none_or(|measured| measured.outcome.stopped.is_none()))
    }
}
