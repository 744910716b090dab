//! Locks of libraries, simulated: those that programs have today.
//!
//! A program's lock is glibc's, the standard library's or parking_lot's. On real
//! hardware their own code is measured; here runs a model of each, under the same name. Most
//! are those of `locklab-library-models`, which the model checker explores. The mutexes of
//! parking_lot and glibc are here once more, with what only costs time: the lock of
//! parking_lot's queues, and the notes that glibc's holder writes into the line of its word.
//!
//! They must never be taken for the libraries' code: what a library's next version
//! does is not in them.

mod common;
mod parking_lot;
mod pthread;
mod spin_wait;
mod word_lock;

use crate::engine::Engine;
use crate::platform::Sim;
use crate::{futex_queue, sleepers};
use locklab_library_models::catalogue::{self as models, current_name};
use locklab_locks::catalogue::Visitor;
use locklab_locks::{Info, RawLock};
pub use parking_lot::ParkingLot;
use parking_lot::{Bucket, Waiting};
pub use pthread::Pthread;
pub(crate) use pthread::PthreadAdaptive;

/// Lists the locks by type.
macro_rules! libraries {
    ($($lock:ident,)*) => {
        /// Those that are here.
        const HERE: &[Info] = &[$(<$lock as RawLock<Sim>>::INFO,)*];

        /// Visits the lock of a library called `name`, now or in an earlier version; `None`
        /// if there is none.
        pub(crate) fn visit<V: Visitor<Sim>>(name: &str, visitor: V) -> Option<V::Output> {
            let name = current_name(name);
            $(if name == <$lock as RawLock<Sim>>::INFO.name {
                return Some(visitor.visit::<$lock>());
            })*
            models::visit::<Sim, _>(name, visitor)
        }
    };
}

libraries! {
    ParkingLot,
    Pthread,
    PthreadAdaptive,
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
    let here = HERE.iter().map(|info| info.name);
    let models = models::ALL.iter().map(|entry| entry.info.name);
    let is_here = |name: &&str| HERE.iter().any(|info| info.name == *name);
    here.chain(models.filter(move |name| !is_here(name)))
}
