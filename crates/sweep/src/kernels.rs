//! Kernel builds and layouts as tasks of a sweep.
//!
//! A file of kind "kernels" compares two kernels, in one or more variants. Each
//! build is a task, and so is each layout: a link order and a seed, the same
//! for both kernels. The task of a layout links it, boots every variant under
//! every workload, and writes the samples into its own shard. Collecting
//! merges the shards into the experiment that `locklab kernel compare` makes.
//!
//! Counts are always those of the i-cache model, which do not depend on the
//! node; time must never be measured here, because the layouts of one
//! experiment run on many machines. The kernel lab's cache must lie where all
//! nodes share it.
//!
//! ```text
//! kernels.json          what is fixed when the sweep begins
//! sweep.toml            the file
//! shards/0003.sqlite    the samples of layout 3
//! status, logs, task.sh, jobs.json, store.sqlite   as in the folder of any sweep
//! ```

mod collect;
mod tasks;

pub use collect::CollectedKernels;

use crate::folder::Status;
use crate::{state, tool};
use locklab_host::error::Error;
use locklab_judge::{Family, MIN_PAIRS};
use locklab_kernel::cache::Cache;
use locklab_kernel::kvm::Look;
use locklab_kernel::{Kernels, Plan, Scope, recipe};
use locklab_lab::experiment::{Design, Experiment};
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Longest boot of a guest.
const LONGEST_BOOT: Duration = Duration::from_secs(900);

/// What is fixed when a sweep of kernels begins.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Fixed {
    schema: u32,
    tool: String,
    /// The folder in which paths of the file start.
    base: PathBuf,
    /// The kernel lab's cache.
    cache: PathBuf,
    layouts: u32,
    /// Seed of the first layout.
    seed: u64,
}

/// What is asked of a sweep of kernels beside its file.
#[derive(Clone, Debug)]
pub struct KernelOptions {
    /// The file, for the paths in it.
    pub file: PathBuf,
    /// Number of layouts; the fewest that are judged if it is not given.
    pub layouts: Option<u64>,
    /// Seed of the first layout.
    pub seed: u64,
}

/// A sweep of kernels in its folder.
#[derive(Debug)]
pub struct KernelSweep {
    path: PathBuf,
    fixed: Fixed,
    experiment: recipe::Experiment,
}

impl KernelSweep {
    /// Begins a sweep in a new folder, or continues the one that is there.
    ///
    /// # Errors
    /// The text is not a valid file of kernels, there is no home folder for the
    /// cache, or the folder holds another sweep, was begun by another build of
    /// locklab, or cannot be written.
    pub fn open_or_begin(path: &Path, text: &str, options: &KernelOptions) -> Result<Self, Error> {
        let experiment = parse(text, &options.file)?;
        let layouts = layouts(options)?;
        let fixed = Fixed {
            schema: 1,
            tool: tool::identity(),
            base: experiment.folder.clone(),
            cache: Cache::default_root()?,
            layouts,
            seed: options.seed,
        };
        if path.join("kernels.json").exists() {
            let sweep = Self::open(path)?;
            let same_file = state::is_same(&path.join("sweep.toml"), text);
            if !same_file || sweep.fixed != fixed {
                return Err(Error::Failed(format!(
                    "{} has a sweep of another file, seed, cache or number of layouts ({}); give \
                     --folder with a new one, or remove it",
                    path.display(),
                    sweep.fixed.layouts
                )));
            }
            return Ok(sweep);
        }
        let begin = || {
            state::not_another(path, "kernels.json")?;
            state::make_folders(path, &["shards", "status", "logs"])?;
            let file = path.join("sweep.toml");
            fs::write(&file, text).map_err(|e| format!("cannot write {}: {e}", file.display()))?;
            state::write_json(&path.join("kernels.json"), &fixed)
        };
        begin().map_err(Error::Failed)?;
        Ok(Self {
            path: absolute(path)?,
            fixed,
            experiment,
        })
    }

