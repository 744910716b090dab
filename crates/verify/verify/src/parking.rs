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
use locklab_locks::platform::{Atomic, Platform};
use locklab_locks::{Parking, QueueNodes, host::Bucket, host::NO_HEAVY_FENCE, host::ParkingWorld};
use loom::sync::atomic::AtomicU32;

type U32 = Word<AtomicU32>;

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
    /// Returns whether somebody is still counted among the sleepers.
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
