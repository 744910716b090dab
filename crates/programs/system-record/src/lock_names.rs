//! Knows which functions wait for locks, and which for conditions, work or other threads: the one
//! table by which a wait in the kernel is told from its stack of calls.
//!
//! A new runtime or library takes a line in [`TABLE`], and no other change. Where a stack
//! names no function of the table, what was waited for is not known, and nothing may guess.

use locklab_preload_run::is_wrapper;
use std::borrow::Cow;

/// Names what a thread waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A lock: others hold it.
    Lock,
    /// Work or a lock of the runtime, which parks its threads alike.
    ParkOrLock,
    /// A condition or an event: others have to do something first.
    Condition,
    /// A semaphore: a lock where those that wait for it are those that post it, and a
    /// condition otherwise.
    Semaphore,
    /// The others at a barrier, or the end of a thread.
    Barrier,
    /// Work: the thread is parked until somebody has some.
    Park,
    /// Nothing in the kernel: the thread spins, for whatever.
    Spin,
}

/// Names what a lock is known by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Identity {
    /// The address that its waiters wait at.
    Address,
    /// Each waiter has an address of its own, so locks are told apart by who takes them.
    Site,
    /// The same, of locks in memory that processes share: one site is one lock for all.
    SharedSite,
}

/// A function that waits.
#[derive(Clone, Copy, Debug)]
pub struct Waiter {
    /// Says whose function it is.
    pub family: &'static str,
    /// A part of its name, whole words of it.
    pub function: &'static str,
    /// Holds what it waits for.
    pub kind: Kind,
    /// Holds what the lock is known by.
    pub identity: Identity,
}

const fn lock(family: &'static str, function: &'static str) -> Waiter {
    Waiter {
        family,
        function,
        kind: Kind::Lock,
        identity: Identity::Address,
    }
}

/// Returns a lock whose waiters park, each at an address of its own.
const fn parking(family: &'static str, function: &'static str) -> Waiter {
    Waiter {
        identity: Identity::Site,
        ..lock(family, function)
    }
}

/// Returns a lock of several processes, each of which parks at an address of its own.
const fn shared(family: &'static str, function: &'static str) -> Waiter {
    Waiter {
        identity: Identity::SharedSite,
        ..lock(family, function)
    }
}

const fn other(family: &'static str, function: &'static str, kind: Kind) -> Waiter {
    Waiter {
        kind,
        ..lock(family, function)
    }
}

/// Returns a function that spins for what its caller waits for.
const fn spinning(family: &'static str, function: &'static str) -> Waiter {
    Waiter {
        kind: Kind::Spin,
        ..parking(family, function)
    }
}

/// The name that stands in a stack for a loop that only waits, innermost.
pub(crate) const SPINS: &str = "[spinning]";

