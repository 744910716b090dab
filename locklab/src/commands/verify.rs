//! `locklab verify`: every promise of every lock under a model checker, and
//! every operation of its source changed in turn.

mod coverage;
mod document;
mod table;
mod tests;

use crate::arguments::{Common, UserLockArgs};
use crate::output::{FileFormat, check_writable, print, write_file};
use crate::own::candidates;
use clap::{Args, ValueEnum};
use coverage::coverage;
use document::{assumed, document, plan};
use locklab_document::number;
use locklab_harness::progress::Progress;
use locklab_harness::settings::SEED;
use locklab_host::error::Error;
use locklab_host::message;
use locklab_verify::{
    LockResult, Options, THOROUGH_EXECUTIONS, THOROUGH_SCHEDULES, markdown, record, verify_these,
};
use serde_json::json;
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::str::FromStr;
use std::time::Duration;
use table::{table, traces};

/// `locklab verify`.
///
/// Exit code 1 if a promise is broken or a mutant survives, 3 if --fail-on says so.
#[derive(Debug, Args)]
pub struct VerifyArgs {
    /// The locks, 'spin-then-park', 'thread-numbers' and 'interposer' [default: all]
    ///
    /// A lock of your own is a C or C++ file, or kernel:qspinlock[=TREE]; no
    /// random schedules are run for it.
    #[arg(value_name = "LOCK")]
    pub locks: Vec<String>,
    /// Change each operation in turn: each must break a promise
    ///
    /// Orderings are weakened by one step; stores, waits and wake-ups are left
    /// out; bugs from a list are planted in the source. --mutants=source also changes each
    /// comparison, condition, constant, operator, field and statement of a lock of the
    /// catalogue, as is always done for a file of yours; that takes several times as long,
    /// and these changes are not recorded.
    #[arg(long, value_enum, value_name = "WHICH", num_args = 0..=1, require_equals = true, default_missing_value = "operations")]
    pub mutants: Option<Mutants>,
    /// Sixty times the executions, fifty times the schedules; takes hours
    #[arg(long)]
    pub thorough: bool,
    /// Most work for each promise: executions=N [default: 16000], schedules=N, the random
    /// schedules of each lock [default: 1000], seconds=N [default: no limit]
    ///
    /// A promise that cannot be explored without a bound on preemptions is
    /// explored with the largest bound that this allows; the table has it. With a limit of
    /// seconds the result may depend on the machine.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub at_most: Vec<AtMost>,
    /// Also update the lines of these locks in a file: .tsv, which 'locklab locks' reads, or
    /// .md, the named bugs and what found each
    ///
    /// 'locklab locks' reads how a lock is verified from
    /// crates/verify/verify/verified.tsv; the bugs are those in tables of a page such as
    /// results/verification.md.
    #[arg(long, value_name = "FILE", requires = "mutants")]
    pub update: Vec<PathBuf>,
    /// Whether address dependencies order: yes for a kernel's lock, no for a file of yours
    ///
    /// C11 has none, so with no a promise that depends on them is reported as broken. With yes
    /// the read that starts a dependency counts as an Acquire, and, in a file of yours, a
    /// read-modify-write that acquires and releases as a fence; the report says that the
    /// verdicts depend on it.
    #[arg(long, value_enum, value_name = "yes|no")]
    pub dependencies: Option<Dependencies>,
    /// Also print what the models of each lock reach, and what they do not
    ///
    /// That is: calls with each of their answers, operations of the source and
    /// their results, branches, and the kinds of values that words take.
    #[arg(long)]
    pub coverage: bool,
    /// Also write every step of each failure to this file
    #[arg(long, value_name = "FILE")]
    pub steps: Option<PathBuf>,
    /// Seed of every random choice [default: 1]
    #[arg(long, value_name = "N", default_value_t = SEED, hide_default_value = true)]
    pub seed: u64,
    /// Fail if a result has one of these verdicts: exit with 3 if executions were cut, that is,
    /// left out although they are within the bounds
    #[arg(long, value_name = "VERDICT", value_enum)]
    pub fail_on: Option<FailOn>,
    #[command(flatten)]
    pub(crate) own: UserLockArgs,
}

/// The changes of a lock's source that are tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Mutants {
    /// Those of its atomic operations, and planted bugs
    Operations,
    /// Those, and each comparison, condition, constant and statement
    Source,
}

/// Says whether address dependencies order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Dependencies {
    /// As in a kernel
    Yes,
    /// As in C11
    No,
}

/// A bound on the work for each promise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtMost {
    /// The executions that are explored.
    Executions(u64),
    /// The random schedules of each lock.
    Schedules(u32),
    /// The seconds.
    Seconds(u64),
}

impl FromStr for AtMost {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, number) = text.trim().split_once('=').unwrap_or((text, ""));
        let whole = number.parse::<u64>().ok().filter(|n| *n > 0);
        let small = whole.and_then(|n| u32::try_from(n).ok());
        let bound = match name {
            "executions" => whole.map(Self::Executions),
            "schedules" => small.map(Self::Schedules),
            "seconds" => whole.map(Self::Seconds),
            _ => None,
        };
        bound.ok_or_else(|| {
            format!(
                "'{text}' is no bound; write executions=N, schedules=N or seconds=N, with a whole \
                 number from 1"
            )
        })
    }
}

impl VerifyArgs {
    /// Returns the last bound of a kind.
    fn bound<T>(&self, of: impl Fn(&AtMost) -> Option<T>) -> Option<T> {
        self.at_most.iter().rev().find_map(of)
    }

