// SPDX-License-Identifier: GPL-2.0-or-later
//! Measures what the plugin costs: real programs natively, in plain QEMU user mode,
//! in QEMU with the plugin, and in its peer, Valgrind's cachegrind with the same
//! cache, all in the same rounds.
//!
//! `cargo bench -p locklab-qemu-plugin [-- ROUNDS]`; needs Debian's qemu-user
//! and valgrind, and gzip, xz-utils, gcc and python3 for the programs.

use std::fmt::Write;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs};

/// The four ways, in the order of the table.
const WAYS: [&str; 4] = ["native", "qemu", "plugin", "cachegrind"];

struct Program {
    name: &'static str,
    command: Vec<String>,
}

/// One program's results.
struct Row {
    /// CPU seconds of each round, by way.
    seconds: [Vec<f64>; 4],
    plugin: Counts,
    cachegrind: Counts,
}

#[derive(Default)]
struct Counts {
    instructions: u64,
    misses: u64,
}

fn main() {
    let arguments: Vec<String> = env::args().collect();
    if !arguments.iter().any(|argument| argument == "--bench") {
        println!("measures only under `cargo bench`");
        return;
    }
    let rounds = arguments
        .iter()
        .find_map(|argument| argument.parse().ok())
        .unwrap_or(5);
    for (tool, package) in [("qemu-x86_64", "qemu-user"), ("valgrind", "valgrind")] {
        if find(tool).is_none() {
            println!("skipped: {tool} is missing (apt-get install {package})");
            return;
        }
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("slowdown");
    fs::create_dir_all(&folder).expect("a folder for the bench");

    let mut times = String::new();
    let mut counts = String::new();
    for program in programs(&folder) {
        let row = measure(&program, &folder, rounds);
        let [native, qemu, plugin, cachegrind] = row.seconds.each_ref().map(|s| median(s));
        let over = |way: usize, base: usize| {
            let pairs = row.seconds[way].iter().zip(&row.seconds[base]);
            median(&pairs.map(|(a, b)| a / b).collect::<Vec<_>>())
        };
        writeln!(
            times,
            "{:<8}{native:>8.3}{qemu:>8.3}{plugin:>8.3}{cachegrind:>11.3}{:>9.2}{:>9.1}{:>9.1}",
            program.name,
            over(2, 1),
            over(2, 0),
            over(3, 0),
        )
        .unwrap();
        writeln!(
            counts,
            "{:<8}{:>16}{:>16}{:>14}{:>14}",
            program.name,
            row.plugin.instructions,
            row.cachegrind.instructions,
            row.plugin.misses,
            row.cachegrind.misses,
        )
        .unwrap();
    }
    println!("\nCPU seconds, user and system; medians of {rounds} interleaved rounds");
    println!("                                            plugin/  plugin/  cacheg./");
    println!("          native    qemu  plugin cachegrind     qemu   native   native");
    println!("{times}");
    println!("             instructions                       L1i misses (model)");
    println!("                  plugin      cachegrind        plugin    cachegrind");
    println!("{counts}");
    println!("cachegrind counts each iteration of a REP string instruction.");
}

/// Returns the programs that are installed, on inputs that are made here.
fn programs(folder: &Path) -> Vec<Program> {
    let text = folder.join("text");
    fs::write(&text, prose(6_000_000)).expect("the input");
    let short = folder.join("short");
    fs::write(&short, prose(800_000)).expect("the input");
    let c = folder.join("branchy.c");
    fs::write(&c, branchy_c(40)).expect("the input");
    let script = "d = {}\nfor i in range(60000):\n    d[str(i)] = d.get(str(i // 7), 0) + i\nprint(sum(d.values()))";
    let file = |path: PathBuf| path.to_str().expect("a UTF-8 folder").to_string();
    let [text, short, c] = [text, short, c].map(file);

    let mut programs = Vec::new();
    let mut add = |name, package, program: Option<PathBuf>, arguments: &[&str]| match program {
        Some(program) => {
            let mut command = vec![file(fs::canonicalize(program).expect("it was found"))];
            command.extend(arguments.iter().map(|argument| argument.to_string()));
            programs.push(Program { name, command });
        }
        None => println!("skipped: {name} is missing (apt-get install {package})"),
    };
    add("gzip", "gzip", find("gzip"), &["-c", &text]);
    add("xz", "xz-utils", find("xz"), &["-1", "-c", &short]);
    add(
        "cc1",
        "gcc",
        cc1(),
        &["-quiet", "-O2", "-o", "/dev/null", &c],
    );
    let python = Some(PathBuf::from("/usr/bin/python3")).filter(|path| path.is_file());
    add("python3", "python3", python, &["-S", "-c", script]);
    programs
}

fn measure(program: &Program, folder: &Path, rounds: usize) -> Row {
    let plugin = env::current_exe()
        .unwrap()
        .with_file_name("liblocklab_qemu_plugin.so");
    let report = folder.join("report.json");
    let plugin = format!("{},out={}", plugin.display(), report.display());
    let log = folder.join("cachegrind.log");
    let cachegrind = [
        "valgrind",
        "--tool=cachegrind",
        "--cache-sim=yes",
        "--I1=32768,8,64",
        "--cachegrind-out-file=/dev/null",
        &format!("--log-file={}", log.display()),
    ];
    let ways: [&[&str]; 4] = [
        &[],
        &["qemu-x86_64"],
        &["qemu-x86_64", "-plugin", &plugin],
        &cachegrind,
    ];
    let progress = std::io::stderr().is_terminal();
    let mut seconds: [Vec<f64>; 4] = Default::default();
    for round in 0..rounds {
        for (way, launcher) in ways.iter().enumerate() {
            if progress {
                eprint!(
                    "\r{} {}/{rounds} {:<12}",
                    program.name,
                    round + 1,
                    WAYS[way]
                );
            }
            seconds[way].push(run(launcher, &program.command));
        }
    }
    if progress {
        eprint!("\r{:40}\r", "");
    }

    let json = fs::read_to_string(report).expect("the plugin's report");
    let json: serde_json::Value = serde_json::from_str(&json).expect("a JSON report");
    let log = fs::read_to_string(log).expect("cachegrind's log");
    // A line is `==PID== I refs: 1,234`, with spaces to align it.
    let logged = |name: [&str; 2]| {
        let words = log.lines().map(|line| line.split_whitespace().skip(1));
        let found = words
            .into_iter()
            .find(|words| words.clone().take(2).eq(name));
        let count = found.and_then(|mut words| words.nth(2)).expect("a count");
        count.replace(',', "").parse().expect("a number")
    };
    Row {
        seconds,
        plugin: Counts {
            instructions: json["instructions"].as_u64().expect("a count"),
            misses: json["l1i_misses"].as_u64().expect("a count"),
        },
        cachegrind: Counts {
            instructions: logged(["I", "refs:"]),
            misses: logged(["I1", "misses:"]),
        },
    }
}

/// Returns the CPU seconds, user and system, of a command behind a launcher.
fn run(launcher: &[&str], command: &[String]) -> f64 {
    let mut words = launcher
        .iter()
        .copied()
        .chain(command.iter().map(String::as_str));
    let before = cpu_seconds_of_children();
    let status = Command::new(words.next().expect("a program"))
        .args(words)
        .env("PYTHONHASHSEED", "0")
        .stdout(Stdio::null())
        .status()
        .expect("it starts");
    assert!(status.success(), "{launcher:?} {command:?}: {status}");
    cpu_seconds_of_children() - before
}

fn cpu_seconds_of_children() -> f64 {
    // SAFETY: all zeros is a valid `rusage`, and the call only fills it in.
    let usage = unsafe {
        let mut usage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_CHILDREN, &mut usage);
        usage
    };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    (sorted[(sorted.len() - 1) / 2] + sorted[sorted.len() / 2]) / 2.0
}

