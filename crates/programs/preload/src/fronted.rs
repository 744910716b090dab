//! The word in front of a queue, in the mutex: see
//! [`locklab_pthread_protocols::front`].
//!
//! It is the same whatever lock the queue is, so the exported functions take it
//! without a jump to the code of the lock. Must never be used for a mutex whose
//! lock is in the mutex.

use crate::alone::{Alone, is_alone};
use crate::host::SpinThenPark;
use crate::mutex::Mutex;
use core::sync::atomic::AtomicU32;
use locklab_locks::Platform;
use locklab_pthread_protocols::front::Front;

/// Returns the word that is held, and what is known of the head of the queue behind.
#[inline(always)]
pub(crate) fn front<P: Platform>(mutex: &Mutex) -> Front<'_, P> {
    const { assert!(size_of::<P::U32>() == size_of::<AtomicU32>()) };
    // SAFETY: the word of each platform here is a transparent wrapper of an
    // atomic one; two of them take the place of the slot, which is used if the
    // lock is in the mutex, and only then.
    let words: &[P::U32; 2] = unsafe { &*mutex.slot.as_ptr().cast_const().cast() };
    Front::new(&words[0], &words[1])
}

/// Takes it if nobody has it, and the head of the queue may be passed.
#[inline(always)]
pub(crate) fn try_enter(mutex: &Mutex) -> bool {
    if is_alone() {
        front::<Alone>(mutex).try_enter()
    } else {
        front::<SpinThenPark>(mutex).try_enter()
    }
}

/// Gives it back.
#[inline(always)]
pub(crate) fn leave(mutex: &Mutex) {
    if is_alone() {
        front::<Alone>(mutex).leave();
    } else {
        front::<SpinThenPark>(mutex).leave();
    }
}
