//! Holds what an execution of the engine has beside its lock: the queue nodes of CPUs and
//! the other words that belong to the platform, if the lock asks for them, and who sleeps.
//!
//! They are made by the first thread before the others begin. The first execution in which
//! a lock asks for some ends, and the exploration begins again with them.

use super::platform::Graphs;
use crate::execution::{self, MAX_THREADS};
use locklab_graph::Place;
use locklab_graph::model::{self, Location};
use locklab_locks::host::HELD_LOCKS;
use locklab_locks::platform::{Atomic, Ordering};
use locklab_locks::{HeldLocks, QueueNodes, Sleepers, VisibleReader};
use std::cell::{Cell, RefCell};
use std::mem::ManuallyDrop;

/// Words of the platform.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Words {
    Nodes,
    Readers,
    Held,
    Sleepers,
}

/// The kinds of them.
const KINDS: usize = 4;

/// The words of one execution.
#[derive(Default)]
pub(super) struct Made {
    pub(super) nodes: Lasting<QueueNodes<Graphs>>,
    pub(super) readers: Lasting<VisibleReader<Graphs>>,
    pub(super) held: Lasting<HeldLocks<Graphs>>,
    pub(super) sleepers: Lasting<Sleepers<Graphs>>,
}

/// Words that have no end within an execution.
type Lasting<T> = Vec<ManuallyDrop<T>>;

#[derive(Default)]
struct World {
    asked: Cell<[bool; KINDS]>,
    running: Cell<bool>,
    /// The number of each of the engine's threads in the model.
    cpus: RefCell<Vec<usize>>,
    /// The words by which threads of the model say that they have arrived.
    arrivals: RefCell<Vec<Location>>,
    /// Whether the model asked for what is not here.
    beyond: Cell<bool>,
    made: RefCell<Option<Box<Made>>>,
    /// The word by which each thread is called when it sleeps, and how often it has slept.
    slept: RefCell<Vec<(Location, u64)>>,
}

thread_local! {
    static WORLD: World = World::default();
}

/// Forgets what the lock before has asked for.
pub(crate) fn configure() {
    WORLD.with(|world| {
        world.asked.set([false; KINDS]);
        world.beyond.set(false);
    });
}

/// Returns what locks have asked for.
pub(crate) fn asked() -> [bool; KINDS] {
    WORLD.with(|world| world.asked.get())
}

/// Returns whether an execution runs in which the lock has asked for queue nodes.
pub(crate) fn with_queue_nodes() -> bool {
    is_running() && asked()[Words::Nodes as usize]
}

/// Returns whether an execution runs.
pub(crate) fn is_running() -> bool {
    WORLD.try_with(|world| world.running.get()).unwrap_or(false)
}

/// Begins an execution; called first in the model's main thread.
pub(crate) fn begin() {
    let asked = asked();
    let many = |kind: Words| if asked[kind as usize] { MAX_THREADS } else { 0 };
    fn make<T: Default>(count: usize) -> Lasting<T> {
        (0..count)
            .map(|_| ManuallyDrop::new(T::default()))
            .collect()
    }
    let used = |cpu| ManuallyDrop::new(QueueNodes::used(execution::levels_in_use(cpu)));
    let made = Made {
        nodes: (0..many(Words::Nodes)).map(used).collect(),
        readers: make(many(Words::Readers).min(execution::readers_with_an_entry())),
        held: make(many(Words::Held)),
        sleepers: make(many(Words::Sleepers).min(1)),
    };
    let words = || (0..MAX_THREADS).map(|_| Location::new(8));
    let slept = words().map(|word| (word, 0)).collect();
    let arrivals = words().collect();
    WORLD.with(|world| {
        world.running.set(true);
        *world.cpus.borrow_mut() = vec![0];
        *world.arrivals.borrow_mut() = arrivals;
        *world.made.borrow_mut() = Some(Box::new(made));
        *world.slept.borrow_mut() = slept;
    });
}

/// Ends it.
pub(crate) fn end() {
    WORLD.with(|world| world.running.set(false));
}

