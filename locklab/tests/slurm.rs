//! Sweeps on a real Slurm, on one node of this machine. `cargo xtask test
//! --slurm` installs it; where it is missing, these tests are skipped.

use crate::common::cluster::{Cluster, wait};
use locklab_host::error::Error;
use locklab_lab::store::Store;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A thousand runs: some hundred tasks' worth, each task about a second of a
/// node on which sixteen share few CPUs.
const FILE: &str = "kind = 'sweep'\nmachines = ['flat-16', 'amd64-8', 'xeon-8380-2s']\n\
                    baseline = 'qspinlock'\nexperiment = ['ticket', 'mcs', 'tas', './mine.c']\n\
                    seeds = 4\nbands = 2\n[[workload]]\nname = 'units'\n\
                    threads = [1, 'half', 'all']\ncritical = [0, 8]\nnon_critical = [1, 64]\nacquisitions = 500\n\
                    [[exclude]]\nmachine = 'amd64-8'\nexperiment = 'tas'\n";

/// A cluster, and a folder with the file of a sweep that its node sees too.
struct Setup {
    cluster: Cluster,
    folder: tempfile::TempDir,
}

impl Setup {
    /// Returns none, with one line that says why, where there is no Slurm.
    fn new(file: &str) -> Option<Self> {
        Self::with_hidden(file, None)
    }

