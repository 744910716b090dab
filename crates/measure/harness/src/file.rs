//! Experiment files: one form for all kinds, TOML, whose `kind` says what is
//! compared and so which other settings there may be.
//!
//! Each backend defines the settings of its kind; this module has the common
//! part: how the kind is found, and how an error names its line. It must never
//! run anything.

use crate::experiment::kind_of_today;
use crate::list::numbers;
use locklab_host::error::Error;
use serde::de::DeserializeOwned;
use std::borrow::Cow;
use std::path::Path;
use toml::Spanned;
use toml::de::DeTable;

/// Says what to do instead of a sweep, which versions 0.2 and 0.3 had as a command and as a
/// kind of file.
pub const SWEEP: &str = "sweeps ended with version 0.3; write a file of kind \"matrix\" or \"rank\" \
    for each machine, and run 'locklab compare FILE --chunk I/N' for each I, here or as an array \
    of jobs (docs/sweeps.md); 'locklab results list --store' opens the store.sqlite of a sweep";

/// A kind of experiment file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileKind {
    /// The word that a file uses.
    pub word: &'static str,
    /// Settings that only this kind has, by which the error of a file without
    /// a kind proposes one; none for the kind that all others are.
    pub settings: &'static [&'static str],
}

impl FileKind {
    /// Returns the kind of this word, which has these settings and no other kind has.
    #[must_use]
    pub const fn with(word: &'static str, settings: &'static [&'static str]) -> Self {
        Self { word, settings }
    }

    /// Returns the kind of this word, which has no setting that others have not.
    #[must_use]
    pub const fn other(word: &'static str) -> Self {
        Self::with(word, &[])
    }

    /// Finds which of these kinds a file with this text is.
    ///
    /// # Errors
    /// If the text is not TOML, or has no known `kind`. The message has the line,
    /// and the line to write.
    pub fn of(text: &str, kinds: &[Self]) -> Result<Self, Error> {
        Self::find(text, kinds, |word, known| {
            format!("'{word}' is no kind of experiment; there are {known}")
        })
    }

    /// Checks that a file with this text is of this kind.
    ///
    /// # Errors
    /// As of [`FileKind::of`]; of another kind, `foreign` says what is wrong
    /// with its word.
    pub fn check(self, text: &str, foreign: impl FnOnce(&str) -> String) -> Result<(), Error> {
        Self::find(text, &[self], |word, _| foreign(word)).map(drop)
    }

    /// Finds the kind of a file. `unknown` words the error of a kind that is none of
    /// these, from its word and the words of these.
    fn find(
        text: &str,
        kinds: &[Self],
        unknown: impl FnOnce(&str, &str) -> String,
    ) -> Result<Self, Error> {
        let table: toml::Table = toml::from_str(text).map_err(|e| located(text, &e))?;
        let words: Vec<String> = kinds.iter().map(|k| format!("\"{}\"", k.word)).collect();
        let known = words.join(", ");
        let Some(kind) = table.get("kind") else {
            let line = first_setting(text);
            let likely = likely(&table, kinds);
            return Err(Error::Usage(format!(
                "line {line}: the file does not say what it compares; write kind = \"{likely}\" \
                 above this line (there are {known})"
            )));
        };
        let word = kind.as_str().unwrap_or("a value without quotes");
        let is_word = |kind: &&Self| kind.word == kind_of_today(word);
        kinds.iter().find(is_word).copied().ok_or_else(|| {
            let sets = |line: &str| line.trim_start().starts_with("kind");
            let line = text.lines().position(sets).unwrap_or(0) + 1;
            let why = match word {
                "sweep" => SWEEP.into(),
                word => unknown(word, &known),
            };
            Error::Usage(format!("line {line}: {why}"))
        })
    }
}

/// Reads an experiment file.
///
/// # Errors
/// If the file cannot be read, or is not text; the message has its name.
pub fn read(path: &Path) -> Result<String, Error> {
    let not_read = |why: String| Error::Usage(format!("cannot read {}: {why}", path.display()));
    let bytes = std::fs::read(path).map_err(|e| not_read(e.to_string()))?;
    String::from_utf8(bytes).map_err(|e| {
        let text = &e.as_bytes()[..e.utf8_error().valid_up_to()];
        let line = text.iter().filter(|byte| **byte == b'\n').count() + 1;
        not_read(format!("line {line} is not text in UTF-8"))
    })
}

/// Parses the settings in the text of a file.
///
/// # Errors
/// If it is not TOML, or a key is unknown, missing or of the wrong type; the
/// message has the line.
pub fn parse<T: DeserializeOwned>(text: &str) -> Result<T, Error> {
    toml::from_str(text).map_err(|e| sentence(text, culprit::<T>(text, &e), &e))
}

/// Parses the settings in the text of a file, with these of `--set KEY=VALUE` over them.
///
/// # Errors
/// Those of [`parse`]; if the file is right, the message has the setting.
pub fn parse_with<T: DeserializeOwned>(text: &str, set: &[String]) -> Result<T, Error> {
    if set.is_empty() {
        return parse(text);
    }
    let mut table: toml::Table = toml::from_str(text).map_err(|e| located(text, &e))?;
    let mut last = None;
    for one in set {
        put(&mut table, one)?;
        let settings = T::deserialize(table.clone()).map_err(|e| {
            let words: Vec<&str> = e.message().split_whitespace().collect();
            // Without the setting, the file itself may be wrong.
            match parse::<T>(text) {
                Err(wrong) if !e.message().contains("unknown") => wrong,
                _ => Error::Usage(format!("--set {one}: {}", words.join(" "))),
            }
        })?;
        last = Some(settings);
    }
    last.map_or_else(|| parse(text), Ok)
}

/// Writes one `KEY=VALUE` into a table; a dot in the key leads into a table of it.
fn put(table: &mut toml::Table, one: &str) -> Result<(), Error> {
    let wrong = |why: &str| Error::Usage(format!("--set {one}: {why}"));
    let (key, value) = one
        .split_once('=')
        .ok_or_else(|| wrong("write KEY=VALUE, as in an experiment file"))?;
    let value = value.trim();
    let typed = toml::from_str::<toml::Table>(&format!("value = {value}\n")).ok();
    let typed = typed.filter(|table| table.len() == 1);
    let value = match (
        typed.and_then(|mut table| table.remove("value")),
        numbers(value),
    ) {
        (Some(value), _) => value,
        (None, Some(list)) => {
            let list = list
                .into_iter()
                .map(|n| i64::try_from(n).unwrap_or(i64::MAX));
            list.map(toml::Value::Integer).collect::<Vec<_>>().into()
        }
        (None, None) => toml::Value::String(value.to_owned()),
    };
    let mut path: Vec<&str> = key.trim().split('.').collect();
    let name = path.pop().filter(|name| !name.is_empty());
    let name = name
        .ok_or_else(|| wrong("the key is missing"))?
        .replace('-', "_");
    let mut here = table;
    for part in path {
        let below = here
            .entry(part)
            .or_insert_with(|| toml::Table::new().into());
        here = below
            .as_table_mut()
            .ok_or_else(|| wrong(&format!("'{part}' is no table of the file")))?;
    }
    here.insert(name, value);
    Ok(())
}

/// Reads the settings in an experiment file, with these of `--set` over them.
///
/// # Errors
/// Those of [`read`] and [`parse_with`]; the message has the name of the file.
pub fn settings<T: DeserializeOwned>(path: &Path, set: &[String]) -> Result<T, Error> {
    parse_with(&read(path)?, set).map_err(|e| e.within(path))
}

/// Returns where the setting is that is to blame for an error: where the error is, unless
/// that is the whole file. serde does not know more of settings that several kinds of
/// file share; then it is the setting without which the error is another.
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

fn located(text: &str, error: &toml::de::Error) -> Error {
    sentence(text, error.span().map_or(0, |span| span.start), error)
}

fn sentence(text: &str, at: usize, error: &toml::de::Error) -> Error {
    let line = text[..at.min(text.len())].matches('\n').count() + 1;
    let words: Vec<&str> = error.message().split_whitespace().collect();
    let why = words.join(" ");
    Error::Usage(format!("line {line}: {why}"))
}

/// Returns the line of the first setting or table, where one more setting can stand.
fn first_setting(text: &str) -> usize {
    let sets = |line: &str| !line.trim().is_empty() && !line.trim_start().starts_with('#');
    text.lines().position(sets).unwrap_or(0) + 1
}

/// Returns the kind that a file without one most likely is, by the settings that
/// only that kind has; the kind without such settings comes last.
fn likely(table: &toml::Table, kinds: &[FileKind]) -> &'static str {
    let has = |name: &&str| table.contains_key(*name);
    let by_setting = kinds.iter().find(|kind| kind.settings.iter().any(has));
    let other = || kinds.iter().find(|kind| kind.settings.is_empty());
    let likely = by_setting.or_else(other).or(kinds.first());
    likely.map_or("", |kind| kind.word)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    const KINDS: [FileKind; 3] = [
        FileKind::with("dice", &["sides", "throws"]),
        FileKind::with("cards", &["suits"]),
        FileKind::other("compare"),
    ];

