//! One run of an unmodified program on another lock.
//!
//! Sets the variables that the interposer reads, runs the program, and reads
//! the profile that the interposer left. The program's streams and exit status
//! are passed through.

use crate::names::{Chosen, GLIBC, choose};
use crate::not_loaded::{self, Watch};
use crate::profile::{Clock, Summary, read};
use crate::signals;
use crate::wait::Wait;
use locklab_document::Document;
use locklab_document::render::{self, Colour};
use locklab_host::error::Error;
use locklab_host::process::not_started;
use locklab_host::shell::quoted;
use locklab_profile::{FOLDER_VARIABLE, PROFILE_VARIABLE};
use serde_json::Value;
#[cfg(test)]
use std::ffi::OsStr;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

/// The program to run, and its lock.
#[derive(Clone, Debug)]
pub struct Program {
    /// The lock, by its name in the catalogue or by LiTL's.
    pub lock: String,
    /// The lock of rwlocks; by default the same if it has readers, and otherwise
    /// glibc's.
    pub rwlock: Option<String>,
    /// Says how its waiters wait; by default as its LiTL name implies, or barging.
    pub wait: Option<Wait>,
    /// Says whether each acquisition is timed.
    pub profile: bool,
    /// The program and its arguments.
    pub command: Vec<OsString>,
}

/// A program that is ready to be started.
#[derive(Debug)]
pub struct Ready {
    chosen: Chosen,
    profile: bool,
    command: Vec<OsString>,
    library: PathBuf,
    variables: Vec<(&'static str, OsString)>,
}

/// A program that has ended.
pub struct Ended {
    /// Its exit status as a shell gives it.
    pub status: u8,
    summary: Summary,
    chosen: Chosen,
    profile: bool,
    /// The name of the program's file.
    program: String,
    /// Holds what kept the interposer out of the program, or a part of it.
    without: Vec<String>,
    /// Holds what else its end says.
    told: Option<String>,
}

impl Program {
    /// Finds the lock and the interposer.
    ///
    /// # Errors
    /// [`Error::Usage`] if there is no program, no such lock, or none that could
    /// wait as was asked for,
    /// [`Error::Failed`] if the interposer is not built.
    pub fn ready(self) -> Result<Ready, Error> {
        let mut chosen = choose(&self.lock, self.wait)?;
        if let Some(rwlock) = &self.rwlock {
            chosen = chosen.with_rwlock(rwlock)?;
        }
        if self.wait.is_some() && chosen.lock == GLIBC && chosen.rwlock == GLIBC {
            return Err(Error::Usage(
                "--wait is for locks of Locklab, and glibc's locks wait as glibc does; leave it out"
                    .into(),
            ));
        }
        let library = locklab_libraries::interposer()?;
        if self.command.is_empty() {
            return Err(Error::Usage("name a program to run, after --".into()));
        }
        let others = std::env::var_os("LD_PRELOAD");
        Ok(Ready {
            variables: vec![
                ("LD_PRELOAD", preload(&library, others)),
                ("LOCKLAB_LOCK", chosen.lock.into()),
                ("LOCKLAB_WAIT", chosen.wait.name().into()),
                ("LOCKLAB_RWLOCK", chosen.rwlock.into()),
            ],
            chosen,
            profile: self.profile,
            command: self.command,
            library,
        })
    }
}

/// Returns the shell command that runs a program with these variables.
pub(crate) fn line_of(variables: &[(&str, OsString)], command: &[OsString]) -> String {
    let mut line = String::from("env");
    for (name, value) in variables {
        let _ = write!(line, " {name}={}", quoted(&value.to_string_lossy()));
    }
    for word in command {
        let _ = write!(line, " {}", quoted(&word.to_string_lossy()));
    }
    line
}

impl Ready {
    /// Returns the shell command for the same run.
    #[must_use]
    pub fn line(&self) -> String {
        line_of(&self.variables, &self.command)
    }

