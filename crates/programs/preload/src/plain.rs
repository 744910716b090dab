//! The lock itself, under a mutex: code that is compiled once for each lock and
//! each waiting policy.
//!
//! "Plain" because the type of the mutex, forks and profiles are dealt with
//! before: see [`crate::locking`].

use crate::alone::Alone;
use crate::deadline::back_off;
use crate::fronted::front;
use crate::mutex::{Errno, Mutex};
use crate::report;
use crate::side::Side;
use crate::thread::{self, Slot};
use core::marker::PhantomData;
use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use locklab_locks::{MAX_CPUS, Platform, RawLock};

impl<L: RawLock<Alone>, const BARGING: bool> Plain<Alone, L, BARGING> {
    pub(crate) unsafe extern "C" fn lock_alone_entry(mutex: &Mutex) -> Errno {
        if !Self::GATED || !Side::<L>::of(mutex).gate::<Alone>().enter_alone() {
            // SAFETY: of the caller.
            unsafe { Self::lock(mutex) };
        }
        0
    }

    pub(crate) unsafe extern "C" fn unlock_alone_entry(mutex: &Mutex) -> Errno {
        let left = Self::GATED
            && Side::<L>::known(mutex).is_some_and(|side| side.gate::<Alone>().leave_alone());
        if !left {
            // SAFETY: of the caller.
            unsafe { Self::unlock(mutex) };
        }
        0
    }
}

// The holder mark of a lock beside its mutex; for those with a gate,
// `gate` has it.
const FREE: u32 = 0;
const HELD: u32 = 1;

/// `L` under a mutex; with `BARGING`, running threads may pass its waiters.
pub(crate) struct Plain<P, L, const BARGING: bool>(PhantomData<(P, L)>);

impl<P: Platform, L: RawLock<P>, const BARGING: bool> Plain<P, L, BARGING> {
    /// Says whether its waiters may be passed. What is held then is a word in the mutex,
    /// and `L` is the queue behind it, or what its waiters compete for: see
    /// [`locklab_pthread_protocols::front`].
    const PASSED: bool = BARGING;
    /// Says whether `try_lock` must bypass the lock: because it has none, or because it
    /// would admit the holder again. See [`locklab_pthread_protocols::gate`].
    const GATED: bool = (!L::INFO.try_lock || L::INFO.recursive) && !Self::PASSED;
    /// Says whether fewer threads may queue than a program could have.
    const BOUNDED: bool = L::INFO.max_cpus < MAX_CPUS;
    /// Says whether the lock lives in the mutex.
    const FITS: bool = size_of::<L>() <= 8 && align_of::<L>() <= 8 && !Self::GATED && !Self::PASSED;
    const CONTEXT_FREE: bool = size_of::<L::Ctx>() == 0;

    pub(crate) unsafe extern "C" fn lock_entry(mutex: &Mutex) -> Errno {
        // SAFETY: of the caller.
        unsafe { Self::lock(mutex) };
        0
    }

    pub(crate) unsafe extern "C" fn try_lock_entry(mutex: &Mutex) -> Errno {
        // SAFETY: of the caller.
        if unsafe { Self::try_lock(mutex) } {
            0
        } else {
            libc::EBUSY
        }
    }

    pub(crate) unsafe extern "C" fn unlock_entry(mutex: &Mutex) -> Errno {
        // SAFETY: of the caller.
        unsafe { Self::unlock(mutex) };
        0
    }

    #[inline(always)]
    pub(crate) fn in_place(mutex: &Mutex) -> &L {
        const { assert!(!Self::FITS || size_of::<L>() <= 8) };
        // SAFETY: it fits, and a word of zeros is a free lock.
        unsafe { &*mutex.word.as_ptr().cast() }
    }

    /// Locks a mutex of the interposer.
    ///
    /// # Safety
    /// `mutex` is one of the interposer's.
    #[inline(always)]
    unsafe fn lock(mutex: &Mutex) {
        if Self::PASSED {
            if !front::<P>(mutex).try_enter() {
                // SAFETY: of the caller.
                unsafe { Self::queue(mutex) };
            }
            return;
        }
        if Self::FITS {
            // SAFETY: the context is in no other acquisition.
            unsafe { Self::acquire(Self::in_place(mutex), &mutex.slot) };
            return;
        }
        if Self::BOUNDED && thread::number() + 1 >= L::INFO.max_cpus {
            // SAFETY: as above.
            return unsafe { Self::lock_without_queueing(mutex) };
        }
        let side = Side::<L>::of(mutex);
        // SAFETY: as above.
        unsafe { Self::acquire(&side.lock, side.slot()) };
        if Self::GATED {
            side.gate::<P>().enter();
        } else {
            side.held().store(HELD, Ordering::Relaxed);
        }
    }

