//! The contents of a `pthread_mutex_t` that the interposer uses.
//!
//! glibc's `__kind` stays where it is, at offset 16, because the static
//! initialisers set it and nothing else. A mutex of zeros is free.

use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering};
use libc::c_int;

/// The bits of `__kind` for features that only glibc has: robust, priority
/// inheritance and protection, process-shared.
const GLIBC_ONLY: u32 = 0xf0;
/// The bits that name the type.
const TYPE: u32 = 3;
/// `__kind` of a destroyed mutex.
const DESTROYED: u32 = u32::MAX;

/// Says how a mutex treats a second lock by its owner, and an unlock by another thread.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Type {
    /// Neither is detected (`PTHREAD_MUTEX_NORMAL`).
    Normal,
    /// The first is counted, the second refused.
    Recursive,
    /// Both are refused with an error.
    ErrorChecking,
    /// Robust, shared or of a priority protocol, or destroyed: left to glibc.
    Glibc,
}

/// The interposer's view of a `pthread_mutex_t`.
#[repr(C)]
pub(crate) struct Mutex {
    /// The lock itself, or the pointer to one that does not fit.
    pub(crate) word: AtomicUsize,
    /// Recursive and error-checking: the thread that holds it, or 0.
    pub(crate) owner: AtomicUsize,
    /// Low half: `__kind`, of which bits 12 and up hold the number of the call
    /// site if a profile is made. High half: the fork generation that last
    /// touched it, see [`crate::generation`]; who sees that sees what it repaired.
    pub(crate) state: AtomicUsize,
    /// The holder's slot, if the lock is in the word.
    pub(crate) slot: AtomicPtr<()>,
    /// Recursive: how often its owner holds it.
    pub(crate) depth: AtomicU32,
    /// Number of waiters, with a profile.
    pub(crate) waiters: AtomicU32,
}

const _: () = assert!(size_of::<Mutex>() <= size_of::<libc::pthread_mutex_t>());
const _: () = assert!(align_of::<Mutex>() <= align_of::<libc::pthread_mutex_t>());
const _: () = assert!(core::mem::offset_of!(Mutex, state) == 16);
const _: () = assert!(cfg!(target_endian = "little"));

impl Mutex {
    /// Returns the mutex of ours that lies in the place of glibc's.
    ///
    /// # Safety
    /// `mutex` is a mutex in the sense of POSIX, for as long as the reference
    /// is used.
    #[inline(always)]
    pub(crate) unsafe fn of<'a>(mutex: *mut libc::pthread_mutex_t) -> &'a Self {
        // SAFETY: same size or smaller, all fields atomic.
        unsafe { &*mutex.cast() }
    }

    pub(crate) fn as_glibc(&self) -> *mut libc::pthread_mutex_t {
        core::ptr::from_ref(self).cast_mut().cast()
    }

    #[inline]
    pub(crate) fn kind(&self) -> u32 {
        self.state.load(Ordering::Relaxed) as u32
    }

    /// Returns the generation in a value of `state`.
    #[inline]
    pub(crate) fn generation_of(state: usize) -> u32 {
        (state >> 32) as u32
    }

    /// Returns whether it is glibc's own, of a kind that a profile counts.
    pub(crate) fn is_counted_of_glibc(&self) -> bool {
        self.kind_type() != Type::Glibc
    }

    /// Returns whether it is glibc's own, recursive, and held more than once.
    pub(crate) fn is_nested_of_glibc(&self) -> bool {
        self.kind_type() == Type::Recursive && self.word.load(Ordering::Relaxed) >> 32 > 1
    }

    #[inline]
    pub(crate) fn kind_type(&self) -> Type {
        let kind = self.kind();
        if kind & GLIBC_ONLY != 0 {
            return Type::Glibc;
        }
        match kind & TYPE {
            1 => Type::Recursive,
            2 => Type::ErrorChecking,
            // Adaptive (3) only says how long glibc should spin.
            _ => Type::Normal,
        }
    }

    /// Takes over a mutex that glibc has just initialised.
    pub(crate) fn adopt(&self, generation: u32, site: u32) {
        let kind = (self.kind() & TYPE) | site << 12;
        self.state.store(
            (generation as usize) << 32 | kind as usize,
            Ordering::Relaxed,
        );
    }

    /// Returns `state` as it is, but of this generation.
    pub(crate) fn with_generation(&self, generation: u32) -> usize {
        (generation as usize) << 32 | self.kind() as usize
    }

    pub(crate) fn destroy(&self) {
        self.state.store(DESTROYED as usize, Ordering::Relaxed);
    }
}

/// Returns the calling thread, as `pthread_self` names it: a number different from any
/// other live thread's, not 0, and the same in the child of a fork.
#[inline(always)]
pub(crate) fn this_thread() -> usize {
    #[cfg(target_arch = "x86_64")]
    {
        let this: usize;
        // SAFETY: the first word of the thread control block is its address.
        unsafe {
            core::arch::asm!("mov {}, qword ptr fs:[0]", out(reg) this,
                options(nostack, readonly, preserves_flags));
        }
        this
    }
    #[cfg(not(target_arch = "x86_64"))]
    // SAFETY: no arguments, cannot fail.
    unsafe {
        libc::pthread_self() as usize
    }
}

/// The result type of the functions here: 0 or a positive `errno`.
pub(crate) type Errno = c_int;