    /// Makes a cluster whose node does not see what is in the folder `hidden`.
    fn with_hidden(file: &str, hidden: Option<&str>) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("s.toml"), file).unwrap();
        locklab_own_lock::write_template(&folder.path().join("mine.c")).unwrap();
        let hidden = hidden.map(|name| folder.path().join(name));
        if let Some(hidden) = &hidden {
            std::fs::create_dir(hidden).unwrap();
        }
        let cluster = Cluster::start(hidden.as_deref())?;
        Some(Self { cluster, folder })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Runs `locklab sweep s.toml` with these words.
    fn sweep(&self, words: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_locklab"));
        command
            .current_dir(self.folder.path())
            .args(["sweep", "s.toml"])
            .args(words.split_whitespace())
            .stdin(Stdio::null());
        self.cluster.environment(&mut command);
        command
    }

    fn swept(&self, words: &str) -> Output {
        self.sweep(words).output().unwrap()
    }

    /// Runs it; the message if that is not possible.
    fn refused(&self, words: &str) -> String {
        let output = self.swept(words);
        assert_eq!(output.status.code(), Some(1), "{words}");
        said(&output)
    }
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn document(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Returns all of a store except times: the experiments, and every row of the samples
/// as text.
fn contents(store: &Path) -> Vec<String> {
    let store = Store::read(store).unwrap();
    let mut all: Vec<String> = store
        .list()
        .unwrap()
        .iter()
        .map(|e| {
            format!(
                "{} {} {} {} {} {}",
                e.id, e.state, e.command, e.baseline, e.experiment, e.runs
            )
        })
        .collect();
    for (id, key) in store.keys().unwrap() {
        let experiment = store.experiment(id).unwrap();
        all.push(format!(
            "{id} {key} {}",
            serde_json::to_string(&experiment).unwrap()
        ));
    }
    let damaged = store
        .each_row(None, |row| -> Result<(), Error> {
            all.push(format!("{row:?}"));
            Ok(())
        })
        .unwrap();
    assert!(damaged.is_empty());
    all
}

#[test]
#[ignore = "needs Slurm: cargo xtask test --slurm"]
fn a_cluster_gives_what_this_machine_gives_whatever_is_killed() {
    let Some(setup) = Setup::new(FILE) else {
        return;
    };
    let cluster = &setup.cluster;
    let local = setup.swept("--folder local --array 150 --json");
    assert!(local.status.success(), "{}", said(&local));

    let words = "--folder slurm --slurm --requeue --array 150 --json --constraint alpha \
                 --constraint beta";
    let mut submitter = setup
        .sweep(words)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut running = Vec::new();
    wait("three running tasks", || {
        running = cluster.queue();
        running.retain(|task| task.2 == "RUNNING");
        running.len() > 2
    });
    // A task is killed, another one is put back into the queue, and whoever
    // submitted them is killed as well.
    let task = |n: usize| format!("{}_{}", running[n].0, running[n].1);
    cluster.run("scancel", &["--signal=KILL", "--batch", &task(0)]);
    cluster.run("scontrol", &["requeue", &task(1)]);
    submitter.kill().unwrap();
    submitter.wait().unwrap();
    wait("an empty queue", || cluster.queue().is_empty());

    // What is missing is said, with its log and the command that goes on.
    let collected = setup.swept(&format!("{words} --collect"));
    let missing = document(&collected)["missing"].clone();
    if missing != Value::Array(vec![]) {
        assert_eq!(collected.status.code(), Some(1));
        let error = said(&collected);
        assert!(error.contains("as does: sbatch --parsable"), "{error}");
        assert!(missing[0]["log"].as_str().unwrap().contains("/logs/"));
        eprintln!("missing after the kill: {}", missing[0]);
    }

    let again = setup.swept(words);
    assert!(again.status.success(), "{}", said(&again));
    assert_eq!(document(&again)["missing"], Value::Array(vec![]));
    assert_eq!(
        contents(&setup.path("local/store.sqlite")),
        contents(&setup.path("slurm/store.sqlite"))
    );
    let documents = [local, again].map(|output| {
        let mut document = document(&output);
        for field in ["store", "busy"] {
            document.as_object_mut().unwrap().remove(field);
        }
        document
    });
    assert_eq!(documents[0], documents[1]);
}

#[test]
#[ignore = "needs Slurm: cargo xtask test --slurm"]
fn what_a_cluster_refuses_is_one_sentence() {
    let Some(setup) = Setup::new(FILE) else {
        return;
    };
    for (words, part) in [
        ("--partition nope", "'sinfo' lists the partitions"),
        ("--constraint gamma", "--constraint names one"),
        (
            "--constraint alpha --constraint gamma",
            "--constraint names one",
        ),
        ("--time 5x", "give --time"),
        ("--folder large --array 600", "MaxArraySize"),
    ] {
        let error = setup.refused(&format!("--slurm {words}"));
        assert!(error.contains(part), "{error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
}

#[test]
#[ignore = "needs Slurm: cargo xtask test --slurm"]
fn tasks_that_run_out_of_time_go_on_in_another_turn() {
    // One task of about a minute and a half of one core.
    let file = FILE.replace("seeds = 4", "seeds = 400");
    let Some(setup) = Setup::new(&file) else {
        return;
    };
    let output = setup.swept("--slurm --array 1 --time 1 --requeue --no-wait");
    assert!(output.status.success(), "{}", said(&output));
    wait("its next turn", || {
        let job = setup.cluster.says("scontrol", &["show", "job"]);
        job.contains("Restarts=1")
    });
    let status = std::fs::read_to_string(setup.path("s.sweep/status/0000.json")).unwrap();
    let status: Value = serde_json::from_str(&status).unwrap();
    assert!(status["done"].as_u64().unwrap() > 0, "{status}");
    setup.cluster.run("scancel", &["--me"]);
}

#[test]
#[ignore = "needs Slurm: cargo xtask test --slurm"]
fn a_folder_that_nodes_do_not_share_and_another_locklab_are_named() {
    let Some(setup) = Setup::with_hidden(FILE, Some("hidden")) else {
        return;
    };
    let output = setup.swept("--folder hidden/sweep --slurm --array 3");
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("no task of it began"), "{text}");
    // Shared, but begun by another build.
    let output = setup.swept("--folder other --slurm --array 3 --no-wait");
    assert!(output.status.success(), "{}", said(&output));
    wait("the end of its tasks", || setup.cluster.queue().is_empty());
    let fixed = setup.path("other/sweep.json");
    let text = std::fs::read_to_string(&fixed).unwrap();
    std::fs::write(&fixed, text.replace("(build ", "(build 0")).unwrap();
    let error = setup.refused("--folder other");
    assert!(
        error.contains("figures of two versions are not one sweep"),
        "{error}"
    );
}
