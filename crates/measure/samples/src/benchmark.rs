//! Holds the contents of a file of samples: benchmarks, each with its runs.
//!
//! One form for all programs. A value is as the program printed it, in a unit
//! that is named; what cannot be used is kept, so that it is found by the judge
//! and not forgotten.

use crate::formats::Format;
use crate::units;
use locklab_judge::{Direction, Role};
use std::fmt;

/// Seconds of a run that are no measurement: thirty years.
const LONGEST: f64 = 1e9;

/// What a file says of where a benchmark was run: a name, such as CPU, with its value.
pub(crate) type Setting = Vec<(&'static str, String)>;

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
    /// The process in which it was taken, by number. Runs of one process share its layout,
    /// its allocations and its CPU.
    pub process: usize,
}

impl Run {
    /// Returns a run of which only the figure is known.
    #[must_use]
    pub fn new(value: f64) -> Self {
        Self {
            value,
            at: None,
            seconds: None,
            process: 0,
        }
    }

    /// Returns a run of this process.
    pub(crate) fn of_process(value: f64, process: usize) -> Self {
        Self {
            process,
            ..Self::new(value)
        }
    }

    /// Returns the same, with how long it took. What is longer than any run is no number.
    #[must_use]
    pub fn lasting(self, seconds: f64) -> Self {
        let known = seconds > 0.0 && seconds < LONGEST;
        Self {
            seconds: known.then_some(seconds),
            value: if seconds >= LONGEST {
                f64::NAN
            } else {
                self.value
            },
            ..self
        }
    }
}

/// One metric of one benchmark, with its runs in the order of the file.
#[derive(Clone, Debug, PartialEq)]
pub struct Benchmark {
    /// The name, by which the two files are matched.
    pub name: String,
    /// The package that it is of, if the file says so; a part of its name.
    pub package: String,
    /// Says where it was run. Figures of two settings are not comparable.
    pub setting: Setting,
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
            package: String::new(),
            setting: Setting::new(),
            metric: "time".into(),
            unit: unit.into(),
            direction: Direction::LowerIsBetter,
            role: Role::Primary,
            drifts: true,
            runs,
        }
    }

    /// Returns a figure whose unit says which way it improves and whether it drifts.
    pub(crate) fn figure(
        name: impl Into<String>,
        metric: &str,
        unit: &str,
        runs: Vec<Run>,
    ) -> Self {
        Self {
            metric: metric.to_owned(),
            direction: units::direction(unit),
            drifts: units::drifts(unit),
            ..Self::time(name, unit, runs)
        }
    }

    /// Returns the same as one that decides, or as one that explains.
    pub(crate) fn deciding(mut self, decides: bool) -> Self {
        if !decides {
            self.role = Role::Screening;
        }
        self
    }

    /// Returns the same, run where these values say, as far as there are any.
    pub(crate) fn in_setting(mut self, setting: &[(&'static str, Option<&str>)]) -> Self {
        let known = |(name, value): &(&'static str, Option<&str>)| {
            let value = value.map(str::trim).filter(|value| !value.is_empty());
            Some((*name, value?.to_owned()))
        };
        self.setting = setting.iter().filter_map(known).collect();
        self
    }

    /// Returns whether both have the same name and metric, and were run in one place.
    fn is_same(&self, other: &Self) -> bool {
        let of = |b: &Self| (b.package.clone(), b.setting.clone());
        self.name == other.name && self.metric == other.metric && of(self) == of(other)
    }
}

/// Describes what was read of one file, or of several that are one side.
#[derive(Clone, Debug, Default, PartialEq)]
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
    /// What it says of the machine that may explain a difference, such as its host.
    pub said: Setting,
}

impl SampleFile {
    /// Adds the runs of a benchmark to those that are there under its name, in their unit.
    pub(crate) fn add(&mut self, mut benchmark: Benchmark) {
        // A file lists the runs of a benchmark one after the other, so the
        // place is near the end.
        match self
            .benchmarks
            .iter_mut()
            .rev()
            .find(|b| b.is_same(&benchmark))
        {
            Some(there) => match units::factor(&benchmark.unit, &there.unit) {
                Some(factor) => {
                    benchmark.runs.iter_mut().for_each(|r| r.value *= factor);
                    there.runs.extend(benchmark.runs);
                }
                None => self.notes.push(format!(
                    "{} is in {} and in {}, so runs in {} are left out.",
                    there.name, there.unit, benchmark.unit, benchmark.unit
                )),
            },
            None => self.benchmarks.push(benchmark),
        }
    }

