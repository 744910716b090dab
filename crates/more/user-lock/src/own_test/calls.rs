//! The functions of the C library, of pthreads and of C11 threads that a test may call,
//! as events of the checker.
//!
//! A mutex, a condition and the like have a word of the checker's each. Whoever has to
//! wait does so in one event, which only what ends the wait can be read by; nothing
//! spins. Must never be taken for an implementation: what POSIX leaves open is left
//! open, except that no wait ends without a reason.

use super::hooks::{
    copy, error, flush, has_changed, has_changed_for_good, me, never_ends, place, read_word,
    tell_that_it_waits, uses, write_value,
};
use super::world::with;
use crate::library::no_futex_word;
use crate::memory::{memory, set_memory};
use locklab_graph::MAX_THREADS;
use locklab_graph::model::{self, Location};
use std::ffi::{c_uint, c_ulong, c_void};
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};

/// What a function does: arguments, the place of the call, result.
type Call = fn([u64; 4], usize) -> u64;

/// Where the tables of the results of pthreads and of C11 differ.
const TIMED_OUT: [u64; 2] = [libc::ETIMEDOUT as u64, 4];
const BUSY: [u64; 2] = [libc::EBUSY as u64, 1];

/// The functions by name.
const TABLE: &[(&str, Call)] = &[
    // Threads.
    ("pthread_create", |[to, _, f, x], s| create(to, f, x, s)),
    ("thrd_create", |[to, f, x, _], s| create(to, f, x, s)),
    ("__VERIFIER_spawn", |[f, x, ..], s| start(f, x, s)),
    ("pthread_join", |[thread, to, ..], s| join(thread, to, 8, s)),
    ("thrd_join", |[thread, to, ..], s| join(thread, to, 4, s)),
    ("__VERIFIER_join", |[thread, ..], s| result(thread, s)),
    ("pthread_exit", |[value, ..], _| leave(value)),
    ("thrd_exit", |[value, ..], _| leave(value)),
    ("pthread_self", |_, _| me() as u64 + 1),
    ("thrd_current", |_, _| me() as u64 + 1),
    ("__VERIFIER_tid", |_, _| me() as u64),
    ("gettid", |_, _| me() as u64 + 1),
    ("pthread_equal", |[a, b, ..], _| u64::from(a == b)),
    ("thrd_equal", |[a, b, ..], _| u64::from(a == b)),
    // Mutexes.
    ("pthread_mutex_init", |[m, a, ..], s| {
        let kind = match a {
            0 => 0,
            // SAFETY: the attributes, which the test has made.
            _ => unsafe { memory(a as usize, 4) },
        };
        init_mutex(m, kind, s)
    }),
    ("mtx_init", |[m, kind, ..], s| init_mutex(m, kind & 1, s)),
    ("pthread_mutex_lock", |[m, ..], s| lock(m, s)),
    ("mtx_lock", |[m, ..], s| lock(m, s)),
    ("pthread_mutex_trylock", |[m, ..], s| {
        try_lock(m, BUSY[0], s)
    }),
    ("mtx_trylock", |[m, ..], s| try_lock(m, BUSY[1], s)),
    ("pthread_mutex_timedlock", |[m, ..], s| match gives_up(s) {
        true => TIMED_OUT[0],
        false => lock(m, s),
    }),
    ("mtx_timedlock", |[m, ..], s| match gives_up(s) {
        true => TIMED_OUT[1],
        false => lock(m, s),
    }),
    ("pthread_mutex_unlock", |[m, ..], s| unlock(m, s)),
    ("mtx_unlock", |[m, ..], s| unlock(m, s)),
    ("pthread_mutex_destroy", |[m, ..], s| destroy_mutex(m, s)),
    ("mtx_destroy", |[m, ..], s| destroy_mutex(m, s)),
    ("pthread_mutexattr_init", |[a, ..], s| set_word(a, 0, s)),
    ("pthread_mutexattr_settype", |[a, kind, ..], s| {
        set_word(a, kind, s)
    }),
    ("pthread_spin_init", |[m, ..], s| init_mutex(m, NO_KIND, s)),
    ("pthread_spin_lock", |[m, ..], s| lock(m, s)),
    ("pthread_spin_trylock", |[m, ..], s| try_lock(m, BUSY[0], s)),
    ("pthread_spin_unlock", |[m, ..], s| unlock(m, s)),
    ("pthread_spin_destroy", |[m, ..], s| destroy_mutex(m, s)),
    ("__VERIFIER_atomic_begin", |_, s| lock(ATOMIC, s)),
    ("__VERIFIER_atomic_end", |_, s| unlock(ATOMIC, s)),
    // Locks of readers and writers.
    ("pthread_rwlock_init", |[l, ..], s| reset(l, 0, s)),
    ("pthread_rwlock_rdlock", |[l, ..], s| read_lock(l, s)),
    ("pthread_rwlock_wrlock", |[l, ..], s| write_lock(l, s)),
    ("pthread_rwlock_tryrdlock", |[l, ..], s| {
        try_share(l, reader, s)
    }),
    ("pthread_rwlock_trywrlock", |[l, ..], s| {
        try_share(l, writer, s)
    }),
    ("pthread_rwlock_timedrdlock", |[l, ..], s| {
        match gives_up(s) {
            true => TIMED_OUT[0],
            false => read_lock(l, s),
        }
    }),
    ("pthread_rwlock_timedwrlock", |[l, ..], s| {
        match gives_up(s) {
            true => TIMED_OUT[0],
            false => write_lock(l, s),
        }
    }),
    ("pthread_rwlock_unlock", |[l, ..], s| unlock_shared(l, s)),
    // Conditions.
    ("pthread_cond_init", |[c, ..], s| reset(c, 0, s)),
    ("cnd_init", |[c, ..], s| reset(c, 0, s)),
    ("pthread_cond_wait", |[c, m, ..], s| wait(c, m, None, s)),
    ("cnd_wait", |[c, m, ..], s| wait(c, m, None, s)),
    ("pthread_cond_timedwait", |[c, m, ..], s| {
        wait(c, m, Some(TIMED_OUT[0]), s)
    }),
    ("pthread_cond_clockwait", |[c, m, ..], s| {
        wait(c, m, Some(TIMED_OUT[0]), s)
    }),
    ("cnd_timedwait", |[c, m, ..], s| {
        wait(c, m, Some(TIMED_OUT[1]), s)
    }),
    ("pthread_cond_signal", |[c, ..], s| signal(c, 1, s)),
    ("cnd_signal", |[c, ..], s| signal(c, 1, s)),
    ("pthread_cond_broadcast", |[c, ..], s| {
        signal(c, u32::MAX, s)
    }),
    ("cnd_broadcast", |[c, ..], s| signal(c, u32::MAX, s)),
    // Semaphores.
    ("sem_init", |[m, _, value, _], s| {
        reset(m, value & 0xffff_ffff, s)
    }),
    ("sem_wait", |[m, ..], s| take_semaphore(m, s)),
    ("sem_trywait", |[m, ..], s| {
        match model::rmw(sync(m), AcqRel, place(s), |value| value.checked_sub(1)) {
            0 => fails(libc::EAGAIN, s),
            _ => 0,
        }
    }),
    ("sem_timedwait", |[m, ..], s| match gives_up(s) {
        true => fails(libc::ETIMEDOUT, s),
        false => take_semaphore(m, s),
    }),
    ("sem_post", |[m, ..], s| {
        model::rmw(sync(m), AcqRel, place(s), |value| Some(value + 1));
        0
    }),
    ("sem_getvalue", |[m, to, ..], s| {
        let value = model::load(sync(m), Acquire, place(s));
        set_word(to, value, s)
    }),
    // Barriers.
    ("pthread_barrier_init", |[b, _, count, _], s| {
        init_barrier(b, count as u32, s)
    }),
    ("pthread_barrier_wait", |[b, ..], s| arrive(b, s)),
    ("pthread_barrier_destroy", |[b, ..], s| {
        count_of_barrier(b, s);
        reset(b, 0, s)
    }),
    // What is done once.
    ("pthread_once", |[once, f, ..], s| once_only(once, f, s)),
    ("call_once", |[once, f, ..], s| once_only(once, f, s)),
    ("__cxa_guard_acquire", |[guard, ..], s| {
        u64::from(begin_once(guard, s))
    }),
    ("__cxa_guard_release", |[guard, ..], s| {
        model::store(sync(guard), 2, Release, place(s));
        write_value(guard as usize, 1, 1, s);
        0
    }),
    // Data of threads.
    ("pthread_key_create", |[to, end, ..], s| {
        create_key(to, end, s)
    }),
    ("tss_create", |[to, end, ..], s| create_key(to, end, s)),
    ("pthread_getspecific", |[key, ..], _| value_of(key)),
    ("tss_get", |[key, ..], _| value_of(key)),
    ("pthread_setspecific", |[key, value, ..], _| {
        set_value(key, value)
    }),
    ("tss_set", |[key, value, ..], _| set_value(key, value)),
    ("__tls_get_addr", |[index, ..], _| {
        // SAFETY: the loader's index of a module and a variable.
        let offset = unsafe { memory(index as usize + 8, 8) };
        with(|world| world.thread_local(me()) as u64 + offset)
    }),
    ("__errno_location", |_, _| {
        with(|world| world.errno(me()) as u64)
    }),
    // Memory.
    ("malloc", |[bytes, ..], s| allocate(bytes, 16, s)),
    ("calloc", |[count, bytes, ..], s| {
        allocate(count.saturating_mul(bytes), 16, s)
    }),
    ("realloc", |[old, bytes, ..], s| reallocate(old, bytes, s)),
    ("aligned_alloc", |[align, bytes, ..], s| {
        allocate_aligned(align, bytes, s)
    }),
    ("memalign", |[align, bytes, ..], s| {
        allocate_aligned(align, bytes, s)
    }),
    ("posix_memalign", |[to, align, bytes, _], s| {
        let block = allocate_aligned(align, bytes, s);
        write_value(to as usize, 8, block, s);
        0
    }),
    ("free", |[block, ..], s| free(block, s)),
    ("_Znwm", |[bytes, ..], s| allocate(bytes, 16, s)),
    ("_Znam", |[bytes, ..], s| allocate(bytes, 16, s)),
    ("_ZnwmSt11align_val_t", |[bytes, align, ..], s| {
        allocate_aligned(align, bytes, s)
    }),
    ("_ZdlPv", |[block, ..], s| free(block, s)),
    ("_ZdlPvm", |[block, ..], s| free(block, s)),
    ("_ZdaPv", |[block, ..], s| free(block, s)),
    ("_ZdlPvmSt11align_val_t", |[block, ..], s| free(block, s)),
    // Ends of the program.
    ("exit", |_, _| leave(0)),
    ("_exit", |_, _| leave(0)),
    ("_Exit", |_, _| leave(0)),
    ("quick_exit", |_, _| leave(0)),
    ("__VERIFIER_assume", |[holds, ..], _| {
        model::assume(holds as u32 != 0);
        0
    }),
    ("__VERIFIER_assert", |[holds, ..], s| match holds as u32 {
        0 => says_error("an assertion that does not hold", s),
        _ => 0,
    }),
    ("__VERIFIER_error", |_, s| {
        says_error("__VERIFIER_error()", s)
    }),
    ("reach_error", |_, s| says_error("reach_error()", s)),
    ("_ZSt9terminatev", |_, s| says_error("std::terminate()", s)),
    ("__cxa_pure_virtual", |_, s| {
        says_error("a pure virtual function", s)
    }),
    // Choices.
    ("__VERIFIER_nondet_bool", |_, s| {
        model::choose(2, place(s)).into()
    }),
    ("__VERIFIER_nondet_int", |_, s| any(3, s)),
    ("__VERIFIER_nondet_long", |_, s| any(3, s)),
    ("__VERIFIER_nondet_uint", |_, s| any(2, s)),
    ("__VERIFIER_nondet_ulong", |_, s| any(2, s)),
    ("__VERIFIER_nondet_char", |_, s| any(3, s)),
    ("__VERIFIER_nondet_uchar", |_, s| any(2, s)),
    ("rand", |_, s| any(2, s)),
    ("random", |_, s| any(2, s)),
    // Time stands still.
    ("clock_gettime", |[_, to, ..], s| {
        write_value(to as usize, 8, 0, s);
        write_value(to as usize + 8, 8, 0, s);
        0
    }),
    ("timespec_get", |[to, base, ..], s| {
        write_value(to as usize, 8, 0, s);
        write_value(to as usize + 8, 8, 0, s);
        base
    }),
];

