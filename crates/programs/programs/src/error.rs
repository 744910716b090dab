//! Why a comparison of programs cannot be begun or a workload cannot run: one
//! sentence each, with the next step.

use crate::counters::CounterError;
use crate::icache::ModelError;
use locklab_host::libraries::LibraryError;
use locklab_host::process::Trouble;
use locklab_lab::error::SettingsError;
use std::path::PathBuf;

/// Why programs cannot be compared.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Error {
    /// A setting or a file that holds for every kind of experiment.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// A file of this kind has another form.
    #[error("{0}; 'locklab compare --example' shows the form")]
    Form(SettingsError),
    /// One of these, in a file with this path.
    #[error("{0}, {1}")]
    In(PathBuf, Box<Self>),
    /// The counters that were asked for cannot be had.
    #[error(transparent)]
    Counters(#[from] CounterError),
    /// The model of the instruction cache cannot be had.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// No workload was given.
    #[error(
        "nothing to run; give --workload ({0}), or --baseline CMD --experiment CMD, or an \
         experiment file ('locklab compare --example' prints one)"
    )]
    NothingToRun(String),
    /// There is no workload of this name, but one of a similar name.
    #[error("there is no workload '{0}'; did you mean {1}?")]
    Misspelled(String, &'static str),
    /// There is no workload of this name.
    #[error("there is no workload '{0}'; those are {1}")]
    NoWorkload(String, String),
    /// Two workloads have one title.
    #[error("there are two workloads '{0}'; give one of them another title")]
    TwoWorkloads(String),
    /// A workload was given a setting that it does not use.
    #[error("{0} does not use '{1}'; leave it out")]
    NotUsed(String, &'static str),
    /// A workload has no such variant.
    #[error(
        "'{0}' in '{1}' is no variant; those are processes, threads, futex, pipe, or a number of \
         threads"
    )]
    NoVariant(String, String),
    /// An amount of work that is out of range.
    #[error("scale {0} of {1} is not between 0 and 10000; 1 is the usual length")]
    Scale(f64, String),
    /// A workload without threads.
    #[error("zero threads of {0} do no work; ask for 1")]
    NoThreads(String),
    /// What cannot switch to its like.
    #[error("'{0}' cannot switch; those are processes and threads")]
    NoSwitch(String),
    /// What cannot wake a thread.
    #[error("'{0}' is no way to wake a thread; futex and pipe are")]
    NoWake(String),
    /// A metric of the output that has another form.
    #[error(
        "'{0}' is no metric; write name[unit]:higher=PATTERN, as \
         'throughput[ops/s]:higher=([0-9.]+) ops/sec', or json:/path for PATTERN"
    )]
    NoMetric(String),
    /// A metric's pattern that is no regular expression, for the reason given.
    #[error("the pattern of metric '{name}' is no regular expression ({why}): {pattern}")]
    NoRegex {
        /// The name of the metric.
        name: String,
        /// What the parser said.
        why: String,
        /// The pattern as given.
        pattern: String,
    },
    /// A metric's pattern that does not say where the number is.
    #[error("the pattern of metric '{0}' has no group for the number; put it in parentheses: {1}")]
    NoGroup(String, String),
    /// A metric with both a pattern and a path, or neither.
    #[error("metric '{0}' needs either a pattern or a json path")]
    NoPlace(String),
    /// What `--inline` does not know.
    #[error("'{0}' is not what can be inlined; write unlock=never|always")]
    NoInline(String),
    /// `call-sites` without the two sides of inlining.
    #[error(
        "nothing says what to inline; give --inline 'unlock=never|always' (baseline, then \
         experiment)"
    )]
    NothingToInline,
    /// Two builds for a workload whose program is Locklab's own.
    #[error(
        "{0} runs a program of Locklab's own, in which two builds or commands do not differ; \
         compare locks or environments, or use --workload command"
    )]
    SameProgram(&'static str),
    /// A CPU that this process may not use.
    #[error("CPU {0} cannot be pinned to; this process may use {1}")]
    NoCpu(usize, String),
    /// A build that is no folder.
    #[error("there is no folder {0}; a build is the folder with its programs")]
    NoBuild(PathBuf),
    /// A folder that does not exist.
    #[error("there is no folder {0}")]
    NoFolder(PathBuf),
    /// A file that does not exist.
    #[error("there is no file {0}")]
    NoFile(PathBuf),
    /// A folder without the sources of a kernel.
    #[error("{0} is no kernel tree: it has no Makefile")]
    NoTree(PathBuf),
    /// No kernel's sources are installed.
    #[error("no kernel sources; apt-get install {0}")]
    NoSources(&'static str),
    /// A program of a workload is not installed.
    #[error("{0} is not installed; apt-get install {1}")]
    NotInstalled(String, String),
    /// There is no program at a path.
    #[error("there is no program {0}; check the path")]
    NoProgramAt(String),
    /// There is no program of this name.
    #[error(
        "there is no program '{0}' in PATH; 'apt-file search bin/{0}' names its Debian package"
    )]
    NoProgram(String),
    /// The workload `command` without a command.
    #[error(
        "there is no command to run; give --baseline and --experiment, or one command after --"
    )]
    NoCommand,
    /// A command that names a build where there is none.
    #[error(
        "'{0}' speaks of {{build}} and there is none; give --baseline-build and --experiment-build"
    )]
    NoBuildOf(String),
    /// A command that is no words.
    #[error("'{0}' is no command: a quote is open, or it is empty")]
    NoWords(String),
    /// A port that another program has.
    #[error("port {0} cannot be had ({1}); leave it out, and a free one is taken")]
    NoPort(u16, String),
    /// No port is free.
    #[error("there is no free port: {0}")]
    NoFreePort(String),
    /// The library that puts a lock under a program's mutexes is missing.
    #[error(transparent)]
    NoLibrary(#[from] LibraryError),
    /// A build folder that cannot stand in `PATH`.
    #[error("the build folder {0}: {1}")]
    NotInPath(PathBuf, String),
    /// The programs of two builds cannot be read.
    #[error("There is no footprint: {0}")]
    NoFootprint(String),
    /// A command that builds, without the two sides that it is to build.
    #[error("--build makes the two of --inline; give that too")]
    BuildWithoutInline,
    /// The build of a side was not started, or not left to end.
    #[error("building the {0}: {1}")]
    Building(&'static str, String),
    /// A build failed: its command, how it ended, and its last output.
    #[error("'{0}' failed ({1}); it said: {2}")]
    BuildFailed(String, String, String),
    /// A build made no programs.
    #[error(
        "'{0}' left nothing in {1}; have it put the programs into {{out}}, which is also \
         $LOCKLAB_OUT"
    )]
    BuiltNothing(String, PathBuf),
    /// A folder cannot be made.
    #[error("cannot make the folder {0}: {1}")]
    NotMade(PathBuf, String),
    /// The folder that this process is in was removed.
    #[error("there is no current folder: {0}")]
    NoCurrentFolder(String),
    /// Nothing can be written to the temporary folder.
    #[error("cannot make a temporary folder: {0}; set TMPDIR to another")]
    NoTemporaryFolder(String),
    /// The folder of the logs cannot be made.
    #[error("cannot make the folder of logs {0}: {1}; give another with --logs")]
    NoLogs(PathBuf, String),
}

