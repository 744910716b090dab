//! Every lock by its name.
//!
//! The one place where a name becomes a type: instruments, proofs and the
//! interposer visit a lock here and are compiled once for each.

use crate::native::NativePlatform;
use crate::platform::Platform;
use crate::raw::{Info, RawLock};
use crate::{Mcs, QSpinlock, Ticket};

/// Something to do with a lock whose type is known only by name.
pub trait Visitor<P: Platform> {
    /// What comes of it.
    type Output;

    /// Does it.
    fn visit<L: RawLock<P>>(self) -> Self::Output;
}

/// What the catalogue says of a lock.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// What the lock says of itself.
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

/// Lists the locks as `Type` or, with constant parameters, `Type[N]`.
macro_rules! catalogue {
    ($($lock:ident $([$($constant:expr),+])?,)*) => {
        /// Every lock, in the order in which tables show them.
        pub const ALL: &[Entry] = &[
            $(entry::<$lock<NativePlatform $($(, { $constant })+)?>>()),*
        ];

        /// Visits the lock called `name`, or gives `None` if there is none.
        pub fn visit<P: Platform, V: Visitor<P>>(name: &str, visitor: V) -> Option<V::Output> {
            $({
                type This<P> = $lock<P $($(, { $constant })+)?>;
                if name == <This<P> as RawLock<P>>::INFO.name {
                    return Some(visitor.visit::<This<P>>());
                }
            })*
            None
        }
    };
}

catalogue! {
    Ticket,
    Mcs,
    QSpinlock,
}
