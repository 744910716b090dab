//! A lock of the user's own in Rust: their crate implements `RawLock<P>` for
//! any platform `P`, and a harness of one line ([`bring!`](crate::bring!)) is
//! the whole command, with that lock in it.
//!
//! It must not refer to any particular lock.

pub use locklab_locks::NativePlatform;
pub use locklab_sim::Sim;
pub use locklab_user_lock::bring as lock;
pub use locklab_verify::Loom;

/// The `main` of a harness: the `locklab` command, in which these locks, each
/// a type with one parameter, the platform, are found by the names that their
/// `INFO` has.
///
/// ```no_run
/// # mod mine { pub use locklab_locks::Ticket as MyLock; }
/// locklab::bring!(mine::MyLock);
/// ```
#[macro_export]
macro_rules! bring {
    ($($($lock:ident)::+),+ $(,)?) => {
        fn main() -> ::std::process::ExitCode {
            use $crate::bring::{Loom, NativePlatform, Sim, lock, run};
            $(lock::<$($lock)::+<NativePlatform>, $($lock)::+<Sim>, $($lock)::+<Loom>>();)+
            run()
        }
    };
}

pub use crate::main as run;
