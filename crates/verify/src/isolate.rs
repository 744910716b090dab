//! A model in a process of its own: what a lock does to its memory, its
//! stack or its time is a failed promise, never the end of the checker.
//!
//! A fork, not a new program: a model is a value, which may hold what no
//! command line can name, and the same works under `cargo test`. The child
//! has one thread, computes, leaves its answer in memory that it shares with
//! its parent ([`Journal`]), and ends without running anybody's exit code.
//! Nothing here may be called by a thread that holds a lock which the child
//! needs. Where there is no fork, the model runs in this process.

use crate::explore::Failure;
use crate::journal::Journal;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::time::Duration;

/// What a process for a model has left.
pub(crate) struct Ended<R> {
    /// Its answer, or how it ended if it did before it could answer.
    pub(crate) answer: Result<R, Crash>,
    /// CPU time that it took: unlike the time that passed, it depends little on
    /// what else runs.
    pub(crate) cpu: Duration,
}

/// How a child ended that left no answer.
pub(crate) struct Crash {
    /// What it did, and its last steps.
    pub(crate) failure: Failure,
    /// Executions that it had begun.
    pub(crate) executions: u64,
    /// Which of its properties it was exploring, from 0.
    pub(crate) property: usize,
}

/// Runs `work` in a child process.
#[cfg(not(unix))]
pub(crate) fn isolated<R: Serialize + DeserializeOwned>(work: impl FnOnce() -> R) -> Ended<R> {
    let start = std::time::Instant::now();
    let answer = Ok(work());
    Ended {
        answer,
        cpu: start.elapsed(),
    }
}

#[cfg(unix)]
pub(crate) use unix::isolated;

