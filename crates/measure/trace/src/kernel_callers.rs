//! Who takes a lock of the kernel: the first call that is no part of locking.
//!
//! The functions that wait are the same for all locks, so their names say nothing.

/// Functions that wait on behalf of their callers, by the begin of their names.
const LOCKING: [&str; 27] = [
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
];

/// The function that takes the lock, of the calls of a wait, innermost first; the last of
/// them where all belong to locking.
#[must_use]
pub fn kernel_caller<S: AsRef<str>>(calls: &[S]) -> Option<&str> {
    let locks = |call: &str| LOCKING.iter().any(|own| call.starts_with(own));
    let calls = || calls.iter().map(AsRef::as_ref);
    calls().find(|call| !locks(call)).or_else(|| calls().last())
}
