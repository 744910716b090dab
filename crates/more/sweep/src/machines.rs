//! A sweep over real machines: the file's locks and cells, measured natively
//! on one exclusive node of each feature of a cluster, or on this machine.
//!
//! Each node is a task with its own shard, in which each pair of locks and
//! workload is one experiment with the node's fingerprint. Figures of two
//! machines are never compared, only verdicts, each of which is about pairs that
//! one machine ran.

use crate::file::{SweepFile, Threads};
use crate::folder::{Fixed, Folder, Status};
use crate::own_locks::{self, KeptLock};
use crate::plan::{LockPair, lock_pairs};
use crate::shard::Shard;
use crate::task::Task;
use locklab_host::error::Error;
use locklab_lab::experiment::Design;
use locklab_native::{Native, Plan, Spec, pairs_for, subject};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// Name of the node of a sweep that runs on this machine.
pub const HERE: &str = "here";

/// Describes what is fixed when a sweep over machines begins.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Decided {
    seed: u64,
    features: Vec<String>,
    locks: Vec<KeptLock>,
}

impl Fixed for Decided {
    const KIND: &'static str = "real machines";
}

/// A sweep over machines in its folder.
#[derive(Debug)]
pub struct Machines {
    /// Says where its state is: plan, shards, progress, the merged store.
    pub folder: Folder,
    /// The file of the sweep.
    pub file: SweepFile,
    /// The features of nodes; one node of each is measured.
    pub features: Vec<String>,
    /// Pairs of locks.
    pub pairs: Vec<LockPair>,
    /// Locks of the user's own, whose objects are in the folder.
    locks: Vec<KeptLock>,
}

impl Machines {
    /// Begins a sweep in a new folder, or continues the one that is there.
    ///
    /// # Errors
    /// The text is not a valid file of a sweep, a lock does not exist or does not
    /// compile, a feature cannot be the name of a file, or the folder holds
    /// another sweep, was begun by another build of locklab, or cannot be written.
    pub fn open_or_begin(
        path: &Path,
        text: &str,
        seed: Option<u64>,
        features: &[String],
    ) -> Result<Self, Error> {
        let file = SweepFile::parse(text)?.with_seed(seed);
        own_locks::compile(&file)?;
        let pairs = pairs_of(&file)?;
        if let Some(decided) = Folder::begun::<Decided>(path)? {
            own_locks::check(path, &decided.locks)?;
            let machines = Self::open(path)?;
            if machines.file != file || machines.features != features {
                return Err(Error::Failed(format!(
                    "{} has a sweep of another file or seed, or of other features ({}); give \
                     --folder with a new one, or remove it",
                    path.display(),
                    machines.features.join(", ")
                )));
            }
            return Ok(machines);
        }
        let folder = Folder::begin(path, text)?;
        let decided = Decided {
            seed: file.seed,
            features: features.to_vec(),
            locks: own_locks::keep(&file, path)?,
        };
        own_locks::load(path, &decided.locks)?;
        folder.fix(&decided)?;
        Ok(Self {
            folder,
            file,
            features: decided.features,
            pairs,
            locks: decided.locks,
        })
    }

    /// Returns the sweep of a folder.
    ///
    /// # Errors
    /// The folder holds no such sweep, or another build of locklab began it.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let (folder, decided, text) = Folder::open::<Decided>(path)?;
        own_locks::load(folder.path(), &decided.locks)?;
        let file = SweepFile::parse(&text)?.with_seed(Some(decided.seed));
        Ok(Self {
            folder,
            pairs: pairs_of(&file)?,
            file,
            features: decided.features,
            locks: decided.locks,
        })
    }

    /// Returns the number of pairs of locks and workloads, each an experiment.
    #[must_use]
    pub fn experiments(&self) -> u64 {
        (self.pairs.len() * self.file.workloads.len()) as u64
    }

    /// Measures on this machine what is missing of a feature, and adds the number
    /// of experiments to `counted`; returns false if it was interrupted.
    ///
    /// # Errors
    /// A lock of the user's own cannot be loaded, this machine cannot run the
    /// file's cells, or the shard cannot be written.
    pub fn measure(
        &self,
        feature: &str,
        interrupt: &Arc<AtomicBool>,
        counted: &AtomicU64,
        quiet: bool,
    ) -> Result<bool, Error> {
        own_locks::register_native(&self.locks)?;
        let (native, task) = (Native::probe(), Task::Node(feature.to_owned()));
        let mut status = Status {
            cpus: Some(native.topology.order.len()),
            ..Status::begun(self.experiments())
        };
        self.folder.note(&task, &status);
        let mut measured = Ok(true);
        'all: for workload in 0..self.file.workloads.len() {
            for pair in &self.pairs {
                measured = self.one(&task, &native, workload, pair, interrupt, quiet);
                match measured {
                    Ok(true) => status.done += 1,
                    _ => break 'all,
                }
                counted.fetch_add(1, Ordering::Relaxed);
                self.folder.note(&task, &status);
            }
        }
        status.end(&measured);
        self.folder.note(&task, &status);
        measured
    }

    fn one(
        &self,
        task: &Task,
        native: &Native,
        workload: usize,
        pair: &LockPair,
        interrupt: &Arc<AtomicBool>,
        quiet: bool,
    ) -> Result<bool, Error> {
        let file = &self.file;
        let spec = spec(file, workload, pair, native.topology.order.len());
        let plan = Plan::new(spec, native).map_err(|why| Error::Failed(why.to_string()))?;
        let pairs = file.native.pairs;
        let design = Design {
            seed: file.seed,
            delta: file.delta.fraction(),
            ..Design::usual(pairs.unwrap_or_else(|| pairs_for(plan.cells.len())))
        };
        let (mut instrument, mut experiment) =
            native.instrument(plan, design, Arc::clone(interrupt))?;
        if let Some(sources) = own_locks::sources(pair) {
            experiment.spec["own_locks"] = json!(sources);
        }
        let shard = Shard {
            path: &self.folder.shard(task),
            command: format!("locklab sweep sweep.toml --on native ({task})"),
            interrupt,
            quiet,
        };
        let measured = shard.measure(&mut instrument, experiment)?;
        Ok(measured.is_none() || !interrupt.load(Ordering::Relaxed))
    }
}