/// Functions that do nothing here, or show something.
const NOTHING: &str = "\
    pthread_detach thrd_detach pthread_attr_init pthread_attr_destroy \
    pthread_attr_setdetachstate pthread_attr_setstacksize pthread_setconcurrency \
    pthread_mutexattr_destroy pthread_rwlock_destroy pthread_cond_destroy cnd_destroy \
    pthread_condattr_init pthread_condattr_setclock pthread_condattr_destroy sem_destroy \
    __cxa_atexit atexit pthread_key_delete tss_delete srand sched_yield thrd_yield \
    pthread_yield usleep sleep nanosleep thrd_sleep printf fprintf puts putchar putc fputs \
    fputc fwrite fflush setbuf setvbuf perror";

/// Returns the text of the C functions that call the table's.
pub(super) fn functions() -> String {
    let of = |(number, name): (usize, &str)| {
        format!(
            "HIDDEN __attribute__((weak)) long {name}(long a, long b, long c, long d)\n\
             {{ return locklab_test.call({number}, a, b, c, d, SITE); }}\n"
        )
    };
    let names = TABLE.iter().map(|(name, _)| *name);
    let all = names.chain(NOTHING.split(' '));
    all.enumerate().map(of).collect()
}

/// What c/own_test.c calls.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Calls {
    call: extern "C-unwind" fn(c_uint, u64, u64, u64, u64, usize) -> u64,
}

