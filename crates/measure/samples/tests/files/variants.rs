//! What programs wrote in other versions, languages and settings, by their documentation: each
//! is read right, or refused by name. A figure that is read wrongly is worse than none.

use locklab_judge::{Direction, Role};
use locklab_samples::{Benchmark, SampleFile, read};

/// Writes what decides as `name: first value with its unit, ^ where more is better, xRUNS`,
/// and `/PROCESSES` where several runs share one.
fn shown(file: &SampleFile) -> Vec<String> {
    let primary = file.benchmarks.iter().filter(|b| b.role == Role::Primary);
    primary.map(one).collect()
}

fn one(b: &Benchmark) -> String {
    let mut processes: Vec<usize> = b.runs.iter().map(|run| run.process).collect();
    processes.dedup();
    let up = match b.direction {
        Direction::HigherIsBetter => "^",
        Direction::LowerIsBetter => "",
    };
    let (n, of) = (b.runs.len(), processes.len());
    let processes = if n == of {
        String::new()
    } else {
        format!("/{of}")
    };
    let value = b.runs[0].value;
    let value = if value < 1e9 {
        (1e6 * value).round() / 1e6
    } else {
        value
    };
    let value = format!("{value:?}");
    let value = value.trim_end_matches(".0");
    format!("{}: {value}{}{up} x{n}{processes}", b.name, b.unit)
}

fn file(text: &str) -> SampleFile {
    read(text.as_bytes(), "x", None).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

fn reads(text: &str, expected: &[&str]) {
    assert_eq!(shown(&file(text)), expected, "{text}");
    // Windows' ends of lines, its mark, and its wide letters change nothing.
    let windows = format!("\u{feff}{}", text.replace('\n', "\r\n"));
    assert_eq!(shown(&file(&windows)), expected, "{text}");
    let wide: Vec<u8> = windows.encode_utf16().flat_map(u16::to_le_bytes).collect();
    assert_eq!(shown(&read(&wide, "x", None).unwrap()), expected, "{text}");
}

fn refuses(text: &str, says: &str) {
    let error = read(text.as_bytes(), "x", None)
        .map(|file| shown(&file))
        .expect_err(text)
        .to_string();
    assert!(error.contains(says), "{says}: {error}\n{text}");
}

#[test]
fn hyperfine() {
    reads(
        r#"{"results":[{"command":"./b","times":[1,2],"parameters":{"n":"1"}},
        {"command":"./b","times":[3,4],"parameters":{"n":"2"}}]}"#,
        &["./b n=1: 1s x2", "./b n=2: 3s x2"],
    );
    // Before 1.10, and a run that a signal ended.
    reads(
        r#"{"results":[{"command":"b","times":[1,2],"parameter":"4","exit_codes":[0,null]},
        {"command":"b","times":[1,2],"parameter":null}]}"#,
        &["b 4: 1s x2", "b: 1s x2"],
    );
    reads(
        "command,mean,stddev,median,user,system,min,max,parameter_n\n\
         b,1.5,0.1,1.5,1,0,1,2,1\nb,2.5,0.1,2.5,2,0,2,3,2\n",
        &["b n=1: 1.5s x1", "b n=2: 2.5s x1"],
    );
    refuses(
        "| Command | Mean [ms] | Min [ms] | Max [ms] | Relative |\n|:---|---:|---:|---:|---:|\n\
         | `b` | 12.3 ± 0.4 | 11.9 | 13.0 | 1.00 |\n",
        "--export-json",
    );
}

#[test]
fn go() {
    // What a benchmark prints begins no process.
    reads(
        "goos: linux\npkg: p\nBenchmarkA-2 10 5.0 ns/op\nprogress: 1\nBenchmarkA-2 10 6 ns/op\n\
         PASS\ngoos: linux\npkg: p\nBenchmarkA-2 10 7 ns/op\n",
        &["A-2: 5ns/op x3/2"],
    );
    reads(
        "BenchmarkA 10 0.5 ns/op 12 p99-ns\nBenchmarkB 5 3e4 req/s\nBenchmarkC\nBenchmarkD-8 7\n\
         --- SKIP: BenchmarkE\n",
        &["A: 0.5ns/op x1", "B: 30000req/s^ x1"],
    );
}

