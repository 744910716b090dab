//! A crash of a lock's code in this process: one sentence with the line of the
//! file, in place of a signal.
//!
//! On real hardware a lock cannot run in a child of its own, which would be
//! another experiment. So the handler of a fault in its code only writes
//! numbers into a pipe; a thread waits at the other end, holds nothing that
//! the crashed one could hold, finds the line, and gives the sentence to the
//! block under way, which goes on without the lock. Where there is none, it
//! prints the sentence and ends the process. A fault anywhere else must take
//! its usual course.

use crate::explain::Runner;
use crate::folders::remove_folders;
use crate::isolate::{Death, FAULTS, Lost, called_from};
use crate::library::{LIBRARIES, Library};
use crate::user_lock::UserLock;
use locklab_host::child::interrupted_at;
use locklab_host::message;
use locklab_native::crash::{Claim, claim, hand_over};
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, raise, sigaction};
use std::ffi::c_int;
use std::io::{PipeReader, Read as _};
use std::os::fd::IntoRawFd as _;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

/// The locks whose crashes are explained.
static LOCKS: Mutex<Vec<(UserLock, Library)>> = Mutex::new(Vec::new());

/// Start and end of the code of each, for the handler. Nothing is between
/// zeros. A lock's code is called by threads that are started after its range
/// was stored, so Relaxed will do.
static CODE: [[AtomicUsize; 2]; LIBRARIES] =
    [const { [const { AtomicUsize::new(0) }; 2] }; LIBRARIES];

/// The pipe to the thread that explains.
static PIPE: AtomicI32 = AtomicI32::new(-1);

/// Holds what was done at each of the faults before.
static EARLIER: OnceLock<[SigAction; 5]> = OnceLock::new();

/// Explains from now on each crash in the code of this library, which is in this slot,
/// in a sentence.
///
/// # Errors
/// The pipe, the thread or a handler cannot be made.
pub(crate) fn explain(lock: &UserLock, library: &Library, slot: usize) -> std::io::Result<()> {
    let mut locks = LOCKS.lock().unwrap_or_else(PoisonError::into_inner);
    locks.push((lock.clone(), library.clone()));
    CODE[slot][0].store(library.code.start, Ordering::Relaxed);
    CODE[slot][1].store(library.code.end, Ordering::Relaxed);
    if EARLIER.get().is_some() {
        return Ok(());
    }
    let (read, write) = std::io::pipe()?;
    std::thread::Builder::new()
        .name("explains crashes".into())
        .spawn(move || wait_for_crashes(read))?;
    PIPE.store(write.into_raw_fd(), Ordering::Relaxed);
    let flags = SaFlags::SA_SIGINFO | SaFlags::SA_ONSTACK;
    let action = SigAction::new(SigHandler::SigAction(crashed), flags, SigSet::empty());
    let mut earlier = [action; FAULTS.len()];
    for (signal, earlier) in FAULTS.into_iter().zip(&mut earlier) {
        // SAFETY: `crashed` reads atomics, writes to a pipe and sleeps, or puts
        // back what was there.
        *earlier = unsafe { sigaction(signal, &action) }?;
    }
    let _ = EARLIER.set(earlier);
    Ok(())
}

fn is_of_a_lock(instruction: usize) -> bool {
    CODE.iter().any(|[start, end]| {
        (start.load(Ordering::Relaxed)..end.load(Ordering::Relaxed)).contains(&instruction)
    })
}

extern "C" fn crashed(signal: c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let (mut instruction, stack) = interrupted_at(context);
    if !is_of_a_lock(instruction) {
        // A copy or a jump that the lock's code has just called.
        instruction = called_from(context);
    }
    // SAFETY: what the kernel gives a handler.
    let address = unsafe { (*info).si_addr() } as usize;
    if !is_of_a_lock(instruction) {
        // A jump that led nowhere, in place of a lock's last call, leaves no
        // trace of where it was.
        if signal != libc::SIGSEGV || interrupted_at(context).0 != address {
            return usual_course(signal, info);
        }
        instruction = 0;
    }
    if is_first() {
        let death = Death {
            signal,
            address,
            instruction,
            stack,
            ..Death::default()
        };
        tell(&death.to_bytes());
    }
    loop {
        // SAFETY: it may be called in a handler.
        unsafe { libc::pause() };
    }
}

