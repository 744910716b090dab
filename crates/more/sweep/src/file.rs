//! The file of a sweep: what is compared, where, and what is left out.
//!
//! It holds settings only, and the checks that need no machine; [`crate::plan`]
//! makes the product of them.

use locklab_host::error::Error;
use locklab_lab::file;
use locklab_lab::list::Numbers;
use locklab_lab::settings::Percent;
use locklab_lab::workload::WorkloadSettings;
use locklab_workload::{Cells, Work};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The settings of a sweep.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SweepFile {
    /// Says that this is a sweep.
    pub kind: Kind,
    /// Title of the report.
    #[serde(default)]
    pub title: String,
    /// Modelled machines: names of `locklab machine list`, files, or "all".
    /// Not needed where the sweep runs on hardware.
    #[serde(default)]
    pub machines: Vec<String>,
    /// The lock, or the locks, that others are compared with; a name, a C or
    /// C++ file, or a kernel's lock as kernel:qspinlock.
    pub baseline: OneOrMore,
    /// The locks that are compared with each baseline, or "all".
    pub experiment: OneOrMore,
    /// Arguments for the compiler of locks of your own, as '-DSLOTS=64'.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cflags: Option<String>,
    /// Seeds of each cell.
    #[serde(default = "three")]
    pub seeds: u32,
    /// Machines drawn from the bands of each model's assumptions. The first is
    /// the model itself, so 1 varies nothing.
    #[serde(default = "one")]
    pub bands: u32,
    /// First seed.
    #[serde(default = "first_seed")]
    pub seed: u64,
    /// Says what counts as flat, in percent.
    #[serde(default)]
    pub delta: Percent,
    /// Says what the threads do. Each workload has its own cells.
    #[serde(rename = "workload")]
    pub workloads: Vec<WorkloadFile>,
    /// Says what is left out of the product.
    #[serde(default, rename = "exclude")]
    pub exclusions: Vec<Exclusion>,
    /// Settings of a sweep over real machines.
    #[serde(default)]
    pub native: NativeFile,
}

/// The `kind` of a file of a sweep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A sweep.
    #[default]
    Sweep,
}

/// One name, or several.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum OneOrMore {
    /// A single name.
    One(String),
    /// A list of names.
    More(Vec<String>),
}

impl OneOrMore {
    /// Returns all of them.
    #[must_use]
    pub fn names(&self) -> &[String] {
        match self {
            Self::One(name) => std::slice::from_ref(name),
            Self::More(names) => names,
        }
    }
}

/// A workload and its cells.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkloadFile {
    /// Says what the critical section is.
    #[serde(rename = "name")]
    pub work: Work,
    /// Numbers of threads; a number that a machine does not have is left out
    /// there.
    pub threads: Vec<Threads>,
    /// Lengths of the critical section; an fstat has none.
    #[serde(default)]
    pub critical: Vec<u64>,
    /// Lengths of the non-critical section.
    #[serde(default = "no_length")]
    pub non_critical: Vec<u64>,
    /// Acquisitions of one run, all threads together; by default 100 a thread.
    pub acquisitions: Option<u64>,
    /// Says whether acquisition latency is reported.
    #[serde(default)]
    pub latency: bool,
    /// Hardware threads that are used; by default all.
    pub physical: Option<usize>,
    /// Says what threads do around the locks. Each number of locks is a workload of
    /// its own.
    #[serde(flatten)]
    pub turns: WorkloadSettings,
}

impl WorkloadFile {
    /// Returns its cells with these numbers of threads.
    #[must_use]
    pub fn cells(&self, threads: Vec<usize>) -> Cells {
        self.turns.cells(Cells {
            threads,
            critical: self.critical.clone(),
            non_critical: self.non_critical.clone(),
            work: self.work,
            latency: self.latency,
            ..Cells::default()
        })
    }
}

/// A number of threads, absolute or as a part of the machine's CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Threads {
    /// This number of threads.
    Number(usize),
    /// A part of the machine's CPUs.
    Part(Part),
}

/// A part of a machine's CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// A quarter of them, one at least.
    Quarter,
    /// Half of them.
    Half,
    /// All of them.
    All,
}

impl Threads {
    /// Returns the number of threads on a machine with `cpus` CPUs; `None` if it has fewer
    /// CPUs than the file asks for.
    #[must_use]
    pub fn on(self, cpus: usize) -> Option<usize> {
        match self {
            Self::Number(n) => (n <= cpus).then_some(n),
            Self::Part(Part::Quarter) => Some((cpus / 4).max(1)),
            Self::Part(Part::Half) => Some((cpus / 2).max(1)),
            Self::Part(Part::All) => Some(cpus),
        }
    }
}

/// Runs that are left out: those that match every field that is set.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Exclusion {
    /// Names of machines.
    pub machine: Option<OneOrMore>,
    /// Names of baselines.
    pub baseline: Option<OneOrMore>,
    /// Names of locks that are compared with the baselines.
    pub experiment: Option<OneOrMore>,
    /// A workload.
    pub workload: Option<Work>,
    /// It excludes more threads than this.
    pub threads_above: Option<usize>,
    /// Critical sections longer than this.
    pub critical_above: Option<u64>,
    /// Non-critical sections longer than this.
    pub non_critical_above: Option<u64>,
}

/// Holds what an exclusion is matched against: one pair of locks in one cell.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<'a> {
    pub(crate) machine: &'a str,
    pub(crate) baseline: &'a str,
    pub(crate) experiment: &'a str,
    pub(crate) work: Work,
    pub(crate) place: locklab_workload::Place,
}

