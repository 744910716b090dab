//! Timed locks that queue, for the lock whose waiters can give up.
//!
//! A waiter of `mcs-timeout` waits in the queue, and leaves it at its
//! deadline. Its node stays in the queue until a release passes over it, so the
//! slot of it is set aside and checked again by the thread's next timed
//! lock. Every other lock polls: see [`crate::locking::timed_lock`].
//!
//! It must never free a slot whose node a release may still reach.

use crate::chosen::{self, TimedLockOf};
use crate::deadline::{Deadline, back_off};
use crate::mutex::Mutex;
use crate::plain::Plain;
use crate::thread;
use locklab_locks::{Info, Platform, RawLock, TimedLock, queue::McsTimeout, queue::McsTimeoutNode};

/// The time in the queue, in nanoseconds. A waiter that would park waits here
/// for about as long as it would spin, then leaves the queue, sleeps, and
/// returns to its place if no release has passed over it.
const STAY_AND_SLEEP: u64 = 20_000;
/// A spinning waiter stays; but the clock may be set.
const STAY: u64 = 100_000_000;

/// Returns the timed lock of the lock with this `info`, if its waiters can leave a
/// queue. (A timed lock without a queue polls, as for every other lock.)
pub(crate) const fn of<P: Platform>(info: &Info) -> Option<TimedLockOf> {
    if info.timeout && info.bytes_per_waiter > 0 {
        Some(lock_until::<P>)
    } else {
        None
    }
}

/// The lock inside the mutex; where waiters may be passed it lies beside the
/// mutex.
type InPlace<P> = Plain<P, McsTimeout<P>, false>;

unsafe fn lock_until<P: Platform>(mutex: &Mutex, deadline: &Deadline) -> bool {
    thread::reclaim(McsTimeoutNode::<P>::is_idle);
    let lock = InPlace::<P>::in_place(mutex);
    let slot = thread::take_last::<<McsTimeout<P> as RawLock<P>>::Ctx>();
    let mut tries = 0;
    while let Some(left) = deadline.left() {
        let stay = left.min(if chosen::parks() {
            STAY_AND_SLEEP
        } else {
            STAY
        });
        // SAFETY: a mutex of ours; the context is in no other acquisition,
        // and after a timeout it is used with this lock only.
        if unsafe { lock.lock_until(&slot.ctx, P::now().saturating_add(stay)) } {
            InPlace::<P>::keep(&mutex.slot, slot);
            return true;
        }
        if chosen::parks() {
            back_off(&mut tries);
        }
    }
    if slot.ctx.is_idle() {
        slot.free();
    } else {
        slot.set_aside();
    }
    false
}
