//! Builds kernels, boots and compares them: `cargo xtask test --kernel`.
//!
//! Takes an hour on two cores the first time, so it runs only when asked for,
//! and keeps its builds in the user's cache. Asserts on what must hold
//! anywhere; what was found is in results/kernels.md.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn experiment(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../experiments/{name}.toml"))
}

fn locklab(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_locklab"))
        .args(arguments)
        .stderr(std::process::Stdio::inherit())
        .output()
        .unwrap()
}

fn document(arguments: &[&str]) -> Value {
    let output = locklab(arguments);
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
#[ignore = "builds kernels: cargo xtask test --kernel"]
fn a_report_is_reproduced_and_counts_the_same_twice() {
    let once = || {
        document(&[
            "reproduce",
            "inline-unlock",
            "--workload",
            "nginx-churn",
            "--set",
            "operations=100",
            "--pairs",
            "8",
            "--set",
            "tcg=true",
            "--json",
        ])["reports"][0]
            .clone()
    };
    let report = once();
    assert_eq!(report["missing"].as_array().unwrap().len(), 0, "{report:#}");
    let workload = &report["workloads"][0];
    assert_eq!(workload["pairs"], 8);
    let metric = |name: &str| {
        let all = workload["metrics"].as_array().unwrap();
        let found = all.iter().find(|metric| metric["name"] == name);
        found.unwrap_or_else(|| panic!("no {name}: {workload:#}"))["baseline"]
            .as_f64()
            .unwrap()
    };
    // A connection costs tens of thousands of instructions in the kernel, and
    // its code does not fit into 32 KiB.
    let kernel = metric("instructions:k");
    assert!((20_000.0..200_000.0).contains(&kernel), "{kernel}");
    let mpki = metric("l1i-mpki:k");
    assert!((10.0..150.0).contains(&mpki), "{mpki}");
    let text = &report["footprint"][0]["bloat_o_meter"];
    assert_ne!(text["before"], text["after"], "{text}");
    // Inlining makes the kernel's text larger.
    let figures = report["figures"].as_array().unwrap();
    let size = figures
        .iter()
        .find(|f| f["name"] == "footprint.change_percent");
    assert!(size.unwrap()["ours"].as_f64().unwrap() > 0.0);
    assert_eq!(once()["workloads"][0]["metrics"], workload["metrics"]);
}

#[test]
#[ignore = "builds kernels: cargo xtask test --kernel"]
fn inlined_copies_are_found_where_they_were_asked_for() {
    let file = experiment("finish-task-switch");
    let found = document(&[
        "kernel",
        "inlined",
        "finish_task_switch",
        file.to_str().unwrap(),
        "--variant",
        "gcc default",
        "--json",
    ]);
    let sites = found["variants"][0]["call_sites"].as_array().unwrap();
    let copies = |side: &str| {
        sites
            .iter()
            .map(|site| site["copies"][side].as_u64().unwrap())
            .sum::<u64>()
    };
    assert!(copies("experiment") > copies("baseline"), "{found:#}");
}

#[test]
#[ignore = "builds kernels: cargo xtask test --kernel"]
fn kernels_with_other_locks_boot() {
    for name in ["virt-spin-backoff-kernel", "qspinlock-xfs-kernel"] {
        let file = experiment(name);
        let report = document(&[
            "compare",
            file.to_str().unwrap(),
            "--workload",
            "spinlock-matrix",
            "--set",
            "operations=200",
            "--pairs",
            "8",
            "--set",
            "tcg=true",
            "--json",
        ]);
        assert_eq!(report["missing"].as_array().unwrap().len(), 0, "{report:#}");
        assert_eq!(report["workloads"][0]["pairs"], 8);
        // One thread, nine critical lengths, two others; a longer one takes
        // longer.
        let cells = report["workloads"][0]["cells"].as_array().unwrap();
        assert_eq!(cells.len(), 18, "{report:#}");
        let rate = |cell: &Value| cell["experiment"]["ops_per_s"].as_f64().unwrap();
        for lengths in cells.chunks(9) {
            assert!(rate(&lengths[0]) > rate(&lengths[8]), "{lengths:#?}");
        }
    }
}

#[test]
#[ignore = "builds kernels: cargo xtask test --kernel"]
fn what_does_not_build_is_said_with_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let patch = "--- a/init/main.c\n+++ b/init/main.c\n@@ -1,1 +1,2 @@\n+#error of a test\n \
                 // SPDX-License-Identifier: GPL-2.0-only\n";
    std::fs::write(folder.path().join("bad.patch"), patch).unwrap();
    let file = folder.path().join("bad.toml");
    let build = || {
        Command::new(env!("CARGO_BIN_EXE_locklab"))
            .args(["kernel", "build", "--quiet"])
            .arg(&file)
            .output()
            .unwrap()
    };
    std::fs::write(
        &file,
        "kind = 'kernel'\nname = 'bad'\n[kernel]\npatches = ['bad.patch']\n[experiment]\nnoinline = ['schedule']\n",
    )
    .unwrap();
    let output = build();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains("init/main.c:1:2: error: #error of a test"),
        "{said}"
    );
    // And an option that this kernel does not have.
    std::fs::write(
        &file,
        "kind = 'kernel'\nname = 'bad'\n[experiment]\noptions = ['CONFIG_NO_SUCH_THING=y']\n",
    )
    .unwrap();
    let output = build();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("drops CONFIG_NO_SUCH_THING=y"), "{said}");
}
