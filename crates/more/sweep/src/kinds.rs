//! The kinds of sweeps, as those who carry them out see them: some tasks, each
//! with its shard in one folder, and what is collected of the shards.
//!
//! A new kind is a type with this trait, a [`Task`] of its own, and a line in
//! [`crate::conduct`].

use crate::chunk::run_chunk;
use crate::collect::{Collected, collect};
use crate::folder::Folder;
use crate::kernels::{CollectedKernels, KernelSweep};
use crate::machines::Machines;
use crate::machines_report::{self, CollectedMachines};
use crate::models::Models;
use crate::report;
use crate::task::{Missing, Task};
use locklab_document::Document;
use locklab_host::error::Error;
use locklab_lab::experiment::Experiment;
use locklab_lab::progress::Progress;
use locklab_lab::store::Listed;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Says who carries out tasks.
pub(crate) struct Worker<'a> {
    /// Set when it shall end soon.
    pub(crate) interrupt: &'a Arc<AtomicBool>,
    /// The units that are done, over all tasks. A task adds also those that it
    /// finds in its shard.
    pub(crate) counted: &'a AtomicU64,
    /// Says whether to show neither a progress bar nor notes.
    pub(crate) quiet: bool,
}

/// Names what there is to report of a sweep.
#[derive(Debug)]
pub enum Report {
    /// A report of its own.
    Document(Box<Document>),
    /// One experiment of two kernels, and its entry in the store of the folder.
    Experiment(Box<(Experiment, Listed)>),
}

/// One kind of sweep, in its folder.
pub(crate) trait Sweep: Sync {
    /// Holds what its tasks are called, and what is counted in them.
    const NOUNS: (&'static str, &'static str);
    /// Says whether a task that runs here shows its progress itself.
    const SHOWS_PROGRESS: bool = false;
    /// Names what is collected of it.
    type Collected;

    fn folder(&self) -> &Folder;

    /// Returns the tasks that have shards.
    fn tasks(&self) -> Vec<Task>;

    /// Tasks that must have ended before the others.
    fn before(&self) -> Vec<Task> {
        Vec::new()
    }

    /// Returns the number of units of all its tasks.
    fn units(&self) -> u64;

    /// Carries out a task, or what is missing of it; returns false if it was
    /// interrupted.
    ///
    /// # Errors
    /// There is no such task, or it failed; what was stored stays.
    fn carry_out(&self, task: &Task, worker: &Worker<'_>) -> Result<bool, Error>;

    /// Merges the shards.
    ///
    /// # Errors
    /// There is nothing to merge, or the store cannot be written.
    fn collect(&self, interrupt: &AtomicBool, quiet: bool) -> Result<Self::Collected, Error>;

    /// Returns what is missing of what was collected.
    fn missing(collected: &mut Self::Collected) -> &mut Vec<Missing>;

    /// Returns the report on what was collected; `busy` is the share of the time that
    /// this machine's cores worked, if they carried it out.
    fn report(&self, collected: Self::Collected, busy: Option<f64>) -> Report;

    /// Returns the error for a task of another kind.
    fn no_task(&self, task: &Task) -> Error {
        Error::Failed(format!(
            "there is no {task}; the sweep in {} has 0 of its kind",
            self.folder().path().display()
        ))
    }
}

impl Sweep for Models {
    const NOUNS: (&'static str, &'static str) = ("chunk", "run");
    type Collected = Collected;

    fn folder(&self) -> &Folder {
        &self.folder
    }

    fn tasks(&self) -> Vec<Task> {
        (0..self.chunks()).map(Task::Chunk).collect()
    }

    fn units(&self) -> u64 {
        self.plan.runs()
    }

    fn carry_out(&self, task: &Task, worker: &Worker<'_>) -> Result<bool, Error> {
        let go_on = || !worker.interrupt.load(Ordering::Relaxed);
        match task {
            Task::Chunk(chunk) => run_chunk(self, *chunk, go_on, worker.counted),
            other => Err(self.no_task(other)),
        }
    }

    fn collect(&self, _: &AtomicBool, quiet: bool) -> Result<Collected, Error> {
        collect(self, &Progress::new(0, "shards", quiet))
    }

    fn missing(collected: &mut Collected) -> &mut Vec<Missing> {
        &mut collected.missing
    }

    fn report(&self, collected: Collected, busy: Option<f64>) -> Report {
        Report::Document(report::document(self, &collected, busy).into())
    }
}

impl Sweep for Machines {
    const NOUNS: (&'static str, &'static str) = ("machine", "pair of locks");
    const SHOWS_PROGRESS: bool = true;
    type Collected = CollectedMachines;

    fn folder(&self) -> &Folder {
        &self.folder
    }

    fn tasks(&self) -> Vec<Task> {
        self.features.iter().cloned().map(Task::Node).collect()
    }

    fn units(&self) -> u64 {
        self.features.len() as u64 * self.experiments()
    }

    fn carry_out(&self, task: &Task, worker: &Worker<'_>) -> Result<bool, Error> {
        match task {
            Task::Node(node) => self.measure(node, worker.interrupt, worker.counted, worker.quiet),
            other => Err(self.no_task(other)),
        }
    }

    fn collect(&self, _: &AtomicBool, _: bool) -> Result<CollectedMachines, Error> {
        machines_report::collect(self)
    }

    fn missing(collected: &mut CollectedMachines) -> &mut Vec<Missing> {
        &mut collected.missing
    }

    fn report(&self, collected: CollectedMachines, _: Option<f64>) -> Report {
        Report::Document(machines_report::document(self, &collected).into())
    }
}

impl Sweep for KernelSweep {
    const NOUNS: (&'static str, &'static str) = ("layout", "layout");
    type Collected = CollectedKernels;

    fn folder(&self) -> &Folder {
        &self.folder
    }

    fn tasks(&self) -> Vec<Task> {
        (0..self.layouts()).map(Task::Layout).collect()
    }

    fn before(&self) -> Vec<Task> {
        (0..self.builds()).map(Task::Build).collect()
    }

    fn units(&self) -> u64 {
        self.layouts() as u64
    }

    fn carry_out(&self, task: &Task, worker: &Worker<'_>) -> Result<bool, Error> {
        match task {
            Task::Build(build) => self
                .build(*build, worker.interrupt, worker.quiet)
                .map(|()| true),
            Task::Layout(layout) => {
                let done = self.measure(*layout, worker.interrupt)?;
                worker.counted.fetch_add(u64::from(done), Ordering::Relaxed);
                Ok(done)
            }
            other => Err(self.no_task(other)),
        }
    }

    fn collect(&self, interrupt: &AtomicBool, quiet: bool) -> Result<CollectedKernels, Error> {
        self.collect(interrupt, quiet)
    }

    fn missing(collected: &mut CollectedKernels) -> &mut Vec<Missing> {
        &mut collected.missing
    }

    fn report(&self, collected: CollectedKernels, _: Option<f64>) -> Report {
        Report::Experiment((collected.experiment, collected.listed).into())
    }
}
