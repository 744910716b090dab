//! Counts the tests that passed, failed and were skipped, and names the skipped ones.
//!
//! A test that lacks something prints a line that starts with `skipped: ` and
//! says what it lacks; Rust's test harness counts it as passed. This reads the
//! harness's output (of `--show-output`), so that no run claims more than it
//! tested. On a CI machine (`CI=true`) a skip must be in `.ci/skips.txt`.

use std::fmt;

/// Holds what a test prints that could not do its work, or not all of it.
const SAID: &str = "skipped: ";

/// Holds what a CI machine may skip. Each line is the beginning of a line of the list
/// that a run prints: program, test, reason.
const ALLOWED: &str = include_str!("../../.ci/skips.txt");

/// A test that did not run, or not to its end.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Skip {
    pub(crate) program: String,
    pub(crate) test: String,
    pub(crate) reason: String,
}

impl fmt::Display for Skip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            program,
            test,
            reason,
        } = self;
        write!(f, "{program}: {test}: {reason}")
    }
}

/// Holds what programs of tests said.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) passed: usize,
    /// Counts also each program that ended before its tests.
    pub(crate) failed: usize,
    pub(crate) skipped: Vec<Skip>,
}

impl Outcome {
    /// Reads what a program of tests printed, or `cargo test` of several.
    /// `program`: its name, until the output gives another. `well`: whether it
    /// ended with success.
    pub(crate) fn read(program: &str, output: &str, well: bool) -> Self {
        let mut outcome = Self::default();
        let mut program = program.to_owned();
        // Of the part that shows the output of tests that passed: the test.
        let (mut shown, mut test) = (false, None);
        let mut said = 0;
        for line in output.lines() {
            if let Some(running) = line.trim_start().strip_prefix("Running ")
                && let Some((name, _)) = running.split_once(" (")
            {
                program = name.to_owned();
            } else if let Some(name) = line.trim_start().strip_prefix("Doc-tests ") {
                program = format!("{name}, examples");
            }
            let mut skip = |test: &str, reason: &str| {
                let (program, test) = (program.clone(), test.to_owned());
                let reason = reason.trim().to_owned();
                outcome.skipped.push(Skip {
                    program,
                    test,
                    reason,
                });
            };
            if let Some(counts) = line.strip_prefix("test result: ") {
                outcome.passed += count(counts, " passed");
                outcome.failed += count(counts, " failed");
                (shown, test) = (false, None);
            } else if line == "successes:" || line == "failures:" {
                (shown, test) = (line == "successes:", None);
            } else if let Some(name) = line.strip_prefix("---- ").filter(|_| shown) {
                test = name.strip_suffix(" stdout ----").map(str::to_owned);
            } else if let Some(reason) = line.strip_prefix(SAID) {
                // Of one that lacks several things the first is enough.
                if let Some(test) = test.take() {
                    said += 1;
                    skip(&test, reason);
                }
            } else if let Some((name, reason)) = line
                .strip_prefix("test ")
                .and_then(|line| line.split_once(" ... ignored"))
            {
                skip(name, reason.trim_start_matches(", "));
            }
        }
        // The harness counts those that said so as passed.
        outcome.passed = outcome.passed.saturating_sub(said);
        // A program that was killed gives no summary.
        outcome.failed = outcome.failed.max(usize::from(!well));
        outcome
    }

    /// Returns the outcome of something that is tested as a whole.
    pub(crate) fn whole(well: bool) -> Self {
        Self {
            passed: usize::from(well),
            failed: usize::from(!well),
            skipped: Vec::new(),
        }
    }

    /// Adds what others said.
    pub(crate) fn add(&mut self, more: Self) {
        self.passed += more.passed;
        self.failed += more.failed;
        self.skipped.extend(more.skipped);
    }

    /// Prints what was skipped, and the counts in the last line. Returns whether
    /// nothing failed and, on a CI machine, nothing was skipped that must not be.
    pub(crate) fn report(&self) -> bool {
        let mut skipped: Vec<String> = self.skipped.iter().map(Skip::to_string).collect();
        skipped.sort();
        if !skipped.is_empty() {
            println!("\nskipped (program: test: reason):");
        }
        for skip in &skipped {
            println!("  {skip}");
        }
        let ci = std::env::var("CI").is_ok_and(|value| ["true", "1"].contains(&value.as_str()));
        let forbidden: Vec<&String> = match ci {
            true => skipped.iter().filter(|skip| !is_allowed(skip)).collect(),
            false => Vec::new(),
        };
        if !forbidden.is_empty() {
            println!("\nskipped, and not in .ci/skips.txt, so this run fails (CI is set):");
        }
        for skip in &forbidden {
            println!("  {skip}");
        }
        println!(
            "\n{} passed, {} failed, {} skipped",
            self.passed,
            self.failed,
            skipped.len()
        );
        self.failed == 0 && forbidden.is_empty()
    }
}

