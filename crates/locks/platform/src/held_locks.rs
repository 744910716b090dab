//! The table of the locks that a CPU holds and waits for.
//!
//! It belongs to the CPU and not to a lock, so that a lock which detects
//! deadlocks (`RqSpinlock`) stays four bytes. The lock says what is in it and
//! when; here it only has its place.

use crate::platform::{Atomic, Platform};

/// The most locks that the table of a CPU has room for.
pub const HELD_LOCKS: usize = 31;

/// The locks that a CPU holds and waits for, on four cache lines of its own.
///
/// A wrong entry makes a lock refuse for ever, or wait for ever, so writing one
/// needs `unsafe`:
///
/// ```compile_fail,E0616
/// use locklab_locks::platform::{Atomic, Ordering};
/// use locklab_locks::{NativePlatform, Platform};
/// NativePlatform::held_locks(0).unwrap().locks[0].store(0, Ordering::Relaxed);
/// ```
#[repr(C, align(64))]
pub struct HeldLocks<P: Platform>(HeldTable<P>);

/// Holds a table of held locks; see [`HeldLocks::table`].
#[doc(hidden)]
#[repr(C)]
pub struct HeldTable<P: Platform> {
    /// The low five bits: how many entries belong to code that waits, the last
    /// of them what it waits for. The others count how often that has changed.
    pub state: P::Usize,
    /// The address of a lock in each entry; 0 for none.
    pub locks: [P::Usize; HELD_LOCKS],
}

impl<P: Platform> HeldLocks<P> {
    /// The table of a CPU that holds no lock.
    #[allow(clippy::declare_interior_mutable_const)]
    pub const NONE: Self = Self(HeldTable {
        state: P::Usize::ZERO,
        locks: [const { P::Usize::ZERO }; HELD_LOCKS],
    });

    /// Returns the table itself.
    ///
    /// # Safety
    /// The caller is the lock of that kind, and writes its own CPU's table only.
    #[doc(hidden)]
    #[inline(always)]
    pub const unsafe fn table(&self) -> &HeldTable<P> {
        &self.0
    }
}

impl<P: Platform> Default for HeldLocks<P> {
    fn default() -> Self {
        Self(HeldTable {
            state: P::Usize::new(0),
            locks: core::array::from_fn(|_| P::Usize::new(0)),
        })
    }
}
