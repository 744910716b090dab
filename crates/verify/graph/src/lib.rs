//! Explores every execution of a small concurrent program that the memory model RC11
//! allows, each once, without a bound on preemptions.
//!
//! A program is a closure that is run again and again. Its threads, atomics and cells are
//! those of [`thread`], [`sync`] and [`cell`], which are used as those of `std`; a front
//! end for another language calls [`model`]. [`Explorer::check`] returns a [`Report`].
//!
//! What is explored are execution graphs: events, program order, reads-from, coherence
//! order. Interleavings that differ in nothing else are one execution. From the inside:
//! `run` runs the threads, `explore` decides which graph is next, `graph` holds it,
//! `consistency` is the memory model.
//!
//! It must never know a lock.

mod arena;
pub mod cell;
mod consistency;
mod event;
mod explore;
mod graph;
pub mod model;
mod options;
mod replay;
mod report;
mod run;
pub mod sync;
pub mod thread;

pub use event::{EventId, Kind, MAX_THREADS, Place, Source};
pub use options::Options;
pub use report::{Failure, FailureKind, Limit, Report, Step};
use std::rc::Rc;

/// Explores the executions of tests, as far as its options say.
#[derive(Clone, Debug, Default)]
pub struct Explorer {
    options: Options,
}

impl Explorer {
    /// Returns an explorer with these options.
    pub fn new(options: Options) -> Self {
        Self { options }
    }

    /// Explores a test: every execution, or those until the first that fails, or until a
    /// limit.
    pub fn check(&self, test: impl Fn() + 'static) -> Report {
        run::check(&self.options, None, Rc::new(test), &mut |_| {})
    }

    /// Runs the one execution of a test that [`Failure::replay`] names, and reports it.
    ///
    /// # Errors
    /// The string is not one of those, or the test does not come that way.
    pub fn replay(&self, replay: &str, test: impl Fn() + 'static) -> Result<Report, String> {
        let guide = replay::decode(replay)?;
        let report = run::check(&self.options, Some(guide), Rc::new(test), &mut |_| {});
        let strays = |error: &Failure| error.kind == FailureKind::NotDeterministic;
        match report.error.as_ref().filter(|error| strays(error)) {
            Some(error) => Err(error.message.clone()),
            None => Ok(report),
        }
    }

    /// Does the same, and calls `see` with the steps of each execution that is explored to
    /// its end.
    pub fn check_each(&self, test: impl Fn() + 'static, mut see: impl FnMut(&[Step])) -> Report {
        let mut see = |explored: &explore::Exploration| see(&explored.steps());
        run::check(&self.options, None, Rc::new(test), &mut see)
    }
}
