//! Data behind a lock, and what a kernel switches off around the critical
//! section.
//!
//! A kernel that acquires a spinlock first ensures that it stays on its CPU
//! (preemption off), and where interrupt handlers acquire the lock too, that
//! none runs (interrupts off). The previous state is kept in the guard and
//! restored when the lock has been released. It is never kept in the lock: the
//! state belongs to the CPU, and with several locks held it may be restored in
//! any order.

use crate::native::NativePlatform;
use crate::platform::Platform;
use crate::raw_lock::RawLock;
use core::cell::UnsafeCell;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};

/// Switches something off on this CPU while it holds a lock: preemption,
/// interrupts, or both.
///
/// ```
/// use locklab_locks::kernel::Mask;
///
/// struct InterruptsOff;
///
/// // SAFETY: no handler runs on this CPU from `begin` to the matching `end`.
/// unsafe impl Mask for InterruptsOff {
///     type Saved = bool;
///     fn begin() -> bool {
///         // was = flags() & INTERRUPTS != 0; cli()
///         true
///     }
///     unsafe fn end(was_on: bool) {
///         if was_on {
///             // sti()
///         }
///     }
/// }
/// ```
///
/// # Safety
/// From the return of [`Mask::begin`] to the call of the matching
/// [`Mask::end`] the calling code stays on its CPU, and nothing that is
/// switched off runs there. Pairs nest. Neither function unwinds.
pub unsafe trait Mask {
    /// The previous state.
    type Saved: Copy;

    /// Switches off, and returns the previous state.
    fn begin() -> Self::Saved;

    /// Restores the state that [`Mask::begin`] returned.
    ///
    /// # Safety
    /// `saved` comes from a `begin` of this CPU whose `end` is still to come.
    unsafe fn end(saved: Self::Saved);
}

/// A value behind a context-free lock, with `M` around each critical section.
///
/// The mask begins before the lock is requested, so that no interrupt handler
/// waits for the CPU that it interrupted, and ends after the release.
pub struct Masked<T: ?Sized, L, M, P = NativePlatform> {
    mask: PhantomData<fn() -> (M, P)>,
    lock: L,
    value: UnsafeCell<T>,
}

// SAFETY: one CPU at a time reaches the value.
unsafe impl<T: ?Sized + Send, L: Sync, M, P> Sync for Masked<T, L, M, P> {}
// SAFETY: a free lock may move to another thread with its value.
unsafe impl<T: ?Sized + Send, L: Send, M, P> Send for Masked<T, L, M, P> {}

impl<T, L, M, P> Masked<T, L, M, P> {
    /// Makes a free lock around `value`.
    pub const fn new(lock: L, value: T) -> Self {
        Self {
            mask: PhantomData,
            lock,
            value: UnsafeCell::new(value),
        }
    }

    /// Returns the value, at the end of the lock's life.
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }
}

impl<T: ?Sized, L, M, P> Masked<T, L, M, P> {
    /// Returns the value, without locking: there is no other reference.
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }
}

impl<T: ?Sized, P: Platform, L: RawLock<P, Ctx = ()>, M: Mask> Masked<T, L, M, P> {
    /// Begins the mask, then acquires. A lock that serves a limited number of CPUs
    /// (`INFO.max_cpus`), or that is recursive, does not compile here.
    #[inline]
    pub fn lock(&self) -> MaskedGuard<'_, T, L, M, P> {
        const { crate::mutex::admits_one_guard::<P, L>() };
        let saved = M::begin();
        // SAFETY: no context; borrowed for as long as it is held.
        unsafe { self.lock.lock(&()) };
        MaskedGuard {
            of: self,
            saved,
            on_this_cpu: PhantomData,
        }
    }

    /// Acquires if that needs no waiting; otherwise the mask has ended again on
    /// return.
    #[inline]
    pub fn try_lock(&self) -> Option<MaskedGuard<'_, T, L, M, P>> {
        const { crate::mutex::admits_one_guard::<P, L>() };
        let saved = M::begin();
        // SAFETY: as in `lock`.
        if unsafe { self.lock.try_lock(&()) } {
            Some(MaskedGuard {
                of: self,
                saved,
                on_this_cpu: PhantomData,
            })
        } else {
            // SAFETY: of the `begin` above.
            unsafe { M::end(saved) };
            None
        }
    }

    /// Works as [`RawLock::is_locked`].
    pub fn is_locked(&self) -> Option<bool> {
        self.lock.is_locked()
    }
}

/// Holds a [`Masked`] lock, and the previous state of the mask.
#[must_use = "the lock is released when the guard is dropped"]
pub struct MaskedGuard<'a, T: ?Sized, L, M: Mask, P = NativePlatform>
where
    P: Platform,
    L: RawLock<P, Ctx = ()>,
{
    of: &'a Masked<T, L, M, P>,
    saved: M::Saved,
    /// Makes the guard not `Send`.
    on_this_cpu: PhantomData<*mut ()>,
}

// SAFETY: a shared guard gives out `&T` only.
unsafe impl<T: ?Sized + Sync, P: Platform, L: RawLock<P, Ctx = ()>, M: Mask> Sync
    for MaskedGuard<'_, T, L, M, P>
where
    M::Saved: Sync,
{
}

impl<T: ?Sized, P: Platform, L: RawLock<P, Ctx = ()>, M: Mask> Deref
    for MaskedGuard<'_, T, L, M, P>
{
    type Target = T;
    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: we hold the lock.
        unsafe { &*self.of.value.get() }
    }
}

impl<T: ?Sized, P: Platform, L: RawLock<P, Ctx = ()>, M: Mask> DerefMut
    for MaskedGuard<'_, T, L, M, P>
{
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: we hold the lock.
        unsafe { &mut *self.of.value.get() }
    }
}

impl<T: ?Sized, P: Platform, L: RawLock<P, Ctx = ()>, M: Mask> Drop
    for MaskedGuard<'_, T, L, M, P>
{
    #[inline]
    fn drop(&mut self) {
        // SAFETY: held since the guard was made; then the end of its `begin`.
        unsafe {
            self.of.lock.unlock(&());
            M::end(self.saved);
        }
    }
}
