//! The stacks of modelled threads, kept from one execution to the next.
//!
//! loom makes its threads anew for each execution, and the coroutines below it
//! map a stack for each, protect its last page, and unmap it: system calls and
//! page faults, half of the time of a short model. Neither offers to keep them.
//! So a program that says [`keep_stacks!`](crate::keep_stacks) has functions
//! named `mmap`, `mprotect` and `munmap`, which its own code then calls instead
//! of the C library's. In the process of a model a stack that is unmapped stays,
//! and is handed out again, with its protected page, where one of its size is
//! asked for. Whatever else is asked for goes to the kernel.
//!
//! Must never keep a mapping that was not made as a stack is, nor one of which a
//! part was changed.

use libc::{c_int, off_t, size_t};
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};

/// The largest stack that is kept: what loom asks for, and room to spare.
const LARGEST: usize = 64 << 10;

/// Says whether stacks are kept: in the process of a model, which ends soon.
static ON: AtomicBool = AtomicBool::new(false);

/// One for each thread of a model, and as many for whoever else has some.
static KEPT: [Kept; 8] = [const { Kept::new() }; 8];

/// Keeps stacks from now on in this process, if it has functions for that.
#[doc(hidden)]
pub fn keep() {
    ON.store(true, Ordering::Relaxed);
}

// The states of an entry. Who changes it from NONE or FREE has it to itself.
const NONE: u8 = 0;
const FREE: u8 = 1;
const USED: u8 = 2;

struct Kept {
    state: AtomicU8,
    address: AtomicUsize,
    length: AtomicUsize,
    /// Counts its first bytes that are protected.
    guard: AtomicUsize,
}

impl Kept {
    const fn new() -> Self {
        Self {
            state: AtomicU8::new(NONE),
            address: AtomicUsize::new(0),
            length: AtomicUsize::new(0),
            guard: AtomicUsize::new(0),
        }
    }

    /// Claims the entry if it is in state `from`. An Acquire, which pairs with
    /// the Release of [`Self::leave`].
    fn claim(&self, from: u8) -> bool {
        let (to, order) = (USED, Ordering::Acquire);
        let claimed = self
            .state
            .compare_exchange(from, to, order, Ordering::Relaxed);
        claimed.is_ok()
    }

    /// Gives the entry up. A Release, for the next who claims it.
    fn leave(&self, to: u8) {
        self.state.store(to, Ordering::Release);
    }

    fn starts_at(&self, address: usize) -> bool {
        self.state.load(Ordering::Relaxed) == USED
            && self.address.load(Ordering::Relaxed) == address
    }

    /// Returns whether a part of it lies in these bytes.
    fn overlaps(&self, address: usize, length: usize) -> bool {
        let start = self.address.load(Ordering::Relaxed);
        self.state.load(Ordering::Relaxed) == USED
            && address < start + self.length.load(Ordering::Relaxed)
            && start < address.saturating_add(length)
    }
}

/// Hands out a stack that was kept, if there is one of that length.
fn again(length: usize) -> Option<*mut c_void> {
    let kept = KEPT.iter().find(|kept| {
        kept.length.load(Ordering::Relaxed) == length
            && kept.claim(FREE)
            // Another may have come and gone since the first look.
            && (kept.length.load(Ordering::Relaxed) == length || {
                kept.leave(FREE);
                false
            })
    })?;
    let address = kept.address.load(Ordering::Relaxed);
    Some(std::ptr::with_exposed_provenance_mut(address))
}

/// Notes a stack that the kernel has made, if there is room for it.
fn note(address: *mut c_void, length: usize) {
    if let Some(kept) = KEPT.iter().find(|kept| kept.claim(NONE)) {
        kept.address
            .store(address.expose_provenance(), Ordering::Relaxed);
        kept.length.store(length, Ordering::Relaxed);
        kept.guard.store(0, Ordering::Relaxed);
    }
}

