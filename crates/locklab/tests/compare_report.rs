//! The report of a comparison against golden files: its shape is that of the
//! mail on inlining spin_unlock(), whose published figures are reproduced
//! here with made-up noise.

#[path = "common/golden.rs"]
mod golden;

use golden::golden;
use locklab::compare::{
    Invalid, Measured, Measurement, Metric, Run, RunPair, Source, Spec, Subject, verdicts,
};
use locklab::counters::Mode;
use locklab::report::compare::{Report, call_sites_svg, html, json, text};
use locklab::report::{COLUMNS, Context};
use locklab::workloads::Asked;

/// Pairs around published medians, with noise of so many percent.
fn measurement(name: &str, metrics: &[(Metric, f64, f64, f64)]) -> Measurement {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
    };
    let pairs = (0..20)
        .map(|index| {
            let mut run = |experiment: bool, started| Run {
                started,
                values: metrics
                    .iter()
                    .map(|(metric, b, e, noise)| {
                        let value = if experiment { *e } else { *b };
                        (metric.name.clone(), value * (1.0 + noise * random()))
                    })
                    .collect(),
                invalid: None,
            };
            let at = f64::from(index) * 9.0;
            RunPair {
                index,
                baseline_first: index % 3 == 0,
                baseline: run(false, at),
                experiment: run(true, at + 4.4),
            }
        })
        .collect();
    Measurement {
        name: name.into(),
        about: format!("What {name} does in a run."),
        setup: vec![("CPUs".into(), "pinned to 0".into())],
        metrics: metrics.iter().map(|(metric, ..)| metric.clone()).collect(),
        bias_band: Some(0.001),
        pairs,
        stopped: None,
    }
}

fn sample() -> Measured {
    let count = |name: &str| Metric::lower(name, "", Source::Hardware);
    let mut nginx = measurement(
        "nginx-churn",
        &[
            (
                Metric::higher("requests", "req/s", Source::Output),
                25_113.0,
                24_795.0,
                0.003,
            ),
            (count("instructions"), 5.86e9, 5.83e9, 0.0005),
            (count("l1i-misses:k"), 0.41e9, 0.42e9, 0.002),
            (
                Metric::higher("ipc", "", Source::Hardware),
                1.215,
                1.213,
                0.02,
            ),
            (
                Metric::lower("elapsed", "s", Source::Output),
                4.077,
                4.129,
                0.003,
            ),
            (
                Metric::lower("major-faults", "", Source::Process),
                0.0,
                0.0,
                0.0,
            ),
        ],
    );
    nginx.pairs[4].experiment.invalid = Some(Invalid::Failed("exit status 1".into()));
    let rocksdb = measurement(
        "rocksdb-deleteseq",
        &[
            (
                Metric::higher("throughput", "ops/s", Source::Output),
                431_398.0,
                432_897.0,
                0.02,
            ),
            (count("l1i-misses:k"), 198_588_165.0, 216_672_536.0, 0.002),
        ],
    );
    let mut build = measurement(
        "kernel-build",
        &[(
            Metric::lower("elapsed", "s", Source::Process),
            105.221,
            105.373,
            0.002,
        )],
    );
    build.bias_band = Some(0.002);
    let mut absent = measurement("fs-mark", &[(count("files"), 1.0, 1.0, 0.0)]);
    absent.pairs.clear();
    absent.stopped = Some("fs_mark is not installed; apt-get install fsmark".into());
    let subject = |name: &str| Subject {
        name: Some(name.into()),
        ..Subject::default()
    };
    Measured {
        spec: Spec {
            baseline: subject("unlock out of line"),
            experiment: subject("unlock inlined"),
            workloads: vec![Asked::default(); 4],
            pairs: 20,
            warm_up: 1,
            seed: 7,
            delta: 0.01,
            time_limit: 120.0,
            pin: vec![0],
            counters: Mode::Auto,
            aa: false,
        },
        machine: "Example 9000, 16 CPUs".into(),
        environment: vec![
            (
                "Machine".into(),
                "Example 9000, 1 socket, 8 cores, 16 CPUs".into(),
            ),
            ("Kernel".into(), "Linux 6.19.0 x86_64".into()),
        ],
        caveats: vec!["A virtual machine: its CPUs may move.".into()],
        workloads: vec![rocksdb, build, nginx, absent],
        interrupted: None,
    }
}

