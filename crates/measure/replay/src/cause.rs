//! Names what ends a wait for another thread. It must never know who waits.

/// Names what ends a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Cause {
    /// A signal of a condition: its image and its address there.
    Condition(u64, u64),
    /// The birth of this thread.
    Birth(usize),
    /// The end of this thread.
    End(usize),
}