pub(super) const CALLS: Calls = Calls { call };

extern "C-unwind" fn call(number: c_uint, a: u64, b: u64, c: u64, d: u64, site: usize) -> u64 {
    flush(site);
    let function = TABLE.get(number as usize);
    function.map_or(0, |(_, function)| function([a, b, c, d], site))
}

fn says_error(what: &str, site: usize) -> ! {
    let line = with(|world| world.line(site));
    error(&format!("the test called {what} at {line}"), site)
}

fn fails(code: i32, site: usize) -> u64 {
    let thread = me();
    let errno = with(|world| world.errno(thread));
    write_value(errno, 4, code as u64, site);
    u64::MAX
}

/// Returns any of the first values of 0, 1 and -1.
fn any(of: u32, site: usize) -> u64 {
    let values = if of > 2 { "0, 1 and -1" } else { "0 and 1" };
    let line = with(|world| world.line(site));
    with(|world| {
        world.note(format!(
            "what the environment returns at {line} was one of {values}, not any number"
        ))
    });
    match model::choose(of, place(site)) {
        2 => u64::MAX,
        value => value.into(),
    }
}

/// Returns whether a wait with a time-out gives up: once for each thread and place.
fn gives_up(site: usize) -> bool {
    let thread = me();
    let line = with(|world| world.line(site));
    let before = with(|world| {
        world.note(format!(
            "the wait at {line} gives up at most once in each thread of an execution"
        ));
        world.threads[thread].gave_up.contains(&site)
    });
    let now = !before && model::choose(2, place(site)) == 1;
    if now {
        with(|world| world.threads[thread].gave_up.push(site));
    }
    now
}

