//! Runs one program once: started in a process group of its own, pinned, logged
//! and limited in time; and the resources that it used.
//!
//! The figures are those that the kernel accounts to the program and the
//! children that it waited for (wait4). Must never end a process that it did
//! not start: a run that takes too long is killed by its group, while its
//! leader is still there to hold the group's number.

use crate::error::Error;
use nix::sched::{CpuSet, sched_setaffinity};
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::fs::File;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use std::{io, mem};

/// Returns the failure of a program that did not start, with the folder from which a
/// relative path was followed.
#[must_use]
pub fn not_started(program: &Path, why: &io::Error) -> Error {
    let followed = program.is_relative() && program.components().count() > 1;
    let folder = std::env::current_dir().ok().filter(|_| followed);
    let folder = folder.map_or(String::new(), |folder| format!(" in {}", folder.display()));
    Error::Failed(format!(
        "{} does not start{folder}: {why}",
        program.display()
    ))
}

/// A program with its arguments and environment.
#[derive(Clone, Debug)]
pub struct Launch {
    /// The path of the executable.
    pub program: PathBuf,
    /// Arguments after the program's name.
    pub arguments: Vec<OsString>,
    /// Variables that are set in addition to the inherited ones.
    pub environment: Vec<(OsString, OsString)>,
    /// The folder that it runs in.
    pub folder: PathBuf,
    /// CPUs that it may use; empty for all.
    pub cpus: Vec<usize>,
    /// Is true if to drop inherited variables and address randomisation, for
    /// counts that repeat.
    pub fixed: bool,
}

/// The resources that a program and the children it waited for have used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    /// Wall-clock time from its start to its end, in seconds.
    pub elapsed: f64,
    /// CPU time in user mode, in seconds.
    pub user: f64,
    /// CPU time in the kernel, in seconds.
    pub system: f64,
    /// Largest resident set of any one process, in KiB.
    pub max_rss_kib: f64,
    /// Page faults without I/O.
    pub minor_faults: f64,
    /// Page faults with I/O.
    pub major_faults: f64,
    /// Context switches because it waited.
    pub voluntary_switches: f64,
    /// Context switches because another thread was scheduled.
    pub involuntary_switches: f64,
}

/// Says how a program ended.
#[derive(Clone, Debug)]
pub struct Ended {
    /// Its exit code, or the signal that ended it.
    pub status: ExitStatus,
    /// The resources it used.
    pub usage: Usage,
}

/// Names the reason why a run has no regular end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// It could not be started, for the reason given.
    NotStarted(String),
    /// It ran longer than allowed, and was killed with its children.
    TooLong(Duration),
    /// Ctrl-C was pressed: it was killed with its children.
    Interrupted,
}

impl std::fmt::Display for Trouble {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotStarted(why) => f.write_str(why),
            Self::TooLong(limit) => write!(
                f,
                "it ran longer than {} s and was killed with its children",
                limit.as_secs_f64()
            ),
            Self::Interrupted => f.write_str("interrupted"),
        }
    }
}

impl Ended {
    /// Describes the status, if it is not success.
    #[must_use]
    pub fn failure(&self) -> Option<String> {
        match (self.status.code(), self.status.signal()) {
            (Some(0), _) => None,
            (Some(code), _) => Some(format!("exit status {code}")),
            (None, Some(signal)) => Some(match Signal::try_from(signal) {
                Ok(signal) => format!("killed by {signal}"),
                Err(_) => format!("killed by signal {signal}"),
            }),
            (None, None) => Some("it ended without a status".into()),
        }
    }
}

/// A running program. When dropped, it is killed with its process group.
#[derive(Debug)]
pub struct Running {
    pid: Pid,
    pidfd: std::os::fd::OwnedFd,
    started: Instant,
    reaped: bool,
}

