//! Every model by its name, which is that of the library's own lock where Locklab can measure
//! it, and the names that models had before.
//!
//! The visitors are those of the public catalogue, so that a backend treats a model as it
//! treats any lock.

use crate::native::NativePlatform;
use crate::platform::Platform;
use crate::raw::RawLock;
use crate::{
    AbseilMutex, GlibcAdaptive, GlibcRw, GoMutex, MuslMutex, ParkingLotMutex, ParkingLotRw, Srw,
    StdMutex, StdRw, SwiftMutex,
};
use locklab_locks::catalogue::{Entry, KindVisitor, Visitor};

/// Names of earlier versions, each with the name that the lock has now.
pub const RENAMED: [(&str, &str); 7] = [
    ("std-mutex", "std"),
    ("std-rw", "std-rwlock"),
    ("parkinglot-mutex", "parking_lot"),
    ("parkinglot-rw", "parking_lot-rwlock"),
    ("glibc-adaptive", "pthread-adaptive"),
    ("glibc-rw", "pthread-rwlock"),
    ("glibc-rw-w", "pthread-rwlock-w"),
];

/// Returns the name that a lock has now, by that name or by one that it had before.
pub fn current_name(name: &str) -> &str {
    let renamed = RENAMED.iter().find(|(before, _)| *before == name);
    renamed.map_or(name, |(_, now)| now)
}

/// Lists the models as the public catalogue lists its locks: `Type[N] => [M]`, the second
/// constants for the model checker.
macro_rules! catalogue {
    ($($group:ident by $visit:ident {
        $($lock:ident $([$($constant:expr),+])? $(=> [$($small:expr),+])?,)*
    })*) => {
        /// Every model, in the order in which tables show them.
        pub const ALL: &[Entry] = &[
            $($(Entry::of::<$lock<NativePlatform $($(, { $constant })+)?>>(),)*)*
        ];

        /// Visits the model called `name`, or returns `None` if there is none.
        pub fn visit<P: Platform, V: Visitor<P>>(name: &str, visitor: V) -> Option<V::Output> {
            $($(if name == <$lock<P $($(, { $constant })+)?> as RawLock<P>>::INFO.name {
                return Some(visitor.visit::<$lock<P $($(, { $constant })+)?>>());
            })*)*
            None
        }

        /// Visits the model called `name` by its kind, with the constants for the model
        /// checker, or returns `None` if there is none.
        pub fn visit_model<P: Platform, V: KindVisitor<P>>(
            name: &str,
            visitor: V,
        ) -> Option<V::Output> {
            $($(if name == <$lock<P $($(, { $constant })+)?> as RawLock<P>>::INFO.name {
                return Some(visitor.$visit::<
                    small!($lock P [$($($constant),+)?] $([$($small),+])?)
                >());
            })*)*
            None
        }
    };
}

/// The type of a model for the model checker.
macro_rules! small {
    ($lock:ident $platform:ident [$($constant:expr),*]) => {
        $lock<$platform $(, { $constant })*>
    };
    ($lock:ident $platform:ident [$($constant:expr),*] [$($small:expr),+]) => {
        $lock<$platform $(, { $small })+>
    };
}

catalogue! {
    locks by visit {
        GlibcAdaptive[100] => [2],
        MuslMutex,
        StdMutex,
        ParkingLotMutex[10] => [2],
        GoMutex[4] => [2],
        SwiftMutex[20] => [2],
    }
    shared_locks by visit_shared {
        StdRw,
        ParkingLotRw[10] => [2],
        GlibcRw[false],
        GlibcRw[true],
        Srw[1024] => [2],
        AbseilMutex[1500] => [2],
    }
}
