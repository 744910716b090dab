//! The interposer against plain glibc, both sides in one run.
//!
//! `cargo bench -p locklab-preload`. A pair is one run of a C program on
//! glibc and one under the interposer, in an order that alternates; printed
//! is the median of the ratios, and how many of the pairs were below the
//! bound. Runs of two threads are pinned to two CPUs: on a virtual machine
//! these may be siblings or far apart, and change, which moves both sides.

#[path = "../tests/support/mod.rs"]
mod support;

use std::path::Path;
use std::process::Command;
use support::{compile, succeed, under};

const PAIRS: usize = 9;

struct Case {
    name: &'static str,
    arguments: &'static [&'static str],
    /// What the ratio should not exceed: ticket, queue locks.
    bounds: [f64; 2],
}

const CASES: [Case; 3] = [
    Case {
        name: "one thread, never another",
        arguments: &["1", "100000", "40"],
        bounds: [1.10, 1.25],
    },
    Case {
        name: "one thread, another sleeps",
        arguments: &["1", "100000", "40", "beside"],
        bounds: [1.10, 1.25],
    },
    Case {
        name: "two threads contend",
        arguments: &["2", "20000", "40"],
        bounds: [1.0, 1.0],
    },
];

fn main() {
    // `cargo test --benches` only asks whether it builds.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let Some(program) = compile(folder.path(), "pair.c", &[]) else {
        return;
    };
    println!(
        "ns for a lock and an unlock, medians of {PAIRS} pairs of runs: glibc, the\n\
         interposer, their ratio (lowest to highest of the pairs), its bound\n"
    );
    for case in &CASES {
        println!("{}", case.name);
        for lock in ["ticket", "qspinlock", "mcs", "clh"] {
            for wait in ["spin", "spin-then-park"] {
                let bound = case.bounds[usize::from(lock != "ticket")];
                measure(&program, case, lock, wait, bound);
            }
        }
        println!();
    }
}

fn measure(program: &Path, case: &Case, lock: &str, wait: &str, bound: f64) {
    let mut pairs: Vec<(f64, f64)> = (0..PAIRS)
        .map(|pair| {
            let glibc = || nanoseconds(Command::new(program).args(case.arguments));
            let ours = || nanoseconds(under(lock, wait, program).args(case.arguments));
            if pair % 2 == 0 {
                let glibc = glibc();
                (glibc, ours())
            } else {
                let ours = ours();
                (glibc(), ours)
            }
        })
        .collect();
    let mut median = |of: fn(&(f64, f64)) -> f64| {
        pairs.sort_by(|a, b| of(a).total_cmp(&of(b)));
        of(&pairs[PAIRS / 2])
    };
    let (glibc, ours) = (median(|p| p.0), median(|p| p.1));
    // Last, so that the pairs are in this order.
    let ratio = median(|p| p.1 / p.0);
    let (low, high) = (
        pairs[0].1 / pairs[0].0,
        pairs[PAIRS - 1].1 / pairs[PAIRS - 1].0,
    );
    println!(
        "  {lock:<10} {wait:<15} {glibc:>7.2} {ours:>7.2}  {ratio:>5.2} ({low:.2} to {high:.2})  \
         {} {bound:.2}",
        if ratio <= bound { "within" } else { "over" }
    );
}

fn nanoseconds(command: &mut Command) -> f64 {
    succeed(command, 120).trim().parse().expect("a number")
}
