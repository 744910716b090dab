//! Programs of others in `record`, `advise` and `run`: one of each kind that was once told
//! something wrong, or nothing. The first lines of each file of `programs` say what is right.
//!
//! Programs really run here, so no assertion may depend on how fast, or beside what.

use assert_cmd::Command;
use std::path::{Path, PathBuf};

/// Returns a folder with this program compiled in it; `None`, after saying so, without a
/// compiler.
fn compiled(name: &str, options: &[&str]) -> Option<tempfile::TempDir> {
    let folder = tempfile::tempdir().unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/programs")
        .join(name)
        .with_extension("c");
    let status = std::process::Command::new("gcc")
        .args(["-O2", "-g", "-pthread", "-o"])
        .arg(folder.path().join(name))
        .arg(&source)
        .args(options)
        .status();
    let Ok(status) = status else {
        println!("skipped: no gcc; install the package gcc");
        return None;
    };
    assert!(status.success(), "{} compiles", source.display());
    Some(folder)
}

/// Runs the command in a folder. Returns its exit code and all that it printed, on one line.
fn locklab(folder: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::cargo_bin("locklab").unwrap();
    command.timeout(std::time::Duration::from_secs(120));
    let output = command
        .args(arguments)
        .current_dir(folder)
        .output()
        .unwrap();
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    let words: Vec<&str> = text.split_whitespace().collect();
    (output.status.code(), words.join(" "))
}

/// Returns what is said of a recording of this command.
fn recorded(folder: &Path, command: &[&str]) -> String {
    // A recording is never overwritten.
    let _ = std::fs::remove_file(folder.join("program.trace"));
    let arguments = [&["record", "-o", "program.trace", "--"], command].concat();
    let (code, said) = locklab(folder, &arguments);
    assert_eq!(code, Some(0), "{said}");
    said
}

/// Returns the part of the time with work that was spent waiting, in %.
fn waiting(said: &str) -> f64 {
    let after = said.split("work spend ").nth(1);
    let after = after.map(|rest| rest.trim_start_matches("at least "));
    let share = after.and_then(|rest| rest.split(" %").next());
    let share = share.unwrap_or_else(|| panic!("no share of waiting in: {said}"));
    share.parse().unwrap()
}

#[test]
fn threads_that_sleep_to_the_end_do_not_hide_who_waits() {
    let Some(folder) = compiled("sleepers", &[]) else {
        return;
    };
    let none = recorded(folder.path(), &["./sleepers", "0"]);
    let many = recorded(folder.path(), &["./sleepers", "200"]);
    hides_nobody(&none, &many);
}

/// Checks that sleepers change little of what is said of the waiting: its share, unless that
/// is only a lower bound, and that they are never taken for a program that waits for nothing.
#[track_caller]
fn hides_nobody(none: &str, many: &str) {
    let (without, with) = (waiting(none), waiting(many));
    let bound = many.contains("work spend at least ");
    assert!(
        bound || with > without / 5.0,
        "{with} for {without} %: {many}"
    );
    assert!(!many.contains("Nothing to gain"), "{many}");
}

#[test]
fn a_mutex_with_a_condition_is_a_lock_and_no_deadlock() {
    let Some(folder) = compiled("gil", &[]) else {
        return;
    };
    recorded(folder.path(), &["./gil", "2"]);
    let arguments = ["advise", "program.trace", "--quiet", "--locks", "ttas"];
    let (code, said) = locklab(folder.path(), &arguments);
    assert_eq!(code, Some(0), "{said}");
    assert!(!said.contains("deadlock"), "{said}");
    // Where one thread alone had the CPUs, it never waited.
    assert!(
        said.contains("waiting for locks") || said.contains("Nothing to gain"),
        "{said}"
    );
}

