//! Runs whole programs as a backend of the lab: a cell is a workload, a sample
//! is one run of it with one of the two subjects.
//!
//! It knows how a workload is prepared, run once and described, and nothing of
//! coins, stores or verdicts. When one workload fails, the next
//! continues.

use crate::completed::process_metrics;
use crate::counters::Filter;
use crate::fault::Fault;
use crate::launcher::Launcher;
use crate::prepared::Prepared;
use crate::spec::Spec;
use crate::workloads::Workload;
use locklab_document::Document;
use locklab_harness::backend::{Backend, Stopped, Turn};
use locklab_harness::experiment::{
    Cell, Coordinate, Design, Experiment, Facts, Invalid, Key, Metric, Provenance, Role, Sample,
    Source, Values,
};
use locklab_host::environment::Environment;
use locklab_host::error::Error;
use locklab_host::machine::Machine;
use locklab_judge::Side;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use tempfile::TempDir;

/// The backend of programs under workloads.
pub struct Programs {
    spec: Spec,
    environment: Environment,
    machine: Machine,
    launcher: Launcher,
    workloads: Vec<Box<dyn Workload>>,
    /// The folder below which logs are kept, in a folder with the experiment's
    /// number.
    logs: Option<PathBuf>,
    /// The settings of the machine that were changed for these runs.
    prepared: Option<Prepared>,
    /// The folder of programs that were built for these runs.
    builds: Option<TempDir>,
}

impl Programs {
    /// Makes the workloads of `spec`, whose programs `launcher` starts.
    ///
    /// # Errors
    /// If there is no such workload, or it has a setting that makes
    /// no sense.
    pub fn new(
        spec: Spec,
        environment: Environment,
        machine: Machine,
        launcher: Launcher,
    ) -> Result<Self, Error> {
        let workloads = spec.workloads.iter().map(|w| w.workload());
        let workloads = workloads.collect::<Result<_, _>>()?;
        Ok(Self::with_workloads(
            spec,
            environment,
            machine,
            launcher,
            workloads,
        ))
    }

    /// Uses existing workloads: one for each that `spec` names.
    #[must_use]
    pub fn with_workloads(
        spec: Spec,
        environment: Environment,
        machine: Machine,
        launcher: Launcher,
        workloads: Vec<Box<dyn Workload>>,
    ) -> Self {
        Self {
            spec,
            environment,
            machine,
            launcher,
            workloads,
            logs: None,
            prepared: None,
            builds: None,
        }
    }

    /// Restores these settings of the machine and removes this folder of builds at
    /// the end.
    #[must_use]
    pub fn ending(self, prepared: Option<Prepared>, builds: Option<TempDir>) -> Self {
        Self {
            prepared,
            builds,
            ..self
        }
    }

    /// Keeps the logs of runs in a folder below this one, named by the number
    /// of the experiment.
    #[must_use]
    pub fn with_logs_below(self, folder: PathBuf) -> Self {
        Self {
            logs: Some(folder),
            ..self
        }
    }

    /// Returns the folder of the logs of runs, if they outlive it.
    fn kept_logs(&self) -> Option<&Path> {
        let logs = self.launcher.logs();
        (!logs.starts_with(self.launcher.scratch())).then_some(logs)
    }

    /// Returns the specification.
    #[must_use]
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    fn cells(&self) -> Vec<Cell> {
        let both = self.spec.workloads.iter().zip(&self.workloads);
        both.map(|(spec, workload)| Cell {
            about: workload.about(),
            facts: workload.setup(&self.launcher),
            ..Cell::new(
                Key::workload(&spec.title(), ""),
                metrics(workload.as_ref(), &self.launcher),
            )
        })
        .collect()
    }

    fn facts(&self) -> Facts {
        let runs = match self.spec.warm_up {
            1 => "1 run".to_owned(),
            n => format!("{n} runs"),
        };
        let mut facts = vec![(
            "Runs".to_owned(),
            format!(
                "a run is a process and ends within {} s; {runs} a side before the first pair, \
                 left out",
                self.spec.run_limit
            ),
        )];
        facts.extend(self.environment.facts());
        facts
    }

    fn caveats(&self, aa: bool) -> Vec<String> {
        let environment = &self.environment;
        let mut caveats = environment.caveats();
        if environment.is_virtual()
            && let Some(first) = caveats.first_mut()
        {
            // The first caveat is about the cells of a matrix, whose distances
            // are measured.
            *first = "A virtual machine: the host moves its CPUs and runs others on them. Pairs \
                      share most of that luck; how far apart CPUs were is not measured here."
                .into();
        }
        caveats.extend(self.launcher.counters.why.clone());
        caveats.extend(self.spec.caveats(aa));
        caveats
    }

    /// Makes a run before the first pair. A failed run is repeated once, because a
    /// run may fail by chance.
    fn warm_up(&mut self, index: usize, side: Side, log: &str) -> Result<(), Stopped> {
        let mut last = String::new();
        for _ in 0..2 {
            match self.once(index, side, log, 0, Filter::User) {
                Ok(_) => return Ok(()),
                Err(Fault::Interrupted) => return Err(Stopped::Interrupted),
                Err(Fault::Unrunnable(why)) => return Err(Stopped::Cell(why)),
                Err(fault) => last = fault.to_string(),
            }
        }
        Err(Stopped::Cell(format!(
            "the {side} failed twice before the first pair: {last}"
        )))
    }

