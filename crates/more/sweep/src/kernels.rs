//! Kernel builds and layouts as tasks of a sweep.
//!
//! A file of kind "kernel" compares two kernels, in one or more variants. Each
//! build is a task, and so is each layout: a link order and a seed, the same
//! for both kernels. The task of a layout links it, boots every variant under
//! every workload, and writes the samples into its own shard. Collecting
//! merges the shards into the experiment that `locklab kernel compare` makes.
//!
//! Counts are always those of the i-cache model, which do not depend on the
//! node; time must never be measured here, because the layouts of one
//! experiment run on many machines. The kernel lab's cache must lie where all
//! nodes share it.

use crate::chunk::COMMAND;
use crate::folder::{Fixed, Folder, Status};
use crate::shard::Shard;
use crate::task::{Missing, Task};
use locklab_host::error::Error;
use locklab_judge::{Family, MIN_PAIRS, Side};
use locklab_kernel::cache::Cache;
use locklab_kernel::recipe;
use locklab_kernel::settings::ProbeOptions;
use locklab_kernel::{Kernels, Plan, Scope, equipped, made, prepare};
use locklab_lab::experiment::{Design, Experiment};
use locklab_lab::instrument::Instrument as _;
use locklab_lab::session::key_of;
use locklab_lab::settings::SEED;
use locklab_lab::store::{Listed, Store, StoredRow};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Longest boot of a guest.
const LONGEST_BOOT: Duration = Duration::from_secs(900);

/// Describes what is fixed when a sweep of kernels begins.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Decided {
    /// The folder in which paths of the file start.
    base: PathBuf,
    /// The kernel lab's cache.
    cache: PathBuf,
    layouts: u32,
    /// Seed of the first layout.
    seed: u64,
}

impl Fixed for Decided {
    const KIND: &'static str = "kernels";
}

/// Describes what is asked of a sweep of kernels beside its file.
#[derive(Clone, Debug)]
pub(crate) struct KernelOptions {
    /// The file, for the paths in it.
    pub file: PathBuf,
    /// Number of layouts; the fewest that are judged if it is not given.
    pub layouts: Option<u64>,
    /// Seed of the first layout; by default 1.
    pub seed: Option<u64>,
}

/// A sweep of kernels in its folder.
#[derive(Debug)]
pub(crate) struct KernelSweep {
    /// Says where its state is: plan, shards, progress, the merged store.
    pub folder: Folder,
    decided: Decided,
    experiment: recipe::Experiment,
}

/// Describes what was collected of a sweep of kernels.
#[derive(Debug)]
pub(crate) struct CollectedKernels {
    /// The experiment, with a pair for each layout that is there.
    pub experiment: Experiment,
    /// Its entry in the store of the folder.
    pub listed: Listed,
    /// The layouts that are missing.
    pub missing: Vec<Missing>,
}

impl KernelSweep {
    /// Begins a sweep in a new folder, or continues the one that is there.
    ///
    /// # Errors
    /// The text is not a valid file of kernels, there is no home folder for the
    /// cache, or the folder holds another sweep, was begun by another build of
    /// locklab, or cannot be written.
    pub(crate) fn open_or_begin(
        path: &Path,
        text: &str,
        options: &KernelOptions,
    ) -> Result<Self, Error> {
        let experiment = parse(text, &options.file)?;
        let decided = Decided {
            base: experiment.folder.clone(),
            cache: Cache::default_root()?,
            layouts: layouts(options)?,
            seed: options.seed.unwrap_or(SEED),
        };
        if Folder::begun::<Decided>(path)?.is_some() {
            let (folder, begun, file) = Folder::open::<Decided>(path)?;
            if file != text || begun != decided {
                return Err(Error::Failed(format!(
                    "{} has a sweep of another file, seed, cache or number of layouts ({}); give \
                     --folder with a new one, or remove it",
                    path.display(),
                    begun.layouts
                )));
            }
            return Ok(Self {
                folder,
                decided,
                experiment,
            });
        }
        let folder = Folder::begin(path, text)?;
        folder.fix(&decided)?;
        Ok(Self {
            folder,
            decided,
            experiment,
        })
    }