fn pairs_of(file: &SweepFile) -> Result<Vec<LockPair>, Error> {
    lock_pairs(file, |name| {
        own_locks::is_known(name) || subject::find(name).is_ok_and(|lock| lock.measured)
    })
}

/// Returns the specification for the instrument, on a machine with `cpus` CPUs.
fn spec(file: &SweepFile, workload: usize, pair: &LockPair, cpus: usize) -> Spec {
    let asked = &file.workloads[workload];
    Spec {
        cells: asked.cells(threads(&asked.threads, cpus)),
        time: Duration::from_secs(file.native.time.unwrap_or(60).into()),
        ..Spec::new(&pair.baseline, &pair.experiment)
    }
}

/// Returns the nodes to measure on: one of each feature of a cluster, or this machine.
///
/// # Errors
/// The sweep is to run on a cluster, and no feature was given, or one that
/// cannot be the name of a row.
pub fn nodes(features: &[String], cluster: bool) -> Result<Vec<String>, Error> {
    for feature in features {
        if feature.contains(['/', '\'', ' ']) {
            return Err(Error::Usage(format!(
                "'{feature}' cannot be the name of a row; give each --constraint one feature, \
                 or features with & between them"
            )));
        }
    }
    match (features.is_empty(), cluster) {
        (false, _) => Ok(features.to_vec()),
        (true, false) => Ok(vec![HERE.to_owned()]),
        (true, true) => Err(Error::Usage(
            "name the features of the nodes to measure on, as --constraint icelake --constraint \
             milan; 'sinfo --format=%f' lists them"
                .into(),
        )),
    }
}

/// Describes what a sweep over machines would measure.
#[derive(Debug)]
pub(crate) struct Planned {
    pairs: Vec<LockPair>,
    workloads: usize,
    nodes: Vec<String>,
    /// Time of all experiments on one node, in seconds.
    seconds: u64,
}

/// Returns the plan of the text of a sweep's file on these nodes.
///
/// # Errors
/// The text is not a valid file of a sweep, or a lock does not exist or does not
/// compile.
pub(crate) fn plan(text: &str, nodes: &[String]) -> Result<Planned, Error> {
    let file = SweepFile::parse(text)?;
    own_locks::compile(&file)?;
    let pairs = pairs_of(&file)?;
    let experiments = (pairs.len() * file.workloads.len()) as u64;
    Ok(Planned {
        seconds: u64::from(file.native.time.unwrap_or(60)) * experiments,
        workloads: file.workloads.len(),
        nodes: nodes.to_vec(),
        pairs,
    })
}

impl Planned {
    pub(crate) fn text(&self) -> String {
        let count = |n: usize, noun: &str| format!("{n} {noun}{}", if n == 1 { "" } else { "s" });
        let minutes = usize::try_from(self.seconds.div_ceil(60)).unwrap_or(usize::MAX);
        let minutes = count(minutes, "minute");
        format!(
            "Would measure {} of locks under {} on {}.\n",
            count(self.pairs.len(), "pair"),
            count(self.workloads, "workload"),
            match &self.nodes[..] {
                [here] if here == HERE => format!("this machine: about {minutes}"),
                nodes => format!("{}: about {minutes} on each, all at once", nodes.join(", ")),
            }
        )
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        let pair = |pair: &LockPair| json!([pair.baseline, pair.experiment]);
        json!({
            "schema": 1,
            "dry_run": true,
            "kind": "sweep",
            "on": "native",
            "machines": self.nodes,
            "pairs": self.pairs.iter().map(pair).collect::<Vec<_>>(),
            "workloads": self.workloads,
            "machine_seconds": self.seconds,
        })
    }
}

/// Returns the numbers of threads to run on a machine with `cpus` CPUs, sorted and
/// without duplicates.
pub(crate) fn threads(asked: &[Threads], cpus: usize) -> Vec<usize> {
    let mut threads: Vec<usize> = asked.iter().filter_map(|n| n.on(cpus)).collect();
    threads.sort_unstable();
    threads.dedup();
    threads
}
