//! Settings: one type for each comparison, which a command line and an
//! experiment file both fill, and the rule by which they come together: the
//! command takes precedence over the file, the file over the default.
//!
//! Such a type derives both `clap::Args` and serde's traits, so an option is
//! declared once, and its file has it by the same name. Every field is an
//! `Option`, a list or a flag; a default is decided where the settings become a
//! specification, and must never stand in one of these types, where it would
//! take precedence over a file.

use crate::experiment::Design;
use clap::Args;
use locklab_host::error::Error;
use locklab_judge::Family;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;
use std::time::Duration;

/// Returns the settings of `command`, and those of `file` where the command has none.
///
/// # Errors
/// If a setting cannot be written as text, such as a path that is not UTF-8.
pub fn over<T: Serialize + DeserializeOwned>(command: &T, file: &T) -> Result<T, Error> {
    let mut merged = as_value(file)?;
    lay_over(&mut merged, as_value(command)?);
    serde_json::from_value(merged)
        .map_err(|e| Error::Usage(format!("the settings contradict one another: {e}")))
}

/// The settings that have no option of their own, which a file and `--set KEY=VALUE` have.
pub const WITHOUT_OPTION: [&str; 20] = [
    "acquisitions",
    "boot_limit",
    "choice",
    "counters",
    "distribution",
    "hog",
    "hold_sleep",
    "layout",
    "lines",
    "lock_profile",
    "locks",
    "logs",
    "nested",
    "operations",
    "physical",
    "placement",
    "probe",
    "processes",
    "slice_us",
    "tcg",
];

/// Returns the settings that were given, each as it is typed.
#[must_use]
pub fn given(settings: &impl Serialize) -> Vec<String> {
    // What cannot be written as text was given, but has no name here.
    let Ok(Value::Object(fields)) = as_value(settings) else {
        return Vec::new();
    };
    let given = fields.iter().filter(|(_, value)| is_given(value));
    given
        .map(|(name, _)| match WITHOUT_OPTION.contains(&name.as_str()) {
            true => format!("--set {name}"),
            false => format!("--{}", name.replace('_', "-")),
        })
        .collect()
}

/// Refuses settings that are not used.
///
/// # Errors
/// If one was given: its option, and `why` it is not used.
pub fn refuse(settings: &impl Serialize, why: &str) -> Result<(), Error> {
    match given(settings).first() {
        Some(option) => Err(Error::Usage(format!("{option} {why}"))),
        None => Ok(()),
    }
}

fn as_value(settings: &impl Serialize) -> Result<Value, Error> {
    serde_json::to_value(settings)
        .map_err(|e| Error::Usage(format!("a setting cannot be written as text: {e}")))
}

/// Returns whether a setting was given: an absent one is null, an empty list, a table
/// without anything given, or a flag that is not set.
fn is_given(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => false,
        Value::Array(list) => !list.is_empty(),
        Value::Object(fields) => fields.values().any(is_given),
        _ => true,
    }
}

fn lay_over(below: &mut Value, above: Value) {
    match (below, above) {
        (Value::Object(below), Value::Object(above)) => {
            for (name, value) in above {
                lay_over(below.entry(name).or_insert(Value::Null), value);
            }
        }
        (below, above) if is_given(&above) => *below = above,
        _ => {}
    }
}

/// A percentage that is a margin: above 0 and below 100.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "f64", into = "f64")]
#[schemars(with = "f64")]
pub struct Percent(f64);

impl Percent {
    /// Returns it as a fraction of one.
    #[must_use]
    pub fn fraction(self) -> f64 {
        self.0 / 100.0
    }
}

/// Returns what counts as flat, unless something else was decided before the run.
impl Default for Percent {
    fn default() -> Self {
        Self(1.0)
    }
}

impl TryFrom<f64> for Percent {
    type Error = Error;

    fn try_from(percent: f64) -> Result<Self, Error> {
        if percent > 0.0 && percent < 100.0 {
            return Ok(Self(percent));
        }
        Err(Error::Usage(format!(
            "{percent} is no margin; give a percentage above 0 and below 100"
        )))
    }
}

impl From<Percent> for f64 {
    fn from(percent: Percent) -> Self {
        percent.0
    }
}

impl FromStr for Percent {
    type Err = Box<dyn std::error::Error + Send + Sync>;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(text.parse::<f64>()?.try_into()?)
    }
}

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A time limit in seconds.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "f64", into = "f64")]
#[schemars(with = "f64")]
pub struct Limit(f64);

impl Limit {
    /// The longest, in seconds: some months, which a clock can still add.
    const LONGEST: f64 = 1e7;

    /// Returns a limit of this many seconds, of which there is at least one.
    #[must_use]
    pub const fn seconds(seconds: u32) -> Self {
        Self(if seconds == 0 { 1.0 } else { seconds as f64 })
    }

    /// Returns it as a duration.
    #[must_use]
    pub fn duration(self) -> Duration {
        Duration::from_secs_f64(self.0)
    }
}

impl TryFrom<f64> for Limit {
    type Error = Error;

    fn try_from(seconds: f64) -> Result<Self, Error> {
        if seconds > 0.0 && seconds <= Self::LONGEST {
            return Ok(Self(seconds));
        }
        Err(Error::Usage(format!(
            "a time limit of {seconds} s leaves no time; give seconds above 0"
        )))
    }
}

impl From<Limit> for f64 {
    fn from(limit: Limit) -> Self {
        limit.0
    }
}

