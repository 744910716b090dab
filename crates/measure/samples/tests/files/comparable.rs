//! What is not comparable is said and not compared, and what is compared is the same thing:
//! settings, names, packages, parameters, zeros, copies of one run.

use super::{csv, judged, notes, values, words};
use locklab_harness::gate::FailOn;
use locklab_judge::{Settings, Verdict};
use locklab_samples::{JudgedSamples, Judging, Matching, compare, document, fails, judge, read};
use serde_json::json;
use std::path::Path;

/// Judges two of the files in `given/`, as the command does.
fn given(baseline: &str, experiment: &str) -> JudgedSamples {
    let file = |name: &str| {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/files/given");
        let bytes = std::fs::read(Path::new(folder).join(name)).unwrap();
        let mut file = read(&bytes, "benchmark", None).unwrap_or_else(|e| panic!("{name} {e}"));
        file.label = name.into();
        file
    };
    let judging = Judging {
        settings: Settings::default(),
        drift: 0.03,
        apart: None,
        process_noise: None,
    };
    let matching = Matching::default();
    judge(compare(file(baseline), file(experiment), matching), judging).unwrap()
}

fn gate(found: &JudgedSamples) -> Result<Option<FailOn>, String> {
    fails(&[FailOn::Worse], found).map_err(|e| e.to_string())
}

#[test]
fn a_count_that_was_zero_and_is_one_is_worse() {
    let found = given("go-allocs-0.txt", "go-allocs-1.txt");
    let row = |metric: &str| {
        found
            .rows
            .iter()
            .find(|row| row.of.metric == metric)
            .unwrap()
    };
    for metric in ["allocs/op", "B/op"] {
        assert_eq!(row(metric).judged.verdict, Verdict::Worse, "{metric}");
        assert!(row(metric).judged.p < 0.001);
    }
    assert_eq!(row("allocs/op").of.medians, Some([0.0, 1.0]));
    assert_eq!(gate(&found), Ok(Some(FailOn::Worse)));
    let conclusion = document(&found, "").data["conclusion"].to_string();
    assert!(
        conclusion.contains("X-8: allocs/op is worse (0 to 1.000)"),
        "{conclusion}"
    );
    // The other way it is better, and none at all is flat.
    let back = given("go-allocs-1.txt", "go-allocs-0.txt");
    assert_eq!(gate(&back), Ok(None));
    assert!(
        back.rows
            .iter()
            .any(|row| row.judged.verdict == Verdict::Better)
    );
}

