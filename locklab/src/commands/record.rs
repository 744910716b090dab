//! `locklab record`: an unmodified program, and what its threads do with locks.
//! `locklab trace` says it again.
//!
//! The program's streams and exit status are passed through; messages of
//! Locklab go to standard error.

use crate::arguments::Common;
use crate::output::print;
use clap::Args;
use locklab_host::cpu_use::CpuUse;
use locklab_host::error::Error;
use locklab_native::round_trip;
use locklab_preload_run::{FromPerf, KernelTable, Recorded, Recording};
use locklab_system_record::{SystemRecorded, is_system_recording};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

mod system;

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
    /// Record a process that runs, for 5 seconds or --seconds, by the kernel's events
    #[arg(long, value_name = "PID", conflicts_with_all = ["from_perf", "cgroup", "command"])]
    pub pid: Option<u32>,
    /// Record what runs in a control group, such as that of a container, like --pid
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["from_perf", "command"])]
    pub cgroup: Option<PathBuf>,
    /// The program and its arguments
    #[arg(last = true, required_unless_present_any = ["from_perf", "pid", "cgroup"], value_name = "CMD")]
    pub command: Vec<std::ffi::OsString>,
}

/// `locklab trace`.
#[derive(Debug, Args)]
pub struct TraceArgs {
    /// The recording, or a table of perf lock contention or klockstat
    pub file: PathBuf,
}

/// Runs `locklab record`.
///
/// # Errors
/// If the recorder is not found, there is no room for the file, or the program
/// does not start.
pub fn record(args: &RecordArgs, common: &Common) -> Result<ExitCode, Error> {
    if let Some(text) = &args.from_perf {
        return from_perf(text, args, common);
    }
    if let Some(recording) = system::asked(args) {
        return system::record(recording, common);
    }
    let ready = Recording {
        file: args.output.clone(),
        seconds: args.seconds,
        megabytes: args.megabytes,
        command: args.command.clone(),
        round_trip: round_trip::here,
        cpu_use: CpuUse::now,
    }
    .ready()?;
    if common.dry_run {
        return print(&format!("{}\n", ready.line()));
    }
    // Standard output is reserved for the JSON document.
    let (status, recorded) = ready.run(common.json)?;
    if common.json {
        print(&format!("{:#}\n", recorded.json()))?;
    } else if !common.quiet {
        // A message that cannot be written is not a failure.
        let _ = std::io::stderr()
            .lock()
            .write_all(recorded.text().as_bytes());
    }
    Ok(ExitCode::from(status))
}

fn from_perf(text: &Path, args: &RecordArgs, common: &Common) -> Result<ExitCode, Error> {
    if common.dry_run {
        return print(&format!(
            "would make {} from {}\n",
            args.output.display(),
            text.display()
        ));
    }
    let recorded = FromPerf {
        text: text.into(),
        file: args.output.clone(),
    }
    .run()?;
    match (common.json, common.quiet) {
        (true, _) => print(&format!("{:#}\n", recorded.json())),
        (false, true) => Ok(ExitCode::SUCCESS),
        (false, false) => print(&recorded.text()),
    }
}

/// Runs `locklab trace`.
///
/// # Errors
/// If the file cannot be read, or is no recording of this version.
pub fn trace(args: &TraceArgs, common: &Common) -> Result<ExitCode, Error> {
    if common.dry_run {
        return print(&format!("would read {}\n", args.file.display()));
    }
    if is_system_recording(&args.file) {
        return system::show(&SystemRecorded::read(&args.file)?, common);
    }
    if let Some(table) = KernelTable::read(&args.file) {
        return print(&match common.json {
            true => format!("{:#}\n", table.json()),
            false => table.text(),
        });
    }
    let recorded = Recorded::read(&args.file)?;
    match common.json {
        true => print(&format!("{:#}\n", recorded.json())),
        false => print(&recorded.text()),
    }
}
