//! The spin of the crate parking_lot's waiters, for its mutex and for the lock of its queues.
//!
//! It must never know for what is waited.

use crate::engine::engine;
use crate::platform::Sim;
use crate::scheduler::yield_to_others;
use locklab_locks::platform::Platform;

/// Rounds of a waiter's spin in which it pauses, each twice as long as the one before.
const PAUSES: u32 = 3;
/// All rounds of a waiter's spin; in the last ones it gives its CPU to others.
pub(super) const ROUNDS: u32 = 10;

/// Waits for one round of a spin.
pub(super) fn spin_round(round: u32) {
    match round <= PAUSES {
        true => Sim::relax_for(1 << round),
        false => yield_to_others(engine()),
    }
}
