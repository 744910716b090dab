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

/// The table of formats is tested beside its readers; here that the command has its names.
#[test]
fn a_format_is_found_by_what_the_file_holds_or_named() {
    let files = Files::new(&go(1e6), &go(1.2e6));
    let gate = ["--process-noise", "1", "--fail-on", "worse"];
    for options in [&[][..], &["--format", "go"]] {
        let (code, json) = files.json(&[options, &gate].concat());
        assert_eq!(json["files"][0]["format"], "go", "{json:#}");
        assert_eq!(code, 3, "{json:#}");
    }
    for (name, says) in [("jmh", "is not of JMH"), ("x", "give one of hyperfine, go")] {
        let (code, out, err) = files.judge(&["--format", name]);
        assert_eq!((code, out.as_str()), (2, ""), "{err}");
        assert!(err.contains(says), "{err}");
    }
    // Formats may be mixed; what they measure may not.
    let (code, json) = Files::new(&go(100.0), &csv(&[("A-8", values(120.0))])).json(&[]);
    assert_eq!(code, 0);
    let said = json["caveats"].to_string();
    assert!(said.contains("which may not measure the same"), "{said}");
    assert!(said.contains("so not judged"), "{said}");
}

/// Several files of a side, by each of the ways to say so; and one file with both sides.
#[test]
fn a_side_has_several_files_and_a_file_both_sides() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    for i in 0..5 {
        let own = 1.0 + 0.003 * f64::from(i);
        write(&format!("old/{i}"), &go(1e6 * own));
        write(&format!("new/{i}"), &go(1.2e6 * own));
    }
    write(
        "both",
        &hyperfine(&[("a", values(1.0)), ("b", values(1.2))]),
    );
    let judge = |words: &str| {
        let mut command = Command::cargo_bin("locklab").unwrap();
        command.args(["judge", "--json", "--fail-on", "worse"]);
        command.args(words.split(' ')).current_dir(folder.path());
        let output = command.output().unwrap();
        let json: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        let err = String::from_utf8(output.stderr).unwrap();
        (output.status.code().unwrap(), json, err)
    };
    for words in [
        "old new",
        "old -- new",
        "old/0 old/1 old/2 old/3 old/4 -- new/0 new/1 new/2 new/3 new/4",
        "--old old/0 --old old/1 --old old/2 --old old/3 --new new",
    ] {
        let (code, json, err) = judge(words);
        assert_eq!(code, 3, "{words}: {err} {json:#}");
        let samples = &json["workloads"][0]["metrics"][0]["samples"]["independent"];
        assert_eq!(samples["experiment"], 5, "{words}: {json:#}");
        assert!(json["process_spread"].as_f64().unwrap() > 0.005, "{json:#}");
    }
    // One process a side decides nothing by itself.
    let (code, json, err) = judge("old/0 new/0");
    assert_eq!(code, 0, "{json:#}");
    assert!(err.contains("Give 4 files of each side"), "{err}");
    assert_eq!(judge("old/0 new/0 --quiet").2, "");
    assert_eq!(json["workloads"][0]["metrics"][0]["verdict"], "unclear");
    assert_eq!(judge("old/0 new/0 --process-noise 5").0, 3);
    assert_eq!(judge("old/0 new/0 --process-noise 30").0, 0);
    assert_eq!(judge("both").0, 3);
    for (words, says) in [
        ("old/0", "alone does not have two benchmarks"),
        ("old/0 old/1 new/0", "put -- before those of the experiment"),
        ("--old old/0", "--new"),
        (
            "old/0 new/0 --fail-on worse unclear",
            "write --fail-on worse,unclear",
        ),
        ("old/0 new/0 --apart -1h", "give a time such as 90s"),
    ] {
        let (code, _, err) = judge(words);
        assert!(code == 2 && err.contains(says), "{words}: {code} {err}");
    }
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
        (csv(&[("a", values(1.2)), ("b", values(1.001))]), "worse", 3),
        (
            csv(&[("a", values(1.001)), ("b", noisy.clone())]),
            "worse",
            0,
        ),
        (
            csv(&[("a", values(1.001)), ("b", noisy.clone())]),
            "unclear",
            4,
        ),
        (csv(&[("a", values(1.001)), ("b", broken)]), "invalid", 5),
        (csv(&[("a", values(1.001))]), "incomplete", 6),
        (csv(&[("a", values(1.2)), ("b", noisy)]), "unclear,worse", 3),
        (csv(&[("c", values(1.2))]), "worse", 1),
    ] {
        let (found, _, err) = Files::new(&base, &head).judge(&["--fail-on", fail_on]);
        assert_eq!(found, code, "{fail_on}: {err}");
    }
    // A regression is a failure of JUnit only where the gate names it, and each test is of
    // its file.
    let files = Files::new(&base, &csv(&[("a", values(1.2)), ("b", values(1.001))]));
    for (options, failures) in [(&[][..], 0), (&["--fail-on", "worse"], 1)] {
        files.judge(&[options, &["--junit", "j.xml"]].concat());
        let text = std::fs::read_to_string(files.0.path().join("j.xml")).unwrap();
        assert!(text.contains(&format!("failures=\"{failures}\"")), "{text}");
        assert!(text.contains("classname=\"head\"") && !text.contains("1970"));
        assert!(text.contains("Worse in value by +20.00 %"), "{text}");
    }
}

fn report() -> Files {
    let base = [("parse", 2.0), ("print", 0.5), ("sort", 1.0), ("gone", 1.0)];
    let head = [
        ("parse", 2.3),
        ("print", 0.45),
        ("sort", 1.0001),
        ("new", 1.0),
    ];
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
        .args(["results", "schema", "judge"])
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
