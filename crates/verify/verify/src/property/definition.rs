//! Says what a promise is: a name, its threads, and the model that checks it.
//!
//! It must not know any promise, so that the files of promises need only this one
//! and what they share.

use crate::execution::Setting;
use crate::limits::Limits;
use crate::outcome::Explored;
use crate::subject::Subject;
use std::sync::Arc;

/// A lock that a model makes.
pub(super) type Lock = Arc<dyn Subject>;

/// Explores a promise within limits.
pub(crate) type Explorer = Arc<dyn Fn(Limits) -> Explored + Send + Sync>;

/// A promise and the model that checks it.
#[derive(Clone)]
pub struct Property {
    /// Names it in a table.
    pub name: &'static str,
    /// Counts the threads that take part.
    pub threads: usize,
    /// The bound on preemptions for which the limit of executions is
    /// stretched. Most are explored with more, or with any number.
    pub aim: usize,
    /// The source file whose orderings it is there to show needed; `None`:
    /// those of all the code that it runs.
    pub(crate) orderings_of: Option<&'static str>,
    /// The source files whose structure it is there to show needed; none: of
    /// all the code that it runs.
    pub(crate) structure_of: &'static [&'static str],
    /// Counts the acquisitions of one CPU that are under way at once, each in an interrupt of
    /// another; 1 if none is interrupted.
    pub levels: usize,
    /// Says whether one execution at least must be what it should be
    /// ([`crate::execution::witness`]), where not every one can be.
    pub(crate) needs_witness: bool,
    /// Counts the executions that are drawn, each with a program of its own; `None`: all that
    /// the model has are explored.
    pub(crate) drawn: Option<u64>,
    pub(crate) setting: Setting,
    /// Explores it, if that is not loom's to do; `model` is not run then.
    pub(crate) explorer: Option<Explorer>,
    /// Prepares the process of the model, if that is needed.
    pub(crate) first: Option<Model>,
    /// Runs as the first thread of an execution.
    pub(crate) model: Model,
    /// The same, with a lock of the engine of [`crate::graphs`], if there is one.
    pub(crate) graphs: Option<Model>,
    /// Says whether it is no part of the record: explored where no mutants are, and by that
    /// engine as far as eight times the executions.
    pub(crate) unrecorded: bool,
}

/// What the first thread of an execution does.
pub(crate) type Model = Arc<dyn Fn() + Send + Sync>;

impl Property {
    /// Returns a promise of `lock`, among so many threads, that `model` checks.
    pub(super) fn new(
        name: &'static str,
        threads: usize,
        lock: &Lock,
        model: impl Fn(&Lock) + Send + Sync + 'static,
    ) -> Self {
        let lock = lock.clone();
        // With three threads sleeps end when they are ended: the choice at
        // each would leave no room for more than one preemption.
        let choices = lock.info().parks && threads < 3;
        let of_graphs = lock.is_of_graphs();
        let model: Model = Arc::new(move || model(&lock));
        Self {
            name,
            threads,
            aim: if threads > 3 { 1 } else { 2 },
            orderings_of: None,
            structure_of: &[],
            levels: 1,
            needs_witness: false,
            drawn: None,
            setting: Setting {
                choices,
                ..Setting::default()
            },
            explorer: None,
            first: None,
            graphs: of_graphs.then(|| model.clone()),
            unrecorded: false,
            model,
        }
    }

    /// Returns a promise of code that is no lock: of these source files.
    pub(crate) fn of_files(
        files: &'static [&'static str],
        name: &'static str,
        threads: usize,
        model: impl Fn() + Send + Sync + 'static,
    ) -> Self {
        Self {
            name,
            threads,
            aim: 2,
            orderings_of: files.first().copied(),
            structure_of: files,
            levels: 1,
            needs_witness: false,
            drawn: None,
            setting: Setting::default(),
            explorer: None,
            first: None,
            model: Arc::new(model),
            graphs: None,
            unrecorded: false,
        }
    }

    /// Returns a promise among so many threads that `explorer` explores, of a lock that is
    /// not written in Rust: in a process of its own, as every other.
    pub fn explored_by(
        name: &'static str,
        threads: usize,
        explorer: impl Fn(Limits) -> Explored + Send + Sync + 'static,
    ) -> Self {
        let mut property = Self::of_files(&[], name, threads, || ());
        // Its engine has no order of reads that loom would explore once more.
        property.setting.reads_conflict = true;
        property.explorer = Some(Arc::new(explorer));
        property
    }

    pub(crate) fn with(mut self, setting: impl FnOnce(&mut Setting)) -> Self {
        setting(&mut self.setting);
        self
    }

    /// Returns the same, with so many executions drawn and not explored, in a world that is
    /// as it is in others.
    pub(crate) fn drawn(self, executions: u64) -> Self {
        Self {
            drawn: Some(executions),
            ..self
        }
    }

    /// Returns the same promise; `first` is called before executions begin, as often as they
    /// do. A thread of a model has a stack of 32 KiB, and `first` that of the process.
    pub fn prepared(mut self, first: impl Fn() + Send + Sync + 'static) -> Self {
        self.first = Some(Arc::new(first));
        self
    }

    /// Returns the same promise; `before` is called at the beginning of each
    /// execution, before the lock is made.
    pub fn after(mut self, before: impl Fn() + Send + Sync + 'static) -> Self {
        let model = self.model.clone();
        self.graphs = None;
        self.model = Arc::new(move || {
            before();
            model();
        });
        self
    }
}
