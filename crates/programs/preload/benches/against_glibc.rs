//! The interposer against plain glibc, both sides in one run.
//!
//! `cargo bench -p locklab-preload`. Every lock without other work: one process has a
//! mutex of each side, which take turns in slices of a third of a millisecond
//! (`tests/c/slices.c`). A few locks with work: a pair is one run of a C program on
//! glibc and one under the interposer, in alternating order; the median of
//! the ratios of time is printed, with the lowest and the highest
//! (`tests/c/pair.c`). Two threads that contend are pinned to two CPUs, and there
//! batches in which other programs took one of these away do not count: on a busy
//! machine that takes a while. On a virtual machine the CPUs may be siblings or far
//! apart, and change, which moves both sides.

#[path = "../tests/support/mod.rs"]
mod support;

use locklab_locks::catalogue;
use std::path::Path;
use std::process::Command;
use support::{compile, succeed, under};

const PAIRS: usize = 9;

/// What `slices` is asked, and what the ratio of time should not exceed.
const CASES: [(&str, &[&str], f64); 4] = [
    ("one thread, never another", &["alone", "300"], 1.05),
    ("one thread, another sleeps", &["beside", "300"], 1.05),
    (
        "one thread, another sleeps, 30 ns between",
        &["beside", "300", "30"],
        1.05,
    ),
    ("two threads that do nothing else", &["two", "300"], 1.11),
];

/// Critical and non-critical lengths of two threads: as in a matrix, n is
/// n + 1 units of about 15 cycles.
const LENGTHS: [[&str; 2]; 7] = [
    ["0", "0"],
    ["0", "32"],
    ["0", "128"],
    ["8", "512"],
    ["32", "32"],
    ["32", "128"],
    ["128", "128"],
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
    let Some(slices) = compile(folder.path(), "slices.c", &[]) else {
        return;
    };
    println!("ns for a lock and an unlock: glibc, the interposer (--wait barging), their");
    println!("ratio (5th to 95th percentile of the pairs of slices), its bound\n");
    for (name, arguments, bound) in CASES {
        println!("{name}");
        for lock in catalogue::ALL.iter().map(|entry| entry.info.name) {
            let figures = figures(under(lock, "barging", &slices).args(arguments));
            let [glibc, ours, ratio, low, high] = figures[..] else {
                panic!("five figures: {figures:?}");
            };
            let verdict = if ratio <= bound { "within" } else { "over" };
            println!(
                "  {lock:<21} {glibc:>8.2} {ours:>8.2}  {ratio:>5.2} ({low:.2} to {high:.2})  \
                 {verdict} {bound:.2}"
            );
        }
        println!();
    }
    println!("the same with work, medians of {PAIRS} pairs of runs (lowest to highest)\n");
    for [critical, non_critical] in LENGTHS {
        println!(
            "two threads contend, critical length {critical}, non-critical {non_critical}; and\n\
             how many pairs in a hundred were handovers"
        );
        let arguments = ["2", "500", "100", critical, non_critical];
        for lock in ["ticket", "mcs", "clh", "fissile", "ttas"] {
            measure(&program, &arguments, lock, "spin-then-park", 1.0);
        }
        println!();
    }
}

fn measure(program: &Path, arguments: &[&str], lock: &str, wait: &str, bound: f64) {
    let mut pairs: Vec<[Vec<f64>; 2]> = (0..PAIRS)
        .map(|pair| {
            let glibc = || figures(Command::new(program).args(arguments));
            let ours = || figures(under(lock, wait, program).args(arguments));
            if pair % 2 == 0 {
                let glibc = glibc();
                [glibc, ours()]
            } else {
                let ours = ours();
                [glibc(), ours]
            }
        })
        .collect();
    let mut median = |of: &dyn Fn(&[Vec<f64>; 2]) -> f64| {
        pairs.sort_by(|a, b| of(a).total_cmp(&of(b)));
        [0, PAIRS / 2, PAIRS - 1].map(|n| of(&pairs[n]))
    };
    let [_, glibc, _] = median(&|pair| pair[0][0]);
    let [_, ours, _] = median(&|pair| pair[1][0]);
    let [low, ratio, high] = median(&|pair| pair[1][0] / pair[0][0]);
    let verdict = if ratio <= bound { "within" } else { "over" };
    print!(
        "  {lock:<10} {wait:<15} {glibc:>8.2} {ours:>8.2}  {ratio:>5.2} ({low:.2} to {high:.2})  \
         {verdict} {bound:.2}"
    );
    let [_, glibc, _] = median(&|pair| pair[0][1]);
    let [_, ours, _] = median(&|pair| pair[1][1]);
    println!("  {glibc:.0} / {ours:.0} %");
}

fn figures(command: &mut Command) -> Vec<f64> {
    let printed = succeed(command, 300);
    let words = printed.split_whitespace();
    words.map(|word| word.parse().expect("a number")).collect()
}
