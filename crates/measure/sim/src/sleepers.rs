//! Holds the places where simulated threads sleep by the address of their lock.
//!
//! A lock's waiters sleep in a queue of a table that all locks share; here that is in
//! simulated memory, so that its lines move as they do in a program. The catalogue's locks and
//! the crate parking_lot keep different queues, so each has a table.

use crate::arena::Arena;
use crate::engine::{Engine, engine};
use crate::libraries::Bucket;
use crate::platform::Sim;
use locklab_locks::platform::Platform;
use locklab_locks::{Sleepers, place_of};

/// Number of places of each table. The crate has as many where some 40 threads sleep: three
/// for each, and then the next power of two.
const PLACES: usize = 128;

/// Both tables.
#[repr(C)]
struct Tables<P: Platform> {
    sleepers: [Sleepers<P>; PLACES],
    buckets: [Bucket; PLACES],
}

/// Returns the number of lines of the tables.
pub(crate) fn lines<P: Platform>() -> usize {
    Arena::lines_for::<Tables<P>>()
}

/// Places an engine's tables in its arena.
pub(crate) fn place<P: Platform>(engine: &Engine) {
    let tables: Tables<P> = Tables {
        sleepers: std::array::from_fn(|_| Sleepers::default()),
        buckets: std::array::from_fn(|_| Bucket::default()),
    };
    let tables: *const Tables<P> = engine.memory.arena.place("queues of sleepers", tables);
    engine.sleepers.set(tables.cast());
}

/// Returns the tables' entry of an address.
fn entry(engine: &Engine, address: usize) -> usize {
    // It is found by its place in simulated memory: where that lies differs from run to run.
    place_of(engine.memory.place_of(address), PLACES)
}

/// Returns the place of an address; none if there is no table. The platform is the
/// simulator's, or one whose words are those in a transparent wrapper.
pub(crate) fn of<P: Platform>(address: usize) -> Option<&'static Sleepers<P>> {
    let engine = engine();
    let tables = engine.sleepers.get().cast::<Tables<P>>();
    // SAFETY: null, or placed in the engine's arena as so many words, and used only by coroutines, which do not outlive it.
    unsafe { tables.as_ref() }.map(|tables| &tables.sleepers[entry(engine, address)])
}

/// Returns the bucket of an address.
///
/// # Panics
/// If there is no table: a lock that sleeps has one.
pub(crate) fn bucket_of(address: usize) -> &'static Bucket {
    let engine = engine();
    let tables = engine.sleepers.get().cast::<Tables<Sim>>();
    // SAFETY: as above; words in a wrapper lie where those of the simulator do.
    let tables = unsafe { tables.as_ref() }.expect("a lock that sleeps has the table");
    &tables.buckets[entry(engine, address)]
}