/// With the exit code of a command.
impl From<Error> for locklab_host::error::Error {
    fn from(error: Error) -> Self {
        match error {
            Error::BuildWithoutInline
            | Error::Building(..)
            | Error::BuildFailed(..)
            | Error::BuiltNothing(..)
            | Error::NotMade(..)
            | Error::NoCurrentFolder(_)
            | Error::NoTemporaryFolder(_)
            | Error::NoLogs(..) => Self::Failed(error.to_string()),
            Error::Model(error) => error.into(),
            error => Self::Usage(error.to_string()),
        }
    }
}

/// Why a run yields no figures.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// This run failed; another may not.
    #[error("{0}")]
    Failed(String),
    /// The workload's own check failed.
    #[error("{0}")]
    CheckFailed(String),
    /// Counters did not run all the time.
    #[error("{0}")]
    Counter(String),
    /// No run of it can succeed, for the reason given.
    #[error("{0}")]
    Unrunnable(String),
    /// SIGINT or SIGTERM was received.
    #[error("interrupted")]
    Interrupted,
}

/// What cannot be begun cannot be run either.
impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self::Unrunnable(error.to_string())
    }
}

impl From<Trouble> for Fault {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::NotStarted(why) => Self::Unrunnable(why),
            Trouble::Interrupted => Self::Interrupted,
            Trouble::TooLong(_) => Self::Failed(trouble.to_string()),
        }
    }
}
