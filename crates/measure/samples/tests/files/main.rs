//! Files of each program, as it writes them, and what may be wrong with them.

mod comparable;
mod formats;
mod null;
mod processes;
mod rates;
mod variants;

use locklab_document::Document;
use locklab_harness::gate::FailOn;
use locklab_judge::{Direction, Role, Settings, Verdict};
use locklab_samples::{
    Format, JudgedSamples, Judging, Matching, SampleFile, Unreadable, compare, document, fails,
    judge, read,
};
use std::fmt::Write as _;

fn file(label: &str, text: &str) -> SampleFile {
    let read = read(text.as_bytes(), "benchmark", None);
    let mut file = read.unwrap_or_else(|e| panic!("{label} {e}\n{text}"));
    file.label = label.into();
    file
}

fn judged_with(baseline: &str, experiment: &str, how: Matching, drift: f64) -> JudgedSamples {
    let compared = compare(file("base", baseline), file("head", experiment), how);
    let judging = Judging {
        settings: Settings::default(),
        drift,
        apart: None,
        // Of most files here all runs are of one process, which is not what they test.
        process_noise: Some(1e-6),
    };
    judge(compared, judging).unwrap()
}

fn judged(baseline: &str, experiment: &str) -> JudgedSamples {
    judged_with(baseline, experiment, Matching::default(), 0.03)
}

fn words(judged: &JudgedSamples) -> Vec<String> {
    let word =
        |row: &locklab_samples::JudgedRow| format!("{} {}", row.of.name, row.judged.verdict.word());
    judged.primaries().map(word).collect()
}

fn notes(judged: &JudgedSamples) -> String {
    let document = document(judged, "locklab judge base head");
    let list = document.data["caveats"].as_array().unwrap();
    let list: Vec<&str> = list.iter().map(|c| c.as_str().unwrap()).collect();
    list.join("\n")
}

fn shown(document: &Document) -> String {
    locklab_document::render::text(document, locklab_document::render::Colour::Plain)
}

/// However large a difference is, a table says it.
#[test]
fn a_huge_difference_is_a_figure() {
    for (factor, says) in [(1000.0, "+99900%"), (1e7, "+1e9%"), (2.0, "+100.00%")] {
        let found = judged(
            &csv(&[("a", values(1.0, 10))]),
            &csv(&[("a", values(factor, 10))]),
        );
        let text = shown(&document(&found, ""));
        assert!(text.contains(says), "{says}: {text}");
    }
}

/// Returns the values around `centre` that differ by ± 1 %, in an order without memory.
fn values(centre: f64, n: usize) -> Vec<f64> {
    let at = |i: usize| (i * 7 % n) as f64 / n as f64 - 0.5;
    (0..n).map(|i| centre * (1.0 + 0.02 * at(i))).collect()
}

fn list(values: &[f64]) -> String {
    let texts: Vec<String> = values.iter().map(f64::to_string).collect();
    format!("[{}]", texts.join(", "))
}

