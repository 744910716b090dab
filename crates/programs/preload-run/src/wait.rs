//! Says how a waiter of an interposed lock waits.

/// Says how a waiter waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Wait {
    /// Spins for about as long as a sleep costs, then sleeps; a running thread
    /// may take a free lock before those that wait, at most 1024 times in a
    /// row
    Barging,
    /// Spins as long, then sleeps; a sleeper keeps its turn, and the lock is kept free for it
    SpinThenPark,
    /// Spins until it has the lock
    Spin,
}

impl Wait {
    /// Returns the name that the interposer and the command line use.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Barging => "barging",
            Self::Spin => "spin",
            Self::SpinThenPark => "spin-then-park",
        }
    }
}
