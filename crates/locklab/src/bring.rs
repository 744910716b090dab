//! A lock of the user's own in Rust: their crate implements `RawLock<P>` for
//! any platform `P`, and a harness of one line ([`bring!`](crate::bring)) is
//! the whole command, with that lock in it.
//!
//! Must not know any lock.

use locklab_locks::RawLock;
use locklab_native::LockCode;
use locklab_native::subject::{self, Subject};
use locklab_sim::{Foreign, Scenario, Simulation, simulate_lock};
use locklab_verify::{Candidate, Property, properties};
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, PoisonError};

pub use locklab_locks::NativePlatform;
pub use locklab_sim::Sim;
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

/// Has every command find a lock: its type on this machine's own CPUs, on the
/// simulator's, and on the checker's.
pub fn lock<N, S, C>()
where
    N: RawLock<NativePlatform>,
    S: RawLock<Sim>,
    C: RawLock<Loom>,
{
    let name = N::INFO.name;
    let subject = Subject {
        info: N::INFO,
        bytes: size_of::<N>(),
        context_free: size_of::<N::Ctx>() == 0,
        peer: false,
    };
    subject::register(subject, LockCode::of::<N>());
    locklab_sim::register(name, Arc::new(Simulated::<S>(PhantomData)));
    let mut brought = BROUGHT.lock().unwrap_or_else(PoisonError::into_inner);
    brought.push((name, properties::<C>));
}

pub use crate::command_line::main as run;

struct Simulated<L>(PhantomData<fn() -> L>);

impl<L: RawLock<Sim>> Foreign for Simulated<L> {
    fn simulate(&self, scenario: &Scenario) -> Result<Simulation, String> {
        simulate_lock::<L>(scenario).map_err(|e| e.to_string())
    }
}

type Promises = fn() -> Vec<Property>;

static BROUGHT: Mutex<Vec<(&'static str, Promises)>> = Mutex::new(Vec::new());

/// The locks that were brought, by name.
pub(crate) fn names() -> Vec<&'static str> {
    let brought = BROUGHT.lock().unwrap_or_else(PoisonError::into_inner);
    brought.iter().map(|(name, _)| *name).collect()
}

/// The lock of this name for the checker, if it was brought.
pub(crate) fn candidate(name: &str) -> Option<Candidate> {
    let brought = BROUGHT.lock().unwrap_or_else(PoisonError::into_inner);
    let (_, promises) = brought.iter().find(|(brought, _)| *brought == name)?;
    Some(Candidate {
        name: name.to_owned(),
        properties: promises(),
        drawn: false,
    })
}