#[test]
fn a_lock_that_is_held_asleep_leaves_no_other_lock_a_gain() {
    let Some(folder) = compiled("asleep", &[]) else {
        return;
    };
    let arguments = [
        "advise",
        "program.trace",
        "--quiet",
        "--no-replay",
        "--locks",
        "ttas",
    ];
    // Where threads took the lock in long rows, the model alone is for a lock in order, which
    // only the replay would contradict: such a recording is made again.
    let found = (0..5).any(|_| {
        recorded(folder.path(), &["./asleep"]);
        let (code, said) = locklab(folder.path(), &arguments);
        assert_eq!(code, Some(0), "{said}");
        assert!(said.contains("of their time waiting for locks"), "{said}");
        std::fs::remove_file(folder.path().join("program.trace")).unwrap();
        said.contains("do not hold it across waits")
    });
    assert!(found, "five recordings");
}

#[test]
fn no_other_lock_is_advised_for_one_that_stays_as_it_is() {
    let Some(folder) = compiled("rmtest", &[]) else {
        return;
    };
    recorded(folder.path(), &["./rmtest", "r"]);
    let arguments = ["advise", "program.trace", "--quiet", "--locks", "ttas"];
    let (code, said) = locklab(folder.path(), &arguments);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("is robust, process-shared"), "{said}");
    assert!(!said.contains("Worth a try"), "{said}");
}

/// The options are those of `confirm` in the crate `advise`, whose test has them too.
#[test]
fn compare_takes_the_command_that_confirms_an_advice() {
    let folder = tempfile::tempdir().unwrap();
    let locks = [
        "--baseline-lock",
        "pthread-interposed",
        "--experiment-lock",
        "mcs",
    ];
    let wait = [
        "--set",
        "experiment.env.LOCKLAB_WAIT=spin-then-park",
        "--dry-run",
    ];
    let arguments = [&["compare"][..], &locks, &wait, &["--", "true"]].concat();
    let (code, said) = locklab(folder.path(), &arguments);
    assert_eq!(code, Some(0), "{said}");
}

#[test]
fn a_daemon_that_lives_on_is_named() {
    let Some(folder) = compiled("dfork", &[]) else {
        return;
    };
    let said = recorded(folder.path(), &["./dfork"]);
    assert!(said.contains("(dfork) of the program still runs"), "{said}");
    std::fs::write(folder.path().join("END"), "").unwrap();
    // It writes a file there before it ends.
    let result = folder.path().join("SCRATCH");
    for _ in 0..600 {
        if result.is_file() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
}

#[test]
fn semaphores_and_spinlocks_are_recorded_by_the_kernel_or_named() {
    let Some(folder) = compiled("c_sem", &[]) else {
        return;
    };
    for mode in ["0", "1"] {
        let arguments = ["record", "-o", "program.trace", "--", "./c_sem", mode];
        let (_, said) = locklab(folder.path(), &arguments);
        let by_kernel = said.contains("it is recorded by the kernel's events");
        let named = said.contains("spinlocks, semaphores");
        assert!(by_kernel || named, "{mode}: {said}");
        let _ = std::fs::remove_file(folder.path().join("program.trace"));
    }
}

/// Returns the folder of a program under a filter of system calls.
fn filtered() -> Option<(tempfile::TempDir, PathBuf)> {
    let (folder, other) = (compiled("sec", &[])?, compiled("gil", &[])?);
    let program = folder.path().join("gil");
    std::fs::copy(other.path().join("gil"), &program).unwrap();
    Some((folder, program))
}

#[test]
#[cfg(target_arch = "x86_64")]
fn a_program_without_a_system_call_runs_and_is_recorded() {
    let Some((folder, _)) = filtered() else {
        return;
    };
    // 324 is membarrier, 98 is getrusage.
    let filter = ["./sec", "1", "324", "./gil", "2"];
    let arguments = [&["run", "--lock", "mcs", "--"], &filter[..]].concat();
    let (code, said) = locklab(folder.path(), &arguments);
    assert_eq!(code, Some(0), "{said}");
    let said = recorded(folder.path(), &["./sec", "1", "98", "./gil", "2"]);
    assert!(waiting(&said) >= 0.0, "{said}");
}

#[test]
fn a_static_part_of_a_program_is_named() {
    let Some(folder) = compiled("sleepers", &["-static"]) else {
        return;
    };
    let said = recorded(folder.path(), &["sh", "-c", "./sleepers 0"]);
    assert!(said.contains("is linked statically"), "{said}");
    let arguments = ["run", "--lock", "mcs", "--", "sh", "-c", "./sleepers 0"];
    let (code, said) = locklab(folder.path(), &arguments);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("static"), "{said}");
}

