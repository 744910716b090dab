//! Holds the contents of a file of samples: benchmarks, each with its runs.
//!
//! One form for all programs. A value is as the program printed it, in a unit
//! that is named; what cannot be used is kept, so that it is found by the judge
//! and not forgotten.

use crate::formats::format::Format;
use locklab_judge::{Direction, Role};
use std::fmt;

/// One run, or the mean of the iterations of one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Run {
    /// The figure, in the benchmark's unit; any number.
    pub value: f64,
    /// The time at which it was taken, in seconds from any moment that both files share, or as
    /// the number of the run in an order that both share.
    pub at: Option<f64>,
    /// Says how long it took at least, in seconds, where that is known.
    pub seconds: Option<f64>,
}

impl Run {
    /// Returns a run of which only the figure is known.
    #[must_use]
    pub fn new(value: f64) -> Self {
        Self {
            value,
            at: None,
            seconds: None,
        }
    }

    /// Returns the same, with how long it took.
    #[must_use]
    pub fn lasting(self, seconds: f64) -> Self {
        let known = seconds.is_finite() && seconds > 0.0;
        Self {
            seconds: known.then_some(seconds),
            ..self
        }
    }
}

/// One metric of one benchmark, with its runs in the order of the file.
#[derive(Clone, Debug, PartialEq)]
pub struct Benchmark {
    /// The name, by which the two files are matched.
    pub name: String,
    /// The metric; one benchmark may have several.
    pub metric: String,
    /// The unit of its values; empty for a count or a ratio.
    pub unit: String,
    /// Says which way it improves.
    pub direction: Direction,
    /// Says whether it decides or explains.
    pub role: Role,
    /// Says whether a slower machine changes it. A count of bytes or instructions does
    /// not drift.
    pub drifts: bool,
    /// Holds the runs that were read.
    pub runs: Vec<Run>,
}

impl Benchmark {
    /// Returns a time, which decides and improves downwards.
    #[must_use]
    pub fn time(name: impl Into<String>, unit: impl Into<String>, runs: Vec<Run>) -> Self {
        Self {
            name: name.into(),
            metric: "time".into(),
            unit: unit.into(),
            direction: Direction::LowerIsBetter,
            role: Role::Primary,
            drifts: true,
            runs,
        }
    }
}

/// Describes what was read of one file.
#[derive(Clone, Debug, PartialEq)]
pub struct SampleFile {
    /// Says how it is called in reports.
    pub label: String,
    /// The form in which it is written.
    pub format: Format,
    /// Its benchmarks, in order, each name and metric once.
    pub benchmarks: Vec<Benchmark>,
    /// Holds what could not be read of it, each in one sentence.
    pub notes: Vec<String>,
    /// The time at which it was measured, in seconds since 1970, if it says so.
    pub measured: Option<f64>,
    /// Says whether all samples of a benchmark were taken by one process, so that what
    /// differs from process to process is not among their noise.
    pub one_process: bool,
}

impl SampleFile {
    /// Returns a file without benchmarks.
    pub(crate) fn new(format: Format) -> Self {
        Self {
            label: String::new(),
            format,
            benchmarks: Vec::new(),
            notes: Vec::new(),
            measured: None,
            one_process: false,
        }
    }

    /// Adds the runs of a benchmark to those that are there under its name.
    pub(crate) fn add(&mut self, benchmark: Benchmark) {
        // A file lists the runs of a benchmark one after the other, so the
        // place is near the end.
        let same = |b: &&mut Benchmark| b.name == benchmark.name && b.metric == benchmark.metric;
        match self.benchmarks.iter_mut().rev().find(same) {
            Some(there) => there.runs.extend(benchmark.runs),
            None => self.benchmarks.push(benchmark),
        }
    }

    /// Returns how long all runs took at least, in seconds, where that is known.
    pub(crate) fn seconds(&self) -> f64 {
        let deciding = self.benchmarks.iter().filter(|b| b.role == Role::Primary);
        let runs = deciding.flat_map(|b| &b.runs);
        // The sum of nothing is -0.
        runs.filter_map(|run| run.seconds).sum::<f64>() + 0.0
    }
}

/// Says why a file could not be read at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unreadable {
    /// There is nothing in it.
    Empty,
    /// It is in none of the forms that are known.
    Unknown,
    /// It is not in the form that was named.
    NotThis(Format),
    /// It is in a known form and has no benchmark; why.
    NoBenchmark(Format, String),
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("is empty; write the samples again"),
            Self::Unknown => write!(
                f,
                "is in no form that is known ({}); name the form with --format, or write a CSV of \
                 names and values",
                Format::names()
            ),
            Self::NotThis(format) => write!(
                f,
                "is not of {}; leave out --format, or name another",
                format.program()
            ),
            Self::NoBenchmark(format, why) => {
                write!(f, "is of {} and has no samples: {why}", format.program())
            }
        }
    }
}

impl std::error::Error for Unreadable {}
