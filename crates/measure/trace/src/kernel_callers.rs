//! Finds who takes a lock of the kernel: the first call that is no part of locking.
//!
//! The functions that wait are the same for all locks, so their names say nothing.

/// Functions that wait on behalf of their callers, by the begin of their names.
const LOCKING: [&str; 32] = [
    "task_rq_lock",
    "__task_rq_lock",
    "_raw_",
    "__raw_",
    "raw_spin_rq_lock",
    "native_queued_",
    "queued_",
    "__pv_queued",
    "pv_",
    "do_raw_",
    "mutex_",
    "__mutex_",
    "__ww_mutex",
    "ww_mutex",
    "rwsem_",
    "down_",
    "__down",
    "rt_mutex_",
    "__rt_mutex_",
    "rtlock_",
    "percpu_down",
    "__percpu_down",
    "percpu_rwsem",
    "paravirt_",
    "__traceiter_",
    "trace_contention_",
    "osq_lock",
    "rt_spin_lock",
    "lock_acquire",
    "lock_contended",
    "__lock_acquire",
    "contention_",
];

/// Returns whether a function takes a lock on behalf of its caller.
pub(crate) fn is_locking(call: &str) -> bool {
    LOCKING.iter().any(|own| call.starts_with(own))
}

/// Returns the function that takes the lock, of the calls of a wait, innermost first;
/// the last of them where all belong to locking.
#[must_use]
pub fn kernel_caller<S: AsRef<str>>(calls: &[S]) -> Option<&str> {
    let calls = || calls.iter().map(AsRef::as_ref);
    calls()
        .find(|call| !is_locking(call))
        .or_else(|| calls().last())
}
