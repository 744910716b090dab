//! Lists what makes a kernel: its source, its configuration, its patches, and
//! what is inlined in it. Parts are checked and joined here; nothing is built.

use locklab_host::error::Error;
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Part of a recipe; lists of several parts are joined, and a later single
/// value replaces an earlier one.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Changes {
    /// `debian:6.1`, a folder, or `git:FOLDER#REVISION`.
    pub source: Option<String>,
    /// `workloads`, `defconfig`, or a file of options.
    pub config: Option<String>,
    /// Options on top, as `CONFIG_X=y`.
    #[serde(default)]
    pub options: Vec<String>,
    /// Patch files, applied with -p1.
    #[serde(default)]
    pub patches: Vec<PathBuf>,
    /// Kconfig symbols that the architecture selects.
    #[serde(default)]
    pub select: Vec<String>,
    /// Functions to mark `__always_inline`.
    #[serde(default)]
    pub always_inline: Vec<String>,
    /// Functions to mark `noinline`.
    #[serde(default)]
    pub noinline: Vec<String>,
    /// Functions into which everything is inlined.
    #[serde(default)]
    pub flatten: Vec<String>,
    /// `gcc` or `clang`.
    pub cc: Option<String>,
    /// Further variables for make, such as `KCFLAGS = "-O1"`.
    #[serde(default)]
    pub make: BTreeMap<String, String>,
    /// Kernel command line.
    #[serde(default)]
    pub cmdline: String,
    /// A bzImage that exists: nothing is built, and only `modules` and
    /// `cmdline` may be given beside it.
    pub image: Option<PathBuf>,
    /// The modules of that image, as `/lib/modules/VERSION`.
    pub modules: Option<PathBuf>,
}

impl Changes {
    /// Adds a patch and the option that enables it, unless it has them.
    pub fn equip(&mut self, patch: PathBuf, option: &str) {
        if !self.patches.contains(&patch) {
            self.patches.push(patch);
            self.options.push(option.into());
        }
    }

    /// Returns whether it says how a kernel is built.
    fn builds(&self) -> bool {
        let found = Self {
            image: self.image.clone(),
            modules: self.modules.clone(),
            cmdline: self.cmdline.clone(),
            ..Self::default()
        };
        *self != found
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.image.is_some() && self.builds() {
            return Err(Error::Usage(
                "an image that exists is not built; beside image there may be modules and cmdline"
                    .into(),
            ));
        }
        if self.modules.is_some() && self.builds() {
            return Err(Error::Usage(
                "modules belong to an image; a build has its own".into(),
            ));
        }
        for option in &self.options {
            let good = option
                .strip_prefix("CONFIG_")
                .and_then(|rest| rest.split_once('='))
                .is_some_and(|(name, value)| is_symbol(name) && !value.is_empty());
            if !good {
                return Err(Error::Usage(format!(
                    "'{option}' is not an option; write CONFIG_NAME=VALUE (CONFIG_NAME=n to turn \
                     it off)"
                )));
            }
        }
        for name in &self.select {
            if !is_symbol(name) {
                return Err(Error::Usage(format!(
                    "'{name}' is not a Kconfig symbol; write it without CONFIG_, in capitals"
                )));
            }
        }
        for name in self
            .always_inline
            .iter()
            .chain(&self.noinline)
            .chain(&self.flatten)
        {
            let mut letters = name.chars();
            let good = letters
                .next()
                .is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
                && letters.all(|c| c.is_ascii_alphanumeric() || c == '_');
            if !good {
                return Err(Error::Usage(format!("'{name}' is not a function's name")));
            }
        }
        if let Some(twice) = self
            .always_inline
            .iter()
            .find(|name| self.noinline.contains(name))
        {
            return Err(Error::Usage(format!(
                "{twice} cannot be both always_inline and noinline"
            )));
        }
        match self.cc.as_deref() {
            None | Some("gcc" | "clang") => Ok(()),
            Some(other) => Err(Error::Usage(format!(
                "the compiler '{other}' is not known; write gcc or clang"
            ))),
        }
    }

    pub(crate) fn add(&mut self, other: &Self) {
        for (mine, theirs) in [
            (&mut self.image, &other.image),
            (&mut self.modules, &other.modules),
        ] {
            if theirs.is_some() {
                mine.clone_from(theirs);
            }
        }
        for (mine, theirs) in [
            (&mut self.source, &other.source),
            (&mut self.config, &other.config),
            (&mut self.cc, &other.cc),
        ] {
            if theirs.is_some() {
                mine.clone_from(theirs);
            }
        }
        self.options.extend_from_slice(&other.options);
        self.patches.extend_from_slice(&other.patches);
        self.select.extend_from_slice(&other.select);
        self.always_inline.extend_from_slice(&other.always_inline);
        self.noinline.extend_from_slice(&other.noinline);
        self.flatten.extend_from_slice(&other.flatten);
        self.make
            .extend(other.make.iter().map(|(k, v)| (k.clone(), v.clone())));
        if !other.cmdline.is_empty() {
            if !self.cmdline.is_empty() {
                self.cmdline.push(' ');
            }
            self.cmdline.push_str(&other.cmdline);
        }
    }
}

fn is_symbol(name: &str) -> bool {
    !name.is_empty()
        && name
            .chars()
            .all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
}