/// The word of the checker for an object of the test.
fn sync(address: u64) -> Location {
    let slot = with(|world| world.slot(address as usize));
    has_changed();
    // SAFETY: a word of the checker's, which lives as long as the exploration.
    unsafe { Location::memory(slot, 8) }
}

/// Gives an object its first state.
fn reset(address: u64, value: u64, site: usize) -> u64 {
    model::store(sync(address), value, Relaxed, place(site));
    0
}

fn set_word(address: u64, value: u64, site: usize) -> u64 {
    write_value(address as usize, 4, value, site);
    0
}

// Threads.

fn create(to: u64, function: u64, argument: u64, site: usize) -> u64 {
    let thread = start(function, argument, site);
    write_value(to as usize, 8, thread, site);
    0
}

/// Starts a thread, and returns what the test knows it by.
fn start(function: u64, argument: u64, site: usize) -> u64 {
    with(|world| world.live = true);
    has_changed();
    let code = move || run(function as usize, argument, 0);
    model::spawn(code, place(site)) as u64 + 1
}

/// The addresses at which the checker has words of its own for threads and keys.
const RESULTS: u64 = 8;
const KEYS: u64 = 4;
const ATOMIC: u64 = 2;

fn result(thread: u64, site: usize) -> u64 {
    let known = (1..=MAX_THREADS as u64).contains(&thread);
    if !known || thread == me() as u64 + 1 {
        let line = with(|world| world.line(site));
        error(
            &format!("pthread_join at {line} of a thread that cannot be joined"),
            site,
        );
    }
    has_changed();
    model::join(thread as usize - 1, place(site));
    model::load(sync(RESULTS + 8 * thread), Relaxed, place(site))
}

fn join(thread: u64, to: u64, bytes: usize, site: usize) -> u64 {
    let value = result(thread, site);
    if to != 0 {
        write_value(to as usize, bytes, value, site);
    }
    0
}