/// Says what to do if a fixed memory layout was refused: the default seccomp filters
/// of container engines forbid it, and answer with one of these errors.
fn forbidden_layout(error: &io::Error) -> &'static str {
    let error = error.raw_os_error().map(nix::errno::Errno::from_raw);
    match error {
        Some(nix::errno::Errno::EPERM | nix::errno::Errno::ENOSYS) => {
            "; a fixed memory layout may be forbidden here: run the container with \
             --security-opt seccomp=unconfined"
        }
        _ => "",
    }
}

impl Launch {
    /// Starts it, with its output in files named after `log` (`NAME.out`,
    /// `NAME.err`).
    ///
    /// # Errors
    /// [`Trouble::NotStarted`] if a log cannot be written, a CPU to pin to does
    /// not exist, or the program cannot be started or watched.
    pub fn start(&self, log: &Path) -> Result<Running, Trouble> {
        let file = |end: &str| {
            let path = log.with_extension(end);
            File::create(&path).map_err(|e| {
                Trouble::NotStarted(format!("cannot write the log {}: {e}", path.display()))
            })
        };
        let mut command = Command::new(&self.program);
        if self.fixed {
            command.env_clear();
        }
        command
            .args(&self.arguments)
            .envs(self.environment.iter().map(|(k, v)| (k, v)))
            .current_dir(&self.folder)
            .stdin(Stdio::null())
            .stdout(file("out")?)
            .stderr(file("err")?)
            .process_group(0);
        let mut set = CpuSet::new();
        for cpu in &self.cpus {
            set.set(*cpu).map_err(|e| {
                Trouble::NotStarted(format!("there is no CPU {cpu} to pin to: {e}"))
            })?;
        }
        let (pin, fixed) = (!self.cpus.is_empty(), self.fixed);
        // SAFETY: between fork and exec only system calls are made, on values
        // that were prepared before.
        unsafe {
            command.pre_exec(move || {
                if pin {
                    sched_setaffinity(Pid::from_raw(0), &set).map_err(io::Error::from)?;
                }
                if fixed {
                    use nix::sys::personality::{Persona, get, set};
                    let now = get().map_err(io::Error::from)?;
                    set(now | Persona::ADDR_NO_RANDOMIZE).map_err(io::Error::from)?;
                }
                // If this process is killed, so is the program. Its children
                // are not, nor is what it becomes if it changes its user.
                nix::sys::prctl::set_pdeathsig(Signal::SIGKILL).map_err(io::Error::from)
            });
        }
        let started = Instant::now();
        let child = command.spawn().map_err(|e| {
            let hint = if fixed { forbidden_layout(&e) } else { "" };
            Trouble::NotStarted(format!(
                "cannot start {}: {e}{hint}",
                self.program.display()
            ))
        })?;
        let pid = Pid::from_raw(child.id() as i32);
        let pidfd = pidfd(pid).map_err(|e| {
            // No other code waits for it.
            let _ = killpg(pid, Signal::SIGKILL);
            let _ = wait4(pid);
            Trouble::NotStarted(format!("cannot watch {}: {e}", self.program.display()))
        })?;
        Ok(Running {
            pid,
            pidfd,
            started,
            reaped: false,
        })
    }

    /// Runs it to its end, at most for `limit`, unless `interrupt` is set.
    ///
    /// # Errors
    /// [`Trouble`] if it did not start, ran too long, or was interrupted.
    pub fn run(
        &self,
        log: &Path,
        limit: Duration,
        interrupt: &AtomicBool,
    ) -> Result<Ended, Trouble> {
        self.start(log)?.wait(limit, interrupt)
    }
}

impl Running {
    /// Returns its process id, which is also that of its group.
    #[must_use]
    pub fn id(&self) -> i32 {
        self.pid.as_raw()
    }

