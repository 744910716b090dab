//! The adaptive mutex of glibc, as it is described.

use crate::futex::Futex;
use crate::native::NativePlatform;
use crate::platform::{Atomic, Ordering, Platform};
use crate::raw::{Info, RawLock};

/// Reads beyond twice the expected number.
const MARGIN: u32 = 10;

/// [`Futex`] whose waiter first reads up to twice as often as it took on average, and
/// sleeps after that: `MOST` times at most, which is `glibc.pthread.mutex_spin_count`. The
/// average follows every wait by an eighth, also one that was in vain.
///
/// **Follows:** `PTHREAD_MUTEX_ADAPTIVE_NP` of glibc 2.36, from its manual. Its normal
/// mutex is [`Futex`].
///
/// **Size:** 8 bytes. **Per waiter:** nothing. **Fairness:** none.
#[repr(C)]
pub struct GlibcAdaptive<P: Platform = NativePlatform, const MOST: u32 = 100> {
    futex: Futex<P>,
    /// Expected reads of a wait. Only the holder writes it.
    expected: P::U32,
}

impl<P: Platform, const MOST: u32> GlibcAdaptive<P, MOST> {
    /// Returns a free lock.
    pub const fn new() -> Self {
        Self {
            futex: Futex::new(),
            expected: P::U32::ZERO,
        }
    }

    #[cold]
    #[inline(never)]
    fn wait(&self) {
        let expected = self.expected.load(Ordering::Relaxed);
        let most = (2 * expected + MARGIN).min(MOST);
        let mut reads = 0;
        loop {
            if reads == most {
                // SAFETY: the caller of `lock` has promised the same.
                unsafe { self.futex.lock(&()) };
                break;
            }
            reads += 1;
            P::relax();
            // SAFETY: as above.
            if self.futex.is_locked() == Some(false) && unsafe { self.futex.try_lock(&()) } {
                break;
            }
        }
        let change = (reads.cast_signed() - expected.cast_signed()) / 8;
        let mean = expected.wrapping_add_signed(change);
        self.expected.store(mean, Ordering::Relaxed);
    }
}

impl<P: Platform, const MOST: u32> Default for GlibcAdaptive<P, MOST> {
    fn default() -> Self {
        Self {
            futex: Futex::default(),
            expected: P::U32::new(0),
        }
    }
}

// SAFETY: as `Futex`.
unsafe impl<P: Platform, const MOST: u32> RawLock<P> for GlibcAdaptive<P, MOST> {
    type Ctx = ();

    const INFO: Info = Info {
        name: "pthread-adaptive",
        summary: "glibc's adaptive mutex, as described",
        paper: "PTHREAD_MUTEX_ADAPTIVE_NP of glibc 2.36",
        orderings_of: Some("library-models/src/glibc_adaptive.rs"),
        structure_of: &["library-models/src/glibc_adaptive.rs"],
        ..<Futex<P> as RawLock<P>>::INFO
    };

    #[inline(always)]
    unsafe fn lock(&self, ctx: &()) {
        // SAFETY: the caller's promise is the same, here and below.
        if !unsafe { self.futex.try_lock(ctx) } {
            self.wait();
        }
    }

    #[inline(always)]
    unsafe fn try_lock(&self, ctx: &()) -> bool {
        // SAFETY: as above.
        unsafe { self.futex.try_lock(ctx) }
    }

    #[inline(always)]
    fn is_locked(&self) -> Option<bool> {
        self.futex.is_locked()
    }

    #[inline(always)]
    unsafe fn unlock(&self, ctx: &()) {
        // SAFETY: as above.
        unsafe { self.futex.unlock(ctx) }
    }
}

crate::lock_api_impl::context_free!(GlibcAdaptive, MOST: u32);
