//! The functions of the C library that are recorded.
//!
//! They are exported without a version, which matches every version. Each
//! forwards its arguments and the result unchanged. A thread may be cancelled
//! in some of them, which unwinds through this code: no value here has a
//! destructor.

use crate::lock::Lock;
use crate::process::header;
use crate::real::{self, Start};
use crate::stacks::Site;
use crate::thread::{self, State, current};
use core::ffi::c_void;
use core::ptr::NonNull;
use core::sync::atomic::Ordering;
use libc::{c_int, c_uint, clockid_t, pthread_attr_t, pthread_t, timespec};
use libc::{epoll_event, fd_set, nfds_t, pollfd, sigset_t, timeval};
use libc::{pthread_cond_t as Cond, pthread_mutex_t as Mutex, pthread_rwlock_t as Rwlock};
use locklab_profile::clock::ticks;
use locklab_trace::{Access, Attempt, Event, LockKind};

const EXCLUSIVE: Access = Access {
    shared: false,
    attempt: Attempt::Waits,
};
const SHARED: Access = Access {
    shared: true,
    ..EXCLUSIVE
};

const fn timed(access: Access) -> Access {
    Access {
        attempt: Attempt::Timed,
        ..access
    }
}

const fn once(access: Access) -> Access {
    Access {
        attempt: Attempt::Once,
        ..access
    }
}

/// Records an operation: what `before` says at its begin, and `after` of its
/// result at its end.
#[inline(always)]
fn recorded<'a>(
    before: impl FnOnce(&mut State) -> Event<'a>,
    operation: impl FnOnce() -> c_int,
    after: impl FnOnce(c_int) -> Event<'a>,
) -> c_int {
    let Some(mut state) = current() else {
        return operation();
    };
    // SAFETY: this thread's, and used by nothing else until `operation`.
    let own = unsafe { state.as_mut() };
    let entered = if own.is_timed() { Some(ticks()) } else { None };
    let event = before(own);
    let from = ticks();
    own.put(from, &event);
    past_deadline(from);
    let result = operation();
    let to = ticks();
    // SAFETY: as above; what the operation recorded has ended.
    let own = unsafe { state.as_mut() };
    own.put(to, &after(result));
    if let Some(entered) = entered {
        cost(state, entered, from, to);
    }
    result
}

/// Returns whether operations that wait for nobody are not recorded now.
#[inline(always)]
pub(crate) fn between_windows() -> bool {
    header().is_some_and(|header| !header.is_in_window())
}

#[inline(always)]
pub(crate) fn past_deadline(tick: u64) {
    if let Some(header) = header()
        && tick > header.deadline
    {
        header.stop(header.deadline, locklab_trace::Stopped::Deadline);
    }
}

/// Records what the recording itself took: before the operation, and after it.
#[cold]
#[inline(never)]
pub(crate) fn cost(mut state: NonNull<State>, entered: u64, from: u64, to: u64) {
    let now = ticks();
    let ticks = from.saturating_sub(entered) + now.saturating_sub(to);
    // SAFETY: this thread's.
    let own = unsafe { state.as_mut() };
    own.put(now, &Event::Cost { ticks });
    own.note_cost(now, ticks);
}

#[inline(always)]
fn acquire<T: Lock>(
    lock: *mut T,
    access: Access,
    site: Site,
    operation: impl FnOnce() -> c_int,
) -> c_int {
    if between_windows() {
        // SAFETY: the caller's promises are those of POSIX.
        if unsafe { T::looks_free(lock, access.shared) } {
            // SAFETY: as above.
            let result = unsafe { T::attempt(lock, access.shared) };
            if result == 0 || result == libc::EOWNERDEAD {
                return result;
            }
        }
        if access.attempt == Attempt::Once {
            return operation();
        }
    }
    // SAFETY: the caller's promises are those of POSIX.
    let kind = unsafe { T::kind(lock) };
    if kind != LockKind::default()
        && let Some(mut state) = current()
    {
        // SAFETY: this thread's.
        unsafe { state.as_mut() }.note_kind(lock as u64, kind);
    }
    // SAFETY: the caller's promises are those of POSIX.
    if unsafe { T::looks_free(lock, access.shared) }
        && let Some(result) = taken(lock, access, site)
    {
        return result;
    }
    recorded(
        |state| Event::Request {
            lock: lock as u64,
            stack: state.stack(site),
            access,
        },
        operation,
        |result| match result {
            0 | libc::EOWNERDEAD => Event::Acquired,
            _ => Event::Refused,
        },
    )
}