#[cfg(unix)]
mod unix {
    use super::{Crash, DeserializeOwned, Duration, Ended, Failure, Journal, Serialize};
    use crate::explore::{silently, warm_up};
    use crate::trace;
    use nix::sys::mman::{MapFlags, ProtFlags, mmap_anonymous, munmap};
    use nix::sys::resource::{Resource, setrlimit};
    use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};
    use nix::sys::wait::WaitStatus;
    use nix::unistd::{ForkResult, Pid, fork};
    use std::ffi::c_void;
    use std::io::{PipeReader, PipeWriter, Read};
    use std::num::NonZeroUsize;
    use std::os::fd::AsRawFd;
    use std::sync::atomic::{AtomicU64, Ordering};

    /// Seconds of CPU time without a step after which a child hangs.
    const HANGS_AFTER: u64 = 3;

    /// The most memory of a child, in bytes: an endless loop that allocates
    /// must not take the machine with it.
    const MEMORY: u64 = 8 << 30;

    // What a child says of its own end, in `Journal::fault`.
    const HANGS: u32 = 1;
    const STACK: u32 = 2;
    const MEMORY_FAULT: u32 = 3;
    const TOO_LONG: u32 = 4;

    /// Memory that a child shares with its parent.
    struct Shared(std::ptr::NonNull<c_void>);

    impl Shared {
        const SIZE: NonZeroUsize =
            NonZeroUsize::new(size_of::<Journal>()).expect("a journal has a size");

        fn new() -> nix::Result<Self> {
            let protection = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
            // SAFETY: new memory, of nobody else.
            let memory =
                unsafe { mmap_anonymous(None, Self::SIZE, protection, MapFlags::MAP_SHARED) };
            memory.map(Self)
        }

        fn journal(&self) -> &'static Journal {
            // SAFETY: zeros, which are a journal; mapped until the parent
            // drops it, and in the child until it ends.
            unsafe { self.0.cast::<Journal>().as_ref() }
        }
    }

    impl Drop for Shared {
        fn drop(&mut self) {
            // SAFETY: mapped by `new`; the parent keeps no reference.
            let _ = unsafe { munmap(self.0, Self::SIZE.get()) };
        }
    }

    pub(crate) fn isolated<R: Serialize + DeserializeOwned>(work: impl FnOnce() -> R) -> Ended<R> {
        let mut cpu = Duration::ZERO;
        let answer = answer_of_child(work, &mut cpu);
        Ended { answer, cpu }
    }

    /// Waits for a child; how it ended, and the CPU time that it took.
    fn wait_for(child: Pid) -> (nix::Result<WaitStatus>, Duration) {
        let mut status = 0;
        // SAFETY: plain data, for which zeros stand for nothing.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        loop {
            // SAFETY: both are ours to write.
            let waited = unsafe { libc::wait4(child.as_raw(), &mut status, 0, &mut usage) };
            match nix::errno::Errno::result(waited) {
                Err(nix::errno::Errno::EINTR) => {}
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

    fn answer_of_child<R: Serialize + DeserializeOwned>(
        work: impl FnOnce() -> R,
        cpu: &mut Duration,
    ) -> Result<R, Crash> {
        // What is set up once for a process is set up before the fork, or a
        // child could find it half done.
        warm_up();
        let crash = |message: String| Crash {
            failure: Failure {
                message,
                trace: Vec::new(),
            },
            executions: 0,
            property: 0,
        };
        let shared = Shared::new().map_err(|error| crash(format!("no memory: {error}")))?;
        let journal = shared.journal();
        let (stderr, to_stderr) =
            pipe().map_err(|error| crash(format!("no pipe for the model: {error}")))?;
        // SAFETY: the child uses nothing that another thread may hold but the
        // allocator, which survives a fork; and it never returns from here.
        let child = match unsafe { fork() } {
            Ok(ForkResult::Parent { child }) => child,
            Ok(ForkResult::Child) => be_the_child(journal, &to_stderr, work),
            Err(error) => return Err(crash(format!("no process for the model: {error}"))),
        };
        let status;
        (status, *cpu) = wait_for(child);
        if let Some(answer) = journal.answered() {
            return serde_json::from_slice(&answer)
                .map_err(|error| crash(format!("the answer of the model's process: {error}")));
        }
        let address = journal.fault_address.load(Ordering::Relaxed);
        let message = match (journal.fault.load(Ordering::Relaxed), status) {
            (HANGS, _) => format!(
                "endless loop: {HANGS_AFTER} s of CPU time without an access to the lock's memory"
            ),
            (STACK, _) => "crash: the stack overflows".to_owned(),
            (TOO_LONG, _) => "the answer of the model's process is too long".to_owned(),
            (MEMORY_FAULT, _) if address < 4096 => {
                format!("crash: access through a null pointer (address {address:#x})")
            }
            (MEMORY_FAULT, _) => {
                format!("crash: access to memory that is not there (address {address:#x})")
            }
            (_, Ok(WaitStatus::Signaled(_, signal, _))) => match last_words(stderr) {
                Some(words) => format!("crash: {signal} ({words})"),
                None => format!("crash: {signal}"),
            },
            (_, Ok(WaitStatus::Exited(_, code))) => {
                format!("the process ends in the middle of the model (exit code {code})")
            }
            (_, status) => format!("the model's process is gone: {status:?}"),
        };
        let trace = trace::steps(&journal.entries());
        let place = trace.iter().rfind(|step| step.line > 0);
        let message = match place {
            Some(step) => format!("{message}, after {}:{}", step.file, step.line),
            None => message,
        };
        Err(Crash {
            failure: Failure { message, trace },
            executions: journal.executions.load(Ordering::Relaxed),
            property: journal.property.load(Ordering::Relaxed) as usize,
        })
    }

    /// For what a child prints: never blocks either end, as another child,
    /// forked meanwhile, has the writing end too.
    fn pipe() -> std::io::Result<(PipeReader, PipeWriter)> {
        let (reader, writer) = std::io::pipe()?;
        for end in [reader.as_raw_fd(), writer.as_raw_fd()] {
            // SAFETY: sets a flag of a descriptor of ours.
            unsafe { libc::fcntl(end, libc::F_SETFL, libc::O_NONBLOCK) };
        }
        Ok((reader, writer))
    }

    /// The first line that a child has printed before it ended itself.
    fn last_words(mut stderr: PipeReader) -> Option<String> {
        let mut bytes = [0; 1024];
        let read = stderr.read(&mut bytes).unwrap_or(0);
        let text = String::from_utf8_lossy(&bytes[..read]);
        let mut lines = text.lines().map(str::trim);
        let line = lines.find(|line| !line.is_empty())?;
        Some(line.trim_start_matches("locklab: ").to_owned())
    }

    fn be_the_child<R: Serialize>(
        journal: &'static Journal,
        stderr: &PipeWriter,
        work: impl FnOnce() -> R,
    ) -> ! {
        journal.install();
        // What a lock says before it aborts is part of the failure.
        // SAFETY: descriptors of this process.
        unsafe { libc::dup2(stderr.as_raw_fd(), libc::STDERR_FILENO) };
        // Whoever kills the parent means the child too.
        #[cfg(target_os = "linux")]
        let _ = nix::sys::prctl::set_pdeathsig(Signal::SIGKILL);
        let _ = setrlimit(Resource::RLIMIT_AS, MEMORY, MEMORY);
        let _ = setrlimit(Resource::RLIMIT_CORE, 0, 0);
        // SAFETY: the handlers only store to atomics and end the process.
        unsafe { watch() };
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| silently(work)));
        if let Ok(result) = result {
            let bytes = serde_json::to_vec(&result).unwrap_or_default();
            if !journal.answer(&bytes) {
                journal.fault.store(TOO_LONG, Ordering::Relaxed);
            }
        }
        // SAFETY: ends the process at once, without the parent's destructors.
        unsafe { libc::_exit(0) }
    }

    /// # Safety
    /// In a child, before the model.
    unsafe fn watch() {
        let flags = SaFlags::SA_SIGINFO | SaFlags::SA_ONSTACK;
        let fault = SigAction::new(SigHandler::SigAction(fault), flags, SigSet::empty());
        let tick = SigAction::new(
            SigHandler::Handler(tick),
            SaFlags::SA_ONSTACK,
            SigSet::empty(),
        );
        // A handler cannot run on the stack that has overflowed.
        let stack = Box::leak(vec![0_u8; 64 << 10].into_boxed_slice());
        let stack = libc::stack_t {
            ss_sp: stack.as_mut_ptr().cast(),
            ss_flags: 0,
            ss_size: stack.len(),
        };
        let second = libc::timeval {
            tv_sec: 1,
            tv_usec: 0,
        };
        let timer = libc::itimerval {
            it_interval: second,
            it_value: second,
        };
        // SAFETY: the stack is leaked; the handlers do what a handler may.
        unsafe {
            libc::sigaltstack(&raw const stack, std::ptr::null_mut());
            let _ = sigaction(Signal::SIGSEGV, &fault);
            let _ = sigaction(Signal::SIGBUS, &fault);
            let _ = sigaction(Signal::SIGPROF, &tick);
            libc::setitimer(libc::ITIMER_PROF, &raw const timer, std::ptr::null_mut());
        }
    }

    extern "C" fn fault(_: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
        let journal = Journal::current();
        // SAFETY: the kernel's, for this call.
        let address = unsafe { (*info).si_addr() } as u64;
        journal.fault_address.store(address, Ordering::Relaxed);
        let near_the_stack =
            stack_pointer(context).is_some_and(|stack| address.abs_diff(stack) < 64 << 10);
        let fault = if near_the_stack { STACK } else { MEMORY_FAULT };
        journal.fault.store(fault, Ordering::Relaxed);
        // SAFETY: ends the process.
        unsafe { libc::_exit(1) }
    }

    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    fn stack_pointer(context: *mut libc::c_void) -> Option<u64> {
        // SAFETY: the third argument of a handler with SA_SIGINFO.
        let context = unsafe { &*context.cast::<libc::ucontext_t>() };
        Some(context.uc_mcontext.gregs[libc::REG_RSP as usize] as u64)
    }

    #[cfg(all(target_os = "linux", target_arch = "aarch64"))]
    fn stack_pointer(context: *mut libc::c_void) -> Option<u64> {
        // SAFETY: the third argument of a handler with SA_SIGINFO.
        let context = unsafe { &*context.cast::<libc::ucontext_t>() };
        Some(context.uc_mcontext.sp)
    }

    #[cfg(not(all(
        target_os = "linux",
        any(target_arch = "x86_64", target_arch = "aarch64")
    )))]
    fn stack_pointer(_: *mut libc::c_void) -> Option<u64> {
        None
    }

    /// Each second of CPU time: is there a step since?
    extern "C" fn tick(_: libc::c_int) {
        static BEATS: AtomicU64 = AtomicU64::new(0);
        static IDLE: AtomicU64 = AtomicU64::new(0);
        let journal = Journal::current();
        let beats = journal.beats.load(Ordering::Relaxed);
        if BEATS.swap(beats, Ordering::Relaxed) != beats {
            IDLE.store(0, Ordering::Relaxed);
        } else if IDLE.fetch_add(1, Ordering::Relaxed) + 1 >= HANGS_AFTER {
            journal.fault.store(HANGS, Ordering::Relaxed);
            // SAFETY: ends the process.
            unsafe { libc::_exit(1) }
        }
    }
}