/// Does what the program's `mmap` does.
///
/// # Safety
/// As `mmap`.
#[doc(hidden)]
pub unsafe fn map(
    address: *mut c_void,
    length: size_t,
    protection: c_int,
    flags: c_int,
    file: c_int,
    offset: off_t,
) -> *mut c_void {
    let is_stack = ON.load(Ordering::Relaxed)
        && address.is_null()
        && length <= LARGEST
        && protection == libc::PROT_READ | libc::PROT_WRITE
        && flags == libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_STACK;
    if is_stack && let Some(kept) = again(length) {
        return kept;
    }
    // SAFETY: the caller's promise; all arguments are the call's own.
    let mapped = unsafe {
        libc::syscall(
            libc::SYS_mmap,
            address,
            length,
            protection,
            flags,
            file,
            offset,
        )
    };
    let mapped = std::ptr::with_exposed_provenance_mut(mapped as usize);
    if is_stack && mapped != libc::MAP_FAILED {
        note(mapped, length);
    }
    mapped
}

/// Does what the program's `mprotect` does.
///
/// # Safety
/// As `mprotect`.
#[doc(hidden)]
pub unsafe fn protect(address: *mut c_void, length: size_t, protection: c_int) -> c_int {
    let at = address.addr();
    let guards = |kept: &&Kept| kept.starts_at(at) && protection == libc::PROT_NONE;
    let stack = KEPT.iter().find(guards);
    if stack.is_some_and(|kept| kept.guard.load(Ordering::Relaxed) == length) {
        return 0;
    }
    // SAFETY: the caller's promise.
    let done = unsafe { libc::syscall(libc::SYS_mprotect, address, length, protection) };
    match stack {
        Some(kept) if done == 0 && kept.guard.load(Ordering::Relaxed) == 0 => {
            kept.guard.store(length, Ordering::Relaxed);
        }
        _ => forget(at, length),
    }
    done as c_int
}

/// Does what the program's `munmap` does.
///
/// # Safety
/// As `munmap`.
#[doc(hidden)]
pub unsafe fn unmap(address: *mut c_void, length: size_t) -> c_int {
    let at = address.addr();
    let whole = |kept: &&Kept| kept.starts_at(at) && kept.length.load(Ordering::Relaxed) == length;
    if let Some(kept) = KEPT.iter().find(whole) {
        kept.leave(FREE);
        return 0;
    }
    forget(at, length);
    // SAFETY: the caller's promise.
    let done = unsafe { libc::syscall(libc::SYS_munmap, address, length) };
    done as c_int
}

/// Forgets a stack of which a part was changed.
fn forget(address: usize, length: usize) {
    for kept in KEPT.iter().filter(|kept| kept.overlaps(address, length)) {
        kept.leave(NONE);
    }
}

/// Makes the processes of models in this program keep the stacks of modelled
/// threads, which halves the time of short models: defines `mmap`, `mprotect`
/// and `munmap` for the program, with which it does so. Said once, in the root
/// of a program; nothing elsewhere than on 64-bit Linux.
#[macro_export]
macro_rules! keep_stacks {
    () => {
        #[cfg(all(target_os = "linux", target_pointer_width = "64"))]
        mod kept_stacks {
            use core::ffi::{c_int, c_void};

            #[unsafe(no_mangle)]
            unsafe extern "C" fn mmap(
                address: *mut c_void,
                length: usize,
                protection: c_int,
                flags: c_int,
                file: c_int,
                offset: i64,
            ) -> *mut c_void {
                // SAFETY: as of `mmap`, which it is.
                unsafe { $crate::stacks::map(address, length, protection, flags, file, offset) }
            }

            #[unsafe(no_mangle)]
            unsafe extern "C" fn mprotect(
                address: *mut c_void,
                length: usize,
                protection: c_int,
            ) -> c_int {
                // SAFETY: as of `mprotect`, which it is.
                unsafe { $crate::stacks::protect(address, length, protection) }
            }

            #[unsafe(no_mangle)]
            unsafe extern "C" fn munmap(address: *mut c_void, length: usize) -> c_int {
                // SAFETY: as of `munmap`, which it is.
                unsafe { $crate::stacks::unmap(address, length) }
            }
        }
    };
}