    #[test]
    fn the_kind_is_what_the_file_says_in_the_word_of_today_or_of_version_0_2() {
        let of = |word: &str| {
            let text = format!("# a comment\nkind = \"{word}\"\npairs = 8\n");
            FileKind::of(&text, &KINDS)
        };
        for kind in KINDS {
            assert_eq!(of(kind.word), Ok(kind));
        }
        assert_eq!(of("programs"), Ok(KINDS[2]));
        let error = FileKind::of("pairs = 3\nkind = 'lock'", &KINDS)
            .unwrap_err()
            .to_string();
        assert!(error.starts_with("line 2: 'lock' is no kind"), "{error}");
        assert!(error.ends_with("there are \"dice\", \"cards\", \"compare\""));
        let error = FileKind::of("kind = 'sweep'", &KINDS)
            .unwrap_err()
            .to_string();
        assert!(error.ends_with(SWEEP), "{error}");
    }

    #[test]
    fn a_file_without_a_kind_is_refused_with_the_line_to_write() {
        for (text, line, kind) in [
            ("# a comment\n\npairs = 20\n", 3, "compare"),
            ("[[workload]]\nname = 'gcc'\n", 1, "compare"),
            ("name = 'x'\n[throws]\nn = 2\n", 1, "dice"),
            ("report = 4\nsuits = 4\n", 1, "cards"),
        ] {
            let error = FileKind::of(text, &KINDS).unwrap_err().to_string();
            let start = format!("line {line}: ");
            assert!(error.starts_with(&start), "{error}");
            assert!(error.contains(&format!("kind = \"{kind}\"")), "{error}");
        }
    }

