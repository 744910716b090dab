//! The arguments of `locklab record` and `locklab trace`.

use clap::Args;
use std::path::PathBuf;

/// `locklab record`.
#[derive(Debug, Args)]
pub struct RecordArgs {
    /// The file for the recording; an older recording there is replaced
    #[arg(long, short, value_name = "FILE")]
    pub output: PathBuf,
    /// Record the first N seconds only [default: until the program ends]
    #[arg(long, value_name = "N")]
    pub seconds: Option<f64>,
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
    #[arg(long, value_name = "TEXT", conflicts_with_all = ["seconds", "megabytes", "command"])]
    pub from_perf: Option<PathBuf>,
    /// Record by the kernel's events, whatever language the program is written in
    /// [default: for a program that takes no lock of pthread]
    #[arg(long, conflicts_with_all = ["from_perf", "kernel"])]
    pub system: bool,
    /// Record the waits for the kernel's own locks, on the whole machine
    #[arg(long, conflicts_with = "from_perf")]
    pub kernel: bool,
    /// Record a process that runs, with its children, for 5 seconds or
    /// --seconds, by the kernel's events
    #[arg(long, value_name = "PID", conflicts_with_all = ["from_perf", "cgroup", "command"])]
    pub pid: Option<u32>,
    /// Record what runs in a control group, such as that of a container, like --pid
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["from_perf", "command"])]
    pub cgroup: Option<PathBuf>,
    /// A client on this machine, such as a load generator, by its number or its name:
    /// CPU time that it has counts as the program's, and not as others'
    #[arg(long, value_name = "PID|NAME", conflicts_with_all = ["from_perf", "system", "kernel", "pid", "cgroup"])]
    pub client: Option<String>,
    /// The program and its arguments
    #[arg(last = true, required_unless_present_any = ["from_perf", "pid", "cgroup"], value_name = "CMD")]
    pub command: Vec<std::ffi::OsString>,
}

/// `locklab trace`.
#[derive(Debug, Args)]
pub struct TraceArgs {
    /// The recording, a table of perf lock contention or klockstat, or a mutex or
    /// block profile of Go
    pub file: PathBuf,
}
