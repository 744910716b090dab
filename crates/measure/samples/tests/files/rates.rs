//! Error rates of `locklab judge` on simulated files, seeded: false alarms under
//! a machine that drifts, and the power of the test.

use locklab_judge::{Family, Settings, Verdict};
use locklab_samples::{Judging, Matching, compare, judge, read};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use rand_distr::StandardNormal;

/// Returns a file of hyperfine: benchmarks of 20 runs, one after the other, on a machine
/// that becomes slower by 3 % an hour; and the time at its end.
fn file(
    rng: &mut SmallRng,
    benchmarks: usize,
    run: f64,
    mut now: f64,
    effect: f64,
) -> (String, f64) {
    let mut results = Vec::new();
    for name in 0..benchmarks {
        let mut times = Vec::new();
        for _ in 0..20 {
            let noise: f64 = rng.sample(StandardNormal);
            let time = run * (1.0 + 0.03 * now / 3600.0) * (0.01 * noise + effect).exp();
            now += time;
            times.push(time.to_string());
        }
        results.push(format!(
            r#"{{"command": "b{name}", "times": [{}]}}"#,
            times.join(",")
        ));
    }
    (format!(r#"{{"results": [{}]}}"#, results.join(",")), now)
}

/// Returns in how many of 200 families any benchmark is called, in percent.
fn families_called(run: f64, drift: f64, family: Family) -> f64 {
    let mut called = 0;
    for seed in 0..200 {
        let mut rng = SmallRng::seed_from_u64(seed);
        let (baseline, end) = file(&mut rng, 10, run, 0.0, 0.0);
        let (experiment, _) = file(&mut rng, 10, run, end, 0.0);
        let read = |text: &str| read(text.as_bytes(), "x", None).unwrap();
        let compared = compare(read(&baseline), read(&experiment), Matching::default());
        let settings = Settings {
            family,
            ..Settings::default()
        };
        let judging = Judging {
            settings,
            drift,
            apart: None,
            process_noise: None,
        };
        let judged = judge(compared, judging).unwrap();
        let is_call = |v: &Verdict| matches!(v, Verdict::Better | Verdict::Worse);
        called += u32::from(judged.rows.iter().any(|row| is_call(&row.judged.verdict)));
    }
    f64::from(called) / 2.0
}

/// 5 % of 200 families are 10, and 17 would be three standard deviations more.
#[test]
fn a_machine_that_drifts_raises_no_false_alarm() {
    for run in [0.1, 1.0, 30.0] {
        let called = families_called(run, 0.03, Family::Holm);
        assert!(called <= 5.0, "runs of {run} s: {called} %");
    }
    // Which a test that knows nothing of drift does, as soon as runs are long.
    assert!(families_called(30.0, 0.0, Family::Holm) > 90.0);
    assert!(families_called(1.0, 0.0, Family::Each) > 20.0);
}

/// The Mann-Whitney test of 20 and 20 normal samples finds a shift of one σ in 86
/// of 100, by its asymptotic efficiency of 3/π against Student's.
#[test]
fn the_power_is_that_of_the_exact_rank_sum_test() {
    let mut found = 0;
    for seed in 0..1000 {
        let mut rng = SmallRng::seed_from_u64(1_000_000 + seed);
        let (baseline, _) = file(&mut rng, 1, 1e-6, 0.0, 0.0);
        let (experiment, _) = file(&mut rng, 1, 1e-6, 0.0, 0.01);
        let read = |text: &str| read(text.as_bytes(), "x", None).unwrap();
        let compared = compare(read(&baseline), read(&experiment), Matching::default());
        let settings = Settings {
            delta: 1e-4,
            ..Settings::default()
        };
        let judging = Judging {
            settings,
            drift: 0.0,
            apart: None,
            process_noise: None,
        };
        let judged = judge(compared, judging).unwrap();
        found += u32::from(judged.rows[0].judged.verdict == Verdict::Worse);
    }
    assert!((830..=890).contains(&found), "{found} of 1000");
}

/// The work of a thousand benchmarks, in runs and not in seconds: a debug build
/// has no time that means anything.
#[test]
fn a_million_rows_are_read_and_judged() {
    let mut text = String::from("name,value\n");
    let mut rng = SmallRng::seed_from_u64(7);
    for i in 0..1_000_000_u32 {
        let noise: f64 = rng.sample(StandardNormal);
        text.push_str(&format!("b{},{}\n", i % 1000, (0.01 * noise).exp()));
    }
    let mut other = read(text.as_bytes(), "x", None).unwrap();
    // The same samples would be called so.
    for benchmark in &mut other.benchmarks {
        benchmark.runs.reverse();
    }
    let file = read(text.as_bytes(), "x", None).unwrap();
    let judging = Judging {
        settings: Settings::default(),
        drift: 0.0,
        apart: None,
        process_noise: None,
    };
    let judged = judge(compare(file, other, Matching::default()), judging).unwrap();
    assert_eq!(judged.rows.len(), 1000);
    assert!(
        judged
            .rows
            .iter()
            .all(|row| row.judged.verdict.word() == "flat")
    );
}