impl Exclusion {
    /// Returns whether it leaves this pair of locks out of this cell.
    pub(crate) fn matches(&self, at: &Place<'_>) -> bool {
        let named = |names: &Option<OneOrMore>, name: &str| {
            names
                .as_ref()
                .is_none_or(|names| names.names().iter().any(|one| one == name))
        };
        let above = |limit: Option<u64>, n: u64| limit.is_none_or(|limit| n > limit);
        let [threads, critical, non_critical, _] = at.place;
        named(&self.machine, at.machine)
            && named(&self.baseline, at.baseline)
            && named(&self.experiment, at.experiment)
            && self.workload.is_none_or(|work| work == at.work)
            && above(self.threads_above.map(|n| n as u64), threads)
            && above(self.critical_above, critical)
            && above(self.non_critical_above, non_critical)
    }
}

/// Settings of a sweep over real machines.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct NativeFile {
    /// Time for all cells of one pair of locks on one machine, in seconds; by
    /// default 60.
    pub time: Option<u32>,
    /// Pairs of each cell; by default as many as fit into the time.
    pub pairs: Option<u32>,
}

/// Returns the workload for each of its numbers of locks.
fn by_locks(workload: &WorkloadFile) -> Vec<WorkloadFile> {
    let Some(Numbers(counts)) = &workload.turns.lock_counts else {
        return vec![workload.clone()];
    };
    let one = |count: &u64| {
        let mut one = workload.clone();
        one.turns.lock_counts = Some(Numbers(vec![*count]));
        one
    };
    counts.iter().map(one).collect()
}

fn one() -> u32 {
    1
}

fn three() -> u32 {
    3
}

fn first_seed() -> u64 {
    1
}

fn no_length() -> Vec<u64> {
    vec![0]
}

/// The largest number that a file may give, so that no product overflows.
const MOST: u32 = 1_000_000;

impl SweepFile {
    /// Reads the text of a file.
    ///
    /// # Errors
    /// The text is not TOML of this form, or a number makes no sense. The error has
    /// the line if it is known.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let mut file: Self = file::parse(text)?;
        for workload in &mut file.workloads {
            if workload.work == Work::Fstat {
                if !workload.critical.is_empty() {
                    return Err(Error::Usage(
                        "fstat has no length; leave 'critical' out of this workload".into(),
                    ));
                }
                workload.critical = vec![0];
            }
        }
        file.check()?;
        file.workloads = file.workloads.iter().flat_map(by_locks).collect();
        Ok(file)
    }

    /// Returns the settings, with another first seed if one is given.
    #[must_use]
    pub fn with_seed(mut self, seed: Option<u64>) -> Self {
        self.seed = seed.unwrap_or(self.seed);
        self
    }

    fn check(&self) -> Result<(), Error> {
        for (what, n) in [("seeds", self.seeds), ("bands", self.bands)] {
            if n == 0 || n > MOST {
                return Err(Error::Usage(format!(
                    "{what} = {n} is no number of runs; give 1 to {MOST}"
                )));
            }
        }
        if self.workloads.is_empty() {
            return Err(Error::Usage(
                "a sweep has no cells without a [[workload]]; add one".into(),
            ));
        }
        for (number, workload) in self.workloads.iter().enumerate() {
            let empty = [
                (workload.threads.is_empty(), "threads"),
                (workload.critical.is_empty(), "critical"),
                (workload.non_critical.is_empty(), "non_critical"),
            ];
            if let Some((_, what)) = empty.into_iter().find(|(empty, _)| *empty) {
                return Err(Error::Usage(format!(
                    "workload {} has no cells: give '{what}' at least one number",
                    number + 1
                )));
            }
            workload.cells(Vec::new()).check()?;
            if workload.threads.contains(&Threads::Number(0)) {
                return Err(Error::Usage(
                    "zero threads do no work; ask for at least 1".into(),
                ));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEAST: &str = "kind = 'sweep'\nmachines = ['flat-16']\nbaseline = 'ticket'\n\
                         experiment = ['mcs', 'tas']\n[[workload]]\nname = 'units'\n\
                         threads = [1, 'half']\ncritical = [0]\n";

    #[test]
    fn a_short_file_has_defaults() {
        let file = SweepFile::parse(LEAST).unwrap();
        assert_eq!((file.seeds, file.bands, file.seed), (3, 1, 1));
        assert_eq!(file.workloads[0].non_critical, [0]);
        assert_eq!(file.workloads[0].threads[1].on(16), Some(8));
        assert_eq!(file.workloads[0].threads[0].on(1), Some(1));
        assert_eq!(Threads::Number(4).on(2), None);
    }

    #[test]
    fn what_makes_no_sense_is_said_in_one_sentence() {
        let file = |change: &str| {
            SweepFile::parse(&format!("{LEAST}{change}\n"))
                .unwrap_err()
                .to_string()
        };
        for (change, part) in [
            ("[native]\ntime = 'long'", "line 10: invalid type"),
            (
                "[[exclude]]\nmachin = 'x'",
                "line 10: unknown field `machin`",
            ),
            (
                "[[workload]]\nname = 'units'\nthreads = [0]\ncritical = [1]",
                "zero threads",
            ),
            (
                "[[workload]]\nname = 'units'\nthreads = []\ncritical = [1]",
                "'threads' at least one",
            ),
            (
                "[[workload]]\nname = 'fstat'\nthreads = [1]\ncritical = [1]",
                "fstat has no length",
            ),
        ] {
            let error = file(change);
            assert!(error.contains(part), "{error}");
            assert_eq!(error.lines().count(), 1, "{error}");
        }
        let no_seeds = LEAST.replace("kind", "seeds = 0\nkind");
        assert!(
            SweepFile::parse(&no_seeds)
                .unwrap_err()
                .to_string()
                .contains("seeds = 0")
        );
    }
}
