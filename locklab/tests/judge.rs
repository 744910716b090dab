//! `locklab judge` as a user runs it: each form of file, what may be wrong with them,
//! the report, and the exit codes of a gate.

use crate::common::golden::golden;
use assert_cmd::Command;
use serde_json::{Value, json};
use std::fmt::Write as _;

struct Files(tempfile::TempDir);

impl Files {
    fn new(baseline: &str, experiment: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("base"), baseline).unwrap();
        std::fs::write(folder.path().join("head"), experiment).unwrap();
        Self(folder)
    }

    /// Runs the command; returns exit code, standard output, standard error.
    fn judge(&self, options: &[&str]) -> (i32, String, String) {
        let mut command = Command::cargo_bin("locklab").unwrap();
        command.args(["judge", "base", "head"]).args(options);
        let output = command.current_dir(self.0.path()).output().unwrap();
        (
            output.status.code().unwrap_or(-1),
            String::from_utf8(output.stdout).unwrap(),
            String::from_utf8(output.stderr).unwrap(),
        )
    }

    fn json(&self, options: &[&str]) -> (i32, Value) {
        let (code, out, err) = self.judge(&[&["--json"], options].concat());
        let json = serde_json::from_str(&out).unwrap_or_else(|e| panic!("{e}: {out} {err}"));
        (code, json)
    }
}

/// Returns twenty values around `centre` that differ by ± 1 %, in an order without memory.
fn values(centre: f64) -> Vec<f64> {
    let at = |i: usize| (i * 7 % 20) as f64 / 20.0 - 0.5;
    (0..20).map(|i| centre * (1.0 + 0.02 * at(i))).collect()
}

/// Returns a table of names and values: the last may be of one row.
fn csv(rows: &[(&str, Vec<f64>)]) -> String {
    let mut text = "name,value\n".to_owned();
    for (name, values) in rows {
        for value in values {
            let _ = writeln!(text, "{name},{value}");
        }
    }
    text
}

fn hyperfine(commands: &[(&str, Vec<f64>)]) -> String {
    let one = |(name, times): &(&str, Vec<f64>)| json!({ "command": name, "times": times });
    json!({ "results": commands.iter().map(one).collect::<Vec<_>>() }).to_string()
}

fn go(centre: f64) -> String {
    let line = |v: f64| format!("BenchmarkA-8\t1000\t{v} ns/op\t2 allocs/op\n");
    format!(
        "pkg: a\n{}PASS\n",
        values(centre).into_iter().map(line).collect::<String>()
    )
}

fn google(centre: f64) -> String {
    let one = |v: f64| {
        json!({ "name": "BM_a", "run_name": "BM_a", "run_type": "iteration",
            "iterations": 10, "real_time": v, "cpu_time": v, "time_unit": "ns" })
    };
    let all: Vec<Value> = values(centre).into_iter().map(one).collect();
    json!({ "context": {}, "benchmarks": all }).to_string()
}

fn criterion(centre: f64) -> String {
    let times: Vec<f64> = values(centre).iter().map(|v| v * 10.0).collect();
    json!({ "sampling_mode": "Flat", "iters": vec![10.0; 20], "times": times }).to_string()
}

fn pytest(centre: f64) -> String {
    let stats = json!({ "data": values(centre), "iterations": 1 });
    json!({ "machine_info": {}, "benchmarks": [{ "name": "a", "fullname": "a", "stats": stats }] })
        .to_string()
}

fn jmh(centre: f64) -> String {
    let metric = json!({ "score": 1, "scoreUnit": "ns/op", "rawData": [values(centre)] });
    json!([{ "jmhVersion": "1.37", "benchmark": "a", "mode": "avgt", "forks": 1,
        "primaryMetric": metric, "secondaryMetrics": {} }])
    .to_string()
}

fn perf_stat(centre: f64) -> String {
    let line = |v: f64| format!("{v:.0},,instructions,1000,100.00,,\n");
    let all = values(centre).into_iter().map(line);
    format!(
        "# started on Thu Nov 26 14:00:00 2026\n\n{}",
        all.collect::<String>()
    )
}

fn locklab(centre: f64) -> String {
    json!({ "tool": "locklab 0.3.0", "kind": "compare", "workloads": [{ "name": "a",
        "metrics": [{ "name": "elapsed", "unit": "s", "primary": true, "pair_ratios":
            { "metric": "elapsed", "direction": "lower_is_better", "ratios": values(centre) } }],
        "pair_ratios": { "metric": "elapsed", "direction": "lower_is_better",
            "ratios": values(centre) } }] })
    .to_string()
}

/// A file of one benchmark whose values are around a centre.
type Write = fn(f64) -> String;