    /// Returns whether it has ended.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        poll(&self.pidfd, Duration::ZERO)
    }

    /// Sends it a signal, for instance to make nginx finish.
    pub fn ask(&self, signal: Signal) {
        if !self.reaped {
            let _ = kill(self.pid, signal);
        }
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// [`Trouble::TooLong`] or [`Trouble::Interrupted`]; it and its children
    /// have been killed then.
    pub fn wait(mut self, limit: Duration, interrupt: &AtomicBool) -> Result<Ended, Trouble> {
        let end = self.started + limit;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            // A short wait, to notice Ctrl-C in time; the end of the program
            // wakes it at once.
            if poll(&self.pidfd, left.min(Duration::from_millis(100))) {
                return Ok(self.reap());
            }
            if interrupt.load(Ordering::Relaxed) {
                return Err(Trouble::Interrupted);
            }
            if left.is_zero() {
                return Err(Trouble::TooLong(limit));
            }
        }
    }

    /// Collects the status of a program that has ended, and kills the processes
    /// that it left.
    fn reap(&mut self) -> Ended {
        let elapsed = self.started.elapsed().as_secs_f64();
        // Before it is waited for, its process id, and so that of its group,
        // cannot be reused.
        let _ = killpg(self.pid, Signal::SIGKILL);
        let (status, usage) = wait4(self.pid);
        self.reaped = true;
        Ended {
            status,
            usage: Usage { elapsed, ..usage },
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.reaped {
            let strays = descendants(self.pid.as_raw());
            let _ = killpg(self.pid, Signal::SIGKILL);
            for pid in strays {
                // Kill also those that made a group of their own.
                let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
            }
            wait4(self.pid);
        }
    }
}

/// Returns every descendant of a process at this moment, by /proc.
fn descendants(pid: i32) -> Vec<i32> {
    let mut found = Vec::new();
    let mut next = vec![pid];
    while let Some(parent) = next.pop() {
        let tasks = std::fs::read_dir(format!("/proc/{parent}/task"));
        for task in tasks.into_iter().flatten().flatten() {
            let children = std::fs::read_to_string(task.path().join("children"));
            for child in children.unwrap_or_default().split_whitespace() {
                if let Ok(child) = child.parse() {
                    found.push(child);
                    next.push(child);
                }
            }
        }
    }
    found
}

fn pidfd(pid: Pid) -> io::Result<std::os::fd::OwnedFd> {
    use std::os::fd::FromRawFd;
    // SAFETY: no pointers; the result is checked.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid.as_raw(), 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a descriptor that the kernel has just given, owned by nobody.
    Ok(unsafe { std::os::fd::OwnedFd::from_raw_fd(fd as i32) })
}

/// Returns whether the descriptor is readable within `wait`.
fn poll(fd: &std::os::fd::OwnedFd, wait: Duration) -> bool {
    use std::os::fd::AsRawFd;
    let mut one = libc::pollfd {
        fd: fd.as_raw_fd(),
        events: libc::POLLIN,
        revents: 0,
    };
    // Rounded up, because otherwise the last millisecond would be a busy loop.
    let wait = i32::try_from(wait.as_micros().div_ceil(1000)).unwrap_or(i32::MAX);
    // SAFETY: one structure, ours.
    unsafe { libc::poll(&raw mut one, 1, wait) > 0 }
}

fn wait4(pid: Pid) -> (ExitStatus, Usage) {
    let mut status = 0;
    // SAFETY: plain numbers, for which zero is a value.
    let mut used: libc::rusage = unsafe { mem::zeroed() };
    loop {
        // SAFETY: both point to values of ours.
        let got = unsafe { libc::wait4(pid.as_raw(), &raw mut status, 0, &raw mut used) };
        if got >= 0 || io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
            break;
        }
    }
    let seconds = |t: libc::timeval| t.tv_sec as f64 + t.tv_usec as f64 / 1e6;
    let usage = Usage {
        elapsed: 0.0,
        user: seconds(used.ru_utime),
        system: seconds(used.ru_stime),
        max_rss_kib: used.ru_maxrss as f64,
        minor_faults: used.ru_minflt as f64,
        major_faults: used.ru_majflt as f64,
        voluntary_switches: used.ru_nvcsw as f64,
        involuntary_switches: used.ru_nivcsw as f64,
    };
    (ExitStatus::from_raw(status), usage)
}

