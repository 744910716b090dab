//! A forked child that computes: how it begins, what it may use, how its faults
//! are seen, and the wait for its end. Nothing else in Locklab forks.
//!
//! A fork, not a new program: the work is a value, which may hold what no
//! command line can name. How an answer comes back is the caller's business.
//! A child must never return into its parent's code, flush its parent's
//! buffers, or outlive it.

use nix::errno::Errno;
use nix::sys::prctl::set_pdeathsig;
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};
use nix::sys::wait::WaitStatus;
use nix::unistd::{ForkResult, Pid, fork, getpid, getppid};
use std::ffi::{c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

/// A handler that the kernel tells the reason and the place of a signal.
pub type Handler = extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void);

/// Size of the stack of handlers, in bytes.
const STACK: usize = 64 << 10;

/// The exit status of a child whose work panicked.
pub const PANICKED: u8 = 101;

/// Forks a child that does `work` and ends with the status that it returns, or
/// [`PANICKED`]. It gets SIGKILL if its parent ends, leaves no core file, and may use
/// `memory` bytes of addresses, if that is limited: an endless loop that allocates must
/// not take the machine with it.
///
/// # Errors
/// There is no room for another process.
///
/// # Safety
/// `work` uses nothing that another thread of the parent may hold, but for the
/// allocator and the loader, which glibc keeps usable.
pub unsafe fn start(memory: Option<u64>, work: impl FnOnce() -> u8) -> nix::Result<Pid> {
    let parent = getpid();
    // SAFETY: the caller's promise; the child ends below.
    if let ForkResult::Parent { child } = unsafe { fork() }? {
        return Ok(child);
    }
    let _ = set_pdeathsig(Signal::SIGKILL);
    // It may have ended before.
    if getppid() != parent {
        // SAFETY: ends this process only.
        unsafe { libc::_exit(0) };
    }
    let _ = setrlimit(Resource::RLIMIT_CORE, 0, 0);
    if let Some(bytes) = memory {
        let _ = setrlimit(Resource::RLIMIT_AS, bytes, bytes);
    }
    let status = catch_unwind(AssertUnwindSafe(work)).unwrap_or(PANICKED);
    // SAFETY: ends the process at once, without the parent's destructors.
    unsafe { libc::_exit(status.into()) }
}

/// Waits for the end of a child; returns how it ended, and its CPU time, which
/// unlike the time that passed depends little on what else runs.
pub fn wait(child: Pid) -> (nix::Result<WaitStatus>, Duration) {
    let mut status = 0;
    // SAFETY: plain data, for which zeros stand for nothing.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    loop {
        // SAFETY: both are ours to write.
        let waited = unsafe { libc::wait4(child.as_raw(), &raw mut status, 0, &raw mut usage) };
        match Errno::result(waited) {
            Err(Errno::EINTR) => {}
            Err(error) => return (Err(error), Duration::ZERO),
            Ok(_) => break,
        }
    }
    let time = |time: libc::timeval| {
        Duration::from_secs(time.tv_sec as u64) + Duration::from_micros(time.tv_usec as u64)
    };
    let cpu = time(usage.ru_utime) + time(usage.ru_stime);
    (WaitStatus::from_raw(child, status), cpu)
}

/// Handles these signals in a child, on a stack of their own, because that of
/// the work may have overflowed.
///
/// # Safety
/// The handler does only what one may; it is called on the thread that calls
/// this.
pub unsafe fn on_signals(signals: &[Signal], handler: Handler) {
    let stack: &'static mut [u8] = Box::leak(vec![0; STACK].into_boxed_slice());
    let stack = libc::stack_t {
        ss_sp: stack.as_mut_ptr().cast(),
        ss_flags: 0,
        ss_size: STACK,
    };
    let flags = SaFlags::SA_SIGINFO | SaFlags::SA_ONSTACK;
    let action = SigAction::new(SigHandler::SigAction(handler), flags, SigSet::all());
    // SAFETY: the stack is leaked; the caller's promise.
    unsafe {
        libc::sigaltstack(&raw const stack, std::ptr::null_mut());
        for signal in signals {
            let _ = sigaction(*signal, &action);
        }
    }
}

/// Calls a handler every second of `timer` (`libc::ITIMER_REAL`, or CPU time as
/// `libc::ITIMER_PROF`), on the stack of [`on_signals`].
///
/// # Safety
/// The handler does only what one may, and [`on_signals`] was called before.
pub unsafe fn every_second(timer: c_int, handler: Handler) {
    let signal = match timer {
        libc::ITIMER_PROF => Signal::SIGPROF,
        _ => Signal::SIGALRM,
    };
    let flags = SaFlags::SA_SIGINFO | SaFlags::SA_ONSTACK | SaFlags::SA_RESTART;
    let action = SigAction::new(SigHandler::SigAction(handler), flags, SigSet::all());
    let second = libc::timeval {
        tv_sec: 1,
        tv_usec: 0,
    };
    let every = libc::itimerval {
        it_interval: second,
        it_value: second,
    };
    // SAFETY: the caller's promise.
    unsafe {
        let _ = sigaction(signal, &action);
        libc::setitimer(timer as _, &raw const every, std::ptr::null_mut());
    }
}

/// Returns the instruction and the stack pointer of the thread that a handler
/// interrupted; zeros on a processor that this module does not know.
#[must_use]
pub fn interrupted_at(context: *mut c_void) -> (usize, usize) {
    // SAFETY: what the kernel gives a handler.
    let context = unsafe { &*context.cast::<libc::ucontext_t>() };
    #[cfg(target_arch = "x86_64")]
    {
        let registers = &context.uc_mcontext.gregs;
        (
            registers[libc::REG_RIP as usize] as usize,
            registers[libc::REG_RSP as usize] as usize,
        )
    }
    #[cfg(target_arch = "aarch64")]
    {
        let machine = &context.uc_mcontext;
        (machine.pc as usize, machine.sp as usize)
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    {
        let _ = context;
        (0, 0)
    }
}
