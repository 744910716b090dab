//! Collecting a sweep of kernels: the shards of its layouts are merged into one
//! experiment, whose pairs are the layouts.

use super::{KernelSweep, apart};
use crate::cluster::last_words;
use crate::task::COMMAND;
use crate::{slurm, state};
use locklab_host::error::Error;
use locklab_kernel::{Kernels, Scope, prepare};
use locklab_lab::experiment::Experiment;
use locklab_lab::instrument::Instrument as _;
use locklab_lab::session::key_of;
use locklab_lab::store::{Listed, Store, StoredRow};
use std::fs;
use std::sync::atomic::AtomicBool;

/// What was collected of a sweep of kernels.
#[derive(Debug)]
pub struct CollectedKernels {
    /// The experiment, with a pair for each layout that is there.
    pub experiment: Experiment,
    /// Its entry in the store of the folder.
    pub listed: Listed,
    /// The layouts that are missing, each with the reason.
    pub missing: Vec<(usize, String)>,
}

impl KernelSweep {
    /// Merges the shards into the store of the folder: one experiment with all
    /// layouts that are there.
    ///
    /// # Errors
    /// No layout is there yet, the kernels cannot be prepared, or the store
    /// cannot be written. The shards stay as they are.
    pub fn collect(&self, interrupt: &AtomicBool, quiet: bool) -> Result<CollectedKernels, Error> {
        if (0..self.layouts()).all(|layout| !self.shard(layout).exists()) {
            return Err(Error::Failed(format!(
                "no layout of the sweep in {} is measured yet; {}",
                self.path.display(),
                self.why_missing(0)
            )));
        }
        let cache = self.cache(interrupt, quiet);
        let (mut kernels, mut experiment) = prepare(&cache, &self.plan(Scope::Report)?)?;
        let mut missing = Vec::new();
        let part = self.path.join("store.sqlite.part");
        let mut merge = || -> Result<Listed, String> {
            let store = state::new_store(&part)?;
            let id = store.begin(&key_of(&kernels, &experiment), COMMAND, &experiment)?;
            for layout in 0..self.layouts() {
                match self.copy(layout, &kernels, &experiment, &store, id) {
                    Ok(true) => {}
                    Ok(false) => missing.push((layout, self.why_missing(layout))),
                    Err(why) => missing.push((layout, why)),
                }
            }
            let (mut pairs, damaged) = store.pairs(id)?;
            for cell in &mut experiment.cells {
                // Counts of a model have no bias.
                cell.bias_band = Some(0.0);
                cell.pairs = pairs.remove(&cell.key).unwrap_or_default();
                if !cell.pairs.is_empty() {
                    kernels.end(cell);
                }
            }
            experiment.caveats.extend(damaged);
            experiment.interrupted = (!missing.is_empty()).then(|| {
                format!(
                    "{} of {} layouts are missing",
                    missing.len(),
                    self.layouts()
                )
            });
            store.finish(id, &experiment)?;
            store.listed(Some(id))
        };
        let listed = merge().map_err(Error::Failed)?;
        let store = self.path.join("store.sqlite");
        fs::rename(&part, &store)
            .map_err(|e| Error::Failed(format!("cannot write {}: {e}", store.display())))?;
        Ok(CollectedKernels {
            experiment,
            listed,
            missing,
        })
    }

    /// Copies the samples of a layout; returns false if it is not complete.
    fn copy(
        &self,
        layout: usize,
        kernels: &Kernels<'_>,
        experiment: &Experiment,
        store: &Store,
        id: i64,
    ) -> Result<bool, String> {
        let path = self.shard(layout);
        if !path.exists() {
            return Ok(false);
        }
        let number = u32::try_from(layout).unwrap_or(u32::MAX);
        let (kernels, alone) = apart(kernels.clone(), experiment, number);
        let shard = Store::open_left(&path)?;
        let Some(from) = shard.of_key(&key_of(&kernels, &alone))? else {
            return Err(format!(
                "the shard {} is of other kernels: a source, a compiler, QEMU or the plugin was \
                 changed since; remove the shard, and its layout is measured again",
                path.display()
            ));
        };
        if shard.listed(Some(from))?.state != "done" {
            return Ok(false);
        }
        let damaged = shard.each_row(Some(from), |row| {
            let row = StoredRow {
                pair: i64::from(number),
                ..*row
            };
            store.append(id, &row)
        })?;
        match damaged.into_iter().next() {
            None => Ok(true),
            Some(row) => Err(format!(
                "{row}; remove the shard, and its layout is measured again"
            )),
        }
    }

    /// The reason why a layout is missing.
    fn why_missing(&self, layout: usize) -> String {
        match self.status(layout) {
            None => "no task of it began".into(),
            Some(status) => format!(
                "on {}: {}",
                status.node,
                status
                    .stopped
                    .as_deref()
                    .unwrap_or("its task did not come to its end")
            ),
        }
    }

    /// Adds Slurm's state and the end of the log to what is missing.
    pub(crate) fn explain(&self, collected: &mut CollectedKernels) {
        for (layout, why) in &mut collected.missing {
            if let Some(account) = slurm::account(&self.path, *layout) {
                *why += &format!("; Slurm says {account}");
            }
            let log = self.path.join(format!("logs/{layout:04}.log"));
            *why += &format!("; {}", last_words(&log));
        }
    }
}
