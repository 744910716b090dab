//! Explores a program around a file's code, again and again until all is known of the
//! memory that its threads share.
//!
//! It must never call an exploration complete that a limit has ended.

use super::world::{STACK, World, with};
use locklab_graph::{Explorer, Limit, Options, Place, Report};
use locklab_host::error::Error;
use std::time::{Duration, Instant};

/// How often an exploration may begin again, since more is known of the test's memory.
const BEGINNINGS: usize = 20_000;

/// How far a test is explored.
#[derive(Clone, Copy, Debug)]
pub struct TestLimits {
    /// The most executions.
    pub executions: u64,
    /// The longest time.
    pub duration: Option<Duration>,
}

/// Explores a program in the world that is set, as far as these limits allow, and returns
/// what was left out too.
pub(super) fn explore_all(
    limits: TestLimits,
    main: impl Fn() + Clone + 'static,
) -> Result<(Report, Vec<String>), Error> {
    let begin = Instant::now();
    for _ in 0..BEGINNINGS {
        let left = limits
            .duration
            .map(|most| most.saturating_sub(begin.elapsed()));
        let options = Options {
            executions: limits.executions,
            duration: left,
            leaks: false,
            rounds: 0,
            stack: STACK,
            ..Options::default()
        };
        let main = main.clone();
        let report = Explorer::new(options).check(move || {
            with(World::begin);
            main();
        });
        if with(|world| std::mem::take(&mut world.again)) {
            continue;
        }
        let rounds = |(place, _): &(Place, u64)| {
            format!(
                "the loop at {place} changes memory and reads the same again; it was cut after two \
                 such rounds"
            )
        };
        let mut left_out: Vec<String> = report.bounded.iter().map(rounds).collect();
        if report.executions == 0 && report.error.is_none() {
            left_out.push("no execution came to its end, so nothing was shown".to_owned());
        }
        left_out.extend(report.limit.map(|limit| {
            let what = match limit {
                Limit::Executions => "--at-most executions=N allows no more",
                Limit::Duration => "--at-most seconds=N allows no more",
                Limit::Memory => "the graphs that remain take too much memory",
            };
            format!("executions are left: {what}")
        }));
        return Ok((report, left_out));
    }
    Err(Error::Failed(
        "what threads share is not the same from one exploration to the next".to_owned(),
    ))
}

/// How a message begins that is no fault of the file.
pub(super) const NOT_CHECKED: &str = "not checked: ";
