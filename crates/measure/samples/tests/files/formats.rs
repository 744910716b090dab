//! Each row of the table of formats: a file of it is found by what it holds and by its name,
//! and several files of one side are that many processes.

use super::values;
use locklab_judge::{Role, Settings};
use locklab_samples::{Format, Judging, Matching, SampleFile, compare, judge, read};
use serde_json::{Value, json};
use std::path::Path;

/// Writes what one process of a program leaves: a benchmark with these samples, of which a
/// program that has one figure takes the first.
type Write = fn(&[f64]) -> String;

/// One writer for each row of the table.
const WRITERS: &[(&str, Write)] = &[
    ("hyperfine", |v| {
        json!({"results": [{"command": "a", "times": v}]}).to_string()
    }),
    ("go", |v| {
        let line = |x: &f64| format!("BenchmarkA-8\t1000\t{x} ns/op\t2 allocs/op\n");
        format!("pkg: a\n{}PASS\n", v.iter().map(line).collect::<String>())
    }),
    ("google", |v| {
        let one = |x: &f64| {
            json!({"name": "BM_a", "run_name": "BM_a", "run_type": "iteration",
            "iterations": 10, "real_time": x, "cpu_time": x, "time_unit": "ns"})
        };
        json!({"context": {}, "benchmarks": v.iter().map(one).collect::<Vec<_>>()}).to_string()
    }),
    ("criterion", |v| {
        let times: Vec<f64> = v.iter().map(|x| 10.0 * x).collect();
        json!({"sampling_mode": "Flat", "iters": vec![10.0; v.len()], "times": times}).to_string()
    }),
    ("pytest", |v| {
        json!({"machine_info": {}, "benchmarks": [{"name": "a", "fullname": "a",
            "stats": {"data": v, "iterations": 1}}]})
        .to_string()
    }),
    ("jmh", |v| {
        json!([{"jmhVersion": "1.37", "benchmark": "a", "mode": "avgt", "forks": 1,
            "primaryMetric": {"score": 1, "scoreUnit": "ns/op", "rawData": [v]},
            "secondaryMetrics": {}}])
        .to_string()
    }),
    ("perf-stat", |v| {
        format!(
            "# started on Thu Nov 26 14:00:00 2026\n\n{:.0},,instructions,1000,100.00,,\n",
            v[0]
        )
    }),
    ("benchmarkdotnet", |v| {
        let one = |x: &f64| {
            json!({"IterationMode": "Workload", "IterationStage": "Result",
            "LaunchIndex": 1, "Operations": 10, "Nanoseconds": 10.0 * x})
        };
        json!({"HostEnvironmentInfo": {"OsVersion": "Linux", "BenchmarkDotNetCaption":
            "BenchmarkDotNet v0.14"}, "Benchmarks": [{"FullName": "N.C.A", "Measurements":
            v.iter().map(one).collect::<Vec<_>>()}]})
        .to_string()
    }),
    ("asv", |v| {
        json!({"result_columns": ["result", "params", "version", "samples"], "params": {},
            "results": {"bench.time_a": [[v[0]], [], "x", [v]]}, "version": 2})
        .to_string()
    }),
    ("gungraun", |v| {
        json!({"version": "6", "module_path": "lib::group::a", "id": "x", "profiles": [{
            "tool": "Callgrind", "summaries": {"total": {"summary": {"Callgrind": {
            "Ir": {"metrics": {"Left": {"Int": v[0].round() as u64}}},
            "L1hits": {"metrics": {"Both": [{"Int": 7}, {"Int": 8}]}}}}}}}]})
        .to_string()
    }),
    ("vitest", |v| {
        json!({"files": [{"filepath": "a.bench.ts", "groups": [{"fullName": "a.bench.ts > g",
            "benchmarks": [{"name": "a", "samples": v, "mean": v[0]}]}]}]})
        .to_string()
    }),
    ("fio", |v| {
        json!({"fio version": "fio-3.36", "timestamp": 1_700_000_000, "jobs": [{"jobname": "a",
            "error": 0, "read": {"iops": 1e9 / v[0], "bw_bytes": 4096.0 * 1e9 / v[0],
            "lat_ns": {"mean": v[0]}}, "write": {"iops": 0.0}}]})
        .to_string()
    }),
    ("catch2", |v| {
        format!(
            "<?xml version=\"1.0\"?>\n<Catch2TestRun><TestCase name=\"t\"><BenchmarkResults \
             name=\"a\" samples=\"100\"><mean value=\"{}\" lowerBound=\"1\" upperBound=\"2\"/>\
             </BenchmarkResults></TestCase></Catch2TestRun>",
            v[0]
        )
    }),
    ("libtest", |v| {
        format!(
            "running 1 test\ntest a ... bench:  {:.2} ns/iter (+/- 56)\n",
            v[0]
        )
    }),
    ("criterion-text", |v| {
        format!(
            "a                       time:   [1.0 ns {} ns 9.9 ns]\n",
            v[0]
        )
    }),
    ("sysbench", |v| {
        format!(
            "sysbench 1.0.20 (using LuaJIT)\nCPU speed:\n    events per second:  {}\n\
             Latency (ms):\n         avg:   1.0\n",
            1e9 / v[0]
        )
    }),
    ("wrk", |v| {
        format!(
            "Running 30s test @ http://h/\n  2 threads and 4 connections\n    Latency   1.20ms  \
             0.5ms   3.0ms   90.00%\nRequests/sec:  {}\n",
            1e9 / v[0]
        )
    }),
    ("github", |v| {
        json!([{"name": "a", "unit": "ns/iter", "value": v[0], "range": "± 5"}]).to_string()
    }),
    ("tinybench", |v| {
        json!([{"name": "a", "result": {"latency": {"samples": v, "mean": v[0]}}}]).to_string()
    }),
    ("bencher", |v| {
        json!({"a": {"latency": {"value": v[0], "lower_value": 1.0}}}).to_string()
    }),
    ("locklab", |v| {
        json!({"tool": "locklab 0.3.0", "kind": "compare", "workloads": [{"name": "a",
            "pair_ratios": {"metric": "elapsed", "direction": "lower_is_better", "ratios": v}}]})
        .to_string()
    }),
    ("csv", |v| {
        let row = |x: &f64| format!("a,{x}\n");
        format!("name,value\n{}", v.iter().map(row).collect::<String>())
    }),
];

