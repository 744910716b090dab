//! Measures the cost of recording two programs: runs with and without the recorder
//! take turns, and the table of results/programs.md is printed. `cargo build --release
//! -p locklab-recorder`, then `cargo run --release -p locklab-validation --bin
//! recording_cost -- [--runs N] [--seconds N] [PROGRAM...]`, on an idle machine
//! with the packages memcached, libmemcached-tools and rocksdb-tools.

use locklab_host::environment::Environment;
use locklab_preload_run::Recording;
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Requests that a client sends before it reads the answers.
const BATCH: usize = 50;
/// Room for a recording, in units of 2^20 bytes.
const MEGABYTES: u32 = 1024;

/// A program under a load, which gives its rate.
#[derive(Clone, Copy)]
struct Subject {
    name: &'static str,
    title: &'static str,
    measure: fn(&Bench<'_>, recorded: bool) -> Result<Run, String>,
}

const SUBJECTS: [Subject; 3] = [
    Subject {
        name: "memcaslap",
        title: "memcached 4 threads, its own load generator (32 clients), requests/s",
        measure: memcaslap,
    },
    Subject {
        name: "pipelined",
        title: "memcached 4 threads, 4 clients that send 50 requests at a time, requests/s",
        measure: pipelined,
    },
    Subject {
        name: "db_bench",
        title: "`db_bench` readwhilewriting, 8 threads, operations/s",
        measure: db_bench,
    },
];

/// One run: its rate, and what the recording says that it cost.
struct Run {
    rate: f64,
    json: Option<Value>,
}

struct Bench<'a> {
    folder: &'a Path,
    seconds: u64,
}

fn main() -> Result<(), String> {
    let (mut runs, mut seconds, mut names) = (7, 3, Vec::new());
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut number = || {
            let word = words.next().unwrap_or_default();
            word.parse().map_err(|_| format!("'{word}' is no number"))
        };
        match word.as_str() {
            "--runs" => runs = number()?,
            "--seconds" => seconds = number()?,
            name => names.push(name.to_owned()),
        }
    }
    let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
    let bench = Bench {
        folder: folder.path(),
        seconds,
    };
    println!(
        "{}; {runs} runs of {seconds} s each way\n",
        Environment::read().name()
    );
    println!("| program | without | recorded | median slower by | recorder's own code | MB/s |");
    println!("| --- | --- | --- | --- | --- | --- |");
    let chosen = |subject: &&Subject| names.is_empty() || names.iter().any(|n| n == subject.name);
    for subject in SUBJECTS.iter().filter(chosen) {
        println!("{}", row(&bench, *subject, runs)?);
    }
    Ok(())
}

fn row(bench: &Bench<'_>, subject: Subject, runs: u64) -> Result<String, String> {
    let (mut without, mut recorded, mut last) = (Vec::new(), Vec::new(), Value::Null);
    for _ in 0..runs {
        without.push((subject.measure)(bench, false)?.rate);
        let run = (subject.measure)(bench, true)?;
        recorded.push(run.rate);
        last = run.json.unwrap_or_default();
    }
    without.sort_by(f64::total_cmp);
    recorded.sort_by(f64::total_cmp);
    let range = |rates: &[f64]| {
        let thousands = |rate: f64| format!("{:.0}k", rate / 1e3);
        format!(
            "{} to {}",
            thousands(rates[0]),
            thousands(rates[rates.len() - 1])
        )
    };
    let median = |rates: &[f64]| rates[rates.len() / 2];
    Ok(format!(
        "| {} | {} | {} | {:.2} | {:.0} ns an operation | {:.0} |",
        subject.title,
        range(&without),
        range(&recorded),
        median(&without) / median(&recorded),
        last["overhead"]["ns_per_operation"]
            .as_f64()
            .unwrap_or(f64::NAN),
        last["bytes"].as_f64().unwrap_or(f64::NAN)
            / 1e6
            / (last["recorded_ns"].as_f64().unwrap_or(f64::NAN) / 1e9),
    ))
}

/// Runs a program to its end, recorded or not, while `load` runs.
fn run(
    bench: &Bench<'_>,
    words: &[String],
    recorded: bool,
    load: impl FnOnce() -> Result<f64, String>,
) -> Result<Run, String> {
    if !recorded {
        let mut child = Command::new(&words[0])
            .args(&words[1..])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|e| format!("{}: {e}", words[0]))?;
        let rate = load();
        ended(&mut child)?;
        return Ok(Run {
            rate: rate?,
            json: None,
        });
    }
    let recording = Recording {
        file: bench.folder.join("recording"),
        seconds: None,
        megabytes: MEGABYTES,
        whole: false,
        command: words.iter().map(Into::into).collect(),
        round_trip: || None,
        cpu_use: || None,
        client: None,
    };
    thread::scope(|scope| {
        let program = scope.spawn(|| {
            let ready = recording.ready().map_err(|e| e.to_string())?;
            ready.run(true).map_err(|e| e.to_string())
        });
        let rate = load()?;
        let (_, text) = program.join().map_err(|_| "the recording panicked")??;
        Ok(Run {
            rate,
            json: Some(text.json()),
        })
    })
}

