//! Two ticket locks of ConcurrencyFreaks' C11 program: a plain one, and one whose
//! waiters but the next wait at nodes of their own ("array of waiting nodes, ends on
//! egress", as it was on 18 January 2015, when its figures were published).
//!
//! They are here because the catalogue's ticket and array locks differ from them in
//! what decides between the two: a waiter of either lock calls `sched_yield` after each
//! fruitless read, so that it reads once in a system call and not all the time; each
//! release is a sequentially consistent store, which on x86 waits until all stores
//! before it are visible; and the array has a word that says who is served, too. Each is
//! written from what its authors say that it does, and from no figure.
//!
//! They are here to be simulated. Nothing else must use them.

use locklab_locks::platform::{Atomic, AtomicInt, Ordering, Platform};
use locklab_locks::{Info, RawLock};
use locklab_sim::Sim;

type Byte = <Sim as Platform>::U8;
type Wide = <Sim as Platform>::Usize;
type Pointer<T> = <Sim as Platform>::Ptr<T>;

const INFO: Info = Info {
    name: "ticket lock of a program",
    try_lock: false,
    ..Info::BASE
};

/// A counter that has a line for itself: the program keeps them apart.
#[derive(Default)]
#[repr(align(64))]
struct Counter(Wide);

/// Reads until it is so, with a system call after each read when it is not.
fn yield_until(is_so: impl Fn() -> bool) {
    while !is_so() {
        Sim::system_call();
    }
}

/// A ticket lock: the number of the next ticket, and that of the ticket served.
#[derive(Default)]
#[repr(C)]
pub(crate) struct YieldingTicket {
    next: Counter,
    served: Counter,
}

// SAFETY: a ticket is given once, and served after the one before it has released.
unsafe impl RawLock<Sim> for YieldingTicket {
    type Ctx = ();
    const INFO: Info = INFO;

    unsafe fn lock(&self, _: &()) {
        let ticket = self.next.0.fetch_add(1, Ordering::SeqCst);
        yield_until(|| self.served.0.load(Ordering::SeqCst) == ticket);
    }

    unsafe fn unlock(&self, _: &()) {
        let served = self.served.0.load(Ordering::Relaxed);
        self.served.0.store(served + 1, Ordering::SeqCst);
    }
}

/// Places for waiters: as many as the program's own check of its locks has.
const PLACES: usize = 34;

/// Describes where one thread waits; the threads' nodes are apart.
#[derive(Default)]
#[repr(align(64))]
pub(crate) struct Node {
    is_next: Byte,
}

/// The ticket lock with an array: whoever is neither served nor next leaves its node at
/// its ticket's place, and waits there until it is next.
#[repr(C)]
pub(crate) struct Awn {
    next: Counter,
    served: Counter,
    places: [Pointer<Node>; PLACES],
}

impl Default for Awn {
    fn default() -> Self {
        Self {
            next: Counter::default(),
            served: Counter::default(),
            places: std::array::from_fn(|_| Atomic::new(std::ptr::null_mut())),
        }
    }
}

impl Awn {
    fn served(&self) -> usize {
        self.served.0.load(Ordering::SeqCst)
    }
}

// SAFETY: as the ticket lock: whoever waited at its node waits for its ticket, too.
unsafe impl RawLock<Sim> for Awn {
    type Ctx = Node;
    const INFO: Info = INFO;

    unsafe fn lock(&self, node: &Node) {
        let ticket = self.next.0.fetch_add(1, Ordering::SeqCst);
        let is_near = |served: usize| served + 1 >= ticket;
        if self.served() != ticket && !is_near(self.served()) {
            // A place may still be that of a ticket a whole round before.
            yield_until(|| ticket - self.served() < PLACES - 1);
            node.is_next.store(0, Ordering::Relaxed);
            let place = &self.places[ticket % PLACES];
            place.store(std::ptr::from_ref(node).cast_mut(), Ordering::SeqCst);
            if !is_near(self.served()) {
                yield_until(|| node.is_next.load(Ordering::SeqCst) == 1);
            }
        }
        yield_until(|| self.served() == ticket);
    }

    unsafe fn unlock(&self, _: &Node) {
        let ticket = self.served.0.load(Ordering::Relaxed);
        self.places[ticket % PLACES].store(std::ptr::null_mut(), Ordering::Relaxed);
        // Whoever will be next goes on to wait for its ticket.
        let waiter = self.places[(ticket + 1) % PLACES].load(Ordering::SeqCst);
        if !waiter.is_null() {
            // SAFETY: its thread waits for this store, or for a ticket that is not served
            // before this thread's; the node outlives both.
            unsafe { &*waiter }.is_next.store(1, Ordering::Relaxed);
        }
        self.served.0.store(ticket + 1, Ordering::SeqCst);
    }
}
