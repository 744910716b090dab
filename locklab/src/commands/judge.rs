//! `locklab judge`: samples that other programs took, from two files.
//!
//! Only this file opens them; reading, matching, judging and phrasing are the
//! work of `locklab-samples`.

use crate::arguments::report_files::ReportFiles;
use crate::arguments::{Common, GateArgs};
use crate::comparison::show;
use crate::output::{command_line, print};
use clap::{Args, ValueEnum};
use locklab_harness::gate::FailOn;
use locklab_harness::settings::Percent;
use locklab_host::{error::Error, message};
use locklab_judge::{Direction, Family, Settings};
use locklab_samples::{
    Format, Judging, Matching, SampleFile, compare, document, fails, judge, read,
};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// `locklab judge`.
#[derive(Debug, Args)]
#[command(after_help = files_that_are_read())]
pub struct JudgeArgs {
    /// Samples of the baseline and of the experiment: files or folders; several of the
    /// baseline before --; one file that has both sides
    #[arg(value_name = "FILE", required_unless_present = "old")]
    pub baseline: Vec<PathBuf>,
    /// Samples of the experiment, where a side has several files
    #[arg(value_name = "EXPERIMENT", last = true)]
    pub experiment: Vec<PathBuf>,
    /// A file of the baseline, once for each
    #[arg(
        long,
        value_name = "FILE",
        requires = "new",
        conflicts_with = "baseline"
    )]
    pub old: Vec<PathBuf>,
    /// A file of the experiment, once for each
    #[arg(long, value_name = "FILE", requires = "old")]
    pub new: Vec<PathBuf>,
    /// The form of all files [default: found by what they hold]
    #[arg(long, value_parser = format_of_name)]
    pub format: Option<Format>,
    /// By how much processes of the same code differ, in percent: differences between
    /// sides of few processes count beyond it
    #[arg(long, value_name = "PERCENT")]
    pub process_noise: Option<Percent>,
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
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = time)]
    pub apart: Option<std::time::Duration>,
    #[command(flatten)]
    pub(crate) gate: GateArgs,
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
    let [old, new] = args.sides()?;
    if common.dry_run {
        let list = |paths: &[PathBuf]| {
            let paths: Vec<String> = paths.iter().map(|p| p.display().to_string()).collect();
            paths.join(" ")
        };
        return print(&match new.is_empty() {
            true => format!("Would judge the two benchmarks of {}.\n", list(old)),
            false => format!("Would judge {} against {}.\n", list(new), list(old)),
        });
    }
    args.files.check(common.force)?;
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
        process_noise: args.process_noise.map(Percent::fraction),
    };
    let baseline = side(old, args.format)?;
    let [baseline, experiment] = match new.is_empty() {
        false => [baseline, side(new, args.format)?],
        true => baseline.split().ok_or_else(|| {
            let file = old[0].display();
            Error::Usage(format!(
                "{file} alone does not have two benchmarks, which would be the two sides; give a \
                 second file"
            ))
        })?,
    };
    let runs = [&baseline, &experiment].map(|side| side.benchmarks.iter().map(|b| b.runs.len()));
    let samples: usize = runs.into_iter().flatten().sum();
    if samples > MANY && !common.quiet {
        message::print(format!(
            "Judging {samples} samples, which takes some seconds."
        ));
    }
    let compared = compare(baseline, experiment, matching);
    let judged = judge(compared, judging).map_err(|e| Error::Usage(e.to_string()))?;
    let report = document(&judged, &command_line());
    show(&report, common)?;
    let failing: Vec<&str> = args.gate.fail_on.iter().map(|word| word.word()).collect();
    args.files.write(&report, &failing)?;
    let failed = fails(&args.gate.fail_on, &judged)?;
    if args.gate.fail_on.contains(&FailOn::Worse) && judged.never_fails() && !common.quiet {
        message::print(format!(
            "--fail-on worse cannot fail on these files: they are of too few processes. Give {} \
             files of each side, or --process-noise PERCENT.",
            judged.processes_needed()
        ));
    }
    Ok(ExitCode::from(failed.map_or(0, FailOn::exit_code)))
}

