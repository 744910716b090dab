//! Sweeps on a real Slurm, on one node of this machine. Run by `cargo xtask
//! test --slurm`, which installs it.

#[path = "common/cluster.rs"]
mod cluster;

use cluster::{Cluster, wait};
use locklab_lab::store::Store;
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// Some hundred tasks' worth of runs, each task a second or so.
const FILE: &str = "kind = 'sweep'\nmachines = ['flat-16', 'amd64-8', 'xeon-8380-2s']\n\
                    baseline = 'qspinlock'\nexperiment = ['ticket', 'mcs', 'tas', 'hmcs']\n\
                    seeds = 4\nbands = 2\n[[workload]]\nname = 'units'\n\
                    threads = [1, 'half', 'all']\ncritical = [0, 8]\nnon_critical = [1, 64]\n\
                    [[exclude]]\nmachine = 'amd64-8'\nexperiment = 'hmcs'\n";

fn locklab(folder: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_locklab"));
    command.current_dir(folder).args(words).stdin(Stdio::null());
    command
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// All of a store but times: the experiments, and every row of the samples to
/// the letter.
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
        .each_row(None, |row| {
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
    let cluster = Cluster::start(None);
    let scratch = tempfile::tempdir().unwrap();
    let here = scratch.path();
    std::fs::write(here.join("s.toml"), FILE).unwrap();
    let local = locklab(
        here,
        &[
            "sweep", "s.toml", "--folder", "local", "--array", "150", "--json",
        ],
    )
    .output()
    .unwrap();
    assert!(local.status.success(), "{}", said(&local));

    let words = [
        "sweep",
        "s.toml",
        "--folder",
        "slurm",
        "--slurm",
        "--requeue",
        "--array",
        "150",
        "--json",
    ];
    let mut submitter = cluster
        .environment(&mut locklab(here, &words))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut running = Vec::new();
    wait("three running tasks", || {
        running = cluster
            .queue()
            .into_iter()
            .filter(|t| t.2 == "RUNNING")
            .collect();
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
    let collected = cluster
        .environment(&mut locklab(here, &[&words[..], &["--collect"]].concat()))
        .output()
        .unwrap();
    let document: Value = serde_json::from_slice(&collected.stdout).unwrap();
    let missing = document["missing"].as_array().unwrap();
    if !missing.is_empty() {
        assert_eq!(collected.status.code(), Some(1));
        let error = said(&collected);
        assert!(error.contains("as does: sbatch --parsable"), "{error}");
        assert!(missing[0]["log"].as_str().unwrap().contains("/logs/"));
        eprintln!("missing after the kill: {}", missing[0]);
    }

    let again = cluster
        .environment(&mut locklab(here, &words))
        .output()
        .unwrap();
    assert!(again.status.success(), "{}", said(&again));
    let whole: Value = serde_json::from_slice(&again.stdout).unwrap();
    assert_eq!(whole["missing"], Value::Array(vec![]));
    assert_eq!(
        contents(&here.join("local/store.sqlite")),
        contents(&here.join("slurm/store.sqlite"))
    );
    let mut documents = [local, again].map(|output| {
        let mut document: Value = serde_json::from_slice(&output.stdout).unwrap();
        for field in ["store", "busy"] {
            document.as_object_mut().unwrap().remove(field);
        }
        document
    });
    assert_eq!(documents[0].take(), documents[1].take());
}

#[test]
#[ignore = "needs Slurm: cargo xtask test --slurm"]
fn what_a_cluster_refuses_is_one_sentence() {
    let cluster = Cluster::start(None);
    let scratch = tempfile::tempdir().unwrap();
    let here = scratch.path();
    std::fs::write(here.join("s.toml"), FILE).unwrap();
    for (words, part) in [
        (&["--partition", "nope"][..], "'sinfo' lists the partitions"),
        (&["--constraint", "gamma"], "--constraint names one"),
        (&["--time", "5x"], "give --time"),
    ] {
        let words = [&["sweep", "s.toml", "--slurm"][..], words].concat();
        let output = cluster
            .environment(&mut locklab(here, &words))
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(1));
        let error = said(&output);
        assert!(error.contains(part), "{error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
    let large = [
        "sweep", "s.toml", "--slurm", "--folder", "large", "--array", "1100",
    ];
    let output = cluster
        .environment(&mut locklab(here, &large))
        .output()
        .unwrap();
    assert!(said(&output).contains("MaxArraySize"), "{}", said(&output));
}

#[test]
#[ignore = "needs Slurm: cargo xtask test --slurm"]
fn tasks_that_run_out_of_time_go_on_in_another_turn() {
    let cluster = Cluster::start(None);
    let scratch = tempfile::tempdir().unwrap();
    let here = scratch.path();
    // One task of about a minute and a half of one core.
    let file = FILE.replace("seeds = 4", "seeds = 400");
    std::fs::write(here.join("s.toml"), file).unwrap();
    let words = [
        "sweep",
        "s.toml",
        "--slurm",
        "--array",
        "1",
        "--time",
        "1",
        "--requeue",
        "--no-wait",
    ];
    let output = cluster
        .environment(&mut locklab(here, &words))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", said(&output));
    let log = here.join("s.sweep/logs/0000.log");
    wait("a task that stops in time", || {
        std::fs::read_to_string(&log).is_ok_and(|text| text.contains("stopped before it was done"))
            || cluster
                .says("scontrol", &["show", "job"])
                .contains("Restarts=1")
    });
    wait("its next turn", || {
        cluster
            .says("scontrol", &["show", "job"])
            .contains("Restarts=1")
    });
    let status = std::fs::read_to_string(here.join("s.sweep/status/0000.json")).unwrap();
    let status: Value = serde_json::from_str(&status).unwrap();
    assert!(status["done"].as_u64().unwrap() > 0, "{status}");
    cluster.run("scancel", &["--me"]);
}

#[test]
#[ignore = "needs Slurm: cargo xtask test --slurm"]
fn a_folder_that_nodes_do_not_share_and_another_locklab_are_named() {
    let scratch = tempfile::tempdir().unwrap();
    let here = scratch.path();
    std::fs::write(here.join("s.toml"), FILE).unwrap();
    let hidden = here.join("hidden");
    std::fs::create_dir(&hidden).unwrap();
    let cluster = Cluster::start(Some(&hidden));
    let words = [
        "sweep",
        "s.toml",
        "--folder",
        "hidden/sweep",
        "--slurm",
        "--array",
        "3",
    ];
    let output = cluster
        .environment(&mut locklab(here, &words))
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("no task of it began"), "{text}");
    // Shared, but begun by another build.
    let begun = [
        "sweep",
        "s.toml",
        "--folder",
        "other",
        "--slurm",
        "--array",
        "3",
        "--no-wait",
    ];
    let output = cluster
        .environment(&mut locklab(here, &begun))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", said(&output));
    wait("the end of its tasks", || cluster.queue().is_empty());
    let plan = here.join("other/plan.json");
    let text = std::fs::read_to_string(&plan).unwrap();
    std::fs::write(&plan, text.replace("(build ", "(build 0")).unwrap();
    let output = locklab(here, &["sweep", "s.toml", "--folder", "other"])
        .output()
        .unwrap();
    let error = said(&output);
    assert!(
        error.contains("figures of two versions are not one sweep"),
        "{error}"
    );
}
