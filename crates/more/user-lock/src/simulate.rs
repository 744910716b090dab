//! A compiled lock in the simulator: each access that it reports is an event.
//!
//! An unmodified spin loop sleeps where it can be shown to repeat
//! ([`crate::repeat`]).

mod hooks;
mod pool;
mod world;

use crate::inspect::{self, Facts};
use crate::isolate::{self, CPU, SITE};
use crate::library::{Library, Sites};
use crate::repeat::Loop;
use hooks::{HOOKS, load};
use locklab_locks::{Info, RawLock};
use locklab_sim::by_address::{self, Memory};
use locklab_sim::{Scenario, Sim, SimError, Simulation, simulate_outside};
use pool::Pool;
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::sync::atomic::Ordering;
use world::{WORLD, World, with};

/// The result of a simulation in a child.
#[derive(Serialize, Deserialize)]
pub(crate) enum Answer {
    /// It has an outcome.
    Well(Box<Simulation>),
    /// The lock does not work, or cannot be simulated in this scenario.
    Badly(String),
}

/// Simulates the lock in `library`; runs in a child process of its own.
pub(crate) fn simulate(library: &Path, facts: &Facts, scenario: &Scenario) -> Answer {
    let loaded = match Library::load(library, "locklab_hooks", HOOKS) {
        Ok(loaded) => loaded,
        Err(e) => return Answer::Badly(e.to_string()),
    };
    isolate::watch_code(loaded.base, &loaded.code);
    let sites = Sites::new(&loaded, library);
    let pool = Pool::new(facts, scenario);
    let regions = pool.regions(&loaded);
    let world = Box::new(World {
        sites: Sites::new(&loaded, library),
        library: loaded,
        pool,
        cpus: (0..scenario.threads).map(|_| Loop::default()).collect(),
        quiet: false,
    });
    WORLD.store(Box::into_raw(world), Ordering::Relaxed);
    let place_of = |site| sites.line(site);
    let memory = Memory {
        regions,
        place_of: Some(&place_of),
    };
    let outcome = if facts.readers_share {
        simulate_outside::<Simulated<true>>(scenario, memory, Simulated::is_held)
    } else {
        simulate_outside::<Simulated<false>>(scenario, memory, Simulated::is_held)
    };
    match outcome {
        Ok(simulation) => Answer::Well(Box::new(simulation)),
        Err(error) => Answer::Badly(explain(error, &sites)),
    }
}

/// Returns the error, with the line of the file where the simulator cannot know it.
fn explain(error: SimError, sites: &Sites) -> String {
    let line = |site: usize| sites.line(site).unwrap_or_else(|| "its code".into());
    let last = SITE.load(Ordering::Relaxed);
    match &error {
        SimError::Outside { address } => {
            let cpu = CPU.load(Ordering::Relaxed);
            format!(
                "CPU {cpu} crashed at {} (address {address:#x}, which is neither the lock's nor a \
                 context's nor static data)",
                line(last)
            )
        }
        SimError::TwoHolders { .. } => format!("{error}; it came in at {}", line(last)),
        _ => error.to_string(),
    }
}

/// A lock in the pool, for the simulator's workloads.
struct Simulated<const SHARED: bool> {
    address: usize,
}

// SAFETY: a simulation is one thread.
unsafe impl<const SHARED: bool> Send for Simulated<SHARED> {}
// SAFETY: as above.
unsafe impl<const SHARED: bool> Sync for Simulated<SHARED> {}

/// A context in the pool.
struct Context(usize);

impl<const SHARED: bool> Default for Simulated<SHARED> {
    fn default() -> Self {
        with(|world| {
            let pool = &world.pool;
            let n = pool.locks_given.replace(pool.locks_given.get() + 1);
            Self {
                address: pool.start() + n * pool.lock,
            }
        })
    }
}

impl Default for Context {
    fn default() -> Self {
        with(|world| {
            let pool = &world.pool;
            let n = pool.contexts_given.replace(pool.contexts_given.get() + 1);
            Self(pool.start() + pool.locks * pool.lock + n * pool.ctx)
        })
    }
}

impl<const SHARED: bool> Simulated<SHARED> {
    /// Calls the lock's code.
    #[inline(never)]
    fn call<R>(&self, f: impl FnOnce(&Library) -> R) -> R {
        let marker = 0_u8;
        let entry = std::ptr::from_ref(&marker) as usize;
        let cpu = by_address::cpu();
        CPU.store(cpu, Ordering::Relaxed);
        let library = with(|world| {
            world.cpus[cpu].enter(entry);
            world.library.clone()
        });
        f(&library)
    }

    /// Returns whether the lock is held.
    fn is_held(&self) -> bool {
        self.call(|library| match library.is_locked {
            // SAFETY: the lock in its place.
            Some(ask) => unsafe { ask(self.address as *const _) != 0 },
            None => {
                let word = self.address / 4 * 4;
                load(word, 4, 0, 0) != 0
            }
        })
    }
}

// SAFETY: exclusion is what a simulation finds out; the engine itself relies
// on nothing.
unsafe impl<const SHARED: bool> RawLock<Sim> for Simulated<SHARED> {
    type Ctx = Context;

    const INFO: Info = Info {
        readers_share: SHARED,
        ..inspect::INFO
    };

    fn settle(&self) {
        if let Some(init) = with(|world| world.library.init) {
            with(|world| world.quiet = true);
            // SAFETY: the lock in its place, before its first use.
            unsafe { init(self.address as *mut _) };
            with(|world| world.quiet = false);
        }
    }

    unsafe fn lock(&self, ctx: &Context) {
        // SAFETY: the caller's promise, passed on.
        self.call(|library| unsafe { (library.lock)(self.address as *mut _, ctx.0 as *mut _) });
    }

    unsafe fn unlock(&self, ctx: &Context) {
        // SAFETY: the caller's promise, passed on.
        self.call(|library| unsafe { (library.unlock)(self.address as *mut _, ctx.0 as *mut _) });
    }

    unsafe fn read_lock(&self, ctx: &Context) {
        self.call(|library| {
            // SAFETY: the caller's promise, passed on.
            unsafe { (library.read_lock)(self.address as *mut _, ctx.0 as *mut _) }
        });
    }

    unsafe fn read_unlock(&self, ctx: &Context) {
        self.call(|library| {
            // SAFETY: the caller's promise, passed on.
            unsafe { (library.read_unlock)(self.address as *mut _, ctx.0 as *mut _) }
        });
    }
}