#[test]
fn google() {
    // Before 1.5 only the names tell repetitions from their statistics.
    reads(
        r#"{"context":{"date":"2018-01-01 10:00:00"},"benchmarks":[
        {"name":"B/8","iterations":9,"real_time":5,"cpu_time":5,"time_unit":"us"},
        {"name":"B/8","iterations":9,"real_time":6,"cpu_time":5,"time_unit":"us"},
        {"name":"B/8_mean","iterations":9,"real_time":5.5,"cpu_time":5,"time_unit":"us"},
        {"name":"B/8_stddev","iterations":9,"real_time":0.5,"cpu_time":5,"time_unit":"us"},
        {"name":"B_BigO","cpu_coefficient":1,"real_coefficient":1,"big_o":"N"},
        {"name":"B_RMS","rms":0.1}]}"#,
        &["B/8: 5us x2/1"],
    );
    let skipped = r#"{"context":{},"benchmarks":[
        {"name":"B","run_name":"B","run_type":"iteration","iterations":9,"real_time":5},
        {"name":"B","run_name":"B","run_type":"iteration","skipped":true,"skip_message":"no disk",
        "iterations":0,"real_time":0}]}"#;
    reads(skipped, &["B: 5ns x1"]);
    assert!(file(skipped).notes[0].contains("skipped: no disk"));
    refuses(
        "2026-01-01T00:00:00+00:00\nRunning ./b\nname,iterations,real_time,cpu_time,time_unit,\
         bytes_per_second\n\"B\",10,5,5,ns,,\n",
        "json",
    );
}

#[test]
fn criterion() {
    reads(
        "group,function,value,throughput_num,throughput_type,sample_measured_value,unit,\
         iteration_count\ng,f,,8,bytes,100,ns,10\ng,f,,8,bytes,210,ns,20\n",
        &["g/f: 10ns x2/1"],
    );
    reads(
        "group,function,value,sample_time_nanos,iteration_count\ng,f,8,100,10\n",
        &["g/f/8: 10ns x1"],
    );
    // One benchmark got faster than a microsecond on the way.
    reads(
        "f  time:   [1.0 µs 1.2 µs 1.3 µs]\n  thrpt:  [1 MiB/s 2 MiB/s 3 MiB/s]\n  change:\n  \
         time:   [-1.2% -1.0% +0.3%] (p = 0.1 > 0.05)\nf  time:   [900 ns 950 ns 990 ns]\n",
        &["f: 1.2µs x2"],
    );
    let both = "f  time:   [1.0 µs 1.2 µs 1.3 µs]\nf  time:   [900 ns 950 ns 990 ns]\n";
    let second = file(both).benchmarks[0].runs[1].value;
    assert!((second - 0.95).abs() < 1e-9, "{second}");
}

