//! Stands for `crate` in the source of a lock in which a bug is planted
//! (`planted.txt`). build.rs has the list of what is here: a lock whose source asks
//! for more is not planted until that is added.

pub(crate) use locklab_locks::{MAX_CPUS, platform};

// Locks that others are built of, as they are.
include!(concat!(env!("OUT_DIR"), "/inner.rs"));

pub(crate) mod raw {
    use locklab_locks::Platform;
    use locklab_locks::platform::{Atomic, Ordering};
    pub(crate) use locklab_locks::{Fairness, Info, Overtakes, RawLock, TimedLock};

    /// Does what that of [`locklab_locks`] does.
    pub(crate) fn take_until<P: Platform, T: Copy + PartialEq + Default, A: Atomic<T>>(
        word: &A,
        deadline: u64,
        take: impl Fn() -> bool,
    ) -> bool {
        loop {
            if word.load(Ordering::Relaxed) == T::default() && take() {
                return true;
            }
            if P::now() >= deadline {
                return false;
            }
        }
    }
}
pub(crate) mod native {
    pub(crate) use locklab_locks::NativePlatform;
}
pub(crate) mod line {
    pub(crate) use locklab_locks::host::CacheLine;
}
pub(crate) mod mutex {
    pub(crate) use locklab_locks::{LeakableGuard, StackContext};
}
pub(crate) mod phase_fair {
    pub(crate) use locklab_locks::PhaseFair;
}
pub(crate) mod qnode {
    pub(crate) use locklab_locks::{NESTING, host::QueueNode};
}
pub(crate) mod sleepers {
    pub(crate) use locklab_platform::sleepers::{SleepQueue, Sleeper};
}
pub(crate) mod held_locks {
    pub(crate) use locklab_platform::held_locks::{HELD_LOCKS, HeldLocks, HeldTable};
}
pub(crate) mod cna {
    pub(crate) use locklab_locks::{queue::Cna, queue::CnaNode};
}
pub(crate) mod lock_api_impl {
    macro_rules! nothing {
        ($($lock:tt)*) => {};
    }
    /// Does what that of the locks does.
    macro_rules! shared_methods {
        () => {
            fn lock_shared(&self) {
                self.read();
            }
            fn try_lock_shared(&self) -> bool {
                self.try_read()
            }
            unsafe fn unlock_shared(&self) {
                unsafe { self.read_unlock() }
            }
            fn lock_exclusive(&self) {
                unsafe { crate::planted::world::raw::RawLock::lock(self, &()) }
            }
            fn try_lock_exclusive(&self) -> bool {
                unsafe { crate::planted::world::raw::RawLock::try_lock(self, &()) }
            }
            unsafe fn unlock_exclusive(&self) {
                unsafe { crate::planted::world::raw::RawLock::unlock(self, &()) }
            }
        };
    }
    /// Does what that of the locks does.
    macro_rules! shared {
        ($lock:ident $(, $constant:ident: $type:ty)*) => {
            // SAFETY: as the lock's own.
            unsafe impl<P: Platform, $(const $constant: $type),*> lock_api::RawRwLock
                for $lock<P, $($constant),*>
            {
                #[allow(clippy::declare_interior_mutable_const)]
                const INIT: Self = Self::new();
                type GuardMarker = lock_api::GuardNoSend;
                crate::planted::world::lock_api_impl::shared_methods!();
            }
            // SAFETY: as the lock's own.
            unsafe impl<P: Platform, $(const $constant: $type),*> lock_api::RawRwLockDowngrade
                for $lock<P, $($constant),*>
            {
                unsafe fn downgrade(&self) {
                    unsafe { Self::downgrade(self) }
                }
            }
        };
    }
    pub(crate) use {
        nothing as context_free, nothing as fair, nothing as timed, shared, shared_methods,
    };
}