/// Takes a lock that looks free, and records it as one event with one look at
/// the clock; those that are timed say how long it takes. `None` if another thread was faster: then this one waits as if it
/// had not tried.
#[inline(always)]
fn taken<T: Lock>(lock: *mut T, access: Access, site: Site) -> Option<c_int> {
    let mut state = current()?;
    // SAFETY: this thread's, and used by nothing else until the attempt.
    let own = unsafe { state.as_mut() };
    let entered = if own.is_timed() { Some(ticks()) } else { None };
    // What is new is walked before the lock is held.
    let stack = own.stack(site);
    let from = if entered.is_some() { ticks() } else { 0 };
    // SAFETY: of the caller.
    let result = unsafe { T::attempt(lock, access.shared) };
    if result != 0 && result != libc::EOWNERDEAD {
        return None;
    }
    // The time is taken behind the attempt: the one who had the lock before has
    // released it then.
    let to = ticks();
    // SAFETY: as above; the attempt has ended.
    let own = unsafe { state.as_mut() };
    let event = Event::Request {
        lock: lock as u64,
        stack,
        access,
    };
    past_deadline(to);
    match entered {
        None => own.put_whole(to, &event),
        Some(entered) => {
            own.put(from, &event);
            own.put(to, &Event::Acquired);
            cost(state, entered, from, to);
        }
    }
    Some(result)
}

#[inline(always)]
fn release<T: Lock>(lock: *mut T, operation: impl FnOnce() -> c_int) -> c_int {
    if between_windows() {
        return operation();
    }
    // SAFETY: the caller's promises are those of POSIX.
    if unsafe { T::has_no_waiters(lock) }
        && let Some(mut state) = current()
    {
        // SAFETY: this thread's, and used by nothing else until the operation.
        let entered = match unsafe { state.as_mut() }.is_timed() {
            true => Some(ticks()),
            false => None,
        };
        // Before the release: who gets the lock next has it later.
        let from = ticks();
        let result = operation();
        let to = if entered.is_some() { ticks() } else { 0 };
        // SAFETY: as above; the operation has ended.
        let own = unsafe { state.as_mut() };
        let event = Event::Release { lock: lock as u64 };
        past_deadline(from);
        match entered {
            None if result == 0 => own.put_whole(from, &event),
            _ => {
                own.put(from, &event);
                let answer = match result {
                    0 => Event::Released,
                    _ => Event::Refused,
                };
                own.put(to, &answer);
            }
        }
        if let Some(entered) = entered {
            cost(state, entered, from, to);
        }
        return result;
    }
    recorded(
        |_| Event::Release { lock: lock as u64 },
        operation,
        |result| match result {
            0 => Event::Released,
            _ => Event::Refused,
        },
    )
}

#[inline(always)]
fn wait(
    condition: *mut Cond,
    lock: *mut Mutex,
    timed: bool,
    site: Site,
    operation: impl FnOnce() -> c_int,
) -> c_int {
    recorded(
        |state| Event::Wait {
            condition: condition as u64,
            lock: lock as u64,
            stack: state.stack(site),
            timed,
        },
        operation,
        |result| Event::Woken {
            timed_out: result != 0,
        },
    )
}

/// Makes a sleep, or a wait for files. One that does not wait is not recorded.
#[inline(always)]
fn asleep(timed: bool, waits: bool, operation: impl FnOnce() -> c_int) -> c_int {
    if !waits {
        return operation();
    }
    recorded(|_| Event::Sleep { timed }, operation, |_| Event::Slept)
}

/// Signals. The signal is recorded before the waiters can be seen to run.
#[inline(always)]
fn signal(condition: *mut Cond, broadcast: bool, operation: impl FnOnce() -> c_int) -> c_int {
    if between_windows() {
        return operation();
    }
    if let Some(mut state) = current() {
        // SAFETY: this thread's.
        unsafe { state.as_mut() }.put_now(&Event::Signal {
            condition: condition as u64,
            broadcast,
        });
    }
    operation()
}

/// Describes what a new thread is handed.
struct Passed {
    start: Start,
    argument: *mut c_void,
    number: u64,
}

unsafe extern "C-unwind" fn run(passed: *mut c_void) -> *mut c_void {
    // SAFETY: made by `pthread_create` for this thread, which frees it.
    let Passed {
        start,
        argument,
        number,
    } = unsafe { passed.cast::<Passed>().read() };
    // SAFETY: of `malloc`.
    unsafe { libc::free(passed) };
    if header().is_some_and(|header| !header.is_stopped()) {
        thread::enter(number);
    }
    // SAFETY: of the program.
    unsafe { start(argument) }
}

