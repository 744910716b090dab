//! Holds what an execution of the engine has beside its lock: the queue nodes of CPUs and
//! the other words that belong to the platform, if the lock asks for them, and who sleeps.
//!
//! They are made by the first thread before the others begin. The first execution in which
//! a lock asks for some ends, and the exploration begins again with them.

use super::platform::Graphs;
use locklab_graph::Place;
use locklab_graph::model::{self, Location};
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
    /// Whether each thread may still wake without being woken.
    without_reason: RefCell<Vec<bool>>,
    made: RefCell<Option<Box<Made>>>,
    /// The word by which each thread is called when it sleeps, and how often it has slept.
    slept: RefCell<Vec<(Location, u64)>>,
}

thread_local! {
    static WORLD: World = World::default();
}

/// Forgets what the lock before has asked for.
pub(super) fn configure() {
    WORLD.with(|world| world.asked.set([false; KINDS]));
}

/// Returns what locks have asked for.
pub(super) fn asked() -> [bool; KINDS] {
    WORLD.with(|world| world.asked.get())
}

/// Returns whether an execution runs.
pub(super) fn is_running() -> bool {
    WORLD.try_with(|world| world.running.get()).unwrap_or(false)
}

/// Begins an execution with so many threads.
pub(super) fn begin(threads: usize, without_reason: bool) {
    let asked = asked();
    let many = |kind: Words| if asked[kind as usize] { threads } else { 0 };
    fn make<T: Default>(count: usize) -> Lasting<T> {
        (0..count)
            .map(|_| ManuallyDrop::new(T::default()))
            .collect()
    }
    let used = |_| ManuallyDrop::new(QueueNodes::used(0));
    let made = Made {
        nodes: (0..many(Words::Nodes)).map(used).collect(),
        readers: make(many(Words::Readers)),
        held: make(many(Words::Held)),
        sleepers: make(many(Words::Sleepers).min(1)),
    };
    let slept = (0..threads).map(|_| (Location::new(8), 0)).collect();
    WORLD.with(|world| {
        world.running.set(true);
        *world.without_reason.borrow_mut() = vec![without_reason; threads];
        *world.made.borrow_mut() = Some(Box::new(made));
        *world.slept.borrow_mut() = slept;
    });
}

/// Ends it.
pub(super) fn end() {
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

/// Returns whether the thread that runs may wake without being woken: once.
pub(super) fn may_wake_without_reason() -> bool {
    let thread = model::thread_id();
    WORLD.with(|world| world.without_reason.borrow().get(thread) == Some(&true))
}

/// Notes that it does.
pub(super) fn wakes_without_reason() {
    let thread = model::thread_id();
    WORLD.with(|world| world.without_reason.borrow_mut()[thread] = false);
}
