//! `locklab run`: an unmodified program on another lock.
//!
//! Sets what the interposer reads, runs the program, and prints what the
//! interposer left. The program's streams and exit status are its own; what
//! is said here goes to standard error.

mod names;
mod profile;

use crate::cli::{Common, RunArgs};
use locklab_host::error::Error;
use locklab_host::interrupt;
use locklab_preload_report::{FOLDER_VARIABLE, PROFILE_VARIABLE};
use names::Chosen;
#[cfg(test)]
use std::ffi::OsStr;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::Write as _;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitCode, ExitStatus, Stdio};

/// Runs it.
///
/// # Errors
/// There is no such lock, the interposer is not found, or the program does
/// not start.
pub(crate) fn run(args: &RunArgs, common: &Common) -> Result<ExitCode, Error> {
    let chosen = names::choose(&args.lock, args.wait)?;
    if args.profile && chosen.lock == names::GLIBC {
        return Err(Error::Usage(
            "glibc's own mutexes cannot be profiled; name one of 'locklab locks'".into(),
        ));
    }
    let library = locklab_host::libraries::preload_library().map_err(Error::Failed)?;
    let [program, arguments @ ..] = &args.command[..] else {
        return Err(Error::Usage("name a program to run, after --".into()));
    };
    let mut variables = vec![
        (
            "LD_PRELOAD",
            preload(&library, std::env::var_os("LD_PRELOAD")),
        ),
        ("LOCKLAB_LOCK", chosen.lock.into()),
        ("LOCKLAB_WAIT", chosen.wait.name().into()),
    ];
    if common.dry_run {
        let mut line = String::from("env");
        for (name, value) in &variables {
            let _ = write!(line, " {name}={}", value.display());
        }
        for word in &args.command {
            let _ = write!(line, " {}", word.display());
        }
        return crate::matrix_command::print(&(line + "\n"));
    }
    let folder = tempfile::Builder::new()
        .prefix("locklab-run-")
        .tempdir()
        .map_err(|e| Error::Failed(format!("no temporary folder for the report: {e}")))?;
    variables.push((FOLDER_VARIABLE, folder.path().into()));
    if args.profile {
        variables.push((PROFILE_VARIABLE, "1".into()));
    }
    let clock = profile::Clock::start();
    let mut command = Command::new(program);
    command.args(arguments).envs(variables);
    if !args.profile {
        command.env_remove(PROFILE_VARIABLE);
    }
    if common.json {
        // Standard output is for the one document.
        command.stdout(Stdio::from(std::io::stderr()));
    }
    // Ctrl-C is the program's; what it did until then is still told.
    let _interrupted = interrupt::listen()?;
    let status = command
        .status()
        .map_err(|e| Error::Failed(format!("{} does not start: {e}", program.display())))?;
    let summary = profile::read(folder.path(), clock)?;
    if common.json {
        let document = summary.json(&chosen, args.profile, exit_number(status));
        crate::matrix_command::print(&format!("{document:#}\n"))?;
    } else {
        tell(&summary, &chosen, args.profile, common.quiet);
    }
    Ok(ExitCode::from(exit_number(status)))
}

/// To standard error; that it cannot be written is nothing to fail for.
fn tell(summary: &profile::Summary, chosen: &Chosen, profiled: bool, quiet: bool) {
    let mut text = String::new();
    if profiled {
        text += &summary.table(chosen);
    }
    if !quiet {
        for note in summary.notes() {
            let _ = writeln!(text, "locklab: {note}");
        }
    }
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}

/// What a shell would say.
fn exit_number(status: ExitStatus) -> u8 {
    status
        .code()
        .or_else(|| status.signal().map(|signal| 128 + signal))
        .and_then(|code| u8::try_from(code).ok())
        .unwrap_or(1)
}

/// Ours goes first: what another interposer passes on should reach ours.
fn preload(library: &Path, others: Option<OsString>) -> OsString {
    let mut list = OsString::from(library);
    if let Some(others) = others.filter(|others| !others.is_empty()) {
        list.push(":");
        list.push(others);
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_interposers_stay_behind_ours() {
        let ours = Path::new("/x/liblocklab_preload.so");
        assert_eq!(preload(ours, None), OsStr::new("/x/liblocklab_preload.so"));
        assert_eq!(
            preload(ours, Some("".into())),
            OsStr::new("/x/liblocklab_preload.so")
        );
        assert_eq!(
            preload(ours, Some("/y.so".into())),
            OsStr::new("/x/liblocklab_preload.so:/y.so")
        );
    }

    #[test]
    fn the_exit_status_is_the_programs() {
        assert_eq!(exit_number(ExitStatus::from_raw(3 << 8)), 3);
        assert_eq!(exit_number(ExitStatus::from_raw(9)), 137);
    }
}
