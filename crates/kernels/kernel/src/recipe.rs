//! The experiment file: the contents of the two kernels, and what runs in
//! them.
//!
//! It only parses and checks. A recipe has everything that decides an image,
//! so that its content can name the build in the cache.

use crate::changes::Changes;
use crate::lengths::Lengths;
use crate::settings::{GuestSettings, TestMachineSettings};
use crate::workload::{Load, Workload};
use locklab_harness::file::{self, FileKind};
use locklab_harness::settings::DesignSettings;
use locklab_host::error::Error;
use locklab_judge::Side;
use schemars::JsonSchema;
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// The kind of comparison, in files, JSON and the store.
pub const KIND: &str = "kernel";

/// The kind of an experiment with kernels, as every experiment file has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ExperimentKind {
    /// Two kernels are compared.
    #[serde(alias = "kernels")]
    Kernel,
}

/// An experiment file.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// The kind of comparison.
    pub kind: ExperimentKind,
    /// The name of the experiment.
    pub name: String,
    #[serde(flatten)]
    #[allow(missing_docs, reason = "its settings have their own")]
    pub design: DesignSettings,
    #[serde(flatten)]
    #[allow(missing_docs, reason = "its settings have their own")]
    pub guests: GuestSettings,
    /// The question in one line.
    #[serde(default)]
    pub question: String,
    /// Name of the published report, as in `reference/`.
    pub reference: Option<String>,
    /// The part of both kernels that is marked as a span (locklab-marker.h), in words;
    /// the cycles of one are a figure then, where a front end is modelled.
    pub span: Option<String>,
    /// Changes common to both kernels.
    #[serde(default)]
    pub kernel: Changes,
    /// Changes of the baseline only.
    #[serde(default)]
    pub baseline: Changes,
    /// Changes of the experiment only.
    pub experiment: Changes,
    /// Common to both, one comparison each; one without a name if empty.
    #[serde(default)]
    pub variant: Vec<Variant>,
    /// The workloads that run inside.
    #[serde(default)]
    pub workload: Vec<WorkloadEntry>,
    /// The test machine on which the kernels run; a guest of QEMU if there is
    /// none.
    #[serde(default, rename = "test_machine", alias = "box")]
    pub machine: TestMachineSettings,
    /// The folder to which paths in the file are relative.
    #[serde(skip)]
    pub folder: PathBuf,
}

/// `[[variant]]`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
pub struct Variant {
    /// The name of the variant.
    pub name: String,
    /// Says whether only builds and sizes are compared, without a boot.
    #[serde(default)]
    pub size_only: bool,
    /// Changes that it adds to both kernels.
    #[serde(default)]
    pub kernel: Changes,
}

/// `[[workload]]`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkloadEntry {
    /// The workload, by a name that `locklab kernel boot --help` lists.
    pub name: Workload,
    /// Units of work in the measured part.
    pub operations: Option<u64>,
    /// Processes, where the workload has several.
    pub processes: Option<u64>,
    /// Cells of a matrix, where the workload has one; report 3's by default.
    pub lengths: Option<Lengths>,
}

impl WorkloadEntry {
    /// Returns the load, with defaults for everything that the file leaves out.
    fn load(&self) -> Load {
        let mut load = Load::new(self.name);
        load.operations = self.operations.unwrap_or(load.operations);
        load.processes = self.processes.unwrap_or(load.processes);
        if let Some(lengths) = &self.lengths {
            load.lengths = Some(lengths.clone());
        }
        load
    }
}

impl Experiment {
    /// Reads an experiment file.
    ///
    /// # Errors
    /// [`Error::Usage`] if the file cannot be read or is invalid; the message
    /// names the file and the line.
    pub fn read(path: &Path, set: &[String]) -> Result<Self, Error> {
        let text = std::fs::read_to_string(path)
            .map_err(|e| Error::Usage(format!("cannot read {}: {e}", path.display())))?;
        let parsed = Self::parse_with(&text, set);
        let mut experiment = parsed.map_err(|error| error.within(path))?;
        experiment.folder = path.parent().unwrap_or(Path::new("")).to_owned();
        Ok(experiment)
    }

