//! What goes around a lock: guards, closures, a check for misuse.
//!
//! It must never have a lock: locks name what is here, and not the other way round.

#[doc(inline)]
pub use crate::instant::Instant;
#[doc(inline)]
pub use lock_api::{Mutex, MutexGuard};
#[cfg(feature = "std")]
#[doc(inline)]
pub use locklab_platform::queue_mutex::{QueueGuard, QueueMutex};
#[doc(inline)]
pub use locklab_platform::{
    checked::{Checked, CheckedPlatform, HeldRanks},
    mutex::{LeakableGuard, NodeMutex, StackContext},
    outline::Outline,
};