/// The functions, by family. The first match of the strongest kind counts, from the
/// innermost call outwards: a lock that is built of a condition is a lock.
pub const TABLE: &[Waiter] = &[
    lock("Rust std", "futex::Mutex::lock_contended"),
    lock("Rust std", "futex::RwLock::read_contended"),
    lock("Rust std", "futex::RwLock::write_contended"),
    other("Rust std", "Condvar::wait", Kind::Condition),
    other("Rust std", "Condvar::wait_timeout", Kind::Condition),
    other(
        "Rust std",
        "Condvar::wait_optional_timeout",
        Kind::Condition,
    ),
    other("Rust std", "futex::Once::call", Kind::Condition),
    other("Rust std", "futex::Once::wait", Kind::Condition),
    other("Rust std", "thread::park", Kind::Park),
    other("Rust std", "Parker::park_timeout", Kind::Park),
    parking("parking_lot", "RawMutex::lock_slow"),
    parking("parking_lot", "RawFairMutex::lock_slow"),
    parking("parking_lot", "RawRwLock::lock_shared_slow"),
    parking("parking_lot", "RawRwLock::lock_exclusive_slow"),
    parking("parking_lot", "RawRwLock::lock_upgradable_slow"),
    parking("parking_lot", "RawRwLock::upgrade_slow"),
    parking("parking_lot", "RawRwLock::wait_for_readers"),
    other(
        "parking_lot",
        "Condvar::wait_until_internal",
        Kind::Condition,
    ),
    lock("glibc", "__lll_lock_wait"),
    lock("glibc", "__lll_lock_wait_private"),
    lock("glibc", "lll_mutex_lock_optimized"),
    lock("glibc", "__pthread_mutex_lock_full"),
    lock("pthread", "pthread_mutex_lock"),
    lock("pthread", "pthread_mutex_timedlock"),
    lock("pthread", "pthread_rwlock_rdlock"),
    lock("pthread", "pthread_rwlock_wrlock"),
    lock("pthread", "__pthread_mutex_timedlock"),
    lock("pthread", "__pthread_mutex_lock"),
    lock("pthread", "___pthread_mutex_lock"),
    lock("pthread", "__pthread_rwlock_rdlock"),
    lock("pthread", "__pthread_rwlock_wrlock"),
    lock("pthread", "___pthread_rwlock_rdlock"),
    lock("pthread", "___pthread_rwlock_wrlock"),
    lock("musl", "__pthread_rwlock_timedrdlock"),
    lock("musl", "__pthread_rwlock_timedwrlock"),
    lock("musl", "__lock"),
    other("pthread", "pthread_cond_wait", Kind::Condition),
    other("pthread", "pthread_cond_timedwait", Kind::Condition),
    other("glibc", "__pthread_cond_wait_common", Kind::Condition),
    other("glibc", "__pthread_cond_wait", Kind::Condition),
    other("glibc", "___pthread_cond_wait", Kind::Condition),
    other("glibc", "___pthread_cond_timedwait64", Kind::Condition),
    other("glibc", "___pthread_cond_clockwait64", Kind::Condition),
    other("musl", "__pthread_cond_timedwait", Kind::Condition),
    other("glibc", "__new_sem_wait_slow64", Kind::Semaphore),
    other("glibc", "do_futex_wait", Kind::Semaphore),
    // They spin within the only function that there is.
    lock("pthread", "pthread_spin_lock"),
    lock("pthread", "__pthread_spin_lock"),
    other("pthread", "sem_wait", Kind::Semaphore),
    other("pthread", "sem_timedwait", Kind::Semaphore),
    other("pthread", "pthread_barrier_wait", Kind::Barrier),
    other("glibc", "___pthread_barrier_wait", Kind::Barrier),
    other("pthread", "pthread_join", Kind::Barrier),
    other("glibc", "__pthread_clockjoin_ex", Kind::Barrier),
    other("musl", "__pthread_timedjoin_np", Kind::Barrier),
    lock("Go runtime", "runtime.lock2"),
    other("Go runtime", "runtime.notesleep", Kind::Park),
    other("Go runtime", "runtime.notetsleep", Kind::Park),
    other("Go runtime", "runtime.notetsleep_internal", Kind::Park),
    other("Go runtime", "runtime.notetsleepg", Kind::Park),
    parking("JVM monitor", "ObjectMonitor::enter"),
    parking("JVM monitor", "ObjectMonitor::EnterI"),
    parking("JVM monitor", "ObjectMonitor::ReenterI"),
    parking("JVM", "Mutex::lock_contended"),
    parking("JVM", "Monitor::lock_without_safepoint_check"),
    lock("JVM", "PlatformMutex::lock"),
    parking(
        "java.util.concurrent",
        "AbstractQueuedSynchronizer::acquire",
    ),
    parking("java.util.concurrent", "AbstractQueuedSynchronizer.acquire"),
    parking("java.util.concurrent", "ReentrantLock::lock"),
    parking("java.util.concurrent", "ReentrantLock.lock"),
    other("JVM monitor", "ObjectMonitor::wait", Kind::Condition),
    other("JVM", "Monitor::wait", Kind::Park),
    other("JVM", "Parker::park", Kind::ParkOrLock),
    lock("OpenMP (libgomp)", "gomp_mutex_lock_slow"),
    lock("OpenMP (libgomp)", "GOMP_critical_start"),
    lock("OpenMP (libgomp)", "GOMP_critical_name_start"),
    lock("OpenMP (libgomp)", "omp_set_lock"),
    lock("OpenMP (libgomp)", "omp_set_nest_lock"),
    other("OpenMP (libgomp)", "gomp_barrier_wait_end", Kind::Barrier),
    other(
        "OpenMP (libgomp)",
        "gomp_team_barrier_wait_end",
        Kind::Barrier,
    ),
    other("OpenMP (libgomp)", "gomp_barrier_wait", Kind::Barrier),
    // Its own functions have no names in a library that is stripped; those that lock are
    // called by functions that have.
    other("OpenMP (libgomp)", "libgomp.so", Kind::Barrier),
    lock("OpenMP (LLVM)", "__kmp_acquire_futex_lock"),
    other("OpenMP (LLVM)", "__kmp_suspend_64", Kind::Barrier),
    parking("abseil", "Mutex::LockSlow"),
    parking("abseil", "Mutex::LockSlowLoop"),
    parking("abseil", "Mutex::LockSlowWithDeadline"),
    other("abseil", "CondVar::WaitCommon", Kind::Condition),
    parking("folly", "lockExclusiveImpl"),
    parking("folly", "lockSharedImpl"),
    lock("folly", "MicroLockCore::lockSlowPath"),
    lock("folly", "MicroSpinLock::lock"),
    parking("folly", "DistributedMutex"),
    other("folly", "Baton", Kind::Condition),
    parking(".NET", "AwareLock::EnterEpilog"),
    parking(".NET", "AwareLock::EnterEpilogHelper"),
    parking(".NET", "CrstBase::Enter"),
    parking(".NET", "InternalEnterCriticalSection"),
    parking(".NET", "Monitor.Enter"),
    other(".NET", "CLREvent::Wait", Kind::Condition),
    parking("Ruby Mutex", "rb_mutex_lock"),
    parking("Perl lock()", "recursive_lock_acquire"),
    parking("OCaml master lock", "st_masterlock_acquire"),
    parking("OCaml master lock", "caml_thread_leave_blocking_section"),
    parking("Python GIL", "take_gil"),
    lock("Python", "PyThread_acquire_lock_timed"),
    lock("Qt", "QBasicMutex::lockInternal"),
    parking("Qt", "QReadWriteLock::tryLockForRead"),
    parking("Qt", "QReadWriteLock::tryLockForWrite"),
    other("Qt", "QWaitCondition::wait", Kind::Condition),
    parking("WebKit", "WTF::Lock::lockSlow"),
    parking("WebKit", "WTF::LockAlgorithm"),
    lock("V8", "v8::base::Mutex::Lock"),
    lock("libuv", "uv_mutex_lock"),
    other("V8", "FutexEmulation::Wait", Kind::Condition),
    other("V8", "FutexEmulation::WaitSync", Kind::Condition),
    lock("jemalloc", "malloc_mutex_lock_slow"),
    lock("MariaDB", "srw_mutex_impl"),
    lock("MariaDB", "ssux_lock_impl"),
    parking("InnoDB", "rw_lock_s_lock_spin"),
    parking("InnoDB", "rw_lock_x_lock_func"),
    shared("PostgreSQL", "LWLockAcquire"),
    shared("PostgreSQL", "LWLockAcquireOrWait"),
    lock("GLib", "g_mutex_lock_slowpath"),
    lock("GLib", "g_rec_mutex_lock"),
    other("GLib", "g_cond_wait", Kind::Condition),
    lock("C++", "__cxa_guard_acquire"),
    // What a std::atomic is used for, only its waiters tell; as of a semaphore.
    other("C++", "__atomic_wait", Kind::Semaphore),
    other("C++", "__atomic_wait_address", Kind::Semaphore),
    other("C++", "__atomic_wait_address_v", Kind::Semaphore),
    other("C++", "__atomic_wait_address_bare", Kind::Semaphore),
    spinning("own spinning", SPINS),
    spinning("own spinning", "sched_yield"),
    spinning("own spinning", "__sched_yield"),
    lock("Zig", "Mutex.FutexImpl.lockSlow"),
    lock("Swift", "os_unfair_lock_lock_slow"),
];

