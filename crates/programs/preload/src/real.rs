//! glibc's own functions, for the objects that stay with glibc.

use crate::process::die;
use core::ffi::CStr;
use core::marker::PhantomData;
use core::sync::atomic::{AtomicPtr, Ordering};
use libc::{c_int, c_void, clockid_t, timespec};
use libc::{
    pthread_cond_t as Cond, pthread_condattr_t, pthread_mutex_t as Mutex, pthread_mutexattr_t,
    pthread_rwlock_t as Rwlock, pthread_rwlockattr_t,
};

/// A function found after the interposer's in the search order.
pub(crate) struct Real<F> {
    address: AtomicPtr<c_void>,
    function: PhantomData<F>,
}

impl<F: Copy> Real<F> {
    const fn new() -> Self {
        Self {
            address: AtomicPtr::new(core::ptr::null_mut()),
            function: PhantomData,
        }
    }

    fn find(&self, name: &CStr) {
        // Without a version this finds the newest, which a program built today
        // gets. All older ones are equivalent, except those of condition
        // variables before 2.3.2, whose size differs. SAFETY: a C string.
        let address = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
        self.address.store(address, Ordering::Relaxed);
    }

    /// The function; to be called only after [`find_all`].
    #[inline]
    pub(crate) fn get(&self) -> F {
        const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
        let address = self.address.load(Ordering::Relaxed);
        if address.is_null() {
            die(&[
                "the C library lacks a function of POSIX threads; glibc 2.30 or newer is needed",
            ]);
        }
        // SAFETY: F is the type that the C library documents for this name.
        unsafe { core::mem::transmute_copy(&address) }
    }
}

macro_rules! real {
    ($($name:ident = $symbol:literal: fn($($argument:ty),*) -> $result:ty;)*) => {
        $(pub(crate) static $name: Real<unsafe extern "C-unwind" fn($($argument),*) -> $result> =
            Real::new();)*

        /// Looks them all up.
        pub(crate) fn find_all() {
            $($name.find($symbol);)*
        }
    };
}

real! {
    MUTEX_INIT = c"pthread_mutex_init": fn(*mut Mutex, *const pthread_mutexattr_t) -> c_int;
    MUTEX_DESTROY = c"pthread_mutex_destroy": fn(*mut Mutex) -> c_int;
    MUTEX_LOCK = c"pthread_mutex_lock": fn(*mut Mutex) -> c_int;
    MUTEX_TRYLOCK = c"pthread_mutex_trylock": fn(*mut Mutex) -> c_int;
    MUTEX_TIMEDLOCK = c"pthread_mutex_timedlock": fn(*mut Mutex, *const timespec) -> c_int;
    MUTEX_CLOCKLOCK = c"pthread_mutex_clocklock": fn(*mut Mutex, clockid_t, *const timespec) -> c_int;
    MUTEX_UNLOCK = c"pthread_mutex_unlock": fn(*mut Mutex) -> c_int;
    COND_INIT = c"pthread_cond_init": fn(*mut Cond, *const pthread_condattr_t) -> c_int;
    COND_DESTROY = c"pthread_cond_destroy": fn(*mut Cond) -> c_int;
    COND_WAIT = c"pthread_cond_wait": fn(*mut Cond, *mut Mutex) -> c_int;
    COND_TIMEDWAIT = c"pthread_cond_timedwait": fn(*mut Cond, *mut Mutex, *const timespec) -> c_int;
    COND_CLOCKWAIT = c"pthread_cond_clockwait": fn(*mut Cond, *mut Mutex, clockid_t, *const timespec) -> c_int;
    COND_SIGNAL = c"pthread_cond_signal": fn(*mut Cond) -> c_int;
    COND_BROADCAST = c"pthread_cond_broadcast": fn(*mut Cond) -> c_int;
    RWLOCK_INIT = c"pthread_rwlock_init": fn(*mut Rwlock, *const pthread_rwlockattr_t) -> c_int;
    RWLOCK_DESTROY = c"pthread_rwlock_destroy": fn(*mut Rwlock) -> c_int;
    RWLOCK_RDLOCK = c"pthread_rwlock_rdlock": fn(*mut Rwlock) -> c_int;
    RWLOCK_WRLOCK = c"pthread_rwlock_wrlock": fn(*mut Rwlock) -> c_int;
    RWLOCK_TRYRDLOCK = c"pthread_rwlock_tryrdlock": fn(*mut Rwlock) -> c_int;
    RWLOCK_TRYWRLOCK = c"pthread_rwlock_trywrlock": fn(*mut Rwlock) -> c_int;
    RWLOCK_TIMEDRDLOCK = c"pthread_rwlock_timedrdlock": fn(*mut Rwlock, *const timespec) -> c_int;
    RWLOCK_TIMEDWRLOCK = c"pthread_rwlock_timedwrlock": fn(*mut Rwlock, *const timespec) -> c_int;
    RWLOCK_CLOCKRDLOCK = c"pthread_rwlock_clockrdlock": fn(*mut Rwlock, clockid_t, *const timespec) -> c_int;
    RWLOCK_CLOCKWRLOCK = c"pthread_rwlock_clockwrlock": fn(*mut Rwlock, clockid_t, *const timespec) -> c_int;
    RWLOCK_UNLOCK = c"pthread_rwlock_unlock": fn(*mut Rwlock) -> c_int;
    MTX_INIT = c"mtx_init": fn(*mut Mutex, c_int) -> c_int;
    SPIN_INIT = c"pthread_spin_init": fn(*mut c_int, c_int) -> c_int;
    SPIN_DESTROY = c"pthread_spin_destroy": fn(*mut c_int) -> c_int;
    SPIN_LOCK = c"pthread_spin_lock": fn(*mut c_int) -> c_int;
    SPIN_TRYLOCK = c"pthread_spin_trylock": fn(*mut c_int) -> c_int;
    SPIN_UNLOCK = c"pthread_spin_unlock": fn(*mut c_int) -> c_int;
    REGISTER_ATFORK = c"__register_atfork": fn(
        Option<unsafe extern "C" fn()>,
        Option<unsafe extern "C" fn()>,
        Option<unsafe extern "C" fn()>,
        *mut c_void
    ) -> c_int;
}