fn hyperfine(commands: &[(&str, Vec<f64>)]) -> String {
    let one = |(name, times): &(&str, Vec<f64>)| {
        format!(
            r#"{{"command": "{name}", "mean": 1.0, "times": {}}}"#,
            list(times)
        )
    };
    let results: Vec<String> = commands.iter().map(one).collect();
    format!(r#"{{"results": [{}]}}"#, results.join(", "))
}

fn csv(rows: &[(&str, Vec<f64>)]) -> String {
    let mut text = "name,value\n".to_owned();
    for (name, values) in rows {
        for value in values {
            let _ = writeln!(text, "{name},{value}");
        }
    }
    text
}

#[test]
fn hyperfine_has_a_command_and_its_times() {
    let of = |name: &str, factor: f64| hyperfine(&[(name, values(0.1 * factor, 20))]);
    let found = judged(&of("sort-old", 1.0), &of("sort-new", 1.1));
    assert_eq!(words(&found), ["sort-old worse"]);
    assert!(notes(&found).contains("so sort-new is compared with sort-old"));
    assert!(notes(&found).contains("Drift was not controlled"));
    let estimate = found.rows[0].judged.estimate.unwrap();
    assert!((estimate.ratio().value - 1.1).abs() < 0.01);
}

fn go(factor: f64, allocations: u32) -> String {
    let mut text = "goos: linux\npkg: example.com/x\ncpu: any\n".to_owned();
    for value in values(1200.0 * factor, 20) {
        let _ = writeln!(
            text,
            "BenchmarkParse-8   \t 1000\t {value} ns/op\t{} MB/s\t 0 B/op\t {allocations} allocs/op",
            1e5 / value
        );
    }
    text + "PASS\nok  \texample.com/x\t1.2s\n"
}

#[test]
fn go_has_time_that_decides_and_allocations_that_explain() {
    let found = judged(&go(1.0, 2), &go(0.9, 3));
    assert_eq!(words(&found), ["Parse-8 better"]);
    let row = |metric: &str| {
        found
            .rows
            .iter()
            .find(|row| row.of.metric == metric)
            .unwrap()
    };
    // Time: a file's runs take 1000 times as long as one, so drift is small.
    assert_eq!(row("MB/s").of.direction, Direction::HigherIsBetter);
    assert_eq!(row("MB/s").judged.verdict, Verdict::Better);
    assert_eq!(row("allocs/op").judged.verdict, Verdict::Worse);
    assert_eq!(row("allocs/op").of.role, Role::Screening);
    assert_eq!(row("B/op").of.medians, Some([0.0, 0.0]));
    assert!(
        matches!(row("B/op").judged.verdict, Verdict::Flat { nonzero: false }),
        "{:?}",
        row("B/op")
    );
    assert!(notes(&found).contains("is of one process a side"));
    // The same as events, in which a line may be in two.
    let events = |text: &str| {
        let mut events = String::from("{\"Action\":\"start\",\"Package\":\"p\"}\n");
        for (line, half) in text.lines().map(|line| (line, line.len() / 2)) {
            for part in [&line[..half], &format!("{}\n", &line[half..])] {
                let output =
                    serde_json::json!({"Action": "output", "Package": "p", "Output": part});
                let _ = writeln!(events, "{output}");
            }
        }
        events
    };
    let found = judged(&events(&go(1.0, 2)), &events(&go(0.9, 3)));
    assert_eq!(words(&found), ["Parse-8 better"]);
    assert_eq!(found.rows[0].judged.estimate.unwrap().pairs, 20);
}

#[test]
fn google_benchmark_has_repetitions_and_means_that_are_no_samples() {
    let of = |factor: f64, unit: &str| {
        let entry = |(i, value): (usize, f64)| {
            format!(
                r#"{{"name": "BM_a/8/repeats:12", "run_name": "BM_a/8", "run_type": "iteration",
                "repetition_index": {i}, "iterations": 1000, "real_time": {value},
                "cpu_time": {value}, "time_unit": "{unit}", "items_per_second": {}}}"#,
                1.0 / value
            )
        };
        let entries: Vec<String> = values(factor, 12)
            .into_iter()
            .enumerate()
            .map(entry)
            .collect();
        format!(
            r#"{{"context": {{"date": "2026-11-26T14:00:00+01:00"}}, "benchmarks": [{},
            {{"name": "BM_a/8_mean", "run_name": "BM_a/8", "run_type": "aggregate",
            "aggregate_name": "mean", "real_time": 7.0, "time_unit": "{unit}"}},
            {{"name": "BM_b_mean", "run_name": "BM_b", "run_type": "aggregate",
            "aggregate_name": "mean", "real_time": 7.0, "time_unit": "{unit}"}}]}}"#,
            entries.join(",")
        )
    };
    // Nanoseconds and microseconds are one unit.
    let found = judged(&of(100.0, "ns"), &of(0.12, "us"));
    assert_eq!(words(&found), ["BM_a/8 worse"]);
    assert_eq!(found.rows[0].judged.estimate.unwrap().pairs, 12);
    let items = found
        .rows
        .iter()
        .find(|row| row.of.metric == "items_per_second");
    assert_eq!(items.unwrap().of.direction, Direction::HigherIsBetter);
    assert!(notes(&found).contains("BM_b has only means"));
}

