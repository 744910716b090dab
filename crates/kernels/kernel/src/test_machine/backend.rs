//! The backend of kernels on a test machine: a boot measures a pair of every
//! cell of its variant, one side after the other, in the order of one coin.
//!
//! Time is measured, so nothing runs beside it. Counters are of one mode in a
//! pair, user and kernel in turn.

use crate::ReadyCells;
use crate::cache::Cache;
use crate::lock_report;
use crate::making::{Kernel, ReadyVariant};
use crate::outcome::{Measured, parse};
use crate::settings::TestMachineSettings;
use crate::spinlock_matrix;
use crate::test_machine::bzimage;
use crate::test_machine::contents;
use crate::test_machine::home::Network;
use crate::test_machine::states::{Facts, Machine, Start, Trouble, Up, stays, sum};
use crate::workload::{Load, Workload};
use locklab_document::Document;
use locklab_harness::backend::{Backend, Pairing, Schedule, Stopped, Turn};
use locklab_harness::experiment::{
    Cell, Design, Experiment, Invalid, Metric, Role, Sample, Source, Values,
};
use locklab_host::error::Error;
use locklab_judge::Side;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Options of every measured kernel: it restarts the machine when it dies, and
/// the counter of the NMI watchdog is free.
const CMDLINE: &str = "panic=5 oops=panic nmi_watchdog=0";

/// Two kernels, in every variant, under every load, on a test machine.
pub struct RemoteKernels<'a> {
    pub(crate) cache: &'a Cache<'a>,
    pub(crate) machine: Machine<'a>,
    pub(crate) settings: TestMachineSettings,
    pub(crate) network: Network,
    pub(crate) limit: Duration,
    /// The kernels and the load of each cell.
    pub(crate) cells: ReadyCells,
    /// Holds what a boot takes, from home to home, by the trial.
    pub(crate) cycle: Option<Duration>,
    /// Says whether each load is run once more to profile the kernel's locks.
    pub(crate) lock_profile: bool,
    /// The experiment that was prepared.
    pub(crate) prepared: Experiment,
}

