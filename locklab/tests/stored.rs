//! Tests that what version 0.2 stored opens with the reports that it had, and that a
//! command asks today what it asked then: the store finds an experiment by that.
//!
//! `stored/0.2.sqlite` was written by version 0.2, by the commands that
//! `locklab results list` shows.

use crate::common::golden::golden;
use assert_cmd::Command;
use serde_json::{Value, json};
use std::path::Path;

fn locklab(line: &str) -> Command {
    let mut command = Command::cargo_bin("locklab").unwrap();
    command.args(line.split_whitespace());
    command
}

fn printed(command: &mut Command) -> String {
    let output = command.assert().success();
    String::from_utf8(output.get_output().stdout.clone()).unwrap()
}

#[test]
fn a_store_of_version_0_2_opens_with_the_reports_that_it_had() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("0.2.sqlite");
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/stored/0.2.sqlite");
    std::fs::copy(kept, &store).unwrap();
    for (number, of) in [
        "matrix-simulated",
        "matrix",
        "rank-simulated",
        "rank",
        "compare",
    ]
    .iter()
    .enumerate()
    {
        let line = format!("results show {} --quiet", number + 1);
        let text = printed(locklab(&line).arg("--store").arg(&store));
        golden(&format!("stored-{of}.txt"), &text);
        let json: Value = serde_json::from_str(&printed(
            locklab(&line).arg("--json").arg("--store").arg(&store),
        ))
        .unwrap();
        assert_eq!(json["kind"], of.split('-').next().unwrap());
    }
}

/// The specification is the part of an experiment's key that a command line
/// decides.
#[test]
fn a_command_asks_what_it_asked_in_version_0_2() {
    let mix = "--reads 50 --set lines=2 --set distribution=bursty --set locks=2,4 --set choice=zipf --set nested=true";
    let lines = [
        "matrix ticket mcs --threads 1,2".to_owned(),
        "matrix tas ttas --threads 2,1 --aa --set processes=true --latency --set slice_us=900 --set layout=3 \
         --time 7 --unit ns --critical 100,200 --non-critical 1000"
            .to_owned(),
        "matrix ticket mcs --threads 1 --set workload=fstat".to_owned(),
        format!("matrix ticket phase-fair --threads 2 --critical 4 {mix}"),
        "matrix ticket mcs --on xeon-8380-2s".to_owned(),
        "matrix ticket mcs --on xeon-8380-vm --vcpus 12 --set physical=8 --unit ns --critical 90 \
         --latency --set placement=compact"
            .to_owned(),
        "matrix ticket mcs --on flat-16 --set workload=fstat --set acquisitions=500 --aa".to_owned(),
        format!("matrix ticket phase-fair --on flat-16 --critical 4 {mix}"),
        "rank ticket mcs tas --threads 1,2".to_owned(),
        "rank ticket ttas --against tas --threads 2 --latency --set processes=true --time 3 --unit ns \
         --critical 40"
            .to_owned(),
        format!("rank ticket phase-fair --threads 2 --critical 4 {mix}"),
        "rank ticket mcs tas --on flat-16".to_owned(),
        format!("rank ticket phase-fair --on flat-16 --threads 8 --critical 4 {mix}"),
    ];
    let mut asked = Vec::new();
    for line in lines {
        let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
        let text = printed(&mut locklab(&format!(
            "{line} --dry-run --json --store :memory:"
        )));
        let document: Value = serde_json::from_str(&text).unwrap();
        asked.push(json!({
            "command": line,
            "kind": document["kind"],
            "spec": document["spec"],
            "design": document["design"],
            "cells": document["cells"].as_array().unwrap().len(),
        }));
    }
    golden("stored-specs.json", &format!("{:#}\n", json!(asked)));
}