/// Describes what a stack says of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) family: &'static str,
    pub(crate) kind: Kind,
    pub(crate) identity: Identity,
    /// The number of calls up to the function that waits, and it: callers come after.
    pub(crate) depth: usize,
}

/// What is said of a stack without a function of the table: a word of the program's own, which
/// may be a lock.
pub(crate) const UNNAMED: Told = Told {
    family: "own futex",
    kind: Kind::Lock,
    identity: Identity::Address,
    depth: 0,
};

/// Returns what a stack of function names, innermost first, says of the wait; `None` if no
/// function of the table is in it.
pub(crate) fn told<'a>(functions: impl Iterator<Item = &'a str>) -> Option<Told> {
    let mut best: Option<Told> = None;
    for (depth, function) in functions.enumerate() {
        let Some(waiter) = TABLE.iter().find(|waiter| names(function, waiter.function)) else {
            continue;
        };
        // Kinds are in the order of their strength.
        if best.is_none_or(|best| waiter.kind < best.kind) {
            best = Some(Told {
                family: waiter.family,
                kind: waiter.kind,
                identity: waiter.identity,
                depth: depth + 1,
            });
        }
    }
    best
}

/// Returns whether a function's name has this part, as whole words.
fn names(function: &str, part: &str) -> bool {
    let word = |c: char| c.is_alphanumeric() || c == '_';
    let function = plain(function);
    function.match_indices(part).any(|(at, _)| {
        let before = function[..at].chars().next_back();
        let after = function[at + part.len()..].chars().next();
        !before.is_some_and(word) && !after.is_some_and(word)
    })
}