    /// The sweep of a folder.
    ///
    /// # Errors
    /// The folder holds no sweep of kernels, or another build of locklab began
    /// it.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let read = || -> Result<(PathBuf, Fixed, String), String> {
            let path = path.canonicalize().map_err(|e| e.to_string())?;
            let fixed = state::read_json(&path.join("kernels.json"))?;
            let text = fs::read_to_string(path.join("sweep.toml")).map_err(|e| e.to_string())?;
            Ok((path, fixed, text))
        };
        let (absolute, fixed, text) =
            read().map_err(|e| Error::Failed(state::no_sweep(path, &e)))?;
        tool::check(path, &fixed.tool).map_err(Error::Failed)?;
        Ok(Self {
            experiment: parse(&text, &fixed.base.join("sweep.toml"))?,
            path: absolute,
            fixed,
        })
    }

    /// The absolute path of the folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Number of builds: two kernels of each variant.
    #[must_use]
    pub fn builds(&self) -> usize {
        2 * self.experiment.variants().len()
    }

    /// Number of layouts.
    #[must_use]
    pub fn layouts(&self) -> usize {
        self.fixed.layouts as usize
    }

    /// Layouts that are not complete according to the status files, and those
    /// whose shard was removed since.
    #[must_use]
    pub fn open_layouts(&self) -> Vec<usize> {
        let is_done = |layout: &usize| {
            self.shard(*layout).exists() && self.status(*layout).is_some_and(|s| s.done == s.of)
        };
        (0..self.layouts()).filter(|l| !is_done(l)).collect()
    }

    fn shard(&self, layout: usize) -> PathBuf {
        self.path.join(format!("shards/{layout:04}.sqlite"))
    }

    fn status_file(&self, layout: usize) -> PathBuf {
        self.path.join(format!("status/{layout:04}.json"))
    }

    fn status(&self, layout: usize) -> Option<Status> {
        state::read_json(&self.status_file(layout)).ok()
    }

    fn cache<'a>(&self, interrupt: &'a AtomicBool, quiet: bool) -> Cache<'a> {
        Cache {
            root: self.fixed.cache.clone(),
            interrupt,
            quiet,
        }
    }

    fn plan(&self, scope: Scope) -> Result<Plan, Error> {
        Ok(Plan {
            loads: self.experiment.loads(&[], None, 1).map_err(Error::Usage)?,
            experiment: self.experiment.clone(),
            vcpus: 1,
            look: Look {
                tcg: true,
                again: false,
            },
            limit: LONGEST_BOOT,
            design: Design {
                pairs: self.fixed.layouts,
                seed: self.fixed.seed,
                delta: self.experiment.design.delta(),
                family: Family::Holm,
                aa: false,
            },
            scope,
        })
    }
}

/// What would be built and booted.
///
/// # Errors
/// The text is not a valid file of kernels, or `--array` is no number of
/// layouts.
pub(crate) fn dry_run(text: &str, options: &KernelOptions, json: bool) -> Result<String, Error> {
    let experiment = parse(text, &options.file)?;
    let (variants, layouts) = (experiment.variants(), layouts(options)?);
    let booted = variants.iter().filter(|v| !v.size_only).count();
    let loads = experiment.loads(&[], None, 1).map_err(Error::Usage)?.len();
    let (builds, boots) = (2 * variants.len(), 2 * booted * loads * layouts as usize);
    Ok(if json {
        let plan = serde_json::json!({
            "schema": 1,
            "dry_run": true,
            "kind": "kernels",
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

/// The layout `number` of an experiment as an experiment of its own: one pair,
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

fn parse(text: &str, file: &Path) -> Result<recipe::Experiment, Error> {
    let mut experiment = recipe::Experiment::parse(text)
        .map_err(|e| Error::Usage(format!("{}: {e}", file.display())))?;
    experiment.folder = absolute(file)?.parent().unwrap_or(file).to_owned();
    Ok(experiment)
}

fn absolute(path: &Path) -> Result<PathBuf, Error> {
    std::path::absolute(path)
        .map_err(|e| Error::Failed(format!("cannot use {}: {e}", path.display())))
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