    /// Locks by the queue behind the word, of which the caller becomes the head.
    ///
    /// # Safety
    /// The same conditions as for `lock`.
    #[cold]
    #[inline(never)]
    unsafe fn queue(mutex: &Mutex) {
        if Self::BOUNDED && thread::number() + 1 >= L::INFO.max_cpus {
            // SAFETY: of the caller.
            return unsafe { Self::lock_without_queueing(mutex) };
        }
        let side = Side::<L>::of(mutex);
        // SAFETY: the context is in no other acquisition.
        unsafe { Self::acquire(&side.lock, side.slot()) };
        side.held().store(HELD, Ordering::Relaxed);
        let slot = Self::slot(side.slot());
        let passes = front::<P>(mutex).enter_as_head();
        if passes != 0 {
            report::passed(passes);
        }
        side.held().store(FREE, Ordering::Relaxed);
        // SAFETY: acquired above; the word is ours, so the next may be the head.
        unsafe { Self::release(&side.lock, slot) };
    }

    /// Locks a mutex if it is free.
    ///
    /// # Safety
    /// The same conditions as for `lock`.
    pub(crate) unsafe fn lock_if_free(mutex: &Mutex) -> bool {
        if Self::FITS || Self::PASSED {
            // SAFETY: of the caller, here and below.
            return unsafe { Self::try_lock(mutex) };
        }
        let free = !Side::<L>::of(mutex).is_held();
        if free {
            // SAFETY: as above.
            unsafe { Self::lock(mutex) };
        }
        free
    }

    /// Locks for the threads beyond the lock's bound, for which one place
    /// is reserved.
    #[cold]
    #[inline(never)]
    unsafe fn lock_without_queueing(mutex: &Mutex) {
        report::outside();
        let mut tries = 0;
        // SAFETY: of the caller.
        while !unsafe { Self::try_lock(mutex) } {
            back_off(&mut tries);
        }
    }

    #[inline(always)]
    unsafe fn acquire(lock: &L, place: &AtomicPtr<()>) {
        if Self::CONTEXT_FREE {
            // SAFETY: of the caller.
            unsafe { lock.lock(&L::Ctx::default()) };
        } else {
            let slot = thread::take::<L::Ctx>();
            // SAFETY: of the caller.
            unsafe { lock.lock(&slot.ctx) };
            Self::keep(place, slot);
        }
    }

    /// Stores the holder's slot where the unlock finds it, whichever thread
    /// unlocks.
    #[inline(always)]
    pub(crate) fn keep(place: &AtomicPtr<()>, slot: &'static Slot<L::Ctx>) {
        place.store(
            core::ptr::from_ref(slot).cast_mut().cast(),
            Ordering::Relaxed,
        );
    }

    /// Tries to lock a mutex of the interposer.
    ///
    /// # Safety
    /// The same conditions as for `lock`.
    #[inline(always)]
    unsafe fn try_lock(mutex: &Mutex) -> bool {
        if Self::PASSED {
            return front::<P>(mutex).try_enter();
        }
        if Self::FITS {
            // SAFETY: of the caller.
            return unsafe { Self::try_acquire(Self::in_place(mutex), &mutex.slot) };
        }
        let side = Side::<L>::of(mutex);
        if Self::GATED {
            return side.gate::<P>().try_enter();
        }
        // SAFETY: of the caller.
        let acquired = unsafe { Self::try_acquire(&side.lock, side.slot()) };
        if acquired {
            side.held().store(HELD, Ordering::Relaxed);
        }
        acquired
    }

    #[inline(always)]
    unsafe fn try_acquire(lock: &L, place: &AtomicPtr<()>) -> bool {
        if Self::CONTEXT_FREE {
            // SAFETY: of the caller.
            return unsafe { lock.try_lock(&L::Ctx::default()) };
        }
        let slot = thread::take::<L::Ctx>();
        // SAFETY: of the caller.
        let acquired = unsafe { lock.try_lock(&slot.ctx) };
        if acquired {
            Self::keep(place, slot);
        } else {
            slot.free();
        }
        acquired
    }

