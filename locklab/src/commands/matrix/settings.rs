//! The settings of a comparison of locks, of two or of many: options of the command line,
//! keys of a file of kind `matrix` or `rank`, and the specification that they make.

use super::preset::Preset;
use crate::arguments::{ModelledSettings, NOT_MODELLED, NativeSettings, UserLockArgs};
use clap::Args;
use locklab_harness::file;
use locklab_harness::list::Numbers;
use locklab_harness::settings::{DesignSettings, NewName, Renamed, over, refuse};
use locklab_harness::workload::{CellSettings, UnitWord, WorkloadSettings};
use locklab_host::error::Error;
use locklab_native as native;
use locklab_published::modelled;
use locklab_sim::Machine;
use locklab_workload::{Cells, Distribution, Work};
use schemars::JsonSchema;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;
use std::path::PathBuf;
use std::sync::LazyLock;
use std::time::Duration;

/// The settings of two locks, as keys of a file.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct MatrixSettings {
    /// Locks are compared in a matrix.
    #[expect(dead_code, reason = "a file says it, and nothing else asks")]
    pub kind: Kind,
    /// The lock to compare with
    pub baseline: String,
    /// The lock that is compared with it; optional with --aa
    #[schemars(required)]
    pub experiment: Option<String>,
    #[serde(flatten, deserialize_with = "LockSettings::of_a_file")]
    pub(crate) locks: LockSettings,
    #[serde(flatten)]
    pub(crate) extras: SimulatedExtras,
    /// The name of the timeline in 0.3, refused with the new one.
    #[expect(dead_code, reason = "it is only refused")]
    #[serde(default)]
    #[schemars(skip)]
    pub trace: Option<Renamed<Timeline>>,
}

/// What is asked of locks, of two or of many: options of the command line, and keys of a
/// file.
#[derive(Clone, Debug, Default, Args, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct LockSettings {
    /// A situation instead of lengths and turns of your own
    #[arg(long, value_enum, value_name = "NAME")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preset: Option<Preset>,
    #[command(flatten)]
    #[serde(flatten)]
    pub(crate) cells: CellSettings,
    #[command(flatten)]
    #[serde(flatten)]
    pub(crate) turns: WorkloadSettings,
    /// Content of the critical section: units or fstat; units by default.
    #[arg(skip)]
    pub workload: Option<Work>,
    #[command(flatten)]
    #[serde(flatten)]
    pub(crate) design: DesignSettings,
    #[command(flatten)]
    #[serde(flatten)]
    pub(crate) here: NativeSettings,
    #[command(flatten)]
    #[serde(flatten)]
    pub(crate) modelled: ModelledSettings,
    #[command(flatten)]
    #[serde(flatten)]
    pub(crate) own: UserLockArgs,
}

/// The keys of [`LockSettings`].
static KEYS: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
    let schema = schemars::schema_for!(LockSettings);
    let keys = schema.get("properties").and_then(Value::as_object);
    let keys = keys.into_iter().flat_map(|keys| keys.keys());
    keys.map(|key| &*key.clone().leak()).collect()
});

/// Reads the keys of [`LockSettings`] out of a file that has others too.
struct OfAFile;

impl<'de> Visitor<'de> for OfAFile {
    type Value = LockSettings;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("settings of locks")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<LockSettings, A::Error> {
        LockSettings::deserialize(MapAccessDeserializer::new(map))
    }
}

/// What `--set` may set beside the options of a comparison of locks.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Set {
    #[serde(flatten, deserialize_with = "LockSettings::of_a_file")]
    locks: LockSettings,
}

impl LockSettings {
    /// Takes these settings, and no other key, out of a file: serde would leave all of them
    /// to the file, which then knows none of them.
    pub(crate) fn of_a_file<'de, D: Deserializer<'de>>(file: D) -> Result<Self, D::Error> {
        file.deserialize_struct("LockSettings", &KEYS, OfAFile)
    }

