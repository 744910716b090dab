//! glibc's own functions.

use libc::{c_int, c_uint, c_void, clockid_t, pthread_attr_t, pthread_t, timespec};
use libc::{epoll_event, fd_set, nfds_t, pollfd, sigset_t, timeval};
use libc::{pthread_cond_t as Cond, pthread_mutex_t as Mutex, pthread_rwlock_t as Rwlock};
use locklab_profile::real;

/// Names what a thread runs.
pub(crate) type Start = unsafe extern "C-unwind" fn(*mut c_void) -> *mut c_void;

real! {
    MUTEX_LOCK = c"pthread_mutex_lock": fn(*mut Mutex);
    MUTEX_TRYLOCK = c"pthread_mutex_trylock": fn(*mut Mutex);
    MUTEX_TIMEDLOCK = c"pthread_mutex_timedlock": fn(*mut Mutex, *const timespec);
    MUTEX_CLOCKLOCK = c"pthread_mutex_clocklock": fn(*mut Mutex, clockid_t, *const timespec);
    MUTEX_UNLOCK = c"pthread_mutex_unlock": fn(*mut Mutex);
    COND_WAIT = c"pthread_cond_wait": fn(*mut Cond, *mut Mutex);
    COND_TIMEDWAIT = c"pthread_cond_timedwait": fn(*mut Cond, *mut Mutex, *const timespec);
    COND_CLOCKWAIT = c"pthread_cond_clockwait":
        fn(*mut Cond, *mut Mutex, clockid_t, *const timespec);
    COND_SIGNAL = c"pthread_cond_signal": fn(*mut Cond);
    COND_BROADCAST = c"pthread_cond_broadcast": fn(*mut Cond);
    RWLOCK_RDLOCK = c"pthread_rwlock_rdlock": fn(*mut Rwlock);
    RWLOCK_WRLOCK = c"pthread_rwlock_wrlock": fn(*mut Rwlock);
    RWLOCK_TRYRDLOCK = c"pthread_rwlock_tryrdlock": fn(*mut Rwlock);
    RWLOCK_TRYWRLOCK = c"pthread_rwlock_trywrlock": fn(*mut Rwlock);
    RWLOCK_TIMEDRDLOCK = c"pthread_rwlock_timedrdlock": fn(*mut Rwlock, *const timespec);
    RWLOCK_TIMEDWRLOCK = c"pthread_rwlock_timedwrlock": fn(*mut Rwlock, *const timespec);
    RWLOCK_CLOCKRDLOCK = c"pthread_rwlock_clockrdlock":
        fn(*mut Rwlock, clockid_t, *const timespec);
    RWLOCK_CLOCKWRLOCK = c"pthread_rwlock_clockwrlock":
        fn(*mut Rwlock, clockid_t, *const timespec);
    RWLOCK_UNLOCK = c"pthread_rwlock_unlock": fn(*mut Rwlock);
    MTX_LOCK = c"mtx_lock": fn(*mut Mutex);
    MTX_TRYLOCK = c"mtx_trylock": fn(*mut Mutex);
    MTX_TIMEDLOCK = c"mtx_timedlock": fn(*mut Mutex, *const timespec);
    MTX_UNLOCK = c"mtx_unlock": fn(*mut Mutex);
    CND_WAIT = c"cnd_wait": fn(*mut Cond, *mut Mutex);
    CND_TIMEDWAIT = c"cnd_timedwait": fn(*mut Cond, *mut Mutex, *const timespec);
    CND_SIGNAL = c"cnd_signal": fn(*mut Cond);
    CND_BROADCAST = c"cnd_broadcast": fn(*mut Cond);
    CREATE = c"pthread_create":
        fn(*mut pthread_t, *const pthread_attr_t, Start, *mut c_void);
    JOIN = c"pthread_join": fn(pthread_t, *mut *mut c_void);
    NANOSLEEP = c"nanosleep": fn(*const timespec, *mut timespec);
    CLOCK_NANOSLEEP = c"clock_nanosleep":
        fn(clockid_t, c_int, *const timespec, *mut timespec);
    USLEEP = c"usleep": fn(c_uint);
    // It returns an unsigned number of as many bits, which is handed on as it is.
    SLEEP = c"sleep": fn(c_uint);
    POLL = c"poll": fn(*mut pollfd, nfds_t, c_int);
    PPOLL = c"ppoll": fn(*mut pollfd, nfds_t, *const timespec, *const sigset_t);
    SELECT = c"select": fn(c_int, *mut fd_set, *mut fd_set, *mut fd_set, *mut timeval);
    PSELECT = c"pselect":
        fn(c_int, *mut fd_set, *mut fd_set, *mut fd_set, *const timespec, *const sigset_t);
    EPOLL_WAIT = c"epoll_wait": fn(c_int, *mut epoll_event, c_int, c_int);
    EPOLL_PWAIT = c"epoll_pwait":
        fn(c_int, *mut epoll_event, c_int, c_int, *const sigset_t);
}
