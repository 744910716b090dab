//! Why locks cannot be measured as asked: one sentence each, with what to give
//! instead. What the machine itself refuses is not here.

use locklab_host::error::Error;

/// A name that no lock has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct NoSuchLock {
    /// The name that was given.
    pub name: String,
    /// The closest names, the best first.
    pub close: Vec<&'static str>,
}

impl std::fmt::Display for NoSuchLock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = &self.name;
        write!(f, "there is no lock called '{name}'")?;
        match self.close.as_slice() {
            _ if name.ends_with(".toml") => {
                write!(
                    f,
                    "; 'locklab compare {name}' runs the file of an experiment"
                )
            }
            [] => write!(f, "; 'locklab locks' lists them all"),
            [one] => write!(f, "; did you mean {one}? ('locklab locks' lists them all)"),
            [first @ .., last] => write!(
                f,
                "; the closest are {} and {last} ('locklab locks' lists them all)",
                first.join(", ")
            ),
        }
    }
}

/// Why there is no plan of a measurement.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum PlanError {
    /// A lock does not exist.
    #[error(transparent)]
    NoSuchLock(#[from] NoSuchLock),
    /// A turn makes no sense.
    #[error(transparent)]
    Mix(#[from] Error),
    /// The time is zero.
    #[error("no time shows nothing; give --time 10 or more")]
    NoTime,
    /// A slice is too short to settle.
    #[error(
        "a slice shorter than 50 microseconds is over before the locks have settled; give \
         --slice-us 50 or more"
    )]
    ShortSlice,
    /// There is no layout of this number.
    #[error("there is no layout {asked}; give --layout 0 to {last}")]
    NoLayout {
        /// The number that was asked for.
        asked: usize,
        /// The last that there is.
        last: usize,
    },
    /// A length is more units than can be counted.
    #[error("a length of {0} is {0} + 1 units, which is more than a machine can count")]
    Length(u64),
    /// One turn of all threads is longer than a slice.
    #[error(
        "with critical length {critical} and non-critical length {non_critical}, one turn of \
         {threads} {} takes {turn}, more than the slice of {slice}; shorten the lengths or give \
         a longer --slice-us",
        if *threads == 1 { "thread" } else { "threads" }
    )]
    LongTurn {
        /// The length of the critical section.
        critical: u64,
        /// The length of the time outside.
        non_critical: u64,
        /// The number of threads.
        threads: usize,
        /// The time of the turn, in words.
        turn: String,
        /// The time of the slice, in words.
        slice: String,
    },
    /// An fstat is to do what only units can.
    #[error(
        "an fstat touches no lines and takes one lock; leave out --reads, --lines, --locks, \
         --nested and --distribution, or use --workload units"
    )]
    Fstat,
    /// A pinned CPU is not one of this process.
    #[error("--pin names CPU {cpu}, which this process may not use; it may use {allowed}")]
    ForeignCpu {
        /// The CPU that was named.
        cpu: usize,
        /// The CPUs of this process, as ranges.
        allowed: String,
    },
    /// A CPU is pinned twice.
    #[error("--pin names CPU {0} twice; name each CPU once")]
    CpuTwice(usize),
    /// No CPU is pinned.
    #[error("--pin names no CPU; name one at least, or leave it out")]
    NoCpu,
    /// A lock does not work in memory that processes share.
    #[error(
        "'{lock}' does not work between processes, because it holds pointers or memory of one \
         process; those that do are {}",
        able.join(", ")
    )]
    NotShared {
        /// The lock that does not.
        lock: &'static str,
        /// The locks of the catalogue that do.
        able: Vec<&'static str>,
    },
    /// A lock serves fewer threads.
    #[error("'{lock}' serves at most {most} threads, and {asked} were asked for; ask for fewer")]
    TooManyThreads {
        /// The lock that cannot.
        lock: &'static str,
        /// The most threads that it serves.
        most: usize,
        /// What was asked for.
        asked: usize,
    },
    /// Processes are to replay a program.
    #[error("a recorded program is replayed by threads; leave out --processes")]
    ReplayedProcesses,
    /// A recording has nothing to replay.
    #[error("{0}: no lock in it is used by two threads, so no other lock can matter")]
    NoContention(String),
    /// A replay is to have no thread.
    #[error("no threads take no locks; give --threads 1 or more")]
    NoThreads,
    /// A recording does not say what other numbers of threads would do.
    #[error(
        "{0}: its threads wait for what was not recorded, so that it can be run again with its \
         own number of threads only; leave out --threads"
    )]
    OwnThreadsOnly(String),
}

/// With the exit code of a command.
impl From<PlanError> for locklab_host::error::Error {
    fn from(error: PlanError) -> Self {
        Self::Usage(error.to_string())
    }
}

/// With the exit code of a command.
impl From<NoSuchLock> for locklab_host::error::Error {
    fn from(error: NoSuchLock) -> Self {
        Self::Usage(error.to_string())
    }
}

/// The sentence, for what only hands it on.
impl From<PlanError> for String {
    fn from(error: PlanError) -> Self {
        error.to_string()
    }
}
