//! Calls of the user's ssh: one command each, with an outer limit.
//!
//! ssh is a program and not a library, so that jump hosts, agents and the
//! user's configuration hold. A connection never outlives its call: one that is
//! shared (ControlMaster) hangs after a kexec. It must never wait for a question
//! or a password, and never for longer than the limit.

use locklab_host::error::Error;
use locklab_host::process::{Launch, Trouble, find};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Says which system of the machine is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum To {
    /// Its own, by the user's configuration alone.
    Home,
    /// A measured kernel of this session, by the session's keys.
    Kernel,
}

/// Says why a call has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NoAnswer {
    /// Nobody answers, somebody else does, or the connection broke.
    Lost(String),
    /// It answered within the limit, and the command did not end.
    TooLong,
    /// The command ran and failed, with this message.
    Refused(String),
    /// The user pressed Ctrl-C.
    Interrupted,
}

impl NoAnswer {
    /// Returns why there is no answer.
    pub(crate) fn why(&self) -> String {
        match self {
            Self::Lost(why) | Self::Refused(why) => why.clone(),
            Self::TooLong => "it took too long".into(),
            Self::Interrupted => "interrupted".into(),
        }
    }
}

/// The status of ssh itself, when it has no status of the command's.
const OWN_STATUS: i32 = 255;

/// ssh to one machine.
#[derive(Clone, Debug)]
pub(crate) struct Ssh {
    program: PathBuf,
    destination: String,
    /// Says where what it prints is kept.
    folder: PathBuf,
    /// Holds what identifies the session's kernels, and the client to them.
    keys: Vec<OsString>,
}

impl Ssh {
    /// Returns the user's ssh to `destination`; what it prints is kept in `folder`.
    ///
    /// # Errors
    /// [`Error::Failed`] if there is no ssh.
    pub(crate) fn new(destination: &str, folder: &Path) -> Result<Self, Error> {
        let program = find("ssh", &[]).ok_or_else(|| {
            Error::Failed("ssh is missing; install it (apt-get install openssh-client)".into())
        })?;
        Ok(Self::by(program, destination, folder))
    }

    /// Returns the same with this program, which tests replace.
    pub(crate) fn by(program: PathBuf, destination: &str, folder: &Path) -> Self {
        let file = |name: &str| folder.join(name).into_os_string();
        let known = |mut text: OsString, name: &str| {
            text.push(file(name));
            text
        };
        let keys = vec![
            "-i".into(),
            file("key"),
            "-o".into(),
            known("UserKnownHostsFile=".into(), "known_hosts"),
        ];
        Self {
            program,
            destination: destination.into(),
            folder: folder.into(),
            keys,
        }
    }

    /// Returns the machine, as ssh knows it.
    pub(crate) fn destination(&self) -> &str {
        &self.destination
    }

    /// Options of a call.
    fn options(&self, to: To) -> Vec<OsString> {
        let mut options: Vec<OsString> = Vec::new();
        let set = |options: &mut Vec<OsString>, text: &str| {
            options.extend(["-o".into(), text.into()]);
        };
        // ssh asks no question, and uses no connection from before a kexec.
        for text in ["BatchMode=yes", "ConnectTimeout=10", "ControlPath=none"] {
            set(&mut options, text);
        }
        if to == To::Kernel {
            options.extend_from_slice(&self.keys);
            options.extend(["-l".into(), "root".into()]);
            for text in [
                "HostKeyAlias=locklab",
                "GlobalKnownHostsFile=/dev/null",
                "StrictHostKeyChecking=yes",
                "IdentitiesOnly=yes",
                "IdentityAgent=none",
                "PreferredAuthentications=publickey",
            ] {
                set(&mut options, text);
            }
        }
        options
    }

    /// Returns the command that a user types to restart the machine from a measured
    /// kernel.
    pub(crate) fn by_hand(&self, command: &str) -> String {
        let options = self.options(To::Kernel);
        let words = options.iter().map(|word| word.to_string_lossy());
        let words: Vec<_> = words.collect();
        format!("ssh {} {} {command}", words.join(" "), self.destination)
    }

