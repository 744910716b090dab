//! Why settings cannot be used, and why a gate has judged nothing: one sentence
//! each, with the next step.

use std::path::{Path, PathBuf};

/// Why a setting, a list or an experiment file cannot be used.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SettingsError {
    /// A range of a list ends below its start.
    #[error("'{0}' has a falling range; write the smaller number first")]
    FallingRange(String),
    /// Nothing says how a range of a list continues.
    #[error(
        "'{0}': the numbers before '..' rise by no common step or ratio; write them as 1,2,4..64 \
         or 1,3,5..9"
    )]
    NoStep(String),
    /// A list is longer than any experiment can be.
    #[error("'{0}' has more than {1} numbers; make it shorter")]
    LongList(String, usize),
    /// Two commas of a list have nothing between them.
    #[error("'{0}' has an empty item; write a list as 1,2,4..64")]
    EmptyItem(String),
    /// An item of a list is no number.
    #[error("'{0}' is not a whole number from 0 to {max}; write a list as 1,2,4..64", max = u64::MAX)]
    NotANumber(String),
    /// A number is larger than that of any CPU.
    #[error("there is no CPU {0}")]
    NoCpu(u64),
    /// A file cannot be read.
    #[error("cannot read {path}: {why}")]
    NotRead {
        /// The path of the file.
        path: PathBuf,
        /// The reason that the system gave.
        why: String,
    },
    /// A file is not TOML, or one of its settings is wrong.
    #[error("line {line}: {why}")]
    Line {
        /// The number of the line, from 1.
        line: usize,
        /// What the parser said, in one line.
        why: String,
    },
    /// A file does not say what it compares.
    #[error(
        "line {line}: the file does not say what it compares; write kind = \"{likely}\" above \
         this line (there are {known})"
    )]
    NoKind {
        /// The line of the first setting.
        line: usize,
        /// The kind that the file's settings belong to.
        likely: &'static str,
        /// All kinds, in quotes.
        known: String,
    },
    /// A file is a sweep, which is not one experiment.
    #[error("line {0}: a sweep is many experiments; run it with locklab sweep FILE")]
    Sweep(usize),
    /// A file has a kind that does not exist.
    #[error("line {line}: '{word}' is no kind of experiment; there are {known}")]
    UnknownKind {
        /// The line of the kind.
        line: usize,
        /// What the file says there.
        word: String,
        /// All kinds, in quotes.
        known: String,
    },
    /// One of these, in a file with this path.
    #[error("{0}, {1}")]
    In(PathBuf, Box<Self>),
    /// A file and a command line cannot be true together.
    #[error("the settings contradict one another: {0}")]
    Contradiction(String),
    /// A setting has no text, such as a path that is not UTF-8.
    #[error("a setting cannot be written as text: {0}")]
    NoText(String),
    /// An option was given that has no use here: the option, and why.
    #[error("{0} {1}")]
    NotUsed(String, String),
    /// A margin that is no percentage.
    #[error("{0} is no margin; give a percentage above 0 and below 100")]
    NoMargin(f64),
    /// A time limit that no clock can add.
    #[error("a time limit of {0} s is none; give seconds above 0")]
    NoLimit(f64),
    /// A number of pairs that is zero or too large.
    #[error("{0} pairs show nothing; give --pairs 8 or more")]
    Pairs(u32),
    /// A setting has another name now, which the sentence says.
    #[error("{0}")]
    Renamed(&'static str),
    /// Threads that only read would be alike under each of the locks.
    #[error(
        "none of these locks lets readers share it, so --reads has nothing to show; name one that \
         does ({0})"
    )]
    NoReaders(String),
}

impl SettingsError {
    /// The same error, with the path of the file that it is in.
    #[must_use]
    pub fn within(self, path: &Path) -> Self {
        Self::In(path.to_owned(), Box::new(self))
    }
}

/// With the exit code of a command.
impl From<SettingsError> for locklab_host::error::Error {
    fn from(error: SettingsError) -> Self {
        Self::Usage(error.to_string())
    }
}

/// Why a gate can neither pass nor fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GateError {
    /// No cell has a verdict.
    #[error("--fail-on judged nothing: no cell has a verdict; give more --pairs or more time")]
    NoVerdict,
    /// What is in use today was nowhere ranked.
    #[error(
        "--fail-on judged nothing: what is in use today has a rank at no point; give more --pairs \
         or more time"
    )]
    NoRank,
}

/// With the exit code of a command.
impl From<GateError> for locklab_host::error::Error {
    fn from(error: GateError) -> Self {
        Self::Failed(error.to_string())
    }
}