    /// Adds a benchmark of which a file has all runs in one place: a second one of its name
    /// is another benchmark.
    pub(crate) fn add_once(&mut self, mut benchmark: Benchmark) {
        let name = benchmark.name.clone();
        let mut nth = 1;
        while self.benchmarks.iter().any(|b| b.is_same(&benchmark)) {
            nth += 1;
            benchmark.name = format!("{name} #{nth}");
        }
        if nth == 2 {
            self.notes.push(format!(
                "{name} is there more than once; the second is called {}, and each is judged by \
                 itself.",
                benchmark.name
            ));
        }
        self.benchmarks.push(benchmark);
    }

    /// Notes what the file says of the machine, if it says it.
    pub(crate) fn said(&mut self, name: &'static str, value: Option<&str>) {
        self.said
            .extend(value.map(|value| (name, value.to_owned())));
    }

    /// Returns the same, each run of a benchmark a process of its own.
    pub(crate) fn of_processes(mut self) -> Self {
        for benchmark in &mut self.benchmarks {
            for (process, run) in benchmark.runs.iter_mut().enumerate() {
                run.process = process;
            }
        }
        self
    }

    /// Returns the same, with a note on times that no run takes.
    pub(crate) fn checked(mut self) -> Self {
        let first = |b: &Benchmark| b.runs.iter().any(|run| run.value.is_nan());
        let names = self.benchmarks.iter().filter(|b| b.drifts && first(b));
        let note = |b: &Benchmark| format!("{} has a value that is no time of a run.", b.name);
        let notes: Vec<String> = names.map(note).collect();
        self.notes.extend(notes);
        self
    }

    /// Returns several files of one side as one. A process of one is none of another.
    #[must_use]
    pub fn joined(files: Vec<Self>) -> Self {
        let mut files = files.into_iter();
        let mut all = files.next().unwrap_or_default();
        let first = all.label.clone();
        let note = |label: &str, notes: Vec<String>| -> Vec<String> {
            notes
                .into_iter()
                .map(|note| format!("{label}: {note}"))
                .collect()
        };
        let mut dates = vec![all.measured];
        let mut next = all.next_process();
        let rest: Vec<Self> = files.collect();
        if !rest.is_empty() {
            all.notes = note(&first, all.notes);
            all.label = format!("{first} and {} more", rest.len());
        }
        for mut file in rest {
            let after = next + file.next_process();
            if file.format != all.format {
                all.notes.push(format!(
                    "{} is of {} and {first} of {}, which may not measure the same.",
                    file.label,
                    file.format.program(),
                    all.format.program()
                ));
            }
            let odd = file
                .said
                .into_iter()
                .filter(|said| !all.said.contains(said));
            let odd: Setting = odd.collect();
            all.said.extend(odd);
            all.notes.extend(note(&file.label, file.notes));
            dates.push(file.measured);
            for mut benchmark in std::mem::take(&mut file.benchmarks) {
                benchmark
                    .runs
                    .iter_mut()
                    .for_each(|run| run.process += next);
                all.add(benchmark);
            }
            next = after;
        }
        let known: Option<Vec<f64>> = dates.iter().copied().collect();
        let mean = |dates: Vec<f64>| dates.iter().sum::<f64>() / dates.len() as f64;
        all.measured = known.map(mean);
        all
    }

    /// Returns the number of the first process that is not in it.
    fn next_process(&self) -> usize {
        let runs = self.benchmarks.iter().flat_map(|b| &b.runs);
        runs.map(|run| run.process + 1).max().unwrap_or(0)
    }

    /// Returns the two benchmarks of a file that has both sides, as a file each; `None` if it
    /// has another number of them.
    #[must_use]
    pub fn split(self) -> Option<[Self; 2]> {
        let mut names: Vec<&str> = self.benchmarks.iter().map(|b| b.name.as_str()).collect();
        names.dedup();
        let [baseline, experiment] = names[..] else {
            return None;
        };
        let side = |name: &str| {
            let mut side = self.clone();
            side.benchmarks.retain(|b| b.name == name);
            name.clone_into(&mut side.label);
            side
        };
        let mut sides = [side(baseline), side(experiment)];
        sides[1].notes.clear();
        Some(sides)
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
    /// It is in a form that is known and has no samples: the program, and what to give
    /// instead.
    Instead(&'static str, &'static str),
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
                "is in no form that is known ({}); name the form with --format, or write a table \
                 of the columns name,value",
                Format::programs()
            ),
            Self::Instead(program, export) => write!(f, "is of {program}: {export}"),
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
