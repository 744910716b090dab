//! Every lock by its name.
//!
//! The one place where a name becomes a type: instruments, proofs and the
//! interposer visit a lock here and are compiled once for each.

use crate::native::NativePlatform;
use crate::platform::Platform;
use crate::raw::{Info, RawLock};
use crate::{
    Anderson, BigLock, BravoPhaseFair, Clh, Cna, CohortBoMcs, CohortTktTkt, Fissile, Futex,
    FutexAdaptive, Hemlock, Hmcs, Malthusian, Mcs, McsK42, McsTimeout, McsTp, MplockAnderson,
    MplockClh, MplockMcs, MplockTicket, MplockTicketPadded, PhaseFair, QSpinlock, QSpinlockCna,
    QSpinlockPv, QSpinlockVirt, Reciprocating, RqSpinlock, RwPerCpu, RwQueued, Tas, TasWord,
    Ticket, TicketProp, Ttas, TtasWord, Twa, VirtSpin, VirtSpinBackoff, VirtSpinDelay,
};
use lock_api::RawRwLockDowngrade;

/// An operation on a lock whose type is known only by name.
pub trait Visitor<P: Platform> {
    /// The result of the operation.
    type Output;

    /// Performs the operation.
    fn visit<L: RawLock<P>>(self) -> Self::Output;
}

/// The catalogue's entry for a lock.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// The lock's own description.
    pub info: Info,
    /// Size of the lock in bytes, on this machine.
    pub bytes: usize,
    /// Whether an acquisition needs nothing but the lock.
    pub context_free: bool,
}

const fn entry<L: RawLock<NativePlatform>>() -> Entry {
    Entry {
        info: L::INFO,
        bytes: size_of::<L>(),
        context_free: size_of::<L::Ctx>() == 0,
    }
}

/// An operation on a lock that readers share, whose type is known only by name.
pub trait SharedVisitor<P: Platform> {
    /// The result of the operation.
    type Output;

    /// Performs the operation.
    fn visit<L: RawLock<P, Ctx = ()> + RawRwLockDowngrade>(self) -> Self::Output;
}

/// An operation on a big lock whose type is known only by name.
pub trait BigVisitor<P: Platform> {
    /// The result of the operation.
    type Output;

    /// Performs the operation.
    fn visit<L: BigLock<P>>(self) -> Self::Output;
}

/// Lists the locks as `Type` or, with constant parameters, `Type[N]`.
macro_rules! catalogue {
    (
        locks { $($lock:ident $([$($constant:expr),+])?,)* }
        shared_locks { $($shared:ident $([$($shared_constant:expr),+])?,)* }
        sleeping_locks { $($sleeping:ident,)* }
        big_locks { $($big:ident $([$($big_constant:expr),+])?,)* }
    ) => {
        /// Every lock, in the order in which tables show them.
        pub const ALL: &[Entry] = &[
            $(entry::<$lock<NativePlatform $($(, { $constant })+)?>>(),)*
            $(entry::<$shared<NativePlatform $($(, { $shared_constant })+)?>>(),)*
            $(entry::<$sleeping<NativePlatform>>(),)*
            $(entry::<$big<NativePlatform $($(, { $big_constant })+)?>>(),)*
        ];

        /// Visits the lock called `name`, or returns `None` if there is none.
        pub fn visit<P: Platform, V: Visitor<P>>(name: &str, visitor: V) -> Option<V::Output> {
            $(if name == <$lock<P $($(, { $constant })+)?> as RawLock<P>>::INFO.name {
                return Some(visitor.visit::<$lock<P $($(, { $constant })+)?>>());
            })*
            $(if name == <$shared<P $($(, { $shared_constant })+)?> as RawLock<P>>::INFO.name {
                return Some(visitor.visit::<$shared<P $($(, { $shared_constant })+)?>>());
            })*
            $(if name == <$sleeping<P> as RawLock<P>>::INFO.name {
                return Some(visitor.visit::<$sleeping<P>>());
            })*
            $(if name == <$big<P $($(, { $big_constant })+)?> as RawLock<P>>::INFO.name {
                return Some(visitor.visit::<$big<P $($(, { $big_constant })+)?>>());
            })*
            None
        }

        /// Visits the lock called `name` that readers share, or returns `None`
        /// if there is none, which holds for all others.
        pub fn visit_shared<P: Platform, V: SharedVisitor<P>>(
            name: &str,
            visitor: V,
        ) -> Option<V::Output> {
            $(if name == <$shared<P $($(, { $shared_constant })+)?> as RawLock<P>>::INFO.name {
                return Some(visitor.visit::<$shared<P $($(, { $shared_constant })+)?>>());
            })*
            None
        }

        /// Visits the big lock called `name`, or returns `None` if there is
        /// none, which holds for every lock that is not a big one.
        pub fn visit_big<P: Platform, V: BigVisitor<P>>(
            name: &str,
            visitor: V,
        ) -> Option<V::Output> {
            $(if name == <$big<P $($(, { $big_constant })+)?> as RawLock<P>>::INFO.name {
                return Some(visitor.visit::<$big<P $($(, { $big_constant })+)?>>());
            })*
            None
        }
    };
}

catalogue! {
    locks {
        Tas,
        TasWord,
        Ttas,
        TtasWord,
        VirtSpin[1, 1],
        VirtSpinDelay[8],
        VirtSpinBackoff[64],
        Ticket,
        TicketProp[4],
        Anderson[512],
        Clh,
        Mcs,
        QSpinlock,
        QSpinlockVirt,
        QSpinlockPv[1024],
        QSpinlockCna,
        RqSpinlock,
        McsK42,
        McsTimeout,
        McsTp,
        Hemlock,
        Twa[64],
        Cna,
        Hmcs[8],
        CohortBoMcs,
        CohortTktTkt,
        Reciprocating,
        Fissile,
        Malthusian,
    }
    shared_locks {
        RwQueued,
        PhaseFair,
        BravoPhaseFair,
        RwPerCpu[512],
    }
    sleeping_locks {
        Futex,
        FutexAdaptive,
    }
    big_locks {
        MplockTicket[512],
        MplockTicketPadded[512],
        MplockAnderson[512],
        MplockClh[512],
        MplockMcs[512],
    }
}
