//! Published microbenchmarks of single cache lines: what was run, and the figure.
//!
//! A machine file holds them beside its parameters. This module never runs one:
//! that is `microbench`.

use crate::distance::Distance;

/// A microbenchmark. Its result is in ns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Benchmark {
    /// Two cores at this distance compare-and-swap one word alternately: half
    /// of a round trip, as the tool core-to-core-latency measures.
    PingPong {
        /// The distance of the cores.
        distance: Distance,
    },
    /// One access to a line that cores at this distance have used.
    Access {
        /// The kind of access.
        access: Access,
        /// The state in which they have left it.
        state: State,
        /// The distance of the cores.
        distance: Distance,
    },
    /// All threads add to one word: time of an addition.
    FetchAdd {
        /// Number of threads.
        threads: usize,
    },
    /// All threads read one word and compare-and-swap it until that
    /// succeeds, with the value that the last failure gave: time of a success.
    CompareAndSwap {
        /// Number of threads.
        threads: usize,
    },
    /// A ticket lock of two words in one line, without a pause, around a
    /// counter in another: time of an acquisition.
    Ticket {
        /// Number of threads.
        threads: usize,
    },
    /// A test-and-test-and-set lock without a pause around such a counter.
    TestAndTestAndSet {
        /// Number of threads.
        threads: usize,
    },
    /// Threads that are pinned to sibling hardware threads first repeat an
    /// operation on one word, each as often as the others, and end: elapsed
    /// time by all operations.
    FixedWork {
        /// Holds what each thread repeats.
        operation: Operation,
        /// Number of threads.
        threads: usize,
    },
    /// Means the same, but the mean of the threads' own times as a part of the elapsed
    /// time: 1 if all end together, a half if one thread goes after the other.
    OwnTime {
        /// Holds what each thread repeats.
        operation: Operation,
        /// Number of threads.
        threads: usize,
    },
}

/// An operation of [`Benchmark::FixedWork`], on one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// One addition, in a loop that does nothing else.
    Additions,
    /// Two additions, as a program of lockhammer makes them.
    FetchAdds,
    /// A read, compare-and-swap until it succeeds, each after another read, and
    /// an addition.
    CompareAndSwaps,
    /// Swaps until one finds the word 0, and a store of 0.
    Swaps,
    /// A ticket lock of one word, with pauses.
    Ticket,
}

impl Operation {
    /// All of them, by the name in machine files.
    pub const ALL: [(&'static str, Self); 5] = [
        ("additions", Self::Additions),
        ("fetch-and-adds", Self::FetchAdds),
        ("compare-and-swaps", Self::CompareAndSwaps),
        ("swaps", Self::Swaps),
        ("ticket-word", Self::Ticket),
    ];

    /// Returns what its threads do, for a report.
    fn name(self) -> &'static str {
        match self {
            Self::Additions => "fetch-and-add, siblings first",
            Self::FetchAdds => "two fetch-and-adds",
            Self::CompareAndSwaps => "compare-and-swap loop and fetch-and-add",
            Self::Swaps => "swaps until 0, and a store",
            Self::Ticket => "ticket lock in one word",
        }
    }
}

/// Names what is timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// A load, until its value is there.
    Load,
    /// A store, until it is visible.
    Store,
    /// A compare-and-swap that succeeds.
    CompareAndSwap,
}

/// The state in which other cores have left a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// A core has written it.
    Modified,
    /// A core has written it and another has read it.
    Shared,
    /// It is in no cache.
    Memory,
}

/// A published figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    /// Holds what the publication measured.
    pub benchmark: Benchmark,
    /// The published figure, ns; a fraction for [`Benchmark::OwnTime`].
    pub ns: f64,
    /// The publication that the figure is from.
    pub source: String,
    /// The parameter that was chosen so that the model gives this figure;
    /// none if the figure only checks.
    pub chose: Option<String>,
}

impl Benchmark {
    /// Returns whether its result is a fraction, and not a time.
    pub fn is_fraction(&self) -> bool {
        matches!(self, Self::OwnTime { .. })
    }

    /// Returns a description: `ticket lock, 16 threads`.
    pub fn name(&self) -> String {
        match self {
            Self::PingPong { distance } => {
                format!("compare-and-swap in turns, {}", distance.name())
            }
            Self::Access {
                access,
                state,
                distance,
            } => {
                let access = match access {
                    Access::Load => "load",
                    Access::Store => "store",
                    Access::CompareAndSwap => "compare-and-swap",
                };
                match state {
                    State::Modified => format!("{access}, modified, {}", distance.name()),
                    State::Shared => format!("{access}, shared, {}", distance.name()),
                    State::Memory => format!("{access}, in no cache"),
                }
            }
            Self::FetchAdd { threads } => format!("fetch-and-add, {threads} threads"),
            Self::CompareAndSwap { threads } => format!("compare-and-swap, {threads} threads"),
            Self::Ticket { threads } => format!("ticket lock, {threads} threads"),
            Self::TestAndTestAndSet { threads } => {
                format!("test-and-test-and-set lock, {threads} threads")
            }
            Self::FixedWork { operation, threads } => {
                format!("{}, {threads} threads", operation.name())
            }
            Self::OwnTime { operation, threads } => {
                format!(
                    "own time over elapsed: {}, {threads} threads",
                    operation.name()
                )
            }
        }
    }
}