    /// Runs it to its end. With `quiet_output` its standard output goes to
    /// standard error.
    ///
    /// # Errors
    /// [`Error::Failed`] if the program does not start, no temporary folder can
    /// be made, or the interposer's report cannot be read.
    pub fn run(mut self, quiet_output: bool) -> Result<Ended, Error> {
        let folder = tempfile::Builder::new()
            .prefix("locklab-run-")
            .tempdir()
            .map_err(|e| Error::Failed(format!("no temporary folder for the report: {e}")))?;
        self.variables.push((FOLDER_VARIABLE, folder.path().into()));
        if self.profile {
            self.variables.push((PROFILE_VARIABLE, "1".into()));
        }
        let clock = Clock::start();
        let program = &self.command[0];
        let mut command = Command::new(program);
        command.args(&self.command[1..]).envs(self.variables);
        if !self.profile {
            command.env_remove(PROFILE_VARIABLE);
        }
        if quiet_output {
            command.stdout(Stdio::from(std::io::stderr()));
        }
        // The profile until the signal is still reported.
        signals::listen();
        let mut watch = None;
        let status = command
            .spawn()
            .and_then(|child| {
                watch = Some(Watch::begin(child.id(), &self.library));
                signals::wait(child)
            })
            .map_err(|e| not_started(Path::new(program), &e))?;
        let file = Path::new(program).file_name().unwrap_or_default();
        let mut without: Vec<_> = not_loaded::why(program).into_iter().collect();
        for other in watch.map(Watch::end).unwrap_or_default() {
            if !without.contains(&other) {
                without.push(other);
            }
        }
        Ok(Ended {
            without,
            told: ended_by_a_filter(status),
            program: file.to_string_lossy().into_owned(),
            status: exit_number(status),
            summary: read(folder.path(), clock)?,
            chosen: self.chosen,
            profile: self.profile,
        })
    }
}

impl Ended {
    /// Returns the findings of the interposer as JSON.
    #[must_use]
    pub fn json(&self) -> Value {
        self.summary.json(&self.chosen, self.profile, self.status)
    }

    /// Returns the profile, if there is one, as an HTML page.
    #[must_use]
    pub fn html(&self) -> Option<String> {
        self.profile.then(|| render::html(&self.document()))
    }

    fn document(&self) -> Document {
        self.summary.document(&self.chosen, &self.program)
    }

    /// Returns the findings of the interposer as text: a table if the run was profiled,
    /// and notes unless `quiet`.
    #[must_use]
    pub fn text(&self, quiet: bool) -> String {
        let mut text = String::new();
        if self.profile {
            let document = self.document();
            text += &render::text(&document, Colour::Plain);
        }
        if !quiet {
            let mut notes = self.summary.notes(&self.chosen, &self.program);
            notes.extend(self.summary.not_interposed(&self.without, self.status));
            notes.extend(self.told.clone());
            for note in notes {
                let _ = writeln!(text, "locklab: {note}");
            }
        }
        text
    }
}

/// Returns what a seccomp filter has to do with this end, if anything.
pub(crate) fn ended_by_a_filter(status: ExitStatus) -> Option<String> {
    (status.signal() == Some(31)).then(|| {
        "SIGSYS ended the program: a seccomp filter forbids a system call, of the program's or \
         of the library in it; one that is there when the program starts is respected"
            .into()
    })
}

/// Returns the exit status as a shell gives it.
pub fn exit_number(status: ExitStatus) -> u8 {
    status
        .code()
        .or_else(|| status.signal().map(|signal| 128 + signal))
        .and_then(|code| u8::try_from(code).ok())
        .unwrap_or(1)
}

/// Returns the list of libraries to preload. Locklab's goes first: calls that another
/// interposer forwards should reach it.
pub(crate) fn preload(library: &Path, others: Option<OsString>) -> OsString {
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
