use locklab_sim::*;
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let machine = Machine::named(&a[1]).unwrap();
    let threads: Vec<usize> = a[3].split(',').map(|x| x.parse().unwrap()).collect();
    let c: u32 = a[4].parse().unwrap();
    let nc: u32 = a[5].parse().unwrap();
    for lock in a[2].split(',') {
        for &t in &threads {
            let s = Scenario::new(
                machine.clone(),
                lock,
                Workload::Matrix {
                    critical: c,
                    non_critical: nc,
                },
                t,
            );
            let start = std::time::Instant::now();
            match run(&s) {
                Err(e) => println!("{lock} {t}: {e}"),
                Ok(o) => {
                    let el = start.elapsed();
                    println!(
                        "{lock:10} {t:4} {:8.3} Mops/s jain {:.2} streak {:5.2} lines {:6.2} linewait {:7.0} lockwait {:7.0} | {:6.1} ms {:5.1} Macc/s {:7.0} ns/acq events/acq {:.1} hash {:x}",
                        o.ops_per_s / 1e6,
                        o.jain,
                        o.mean_streak,
                        o.lines_moved,
                        o.line_wait_ns,
                        o.lock_wait_ns,
                        el.as_secs_f64() * 1e3,
                        o.accesses as f64 / el.as_secs_f64() / 1e6,
                        el.as_nanos() as f64 / o.acquisitions as f64,
                        o.events as f64 / o.acquisitions as f64,
                        o.trace_hash
                    );
                }
            }
        }
    }
}