/// Ends the thread within its functions.
fn leave(value: u64) -> u64 {
    let thread = me();
    let (leave, way) = with(|world| {
        let thread = &mut world.threads[thread];
        thread.left = Some(value);
        let leave = world.loaded.address("locklab_leave");
        (
            leave.expect("a function of c/own_test.c"),
            thread.way.as_mut_ptr(),
        )
    });
    // SAFETY: of this type, by c/own_test.c.
    let leave: unsafe extern "C-unwind" fn(*mut usize) -> ! = unsafe { std::mem::transmute(leave) };
    // SAFETY: it returns to the function that runs the thread; the frames of Rust between
    // them own nothing.
    unsafe { leave(way) }
}

/// Runs a function of the test as a thread, from its start to its end.
#[inline(never)]
pub(super) fn run(function: usize, first: u64, second: u64) {
    let marker = 0_u8;
    let thread = model::thread_id();
    let (run, way) = with(|world| {
        world.threads[thread].entry = std::ptr::from_ref(&marker) as usize;
        let run = world.loaded.address("locklab_run");
        let way = world.threads[thread].way.as_mut_ptr();
        (run.expect("a function of c/own_test.c"), way)
    });
    type Run = unsafe extern "C-unwind" fn(usize, u64, u64, *mut usize) -> u64;
    // SAFETY: of this type, by c/own_test.c.
    let run: Run = unsafe { std::mem::transmute::<*mut c_void, Run>(run) };
    // SAFETY: a function of the test, with what it takes.
    let value = unsafe { run(function, first, second, way) };
    let left = with(|world| world.threads[thread].left.take());
    end_thread(left.unwrap_or(value));
}

/// Does what is due at the end of a thread: destructors of keys, and its result.
pub(super) fn end_thread(value: u64) {
    let thread = me();
    for _ in 0..4 {
        let values = with(|world| std::mem::take(&mut world.threads[thread].values));
        let due = values.into_iter().filter(|(_, value)| *value != 0);
        for (key, value) in due {
            let destructor = with(|world| world.destructors.get(&key).copied());
            if let Some(destructor) = destructor.filter(|destructor| *destructor != 0) {
                // SAFETY: a function that the test gave for this.
                let destructor: extern "C-unwind" fn(u64) =
                    unsafe { std::mem::transmute(destructor) };
                destructor(value);
            }
        }
    }
    let site = with(|world| world.threads[thread].site);
    flush(site);
    if thread > 0 {
        for piece in with(|world| world.words_of_stack(thread)) {
            model::retire(piece.location(), place(site));
        }
    }
    if value != 0 && with(|world| world.live) {
        let place = place(site);
        model::store(
            sync(RESULTS + 8 * (thread as u64 + 1)),
            value,
            Relaxed,
            place,
        );
    }
}

// Mutexes. The word has the number of the holder, from 1, or that it was destroyed.

const DESTROYED: u64 = u64::MAX;
/// A spinlock has no kind.
const NO_KIND: u64 = u64::MAX;
/// Where glibc has the kind of a mutex.
const KIND: usize = 16;

fn init_mutex(mutex: u64, kind: u64, site: usize) -> u64 {
    if kind != NO_KIND {
        // SAFETY: the test's mutex.
        unsafe { set_memory(mutex as usize + KIND, 4, kind) };
    }
    reset(mutex, 0, site)
}

/// Returns the kind of a mutex: 1 is recursive, 2 checks for errors.
fn kind(mutex: u64) -> u64 {
    match mutex {
        ATOMIC => 0,
        // SAFETY: the test's mutex; of a spinlock these are other bytes, which do not
        // matter, since it is asked only of a mutex that the thread holds.
        _ => unsafe { memory(mutex as usize + KIND, 4) & 3 },
    }
}

/// Returns how often the thread holds an object.
fn holds(object: u64) -> u32 {
    let thread = me();
    with(|world| {
        world.threads[thread]
            .held
            .get(&(object as usize))
            .copied()
            .unwrap_or(0)
    })
}

fn set_holds(object: u64, times: u32) {
    let thread = me();
    with(|world| world.threads[thread].held.insert(object as usize, times));
}

fn wrong_use(what: &str, site: usize) -> ! {
    let line = with(|world| world.line(site));
    error(&format!("{what} at {line}"), site)
}

fn lock(mutex: u64, site: usize) -> u64 {
    let times = holds(mutex);
    if times > 0 {
        match kind(mutex) {
            1 => {
                set_holds(mutex, times + 1);
                return 0;
            }
            2 => return libc::EDEADLK as u64,
            _ => wrong_use("deadlock: a thread locks a mutex that it holds", site),
        }
    }
    let own = me() as u64 + 1;
    let take = |value| (value == 0 || value == DESTROYED).then_some(own);
    if model::await_rmw(sync(mutex), Acquire, place(site), take) == DESTROYED {
        wrong_use("a mutex that was destroyed is locked", site);
    }
    set_holds(mutex, 1);
    0
}

