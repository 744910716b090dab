//! `ticket`, `qspinlock` and `mcs` as C types, and the slow paths that the
//! inline header calls.
//!
//! All-zero bytes are a free lock of each of them, and an idle node.

use crate::host::P;
use core::ffi::c_void;
use locklab_locks::{Mcs, McsNode, QSpinlock, RawLock, Ticket};

/// A ticket lock: 4 bytes, first come, first served. Zeroed: free.
#[repr(C)]
pub struct locklab_ticket {
    /// For the library and locklab_inline.h only.
    pub word: u32,
}

/// A queued spinlock: 4 bytes, first come, first served, each queued waiter
/// spins on a line of its own. Zeroed: free.
#[repr(C)]
pub struct locklab_qspinlock {
    /// For the library and locklab_inline.h only.
    pub word: u32,
}

/// An MCS lock: one pointer, first come, first served. Zeroed: free.
#[repr(C)]
pub struct locklab_mcs {
    /// For the library and locklab_inline.h only.
    pub tail: *mut c_void,
}

/// A waiter of an MCS lock, on the caller's stack. Needs no initialisation;
/// stays in place from lock to unlock.
#[repr(C, align(64))]
pub struct locklab_mcs_node {
    /// For the library and locklab_inline.h only.
    pub next: *mut c_void,
    /// For the library and locklab_inline.h only.
    pub granted: u32,
}

const _: () = {
    assert!(size_of::<Ticket<P>>() == size_of::<locklab_ticket>());
    assert!(align_of::<Ticket<P>>() == align_of::<locklab_ticket>());
    assert!(size_of::<QSpinlock<P>>() == size_of::<locklab_qspinlock>());
    assert!(align_of::<QSpinlock<P>>() == align_of::<locklab_qspinlock>());
    assert!(size_of::<Mcs<P>>() == size_of::<locklab_mcs>());
    assert!(align_of::<Mcs<P>>() == align_of::<locklab_mcs>());
    assert!(size_of::<McsNode<P>>() == size_of::<locklab_mcs_node>());
    assert!(align_of::<McsNode<P>>() == align_of::<locklab_mcs_node>());
};

/// Acquires the lock; spins until it has it.
///
/// # Safety
/// `lock` points to a ticket lock.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn locklab_ticket_lock(lock: *mut locklab_ticket) {
    // SAFETY: of the caller; same layout, checked above.
    unsafe { RawLock::<P>::lock(&*lock.cast::<Ticket<P>>(), &()) }
}

/// Acquires the lock if it is free; returns whether it did.
///
/// # Safety
/// The same conditions as for `locklab_ticket_lock`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn locklab_ticket_trylock(lock: *mut locklab_ticket) -> bool {
    // SAFETY: of the caller; same layout, checked above.
    unsafe { RawLock::<P>::try_lock(&*lock.cast::<Ticket<P>>(), &()) }
}

/// Releases the lock.
///
/// # Safety
/// The caller holds it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn locklab_ticket_unlock(lock: *mut locklab_ticket) {
    // SAFETY: of the caller; same layout, checked above.
    unsafe { RawLock::<P>::unlock(&*lock.cast::<Ticket<P>>(), &()) }
}

/// Waits for `ticket`: the slow path of the inline acquire.
///
/// # Safety
/// `ticket` was drawn from this lock and has not been released.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn locklab_ticket_wait(lock: *mut locklab_ticket, ticket: u16) {
    // SAFETY: of the caller; same layout, checked above.
    unsafe { (*lock.cast::<Ticket<P>>()).wait(ticket) }
}

/// Acquires the lock; spins until it has it.
///
/// # Safety
/// `lock` points to a qspinlock.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn locklab_qspinlock_lock(lock: *mut locklab_qspinlock) {
    // SAFETY: of the caller; same layout, checked above.
    unsafe { RawLock::<P>::lock(&*lock.cast::<QSpinlock<P>>(), &()) }
}

/// Acquires the lock if it is free; returns whether it did.
///
/// # Safety
/// The same conditions as for `locklab_qspinlock_lock`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn locklab_qspinlock_trylock(lock: *mut locklab_qspinlock) -> bool {
    // SAFETY: of the caller; same layout, checked above.
    unsafe { RawLock::<P>::try_lock(&*lock.cast::<QSpinlock<P>>(), &()) }
}

/// Releases the lock.
///
/// # Safety
/// The caller holds it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn locklab_qspinlock_unlock(lock: *mut locklab_qspinlock) {
    // SAFETY: of the caller; same layout, checked above.
    unsafe { RawLock::<P>::unlock(&*lock.cast::<QSpinlock<P>>(), &()) }
}

/// Waits after a read that returned `word`, not 0: the slow path of the inline acquire.
///
/// # Safety
/// `lock` points to a qspinlock.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn locklab_qspinlock_wait(lock: *mut locklab_qspinlock, word: u32) {
    // SAFETY: of the caller; same layout, checked above.
    unsafe { (*lock.cast::<QSpinlock<P>>()).wait(word) }
}

/// Acquires the lock; spins until it has it.
///
/// # Safety
/// `lock` points to an MCS lock. `node` is in use by no other acquisition, and
/// both stay in place until the unlock.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn locklab_mcs_lock(lock: *mut locklab_mcs, node: *mut locklab_mcs_node) {
    // SAFETY: of the caller; same layout, checked above.
    unsafe { RawLock::<P>::lock(&*lock.cast::<Mcs<P>>(), &*node.cast()) }
}

/// Acquires the lock if it is free; returns whether it did.
///
/// # Safety
/// The same conditions as for `locklab_mcs_lock`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn locklab_mcs_trylock(
    lock: *mut locklab_mcs,
    node: *mut locklab_mcs_node,
) -> bool {
    // SAFETY: of the caller; same layout, checked above.
    unsafe { RawLock::<P>::try_lock(&*lock.cast::<Mcs<P>>(), &*node.cast()) }
}

/// Releases the lock.
///
/// # Safety
/// The caller holds it, acquired with this `node`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn locklab_mcs_unlock(lock: *mut locklab_mcs, node: *mut locklab_mcs_node) {
    // SAFETY: of the caller; same layout, checked above.
    unsafe { RawLock::<P>::unlock(&*lock.cast::<Mcs<P>>(), &*node.cast()) }
}

/// Waits behind `predecessor`: the slow path of the inline acquire.
///
/// # Safety
/// `node` has just replaced `predecessor`, not null, as the tail of a lock.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn locklab_mcs_wait(
    predecessor: *mut locklab_mcs_node,
    node: *mut locklab_mcs_node,
) {
    // SAFETY: of the caller; same layout, checked above.
    unsafe { Mcs::<P>::wait(predecessor.cast(), &*node.cast()) }
}

/// Hands the lock to the next waiter: the slow path of the inline release.
///
/// # Safety
/// The holder acquired with `node`, which is no longer the tail.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn locklab_mcs_hand_over(node: *mut locklab_mcs_node) {
    // SAFETY: of the caller; same layout, checked above.
    unsafe { Mcs::<P>::hand_over(&*node.cast()) }
}
