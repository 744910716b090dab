//! All tests of the workspace, two programs at once.
//!
//! Cargo builds them and says where they are, but runs one after another, and
//! most of them wait: for guests, servers, disks, threads that sleep. Must run
//! each as cargo does, and must never leave one out.

use crate::{cargo, command, heard};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;

/// Programs that run at once; each runs its tests in as many threads as there
/// are CPUs.
const AT_ONCE: usize = 2;

/// A program of tests.
struct Program {
    /// The folder of its package and its source: "sim tests/oracle.rs".
    name: String,
    file: PathBuf,
    /// The folder of its package, in which cargo runs it.
    folder: PathBuf,
}

/// Builds and runs all tests, and the examples in documentation. Returns
/// whether all passed.
pub(crate) fn test() -> bool {
    let Some(mut programs) = build() else {
        return false;
    };
    // The one that takes longest is taken first, from the end.
    programs.sort_by_key(|program| program.name.starts_with("locklab tests/suite"));
    println!("xtask: {} programs of tests", programs.len());
    let (queue, failed) = (Mutex::new(programs), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let next = queue.lock().expect("no thread panics").pop();
                    let Some(program) = next else { return };
                    if !run(&program) {
                        failed.lock().expect("no thread panics").push(program.name);
                    }
                }
            });
        }
    });
    let examples = cargo(&["test", "--workspace", "--no-fail-fast", "--doc"]);
    let failed = failed.into_inner().expect("no thread panics");
    for name in &failed {
        eprintln!("xtask: FAILED: {name}");
    }
    examples && failed.is_empty()
}

/// Runs what takes too long for every change, optimised. Returns whether all
/// passed.
pub(crate) fn test_thoroughly() -> bool {
    let long = [
        &[
            "test",
            "--release",
            "--package=locklab-sim-instrument",
            "--test=docs",
            "--",
            "--ignored",
        ][..],
        &[
            "test",
            "--release",
            "--package=locklab-sweep",
            "--lib",
            "--",
            "--ignored",
        ],
        &[
            "run",
            "--release",
            "--package=locklab",
            "--",
            "verify",
            "--mutants",
        ],
    ];
    // All of them, whatever the first ones say.
    let passed = long.map(cargo);
    passed.iter().all(|passed| *passed)
}

/// Builds the programs; none if one does not compile.
fn build() -> Option<Vec<Program>> {
    let mut cargo = command(&[
        "test",
        "--workspace",
        "--no-run",
        "--message-format=json-render-diagnostics",
    ]);
    let output = match cargo.stderr(Stdio::inherit()).output() {
        Ok(output) => output,
        Err(error) => {
            eprintln!("xtask: cargo does not start: {error}");
            return None;
        }
    };
    let messages = String::from_utf8_lossy(&output.stdout);
    let programs = messages.lines().filter_map(program).collect();
    output.status.success().then_some(programs)
}

/// The program of tests that a message of cargo names.
fn program(message: &str) -> Option<Program> {
    let message: Value = serde_json::from_str(message).ok()?;
    if message["reason"] != "compiler-artifact" || message["profile"]["test"] != true {
        return None;
    }
    let file = PathBuf::from(message["executable"].as_str()?);
    let folder = Path::new(message["manifest_path"].as_str()?).parent()?;
    let source = Path::new(message["target"]["src_path"].as_str()?);
    let source = source.strip_prefix(folder).unwrap_or(source).display();
    let package = folder.file_name()?.to_string_lossy();
    Some(Program {
        name: format!("{package} {source}"),
        file,
        folder: folder.to_owned(),
    })
}

/// Runs a program, and prints all that it printed when it has ended.
fn run(program: &Program) -> bool {
    let Program { name, file, folder } = program;
    let mut command = Command::new(file);
    command
        .current_dir(folder)
        .env("CARGO_MANIFEST_DIR", folder);
    match heard(command) {
        Ok((status, output)) => {
            let output = String::from_utf8_lossy(&output);
            println!("     Running {name} ({})\n{output}", file.display());
            if !status.success() {
                eprintln!("xtask: {name} ended with {status}");
            }
            status.success()
        }
        Err(error) => {
            eprintln!("xtask: cannot run {}: {error}", file.display());
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_of_tests_is_found_among_what_is_built() {
        let message = |test, executable| {
            format!(
                r#"{{"reason":"compiler-artifact","manifest_path":"/l/crates/sim/Cargo.toml",
                "target":{{"src_path":"/l/crates/sim/tests/oracle.rs"}},
                "profile":{{"test":{test}}},"executable":{executable}}}"#
            )
        };
        let found = program(&message(true, r#""/l/target/debug/deps/oracle-1""#)).expect("one");
        assert_eq!(found.name, "sim tests/oracle.rs");
        assert_eq!(found.folder, Path::new("/l/crates/sim"));
        assert!(program(&message(false, r#""/l/target/debug/sim""#)).is_none());
        assert!(program(&message(true, "null")).is_none());
        assert!(program(r#"{"reason":"build-finished"}"#).is_none());
        assert!(program("not JSON").is_none());
    }
}
