//! Holds what the threads of a process share: the mapped file, and the state that a
//! fork begins anew.
//!
//! The file is mapped whole and then closed, so a program that closes all
//! descriptors, changes its root or gives up rights is recorded on. The state
//! lies in a page that the system clears in a child, whichever way it was
//! forked.

use crate::modules::Known;
use core::ffi::c_void;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use locklab_trace::{BLOCK, Header};

/// The mapped file; null if this process is not recorded.
static HEADER: AtomicPtr<Header> = AtomicPtr::new(core::ptr::null_mut());
/// Set before `HEADER`.
static PROCESS: AtomicPtr<Process> = AtomicPtr::new(core::ptr::null_mut());

/// Describes what a fork begins anew: all zeros then.
#[repr(C)]
pub(crate) struct Process {
    /// One more than the number of the image, or 0 just after a fork.
    pub(crate) image: AtomicU32,
    /// 1 while a thread uses the list of free states.
    pub(crate) guard: AtomicU32,
    /// States of threads that have ended, with room in their blocks.
    pub(crate) free: AtomicPtr<c_void>,
    /// All states that there are, of threads that live or have ended.
    pub(crate) all: AtomicPtr<c_void>,
    /// The files that are known.
    pub(crate) modules: Known,
}

/// Returns the header, once the recording has begun.
#[inline(always)]
pub(crate) fn header() -> Option<&'static Header> {
    // SAFETY: a mapping that is never undone. Relaxed: what it points to was
    // there before this process was.
    unsafe { HEADER.load(Ordering::Relaxed).as_ref() }
}

/// Returns the process; only where [`header`] is there.
#[inline(always)]
pub(crate) fn process() -> &'static Process {
    // SAFETY: set before the header, to a mapping that is never undone.
    unsafe { &*PROCESS.load(Ordering::Acquire) }
}

/// Begins to record: from here on the two above are there.
pub(crate) fn set(header: *mut Header, process: *mut Process) {
    // Release: pairs with the load in `process`.
    PROCESS.store(process, Ordering::Release);
    HEADER.store(header, Ordering::Release);
}

/// Returns the bytes of a new block; none if the recording is over.
pub(crate) fn claim(header: &Header) -> Option<(*mut u8, *mut u8)> {
    let at = header.claim()?;
    let base = (&raw const *header).cast_mut().cast::<u8>();
    // SAFETY: within the mapping, which has room for all blocks.
    Some(unsafe { (base.add(at), base.add(at + BLOCK)) })
}