/// Returns words of the platform.
pub(super) fn words<T>(
    kind: Words,
    which: fn(&Made) -> &[ManuallyDrop<T>],
) -> &'static [ManuallyDrop<T>] {
    let made = WORLD.with(|world| {
        let mut asked = world.asked.get();
        let known = std::mem::replace(&mut asked[kind as usize], true);
        world.asked.set(asked);
        let made = world.made.borrow();
        made.as_deref().filter(|_| known).map(std::ptr::from_ref)
    });
    match made {
        // SAFETY: they stay until the next execution begins, when no thread of this one
        // runs any more.
        Some(made) => which(unsafe { &*made }),
        None => model::error("a lock asks for words of the platform", Place::here()),
    }
}

/// Returns the number of the thread that runs, in the model.
pub(crate) fn cpu() -> usize {
    let thread = model::thread_id();
    WORLD.with(|world| world.cpus.borrow().get(thread).copied().unwrap_or(0))
}

/// Numbers the thread that runs.
pub(crate) fn set_cpu(cpu: usize) {
    let thread = model::thread_id();
    WORLD.with(|world| {
        let mut cpus = world.cpus.borrow_mut();
        let room = cpus.len().max(thread + 1);
        cpus.resize(room, 0);
        cpus[thread] = cpu;
    });
}

/// Tells the others that a thread has arrived.
pub(crate) fn arrive(cpu: usize) {
    let word = WORLD.with(|world| world.arrivals.borrow()[cpu]);
    // Pairs with the wait of `await_arrival`.
    model::store(word, 1, Ordering::Release, Place::here());
}

/// Waits for that.
pub(crate) fn await_arrival(cpu: usize) {
    let word = WORLD.with(|world| world.arrivals.borrow()[cpu]);
    let arrived = |value| value != 0;
    // Pairs with the store of `arrive`.
    model::await_load(word, Ordering::Acquire, Place::here(), arrived);
}

/// Chooses between two, each of which is explored.
pub(crate) fn choose() -> bool {
    model::choose(2, Place::here()) == 1
}

/// Ends the exploration if the engine runs it: the model does what only loom can.
pub(crate) fn is_beyond() {
    if is_running() {
        WORLD.with(|world| world.beyond.set(true));
        model::error("a model of loom alone", Place::here());
    }
}

/// Returns whether the model does.
pub(crate) fn was_beyond() -> bool {
    WORLD.with(|world| world.beyond.get())
}

/// Returns what a CPU has not given back, if it holds no lock. Only one thread is left.
pub(crate) fn left_behind() -> Option<&'static str> {
    let made = WORLD.with(|world| world.made.borrow().as_deref().map(std::ptr::from_ref));
    // SAFETY: as in `words`.
    let made = unsafe { &*made? };
    let mut nodes = made.nodes.iter().enumerate();
    if nodes.any(|(cpu, nodes)| nodes.in_use() != execution::levels_in_use(cpu)) {
        return Some("a queue node of a CPU is not given back");
    }
    let sleeps = made.sleepers.iter().any(|place| {
        // SAFETY: looked at only.
        let queue = unsafe { place.queue() };
        let head = queue.first.word().load(Ordering::Relaxed);
        !head.is_null() || queue.lock.load(Ordering::Relaxed) != 0
    });
    if sleeps {
        return Some("a thread is still in a queue of sleepers");
    }
    let left = made.held.iter().any(|held| {
        // SAFETY: looked at only.
        let table = unsafe { held.table() };
        let waits = table.state.load(Ordering::Relaxed) & HELD_LOCKS != 0;
        waits
            || table
                .locks
                .iter()
                .any(|lock| lock.load(Ordering::Relaxed) != 0)
    });
    if left {
        return Some("a CPU is said to hold or await a lock");
    }
    let reads = made.readers.iter().any(|reader| {
        // SAFETY: looked at only.
        unsafe { reader.lock() }.load(Ordering::Relaxed) != 0
    });
    reads.then_some("a CPU is said to read a lock")
}

/// Notes that a thread sleeps, and returns how often it has done so.
pub(super) fn sleeps(thread: usize) -> u64 {
    WORLD.with(|world| {
        let times = &mut world.slept.borrow_mut()[thread].1;
        *times += 1;
        *times
    })
}

/// Returns the word by which a sleeping thread is called.
pub(super) fn called(thread: usize) -> Location {
    WORLD.with(|world| world.slept.borrow()[thread].0)
}
