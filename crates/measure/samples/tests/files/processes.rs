//! One process a side is one draw: verdicts of several files, and the null test on processes
//! that differ.

use super::{csv, values};
use locklab_judge::{Settings, Verdict};
use locklab_samples::{
    JudgedSamples, Judging, Matching, SampleFile, compare, document, judge, read,
};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use rand_distr::StandardNormal;
use serde_json::json;

/// By how much processes of the same code differ: a standard deviation of 4 %, four times
/// that of the samples within one.
const PROCESSES: f64 = 0.04;
const WITHIN: f64 = 0.01;

/// Returns a file of pytest of one process: benchmarks with 20 samples each, which share
/// what this process is like.
fn process(rng: &mut SmallRng, benchmarks: usize, effect: f64) -> SampleFile {
    let one = |i: usize| {
        let own: f64 = rng.sample(StandardNormal);
        let data: Vec<f64> = (0..20)
            .map(|_| {
                let noise: f64 = rng.sample(StandardNormal);
                1e-6 * (effect + PROCESSES * own + WITHIN * noise).exp()
            })
            .collect();
        json!({"name": format!("b{i}"), "stats": {"data": data, "iterations": 1}})
    };
    let entries: Vec<_> = (0..benchmarks).map(one).collect();
    let text = json!({"machine_info": {}, "benchmarks": entries}).to_string();
    read(text.as_bytes(), "x", None).unwrap()
}

fn side(rng: &mut SmallRng, files: usize, benchmarks: usize, effect: f64) -> SampleFile {
    let file = |_| process(rng, benchmarks, effect);
    SampleFile::joined((0..files).map(file).collect())
}

fn judged(baseline: SampleFile, experiment: SampleFile, noise: Option<f64>) -> JudgedSamples {
    let judging = Judging {
        settings: Settings::default(),
        drift: 0.03,
        apart: None,
        process_noise: noise,
    };
    judge(compare(baseline, experiment, Matching::default()), judging).unwrap()
}

fn calls(found: &JudgedSamples) -> usize {
    let is_call = |v: &Verdict| matches!(v, Verdict::Better | Verdict::Worse);
    let rows = found.rows.iter();
    rows.filter(|row| is_call(&row.judged.verdict)).count()
}

/// Returns in how many families of three equal benchmarks any is called, in percent: over all
/// the ways in which twice so many processes of the same code can be the two sides. So it is
/// no estimate, and has no error of its own.
fn families_called(files: usize, noise: Option<f64>) -> f64 {
    let mut rng = SmallRng::seed_from_u64(3);
    let all: Vec<SampleFile> = (0..2 * files).map(|_| process(&mut rng, 3, 0.0)).collect();
    let (mut called, mut ways) = (0, 0);
    for sides in 0_u32..1 << all.len() {
        if sides.count_ones() as usize != files {
            continue;
        }
        let side = |is_one: bool| {
            let files = (0..all.len()).filter(|i| (sides >> i & 1 == 1) == is_one);
            SampleFile::joined(files.map(|i| all[i].clone()).collect())
        };
        ways += 1;
        called += u32::from(calls(&judged(side(false), side(true), noise)) > 0);
    }
    100.0 * f64::from(called) / f64::from(ways)
}

/// Returns in how many of 400 pairs of two processes each any is called, in percent.
fn pairs_called(noise: Option<f64>) -> f64 {
    let called = |seed| {
        let mut rng = SmallRng::seed_from_u64(seed);
        let [baseline, experiment] = [(); 2].map(|()| side(&mut rng, 1, 3, 0.0));
        u32::from(calls(&judged(baseline, experiment, noise)) > 0)
    };
    f64::from((0..400).map(called).sum::<u32>()) / 4.0
}

#[test]
fn the_same_code_is_called_in_no_more_families_than_5_percent() {
    // Unless the caller says what processes differ by, one of a side calls nothing.
    assert_eq!(pairs_called(None), 0.0);
    // As a judge would that knows nothing of processes.
    assert!(pairs_called(Some(1e-6)) > 80.0);
    // Two processes differ by more than four standard deviations of one, times the root of
    // two, once in 16,000 draws.
    assert!(pairs_called(Some(4.0 * PROCESSES * 2.0_f64.sqrt())) <= 5.0);
    for files in [4, 5, 6] {
        let called = families_called(files, None);
        assert!(called <= 5.0, "{files} files a side: {called} %");
    }
}

#[test]
fn several_files_find_what_is_there() {
    let mut found = 0;
    for seed in 0..100 {
        let mut rng = SmallRng::seed_from_u64(1000 + seed);
        let baseline = side(&mut rng, 10, 1, 0.0);
        let experiment = side(&mut rng, 10, 1, 0.08);
        let of = judged(baseline, experiment, None);
        found += u32::from(of.rows[0].judged.verdict == Verdict::Worse);
    }
    // Two standard deviations, with ten of each side.
    assert!(found >= 90, "{found} of 100");
}

#[test]
fn a_file_is_the_unit_and_their_spread_is_said() {
    let mut rng = SmallRng::seed_from_u64(5);
    let found = judged(side(&mut rng, 6, 1, 0.0), side(&mut rng, 6, 1, 0.0), None);
    let row = &found.rows[0];
    assert_eq!(row.judged.estimate.unwrap().pairs, 6, "files, not samples");
    assert_eq!(row.of.few, None);
    let spread = row.of.between_processes.unwrap();
    assert!(spread > 0.02 && spread < 0.4, "{spread}");
    let of = document(&found, "");
    let text = locklab_document::render::text(&of, locklab_document::render::Colour::Plain);
    assert!(text.contains("those of one side differ by up to"), "{text}");
    assert!(text.contains("n=6"), "{text}");
}

/// Samples of one process call a difference beyond the figure that the caller gives.
#[test]
fn process_noise_is_a_bound_that_a_difference_must_exceed() {
    let of = |effect: f64| {
        let mut rng = SmallRng::seed_from_u64(11);
        let baseline = side(&mut rng, 1, 1, 0.0);
        let mut rng = SmallRng::seed_from_u64(11);
        let mut experiment = side(&mut rng, 1, 1, effect);
        experiment.benchmarks[0].runs.reverse();
        judged(baseline, experiment, Some(0.05)).rows[0]
            .judged
            .verdict
            .word()
    };
    assert_eq!(of(0.04), "unclear");
    assert_eq!(of(0.10), "worse");
    // Runs that are processes need no such figure.
    let read = |factor: f64| {
        let text = csv(&[("a", values(factor, 20))]);
        read(text.as_bytes(), "x", None).unwrap()
    };
    assert_eq!(calls(&judged(read(1.0), read(1.1), None)), 1);
}

/// Appended outputs of Go begin with a configuration each.
#[test]
fn appended_files_of_go_are_processes() {
    let run = |factor: f64| {
        let lines = values(100.0 * factor, 5);
        let lines: String = lines
            .iter()
            .map(|v| format!("BenchmarkA-8 10 {v} ns/op\n"))
            .collect();
        format!("goos: linux\npkg: a\n{lines}PASS\nok  \ta\t1s\n")
    };
    let text = |factor: f64| {
        let all: String = (0..6)
            .map(|i| run(factor * (1.0 + 0.002 * f64::from(i))))
            .collect();
        read(all.as_bytes(), "x", None).unwrap()
    };
    let found = judged(text(1.0), text(1.2), None);
    assert_eq!(found.rows[0].judged.estimate.unwrap().pairs, 6);
    assert_eq!(calls(&found), 1);
}
