//! Reads what threads do around locks, as options and as keys of a file: the same for
//! a matrix and a ranking, here and on a model. All of them make
//! [`Cells`] of it.

use crate::list::{self, Numbers};
use clap::{Args, ValueEnum};
use locklab_host::error::Error;
use locklab_workload::{Cells, Choice, Distribution, MOST_THREADS, Mix, Unit, Work, mix};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::str::FromStr;

/// The cells of two locks or of many, as options and as keys of a file.
#[derive(Clone, Debug, Default, PartialEq, Args, Serialize, Deserialize, JsonSchema)]
#[command(next_help_heading = "Cells")]
#[serde(default)]
pub struct CellSettings {
    /// Numbers of threads, such as 1,2,4..64
    #[arg(long, short, value_name = "LIST")]
    pub threads: Option<Threads>,
    /// Lengths of the critical section
    #[arg(long, value_name = "LIST")]
    pub critical: Option<Numbers>,
    /// Lengths of the non-critical section
    #[arg(long, value_name = "LIST")]
    pub non_critical: Option<Numbers>,
    /// Measure the latency of each acquisition too, in separate slices
    #[arg(long, hide_short_help = true)]
    pub latency: bool,
}

/// Describes what threads do around a lock, as options and as keys of a file.
#[derive(Clone, Debug, Default, PartialEq, Args, Serialize, Deserialize, JsonSchema)]
#[command(next_help_heading = "What threads do")]
#[serde(default)]
pub struct WorkloadSettings {
    /// Unit of lengths: n + 1 units of about 15 cycles, or nanoseconds
    #[arg(long, value_enum)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unit: Option<UnitWord>,
    /// Percentage of acquisitions that only read [default: 0]
    #[arg(long, value_name = "PERCENT")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reads: Option<u32>,
    /// Shared lines that a critical section touches: writers write them,
    /// readers read them; 1 by default.
    #[arg(skip)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lines: Option<u32>,
    /// Distribution of the time outside the critical section: fixed (the default), uniform,
    /// exponential, bursty.
    #[arg(skip)]
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub distribution: Option<Distribution>,
    /// Numbers of locks that are used at once, such as 1,4,64; 1 by default.
    #[arg(skip)]
    #[serde(rename = "locks", skip_serializing_if = "Option::is_none")]
    pub lock_counts: Option<Numbers>,
    /// How one of several locks is chosen: uniform (the default), zipf.
    #[arg(skip)]
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub choice: Option<Choice>,
    /// The time that each holder sleeps in its critical section, as one that does I/O: 50us,
    /// 2ms.
    #[arg(skip)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hold_sleep: Option<Sleep>,
    /// Length of the first thread's critical sections, a hog among the others, in the unit of
    /// lengths; as long as the others' by default.
    #[arg(skip)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hog: Option<u64>,
    /// Two of the locks are taken, one within the other, in the order of their
    /// addresses.
    #[arg(skip)]
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub nested: bool,
}

/// `--unit`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum UnitWord {
    /// n means n + 1 units of about 15 cycles
    Units,
    /// Nanoseconds, by a calibration at start or by the clock of the model
    Ns,
}

/// A time to sleep: a number with its unit, as in 50us.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct Sleep(u64);

impl Sleep {
    /// Units in ns, the longest first.
    const UNITS: [(&'static str, u64); 4] = [
        ("ms", 1_000_000),
        ("us", 1_000),
        ("ns", 1),
        ("s", 1_000_000_000),
    ];

    /// Returns a length of so many nanoseconds.
    #[must_use]
    pub const fn nanoseconds(ns: u64) -> Self {
        Self(ns)
    }
}

impl FromStr for Sleep {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = Self::UNITS
            .iter()
            .find_map(|(unit, ns)| Some((text.strip_suffix(unit)?.parse::<u64>().ok()?, *ns)));
        match parts {
            Some((count, ns)) if count > 0 => Ok(Self(count.saturating_mul(ns))),
            _ => Err(format!(
                "'{text}' is no time to sleep; give a number with its unit, such as 50us or 2ms"
            )),
        }
    }
}

impl TryFrom<String> for Sleep {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Sleep> for String {
    fn from(sleep: Sleep) -> Self {
        format!("{}ns", sleep.0)
    }
}

impl CellSettings {
    /// Makes the cells, in which threads do `turns`; these threads and lengths are of
    /// those that were not given.
    pub fn cells(
        &self,
        turns: &WorkloadSettings,
        work: Work,
        threads: impl FnOnce() -> Vec<usize>,
        [critical, non_critical]: [&[u64]; 2],
    ) -> Cells {
        let lengths = |given: &Option<Numbers>, default: &[u64]| {
            distinct(given.as_ref().map_or(default, |list| &list.0))
        };
        let given = self.threads.as_ref().map(Threads::distinct);
        turns.cells(Cells {
            threads: given.unwrap_or_else(threads),
            critical: lengths(&self.critical, critical),
            non_critical: lengths(&self.non_critical, non_critical),
            work,
            latency: self.latency,
            ..Cells::default()
        })
    }
}

impl WorkloadSettings {
    /// Makes these cells such that threads do what is set here.
    #[must_use]
    pub fn cells(&self, cells: Cells) -> Cells {
        Cells {
            unit: self.unit(),
            locks: self.locks(),
            mix: self.mix(),
            ..cells
        }
    }