    /// Runs a command, with a file as its input, and returns what it prints.
    ///
    /// # Errors
    /// [`NoAnswer`] if it was not run to a successful end.
    pub(crate) fn call(
        &self,
        to: To,
        command: &str,
        input: Option<&Path>,
        limit: Duration,
        interrupt: &AtomicBool,
    ) -> Result<String, NoAnswer> {
        // A call that is refused at once would end before it looked at this.
        if interrupt.load(Ordering::Relaxed) {
            return Err(NoAnswer::Interrupted);
        }
        let input = input.unwrap_or(Path::new("/dev/null"));
        // A shell opens the input; the words are its arguments, so that none of
        // them is read as shell.
        let mut arguments: Vec<OsString> = vec!["-c".into(), r#"exec "$@" <"$0""#.into()];
        arguments.extend([input.into(), self.program.clone().into()]);
        arguments.extend(self.options(to));
        arguments.extend([self.destination.clone().into(), command.into()]);
        let launch = Launch {
            program: "/bin/sh".into(),
            arguments,
            environment: Vec::new(),
            folder: self.folder.clone(),
            cpus: Vec::new(),
            fixed: false,
        };
        let log = self.folder.join(match to {
            To::Home => "home",
            To::Kernel => "kernel",
        });
        let ended = match launch.run(&log, limit, interrupt) {
            Ok(ended) => ended,
            Err(Trouble::Interrupted) => return Err(NoAnswer::Interrupted),
            Err(Trouble::TooLong(_)) => return Err(NoAnswer::TooLong),
            Err(Trouble::NotStarted(why)) => return Err(NoAnswer::Lost(why)),
        };
        let read = |end| std::fs::read(log.with_extension(end)).unwrap_or_default();
        let text = |end| String::from_utf8_lossy(&read(end)).into_owned();
        match ended.status.code() {
            Some(0) => Ok(text("out")),
            Some(OWN_STATUS) | None => Err(NoAnswer::Lost(last_line(&text("err")))),
            Some(_) => Err(NoAnswer::Refused(last_line(&text("err")))),
        }
    }
}

/// Returns the last line that says something, without our own name before it.
fn last_line(text: &str) -> String {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let line = lines.next_back().unwrap_or("it said nothing");
    line.strip_prefix("locklab: ").unwrap_or(line).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn how_a_call_ends_is_told_apart() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("ssh");
        let script = "#!/bin/sh\nfor last; do :; done\ncase $last in\n\
                      echo) cat ;;\nfail) echo 'locklab: no such file' >&2; exit 1 ;;\n\
                      lost) echo 'Connection reset' >&2; exit 255 ;;\nhang) exec sleep 1000 ;;\n\
                      all) echo \"$@\" ;;\nesac\n";
        std::fs::write(&program, script).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        let ssh = Ssh::by(program, "root@testhost", folder.path());
        let never = AtomicBool::new(false);
        let call = |to, command: &str, limit| ssh.call(to, command, None, limit, &never);
        let input = folder.path().join("input");
        std::fs::write(&input, "text").unwrap();
        let echo = ssh.call(To::Home, "echo", Some(&input), LONG, &never);
        assert_eq!(echo.unwrap(), "text");
        let refused = NoAnswer::Refused("no such file".into());
        assert_eq!(call(To::Home, "fail", LONG), Err(refused));
        let lost = NoAnswer::Lost("Connection reset".into());
        assert_eq!(call(To::Kernel, "lost", LONG), Err(lost));
        let short = Duration::from_millis(200);
        assert_eq!(call(To::Kernel, "hang", short), Err(NoAnswer::TooLong));
        // Home has the user's configuration, a kernel the session's keys.
        let home = call(To::Home, "all", LONG).unwrap();
        assert!(home.contains("ControlPath=none") && !home.contains("known_hosts"));
        let kernel = call(To::Kernel, "all", LONG).unwrap();
        assert!(kernel.contains("known_hosts") && kernel.contains("StrictHostKeyChecking=yes"));
    }
}
