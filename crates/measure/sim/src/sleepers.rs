//! Holds the places where simulated threads sleep by the address of their lock.
//!
//! A lock's waiters sleep in a queue of a table that all locks share; here that is in
//! simulated memory, so that its lines move as they do in a program.

use crate::arena::Arena;
use crate::engine::{Engine, engine};
use locklab_locks::platform::Platform;
use locklab_locks::{Sleepers, place_of};

/// Number of places, as in programs.
const PLACES: usize = 256;

type Table<P> = [Sleepers<P>; PLACES];

/// Returns the number of lines of the table.
pub(crate) fn lines<P: Platform>() -> usize {
    Arena::lines_for::<Table<P>>()
}

/// Places an engine's table in its arena.
pub(crate) fn place<P: Platform>(engine: &Engine) {
    let table: Table<P> = std::array::from_fn(|_| Sleepers::default());
    let table: *const Table<P> = engine.memory.arena.place("queues of sleepers", table);
    engine.sleepers.set(table.cast());
}

/// Returns the place of an address; none if there is no table. The platform is the
/// simulator's, or one whose words are those in a transparent wrapper.
pub(crate) fn of<P: Platform>(address: usize) -> Option<&'static Sleepers<P>> {
    let engine = engine();
    let table = engine.sleepers.get().cast::<Table<P>>();
    // It is found by its place in simulated memory: where that lies differs from run to run.
    let place = place_of(engine.memory.place_of(address), PLACES);
    // SAFETY: null, or placed in the engine's arena as so many words, and used only by coroutines, which do not outlive it.
    unsafe { table.as_ref() }.map(|table| &table[place])
}
