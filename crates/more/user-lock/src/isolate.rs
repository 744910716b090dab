//! A child process for everything that runs a user's code in a modelled world:
//! a crash, an infinite loop or a wild write is then one failed result, and not
//! the end of the command.
//!
//! The child is a fork: it has the input already, and returns JSON
//! through a pipe. When it dies it still reports where, by a signal handler
//! that only writes numbers. The child must never touch the terminal.

use locklab_host::child::{self, interrupted_at};
use nix::sys::signal::{self, SigHandler, Signal};
use nix::sys::wait::WaitStatus;
use nix::unistd::pipe;
use serde::{Serialize, de::DeserializeOwned};
use std::ffi::c_int;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd as _, FromRawFd as _, RawFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, Once};
use std::time::Duration;

/// The faults that a lock's code can cause.
pub(crate) const FAULTS: [Signal; 5] = [
    Signal::SIGSEGV,
    Signal::SIGBUS,
    Signal::SIGILL,
    Signal::SIGFPE,
    Signal::SIGTRAP,
];

/// The latest access of the lock's code, to report where it ended.
/// Read by a signal handler of the same process, so Relaxed will do.
pub(crate) static SITE: AtomicUsize = AtomicUsize::new(0);
/// The simulated CPU, or checked thread, that made the latest access.
pub(crate) static CPU: AtomicUsize = AtomicUsize::new(0);
/// Number of accesses so far.
pub(crate) static ACCESSES: AtomicU64 = AtomicU64::new(0);
/// The address range of the library's code.
static CODE: [AtomicUsize; 2] = [const { AtomicUsize::new(0) }; 2];

/// Describes how a child ended without an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Death {
    /// The signal; `SIGALRM` if it was stopped because it made no progress.
    pub(crate) signal: i32,
    /// The address that could not be accessed.
    pub(crate) address: usize,
    /// The instruction, if it belongs to the library; otherwise 0.
    pub(crate) instruction: usize,
    /// The latest access that was reported.
    pub(crate) site: usize,
    /// The stack pointer.
    pub(crate) stack: usize,
    /// The CPU, or thread.
    pub(crate) cpu: usize,
    /// The load address of the library.
    pub(crate) base: usize,
}

impl Death {
    /// Its size in a pipe.
    pub(crate) const BYTES: usize = 56;

    /// Returns the bytes that a handler writes into a pipe.
    pub(crate) fn to_bytes(self) -> [u8; Self::BYTES] {
        let numbers = [
            self.signal as usize,
            self.address,
            self.instruction,
            self.site,
            self.stack,
            self.cpu,
            self.base,
        ];
        let mut bytes = [0; Self::BYTES];
        for (at, number) in numbers.iter().enumerate() {
            bytes[8 * at..8 * at + 8].copy_from_slice(&number.to_ne_bytes());
        }
        bytes
    }

    /// Reads it as it was written.
    pub(crate) fn of_bytes(bytes: &[u8; Self::BYTES]) -> Self {
        let number = |at: usize| {
            let mut number = [0; 8];
            number.copy_from_slice(&bytes[8 * at..8 * at + 8]);
            usize::from_ne_bytes(number)
        };
        Self {
            signal: number(0) as i32,
            address: number(1),
            instruction: number(2),
            site: number(3),
            stack: number(4),
            cpu: number(5),
            base: number(6),
        }
    }
}

/// Says why a child returned no result.
#[derive(Debug)]
pub(crate) enum Lost {
    /// The lock's code ended the child.
    Died(Death),
    /// The lock's code has detected a fault in itself.
    GaveUp(String),
    /// It panicked, or could not be started.
    Broken(String),
}

/// One child is made at a time, so that no other inherits the end of the pipe
/// that shows its parent when it has ended.
static FORKING: Mutex<()> = Mutex::new(());

/// Says whether this process is a child.
static IN_CHILD: AtomicBool = AtomicBool::new(false);

/// Returns whether this process is a child.
pub(crate) fn in_a_child() -> bool {
    IN_CHILD.load(Ordering::Relaxed)
}

/// Silences the panics of children: they are results. (Set up in the parent,
/// because another thread of it may hold the hook's lock when a child is made,
/// which then could never take it.)
fn hush_children() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !IN_CHILD.load(Ordering::Relaxed) {
                before(info);
            }
        }));
    });
}

