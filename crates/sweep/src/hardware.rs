//! A sweep over real machines: the file's locks and cells, measured natively
//! on one exclusive node of each feature of a cluster, or on this machine.
//!
//! Each node is a task with its own shard, in which each pair of locks and
//! workload is one experiment with the node's fingerprint. Figures of two
//! machines are never compared, only verdicts, each of which is about pairs that
//! one machine ran.
//!
//! ```text
//! fleet.json            the features, and the locklab that began it
//! shards/icelake.sqlite what the node of a feature measured
//! status, logs, task.sh, store.sqlite   as in the folder of any sweep
//! ```

use crate::file::{SweepFile, Threads, Work};
use crate::own_locks::{self, KeptLock};
use crate::plan::{LockPair, lock_pairs};
use crate::shard::Shard;
use crate::state;
use crate::tool;
use locklab_host::error::Error;
use locklab_judge::Family;
use locklab_lab::experiment::Design;
use locklab_native::{Native, Plan, Spec, Work as NativeWork, pairs_for, subject};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Name of the node of a sweep that runs on this machine.
pub const HERE: &str = "here";

/// What is fixed when a sweep over machines begins.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Decided {
    schema: u32,
    tool: String,
    features: Vec<String>,
    #[serde(default)]
    locks: Vec<KeptLock>,
}

/// The progress of a node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NodeStatus {
    /// Host name of the node.
    pub node: String,
    /// Number of CPUs that may be used there.
    pub cpus: usize,
    /// Number of pairs of locks and workloads that are done.
    pub done: usize,
    /// Number of all pairs of locks and workloads.
    pub of: usize,
    /// The reason why its task ended early, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped: Option<String>,
}

/// A sweep over machines in its folder.
#[derive(Debug)]
pub struct Fleet {
    path: PathBuf,
    /// The file of the sweep.
    pub file: SweepFile,
    /// The features of nodes; one node of each is measured.
    pub features: Vec<String>,
    /// Pairs of locks.
    pub pairs: Vec<LockPair>,
    /// Locks of the user's own, whose objects are in the folder.
    locks: Vec<KeptLock>,
}

impl Fleet {
    /// Begins a sweep in a new folder, or continues the one that is there.
    ///
    /// # Errors
    /// The text is not a valid file of a sweep, a lock does not exist or does not
    /// compile, a feature cannot be the name of a file, or the folder holds
    /// another sweep, was begun by another build of locklab, or cannot be written.
    pub fn open_or_begin(path: &Path, text: &str, features: &[String]) -> Result<Self, String> {
        let file = SweepFile::parse(text)?;
        own_locks::compile(&file)?;
        if path.join("fleet.json").exists() {
            let decided: Decided = state::read_json(&path.join("fleet.json"))
                .map_err(|e| state::no_sweep(path, &e))?;
            own_locks::check(path, &decided.locks)?;
            let fleet = Self::open(path)?;
            if fleet.file != file || fleet.features != features {
                return Err(format!(
                    "{} has a sweep of another file, or of other features ({}); give --folder with \
                     a new one, or remove it",
                    path.display(),
                    fleet.features.join(", ")
                ));
            }
            return Ok(fleet);
        }
        state::not_another(path, "fleet.json")?;
        for feature in features {
            if feature.contains(['/', '\'', ' ']) {
                return Err(format!(
                    "'{feature}' cannot be the name of a row; give each --constraint one feature, \
                     or features with & between them"
                ));
            }
        }
        let pairs = pairs_of(&file)?;
        state::make_folders(path, &["shards", "status", "logs"])?;
        let sweep = path.join("sweep.toml");
        fs::write(&sweep, text).map_err(|e| format!("cannot write {}: {e}", sweep.display()))?;
        let decided = Decided {
            schema: 1,
            tool: tool::identity(),
            features: features.to_vec(),
            locks: own_locks::keep(&file, path)?,
        };
        own_locks::load(path, &decided.locks)?;
        let path = path
            .canonicalize()
            .map_err(|e| format!("cannot use {}: {e}", path.display()))?;
        state::write_json(&path.join("fleet.json"), &decided)?;
        Ok(Self {
            path,
            file,
            features: features.to_vec(),
            pairs,
            locks: decided.locks,
        })
    }

    /// The sweep of a folder.
    ///
    /// # Errors
    /// The folder holds no such sweep, or another build of locklab began it.
    pub fn open(path: &Path) -> Result<Self, String> {
        let read = || -> Result<(PathBuf, Decided, String), String> {
            let path = path.canonicalize().map_err(|e| e.to_string())?;
            let decided = state::read_json(&path.join("fleet.json"))?;
            let text = fs::read_to_string(path.join("sweep.toml")).map_err(|e| e.to_string())?;
            Ok((path, decided, text))
        };
        let (absolute, decided, text) = read().map_err(|e| state::no_sweep(path, &e))?;
        tool::check(path, &decided.tool)?;
        own_locks::load(&absolute, &decided.locks)?;
        let file = SweepFile::parse(&text)?;
        Ok(Self {
            path: absolute,
            pairs: pairs_of(&file)?,
            file,
            features: decided.features,
            locks: decided.locks,
        })
    }

    /// The absolute path of the folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The store of the samples from a feature's node.
    #[must_use]
    pub fn shard(&self, feature: &str) -> PathBuf {
        self.path.join(format!("shards/{feature}.sqlite"))
    }

    /// The file with the output of a feature's task.
    #[must_use]
    pub fn log(&self, feature: &str) -> PathBuf {
        self.path.join(format!("logs/{feature}.log"))
    }

    /// The store into which all shards are merged.
    #[must_use]
    pub fn store(&self) -> PathBuf {
        self.path.join("store.sqlite")
    }

