//! Holds the places where simulated threads sleep by the address of their lock.
//!
//! A lock's waiters sleep in a queue of a table that all locks share; here that is in
//! simulated memory, so that its lines move as they do in a program. The catalogue's locks and
//! the crate parking_lot keep different queues, so each has a table.

use crate::arena::Arena;
use crate::engine::{Engine, engine};
use locklab_locks::platform::Platform;
use locklab_locks::{Sleepers, host::place_of};

/// Number of places of each table. The crate has as many where some 40 threads sleep: three
/// for each, and then the next power of two.
const PLACES: usize = 128;

/// The tables: that of the catalogue's locks, and one whose entries its user knows.
#[repr(C)]
struct Tables<P: Platform, B> {
    sleepers: [Sleepers<P>; PLACES],
    buckets: [B; PLACES],
}

/// Returns the number of lines of the tables.
pub(crate) fn lines<P: Platform, B>() -> usize {
    Arena::lines_for::<Tables<P, B>>()
}

/// Places an engine's tables in its arena.
pub(crate) fn place<P: Platform, B: Default>(engine: &Engine) {
    let tables: Tables<P, B> = Tables {
        sleepers: std::array::from_fn(|_| Sleepers::default()),
        buckets: std::array::from_fn(|_| B::default()),
    };
    let tables: *const Tables<P, B> = engine.memory.arena.place("queues of sleepers", tables);
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
    // It is the first of both.
    let table = engine.sleepers.get().cast::<[Sleepers<P>; PLACES]>();
    // SAFETY: null, or placed in the engine's arena as so many words, and used only by coroutines, which do not outlive it.
    unsafe { table.as_ref() }.map(|table| &table[entry(engine, address)])
}

/// Returns the bucket of an address; the types are those with which the tables were placed, or
/// words in a wrapper that lie where those do.
///
/// # Panics
/// If there is no table: a lock that sleeps has one.
pub(crate) fn bucket_of<P: Platform, B: 'static>(address: usize) -> &'static B {
    let engine = engine();
    let tables = engine.sleepers.get().cast::<Tables<P, B>>();
    // SAFETY: as above.
    let tables = unsafe { tables.as_ref() }.expect("a lock that sleeps has the table");
    &tables.buckets[entry(engine, address)]
}
