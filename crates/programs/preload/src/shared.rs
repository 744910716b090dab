//! The lock under a rwlock: code that is compiled once for each lock with
//! readers.
//!
//! What POSIX says of rwlocks, forks and profiles is dealt with before: see
//! [`crate::rwlock`]. Nobody passes sleepers here, under no waiting policy: the
//! lock alone says who goes before whom.

use crate::mutex::Mutex;
use crate::side::Side;
use core::marker::PhantomData;
use core::sync::atomic::{AtomicPtr, Ordering};
use locklab_locks::catalogue::SharedVisitor;
use locklab_locks::lock_api::RawRwLockDowngrade;
use locklab_locks::{Platform, RawLock};

/// The chosen lock of rwlocks. The functions take the head of a rwlock of the
/// interposer; the releases require that the caller holds it.
pub(crate) struct SharedOps {
    pub(crate) read: unsafe fn(&Mutex),
    pub(crate) try_read: unsafe fn(&Mutex) -> bool,
    pub(crate) read_unlock: unsafe fn(&Mutex),
    pub(crate) write: unsafe fn(&Mutex),
    pub(crate) try_write: unsafe fn(&Mutex) -> bool,
    pub(crate) write_unlock: unsafe fn(&Mutex),
    /// Replaces the lock in a process just forked by one that is `held`.
    pub(crate) repair: unsafe fn(&Mutex, Held),
    /// Releases the lock of a destroyed rwlock.
    pub(crate) retire: fn(&Mutex),
}

/// Says how a rwlock is held.
#[derive(Clone, Copy)]
pub(crate) enum Held {
    Not,
    Reading,
    Writing,
}

static OPS: AtomicPtr<SharedOps> = AtomicPtr::new(core::ptr::null_mut());

/// Returns the chosen lock, or `None` if every rwlock stays glibc's.
#[inline(always)]
pub(crate) fn ops() -> Option<&'static SharedOps> {
    // SAFETY: null, or set by `set` to a constant.
    unsafe { OPS.load(Ordering::Relaxed).as_ref() }
}

/// Is called by `choice` only.
pub(crate) fn set(ops: &'static SharedOps) {
    OPS.store(core::ptr::from_ref(ops).cast_mut(), Ordering::Relaxed);
}

/// Makes [`SharedOps`] of a lock of the catalogue.
pub(crate) struct SharedOpsOf;

impl<P: Platform> SharedVisitor<P> for SharedOpsOf {
    type Output = &'static SharedOps;

    fn visit<L: RawLock<P, Ctx = ()> + RawRwLockDowngrade>(self) -> &'static SharedOps {
        const {
            &SharedOps {
                read: Shared::<P, L>::read,
                try_read: Shared::<P, L>::try_read,
                read_unlock: Shared::<P, L>::read_unlock,
                write: Shared::<P, L>::write,
                try_write: Shared::<P, L>::try_write,
                write_unlock: Shared::<P, L>::write_unlock,
                repair: Shared::<P, L>::repair,
                retire: Shared::<P, L>::retire,
            }
        }
    }
}

/// `L` beside a rwlock.
struct Shared<P, L>(PhantomData<(P, L)>);

impl<P: Platform, L: RawLock<P, Ctx = ()> + RawRwLockDowngrade> Shared<P, L> {
    /// Returns whether nobody holds it, so that another rwlock may have it.
    fn idle(lock: &L) -> bool {
        RawLock::is_locked(lock) == Some(false)
    }

    #[inline(always)]
    fn lock(head: &Mutex) -> &'static L {
        &Side::<L, true>::of_idle(head, Self::idle).lock
    }

    unsafe fn read(head: &Mutex) {
        Self::lock(head).lock_shared();
    }

    unsafe fn try_read(head: &Mutex) -> bool {
        Self::lock(head).try_lock_shared()
    }

    unsafe fn read_unlock(head: &Mutex) {
        // SAFETY: of the caller, here and below.
        unsafe { Self::lock(head).unlock_shared() }
    }

    unsafe fn write(head: &Mutex) {
        Self::lock(head).lock_exclusive();
    }

    unsafe fn try_write(head: &Mutex) -> bool {
        Self::lock(head).try_lock_exclusive()
    }

    unsafe fn write_unlock(head: &Mutex) {
        // SAFETY: as above.
        unsafe { Self::lock(head).unlock_exclusive() }
    }

    unsafe fn repair(head: &Mutex, held: Held) {
        if Side::<L, true>::known(head).is_none() {
            return;
        }
        // A thread that stayed in the parent may have been entering or leaving:
        // even a lock that looks free is replaced.
        let lock = &Side::<L, true>::replace(head).lock;
        match held {
            Held::Not => {}
            Held::Reading => lock.lock_shared(),
            Held::Writing => lock.lock_exclusive(),
        }
    }

    fn retire(head: &Mutex) {
        Side::<L, true>::retire_idle(head, |side| Self::idle(&side.lock));
    }
}