/// Returns whether a command runs; says which package it is in if not.
fn there(command: &[&str], package: &str) -> bool {
    let mut run = std::process::Command::new(command[0]);
    let run = run.args(&command[1..]).output();
    let there = run.is_ok_and(|output| output.status.success());
    if !there {
        println!("skipped: no {}; install {package}", command.join(" "));
    }
    there
}

/// Returns the text of a program of this folder, and a folder to run it in.
fn copied(name: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
    std::fs::copy(source.join(name), folder.path().join(name)).unwrap();
    folder
}

/// Asks for advice about a recording; returns what is said.
fn advised(folder: &Path) -> String {
    let arguments = ["advise", "program.trace", "--quiet", "--no-replay"];
    let arguments = [&arguments[..], &["--draws", "2", "--locks", "ttas"]].concat();
    let (code, said) = locklab(folder, &arguments);
    assert_eq!(code, Some(0), "{said}");
    assert!(!said.contains("deadlock"), "{said}");
    said
}

#[test]
fn threads_that_block_one_by_one_do_not_hide_who_waits() {
    let Some(folder) = compiled("sleepers2", &[]) else {
        return;
    };
    let none = recorded(folder.path(), &["./sleepers2", "0"]);
    for how in ["0", "1"] {
        let many = recorded(folder.path(), &["./sleepers2", "50", how]);
        hides_nobody(&none, &many);
    }
}

#[test]
fn openmp_is_recorded_by_the_kernel_or_named() {
    let Some(folder) = compiled("omp", &["-fopenmp"]) else {
        return;
    };
    let arguments = ["record", "-o", "program.trace", "--", "./omp"];
    let (_, said) = locklab(folder.path(), &arguments);
    let by_kernel = said.contains("it is recorded by the kernel's events");
    assert!(by_kernel || said.contains("OpenMP"), "{said}");
}

