//! A program that waits to begin until its events are open.
//!
//! The kernel enables the events as the program's image replaces ours, so none of what we do
//! between fork and exec is recorded. Must never start anything twice.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;

/// A process that has been forked and waits before its exec.
pub(crate) struct Waiting {
    /// Its number.
    pub(crate) process: u32,
    go: File,
    spawn: JoinHandle<io::Result<Child>>,
}

fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut ends = [0; 2];
    // SAFETY: two numbers to write into.
    if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just opened both for nobody else.
    Ok(ends.map(|end| unsafe { OwnedFd::from_raw_fd(end) }).into())
}

impl Waiting {
    /// Forks the process that will run the program. With `quiet_output` the program's
    /// standard output goes to standard error.
    ///
    /// # Errors
    /// Those of the system calls.
    pub(crate) fn fork(words: &[OsString], quiet_output: bool) -> io::Result<Self> {
        let (number_read, number_write) = pipe()?;
        let (go_read, go_write) = pipe()?;
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]);
        if quiet_output {
            command.stdout(Stdio::from(io::stderr()));
        }
        let numbers = [
            number_write.as_raw_fd(),
            go_read.as_raw_fd(),
            go_write.as_raw_fd(),
        ];
        let before = move || {
            let [number, go, other] = numbers;
            let mut byte = 0_u8;
            // SAFETY: system calls that are permitted between fork and exec, on files that
            // the parent keeps open until the child has begun, and on memory of ours.
            unsafe {
                let own = libc::getpid().to_ne_bytes();
                if libc::write(number, own.as_ptr().cast(), own.len()) < 0 {
                    return Err(io::Error::last_os_error());
                }
                // Else it would wait for itself if the parent ended.
                libc::close(other);
                loop {
                    match libc::read(go, (&raw mut byte).cast(), 1) {
                        1 => return Ok(()),
                        0 => return Err(io::Error::from_raw_os_error(libc::ECANCELED)),
                        _ if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => {}
                        _ => return Err(io::Error::last_os_error()),
                    }
                }
            }
        };
        // SAFETY: it makes only system calls.
        unsafe { command.pre_exec(before) };
        // The call returns after the exec, so another thread makes it.
        let spawn = std::thread::spawn(move || {
            let child = command.spawn();
            drop((number_write, go_read));
            child
        });
        let mut number = [0; 4];
        let waits = File::from(number_read).read_exact(&mut number);
        match waits {
            Ok(()) => Ok(Self {
                process: u32::from_ne_bytes(number),
                go: go_write.into(),
                spawn,
            }),
            // The fork has failed, and says why.
            Err(e) => match spawn.join() {
                Ok(Err(why)) => Err(why),
                _ => Err(e),
            },
        }
    }

    /// Lets it begin.
    ///
    /// # Errors
    /// Why the program does not start.
    pub(crate) fn begin(mut self) -> io::Result<Child> {
        self.go.write_all(&[1])?;
        self.spawn
            .join()
            .unwrap_or_else(|_| Err(io::Error::other("the thread that starts it has ended")))
    }

    /// Ends it without an exec.
    pub(crate) fn cancel(self) {
        drop(self.go);
        // Nothing is told twice: the caller has a reason already.
        drop(self.spawn.join());
    }
}