    /// Returns the files to update, each with its format.
    fn updates(&self) -> Result<Vec<(&Path, FileFormat)>, Error> {
        let format = |file: &PathBuf| match file.extension().and_then(|e| e.to_str()) {
            Some("tsv") => Ok(FileFormat::Verified),
            Some("md") => Ok(FileFormat::Bugs),
            _ => Err(Error::Usage(format!(
                "{} ends neither in .tsv, for how locks are verified, nor in .md, for named bugs",
                file.display()
            ))),
        };
        let files = self.update.iter();
        files
            .map(|file| Ok((file.as_path(), format(file)?)))
            .collect()
    }
}

/// The outcomes that a gate fails on, beside a broken promise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FailOn {
    /// Executions were left out that are within the bounds
    Cut,
}

/// The exit code of a gate that fails.
const GATE: u8 = 3;

/// Runs `locklab verify`.
///
/// # Errors
/// [`Error::Usage`] if a name is not a lock's, [`Error::Failed`] if a file or
/// standard output cannot be written.
pub fn run(args: &VerifyArgs, common: &Common) -> Result<ExitCode, Error> {
    let (tests, locks) = tests::tests(args)?;
    let c11 = args.dependencies == Some(Dependencies::No);
    let ordered = args.dependencies == Some(Dependencies::Yes);
    let (candidates, assumptions) = match tests.is_empty() || !locks.is_empty() {
        true => candidates(&locks, c11, ordered, &args.own)?,
        false => Default::default(),
    };
    let defaults = Options::default();
    let executions = args.bound(|bound| match bound {
        AtMost::Executions(n) => Some(*n),
        _ => None,
    });
    let schedules = args.bound(|bound| match bound {
        AtMost::Schedules(n) => Some(*n),
        _ => None,
    });
    let seconds = args.bound(|bound| match bound {
        AtMost::Seconds(n) => Some(*n),
        _ => None,
    });
    if args.thorough && (executions.is_some() || schedules.is_some()) {
        return Err(Error::Usage(
            "--thorough says how many executions and schedules there are; leave out --at-most, or \
             --thorough"
                .into(),
        ));
    }
    let executions = match executions {
        Some(executions) => executions,
        None if args.thorough => THOROUGH_EXECUTIONS,
        None => defaults.executions,
    };
    let options = Options {
        mutants: args.mutants.is_some(),
        source: args.mutants == Some(Mutants::Source),
        branches: args.coverage,
        both: args.thorough,
        executions,
        mutant_executions: executions,
        schedules: match schedules {
            Some(schedules) => schedules as usize,
            None if args.thorough => THOROUGH_SCHEDULES,
            None => defaults.schedules,
        },
        seed: args.seed,
        duration: seconds.map_or(defaults.duration, Duration::from_secs),
        ..defaults
    };
    let updates = args.updates()?;
    if options.source && updates.iter().any(|(_, f)| *f == FileFormat::Verified) {
        return Err(Error::Usage(
            "changes of the whole source are not recorded; leave out --update with a .tsv file, or \
             give --mutants without source"
                .into(),
        ));
    }
    if common.dry_run {
        return print(&plan(&candidates, &tests, options));
    }
    let steps = args
        .steps
        .iter()
        .map(|path| (path.as_path(), FileFormat::Steps));
    for (path, format) in updates.iter().copied().chain(steps) {
        check_writable(path, format, common.force)?;
    }
    if !candidates.is_empty() && !common.quiet && !std::io::stderr().is_terminal() {
        let locks = number::count(candidates.len(), "lock");
        message::print(format_args!("Checking {locks}, with a line now and then."));
    }
    let mut tested = Vec::new();
    for test in &tests {
        let result = test.check(tests::limits(args));
        if !common.json {
            print(&tests::shown(&result))?;
        }
        tested.push(result);
    }
    let all_hold = tested.iter().all(tests::holds);
    if candidates.is_empty() {
        if common.json {
            print(&format!("{:#}\n", document::of_tests(&tested)))?;
        }
        return Ok(if all_hold {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        });
    }
    let bar = Progress::new(0, "models", common.quiet);
    let results = verify_these(&candidates, options, &|progress| {
        bar.set(progress.done as u64, progress.total as u64, &progress.what);
    });
    drop(bar);
    for (path, format) in updates {
        let before = std::fs::read_to_string(path).unwrap_or_default();
        let text = match format {
            FileFormat::Verified => record::lines(&before, &results),
            _ => markdown(&before, &results),
        };
        write_file(path, &text)?;
    }
    if let Some(path) = &args.steps {
        write_file(path, &traces(&results))?;
    }
    let text = if common.json {
        let mut document = document(&results, options, seconds, &assumptions);
        if !tested.is_empty() {
            document["tests"] = json!(tested);
        }
        format!("{document:#}\n")
    } else {
        let covered = if args.coverage {
            coverage(&results)
        } else {
            String::new()
        };
        table(&results) + &covered + &assumed(&assumptions)
    };
    print(&text)?;
    let gate = args.fail_on == Some(FailOn::Cut);
    Ok(match &results {
        results if !all_hold || !results.iter().all(LockResult::is_kept) => ExitCode::FAILURE,
        results if gate && !results.iter().all(LockResult::is_complete) => ExitCode::from(GATE),
        _ => ExitCode::SUCCESS,
    })
}
