//! The arguments of `locklab record`.

use clap::Args;
use std::ffi::OsString;
use std::path::PathBuf;

/// `locklab record`.
#[derive(Debug, Args)]
pub struct RecordArgs {
    /// The file to write: the recording, which must not be one yet [default: locklab.trace]
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Seconds to measure or to record
    #[arg(long, value_name = "SECONDS")]
    pub time: Option<f64>,
    /// Room for the recording, which ends when it is full; an acquisition takes
    /// 9 bytes, and 14 if it waited
    #[arg(long, value_name = "N", default_value_t = 256)]
    pub megabytes: u32,
    /// Record all of the time, however much that slows the program [default: windows, where
    /// recording would take more than a hundredth of its threads' time]
    #[arg(long, conflicts_with_all = ["from_perf", "kernel"])]
    pub whole: bool,
    /// Make the recording from a file with the output of 'perf script' for a
    /// kernel's lock tracepoints, instead of running a program
    #[arg(long, value_name = "TEXT", conflicts_with_all = ["time", "megabytes", "command"])]
    pub from_perf: Option<PathBuf>,
    /// Record by the kernel's events, whatever language the program is written in
    /// [default: for a program that takes no lock of pthread]
    #[arg(long, conflicts_with_all = ["from_perf", "kernel"])]
    pub system: bool,
    /// Record the waits for the kernel's own locks, on the whole machine
    #[arg(long, conflicts_with = "from_perf")]
    pub kernel: bool,
    /// Record a process that runs, with its children, or what runs in a control group, such as
    /// that of a container, by the kernel's events
    #[arg(long, short, value_name = "PID|FOLDER", conflicts_with_all = ["from_perf", "command"])]
    pub pid: Option<Running>,
    /// A client on this machine, such as a load generator, by its number or its name:
    /// CPU time that it has counts as the program's, and not as others'
    #[arg(long, value_name = "PID|NAME", conflicts_with_all = ["from_perf", "system", "kernel", "pid"])]
    pub client: Option<String>,
    /// The program and its arguments
    #[arg(last = true, required_unless_present_any = ["from_perf", "pid"], value_name = "CMD")]
    pub command: Vec<OsString>,
}

/// The file for a recording, unless another was named.
const FILE: &str = "locklab.trace";

/// What runs already: a process, or a control group by its folder.
#[derive(Clone, Debug)]
pub enum Running {
    /// The number of a process.
    Process(u32),
    /// The folder of a control group.
    Cgroup(PathBuf),
}

impl From<OsString> for Running {
    fn from(word: OsString) -> Self {
        match word.to_str().unwrap_or_default().parse() {
            Ok(process) => Self::Process(process),
            Err(_) => Self::Cgroup(word.into()),
        }
    }
}

impl RecordArgs {
    /// Returns the file for the recording.
    pub(super) fn file(&self) -> PathBuf {
        self.output.clone().unwrap_or_else(|| FILE.into())
    }
}