#[test]
fn criterion_pytest_and_jmh_have_samples() {
    let criterion = |factor: f64| {
        let times: Vec<f64> = values(factor, 30).iter().map(|t| t * 50.0).collect();
        format!(
            r#"{{"sampling_mode": "Flat", "iters": {}, "times": {}}}"#,
            list(&[50.0; 30]),
            list(&times)
        )
    };
    let found = judged(&criterion(100.0), &criterion(110.0));
    assert_eq!(words(&found), ["benchmark worse"]);
    assert!((found.rows[0].judged.estimate.unwrap().baseline - 100.0).abs() < 1.0);

    let message = |factor: f64| {
        format!(
            r#"{{"reason": "benchmark-complete", "id": "f", "iteration_count": {}, "measured_values": {}, "unit": "ns"}}
{{"reason": "group-complete"}}"#,
            list(&[1.0; 30]),
            list(&values(factor, 30))
        )
    };
    assert_eq!(words(&judged(&message(1.0), &message(0.9))), ["f better"]);

    let pytest = |factor: f64, hour: u32| {
        format!(
            r#"{{"machine_info": {{}}, "datetime": "2026-11-26T{hour}:00:00+00:00", "benchmarks": [
            {{"name": "test_a", "fullname": "t.py::test_a", "stats": {{"data": {}, "iterations": 1}}}},
            {{"name": "test_b", "fullname": "t.py::test_b", "stats": {{"mean": 1.0}}}}]}}"#,
            list(&values(factor, 20))
        )
    };
    let near = judged(&pytest(1.0, 12), &pytest(1.05, 12));
    assert_eq!(words(&near), ["t.py::test_a worse"]);
    assert!(notes(&near).contains("test_b has no data"));
    // Half an hour may be a drift of 1.5 %, four hours no more than one of 3 %, and it
    // is said what they would be if the machine drifted on.
    let pause = judged(
        &pytest(1.0, 12),
        &pytest(1.05, 12).replace(":00:00+", ":30:00+"),
    );
    assert!((pause.allowance() - 0.015).abs() < 1e-9);
    let far = judged(&pytest(1.0, 12), &pytest(1.05, 16));
    assert!((far.allowance() - 0.03).abs() < 1e-3, "{}", far.allowance());
    assert_eq!(words(&far), ["t.py::test_a worse"]);
    let said = notes(&far);
    assert!(said.contains("The files are 4.0 hours apart"), "{said}");
    assert!(said.contains("0 of 1 difference that are called"), "{said}");
    let small = judged(&pytest(1.0, 12), &pytest(1.02, 16));
    assert_eq!(words(&small), ["t.py::test_a unclear"]);

    let jmh = |mode: &str, unit: &str, forks: &[Vec<f64>]| {
        let forks: Vec<String> = forks.iter().map(|fork| list(fork)).collect();
        format!(
            r#"[{{"jmhVersion": "1.37", "benchmark": "B.a", "mode": "{mode}", "forks": 1,
            "params": {{"n": "8"}}, "primaryMetric": {{"score": 1, "scoreUnit": "{unit}",
            "rawData": [{}]}}, "secondaryMetrics": {{}}}}]"#,
            forks.join(",")
        )
    };
    let slow = jmh("avgt", "ns/op", &[values(100.0, 10), values(100.0, 10)]);
    let fast = jmh("avgt", "us/op", &[values(0.08, 10), values(0.08, 10)]);
    let found = judged(&slow, &fast);
    assert_eq!(words(&found), ["B.a n=8 better"]);
    assert!(notes(&found).contains("is of 2 processes a side"));
    // More is better, and with so many forks a fork is a sample.
    let few = jmh("thrpt", "ops/ms", &vec![values(10.0, 5); 6]);
    let many = jmh("thrpt", "ops/ms", &vec![values(12.0, 5); 6]);
    let found = judged(&few, &many);
    assert_eq!(words(&found), ["B.a n=8 better"]);
    assert_eq!(found.rows[0].judged.estimate.unwrap().pairs, 6);
    assert!(!notes(&found).contains("processes a side"));
}