#[test]
fn jmh() {
    let of = |body: &str| {
        format!(r#"[{{"benchmark":"B.a","mode":"sample","threads":2,"primaryMetric":{body}}}]"#)
    };
    // Single calls: a histogram of each iteration of each fork.
    reads(
        &of(r#"{"score":1,"scoreError":"NaN","scoreUnit":"us/op",
        "rawDataHistogram":[[[[1.0,3],[5.0,1]],[[2.0,1]]],[[[4.0,2]]]]}"#),
        &["B.a threads=2: 2us/op x3/2"],
    );
    reads(
        &of(r#"{"score":1,"scoreUnit":"ops/us","rawData":[[5.0,"NaN"]]}"#),
        &["B.a threads=2: 5ops/us^ x2/1"],
    );
    refuses(&of(r#"{"score":1,"scoreUnit":"us/op"}"#), "only its score");
    for separator in [",", ";"] {
        let table = "\"Benchmark\",\"Mode\",\"Threads\",\"Samples\",\"Score\",\"Score Error \
                     (99.9%)\",\"Unit\"\n\"B.a\",\"thrpt\",1,5,123.4,1.0,\"ops/s\"\n";
        refuses(
            &table.replace("\",\"", &format!("\"{separator}\"")),
            "-rf json",
        );
    }
}

#[test]
fn perf_stat() {
    // German: points in thousands, a comma before the fraction.
    reads(
        " Performance counter stats for './x':\n\n   1.234,50 msec task-clock  #  0,999 CPUs \
         utilized\n   5.000.000      instructions:u   #  1,20  insn per cycle\n\n   \
         1,235000000 seconds time elapsed\n\n   1,200000000 seconds user\n",
        &["perf stat, time elapsed: 1.235s x1"],
    );
    let german = " Performance counter stats for 'x':\n  1.234,50 msec task-clock\n  5.000.000  \
                  instructions\n";
    reads(german, &["perf stat, task-clock: 1234.5msec x1"]);
    assert_eq!(file(german).benchmarks[1].runs[0].value, 5e6);
    // French: narrow spaces; Swiss: apostrophes.
    for mark in ["\u{202f}", "\u{a0}", "'", "’"] {
        reads(
            &german.replace('.', mark),
            &["perf stat, task-clock: 1234.5msec x1"],
        );
    }
    reads(
        "1234,50;msec;task-clock;1000;100,00;0,99;CPUs utilized\n",
        &["perf stat, task-clock: 1234.5msec x1"],
    );
    // The mean of -r.
    reads(
        " Performance counter stats for 'x' (5 runs):\n  1,234.50 msec task-clock  #  0.9 CPUs \
         utilized  ( +-  0.10% )\n\n  1.0023 +- 0.0011 seconds time elapsed  ( +-  0.11% )\n",
        &["perf stat, time elapsed: 1.0023s x1"],
    );
    let object = |more: &str| {
        format!(
            "# started on Sat Nov 28 09:00:00 2026\n\n{{{more}\"counter-value\" : \"12.5\", \
             \"unit\" : \"msec\", \"event\" : \"task-clock\", \"pcnt-running\" : 100.00}}\n\
             {{{more}\"metric-value\" : \"1.2\", \"metric-unit\" : \"insn per cycle\"}}\n"
        )
    };
    reads(&object(""), &["perf stat, task-clock: 12.5msec x1"]);
    assert!(file(&object("")).measured.is_some());
    refuses(&object("\"cpu\" : \"0\", "), "each CPU");
    refuses(&object("\"core\" : \"S0-D0-C0\", "), "leave out -A");
    refuses("CPU0,12.5,msec,task-clock,100,100.00,,\n", "each CPU");
}

#[test]
fn benchmarkdotnet_and_asv() {
    reads(
        r#"{"HostEnvironmentInfo":{},"Benchmarks":[{"FullName":"A.B(N: 1)","Measurements":[
        {"IterationMode":"MainWarmup","LaunchIndex":1,"Operations":1,"Nanoseconds":900},
        {"IterationMode":"Result","LaunchIndex":1,"Operations":4,"Nanoseconds":20},
        {"IterationMode":"Result","LaunchIndex":2,"Operations":4,"Nanoseconds":24}]}]}"#,
        &["A.B(N: 1): 5ns x2"],
    );
    refuses(
        r#"{"HostEnvironmentInfo":{},"Benchmarks":[{"FullName":"A.B","Statistics":{"Mean":5}}]}"#,
        "fulljson",
    );
    refuses("Method;Job;Mean\nA;DefaultJob;1.2 ns\n", "fulljson");
    refuses(
        r#"{"commit_hash":"a","results":{"b.time_x":1e-5},"version":1}"#,
        "asv update",
    );
    reads(
        r#"{"result_columns":["result","params","version","samples"],"results":{
        "b.time_x":[[1.0,null],[["1","2"]],"v",[[1.0,1.1],null]],"b.track_y":[[3],[]]}}"#,
        &["b.time_x 1: 1s x2/1", "b.track_y: 3 x1"],
    );
}