    /// The progress of a feature's node; `None` if no task of it began.
    #[must_use]
    pub fn status(&self, feature: &str) -> Option<NodeStatus> {
        state::read_json(&self.path.join(format!("status/{feature}.json"))).ok()
    }

    /// Number of pairs of locks and workloads that are done, over all nodes.
    #[must_use]
    pub fn done(&self) -> u64 {
        let statuses = self
            .features
            .iter()
            .filter_map(|feature| self.status(feature));
        statuses.map(|status| status.done as u64).sum()
    }

    /// Number of all pairs of locks and workloads, over all nodes.
    #[must_use]
    pub fn of(&self) -> u64 {
        (self.features.len() * self.pairs.len() * self.file.workloads.len()) as u64
    }

    /// Features whose nodes are not done.
    #[must_use]
    pub fn open_features(&self) -> Vec<String> {
        let is_done = |status: NodeStatus| status.done == status.of;
        let open = |feature: &&String| !self.status(feature).is_some_and(is_done);
        self.features.iter().filter(open).cloned().collect()
    }

    fn note(&self, feature: &str, status: &NodeStatus) {
        // The status only informs people who wait, so a failure is ignored.
        let _ = state::write_json(&self.path.join(format!("status/{feature}.json")), status);
    }
}

fn pairs_of(file: &SweepFile) -> Result<Vec<LockPair>, String> {
    lock_pairs(file, |name| {
        own_locks::is_known(name) || subject::find(name).is_ok()
    })
}

/// Measures on this machine what is missing of a feature; returns false if it was
/// interrupted.
///
/// # Errors
/// A lock of the user's own cannot be loaded, this machine cannot run the file's
/// cells, or the shard cannot be written.
pub fn measure(
    fleet: &Fleet,
    feature: &str,
    interrupt: &Arc<AtomicBool>,
    quiet: bool,
) -> Result<bool, String> {
    own_locks::register_native(&fleet.locks)?;
    let native = Native::probe();
    let mut status = NodeStatus {
        node: tool::node(),
        cpus: native.topology.order.len(),
        of: fleet.pairs.len() * fleet.file.workloads.len(),
        ..NodeStatus::default()
    };
    fleet.note(feature, &status);
    let mut measured = Ok(true);
    'all: for workload in 0..fleet.file.workloads.len() {
        for pair in &fleet.pairs {
            measured = one(fleet, feature, &native, workload, pair, interrupt, quiet);
            match measured {
                Ok(true) => status.done += 1,
                _ => break 'all,
            }
            fleet.note(feature, &status);
        }
    }
    status.stopped = match &measured {
        Ok(true) => None,
        Ok(false) => Some("it was interrupted".into()),
        Err(why) => Some(why.clone()),
    };
    fleet.note(feature, &status);
    measured
}

fn one(
    fleet: &Fleet,
    feature: &str,
    native: &Native,
    workload: usize,
    pair: &LockPair,
    interrupt: &Arc<AtomicBool>,
    quiet: bool,
) -> Result<bool, String> {
    let file = &fleet.file;
    let spec = spec(file, workload, pair, native.topology.order.len());
    let plan = Plan::new(spec, native)?;
    let design = Design {
        pairs: file
            .native
            .pairs
            .unwrap_or_else(|| pairs_for(plan.cells.len())),
        seed: file.seed,
        delta: file.delta / 100.0,
        family: Family::FalseDiscovery,
        aa: false,
    };
    let (mut instrument, mut experiment) =
        native.instrument(plan, design, Arc::clone(interrupt))?;
    if let Some(sources) = own_locks::sources(pair) {
        experiment.spec["own_locks"] = json!(sources);
    }
    let shard = Shard {
        path: &fleet.shard(feature),
        command: format!("locklab sweep sweep.toml --on native ({feature})"),
        interrupt,
        quiet,
    };
    let measured = shard.measure(&mut instrument, experiment)?;
    Ok(measured.is_none() || !interrupt.load(Ordering::Relaxed))
}

/// The specification for the instrument, on a machine with `cpus` CPUs.
fn spec(file: &SweepFile, workload: usize, pair: &LockPair, cpus: usize) -> Spec {
    let asked = &file.workloads[workload];
    Spec {
        threads: threads(&asked.threads, cpus),
        critical: asked.critical.clone(),
        non_critical: asked.non_critical.clone(),
        work: match asked.work {
            Work::Units => NativeWork::Units,
            Work::Fstat => NativeWork::Fstat,
        },
        latency: asked.latency,
        time: Duration::from_secs(file.native.time.unwrap_or(60).into()),
        ..Spec::new(&pair.baseline, &pair.experiment)
    }
}

/// The nodes to measure on: one of each feature of a cluster, or this machine.
///
/// # Errors
/// The sweep is to run on a cluster, and no feature was given.
pub fn nodes(features: &[String], cluster: bool) -> Result<Vec<String>, Error> {
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

/// What a sweep over machines would measure.
#[derive(Debug)]
pub(crate) struct Planned {
    pairs: Vec<LockPair>,
    workloads: usize,
    nodes: Vec<String>,
    /// Time of all experiments on one node, in seconds.
    seconds: u64,
}

/// The plan of the text of a sweep's file on these nodes.
///
/// # Errors
/// The text is not a valid file of a sweep, or a lock does not exist or does not
/// compile.
pub(crate) fn plan(text: &str, nodes: &[String]) -> Result<Planned, String> {
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

/// The numbers of threads to run on a machine with `cpus` CPUs, sorted and
/// without duplicates.
pub(crate) fn threads(asked: &[Threads], cpus: usize) -> Vec<usize> {
    let mut threads: Vec<usize> = asked.iter().filter_map(|n| n.on(cpus)).collect();
    threads.sort_unstable();
    threads.dedup();
    threads
}
