//! Forwards signals that are sent to `locklab run` to the program.
//!
//! A signal to the process number of a run is meant for the program: from a
//! service manager, a time limit, or a shell that exits. The terminal sends
//! Ctrl-C to both, so only signals from another process are forwarded. They
//! must never end Locklab, which has a report to write when the program has
//! ended.

use libc::{c_int, c_void, siginfo_t};
use std::process::{Child, ExitStatus};
use std::sync::atomic::{AtomicI32, Ordering};

const FORWARDED: [c_int; 6] = [
    libc::SIGHUP,
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGTERM,
    libc::SIGUSR1,
    libc::SIGUSR2,
];

/// Process id of the program, or 0 if there is none to receive signals.
static PROGRAM: AtomicI32 = AtomicI32::new(0);
/// A signal that arrived before the program was started, or 0.
static EARLY: AtomicI32 = AtomicI32::new(0);

extern "C" fn forward(signal: c_int, info: *mut siginfo_t, _: *mut c_void) {
    // SAFETY: the kernel hands a valid `info` to a handler with SA_SIGINFO.
    // The code of a signal from the kernel (a terminal) is positive.
    if unsafe { (*info).si_code } > 0 {
        return;
    }
    let program = PROGRAM.load(Ordering::SeqCst);
    if program == 0 {
        EARLY.store(signal, Ordering::SeqCst);
    } else {
        // SAFETY: a system call that a handler may make; the program has not
        // been waited for, so its number is its own.
        unsafe { libc::kill(program, signal) };
    }
}

/// Begins to forward. An ignored signal remains ignored, as `nohup` requires.
pub fn listen() {
    for signal in FORWARDED {
        // SAFETY: zeros are a valid action; the handler only makes system
        // calls and touches atomics.
        unsafe {
            let mut old: libc::sigaction = std::mem::zeroed();
            libc::sigaction(signal, std::ptr::null(), &raw mut old);
            if old.sa_sigaction == libc::SIG_IGN {
                continue;
            }
            let mut new: libc::sigaction = std::mem::zeroed();
            let handler: extern "C" fn(c_int, *mut siginfo_t, *mut c_void) = forward;
            new.sa_sigaction = handler as libc::sighandler_t;
            new.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
            libc::sigaction(signal, &raw const new, std::ptr::null_mut());
        }
    }
}

/// Waits for the program, which receives all signals until then.
///
/// # Errors
/// The errors of the system calls that wait.
pub fn wait(mut program: Child) -> std::io::Result<ExitStatus> {
    let number = program.id();
    PROGRAM.store(number.cast_signed(), Ordering::SeqCst);
    let early = EARLY.swap(0, Ordering::SeqCst);
    if early != 0 {
        // SAFETY: a child that has not been waited for.
        unsafe { libc::kill(number.cast_signed(), early) };
    }
    loop {
        // SAFETY: zeros are a valid `siginfo_t`. The child is left to be
        // waited for, so that its number stays its own until nobody sends it
        // signals any more.
        let waited = unsafe {
            let mut info: siginfo_t = std::mem::zeroed();
            libc::waitid(
                libc::P_PID,
                number,
                &raw mut info,
                libc::WEXITED | libc::WNOWAIT,
            )
        };
        let interrupted = std::io::Error::last_os_error().kind() == std::io::ErrorKind::Interrupted;
        if waited == 0 || !interrupted {
            break;
        }
    }
    PROGRAM.store(0, Ordering::SeqCst);
    program.wait()
}