    #[test]
    fn a_file_that_is_not_text_is_refused_with_its_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("latin.toml");
        std::fs::write(&path, b"pairs = 8\ntitle = \"caf\xe9\"\n").unwrap();
        let error = read(&path).unwrap_err().to_string();
        assert!(error.contains("latin.toml"), "{error}");
        assert!(error.ends_with("line 2 is not text in UTF-8"), "{error}");
        // A folder has no line.
        let error = read(folder.path()).unwrap_err().to_string();
        assert_eq!(error.lines().count(), 1, "{error}");
    }

    #[test]
    fn a_setting_of_the_command_line_is_laid_over_those_of_the_file() {
        #[derive(Debug, Deserialize, PartialEq)]
        #[serde(deny_unknown_fields)]
        struct Settings {
            seed: u64,
            name: Option<String>,
            #[serde(default)]
            locks: Vec<u64>,
            env: Option<toml::Table>,
        }
        let with = |set: &[&str]| {
            let set: Vec<String> = set.iter().map(|one| (*one).to_owned()).collect();
            parse_with::<Settings>("seed = 1\nlocks = [2]\n", &set)
        };
        let settings = with(&["seed=7", "name=a b", "locks=1,4..6", "env.PATH=/bin"]).unwrap();
        assert_eq!((settings.seed, settings.name.as_deref()), (7, Some("a b")));
        assert_eq!(settings.locks, [1, 4, 6]);
        assert_eq!(settings.env.unwrap()["PATH"].as_str(), Some("/bin"));
        for (one, part) in [
            ("sead=7", "--set sead=7: unknown field `sead`"),
            ("seed=many", "--set seed=many: invalid type"),
            ("seed", "write KEY=VALUE"),
            ("=7", "the key is missing"),
            ("seed.x=7", "'seed' is no table"),
        ] {
            let error = with(&[one]).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
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
            let error = parse::<Settings>(text).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
            assert_eq!(error.lines().count(), 1, "{error}");
        }
    }
}