fn try_lock(mutex: u64, busy: u64, site: usize) -> u64 {
    let times = holds(mutex);
    if times > 0 {
        if kind(mutex) == 1 {
            set_holds(mutex, times + 1);
            return 0;
        }
        return busy;
    }
    let own = me() as u64 + 1;
    let take = |value| (value == 0).then_some(own);
    match model::rmw(sync(mutex), Acquire, place(site), take) {
        0 => {
            set_holds(mutex, 1);
            0
        }
        DESTROYED => wrong_use("a mutex that was destroyed is locked", site),
        _ => busy,
    }
}

fn unlock(mutex: u64, site: usize) -> u64 {
    match holds(mutex) {
        0 if kind(mutex) == 0 => wrong_use("a thread unlocks a mutex that it does not hold", site),
        0 => libc::EPERM as u64,
        1 => {
            set_holds(mutex, 0);
            model::store(sync(mutex), 0, Release, place(site));
            0
        }
        times => {
            set_holds(mutex, times - 1);
            0
        }
    }
}

fn destroy_mutex(mutex: u64, site: usize) -> u64 {
    match model::rmw(sync(mutex), AcqRel, place(site), |_| Some(DESTROYED)) {
        0 => 0,
        DESTROYED => wrong_use("a mutex is destroyed twice,", site),
        _ => wrong_use("a mutex that is held is destroyed", site),
    }
}

// Locks of readers and writers. The word counts readers, or is the writer's.

const WRITER: u64 = 1 << 63;

fn reader(value: u64) -> Option<u64> {
    (value & WRITER == 0).then_some(value + 1)
}

fn writer(value: u64) -> Option<u64> {
    (value == 0).then_some(WRITER)
}

fn read_lock(lock: u64, site: usize) -> u64 {
    model::await_rmw(sync(lock), Acquire, place(site), reader);
    0
}

fn write_lock(lock: u64, site: usize) -> u64 {
    model::await_rmw(sync(lock), Acquire, place(site), writer);
    set_holds(lock, 1);
    0
}

fn try_share(lock: u64, how: fn(u64) -> Option<u64>, site: usize) -> u64 {
    let old = model::rmw(sync(lock), Acquire, place(site), how);
    match how(old) {
        None => BUSY[0],
        Some(WRITER) => {
            set_holds(lock, 1);
            0
        }
        Some(_) => 0,
    }
}

fn unlock_shared(lock: u64, site: usize) -> u64 {
    if holds(lock) > 0 {
        set_holds(lock, 0);
        return reset_released(lock, site);
    }
    let old = model::rmw(sync(lock), Release, place(site), |value| {
        (value & WRITER == 0)
            .then(|| value.checked_sub(1))
            .flatten()
    });
    if old == 0 || old & WRITER != 0 {
        wrong_use("a thread unlocks a lock that it does not hold", site);
    }
    0
}

fn reset_released(lock: u64, site: usize) -> u64 {
    model::store(sync(lock), 0, Release, place(site));
    0
}

// Who waits for a condition, or a futex: sixteen bits say who does, sixteen who of them
// may go on, and the rest how many of these.

/// The word of those who wait.
#[derive(Clone, Copy)]
struct Waiters {
    waiting: u16,
    may: u16,
    permits: u32,
}

impl Waiters {
    fn of(word: u64) -> Self {
        Self {
            waiting: word as u16,
            may: (word >> 16) as u16,
            permits: (word >> 32) as u32,
        }
    }

    fn word(self) -> u64 {
        u64::from(self.permits) << 32 | u64::from(self.may) << 16 | u64::from(self.waiting)
    }

    fn with(self, thread: usize) -> Self {
        let waiting = self.waiting | 1 << thread;
        Self { waiting, ..self }
    }

    /// Without one that gives up: the others have its permit.
    fn without(self, thread: usize) -> Self {
        let [waiting, may] = [self.waiting, self.may].map(|all| all & !(1 << thread));
        let permits = self.permits.min(may.count_ones());
        let may = if permits == 0 { 0 } else { may };
        Self {
            waiting,
            may,
            permits,
        }
    }

    /// Without one that goes on, if it may.
    fn left_by(self, thread: usize) -> Option<Self> {
        (self.may & 1 << thread != 0).then(|| {
            let permits = self.permits - 1;
            Self { permits, ..self }.without(thread)
        })
    }