    /// Unlocks a mutex of the interposer.
    ///
    /// # Safety
    /// `mutex` is one of the interposer's and held; by a thread other than the
    /// caller only if the program does what POSIX leaves undefined, which all
    /// locks but the recursive ones tolerate.
    #[inline(always)]
    unsafe fn unlock(mutex: &Mutex) {
        if Self::PASSED {
            front::<P>(mutex).leave();
        } else if Self::FITS {
            // SAFETY: of the caller.
            unsafe { Self::release(Self::in_place(mutex), Self::slot(&mutex.slot)) };
        } else if let Some(side) = Side::<L>::known(mutex) {
            // Read before it leaves, after which another may hold.
            let slot = Self::slot(side.slot());
            let queued = if Self::GATED {
                side.gate::<P>().leave()
            } else {
                side.held().store(FREE, Ordering::Relaxed);
                true
            };
            if queued {
                // SAFETY: of the caller.
                unsafe { Self::release(&side.lock, slot) };
            }
        }
    }

    pub(crate) unsafe fn busy(mutex: &Mutex) -> bool {
        if Self::PASSED {
            return front::<P>(mutex).is_held();
        }
        if Self::GATED {
            return Side::<L>::known(mutex).is_some_and(|side| side.gate::<P>().busy());
        }
        // SAFETY: of the caller.
        let free = unsafe { Self::try_lock(mutex) };
        if free {
            // SAFETY: just acquired.
            unsafe { Self::unlock(mutex) };
        }
        !free
    }

    #[inline(always)]
    unsafe fn release(lock: &L, slot: *const Slot<L::Ctx>) {
        if Self::CONTEXT_FREE {
            // SAFETY: of the caller.
            unsafe { lock.unlock(&L::Ctx::default()) };
            return;
        }
        // SAFETY: null or a slot, which is never unmapped.
        let slot = unsafe { slot.as_ref() };
        // A mutex that was never held has no slot; to unlock it is the
        // program's error, and has no effect.
        if let Some(slot) = slot {
            // SAFETY: of the caller.
            unsafe { lock.unlock(&slot.ctx) };
            slot.free();
        }
    }

    #[inline(always)]
    fn slot(place: &AtomicPtr<()>) -> *const Slot<L::Ctx> {
        place.load(Ordering::Relaxed).cast_const().cast()
    }

    pub(crate) unsafe fn since(mutex: &Mutex) -> &AtomicU64 {
        if Self::PASSED {
            Side::<L>::of(mutex).since()
        } else if let Some(side) = Side::<L>::known(mutex).filter(|_| !Self::FITS) {
            side.since()
        } else if Self::CONTEXT_FREE {
            // SAFETY: a word of the mutex that nothing else uses then.
            unsafe { AtomicU64::from_ptr(mutex.slot.as_ptr().cast()) }
        } else {
            // SAFETY: the caller holds it, so it has a slot.
            unsafe { &(*Self::slot(&mutex.slot)).since }
        }
    }

    pub(crate) unsafe fn repair(mutex: &Mutex) {
        if Self::PASSED {
            // The word says what it said; nobody waits.
            front::<P>(mutex).forget_head();
            if Side::<L>::known(mutex).is_some() {
                Side::<L>::replace(mutex);
            }
            return;
        }
        let (lock, place) = if Self::FITS {
            // SAFETY: a mutex of ours.
            if unsafe { Self::try_lock(mutex) } {
                // SAFETY: just acquired.
                unsafe { Self::unlock(mutex) };
                return;
            }
            mutex.word.store(0, Ordering::Relaxed);
            (Self::in_place(mutex), &mutex.slot)
        } else {
            let Some(side) = Side::<L>::known(mutex) else {
                return;
            };
            // A thread that stayed in the parent may have been entering or
            // leaving. So even one that looks free is replaced.
            let was_held = side.is_held();
            let side = Side::<L>::replace(mutex);
            if !was_held {
                return;
            }
            side.held().store(HELD, Ordering::Relaxed);
            (&side.lock, side.slot())
        };
        // It is held by a thread that still exists, or by one that does not,
        // which look the same. It stays held, by a slot that its unlock will
        // free. SAFETY: the lock is free and no other thread uses it.
        unsafe { Self::acquire(lock, place) };
    }

    /// Gives this thread a record.
    pub(crate) fn give_record() {
        thread::enter::<L::Ctx>();
    }

    pub(crate) fn retire(mutex: &Mutex) {
        if !Self::FITS {
            Side::<L>::retire(mutex);
        }
    }
}