#[test]
fn perf_stat_has_a_line_for_each_event_of_each_run() {
    let of = |factor: f64| {
        let mut text = String::new();
        for value in values(1000.0 * factor, 10) {
            let _ = write!(
                text,
                "# started on Thu Nov 26 14:00:00 2026\n\n\
                 {value},msec,task-clock,1000000,100.00,0.99,CPUs utilized\n\
                 {},,instructions:u,1000000,100.00,1.10,insn per cycle\n\
                 <not supported>,,cache-misses,0,100.00,,\n\
                 77,,branches,500000,50.00,,\n",
                1e9 * value
            );
        }
        text
    };
    let found = judged(&of(1.0), &of(1.1));
    assert_eq!(found.compared.files[0].format.name(), "perf-stat");
    assert_eq!(words(&found), ["perf stat, task-clock worse"]);
    assert_eq!(found.rows[0].of.metric, "task-clock");
    assert_eq!(found.rows[1].judged.verdict, Verdict::Worse);
    let notes = notes(&found);
    assert!(notes.contains("Not counted: cache-misses"), "{notes}");
    assert!(notes.contains("left out: branches"), "{notes}");
    // The mean of -r is one sample, from which nothing follows.
    let mean =
        |value: f64| format!("{value},msec,task-clock,0.15%,1000000,100.00,0.99,CPUs utilized\n");
    let found = judged(&mean(1000.0), &mean(1100.0));
    assert_eq!(words(&found), ["perf stat, task-clock unclear"]);
    assert!(self::notes(&found).contains("--append"));
}

#[test]
fn a_table_has_names_and_values_with_or_without_titles() {
    let plain = |factor: f64| {
        values(factor, 10)
            .iter()
            .fold(String::new(), |text, v| text + &format!("a\t{v}\n"))
    };
    assert_eq!(words(&judged(&plain(1.0), &plain(1.1))), ["a worse"]);
    let wide = |factor: f64| {
        let texts: Vec<String> = values(factor, 10).iter().map(f64::to_string).collect();
        format!("a,{}\nb,{}\n", texts.join(","), texts.join(","))
    };
    assert_eq!(
        words(&judged(&wide(1.0), &wide(0.9))),
        ["a better", "b better"]
    );
    let titled = |factor: f64, unit: &str| {
        let mut text = format!("benchmark;time [{unit}];better\n");
        for value in values(factor, 10) {
            let _ = writeln!(text, "\"x; y\";{value};lower");
        }
        text
    };
    let found = judged(&titled(1000.0, "us"), &titled(1.1, "ms"));
    assert_eq!(words(&found), ["x; y worse"]);
    assert_eq!(found.rows[0].of.unit, "us");
    let rate = |factor: f64| {
        let mut text = "name,value,unit\n".to_owned();
        for value in values(factor, 10) {
            let _ = writeln!(text, "r,{value},MB/s");
        }
        text
    };
    assert_eq!(words(&judged(&rate(1.0), &rate(1.1))), ["r better"]);
}

#[test]
fn runs_that_were_taken_in_turn_are_pairs() {
    // The machine drifts by 30 % while they run, which pairs do not see.
    let of = |factor: f64, first: usize| {
        let mut text = "name,value,at\n".to_owned();
        for (i, value) in values(factor, 20).into_iter().enumerate() {
            let at = 2 * i + (first + i) % 2;
            let _ = writeln!(text, "a,{},{at}", value * (1.0 + 0.3 * at as f64 / 40.0));
        }
        text
    };
    let found = judged(&of(1.0, 0), &of(1.05, 1));
    assert_eq!(words(&found), ["a worse"]);
    let document = document(&found, "");
    assert!(document.data["workloads"][0]["metrics"][0]["samples"]["pairs"] == 20);
    assert!(!notes(&found).contains("Drift was not controlled"));
    // One after the other they are none, whoever measured them.
    let late: Vec<String> = of(1.05, 1)
        .lines()
        .map(|line| match line.rsplit_once(',') {
            Some((row, at)) if at != "at" => format!("{row},{}", at.parse::<u32>().unwrap() + 100),
            _ => line.to_owned(),
        })
        .collect();
    let found = judged(&of(1.0, 0), &late.join("\n"));
    assert!(notes(&found).contains("Drift was not controlled"));
    // The caller may know it.
    let paired = Matching {
        paired: true,
        direction: None,
    };
    let found = judged_with(
        &csv(&[("a", values(1.0, 12))]),
        &csv(&[("a", values(1.1, 10))]),
        paired,
        0.03,
    );
    assert_eq!(found.rows[0].judged.estimate.unwrap().pairs, 10);
    assert!(notes(&found).contains("one file has more runs"));
}

