//! Says how far to explore: what a caller sets. It must decide nothing.

use std::time::Duration;

/// How to explore, and how far.
#[derive(Clone, Debug)]
pub struct Options {
    /// The most executions, with blocked ones.
    pub executions: u64,
    /// The longest time.
    pub duration: Option<Duration>,
    /// The most bytes for graphs that are not explored yet.
    pub memory: usize,
    /// The most events of a thread: one that has more does not end.
    pub events: usize,
    /// How often the weak exchanges of a thread fail without a reason.
    pub weak_failures: u32,
    /// The rounds after which a loop that reads the same and changes nothing is a wait: its
    /// thread goes on only when it can read something else. What ends after fewer rounds,
    /// by a count, is explored round by round. 0: no loop is a wait.
    pub rounds: u32,
    /// Whether a deadlock is an error; otherwise it counts among the blocked executions.
    pub deadlocks: bool,
    /// Whether memory that is never freed is an error.
    pub leaks: bool,
    /// The bytes of a thread's stack.
    pub stack: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            executions: u64::MAX,
            duration: None,
            memory: 1 << 30,
            events: 10_000,
            weak_failures: 1,
            rounds: 200,
            deadlocks: true,
            leaks: true,
            stack: 256 << 10,
        }
    }
}
