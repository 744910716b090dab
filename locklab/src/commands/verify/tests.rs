//! Tests of the user's own among what `verify` is asked for: run, and shown as text.

use super::AtMost;
use crate::own::own_test;
use locklab_document::number;
use locklab_document::page::wrapped;
use locklab_host::error::Error;
use locklab_user_lock::{OwnTest, TestLimits, TestOutcome, TestResult};
use locklab_verify::{LEGEND, SHOWN, Step, interleaving};

/// Takes the tests out of the names that a command line has, and compiles them.
///
/// # Errors
/// As [`crate::own::candidates`].
pub(super) fn tests(args: &super::VerifyArgs) -> Result<(Vec<OwnTest>, Vec<String>), Error> {
    let mut tests = Vec::new();
    let mut locks = Vec::new();
    for name in &args.locks {
        match own_test(name, &args.own)? {
            Some(test) => tests.push(test),
            None => locks.push(name.clone()),
        }
    }
    Ok((tests, locks))
}

/// Returns how far the options let a test be explored.
pub(super) fn limits(args: &super::VerifyArgs) -> TestLimits {
    let executions = args.bound(|bound| match bound {
        AtMost::Executions(n) => Some(*n),
        _ => None,
    });
    let seconds = args.bound(|bound| match bound {
        AtMost::Seconds(n) => Some(*n),
        _ => None,
    });
    TestLimits {
        executions: executions.unwrap_or(u64::MAX),
        duration: seconds.map(std::time::Duration::from_secs),
    }
}

/// Returns whether a test holds, as far as it was explored.
pub(super) fn holds(result: &TestResult) -> bool {
    matches!(result.outcome, TestOutcome::Holds | TestOutcome::Cut(_))
}

/// Returns what was found of a test.
pub(super) fn shown(result: &TestResult) -> String {
    let name = &result.name;
    let explored = format!(
        "{} of {}, {:.1} s{}",
        number::count(result.executions as usize, "execution"),
        number::count(result.threads, "thread"),
        result.seconds,
        match result.blocked {
            0 => String::new(),
            blocked => format!("; {blocked} more were given up, since these cover them"),
        }
    );
    let mut text = match &result.outcome {
        TestOutcome::Holds => wrapped(
            "",
            &format!("{name} holds in all executions that RC11 allows: {explored}."),
        ),
        TestOutcome::Cut(left_out) => {
            let holds = format!("{name} holds in those executions that were explored: {explored}.");
            let left_out = left_out.iter().map(|what| wrapped("    ", what));
            wrapped("", &holds) + "Left out:\n" + &left_out.collect::<String>()
        }
        TestOutcome::Fails(why) => {
            let found = match result.executions {
                0 => "in the first execution".to_owned(),
                _ => format!("after {explored}"),
            };
            wrapped("", &format!("{name} FAILS: {why}. It was found {found}."))
        }
        TestOutcome::NotChecked(why) => wrapped("", &format!("{name} is not checked: {why}.")),
    };
    for note in &result.notes {
        text += &wrapped("", &format!("Assumed: {note}."));
    }
    if !result.steps.is_empty() {
        let steps: Vec<Step> = result
            .steps
            .iter()
            .map(|step| Step {
                thread: step.thread,
                file: step.file.clone(),
                line: step.line,
                what: step.what.clone(),
            })
            .collect();
        text += &format!("\n{}\n{LEGEND}\n", interleaving(&steps, SHOWN));
    }
    text + "\n"
}
