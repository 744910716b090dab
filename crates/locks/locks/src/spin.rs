//! Locks without a context, for programs and kernels: test-and-set, ticket, and those that sleep.
//!
//! It must never have a lock whose caller brings a queue node; those are in
//! [`queue`](crate::queue).

use crate::aliases::mutexes;

#[doc(inline)]
pub use crate::fissile::Fissile;
#[doc(inline)]
pub use crate::futex::{Futex, FutexAdaptive};
#[doc(inline)]
pub use crate::mcs_k42::McsK42;
#[doc(inline)]
pub use crate::tas::{Byte, Tas, TasWord, Ttas, TtasWord, Width, Word};
#[doc(inline)]
pub use crate::ticket::Ticket;
#[doc(inline)]
pub use crate::ticket_prop::TicketProp;
#[doc(inline)]
pub use crate::twa::Twa;
#[doc(inline)]
pub use crate::virt_spin::{VirtSpin, VirtSpinBackoff, VirtSpinDelay};

mutexes! {
    spin:
    FissileMutex FissileMutexGuard Fissile,
        "A waiter spins in a queue of its NUMA node; the caller supplies no node.";
    FutexMutex FutexMutexGuard Futex, "A waiter sleeps at once, and never spins before.";
    FutexAdaptiveMutex FutexAdaptiveMutexGuard FutexAdaptive,
        "A waiter spins for as long as it took on average, and sleeps then.";
    McsK42Mutex McsK42MutexGuard McsK42, "A waiter spins in a queue, on a line of its own.";
    TasMutex TasMutexGuard Tas, "A waiter spins; one byte; anybody may be overtaken for ever.";
    TasWordMutex TasWordMutexGuard TasWord,
        "A waiter spins; four bytes; anybody may be overtaken for ever.";
    TtasMutex TtasMutexGuard Ttas, "A waiter spins by reading; anybody may be overtaken for ever.";
    TtasWordMutex TtasWordMutexGuard TtasWord,
        "A waiter spins by reading; four bytes; anybody may be overtaken for ever.";
    TicketMutex TicketMutexGuard Ticket,
        "Waiters spin and are served in the order of arrival, running or not.";
    TicketPropMutex TicketPropMutexGuard TicketProp,
        "Waiters are served in the order of arrival, and spin the longer, the more are ahead.";
    TwaMutex TwaMutexGuard Twa,
        "Waiters spin and are served in the order of arrival; all but the next watch other words.";
    VirtSpinMutex VirtSpinMutexGuard VirtSpin,
        "A waiter spins, and none waits for another that is not running.";
    VirtSpinDelayMutex VirtSpinDelayMutexGuard VirtSpinDelay,
        "A waiter spins with a delay between tries; none waits for another that is not running.";
    VirtSpinBackoffMutex VirtSpinBackoffMutexGuard VirtSpinBackoff,
        "A waiter spins and backs off after a lost race; none waits for another that is not running.";
}