/// Finds a program: a path as it is; a name in `first`, then in `PATH` and the
/// folders of system administration programs.
#[must_use]
pub fn find(program: &str, first: &[PathBuf]) -> Option<PathBuf> {
    let is_program = |path: &Path| {
        use std::os::unix::fs::PermissionsExt;
        let executable = |m: std::fs::Metadata| m.is_file() && m.permissions().mode() & 0o111 != 0;
        path.metadata().is_ok_and(executable)
    };
    if program.contains('/') {
        let path = std::path::absolute(program).ok()?;
        return is_program(&path).then_some(path);
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = first.iter().cloned().chain(std::env::split_paths(&path));
    let administrators = ["/usr/local/sbin", "/usr/sbin", "/sbin"].map(PathBuf::from);
    folders
        .chain(administrators)
        .map(|folder| folder.join(program))
        .find(|file| is_program(file))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Launch {
        Launch {
            program: "/bin/sh".into(),
            arguments: vec!["-c".into(), script.into()],
            environment: vec![],
            folder: "/".into(),
            cpus: vec![],
            fixed: false,
        }
    }

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn a_refused_layout_says_what_allows_it() {
        let hint = |errno| forbidden_layout(&io::Error::from_raw_os_error(errno));
        assert!(hint(nix::errno::Errno::ENOSYS as i32).contains("seccomp"));
        assert!(hint(nix::errno::Errno::EPERM as i32).contains("seccomp"));
        assert_eq!(hint(nix::errno::Errno::ENOENT as i32), "");
    }

    #[test]
    fn an_end_has_its_status_output_and_use() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("run");
        let never = AtomicBool::new(false);
        let ended = shell("echo said; echo heard >&2; exit 3")
            .run(&log, LONG, &never)
            .unwrap();
        assert_eq!(ended.failure().as_deref(), Some("exit status 3"));
        assert!(ended.usage.max_rss_kib > 0.0 && ended.usage.minor_faults > 0.0);
        let read = |end| std::fs::read_to_string(log.with_extension(end)).unwrap();
        assert_eq!(
            (read("out").as_str(), read("err").as_str()),
            ("said\n", "heard\n")
        );
        let killed = shell("kill -9 $$").run(&log, LONG, &never).unwrap();
        assert_eq!(killed.failure().as_deref(), Some("killed by SIGKILL"));
    }

    #[test]
    fn what_hangs_is_killed_with_its_children_and_only_those() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("run");
        let never = AtomicBool::new(false);
        let other = shell("exec sleep 1000")
            .start(&folder.path().join("other"))
            .unwrap();
        // One child in the group, one in a session of its own.
        let script = "sleep 1000 & setsid sleep 1000 & echo $!; wait";
        let trouble = shell(script)
            .run(&log, Duration::from_millis(300), &never)
            .unwrap_err();
        assert_eq!(trouble, Trouble::TooLong(Duration::from_millis(300)));
        let stray = std::fs::read_to_string(log.with_extension("out")).unwrap();
        let stray: i32 = stray.trim().parse().unwrap();
        let gone = || {
            let stat = std::fs::read_to_string(format!("/proc/{stray}/stat"));
            stat.is_err() || stat.is_ok_and(|s| s.contains(") Z "))
        };
        for _ in 0..500 {
            if gone() {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        assert!(gone());
        assert!(!other.has_ended());
    }

    #[test]
    fn ctrl_c_ends_it_and_a_missing_program_is_a_sentence() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("run");
        let now = AtomicBool::new(true);
        let trouble = shell("exec sleep 1000").run(&log, LONG, &now).unwrap_err();
        assert_eq!(trouble, Trouble::Interrupted);
        let missing = Launch {
            program: "/no/such/program".into(),
            ..shell("")
        };
        let text = missing.run(&log, LONG, &now).unwrap_err().to_string();
        assert!(text.contains("cannot start /no/such/program"), "{text}");
        assert_eq!(find("/no/such/program", &[]), None);
        assert!(find("sh", &[]).is_some());
    }
}
