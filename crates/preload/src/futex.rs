//! Sleeping, and the small lock that guards our own tables.

use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use libc::{c_int, timespec};

/// A full fence on every CPU that runs this process.
pub(crate) fn membarrier() -> bool {
    const PRIVATE_EXPEDITED: c_int = 1 << 3;
    // SAFETY: takes two numbers.
    unsafe { libc::syscall(libc::SYS_membarrier, PRIVATE_EXPEDITED, 0) == 0 }
}

/// Whether [`membarrier`] works.
static FENCES: AtomicBool = AtomicBool::new(false);

/// Asks for [`membarrier`]; once for each process.
pub(crate) fn register_membarrier() {
    const REGISTER_PRIVATE_EXPEDITED: c_int = 1 << 4;
    keep_errno(|| {
        // SAFETY: takes two numbers. That it failed shows at the first use.
        unsafe { libc::syscall(libc::SYS_membarrier, REGISTER_PRIVATE_EXPEDITED, 0) };
        FENCES.store(membarrier(), Ordering::Relaxed);
    });
}

/// Whether [`membarrier`] works.
pub(crate) fn fences() -> bool {
    FENCES.load(Ordering::Relaxed)
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

/// Wakes at most `count` sleepers. The memory of the word may be gone.
pub(crate) fn wake(word: *const AtomicU32, count: c_int) {
    // SAFETY: only the address is used.
    keep_errno(|| unsafe {
        libc::syscall(
            libc::SYS_futex,
            word,
            libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG,
            count,
        );
    });
}

/// Guards our own tables, never held while a lock of the program is awaited.
/// 0 free, 1 held, 2 held and someone may sleep (U. Drepper, "Futexes Are
/// Tricky", 2011).
pub(crate) struct Guarded(AtomicU32);

impl Guarded {
    pub(crate) const fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    pub(crate) fn lock(&self) {
        // G1: pairs with G2.
        if self
            .0
            .compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
        {
            return;
        }
        for _ in 0..100 {
            core::hint::spin_loop();
            if self.0.load(Ordering::Relaxed) == 0
                // G1': as G1.
                && self
                    .0
                    .compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed)
                    .is_ok()
            {
                return;
            }
        }
        // G1": as G1.
        while self.0.swap(2, Ordering::Acquire) != 0 {
            wait(&self.0, 2);
        }
    }

    pub(crate) fn unlock(&self) {
        // G2: pairs with G1, G1' and G1".
        if self.0.swap(0, Ordering::Release) == 2 {
            wake(&raw const self.0, 1);
        }
    }

    pub(crate) fn with<T>(&self, f: impl FnOnce() -> T) -> T {
        self.lock();
        let result = f();
        self.unlock();
        result
    }

    /// Frees it, whoever held it: in a process just forked.
    pub(crate) fn reset(&self) {
        self.0.store(0, Ordering::Relaxed);
    }
}

/// What the clock shows.
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