#[test]
fn another_system_and_processor_are_not_compared() {
    let found = given("go-linux-amd64.txt", "go-darwin-arm64.txt");
    assert!(found.rows.is_empty(), "{:?}", words(&found));
    let said = notes(&found);
    for part in [
        "OS linux and darwin",
        "architecture amd64 and arm64",
        "Apple M1",
        "X-8",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let error = gate(&found).unwrap_err();
    assert!(
        error.contains("judged nothing") && error.contains("OS linux"),
        "{error}"
    );
    assert_eq!(fails(&[FailOn::Invalid], &found).ok(), None);
}

#[test]
fn utf16_is_read() {
    let found = given("go-utf16.txt", "go-utf16.txt");
    assert_eq!(found.compared.files[0].format.name(), "go");
    assert_eq!(found.rows[0].of.name, "X-8");
}

#[test]
fn parameters_are_part_of_what_was_run() {
    let found = given("hyperfine-L-old.json", "hyperfine-L-new.json");
    assert_eq!(
        words(&found),
        ["./bench threads=1 unclear", "./bench threads=4 worse"]
    );
    let jmh = |factor: f64| {
        let one = |threads: u32, factor: f64| {
            json!({"benchmark": "B.a", "mode": "avgt", "threads": threads, "primaryMetric":
                {"scoreUnit": "ns/op", "rawData": vec![values(100.0 * factor, 5); 5]}})
        };
        json!([one(1, 1.0), one(8, factor)]).to_string()
    };
    // A fork is a process, and five of them differ by nothing here.
    assert_eq!(
        words(&judged(&jmh(1.0), &jmh(1.3)))[1],
        "B.a threads=8 worse"
    );
}

/// Intervals count from the start of their own run, and are of one process.
#[test]
fn intervals_of_perf_are_no_pairs() {
    let found = given("perf-interval-0900.csv", "perf-interval-1800.csv");
    assert_eq!(words(&found), ["perf stat, task-clock unclear"]);
    let said = notes(&found);
    assert!(
        said.contains("The files are 9.0 hours apart") || said.contains("apart"),
        "{said}"
    );
    assert!(said.contains("one process cannot decide"), "{said}");
    assert_eq!(gate(&found), Ok(None));
    // A table with such times is no more in turn.
    let of = |first: f64| {
        let row = |i: usize| {
            format!(
                "a,{},{}\n",
                1.0 + 0.001 * (i % 7) as f64,
                first + 0.1 * i as f64
            )
        };
        format!("name,value,at\n{}", (0..20).map(row).collect::<String>())
    };
    let found = judged(&of(0.1001), &of(0.1002));
    assert!(notes(&found).contains("Drift was not controlled"));
}

#[test]
fn the_same_code_in_two_processes_raises_no_alarm() {
    let found = given("pytest-same-code-1.json", "pytest-same-code-2.json");
    assert_eq!(words(&found), ["test_x.py::test_b unclear"]);
    assert_eq!(gate(&found), Ok(None));
    let said = notes(&found);
    assert!(said.contains("4 files of each side would do"), "{said}");
    assert!(said.contains("--process-noise PERCENT"), "{said}");
}

#[test]
fn copies_of_one_run_are_named_in_every_format() {
    let text = csv(&[("a", values(1.0, 10)), ("b", vec![2.0; 10])]);
    let found = judged(&text, &text);
    // A count may be the same by nature.
    assert_eq!(words(&found), ["a invalid", "b flat"]);
    assert!(notes(&found).contains("Both sides hold the same samples of a"));
    let alone = csv(&[("a", values(1.0, 10))]);
    let error = gate(&judged(&alone, &alone)).unwrap_err();
    assert!(error.contains("the same samples"), "{error}");
}

fn go(lines: &[(&str, f64)]) -> String {
    let mut text = String::new();
    for (name, value) in lines {
        match name.strip_prefix("pkg: ") {
            Some(_) => text.push_str(&format!("{name}\n")),
            None => values(*value, 10)
                .iter()
                .for_each(|v| text.push_str(&format!("Benchmark{name} 100 {v} ns/op\n"))),
        }
    }
    text
}

#[test]
fn a_package_that_only_one_file_names_is_no_other_name() {
    let two = go(&[
        ("pkg: p/a", 0.0),
        ("X-8", 100.0),
        ("pkg: p/b", 0.0),
        ("X-8", 500.0),
    ]);
    let one = go(&[("pkg: p/a", 0.0), ("X-8", 120.0)]);
    let found = judged(&two, &one);
    assert_eq!(words(&found), ["p/a X-8 worse"]);
    assert!(notes(&found).contains("Only in base, so not judged: p/b X-8"));
    // Where all is of one package its name is left out, and a file may say none.
    let none = go(&[("X-8", 120.0)]);
    let first = go(&[("pkg: p/a", 0.0), ("X-8", 100.0)]);
    assert_eq!(words(&judged(&first, &one)), ["X-8 worse"]);
    assert_eq!(words(&judged(&first, &none)), ["X-8 worse"]);
}

#[test]
fn another_gomaxprocs_is_another_benchmark() {
    let found = judged(&go(&[("X-8", 100.0)]), &go(&[("X-16", 100.0)]));
    assert!(found.rows.is_empty());
    let said = notes(&found);
    assert!(
        said.contains("GOMAXPROCS is 8 on one side and 16"),
        "{said}"
    );
    assert!(
        gate(&found)
            .unwrap_err()
            .contains("no benchmark is in both files")
    );
    let conclusion = document(&found, "");
    let text = locklab_document::render::text(&conclusion, locklab_document::render::Colour::Plain);
    assert!(!text.contains("measured in turn: signed-rank"), "{text}");
}

#[test]
fn a_debug_build_and_another_jdk_are_other_settings() {
    let google = |build: &str, host: &str| {
        let one = |x: f64| json!({"name": "BM", "run_name": "BM", "real_time": x, "iterations": 1});
        let entries: Vec<_> = values(100.0, 8).into_iter().map(one).collect();
        json!({"context": {"library_build_type": build, "host_name": host}, "benchmarks": entries})
            .to_string()
    };
    let found = judged(&google("release", "a"), &google("debug", "a"));
    assert!(
        notes(&found).contains("build of the library release and debug"),
        "{}",
        notes(&found)
    );
    // Another host may be as good.
    let found = judged(&google("release", "a"), &google("release", "b"));
    assert_eq!(found.rows.len(), 1);
    assert!(notes(&found).contains("The host is a in base and b in head"));
    let jmh = |jdk: &str| {
        json!([{"benchmark": "B.a", "mode": "avgt", "jdkVersion": jdk, "primaryMetric":
            {"scoreUnit": "ns/op", "rawData": vec![values(100.0, 5); 5]}}])
        .to_string()
    };
    assert!(notes(&judged(&jmh("17"), &jmh("21"))).contains("JDK 17 and 21"));
}

#[test]
fn families_of_google_benchmark_have_no_repetitions() {
    let one = |x: f64| json!({"name": "BM/8", "run_name": "BM/8", "real_time": x, "iterations": 1});
    let mut entries: Vec<_> = values(100.0, 8).into_iter().map(one).collect();
    for name in ["BigO", "RMS"] {
        entries.push(
            json!({"name": format!("BM_{name}"), "run_name": "BM", "run_type": "aggregate",
            "aggregate_name": name}),
        );
    }
    let text = json!({"context": {}, "benchmarks": entries}).to_string();
    let file = read(text.as_bytes(), "x", None).unwrap();
    assert!(file.notes.is_empty(), "{:?}", file.notes);
}

/// A time that no run takes makes its benchmark invalid, not all of them.
#[test]
fn an_absurd_time_is_no_drift() {
    let of = |factor: f64, odd: f64| {
        let mut times = values(factor, 20);
        times[3] = odd;
        json!({"results": [{"command": "a", "times": times},
            {"command": "b", "times": values(factor, 20)}]})
        .to_string()
    };
    let found = judged(&of(1.0, 1.0), &of(1.1, 1e308));
    assert_eq!(words(&found), ["a invalid", "b worse"]);
    assert!(found.allowance() < 0.01);
    assert!(notes(&found).contains("a has a value that is no time of a run"));
}
