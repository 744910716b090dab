//! The estimate of a sweep's time: some of its runs, drawn with a probability in
//! proportion to their cost, are simulated, and the rest is extrapolated from
//! them. The estimate is in CPU time, so other work of the machine does not
//! distort it.

use crate::plan::Plan;
use crate::simulator::Simulator;
use nix::time::{ClockId, clock_gettime};
use std::time::{Duration, Instant};

/// Number of runs that are drawn, and the time after which no more are.
const DRAWN: u64 = 64;
const TIME: Duration = Duration::from_secs(3);

/// Returns the time of a sweep on one core of this machine. It is measured, so two
/// estimates differ; no figure depends on it.
#[must_use]
pub(crate) fn on_one_core(plan: &Plan) -> Duration {
    // Cuts of equal cost, one run is drawn from each.
    let cuts = plan.cut(DRAWN);
    let begun = Instant::now();
    let mut of_cuts: Vec<f64> = Vec::new();
    // The cuts are taken out of order, so that an estimate that runs out of time
    // has drawn runs from the whole plan.
    let count = cuts.len() - 1;
    let step = (1..count)
        .rev()
        .find(|n| coprime(*n, count) && n * 2 <= count + 2);
    for number in 0..count {
        let at = (number * step.unwrap_or(1)) % count;
        let runs = cuts[at]..cuts[at + 1];
        let drawn = runs.start + (runs.end - runs.start) / 2;
        let run = plan.run(drawn);
        let before = processor_time();
        // A new simulator simulates the baseline too, which a sweep does once for
        // all locks.
        let mut simulator = Simulator::new(plan);
        simulator.run(&run);
        let both = processor_time().saturating_sub(before).as_secs_f64();
        let locks = plan.pairs.len() as f64;
        let each = both / 2.0 * (1.0 + 1.0 / locks);
        // A cut may hold cheap and costly runs.
        let cost: f64 = cost_of(plan, runs.clone());
        of_cuts.push(each * cost / plan.cost_of(&run));
        if begun.elapsed() > TIME {
            break;
        }
    }
    let mean = of_cuts.iter().sum::<f64>() / of_cuts.len().max(1) as f64;
    Duration::try_from_secs_f64(mean * count as f64).unwrap_or(Duration::MAX)
}

/// Returns the CPU time of this thread.
fn processor_time() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_or(Duration::ZERO, Duration::from)
}

/// Returns the cost of the runs of these numbers, extrapolated from some of them.
fn cost_of(plan: &Plan, runs: std::ops::Range<u64>) -> f64 {
    let count = runs.end - runs.start;
    let step = (count / 32).max(1);
    let costs: Vec<f64> = runs
        .step_by(usize::try_from(step).unwrap_or(usize::MAX))
        .map(|number| plan.cost_of(&plan.run(number)))
        .collect();
    costs.iter().sum::<f64>() / costs.len().max(1) as f64 * count as f64
}

fn coprime(a: usize, b: usize) -> bool {
    let (mut a, mut b) = (a, b);
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a == 1
}
