//! A model in a process of its own: what a lock does to its memory, its
//! stack or its time is a failed promise, never the end of the checker.
//!
//! A fork, not a new program: a model is a value, which may hold what no
//! command line can name, and the same works under `cargo test`. The child
//! has one thread, computes, leaves its answer in memory that it shares with
//! its parent ([`Journal`]), and ends without running anybody's exit code.
//! Nothing here may be called by a thread that holds a lock which the child
//! needs. Elsewhere than on Linux the model runs in this process.

use crate::journal::Journal;
use crate::outcome::Failure;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::time::Duration;

/// Holds what a process for a model has left.
pub(crate) struct Ended<R> {
    /// Its answer, or how it ended if it did before it could answer.
    pub(crate) answer: Result<R, Crash>,
    /// CPU time that it took: unlike the time that passed, it depends little on
    /// what else runs.
    pub(crate) cpu: Duration,
}

/// Tells how a child ended that left no answer.
pub(crate) struct Crash {
    /// Says what it did, with its last steps.
    pub(crate) failure: Failure,
    /// Executions that it had begun.
    pub(crate) executions: u64,
    /// Says which of its properties it was exploring, from 0.
    pub(crate) property: usize,
}

/// Runs `work` in a child process.
#[cfg(not(target_os = "linux"))]
pub(crate) fn isolated<R: Serialize + DeserializeOwned>(work: impl FnOnce() -> R) -> Ended<R> {
    let start = std::time::Instant::now();
    let answer = Ok(work());
    Ended {
        answer,
        cpu: start.elapsed(),
    }
}

#[cfg(target_os = "linux")]
pub(crate) use linux::isolated;

#[cfg(target_os = "linux")]
mod linux {
    use super::{Crash, DeserializeOwned, Duration, Ended, Failure, Journal, Serialize};
    use crate::explore::{silently, warm_up};
    use crate::trace;
    use locklab_host::child::{self, interrupted_at};
    use nix::sys::mman::{MapFlags, ProtFlags, mmap_anonymous, munmap};
    use nix::sys::signal::Signal;
    use nix::sys::wait::WaitStatus;
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
        let work = || {
            be_the_child(journal, &to_stderr, work);
            0
        };
        // SAFETY: the child uses nothing that another thread may hold.
        let child = unsafe { child::start(Some(MEMORY), work) }
            .map_err(|error| crash(format!("no process for the model: {error}")))?;
        let status;
        (status, *cpu) = child::wait(child);
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
            (MEMORY_FAULT, _) if address < 4096 => {
                format!("crash: access through a null pointer (address {address:#x})")
            }
            (MEMORY_FAULT, _) => {
                format!("crash: access to unmapped memory (address {address:#x})")
            }
            (_, Ok(WaitStatus::Signaled(_, signal, _))) => match last_words(stderr) {
                Some(words) => format!("crash: {signal} ({words})"),
                None => format!("crash: {signal}"),
            },
            (_, Ok(WaitStatus::Exited(_, code))) => format!(
                "the process ends in the middle of the model (exit code {code}{})",
                last_words(stderr).map_or_else(String::new, |words| format!(": {words}"))
            ),
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

    /// Makes a pipe for what a child prints. It never blocks either end, as another child,
    /// forked meanwhile, has the writing end too.
    fn pipe() -> std::io::Result<(PipeReader, PipeWriter)> {
        let (reader, writer) = std::io::pipe()?;
        for end in [reader.as_raw_fd(), writer.as_raw_fd()] {
            // SAFETY: sets a flag of a descriptor of ours.
            unsafe { libc::fcntl(end, libc::F_SETFL, libc::O_NONBLOCK) };
        }
        Ok((reader, writer))
    }

    /// Returns the first line that a child has printed before it ended itself.
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
    ) {
        journal.install();
        #[cfg(target_pointer_width = "64")]
        crate::stacks::keep();
        // What a lock says before it aborts is part of the failure.
        // SAFETY: descriptors of this process.
        unsafe { libc::dup2(stderr.as_raw_fd(), libc::STDERR_FILENO) };
        // SAFETY: the handlers only store to atomics and end the process.
        unsafe {
            child::on_signals(&[Signal::SIGSEGV, Signal::SIGBUS], fault);
            child::every_second(libc::ITIMER_PROF as _, tick);
        }
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| silently(work)));
        if let Err(payload) = &result {
            eprintln!("{}", crate::explore::message(&**payload));
        }
        if let Ok(result) = result {
            let bytes = serde_json::to_vec(&result).unwrap_or_default();
            assert!(journal.answer(&bytes), "an answer is longer than any");
        }
    }

    extern "C" fn fault(_: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
        let journal = Journal::current();
        // SAFETY: the kernel's, for this call.
        let address = unsafe { (*info).si_addr() } as u64;
        journal.fault_address.store(address, Ordering::Relaxed);
        let (_, stack) = interrupted_at(context);
        let near_the_stack = stack != 0 && address.abs_diff(stack as u64) < 64 << 10;
        let fault = if near_the_stack { STACK } else { MEMORY_FAULT };
        journal.fault.store(fault, Ordering::Relaxed);
        // SAFETY: ends the process.
        unsafe { libc::_exit(1) }
    }

    /// Checks, each second of CPU time, whether there was a step since the last.
    extern "C" fn tick(_: libc::c_int, _: *mut libc::siginfo_t, _: *mut libc::c_void) {
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