/// Returns a function's name without arguments, which name types of locks too; and that
/// of a Rust method without the brackets around its type: `<a::Mutex as b::Lock>::lock`
/// is `a::Mutex::lock`.
pub(crate) fn plain(function: &str) -> Cow<'_, str> {
    if let Some(inner) = function.strip_prefix('<') {
        let mut depth = 1;
        for (at, c) in inner.char_indices() {
            match c {
                '<' => depth += 1,
                '>' if !inner[..at].ends_with('-') => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                let (of, method) = (&inner[..at], &inner[at + 1..]);
                let of = of.split(" as ").next().unwrap_or(of);
                return Cow::Owned(format!("{}{method}", plain(of)));
            }
        }
        return Cow::Borrowed(function);
    }
    // A method of Go has a receiver in brackets.
    match function.contains(".(*") {
        true => Cow::Borrowed(function),
        // The call of a lambda is `operator()`.
        false => {
            let from = function
                .find("operator()")
                .map_or(0, |at| at + "operator()".len());
            let end = function[from..]
                .find('(')
                .map_or(function.len(), |at| from + at);
            Cow::Borrowed(&function[..end])
        }
    }
}

/// Functions between a lock and who takes it, which no rule of names finds.
const WRAPPERS: [&str; 25] = [
    "lock_api::",
    "parking_lot",
    "sync.(*",
    "internal/sync.(*",
    "runtime.lock",
    "runtime.unlock",
    "runtime.futex",
    "SharedRuntime::",
    "InterpreterRuntime::monitor",
    "Runtime1::monitor",
    "os::PlatformMonitor::",
    "PlatformMonitor::",
    "PlatformMutex::",
    "Monitor::",
    "MonitorLocker",
    "MutexLocker",
    "uv_cond_",
    "ObjectSynchronizer::",
    "ObjectMonitor::",
    "GOMP_critical",
    "GOMP_barrier",
    "omp_set_lock",
    "absl::",
    "folly::",
    "__GI_",
];