fn ended(child: &mut Child) -> Result<(), String> {
    child.wait().map(drop).map_err(|e| e.to_string())
}

/// Returns a port that was free a moment ago, and the server's command line.
fn memcached() -> Result<(u16, Vec<String>), String> {
    let listener = TcpListener::bind("127.0.0.1:0").map_err(|e| e.to_string())?;
    let port = listener.local_addr().map_err(|e| e.to_string())?.port();
    let words = format!("memcached -A -u root -l 127.0.0.1 -t 4 -p {port}");
    Ok((port, words.split(' ').map(Into::into).collect()))
}

fn connect(port: u16) -> Result<TcpStream, String> {
    let end = Instant::now() + Duration::from_secs(10);
    loop {
        match TcpStream::connect(("127.0.0.1", port)) {
            Ok(stream) => return Ok(stream),
            Err(e) if Instant::now() > end => return Err(format!("memcached: {e}")),
            Err(_) => thread::sleep(Duration::from_millis(10)),
        }
    }
}

fn shutdown(port: u16) -> Result<(), String> {
    let sent = connect(port)?.write_all(b"shutdown\r\n");
    sent.map_err(|e| e.to_string())
}

fn memcaslap(bench: &Bench<'_>, recorded: bool) -> Result<Run, String> {
    let (port, words) = memcached()?;
    run(bench, &words, recorded, || {
        drop(connect(port)?);
        let output = Command::new("memcaslap")
            .args(["-s", &format!("127.0.0.1:{port}"), "-T", "2", "-c", "32"])
            .args(["-X", "100", "-t", &format!("{}s", bench.seconds)])
            .output()
            .map_err(|e| format!("memcaslap: {e}"))?;
        shutdown(port)?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let rate = text
            .split("TPS: ")
            .nth(1)
            .and_then(|rest| rest.split(' ').next());
        rate.and_then(|rate| rate.parse().ok())
            .ok_or_else(|| format!("memcaslap gives no rate: {text}"))
    })
}

fn pipelined(bench: &Bench<'_>, recorded: bool) -> Result<Run, String> {
    let (port, words) = memcached()?;
    run(bench, &words, recorded, || {
        let requests = AtomicU64::new(0);
        let begin = Instant::now();
        let end = begin + Duration::from_secs(bench.seconds);
        thread::scope(|scope| {
            let clients: Vec<_> = (0..4)
                .map(|client| {
                    scope.spawn({
                        let requests = &requests;
                        move || sends(port, client, end, requests)
                    })
                })
                .collect();
            clients
                .into_iter()
                .try_for_each(|client| client.join().map_err(|_| "a client panicked")?)
        })?;
        let rate = requests.load(Ordering::Relaxed) as f64 / begin.elapsed().as_secs_f64();
        shutdown(port)?;
        Ok(rate)
    })
}

/// Sends a set and many gets at a time, until `end`.
fn sends(port: u16, client: usize, end: Instant, requests: &AtomicU64) -> Result<(), String> {
    let mut stream = connect(port)?;
    let mut answers = BufReader::new(stream.try_clone().map_err(|e| e.to_string())?);
    let mut batch = Vec::new();
    for request in 0..BATCH {
        let key = format!("k{client}.{}", request / 2);
        if request % 2 == 0 {
            let _ = write!(batch, "set {key} 0 0 10\r\n0123456789\r\n");
        } else {
            let _ = write!(batch, "get {key}\r\n");
        }
    }
    let mut line = String::new();
    while Instant::now() < end {
        stream.write_all(&batch).map_err(|e| e.to_string())?;
        // A set is answered by a line, a get by three.
        for _ in 0..BATCH / 2 * 4 {
            line.clear();
            answers.read_line(&mut line).map_err(|e| e.to_string())?;
        }
        requests.fetch_add(BATCH as u64, Ordering::Relaxed);
    }
    Ok(())
}

fn db_bench(bench: &Bench<'_>, recorded: bool) -> Result<Run, String> {
    let db = bench.folder.join("db");
    let report = bench.folder.join("db_bench.txt");
    let base = format!("db_bench --db={} --num=200000", db.display());
    if !db.exists() {
        let status = Command::new("sh")
            .args([
                "-c",
                &format!("{base} --benchmarks=fillrandom >/dev/null 2>&1"),
            ])
            .status();
        if !status.is_ok_and(|status| status.success()) {
            return Err("db_bench does not run; it is in the package rocksdb-tools".into());
        }
    }
    let line = format!(
        "exec {base} --use_existing_db --benchmarks=readwhilewriting --threads=8 --duration={} \
         >{} 2>/dev/null",
        bench.seconds,
        report.display()
    );
    let words = ["sh".into(), "-c".into(), line];
    let run = run(bench, &words, recorded, || Ok(f64::NAN))?;
    let text = std::fs::read_to_string(&report).map_err(|e| e.to_string())?;
    let rate = text
        .split(" ops/sec ")
        .next()
        .and_then(|start| start.split(' ').next_back());
    let rate = rate.and_then(|rate| rate.parse().ok());
    Ok(Run {
        rate: rate.ok_or_else(|| format!("db_bench gives no rate: {text}"))?,
        ..run
    })
}
