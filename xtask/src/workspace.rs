//! All tests of the workspace, two programs at once.
//!
//! Cargo builds them and says where they are, but runs one after another, and
//! most of them wait: for guests, servers, disks, threads that sleep. Must run
//! each as cargo does, and must never leave one out.

use crate::outcome::{self, Outcome};
use crate::process::{cargo, cargo_test, command, heard};
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

/// Builds and runs all tests, and the examples in documentation. None if one
/// does not compile.
pub(crate) fn test() -> Option<Outcome> {
    let mut programs = build()?;
    // The one that takes longest is taken first, from the end.
    programs.sort_by_key(|program| program.name.starts_with("locklab tests/suite"));
    println!("xtask: {} programs of tests", programs.len());
    let (queue, ended) = (Mutex::new(programs), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let next = queue.lock().expect("no thread panics").pop();
                    let Some(program) = next else { return };
                    let outcome = run(&program);
                    let mut ended = ended.lock().expect("no thread panics");
                    ended.push((program.name, outcome));
                }
            });
        }
    });
    let examples = cargo_test(&["--workspace", "--no-fail-fast", "--doc"]);
    let mut ended = ended.into_inner().expect("no thread panics");
    ended.push(("the examples in documentation".to_owned(), examples));
    let mut all = Outcome::default();
    for (name, outcome) in ended {
        if outcome.failed > 0 {
            eprintln!("xtask: FAILED: {name}");
        }
        all.add(outcome);
    }
    Some(all)
}

/// Runs what takes too long for every change, optimised, and adds it to what
/// was tested before.
pub(crate) fn test_thoroughly(outcome: &mut Outcome) {
    // Now they run.
    let thorough = "cargo xtask test --thorough";
    outcome.skipped.retain(|s| !s.reason.ends_with(thorough));
    let docs = ["--package=locklab-published", "--test=docs"];
    let ignored = [&["--release"], &docs[..], &["--", "--ignored"]].concat();
    outcome.add(cargo_test(&ignored));
    let verify = ["run", "--release", "--package=locklab", "--", "verify"];
    let mutants = cargo(&[&verify[..], &["--mutants"]].concat());
    outcome.add(Outcome::whole(mutants));
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

/// Returns the program of tests that a message of cargo names.
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

/// Runs a program, and prints all that it printed when it has ended, without
/// the output of tests that passed.
fn run(program: &Program) -> Outcome {
    let Program { name, file, folder } = program;
    let command = |arguments: &[&str]| {
        let mut command = Command::new(file);
        command
            .args(arguments)
            .current_dir(folder)
            .env("CARGO_MANIFEST_DIR", folder);
        command
    };
    let mut outcome = match heard(command(&["--show-output"]), false) {
        Ok((status, output)) => {
            let shown = without_successes(&output);
            println!("     Running {name} ({})\n{shown}", file.display());
            if !status.success() {
                eprintln!("xtask: {name} ended with {status}");
            }
            Outcome::read(name, &output, status.success())
        }
        Err(error) => {
            eprintln!("xtask: cannot run {}: {error}", file.display());
            Outcome::whole(false)
        }
    };
    // The list of skips must not outlive its tests.
    let mut allowed = outcome::allowed_of(name).peekable();
    if allowed.peek().is_some() {
        let list = command(&["--list"]).output();
        let list = list.map_or(String::new(), |o| String::from_utf8_lossy(&o.stdout).into());
        for test in allowed {
            if !list.lines().any(|line| line == format!("{test}: test")) {
                eprintln!("xtask: .ci/skips.txt names {test}, which is not in {name}");
                outcome.failed += 1;
            }
        }
    }
    outcome
}

/// Returns what the harness shows, but for the output of tests that passed.
fn without_successes(output: &str) -> String {
    let Some((before, after)) = output.split_once("\nsuccesses:\n") else {
        return output.to_owned();
    };
    let end = ["\nfailures:\n", "\ntest result: "].map(|end| after.find(end));
    let end = end.into_iter().flatten().min().unwrap_or(after.len());
    format!("{before}{}", &after[end..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_of_tests_is_found_among_what_is_built() {
        let message = |test, executable| {
            format!(
                r#"{{"reason":"compiler-artifact","manifest_path":"/l/crates/measure/sim/Cargo.toml",
                "target":{{"src_path":"/l/crates/measure/sim/tests/oracle.rs"}},
                "profile":{{"test":{test}}},"executable":{executable}}}"#
            )
        };
        let found = program(&message(true, r#""/l/target/debug/deps/oracle-1""#)).expect("one");
        assert_eq!(found.name, "sim tests/oracle.rs");
        assert_eq!(found.folder, Path::new("/l/crates/measure/sim"));
        assert!(program(&message(false, r#""/l/target/debug/sim""#)).is_none());
        assert!(program(&message(true, "null")).is_none());
        assert!(program(r#"{"reason":"build-finished"}"#).is_none());
        assert!(program("not JSON").is_none());
    }

    #[test]
    fn what_passed_is_not_shown_again() {
        let output = "test a ... ok\n\nsuccesses:\n\n---- a stdout ----\n1\n\n\nsuccesses:\n    \
                      a\n\ntest result: ok. 1 passed\n";
        assert_eq!(
            without_successes(output),
            "test a ... ok\n\ntest result: ok. 1 passed\n"
        );
        assert_eq!(without_successes("none\n"), "none\n");
    }
}
