//! The folder of a sweep: all of its state, so that it goes on after anything.
//!
//! ```text
//! sweep.toml            the file, as it was when the sweep was begun
//! machines/             machine files that it names
//! locks/0/              a lock of the user's own, compiled
//! plan.json             the chunks, and the locklab that made it
//! shards/0012.sqlite    the runs of a chunk: a store
//! status/0012.json      how far its task is, and on which node
//! logs/0012.log         the output of its task
//! jobs.json             the jobs that were submitted
//! store.sqlite          all shards, merged
//! ```
//!
//! Each file has one writer: a task writes its shard and its status, the command
//! writes the rest. There is no other state and no daemon.

use crate::file::SweepFile;
use crate::own_locks::{self, KeptLock};
use crate::plan::Plan;
use crate::state::{self, no_sweep, read_json};
use crate::tool;
use locklab_sim::{BUILTIN, Machine};
use serde::{Deserialize, Serialize};
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// What is fixed when a sweep begins.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Decided {
    /// Version of this file format.
    pub schema: u32,
    /// Version and build of the locklab that began it. No other may continue it,
    /// because its figures may differ.
    pub tool: String,
    /// Number of runs.
    pub runs: u64,
    /// First run of each chunk, then the number of runs.
    pub cuts: Vec<u64>,
    /// Locks of the user's own, whose objects are in the folder.
    #[serde(default)]
    pub locks: Vec<KeptLock>,
}

/// The progress of a chunk.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// The node that runs it.
    pub node: String,
    /// Number of runs that are stored.
    pub done: u64,
    /// Number of runs of the chunk.
    pub of: u64,
    /// How far the node's clock is ahead of that of the folder's file system, in
    /// seconds.
    pub clock_ahead: f64,
    /// The reason why its task ended early, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped: Option<String>,
}

/// A sweep in its folder.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    /// Every run.
    pub plan: Plan,
    /// What was fixed when it began.
    pub decided: Decided,
}

/// The plan of the text of a sweep's file.
///
/// Of a new sweep, `copies` is `None`: machine files are read from the paths in
/// the text, and locks of the user's own are compiled. Of a sweep that has a
/// folder, `copies` is the folder with its copies of machine files, each named
/// by its place in the list of machines; its locks must be loaded already.
///
/// # Errors
/// The text is not a valid file of a sweep, a machine cannot be read, two
/// machines have the same name, a lock does not exist or does not compile, or
/// the exclusions leave no run.
pub fn plan_of(text: &str, copies: Option<&Path>) -> Result<Plan, String> {
    let file = SweepFile::parse(text)?;
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
            let machine = machine.map_err(|e| e.to_string())?;
            if let Some(same) = machines.iter().find(|other| other.name == machine.name) {
                if *same != machine {
                    return Err(format!(
                        "two machines are called {}; give one of them another name",
                        machine.name
                    ));
                }
                continue;
            }
            machines.push(machine);
        }
    }
    Plan::new(file, machines)
}

impl Folder {
    /// Begins a sweep in a new folder, or continues the one that is there.
    ///
    /// # Errors
    /// Those of [`plan_of`]; or the folder holds the sweep of another file, was
    /// begun by another build of locklab or with another number of chunks, or
    /// cannot be written.
    pub fn open_or_begin(path: &Path, text: &str, chunks: Option<u64>) -> Result<Self, String> {
        let plan = plan_of(text, None)?;
        if path.join("plan.json").exists() {
            let decided: Decided =
                read_json(&path.join("plan.json")).map_err(|e| no_sweep(path, &e))?;
            tool::check(path, &decided.tool)?;
            own_locks::check(path, &decided.locks)?;
            let folder = Self::open(path)?;
            let same = folder.plan.file == plan.file && folder.plan.machines == plan.machines;
            if !same {
                return Err(format!(
                    "{} has the sweep of another file, or of this one before it was changed; give \
                     --folder with a new one, or remove it",
                    path.display()
                ));
            }
            if let Some(asked) = chunks
                && asked != folder.chunks() as u64
            {
                return Err(format!(
                    "{} was begun with {} chunks; leave out --array, or give --folder with a new \
                     one",
                    path.display(),
                    folder.chunks()
                ));
            }
            return Ok(folder);
        }
        let cannot = |what: &Path, e: &dyn std::fmt::Display| {
            format!("cannot begin the sweep: {}: {e}", what.display())
        };
        state::not_another(path, "plan.json")?;
        state::make_folders(path, &["machines", "shards", "status", "logs"])?;
        for (number, name) in plan.file.machines.iter().enumerate() {
            if name != "all" && Machine::builtin(name).is_none() {
                let copy = path.join(format!("machines/{number}.toml"));
                fs::copy(name, &copy).map_err(|e| cannot(&copy, &e))?;
            }
        }
        let decided = Decided {
            schema: 1,
            tool: tool::identity(),
            runs: plan.runs(),
            cuts: plan.cut(chunks.unwrap_or_else(usual_chunks)),
            locks: own_locks::keep(&plan.file, path)?,
        };
        // From here on those of the folder, as every task has them.
        own_locks::load(path, &decided.locks)?;
        let file = path.join("sweep.toml");
        fs::write(&file, text).map_err(|e| cannot(&file, &e))?;
        let absolute = path.canonicalize().map_err(|e| cannot(path, &e))?;
        let folder = Self {
            path: absolute,
            plan,
            decided,
        };
        // Last: a folder with a plan is a whole one.
        folder.write_json("plan.json", &folder.decided)?;
        Ok(folder)
    }

