//! The folder of a sweep: all of its state, so that it goes on after anything.
//!
//! ```text
//! sweep.toml            the file, as it was when the sweep was begun
//! sweep.json            what is fixed: its kind, the locklab that began it, ...
//! machines/             machine files that it names
//! locks/0/              a lock of the user's own, compiled
//! shards/0012.sqlite    what a task has stored: a store
//! status/0012.json      how far the task is, and on which node
//! logs/0012.log         its output
//! jobs.json             the jobs that were submitted
//! store.sqlite          all shards, merged
//! ```
//!
//! Each file has one writer: a task writes its shard and its status, the command
//! writes the rest. There is no other state and no daemon. This module knows
//! nothing of what a kind of sweep compares.

use crate::task::Task;
use crate::tool;
use locklab_host::error::Error;
use locklab_lab::store::Store;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// Describes what is fixed when a sweep of one kind begins.
pub(crate) trait Fixed: Serialize + DeserializeOwned {
    /// Holds what the sweep compares on, as a sentence names it.
    const KIND: &'static str;
}

/// The head of `sweep.json`.
#[derive(Serialize, Deserialize)]
struct Head {
    schema: u32,
    /// Version and build of the locklab that began it. No other may continue it,
    /// because its figures may differ.
    tool: String,
    kind: String,
}

#[derive(Serialize)]
struct Written<'a, F> {
    #[serde(flatten)]
    head: Head,
    fixed: &'a F,
}

#[derive(Deserialize)]
struct Read<F> {
    fixed: F,
}

/// The progress of a task.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// The node that runs it.
    pub node: String,
    /// Number of CPUs that may be used there, where that matters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<usize>,
    /// Number of units that are stored.
    pub done: u64,
    /// Number of units of the task.
    pub of: u64,
    /// Says how far the node's clock is ahead of that of the folder's file system, in
    /// seconds.
    #[serde(default)]
    pub clock_ahead: f64,
    /// The reason why it ended early, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped: Option<String>,
}

impl Status {
    /// Returns that of a task of so many units, which begins on this machine.
    pub(crate) fn begun(of: u64) -> Self {
        Self {
            node: tool::node(),
            of,
            ..Self::default()
        }
    }

    /// Returns how the task ended: whether it is done.
    pub(crate) fn end(&mut self, ended: &Result<bool, Error>) {
        self.stopped = match ended {
            Ok(true) => None,
            Ok(false) => Some("it was interrupted".into()),
            Err(why) => Some(why.to_string()),
        };
    }
}

/// The folder of a sweep.
#[derive(Clone, Debug)]
pub struct Folder(PathBuf);

/// Says that a file or folder cannot be written, and why.
pub(crate) fn not_written(path: &Path, why: impl std::fmt::Display) -> Error {
    Error::Failed(format!("cannot write {}: {why}", path.display()))
}

impl Folder {
    /// Returns what was fixed when the sweep in a folder began; `None` if it holds none.
    ///
    /// # Errors
    /// It holds a sweep of another kind or of another build of locklab, or
    /// cannot be read.
    pub(crate) fn begun<F: Fixed>(path: &Path) -> Result<Option<F>, Error> {
        match path.join("sweep.json").exists() {
            true => Self::open(path).map(|(_, fixed, _)| Some(fixed)),
            false => refuse_older(path).map(|()| None),
        }
    }

    /// Begins a sweep in a new folder. It is one after [`Folder::fix`].
    ///
    /// # Errors
    /// The folder cannot be written.
    pub(crate) fn begin(path: &Path, text: &str) -> Result<Self, Error> {
        for part in ["machines", "shards", "status", "logs"] {
            let part = path.join(part);
            fs::create_dir_all(&part).map_err(|e| not_written(&part, e))?;
        }
        let file = path.join("sweep.toml");
        fs::write(&file, text).map_err(|e| not_written(&file, e))?;
        let absolute = path.canonicalize();
        absolute.map(Self).map_err(|e| not_written(path, e))
    }