const FORMATS: [(&str, Write); 9] = [
    ("hyperfine", |centre| hyperfine(&[("a", values(centre))])),
    ("go", go),
    ("google", google),
    ("criterion", criterion),
    ("pytest", pytest),
    ("jmh", jmh),
    ("perf-stat", perf_stat),
    ("csv", |centre| csv(&[("a", values(centre))])),
    ("locklab", locklab),
];

#[test]
fn each_form_of_file_is_found_by_what_it_holds_and_by_its_name() {
    for (name, write) in FORMATS {
        let files = Files::new(&write(1e6), &write(1.2e6));
        for options in [&[][..], &["--format", name]] {
            let (code, json) =
                files.json(&[options, &["--drift", "0", "--fail-on", "worse"]].concat());
            assert_eq!(json["files"][0]["format"], name, "{json:#}");
            assert_eq!(code, 3, "{name}: {json:#}");
            let metric = &json["workloads"][0]["metrics"][0];
            assert_eq!(metric["verdict"], "worse", "{name}");
        }
        let equal = Files::new(&write(1e6), &write(1e6));
        assert_eq!(equal.judge(&["--fail-on", "worse"]).0, 0, "{name}");
        let other = if name == "jmh" { "go" } else { "jmh" };
        let (code, out, err) = equal.judge(&["--format", other]);
        assert_eq!((code, out.as_str()), (2, ""), "{name}: {err}");
        assert_eq!(err.lines().count(), 1, "{err}");
    }
    // Forms may be mixed; what they measure may not.
    let (code, json) = Files::new(&go(100.0), &csv(&[("A-8", values(120.0))])).json(&[]);
    assert_eq!(code, 0);
    let said = json["caveats"].to_string();
    assert!(said.contains("which may not measure the same"), "{said}");
    assert!(said.contains("so not judged"), "{said}");
}

/// Each costs what is bad and one sentence; the rest is judged.
#[test]
fn bad_input_is_a_sentence_and_the_rest_is_judged() {
    let with = |value: f64| {
        let mut list = values(1.0);
        list[3] = value;
        csv(&[("good", values(1.1)), ("bad", list)])
    };
    let base = csv(&[("good", values(1.0)), ("bad", values(1.0))]);
    let of = |name: &'static str, list: Vec<f64>| csv(&[("good", values(1.1)), (name, list)]);
    let units = |unit: &str, factor: f64| {
        let mut text = "name,value,unit\n".to_owned();
        for value in values(factor) {
            let _ = writeln!(text, "good,{value},ms\nbad,{value},{unit}");
        }
        text
    };
    let whole = hyperfine(&[("good", values(1.1)), ("bad", values(1.0))]);
    let cases = [
        (base.clone(), with(-1.0), "bad is invalid"),
        (base.clone(), with(f64::NAN), "bad is invalid"),
        (base.clone(), of("bad", vec![1.0]), "only 1 sample"),
        (
            csv(&[("good", values(1.0)), ("bad", vec![2.0; 20])]),
            of("bad", vec![1.0; 20]),
            "same number",
        ),
        (
            base.clone(),
            of("new", values(1.0)),
            "Only in base, so not judged: bad.",
        ),
        (
            base,
            of("new", values(1.0)),
            "Only in head, so not judged: new.",
        ),
        (
            units("ms", 1.0),
            units("MB", 1.1),
            "in ms in base and in MB in head",
        ),
        (
            hyperfine(&[("good", values(1.0)), ("bad", values(1.0))]),
            whole[..whole.len() - 30].to_owned(),
            "ends in the middle of its JSON",
        ),
    ];
    for (base, head, says) in cases {
        let files = Files::new(&base, &head);
        let (code, json) = files.json(&["--drift", "0"]);
        let said = json["caveats"].to_string();
        assert!(said.contains(says), "{says}: {said}");
        assert_eq!(json["workloads"][0]["name"], "good");
        assert_eq!(
            json["workloads"][0]["metrics"][0]["verdict"], "worse",
            "{says}"
        );
        assert_eq!(code, 0);
        assert_eq!(files.judge(&["--quiet"]).2, "");
    }
}

#[test]
fn what_cannot_be_read_at_all_is_one_line_and_exit_code_2() {
    let good = csv(&[("a", values(1.0))]);
    for (head, options, says) in [
        ("", &[][..], "is empty"),
        ("hello", &[], "head"),
        ("{\"results\": 5}", &[], "head"),
        (&good, &["--drift", "-1"], "--drift"),
        (&good, &["--delta", "0"], "margin"),
        (&good, &["--sarif", "no/folder/x"], "no/folder/x"),
    ] {
        let (code, out, err) = Files::new(&good, head).judge(options);
        assert_eq!((code, out.as_str()), (2, ""), "{head}: {err}");
        assert!(err.contains(says) && !err.contains("panicked"), "{err}");
    }
    let missing = Command::cargo_bin("locklab")
        .unwrap()
        .args(["judge", "no-1", "no-2"])
        .output();
    let missing = missing.unwrap();
    assert_eq!(missing.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&missing.stderr).contains("no-1"));
}