    /// The sweep of a folder.
    ///
    /// # Errors
    /// The folder holds no sweep or cannot be read, its file was changed, or
    /// another build of locklab began it.
    pub fn open(path: &Path) -> Result<Self, String> {
        let absolute = path.canonicalize().map_err(|e| no_sweep(path, &e))?;
        let decided: Decided =
            read_json(&absolute.join("plan.json")).map_err(|e| no_sweep(path, &e))?;
        tool::check(path, &decided.tool)?;
        own_locks::load(&absolute, &decided.locks)?;
        let file = absolute.join("sweep.toml");
        let text = fs::read_to_string(&file).map_err(|e| no_sweep(path, &e))?;
        let plan = plan_of(&text, Some(&absolute.join("machines")))?;
        if plan.runs() != decided.runs {
            return Err(format!(
                "{} was changed after the sweep began: {} runs, and {} were planned; put it back",
                file.display(),
                plan.runs(),
                decided.runs
            ));
        }
        Ok(Self {
            path: absolute,
            plan,
            decided,
        })
    }

    /// The absolute path of the folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The number of chunks.
    #[must_use]
    pub fn chunks(&self) -> usize {
        self.decided.cuts.len() - 1
    }

    /// The runs of a chunk.
    ///
    /// # Errors
    /// The sweep has no chunk of this number.
    pub fn chunk(&self, chunk: usize) -> Result<Range<u64>, String> {
        match self.decided.cuts.get(chunk..chunk + 2) {
            Some(&[first, end]) => Ok(first..end),
            _ => Err(format!(
                "there is no chunk {chunk}; the sweep in {} has {}",
                self.path.display(),
                self.chunks()
            )),
        }
    }

    /// The store of a chunk's runs.
    #[must_use]
    pub fn shard(&self, chunk: usize) -> PathBuf {
        self.path.join(format!("shards/{chunk:04}.sqlite"))
    }

    /// The file with the output of a chunk's task.
    #[must_use]
    pub fn log(&self, chunk: usize) -> PathBuf {
        self.path.join(format!("logs/{chunk:04}.log"))
    }

    /// The store into which all shards are merged.
    #[must_use]
    pub fn store(&self) -> PathBuf {
        self.path.join("store.sqlite")
    }

    /// The progress of a chunk; `None` if no task of it ever began.
    #[must_use]
    pub fn status(&self, chunk: usize) -> Option<Status> {
        read_json(&self.path.join(format!("status/{chunk:04}.json"))).ok()
    }

    /// Writes the progress of a chunk. It only informs people who wait, and the
    /// shard is what counts, so a failure to write it is ignored.
    pub fn note(&self, chunk: usize, status: &Status) {
        let _ = self.write_json(&format!("status/{chunk:04}.json"), status);
    }

    /// Chunks that are not complete according to the status files, and those
    /// whose shard was removed since.
    #[must_use]
    pub fn open_chunks(&self) -> Vec<usize> {
        let is_done = |status: Status| status.done == status.of;
        (0..self.chunks())
            .filter(|chunk| {
                !self.shard(*chunk).exists() || !self.status(*chunk).is_some_and(is_done)
            })
            .collect()
    }

    /// Number of runs that are stored, according to the status files.
    #[must_use]
    pub fn done(&self) -> u64 {
        let status = (0..self.chunks()).filter_map(|chunk| self.status(chunk));
        status.map(|status| status.done).sum()
    }

    /// Writes a file of the folder, whole or not at all.
    pub(crate) fn write_json<T: Serialize>(&self, name: &str, value: &T) -> Result<(), String> {
        state::write_json(&self.path.join(name), value)
    }
}

/// The number of chunks if the user gives none: enough that no core idles for
/// long at the end, and no more than Slurm's default limit of a job array.
fn usual_chunks() -> u64 {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    (32 * cores as u64).clamp(256, 1000)
}