impl FromStr for Limit {
    type Err = Box<dyn std::error::Error + Send + Sync>;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(text.parse::<f64>()?.try_into()?)
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Settings of the design of every comparison.
#[derive(Clone, Debug, Default, PartialEq, Args, Serialize, Deserialize, JsonSchema)]
#[command(next_help_heading = "Statistics")]
#[serde(default)]
pub struct DesignSettings {
    /// Pairs of runs for each cell; a verdict needs at least 8
    #[arg(long, short = 'r', value_name = "N")]
    pub pairs: Option<u32>,
    /// Margin within which two are flat, in percent [default: 1]
    #[arg(long, value_name = "PERCENT")]
    pub delta: Option<Percent>,
    /// Seed of every random choice [default: 1]
    #[arg(long, value_name = "N", hide_short_help = true)]
    pub seed: Option<u64>,
    /// Most further rounds of --pairs for cells that are unclear after one; all looks
    /// share the 5 % [default: 0]
    #[arg(long, value_name = "N", hide_short_help = true)]
    pub retry: Option<u32>,
}

/// The most rounds beyond the first: with more of them each has too little of the 5 %.
const MOST_ROUNDS: u32 = 4;

/// The seed of every random choice, unless another was given.
pub const SEED: u64 = 1;

impl DesignSettings {
    /// Returns the seed of every random choice.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.seed.unwrap_or(SEED)
    }

    /// Returns δ as a fraction.
    #[must_use]
    pub fn delta(&self) -> f64 {
        self.delta.unwrap_or_default().fraction()
    }

    /// Refuses rounds for what is undecided.
    ///
    /// # Errors
    /// If they were asked for, with `why` there are none.
    pub fn without_retry(&self, why: &str) -> Result<&Self, Error> {
        match self.retry {
            Some(1..) => Err(Error::Usage(format!("--retry {why}"))),
            _ => Ok(self),
        }
    }

    /// Returns the design, of as many pairs as a backend takes by default.
    ///
    /// # Errors
    /// If the number of pairs is zero or too large.
    pub fn design(&self, pairs: u32, family: Family, aa: bool) -> Result<Design, Error> {
        let pairs = self.pairs.unwrap_or(pairs);
        if matches!(pairs, 0 | 100_001..) {
            return Err(Error::Usage(format!(
                "{pairs} pairs show nothing; give --pairs 8 or more"
            )));
        }
        let retry = self.retry.unwrap_or(0);
        if retry > MOST_ROUNDS {
            return Err(Error::Usage(format!(
                "--retry {retry} leaves each look too little of the 5 %; give {MOST_ROUNDS} or \
                 fewer, with more --pairs"
            )));
        }
        Ok(Design {
            pairs,
            retry,
            seed: self.seed(),
            delta: self.delta(),
            family,
            aa,
        })
    }
}

impl Design {
    /// Returns the design of a comparison for which nobody chose another than this many
    /// pairs.
    #[must_use]
    pub fn usual(pairs: u32) -> Self {
        Self {
            pairs,
            seed: SEED,
            delta: Percent::default().fraction(),
            family: Family::FalseDiscovery,
            aa: false,
            retry: 0,
        }
    }
}

/// A setting that has another name now: as an option, and in a file, it is
/// refused with the sentence of `T`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Renamed<T>(PhantomData<T>);

/// The name that a setting has now.
pub trait NewName: Clone + Send + Sync + 'static {
    /// Says what the old name means today, and what to write instead.
    const SENTENCE: &'static str;
}

impl<T: NewName> FromStr for Renamed<T> {
    type Err = Error;

    fn from_str(_: &str) -> Result<Self, Error> {
        Err(Error::Usage(T::SENTENCE.into()))
    }
}

impl<T> Serialize for Renamed<T> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_none()
    }
}

impl<'de, T: NewName> Deserialize<'de> for Renamed<T> {
    fn deserialize<D: serde::Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
        Err(serde::de::Error::custom(T::SENTENCE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
    #[serde(default)]
    struct Settings {
        seed: Option<u64>,
        run_limit: Option<f64>,
        threads: Vec<u32>,
        latency: bool,
        #[serde(flatten)]
        design: Nested,
        baseline: Nested,
    }

    #[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
    #[serde(default)]
    struct Nested {
        lock: Option<String>,
        env: BTreeMap<String, String>,
    }

    #[test]
    fn the_command_takes_precedence_over_the_file_even_with_a_default() {
        let file = Settings {
            seed: Some(5),
            run_limit: Some(0.1),
            threads: vec![1, 2],
            latency: true,
            baseline: Nested {
                lock: Some("mcs".into()),
                env: [("A".to_owned(), "1".to_owned())].into(),
            },
            ..Settings::default()
        };
        let command = Settings {
            seed: Some(1),
            threads: vec![4],
            baseline: Nested {
                lock: None,
                env: [("B".to_owned(), "2".to_owned())].into(),
            },
            ..Settings::default()
        };
        let both = over(&command, &file).unwrap();
        assert_eq!((both.seed, both.run_limit), (Some(1), Some(0.1)));
        assert_eq!((both.threads, both.latency), (vec![4], true));
        assert_eq!(both.baseline.lock.as_deref(), Some("mcs"));
        assert_eq!(both.baseline.env.len(), 2);
        assert_eq!(given(&command), ["--baseline", "--seed", "--threads"]);
        assert!(refuse(&Settings::default(), "is not used").is_ok());
    }

    #[test]
    fn a_margin_is_a_percentage() {
        for wrong in ["0", "-1", "100", "nan", "inf", "much"] {
            assert!(wrong.parse::<Percent>().is_err(), "{wrong}");
        }
        assert_eq!("0.5".parse::<Percent>().unwrap().fraction(), 0.005);
        let settings: DesignSettings = toml::from_str("delta = 2").unwrap();
        assert_eq!(settings.delta(), 0.02);
        assert_eq!(DesignSettings::default().delta(), 0.01);
        assert!(toml::from_str::<DesignSettings>("delta = 0").is_err());
    }
}