impl RemoteKernels<'_> {
    /// Starts one side of a variant.
    pub(crate) fn start(
        &mut self,
        variant: &ReadyVariant,
        side: Side,
        pair: u32,
    ) -> Result<(Up, Value), Trouble> {
        let kernel = &variant.kernels[usize::from(side == Side::Experiment)];
        let pair = pair as usize % kernel.images.len().max(1);
        let image = kernel.image(pair).map_err(fatal)?;
        let initramfs = self.initramfs(variant, side).map_err(fatal)?;
        self.start_image(variant, kernel, image, &initramfs)
    }

    /// Starts this image of a kernel of a variant.
    pub(crate) fn start_image(
        &mut self,
        variant: &ReadyVariant,
        kernel: &Kernel,
        image: &Path,
        initramfs: &Path,
    ) -> Result<(Up, Value), Trouble> {
        let version = bzimage::version(image).map_err(fatal)?;
        let cmdline = self.cmdline(variant, &kernel.cmdline);
        let up = self.machine.start(&Start {
            image,
            initramfs,
            cmdline: &cmdline,
            version: &version,
        })?;
        let kernel = json!({
            "image": image,
            "sha256": sum(image).map_err(Trouble::Fatal)?,
            "release": version[0],
            "version": version[1],
            "cmdline": up.facts.get("cmdline"),
            "boot_id": up.facts.get("boot-id"),
            "seconds_to_ssh": up.seconds,
        });
        Ok((up, kernel))
    }

    /// Returns the command line of a measured kernel: the consoles are the machine's own.
    fn cmdline(&self, variant: &ReadyVariant, own: &str) -> String {
        let home = self.machine.home().get("cmdline").unwrap_or_default();
        let mut words: Vec<String> = home
            .split(' ')
            .filter(|word| word.starts_with("console=") || word.starts_with("earlyprintk="))
            .map(str::to_owned)
            .collect();
        words.push(CMDLINE.into());
        if let Some(cpus) = self.settings.cpus {
            words.push(format!("maxcpus={cpus}"));
        }
        for load in self.loads(variant) {
            words.push(load.cmdline().to_owned());
        }
        words.push(own.to_owned());
        words.retain(|word| !word.is_empty());
        words.join(" ")
    }

    fn loads(&self, variant: &ReadyVariant) -> Vec<Load> {
        self.cells.loads(&variant.name).cloned().collect()
    }

    /// Returns the initramfs of a side, made once in a session.
    fn initramfs(&self, variant: &ReadyVariant, side: Side) -> Result<PathBuf, Error> {
        let mut variants = self.cells.variants().into_iter();
        let at = variants.position(|other| other.name == variant.name);
        let name = format!("initramfs-{}-{side:?}", at.unwrap_or(0));
        let path = self.machine.session.file(&name);
        if !path.is_file() {
            let kernel = &variant.kernels[usize::from(side == Side::Experiment)];
            let loads = self.loads(variant);
            contents::write(
                self.cache,
                &self.machine.session,
                &self.network,
                self.limit,
                kernel,
                &loads.iter().collect::<Vec<_>>(),
                &path,
            )?;
        }
        Ok(path)
    }

    /// Runs a load in the kernel that is up.
    pub(crate) fn run_load(
        &mut self,
        name: &str,
        load: &Load,
        counted: Option<&str>,
    ) -> Result<Result<Measured, String>, Trouble> {
        let mut plan = load.plan();
        if let Some(mode) = counted {
            plan.push_str(&format!("counters {mode}\n"));
        }
        let results = self.machine.run(name, &plan)?;
        Ok(parse(&results)
            .map_err(|why| why.unwrap_or_else(|| "the workload ended without a result".into())))
    }

    /// Runs a load that was measured once more, and adds to its sample which of the
    /// kernel's locks were waited for.
    fn profile(&mut self, cell: usize, load: &Load, sample: &mut Sample) -> Result<(), Trouble> {
        let load = Load {
            profile: true,
            ..load.clone()
        };
        let outcome = self.run_load(&format!("{cell}-locks"), &load, None)?;
        let translated = self.machine.home().translated().is_some();
        sample.detail[lock_report::KEY] = lock_report::detail(&load, outcome, translated);
        Ok(())
    }

    /// Starts a side, and measures its cells.
    fn measure(
        &mut self,
        variant: &ReadyVariant,
        turns: &[Turn],
        side: Side,
        keep: &mut dyn FnMut(usize, Sample),
    ) -> Result<(), Trouble> {
        let Some(pair) = turns.first().map(|turn| turn.pair) else {
            return Ok(());
        };
        let (up, kernel) = self.start(variant, side, pair)?;
        // Both sides of a pair have the same mode.
        let mode = if pair % 2 == 0 { "kernel" } else { "user" };
        for turn in turns {
            let Some((_, load)) = self.cells.get(turn.cell).cloned() else {
                continue;
            };
            let result = self.run_load(&turn.cell.to_string(), &load, Some(mode))?;
            let mut sample = sample(result, &kernel);
            // Asked between two runs, never while one measures.
            let after = self.machine.facts();
            let changed = after
                .as_ref()
                .ok()
                .and_then(|after| changed(&up.facts, after));
            if let (Some(changed), None) = (changed, &sample.invalid) {
                sample.invalid = Some(Invalid::Disturbed(changed));
            }
            let mut profiled = Ok(());
            if self.lock_profile && sample.invalid.is_none() && after.is_ok() {
                profiled = self.profile(turn.cell, &load, &mut sample);
            }
            keep(turn.cell, sample);
            after?;
            profiled?;
        }
        if stays(&self.settings) {
            return Ok(());
        }
        self.machine.go_home()
    }
}

fn fatal(error: Error) -> Trouble {
    Trouble::Fatal(error.to_string())
}

/// Returns what a setting of the processor was, if it did not stay as it was.
fn changed(before: &Facts, after: &Facts) -> Option<String> {
    [
        "governor",
        "no-turbo",
        "boost",
        "smt",
        "cpus",
        "nmi-watchdog",
    ]
    .into_iter()
    .find(|key| before.get(key) != after.get(key))
    .map(|key| {
        format!(
            "{key} changed from {} to {} while it was measured",
            before.get(key),
            after.get(key)
        )
    })
}

fn failed(trouble: Trouble) -> Error {
    match trouble {
        Trouble::Interrupted => Error::Interrupted("interrupted; the test machine is home".into()),
        Trouble::Fatal(why) | Trouble::Failed { why, .. } => Error::Failed(why),
    }
}

impl From<Trouble> for Error {
    fn from(trouble: Trouble) -> Self {
        failed(trouble)
    }
}

/// Returns the sample of a run; the whole outcome is kept beside the figures.
fn sample(result: Result<Measured, String>, kernel: &Value) -> Sample {
    match result {
        Ok(measured) => Sample {
            values: values(&measured),
            detail: json!({"kernel": kernel, "measured": measured}),
            ..Sample::default()
        },
        Err(why) => Sample {
            detail: json!({"kernel": kernel}),
            ..Sample::invalid(Invalid::Failed(why))
        },
    }
}

const COUNTER: &str = "counter-";

/// Returns the counters of a run, by their names.
pub(crate) fn counters(measured: &Measured) -> impl Iterator<Item = (&str, f64)> {
    measured
        .results
        .iter()
        .filter_map(|(key, value)| Some((key.strip_prefix(COUNTER)?, value.parse().ok()?)))
}

