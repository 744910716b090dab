//! System calls that a sandbox may forbid: a seccomp filter may end the process for one.
//!
//! Must never make such a call in the program itself to find out: a child makes it, whose
//! end no handler of the program's hears of. Without a filter there is no child.

use core::ptr;
use libc::{c_int, c_long};

/// Returns whether `attempt` ends and returns `true`, in this process as it is now. It may
/// make system calls by their number, and nothing else.
///
/// A filter that the program installs later is not known.
pub fn allows(attempt: fn() -> bool) -> bool {
    !has_filter() || a_child_may(attempt)
}

/// Returns whether the process has a seccomp filter. (`prctl` says it too, and may itself be
/// forbidden; a loader has just opened and read files.)
fn has_filter() -> bool {
    const LINE: &[u8] = b"\nSeccomp:\t2";
    let mut text = [0u8; 4096];
    // SAFETY: a C string, and a buffer of ours of that size.
    let read = unsafe {
        let file = libc::open(
            c"/proc/self/status".as_ptr(),
            libc::O_RDONLY | libc::O_CLOEXEC,
        );
        if file < 0 {
            return false;
        }
        let read = libc::read(file, text.as_mut_ptr().cast(), text.len());
        libc::close(file);
        read
    };
    let read = usize::try_from(read).unwrap_or(0);
    text[..read].windows(LINE.len()).any(|part| part == LINE)
}

/// Returns whether a child ends well that makes the attempt. It is a copy of the process
/// that sends no signal when it ends.
fn a_child_may(attempt: fn() -> bool) -> bool {
    let none: c_long = 0;
    // SAFETY: without shared memory or a stack of its own, as by `fork`; the child calls the
    // kernel only, and ends.
    unsafe {
        let child = libc::syscall(libc::SYS_clone, none, none, none, none, none);
        if child == 0 {
            let status = c_int::from(!attempt());
            loop {
                libc::syscall(libc::SYS_exit_group, status);
            }
        }
        if child < 0 {
            return false;
        }
        let mut status: c_int = 0;
        loop {
            let ended = libc::syscall(
                libc::SYS_wait4,
                child,
                &raw mut status,
                libc::__WALL,
                ptr::null_mut::<libc::rusage>(),
            );
            if ended == child {
                return libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0;
            }
            if ended < 0 && *libc::__errno_location() != libc::EINTR {
                return false;
            }
        }
    }
}