#[test]
fn the_exit_code_says_the_reason() {
    let base = csv(&[("a", values(1.0)), ("b", values(1.0))]);
    let noisy: Vec<f64> = values(1.0).iter().map(|v| 1.0 + 40.0 * (v - 1.0)).collect();
    let mut broken = values(1.0);
    broken[0] = -1.0;
    for (head, fail_on, code) in [
        (csv(&[("a", values(1.2)), ("b", values(1.0))]), "worse", 3),
        (csv(&[("a", values(1.0)), ("b", noisy.clone())]), "worse", 0),
        (
            csv(&[("a", values(1.0)), ("b", noisy.clone())]),
            "unclear",
            4,
        ),
        (csv(&[("a", values(1.0)), ("b", broken)]), "invalid", 5),
        (csv(&[("a", values(1.0))]), "incomplete", 6),
        (csv(&[("a", values(1.2)), ("b", noisy)]), "unclear,worse", 3),
        (csv(&[("c", values(1.2))]), "worse", 1),
    ] {
        let (found, _, err) = Files::new(&base, &head).judge(&["--fail-on", fail_on]);
        assert_eq!(found, code, "{fail_on}: {err}");
    }
}

fn report() -> Files {
    let base = [("parse", 2.0), ("print", 0.5), ("sort", 1.0), ("gone", 1.0)];
    let head = [("parse", 2.3), ("print", 0.45), ("sort", 1.0), ("new", 1.0)];
    let file = |all: [(&'static str, f64); 4]| hyperfine(&all.map(|(n, v)| (n, values(v))));
    Files::new(&file(base), &file(head))
}

#[test]
fn the_report_is_as_it_was() {
    let files = report();
    let (_, text, _) = files.judge(&["--quiet"]);
    golden(
        "judge.txt",
        &text.replace(env!("CARGO_PKG_VERSION"), "VERSION"),
    );
    let (_, _, err) = files.judge(&["--markdown", "report.md", "--quiet"]);
    assert_eq!(err, "");
    let markdown = std::fs::read_to_string(files.0.path().join("report.md")).unwrap();
    golden(
        "judge.md",
        &markdown.replace(env!("CARGO_PKG_VERSION"), "VERSION"),
    );
}

#[test]
fn the_results_are_as_their_schema_says() {
    let schema = Command::cargo_bin("locklab")
        .unwrap()
        .args(["schema", "judge"])
        .output();
    let schema: Value = serde_json::from_slice(&schema.unwrap().stdout).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let one = csv(&[("a", vec![1.0])]);
    let at = |first: f64| {
        let row = |(i, v): (usize, f64)| format!("a,{v},{}\n", first + 2.0 * i as f64);
        let rows: String = values(1.0).into_iter().enumerate().map(row).collect();
        format!("name,value,at\n{rows}")
    };
    for files in [
        report(),
        Files::new(&one, &one),
        Files::new(&at(0.0), &at(1.0)),
    ] {
        let (_, json) = files.json(&[]);
        let errors: Vec<String> = validator
            .iter_errors(&json)
            .map(|e| e.to_string())
            .collect();
        assert!(errors.is_empty(), "{errors:?}");
    }
    let (_, mut json) = report().json(&[]);
    json["workloads"][0]["metrics"][0]["verdict"] = Value::Null;
    assert!(!validator.is_valid(&json));
}

/// What a job on GitHub gets: its summary, and a command for each verdict that fails.
#[test]
fn a_step_of_github_gets_a_summary_and_annotations() {
    let files = report();
    let mut command = Command::cargo_bin("locklab").unwrap();
    let summary = files.0.path().join("summary.md");
    let output = command
        .args([
            "judge",
            "base",
            "head",
            "--github",
            "--fail-on",
            "worse,incomplete",
        ])
        .env("GITHUB_STEP_SUMMARY", &summary)
        .current_dir(files.0.path())
        .output()
        .unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert!(
        err.contains("::error file=head,line=1,title=worse%3A parse::"),
        "{err}"
    );
    assert!(err.contains("title=incomplete%3A gone::"), "{err}");
    assert_eq!(output.status.code(), Some(3));
    assert!(std::fs::read_to_string(summary).unwrap().contains("parse"));
    let without = files.judge(&["--github"]);
    assert_eq!(
        without.0,
        if std::env::var_os("GITHUB_STEP_SUMMARY").is_some() {
            0
        } else {
            2
        }
    );
}