    /// Returns the sweep of a folder.
    ///
    /// # Errors
    /// The folder holds no sweep of kernels, or another build of locklab began
    /// it.
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        let (folder, decided, text) = Folder::open::<Decided>(path)?;
        Ok(Self {
            experiment: parse(&text, &decided.base.join("sweep.toml"))?,
            folder,
            decided,
        })
    }

    /// Returns the number of builds: two kernels of each variant.
    #[must_use]
    pub(crate) fn builds(&self) -> usize {
        2 * self.experiment.variants().len()
    }

    /// Returns the number of layouts.
    #[must_use]
    pub(crate) fn layouts(&self) -> usize {
        self.decided.layouts as usize
    }

    /// Builds one kernel: an even number is a baseline, the next one the
    /// experiment of the same variant.
    ///
    /// # Errors
    /// There is no such build, it fails, or Ctrl-C.
    pub(crate) fn build(
        &self,
        number: usize,
        interrupt: &AtomicBool,
        quiet: bool,
    ) -> Result<(), Error> {
        let variants = self.experiment.variants();
        let none = || self.no_task(Task::Build(number), self.builds());
        let variant = variants.get(number / 2).ok_or_else(none)?;
        let cache = self.cache(interrupt, quiet);
        let plan = self.plan(Scope::Whole)?;
        let asked = plan.loads.iter().map(|load| load.workload);
        let experiment = equipped(&cache, &plan.experiment, asked)?;
        made(&cache, &experiment, variant, Side::BOTH[number % 2])?;
        Ok(())
    }

    /// Measures one layout into its shard; returns false if it was interrupted.
    ///
    /// # Errors
    /// There is no such layout, QEMU or its plugin is missing, or the shard
    /// cannot be written. A kernel that cannot be built, or a guest that fails,
    /// is an invalid sample and no error.
    pub(crate) fn measure(&self, layout: usize, interrupt: &AtomicBool) -> Result<bool, Error> {
        let task = Task::Layout(layout);
        if layout >= self.layouts() {
            return Err(self.no_task(task, self.layouts()));
        }
        let mut status = Status::begun(1);
        self.folder.note(&task, &status);
        let measured = self.measured(&task, interrupt);
        status.done = u64::from(matches!(measured, Ok(true)));
        status.end(&measured);
        self.folder.note(&task, &status);
        measured
    }

    fn measured(&self, task: &Task, interrupt: &AtomicBool) -> Result<bool, Error> {
        let number = layout(task);
        let cache = self.cache(interrupt, true);
        let (kernels, experiment) = prepare(&cache, &self.plan(Scope::Layout(number))?)?;
        let (mut kernels, experiment) = apart(kernels, &experiment, number);
        let shard = Shard {
            path: &self.folder.shard(task),
            command: COMMAND.into(),
            interrupt,
            quiet: true,
        };
        let measured = shard.measure(&mut kernels, experiment)?;
        Ok(measured.is_none_or(|measured| measured.outcome.stopped.is_none()))
    }

    /// Merges the shards into the store of the folder: one experiment with all
    /// layouts that are there.
    ///
    /// # Errors
    /// No layout is there yet, the kernels cannot be prepared, or the store
    /// cannot be written. The shards stay as they are.
    pub(crate) fn collect(
        &self,
        interrupt: &AtomicBool,
        quiet: bool,
    ) -> Result<CollectedKernels, Error> {
        let tasks: Vec<Task> = (0..self.layouts()).map(Task::Layout).collect();
        if tasks.iter().all(|task| !self.folder.shard(task).exists()) {
            return Err(Error::Failed(format!(
                "no layout of the sweep in {} is measured yet; {}",
                self.folder.path().display(),
                self.folder.why_missing(&tasks[0])
            )));
        }
        let cache = self.cache(interrupt, quiet);
        let (mut kernels, mut experiment) = prepare(&cache, &self.plan(Scope::Report)?)?;
        let mut missing = Vec::new();
        let store = self.folder.new_store()?;
        let mut merge = || -> Result<Listed, Error> {
            let id = store.begin(&key_of(&kernels, &experiment), COMMAND, &experiment)?;
            for task in &tasks {
                let why = match self.copy(task, &kernels, &experiment, &store, id) {
                    Ok(true) => continue,
                    Ok(false) => self.folder.why_missing(task),
                    Err(why) => why.to_string(),
                };
                let task = task.clone();
                missing.push(Missing {
                    task,
                    units: 0..1,
                    why,
                });
            }
            let (mut pairs, damaged) = store.pairs(id)?;
            for cell in &mut experiment.cells {
                // Counts of a model have no bias.
                cell.bias_band = Some(0.0);
                cell.pairs = pairs.remove(&cell.key).unwrap_or_default();
                if !cell.pairs.is_empty() {
                    kernels.end(cell);
                }
            }
            experiment
                .caveats
                .extend(damaged.iter().map(ToString::to_string));
            let (some, all) = (missing.len(), tasks.len());
            experiment.interrupted =
                (some > 0).then(|| format!("{some} of {all} layouts are missing"));
            store.finish(id, &experiment)?;
            store.listed(Some(id))
        };
        let merged = merge();
        drop(store);
        Ok(CollectedKernels {
            listed: self.folder.replace_store(merged)?,
            experiment,
            missing,
        })
    }

    /// Copies the samples of a layout; returns false if it is not complete.
    fn copy(
        &self,
        task: &Task,
        kernels: &Kernels<'_>,
        experiment: &Experiment,
        store: &Store,
        id: i64,
    ) -> Result<bool, Error> {
        const NEXT: &str = "its layout is measured again";
        let path = self.folder.shard(task);
        if !path.exists() {
            return Ok(false);
        }
        let number = layout(task);
        let (kernels, alone) = apart(kernels.clone(), experiment, number);
        let shard = Store::open_left(&path)?;
        let from = shard.of_key(&key_of(&kernels, &alone));
        let Some(from) = from? else {
            return Err(Error::Failed(format!(
                "the shard {} is of other kernels: a source, a compiler, QEMU or the plugin was \
                 changed since; remove the shard, and {NEXT}",
                path.display()
            )));
        };
        if shard.listed(Some(from))?.state != "done" {
            return Ok(false);
        }
        let copied = shard.each_row(Some(from), |row| {
            let row = StoredRow {
                pair: i64::from(number),
                ..*row
            };
            store.append(id, &row)
        });
        match copied?.into_iter().next() {
            None => Ok(true),
            Some(what) => Err(Error::Failed(format!(
                "{what}; remove the shard, and {NEXT}"
            ))),
        }
    }

    fn no_task(&self, task: Task, count: usize) -> Error {
        Error::Failed(format!(
            "there is no {task}; the sweep in {} has {count} of its kind",
            self.folder.path().display()
        ))
    }

    fn cache<'a>(&self, interrupt: &'a AtomicBool, quiet: bool) -> Cache<'a> {
        Cache {
            root: self.decided.cache.clone(),
            interrupt,
            quiet,
        }
    }

    fn plan(&self, scope: Scope) -> Result<Plan, Error> {
        Ok(Plan {
            loads: self
                .experiment
                .loads(&[], None, 1)
                .map_err(|e| Error::Usage(e.to_string()))?,
            experiment: self.experiment.clone(),
            vcpus: 1,
            probe: ProbeOptions {
                tcg: true,
                again: false,
            },
            limit: LONGEST_BOOT,
            design: Design {
                pairs: self.decided.layouts,
                seed: self.decided.seed,
                delta: self.experiment.design.delta(),
                family: Family::Holm,
                aa: false,
                retry: 0,
            },
            scope,
        })
    }
}

