//! Tests what each lock touches under contention, beside what its paper touches:
//! cache lines that move for one handoff between eight threads of a socket that want
//! the lock all the time. The table of results/simulator.md is this test's output:
//!
//!     cargo test --release -p locklab-sim --test handoffs -- --nocapture

use locklab_sim::{FigureKey, Machine, Placement, Scenario, Workload, run};

/// Length of the critical section: long enough that the stores of acquiring and
/// of releasing do not share a stay of the line.
const CRITICAL: u32 = 16;

/// Lines that move by the paper's text, access by access: a line is counted
/// each time a core must ask for it. A store's line that comes before the
/// store's turn goes back to whoever spins on it, and is asked for again: that
/// is the machine's, and no access of the paper's.
const PAPER: &[(&str, f64, &str)] = &[
    (
        "ticket",
        9.0,
        "number 1, release 1, each of seven waiters reads the release 1",
    ),
    (
        "anderson",
        3.0,
        "turn 1, the next slot's turn set 1, seen 1; the first look finds the slot where it was left: eight threads in rotation, 512 slots",
    ),
    (
        "clh",
        5.0,
        "node set 1, tail swapped 1, predecessor's node read 1, node cleared 1, seen 1",
    ),
    (
        "mcs",
        6.0,
        "node reset 1, tail swapped 1, linked 1, the link seen by who spins on that node 1, granted 1, seen 1",
    ),
    (
        "qspinlock",
        10.5,
        "fast path fails 1, level given back and node reset 1, tail swapped 0 or 1 (the line may be there since the fast path), linked 1, the link seen 1, head granted 1, seen 1, word read by the head 1, released 1, seen 1, locked byte set 1",
    ),
    (
        "hemlock",
        6.0,
        "tail tried by the release and swapped again by the same CPU 1, predecessor's mailbox read 1, grant written 1, seen 1, emptied 1, seen 1",
    ),
];

#[test]
fn a_handoff_moves_the_lines_that_the_paper_says() {
    println!("{:<14}{:>8}{:>8}", "lock", "ours", "paper");
    let moved = |lock: &str| {
        let workload = Workload::Matrix {
            // While a ticket lock is held, who comes makes all others read anew.
            critical: if lock == "ticket" { 0 } else { CRITICAL },
            non_critical: 0,
        };
        let machine = Machine::builtin("ivybridge-ex-4s")
            .unwrap()
            .with(FigureKey::TopologyThreads, 1.0)
            .unwrap()
            .with(FigureKey::DirectoryWritesFirst, 0.0)
            .unwrap();
        let mut scenario = Scenario::new(machine, lock, workload, 8);
        scenario.placement = Placement::Compact;
        // Less the line that the critical section writes.
        run(&scenario).unwrap().lines_moved - 1.0
    };
    let mut off = Vec::new();
    for entry in locklab_locks::catalogue::ALL {
        let lock = entry.info.name;
        let ours = moved(lock);
        match PAPER.iter().find(|(name, ..)| *name == lock) {
            None => println!("{lock:<14}{ours:>8.1}{:>8}", "-"),
            Some((_, paper, accesses)) => {
                println!("{lock:<14}{ours:>8.1}{paper:>8.1}  {accesses}");
                if (ours - paper).abs() > 0.5 {
                    off.push(format!("{lock}: {ours} against {paper}"));
                }
            }
        }
    }
    assert!(off.is_empty(), "{off:?}");
}