    /// Parses the text of a file.
    ///
    /// # Errors
    /// If it is not TOML, has an unknown key or value, or both kernels are the
    /// same; the message has the line.
    pub fn parse(text: &str) -> Result<Self, Error> {
        Self::parse_with(text, &[])
    }

    /// Parses the text of a file, with these of `--set KEY=VALUE` over its settings.
    fn parse_with(text: &str, set: &[String]) -> Result<Self, Error> {
        // Another kind of experiment is refused with the command that runs it.
        let foreign = |word: &str| {
            format!(
                "this is an experiment of kind '{word}', and not with kernels; 'locklab compare \
                 FILE' runs those of every kind"
            )
        };
        let kind = FileKind::other(KIND).check(text, foreign);
        let experiment = kind.and_then(|()| file::parse_with::<Self>(text, set));
        let experiment = experiment?;
        experiment.check()?;
        Ok(experiment)
    }

    fn check(&self) -> Result<(), Error> {
        let mut parts = vec![&self.kernel, &self.baseline, &self.experiment];
        parts.extend(self.variant.iter().map(|v| &v.kernel));
        for part in parts {
            part.check()?;
        }
        for side in Side::BOTH {
            self.recipe(side, None).check()?;
        }
        for entry in &self.workload {
            if entry.lengths.is_some() && entry.name != Workload::SpinlockMatrix {
                return Err(Error::Usage(format!(
                    "{} has no lengths",
                    entry.name.name()
                )));
            }
        }
        if self.recipe(Side::Baseline, None) == self.recipe(Side::Experiment, None) {
            return Err(Error::Usage(
                "baseline and experiment are the same kernel; give [experiment] patches, \
                 select, options or another change"
                    .into(),
            ));
        }
        Ok(())
    }

    /// Returns whether the file compares images that exist, and builds nothing.
    #[must_use]
    pub fn has_images(&self) -> bool {
        let parts = [&self.kernel, &self.baseline, &self.experiment];
        parts.iter().any(|part| part.image.is_some())
    }

    /// Returns the variants; a single one without a name if the file has none.
    #[must_use]
    pub fn variants(&self) -> Vec<Variant> {
        if self.variant.is_empty() {
            vec![Variant::default()]
        } else {
            self.variant.clone()
        }
    }

    /// Keeps only the variants of these names; all if none are named.
    ///
    /// # Errors
    /// [`Error::Usage`] if there is no variant of a name; the message lists the
    /// names.
    pub fn keep_variants(&mut self, names: &[String]) -> Result<(), Error> {
        for name in names {
            if !self.variant.iter().any(|v| v.name == *name) {
                let known: Vec<&str> = self.variant.iter().map(|v| v.name.as_str()).collect();
                return Err(Error::Usage(format!(
                    "there is no variant '{name}' in {}; it has {}",
                    self.name,
                    if known.is_empty() {
                        "none".into()
                    } else {
                        known.join("; ")
                    }
                )));
            }
        }
        if !names.is_empty() {
            self.variant.retain(|v| names.contains(&v.name));
        }
        Ok(())
    }

    /// Returns the loads: the file's workloads, or those of `asked`, each with
    /// `operations` operations if given, on `vcpus` vCPUs.
    ///
    /// # Errors
    /// [`Error::Usage`] if a load cannot be run, by [`Load::check`].
    pub fn loads(
        &self,
        asked: &[Workload],
        operations: Option<u64>,
        vcpus: u64,
    ) -> Result<Vec<Load>, Error> {
        let mut loads: Vec<Load> = self.workload.iter().map(WorkloadEntry::load).collect();
        if !asked.is_empty() {
            loads.retain(|load| asked.contains(&load.workload));
            for workload in asked {
                if !loads.iter().any(|load| load.workload == *workload) {
                    loads.push(Load::new(*workload));
                }
            }
        }
        for load in &mut loads {
            load.vcpus = vcpus;
            load.operations = operations.unwrap_or(load.operations);
            load.check()?;
        }
        Ok(loads)
    }

