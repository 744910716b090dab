//! How a waiter of an interposed lock waits.

/// How a waiter waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Wait {
    /// Until it has the lock
    Spin,
    /// For about as long as a sleep costs, then sleeps until woken
    SpinThenPark,
}

impl Wait {
    /// As the interposer and the command line call it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Spin => "spin",
            Self::SpinThenPark => "spin-then-park",
        }
    }
}
