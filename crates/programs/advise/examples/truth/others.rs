//! Programs that others wrote, and programs whose locks are not glibc's.
//!
//! What is not installed is missing: its row says so, and the others are made. Nothing is
//! installed here but LMDB's module for Python, into a folder of its own.

use crate::programs::{Change, Program, RATE, sources, succeeds};
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

/// Holds the locks that are tried: all but one of them sleep after a while, because these programs
/// have more threads than two CPUs.
const LOCKS: [&str; 6] = [
    "futex-adaptive",
    "ttas:spin",
    "mcs",
    "qspinlock",
    "reciprocating",
    "malthusian",
];

/// Names the changes of a program: half the threads, twice the work under the lock, and both: the same work with fewer waits.
const FEWER: [&str; 3] = [
    "half the threads",
    "twice the work in a section",
    "half the threads, twice the work in a section",
];
/// The number of threads, which is twice the CPUs of a small machine.
const THREADS: u32 = 4;
/// The number of steps in a section.
const STEPS: u32 = 200;

/// Returns all of them, whose files are in `folder` once [`prepare_others`] has made them.
pub(crate) fn others(folder: &Path) -> Vec<Program> {
    let (text, video) = (folder.join("text"), folder.join("video.y4m"));
    let (text, video) = (text.display(), video.display());
    let python = folder.join("python/bin/python");
    let mut all: Vec<Program> = [
        (
            "lmdb",
            "Python, 4 threads write to one LMDB",
            format!("{} {} 4", python.display(), source("lmdb_writers.py")),
        ),
        (
            "node",
            "4 worker threads, one lock of Atomics",
            format!("node {}", source("workers.js")),
        ),
        (
            "cgo",
            "Go, 4 goroutines in C, one mutex",
            program(folder, "crossings", ""),
        ),
        (
            "mariadb-write",
            "sysbench read-write, 4 clients",
            mariadb(folder, "oltp_read_write"),
        ),
        (
            "mariadb-select",
            "sysbench point selects, 4 clients",
            mariadb(folder, "oltp_point_select"),
        ),
        (
            "redis",
            "4 I/O threads, its own client",
            format!("sh {} 150000", source("redis.sh")),
        ),
        (
            "pigz",
            "4 threads",
            repeated(&format!("2 pigz -p4 -k -c {text}")),
        ),
        (
            "pbzip2",
            "4 threads",
            repeated(&format!("1 pbzip2 -p4 -k -c {text}")),
        ),
        (
            "zstd",
            "2 threads",
            repeated(&format!("4 zstd -T2 -3 -c {text}")),
        ),
        (
            "x265",
            "its own pool of threads",
            repeated(&format!("1 x265 {video} -o /dev/null --preset veryfast")),
        ),
    ]
    .into_iter()
    .map(|(name, about, command)| Program {
        name,
        about,
        command,
        metric: RATE,
        fits: false,
        change: Change::Locks(&LOCKS),
    })
    .collect();
    let this = std::env::current_exe().unwrap_or_default();
    let this = this.display();
    let java = |kind: &str| format!("java -cp {} Sections {kind}", folder.display());
    all.extend([
        system(
            "rust-std",
            "Rust, 4 threads, one std::sync::Mutex",
            &format!("{this} --sections std"),
        ),
        system(
            "rust-parking_lot",
            "Rust, 4 threads, one parking_lot::Mutex",
            &format!("{this} --sections parking_lot"),
        ),
        system(
            "go",
            "Go, 4 goroutines, one sync.Mutex",
            &program(folder, "sections", ""),
        ),
        system(
            "java-monitor",
            "Java, 4 threads, synchronized",
            &java("synchronized"),
        ),
        system(
            "java-lock",
            "Java, 4 threads, one ReentrantLock",
            &java("lock"),
        ),
    ]);
    all
}

