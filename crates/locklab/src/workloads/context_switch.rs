//! `context-switch`: two processes, or two threads, on one CPU that wake each
//! other by a futex or a pipe.
//!
//! Install: nothing, the program is our own. A run takes several means, each
//! over many switches, of the ticks of the time stamp counter (rdtscp, on
//! AArch64 cntvct) from one switch to the next. The mean of the means
//! decides; the lowest and the highest are reported, as the report on
//! finish_task_switch() has them. Invalid: a program that failed.

use super::{Asked, Fault, Figures, Workload, output, own, own_program};
use crate::compare::lab::Lab;
use crate::compare::{Metric, Source, Subject};
use serde::{Deserialize, Serialize};

/// Who switches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Between {
    /// Two processes: the address space is switched too.
    #[default]
    Processes,
    /// Two threads.
    Threads,
}

/// How one wakes the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum By {
    /// A futex in shared memory.
    #[default]
    Futex,
    /// A byte through a pipe.
    Pipe,
}

/// Means a run.
const MEANS: u64 = 4;

pub(super) struct ContextSwitch {
    between: Between,
    by: By,
    switches: u64,
}

impl ContextSwitch {
    pub(super) fn new(asked: &Asked) -> Self {
        Self {
            between: asked.between.unwrap_or_default(),
            by: asked.by.unwrap_or_default(),
            switches: asked.scaled(1 << 16, 2),
        }
    }
}

fn word(value: impl clap::ValueEnum) -> String {
    value
        .to_possible_value()
        .map(|v| v.get_name().to_owned())
        .unwrap_or_default()
}

impl Workload for ContextSwitch {
    fn about(&self) -> String {
        format!(
            "Two {} on one CPU wake each other by a {}: ticks a switch, {MEANS} means over {} \
             switches.",
            word(self.between),
            word(self.by),
            self.switches
        )
    }

    fn setup(&self, lab: &Lab) -> Vec<(String, String)> {
        vec![("CPU".into(), locklab_host::topology::ranges(&lab.cpu(0)))]
    }

    fn metrics(&self) -> Vec<Metric> {
        vec![
            Metric::lower("switch", "ticks", Source::Output),
            Metric::lower("switch-lowest", "ticks", Source::Output),
            Metric::lower("switch-highest", "ticks", Source::Output),
        ]
    }

    fn check(&self, subjects: [&Subject; 2], _: &Lab) -> Result<(), String> {
        own_program("context-switch", subjects)
    }

    fn run(&mut self, subject: &Subject, lab: &mut Lab) -> Result<Figures, Fault> {
        let arguments = [
            own::COMMAND.to_owned(),
            "context-switch".into(),
            "--between".into(),
            word(self.between),
            "--by".into(),
            word(self.by),
            "--switches".into(),
            self.switches.to_string(),
            "--means".into(),
            MEANS.to_string(),
        ];
        let cpu = lab.cpu(0);
        let done = lab.run(subject, &own::program()?, &arguments, &cpu)?;
        done.check()?;
        let mut figures = done.figures();
        for name in ["switch", "switch-lowest", "switch-highest"] {
            let pattern = format!(r"(?m)^{name} ([0-9.e+-]+)$");
            figures.insert(name.into(), output::find(name, &pattern, &done.out)?);
        }
        Ok(figures)
    }
}