    /// With so many that may go on.
    fn woken(self, most: u32) -> Self {
        let permits = self
            .permits
            .saturating_add(most)
            .min(self.waiting.count_ones());
        let may = if permits == 0 { 0 } else { self.waiting };
        Self {
            permits,
            may,
            ..self
        }
    }
}

fn wait(condition: u64, mutex: u64, timed: Option<u64>, site: usize) -> u64 {
    if holds(mutex) == 0 {
        wrong_use("a thread waits with a mutex that it does not hold,", site);
    }
    let thread = me();
    let word = sync(condition);
    let here = place(site);
    model::rmw(word, AcqRel, here, |word| {
        Some(Waiters::of(word).with(thread).word())
    });
    let times = holds(mutex);
    set_holds(mutex, 1);
    unlock(mutex, site);
    let gave_up = timed.filter(|_| gives_up(site));
    match gave_up {
        Some(_) => model::rmw(word, AcqRel, here, |word| {
            Some(Waiters::of(word).without(thread).word())
        }),
        None => model::await_rmw(word, AcqRel, here, |word| {
            Waiters::of(word).left_by(thread).map(Waiters::word)
        }),
    };
    lock(mutex, site);
    set_holds(mutex, times);
    gave_up.unwrap_or(0)
}

/// Says what has become of those who sleep, where their word changes so.
pub(super) fn told(name: &str, old: u64, new: u64) -> String {
    let (before, after) = (Waiters::of(old), Waiters::of(new));
    let what = match after.waiting.count_ones() as i32 - before.waiting.count_ones() as i32 {
        1 => "is about to sleep",
        -1 if after.permits < before.permits => "wakes up",
        -1 => "does not sleep",
        _ if after.permits == before.permits => "wakes nobody",
        _ if after.permits == before.permits + 1 => "wakes one",
        _ => "wakes all",
    };
    format!("{what}: {name}")
}

fn signal(condition: u64, most: u32, site: usize) -> u64 {
    wake(condition, most, site);
    0
}

fn take_semaphore(semaphore: u64, site: usize) -> u64 {
    model::await_rmw(sync(semaphore), AcqRel, place(site), |value| {
        value.checked_sub(1)
    });
    0
}

/// Wakes so many of those who wait; returns how many more may go on.
fn wake(object: u64, most: u32, site: usize) -> u64 {
    let woken = |word| Waiters::of(word).woken(most);
    let old = model::rmw(sync(object), AcqRel, place(site), |word| {
        Some(woken(word).word())
    });
    u64::from(woken(old).permits - Waiters::of(old).permits)
}

/// Sleeps while a word has this value. Who finds another one may take nobody's wake-up.
pub(super) fn futex_wait(address: usize, expected: c_uint, site: usize) -> c_ulong {
    flush(site);
    let thread = me();
    if let Some(why) = with(|world| no_futex_word(address, &world.line(site))) {
        error(&why, site);
    }
    if !with(|world| world.live) && read_word(address, site) == u64::from(expected) {
        error(&never_ends(site), site);
    }
    let here = place(site);
    let word = sync(address as u64);
    with(|world| world.futexes.insert(address));
    // The system's call begins with one.
    model::fence(SeqCst, here);
    let leave = |word| Some(Waiters::of(word).without(thread).word());
    model::rmw(word, SeqCst, here, |word| {
        Some(Waiters::of(word).with(thread).word())
    });
    if read_word(address, site) != u64::from(expected) {
        model::rmw(word, SeqCst, here, leave);
        return fails(libc::EAGAIN, site);
    }
    while tell_that_it_waits() {}
    model::await_rmw(word, SeqCst, here, |word| {
        Waiters::of(word).left_by(thread).map(Waiters::word)
    });
    0
}

pub(super) fn futex_wake(address: usize, most: c_uint, site: usize) -> c_uint {
    flush(site);
    with(|world| world.futexes.insert(address));
    if !with(|world| world.live) {
        return 0;
    }
    wake(address as u64, most, site) as c_uint
}

// Barriers. The word has how many come, the number of the round, and who has come.

fn init_barrier(barrier: u64, count: u32, site: usize) -> u64 {
    if count == 0 {
        return libc::EINVAL as u64;
    }
    if model::load(sync(barrier), Acquire, place(site)) != 0 {
        wrong_use("a barrier is initialised twice,", site);
    }
    reset(barrier, u64::from(count) << 32, site)
}