#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn pthread_create(
    thread: *mut pthread_t,
    attributes: *const pthread_attr_t,
    start: Start,
    argument: *mut c_void,
) -> c_int {
    let real = real::CREATE.get();
    let (Some(header), Some(mut state)) = (header(), current()) else {
        // SAFETY: of the caller.
        return unsafe { real(thread, attributes, start, argument) };
    };
    // SAFETY: checked; a thread is made by an allocation of the C library too.
    let passed = unsafe { libc::malloc(size_of::<Passed>()) }.cast::<Passed>();
    if passed.is_null() {
        // SAFETY: of the caller.
        return unsafe { real(thread, attributes, start, argument) };
    }
    let number = header.threads.fetch_add(1, Ordering::Relaxed).into();
    // SAFETY: room for it; the state is this thread's.
    unsafe {
        passed.write(Passed {
            start,
            argument,
            number,
        });
        state.as_mut().put_now(&Event::Create { thread: number });
    }
    // SAFETY: of the caller; `run` is handed what it expects.
    let result = unsafe { real(thread, attributes, run, passed.cast()) };
    if result != 0 {
        // SAFETY: no thread has it.
        unsafe { libc::free(passed.cast()) };
    }
    result
}

#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn pthread_join(thread: pthread_t, value: *mut *mut c_void) -> c_int {
    recorded(
        |_| Event::Join { handle: thread },
        // SAFETY: of the caller.
        || unsafe { (real::JOIN.get())(thread, value) },
        |_| Event::Joined,
    )
}

/// Exports functions of the C library, by their arguments, with what is recorded
/// of each. Those that want to know where they are called from name two
/// registers for each architecture (`from`), which are those of two more
/// arguments.
macro_rules! export {
    ($($arguments:tt from $registers:tt {
        $($($symbol:ident)|+ => $real:ident $how:ident $what:tt;)*
    })*) => {
        $($($(export!(@one $symbol $arguments $registers $real $how $what);)+)*)*
    };
    (@one $symbol:ident ($($argument:ident: $type:ty),*) []
        $real:ident $how:ident ($($what:expr),*)) => {
        #[unsafe(no_mangle)]
        unsafe extern "C-unwind" fn $symbol($($argument: $type),*) -> c_int {
            // SAFETY: the caller's promises are those of POSIX.
            $how($($what,)* || unsafe { (real::$real.get())($($argument),*) })
        }
    };
    (@one $symbol:ident ($($argument:ident: $type:ty),*)
        [$x86:literal $x86_stack:literal, $arm:literal $arm_stack:literal]
        $real:ident $how:ident ($($what:expr),*)) => {
        const _: () = {
            unsafe extern "C-unwind" fn body(
                $($argument: $type,)* caller: usize, stack: usize
            ) -> c_int {
                let site = Site { caller, stack };
                // SAFETY: the caller's promises are those of POSIX.
                $how($($what,)* site, || unsafe { (real::$real.get())($($argument),*) })
            }

            #[unsafe(no_mangle)]
            #[unsafe(naked)]
            unsafe extern "C" fn $symbol($($argument: $type),*) -> c_int {
                #[cfg(target_arch = "x86_64")]
                core::arch::naked_asm!(
                    concat!("mov ", $x86, ", qword ptr [rsp]"),
                    concat!("mov ", $x86_stack, ", rsp"),
                    "jmp {}",
                    sym body
                );
                #[cfg(target_arch = "aarch64")]
                core::arch::naked_asm!(
                    concat!("mov ", $arm, ", x30"),
                    concat!("mov ", $arm_stack, ", sp"),
                    "b {}",
                    sym body
                );
            }
        };
    };
}