#[test]
fn two_results_of_locklab_are_compared_by_their_ratios() {
    let result = |factor: f64| {
        format!(
            r#"{{"tool": "locklab 0.3.0", "cells": [{{"threads": 4, "critical": 0, "non_critical": 32,
            "pair_ratios": {{"metric": "ops_per_s", "direction": "higher_is_better", "ratios": {}}}}}]}}"#,
            list(&values(factor, 16))
        )
    };
    let found = judged(&result(1.0), &result(0.9));
    assert_eq!(words(&found), ["4 x 0 x 32 worse"]);
    assert_eq!(found.rows[0].of.metric, "ops_per_s, experiment / baseline");
    let old = r#"{"tool": "locklab 0.2.0", "cells": [{"threads": 4, "ratio": 1.0}]}"#;
    let Err(error) = read(old.as_bytes(), "", None) else {
        panic!("a result without pairs was read");
    };
    assert!(error.to_string().contains("its pairs are not in it"));
}

#[test]
fn bad_input_costs_what_is_bad_and_the_rest_is_judged() {
    let good = ("good", values(1.0, 10));
    let worse = ("good", values(1.1, 10));
    let with = |other: (&'static str, Vec<f64>)| csv(&[good.clone(), other]);
    let against = |other: (&'static str, Vec<f64>)| csv(&[worse.clone(), other]);
    let negative = {
        let mut values = values(1.0, 10);
        values[3] = -1.0;
        values
    };
    let not_a_number = {
        let mut values = values(1.0, 10);
        values[9] = f64::NAN;
        values
    };
    for (other, verdict, says) in [
        (
            negative,
            "bad invalid",
            "bad is invalid: in sample 4, the experiment's run",
        ),
        (not_a_number, "bad invalid", "bad is invalid: in sample 10"),
        (
            vec![1.0],
            "bad unclear",
            "the experiment has only 1 sample that can be used",
        ),
        (vec![1.005; 10], "bad unclear", ""),
    ] {
        let found = judged(&with(("bad", values(1.0, 10))), &against(("bad", other)));
        let words = words(&found);
        assert_eq!(words[0], "good worse");
        if !says.is_empty() {
            assert_eq!(words[1], verdict);
        }
        assert!(notes(&found).contains(says), "{says}: {}", notes(&found));
    }
    // It is on one side only.
    let found = judged(
        &with(("old", vec![1.0; 9])),
        &against(("new", vec![1.0; 9])),
    );
    assert_eq!(words(&found), ["good worse"]);
    assert!(notes(&found).contains("Only in base, so not judged: old."));
    assert!(notes(&found).contains("Only in head, so not judged: new."));
    assert_eq!(
        fails(&[FailOn::Incomplete], &found).unwrap(),
        Some(FailOn::Incomplete)
    );
    // In units that do not measure the same.
    let unit = |unit: &str, name: &str| {
        let mut text = "name,value,unit\n".to_owned();
        for value in values(if unit == "ms" { 1.0 } else { 1.0001 }, 10) {
            let _ = writeln!(text, "good,{value},ms\n{name},{value},{unit}");
        }
        text
    };
    let found = judged(&unit("ms", "x"), &unit("MB", "x"));
    assert_eq!(words(&found), ["good flat"]);
    assert!(notes(&found).contains("x is in ms in base and in MB in head, so not judged."));
    assert_eq!(
        fails(&[FailOn::Invalid], &found).unwrap(),
        Some(FailOn::Invalid)
    );
    // Neither side has any variance.
    let exact = judged(&csv(&[("a", vec![5.0; 9])]), &csv(&[("a", vec![6.0; 9])]));
    assert_eq!(words(&exact), ["a worse"]);
    assert!(
        notes(&exact).contains("every sample of a side is the same number")
            || notes(&exact).contains("Every sample of a side")
    );
    // Files of two programs, and rows that are none.
    let found = judged(
        &hyperfine(&[("a", values(1.0, 10))]),
        &(csv(&[("a", values(1.1, 10))]) + "a,oops\n"),
    );
    assert!(notes(&found).contains("which may not measure the same"));
    assert!(notes(&found).contains("is not read"));
}

#[test]
fn a_file_that_ends_in_the_middle_is_read_so_far() {
    let whole = hyperfine(&[("a", values(1.0, 20)), ("b", values(1.0, 20))]);
    let found = judged(&whole, &whole[..whole.len() - 40]);
    assert_eq!(words(&found), ["a invalid", "b flat"]);
    assert!(notes(&found).contains("head: It ends in the middle of its JSON"));
    assert!(found.rows[1].judged.estimate.unwrap().pairs < 20);
    // Wherever it ends, nothing panics.
    for end in 0..whole.len() {
        if let Ok(file) = read(&whole.as_bytes()[..end], "x", None) {
            assert_eq!(file.format.name(), "hyperfine");
        }
    }
    let nan = whole.replacen("\"times\": [", "\"times\": [NaN, ", 1);
    assert_eq!(words(&judged(&whole, &nan))[0], "a invalid");
}

#[test]
fn what_is_no_file_of_samples_is_one_sentence() {
    assert_eq!(read(b" \n", "x", None), Err(Unreadable::Empty));
    for text in [
        "hello\nworld\n",
        "{}",
        "{\"a\": 1}",
        "[1, 2]",
        "<xml/>",
        "a,b\nc,d\n",
        "In 2025, 3,000 people came.\nIn 2026, 4,000 did.\n",
    ] {
        let error = read(text.as_bytes(), "x", None).unwrap_err();
        assert!(
            error.to_string().starts_with("is in no form that is known"),
            "{text}: {error}"
        );
    }
    let text = hyperfine(&[("a", vec![1.0])]);
    let error = read(text.as_bytes(), "x", Format::named("go")).unwrap_err();
    assert!(error.to_string().starts_with("is not of Go's benchmarks"));
    assert!(read(br#"{"results": [{"command": "a", "mean": 1}]}"#, "x", None).is_err());
}

#[test]
fn a_report_has_what_a_geometric_mean_hides() {
    let of = |factors: [f64; 3]| {
        let names = ["a", "b", "c"];
        csv(&names
            .map(|n| n)
            .into_iter()
            .zip(factors.map(|f| values(f, 20)))
            .collect::<Vec<_>>())
    };
    let found = judged(&of([1.0; 3]), &of([0.5, 1.0001, 2.0]));
    let document = document(&found, "locklab judge base head");
    let conclusion = document.data["conclusion"].to_string();
    assert!(
        conclusion
            .contains("The geometric mean of 3 ratios is 1.00, which hides 0.50 (a) to 2.00 (c)"),
        "{conclusion}"
    );
    let verdicts: Vec<&str> = document.findings.iter().map(|f| f.verdict).collect();
    assert_eq!(verdicts, ["better", "flat", "worse"]);
    assert_eq!(document.findings[2].file.as_deref(), Some("head"));
    assert_eq!(
        fails(&[FailOn::Worse], &found).unwrap(),
        Some(FailOn::Worse)
    );
    assert_eq!(fails(&[FailOn::Unclear], &found).unwrap(), None);
    // Its page draws both distributions of each, and the interval, which text cannot.
    let page = locklab_document::render::html(&document);
    assert!(page.contains("Samples and intervals"), "{page}");
    assert_eq!(page.matches("class=\"dots\"").count(), 6);
    assert_eq!(page.matches("class=\"interval\"").count(), 3);
    assert!(!shown(&document).contains("Samples and intervals"));
    let nothing = judged(&csv(&[("a", vec![1.0])]), &csv(&[("a", vec![1.0])]));
    assert!(fails(&[FailOn::Worse], &nothing).is_err());
}
