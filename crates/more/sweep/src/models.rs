//! A sweep of modelled machines: its plan, cut into chunks, each a task.

use crate::file::SweepFile;
use crate::folder::{Fixed, Folder, not_written};
use crate::own_locks::{self, KeptLock};
use crate::plan::Plan;
use crate::task::Task;
use locklab_host::error::Error;
use locklab_sim::{BUILTIN, Machine};
use serde::{Deserialize, Serialize};
use std::fs;
use std::ops::Range;
use std::path::Path;

/// Describes what is fixed when it begins.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Decided {
    /// Seed of the first replicate.
    seed: u64,
    /// Number of runs.
    runs: u64,
    /// First run of each chunk, then the number of runs.
    cuts: Vec<u64>,
    /// Locks of the user's own, whose objects are in the folder.
    locks: Vec<KeptLock>,
}

impl Fixed for Decided {
    const KIND: &'static str = "modelled machines";
}

/// A sweep of modelled machines in its folder.
#[derive(Debug)]
pub struct Models {
    /// Says where its state is: plan, shards, progress, the merged store.
    pub folder: Folder,
    /// Every run, in the order in which chunks are cut.
    pub plan: Plan,
    /// First run of each chunk, then the number of runs.
    cuts: Vec<u64>,
}

/// Returns the plan of the text of a sweep's file, with another first seed if one is
/// given.
///
/// Opens the models. For a new sweep `copies` is `None`: machine files are read from the paths in
/// the text, and locks of the user's own are compiled. Of a sweep that has a
/// folder, `copies` is the folder with its copies of machine files, each named
/// by its place in the list of machines; its locks must be loaded already.
///
/// # Errors
/// The text is not a valid file of a sweep, a machine cannot be read, two
/// machines have the same name, a lock does not exist or does not compile, or
/// the exclusions leave no run.
pub fn plan_of(text: &str, seed: Option<u64>, copies: Option<&Path>) -> Result<Plan, Error> {
    let file = SweepFile::parse(text)?.with_seed(seed);
    if copies.is_none() {
        own_locks::compile(&file)?;
    }
    let mut machines: Vec<Machine> = Vec::new();
    for (number, asked) in file.machines.iter().enumerate() {
        let names: Vec<String> = if asked == "all" {
            BUILTIN.iter().map(|(name, _)| (*name).to_owned()).collect()
        } else {
            vec![asked.clone()]
        };
        for name in names {
            let copy = copies.map(|folder| folder.join(format!("{number}.toml")));
            let machine = match copy {
                Some(copy) if copy.exists() => Machine::read(&copy),
                _ => Machine::named(&name),
            };
            let machine = machine?;
            if let Some(same) = machines.iter().find(|other| other.name == machine.name) {
                if *same != machine {
                    return Err(Error::Usage(format!(
                        "two machines are called {}; give one of them another name",
                        machine.name
                    )));
                }
                continue;
            }
            machines.push(machine);
        }
    }
    Plan::new(file, machines)
}

impl Models {
    /// Begins a sweep in a new folder, or continues the one that is there.
    ///
    /// # Errors
    /// Those of [`plan_of`]; or the folder holds the sweep of another file, was
    /// begun by another build of locklab or with another number of chunks, or
    /// cannot be written.
    pub fn open_or_begin(
        path: &Path,
        text: &str,
        seed: Option<u64>,
        chunks: Option<u64>,
    ) -> Result<Self, Error> {
        let plan = plan_of(text, seed, None)?;
        if let Some(decided) = Folder::begun::<Decided>(path)? {
            own_locks::check(path, &decided.locks)?;
            let models = Self::open(path)?;
            let other =
                |has: String, next| Error::Failed(format!("{} {has}; {next}", path.display()));
            if models.plan.file != plan.file || models.plan.machines != plan.machines {
                return Err(other(
                    "has the sweep of another file or seed, or of this file before it was changed"
                        .into(),
                    "give --folder with a new one, or remove it",
                ));
            }
            return match chunks {
                Some(asked) if asked != models.chunks() as u64 => Err(other(
                    format!("was begun with {} chunks", models.chunks()),
                    "leave out --array, or give --folder with a new one",
                )),
                _ => Ok(models),
            };
        }
        let folder = Folder::begin(path, text)?;
        for (number, name) in plan.file.machines.iter().enumerate() {
            if name != "all" && Machine::builtin(name).is_none() {
                let copy = path.join(format!("machines/{number}.toml"));
                fs::copy(name, &copy).map_err(|e| not_written(&copy, e))?;
            }
        }
        let decided = Decided {
            seed: plan.file.seed,
            runs: plan.runs(),
            cuts: plan.cut(chunks.unwrap_or_else(usual_chunks)),
            locks: own_locks::keep(&plan.file, path)?,
        };
        // From here on those of the folder, as every task has them.
        own_locks::load(path, &decided.locks)?;
        folder.fix(&decided)?;
        Ok(Self {
            folder,
            plan,
            cuts: decided.cuts,
        })
    }

    /// Returns the sweep of a folder.
    ///
    /// # Errors
    /// The folder holds no such sweep or cannot be read, its file was changed, or
    /// another build of locklab began it.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let (folder, decided, text) = Folder::open::<Decided>(path)?;
        own_locks::load(folder.path(), &decided.locks)?;
        let machines = folder.path().join("machines");
        let plan = plan_of(&text, Some(decided.seed), Some(&machines))?;
        if plan.runs() != decided.runs {
            return Err(Error::Failed(format!(
                "{} was changed after the sweep began: {} runs, and {} were planned; put it back",
                folder.path().join("sweep.toml").display(),
                plan.runs(),
                decided.runs
            )));
        }
        Ok(Self {
            folder,
            plan,
            cuts: decided.cuts,
        })
    }

    /// Returns the number of chunks.
    #[must_use]
    pub fn chunks(&self) -> usize {
        self.cuts.len() - 1
    }

    /// Returns the runs of a chunk.
    ///
    /// # Errors
    /// The sweep has no chunk of this number.
    pub fn chunk(&self, chunk: usize) -> Result<Range<u64>, Error> {
        match self.cuts.get(chunk..chunk + 2) {
            Some(&[first, end]) => Ok(first..end),
            _ => Err(Error::Failed(format!(
                "there is no {}; the sweep in {} has {} of its kind",
                Task::Chunk(chunk),
                self.folder.path().display(),
                self.chunks()
            ))),
        }
    }
}

/// Returns the number of chunks if the user gives none: enough that no core idles for
/// long at the end, and no more than Slurm's default limit of a job array.
fn usual_chunks() -> u64 {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    (32 * cores as u64).clamp(256, 1000)
}