/// Returns a side of eight files, each of a process that differs from the others.
fn side(name: &str, write: Write, centre: f64) -> SampleFile {
    let file = |i: usize| {
        let text = write(&values(centre * (1.0 + 0.01 * ((i * 5) % 8) as f64), 12));
        let mut file = read(text.as_bytes(), "a", None)
            .unwrap_or_else(|error| panic!("{name} {error}\n{text}"));
        assert_eq!(file.format.name(), name, "{text}");
        file.label = format!("{name} {i}");
        file
    };
    SampleFile::joined((0..8).map(file).collect())
}

fn judging() -> Judging {
    Judging {
        settings: Settings::default(),
        drift: 0.0,
        apart: None,
        process_noise: None,
    }
}

#[test]
fn each_format_is_found_by_what_it_holds_and_by_its_name() {
    let names: Vec<&str> = Format::all().map(Format::name).collect();
    let tested: Vec<&str> = WRITERS.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, tested, "a row of the table without a writer here");
    for (name, write) in WRITERS {
        let found = judge(
            compare(
                side(name, *write, 1e3),
                side(name, *write, 1.2e3),
                Matching::default(),
            ),
            judging(),
        )
        .unwrap();
        let row = found.rows.iter().find(|row| row.of.role == Role::Primary);
        let row = row.unwrap_or_else(|| panic!("{name}: {found:#?}"));
        assert_eq!(row.judged.verdict.word(), "worse", "{name}: {row:#?}");
        let text = write(&values(1e3, 12));
        assert!(
            read(text.as_bytes(), "a", Format::named(name)).is_ok(),
            "{name}"
        );
        let other = if *name == "jmh" { "go" } else { "jmh" };
        assert!(
            read(text.as_bytes(), "a", Format::named(other)).is_err(),
            "{name}"
        );
    }
}

/// What is cut off is read so far or refused, and never taken for another format.
#[test]
fn a_file_that_ends_anywhere_is_of_its_own_format_or_of_none() {
    for (name, write) in WRITERS {
        let text = write(&values(1e3, 5));
        for end in (1..text.len()).filter(|end| text.is_char_boundary(*end)) {
            if let Ok(file) = read(&text.as_bytes()[..end], "a", None) {
                assert_eq!(file.format.name(), *name, "{}", &text[..end]);
            }
        }
    }
}