/// Runs `work` in a child process.
pub(crate) fn in_child<T: Serialize + DeserializeOwned>(
    patience: Duration,
    work: impl FnOnce() -> T,
) -> Result<T, Lost> {
    let broken = |what: &str, e: &dyn std::fmt::Display| {
        Lost::Broken(format!("cannot {what} a child process: {e}"))
    };
    let (mut read, child) = {
        let _one = FORKING.lock().unwrap_or_else(|e| e.into_inner());
        hush_children();
        let (read, write) = pipe().map_err(|e| broken("make a pipe to", &e))?;
        let parents = read.as_raw_fd();
        let work = || {
            // SAFETY: the child's copy of an end that only its parent uses.
            unsafe { libc::close(parents) };
            answer(write.as_raw_fd(), patience, work);
            0
        };
        // SAFETY: the child uses nothing but memory, the loader and its pipe.
        let child = unsafe { child::start(None, work) };
        (File::from(read), child.map_err(|e| broken("start", &e))?)
    };
    let mut message = Vec::new();
    let heard = read.read_to_end(&mut message);
    let (status, _) = child::wait(child);
    heard.map_err(|e| broken("hear from", &e))?;
    match (message.first(), message.get(1..).unwrap_or_default()) {
        (Some(b'A'), rest) => serde_json::from_slice(rest).map_err(|e| broken("understand", &e)),
        (Some(b'L'), rest) => Err(Lost::GaveUp(String::from_utf8_lossy(rest).into_owned())),
        (Some(b'P'), rest) => Err(Lost::Broken(String::from_utf8_lossy(rest).into_owned())),
        (Some(b'D'), rest) if rest.len() == Death::BYTES => {
            let mut bytes = [0; Death::BYTES];
            bytes.copy_from_slice(rest);
            Err(Lost::Died(Death::of_bytes(&bytes)))
        }
        _ => Err(Lost::Broken(match status {
            Ok(WaitStatus::Signaled(_, signal, _)) => format!(
                "the child process was ended by {signal}, from outside or for want of memory"
            ),
            Ok(WaitStatus::Exited(_, code)) => format!(
                "the lock's code ended its process with exit code {code}: it must return instead"
            ),
            other => format!("the child process ended without an answer ({other:?})"),
        })),
    }
}

/// Sets the address range of the library for the signal handlers.
pub(crate) fn watch_code(base: usize, code: &std::ops::Range<usize>) {
    CODE[0].store(code.start, Ordering::Relaxed);
    CODE[1].store(code.end, Ordering::Relaxed);
    BASE.store(base, Ordering::Relaxed);
}

static BASE: AtomicUsize = AtomicUsize::new(0);
static PIPE: AtomicI32 = AtomicI32::new(-1);
/// Seconds without an access, and the limit on them.
static QUIET: [AtomicU32; 2] = [const { AtomicU32::new(0) }; 2];
static ACCESSES_THEN: AtomicU64 = AtomicU64::new(0);

/// Ends a child because the lock's code has detected a fault.
pub(crate) fn give_up(why: &str) -> ! {
    let message = [b"L", why.as_bytes()].concat();
    // SAFETY: our pipe and our bytes.
    unsafe {
        libc::write(
            PIPE.load(Ordering::Relaxed),
            message.as_ptr().cast(),
            message.len(),
        );
        libc::_exit(1)
    }
}

/// Runs the child process from start to end.
fn answer<T: Serialize>(write: RawFd, patience: Duration, work: impl FnOnce() -> T) {
    PIPE.store(write, Ordering::Relaxed);
    QUIET[1].store(patience.as_secs().max(1) as u32, Ordering::Relaxed);
    install();
    IN_CHILD.store(true, Ordering::Relaxed);
    let message = match catch_unwind(AssertUnwindSafe(work)) {
        Ok(answer) => match serde_json::to_vec(&answer) {
            Ok(json) => [b"A", &*json].concat(),
            Err(e) => format!("Pan answer that cannot be written: {e}").into_bytes(),
        },
        Err(payload) => {
            let text = payload
                .downcast_ref::<String>()
                .map(String::as_str)
                .or_else(|| payload.downcast_ref::<&str>().copied())
                .unwrap_or("a panic without a message");
            format!("P{text}").into_bytes()
        }
    };
    // SAFETY: the child's end of the pipe, which it uses no more.
    let _ = unsafe { File::from_raw_fd(write) }.write_all(&message);
}