    /// Returns the settings with those of `--set KEY=VALUE`.
    ///
    /// # Errors
    /// [`Error::Usage`] if there is no such setting, or it has no such value.
    pub(crate) fn with_set(&self, set: &[String]) -> Result<Self, Error> {
        let set: Set = file::parse_with("", set)?;
        over(self, &set.locks)
    }

    /// Returns the settings with those that their preset sets; `replay` says whether a
    /// recording says what threads do.
    ///
    /// # Errors
    /// [`Error::Usage`] if one of these was given as well.
    pub(crate) fn with_preset(&self, replay: bool) -> Result<Self, Error> {
        let mut settings = self.clone();
        let Some(preset) = settings.preset else {
            return Ok(settings);
        };
        let (cells, turns) = (&mut settings.cells, &mut settings.turns);
        let lengths = preset.lengths().map(|length| Numbers(vec![length]));
        let [critical, non_critical] = lengths;
        let mut twice = Vec::new();
        let mut set = |name: &'static str, given: bool| {
            if given {
                twice.push(name);
            }
        };
        set("--replay", replay);
        set("--unit", turns.unit.replace(UnitWord::Ns).is_some());
        set("--critical", cells.critical.replace(critical).is_some());
        set(
            "--non-critical",
            cells.non_critical.replace(non_critical).is_some(),
        );
        match preset {
            Preset::Burst => {
                let before = turns.distribution.replace(Distribution::Bursty);
                set("distribution", before.is_some());
            }
            Preset::Hog => set("hog", turns.hog.replace(100_000).is_some()),
            Preset::Readers => set("--reads", turns.reads.replace(95).is_some()),
            Preset::ManyLocks => {
                let before = turns.lock_counts.replace(Numbers(vec![1_000]));
                set("locks", before.is_some());
            }
            Preset::Oversubscribed => set("--threads", cells.threads.is_some()),
            Preset::Counter | Preset::Short | Preset::Long => {}
        }
        match twice.first() {
            None => Ok(settings),
            Some(name) => Err(Error::Usage(format!(
                "--preset {preset} says what {name} is; leave out one of the two",
                preset = preset.word()
            ))),
        }
    }

    /// Returns what to measure or to simulate of two locks, with these cells: the builder of
    /// every specification on this machine.
    pub(crate) fn spec_here(&self, locks: [&str; 2], cells: Cells, time: Duration) -> native::Spec {
        let here = &self.here;
        native::Spec {
            cells,
            pin: here.pin.as_ref().map(|cpus| cpus.0.clone()),
            processes: here.processes,
            slice: here.slice_us.map(|us| Duration::from_micros(us.into())),
            layout: here.layout,
            time: here.time.map_or(time, |s| Duration::from_secs(s.into())),
            ..native::Spec::new(locks[0], locks[1])
        }
    }

    /// Returns how many CPUs there are for threads, of so many.
    pub(crate) fn cpus(&self, cpus: usize) -> usize {
        let pin = self.here.pin.as_ref();
        pin.map_or(cpus, |pin| pin.0.len()).max(1)
    }

    /// Returns what to simulate of two locks, with these cells.
    pub(crate) fn spec_modelled(&self, locks: [&str; 2], cells: Cells) -> modelled::Spec {
        let of = &self.modelled;
        modelled::Spec {
            acquisitions: of.acquisitions,
            operations: of.operations,
            placement: of.placement,
            physical: of.physical,
            ..modelled::Spec::new(locks[0], locks[1], cells)
        }
    }

    /// Returns the numbers of threads on a modelled machine, unless others are given.
    pub(crate) fn threads_on(&self, machine: &Machine) -> Vec<usize> {
        let vcpus = self.modelled.vcpus.map(|n| vec![n]);
        vcpus.unwrap_or_else(|| modelled::default_threads(machine))
    }
}

/// The only `kind` of these files.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    /// Locks.
    #[default]
    Matrix,
}

