//! The kinds of experiments, each declared once: its word, its files and their
//! schema, the words of its reports, and what its backends append to them.
//!
//! A new kind is an entry of [`KINDS`]; `commands::compare` says what carries out
//! its files. Nothing here runs anything.

use crate::commands::matrix::settings::MatrixSettings;
use crate::commands::rank::arguments::RankSettings;
use locklab_document::Document;
use locklab_harness::experiment::Experiment;
use locklab_harness::file::FileKind;
use locklab_harness::report::Words;
use locklab_harness::verdicts::Verdicts;
use locklab_harness::{matrix, ranking};
use schemars::{Schema, SchemaGenerator};

/// A kind of experiment.
pub(crate) struct Kind {
    /// Says how `locklab compare` carries out its files.
    pub(crate) compared: Compared,
    /// Its word in files, JSON, the store and the command, and how its files are
    /// recognised.
    pub(crate) file: FileKind,
    /// The schema of its files.
    pub(crate) schema: fn(&mut SchemaGenerator) -> Schema,
    /// The words in which its reports speak of what is compared.
    words: Words,
    /// Holds what its backends append to a report, in this order.
    append: &'static [Append],
}

/// Appends to the report of an experiment what only one backend knows.
type Append = fn(&Experiment, &Verdicts, &mut Document);

/// Names what is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compared {
    /// Programs, builds, locks under them, or environments.
    Programs,
    /// Two locks.
    Matrix,
    /// Many locks.
    Rank,
    /// Two kernels.
    Kernels,
    /// Published figures, simulated.
    Published,
}

/// Every kind.
pub(crate) static KINDS: [Kind; 5] = [
    Kind {
        compared: Compared::Programs,
        file: FileKind::other(locklab_programs::settings::KIND),
        schema: SchemaGenerator::subschema_for::<locklab_programs::Settings>,
        words: Words::USUAL,
        append: &[locklab_programs::report::append],
    },
    Kind {
        compared: Compared::Matrix,
        file: FileKind::with(matrix::KIND, &["threads"]),
        schema: SchemaGenerator::subschema_for::<MatrixSettings>,
        words: locklab_native::WORDS,
        append: &[locklab_native::append, locklab_published::modelled::append],
    },
    Kind {
        compared: Compared::Rank,
        file: FileKind::with(ranking::KIND, &["candidates"]),
        schema: SchemaGenerator::subschema_for::<RankSettings>,
        words: locklab_native::WORDS,
        append: &[],
    },
    Kind {
        compared: Compared::Kernels,
        file: FileKind::with(locklab_kernel::recipe::KIND, &["kernel"]),
        schema: SchemaGenerator::subschema_for::<locklab_kernel::recipe::Experiment>,
        words: Words::USUAL,
        append: &[locklab_kernel::report::append],
    },
    Kind {
        compared: Compared::Published,
        file: FileKind::with("published", &["report", "machine"]),
        schema: SchemaGenerator::subschema_for::<locklab_published::Experiment>,
        words: Words::USUAL,
        append: &[],
    },
];

fn named(word: &str) -> Option<&'static Kind> {
    KINDS.iter().find(|kind| kind.file.word == word)
}

/// Returns the words in which reports of a kind speak of what is compared.
pub(crate) fn words(kind: &str) -> Words {
    named(kind).map_or(Words::USUAL, |kind| kind.words)
}

/// Appends to a report what the backends of its kind have of their own.
pub(crate) fn append(experiment: &Experiment, verdicts: &Verdicts, report: &mut Document) {
    for append in named(&experiment.kind).map_or(&[][..], |kind| kind.append) {
        append(experiment, verdicts, report);
    }
}