/// Returns whether nobody has told of a crash before this one: several threads may crash
/// at once.
fn is_first() -> bool {
    static TOLD: AtomicBool = AtomicBool::new(false);
    match claim() {
        Claim::First => true,
        Claim::Another => false,
        Claim::NoBlock => !TOLD.swap(true, Ordering::Relaxed),
    }
}

/// Writes to the thread that explains.
fn tell(bytes: &[u8]) {
    // SAFETY: our pipe and our bytes; it may be called in a handler.
    unsafe {
        libc::write(
            PIPE.load(Ordering::Relaxed),
            bytes.as_ptr().cast(),
            bytes.len(),
        )
    };
}

/// Tells of a fault that a lock's code has found in itself, in one sentence,
/// and never returns: its caller must not go on.
pub(crate) fn give_up(why: &str) -> ! {
    if is_first() {
        // A death without a signal has the length of a text that follows it.
        let header = Death {
            address: why.len(),
            ..Death::default()
        };
        tell(&[&header.to_bytes(), why.as_bytes()].concat());
    }
    loop {
        // SAFETY: waits for a signal.
        unsafe { libc::pause() };
    }
}

/// Puts back what was done at this signal before, and lets it happen.
fn usual_course(signal: c_int, info: *mut libc::siginfo_t) {
    let of = FAULTS.iter().position(|fault| *fault as c_int == signal);
    if let Some((at, earlier)) = of.zip(EARLIER.get()) {
        // SAFETY: an action that was installed before.
        let _ = unsafe { sigaction(FAULTS[at], &earlier[at]) };
        // A fault occurs again when its instruction is repeated, a signal that
        // a process sent does not.
        // SAFETY: what the kernel gives a handler.
        if unsafe { (*info).si_code } <= 0 {
            let _ = raise(FAULTS[at]);
        }
    }
}

/// Runs as the thread that explains crashes.
fn wait_for_crashes(mut pipe: PipeReader) {
    let mut bytes = [0; Death::BYTES];
    while pipe.read_exact(&mut bytes).is_ok() {
        let mut death = Death::of_bytes(&bytes);
        let why = if death.signal == 0 {
            let mut text = vec![0; death.address];
            if pipe.read_exact(&mut text).is_err() {
                return;
            }
            String::from_utf8_lossy(&text).into_owned()
        } else {
            explained(&mut death)
        };
        if let Err(why) = hand_over(why) {
            end(&why);
        }
    }
}

/// Explains a crash in one sentence, with the line of the lock's file.
fn explained(death: &mut Death) -> String {
    let locks = LOCKS.lock().unwrap_or_else(PoisonError::into_inner);
    let may_be = |of: &&(UserLock, Library)| {
        death.instruction == 0 || of.1.code.contains(&death.instruction)
    };
    let suspects: Vec<_> = locks.iter().filter(may_be).collect();
    match suspects[..] {
        [(lock, library)] => {
            death.base = library.base;
            lock.explain(Lost::Died(*death), Runner::Thread, lock.native_object())
                .to_string()
        }
        _ => {
            let names: Vec<&str> = suspects.iter().map(|(lock, _)| lock.name()).collect();
            format!("a thread jumped to nowhere from {}", names.join(" or "))
        }
    }
}

/// Ends the process because of a fault of a lock.
fn end(why: &str) -> ! {
    message::print(format_args!(
        "locklab: {why}; what was measured before is stored"
    ));
    remove_folders();
    // SAFETY: ends the process at once: its other threads use what an orderly
    // end would free.
    unsafe { libc::_exit(1) }
}