export! {
    (lock: *mut Mutex) from ["rsi" "rdx", "x1" "x2"] {
        pthread_mutex_lock | __pthread_mutex_lock => MUTEX_LOCK acquire(lock, EXCLUSIVE);
        pthread_mutex_trylock | __pthread_mutex_trylock => MUTEX_TRYLOCK acquire(lock, once(EXCLUSIVE));
        mtx_lock => MTX_LOCK acquire(lock, EXCLUSIVE);
        mtx_trylock => MTX_TRYLOCK acquire(lock, once(EXCLUSIVE));
    }
    (lock: *mut Mutex, until: *const timespec) from ["rdx" "rcx", "x2" "x3"] {
        pthread_mutex_timedlock => MUTEX_TIMEDLOCK acquire(lock, timed(EXCLUSIVE));
        mtx_timedlock => MTX_TIMEDLOCK acquire(lock, timed(EXCLUSIVE));
    }
    (lock: *mut Mutex, clock: clockid_t, until: *const timespec) from ["rcx" "r8", "x3" "x4"] {
        pthread_mutex_clocklock => MUTEX_CLOCKLOCK acquire(lock, timed(EXCLUSIVE));
    }
    (lock: *mut Mutex) from [] {
        pthread_mutex_unlock | __pthread_mutex_unlock => MUTEX_UNLOCK release(lock);
        mtx_unlock => MTX_UNLOCK release(lock);
    }

    (lock: *mut Rwlock) from ["rsi" "rdx", "x1" "x2"] {
        pthread_rwlock_rdlock | __pthread_rwlock_rdlock => RWLOCK_RDLOCK acquire(lock, SHARED);
        pthread_rwlock_tryrdlock | __pthread_rwlock_tryrdlock => RWLOCK_TRYRDLOCK acquire(lock, once(SHARED));
        pthread_rwlock_wrlock | __pthread_rwlock_wrlock => RWLOCK_WRLOCK acquire(lock, EXCLUSIVE);
        pthread_rwlock_trywrlock | __pthread_rwlock_trywrlock => RWLOCK_TRYWRLOCK acquire(lock, once(EXCLUSIVE));
    }
    (lock: *mut Rwlock, until: *const timespec) from ["rdx" "rcx", "x2" "x3"] {
        pthread_rwlock_timedrdlock => RWLOCK_TIMEDRDLOCK acquire(lock, timed(SHARED));
        pthread_rwlock_timedwrlock => RWLOCK_TIMEDWRLOCK acquire(lock, timed(EXCLUSIVE));
    }
    (lock: *mut Rwlock, clock: clockid_t, until: *const timespec) from ["rcx" "r8", "x3" "x4"] {
        pthread_rwlock_clockrdlock => RWLOCK_CLOCKRDLOCK acquire(lock, timed(SHARED));
        pthread_rwlock_clockwrlock => RWLOCK_CLOCKWRLOCK acquire(lock, timed(EXCLUSIVE));
    }
    (lock: *mut Rwlock) from [] {
        pthread_rwlock_unlock | __pthread_rwlock_unlock => RWLOCK_UNLOCK release(lock);
    }

    (condition: *mut Cond, lock: *mut Mutex) from ["rdx" "rcx", "x2" "x3"] {
        pthread_cond_wait => COND_WAIT wait(condition, lock, false);
        cnd_wait => CND_WAIT wait(condition, lock, false);
    }
    (condition: *mut Cond, lock: *mut Mutex, until: *const timespec) from ["rcx" "r8", "x3" "x4"] {
        pthread_cond_timedwait => COND_TIMEDWAIT wait(condition, lock, true);
        cnd_timedwait => CND_TIMEDWAIT wait(condition, lock, true);
    }
    (condition: *mut Cond, lock: *mut Mutex, clock: clockid_t, until: *const timespec) from ["r8" "r9", "x4" "x5"] {
        pthread_cond_clockwait => COND_CLOCKWAIT wait(condition, lock, true);
    }
    (condition: *mut Cond) from [] {
        pthread_cond_signal => COND_SIGNAL signal(condition, false);
        pthread_cond_broadcast => COND_BROADCAST signal(condition, true);
        cnd_signal => CND_SIGNAL signal(condition, false);
        cnd_broadcast => CND_BROADCAST signal(condition, true);
    }

    (for_: *const timespec, left: *mut timespec) from [] {
        nanosleep => NANOSLEEP asleep(true, true);
    }
    (clock: clockid_t, flags: c_int, until: *const timespec, left: *mut timespec) from [] {
        clock_nanosleep => CLOCK_NANOSLEEP asleep(true, true);
    }
    (microseconds: c_uint) from [] {
        usleep => USLEEP asleep(true, microseconds > 0);
    }
    (seconds: c_uint) from [] {
        sleep => SLEEP asleep(true, seconds > 0);
    }
    (files: *mut pollfd, number: nfds_t, milliseconds: c_int) from [] {
        poll => POLL asleep(number == 0, milliseconds != 0);
    }
    (files: *mut pollfd, number: nfds_t, until: *const timespec, mask: *const sigset_t) from [] {
        ppoll => PPOLL asleep(number == 0, true);
    }
    (number: c_int, read: *mut fd_set, write: *mut fd_set, except: *mut fd_set, until: *mut timeval) from [] {
        select => SELECT asleep(number == 0, true);
    }
    (number: c_int, read: *mut fd_set, write: *mut fd_set, except: *mut fd_set, until: *const timespec, mask: *const sigset_t) from [] {
        pselect => PSELECT asleep(number == 0, true);
    }
    (file: c_int, events: *mut epoll_event, most: c_int, milliseconds: c_int) from [] {
        epoll_wait => EPOLL_WAIT asleep(false, milliseconds != 0);
    }
    (file: c_int, events: *mut epoll_event, most: c_int, milliseconds: c_int, mask: *const sigset_t) from [] {
        epoll_pwait => EPOLL_PWAIT asleep(false, milliseconds != 0);
    }
}