#[test]
fn gungraun() {
    let of = |name: &str, summary: &str| {
        format!(r#"{{"module_path":"m::g::f","function_name":"f","id":"{name}",{summary}}}"#)
    };
    // Each version of its form, new first and old second.
    for summary in [
        r#""callgrind_summary":{"summaries":[{"events":{"Ir":{"new":7,"old":9}}}]}"#,
        r#""callgrind_summary":{"callgrind_run":{"segments":[{"events":{"Ir":{"metrics":{"Left":1}}}}],"total":{"summary":{"Ir":{"metrics":{"Both":[7,9]}}}}}}"#,
        r#""profiles":[{"tool":"DHAT","summaries":{"total":{"summary":{"Dhat":{}}}}},{"tool":"Callgrind","summaries":{"total":{"summary":{"Callgrind":{"Ir":{"metrics":{"Left":{"Int":7}}}}}}}}]"#,
    ] {
        reads(&of("a", summary), &["m::g::f a: 7 x1"]);
        let lines = format!("{}\n{}\n", of("a", summary), of("b", summary));
        let list = format!("[{}]", lines.trim().replace('\n', ","));
        for text in [lines, list] {
            reads(&text, &["m::g::f a: 7 x1", "m::g::f b: 7 x1"]);
        }
    }
    let gone = r#""callgrind_summary":{"callgrind_run":{"total":{"summary":{"Ir":{"metrics":{"Right":7}}}}}}"#;
    refuses(&of("a", gone), "no counts of Callgrind");
}

#[test]
fn texts() {
    let sysbench = |line: &str| {
        format!("sysbench 1.0.20 (using LuaJIT 2.1)\n\n{line}\nLatency (ms):\n   avg:  0.5\n")
    };
    for (line, expected) in [
        ("    events per second:  12.5", 12.5),
        ("    transactions:   600  (12.5 per sec.)", 12.5),
        ("Total operations: 99 (12.5 per second)", 12.5),
        ("    events/s (eps):   12.5", 12.5),
        ("    reads/s:  0.00\n    writes/s:  12.5", 12.5),
    ] {
        let expected = format!("sysbench: {expected}ops/s^ x1");
        reads(&sysbench(line), &[&expected]);
    }
    let wrk = "Running 1s test @ http://h/\n  Latency   900.00us  0.5ms\n  Requests/sec:  5.5\n\
               Non-2xx or 3xx responses: 7\nRunning 1s test @ http://h/\n  Latency   1.20ms  \
               0.5ms\n  Requests/sec:  6.5\n";
    reads(wrk, &["http://h/: 5.5ops/s^ x2"]);
    let latency = &file(wrk).benchmarks[0];
    assert_eq!(
        (latency.metric.as_str(), latency.unit.as_str()),
        ("mean latency", "us")
    );
    assert!((latency.runs[1].value - 1200.0).abs() < 1e-9, "{latency:?}");
    assert!(file(wrk).notes[0].starts_with("Non-2xx"));
    reads(
        "<?xml version=\"1.0\"?>\n<Catch><Group name=\"g\"><TestCase name=\"t\"><Section \
         name=\"s\"><BenchmarkResults name=\"b\"><mean value=\"5\"/></BenchmarkResults></Section>\
         <Section name=\"u\"><BenchmarkResults name=\"b\"><mean value=\"6\"/></BenchmarkResults>\
         </Section></TestCase></Group></Catch>",
        &["t s b: 5ns x1", "t u b: 6ns x1"],
    );
    refuses(
        "\nfio: (g=0): rw=read\nStarting 1 process\n  read: IOPS=5k, BW=9MiB/s\n",
        "json",
    );
    // Two jobs of one name are two.
    reads(
        r#"{"fio version":"fio-3.1","jobs":[{"jobname":"j","read":{"iops":5}},
        {"jobname":"j","read":{"iops":6},"write":{"iops":0}}]}"#,
        &["j read: 5ops/s^ x1", "j read #2: 6ops/s^ x1"],
    );
}

