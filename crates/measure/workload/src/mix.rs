//! The settings of a workload beyond its lengths, their checks, and the words
//! that describe them.

use locklab_host::error::Error;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The most locks of one workload.
pub const MOST_LOCKS: u32 = 100_000;

/// The longest sleep in a critical section, ns.
pub const LONGEST_SLEEP_NS: u64 = 1_000_000_000;

/// The most lines that a critical section touches.
pub const MOST_LINES: u32 = 4096;

/// The unit of the lengths of a matrix.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// n means n + 1 units of about 15 cycles on Ice Lake.
    #[default]
    Units,
    /// Nanoseconds, turned into units: natively by a calibration at start, on a
    /// model by its clock.
    Nanoseconds,
}

impl Unit {
    /// Returns whether it is the usual one.
    #[must_use]
    pub fn is_units(&self) -> bool {
        *self == Self::Units
    }
}

/// Says how the time outside the locks is distributed around its length, which is the
/// mean.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Distribution {
    /// Every turn has the mean length.
    #[default]
    Fixed,
    /// They are spread from none to twice the length.
    Uniform,
    /// Exponential: arrivals without a memory.
    Exponential,
    /// Seven turns of eight are followed by a tenth of the length, the eighth
    /// by a long pause, itself exponential.
    Bursty,
}

/// Says how one of several locks is chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Choice {
    /// All locks are equally likely.
    #[default]
    Uniform,
    /// The kth in proportion to 1 / k^0.99, as the database benchmark YCSB
    /// chooses its keys.
    Zipf,
}

/// Returns the meaning of a word of the command line.
fn word<T: Copy>(word: &str, all: &[(&'static str, T)]) -> Result<T, Error> {
    let found = all.iter().find(|(name, _)| *name == word);
    found.map(|(_, value)| *value).ok_or_else(|| {
        let known: Vec<&str> = all.iter().map(|(name, _)| *name).collect();
        Error::Usage(format!("'{word}' is not one of {}", known.join(", ")))
    })
}

impl FromStr for Distribution {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        word(text, &Self::WORDS)
    }
}

impl Distribution {
    /// Each with its name.
    pub const WORDS: [(&'static str, Self); 4] = [
        ("fixed", Self::Fixed),
        ("uniform", Self::Uniform),
        ("exponential", Self::Exponential),
        ("bursty", Self::Bursty),
    ];
}

impl FromStr for Choice {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        word(text, &Self::WORDS)
    }
}

impl Choice {
    /// Each with its name.
    pub const WORDS: [(&'static str, Self); 2] = [("uniform", Self::Uniform), ("zipf", Self::Zipf)];
}

impl fmt::Display for Distribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let own = Self::WORDS.iter().find(|(_, value)| value == self);
        f.write_str(own.map_or("", |(name, _)| name))
    }
}

/// Holds what a turn does, beyond its lengths and the number of locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Mix {
    /// Acquisitions that read, in percent.
    pub reads: u32,
    /// Shared lines that a critical section touches; writers write them,
    /// readers read them.
    pub lines: u32,
    /// Says how the time outside is distributed.
    pub distribution: Distribution,
    /// Says how one of several locks is chosen.
    pub choice: Choice,
    /// Says whether a turn takes two of the locks, one within the other, in the
    /// order of their addresses.
    pub nested: bool,
    /// Says how long each holder sleeps in its critical section, as one that does I/O,
    /// ns.
    #[serde(skip_serializing_if = "is_zero")]
    pub hold_sleep_ns: u64,
    /// Length of the first thread's critical sections, in the unit of the others; 0 if they
    /// are as long.
    #[serde(skip_serializing_if = "is_zero")]
    pub hog: u64,
}

impl Default for Mix {
    /// Returns one line, no readers, constant lengths.
    fn default() -> Self {
        Self {
            reads: 0,
            lines: 1,
            distribution: Distribution::Fixed,
            choice: Choice::Uniform,
            nested: false,
            hold_sleep_ns: 0,
            hog: 0,
        }
    }
}

impl Mix {
    /// Returns whether it is the usual one: every turn is like every other.
    #[must_use]
    pub fn is_usual(&self) -> bool {
        *self == Self::default()
    }

    /// Returns whether some acquisitions read and some write.
    #[must_use]
    pub fn has_both(&self) -> bool {
        (1..100).contains(&self.reads)
    }

    /// Returns whether its numbers make sense with each of these numbers of locks.
    ///
    /// # Errors
    /// The first number that makes none.
    pub fn check(&self, locks: &[u32]) -> Result<(), Error> {
        let Self { reads, lines, .. } = *self;
        if reads > 100 {
            return Err(Error::Usage(format!(
                "{reads} % of all acquisitions are more than all; give --reads 0 to 100"
            )));
        }
        if !(1..=MOST_LINES).contains(&lines) {
            return Err(Error::Usage(format!(
                "a critical section cannot touch {lines} lines; give --set lines=1 to {MOST_LINES}"
            )));
        }
        if self.hold_sleep_ns > LONGEST_SLEEP_NS {
            return Err(Error::Usage(
                "a holder that sleeps for more than a second is not run; give --set hold_sleep=1s \
                 or less"
                    .into(),
            ));
        }
        if locks.is_empty() {
            return Err(Error::Usage(
                "there is no number of locks; give --set locks=1 or more".into(),
            ));
        }
        if let Some(n) = locks.iter().find(|n| !(1..=MOST_LOCKS).contains(n)) {
            return Err(Error::Usage(format!(
                "{n} locks cannot be run; give --set locks=1 to {MOST_LOCKS}"
            )));
        }
        if self.nested && locks.contains(&1) {
            return Err(Error::Usage(
                "nested takes two locks at once; give --set locks=2 or more".into(),
            ));
        }
        if self.choice != Choice::Uniform && locks == [1] {
            return Err(Error::Usage(
                "choice chooses among several locks; give --set locks=2 or more".into(),
            ));
        }
        Ok(())
    }

