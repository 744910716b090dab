//! Describes what all locks of libraries have in common.

use locklab_locks::Info;

/// Their waiters sleep, and any number of threads may use them.
pub(crate) const SLEEPS: Info = Info {
    parks: true,
    max_cpus: usize::MAX,
    ..Info::BASE
};