/// Returns what would be built and booted.
///
/// # Errors
/// The text is not a valid file of kernels, or `--array` is no number of
/// layouts.
pub(crate) fn dry_run(text: &str, options: &KernelOptions, json: bool) -> Result<String, Error> {
    let experiment = parse(text, &options.file)?;
    let (variants, layouts) = (experiment.variants(), layouts(options)?);
    let booted = variants.iter().filter(|v| !v.size_only).count();
    let loads = experiment.loads(&[], None, 1);
    let loads = loads.map_err(|e| Error::Usage(e.to_string()))?.len();
    let (builds, boots) = (2 * variants.len(), 2 * booted * loads * layouts as usize);
    Ok(if json {
        let plan = serde_json::json!({
            "schema": 1,
            "dry_run": true,
            "kind": "kernel",
            "name": experiment.name,
            "builds": builds,
            "layouts": layouts,
            "boots": boots,
        });
        format!("{plan:#}\n")
    } else {
        format!(
            "{}: would build {builds} kernels, a task each, then link and boot them in {layouts} \
             layouts, a task each, with {boots} boots in all.\n",
            experiment.name
        )
    })
}

/// Returns the layout `number` of an experiment as an experiment of its own: one pair,
/// with the seed of that layout.
fn apart<'a>(
    kernels: Kernels<'a>,
    experiment: &Experiment,
    number: u32,
) -> (Kernels<'a>, Experiment) {
    let mut alone = experiment.clone();
    alone.design.pairs = 1;
    alone.design.seed = alone.design.seed.wrapping_add(number.into());
    (kernels.only(number), alone)
}

/// Returns the number of a task's layout.
fn layout(task: &Task) -> u32 {
    let number = task.number().unwrap_or_default();
    u32::try_from(number).unwrap_or(u32::MAX)
}

fn parse(text: &str, file: &Path) -> Result<recipe::Experiment, Error> {
    let mut experiment = recipe::Experiment::parse(text)
        .map_err(|e| Error::Usage(format!("{}: {e}", file.display())))?;
    let absolute = std::path::absolute(file)
        .map_err(|e| Error::Usage(format!("cannot use {}: {e}", file.display())))?;
    experiment.folder = absolute.parent().unwrap_or(file).to_owned();
    Ok(experiment)
}

fn layouts(options: &KernelOptions) -> Result<u32, Error> {
    let asked = options.layouts.unwrap_or(MIN_PAIRS as u64);
    match u32::try_from(asked) {
        Ok(layouts @ 1..=100_000) => Ok(layouts),
        _ => Err(Error::Usage(format!(
            "--array {asked} is no number of layouts; a verdict takes {MIN_PAIRS} or more"
        ))),
    }
}
