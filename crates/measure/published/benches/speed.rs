//! Measures how long whole published experiments take to simulate: wall time on two
//! threads. `locklab-sim` has the benchmark of the simulator itself.

use locklab_published::reproduce;
use std::time::Instant;

fn main() {
    for name in ["virt-backoff", "mplock-anderson", "qspinlock-xfs"] {
        let start = Instant::now();
        let report = reproduce(name, 1, 2, |_, _| {}).unwrap();
        println!(
            "reproduce {name}: {:.1} s on 2 threads, {:.0} M accesses",
            start.elapsed().as_secs_f64(),
            report.accesses as f64 / 1e6
        );
    }
}