    /// Returns whether so many lines fit a critical section of `units` units, each of
    /// which touches one; `length` is how it was given.
    ///
    /// # Errors
    /// [`Error::Usage`] if they do not.
    pub fn check_fits(&self, units: u64, length: u64, unit: Unit) -> Result<(), Error> {
        if u64::from(self.lines) <= units.max(1) {
            return Ok(());
        }
        let (lines, unit) = (self.lines, if unit.is_units() { "" } else { " ns" });
        let touched = units.max(1);
        Err(Error::Usage(format!(
            "{lines} lines are more than a critical section of length {length}{unit} touches, \
             which is {touched} (one for each unit of about 15 cycles); give fewer lines, or a \
             longer --critical"
        )))
    }

    /// Returns what is not as usual, in words; empty if nothing is.
    #[must_use]
    pub fn words(&self, locks: &[u32]) -> Vec<String> {
        let mut words = Vec::new();
        if self.reads > 0 {
            words.push(format!("{} % of the acquisitions read", self.reads));
        }
        if self.lines > 1 {
            words.push(format!("a critical section touches {} lines", self.lines));
        }
        if self.hold_sleep_ns > 0 {
            let us = self.hold_sleep_ns as f64 / 1e3;
            words.push(format!("each holder sleeps for {us} us"));
        }
        if self.hog > 0 {
            words.push(format!(
                "the first thread's critical sections have length {}",
                self.hog
            ));
        }
        match self.distribution {
            Distribution::Fixed => {}
            Distribution::Uniform => {
                words.push("the time outside is uniform, from none to twice the length".into());
            }
            Distribution::Exponential => {
                words.push("the time outside is exponential, its mean the length".into());
            }
            Distribution::Bursty => words.push(
                "the time outside is bursty: seven turns of eight a tenth of the length, the \
                 eighth a pause that keeps the mean"
                    .into(),
            ),
        }
        if locks != [1] {
            let counts: Vec<String> = locks.iter().map(u32::to_string).collect();
            let chosen = match self.choice {
                Choice::Uniform => "all equally often",
                Choice::Zipf => "by Zipf's law with exponent 0.99",
            };
            let how = if self.nested {
                "two at once, nested in the order of their addresses"
            } else {
                "one each turn"
            };
            words.push(format!("{} locks, {how}, {chosen}", counts.join(", ")));
        }
        words
    }
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Returns one lock, as usual.
#[must_use]
pub fn one_lock() -> Vec<u32> {
    vec![1]
}

/// Returns whether that is so.
#[must_use]
pub fn is_one_lock(locks: &[u32]) -> bool {
    locks == [1]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_makes_no_sense_is_said_in_a_sentence() {
        let usual = Mix::default();
        let zipf = Mix {
            choice: Choice::Zipf,
            ..usual
        };
        for (mix, locks, part) in [
            (
                Mix {
                    reads: 101,
                    ..usual
                },
                vec![1],
                "--reads 0 to 100",
            ),
            (Mix { lines: 0, ..usual }, vec![1], "--set lines=1 to"),
            (
                Mix {
                    nested: true,
                    ..usual
                },
                vec![1, 4],
                "--set locks=2 or more",
            ),
            (zipf, vec![1], "--set locks=2 or more"),
            (usual, vec![0], "0 locks cannot be run"),
            (usual, vec![100_001], "100001 locks cannot be run"),
            (
                Mix {
                    hold_sleep_ns: 2_000_000_000,
                    ..usual
                },
                vec![1],
                "--set hold_sleep=1s",
            ),
            (usual, vec![], "no number of locks"),
        ] {
            let error = mix.check(&locks).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
        assert_eq!(zipf.check(&[1, 4]), Ok(()));
        assert_eq!(usual.check(&[1]), Ok(()));
        let eight = Mix { lines: 8, ..usual };
        assert_eq!(eight.check_fits(8, 7, Unit::Units), Ok(()));
        let error = eight.check_fits(3, 2, Unit::Units).unwrap_err().to_string();
        assert!(error.contains("length 2 touches, which is 3"), "{error}");
        assert!("poisson".parse::<Distribution>().is_err());
        assert_eq!("bursty".parse(), Ok(Distribution::Bursty));
    }

    #[test]
    fn only_what_is_not_as_usual_has_words_and_is_stored() {
        assert!(Mix::default().words(&[1]).is_empty());
        let mix = Mix {
            reads: 90,
            nested: true,
            ..Mix::default()
        };
        let words = mix.words(&[2, 8]).join("; ");
        assert!(
            words.starts_with("90 % of the acquisitions read; 2, 8 locks"),
            "{words}"
        );
        assert!(serde_json::from_str::<Mix>("{\"reads\": 5}").unwrap().lines == 1);
    }
}