#[test]
fn lists_of_services() {
    for (unit, up) in [
        ("ns/iter", ""),
        ("ops/sec", "^"),
        ("iter/sec", "^"),
        ("MB/s", "^"),
        ("Mbps", "^"),
        ("req/s", "^"),
        ("IOPS", "^"),
        ("fps", "^"),
        ("GFLOPS", "^"),
        ("requests per second", "^"),
        ("bytes", ""),
        ("ms", ""),
    ] {
        let text = format!(r#"[{{"name":"a","unit":"{unit}","value":5}}]"#);
        reads(&text, &[&format!("a: 5{unit}{up} x1")]);
        assert!(file(&text).notes.is_empty(), "{unit}");
    }
    let odd = r#"[{"name":"a","unit":"Percent","value":5}]"#;
    assert!(file(odd).notes[0].contains("--better higher"));
    reads(
        r#"{"a":{"latency":{"value":5,"upper_value":6},"throughput":{"value":7}}}"#,
        &["a: 5ns x1", "a: 7ops/s^ x1"],
    );
    for (text, says) in [
        (
            r#"[{"Task name":"a","Latency avg (ns)":"1 ± 0.5%"}]"#,
            "JSON",
        ),
        (r#"window.BENCHMARK_DATA = {"entries":{}}"#, "one commit"),
        // What has only a name and a mean is of no known unit.
        (r#"[{"name":"a","mean":5}]"#, "no form that is known"),
        (
            r#"{"metrics":{"http_reqs":{"count":5,"rate":2}}}"#,
            "no form that is known",
        ),
    ] {
        refuses(text, says);
    }
}

#[test]
fn tables() {
    // A parameter is a part of the name, a number of a run is not.
    reads(
        "name,threads,run,value,unit,commit\na,1,1,5,ms,x\na,1,2,6,ms,y\na,4,1,7,ms,x\n",
        &["a threads=1: 5ms x2", "a threads=4: 7ms x1"],
    );
    reads(
        "throughput,bandwidth\n5,7\n4,8\n5,7\n",
        &["throughput: 5^ x3", "bandwidth: 7^ x3"],
    );
    reads("name,run1,run2\na,5,6\n", &["a: 5 x2"]);
    // A label names what has no other name, as JMeter's rows; beside a name it is a note.
    reads(
        "timeStamp,elapsed,label\n1,20,home\n2,30,log in\n",
        &["home: 20 x1", "log in: 30 x1"],
    );
    reads("name,value,label\na,5,x\na,6,y\n", &["a: 5 x2"]);
    reads("name,value,time\na,5,1\na,6,2\n", &["a: 5 x2"]);
    reads("name;value;unit\na;1,5;ms\na;0,005;s\n", &["a: 1.5ms x2"]);
    reads("name\tvalue\na\t1e308\na\t-1\na\tNaN\n", &["a: 1e308 x3"]);
    // Statistics, parameters and two sides are no samples.
    for text in [
        "name,min,max,mean\na,1,3,2\nb,2,4,3\n",
        "name,old,new\na,1,2\n",
        "mean,stddev\n1,2\n3,4\n5,6\n",
        "threads,ops\n1,50\n2,90\n4,150\n",
        "min,max\n1,2\n",
        "time,elapsed\n1,20\n2,21\n",
    ] {
        refuses(text, "no form that is known");
    }
    // 999 and 1,001 are neighbours, or a thousandfold apart.
    refuses("name;value\na;999\na;1,001\n", "thousands");
    refuses("name;value\na;1.001,5\n", "no form that is known");
    refuses("name;value\na;1.001\na;0,5\n", "thousands");
}

/// Whatever a file is cut to, and whatever its bytes are, nothing panics and no figure is made up.
#[test]
fn what_is_cut_or_broken_panics_nowhere() {
    let texts = [
        "goos: linux\npkg: p\nBenchmarkA-2 10 5.0 ns/op 1 B/op\nPASS\n",
        "name;value;unit\na;1,5;ms\n\"b;2;s\n",
        " Performance counter stats for 'x':\n  1.234,50 msec task-clock\n  1,0 +- 0,1 seconds time \
         elapsed ( +- 1% )\n",
        "1234,50;msec;task-clock;1000;100,00;0,99;CPUs utilized\n",
        "sysbench 1.0\n transactions: 5 (1.2 per sec.)\n avg: 1\n",
        "group,function,value,sample_time_nanos,iteration_count\ng,f,8,100,10\n",
        "benchmark name samples iterations est run time\nmean\nstd dev\n---\nf 1 2 3 ms\n4 us\n",
    ];
    for text in texts {
        for end in 0..=text.len() {
            let mut bytes = text.as_bytes()[..end].to_vec();
            let _ = read(&bytes, "x", None);
            bytes.push(0xff);
            let _ = read(&bytes, "x", None);
            bytes.insert(0, 0xfe);
            let _ = read(&bytes, "x", None);
        }
    }
}
