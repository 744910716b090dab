//! Counts how often a thread that has no queue node acquires a queued spinlock,
//! beside two and beside four that have one: `cargo run --release -p locklab-locks
//! --example without_node -- 10` counts for ten seconds each.

use locklab_locks::{
    Host, MAX_CPUS, Native, QSpinlock, QueueNodes, RawLock, RqSpinlock, kernel::QSpinlockCna,
    kernel::QSpinlockPv,
};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A machine on which some threads have no number.
struct Numbered;

std::thread_local! {
    static NUMBER: Cell<Option<usize>> = const { Cell::new(None) };
}

const MOST: usize = 4;

static NODES: [QueueNodes<Native<Numbered>>; MOST] = [const { QueueNodes::NEW }; MOST];

// SAFETY: threads that have a number have one each, and an entry of the static.
unsafe impl Host for Numbered {
    fn cpu() -> usize {
        NUMBER.get().unwrap_or(MAX_CPUS)
    }
    fn try_cpu() -> Option<usize> {
        NUMBER.get()
    }
    fn queue_nodes(cpu: usize) -> &'static QueueNodes<Native<Self>> {
        &NODES[cpu]
    }
}

/// Returns the acquisitions of so many with a node, together, and of one without.
fn count<L: RawLock<Native<Numbered>, Ctx = ()>>(threads: usize, seconds: u64) -> [u64; 2] {
    let (lock, over) = (L::default(), AtomicBool::new(false));
    let acquire = |number: Option<usize>| {
        NUMBER.set(number);
        let mut times = 0;
        while !over.load(Ordering::Relaxed) {
            // The last comes free when the others have ended.
            // SAFETY: no context; released once.
            unsafe {
                lock.lock(&());
                times += u64::from(!over.load(Ordering::Relaxed));
                lock.unlock(&());
            }
        }
        times
    };
    std::thread::scope(|scope| {
        let numbered = |number| scope.spawn(move || acquire(Some(number)));
        let with: Vec<_> = (0..threads).map(numbered).collect();
        let without = scope.spawn(|| acquire(None));
        std::thread::sleep(Duration::from_secs(seconds));
        over.store(true, Ordering::Relaxed);
        let ended = |thread: std::thread::ScopedJoinHandle<'_, u64>| thread.join().unwrap_or(0);
        [with.into_iter().map(ended).sum(), ended(without)]
    })
}

fn main() {
    let seconds = std::env::args().nth(1).and_then(|n| n.parse().ok());
    let seconds = seconds.unwrap_or(1);
    type P = Native<Numbered>;
    for threads in [2, MOST] {
        for (name, [with, without]) in [
            ("qspinlock", count::<QSpinlock<P>>(threads, seconds)),
            ("qspinlock-pv", count::<QSpinlockPv<P>>(threads, seconds)),
            ("qspinlock-cna", count::<QSpinlockCna<P>>(threads, seconds)),
            ("rqspinlock", count::<RqSpinlock<P>>(threads, seconds)),
        ] {
            println!("{name:<14} {threads} with a node {with:>12}, one without {without:>12}");
        }
    }
}