/// Returns the counters that are not there, with the reason.
pub(crate) fn uncounted(measured: &Measured) -> Vec<String> {
    let results = measured.results.iter();
    results
        .filter_map(|(key, why)| Some(format!("{} ({why})", key.strip_prefix("uncounted-")?)))
        .collect()
}

fn values(measured: &Measured) -> Values {
    let work = measured.work as f64;
    let mut values = Values::from([(TIME.to_owned(), measured.elapsed_ns as f64 / work)]);
    values.extend(counters(measured).map(|(name, count)| (name.to_owned(), count / work)));
    for (point, result) in spinlock_matrix::cells(measured) {
        values.insert(point.metric(), result.rate());
    }
    values
}

const TIME: &str = "time";

/// Returns the metrics of a load: time decides, and these counters explain.
pub(crate) fn metrics(load: &Load, counters: &[String], source: Source) -> Vec<Metric> {
    let mut metrics = vec![Metric::lower(TIME, "ns/unit", source).with_role(Role::Primary)];
    let counted = counters.iter();
    metrics.extend(counted.map(|name| Metric::lower(name, "/unit", Source::Hardware)));
    if let (Workload::SpinlockMatrix, Some(lengths)) = (load.workload, &load.lengths) {
        metrics.extend(spinlock_matrix::metrics(lengths, load.vcpus, source));
    }
    metrics
}

impl Backend for RemoteKernels<'_> {
    /// Brings the machine home.
    ///
    /// # Errors
    /// [`Error::Failed`] if it is not home; the message says how to get it back.
    fn finish(&mut self, _: &mut Document) -> Result<Option<String>, Error> {
        self.machine.go_home().map_err(failed).map(|()| None)
    }

    /// Returns the experiment of the design for which the kernels were linked.
    fn experiment(&self, design: Design) -> Experiment {
        Experiment {
            design,
            ..self.prepared.clone()
        }
    }

    fn fingerprint(&self) -> Value {
        let sums = |image: &Path| json!(sum(image).unwrap_or_default());
        let cells = self.cells.fingerprint(sums);
        let home = self.machine.home();
        let mut all = vec![
            json!(cells),
            json!(self.machine.ssh.destination()),
            json!(home.processor()),
            json!(home.get("microcode")),
            json!(self.settings.boot),
            json!(self.settings.cpus),
        ];
        if self.lock_profile {
            all.push(json!(lock_report::KEY));
        }
        json!(all)
    }

    fn bias_fingerprint(&self, cell: &Cell) -> Option<Value> {
        Some(json!([self.fingerprint(), cell.key]))
    }

    fn pairing(&self) -> Pairing {
        Pairing::InTurn
    }

    fn schedule(&self) -> Schedule {
        Schedule::Shared
    }

    fn estimate(&self, cells: &[Cell], pairs: u32) -> Option<Duration> {
        let mut variants: Vec<_> = cells.iter().map(|cell| cell.key.get("variant")).collect();
        variants.sort();
        variants.dedup();
        Some(self.cycle? * 2 * pairs * u32::try_from(variants.len()).ok()?)
    }

    /// Is never called: cells share a boot.
    fn run(&mut self, cell: &Cell, _: &Turn, _: Side) -> Result<Sample, Stopped> {
        Err(Stopped::Fatal(format!("{} was to be run alone", cell.key)))
    }

    fn run_shared(
        &mut self,
        turns: &[Turn],
        side: Side,
        keep: &mut dyn FnMut(usize, Sample),
    ) -> Result<(), Stopped> {
        // In the order of the turns, which is drawn anew for each pair.
        let mut variants: Vec<ReadyVariant> = Vec::new();
        for (variant, _) in turns.iter().filter_map(|turn| self.cells.get(turn.cell)) {
            if variants.iter().all(|other| other.name != variant.name) {
                variants.push(variant.clone());
            }
        }
        for variant in variants {
            let of_variant = |turn: &&Turn| {
                let cell = self.cells.get(turn.cell);
                cell.is_some_and(|(other, _)| other.name == variant.name)
            };
            let turns: Vec<Turn> = turns.iter().filter(of_variant).copied().collect();
            let mut missing: Vec<usize> = turns.iter().map(|turn| turn.cell).collect();
            let measured = self.measure(&variant, &turns, side, &mut |cell, sample| {
                missing.retain(|other| *other != cell);
                keep(cell, sample);
            });
            match measured {
                Ok(()) => {}
                Err(Trouble::Interrupted) => return Err(Stopped::Interrupted),
                Err(Trouble::Fatal(why)) => return Err(Stopped::Fatal(why)),
                Err(Trouble::Failed { why, console }) => {
                    for cell in missing {
                        let sample = Sample {
                            detail: json!({"console": console}),
                            ..Sample::invalid(Invalid::Failed(why.clone()))
                        };
                        keep(cell, sample);
                    }
                }
            }
        }
        Ok(())
    }
}
