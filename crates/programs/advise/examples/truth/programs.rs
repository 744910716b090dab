//! The programs of the table, each with a command that prints its rate. They must end by
//! themselves within a few seconds. Thirteen stand here; [`crate::others`] has those that
//! others wrote, and those in other languages.

use crate::others::{others, prepare_others};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A program: its name, what it is, its command, and how its output gives its rate.
pub(crate) struct Program {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) command: String,
    pub(crate) metric: &'static str,
    /// Says whether it has no more threads than two CPUs, so that real-time priority keeps
    /// others from its CPUs and changes nothing else.
    pub(crate) fits: bool,
    /// The change that shows what its locks cost.
    pub(crate) change: Change,
}

/// Names what is changed of a program.
pub(crate) enum Change {
    /// The locks that it takes of glibc, for each of these.
    Locks(&'static [&'static str]),
    /// The program itself, in these words and by this command: its locks are not glibc's, so
    /// that the kernel's events are recorded and no lock can be replaced.
    Itself(Vec<(&'static str, String)>),
}

/// The locks that are compared with glibc's, as `advise` names them.
pub(crate) const LOCKS: [&str; 8] = [
    "futex-adaptive",
    "ticket:spin",
    "mcs:spin",
    "ttas:spin",
    "qspinlock:spin",
    "reciprocating:spin",
    "mcs",
    "malthusian",
];
/// Holds the same with readers.
const LOCKS_WITH_READERS: [&str; 6] = [
    "rw-queued:spin",
    "phase-fair:spin",
    "bravo:spin",
    "rw-queued",
    "phase-fair",
    "bravo",
];

impl Program {
    /// Returns the changes, in the order in which they are measured.
    pub(crate) fn changes(&self) -> Vec<&'static str> {
        match &self.change {
            Change::Locks(locks) => locks.to_vec(),
            Change::Itself(changes) => changes.iter().map(|(name, _)| *name).collect(),
        }
    }

    /// Returns the locks that are tried; none where the program itself is changed.
    pub(crate) fn locks(&self) -> &'static [&'static str] {
        match &self.change {
            Change::Locks(locks) => locks,
            Change::Itself(_) => &[],
        }
    }
}

/// The rate as the programs here print it.
pub(crate) const RATE: &str = "rate[/s]:higher=rate ([0-9]+)";

/// All programs, whose files are in `folder` once [`prepare`] has made them.
pub(crate) fn programs(folder: &Path) -> Vec<Program> {
    let own = |name, about, file: &str, arguments: &str| Program {
        name,
        about,
        command: format!("{} {arguments}", folder.join(file).display()),
        metric: RATE,
        fits: !arguments.starts_with('4'),
        change: Change::Locks(match file {
            "readers" => &LOCKS_WITH_READERS,
            _ => &LOCKS,
        }),
    };
    let source = |name, about, with: &str, file: &str, arguments: &str| Program {
        name,
        about,
        command: format!("{with} {} {arguments}", sources().join(file).display()),
        metric: RATE,
        fits: false,
        change: Change::Locks(&LOCKS),
    };
    let db_bench = |name, about, what: &str| Program {
        name,
        about,
        command: format!(
            "db_bench --db={} --num=200000 {what} --duration=1",
            folder.join("db").display()
        ),
        metric: "rate[/s]:higher=([0-9]+) ops/sec ",
        fits: false,
        change: Change::Locks(&LOCKS),
    };
    const READS: &str = "--use_existing_db --benchmarks=readwhilewriting";
    let mut all = vec![
        own(
            "hot-short",
            "2 threads, one lock, short sections",
            "synthetic",
            "2 10 100",
        ),
        own(
            "hot-long",
            "2 threads, one lock, long sections",
            "synthetic",
            "2 2000 500",
        ),
        own(
            "no-contention",
            "2 threads, a lock each",
            "synthetic",
            "2 10 1000 1",
        ),
        own(
            "hot-4",
            "4 threads, one lock, short sections",
            "synthetic",
            "4 10 100",
        ),
        own(
            "readers",
            "2 threads, one rwlock, 1 of 20 writes",
            "readers",
            "2 20",
        ),
        own("sqlite", "2 threads, one connection", "queries", "2"),
        source(
            "python-pool",
            "a pool of 2 threads",
            "python3",
            "pool.py",
            "2",
        ),
        source(
            "memcached",
            "2 threads, its own load generator",
            "sh",
            "memcached.sh",
            "2",
        ),
        Program {
            name: "stress-ng",
            about: "its mutex stressor, 2 threads",
            command: "stress-ng --mutex 1 --mutex-procs 2 --timeout 1 --metrics-brief".into(),
            metric: "rate[/s]:higher=mutex +[0-9]+ +[0-9.]+ +[0-9.]+ +[0-9.]+ +([0-9.]+)",
            fits: false,
            change: Change::Locks(&LOCKS),
        },
        db_bench(
            "db_bench-2",
            "readwhilewriting, 2 threads",
            &format!("{READS} --threads=2"),
        ),
        db_bench(
            "db_bench-4",
            "readwhilewriting, 4 threads",
            &format!("{READS} --threads=4"),
        ),
        db_bench(
            "db_bench-8",
            "readwhilewriting, 8 threads",
            &format!("{READS} --threads=8"),
        ),
        Program {
            name: "fillrandom",
            about: "db_bench fillrandom, 2 threads",
            command: format!(
                "db_bench --db={} --num=100000 --benchmarks=fillrandom --threads=2",
                folder.join("filled").display()
            ),
            metric: "rate[/s]:higher=([0-9]+) ops/sec ",
            fits: false,
            change: Change::Locks(&LOCKS),
        },
    ];
    all.extend(others(folder));
    all
}

/// The folder of the sources.
pub(crate) fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/truth")
}

/// Builds the programs in `folder` that are not there, and their data. What cannot
/// be had is missing, and its program says so in its row.
pub(crate) fn prepare(folder: &Path) {
    for (file, libraries) in [
        ("synthetic", &[][..]),
        ("readers", &[]),
        ("queries", &["-lsqlite3"]),
    ] {
        let program = folder.join(file);
        if program.exists() {
            continue;
        }
        let mut gcc = Command::new("gcc");
        gcc.args(["-O2", "-pthread"])
            .arg(sources().join(file).with_extension("c"))
            .arg("-o")
            .arg(program)
            .args(libraries);
        succeeds(&mut gcc);
    }
    let db = folder.join("db");
    if !db.exists() {
        let mut fills = Command::new("db_bench");
        let db = format!("--db={}", db.display());
        fills.args([&db, "--num=200000", "--benchmarks=fillrandom"]);
        succeeds(&mut fills);
    }
    prepare_others(folder);
}

/// Says what failed, and goes on.
pub(crate) fn succeeds(command: &mut Command) {
    match command.output() {
        Ok(output) if output.status.success() => {}
        Ok(output) => eprintln!("{}", String::from_utf8_lossy(&output.stderr)),
        Err(e) => eprintln!("{}: {e}", command.get_program().to_string_lossy()),
    }
}
