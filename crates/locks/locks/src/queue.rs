//! Queue locks: each waiter spins on a line of its own, in a node that the caller brings.
//!
//! The guards here keep nodes for each thread (feature `std`);
//! [`NodeMutex`](crate::mutex::NodeMutex) has them on the stack.

#[doc(inline)]
pub use crate::anderson::{Anderson, AndersonSlot};
#[doc(inline)]
pub use crate::clh::{Clh, ClhHandle, ClhNode};
#[doc(inline)]
pub use crate::cna::{Cna, CnaNode};
#[doc(inline)]
pub use crate::cohort::{Cohort, CohortBoMcs, CohortTktTkt};
#[doc(inline)]
pub use crate::hemlock::{Hemlock, HemlockGrant};
#[doc(inline)]
pub use crate::hmcs::{Hmcs, HmcsNode};
#[doc(inline)]
pub use crate::malthusian::{Malthusian, MalthusianNode};
#[doc(inline)]
pub use crate::mcs::{Mcs, McsNode};
#[doc(inline)]
pub use crate::mcs_timeout::{McsTimeout, McsTimeoutNode, McsTp};
#[doc(inline)]
pub use crate::reciprocating::{Reciprocating, ReciprocatingElement};

#[cfg(feature = "std")]
crate::aliases::queue_mutexes! {
    AndersonMutex AndersonMutexGuard Anderson,
        "Waiters are served in the order of arrival; the lock has a line for each slot.";
    CnaMutex CnaMutexGuard Cna, "Waiters of the holder's NUMA node are preferred for a while.";
    CohortBoMcsMutex CohortBoMcsMutexGuard CohortBoMcs,
        "Waiters of the holder's NUMA node are preferred for a while.";
    CohortTktTktMutex CohortTktTktMutexGuard CohortTktTkt,
        "Waiters of the holder's NUMA node are preferred for a while.";
    HemlockMutex HemlockMutexGuard Hemlock,
        "Waiters are served in the order of arrival, with one node of a thread for all its locks.";
    MalthusianMutex MalthusianMutexGuard Malthusian,
        "A surplus of waiters is sent off, and called back in turn.";
    McsMutex McsMutexGuard Mcs, "Waiters are served in the order of arrival, running or not.";
    ReciprocatingMutex ReciprocatingMutexGuard Reciprocating,
        "Waiters are served in batches, the last of a batch first.";
}