    /// Returns the complete recipe of one of the kernels.
    #[must_use]
    pub fn recipe(&self, side: Side, variant: Option<&Variant>) -> Changes {
        let mut recipe = Changes::default();
        recipe.add(&self.kernel);
        if let Some(variant) = variant {
            recipe.add(&variant.kernel);
        }
        recipe.add(match side {
            Side::Baseline => &self.baseline,
            Side::Experiment => &self.experiment,
        });
        recipe
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: &str =
        "kind = 'kernel'\nname = 'x'\n[experiment]\nselect = ['ARCH_INLINE_SPIN_UNLOCK']\n";

    #[test]
    fn parts_add_up_and_the_later_value_wins() {
        let text = format!(
            "{SMALL}[kernel]\ncmdline = 'a'\ncc = 'gcc'\noptions = ['CONFIG_A=y']\n\
             [[variant]]\nname = 'clang'\nkernel = {{ cc = 'clang', cmdline = 'b', options = \
             ['CONFIG_B=n'] }}\n"
        );
        let experiment = Experiment::parse(&text).unwrap();
        let recipe = experiment.recipe(Side::Experiment, experiment.variant.first());
        assert_eq!(recipe.cc.as_deref(), Some("clang"));
        assert_eq!(recipe.cmdline, "a b");
        assert_eq!(recipe.options, ["CONFIG_A=y", "CONFIG_B=n"]);
        assert_eq!(recipe.select, ["ARCH_INLINE_SPIN_UNLOCK"]);
        assert!(experiment.recipe(Side::Baseline, None).select.is_empty());
    }

    /// The table was called `box` in 0.2, and so was the configuration.
    #[test]
    fn the_names_that_0_2_had_for_a_test_machine_are_read() {
        let read = |table: &str| {
            let text = format!("{SMALL}[{table}]\non = 'ssh:root@testhost'\ncpus = 8\n");
            Experiment::parse(&text).unwrap().machine
        };
        assert_eq!(read("test_machine").cpus, Some(8));
        assert_eq!(read("box"), read("test_machine"));
    }

    #[test]
    fn what_makes_no_sense_is_said() {
        for (text, needle) in [
            (
                "kind = 'kernel'\nname = 'x'\n[experiment]\n",
                "the same kernel",
            ),
            (
                "kind = 'kernel'\nname = 'x'\n[experiment]\nselect = ['config_x']\n",
                "without CONFIG_",
            ),
            (
                "kind = 'kernel'\nname = 'x'\n[experiment]\noptions = ['X=y']\n",
                "CONFIG_NAME=VALUE",
            ),
            (
                "kind = 'kernel'\nname = 'x'\n[experiment]\ncc = 'tcc'\n",
                "gcc or clang",
            ),
            (
                "kind = 'kernel'\nname = 'x'\n[experiment]\nflatten = ['a b']\n",
                "function's name",
            ),
            (
                "kind = 'kernel'\nname = 'x'\n[experiment]\nnoinline = ['f']\nalways_inline = ['f']\n",
                "both",
            ),
            (
                "kind = 'kernel'\nname = 'x'\n[experiment]\nselct = ['X']\n",
                "selct",
            ),
            (
                "kind = 'kernel'\nname = 'x'\n[experiment]\nselect = ['X']\n[[workload]]\nname = 'nginx'\n",
                "nginx-churn",
            ),
            (
                "kind = 'kernel'\nname = 'x'\n[experiment]\nselect = ['X']\n[[workload]]\nname = 'fstat'\n\
                 lengths = { threads = [1] }\n",
                "fstat has no lengths",
            ),
        ] {
            let error = Experiment::parse(text).unwrap_err().to_string();
            assert!(error.contains(needle), "{text}: {error}");
        }
    }

    #[test]
    fn the_experiments_of_this_project_parse() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../experiments");
        for name in [
            "inline-unlock",
            "finish-task-switch",
            "virt-spin-backoff-kernel",
            "qspinlock-xfs-kernel",
        ] {
            let experiment = Experiment::read(&folder.join(format!("{name}.toml")), &[]).unwrap();
            assert_eq!(experiment.name, name);
        }
    }
}
