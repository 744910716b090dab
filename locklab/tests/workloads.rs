//! The workloads of `locklab compare` with their real programs, each for a moment.

use crate::compare::{Bench, EIGHT};
use assert_cmd::Command;
use serde_json::Value;
use std::path::Path;

/// Runs a real workload for a moment; skipped if a program is missing.
fn real(workload: &str, programs: &[&str], scale: &str) -> Option<Value> {
    for program in programs {
        if locklab_host::process::find(program, &[]).is_none() {
            println!("skipped: {program} is missing");
            return None;
        }
    }
    let bench = Bench::new();
    let arguments = ["--workload", workload, "--scale", scale, "--warm-up", "0"];
    let (code, json) = bench.json(&[&arguments[..], &EIGHT[..]].concat());
    assert_eq!(code, 0, "{json:#}");
    let workload = json["workloads"][0].clone();
    assert_eq!(
        workload["pairs_set_aside"],
        serde_json::json!([]),
        "{workload:#}"
    );
    let primary = &workload["metrics"][0];
    assert!(primary["baseline"].as_f64().unwrap() > 0.0);
    assert_ne!(primary["verdict"], "invalid");
    Some(workload)
}

#[test]
fn the_real_nginx() {
    let Some(workload) = real("nginx-churn", &["nginx", "ab"], "0.01") else {
        return;
    };
    assert_eq!(workload["metrics"][0]["name"], "requests");
    assert!(
        workload["setup"]["Server"]
            .as_str()
            .unwrap()
            .starts_with("nginx on CPU")
    );
}

#[test]
fn the_real_db_bench() {
    real("rocksdb-deleteseq", &["db_bench"], "0.005");
    real("readwhilewriting:2", &["db_bench"], "0.01");
}

#[test]
fn the_real_fs_mark() {
    if let Some(workload) = real("fs-mark", &["fs_mark"], "0.02") {
        let on = workload["setup"]["Files on"].as_str().unwrap();
        if on.contains("not XFS") {
            println!("skipped: its part on XFS: {on}");
        } else {
            assert!(on.starts_with("XFS"), "{on}");
        }
    }
}

#[test]
fn the_real_gcc() {
    real("gcc", &["gcc"], "0.002");
}

#[test]
fn our_own_programs() {
    for (workload, scale) in [
        ("fstat:2", "0.02"),
        ("context-switch", "0.002"),
        ("context-switch:threads+pipe", "0.002"),
        ("context-switch:processes+pipe", "0.002"),
        ("context-switch:threads+futex", "0.002"),
    ] {
        real(workload, &[], scale);
    }
}

#[test]
fn a_port_in_use_is_told() {
    if locklab_host::process::find("nginx", &[]).is_none()
        || locklab_host::process::find("ab", &[]).is_none()
    {
        println!("skipped: nginx or ab is missing");
        return;
    }
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let bench = Bench::new();
    let file = bench.path("port.toml");
    std::fs::write(
        &file,
        format!("kind = 'compare'\n[[workload]]\nname = 'nginx-churn'\nport = {port}\n"),
    )
    .unwrap();
    let (code, _, err) = bench.run(&[&[file.as_str()], &EIGHT[..]].concat());
    assert_eq!(code, 1);
    assert!(
        err.contains(&format!("port {port} cannot be used")),
        "{err}"
    );
}

#[test]
fn a_kernel_tree_is_built() {
    if locklab_host::process::find("make", &[]).is_none() {
        println!("skipped: make is missing");
        return;
    }
    // This is a tree with the targets of the kernel's, and little behind them.
    let bench = Bench::new();
    let tree = bench.path("tree");
    std::fs::create_dir(&tree).unwrap();
    std::fs::write(
        Path::new(&tree).join("Makefile"),
        "tinyconfig:\n\techo > $(O)/.config\nvmlinux:\n\ttest -e $(O)/.config && echo > $(O)/vmlinux\n",
    )
    .unwrap();
    let file = bench.path("kernel.toml");
    std::fs::write(
        &file,
        format!("kind = 'compare'\n[[workload]]\nname = 'kernel-build'\npath = '{tree}'\n"),
    )
    .unwrap();
    let (code, json) = bench.json(&[&[file.as_str(), "--warm-up", "0"], &EIGHT[..]].concat());
    assert_eq!(code, 0, "{json:#}");
    assert_eq!(json["workloads"][0]["metrics"][0]["name"], "elapsed");
    assert_eq!(json["workloads"][0]["setup"]["Tree"], "tree");
}

#[test]
fn inlining_in_two_layouts_of_a_real_link() {
    let ready = ["gcc", "ld.lld", "qemu-x86_64"]
        .iter()
        .all(|p| locklab_host::process::find(p, &[]).is_some())
        && locklab_programs::icache::Model::new(None, None, None, false).is_ok();
    if !ready {
        println!("skipped: gcc, lld, qemu-user or the plugin is missing");
        return;
    }
    let bench = Bench::new();
    let plot = bench.path("plot.svg");
    let (code, json) = bench.json(&[
        "--workload",
        "call-sites:40",
        "--inline",
        "unlock=never|always",
        "--scale",
        "0.005",
        "--pairs",
        "8",
        "--warm-up",
        "0",
        "--set",
        "counters=none",
        "--plot",
        &plot,
    ]);
    assert_eq!(code, 0, "{json:#}");
    let metrics = json["workloads"][0]["metrics"].as_array().unwrap();
    let metric = |name: &str| metrics.iter().find(|m| m["name"] == name).unwrap();
    // A copy at each site: more text, fewer instructions.
    let text = metric("text");
    assert!(text["experiment"].as_f64().unwrap() > text["baseline"].as_f64().unwrap());
    assert_eq!(text["source"], "file");
    let instructions = metric("instructions-modelled");
    assert!(instructions["delta_percent"].as_f64().unwrap() < 0.0);
    assert_eq!(instructions["source"], "model");
    assert!(std::fs::read_to_string(plot).unwrap().starts_with("<svg"));

    let unknown = [
        "--workload",
        "call-sites",
        "--inline",
        "unlock=maybe|always",
    ];
    let (code, _, err) = bench.run(&unknown);
    assert_eq!(code, 2);
    assert!(err.contains("write unlock=never|always"), "{err}");
    let (code, _, err) = bench.run(&[&["--workload", "call-sites"], &EIGHT[..]].concat());
    assert_eq!(code, 1);
    assert!(err.contains("nothing says what to inline"), "{err}");
}

#[test]
fn screening_ranks_by_the_kernel_where_there_is_no_pmu() {
    let output = Command::cargo_bin("locklab")
        .unwrap()
        .args([
            "frontend",
            "--workload",
            "gcc,fstat:1",
            "--runs",
            "1",
            "--scale",
            "0.01",
            "--json",
        ])
        .output()
        .unwrap();
    assert!(output.status.success());
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    let names: Vec<&str> = json["workloads"]
        .as_array()
        .unwrap()
        .iter()
        .map(|w| w["name"].as_str().unwrap())
        .collect();
    assert_eq!(names.len(), 2);
    if json["workloads"][0]["front_end_bound"].is_null() {
        assert!(json["front_end"].is_string());
    }
}
