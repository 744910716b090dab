//! `locklab record --system` and `--kernel`: recordings by the kernel's events.

use super::arguments::{RecordArgs, Running};
use crate::arguments::Common;
use crate::output::{answer, ended, print};
use locklab_host::error::Error;
use locklab_host::message;
use locklab_system_record::{
    Source, SystemRecorded, SystemRecording, Target, is_permitted, takes_no_pthread_lock,
};
use std::process::ExitCode;

/// Returns what is to be recorded by the kernel's events: what the arguments ask for, or a
/// program in which nothing of pthread would be seen.
pub(super) fn asked(args: &RecordArgs, common: &Common) -> Option<SystemRecording> {
    let target = match &args.pid {
        Some(Running::Process(process)) => Target::Process(*process),
        Some(Running::Cgroup(folder)) => Target::Cgroup(folder.clone()),
        None => Target::Command(args.command.clone()),
    };
    let by_kernel = args.system || args.kernel || args.pid.is_some();
    if !by_kernel {
        let why = takes_no_pthread_lock(args.command.first()?)?;
        if !is_permitted() {
            return None;
        }
        if !common.quiet {
            message::print(format_args!(
                "locklab: {why}, so it is recorded by the kernel's events"
            ));
        }
    }
    Some(SystemRecording {
        file: args.file(),
        source: match args.kernel {
            true => Source::Kernel,
            false => Source::System,
        },
        target,
        seconds: args.time,
        megabytes: args.megabytes,
        whole: args.whole,
    })
}

/// Records, and reports.
pub(super) fn record(recording: SystemRecording, common: &Common) -> Result<ExitCode, Error> {
    let ready = recording.ready()?;
    if common.dry_run {
        return print(&format!("{}\n", ready.line()));
    }
    // Standard output is reserved for the JSON document.
    let (status, recorded) = ready.run(common.json)?;
    let how = [common.json, common.quiet];
    ended(status, &recorded.json(), &recorded.text(), how)
}

/// Shows a recording.
pub(super) fn show(recorded: &SystemRecorded, common: &Common) -> Result<ExitCode, Error> {
    answer(common.json, || recorded.json(), || recorded.text())
}