fn with_report<T>(measured: &Measured, show: impl Fn(&Report) -> T) -> T {
    let verdicts = verdicts::judge(measured).unwrap();
    show(&Report {
        measured,
        verdicts: &verdicts,
        footprint: None,
        context: &Context {
            date: "2026-11-20 12:00 UTC".into(),
            command: "locklab compare unlock.toml".into(),
        },
    })
}

#[test]
fn the_text_has_the_shape_of_the_mail() {
    let text = with_report(&sample(), text);
    assert!(text.lines().all(|line| line.len() <= COLUMNS), "{text}");
    let mut at = 0;
    for part in [
        "Setup",
        "Environment",
        "rocksdb-deleteseq",
        "Metric                         Baseline    Experiment     Delta  Sig",
        "Unclear:",
        "kernel-build",
        "Flat:",
        "nginx-churn",
        "Worse:",
        "Conclusion",
        "Sources",
    ] {
        let found = text[at..].find(part);
        at += found.unwrap_or_else(|| panic!("no {part} in its place in {text}"));
    }
    golden("compare.txt", &text);
}

#[test]
fn the_json_has_the_fields_that_others_rely_on() {
    let json = with_report(&sample(), json);
    assert_eq!(json["schema"], 1);
    assert_eq!(json["provenance"]["name"], "Example 9000, 16 CPUs");
    for workload in json["workloads"].as_array().unwrap() {
        assert!(workload["name"].is_string());
        for metric in workload["metrics"].as_array().unwrap() {
            for field in [
                "name",
                "unit",
                "baseline",
                "experiment",
                "delta_percent",
                "low",
                "high",
                "verdict",
                "primary",
                "source",
            ] {
                assert!(metric.get(field).is_some(), "{field}");
            }
        }
    }
    let nginx = &json["workloads"][2];
    assert_eq!(nginx["metrics"][0]["verdict"], "worse");
    assert_eq!(nginx["pairs_set_aside"][0]["pair"], 5);
    assert_eq!(nginx["not_judged"][0], "major-faults");
    assert!(
        json["workloads"][3]["stopped"]
            .as_str()
            .unwrap()
            .contains("apt-get")
    );
}

#[test]
fn the_page_is_well_formed_and_has_the_pairs_and_the_runs() {
    let page = with_report(&sample(), html);
    let options = roxmltree::ParsingOptions {
        allow_dtd: true,
        ..Default::default()
    };
    let document = roxmltree::Document::parse_with_options(&page, options).unwrap();
    let charts = document
        .descendants()
        .filter(|n| n.attribute("role") == Some("img"))
        .count();
    assert_eq!(charts, 6);
    assert!(!page.contains("<script"));
}

#[test]
fn the_plot_is_of_call_sites_only() {
    let mut measured = sample();
    assert_eq!(call_sites_svg(&measured), None);
    let metrics = |n: f64| {
        [
            (
                Metric::higher("throughput", "calls/s", Source::Output),
                9e7 / n,
                8.8e7 / n,
                0.01,
            ),
            (
                Metric::lower("l1i-misses", "", Source::Model),
                2e4 * n,
                2.4e4 * n,
                0.02,
            ),
            (
                Metric::lower("text", "bytes", Source::File),
                100.0 * n,
                112.0 * n,
                0.0,
            ),
        ]
    };
    measured.workloads = [64, 1024]
        .map(|n| measurement(&format!("call-sites:{n}"), &metrics(f64::from(n))))
        .into();
    let svg = call_sites_svg(&measured).unwrap();
    roxmltree::Document::parse(&svg).unwrap();
    for part in ["text [bytes]", "L1i misses (model)", "throughput", "1024"] {
        assert!(svg.contains(part), "{part}");
    }
}
