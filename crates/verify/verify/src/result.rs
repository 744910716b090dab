//! Holds what a verification finds, in the form in which it is printed.

use crate::coverage::Covered;
use crate::outcome::Reads;
use crate::trace::Step;
use serde::Serialize;

/// Tells whether a promise holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// It was kept in every execution within the bound.
    Holds,
    /// It was kept in every execution explored, but some within the bounds were left out.
    Cut,
    /// It was kept in every schedule drawn at random.
    Passes,
    /// It was broken in one execution.
    Fails,
}

/// Says who looked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Checker {
    /// Every execution within a bound, weak memory included.
    Loom,
    /// Every execution, each once, as graphs of what has read from what.
    Graphs,
    /// Random schedules, sequentially consistent.
    Shuttle,
    /// Random programs, each in one order.
    Programs,
}

/// One promise of one lock.
#[derive(Clone, Debug, Serialize)]
pub struct PropertyResult {
    /// Name of the promise, as the docs list it.
    pub name: &'static str,
    /// Says whether executions were explored or schedules drawn.
    pub checker: Checker,
    /// Counts the threads of the model.
    pub threads: usize,
    /// The most preemptions explored; `None`: any number.
    pub preemptions: Option<usize>,
    /// Executions explored, or schedules drawn.
    pub executions: u64,
    /// CPU time that it took, in seconds.
    pub seconds: f64,
    /// Tells whether it holds.
    pub outcome: Verdict,
    /// Says what was left out of one that was cut, a sentence each.
    pub left_out: Vec<String>,
    /// The number of random fair schedules that were run beyond what was explored, of
    /// one that was cut.
    pub schedules: u64,
    /// Tells how far the order of two reads of a word was explored.
    pub reads: Reads,
    /// Says how it fails, as a sentence; `None` if it holds.
    pub failure: Option<String>,
    /// The steps of the failing execution.
    pub trace: Vec<Step>,
}

/// Says what is different in a mutant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum MutantKind {
    /// An ordering is one step weaker.
    Ordering,
    /// An operation is left out, made twice, moved or confused.
    Structure,
    /// A bug is planted in the source.
    Planted,
}

/// Counts the mutants of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Count {
    /// Counts all of them.
    pub mutants: usize,
    /// Counts those that break a promise.
    pub killed: usize,
}

/// A mutant that no property has failed.
#[derive(Clone, Debug, Serialize)]
pub struct Survivor {
    /// Names the bug, if it has a name.
    pub bug: Option<String>,
    /// Source file, line and column.
    pub line: String,
    /// Holds what stands there; of a planted bug, what it is called.
    pub source: String,
    /// Says what was changed, and to what.
    pub weakened: String,
    /// Says what sort of change it is.
    pub kind: MutantKind,
    /// CPU time that the promises took under it, in seconds.
    pub seconds: f64,
    /// Says whether every property was explored to its end. If not, a longer run may yet kill
    /// it.
    pub decided: bool,
    /// The reason why it breaks no promise, if that is known.
    pub because: Option<String>,
}

/// Tells what became of one mutant.
#[derive(Clone, Debug, Serialize)]
pub struct Killed {
    /// Names the bug, if it has a name.
    pub bug: Option<String>,
    /// Source file, line and column; or the name of a planted bug.
    pub line: String,
    /// The operation, and what was changed in it.
    pub weakened: String,
    /// Says what sort of change it is.
    pub kind: MutantKind,
    /// CPU time until a promise broke, in seconds.
    pub seconds: f64,
    /// The promise that it breaks.
    pub by: String,
    /// The message of the execution that broke it.
    pub how: String,
}

/// Holds what is known of one lock.
#[derive(Clone, Debug, Serialize)]
pub struct LockResult {
    /// Name of the lock, as the catalogue or the user has it.
    pub name: String,
    /// Tells what became of each of its promises.
    pub properties: Vec<PropertyResult>,
    /// The source files of its operations, each with a hash of its code.
    #[serde(skip)]
    pub sources: Vec<(String, u64)>,
    /// Tells what the models reach of them.
    pub covered: Covered,
    /// Executions explored, mutants not counted.
    pub executions: u64,
    /// CPU time of all of it, mutants included, in seconds.
    pub seconds: f64,
    /// Counts the mutants that were tried; `None`: none were.
    pub mutants: Option<usize>,
    /// Counts those of them that break a promise.
    pub killed: Option<usize>,
    /// The mutants of an ordering.
    pub orderings: Count,
    /// The mutants of the structure.
    pub structure: Count,
    /// The mutants planted in the source.
    pub planted: Count,
    /// The mutants that break none, where nobody has said why.
    pub survivors: Vec<Survivor>,
    /// The mutants that break none, for a reason that is known: they are as good
    /// as the source, or cost speed only.
    pub argued: Vec<Survivor>,
    /// The mutants that break one, and which.
    pub dead: Vec<Killed>,
}

impl LockResult {
    /// Returns whether no promise is broken.
    pub fn holds(&self) -> bool {
        self.properties
            .iter()
            .all(|property| property.outcome != Verdict::Fails)
    }

    /// Returns whether every promise was explored to the end within its bound.
    pub fn is_complete(&self) -> bool {
        self.properties
            .iter()
            .all(|property| property.outcome != Verdict::Cut)
    }

    /// Tells whether no promise is broken, and nothing in the source is without need.
    pub fn is_kept(&self) -> bool {
        self.holds() && self.survivors.is_empty()
    }
}
