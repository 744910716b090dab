//! Makes a lock of a published program for the simulator, whichever program it is
//! of. It must know no lock.

use locklab_locks::RawLock;
use locklab_sim::{Foreign, Scenario, Sim, SimError, Simulation, simulate_lock};
use std::marker::PhantomData;
use std::sync::Arc;

/// Makes a lock that the simulator can run.
pub(crate) type Make = fn() -> Arc<dyn Foreign>;

struct Simulated<L>(PhantomData<fn() -> L>);

impl<L: RawLock<Sim>> Foreign for Simulated<L> {
    fn simulate(&self, scenario: &Scenario) -> Result<Simulation, SimError> {
        simulate_lock::<L>(scenario)
    }
}

/// Makes a lock of this type.
pub(crate) fn simulated<L: RawLock<Sim>>() -> Arc<dyn Foreign> {
    Arc::new(Simulated::<L>(PhantomData))
}