/// Handles faults of the lock's code, checks every second whether it makes
/// progress, and lets Ctrl-C end it.
fn install() {
    let faults = [&FAULTS[..], &[Signal::SIGABRT]].concat();
    // SAFETY: both handlers only use atomics, write to a pipe and end.
    unsafe {
        child::on_signals(&faults, died);
        child::every_second(libc::ITIMER_REAL as _, tick);
        for signal in [Signal::SIGINT, Signal::SIGTERM] {
            let _ = signal::signal(signal, SigHandler::SigDfl);
        }
    }
}

/// Returns the address to which the function that was interrupted returns, if it has
/// called none and has saved nothing: one that copies or fills memory, or none
/// at all, where a jump led nowhere.
pub(crate) fn called_from(context: *mut libc::c_void) -> usize {
    #[cfg(target_arch = "x86_64")]
    {
        let (_, stack) = interrupted_at(context);
        // SAFETY: the top of the stack of a thread that has just made a call.
        let returns = unsafe { (stack as *const usize).read() };
        returns.saturating_sub(1)
    }
    #[cfg(target_arch = "aarch64")]
    {
        // SAFETY: what the kernel gives a handler.
        let context = unsafe { &*context.cast::<libc::ucontext_t>() };
        (context.uc_mcontext.regs[30] as usize).saturating_sub(1)
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    {
        let _ = context;
        0
    }
}

/// Returns whether an instruction is one of the library.
pub(crate) fn is_within_library(instruction: usize) -> bool {
    (CODE[0].load(Ordering::Relaxed)..CODE[1].load(Ordering::Relaxed)).contains(&instruction)
}

extern "C" fn died(signal: c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: what the kernel gives a handler; an address only for some.
    let address = unsafe { (*info).si_addr() } as usize;
    say_death(signal, address, context)
}

extern "C" fn tick(_: c_int, _: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let (instruction, _) = interrupted_at(context);
    let accesses = ACCESSES.load(Ordering::Relaxed);
    if accesses != ACCESSES_THEN.swap(accesses, Ordering::Relaxed)
        || !is_within_library(instruction)
    {
        QUIET[0].store(0, Ordering::Relaxed);
    } else if QUIET[0].fetch_add(1, Ordering::Relaxed) + 1 >= QUIET[1].load(Ordering::Relaxed) {
        say_death(libc::SIGALRM, 0, context);
    }
}

fn say_death(signal: c_int, address: usize, context: *mut libc::c_void) -> ! {
    static SAID: AtomicBool = AtomicBool::new(false);
    // Two threads may crash at once: the second waits until the first has ended
    // the process.
    while SAID.swap(true, Ordering::Relaxed) {
        // SAFETY: it may be called in a handler.
        unsafe { libc::pause() };
    }
    let (instruction, stack) = interrupted_at(context);
    let death = Death {
        signal,
        address,
        instruction: if is_within_library(instruction) {
            instruction
        } else {
            0
        },
        site: SITE.load(Ordering::Relaxed),
        stack,
        cpu: CPU.load(Ordering::Relaxed),
        base: BASE.load(Ordering::Relaxed),
    };
    let mut message = [b'D'; 1 + Death::BYTES];
    message[1..].copy_from_slice(&death.to_bytes());
    // SAFETY: our pipe and our bytes; both calls may be made in a handler.
    unsafe {
        libc::write(
            PIPE.load(Ordering::Relaxed),
            message.as_ptr().cast(),
            message.len(),
        );
        libc::_exit(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU32;

    /// Two threads of a lock often crash in the same moment.
    #[test]
    fn two_threads_that_crash_at_once_are_one_death() {
        for _ in 0..200 {
            let lost = in_child(Duration::from_secs(10), || {
                let here = AtomicU32::new(0);
                let crash = || {
                    here.fetch_add(1, Ordering::AcqRel);
                    while here.load(Ordering::Acquire) < 2 {}
                    // SAFETY: the signal comes to this thread.
                    unsafe { libc::raise(libc::SIGSEGV) };
                };
                std::thread::scope(|scope| {
                    scope.spawn(crash);
                    crash();
                });
            });
            let Err(Lost::Died(Death { signal, .. })) = lost else {
                panic!("{lost:?}");
            };
            assert_eq!(signal, libc::SIGSEGV);
        }
    }
}
