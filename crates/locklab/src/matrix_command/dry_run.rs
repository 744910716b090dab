//! `--dry-run`: what would run, how long it would take.

use super::{print, summary};
use crate::cli::Common;
use crate::matrix::{Point, Work};
use crate::native::bench::Native;
use crate::plan::Plan;
use locklab_host::error::Error;
use std::fmt::Write as _;
use std::process::ExitCode;

/// Prints it.
///
/// # Errors
/// Standard output cannot be written.
pub(super) fn dry_run(plan: &Plan, native: &Native, common: &Common) -> Result<ExitCode, Error> {
    let spec = &plan.spec;
    if common.json {
        let cells: Vec<&Point> = plan.cells.iter().map(|cell| &cell.point).collect();
        let document = serde_json::json!({
            "schema": 1,
            "spec": spec,
            "cpus": plan.cpus,
            "cells": cells,
            "seconds": plan.estimate().as_secs_f64(),
        });
        return print(&format!("{document:#}\n"));
    }
    let mut text = String::new();
    let _ = writeln!(
        text,
        "Would run {} against {}.",
        spec.experiment, spec.baseline
    );
    let _ = writeln!(text, "{}", summary(plan));
    let over: Vec<usize> = spec
        .threads
        .iter()
        .copied()
        .filter(|n| *n > plan.cpus.len())
        .collect();
    let list = |numbers: &[u64]| {
        let texts: Vec<String> = numbers.iter().map(ToString::to_string).collect();
        texts.join(",")
    };
    let threads: Vec<u64> = spec.threads.iter().map(|n| *n as u64).collect();
    let over: Vec<u64> = over.iter().map(|n| *n as u64).collect();
    let _ = writeln!(
        text,
        "{:<14}{}{}",
        if spec.processes {
            "processes"
        } else {
            "threads"
        },
        list(&threads),
        if over.is_empty() {
            String::new()
        } else {
            format!(" (oversubscribed: {})", list(&over))
        }
    );
    match spec.work {
        Work::Units => {
            let _ = writeln!(text, "{:<14}{}", "critical", list(&spec.critical));
        }
        Work::Fstat => {
            let _ = writeln!(text, "{:<14}one fstat(2)", "critical");
        }
    }
    let _ = writeln!(text, "{:<14}{}", "non-critical", list(&spec.non_critical));
    for (name, value) in native.facts(plan) {
        let _ = writeln!(text, "{:<14}{value}", name);
    }
    print(&text)
}