fn count_of_barrier(barrier: u64, site: usize) -> u64 {
    match model::load(sync(barrier), Acquire, place(site)) >> 32 {
        0 => wrong_use(
            "a barrier that is not initialised, or was destroyed, is used",
            site,
        ),
        count => count,
    }
}

fn arrive(barrier: u64, site: usize) -> u64 {
    let count = count_of_barrier(barrier, site);
    let come = |word: u64| match (word & 0xffff) + 1 == count {
        true => (word & !0xffff) + 0x1_0000,
        false => word + 1,
    };
    let word = sync(barrier);
    let old = model::rmw(word, AcqRel, place(site), |word| Some(come(word)));
    if old >> 32 == 0 {
        wrong_use("a barrier that was destroyed is used", site);
    }
    if come(old) & 0xffff == 0 {
        // PTHREAD_BARRIER_SERIAL_THREAD
        return u64::MAX;
    }
    let round = |word: u64| word >> 16 & 0xffff;
    model::await_load(word, Acquire, place(site), |word| round(word) != round(old));
    0
}

// What is done once: 1 while it is done, 2 afterwards.

fn begin_once(once: u64, site: usize) -> bool {
    let word = sync(once);
    match model::rmw(word, Acquire, place(site), |value| {
        (value == 0).then_some(1)
    }) {
        0 => return true,
        1 => {
            model::await_load(word, Acquire, place(site), |value| value == 2);
        }
        _ => {}
    }
    false
}

fn once_only(once: u64, function: u64, site: usize) -> u64 {
    if begin_once(once, site) {
        // SAFETY: a function of the test, of this type.
        let function: extern "C-unwind" fn() = unsafe { std::mem::transmute(function as usize) };
        function();
        flush(site);
        model::store(sync(once), 2, Release, place(site));
    }
    0
}

// Data of threads.

fn create_key(to: u64, destructor: u64, site: usize) -> u64 {
    let key = model::rmw(sync(KEYS), AcqRel, place(site), |keys| Some(keys + 1));
    with(|world| world.destructors.insert(key, destructor as usize));
    set_word(to, key, site)
}

fn value_of(key: u64) -> u64 {
    let thread = me();
    let key = key & 0xffff_ffff;
    with(|world| world.threads[thread].values.get(&key).copied().unwrap_or(0))
}

fn set_value(key: u64, value: u64) -> u64 {
    let thread = me();
    has_changed_for_good();
    with(|world| {
        world.threads[thread]
            .values
            .insert(key & 0xffff_ffff, value)
    });
    0
}

// Memory.

fn allocate(bytes: u64, align: u64, site: usize) -> u64 {
    let thread = me();
    has_changed_for_good();
    let block = with(|world| world.allocate(thread, bytes as usize, align as usize, site));
    match block {
        Ok(block) => {
            if uses(block, bytes, site) {
                // Whoever accesses it must know that it exists.
                // SAFETY: memory of the test.
                let location = unsafe { Location::memory(block, bytes as u32) };
                model::write(location, place(site));
            }
            block as u64
        }
        Err(why) => error(&why, site),
    }
}

fn allocate_aligned(align: u64, bytes: u64, site: usize) -> u64 {
    if !align.is_power_of_two() {
        wrong_use(
            "memory is wanted at a multiple of what is no power of two,",
            site,
        );
    }
    allocate(bytes, align, site)
}

fn free(block: u64, site: usize) -> u64 {
    if block == 0 {
        return 0;
    }
    has_changed_for_good();
    let bytes = with(|world| world.block(block as usize).map(|block| block.bytes));
    uses(block as usize, bytes.unwrap_or(0) as u64, site);
    let known = with(|world| {
        let block = world.block(block as usize)?;
        Some((block.bytes, std::mem::replace(&mut block.freed, true)))
    });
    match known {
        Some((bytes, false)) => {
            if with(|world| world.live) {
                // SAFETY: memory of the test.
                let location = unsafe { Location::memory(block as usize, bytes.max(1) as u32) };
                model::retire(location, place(site));
            }
        }
        Some((_, true)) => wrong_use("memory is freed twice,", site),
        None => wrong_use("what malloc did not return is freed", site),
    }
    0
}

fn reallocate(old: u64, bytes: u64, site: usize) -> u64 {
    let new = allocate(bytes, 16, site);
    let before = with(|world| world.block(old as usize).map(|block| block.bytes));
    copy(
        new as usize,
        old as usize,
        before.unwrap_or(0).min(bytes as usize),
        site,
    );
    free(old, site);
    new
}
