//! The workloads for subjects, one file each.
//!
//! Each says what to install, how it starts and stops, what one run is, which
//! metric decides, and what makes a run invalid. A workload knows nothing of
//! pairs, coins or verdicts, and cleans up what it made.

mod any_command;
mod call_sites;
mod context_switch;
mod fs_mark;
mod fstat;
mod gcc;
mod kernel_build;
mod nginx_churn;
mod output_metric;
mod rocksdb;
mod spec;
pub(crate) mod switching;
mod workload;

use crate::subject::Subject;
use locklab_host::error::Error;

pub use output_metric::{Extractor, OutputMetric};
pub use spec::WorkloadSpec;
pub use switching::{Between, By};
pub use workload::Workload;

/// The workload that is any command.
const COMMAND: &str = "command";

/// Every workload, with its description.
pub const NAMES: [(&str, &str); 10] = [
    (
        "nginx-churn",
        "one nginx worker, a new connection each request",
    ),
    ("rocksdb-deleteseq", "db_bench deleting keys in sequence"),
    (
        "readwhilewriting",
        "db_bench reading while one thread writes: contention",
    ),
    (
        "fstat",
        "processes, each in a loop of fstat(2) on its own file",
    ),
    (
        "context-switch",
        "two processes or threads on one CPU that wake each other",
    ),
    ("gcc", "compiling one large preprocessed C file"),
    ("fs-mark", "making empty files in many folders at once"),
    ("kernel-build", "make of a small Linux kernel"),
    (
        "call-sites",
        "a program of many call sites of unlock, inlined or not, in many layouts",
    ),
    (
        COMMAND,
        "any command, a figure of its output or its elapsed time",
    ),
];

/// Returns the settings that a workload of this name uses, besides its title.
fn settings(name: &str) -> &'static [&'static str] {
    match name {
        "nginx-churn" => &["scale", "port"],
        "rocksdb-deleteseq" | "readwhilewriting" | "fstat" => &["scale", "threads"],
        "context-switch" => &["scale", "between", "by"],
        "gcc" | "fs-mark" => &["scale", "path"],
        "kernel-build" => &["threads", "path"],
        "call-sites" => &["scale", "threads", "path"],
        COMMAND => &["command", "metric"],
        _ => &[],
    }
}

/// Returns their names, as a sentence lists them.
pub(crate) fn names() -> String {
    NAMES.map(|(name, _)| name).join(", ")
}

impl WorkloadSpec {
    /// Checks that a subject has a command, if the workload is one. Its build may
    /// be still to come.
    ///
    /// # Errors
    /// If there is none, or it is no words.
    pub(crate) fn check_command(&self, subject: &Subject) -> Result<(), Error> {
        if self.name != COMMAND {
            return Ok(());
        }
        // Any folder stands for a build that is still to come.
        let build = subject.build.clone().unwrap_or_default();
        let subject = Subject {
            build: Some(build),
            ..subject.clone()
        };
        any_command::words(self.command.as_ref(), &subject).map(drop)
    }

    /// Makes the workload.
    ///
    /// # Errors
    /// If there is no such workload, it has a setting that it does not know, or
    /// a number is out of range.
    pub fn workload(&self) -> Result<Box<dyn Workload>, Error> {
        let workload = self.by_name()?;
        let given = [
            ("scale", self.scale.is_some()),
            ("threads", self.threads.is_some()),
            ("between", self.between.is_some()),
            ("by", self.by.is_some()),
            ("path", self.path.is_some()),
            ("port", self.port.is_some()),
            ("command", self.command.is_some()),
            ("metric", !self.metric.is_empty()),
        ];
        let used = settings(&self.name);
        match given
            .iter()
            .find(|(name, given)| *given && !used.contains(name))
        {
            Some((setting, _)) => Err(Error::Usage(format!(
                "{} does not use '{setting}'; leave it out",
                self.name
            ))),
            None => Ok(workload),
        }
    }

    /// Returns whether the work of a run can be scaled.
    #[must_use]
    pub fn has_scale(&self) -> bool {
        settings(&self.name).contains(&"scale")
    }

    fn by_name(&self) -> Result<Box<dyn Workload>, Error> {
        if let Some(scale) = self.scale
            && !(scale > 0.0 && scale <= 1e4)
        {
            return Err(Error::Usage(format!(
                "scale {scale} of {} is not between 0 and 10000; 1 is the usual length",
                self.name
            )));
        }
        if self.threads == Some(0) {
            return Err(Error::Usage(format!(
                "zero threads of {} do no work; ask for 1",
                self.name
            )));
        }
        Ok(match self.name.as_str() {
            "nginx-churn" => Box::new(nginx_churn::NginxChurn::new(self)),
            "rocksdb-deleteseq" | "readwhilewriting" => Box::new(rocksdb::RocksDb::new(self)),
            "fstat" => Box::new(fstat::Fstat::new(self)),
            "context-switch" => Box::new(context_switch::ContextSwitch::new(self)),
            "call-sites" => Box::new(call_sites::CallSites::new(self)),
            "gcc" => Box::new(gcc::Gcc::new(self)),
            "fs-mark" => Box::new(fs_mark::FsMark::new(self)),
            "kernel-build" => Box::new(kernel_build::KernelBuild::new(self)),
            COMMAND => Box::new(any_command::AnyCommand::new(self)?),
            other => {
                let near = NAMES
                    .iter()
                    .map(|(name, _)| (strsim::damerau_levenshtein(name, other), name))
                    .min()
                    .filter(|(distance, _)| *distance <= 3);
                let name = other.to_owned();
                return Err(match near {
                    Some((_, near)) => Error::Usage(format!(
                        "there is no workload '{name}'; did you mean {near}?"
                    )),
                    None => Error::Usage(format!(
                        "there is no workload '{name}'; those are {}",
                        names()
                    )),
                });
            }
        })
    }
}
