//! A thread while the recording is read. It must never decide what a record
//! means.

use crate::cause::Cause;
use crate::migration::Section;
use crate::program::Step;
use locklab_trace::CpuTime;
use std::collections::{BTreeMap, HashMap};

/// A thread while the recording is read. Times are in ticks.
#[derive(Default)]
pub(crate) struct Running {
    pub(crate) began: Option<u64>,
    pub(crate) ended: Option<u64>,
    /// The time at which it began to compute what is in no step yet.
    pub(crate) since: u64,
    /// Its CPU time; when the recorder asked for it, and for how many ticks.
    pub(crate) cpu: CpuTime,
    pub(crate) asked: Option<(u64, u64)>,
    /// The time of its first record behind the window, or of the end, and for how many
    /// ticks until then it had no CPU.
    pub(crate) tail: Option<(u64, u64)>,
    pub(crate) asks: Option<Asks>,
    pub(crate) releases: Option<Releases>,
    pub(crate) idle: Option<Idle>,
    /// Holds what its last release took, if nobody waited and it may have made a call.
    pub(crate) for_nobody: Option<u64>,
    pub(crate) holds: Vec<Hold>,
    pub(crate) steps: Vec<Step>,
    /// Sites by the numbers of stacks.
    pub(crate) stacks: HashMap<u64, usize>,
    /// Acquisitions in the window by site.
    pub(crate) sites: BTreeMap<usize, u64>,
    /// The time at which it stopped to be ready for a CPU (-1), and was again (1).
    pub(crate) ready: Vec<(u64, i32)>,
    /// The time that it waited in the window.
    pub(crate) waited: u64,
    pub(crate) operations: u64,
    pub(crate) matched: u64,
    pub(crate) unmatched: u64,
    /// Ready while others had the CPUs, as the system says.
    pub(crate) preempted: u64,
}

/// A request that has not been answered.
#[derive(Clone, Copy)]
pub(crate) struct Asks {
    pub(crate) lock: usize,
    pub(crate) stack: u64,
    pub(crate) since: u64,
    pub(crate) shared: bool,
    pub(crate) contended: bool,
    /// The thread that had the line of the lock before.
    pub(crate) touched: Option<usize>,
}

/// A release that has not ended.
#[derive(Clone, Copy)]
pub(crate) struct Releases {
    pub(crate) lock: usize,
    pub(crate) since: u64,
    /// Says whether a thread waited for the lock when it began.
    pub(crate) awaited: bool,
    /// Says who operated on the lock before, if that and the site are known.
    pub(crate) before: Option<Before>,
}

/// Describes what was before a release.
#[derive(Clone, Copy)]
pub(crate) struct Before {
    /// Says where the lock was acquired.
    pub(crate) site: usize,
    /// Says whether another thread's operation on it was the last.
    pub(crate) of_other: bool,
}

/// A wait for another thread, or a sleep.
#[derive(Clone, Copy)]
pub(crate) struct Idle {
    pub(crate) since: u64,
    /// The lock that it has afterwards.
    pub(crate) lock: Option<usize>,
    /// Holds what ends it, if that is known.
    pub(crate) cause: Option<Cause>,
    /// Says whether only the time ends it.
    pub(crate) timed: bool,
}

impl Idle {
    /// Returns a stretch that nothing is known to end.
    pub(crate) fn since(tick: u64) -> Self {
        Self {
            since: tick,
            lock: None,
            cause: None,
            timed: false,
        }
    }
}

/// A lock that it holds.
#[derive(Clone, Copy)]
pub(crate) struct Hold {
    pub(crate) lock: usize,
    pub(crate) since: u64,
    /// Says where it was acquired, if that is known.
    pub(crate) site: Option<usize>,
    /// Says whether a step has acquired it, so that a step must release it.
    pub(crate) step: bool,
    /// Its section, if nothing else was held before, as far as it is known when the
    /// lock is acquired; with the time that the thread had waited until then.
    pub(crate) section: Option<(Section, u64)>,
}

impl Running {
    pub(crate) fn push(&mut self, step: Step) {
        self.steps.push(step);
    }

    /// Returns when it became ready for a CPU in the window (1), and no longer was (-1).
    pub(crate) fn ready_between(&self, from: u64, to: u64) -> impl Iterator<Item = (u64, i32)> {
        let lives = self.began.map(|began| {
            let end = self.ended.unwrap_or(to).clamp(from, to);
            [(began.clamp(from, to), 1), (end, -1)]
        });
        self.ready
            .iter()
            .copied()
            .chain(lives.into_iter().flatten())
    }
}
