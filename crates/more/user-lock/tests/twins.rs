//! C twins of locks of the catalogue: the same accesses, so the simulator must
//! give the same figures.

use locklab_sim::turns::Mix;
use locklab_sim::{Machine, Mixed, Scenario, Stop, Workload, run};
use locklab_user_lock::UserLock;

fn twin(file: &str, flags: &[&str]) -> UserLock {
    let path = format!("{}/tests/c/{file}", env!("CARGO_MANIFEST_DIR"));
    let flags: Vec<String> = flags.iter().map(|flag| (*flag).to_owned()).collect();
    UserLock::named(&path, &flags).unwrap().expect("a path")
}

fn scenario(machine: &str, lock: &str, threads: usize) -> Scenario {
    let machine = Machine::builtin(machine).unwrap();
    let work = Workload::Matrix {
        critical: 4,
        non_critical: 32,
    };
    let mut scenario = Scenario::new(machine, lock, work, threads);
    scenario.stop = Stop::Acquisitions(10_000);
    scenario
}

/// Seeds over which the two are compared: the order of events that fall into
/// the same cycle is another draw.
const SEEDS: u64 = 3;

/// Checks that the twin's throughput is that of the lock, at each number of CPUs, to so many
/// percent.
fn assert_close(file: &str, lock: &str, most: f64) {
    let twin = twin(file, &[]);
    for threads in [1, 8, 32] {
        let (mut ours, mut theirs) = (0.0, 0.0);
        for seed in 1..=SEEDS {
            let mut scenario = scenario("xeon-8380-2s", lock, threads);
            scenario.seed = seed;
            let outcome = run(&scenario).unwrap();
            let of_twin = twin.simulate(&scenario).unwrap().outcome;
            ours += outcome.ops_per_s;
            theirs += of_twin.ops_per_s;
            // Alone, both make the same accesses at the same times.
            if threads == 1 {
                assert_eq!(outcome.trace_hash, of_twin.trace_hash, "{lock}");
            }
        }
        let percent = (theirs / ours - 1.0) * 100.0;
        println!("{lock:10} {threads:3} CPUs  {percent:+.3} %");
        assert!(percent.abs() < most, "{lock}, {threads} CPUs: {percent} %");
    }
}

#[test]
fn ttas_has_the_throughput_of_its_twin() {
    assert_close("ttas.c", "ttas", 0.5);
}

#[test]
fn ticket_has_the_throughput_of_its_twin() {
    assert_close("ticket.c", "ticket", 0.5);
}

#[test]
fn mcs_has_the_throughput_of_its_twin() {
    assert_close("mcs.c", "mcs", 0.5);
}

#[test]
fn clh_has_the_throughput_of_its_twin() {
    assert_close("clh.c", "clh", 0.5);
}

#[test]
fn anderson_has_the_throughput_of_its_twin() {
    assert_close("anderson.c", "anderson", 0.5);
}

#[test]
fn qspinlock_has_the_throughput_of_its_twin() {
    // Its nodes are static data, and so have homes elsewhere on the mesh.
    assert_close("qspinlock.c", "qspinlock", 4.0);
}

/// Long sections by readers alone, under a lock of one's own: with readers they
/// overlap, and with writers they do not.
#[test]
fn readers_of_an_user_lock_overlap_in_the_simulator() {
    let lock = twin("rwlock.c", &[]);
    let rate = |reads: u32| {
        let mut scenario = scenario("xeon-8380-2s", "rwlock", 8);
        scenario.workload = Workload::Mixed(Mixed {
            critical: 400,
            non_critical: 32,
            locks: 1,
            hog: 0,
            mix: Mix {
                reads,
                ..Mix::default()
            },
        });
        scenario.stop = Stop::Acquisitions(2_000);
        lock.simulate(&scenario).unwrap().outcome.ops_per_s
    };
    let [none, most, all] = [0, 90, 100].map(rate);
    println!(
        "of writers alone: 90 % read {:.2}, all {:.2}",
        most / none,
        all / none
    );
    assert!(all > 5.0 * none, "{all} with readers, {none} with writers");
    assert!(none < most && most < all, "{none} {most} {all}");
}

/// Readers that come in a stream starve the writer of a lock that lets them by, and
/// not that of its repaired form: the waits of writers show it, those of readers do not.
#[test]
fn a_stream_of_readers_is_seen_in_the_waits_of_writers() {
    let of = |file: &str| {
        let mut scenario = scenario("xeon-8380-2s", "rwlock", 8);
        scenario.workload = Workload::Mixed(Mixed {
            critical: 4,
            non_critical: 4,
            locks: 1,
            hog: 0,
            mix: Mix {
                reads: 90,
                ..Mix::default()
            },
        });
        let outcome = twin(file, &[]).simulate(&scenario).unwrap().outcome;
        outcome.by_use.expect("some read, and some write")
    };
    let [broken, fixed] = ["others/netdata_rw.c", "others/netdata_fixed.c"].map(of);
    let [worse, better] = [broken, fixed].map(|waits| waits.writers.latency.p999);
    assert!(worse > 2.0 * better, "{broken:?} {fixed:?}");
    assert!(broken.writers.latency.p999 > 2.0 * broken.readers.latency.p999);
    assert!(broken.writers.starved > 0.005 && fixed.writers.starved < 0.001);
}
