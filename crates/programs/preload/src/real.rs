//! glibc's own functions, for the objects that stay with glibc.

use core::ffi::c_void;
use libc::{c_int, clockid_t, timespec};
use libc::{
    pthread_cond_t as Cond, pthread_condattr_t, pthread_mutex_t as Mutex, pthread_mutexattr_t,
    pthread_rwlock_t as Rwlock, pthread_rwlockattr_t,
};
use locklab_profile::real;

real! {
    MUTEX_INIT = c"pthread_mutex_init": fn(*mut Mutex, *const pthread_mutexattr_t);
    MUTEX_DESTROY = c"pthread_mutex_destroy": fn(*mut Mutex);
    MUTEX_LOCK = c"pthread_mutex_lock": fn(*mut Mutex);
    MUTEX_TRYLOCK = c"pthread_mutex_trylock": fn(*mut Mutex);
    MUTEX_TIMEDLOCK = c"pthread_mutex_timedlock": fn(*mut Mutex, *const timespec);
    MUTEX_CLOCKLOCK = c"pthread_mutex_clocklock": fn(*mut Mutex, clockid_t, *const timespec);
    MUTEX_UNLOCK = c"pthread_mutex_unlock": fn(*mut Mutex);
    COND_INIT = c"pthread_cond_init": fn(*mut Cond, *const pthread_condattr_t);
    COND_DESTROY = c"pthread_cond_destroy": fn(*mut Cond);
    COND_WAIT = c"pthread_cond_wait": fn(*mut Cond, *mut Mutex);
    COND_TIMEDWAIT = c"pthread_cond_timedwait": fn(*mut Cond, *mut Mutex, *const timespec);
    COND_CLOCKWAIT = c"pthread_cond_clockwait": fn(*mut Cond, *mut Mutex, clockid_t, *const timespec);
    COND_SIGNAL = c"pthread_cond_signal": fn(*mut Cond);
    COND_BROADCAST = c"pthread_cond_broadcast": fn(*mut Cond);
    RWLOCK_INIT = c"pthread_rwlock_init": fn(*mut Rwlock, *const pthread_rwlockattr_t);
    RWLOCK_DESTROY = c"pthread_rwlock_destroy": fn(*mut Rwlock);
    RWLOCK_RDLOCK = c"pthread_rwlock_rdlock": fn(*mut Rwlock);
    RWLOCK_WRLOCK = c"pthread_rwlock_wrlock": fn(*mut Rwlock);
    RWLOCK_TRYRDLOCK = c"pthread_rwlock_tryrdlock": fn(*mut Rwlock);
    RWLOCK_TRYWRLOCK = c"pthread_rwlock_trywrlock": fn(*mut Rwlock);
    RWLOCK_TIMEDRDLOCK = c"pthread_rwlock_timedrdlock": fn(*mut Rwlock, *const timespec);
    RWLOCK_TIMEDWRLOCK = c"pthread_rwlock_timedwrlock": fn(*mut Rwlock, *const timespec);
    RWLOCK_CLOCKRDLOCK = c"pthread_rwlock_clockrdlock": fn(*mut Rwlock, clockid_t, *const timespec);
    RWLOCK_CLOCKWRLOCK = c"pthread_rwlock_clockwrlock": fn(*mut Rwlock, clockid_t, *const timespec);
    RWLOCK_UNLOCK = c"pthread_rwlock_unlock": fn(*mut Rwlock);
    MTX_INIT = c"mtx_init": fn(*mut Mutex, c_int);
    SPIN_INIT = c"pthread_spin_init": fn(*mut c_int, c_int);
    SPIN_DESTROY = c"pthread_spin_destroy": fn(*mut c_int);
    SPIN_LOCK = c"pthread_spin_lock": fn(*mut c_int);
    SPIN_TRYLOCK = c"pthread_spin_trylock": fn(*mut c_int);
    SPIN_UNLOCK = c"pthread_spin_unlock": fn(*mut c_int);
    REGISTER_ATFORK = c"__register_atfork": fn(
        Option<unsafe extern "C" fn()>,
        Option<unsafe extern "C" fn()>,
        Option<unsafe extern "C" fn()>,
        *mut c_void
    );
}
