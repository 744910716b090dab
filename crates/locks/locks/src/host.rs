//! What a kernel or a program provides for the locks: CPU numbers, queue nodes, waiting.
//!
//! It must never have a lock. A kernel implements [`Host`], a program uses [`Threads`].

#[doc(hidden)]
pub use locklab_platform::numbers::Numbers;
#[doc(hidden)]
pub use locklab_platform::sleepers::place_of;
#[cfg(feature = "std")]
#[doc(inline)]
pub use locklab_platform::threads::Threads;
#[doc(inline)]
pub use locklab_platform::{
    held_locks::{HELD_LOCKS, HeldLocks},
    line::CacheLine,
    native::{AtomicU32, Host, Native, NativePlatform, NoHost},
    parking::{Bucket, NO_HEAVY_FENCE, Parking, ParkingHost, ParkingWorld, SPINS, Watched},
    qnode::{MAX_CPUS, NESTING, QueueNode, QueueNodes},
    sleepers::Sleepers,
    visible_reader::VisibleReader,
};
