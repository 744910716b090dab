//! Experiment files: one form for all kinds, TOML, whose `kind` says what is
//! compared and so which other settings there may be.
//!
//! Each instrument defines the settings of its kind; this module has the common
//! part: how the kind is found, and how an error names its line. It must never
//! run anything.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::path::Path;
use toml::Spanned;
use toml::de::DeTable;

/// The kind of comparison of an experiment file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileKind {
    /// Two locks in a matrix of threads and lengths.
    Matrix,
    /// Two programs, builds or environments under workloads.
    Programs,
    /// Two kernels.
    Kernels,
    /// Published figures, simulated for comparison.
    Published,
}

impl FileKind {
    /// Every kind.
    pub const ALL: [Self; 4] = [Self::Matrix, Self::Programs, Self::Kernels, Self::Published];

    /// The word that a file uses.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Matrix => "matrix",
            Self::Programs => "programs",
            Self::Kernels => "kernels",
            Self::Published => "published",
        }
    }

    /// Finds the kind of a file with this text.
    ///
    /// # Errors
    /// If the text is not TOML, or has no known `kind`, as a file of version
    /// 0.1. The message has the line, and the line to write.
    pub fn of(text: &str) -> Result<Self, String> {
        let table: toml::Table = toml::from_str(text).map_err(|e| located(text, &e))?;
        let words = Self::ALL
            .map(|kind| format!("\"{}\"", kind.word()))
            .join(", ");
        let Some(kind) = table.get("kind") else {
            let line = first_setting(text);
            let kind = likely(&table).word();
            return Err(format!(
                "line {line}: the file does not say what it compares; write kind = \"{kind}\" \
                 above this line (there are {words})"
            ));
        };
        let word = kind.as_str().unwrap_or("a value without quotes");
        let found = Self::ALL.into_iter().find(|kind| kind.word() == word);
        found.ok_or_else(|| {
            let sets = |line: &str| line.trim_start().starts_with("kind");
            let line = text.lines().position(sets).unwrap_or(0) + 1;
            if word == "sweep" {
                return format!(
                    "line {line}: a sweep is many experiments; run it with locklab sweep FILE"
                );
            }
            format!("line {line}: '{word}' is no kind of experiment; there are {words}")
        })
    }
}

/// Reads an experiment file.
///
/// # Errors
/// If the file cannot be read; the message has its name.
pub fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|e| format!("cannot read {}: {e}", path.display()))
}

/// Parses the settings in the text of a file.
///
/// # Errors
/// If it is not TOML, or a key is unknown, missing or of the wrong type; the
/// message has the line.
pub fn parse<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    toml::from_str(text).map_err(|e| sentence(text, culprit::<T>(text, &e), &e))
}

/// Where the setting is that is to blame for an error: where the error is,
/// unless that is the whole file. serde does not know more of settings that
/// several kinds of file share; then it is the setting without which the error
/// is another.
fn culprit<T: DeserializeOwned>(text: &str, error: &toml::de::Error) -> usize {
    let span = error.span().unwrap_or_default();
    let Ok(table) = DeTable::parse(text) else {
        return span.start;
    };
    if span != table.span() && !span.is_empty() {
        return span.start;
    }
    let is_to_blame = |name: &&Spanned<Cow<'_, str>>| {
        let mut others = table.clone();
        others.get_mut().remove(*name);
        let other = T::deserialize(toml::Deserializer::from(others));
        // Without a setting that must be there nothing else is read.
        other.err().is_none_or(|other| {
            let other = other.message();
            other != error.message() && !other.starts_with("missing field")
        })
    };
    let blamed = table.get_ref().keys().find(is_to_blame);
    blamed.map_or(span.start, |name| name.span().start)
}

fn located(text: &str, error: &toml::de::Error) -> String {
    sentence(text, error.span().map_or(0, |span| span.start), error)
}

fn sentence(text: &str, at: usize, error: &toml::de::Error) -> String {
    let line = text[..at.min(text.len())].matches('\n').count() + 1;
    let words: Vec<&str> = error.message().split_whitespace().collect();
    format!("line {line}: {}", words.join(" "))
}

/// The line of the first setting or table, where one more setting can stand.
fn first_setting(text: &str) -> usize {
    let sets = |line: &str| !line.trim().is_empty() && !line.trim_start().starts_with('#');
    text.lines().position(sets).unwrap_or(0) + 1
}

/// The kind of a file of version 0.1, by the settings that only that kind
/// had.
fn likely(table: &toml::Table) -> FileKind {
    let has = |name: &str| table.contains_key(name);
    if has("report") || has("machine") {
        FileKind::Published
    } else if has("kernel") {
        FileKind::Kernels
    } else if has("threads") {
        FileKind::Matrix
    } else {
        FileKind::Programs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kind_is_what_the_file_says() {
        for kind in FileKind::ALL {
            let text = format!("# a comment\nkind = \"{}\"\npairs = 8\n", kind.word());
            assert_eq!(FileKind::of(&text), Ok(kind));
        }
        let error = FileKind::of("pairs = 3\nkind = 'lock'").unwrap_err();
        assert!(error.starts_with("line 2: 'lock' is no kind"), "{error}");
        let error = FileKind::of("kind = 'sweep'").unwrap_err();
        assert!(error.ends_with("run it with locklab sweep FILE"), "{error}");
    }

    #[test]
    fn a_file_without_a_kind_is_refused_with_the_line_to_write() {
        for (text, line, kind) in [
            ("# a comment\n\npairs = 20\n", 3, "programs"),
            ("[[workload]]\nname = 'gcc'\n", 1, "programs"),
            (
                "name = 'x'\n[kernel]\nsource = 'debian:6.1'\n",
                1,
                "kernels",
            ),
            ("report = 4\nmachine = 'amd64-8'\n", 1, "published"),
        ] {
            let error = FileKind::of(text).unwrap_err();
            let start = format!("line {line}: ");
            assert!(error.starts_with(&start), "{error}");
            assert!(error.contains(&format!("kind = \"{kind}\"")), "{error}");
        }
    }

    #[test]
    fn an_error_names_its_line() {
        #[derive(Debug, Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Settings {
            #[allow(dead_code, reason = "only read")]
            pears: u32,
            #[allow(dead_code, reason = "only read")]
            #[serde(flatten)]
            design: crate::settings::DesignSettings,
        }
        for (text, part) in [
            ("pears = 'many'", "line 1: invalid type"),
            ("pears = 1\npairs = 'many'", "line 2: invalid type"),
            ("pears = 1\n# margin\ndelta = 0", "line 3: 0 is no margin"),
            (
                "pears = 1\npeers = 20\npairs = 8",
                "line 2: unknown field `peers`",
            ),
            ("pairs = 8", "line 1: missing field `pears`"),
            ("pears = 1\npairs", "line 2: "),
        ] {
            let error = parse::<Settings>(text).unwrap_err();
            assert!(error.contains(part), "{error}");
            assert_eq!(error.lines().count(), 1, "{error}");
        }
    }
}
