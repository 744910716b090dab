//! `fstat`: processes, each in a loop of fstat(2) on a file of its own: a
//! short path through the kernel, all processes at once.
//!
//! Install: nothing, the program is Locklab's own. A run forks the processes,
//! lets them start together and stops them after a fixed time. Calls a second
//! decide. Invalid: a process that failed.

use super::output_metric;
use super::spec::WorkloadSpec;
use super::workload::{Workload, same_program};
use crate::built_in;
use crate::fault::Fault;
use crate::launcher::Launcher;
use crate::subject::Subject;
use locklab_harness::experiment::{Metric, Source, Values};
use locklab_harness::matrix::JAIN;
use locklab_harness::metric::THROUGHPUT;
use locklab_host::error::Error;

pub(super) struct Fstat {
    processes: Option<u32>,
    milliseconds: u64,
}

impl Fstat {
    pub(super) fn new(spec: &WorkloadSpec) -> Self {
        Self {
            processes: spec.threads,
            milliseconds: spec.scaled(500, 1),
        }
    }

    fn processes(&self, launcher: &Launcher) -> usize {
        self.processes.map_or(launcher.cpu_count(), |n| n as usize)
    }
}

impl Workload for Fstat {
    fn about(&self) -> String {
        let who = match self.processes {
            Some(n) => format!("{n} processes"),
            None => "As many processes as CPUs".into(),
        };
        format!(
            "{who}, each fstat(2) in a loop on a file of its own, for {} ms.",
            self.milliseconds
        )
    }

    fn setup(&self, launcher: &Launcher) -> Vec<(String, String)> {
        vec![
            ("Processes".into(), self.processes(launcher).to_string()),
            ("CPUs".into(), launcher.cpus_text()),
        ]
    }

    fn metrics(&self) -> Vec<Metric> {
        vec![
            Metric::higher(THROUGHPUT, "calls/s", Source::Output),
            Metric::higher(JAIN, "", Source::Output),
        ]
    }

    fn check(&self, subjects: [&Subject; 2], _: &Launcher) -> Result<(), Error> {
        same_program("fstat", subjects)
    }

    fn run(&mut self, subject: &Subject, launcher: &mut Launcher) -> Result<Values, Fault> {
        let arguments = [
            built_in::COMMAND.to_owned(),
            "fstat".into(),
            "--processes".into(),
            self.processes(launcher).to_string(),
            "--milliseconds".into(),
            self.milliseconds.to_string(),
        ];
        let cpus = launcher.cpus.clone();
        let done = launcher.run(subject, &built_in::program()?, &arguments, &cpus)?;
        done.check()?;
        let mut figures = done.figures();
        for name in [THROUGHPUT, JAIN] {
            let pattern = format!(r"(?m)^{name} ([0-9.e+-]+)$");
            figures.insert(name.into(), output_metric::find(name, &pattern, &done.out)?);
        }
        Ok(figures)
    }
}
