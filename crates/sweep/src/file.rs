//! The file of a sweep: what is compared, where, and what is left out.
//!
//! Settings only, with the checks that need no machine. What the product is,
//! [`crate::plan`] says.

use locklab_lab::file;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A sweep, as its file says it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SweepFile {
    /// That this is a sweep.
    pub kind: Kind,
    /// What it is about, for the head of its report.
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
    /// Words for the compiler of locks of your own, as '-DSLOTS=64'.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cflags: Option<String>,
    /// Seeds of each cell.
    #[serde(default = "three")]
    pub seeds: u32,
    /// Machines drawn from the bands of each model's assumptions, itself the
    /// first: 1 is the model as it stands.
    #[serde(default = "one")]
    pub bands: u32,
    /// Where randomness starts.
    #[serde(default = "first_seed")]
    pub seed: u64,
    /// What counts as flat, in percent.
    #[serde(default = "one_percent")]
    pub delta: f64,
    /// What the threads do; each has cells of its own.
    #[serde(rename = "workload")]
    pub workloads: Vec<WorkloadFile>,
    /// What is left out of the product.
    #[serde(default, rename = "exclude")]
    pub exclusions: Vec<Exclusion>,
    /// Settings of a sweep over real machines.
    #[serde(default)]
    pub native: NativeFile,
}

/// The only `kind` of these files.
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
    /// All of them.
    #[must_use]
    pub fn names(&self) -> &[String] {
        match self {
            Self::One(name) => std::slice::from_ref(name),
            Self::More(names) => names,
        }
    }
}

/// What threads do, in which cells.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkloadFile {
    /// What the critical section is.
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
    /// Acquisitions of one run, all threads together; as many as are usual for
    /// the number of threads if it does not say.
    pub acquisitions: Option<u64>,
    /// Whether acquisition latency is reported.
    #[serde(default)]
    pub latency: bool,
    /// Physical CPUs (hardware threads) that are used; all if it does not say.
    pub physical: Option<usize>,
}

/// What the critical section is.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Work {
    /// Units of computation and copying, of the asked lengths.
    Units,
    /// One `fstat(2)` on a file of the thread's own.
    Fstat,
}

impl Work {
    /// As a file says it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Units => "units",
            Self::Fstat => "fstat",
        }
    }
}

/// A number of threads, by itself or by what the machine has.
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
    /// A quarter.
    Quarter,
    /// Half of them.
    Half,
    /// All of them.
    All,
}

impl Threads {
    /// How many on a machine of so many CPUs; `None` if it has fewer.
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

/// Runs that are left out: those which agree with all that it says.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Exclusion {
    /// Names of the machines of such runs.
    pub machine: Option<OneOrMore>,
    /// Names of the baselines of such runs.
    pub baseline: Option<OneOrMore>,
    /// Locks that are compared with them.
    pub experiment: Option<OneOrMore>,
    /// Workloads.
    pub workload: Option<Work>,
    /// More threads than this.
    pub threads_above: Option<usize>,
    /// Critical sections longer than this.
    pub critical_above: Option<u64>,
    /// Non-critical sections longer than this.
    pub non_critical_above: Option<u64>,
}

/// One place of the product, as exclusions see it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<'a> {
    pub(crate) machine: &'a str,
    pub(crate) baseline: &'a str,
    pub(crate) experiment: &'a str,
    pub(crate) work: Work,
    pub(crate) place: [u64; 3],
}

impl Exclusion {
    /// Whether it leaves a place out.
    pub(crate) fn matches(&self, at: &Place<'_>) -> bool {
        let named = |names: &Option<OneOrMore>, name: &str| {
            names
                .as_ref()
                .is_none_or(|names| names.names().iter().any(|one| one == name))
        };
        let above = |limit: Option<u64>, n: u64| limit.is_none_or(|limit| n > limit);
        let [threads, critical, non_critical] = at.place;
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
    /// What all cells of one pair of locks together may take on one machine,
    /// in seconds; 60 if it does not say.
    pub time: Option<u32>,
    /// Pairs of each cell; as many as the time has room for if it does not
    /// say.
    pub pairs: Option<u32>,
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

fn one_percent() -> f64 {
    1.0
}

fn no_length() -> Vec<u64> {
    vec![0]
}

/// The most that a number of a file may be, so that no product overflows.
const MOST: u32 = 1_000_000;

impl SweepFile {
    /// The settings in the text of a file.
    ///
    /// # Errors
    /// One sentence: the line and what is wrong there.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut file: Self = file::parse(text)?;
        for workload in &mut file.workloads {
            if workload.work == Work::Fstat {
                if !workload.critical.is_empty() {
                    return Err(
                        "an fstat has no length; leave 'critical' out of this workload".into(),
                    );
                }
                workload.critical = vec![0];
            }
        }
        file.check()?;
        Ok(file)
    }

    fn check(&self) -> Result<(), String> {
        for (what, n) in [("seeds", self.seeds), ("bands", self.bands)] {
            if n == 0 || n > MOST {
                return Err(format!(
                    "{what} = {n} is no number of runs; give 1 to {MOST}"
                ));
            }
        }
        if !(self.delta > 0.0 && self.delta < 100.0) {
            return Err(format!(
                "delta = {} is no margin; give a percentage above 0 and below 100",
                self.delta
            ));
        }
        if self.workloads.is_empty() {
            return Err("a sweep has no cells without a [[workload]]; add one".into());
        }
        for (number, workload) in self.workloads.iter().enumerate() {
            let empty = [
                (workload.threads.is_empty(), "threads"),
                (workload.critical.is_empty(), "critical"),
                (workload.non_critical.is_empty(), "non_critical"),
            ];
            if let Some((_, what)) = empty.into_iter().find(|(empty, _)| *empty) {
                return Err(format!(
                    "workload {} has no cells: give '{what}' at least one number",
                    number + 1
                ));
            }
            if workload.threads.contains(&Threads::Number(0)) {
                return Err("zero threads do no work; ask for at least 1".into());
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
        let file = |change: &str| SweepFile::parse(&format!("{LEAST}{change}\n")).unwrap_err();
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
                "an fstat has no length",
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
                .contains("seeds = 0")
        );
    }
}