/// Returns a program that takes the number of threads and the steps of a section.
fn system(name: &'static str, about: &'static str, command: &str) -> Program {
    let with = |threads: u32, steps: u32| format!("{} {threads} {steps}", command.trim_end());
    let changed = [
        with(THREADS / 2, STEPS),
        with(THREADS, 2 * STEPS),
        with(THREADS / 2, 2 * STEPS),
    ];
    Program {
        name,
        about,
        command: with(THREADS, STEPS),
        metric: RATE,
        fits: false,
        change: Change::Itself(FEWER.into_iter().zip(changed).collect()),
    }
}

fn source(file: &str) -> String {
    sources().join(file).display().to_string()
}

fn program(folder: &Path, file: &str, arguments: &str) -> String {
    format!("{} {arguments}", folder.join(file).display())
}

fn mariadb(folder: &Path, workload: &str) -> String {
    let data = folder.join("mariadb");
    format!(
        "sh {} {} {workload} 4 2",
        source("mariadb.sh"),
        data.display()
    )
}

fn repeated(words: &str) -> String {
    format!("sh {} {words}", source("repeated.sh"))
}

/// Makes what the programs need and is not there.
pub(crate) fn prepare_others(folder: &Path) {
    for name in ["crossings", "sections"] {
        let program = folder.join(name);
        if !program.exists() {
            let mut go = Command::new("go");
            go.args(["build", "-o"]).arg(&program);
            succeeds(go.arg(source(&format!("{name}.go"))));
        }
    }
    if !folder.join("Sections.class").exists() {
        let mut javac = Command::new("javac");
        succeeds(javac.arg("-d").arg(folder).arg(source("Sections.java")));
    }
    let python = folder.join("python");
    if !python.join("bin/python").exists() {
        succeeds(Command::new("python3").args(["-m", "venv"]).arg(&python));
        let mut pip = Command::new(python.join("bin/pip"));
        succeeds(pip.args(["install", "-q", "lmdb"]));
    }
    succeeds(
        Command::new("sh")
            .arg(source("mariadb_data.sh"))
            .arg(folder.join("mariadb")),
    );
    for (file, made) in [("text", text as fn() -> Vec<u8>), ("video.y4m", video)] {
        let file = folder.join(file);
        if !file.exists()
            && let Err(e) = std::fs::write(&file, made())
        {
            eprintln!("{}: {e}", file.display());
        }
    }
}

/// Returns numbers that look drawn, from a seed.
fn drawn(seed: u64) -> impl FnMut() -> u64 {
    let mut value = seed;
    move || {
        value = value
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        value >> 33
    }
}

/// Returns thirty megabytes of words, which compress as text does.
fn text() -> Vec<u8> {
    const BYTES: usize = 30_000_000;
    let mut draw = drawn(1);
    let word = |draw: &mut dyn FnMut() -> u64| -> Vec<u8> {
        let letters = 2 + draw() % 8;
        (0..letters)
            .map(|_| b'a' + (draw() % 26) as u8)
            .chain([b' '])
            .collect()
    };
    let words: Vec<Vec<u8>> = (0..5000).map(|_| word(&mut draw)).collect();
    let mut text = Vec::with_capacity(BYTES + 16);
    while text.len() < BYTES {
        text.extend(&words[draw() as usize % words.len()]);
    }
    text
}

/// Returns fifty pictures of a pattern that moves, as x265 reads them.
fn video() -> Vec<u8> {
    const WIDTH: usize = 640;
    const HEIGHT: usize = 360;
    const PICTURES: usize = 50;
    let mut head = String::new();
    let _ = writeln!(head, "YUV4MPEG2 W{WIDTH} H{HEIGHT} F25:1 Ip A1:1 C420jpeg");
    let mut video = head.into_bytes();
    for picture in 0..PICTURES {
        video.extend(b"FRAME\n");
        for row in 0..HEIGHT {
            let bright = |column: usize| {
                let at = column + 5 * picture + 2 * row;
                (3 * at + at * at / 64) as u8
            };
            video.extend((0..WIDTH).map(bright));
        }
        video.extend(std::iter::repeat_n(128, WIDTH * HEIGHT / 2));
    }
    video
}
