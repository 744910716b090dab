//! The forms of files, one row each: the name, the program, how its samples are written,
//! and the reader.
//!
//! A form is found by what a file holds, never by the file's name. A reader takes a file
//! only if all of it is of its form, because a figure that is read by the wrong reader is
//! worse than none.

mod asv;
mod bencher;
mod benchmarkdotnet;
mod catch2;
mod columns;
mod criterion;
mod fields;
mod fio;
mod go;
mod google;
mod gungraun;
mod hyperfine;
mod input;
mod javascript;
mod jmh;
mod lines;
mod locklab;
mod perf_stat;
mod pytest;

use crate::benchmark::{SampleFile, Unreadable};
use input::Input;
use serde::{Serialize, Serializer};

/// Returns what a file holds, or `None` if it is of another form. A file of this form in
/// which nothing can be judged has no benchmark, and a note that says why.
type Read = fn(&Input) -> Option<SampleFile>;

/// A row of the table of forms: the name, as `--format` takes it, the program, how it writes
/// samples, and the reader.
type Form = (&'static str, &'static str, &'static str, Read);

/// Every form that is read. The first whose grammar fits is taken.
#[rustfmt::skip]
const FORMS: &[Form] = &[
    ("hyperfine", "hyperfine", "`--export-json FILE`; one file with two commands is both sides", hyperfine::read),
    ("go", "Go's benchmarks", "`go test -bench . -count 10 > FILE`, or with `-json`", go::read),
    ("google", "Google Benchmark", "`--benchmark_repetitions=20 --benchmark_out=FILE`", google::read),
    ("criterion", "criterion", "`target/criterion`, with `@NAME` for a saved baseline; `sample.json`, `raw.csv`, or messages of `cargo criterion`", criterion::read),
    ("pytest", "pytest-benchmark", "`--benchmark-json=FILE`", pytest::read),
    ("jmh", "JMH", "`-rf json`; each fork is a process", jmh::read),
    ("perf-stat", "perf stat", "`-x, --append -o FILE` or `-j`, once a run; `-e duration_time` for elapsed time", perf_stat::read),
    ("benchmarkdotnet", "BenchmarkDotNet", "`--exporters fulljson`; each launch is a process", benchmarkdotnet::read),
    ("asv", "asv", "`--record-samples`; a file of `results/MACHINE`", asv::read),
    ("gungraun", "gungraun", "`--output-format=json > FILE`", gungraun::read),
    ("vitest", "vitest", "`vitest bench --outputJson FILE`, with `includeSamples`", javascript::vitest),
    ("fio", "fio", "`--output-format=json`", fio::read),
    ("catch2", "Catch2", "its text, or `-r xml`", catch2::read),
    ("libtest", "cargo bench", "its text", lines::libtest),
    ("criterion-text", "criterion's text", "without samples, which its folder has", lines::criterion),
    ("sysbench", "sysbench", "its text", lines::sysbench),
    ("wrk", "wrk", "its text", lines::wrk),
    ("github", "github-action-benchmark", "`[{name,unit,value}]`", bencher::github),
    ("tinybench", "tinybench", "`JSON.stringify(bench.tasks)`", javascript::tinybench),
    ("bencher", "Bencher", "its metric format", bencher::read),
    ("locklab", "Locklab", "`--json` of a comparison: a sample is the ratio of a pair", locklab::read),
    ("csv", "a table", "names and values, with titles (`name,value,unit,at,better`) or without; `;` with decimal commas; two columns of values are both sides", columns::read),
];

/// A form that is known and has no samples: how it is recognised, and what to give instead.
type Instead = (&'static str, fn(&Input) -> bool, &'static str);

#[rustfmt::skip]
const INSTEAD: &[Instead] = &[
    ("benchmark.js", lines::is_benchmark_js, "its text has a mean and no samples; write `this.stats.sample` of each benchmark as rows of name,value"),
    ("divan", |input| input.plain_has(&["fastest", "slowest", "median", "mean"]), "its text has no samples; let it print one figure a run as rows of name,value, or use criterion"),
    ("criterion's estimates", |input| input.has("mean") && input.has("median") && input.has("std_dev"), "estimates.json has no samples; give the folder target/criterion"),
    ("fio's terse output", lines::is_fio_terse, "its columns have no names; run fio with --output-format=json"),
    ("fio's text", |input| input.plain_has(&["Starting ", "process"]) && input.plain_has(&["IOPS="]), "it is rounded; run fio with --output-format=json"),
    ("hyperfine's summary", |input| input.plain_has(&["Time (mean ±"]) || input.plain_has(&["Command", "Mean [", "Min ["]), "it has no samples; run hyperfine with --export-json FILE"),
    ("JMH's text", |input| input.plain_has(&["Benchmark ", " Mode ", " Score "]), "its table has no samples; run JMH with -rf json"),
    ("JMH's table", |input| lines::begins(input, &["Benchmark,Mode"]), "its table has no samples; run JMH with -rf json"),
    ("Google Benchmark's text", |input| input.plain_has(&["Benchmark ", " CPU ", " Iterations"]), "its table has no names of repetitions; give --benchmark_out=FILE"),
    ("Google Benchmark's table", |input| input.plain_has(&["name,iterations,real_time,cpu_time"]), "its rows do not say which are means; give --benchmark_out_format=json"),
    ("pytest-benchmark's text", |input| input.plain_has(&["StdDev", "Rounds", "Iterations"]), "its table has no samples; run pytest with --benchmark-json=FILE"),
    ("pytest-benchmark's table", |input| input.plain_has(&["name,", "min,max,mean,stddev"]), "its table has no samples; run pytest with --benchmark-json=FILE"),
    ("BenchmarkDotNet's summary", |input| input.plain_has(&["BenchmarkDotNet v"]) || input.plain_has(&["| Method ", " Mean "]) || lines::begins(input, &["Method,Job"]), "it has no measurements; run it with --exporters fulljson"),
    ("Catch2's JSON", |input| input.has("test-run") || input.has("metadata") && input.text.contains("catch2-version"), "its form still changes; give -r xml"),
    ("asv's results of version 1", |input| input.has("commit_hash") && input.has("results") && !input.has("result_columns"), "asv update writes them anew"),
    ("tinybench's table", |input| input.json.as_ref().and_then(|v| v.get(0)).is_some_and(|row| row.get("Task name").is_some() || row.get("Task Name").is_some()), "it is rounded; write JSON.stringify(bench.tasks)"),
    ("github-action-benchmark's history", |input| input.text.starts_with("window.BENCHMARK_DATA") || input.has("lastUpdate") && input.has("entries"), "it has all runs of a branch; give the output of the benchmark of one commit"),
    ("rebar", |input| lines::begins(input, &["name,model,rebar_version"]), "it has statistics and no samples; write a row for each run as name,value"),
    ("perf's data", |input| input.text.starts_with("PERFILE2"), "it is a recording; use perf stat -x, --append -o FILE, once for each run"),
];

/// A form of file: a row of the table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Format(usize);

impl Format {
    /// Returns every form, in the order of the table.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..FORMS.len()).map(Self)
    }

    /// Returns the form of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::all().find(|format| format.name() == name)
    }

    /// Returns its name, as `--format` takes it.
    #[must_use]
    pub fn name(self) -> &'static str {
        FORMS[self.0].0
    }

    /// Returns the program that writes it.
    #[must_use]
    pub fn program(self) -> &'static str {
        FORMS[self.0].1
    }

    /// Returns every program, as a help text lists them.
    #[must_use]
    pub fn programs() -> String {
        let programs: Vec<&str> = FORMS.iter().map(|form| form.1).collect();
        programs.join(", ")
    }

    /// Returns the list of all forms in Markdown, as the documentation has it.
    #[must_use]
    pub fn list() -> String {
        let row = |(_, program, export, _): &Form| format!("- **{program}**: {export}\n");
        FORMS.iter().map(row).collect()
    }
}

