//! `locklab record`: an unmodified program, and what its threads do with locks.
//! `locklab results show` says it again.
//!
//! The program's streams and exit status are passed through; messages of
//! Locklab go to standard error.

use crate::arguments::Common;
use crate::output::{FileFormat, answer, check_writable, ended, print};
use locklab_host::cpu_use::CpuUse;
use locklab_host::error::Error;
use locklab_host::message;
use locklab_native::round_trip;
use locklab_preload_run::{
    Client, FromPerf, GoProfile, JavaProfile, KernelTable, Recorded, Recording,
};
use locklab_system_record::{SystemRecorded, is_system_recording};
use serde_json::Value;
use std::path::Path;
use std::process::ExitCode;

mod arguments;
mod system;

pub use arguments::RecordArgs;

/// Runs `locklab record`.
///
/// # Errors
/// If the recorder is not found, there is no room for the file, or the program
/// does not start.
pub fn record(args: &RecordArgs, common: &Common) -> Result<ExitCode, Error> {
    let file = args.file();
    check_writable(&file, FileFormat::Recording, false)?;
    if args.output.is_none() && !common.quiet {
        message::print(format_args!("locklab: the recording is {}", file.display()));
    }
    if let Some(text) = &args.from_perf {
        return from_perf(text, args, common);
    }
    if let Some(recording) = system::asked(args, common) {
        return system::record(recording, common);
    }
    let ready = Recording {
        file: args.file(),
        seconds: args.time,
        megabytes: args.megabytes,
        whole: args.whole,
        command: args.command.clone(),
        round_trip: round_trip::here,
        cpu_use: CpuUse::now,
        client: args.client.as_deref().map(Client::named),
    }
    .ready()?;
    if common.dry_run {
        return print(&format!("{}\n", ready.line()));
    }
    // Standard output is reserved for the JSON document.
    let (status, recorded) = ready.run(common.json)?;
    let how = [common.json, common.quiet];
    ended(status, &recorded.json(), &recorded.text(), how)
}

fn from_perf(text: &Path, args: &RecordArgs, common: &Common) -> Result<ExitCode, Error> {
    if common.dry_run {
        return print(&format!(
            "would make {} from {}\n",
            args.file().display(),
            text.display()
        ));
    }
    let recorded = FromPerf {
        text: text.into(),
        file: args.file(),
    }
    .run()?;
    match (common.json, common.quiet) {
        (true, _) => print(&format!("{:#}\n", recorded.json())),
        (false, true) => Ok(ExitCode::SUCCESS),
        (false, false) => print(&recorded.text()),
    }
}

/// Prints the report of a profile that the runtime of a language made, if the file is one.
pub(crate) fn of_runtime(file: &Path, common: &Common) -> Result<Option<ExitCode>, Error> {
    let reported = |text: String, json: Value| answer(common.json, || json, || text);
    if let Some(profile) = GoProfile::read(file) {
        return reported(profile.text(), profile.json()).map(Some);
    }
    match JavaProfile::read(file)? {
        Some(profile) => reported(profile.text(), profile.json()).map(Some),
        None => Ok(None),
    }
}

/// Shows a recording: `locklab results show FILE`.
///
/// # Errors
/// If the file cannot be read, or is no recording of this version.
pub(crate) fn recording(file: &Path, common: &Common) -> Result<ExitCode, Error> {
    if common.dry_run {
        return print(&format!("would read {}\n", file.display()));
    }
    if is_system_recording(file) {
        return system::show(&SystemRecorded::read(file)?, common);
    }
    if let Some(table) = KernelTable::read(file) {
        return answer(common.json, || table.json(), || table.text());
    }
    if let Some(code) = of_runtime(file, common)? {
        return Ok(code);
    }
    let recorded = Recorded::read(file)?;
    answer(common.json, || recorded.json(), || recorded.text())
}
