//! The parking lot ([`locklab_locks::Parking`]) in the checker's world: a
//! lock of the catalogue whose waiters spin, then sleep.
//!
//! A heavy fence and the light ones that it pairs with are full fences here.
//! That is what the pair means (J. Bastien et al., "Asymmetric fences",
//! WG21 P1202, 2018). Where there is a heavy fence, a plain one is nothing to
//! a light one ([`Loom`]'s fence is then an AcqRel one): so a heavy fence that
//! is left out is missed. One bucket for all: to share it is allowed, and the
//! checker's addresses differ from run to run.

use crate::execution;
use crate::platform::{Loom, Word};
use crate::property::{Property, promises};
use crate::subject::{Subject, subject};
use locklab_locks::platform::{Atomic, Platform};
use locklab_locks::{
    Bucket, Clh, Info, Mcs, NO_HEAVY_FENCE, Parking, ParkingWorld, QSpinlock, QueueNodes, RawLock,
    Ticket,
};
use loom::sync::atomic::AtomicU32;
use std::sync::Arc;

type U32 = Word<AtomicU32>;

/// The name under which the parking lot is verified.
pub const SPIN_THEN_PARK: &str = "spin-then-park";

/// The sleepers of one execution.
pub(crate) struct Lot {
    parked: U32,
    bucket: Bucket<U32>,
}

impl Lot {
    pub(crate) fn new(heavy: bool) -> Self {
        Self {
            parked: U32::new(if heavy { 0 } else { NO_HEAVY_FENCE }),
            bucket: Bucket::new(),
        }
    }
}

impl Lot {
    /// Whether somebody is still counted among the sleepers.
    pub(crate) fn counts_sleepers(&self) -> bool {
        let parked = self.parked.latest() as u32 & !NO_HEAVY_FENCE;
        parked != 0 || self.bucket.parked() != 0
    }
}

/// A world with a heavy fence, or without.
pub(crate) struct World<const HEAVY: bool>;

// SAFETY: one lot for an execution; the rest is loom's.
unsafe impl<const HEAVY: bool> ParkingWorld for World<HEAVY> {
    type Base = Loom;

    fn parked() -> &'static U32 {
        &execution::lot(HEAVY).parked
    }

    fn bucket(_: *const ()) -> &'static Bucket<U32> {
        &execution::lot(HEAVY).bucket
    }

    #[track_caller]
    fn light_fence() {
        if HEAVY {
            Loom::full_fence();
        }
    }

    #[track_caller]
    fn heavy_fence() {
        // Who goes to sleep does not spin in vain.
        execution::patient();
        if HEAVY {
            Loom::full_fence();
        }
    }

    #[track_caller]
    fn wait(word: &U32, expected: u32) {
        Loom::wait(word, expected);
    }

    #[track_caller]
    fn wake_all(word: &U32) {
        Loom::wake_all(word);
    }

    fn queue_nodes(cpu: usize) -> &'static QueueNodes<Parking<Self>> {
        const { assert!(HEAVY, "the queue nodes are those of the other world") };
        let nodes = std::ptr::from_ref(execution::parked_nodes(cpu));
        // SAFETY: they stay until the execution ends; the type is the same,
        // for `HEAVY` is true.
        unsafe { &*nodes.cast() }
    }
}

/// Lock `L` of a parking platform as one of the checker's own.
#[derive(Default)]
struct Parked<L, const HEAVY: bool>(L);

// SAFETY: that of `L`.
unsafe impl<L, const HEAVY: bool> RawLock<Loom> for Parked<L, HEAVY>
where
    L: RawLock<Parking<World<HEAVY>>>,
{
    type Ctx = L::Ctx;
    const INFO: Info = Info {
        name: SPIN_THEN_PARK,
        parks: true,
        ..L::INFO
    };

    unsafe fn lock(&self, ctx: &L::Ctx) {
        // SAFETY: the caller's promise is the same.
        unsafe { self.0.lock(ctx) }
    }

    unsafe fn try_lock(&self, ctx: &L::Ctx) -> bool {
        // SAFETY: the caller's promise is the same.
        unsafe { self.0.try_lock(ctx) }
    }

    unsafe fn unlock(&self, ctx: &L::Ctx) {
        // SAFETY: the caller's promise is the same.
        unsafe { self.0.unlock(ctx) }
    }
}

/// No wake-up is lost, whatever a lock's waiters wait for: a counter that all
/// of them watch (ticket), a word of their own (mcs), or one that its writer
/// leaves behind (clh).
pub(crate) fn park_properties() -> Vec<Property> {
    type Heavy = Parking<World<true>>;
    type Without = Parking<World<false>>;
    let mut all = Vec::new();
    let mut add = |lock: Arc<dyn Subject>, names: &[(&str, &'static str)]| {
        let of = promises(&lock);
        for &(name, called) in names {
            let property = of.iter().find(|property| property.name == name);
            all.push(Property {
                name: called,
                // The lock's own are shown needed by its own promises.
                orderings_of: Some("platform/src/parking.rs"),
                ..property.expect("a property of every lock").clone()
            });
        }
    };
    add(
        subject::<Loom, Parked<Ticket<Heavy>, true>>(),
        &[
            ("exclusion", "ticket"),
            ("reuse", "ticket, reuse"),
            ("exclusion of three", "ticket, three"),
            ("waiters sleep", "ticket, waiters sleep"),
        ],
    );
    add(
        subject::<Loom, Parked<Mcs<Heavy>, true>>(),
        &[
            ("exclusion", "mcs"),
            ("reuse", "mcs, reuse"),
            ("exclusion of three", "mcs, three"),
        ],
    );
    add(
        subject::<Loom, Parked<Clh<Heavy>, true>>(),
        &[("reuse", "clh, reuse")],
    );
    // Its word is written in parts.
    add(
        subject::<Loom, Parked<QSpinlock<Heavy>, true>>(),
        &[
            ("exclusion", "qspinlock"),
            ("try_lock races", "qspinlock, try_lock"),
        ],
    );
    add(
        subject::<Loom, Parked<Ticket<Without>, false>>(),
        &[
            ("exclusion", "ticket, no heavy fence"),
            ("exclusion of three", "three, no heavy fence"),
        ],
    );
    add(
        subject::<Loom, Parked<Mcs<Without>, false>>(),
        &[("reuse", "mcs, no heavy fence")],
    );
    all
}