/// Returns whether a function takes the lock on behalf of its caller.
pub(crate) fn wraps(function: &str) -> bool {
    let name = plain(function);
    name == "syscall"
        || WRAPPERS.iter().any(|wrapper| name.starts_with(wrapper))
        || ["std::", "core::", "alloc::"]
            .iter()
            .any(|own| name.starts_with(own))
        || told(std::iter::once(function))
            .is_some_and(|told| matches!(told.kind, Kind::Lock | Kind::Spin))
        || is_wrapper(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(stack: &[&str]) -> Option<(Kind, &'static str)> {
        told(stack.iter().copied()).map(|told| (told.kind, told.family))
    }

    #[test]
    fn a_lock_is_told_from_a_condition_and_a_park() {
        for (stack, expected) in [
            (
                &[
                    "syscall",
                    "std::sys::sync::mutex::futex::Mutex::lock_contended",
                    "work",
                ][..],
                Some((Kind::Lock, "Rust std")),
            ),
            (
                &[
                    "syscall",
                    "parking_lot::raw_mutex::RawMutex::lock_slow",
                    "work",
                ],
                Some((Kind::Lock, "parking_lot")),
            ),
            (
                &[
                    "syscall",
                    "parking_lot::raw_mutex::RawMutex::unlock_slow",
                    "work",
                ],
                None,
            ),
            (
                &[
                    "runtime.futex",
                    "runtime.futexsleep",
                    "runtime.notesleep",
                    "runtime.stopm",
                ],
                Some((Kind::Park, "Go runtime")),
            ),
            // A monitor of Java is built of a condition of pthread.
            (
                &[
                    "__futex_abstimed_wait_common",
                    "pthread_cond_wait",
                    "ObjectMonitor::enter(Thread*)",
                ],
                Some((Kind::Lock, "JVM monitor")),
            ),
            // The mutex that a condition takes again is a lock.
            (
                &[
                    "__lll_lock_wait",
                    "pthread_mutex_lock",
                    "pthread_cond_wait",
                    "consume",
                ],
                Some((Kind::Lock, "glibc")),
            ),
            // Java parks by a condition, for work or for a lock.
            (
                &["pthread_cond_wait", "Parker::park(bool, long)"],
                Some((Kind::ParkOrLock, "JVM")),
            ),
            (&["futex_wait", "mystery"], None),
        ] {
            assert_eq!(kind(stack), expected, "{stack:?}");
        }
    }

    #[test]
    fn a_function_of_the_table_matches_by_whole_words() {
        assert!(names("gomp_mutex_lock_slow", "gomp_mutex_lock_slow"));
        assert!(!names("__lll_lock_wait_private", "__lll_lock_wait"));
        assert!(names(
            "<std::sys::sync::mutex::futex::Mutex>::lock_contended",
            "futex::Mutex::lock_contended"
        ));
        assert_eq!(
            plain("<a::Raw<u8> as lock_api::RawMutex>::lock"),
            "a::Raw<u8>::lock"
        );
        assert_eq!(plain("sync.(*Mutex).Lock"), "sync.(*Mutex).Lock");
        assert_eq!(
            plain("main::{lambda#1}::operator()(int) const"),
            "main::{lambda#1}::operator()"
        );
        assert!(!names(
            "f(parking_lot::RawMutex::lock_slow)",
            "RawMutex::lock_slow"
        ));
    }

    #[test]
    fn every_function_of_the_table_is_there_once() {
        for (number, waiter) in TABLE.iter().enumerate() {
            let twice = TABLE[..number]
                .iter()
                .any(|other| other.function == waiter.function);
            assert!(!twice, "{}", waiter.function);
        }
    }
}
