//! The forms of files, by name.

use clap::ValueEnum;
use serde::Serialize;

/// A form of file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// hyperfine --export-json
    Hyperfine,
    /// go test -bench . -count 20, as text or -json
    Go,
    /// Google Benchmark, --benchmark_out=FILE --benchmark_repetitions=20
    Google,
    /// criterion's sample.json, or cargo criterion --message-format=json
    Criterion,
    /// pytest --benchmark-json=FILE
    Pytest,
    /// JMH, -rf json
    Jmh,
    /// perf stat -x, --append, once for each run
    PerfStat,
    /// Columns of names and values
    Csv,
    /// The JSON of a comparison by Locklab
    Locklab,
}

impl Format {
    /// Returns the program that writes it.
    #[must_use]
    pub fn program(self) -> &'static str {
        match self {
            Self::Hyperfine => "hyperfine",
            Self::Go => "Go's benchmarks",
            Self::Google => "Google Benchmark",
            Self::Criterion => "criterion",
            Self::Pytest => "pytest-benchmark",
            Self::Jmh => "JMH",
            Self::PerfStat => "perf stat",
            Self::Csv => "a CSV",
            Self::Locklab => "Locklab",
        }
    }

    /// Returns every name of a form, for a message.
    pub(crate) fn names() -> String {
        let names = Self::value_variants().iter();
        let names = names.filter_map(|f| Some(f.to_possible_value()?.get_name().to_owned()));
        names.collect::<Vec<_>>().join(", ")
    }
}