    /// Returns the unit of lengths.
    #[must_use]
    pub fn unit(&self) -> Unit {
        match self.unit {
            None | Some(UnitWord::Units) => Unit::Units,
            Some(UnitWord::Ns) => Unit::Nanoseconds,
        }
    }

    /// Returns what a turn does beyond its lengths.
    #[must_use]
    pub fn mix(&self) -> Mix {
        let usual = Mix::default();
        Mix {
            reads: self.reads.unwrap_or(usual.reads),
            lines: self.lines.unwrap_or(usual.lines),
            distribution: self.distribution.unwrap_or_default(),
            choice: self.choice.unwrap_or_default(),
            nested: self.nested,
            hold_sleep_ns: self.hold_sleep.map_or(0, |sleep| sleep.0),
            hog: self.hog.unwrap_or(0),
        }
    }

    /// Returns the numbers of locks, each once.
    #[must_use]
    pub fn locks(&self) -> Vec<u32> {
        let Some(Numbers(list)) = &self.lock_counts else {
            return mix::one_lock();
        };
        // What is too large is refused by its own sentence.
        let counts = list.iter().map(|n| u32::try_from(*n).unwrap_or(u32::MAX));
        distinct(&counts.collect::<Vec<_>>())
    }
}

/// Returns a list without repetitions.
#[must_use]
pub fn distinct<T: Copy + PartialEq>(list: &[T]) -> Vec<T> {
    let mut distinct = Vec::with_capacity(list.len());
    for n in list {
        if !distinct.contains(n) {
            distinct.push(*n);
        }
    }
    distinct
}

/// Numbers of threads: at least one of them, each at least 1.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "Vec<u64>", into = "Vec<usize>")]
#[schemars(with = "Vec<u64>")]
pub struct Threads(Vec<usize>);

impl TryFrom<Vec<u64>> for Threads {
    type Error = String;

    fn try_from(list: Vec<u64>) -> Result<Self, String> {
        let most = MOST_THREADS;
        if list.is_empty() {
            return Err("no number of threads; ask for at least one".into());
        }
        list.into_iter()
            .map(|n| match usize::try_from(n) {
                Ok(0) => Err("zero threads do no work; ask for at least 1".into()),
                Ok(n) if n <= most => Ok(n),
                _ => Err(format!(
                    "{n} threads are more than the {most} that locks can name"
                )),
            })
            .collect::<Result<_, _>>()
            .map(Self)
    }
}

impl Threads {
    /// Returns each number once.
    #[must_use]
    pub fn distinct(&self) -> Vec<usize> {
        distinct(&self.0)
    }
}

impl From<Threads> for Vec<usize> {
    fn from(threads: Threads) -> Self {
        threads.0
    }
}

impl FromStr for Threads {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let list = list::parse_within(text, 1, MOST_THREADS as u64);
        list.map_err(|e| e.to_string())?.try_into()
    }
}

/// Checks that `--reads` makes a difference to any of these locks, each with
/// whether readers share it.
///
/// # Errors
/// If none does: a sentence that names those of `able` that do.
pub fn check_readers(
    mix: &Mix,
    mut shared: impl Iterator<Item = bool>,
    able: &[&str],
) -> Result<(), Error> {
    if mix.reads == 0 || shared.any(|shares| shares) {
        return Ok(());
    }
    Err(Error::Usage(format!(
        "readers can share none of these locks, so --reads has nothing to show; name one that \
         does ({})",
        able.join(", ")
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file;

    #[test]
    fn a_file_and_a_command_say_the_same() {
        let set = "reads=95 lines=4 distribution=bursty locks=1,4,1 choice=zipf nested=true unit=ns \
                   hold_sleep=50us hog=400";
        let set: Vec<String> = set.split(' ').map(str::to_owned).collect();
        let typed: WorkloadSettings = file::parse_with("", &set).unwrap();
        let read: WorkloadSettings = file::parse(
            "reads = 95\nlines = 4\ndistribution = 'bursty'\nlocks = [1, 4, 1]\nchoice = 'zipf'\n\
             nested = true\nunit = 'ns'\nhold_sleep = '50us'\nhog = 400\n",
        )
        .unwrap();
        assert_eq!(typed, read);
        assert_eq!(typed.locks(), [1, 4]);
        assert_eq!(typed.unit(), Unit::Nanoseconds);
        assert_eq!((typed.mix().reads, typed.mix().lines), (95, 4));
        assert_eq!((typed.mix().hold_sleep_ns, typed.mix().hog), (50_000, 400));
        for wrong in ["50", "us", "0us", "5min", "-1ms", ""] {
            let error = wrong.parse::<Sleep>().unwrap_err();
            assert!(error.contains("such as 50us or 2ms"), "{error}");
        }
        let usual = WorkloadSettings::default();
        assert!(usual.mix().is_usual() && mix::is_one_lock(&usual.locks()));
        let error = file::parse::<WorkloadSettings>("choice = 'pareto'")
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("line 1: unknown variant `pareto`"),
            "{error}"
        );
    }

    #[test]
    fn readers_need_a_lock_that_they_share() {
        let mix = Mix {
            reads: 90,
            ..Mix::default()
        };
        let of = |shared: &[bool]| check_readers(&mix, shared.iter().copied(), &["bravo"]);
        assert_eq!(of(&[false, true]), Ok(()));
        let error = of(&[false]).unwrap_err().to_string();
        assert!(error.contains("none of these locks") && error.contains("(bravo)"));
        assert_eq!(
            check_readers(&Mix::default(), [false].into_iter(), &[]),
            Ok(())
        );
    }
}
