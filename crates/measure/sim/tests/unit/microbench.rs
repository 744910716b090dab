//! Tests of src/microbench.rs, with access to what is private there.

use super::*;

/// Returns how often a reader that has seen the second of two stores does not see the
/// first, whose line is far away.
fn passes(machine: &str, order: Ordering) -> usize {
    let machine = Machine::builtin(machine).unwrap();
    let bench = Bench {
        topology: Topology::new(&machine),
        machine: &machine,
        seed: 1,
    };
    const ROUNDS: usize = 40;
    let passed = Cell::new(0);
    let threads = machine.get(FigureKey::TopologyThreads) as usize;
    let cpus = [0, threads, 2 * threads];
    bench
        .run(&cpus, 2 * ROUNDS + 1, |cpu, places| {
            let turn = &places[2 * ROUNDS].words[0];
            for round in 0..ROUNDS {
                let [first, second] = [0, 1].map(|n| &places[2 * round + n].words[0]);
                let my_turn = 3 * round + [1, 0, 1][cpu];
                wait(turn, |now| now >= my_turn);
                match cpu {
                    // Takes the first line away from the writer.
                    1 => {
                        first.store(1, Ordering::Relaxed);
                        turn.store(my_turn + 1, Ordering::SeqCst);
                    }
                    // Owns the second one.
                    0 => {
                        second.store(1, Ordering::SeqCst);
                        first.store(2, Ordering::Relaxed);
                        second.store(2, order);
                    }
                    // Has a copy of the first, which outlives the store
                    // until its invalidation arrives.
                    _ => {
                        first.load(Ordering::Relaxed);
                        wait(second, |now| now == 2);
                        let seen = first.load(Ordering::Relaxed);
                        passed.set(passed.get() + usize::from(seen != 2));
                        turn.store(3 * (round + 1), Ordering::SeqCst);
                    }
                }
            }
        })
        .unwrap();
    passed.get()
}

#[test]
fn stores_pass_each_other_on_arm_unless_they_release() {
    assert!(passes("graviton2", Ordering::Relaxed) > 0);
    assert_eq!(passes("graviton2", Ordering::Release), 0);
    assert_eq!(passes("xeon-8380-2s", Ordering::Relaxed), 0);
}

#[test]
fn far_atomics_go_on_faster_than_a_line_can_move() {
    let machine = Machine::builtin("graviton2").unwrap();
    let near = measure(&machine, Benchmark::FetchAdd { threads: 16 }, 1).unwrap();
    let far = machine
        .with(FigureKey::CoreFarAtomics, 1.0)
        .and_then(|machine| machine.with(FigureKey::CoreFarRmwNs, 9.4))
        .and_then(|machine| machine.with(FigureKey::TransferLlcNs, 30.0))
        .unwrap();
    let far = measure(&far, Benchmark::FetchAdd { threads: 16 }, 1).unwrap();
    // 9.4 ns is what was published for additions without a result.
    assert!((9.0..12.0).contains(&far) && far < near, "{near} {far}");
}

#[test]
fn a_sleeper_sees_a_release_before_one_that_polls() {
    let machine = Machine::builtin("graviton2").unwrap();
    let ticket = |wfe: f64| {
        let machine = machine.clone().with(FigureKey::CoreWfeCycles, wfe).unwrap();
        measure(&machine, Benchmark::Ticket { threads: 8 }, 1).unwrap()
    };
    // The benchmark polls without a pause, so a slow wake-up costs.
    assert!(ticket(100.0) > ticket(2.0));
}

#[test]
fn what_a_machine_does_not_have_is_said() {
    let machine = Machine::builtin("graviton2").unwrap();
    for benchmark in [
        Benchmark::PingPong {
            distance: Distance::Remote,
        },
        Benchmark::FetchAdd { threads: 65 },
        Benchmark::Ticket { threads: 0 },
    ] {
        assert!(matches!(
            measure(&machine, benchmark, 1),
            Err(SimError::Refused(_))
        ));
    }
}
