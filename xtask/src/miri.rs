//! The locks behind every guard and mutex type under Miri, which finds memory
//! that two claim for themselves and contexts that are read before they are
//! there: what neither the model checker nor a processor shows.
//!
//! Must never pass for a run that did not happen: without Miri it says so.

use crate::outcome::{Outcome, Skip};
use crate::process::heard;
use std::process::{Command, Stdio};

/// The two rules of what a reference may be used for that Rust may come to have.
const RULES: [&str; 2] = ["", "-Zmiri-tree-borrows"];

fn nightly(arguments: &[&str]) -> Command {
    let mut command = Command::new("rustup");
    command.args(["run", "nightly", "cargo", "miri"]);
    command.args(arguments);
    command
}

fn there_is() -> bool {
    let mut asked = nightly(&["--version"]);
    succeeds(asked.stdout(Stdio::null()).stderr(Stdio::null()))
}

fn succeeds(command: &mut Command) -> bool {
    command.status().is_ok_and(|status| status.success())
}

/// Installs Miri if it may, and runs the tests by each of the rules.
pub(crate) fn test(install: bool) -> Outcome {
    if install && !there_is() {
        let mut add = Command::new("rustup");
        add.args(["toolchain", "install", "nightly", "--profile", "minimal"]);
        succeeds(add.args(["--component", "miri", "--component", "rust-src"]));
    }
    let mut outcome = Outcome::default();
    for rule in RULES {
        if !there_is() {
            outcome.skipped.push(Skip {
                program: format!("Miri {rule}").trim_end().to_owned(),
                test: "aliasing".to_owned(),
                reason: "needs Miri: rustup toolchain install nightly --component miri \
                         --component rust-src"
                    .to_owned(),
            });
            continue;
        }
        // Static locks and nodes that are kept for the next acquisition stay.
        let flags = format!("-Zmiri-ignore-leaks -Zmiri-many-seeds=0..2 {rule}");
        let tests = ["--package=locklab-locks", "--test=suite", "aliasing::"];
        let mut miri = nightly(&[&["test"], &tests[..]].concat());
        miri.env("MIRIFLAGS", &flags);
        // It runs beside other tests, so what it prints is shown in one piece.
        let (well, output) = match heard(miri, false) {
            Ok((status, output)) => (status.success(), output),
            Err(error) => (false, error.to_string()),
        };
        println!("xtask: the locks under Miri, {flags}\n{output}");
        outcome.add(Outcome::whole(well));
    }
    outcome
}
