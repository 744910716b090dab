//! Measures what a C lock costs beside its twin in Rust: time of an acquisition in the
//! simulator, and time to a first answer.
//!
//! `cargo run --release -p locklab-user-lock --example speed [LOCK...]`;
//! results/own-locks.md has the figures of one machine. The two sides run
//! alternately, and the fastest run of each counts, since whatever else runs
//! only adds time.

use locklab_host::error::Error;
use locklab_sim::{Machine, Scenario, Stop, Workload, run};
use locklab_user_lock::UserLock;
use std::time::{Duration, Instant};

const TWINS: [&str; 6] = ["ttas", "ticket", "mcs", "clh", "anderson", "qspinlock"];
const RUNS: usize = 5;

fn twin(name: &str) -> Result<UserLock, Error> {
    let path = format!("{}/tests/c/{name}.c", env!("CARGO_MANIFEST_DIR"));
    Ok(UserLock::named(&path, &[])?.expect("a path is no name of the catalogue"))
}

fn timed<R>(work: impl FnOnce() -> R) -> (R, Duration) {
    let start = Instant::now();
    let result = work();
    (result, start.elapsed())
}

/// Returns the fastest run of each side over so many acquisitions, in seconds.
fn simulated(name: &str, lock: &UserLock, threads: usize, acquisitions: u64) -> [f64; 2] {
    let machine = Machine::builtin("xeon-8380-2s").expect("a machine of ours");
    let work = Workload::Matrix {
        critical: 4,
        non_critical: 32,
    };
    let mut scenario = Scenario::new(machine, name, work, threads);
    scenario.stop = Stop::Acquisitions(acquisitions);
    let mut best = [f64::INFINITY; 2];
    for _ in 0..RUNS {
        let (_, ours) = timed(|| run(&scenario).expect("a lock of ours"));
        let (_, theirs) = timed(|| lock.simulate(&scenario).expect("its twin"));
        for (best, took) in best.iter_mut().zip([ours, theirs]) {
            *best = best.min(took.as_secs_f64());
        }
    }
    best
}

fn main() -> Result<(), Error> {
    let asked: Vec<String> = std::env::args().skip(1).collect();
    let is_asked = |name: &&str| asked.is_empty() || asked.iter().any(|asked| asked == name);
    let twins: Vec<&str> = TWINS.into_iter().filter(is_asked).collect();
    println!("time of an acquisition in the simulator, C / Rust");
    for &name in &twins {
        let lock = twin(name)?;
        let ratios = [1, 8, 32].map(|threads| {
            // The difference of a long and a short run: without the process
            // and what it loads.
            let [short, long] =
                [2_000, 42_000].map(|acquisitions| simulated(name, &lock, threads, acquisitions));
            (long[1] - short[1]) / (long[0] - short[0])
        });
        let [one, eight, many] = ratios;
        println!("{name:10} 1 CPU {one:.2}, 8 CPUs {eight:.2}, 32 CPUs {many:.2}");
    }

    println!("\ncompile and first answer");
    for &name in &twins {
        let (answer, took) = timed(|| {
            let lock = twin(name)?;
            let machine = Machine::builtin("xeon-8380-2s").expect("a machine of ours");
            let work = Workload::Matrix {
                critical: 4,
                non_critical: 32,
            };
            lock.simulate(&Scenario::new(machine, name, work, 8))
        });
        answer?;
        println!("{name:10} {:.2} s", took.as_secs_f64());
    }
    Ok(())
}
