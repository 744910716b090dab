//! The interposer against plain glibc, both sides in one run.
//!
//! `cargo bench -p locklab-preload`. Every lock without other work: one process has a
//! mutex of each side, which take turns in slices of a third of a millisecond
//! (`tests/c/slices.c`). A few locks with work: a pair is one run of a C program on
//! glibc and one under the interposer, in alternating order; the median of
//! the ratios of time is printed, with the lowest and the highest
//! (`tests/c/pair.c`); with 1, 2, 4 and 8 threads also the CPU time, since a lock that
//! spins may buy its rate with that. Two threads that contend are pinned to two CPUs, and there
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

/// Holds what `slices` is asked, and what the ratio of time should not exceed.
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
    println!("a hot loop, medians of {PAIRS} pairs of runs (lowest to highest): the interposer's");
    println!("rate over glibc's; CPU time of a lock and an unlock in ns, and the share of the");
    println!("thread that got least of an equal one, of glibc and the interposer\n");
    for threads in ["1", "2", "4", "8"] {
        for lock in ["ttas", "futex-adaptive", "fissile"] {
            crowd(&program, threads, lock);
        }
    }
    println!("\nthe same with work, medians of {PAIRS} pairs of runs (lowest to highest)\n");
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

/// Returns the figures of runs on glibc and under the interposer, in alternating order.
fn runs(program: &Path, arguments: &[&str], lock: &str, wait: &str) -> Vec<[Vec<f64>; 2]> {
    let pair = |pair: usize| {
        let glibc = || figures(Command::new(program).args(arguments));
        let ours = || figures(under(lock, wait, program).args(arguments));
        if pair.is_multiple_of(2) {
            let glibc = glibc();
            [glibc, ours()]
        } else {
            let ours = ours();
            [glibc(), ours]
        }
    };
    (0..PAIRS).map(pair).collect()
}

/// Returns the lowest, the median and the highest of a figure of pairs of runs.
fn spread(pairs: &[[Vec<f64>; 2]], of: impl Fn(&[Vec<f64>; 2]) -> f64) -> [f64; 3] {
    let mut values: Vec<f64> = pairs.iter().map(of).collect();
    values.sort_by(f64::total_cmp);
    [0, PAIRS / 2, PAIRS - 1].map(|n| values[n])
}

fn measure(program: &Path, arguments: &[&str], lock: &str, wait: &str, bound: f64) {
    let pairs = runs(program, arguments, lock, wait);
    let [_, glibc, _] = spread(&pairs, |pair| pair[0][0]);
    let [_, ours, _] = spread(&pairs, |pair| pair[1][0]);
    let [low, ratio, high] = spread(&pairs, |pair| pair[1][0] / pair[0][0]);
    let verdict = if ratio <= bound { "within" } else { "over" };
    print!(
        "  {lock:<10} {wait:<15} {glibc:>8.2} {ours:>8.2}  {ratio:>5.2} ({low:.2} to {high:.2})  \
         {verdict} {bound:.2}"
    );
    let [_, glibc, _] = spread(&pairs, |pair| pair[0][1]);
    let [_, ours, _] = spread(&pairs, |pair| pair[1][1]);
    println!("  {glibc:.0} / {ours:.0} %");
}

/// Runs a hot loop of so many threads, with the rate, the share of the thread that got least
/// and the CPU time.
fn crowd(program: &Path, threads: &str, lock: &str) {
    // Batches in which another program had a CPU do not count where each thread has one
    // of its own, so they are short; threads that share CPUs need several turns on them.
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let alone = threads.parse().is_ok_and(|threads: usize| threads <= cpus);
    let [microseconds, batches] = if alone {
        ["1000", "200"]
    } else {
        ["20000", "15"]
    };
    let arguments = [threads, microseconds, batches, "0", "0"];
    let pairs = runs(program, &arguments, lock, "barging");
    // Times of a pair: the ratio of rates is the other way round.
    let [low, ratio, high] = spread(&pairs, |pair| pair[0][0] / pair[1][0]);
    let bound = if threads == "1" { 1.0 / 1.05 } else { 1.0 };
    let verdict = if ratio >= bound { "within" } else { "below" };
    let sides = |figure: usize| {
        [0, 1].map(|side| {
            let [_, median, _] = spread(&pairs, |pair| pair[side][figure]);
            median
        })
    };
    let ([glibc_share, share], [glibc_cpu, cpu]) = (sides(2), sides(4));
    println!(
        "  {threads:>7} {lock:<15} {ratio:>5.2} ({low:.2} to {high:.2}) {verdict} {bound:.2} \
         {glibc_cpu:>7.1} {cpu:>7.1}  {glibc_share:>4.0} {share:>4.0} %"
    );
}

fn figures(command: &mut Command) -> Vec<f64> {
    let printed = succeed(command, 300);
    let words = printed.split_whitespace();
    words.map(|word| word.parse().expect("a number")).collect()
}
