//! Says why a recording describes no program that can be run again.

use std::fmt;

/// Says why a recording describes no program that can be run again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It has no thread.
    Empty,
    /// No thread took a lock.
    NoLock,
    /// One thread took locks.
    OneThread,
    /// One thread took locks in the part that would be run again.
    OneThreadThere,
    /// A part of the file is missing or damaged, so who waited for whom is not
    /// known.
    NotWhole,
    /// Only waits of a kernel's locks were recorded.
    WaitsOnly,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => {
                "nothing was recorded, because the program did not load the recorder (it is \
                 linked statically, or runs with another user's rights)"
            }
            Self::NoLock => {
                "no pthread lock was taken, so no lock can be replaced; spinlocks, semaphores, \
                 barriers, OpenMP and locks that a language brings itself (Rust, Go, Java) are \
                 not seen: 'locklab record --system' sees who waits for them"
            }
            Self::OneThread => "nothing to gain: only one thread takes locks, and never waits",
            Self::OneThreadThere => {
                "nothing to gain: where most locks are taken, one thread takes them all, and \
                 never waits"
            }
            Self::WaitsOnly => {
                "perf recorded waits only, and how long locks were held is not known; record \
                 lock_acquire, lock_acquired and lock_release of a kernel with lockdep"
            }
            Self::NotWhole => {
                "the file is not whole, so who waited for whom is not known; record again"
            }
        })
    }
}

impl std::error::Error for Fault {}