impl Serialize for Format {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// Reads the bytes of a file. `name` is what its only benchmark is called where the file
/// itself does not say it.
///
/// # Errors
/// [`Unreadable`] if nothing can be read of it. What can be read in part is
/// read, with a note.
pub fn read(bytes: &[u8], name: &str, asked: Option<Format>) -> Result<SampleFile, Unreadable> {
    let text = input::decoded(bytes);
    if text.trim().is_empty() {
        return Err(Unreadable::Empty);
    }
    let input = Input::new(&text, name, asked.is_some());
    let read = |format: Format| {
        let mut file = FORMS[format.0].3(&input)?;
        file.format = format;
        file.notes.extend(input.note.clone());
        Some(file)
    };
    let found = match asked {
        Some(format) => read(format).ok_or(Unreadable::NotThis(format))?,
        None => match INSTEAD.iter().find(|(_, is, _)| is(&input)) {
            Some((program, _, export)) => return Err(Unreadable::Instead(program, export)),
            None => Format::all().find_map(read).ok_or(Unreadable::Unknown)?,
        },
    };
    match found.benchmarks.is_empty() {
        false => Ok(found.checked()),
        true => {
            let why = found.notes.into_iter().next();
            let why = why.unwrap_or_else(|| "it names no benchmark".into());
            Err(Unreadable::NoBenchmark(found.format, why))
        }
    }
}
