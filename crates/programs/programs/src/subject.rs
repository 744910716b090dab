//! One of the two sides of a comparison of programs, with what differs.
//!
//! It gives the name of a subject, the folders of its programs and the
//! variables of its processes; it must never start one (see
//! [`crate::launcher`]).

use locklab_host::error::Error;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

/// glibc's own mutexes, with nothing interposed.
pub const PTHREAD: &str = "pthread";
/// glibc's own mutexes behind the interposer that other locks use.
pub const PTHREAD_INTERPOSED: &str = "pthread-interposed";

/// One of the two sides: its command, lock, build and environment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Subject {
    /// Its name in reports; made from the rest if absent.
    pub name: Option<String>,
    /// The command of a `command` workload.
    pub command: Option<String>,
    /// The lock under its pthread mutexes: a name of `locklab locks`,
    /// `pthread` for none but glibc's own, `pthread-interposed` for glibc's
    /// own behind the same interposer.
    pub lock: Option<String>,
    /// A folder that is searched for its programs before `PATH`; `{build}`
    /// in a command stands for it.
    pub build: Option<PathBuf>,
    /// Variables of its environment.
    pub env: BTreeMap<String, String>,
    /// Says whether unlock is inlined, for a program that is built for the
    /// comparison.
    pub inline: Option<Inline>,
}

/// Says whether a lock's release is inlined at its call sites.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Inline {
    /// A copy at each call site.
    Always,
    /// One function.
    Never,
}

impl Inline {
    /// Returns the word used on the command line.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Always => "always",
            Self::Never => "never",
        }
    }

    /// Parses both sides of `unlock=never|always`, the baseline first.
    ///
    /// # Errors
    /// If the text has another form; the message shows the right one.
    pub fn parse_pair(text: &str) -> Result<[Self; 2], Error> {
        let of = |word: &str| match word.trim() {
            "always" => Some(Self::Always),
            "never" => Some(Self::Never),
            _ => None,
        };
        let pair = text.strip_prefix("unlock=").and_then(|pair| {
            let (b, e) = pair.split_once('|')?;
            Some([of(b)?, of(e)?])
        });
        pair.ok_or_else(|| {
            Error::Usage(format!(
                "'{text}' is not what can be inlined; write unlock=never|always"
            ))
        })
    }
}

impl Subject {
    /// Returns its name in reports.
    #[must_use]
    pub fn label(&self) -> String {
        if let Some(name) = &self.name {
            return name.clone();
        }
        let mut parts = Vec::new();
        if let Some(command) = &self.command {
            parts.push(command.clone());
        }
        if let Some(lock) = &self.lock {
            parts.push(lock.clone());
        }
        if let Some(build) = &self.build {
            parts.push(format!("build {}", build.display()));
        }
        if let Some(inline) = self.inline {
            parts.push(format!("unlock inlined {}", inline.word()));
        }
        parts.extend(self.env.iter().map(|(k, v)| format!("{k}={v}")));
        if parts.is_empty() {
            parts.push("as installed".into());
        }
        parts.join(", ")
    }

    /// Returns the library that has to be loaded into its processes, if its lock
    /// takes one.
    fn interposed(&self) -> Option<&str> {
        self.lock.as_deref().filter(|lock| *lock != PTHREAD)
    }

    /// Folders of its programs, before `PATH`.
    #[must_use]
    pub fn folders(&self) -> Vec<PathBuf> {
        let Some(build) = &self.build else {
            return Vec::new();
        };
        let build = std::path::absolute(build).unwrap_or_else(|_| build.clone());
        ["", "bin", "sbin"].map(|below| build.join(below)).into()
    }

    /// Returns the variables that its processes get in addition to those of this
    /// process.
    ///
    /// # Errors
    /// If there is no library for its lock, or its build folder
    /// cannot be in `PATH`.
    pub fn environment(&self) -> Result<Vec<(OsString, OsString)>, Error> {
        let mut all: Vec<(OsString, OsString)> = vec![("LC_ALL".into(), "C".into())];
        let mut preload: Vec<OsString> = Vec::new();
        if let Some(lock) = self.interposed() {
            let name = match lock {
                PTHREAD_INTERPOSED => PTHREAD,
                other => other,
            };
            preload.push(locklab_libraries::interposer()?.into());
            all.push(("LOCKLAB_LOCK".into(), name.into()));
        }
        if let Some(build) = &self.build {
            let folders = self.folders();
            let path = std::env::var_os("PATH").unwrap_or_default();
            let path =
                std::env::join_paths(folders.into_iter().chain(std::env::split_paths(&path)))
                    .map_err(|e| {
                        Error::Usage(format!("the build folder {}: {e}", build.display()))
                    })?;
            all.push(("PATH".into(), path));
            let libraries = std::path::absolute(build).unwrap_or_else(|_| build.clone());
            if libraries.join("lib").is_dir() {
                all.push(("LD_LIBRARY_PATH".into(), libraries.join("lib").into()));
            }
        }
        for (name, value) in &self.env {
            if name == "LD_PRELOAD" {
                preload.push(value.into());
            } else {
                all.push((name.into(), value.into()));
            }
        }
        if !preload.is_empty() {
            all.push(("LD_PRELOAD".into(), preload.join(&OsString::from(":"))));
        }
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_comes_first_and_variables_are_its_own() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("lib")).unwrap();
        let subject = Subject {
            build: Some(folder.path().into()),
            env: [("LD_PRELOAD", "/lib/a.so"), ("N", "1")]
                .map(|(k, v)| (k.to_owned(), v.to_owned()))
                .into(),
            ..Subject::default()
        };
        let environment = subject.environment().unwrap();
        let get = |name: &str| {
            let found = environment.iter().find(|(k, _)| k == name);
            found.map(|(_, v)| v.to_string_lossy().into_owned())
        };
        let at = folder.path().display();
        assert!(
            get("PATH")
                .unwrap()
                .starts_with(&format!("{at}/:{at}/bin:{at}/sbin:"))
        );
        assert_eq!(get("LD_LIBRARY_PATH"), Some(format!("{at}/lib")));
        assert_eq!(get("LD_PRELOAD").as_deref(), Some("/lib/a.so"));
        assert_eq!(get("N").as_deref(), Some("1"));
        assert_eq!(
            subject.label(),
            format!("build {at}, LD_PRELOAD=/lib/a.so, N=1")
        );
        assert_eq!(Subject::default().label(), "as installed");
    }

    #[test]
    fn both_sides_of_inlining_are_written_in_one_form() {
        let pair = Inline::parse_pair("unlock=never|always");
        assert_eq!(pair, Ok([Inline::Never, Inline::Always]));
        for wrong in ["unlock=never", "lock=never|always", "unlock=maybe|always"] {
            let error = Inline::parse_pair(wrong).unwrap_err().to_string();
            assert!(error.contains("unlock=never|always"), "{error}");
        }
    }
}
