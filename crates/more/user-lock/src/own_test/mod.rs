//! A test of the user's own: a C or C++ program with `main`, of which every execution is
//! explored ([`locklab_graph`]).
//!
//! The program is compiled as a lock is, and calls functions of the C library, of
//! pthreads and of C11 threads that are events here. It runs in a child process, whose
//! crash is a failure of the test. This module must never decide what is an execution.

mod calls;
mod hooks;
mod loops;
mod world;

use crate::compile::{self, Unit};
use crate::explain::{PATIENCE, Runner, explain};
use crate::isolate::{self, in_child};
use crate::library::{Loaded, Sites};
use crate::source::Source;
use locklab_graph::model;
use locklab_graph::{
    Explorer, Failure, FailureKind, Kind, Limit, MAX_THREADS, Options, Place, Source as From,
};
use locklab_host::error::Error;
use serde::{Deserialize, Serialize};
use std::ffi::c_void;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use world::{World, with};

/// How often an exploration may begin again, since more is known of the test's memory.
const BEGINNINGS: usize = 20_000;

/// A test that was compiled from a file.
#[derive(Debug)]
pub struct OwnTest {
    name: String,
    unit: Unit,
    library: PathBuf,
    _folder: TempDir,
}

/// How far a test is explored.
#[derive(Clone, Copy, Debug)]
pub struct TestLimits {
    /// The most executions.
    pub executions: u64,
    /// The longest time.
    pub duration: Option<Duration>,
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

/// One step of an execution that fails.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TestStep {
    /// The thread: the first is 0.
    pub thread: usize,
    /// The source file, without its folder.
    pub file: String,
    /// The line there, from 1.
    pub line: u32,
    /// Says what it does.
    pub what: String,
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
    pub steps: Vec<TestStep>,
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
    let sites = Sites::new(&loaded, library);
    World::set(loaded, sites, MAX_THREADS).map_err(Error::Failed)?;
    let begin = Instant::now();
    for _ in 0..BEGINNINGS {
        let left = limits
            .duration
            .map(|most| most.saturating_sub(begin.elapsed()));
        let options = Options {
            executions: limits.executions,
            duration: left,
            leaks: false,
            rounds: 0,
            stack: world::STACK,
            ..Options::default()
        };
        let report = Explorer::new(options).check(move || {
            with(World::begin);
            run(main, 0, 0);
        });
        if with(|world| std::mem::take(&mut world.again)) {
            continue;
        }
        let mut left_out: Vec<String> = report
            .bounded
            .iter()
            .map(|(place, _)| {
                format!(
                    "the loop at {place} changes memory and reads the same again; it was cut after \
                     two such rounds"
                )
            })
            .collect();
        left_out.extend(report.limit.map(|limit| {
            let what = match limit {
                Limit::Executions => "--at-most executions=N allows no more",
                Limit::Duration => "--at-most seconds=N allows no more",
                Limit::Memory => "the graphs that remain take too much memory",
            };
            format!("executions are left: {what}")
        }));
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
        return Ok(TestResult {
            name: String::new(),
            outcome,
            executions: report.executions,
            blocked: report.blocked,
            threads: report.threads,
            seconds: begin.elapsed().as_secs_f64(),
            notes: with(|world| world.notes.iter().cloned().collect()),
            steps: report.error.as_ref().map(steps).unwrap_or_default(),
            replay: report.error.map(|failure| failure.replay),
        });
    }
    Err(Error::Failed(
        "what threads share is not the same from one exploration to the next".to_owned(),
    ))
}

/// How a message begins that is no fault of the test.
const NOT_CHECKED: &str = "not checked: ";

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

/// Returns an execution as a person reads it: what happens in memory, and the lives of
/// threads.
fn steps(failure: &Failure) -> Vec<TestStep> {
    let mut all: Vec<TestStep> = Vec::new();
    for (number, step) in failure.steps.iter().enumerate() {
        let shadow = |(address, _)| with(|world| world.is_result(address as usize));
        if step.location.is_some_and(shadow) {
            continue;
        }
        let name = step.location.map_or_else(String::new, |(address, _)| {
            with(|world| world.name(address as usize))
        });
        let value = shown(step.value);
        let what = match step.kind {
            Kind::Load | Kind::Await => format!("{name} is {value}"),
            // Its value is that of the last write, which the race may leave open.
            Kind::PlainRead => format!("reads {name}"),
            Kind::UpdateRead => {
                let next = failure.steps[number + 1..]
                    .iter()
                    .find(|next| next.id.thread == step.id.thread);
                match next.filter(|next| next.kind == Kind::UpdateWrite) {
                    Some(next) => format!("{name} {value} > {}", shown(next.value)),
                    None => format!("{name} is {value}"),
                }
            }
            Kind::Store | Kind::PlainWrite => format!("{name} = {value}"),
            Kind::Fence => format!("fence ({:?})", step.order).to_lowercase(),
            Kind::Spawn(thread) => format!("creates thread {thread}"),
            Kind::Join(thread) => format!("joins thread {thread}"),
            Kind::Free => format!("frees {name}"),
            Kind::Choice(of) => format!("choice {value} of {of}"),
            _ => continue,
        };
        let stale = match step.source {
            Some(source) if !is_newest(failure, number, source) => ", an old value",
            _ => "",
        };
        let waits = if step.waits { ", waits" } else { "" };
        let (file, line) = match step.place {
            Place::Source { file, line, .. } => (file.to_owned(), line),
            Place::Address(_) => (String::new(), 0),
        };
        all.push(TestStep {
            thread: step.id.thread.into(),
            file,
            line,
            what: format!("{what}{stale}{waits}"),
        });
    }
    all
}

/// Returns whether nothing was written between a read's source and the read.
fn is_newest(failure: &Failure, read: usize, source: From) -> bool {
    let step = &failure.steps[read];
    let before = &failure.steps[..read];
    let writes =
        |other: &&locklab_graph::Step| other.location == step.location && other.position.is_some();
    let last = before.iter().rev().find(writes).map(|write| write.id);
    match source {
        From::Initial => last.is_none(),
        From::Write(write) => last == Some(write),
    }
}

/// Returns a value: small ones, and those just below zero, as decimal numbers.
fn shown(value: u64) -> String {
    match value {
        0..4096 => value.to_string(),
        _ if value == u64::MAX || value == u64::from(u32::MAX) => "-1".to_owned(),
        _ => format!("{value:#x}"),
    }
}

/// Runs a function of the test as a thread, from its start to its end.
#[inline(never)]
fn run(function: usize, first: u64, second: u64) {
    let marker = 0_u8;
    let thread = model::thread_id();
    let (run, way) = with(|world| {
        world.threads[thread].entry = std::ptr::from_ref(&marker) as usize;
        let run = world.loaded.address("locklab_run");
        let way = world.threads[thread].way.as_mut_ptr();
        (run.expect("a function of c/own_test.c"), way)
    });
    type Run = unsafe extern "C-unwind" fn(usize, u64, u64, *mut usize) -> u64;
    // SAFETY: of this type, by c/own_test.c.
    let run: Run = unsafe { std::mem::transmute::<*mut c_void, Run>(run) };
    // SAFETY: a function of the test, with what it takes.
    let value = unsafe { run(function, first, second, way) };
    let left = with(|world| world.threads[thread].left.take());
    calls::end_thread(left.unwrap_or(value));
}
