//! Chunks on a real Slurm, on one node of this machine, by the script of docs/sweeps.md.
//! `cargo xtask test --slurm` installs it; where it is missing, this test is skipped.

use crate::chunks::{FILE, Place};
use crate::common::cluster::{Cluster, wait};

/// Returns the script of the page.
fn script() -> &'static str {
    let page = include_str!("../../docs/sweeps.md");
    let (_, script) = page.split_once("```sh\n").unwrap();
    script.split_once("```").unwrap().0
}

#[test]
#[ignore = "needs Slurm: cargo xtask test --slurm"]
fn a_cluster_gives_what_this_machine_gives_whatever_is_killed() {
    let Some(cluster) = Cluster::start() else {
        return;
    };
    let place = Place::new(FILE);
    place.locklab("compare f.toml --store whole.sqlite --quiet");
    std::fs::write(place.path("chunks.sh"), script()).unwrap();
    let submit = || {
        let program = std::path::Path::new(env!("CARGO_BIN_EXE_locklab"));
        let mut path = program.parent().unwrap().as_os_str().to_owned();
        path.push(":");
        path.push(std::env::var_os("PATH").unwrap());
        let mut sbatch = std::process::Command::new("sbatch");
        sbatch
            .args(["chunks.sh", "f.toml"])
            .current_dir(place.path("."))
            .env("HOME", place.path("."))
            .env("PATH", path);
        let submitted = cluster.environment(&mut sbatch).output().unwrap();
        assert!(submitted.status.success(), "{submitted:?}");
    };
    submit();
    let mut running = Vec::new();
    wait("two running tasks", || {
        running = cluster.queue();
        running.retain(|task| task.2 == "RUNNING");
        running.len() > 1
    });
    let task = |n: usize| format!("{}_{}", running[n].0, running[n].1);
    cluster.run("scancel", &["--signal=KILL", "--batch", &task(0)]);
    cluster.run("scontrol", &["requeue", &task(1)]);
    wait("an empty queue", || cluster.queue().is_empty());
    // What is whole is measured once more, into experiments of their own; what was killed goes on.
    submit();
    wait("an empty queue", || cluster.queue().is_empty());
    place.merge(8);
    assert_eq!(place.contents("all.sqlite"), place.contents("whole.sqlite"));
}