    /// Fixes what a sweep is; last, because a folder with that is a whole one.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub(crate) fn fix<F: Fixed>(&self, fixed: &F) -> Result<(), Error> {
        let head = Head {
            schema: 2,
            tool: tool::identity(),
            kind: F::KIND.to_owned(),
        };
        self.write_json("sweep.json", &Written { head, fixed })
    }

    /// Returns the sweep of a folder: what is fixed, and the text of its file.
    ///
    /// # Errors
    /// The folder holds no sweep of this kind or cannot be read, or another build
    /// of locklab began it.
    pub(crate) fn open<F: Fixed>(path: &Path) -> Result<(Self, F, String), Error> {
        let none = |why: &dyn std::fmt::Display| {
            Error::Failed(format!(
                "there is no sweep in {} that {} can read: {why}; if this is a node of a cluster, \
                 the folder must lie where all nodes share it",
                path.display(),
                tool::node()
            ))
        };
        let absolute = path.canonicalize().map_err(|e| none(&e))?;
        let json = fs::read_to_string(absolute.join("sweep.json"));
        if json.is_err() {
            refuse_older(&absolute)?;
        }
        let json = json.map_err(|e| none(&e))?;
        let head: Head = serde_json::from_str(&json).map_err(|e| none(&e))?;
        if head.kind != F::KIND {
            return Err(Error::Failed(format!(
                "{} has a sweep of {}; give --folder with a new one",
                path.display(),
                head.kind
            )));
        }
        tool::check(path, &head.tool)?;
        let read: Read<F> = serde_json::from_str(&json).map_err(|e| none(&e))?;
        let text = fs::read_to_string(absolute.join("sweep.toml")).map_err(|e| none(&e))?;
        Ok((Self(absolute), read.fixed, text))
    }

    /// Returns the absolute path of the folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Returns the store of a task.
    #[must_use]
    pub fn shard(&self, task: &Task) -> PathBuf {
        self.0.join(format!("shards/{}.sqlite", task.file()))
    }

    /// Returns the file with the output of a task.
    #[must_use]
    pub fn log(&self, task: &Task) -> PathBuf {
        self.0.join(format!("logs/{}.log", task.file()))
    }

    /// Returns the file with the progress of a task.
    pub(crate) fn status_file(&self, task: &Task) -> PathBuf {
        self.0.join(format!("status/{}.json", task.file()))
    }

    /// Returns the store into which all shards are merged.
    #[must_use]
    pub fn store(&self) -> PathBuf {
        self.0.join("store.sqlite")
    }

    /// Returns a new store, in place of what a killed command left there, which
    /// [`Folder::replace_store`] makes the store of the sweep.
    ///
    /// # Errors
    /// It cannot be written.
    pub(crate) fn new_store(&self) -> Result<Store, Error> {
        let part = self.new_store_file();
        for old in [part.with_extension("part-journal"), part.clone()] {
            if old.exists() {
                fs::remove_file(&old).map_err(|e| not_written(&old, e))?;
            }
        }
        Store::open_alone(&part)
    }

    /// Makes the new store the store of the sweep, or removes it if it is not
    /// whole: a part of a store is of no use, and takes room on a full disk.
    ///
    /// # Errors
    /// `merged` is one, or the store cannot be written.
    pub(crate) fn replace_store<T>(&self, merged: Result<T, Error>) -> Result<T, Error> {
        let part = self.new_store_file();
        if merged.is_err() {
            let _ = fs::remove_file(&part);
        }
        let merged = merged?;
        let store = self.store();
        fs::rename(&part, &store).map_err(|e| not_written(&store, e))?;
        Ok(merged)
    }

    fn new_store_file(&self) -> PathBuf {
        self.0.join("store.sqlite.part")
    }

    /// Returns the progress of a task; `None` if it never began.
    #[must_use]
    pub fn status(&self, task: &Task) -> Option<Status> {
        read_json(&self.status_file(task))
    }

    /// Writes the progress of a task. It only informs people who wait, and the
    /// shard is what counts, so a failure to write it is ignored.
    pub fn note(&self, task: &Task, status: &Status) {
        let _ = write_json(&self.status_file(task), status);
    }

    /// Returns the tasks that are not complete according to their status, or whose
    /// shard was removed since.
    #[must_use]
    pub fn open_tasks(&self, tasks: &[Task]) -> Vec<Task> {
        let is_done = |task: &Task| {
            self.shard(task).exists() && self.status(task).is_some_and(|s| s.done == s.of)
        };
        tasks.iter().filter(|t| !is_done(t)).cloned().collect()
    }

    /// Returns the number of units of these tasks that are stored, according to their status.
    #[must_use]
    pub fn done(&self, tasks: &[Task]) -> u64 {
        let status = tasks.iter().filter_map(|task| self.status(task));
        status.map(|status| status.done).sum()
    }

    /// Returns the reason why a task is not complete, from its status.
    pub(crate) fn why_missing(&self, task: &Task) -> String {
        match self.status(task) {
            None => "no task of it began".into(),
            Some(status) => match status.stopped {
                Some(why) => format!("on {}: {why}", status.node),
                None => format!("its task on {} did not come to its end", status.node),
            },
        }
    }

    /// Writes a file of the folder, whole or not at all.
    pub(crate) fn write_json<T: Serialize>(&self, name: &str, value: &T) -> Result<(), Error> {
        write_json(&self.0.join(name), value)
    }

    /// Reads a file of the folder; `None` if it is not there or not whole.
    pub(crate) fn read_json<T: DeserializeOwned>(&self, name: &str) -> Option<T> {
        read_json(&self.0.join(name))
    }
}

/// Refuses the sweep of a version that fixed it in another file, and says where its
/// results are.
fn refuse_older(path: &Path) -> Result<(), Error> {
    let files = ["plan.json", "fleet.json", "kernels.json"];
    if !files.iter().any(|file| path.join(file).exists()) {
        return Ok(());
    }
    Err(Error::Failed(format!(
        "{} has a sweep of locklab 0.2, which this version does not continue; 'locklab results \
         list --store {}' shows what it measured, and --folder with a new one begins it anew",
        path.display(),
        path.join("store.sqlite").display()
    )))
}

fn read_json<T: DeserializeOwned>(path: &Path) -> Option<T> {
    serde_json::from_str(&fs::read_to_string(path).ok()?).ok()
}

/// Replaces a file in one step, so that a reader never sees a part of it.
fn write_json<T: Serialize>(path: &Path, value: &T) -> Result<(), Error> {
    let new = path.with_extension("json.new");
    let write = || -> std::io::Result<()> {
        let text = serde_json::to_string(value)?;
        let mut file = fs::File::create(&new)?;
        file.write_all(text.as_bytes())?;
        file.write_all(b"\n")?;
        drop(file);
        fs::rename(&new, path)
    };
    write().map_err(|e| not_written(path, e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sweep_of_0_2_says_where_its_results_are() {
        for file in ["plan.json", "fleet.json", "kernels.json"] {
            let folder = tempfile::tempdir().unwrap();
            assert!(refuse_older(folder.path()).is_ok());
            std::fs::write(folder.path().join(file), "{}").unwrap();
            let why = refuse_older(folder.path()).unwrap_err().to_string();
            assert!(why.contains("locklab 0.2"), "{why}");
            assert!(why.contains("store.sqlite"), "{why}");
        }
    }
}