/// Says what a matrix shows besides, on a simulated machine.
#[derive(Clone, Debug, Default, Args, Serialize, Deserialize, JsonSchema)]
#[command(next_help_heading = "On a modelled machine")]
#[serde(default)]
pub(crate) struct SimulatedExtras {
    /// Show which of the model's assumptions a simulated ratio depends on
    #[arg(long, hide_short_help = true)]
    pub band: bool,
    /// Write the timeline of a short simulated run, for Perfetto
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub perfetto: Option<PathBuf>,
}

/// Stands for `trace`, the name of the timeline of a matrix in 0.3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Timeline {}

impl NewName for Timeline {
    const SENTENCE: &'static str = "trace wrote a timeline for Perfetto; write perfetto = \"FILE\"";
}

impl MatrixSettings {
    /// Returns the name of the experiment; the baseline's if it is compared with
    /// itself.
    pub(super) fn experiment(&self, aa: bool) -> &str {
        match &self.experiment {
            Some(experiment) if !aa => experiment,
            _ => &self.baseline,
        }
    }

    /// Returns the cells on so many CPUs, with these numbers of threads if none were given.
    ///
    /// # Errors
    /// [`Error::Usage`] if a length is given for a workload that has none.
    pub(super) fn cells(
        &self,
        cpus: usize,
        threads: impl FnOnce() -> Vec<usize>,
    ) -> Result<Cells, Error> {
        let settings = &self.locks;
        let work = settings.workload.unwrap_or_default();
        let lengths: [&[u64]; 2] = match work {
            Work::Fstat if settings.cells.critical.is_some() => {
                return Err(Error::Usage(
                    "fstat has no length; leave out --critical, or the workload".into(),
                ));
            }
            Work::Fstat => [&[0], &[0]],
            // The lengths of the kernel benchmark of the virt-spin report.
            Work::Units => [&[0, 1, 2, 4, 8, 16, 32, 64, 128], &[1, 32]],
        };
        let preset = settings.preset.and_then(|preset| preset.threads(cpus));
        let threads = || preset.unwrap_or_else(threads);
        let cells = &settings.cells;
        Ok(cells.cells(&settings.turns, work, threads, lengths))
    }

    /// Returns [`ModelledSettings::machine`], and refuses what a matrix shows only on a model.
    pub(super) fn machine(&self) -> Result<Option<&str>, Error> {
        let machine = self.locks.modelled.machine(&self.locks.here)?;
        if machine.is_none() {
            refuse(&self.extras, NOT_MODELLED)?;
        }
        Ok(machine)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_says_what_the_command_line_can() {
        let settings: MatrixSettings = file::parse(
            "kind = 'matrix'\nbaseline = 'ticket'\nexperiment = 'mcs'\nthreads = [1, 8]\n\
             on = 'flat-16'\npairs = 8\nacquisitions = 500\ncflags = '-O1'\n",
        )
        .unwrap();
        assert_eq!(settings.experiment(false), "mcs");
        assert_eq!(settings.cells(8, Vec::new).unwrap().threads, [1, 8]);
        assert_eq!(settings.locks.design.pairs, Some(8));
        assert_eq!(settings.locks.modelled.acquisitions, Some(500));
        assert_eq!(settings.machine().unwrap(), Some("flat-16"));
    }

    #[test]
    fn what_makes_no_sense_is_said() {
        let head = "kind = 'matrix'\nbaseline = 'ticket'\nexperiment = 'mcs'\n";
        for (text, part) in [
            ("unit = 'furlongs'", "line 4: unknown variant `furlongs`"),
            ("threds = [1]", "line 4: unknown field `threds`"),
            ("latency = true\nthreads = [0]", "line 5: zero threads"),
            ("delta = 0.0", "line 4: 0 is no margin"),
        ] {
            let settings = file::parse::<MatrixSettings>(&format!("{head}{text}\n"));
            let error = settings.unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
