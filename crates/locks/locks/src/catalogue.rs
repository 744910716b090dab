//! Every lock by its name.
//!
//! The one place where a name becomes a type: backends, proofs and the
//! interposer visit a lock here and are compiled once for each.

use crate::kernel::{
    BigLock, MplockAnderson, MplockClh, MplockMcs, MplockTicket, MplockTicketPadded, QSpinlock,
    QSpinlockCna, QSpinlockPv, QSpinlockVirt, RqSpinlock,
};
use crate::native::NativePlatform;
use crate::platform::Platform;
use crate::queue::{
    Anderson, Clh, Cna, CohortBoMcs, CohortTktTkt, Hemlock, Hmcs, Malthusian, Mcs, McsTimeout,
    McsTimeoutNode, McsTp, Reciprocating,
};
use crate::raw::{Info, RawLock, TimedLock};
use crate::rw::{BravoPhaseFair, PhaseFair, RwPerCpu, RwQueued};
use crate::spin::{
    Fissile, Futex, FutexAdaptive, McsK42, Tas, TasWord, Ticket, TicketProp, Ttas, TtasWord, Twa,
    VirtSpin, VirtSpinBackoff, VirtSpinDelay,
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
    /// Says whether an acquisition needs nothing but the lock.
    pub context_free: bool,
}