fn find(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path)
        .map(|folder| folder.join(program))
        .find(|file| file.is_file())
}

/// Returns the C compiler proper: `gcc` itself only starts it, and QEMU follows no
/// program into another.
fn cc1() -> Option<PathBuf> {
    let output = Command::new("gcc")
        .arg("-print-prog-name=cc1")
        .output()
        .ok()?;
    let path = PathBuf::from(String::from_utf8(output.stdout).ok()?.trim());
    path.is_absolute().then_some(path)
}

/// Returns the text that compresses as text does.
fn prose(bytes: usize) -> String {
    let words = [
        "lock", "queue", "handoff", "spins", "while", "a", "node", "waits", "for", "its",
    ];
    let mut state = 1_u32;
    let mut text = String::with_capacity(bytes + 16);
    while text.len() < bytes {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        text.push_str(words[(state >> 24) as usize % words.len()]);
        text.push_str([" ", " ", ", ", ".\n"][(state >> 20) as usize % 4]);
        if state >> 28 == 0 {
            write!(text, "{state} ").unwrap();
        }
    }
    text
}

/// Returns C with many small functions, for the compiler to be busy with.
fn branchy_c(functions: usize) -> String {
    let mut source = String::new();
    for n in 0..functions {
        writeln!(
            source,
            "int f{n}(int *a, int k) {{
                int s = 0;
                for (int i = 0; i < k; i++)
                    switch (a[i] & 7) {{
                    case 0: s += a[i] * {n}; break;
                    case 1: s ^= a[i] >> 3; break;
                    case 2: s -= {n}; break;
                    case 3: if (s & 1) s = s * 3 + 1; else s >>= 1; break;
                    case 4: a[i] = s; break;
                    default: s += a[i] % ({n} + 1);
                    }}
                return s;
            }}"
        )
        .unwrap();
    }
    source
}
