//! A lock of the user's own in Rust, found by its name wherever a lock of the
//! catalogue is: on this machine's own CPUs, in the simulator and by the
//! checker.
//!
//! It must not refer to any particular lock.

use locklab_locks::{NativePlatform, RawLock};
use locklab_native::LockCode;
use locklab_native::subject::{self, Subject};
use locklab_sim::{Foreign, Scenario, Sim, SimError, Simulation, simulate_lock};
use locklab_verify::{Candidate, Loom, Property, properties};
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, PoisonError};

type Promises = fn() -> Vec<Property>;

static REGISTERED: Mutex<Vec<(&'static str, Promises)>> = Mutex::new(Vec::new());

/// Makes every command find a lock by the name in its `INFO`: its type on
/// this machine's own CPUs, on the simulator's, and on the checker's.
pub fn bring<N, S, C>()
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
        measured: true,
    };
    subject::register(subject, LockCode::of::<N>());
    locklab_sim::register(name, Arc::new(Simulated::<S>(PhantomData)));
    let mut registered = REGISTERED.lock().unwrap_or_else(PoisonError::into_inner);
    registered.push((name, properties::<C>));
}

struct Simulated<L>(PhantomData<fn() -> L>);

impl<L: RawLock<Sim>> Foreign for Simulated<L> {
    fn simulate(&self, scenario: &Scenario) -> Result<Simulation, SimError> {
        simulate_lock::<L>(scenario)
    }
}

/// Returns the locks that have been registered.
pub fn registered() -> Vec<Subject> {
    let registered = REGISTERED.lock().unwrap_or_else(PoisonError::into_inner);
    let found = registered.iter().map(|(name, _)| subject::find(name));
    found.flatten().collect()
}

/// Returns the lock of this name for the checker, if it has been registered.
pub fn registered_candidate(name: &str) -> Option<Candidate> {
    let registered = REGISTERED.lock().unwrap_or_else(PoisonError::into_inner);
    let (_, promises) = registered
        .iter()
        .find(|(registered, _)| *registered == name)?;
    Some(Candidate {
        name: name.to_owned(),
        properties: promises(),
        drawn: false,
        mutants: Vec::new(),
    })
}
