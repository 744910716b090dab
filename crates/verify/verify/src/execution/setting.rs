//! Says what a model asks of the world, beside its threads.
//!
//! Must never hold what changes within an execution.

use super::random::Random;
use locklab_locks::NESTING;

/// The most threads that a model may have, loom's own included.
pub const MAX_THREADS: usize = 4;

/// Says why a CPU has no queue node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoNode {
    /// It has no number.
    Number,
    /// All its levels are in use by code that it has interrupted.
    Level,
}

/// Holds what a model asks of the world, beside its threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Setting {
    /// Says whether time and spurious wake-ups are choices.
    pub(crate) choices: bool,
    /// Says whether an interrupt may come at every access.
    pub(crate) interrupts: bool,
    /// Says whether it only stops its CPU: others run, and no code of an interrupt.
    pub(crate) stops_only: bool,
    /// The first CPU that is, to a lock, one of a virtual machine without paravirtual help.
    pub(crate) virtualized_from: usize,
    /// Limits how often some may be preferred.
    pub(crate) preferences: u32,
    /// NUMA nodes, which the CPUs are dealt out to in turn.
    pub(crate) numa_nodes: usize,
    /// Says whether the clock goes by itself, for each CPU as it likes; otherwise time stands
    /// still until a model lets it pass.
    pub(crate) clock: bool,
    /// A CPU that has no queue node, and why.
    pub(crate) without_node: Option<(usize, NoNode)>,
    /// Says whether a thread is on another NUMA node each time that it is asked.
    pub(crate) migrates: bool,
    /// Says whether the first thread has the greatest number of a CPU, and each other that of
    /// the thread before; and the NUMA nodes have great ones.
    pub(crate) last_cpus: bool,
    /// Says whether the CPUs have the greatest numbers that a queue node can be named by.
    pub(crate) last_names: bool,
    /// The number of CPUs for which the table of visible readers has an entry.
    pub(crate) visible_readers: usize,
    /// Says whether two reads of a word are explored in either order: loom remembers the last
    /// access of a word only, so what it does if a read comes after a later write is lost where
    /// another thread reads in between.
    pub(crate) reads_conflict: bool,
    /// Says whether the lock reads nothing but words: to read the same again is no progress.
    /// One of the catalogue may read the clock.
    pub(crate) reads_words_only: bool,
    /// Says whether each execution draws what it does, and which world it finds.
    pub(crate) drawn: Option<Drawn>,
}

/// Says what a world that is drawn may be for a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Drawn {
    /// CPUs may have no number, or no level of queue nodes left.
    pub(crate) no_node: bool,
    /// CPUs may have any numbers.
    pub(crate) any_number: bool,
}

impl Default for Setting {
    fn default() -> Self {
        Self {
            choices: false,
            interrupts: false,
            stops_only: false,
            virtualized_from: usize::MAX,
            preferences: 1,
            // So that a lock that prefers its own has a choice.
            numa_nodes: 2,
            clock: true,
            without_node: None,
            migrates: false,
            last_cpus: false,
            last_names: false,
            visible_readers: MAX_THREADS,
            reads_conflict: false,
            reads_words_only: false,
            drawn: None,
        }
    }
}

impl Setting {
    /// Returns one of the worlds that this may be.
    pub(super) fn draw(self, random: &Random) -> Self {
        let Some(Drawn {
            no_node,
            any_number,
        }) = self.drawn
        else {
            return self;
        };
        let no_node = no_node && random.chance(4);
        let why = match random.below(2) {
            0 => NoNode::Number,
            _ => NoNode::Level,
        };
        let numbers = if any_number { random.below(4) } else { 0 };
        Self {
            numa_nodes: 1 + random.below(2),
            preferences: 1 + random.below(3) as u32,
            migrates: random.chance(3),
            without_node: no_node.then(|| (random.below(MAX_THREADS), why)),
            last_cpus: numbers == 1,
            last_names: numbers == 2,
            visible_readers: MAX_THREADS - random.below(3),
            ..self
        }
    }

    /// Returns how many of its levels a CPU uses before a model begins.
    pub(super) fn levels_in_use(&self, cpu: usize) -> u32 {
        match self.without_node {
            Some((of, NoNode::Level)) if of == cpu => NESTING as u32,
            _ => 0,
        }
    }
}