/// Returns the lines of the list of what a CI machine may skip.
pub(crate) fn allowed() -> impl Iterator<Item = &'static str> {
    let lines = ALLOWED.lines().map(str::trim);
    lines.filter(|line| !line.is_empty() && !line.starts_with('#'))
}

/// Returns whether a CI machine may skip this, a line of the list that a run prints.
fn is_allowed(skip: &str) -> bool {
    allowed().any(|start| skip.starts_with(start))
}

/// Returns the tests of a program in that list, which must exist.
pub(crate) fn allowed_of(program: &str) -> impl Iterator<Item = &'static str> {
    let start = format!("{program}: ");
    allowed().filter_map(move |line| line.strip_prefix(&start)?.split(": ").next())
}

/// Returns the number before a word of the harness's summary.
fn count(summary: &str, word: &str) -> usize {
    let before = summary.split(word).next().unwrap_or("");
    let number = before.rsplit(' ').next().unwrap_or("");
    number.parse().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "
running 5 tests
test bites ... ok
test kernel::boots ... ok
test slow ... ignored, an hour: cargo xtask test --kernel
test wrong ... FAILED
test old ... ignored

successes:

---- bites stdout ----
skipped: is a word like others, but not here, where nothing else is lacking
skipped: a second reason

---- kernel::boots stdout ----
4 CPUs

successes:
    bites
    kernel::boots

failures:

---- wrong stdout ----
skipped: but it failed

failures:
    wrong

test result: FAILED. 2 passed; 1 failed; 2 ignored; 0 measured; 0 filtered out; finished in 0.1s
";

    #[test]
    fn skips_are_told_from_passes_and_failures() {
        let outcome = Outcome::read("sim src/lib.rs", OUTPUT, false);
        assert_eq!((outcome.passed, outcome.failed), (1, 1));
        let skipped: Vec<String> = outcome.skipped.iter().map(Skip::to_string).collect();
        assert_eq!(
            skipped,
            [
                "sim src/lib.rs: slow: an hour: cargo xtask test --kernel",
                "sim src/lib.rs: old: ",
                "sim src/lib.rs: bites: is a word like others, but not here, where nothing else \
                 is lacking",
            ]
        );
    }

    #[test]
    fn each_program_of_a_cargo_run_has_its_name() {
        let output = format!(
            "     Running tests/suite.rs (target/debug/deps/suite-1)\n{OUTPUT}   Doc-tests \
             locklab_judge\ntest a (line 3) ... ignored\n\ntest result: ok. 0 passed; 0 failed; 1 \
             ignored; 0 measured\n"
        );
        let outcome = Outcome::read("cargo", &output, true);
        assert_eq!((outcome.passed, outcome.failed), (1, 1));
        let programs: Vec<&str> = outcome.skipped.iter().map(|s| s.program.as_str()).collect();
        assert_eq!(programs[0], "tests/suite.rs");
        assert_eq!(programs[3], "locklab_judge, examples");
    }

    #[test]
    fn ci_skips_what_the_list_names_for_the_reason_in_the_list() {
        assert!(allowed().count() > 5);
        let test = "locklab tests/suite.rs: slurm::a_cluster_gives_what_this_machine_gives_whatever_is_killed";
        assert!(is_allowed(&format!(
            "{test}: needs Slurm: cargo xtask test --slurm"
        )));
        assert!(!is_allowed(&format!("{test}: no tar")));
        let kernel = "own-lock tests/kernel.rs: the_kernels_mcs_and_ticket_locks_run: there is no \
                      kernel source in /usr/src";
        assert!(!is_allowed(kernel));
    }

    #[test]
    fn a_program_that_was_killed_failed() {
        let outcome = Outcome::read("sim src/lib.rs", "running 2 tests\ntest a ... ", false);
        assert_eq!((outcome.passed, outcome.failed), (0, 1));
    }
}