impl Entry {
    /// Returns the entry of a lock.
    pub const fn of<L: RawLock<NativePlatform>>() -> Self {
        Self {
            info: L::INFO,
            bytes: size_of::<L>(),
            context_free: size_of::<L::Ctx>() == 0,
        }
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

/// An operation on a lock whose type is known only by name, by what the lock
/// can do beside what all can.
pub trait KindVisitor<P: Platform> {
    /// The result of the operation.
    type Output;

    /// Performs the operation on a lock that can no more than all can.
    fn visit<L: RawLock<P>>(self) -> Self::Output;

    /// Performs the operation on a lock with a timeout, which leaves nothing
    /// behind when it gives up.
    fn visit_timed<L: TimedLock<P>>(self) -> Self::Output;

    /// Performs the operation on a lock with a timeout that leaves its context
    /// in the queue when it gives up.
    fn visit_timed_in_queue<L: TimedLock<P, Ctx = McsTimeoutNode<P>>>(self) -> Self::Output;

    /// Performs the operation on a lock that readers share.
    fn visit_shared<L: RawLock<P, Ctx = ()> + RawRwLockDowngrade>(self) -> Self::Output;

    /// Performs the operation on a big lock.
    fn visit_big<L: BigLock<P>>(self) -> Self::Output;
}

/// Lists the locks, each as `Type`, with its constant parameters as `Type[N]`,
/// and with those of a model of the checker as `Type[N] => [M]`, where `CPUS` is
/// the model's number of CPUs. A lock with a timeout has the method of
/// [`KindVisitor`] behind it.
macro_rules! catalogue {
    (
        locks { $($lock:ident $([$($constant:expr),+])? $(=> [$($small:expr),+])? $(: $kind:ident)?,)* }
        shared_locks { $($shared:ident $([$($shared_constant:expr),+])? $(=> [$($shared_small:expr),+])?,)* }
        big_locks { $($big:ident $([$($big_constant:expr),+])? $(=> [$($big_small:expr),+])?,)* }
    ) => {
        /// Every lock, in the order in which tables show them.
        pub const ALL: &[Entry] = &[
            $(Entry::of::<$lock<NativePlatform $($(, { $constant })+)?>>(),)*
            $(Entry::of::<$shared<NativePlatform $($(, { $shared_constant })+)?>>(),)*
            $(Entry::of::<$big<NativePlatform $($(, { $big_constant })+)?>>(),)*
        ];

        // Each can be a static, or it does not compile.
        $(const _: () = {
            static _LOCK: $lock<NativePlatform $($(, { $constant })+)?> = $lock::new();
        };)*
        $(const _: () = {
            static _LOCK: $shared<NativePlatform $($(, { $shared_constant })+)?> = $shared::new();
        };)*
        $(const _: () = {
            static _LOCK: $big<NativePlatform $($(, { $big_constant })+)?> = $big::new();
        };)*

        /// Visits the lock called `name`, or returns `None` if there is none.
        pub fn visit<P: Platform, V: Visitor<P>>(name: &str, visitor: V) -> Option<V::Output> {
            $(if name == <$lock<P $($(, { $constant })+)?> as RawLock<P>>::INFO.name {
                return Some(visitor.visit::<$lock<P $($(, { $constant })+)?>>());
            })*
            $(if name == <$shared<P $($(, { $shared_constant })+)?> as RawLock<P>>::INFO.name {
                return Some(visitor.visit::<$shared<P $($(, { $shared_constant })+)?>>());
            })*
            $(if name == <$big<P $($(, { $big_constant })+)?> as RawLock<P>>::INFO.name {
                return Some(visitor.visit::<$big<P $($(, { $big_constant })+)?>>());
            })*
            None
        }

        /// Visits the lock called `name` by its kind, or returns `None` if there
        /// is none.
        pub fn visit_kind<P: Platform, V: KindVisitor<P>>(
            name: &str,
            visitor: V,
        ) -> Option<V::Output> {
            $(if name == <$lock<P $($(, { $constant })+)?> as RawLock<P>>::INFO.name {
                return Some(by_kind!(visitor $($kind)?, $lock<P $($(, { $constant })+)?>));
            })*
            $(if name == <$shared<P $($(, { $shared_constant })+)?> as RawLock<P>>::INFO.name {
                return Some(visitor.visit_shared::<$shared<P $($(, { $shared_constant })+)?>>());
            })*
            $(if name == <$big<P $($(, { $big_constant })+)?> as RawLock<P>>::INFO.name {
                return Some(visitor.visit_big::<$big<P $($(, { $big_constant })+)?>>());
            })*
            None
        }

        /// Does what [`visit_kind`] does, with the lock's parameters in a model for `CPUS`
        /// CPUs, a power of two.
        pub fn visit_model<P: Platform, const CPUS: usize, V: KindVisitor<P>>(
            name: &str,
            visitor: V,
        ) -> Option<V::Output> {
            $(if name == <$lock<P $($(, { $constant })+)?> as RawLock<P>>::INFO.name {
                return Some(by_kind!(
                    visitor $($kind)?, in_model!($lock P [$($($constant),+)?] $([$($small),+])?)
                ));
            })*
            $(if name == <$shared<P $($(, { $shared_constant })+)?> as RawLock<P>>::INFO.name {
                return Some(visitor.visit_shared::<
                    in_model!($shared P [$($($shared_constant),+)?] $([$($shared_small),+])?)
                >());
            })*
            $(if name == <$big<P $($(, { $big_constant })+)?> as RawLock<P>>::INFO.name {
                return Some(visitor.visit_big::<
                    in_model!($big P [$($($big_constant),+)?] $([$($big_small),+])?)
                >());
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

/// The method of a [`KindVisitor`] for a lock of this kind.
macro_rules! by_kind {
    ($visitor:ident, $lock:ty) => {
        $visitor.visit::<$lock>()
    };
    ($visitor:ident $kind:ident, $lock:ty) => {
        $visitor.$kind::<$lock>()
    };
}

/// The type of a lock in a model: with the constants of a model, if it has any.
macro_rules! in_model {
    ($lock:ident $platform:ident [$($constant:expr),*]) => {
        $lock<$platform $(, { $constant })*>
    };
    ($lock:ident $platform:ident [$($constant:expr),*] [$($small:expr),+]) => {
        $lock<$platform $(, { $small })+>
    };
}

catalogue! {
    locks {
        Tas: visit_timed,
        TasWord: visit_timed,
        Ttas: visit_timed,
        TtasWord: visit_timed,
        VirtSpin[1, 1]: visit_timed,
        VirtSpinDelay[8]: visit_timed,
        // Its wait is as long as it may become after one lost race.
        VirtSpinBackoff[64] => [2]: visit_timed,
        Ticket,
        TicketProp[4],
        Anderson[512] => [CPUS],
        Clh,
        Mcs,
        QSpinlock,
        QSpinlockVirt,
        QSpinlockPv[1024],
        QSpinlockCna,
        RqSpinlock: visit_timed,
        McsK42,
        McsTimeout: visit_timed_in_queue,
        McsTp: visit_timed_in_queue,
        Hemlock,
        Twa[64] => [2],
        Cna,
        Hmcs[8],
        CohortBoMcs,
        CohortTktTkt,
        Reciprocating,
        Fissile,
        Malthusian,
        Futex,
        FutexAdaptive,
    }
    shared_locks {
        RwQueued,
        PhaseFair,
        BravoPhaseFair,
        // The threads beyond the first two share a count.
        RwPerCpu[512] => [2],
    }
    big_locks {
        MplockTicket[512] => [CPUS],
        MplockTicketPadded[512] => [CPUS],
        MplockAnderson[512] => [CPUS],
        MplockClh[512] => [CPUS],
        MplockMcs[512] => [CPUS],
    }
}
