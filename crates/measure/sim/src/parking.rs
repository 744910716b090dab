//! The simulator as what a parking lot is built on: any lock of the catalogue
//! whose waiters spin for a while and then sleep, by the code that programs run.

use crate::arena::Arena;
use crate::engine::{Engine, engine};
use crate::own_stores::drain_all;
use crate::platform::{Sim, Word};
use crate::scheduler::{enter_call, kick};
use crate::sleepers;
use locklab_locks::platform::{Atomic, Platform};
use locklab_locks::{
    Parking, QueueNodes, Sleepers, VisibleReader, host::Bucket, host::ParkingWorld,
};

/// Number of buckets, as in programs.
const BUCKETS: usize = 256;
/// Sets how long the sleeper's fence waits for the stores of other CPUs, cycles.
const PATIENCE: u64 = 20_000;

/// Parking on the simulator.
pub(crate) struct Lot;

/// The number of sleepers; in simulated memory, on a line of its own.
type Parked = Word<u32>;
/// The buckets of a parking lot.
type Buckets = [Bucket<Word<u32>>; BUCKETS];

/// Returns the number of lines of a parking lot.
pub(crate) fn lines() -> usize {
    Arena::lines_for::<Parked>() + Arena::lines_for::<Buckets>()
}

/// Places an engine's parking lot in its arena.
pub(crate) fn place(engine: &Engine) {
    let arena = &engine.memory.arena;
    let parked: *const Parked = arena.place("sleepers", Word::new(0));
    let buckets: Buckets = std::array::from_fn(|_| Bucket::new());
    let buckets: *const Buckets = arena.place("parking lot", buckets);
    engine.lot.set((parked.cast(), buckets.cast()));
}

// SAFETY: the counter and the table of this engine, placed in its arena before
// any lock runs; the rest is the simulator's own platform.
unsafe impl ParkingWorld for Lot {
    type Base = Sim;

    fn parked() -> &'static Word<u32> {
        let (parked, _) = engine().lot.get();
        // SAFETY: placed in the engine's arena, and used only by coroutines,
        // which do not outlive it.
        unsafe { &*parked.cast::<Parked>() }
    }

    fn bucket(address: *const ()) -> &'static Bucket<Word<u32>> {
        let engine = engine();
        let (_, buckets) = engine.lot.get();
        let place = engine.memory.place_of(address as usize) as u64;
        let hash = (place >> 2).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        // SAFETY: as above.
        let buckets = unsafe { &*buckets.cast::<Buckets>() };
        &buckets[(hash >> 56) as usize % BUCKETS]
    }

    fn light_fence() {}

    /// Makes every CPU's stores before it visible, as by `membarrier`: the
    /// sleeper waits for them.
    fn heavy_fence() {
        let engine = engine();
        drain_all(engine);
        let after = enter_call(engine, engine.hypervisor.call);
        let until = engine.time.get() + PATIENCE;
        for cpu in &engine.cpus {
            while !cpu.stores.is_empty() && engine.time.get() < until {
                engine.time.set(engine.time.get() + 50);
                engine.sync();
            }
        }
        engine.time.set(engine.time.get() + after);
    }

    fn wait(word: &Word<u32>, expected: u32) {
        Sim::wait(word, expected);
    }

    fn wake_all(word: &Word<u32>) {
        kick::<Sim>(engine(), word.address(), usize::MAX);
    }

    fn queue_nodes(cpu: usize) -> &'static QueueNodes<Parking<Self>> {
        // SAFETY: as above; placed as nodes of this platform.
        unsafe { &*engine().cpus[cpu].nodes.get().cast() }
    }

    fn sleepers(address: usize) -> Option<&'static Sleepers<Parking<Self>>> {
        sleepers::of(address)
    }

    fn visible_readers() -> &'static [VisibleReader<Parking<Self>>] {
        let (first, count) = engine().visible.get();
        if first.is_null() {
            return &[];
        }
        // SAFETY: as above; so many were placed one after the other.
        unsafe { std::slice::from_raw_parts(first.cast(), count) }
    }
}
