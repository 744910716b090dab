//! The chosen lock: its operations, and what else the choice decides.
//!
//! Who makes the choice is `choice`, above all that use it; nothing here may be
//! called before.

use crate::deadline::Deadline;
use crate::mutex::{Errno, Mutex};
use crate::own::Guarded;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use locklab_locks::{Fairness, Info, MAX_CPUS};

/// An operation to which the exported functions jump: returns 0, or `EBUSY` of
/// a `try_lock`.
pub(crate) type Entry = unsafe extern "C" fn(&Mutex) -> Errno;

/// `lock`, `try_lock`, `unlock`.
pub(crate) type Entries = [Entry; 3];

/// Acquires, or gives up at the deadline; returns whether it acquired.
pub(crate) type TimedLockOf = unsafe fn(&Mutex, &Deadline) -> bool;

/// The chosen lock. The functions that take a mutex require that it is one of
/// ours, and `unlock` and `since` that the caller holds it.
pub(crate) struct Ops {
    pub(crate) info: Info,
    pub(crate) lock: Entry,
    pub(crate) try_lock: Entry,
    pub(crate) unlock: Entry,
    /// Locks if the lock is free at the first attempt; returns whether it was.
    pub(crate) lock_if_free: unsafe fn(&Mutex) -> bool,
    /// The timed lock, if its waiters can give up.
    pub(crate) timed_lock: Option<TimedLockOf>,
    /// Says whether a thread holds it; called by the only thread that still uses it.
    pub(crate) busy: unsafe fn(&Mutex) -> bool,
    /// The place where the holder keeps the time of its acquisition.
    pub(crate) since: unsafe fn(&Mutex) -> &AtomicU64,
    /// Repairs a lock in a process just forked: a held lock stays held, without
    /// waiters.
    pub(crate) repair: unsafe fn(&Mutex),
    /// Releases the lock of a destroyed mutex.
    pub(crate) retire: fn(&Mutex),
    /// Gives this thread a record.
    pub(crate) enter: fn(),
}

/// `Mutex::state` of the mutexes that take the fast path: of the plain type,
/// last touched since the last fork. Until there is a choice, none.
pub(crate) static PLAIN: AtomicUsize = AtomicUsize::new(NONE);

/// Holds the same of mutexes that are held by the word in front of a queue; one of the
/// two is that of no mutex.
pub(crate) static FRONTED: AtomicUsize = AtomicUsize::new(NONE);

/// A value that no mutex has.
const NONE: usize = usize::MAX - 1;

/// The targets of the fast path. Valid once a mutex equals [`PLAIN`].
pub(crate) static SHORT: Short = Short::new();

/// Holds the same while the process has one thread; see [`crate::alone`].
pub(crate) static SHORT_ALONE: Short = Short::new();

/// Functions of the type [`Entry`].
pub(crate) struct Short {
    pub(crate) lock: AtomicPtr<()>,
    pub(crate) try_lock: AtomicPtr<()>,
    pub(crate) unlock: AtomicPtr<()>,
}

impl Short {
    const fn new() -> Self {
        Self {
            lock: AtomicPtr::new(core::ptr::null_mut()),
            try_lock: AtomicPtr::new(core::ptr::null_mut()),
            unlock: AtomicPtr::new(core::ptr::null_mut()),
        }
    }

    pub(crate) fn set(&self, [lock, try_lock, unlock]: Entries) {
        let set = |place: &AtomicPtr<()>, entry: Entry| {
            place.store((entry as *const ()).cast_mut(), Ordering::Relaxed);
        };
        set(&self.lock, lock);
        set(&self.try_lock, try_lock);
        set(&self.unlock, unlock);
    }
}

pub(crate) static OPS: AtomicPtr<Ops> = AtomicPtr::new(core::ptr::null_mut());

pub(crate) static VIRTUALIZED: AtomicBool = AtomicBool::new(false);

pub(crate) static PARKS: AtomicBool = AtomicBool::new(false);

/// Says whether running threads may pass waiters.
pub(crate) static BARGES: AtomicBool = AtomicBool::new(false);

/// Returns the chosen lock. Only after `choice::make`, and not if [`is_glibc`].
#[inline(always)]
pub(crate) fn ops() -> &'static Ops {
    // SAFETY: set by `choice::make` to a constant, before anything else is reached.
    unsafe { &*OPS.load(Ordering::Relaxed) }
}

/// Returns whether every mutex stays glibc's.
#[inline]
pub(crate) fn is_glibc() -> bool {
    OPS.load(Ordering::Relaxed).is_null()
}

/// Returns the description of the lock of mutexes, unless they are glibc's.
fn info() -> Option<&'static Info> {
    (!is_glibc()).then(|| &ops().info)
}

/// Returns the most threads that may use a mutex's lock at a time.
pub(crate) fn max_cpus() -> usize {
    info().map_or(MAX_CPUS, |info| info.max_cpus)
}

/// Returns the name of the lock.
pub(crate) fn name() -> &'static str {
    info().map_or("pthread", |info| info.name)
}

/// Returns whether mutexes are held by the word in front of a queue.
pub(crate) fn is_fronted() -> bool {
    BARGES.load(Ordering::Relaxed) && !is_glibc()
}

/// Returns whether a release hands the lock to a waiter, in some order, and does not
/// leave it to the first thread that takes it.
pub(crate) fn hands_over() -> bool {
    let in_order = |info: &Info| !matches!(info.fairness, Fairness::Unfair);
    !BARGES.load(Ordering::Relaxed) && info().is_some_and(in_order)
}

/// Returns whether waiters sleep after spinning.
pub(crate) fn parks() -> bool {
    PARKS.load(Ordering::Relaxed)
}

pub(crate) fn virtualized() -> bool {
    VIRTUALIZED.load(Ordering::Relaxed)
}

/// Held while the choice is made.
pub(crate) static MAKING: Guarded = Guarded::new();

pub(crate) fn guard() -> &'static Guarded {
    &MAKING
}
