//! Locks of the literature, in the form in which other checkers publish how many
//! executions they have: as many here, and each in the time that a test may take.

use locklab_graph::cell::UnsafeCell;
use locklab_graph::sync::Arc;
use locklab_graph::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU32,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};
use locklab_graph::{Explorer, Report, thread};
use std::ptr;

/// A lock with a node for each thread.
trait Lock: 'static {
    fn new(threads: usize) -> Self;
    fn lock(&self, thread: usize);
    fn unlock(&self, thread: usize);
}

struct Ticket {
    next: AtomicU32,
    owner: AtomicU32,
}

impl Lock for Ticket {
    fn new(_: usize) -> Self {
        Self {
            next: AtomicU32::new(0),
            owner: AtomicU32::new(0),
        }
    }

    fn lock(&self, _: usize) {
        let own = self.next.fetch_add(1, Relaxed);
        // Pairs with the store of `unlock`.
        self.owner.wait_until(Acquire, |owner| owner == own);
    }

    fn unlock(&self, _: usize) {
        let own = self.owner.load(Relaxed);
        // Pairs with the wait of `lock`.
        self.owner.store(own + 1, Release);
    }
}

struct Ttas(AtomicBool);

impl Lock for Ttas {
    fn new(_: usize) -> Self {
        Self(AtomicBool::new(false))
    }

    fn lock(&self, _: usize) {
        loop {
            self.0.wait_until(Relaxed, |held| !held);
            // Pairs with the store of `unlock`.
            let taken = self.0.compare_exchange(false, true, Acquire, Relaxed);
            if taken.is_ok() {
                return;
            }
        }
    }

    fn unlock(&self, _: usize) {
        // Pairs with the exchange of `lock`.
        self.0.store(false, Release);
    }
}

struct Node {
    next: AtomicPtr<Node>,
    waits: AtomicBool,
}

struct Mcs {
    tail: AtomicPtr<Node>,
    nodes: Vec<Node>,
}

impl Lock for Mcs {
    fn new(threads: usize) -> Self {
        let node = |_| Node {
            next: AtomicPtr::new(ptr::null_mut()),
            waits: AtomicBool::new(false),
        };
        Self {
            tail: AtomicPtr::new(ptr::null_mut()),
            nodes: (0..threads).map(node).collect(),
        }
    }

    fn lock(&self, thread: usize) {
        let node = &self.nodes[thread];
        node.next.store(ptr::null_mut(), Relaxed);
        node.waits.store(true, Relaxed);
        let own = ptr::from_ref(node).cast_mut();
        // Pairs with itself, and with the exchange of `unlock`.
        let before = self.tail.swap(own, AcqRel);
        if !before.is_null() {
            // SAFETY: nodes live as long as the lock.
            let before = unsafe { &*before };
            // Pairs with the wait of `unlock`.
            before.next.store(own, Release);
            // Pairs with the store of `unlock`.
            node.waits.wait_until(Acquire, |waits| !waits);
        }
    }

    fn unlock(&self, thread: usize) {
        let node = &self.nodes[thread];
        let own = ptr::from_ref(node).cast_mut();
        // Pairs with the store of `lock`.
        if node.next.load(Acquire).is_null() {
            // Pairs with the swap of `lock`.
            let none = ptr::null_mut();
            if self
                .tail
                .compare_exchange(own, none, Release, Relaxed)
                .is_ok()
            {
                return;
            }
        }
        // Pairs with the store of `lock`.
        let next = node.next.wait_until(Acquire, |next| !next.is_null());
        // SAFETY: nodes live as long as the lock.
        // Pairs with the wait of `lock`.
        unsafe { &*next }.waits.store(false, Release);
    }
}

fn exclusion<L: Lock>(threads: usize) -> Report {
    Explorer::default().check(move || {
        let lock = Arc::new((L::new(threads), UnsafeCell::new(0)));
        let section = |lock: &(L, UnsafeCell<usize>), own: usize| {
            lock.0.lock(own);
            // SAFETY: the lock is held, or the race is reported.
            lock.1.with_mut(|value| unsafe { *value += 1 });
            lock.0.unlock(own);
        };
        let others: Vec<_> = (0..threads)
            .map(|own| {
                let lock = lock.clone();
                thread::spawn(move || section(&lock, own))
            })
            .collect();
        for other in others {
            other.join();
        }
        // SAFETY: the others have ended.
        lock.1.with(|value| assert_eq!(unsafe { *value }, threads));
    })
}

fn executions<L: Lock>(threads: usize) -> u64 {
    let report = exclusion::<L>(threads);
    assert!(report.holds(), "{}", report.error.unwrap());
    report.executions
}

#[test]
fn ticket_has_the_orders_of_its_threads() {
    assert_eq!([2, 3, 4, 5].map(executions::<Ticket>), [2, 6, 24, 120]);
}

#[test]
fn ttas_is_as_published() {
    assert_eq!([3, 4].map(executions::<Ttas>), [36, 576]);
}

#[test]
fn mcs_is_as_published() {
    assert_eq!([3, 4].map(executions::<Mcs>), [66, 1080]);
}
