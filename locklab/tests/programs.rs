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
    let arguments = [&["record", "-o", "program.trace", "--"], command].concat();
    let (code, said) = locklab(folder, &arguments);
    assert_eq!(code, Some(0), "{said}");
    said
}

/// Returns the part of the time with work that was spent waiting, in %.
fn waiting(said: &str) -> f64 {
    let after = said.split("work spend ").nth(1);
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
    // Where other programs have the CPUs, two threads seldom meet.
    let (none, many) = (waiting(&none), waiting(&many));
    assert!(many > none / 5.0, "{many} % with sleepers, {none} without");
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
    assert!(said.contains("No lock can gain more than"), "{said}");
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

#[test]
fn a_daemon_that_lives_on_is_named() {
    let Some(folder) = compiled("dfork", &[]) else {
        return;
    };
    let said = recorded(folder.path(), &["./dfork"]);
    assert!(said.contains("(dfork) of the program still runs"), "{said}");
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
