//! Says how an exploration has ended: how many executions there are, what was left out,
//! and the execution that fails, event by event.
//!
//! It must never judge: it shows what the exploration has found.

use crate::event::{EventId, Kind, NOWHERE, Place, Source};
use crate::graph::Graph;
use crate::replay::encode;
use std::fmt;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// What is wrong with an execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// Two accesses conflict, one is plain, and they are not ordered.
    DataRace,
    /// All threads that have not ended wait, and nobody will end their waits.
    Deadlock,
    /// The test itself says so: an assertion, or a panic.
    Assertion,
    /// Memory is used after its end.
    UseAfterFree,
    /// Memory that is not allocated is freed.
    BadFree,
    /// Memory is never freed.
    Leak,
    /// What the engine does not support.
    MixedSize,
    /// The test does not do the same when it reads the same.
    NotDeterministic,
    /// More threads or more events than an execution may have.
    TooLong,
}

/// An access or step of the execution that fails.
#[derive(Clone, Debug)]
pub struct Step {
    /// Its thread, and its number there.
    pub id: EventId,
    /// What it does.
    pub kind: Kind,
    /// Its memory ordering.
    pub order: Ordering,
    /// The address (or the number) of the location, and its size.
    pub location: Option<(u64, u32)>,
    /// What was read or written.
    pub value: u64,
    /// What a read has read from.
    pub source: Option<Source>,
    /// Its position in the coherence order of its location, from 1, if it is a write.
    pub position: Option<usize>,
    /// Whether it is a read after which its thread waits.
    pub waits: bool,
    /// Where the code is.
    pub place: Place,
}

/// An execution that fails.
#[derive(Clone, Debug)]
pub struct Failure {
    /// What is wrong.
    pub kind: FailureKind,
    /// The same as a sentence.
    pub message: String,
    /// Where.
    pub place: Place,
    /// Names this execution: see [`crate::Explorer::replay`].
    pub replay: String,
    /// The events, in an order in which each comes after what it has read from.
    pub steps: Vec<Step>,
}

impl Failure {
    pub(crate) fn new(
        kind: FailureKind,
        message: String,
        place: Place,
        graph: &Graph,
        keys: &[(u64, u32)],
    ) -> Self {
        Self {
            kind,
            message,
            place,
            replay: encode(graph),
            steps: steps(graph, keys),
        }
    }
}

/// Returns the events of a graph, each after what it has read from.
pub(crate) fn steps(graph: &Graph, keys: &[(u64, u32)]) -> Vec<Step> {
    let step = |id: EventId| {
        let event = graph.get(id);
        let known = event.location != NOWHERE;
        let position = || {
            let writes = &graph.locations[event.location as usize].writes;
            writes
                .iter()
                .position(|&write| write == id)
                .map(|at| at + 1)
        };
        Step {
            id,
            kind: event.kind,
            order: event.order,
            location: known.then(|| keys[event.location as usize]),
            value: event.value,
            source: event.kind.reads().then_some(event.source),
            position: known.then(position).flatten(),
            waits: event.stuck,
            place: event.place,
        }
    };
    graph.linear().into_iter().map(step).collect()
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.message)?;
        for step in &self.steps {
            write!(
                f,
                "  {:>2}.{:<3} {:?}",
                step.id.thread, step.id.index, step.kind
            )?;
            if let Some((key, _)) = step.location {
                write!(f, " {key:#x} = {:#x} {:?}", step.value, step.order)?;
            }
            match step.source {
                Some(Source::Write(write)) => write!(f, " from {}.{}", write.thread, write.index)?,
                Some(Source::Initial) => write!(f, " from the beginning")?,
                None => {}
            }
            writeln!(f, "  {}", step.place)?;
        }
        write!(f, "replay: {}", self.replay)
    }
}

/// A limit that ended an exploration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// The executions, with those that were blocked.
    Executions,
    /// The time.
    Duration,
    /// The memory for graphs that are not explored yet.
    Memory,
}

/// How an exploration has ended.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The executions that were explored to their end, each once.
    pub executions: u64,
    /// Executions that were given up, since a thread in them waits for what it has not
    /// seen yet: others stand for them.
    pub blocked: u64,
    /// Executions that were begun and are not allowed by the model, or stand for others.
    pub discarded: u64,
    /// Loops of which no more rounds were explored, and how often.
    pub bounded: Vec<(Place, u64)>,
    /// Loops that were taken for waits: each read the same in [`crate::Options::rounds`]
    /// rounds.
    pub waits: Vec<Place>,
    /// The execution that fails, with which the exploration ends.
    pub error: Option<Failure>,
    /// The limit that was reached, if there was one: more executions exist.
    pub limit: Option<Limit>,
    /// How long it took.
    pub took: Duration,
    /// The most threads of an execution.
    pub threads: usize,
    /// The most events of an execution.
    pub events: usize,
}

impl Report {
    /// Returns whether every execution was explored, and none fails.
    pub fn holds(&self) -> bool {
        self.error.is_none() && self.limit.is_none() && self.bounded.is_empty()
    }
}
