//! Reads what can be seen of a lock without asking for it.
//!
//! An operation that is sure to take no time needs one look at the clock and one
//! record instead of two, which is most of what recording costs. The first word
//! of glibc's mutexes is 0 while they are free, and that of a plain one is 1
//! while it is held and nobody waits; that of its rwlocks says whether readers or
//! writers have it. All are hints: what they lead to is right whatever the word
//! says, so that other layouts cost time and nothing else.

use crate::real;
use core::sync::atomic::{AtomicU32, Ordering};
use libc::{c_int, pthread_mutex_t as Mutex, pthread_rwlock_t as Rwlock};
use locklab_trace::LockKind;

/// A lock of the C library.
pub(crate) trait Lock: Sized {
    /// Asks for the lock once.
    ///
    /// # Safety
    /// As of POSIX.
    unsafe fn attempt(lock: *mut Self, shared: bool) -> c_int;

    /// Returns whether nobody seems to hold the lock who keeps a thread out that wants it
    /// (`shared`: to read).
    ///
    /// # Safety
    /// It points to a lock.
    unsafe fn looks_free(lock: *mut Self, shared: bool) -> bool;

    /// Returns whether nobody seems to wait for the lock, which is held: then its release
    /// wakes nobody. Who begins to wait just now is missed, and woken at a cost that is
    /// not seen.
    ///
    /// # Safety
    /// It points to a lock.
    unsafe fn has_no_waiters(lock: *mut Self) -> bool;

    /// Returns what the lock is that the C library has to keep.
    ///
    /// # Safety
    /// It points to a lock.
    unsafe fn kind(lock: *mut Self) -> LockKind;
}

/// Says where a mutex's kind stands, in words.
const KIND: usize = 4;

impl Lock for Mutex {
    #[inline(always)]
    unsafe fn looks_free(lock: *mut Self, _: bool) -> bool {
        will_write(lock);
        // SAFETY: of the caller.
        unsafe { word(lock, 0) == Some(0) }
    }

    #[inline(always)]
    unsafe fn attempt(lock: *mut Self, _: bool) -> c_int {
        // SAFETY: of the caller.
        unsafe { (real::MUTEX_TRYLOCK.get())(lock) }
    }

    #[inline(always)]
    unsafe fn kind(lock: *mut Self) -> LockKind {
        // SAFETY: of the caller.
        let bits = unsafe { word(lock, KIND) }.unwrap_or(0);
        let mut kind = LockKind::default();
        for (bit, means) in KINDS {
            if bits & bit != 0 {
                kind.0 |= means.0;
            }
        }
        kind
    }

    #[inline(always)]
    unsafe fn has_no_waiters(lock: *mut Self) -> bool {
        /// The bits of what the first word means, and the largest kind in which
        /// that is as said above: not with priorities, nor robust.
        const MEANING: u32 = 0x7f;
        const PLAIN: u32 = 3;
        will_write(lock);
        // SAFETY: of the caller.
        unsafe {
            word(lock, 0) == Some(1) && word(lock, KIND).is_some_and(|kind| kind & MEANING <= PLAIN)
        }
    }
}

/// The bits of a mutex's kind: robust, of priorities (inherited, or a ceiling), shared by
/// processes.
const KINDS: [(u32, LockKind); 3] = [
    (0x10, LockKind::ROBUST),
    (0x60, LockKind::PRIORITY),
    (0x80, LockKind::SHARED),
];

/// The low bits of a rwlock's first word, above which the readers are counted: writers
/// have it, a writer has it or waits, readers of a kind that prefers writers wait.
const WRITING: u32 = 1;
const WRITER: u32 = 2;
const NO_READERS: u32 = 7;
/// Says where the number of other writers stands that wait, in words.
const WRITERS: usize = 1;

impl Lock for Rwlock {
    #[inline(always)]
    unsafe fn looks_free(lock: *mut Self, shared: bool) -> bool {
        will_write(lock);
        // SAFETY: of the caller.
        let first = unsafe { word(lock, 0) };
        first.is_some_and(|first| match shared {
            true => first & NO_READERS == 0,
            false => first & !WRITING == 0,
        })
    }

    #[inline(always)]
    unsafe fn attempt(lock: *mut Self, shared: bool) -> c_int {
        let attempt = match shared {
            true => &real::RWLOCK_TRYRDLOCK,
            false => &real::RWLOCK_TRYWRLOCK,
        };
        // SAFETY: of the caller.
        unsafe { (attempt.get())(lock) }
    }

    #[inline(always)]
    unsafe fn kind(lock: *mut Self) -> LockKind {
        // SAFETY: of the caller; the byte of the word is what says so.
        match unsafe { word(lock, SHARED) } {
            Some(shared) if shared & 0xff != 0 => LockKind::SHARED,
            _ => LockKind::default(),
        }
    }

    #[inline(always)]
    unsafe fn has_no_waiters(lock: *mut Self) -> bool {
        will_write(lock);
        // SAFETY: of the caller.
        let (first, writers) = unsafe { (word(lock, 0), word(lock, WRITERS)) };
        match first {
            Some(first) if first & NO_READERS == 0 => true,
            Some(first) => first == WRITING | WRITER && writers == Some(0),
            None => false,
        }
    }
}

/// Says where a rwlock says that processes share it, in words.
const SHARED: usize = 7;

/// Asks for the line of a lock as if to write it, because an operation follows that
/// does. Read first, it would come from another CPU's cache once to be read and once
/// more to be written, and a recorded program that contends would be slower by that.
#[inline(always)]
fn will_write<T>(lock: *mut T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a hint, which changes nothing and never faults; processors that do not
    // know it ignore it.
    unsafe {
        core::arch::asm!("prefetchw [{0}]", in(reg) lock, options(nostack, preserves_flags));
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = lock;
}

/// Returns a word of a lock, if it lies where the C library would have put it.
#[inline(always)]
unsafe fn word<T>(lock: *mut T, number: usize) -> Option<u32> {
    let word = lock.cast::<u32>();
    if !word.is_aligned() {
        return None;
    }
    // SAFETY: of the caller; within the lock, which others change by atomics.
    Some(unsafe { AtomicU32::from_ptr(word.add(number)) }.load(Ordering::Relaxed))
}
