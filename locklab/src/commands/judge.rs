//! `locklab judge`: samples that other programs took, from two files.
//!
//! Only this file opens them; reading, matching, judging and phrasing are the
//! work of `locklab-samples`.

use crate::arguments::Common;
use crate::arguments::report_files::ReportFiles;
use crate::comparison::show;
use crate::output::{command_line, print};
use clap::{Args, ValueEnum};
use locklab_host::error::Error;
use locklab_judge::{Direction, Family, Settings};
use locklab_lab::gate::FailOn;
use locklab_lab::settings::Percent;
use locklab_samples::{
    Format, Judging, Matching, SampleFile, compare, document, fails, judge, read,
};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// `locklab judge`.
///
/// Files of hyperfine, Go, Google Benchmark, criterion, pytest-benchmark, JMH,
/// perf stat, CSV, and results of Locklab itself.
#[derive(Debug, Args)]
pub struct JudgeArgs {
    /// Samples of the baseline: a file, or a folder of criterion (with @NAME for a
    /// saved baseline)
    pub baseline: PathBuf,
    /// Samples of the experiment
    pub experiment: PathBuf,
    /// The program that wrote both files [default: found by what they hold]
    #[arg(long, value_enum)]
    pub format: Option<Format>,
    /// The nth run of both files is a pair: they were measured in turn
    #[arg(long)]
    pub paired: bool,
    /// Direction in which all metrics improve [default: by their units; times are lower]
    #[arg(long, value_enum)]
    pub better: Option<Better>,
    /// Margin within which two are flat, in percent [default: 1]
    #[arg(long, value_name = "PERCENT")]
    pub delta: Option<Percent>,
    /// How the benchmarks share the 5 %
    #[arg(long, value_enum, default_value_t = FamilyWord::Holm)]
    pub family: FamilyWord,
    /// The drift of the machine that is assumed between two files, in percent an hour
    #[arg(long, value_name = "PERCENT", default_value_t = 3.0)]
    pub drift: f64,
    /// The time between the two files [default: by their dates, or what their runs
    /// took]
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    pub apart: Option<std::time::Duration>,
    /// Exit with 3 if a verdict is worse, 4 if unclear, 5 if invalid, 6 if incomplete;
    /// only the verdicts that are named count
    #[arg(long, value_name = "VERDICT", value_enum, value_delimiter = ',')]
    pub fail_on: Vec<FailOn>,
    #[command(flatten)]
    pub(crate) files: ReportFiles,
}

/// Describes which way a metric improves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Better {
    /// More is better
    Higher,
    /// Less is better
    Lower,
}

/// Says what 5 % bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FamilyWord {
    /// The chance of any wrong call
    Holm,
    /// The share of the calls that are wrong
    FalseDiscovery,
    /// Each call by itself, as benchstat does
    Each,
}

/// Runs `locklab judge`.
///
/// # Errors
/// [`Error::Usage`] if a file cannot be read or is in no form that is known, or a
/// report cannot be written; [`Error::Failed`] if `--fail-on` judged nothing.
pub fn run(args: &JudgeArgs, common: &Common) -> Result<ExitCode, Error> {
    if !(args.drift >= 0.0 && args.drift.is_finite()) {
        return Err(Error::Usage(format!(
            "--drift {}: give percent an hour, 0 or more",
            args.drift
        )));
    }
    if common.dry_run {
        return print(&format!(
            "Would judge {} against {}.\n",
            args.experiment.display(),
            args.baseline.display()
        ));
    }
    args.files.check()?;
    let matching = Matching {
        paired: args.paired,
        direction: args.better.map(|better| match better {
            Better::Higher => Direction::HigherIsBetter,
            Better::Lower => Direction::LowerIsBetter,
        }),
    };
    let judging = Judging {
        settings: Settings {
            delta: args.delta.unwrap_or_default().fraction(),
            family: match args.family {
                FamilyWord::Holm => Family::Holm,
                FamilyWord::FalseDiscovery => Family::FalseDiscovery,
                FamilyWord::Each => Family::Each,
            },
            ..Settings::default()
        },
        drift: args.drift / 100.0,
        apart: args.apart.map(|apart| apart.as_secs_f64()),
    };
    let files = [&args.baseline, &args.experiment].map(|path| samples(path, args.format));
    let [baseline, experiment] = files;
    let compared = compare(baseline?, experiment?, matching);
    let judged = judge(compared, judging).map_err(|e| Error::Usage(e.to_string()))?;
    let report = document(&judged, &command_line());
    show(&report, common)?;
    let failing: Vec<&str> = match args.fail_on.as_slice() {
        [] => vec![FailOn::Worse.word()],
        named => named.iter().map(|word| word.word()).collect(),
    };
    args.files.write(&report, &failing)?;
    let failed = fails(&args.fail_on, &judged)?;
    Ok(ExitCode::from(failed.map_or(0, FailOn::exit_code)))
}

/// Returns the samples of a file, or of a folder of criterion.
fn samples(path: &Path, format: Option<Format>) -> Result<SampleFile, Error> {
    let shown = path.display().to_string();
    let mut file = match folder_of_criterion(path) {
        Some((folder, saved)) => criterion(&folder, &saved, &shown)?,
        None => one(path, "benchmark", format)?,
    };
    file.label = shown;
    Ok(file)
}

fn one(path: &Path, name: &str, format: Option<Format>) -> Result<SampleFile, Error> {
    let bytes = std::fs::read(path)
        .map_err(|e| Error::Usage(format!("cannot read {}: {e}", path.display())))?;
    // A byte that is no UTF-8 is in a name, and must not cost the samples.
    let text = String::from_utf8_lossy(&bytes);
    read(&text, name, format).map_err(|e| Error::Usage(format!("{} {e}", path.display())))
}

/// Returns a folder, and the name of the saved baseline in it.
fn folder_of_criterion(path: &Path) -> Option<(PathBuf, String)> {
    if path.is_dir() {
        return Some((path.to_owned(), "new".into()));
    }
    let (folder, saved) = path.to_str()?.rsplit_once('@')?;
    Path::new(folder)
        .is_dir()
        .then(|| (folder.into(), saved.into()))
}

/// Returns every `sample.json` below a folder that was saved under this name.
fn criterion(folder: &Path, saved: &str, shown: &str) -> Result<SampleFile, Error> {
    let mut found = Vec::new();
    below(folder, &mut found);
    found.retain(|path| path.parent().is_some_and(|p| p.ends_with(saved)));
    found.sort();
    let mut files = Vec::new();
    for path in found {
        let benchmark = path.parent().and_then(Path::parent).unwrap_or(folder);
        let name = benchmark.strip_prefix(folder).unwrap_or(benchmark);
        files.push(one(
            &path,
            &name.display().to_string(),
            Some(Format::Criterion),
        )?);
    }
    let mut files = files.into_iter();
    let mut all = files.next().ok_or_else(|| {
        Error::Usage(format!(
            "{shown} has no {saved}/sample.json; give target/criterion, with @NAME for what \
             --save-baseline NAME wrote"
        ))
    })?;
    for file in files {
        all.benchmarks.extend(file.benchmarks);
        all.notes.extend(file.notes);
    }
    Ok(all)
}

fn below(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        // Never through a link, which may lead back.
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => below(&entry.path(), found),
            Ok(kind) if kind.is_file() && entry.file_name() == "sample.json" => {
                found.push(entry.path());
            }
            _ => {}
        }
    }
}
