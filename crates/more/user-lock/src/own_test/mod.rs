//! A C or C++ file of the user's own, of which every execution is explored
//! ([`locklab_graph`]): a test, which is a program with `main`, or a lock, with programs of
//! ours that use it ([`promises`]).
//!
//! The file is compiled so that each access calls [`hooks`]. A test calls functions of the C
//! library, of pthreads and of C11 threads, which are events here too. It runs in a child
//! process, whose crash is a failure. This module must never decide what is an execution.

mod calls;
mod client;
mod explore;
mod fields;
mod hooks;
mod landing;
mod loops;
mod promises;
mod shown;
mod used;
mod watch;
mod world;

use crate::compile::{self, Unit};
use crate::explain::{PATIENCE, Runner, explain};
use crate::isolate::{self, in_child};
use crate::library::Loaded;
use crate::source::Source;
pub use explore::TestLimits;
use explore::{NOT_CHECKED, explore_all};
use locklab_graph::{Failure, FailureKind};
use locklab_host::error::Error;
use locklab_verify::Step;
pub(crate) use promises::{litmus, promises};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::Instant;
use tempfile::TempDir;
pub(crate) use world::Rules;
use world::{World, with};

/// A test that was compiled from a file.
#[derive(Debug)]
pub struct OwnTest {
    name: String,
    unit: Unit,
    library: PathBuf,
    _folder: TempDir,
}

/// What became of a test.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TestOutcome {
    /// It holds in all executions.
    Holds,
    /// It holds in those explored; this was left out.
    Cut(Vec<String>),
    /// It fails, for this reason.
    Fails(String),
    /// It cannot be checked, for this reason.
    NotChecked(String),
}

/// What was found of a test.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TestResult {
    /// The name of its file.
    pub name: String,
    /// What became of it.
    pub outcome: TestOutcome,
    /// Executions that were explored to their ends.
    pub executions: u64,
    /// Executions that others stand for.
    pub blocked: u64,
    /// The most threads of an execution.
    pub threads: usize,
    /// The time that it took, in seconds.
    pub seconds: f64,
    /// What is assumed of the program, a sentence each.
    pub notes: Vec<String>,
    /// The execution that fails.
    pub steps: Vec<Step>,
    /// The choices that lead to it.
    pub replay: Option<String>,
}

impl OwnTest {
    /// Returns the test that `name` denotes; `None` if it is not a file with `main`.
    ///
    /// # Errors
    /// As [`crate::UserLock::named`].
    pub fn named(name: &str, cflags: &[String]) -> Result<Option<Self>, Error> {
        let Some(Source::File(file)) = Source::parse(name)? else {
            return Ok(None);
        };
        let name = Source::File(file.clone()).name();
        let flags = cflags.to_vec();
        let unit = Unit { file, name, flags };
        if !compile::has_main(&unit)? {
            return Ok(None);
        }
        let (library, folder) = compile::compile_test(&unit, &calls::functions())?;
        Ok(Some(Self {
            name: unit.name.clone(),
            unit,
            library,
            _folder: folder,
        }))
    }

    /// Returns the name in reports.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Explores its executions in a child process.
    pub fn check(&self, limits: TestLimits) -> TestResult {
        let library = &self.library;
        let begin = Instant::now();
        let nothing = |outcome| TestResult {
            name: self.name.clone(),
            outcome,
            executions: 0,
            blocked: 0,
            threads: 0,
            seconds: begin.elapsed().as_secs_f64(),
            notes: Vec::new(),
            steps: Vec::new(),
            replay: None,
        };
        let explored = in_child(PATIENCE, || {
            explore(library, limits).map_err(|e| e.to_string())
        });
        match explored {
            Ok(Ok(mut result)) => {
                result.name.clone_from(&self.name);
                result
            }
            Ok(Err(why)) => nothing(TestOutcome::NotChecked(why)),
            Err(lost) => {
                let why = explain(&self.unit.name, PATIENCE, lost, Runner::Thread, library);
                nothing(TestOutcome::Fails(why.to_string()))
            }
        }
    }
}

/// Explores the test in `library`; runs in a child process of its own.
fn explore(library: &std::path::Path, limits: TestLimits) -> Result<TestResult, Error> {
    let loaded = Loaded::load(library, "locklab_hooks", hooks::HOOKS)?;
    loaded.put("locklab_test", calls::CALLS)?;
    isolate::watch_code(loaded.base, &loaded.code);
    let main = loaded.address("main").map(|main| main as usize);
    let main = main.ok_or_else(|| Error::Failed("the test defines no main".to_owned()))?;
    World::set(loaded, library, Rules::OF_A_TEST)?;
    let begin = Instant::now();
    let (report, left_out) = explore_all(limits, move || calls::run(main, 0, 0))?;
    let outcome = match &report.error {
        Some(failure) if failure.message.starts_with(NOT_CHECKED) => {
            TestOutcome::NotChecked(failure.message[NOT_CHECKED.len()..].to_owned())
        }
        Some(failure) => TestOutcome::Fails(cause(failure)),
        None if report.threads < 2 => TestOutcome::NotChecked(
            "the test creates no thread, so there is one execution and nothing was checked"
                .to_owned(),
        ),
        None if left_out.is_empty() => TestOutcome::Holds,
        None => TestOutcome::Cut(left_out),
    };
    Ok(TestResult {
        name: String::new(),
        outcome,
        executions: report.executions,
        blocked: report.blocked,
        threads: report.threads,
        seconds: begin.elapsed().as_secs_f64(),
        notes: with(|world| world.notes.iter().cloned().collect()),
        steps: report.error.as_ref().map(shown::steps).unwrap_or_default(),
        replay: report.error.map(|failure| failure.replay),
    })
}

/// Says what is wrong.
fn cause(failure: &Failure) -> String {
    match failure.kind {
        FailureKind::NotDeterministic => format!(
            "the test does something else when it reads the same: {}",
            failure.message
        ),
        _ => failure.message.clone(),
    }
}
