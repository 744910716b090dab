//! Measures how fast the simulator is: accesses per second, time per acquisition,
//! memory. Prints a table of CPU time beside the targets. How long whole
//! published experiments take is a benchmark of `locklab-published`.

use locklab_sim::{FigureKey, Machine, Outcome, Scenario, Stop, Workload, run};
use std::time::{Duration, Instant};

/// Returns the time that this thread has had a CPU; where the kernel does not say, the
/// time that has passed since the start.
fn cpu_time(start: Instant) -> Duration {
    std::fs::read_to_string("/proc/thread-self/schedstat")
        .ok()
        .and_then(|text| text.split_whitespace().next()?.parse().ok())
        .map_or_else(|| start.elapsed(), Duration::from_nanos)
}

fn timed(machine: &str, lock: &str, threads: usize, acquisitions: u64) -> (Outcome, Duration) {
    let workload = Workload::Matrix {
        critical: 4,
        non_critical: 32,
    };
    let mut scenario = Scenario::new(Machine::builtin(machine).unwrap(), lock, workload, threads);
    scenario.stop = Stop::Acquisitions(acquisitions);
    let start = Instant::now();
    let before = cpu_time(start);
    let outcome = run(&scenario).unwrap();
    (outcome, cpu_time(start) - before)
}

fn memory_mb() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(
        line.trim()
            .trim_end_matches("kB")
            .trim()
            .parse::<f64>()
            .ok()?
            / 1024.0,
    )
}

fn main() {
    println!(
        "{:18} {:12} {:>4} {:>11} {:>10} {:>10} {:>9}",
        "machine", "lock", "CPUs", "accesses/s", "ns/access", "ns/acquis.", "ns/event"
    );
    for (machine, lock, threads) in [
        ("xeon-8380-2s", "mcs", 1),
        ("xeon-8380-2s", "mcs", 16),
        ("xeon-8380-2s", "ticket", 16),
        ("xeon-8380-2s", "tas", 16),
        ("xeon-6-e-288", "mcs", 16),
        ("xeon-6-e-288", "mcs", 72),
        ("xeon-6-e-288", "mcs", 288),
        ("xeon-6-e-288", "qspinlock", 288),
        ("xeon-6-e-288", "ticket", 288),
    ] {
        let (outcome, time) = (0..3)
            .map(|_| timed(machine, lock, threads, 10_000))
            .min_by_key(|(_, time)| *time)
            .unwrap();
        let ns = time.as_nanos() as f64;
        println!(
            "{machine:18} {lock:12} {threads:4} {:9.1} M {:10.1} {:10.0} {:9.0}",
            outcome.accesses as f64 / ns * 1e3,
            ns / outcome.accesses as f64,
            ns / outcome.acquisitions as f64,
            ns / outcome.events.max(1) as f64,
        );
    }
    // A machine as large as a model may be: its memory is the most so far.
    let largest = Machine::builtin("xeon-8380-2s")
        .unwrap()
        .with(FigureKey::TopologyCores, 256.0)
        .unwrap();
    let workload = Workload::Matrix {
        critical: 4,
        non_critical: 32,
    };
    let mut scenario = Scenario::new(largest, "mcs", workload, 1024);
    scenario.stop = Stop::Acquisitions(10_000);
    run(&scenario).unwrap();
    if let Some(mb) = memory_mb() {
        println!("most memory so far, 1,024 CPUs included: {mb:.0} MB (target: under 50)");
    }
}