impl JudgeArgs {
    /// Returns the paths of both sides; of the second none, if one file has both.
    fn sides(&self) -> Result<[&[PathBuf]; 2], Error> {
        if !self.old.is_empty() {
            return Ok([&self.old, &self.new]);
        }
        let verdict = |path: &PathBuf| {
            let mut words = FailOn::value_variants().iter().map(|word| word.word());
            words.find(|word| !path.exists() && path == Path::new(word))
        };
        match (self.baseline.as_slice(), self.experiment.as_slice()) {
            (old, new) if !new.is_empty() => Ok([old, new]),
            (one @ [_], _) => Ok([one, &[]]),
            ([_, _], _) => Ok([&self.baseline[..1], &self.baseline[1..]]),
            (more, _) => Err(Error::Usage(match more.iter().find_map(verdict) {
                // `--fail-on worse unclear`.
                Some(word) => format!(
                    "{word} is no file; a list has no spaces between its items, so write \
                     --fail-on worse,{word}"
                ),
                None => format!(
                    "{} files are given, and nothing says which are of which side; put -- before \
                     those of the experiment",
                    more.len()
                ),
            })),
        }
    }
}

/// So many samples of both sides are judged before a reader waits for it.
const MANY: usize = 300_000;

fn files_that_are_read() -> String {
    format!("Files that are read: {}.", Format::programs())
}

fn time(text: &str) -> Result<std::time::Duration, String> {
    humantime::parse_duration(text).map_err(|_| "give a time such as 90s, 15m or 24h".into())
}

fn format_of_name(name: &str) -> Result<Format, String> {
    Format::named(name).ok_or_else(|| {
        let names: Vec<&str> = Format::all().map(Format::name).collect();
        format!("give one of {}", names.join(", "))
    })
}

/// Returns the samples of a side: of each path, joined.
fn side(paths: &[PathBuf], format: Option<Format>) -> Result<SampleFile, Error> {
    let mut files = Vec::new();
    for path in paths {
        files.extend(samples(path, format)?);
    }
    Ok(SampleFile::joined(files))
}

/// Returns the samples of a file, of a folder of criterion, or of each file of a folder.
fn samples(path: &Path, format: Option<Format>) -> Result<Vec<SampleFile>, Error> {
    let shown = path.display().to_string();
    let Some((folder, saved)) = folder_of_criterion(path) else {
        let file = one(path, "benchmark", format)?;
        return Ok(vec![SampleFile {
            label: shown,
            ..file
        }]);
    };
    match criterion(&folder, &saved)? {
        Some(file) => Ok(vec![SampleFile {
            label: shown,
            ..file
        }]),
        None if path.is_dir() => each_file(path, format),
        None => Err(Error::Usage(format!(
            "{shown} has no {saved}/sample.json; give target/criterion, with @NAME for what \
             --save-baseline NAME wrote"
        ))),
    }
}

/// Returns the samples of each file of a folder, in the order of the names.
fn each_file(folder: &Path, format: Option<Format>) -> Result<Vec<SampleFile>, Error> {
    let is_hidden = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default();
        name.to_string_lossy().starts_with('.')
    };
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    let mut paths: Vec<PathBuf> = paths.filter(|path| path.is_file()).collect();
    paths.retain(|path| !is_hidden(path));
    paths.sort();
    if paths.is_empty() {
        return Err(Error::Usage(format!(
            "{} has no new/sample.json and no file; give target/criterion, or a folder of files",
            folder.display()
        )));
    }
    let labelled = |path: &PathBuf| {
        Ok(SampleFile {
            label: path.display().to_string(),
            ..one(path, "benchmark", format)?
        })
    };
    paths.iter().map(labelled).collect()
}

fn one(path: &Path, name: &str, format: Option<Format>) -> Result<SampleFile, Error> {
    let bytes = std::fs::read(path)
        .map_err(|e| Error::Usage(format!("cannot read {}: {e}", path.display())))?;
    read(&bytes, name, format).map_err(|e| Error::Usage(format!("{} {e}", path.display())))
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

/// Returns every `sample.json` below a folder that was saved under this name, if there is
/// any. All are of one process.
fn criterion(folder: &Path, saved: &str) -> Result<Option<SampleFile>, Error> {
    let mut found = Vec::new();
    below(folder, &mut found);
    found.retain(|path| path.parent().is_some_and(|p| p.ends_with(saved)));
    found.sort();
    let mut all: Option<SampleFile> = None;
    for path in found {
        let benchmark = path.parent().and_then(Path::parent).unwrap_or(folder);
        let name = benchmark.strip_prefix(folder).unwrap_or(benchmark);
        let file = one(&path, &name.display().to_string(), None)?;
        match &mut all {
            Some(all) => {
                all.benchmarks.extend(file.benchmarks);
                all.notes.extend(file.notes);
            }
            None => all = Some(file),
        }
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
