//! A user's own lock on the command line.

use std::path::Path;
use std::process::{Command, Output};

fn locklab(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_locklab"))
        .current_dir(folder)
        .env("LC_ALL", "C")
        .arg("--quiet")
        .args(arguments)
        .args(store(arguments))
        .output()
        .unwrap()
}

/// Returns a store of the test's own, for the command that has one.
fn store(arguments: &[&str]) -> Vec<&'static str> {
    match arguments.first() {
        Some(&("matrix" | "rank")) => vec!["--store", "store.sqlite"],
        _ => Vec::new(),
    }
}

fn stdout(output: &Output) -> String {
    assert!(
        output.status.success(),
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn refused(output: &Output, code: i32) -> String {
    assert_eq!(output.status.code(), Some(code), "{output:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn no_folder_is_left_behind() {
    let folder = tempfile::tempdir().unwrap();
    let scratch = tempfile::tempdir().unwrap();
    stdout(&locklab(folder.path(), &["locks", "-o", "mine.c"]));
    let left_by = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_locklab"))
            .current_dir(folder.path())
            .env("TMPDIR", scratch.path())
            .args(["--quiet", "--dry-run"])
            .args(arguments)
            .args(store(arguments))
            .output()
            .unwrap();
        let left = std::fs::read_dir(scratch.path()).unwrap().count();
        (output.status.code(), left)
    };
    let on = ["matrix", "./mine.c", "ticket", "--on", "flat-16"];
    assert_eq!(left_by(&on), (Some(0), 0));
    assert_eq!(left_by(&["matrix", "./mine.c", "no-such"]).1, 0);
}

#[test]
fn a_template_goes_through_a_matrix_simulated_and_here() {
    let folder = tempfile::tempdir().unwrap();
    let at = |arguments: &[&str]| locklab(folder.path(), arguments);
    assert!(stdout(&at(&["locks", "-o", "mine.c"])).contains("Wrote mine.c"));
    let small = [
        "--threads",
        "2",
        "--critical",
        "0",
        "--non-critical",
        "1",
        "--pairs",
        "8",
    ];
    let text = stdout(&at(&[
        &["matrix", "./mine.c", "ticket", "--on", "flat-16"],
        &small[..],
    ]
    .concat()));
    assert!(text.contains("mine.c") && text.contains("ticket"), "{text}");
    // The same lock twice is equal to itself.
    let json = stdout(&at(&[
        &[
            "matrix", "./mine.c", "./mine.c", "--on", "flat-16", "--json",
        ],
        &small[..],
    ]
    .concat()));
    let document: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(document["cells"][0]["ratio"], 1.0, "{json}");
    let here = [&small[..], &["--time", "1"]].concat();
    let text = stdout(&at(&[&["matrix", "mine.c", "ticket"], &here[..]].concat()));
    assert!(text.contains("mine.c"), "{text}");
}

/// The template and a file in C++, by a relative path, with each compiler in each
/// language and with one of each.
#[test]
fn both_compilers_are_understood() {
    let is_there = |program: &str| Command::new(program).arg("--version").output().is_ok();
    if !["gcc", "g++", "clang", "clang++"].into_iter().all(is_there) {
        println!("skipped: gcc, g++ or clang is missing");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    stdout(&locklab(folder.path(), &["locks", "-o", "mine.c"]));
    let cpp = "#include <locklab_lock.h>
#include <atomic>
struct spin { std::atomic<int> held; };
LOCKLAB_LOCK(spin, spin, lab_no_context);
void lab_lock(void *p, void *) { while (static_cast<spin *>(p)->held.exchange(1)) lab_relax(); }
void lab_unlock(void *p, void *) { static_cast<spin *>(p)->held.store(0); }
";
    std::fs::write(folder.path().join("mine.cpp"), cpp).unwrap();
    for (c, cxx) in [("gcc", "g++"), ("clang", "clang++"), ("gcc", "clang++")] {
        for file in ["./mine.c", "mine.cpp"] {
            let at = |arguments: &str| {
                let output = Command::new(env!("CARGO_BIN_EXE_locklab"))
                    .current_dir(folder.path())
                    .envs([("LC_ALL", "C"), ("CC", c), ("CXX", cxx)])
                    .arg("--quiet")
                    .args(arguments.split(' '))
                    .output();
                output.unwrap()
            };
            // So few leave some promises cut.
            let output = at(&format!("verify {file} --at-most executions=20"));
            let text = String::from_utf8_lossy(&output.stdout);
            let holds = text.contains("holds") && !text.contains("FAILS");
            assert!(holds, "{c}, {cxx}: {output:?}");
            let cell = "--threads 2 --critical 0 --non-critical 1 --pairs 8 --store store.sqlite";
            stdout(&at(&format!("matrix {file} ticket --on flat-16 {cell}")));
            stdout(&at(&format!("matrix {file} ticket --time 1 {cell}")));
        }
    }
}

/// The page's own example is a lock that fails, and shows how.
#[test]
fn the_example_of_the_page_fails_as_the_page_shows() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/your-own-lock.md");
    let page = std::fs::read_to_string(page).unwrap();
    let fenced = |language: &str| {
        let (_, rest) = page.split_once(&format!("```{language}\n")).unwrap();
        rest.split_once("```").unwrap().0
    };
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("spin.c"), fenced("c")).unwrap();
    let output = locklab(folder.path(), &["verify", "./spin.c"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains(fenced("text")), "not in the page:\n{text}");
}

#[test]
fn what_is_wrong_is_said_before_anything_runs() {
    let folder = tempfile::tempdir().unwrap();
    let at = |arguments: &[&str]| locklab(folder.path(), arguments);
    let text = refused(&at(&["matrix", "./none.c", "ticket", "--on", "flat-16"]), 2);
    assert!(text.contains("new-lock ./none.c"), "{text}");
    std::fs::write(folder.path().join("bad.c"), "int x = ;\n").unwrap();
    let text = refused(&at(&["matrix", "./bad.c", "ticket", "--on", "flat-16"]), 1);
    assert!(text.contains("bad.c does not compile"), "{text}");
    stdout(&at(&["locks", "-o", "mine.c"]));
    let text = refused(&at(&["locks", "-o", "mine.c"]), 2);
    assert!(text.contains("there already"), "{text}");
    let odd = [
        "matrix", "mine.c", "ticket", "--on", "flat-16", "--cflags", "'",
    ];
    let text = refused(&at(&odd), 2);
    assert!(text.contains("quote without an end"), "{text}");
    let text = refused(
        &at(&[
            "matrix",
            "mine.c",
            "--cflags",
            "-Dlab_unlock=other",
            "ticket",
        ]),
        1,
    );
    assert!(text.contains("mine.c defines no lab_unlock"), "{text}");
}

/// A lock that crashes when it has been taken 50,000 times: the trial of a lock
/// is shorter.
const LATE: &str = "#include <locklab_lock.h>
#include <stdatomic.h>
struct l { _Atomic int held; int *nowhere; };
static long turns;
LOCKLAB_LOCK(late, struct l, lab_no_context);
void lab_lock(void *p, void *c) { struct l *l = p; (void)c;
\twhile (atomic_exchange(&l->held, 1)) lab_relax();
\tif (++turns > 50000)
\t\t*(volatile int *)l->nowhere = 1; }
void lab_unlock(void *p, void *c) { struct l *l = p; (void)c; atomic_store(&l->held, 0); }
";

/// A crash ends the cell with a sentence, and what was measured is reported.
#[test]
fn a_crash_on_this_machine_has_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path().join("late.c");
    let crash = "*(volatile int *)l->nowhere = 1;";
    let call = LATE.replace(crash, "((void (*)(void))l->nowhere)(); l->held = 1;");
    let last_call = LATE.replace(crash, "((void (*)(void))l->nowhere)();");
    let assert = format!("#include <assert.h>\n{LATE}").replace(crash, "assert(!turns);");
    let crashed = |line: &str| format!("late.c: a thread crashed at {line} (SIGSEGV, address 0x0)");
    let asserted = "the assertion `!turns` at late.c:10 does not hold";
    for (arguments, lock, fault) in [
        ("--threads 1", LATE, crashed("late.c:9")),
        ("--threads 2", LATE, crashed("late.c:9")),
        ("--threads 1", &call, crashed("late.c:9")),
        (
            "--threads 1",
            &last_call,
            crashed("an unknown line of late.c"),
        ),
        ("--threads 2", &assert, asserted.to_owned()),
    ] {
        std::fs::write(&here, lock).unwrap();
        let mut words = vec!["matrix", "./late.c", "ticket", "--time", "1"];
        words.extend(arguments.split(' '));
        let output = locklab(folder.path(), &words);
        assert_eq!(output.status.code(), Some(1), "{fault}: {output:?}");
        let report = String::from_utf8_lossy(&output.stdout);
        let told = report.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(told.contains(&fault), "no '{fault}' in {report}");
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(error.matches(&fault).count(), 1, "{error}");
    }
}

/// The others are ranked as if it had not been there.
#[test]
fn a_crash_half_way_through_a_rank_leaves_the_rank_of_the_others() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("late.c"), LATE).unwrap();
    let rank = |seconds: u32, locks: &[&str]| {
        let usual =
            format!("rank --threads 1,2 --time {seconds} --set slice_us=60 --pairs 8 --json");
        let words: Vec<&str> = usual.split(' ').chain(locks.iter().copied()).collect();
        locklab(folder.path(), &words)
    };
    let fault = "late.c: a thread crashed at late.c:9 (SIGSEGV, address 0x0)";
    let ranked = |found: &serde_json::Value| {
        let points = found["points"].as_array().unwrap().iter();
        let locks = points.flat_map(|point| point["metrics"][0]["locks"].as_array().unwrap());
        let ranked = locks.filter(|lock| lock["of_best"].as_f64().is_some());
        let mut names: Vec<String> = ranked
            .map(|lock| lock["lock"].as_str().unwrap().to_owned())
            .collect();
        names.sort();
        names
    };
    // On a busy machine a second is too little for the crash, or for a rank.
    let mut last = None;
    for seconds in [1, 4, 16, 64] {
        let run = rank(seconds, &["./late.c", "ticket", "mcs"]);
        let report: serde_json::Value = serde_json::from_slice(&run.stdout).unwrap();
        let enough = run.status.code() == Some(1) && ranked(&report).len() >= 4;
        last = Some((seconds, run, report));
        if enough {
            break;
        }
    }
    let (seconds, output, found) = last.unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(error.matches(fault).count(), 1, "{error}");
    let others = ["mcs", "mcs", "ticket", "ticket"];
    assert_eq!(ranked(&found), others, "{found}");
    let caveats = found["caveats"].to_string();
    assert_eq!(caveats.matches(fault).count(), 1, "{caveats}");
    // Without it nothing is left to compare with.
    let output = rank(seconds, &["ticket", "mcs", "--against", "./late.c"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(error.contains("rank them without it"), "{error}");
}
