//! `fstat`: processes, each in a loop of fstat(2) on a file of its own: a
//! short path through the kernel, all processes at once.
//!
//! Install: nothing, the program is our own. A run forks the processes, lets
//! them start together and stops them after a fixed time. Calls a second
//! decide. Invalid: a process that failed.

use super::{Asked, Fault, Figures, Workload, output, own, own_program};
use crate::compare::lab::Lab;
use crate::compare::{Metric, Source, Subject};

pub(super) struct Fstat {
    processes: Option<u32>,
    milliseconds: u64,
}

impl Fstat {
    pub(super) fn new(asked: &Asked) -> Self {
        Self {
            processes: asked.threads,
            milliseconds: asked.scaled(500, 1),
        }
    }

    fn processes(&self, lab: &Lab) -> usize {
        self.processes.map_or(lab.cpu_count(), |n| n as usize)
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

    fn setup(&self, lab: &Lab) -> Vec<(String, String)> {
        vec![
            ("Processes".into(), self.processes(lab).to_string()),
            ("CPUs".into(), lab.cpus_text()),
        ]
    }

    fn metrics(&self) -> Vec<Metric> {
        vec![
            Metric::higher("throughput", "calls/s", Source::Output),
            Metric::higher("jain", "", Source::Output),
        ]
    }

    fn check(&self, subjects: [&Subject; 2], _: &Lab) -> Result<(), String> {
        own_program("fstat", subjects)
    }

    fn run(&mut self, subject: &Subject, lab: &mut Lab) -> Result<Figures, Fault> {
        let arguments = [
            own::COMMAND.to_owned(),
            "fstat".into(),
            "--processes".into(),
            self.processes(lab).to_string(),
            "--milliseconds".into(),
            self.milliseconds.to_string(),
        ];
        let cpus = lab.cpus.clone();
        let done = lab.run(subject, &own::program()?, &arguments, &cpus)?;
        done.check()?;
        let mut figures = done.figures();
        for name in ["throughput", "jain"] {
            let pattern = format!(r"(?m)^{name} ([0-9.e+-]+)$");
            figures.insert(name.into(), output::find(name, &pattern, &done.out)?);
        }
        Ok(figures)
    }
}
