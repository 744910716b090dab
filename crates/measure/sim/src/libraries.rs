//! Locks of libraries, simulated: those that programs have today.
//!
//! A program's lock is glibc's, the standard library's or parking_lot's. On real
//! hardware their own code is measured; here each is written from what its
//! documentation says it does, in the same states and with the same spins, calls and
//! wake-ups, under the name that the measured one has. None is part of the catalogue.
//!
//! They must never be taken for the libraries' code: what a library's next version
//! does is not in them.

mod common;
mod described;
mod parking_lot;
mod pthread;
mod spin_wait;
mod word_lock;

use crate::engine::Engine;
use crate::platform::Sim;
use crate::{futex_queue, sleepers};
pub(crate) use described::{ParkingLotRwlock, PthreadRwlock, PthreadRwlockWriters, Std, StdRwlock};
use locklab_locks::catalogue::Visitor;
use locklab_locks::{Info, RawLock};
pub use parking_lot::ParkingLot;
use parking_lot::{Bucket, Waiting};
pub use pthread::Pthread;
pub(crate) use pthread::PthreadAdaptive;

/// Lists the locks by type.
macro_rules! libraries {
    ($($lock:ident,)*) => {
        /// All of them.
        const ALL: &[Info] = &[$(<$lock as RawLock<Sim>>::INFO,)*];

        /// Visits the lock of a library called `name`; `None` if there is none.
        pub(crate) fn visit<V: Visitor<Sim>>(name: &str, visitor: V) -> Option<V::Output> {
            $(if name == <$lock as RawLock<Sim>>::INFO.name {
                return Some(visitor.visit::<$lock>());
            })*
            None
        }
    };
}

libraries! {
    Std,
    ParkingLot,
    Pthread,
    PthreadAdaptive,
    StdRwlock,
    ParkingLotRwlock,
    PthreadRwlock,
    PthreadRwlockWriters,
}

/// Returns the number of lines of what the waiters of locks that sleep wait in.
pub(crate) fn lines_of_sleepers(threads: usize) -> usize {
    sleepers::lines::<Sim, Bucket>() + futex_queue::lines::<Sim>() + Waiting::lines(threads)
}

/// Places that in an engine's arena.
pub(crate) fn place_sleepers(engine: &Engine) {
    sleepers::place::<Sim, Bucket>(engine);
    if engine.hypervisor.call > 0 {
        futex_queue::place::<Sim>(engine);
    }
    Waiting::place(engine);
}

/// Returns the names of the simulated locks of libraries.
pub fn library_locks() -> impl Iterator<Item = &'static str> {
    ALL.iter().map(|info| info.name)
}