    fn once(
        &mut self,
        index: usize,
        side: Side,
        log: &str,
        seed: u64,
        filter: Filter,
    ) -> Result<Values, Fault> {
        if self.launcher.interrupt.load(Ordering::Relaxed) {
            return Err(Fault::Interrupted);
        }
        self.launcher.begin(log, seed, filter);
        self.workloads[index].run(self.spec.subject(side), &mut self.launcher)
    }
}

/// Returns the metrics of a workload: its own figures, the first of which
/// decides, and the counters.
fn metrics(workload: &dyn Workload, launcher: &Launcher) -> Vec<Metric> {
    let mut metrics = workload.metrics();
    for metric in launcher
        .counters
        .metrics()
        .into_iter()
        .chain(process_metrics())
    {
        if metrics.iter().all(|m| m.name != metric.name) {
            metrics.push(metric);
        }
    }
    if let Some(first) = metrics.first_mut() {
        first.role = Role::Primary;
    }
    metrics
}

fn title(cell: &Cell) -> String {
    cell.key
        .get("workload")
        .map(Coordinate::to_string)
        .unwrap_or_default()
}

impl Backend for Programs {
    /// Restores the settings before the report, because a pager may block it.
    fn finish(&mut self, _: &mut Document) -> Result<Option<String>, locklab_host::error::Error> {
        self.prepared = None;
        self.builds = None;
        let logs = self.kept_logs();
        Ok(logs.map(|logs| format!("Logs: {}", logs.display())))
    }

    fn experiment(&self, design: Design) -> Experiment {
        let cells = self.cells();
        let modelled = |cell: &Cell| cell.metrics.iter().any(|m| m.source == Source::Model);
        let name = self.machine.name.clone();
        Experiment {
            kind: crate::settings::KIND.into(),
            labels: self.spec.labels(),
            spec: json!(self.spec),
            caveats: self.caveats(design.aa),
            design,
            provenance: if cells.iter().any(modelled) {
                Provenance::Model(name)
            } else {
                Provenance::Hardware(name)
            },
            facts: self.facts(),
            cells,
            interrupted: None,
        }
    }

    fn fingerprint(&self) -> Value {
        json!([self.spec, self.machine])
    }

    /// Returns the baseline under one workload, with its pinning.
    fn bias_fingerprint(&self, cell: &Cell) -> Option<Value> {
        let title = title(cell);
        let workload = self.spec.workloads.iter().find(|w| w.title() == title)?;
        Some(json!([
            self.spec.baseline,
            workload,
            self.spec.pin,
            self.machine
        ]))
    }

    fn numbered(&mut self, experiment: i64) {
        if let Some(folder) = &self.logs {
            // If they cannot be kept the runs go on, and the logs stay in the
            // temporary folder.
            let _ = self.launcher.keep_logs(folder.join(experiment.to_string()));
        }
    }

    fn begin(&mut self, cell: &mut Cell, index: usize) -> Result<(), Stopped> {
        self.workloads[index]
            .check(self.spec.subjects(), &self.launcher)
            .map_err(|e| Stopped::Cell(e.to_string()))?;
        let title = title(cell);
        for round in 1..=self.spec.warm_up {
            for side in Side::BOTH {
                self.warm_up(index, side, &format!("{title}-warm-up-{round}-{side}"))?;
            }
        }
        Ok(())
    }

    fn run(&mut self, cell: &Cell, turn: &Turn, side: Side) -> Result<Sample, Stopped> {
        let log = format!("{}-{:03}-{side}", title(cell), turn.pair + 1);
        // Misses of user mode and of the kernel in separate runs, both runs
        // of a pair the same.
        let filter = if turn.pair.is_multiple_of(2) {
            Filter::User
        } else {
            Filter::Kernel
        };
        let invalid = match self.once(turn.cell, side, &log, turn.seed, filter) {
            Ok(values) => {
                return Ok(Sample {
                    values,
                    ..Sample::default()
                });
            }
            Err(Fault::Interrupted) => return Err(Stopped::Interrupted),
            Err(Fault::CheckFailed(why)) => Invalid::CheckFailed(why),
            Err(Fault::Counter(why)) => Invalid::Counter(why),
            Err(Fault::Failed(why) | Fault::Unrunnable(why)) => Invalid::Failed(why),
        };
        Ok(Sample::invalid(invalid))
    }

    /// Adds what is known only now of the set-up, such as where files were made and
    /// which tree was unpacked.
    fn end(&mut self, cell: &mut Cell) {
        let title = title(cell);
        let index = self.spec.workloads.iter().position(|w| w.title() == title);
        if let Some(workload) = index.and_then(|i| self.workloads.get(i)) {
            cell.facts = workload.setup(&self.launcher);
        }
    }
}

#[cfg(test)]
mod tests;