#[test]
fn locks_of_java_are_named_where_they_are_not_recorded() {
    if !there(&["javac", "-version"], "default-jdk") {
        return;
    }
    let folder = copied("J.java");
    let compiles = std::process::Command::new("javac")
        .arg("J.java")
        .current_dir(folder.path())
        .status();
    assert!(compiles.unwrap().success());
    let said = recorded(folder.path(), &["java", "-cp", ".", "J", "sync"]);
    assert!(said.contains("java.util.concurrent"), "{said}");
    let flight = "-XX:StartFlightRecording=filename=j.jfr,settings=profile";
    let flown = std::process::Command::new("java")
        .args([flight, "-cp", ".", "J", "sync"])
        .current_dir(folder.path())
        .output();
    assert!(flown.unwrap().status.success());
    let (code, said) = locklab(folder.path(), &["results", "show", "j.jfr"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("monitor of java.lang.Object"), "{said}");
}

#[test]
fn worker_threads_of_node_get_an_answer() {
    if !there(&["node", "--version"], "nodejs") {
        return;
    }
    let folder = copied("node.js");
    let said = recorded(folder.path(), &["node", "node.js"]);
    // How much of the waiting is seen depends on what else runs here.
    assert!(waiting(&said) >= 0.0, "{said}");
}

#[test]
fn the_c_part_of_a_program_in_go_gets_an_answer() {
    let go = there(&["go", "version"], "golang") && there(&["gcc", "--version"], "gcc");
    if !go {
        return;
    }
    let folder = copied("cgo.go");
    let built = std::process::Command::new("go")
        .args(["build", "-o", "cgo", "cgo.go"])
        .env("CGO_ENABLED", "1")
        .env("GOFLAGS", "-mod=mod")
        .env("GOCACHE", folder.path().join("cache"))
        .current_dir(folder.path())
        .status();
    assert!(built.unwrap().success(), "cgo.go is built");
    let said = recorded(folder.path(), &["./cgo"]);
    assert!(waiting(&said) >= 0.0, "{said}");
}

#[test]
fn python_with_lmdb_gets_an_answer_and_no_deadlock() {
    // That of the distribution, whose package it is.
    let python = "/usr/bin/python3";
    if !there(&[python, "-c", "import lmdb"], "python3-lmdb") {
        return;
    }
    let folder = copied("lm.py");
    let said = recorded(folder.path(), &[python, "lm.py"]);
    assert!(waiting(&said) >= 0.0, "{said}");
    advised(folder.path());
}

/// Whether the kernel's events may be recorded differs, and is asked of the command itself.
#[test]
fn spinning_in_the_programs_own_code_is_never_nothing_to_gain() {
    if !cfg!(target_arch = "x86_64") {
        println!("skipped: loops are decoded on x86-64 only");
        return;
    }
    let Some(folder) = compiled("spins", &[]) else {
        return;
    };
    for kind in ["own", "pthread", "try"] {
        let said = recorded(folder.path(), &["./spins", kind]);
        let of_pthread = said.contains("Nothing to gain by its pthread locks");
        let named = said.contains("which are not recorded");
        assert!(
            !said.contains("Nothing to gain:") && (!of_pthread || named),
            "{said}"
        );
        if kind == "try" {
            assert!(!of_pthread, "{said}");
        }
        let file = format!("{kind}.trace");
        let arguments = ["record", "--system", "-o", &file, "--", "./spins", kind];
        let (code, said) = locklab(folder.path(), &arguments);
        if code != Some(0) {
            assert!(
                said.contains("CAP_PERFMON") || said.contains("kernel has no"),
                "{said}"
            );
            println!("skipped: {said}");
            return;
        }
        assert!(!said.contains("Nothing to gain"), "{said}");
    }
}

#[test]
fn a_futex_lock_of_the_programs_own_is_not_known_and_not_nothing() {
    let Some(folder) = compiled("ownfutex", &[]) else {
        return;
    };
    let said = recorded(folder.path(), &["./ownfutex"]);
    assert!(
        said.contains("What another lock can gain is not known"),
        "{said}"
    );
    let (code, said) = locklab(folder.path(), &["advise", "program.trace", "--quiet"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(
        said.contains("What another lock can gain is not known"),
        "{said}"
    );
}

/// Returns the bound of the first sentences, in %, if there is one.
fn bound(said: &str) -> Option<f64> {
    let after = said.split("make the program more than ").nth(1)?;
    after.split(' ').next()?.parse().ok()
}

#[test]
fn a_bound_holds_what_can_be_gained_and_is_small_where_nothing_is() {
    let Some(folder) = compiled("gains", &[]) else {
        return;
    };
    let kinds = [
        ("mutex", true),
        ("rwlock", true),
        ("semaphore", true),
        ("sleep", false),
        ("pipe", false),
        ("queue", false),
    ];
    for (kind, gains) in kinds {
        for how in [&["record"][..], &["record", "--system"]] {
            let _ = std::fs::remove_file(folder.path().join("program.trace"));
            let rest = ["-o", "program.trace", "--", "./gains", kind];
            let (code, said) = locklab(folder.path(), &[how, &rest].concat());
            if said.contains("CAP_PERFMON") || said.contains("kernel has no") {
                println!("skipped: {said}");
                continue;
            }
            assert_eq!(code, Some(0), "{said}");
            assert!(!gains || !said.contains("Nothing to gain"), "{said}");
            match (bound(&said), gains) {
                (Some(bound), true) => assert!(bound >= 200.0, "{said}"),
                // 10 % on an idle machine; the tests beside it take CPUs away.
                (Some(bound), false) => assert!(bound <= 25.0, "{said}"),
                (None, _) => {}
            }
            if how.len() == 1 && said.contains("in program.trace") {
                let rest = ["advise", "program.trace", "--quiet", "--draws", "2"];
                let (code, said) = locklab(folder.path(), &rest);
                assert!(gains || !said.contains("Try "), "{said}");
                assert!(
                    code == Some(0) || said.contains("no pthread lock"),
                    "{said}"
                );
            }
        }
    }
}
