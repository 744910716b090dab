//! A crash of the file's code, as a failure of the execution in which it happens, with all its
//! steps.
//!
//! The handler of the fault lets the coroutine go on in a function that reports it, on a
//! stack of its own, since the coroutine's may have overflowed. Elsewhere than on x86-64 the
//! process ends, and its parent says how. It must never let the code go on.

use super::hooks::error;
use super::world::{STACK, with};
use crate::isolate::{self, FAULTS};
use locklab_host::child::{self, interrupted_at};
use nix::sys::signal::Signal;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicUsize, Ordering};

/// The signal, the address and the instruction of the fault; read on the thread that wrote
/// them.
static FAULT: [AtomicUsize; 3] = [const { AtomicUsize::new(0) }; 3];

/// The stack on which it is reported.
static LANDING: AtomicUsize = AtomicUsize::new(0);

/// Makes the crash of an execution its failure, in this process from now on.
pub(super) fn fail_executions() {
    if LANDING.load(Ordering::Relaxed) > 0 || !cfg!(target_arch = "x86_64") {
        return;
    }
    let stack = Box::leak(vec![0_u8; 2 * STACK].into_boxed_slice());
    LANDING.store(stack.as_ptr() as usize + stack.len(), Ordering::Relaxed);
    // SAFETY: the handlers only store to atomics and change where the thread goes on.
    unsafe {
        child::on_signals(&FAULTS, fault);
        child::every_second(libc::ITIMER_PROF as c_int, tick);
    }
}

/// Seconds of CPU time without an access after which the code hangs.
const HANGS_AFTER: usize = 3;

/// Looks, each second of CPU time, whether the code has come to an access since the last.
extern "C" fn tick(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    static BEFORE: [AtomicUsize; 2] = [const { AtomicUsize::new(0) }; 2];
    let accesses = isolate::ACCESSES.load(Ordering::Relaxed) as usize;
    let (instruction, _) = interrupted_at(context);
    let goes_on = BEFORE[0].swap(accesses, Ordering::Relaxed) != accesses;
    if goes_on || !isolate::is_within_library(instruction) {
        BEFORE[1].store(0, Ordering::Relaxed);
    } else if BEFORE[1].fetch_add(1, Ordering::Relaxed) + 1 >= HANGS_AFTER {
        fault(signal, info, context);
    }
}

extern "C" fn fault(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let (instruction, _) = interrupted_at(context);
    if !isolate::is_within_library(instruction) {
        // Not the file's code: the process ends.
        // SAFETY: both may be called in a handler.
        unsafe {
            libc::signal(signal, libc::SIG_DFL);
        }
        return;
    }
    // SAFETY: what the kernel gives a handler.
    let address = unsafe { (*info).si_addr() } as usize;
    let fault = [signal as usize, address, instruction];
    for (to, number) in FAULT.iter().zip(fault) {
        to.store(number, Ordering::Relaxed);
    }
    #[cfg(target_arch = "x86_64")]
    {
        // SAFETY: what the kernel gives a handler; the stack is ours and not in use. As after
        // a call, it is aligned but for one word.
        let registers = unsafe { &mut (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs };
        registers[libc::REG_RIP as usize] = land as *const () as i64;
        let top = LANDING.load(Ordering::Relaxed) / 16 * 16 - 8;
        registers[libc::REG_RSP as usize] = top as i64;
    }
}

/// Reports the fault: the coroutine never goes on.
extern "C-unwind" fn land() -> ! {
    let [signal, address, instruction] = [0, 1, 2].map(|at| FAULT[at].load(Ordering::Relaxed));
    let site = instruction + 1;
    let (line, entries) = with(|world| {
        let entries: Vec<usize> = world.threads.iter().map(|thread| thread.entry).collect();
        (world.line(site), entries)
    });
    let name = Signal::try_from(signal as c_int).map_or("a signal", Signal::as_str);
    // A guard page below the stack.
    let below = |entry: &usize| {
        *entry > 0
            && (entry.saturating_sub(STACK + (64 << 10))..entry.saturating_sub(STACK - (64 << 10)))
                .contains(&address)
    };
    let why = match name {
        "SIGPROF" => format!("endless loop at {line}: {HANGS_AFTER} s without an access"),
        "SIGSEGV" | "SIGBUS" if entries.iter().any(below) => {
            format!("crash: the stack overflows at {line}")
        }
        "SIGSEGV" | "SIGBUS" => format!("crash at {line} ({name}, address {address:#x})"),
        _ => format!("crash at {line} ({name})"),
    };
    error(&why, site)
}
