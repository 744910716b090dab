//! `context-switch`: two processes, or two threads, on one CPU that wake each
//! other by a futex or a pipe.
//!
//! Install: nothing, the program is Locklab's own. A run takes several means,
//! each over many switches, of the ticks of the time stamp counter (rdtscp, on
//! AArch64 cntvct) from one switch to the next. The mean of the means decides;
//! the lowest and the highest are reported, as the report on
//! finish_task_switch() has them. Invalid: a program that failed.

use super::output_metric;
use super::spec::WorkloadSpec;
use super::switching::{Between, By};
use super::workload::{Workload, same_program};
use crate::built_in;
use crate::fault::Fault;
use crate::launcher::Launcher;
use crate::subject::Subject;
use locklab_harness::experiment::{Metric, Source, Values};
use locklab_host::error::Error;

/// Number of means per run.
const MEANS: u64 = 4;

pub(super) struct ContextSwitch {
    between: Between,
    by: By,
    switches: u64,
}

impl ContextSwitch {
    pub(super) fn new(spec: &WorkloadSpec) -> Self {
        Self {
            between: spec.between.unwrap_or_default(),
            by: spec.by.unwrap_or_default(),
            switches: spec.scaled(1 << 16, 2),
        }
    }
}

impl Workload for ContextSwitch {
    fn about(&self) -> String {
        format!(
            "Two {} on one CPU wake each other by a {}: ticks a switch, {MEANS} means over {} \
             switches.",
            self.between.word(),
            self.by.word(),
            self.switches
        )
    }

    fn setup(&self, launcher: &Launcher) -> Vec<(String, String)> {
        vec![(
            "CPU".into(),
            locklab_host::topology::ranges(&launcher.cpu(0)),
        )]
    }

    fn is_one_process(&self) -> bool {
        self.between == Between::Threads
    }

    fn metrics(&self) -> Vec<Metric> {
        vec![
            Metric::lower("switch", "ticks", Source::Output),
            Metric::lower("switch-lowest", "ticks", Source::Output),
            Metric::lower("switch-highest", "ticks", Source::Output),
        ]
    }

    fn check(&self, subjects: [&Subject; 2], _: &Launcher) -> Result<(), Error> {
        same_program("context-switch", subjects)
    }

    fn run(&mut self, subject: &Subject, launcher: &mut Launcher) -> Result<Values, Fault> {
        let arguments = [
            built_in::COMMAND.to_owned(),
            "context-switch".into(),
            "--between".into(),
            self.between.word().into(),
            "--by".into(),
            self.by.word().into(),
            "--switches".into(),
            self.switches.to_string(),
            "--means".into(),
            MEANS.to_string(),
        ];
        let cpu = launcher.cpu(0);
        let done = launcher.run(subject, &built_in::program()?, &arguments, &cpu)?;
        done.check()?;
        let mut figures = done.figures();
        for name in ["switch", "switch-lowest", "switch-highest"] {
            let pattern = format!(r"(?m)^{name} ([0-9.e+-]+)$");
            figures.insert(name.into(), output_metric::find(name, &pattern, &done.out)?);
        }
        Ok(figures)
    }
}
