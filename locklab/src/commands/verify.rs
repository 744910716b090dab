//! `locklab verify`: every promise of every lock under a model checker, and
//! every operation of its source changed in turn.

mod coverage;
mod document;
mod table;
mod tests;

use crate::arguments::{Common, OwnLockArgs};
use crate::output::{check_writable, print, write_file};
use crate::own::candidates;
use clap::{Args, ValueEnum};
use coverage::coverage;
use document::{assumed, document, plan};
use locklab_host::error::Error;
use locklab_lab::progress::Progress;
use locklab_lab::settings::SEED;
use locklab_verify::{
    LockResult, Options, THOROUGH_EXECUTIONS, THOROUGH_SCHEDULES, markdown, record, verify_these,
};
use serde_json::json;
use std::path::PathBuf;
use std::process::ExitCode;
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
    /// out; bugs from a list are planted in the source.
    #[arg(long)]
    pub mutants: bool,
    /// Sixty times the executions, fifty times the schedules; takes hours
    #[arg(long)]
    pub thorough: bool,
    /// Most executions of each promise [default: 16000]
    ///
    /// A promise that cannot be explored without a bound on preemptions is
    /// explored with the largest bound that this allows; the table has it.
    #[arg(long, value_name = "N", conflicts_with = "thorough",
          value_parser = clap::value_parser!(u64).range(1..))]
    pub executions: Option<u64>,
    /// Random schedules of each lock [default: 1000]
    #[arg(long, value_name = "N", conflicts_with = "thorough",
          value_parser = clap::value_parser!(u32).range(1..))]
    pub schedules: Option<u32>,
    /// Most seconds for each promise [default: no limit]
    ///
    /// With this limit the result may depend on the machine.
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    pub seconds: Option<u64>,
    /// Also write one line per lock to this file, in place of its old one
    ///
    /// 'locklab locks' reads how a lock is verified from such a
    /// file, crates/verify/verify/verified.tsv.
    #[arg(long, value_name = "FILE", requires = "mutants")]
    pub record: Option<PathBuf>,
    /// Also change each comparison, condition, constant, operator, field and
    /// statement of a lock of the catalogue
    ///
    /// For a file of yours --mutants always does that. It takes several times
    /// as long, and these changes are not recorded.
    #[arg(long, requires = "mutants", conflicts_with = "record")]
    pub source: bool,
    /// Take a kernel's orderings as written, without address dependencies
    ///
    /// C11 has none, so a promise that depends on them is reported as broken. By
    /// default, the read that starts a dependency counts as an Acquire.
    #[arg(long)]
    pub c11: bool,
    /// Let address dependencies order in a file of yours, as in a kernel's lock
    ///
    /// C11 has none. The read that starts a dependency counts as an Acquire, and a
    /// read-modify-write that acquires and releases as a fence; the report says that the
    /// verdicts hang on it.
    #[arg(long, conflicts_with = "c11")]
    pub dependencies: bool,
    /// Also write the named bugs, and what found each, as Markdown
    ///
    /// Replaces the rows of these locks in the tables of a file that has them,
    /// such as results/verification.md.
    #[arg(long, value_name = "FILE", requires = "mutants")]
    pub bugs: Option<PathBuf>,
    /// Also print what the models of each lock reach, and what they do not
    ///
    /// That is: calls with each of their answers, operations of the source and
    /// their results, branches, and the kinds of values that words take.
    #[arg(long)]
    pub coverage: bool,
    /// Also write every step of each failure to this file
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    /// Seed of the random schedules
    #[arg(long, value_name = "N", default_value_t = SEED)]
    pub seed: u64,
    /// Exit with 3 if a promise has this outcome
    #[arg(long, value_name = "OUTCOME", value_enum)]
    pub fail_on: Option<FailOn>,
    #[command(flatten)]
    pub(crate) own: OwnLockArgs,
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
    let (candidates, assumptions) = match tests.is_empty() || !locks.is_empty() {
        true => candidates(&locks, args.c11, args.dependencies, &args.own)?,
        false => Default::default(),
    };
    let defaults = Options::default();
    let executions = match args.executions {
        Some(executions) => executions,
        None if args.thorough => THOROUGH_EXECUTIONS,
        None => defaults.executions,
    };
    let options = Options {
        mutants: args.mutants,
        source: args.source,
        branches: args.coverage,
        executions,
        mutant_executions: executions,
        schedules: match args.schedules {
            Some(schedules) => schedules as usize,
            None if args.thorough => THOROUGH_SCHEDULES,
            None => defaults.schedules,
        },
        seed: args.seed,
        duration: args.seconds.map_or(defaults.duration, Duration::from_secs),
        ..defaults
    };
    if common.dry_run {
        return print(&plan(&candidates, &tests, options));
    }
    let written = [&args.record, &args.bugs, &args.trace];
    for path in written.into_iter().flatten() {
        check_writable(path)?;
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
    let write = |path: &Option<PathBuf>, text: &dyn Fn(&[LockResult]) -> String| {
        let Some(path) = path else { return Ok(()) };
        write_file(path, &text(&results))
    };
    let before = |path: &Option<PathBuf>| {
        let path = path.as_ref();
        path.and_then(|path| std::fs::read_to_string(path).ok())
            .unwrap_or_default()
    };
    write(&args.record, &|results| {
        record::lines(&before(&args.record), results)
    })?;
    write(&args.bugs, &|results| {
        markdown(&before(&args.bugs), results)
    })?;
    write(&args.trace, &traces)?;
    let text = if common.json {
        let mut document = document(&results, options, args.seconds, &assumptions);
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
