//! The paths of NUMA-aware locks on any machine, by a host that reports two
//! nodes: which waiter is preferred, and that no waiter is lost by it.

use crate::common::yielding::{WAITED, Yielding};
use crate::common::{Sendable, stress};
use locklab_locks::catalogue::{self, Visitor};
use locklab_locks::{Host, Native, NativePlatform, Platform, QueueNodes, RawLock};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

fn numa_aware() -> impl Iterator<Item = &'static str> {
    let locks = catalogue::ALL.iter().map(|entry| &entry.info);
    locks.filter(|info| info.numa_aware).map(|info| info.name)
}

/// The shipped code, threads with odd numbers in one node, with even ones in
/// the other.
struct TwoNodes;

type Claimed = Native<TwoNodes>;

const CPUS: usize = 256;

static NODES: [QueueNodes<Claimed>; CPUS] = [const { QueueNodes::NEW }; CPUS];

// SAFETY: numbers of the native platform, nodes of its own.
unsafe impl Host for TwoNodes {
    fn cpu() -> usize {
        NativePlatform::cpu()
    }
    fn queue_nodes(cpu: usize) -> &'static QueueNodes<Claimed> {
        &NODES[cpu]
    }
    fn node() -> usize {
        NativePlatform::cpu() % 2
    }
}

struct Stress;

impl Visitor<Claimed> for Stress {
    type Output = ();
    fn visit<L: RawLock<Claimed>>(self) {
        stress::<Claimed, L>(3, 20_000);
    }
}

#[test]
fn numa_aware_locks_exclude_between_two_nodes() {
    for name in numa_aware() {
        assert!(catalogue::visit(name, Stress).is_some(), "{name}");
    }
}

/// Steps aside after which a thread waits without limit: more than any lock
/// has patience.
const WAITS: u32 = 1_000;

/// Checks who enters behind a holder of node 0 when first one of node 0 waits (the
/// queued spinlocks have it outside of their queue), then the head of the
/// queue, of node 0, then a thread of node 1, then another of node 0.
struct Order;

impl Visitor<Yielding> for Order {
    type Output = Vec<&'static str>;

    fn visit<L: RawLock<Yielding>>(self) -> Vec<&'static str> {
        let lock = L::default();
        let entered = Mutex::new(Vec::new());
        let released = AtomicBool::new(false);
        std::thread::scope(|scope| {
            // Each takes the lock when its name comes; the numbers of threads
            // are given in no order that we know, so there are enough of both.
            let mut waiting: [Vec<_>; 2] = [Vec::new(), Vec::new()];
            for _ in 0..12 {
                let (send, name) = channel::<&'static str>();
                let (number_to, number) = channel();
                let (lock, entered, released) = (&lock, &entered, &released);
                scope.spawn(move || {
                    number_to.send(NativePlatform::cpu()).expect("asked for");
                    let Ok(name) = name.recv() else { return };
                    let ctx = Sendable(L::Ctx::default());
                    // SAFETY: its own context; the lock outlives the scope.
                    unsafe {
                        lock.lock(&ctx.0);
                        entered.lock().unwrap().push(name);
                        if name == "holder" {
                            while !released.load(Ordering::Acquire) {
                                std::thread::sleep(Duration::from_micros(50));
                            }
                        }
                        lock.unlock(&ctx.0);
                    }
                    // CLH's nodes wander: contexts stay until all are done.
                    std::mem::forget(ctx);
                });
                let number = number.recv().expect("a number");
                waiting[number % 2].push((number, send));
            }
            let [here, there] = &mut waiting;
            let comes = |(number, send): (usize, std::sync::mpsc::Sender<_>), name| {
                WAITED[number].store(0, Ordering::Relaxed);
                send.send(name).expect("it waits for a name");
                let has_come = || match name {
                    "holder" => !entered.lock().unwrap().is_empty(),
                    _ => WAITED[number].load(Ordering::Relaxed) >= WAITS,
                };
                let deadline = Instant::now() + Duration::from_secs(60);
                while !has_come() {
                    assert!(Instant::now() < deadline, "{name} does not come");
                    std::thread::sleep(Duration::from_millis(1));
                }
            };
            comes(here.pop().expect("of node 0"), "holder");
            comes(here.pop().expect("of node 0"), "next");
            comes(here.pop().expect("of node 0"), "head");
            comes(there.pop().expect("of node 1"), "of the other node");
            comes(here.pop().expect("of node 0"), "of the same node");
            released.store(true, Ordering::Release);
            drop(waiting);
        });
        entered.into_inner().unwrap()
    }
}

#[test]
#[cfg_attr(miri, ignore = "thousands of steps aside")]
fn a_waiter_of_the_same_node_comes_first() {
    for name in numa_aware() {
        let entered = catalogue::visit(name, Order).expect("a lock");
        assert_eq!(
            entered,
            [
                "holder",
                "next",
                "head",
                "of the same node",
                "of the other node"
            ],
            "{name}"
        );
    }
    assert!(numa_aware().count() >= 4, "cna, hmcs and the cohorts");
    // And the same threads with a lock that is not NUMA-aware.
    let entered = catalogue::visit("mcs", Order).expect("a lock");
    assert_eq!(
        entered,
        [
            "holder",
            "next",
            "head",
            "of the other node",
            "of the same node"
        ]
    );
}
