//! The system calls of sleeping, fencing and time, which leave `errno` alone.

use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use libc::{c_int, timespec};
use locklab_profile::sandbox;

/// Says whether this process and its forks may call `membarrier`.
static MEMBARRIER: AtomicBool = AtomicBool::new(false);

/// Finds out whether [`membarrier`] may be called at all; once for each program.
pub(crate) fn find_membarrier() {
    // What it says of the kernel, if anything, shows at the first use.
    let asks = || {
        register();
        true
    };
    let allowed = keep_errno(|| sandbox::allows(asks));
    // Relaxed: the process has one thread.
    MEMBARRIER.store(allowed, Ordering::Relaxed);
}

/// Returns a full fence on every CPU that runs this process.
pub(crate) fn membarrier() -> bool {
    const PRIVATE_EXPEDITED: c_int = 1 << 3;
    if !MEMBARRIER.load(Ordering::Relaxed) {
        return false;
    }
    // SAFETY: takes two numbers.
    unsafe { libc::syscall(libc::SYS_membarrier, PRIVATE_EXPEDITED, 0) == 0 }
}

/// Asks for [`membarrier`]; once for each process.
pub(crate) fn register_membarrier() {
    if MEMBARRIER.load(Ordering::Relaxed) {
        // That it failed shows at the first use.
        keep_errno(register);
    }
}

fn register() {
    const REGISTER_PRIVATE_EXPEDITED: c_int = 1 << 4;
    // SAFETY: takes two numbers.
    unsafe { libc::syscall(libc::SYS_membarrier, REGISTER_PRIVATE_EXPEDITED, 0) };
}

/// Runs `f` and leaves `errno` as it was: the functions of POSIX threads do
/// not touch it, and programs rely on that.
pub(crate) fn keep_errno<T>(f: impl FnOnce() -> T) -> T {
    // SAFETY: the thread's own errno.
    unsafe {
        let errno = libc::__errno_location();
        let saved = *errno;
        let result = f();
        *errno = saved;
        result
    }
}

/// Sleeps while `word` holds `expected`; may return at any time.
pub(crate) fn wait(word: &AtomicU32, expected: u32) {
    // SAFETY: the word outlives the call; any result is a legal wake-up.
    keep_errno(|| unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG,
            expected,
            core::ptr::null::<timespec>(),
        );
    });
}

/// Wakes at most `count` sleepers, and returns how many that were. The memory of the word
/// may be gone.
pub(crate) fn wake(word: *const AtomicU32, count: c_int) -> libc::c_long {
    // SAFETY: only the address is used.
    keep_errno(|| unsafe {
        libc::syscall(
            libc::SYS_futex,
            word,
            libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG,
            count,
        )
    })
}

/// Returns what the clock shows.
pub(crate) fn now(clock: libc::clockid_t) -> timespec {
    let mut now = timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `now` is ours.
    keep_errno(|| unsafe { libc::clock_gettime(clock, &raw mut now) });
    now
}

/// Sleeps about so long.
pub(crate) fn doze(nanoseconds: i64) {
    let time = timespec {
        tv_sec: 0,
        tv_nsec: nanoseconds,
    };
    // By its number, because the C library's function is where a thread may
    // be cancelled.
    // SAFETY: `time` is ours; being woken early does no harm.
    keep_errno(|| unsafe {
        libc::syscall(
            libc::SYS_nanosleep,
            &raw const time,
            core::ptr::null_mut::<timespec>(),
        );
    });
}