/// Other forms of the same programs.
#[test]
fn each_form_of_a_format_is_read() {
    let perf = "\n Performance counter stats for './x':\n\n          1,234.50 msec task-clock      \
                #    0.999 CPUs utilized\n       5,000,000      instructions:u   #    1.20  insn \
                per cycle\n\n       1.235000000 seconds time elapsed\n\n";
    let perf_json = "{\"counter-value\" : \"1234.5\", \"unit\" : \"msec\", \"event\" : \
                     \"task-clock\", \"event-runtime\" : 1, \"pcnt-running\" : 100.00}\n\
                     {\"counter-value\" : \"5000000.0\", \"unit\" : \"\", \"event\" : \
                     \"instructions:u\", \"event-runtime\" : 1, \"pcnt-running\" : 100.00}\n";
    let catch = "benchmark name                       samples       iterations    est run time\n\
                 \x20                                    mean          low mean      high mean\n\
                 \x20                                    std dev       low std dev   high std dev\n\
                 -------------------------------------------------------------------------------\n\
                 fib 20                                         100             2     8.2 ms \n\
                 \x20                                       41.5 us       41.3 us      41.9 us \n\
                 \x20                                       1.5 us        1.1 us       2.2 us \n";
    let raw = "group,function,value,throughput_num,throughput_type,sample_measured_value,unit,\
               iteration_count\ng,f,8,,,1000.0,ns,10\ng,f,8,,,1010.0,ns,10\n";
    let criterion = "Benchmarking g/f\ng/f                     time:   [1.1 µs 1.2 µs 1.3 µs]\n  \
                     change: [-1% +0% +1%] (p = 0.5 > 0.05)\n";
    let hyperfine =
        "command,mean,stddev,median,user,system,min,max\nsleep 1,1.001,0.1,1.0,0,0,1,1\n";
    for (text, format, name, value) in [
        (perf, "perf-stat", "perf stat, time elapsed", 1.235),
        (perf_json, "perf-stat", "perf stat, task-clock", 1234.5),
        (catch, "catch2", "fib 20", 41.5),
        (raw, "criterion", "g/f/8", 100.0),
        (criterion, "criterion-text", "g/f", 1.2),
        (hyperfine, "csv", "sleep 1", 1.001),
        ("old;new\n1,5;1,6\n1,7;1,8\n", "csv", "old", 1.5),
        ("a\t2.5\na\t2.6\n", "csv", "a", 2.5),
        ("1.5\n1.6\n", "csv", "all", 1.5),
        ("x,1,2\ny,3,4\n", "csv", "x", 1.0),
        (
            r#"[{"name": "a", "unit": "ms", "value": "12.5"}]"#,
            "github",
            "a",
            12.5,
        ),
    ] {
        let file = read(text.as_bytes(), "b", None).unwrap_or_else(|e| panic!("{e}: {text}"));
        let primary = file
            .benchmarks
            .iter()
            .find(|b| b.role == Role::Primary)
            .unwrap();
        let found = (
            file.format.name(),
            primary.name.as_str(),
            primary.runs[0].value,
        );
        assert_eq!(found, (format, name, value), "{text}");
    }
}

/// A text that is known and has no samples says what to give instead.
#[test]
fn what_is_known_and_not_read_is_named() {
    for (text, program) in [
        (
            "fib(20) x 1,212,759 ops/sec ±0.74% (93 runs sampled)\n",
            "benchmark.js",
        ),
        (
            "a  fastest │ slowest │ median │ mean │ samples │ iters\n",
            "divan",
        ),
        (
            r#"{"mean": {"point_estimate": 1}, "median": {}, "std_dev": {}, "slope": null}"#,
            "criterion's estimates",
        ),
        (
            "3;fio-3.28;job;0;0;1234;5678;90;12;34;56\n",
            "fio's terse output",
        ),
        (
            "Benchmark 1: ls\n  Time (mean ± σ):  1.2 ms ± 0.1 ms\n",
            "hyperfine's summary",
        ),
        (
            "Benchmark  Mode  Cnt  Score  Error  Units\nB.a  avgt  5  1.0  0.1  ns/op\n",
            "JMH's text",
        ),
        (
            "S0-D0-C0,2,1.0,msec,task-clock,1,100.00,,\n",
            "perf stat and has no samples: it counts each CPU",
        ),
    ] {
        let error = read(text.as_bytes(), "x", None).unwrap_err().to_string();
        assert!(
            error.starts_with(&format!("is of {program}")),
            "{text}: {error}"
        );
    }
}

/// A foreign line is in no format: what is read is read whole.
#[test]
fn a_text_with_a_foreign_line_is_refused() {
    let perf = "1.5,msec,task-clock,1000,100.00,,\nhello\n";
    let gungraun = format!("{}\nwarning: x\n", WRITERS[9].1(&[5.0]));
    for text in [perf, &gungraun, "a,1\nb,two words\n", "a,1\n"] {
        let is_table = text == "a,1\n";
        assert_eq!(read(text.as_bytes(), "x", None).is_ok(), is_table, "{text}");
    }
}

/// The list in the documentation is the table.
#[test]
fn the_documentation_lists_every_format() {
    let path = Path::new(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../../docs/judge.md"
    ));
    let page = std::fs::read_to_string(path).unwrap();
    let start = page.find("- **hyperfine**").unwrap();
    let end = start + page[start..].find("\n\n").unwrap() + 1;
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        let page = format!("{}{}{}", &page[..start], Format::list(), &page[end..]);
        std::fs::write(path, page).unwrap();
        return;
    }
    assert_eq!(
        &page[start..end],
        Format::list(),
        "renew it with UPDATE_GOLDEN=1"
    );
}

/// hyperfine writes both commands of one call into one file.
#[test]
fn one_file_with_two_benchmarks_has_both_sides() {
    let of = |names: &[&str]| -> Value {
        let one = |name: &&str| json!({"command": name, "times": values(1.0, 10)});
        json!({"results": names.iter().map(one).collect::<Vec<_>>()})
    };
    let split = |names: &[&str]| {
        let text = of(names).to_string();
        read(text.as_bytes(), "x", None).unwrap().split()
    };
    let [baseline, experiment] = split(&["./old", "./new"]).unwrap();
    assert_eq!(
        (baseline.label.as_str(), experiment.label.as_str()),
        ("./old", "./new")
    );
    assert!(
        split(&["./a", "./a"]).is_some(),
        "the second is another benchmark"
    );
    assert!(split(&["a"]).is_none() && split(&["a", "b", "c"]).is_none());
}
