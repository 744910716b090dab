//! Holds what one explored execution knows beside loom's own state: the CPU numbers,
//! the queue nodes, who sleeps, and how long nothing has happened. The steps that a
//! failure is explained with are in the [`Journal`].
//!
//! loom runs the threads of a model as coroutines of one OS thread, so this
//! is one thread-local record, renewed when an execution begins. Nothing in
//! it synchronises the modelled threads: it must never create a
//! happens-before that the lock under test does not.

mod random;
mod setting;
mod weak;

use crate::graphs::world as graphs;
use crate::journal::{Entry, Journal, LOCK, Operation, Place};
use crate::parking::{Lot, World};
use crate::platform::Loom;
use locklab_locks::{
    HeldLocks, MAX_CPUS, Parking, QueueNodes, Sleepers, VisibleReader, host::HELD_LOCKS,
};
use random::Random;
pub use setting::MAX_THREADS;
pub(crate) use setting::{Drawn, NoNode, Setting};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, HashSet, VecDeque};
use std::rc::Rc;
use std::sync::atomic::Ordering;
use weak::WeakFailures;

/// A thread that has read fruitlessly this often since anything last changed has
/// seen the newest value of what it waits for: loom gives a yielding thread a
/// newer store each time, of the seven that it keeps.
const SEEN_ALL: u32 = 8;

/// Gives how far the clock jumps, in nanoseconds: past any deadline of a model.
pub(crate) const HOUR: u64 = 3_600_000_000_000;

/// Choices of each thread in one execution.
const CHOICES: usize = 2;

/// A NUMA node beyond those for which a lock has room, and beyond 15 bits; even.
const FAR_NODE: usize = 40_000;

/// The number of the first CPU of a model whose CPUs have the greatest ones.
const FIRST_OF_LAST: usize = MAX_CPUS - MAX_THREADS;

/// A panic payload: something was learnt about the lock, begin again.
pub(crate) struct Again;

/// Runs on a thread while it waits.
type Interrupt = Box<dyn FnOnce()>;

/// Is called before each access of a thread.
type Watch = Rc<dyn Fn()>;

/// Holds how to explore, and the state of the current execution.
#[derive(Default)]
struct Record {
    nodes: OfCpus<QueueNodes<Loom>>,
    /// Says whether a lock has queue nodes of its own for each CPU.
    numbered: Cell<bool>,
    readers: OfCpus<VisibleReader<Loom>>,
    held: OfCpus<HeldLocks<Loom>>,
    /// One place for all that sleep by an address: to share it is allowed.
    sleepers: OfCpus<Sleepers<Loom>, 1>,
    lot: RefCell<Option<Box<Lot>>>,
    /// The queue nodes of locks whose waiters park in it.
    parked_nodes: OfCpus<QueueNodes<Parking<World<true>>>>,
    /// Says whether there is a parking lot, and whether it has a heavy fence.
    with_lot: Cell<Option<bool>>,
    setting: Cell<Setting>,
    /// Holds the setting of the model, of which an execution may draw its own.
    of_model: Cell<Setting>,
    /// Serves a drawn execution, which has a number.
    random: Random,
    execution: Cell<u64>,
    /// Says whether executions are drawn, not explored.
    drawn: Cell<bool>,
    /// Says for a schedule that is drawn: a thread stops before one in so many of its
    /// accesses; 0: before none.
    stops: Cell<usize>,
    /// Says whether an execution is under way: before it begins, what the last one left behind
    /// is dropped.
    running: Cell<bool>,
    /// Says whether the model is being set up, and nothing is explored.
    quiet: Cell<bool>,
    /// Runs on a thread when it next waits: an interrupt.
    interrupts: [RefCell<Option<Interrupt>>; MAX_THREADS],
    /// Runs on a thread before one of its accesses: each is tried.
    at_any_access: [RefCell<Option<Interrupt>>; MAX_THREADS],
    /// Runs on a thread before each of its accesses.
    at_each_access: [RefCell<Option<Watch>>; MAX_THREADS],
    /// Says before which access it comes, of all executions and of this one; and before which
    /// after that, if one is put there again.
    interrupt_at: Cell<[u32; 2]>,
    accesses_left: Cell<u32>,
    /// Counts how often that came in this execution, and at most in any of them.
    interrupted: Cell<[u32; 2]>,
    /// A store that a mutant makes after the operation that follows it.
    delayed: [RefCell<Option<(u32, Interrupt)>>; MAX_THREADS],
    prune_after: Cell<Option<u32>>,
    /// Fruitless reads since anything last changed; `None`: takes no part (not
    /// begun, ended, or waits for others to end).
    fruitless_reads: [Cell<Option<u32>>; MAX_THREADS],
    /// Holds what each thread has read since anything was last written: to read the same again
    /// at the same place is no progress.
    known: RefCell<HashSet<Known>>,
    /// Says whether no further branches of this execution are explored.
    pruned: Cell<bool>,
    /// The compare-and-swaps that fail without cause.
    weak: WeakFailures,
    /// Says whether a thread's last bounded spin was fruitless too.
    impatient: [Cell<bool>; MAX_THREADS],
    /// Says whether a thread is interrupted at the beginning of a wait without limit.
    without_limit: [Cell<bool>; MAX_THREADS],
    /// Counts how often each thread has tried without success since it was last inside.
    rounds: [Cell<u32>; MAX_THREADS],
    /// Holds the length of the trace when a thread last relaxed.
    relaxed: [Cell<usize>; MAX_THREADS],
    /// Lines whose stores come after all that was written before.
    in_order: RefCell<BTreeSet<Place>>,
    sleeping: RefCell<VecDeque<(usize, usize)>>,
    time: [Cell<u64>; MAX_THREADS],
    choices: RefCell<Vec<loom::sync::atomic::AtomicU32>>,
    chosen: [Cell<usize>; MAX_THREADS],
    /// Counts how often each thread has moved to the next NUMA node.
    moves: [Cell<usize>; MAX_THREADS],
    /// Says whether words are made with a value that nobody gave them.
    garbage: Cell<bool>,
    /// Says how each thread may wait now.
    wait_rule: [Cell<WaitRule>; MAX_THREADS],
    arrived: RefCell<Vec<loom::sync::atomic::AtomicU32>>,
    /// Says whether an execution was what one of them should be.
    witnessed: Cell<bool>,
    /// The bound for which the lock last asked how often some may be preferred.
    bound: Cell<Option<u32>>,
}

/// A read as [`step`] knows it again: the thread, the place, what it did, the word
/// and the values.
type Known = (u8, u32, u32, Operation, u64, u64, u64);

/// Holds what each CPU has, if the lock asks for it: the first execution that asks begins the
/// model again.
#[derive(Default)]
struct OfCpus<T, const CPUS: usize = MAX_THREADS> {
    asked: Cell<bool>,
    made: RefCell<Option<Box<[T]>>>,
}

impl<T, const CPUS: usize> OfCpus<T, CPUS> {
    fn begin(&self, make: impl Fn(usize) -> T) {
        let make = || (0..CPUS).map(&make).collect();
        *self.made.borrow_mut() = self.asked.get().then(make);
    }

    fn get(&self) -> &'static [T] {
        match self.made.borrow().as_deref() {
            // SAFETY: they stay until the next execution begins, when no
            // modelled thread of this one exists; nothing outlives an execution.
            Some(made) => unsafe { &*std::ptr::from_ref(made) },
            None => {
                self.asked.set(true);
                std::panic::panic_any(Again)
            }
        }
    }
}

/// Says how a thread may wait while it is inside the lock's code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum WaitRule {
    /// It may wait as it likes.
    #[default]
    Free,
    /// It is in `lock`: its first wait without limit, or its first sleep, tells
    /// the others that its doorway is behind it.
    Doorway,
    /// It is in `try_lock`: it must not wait.
    MustNotWait,
}

thread_local! {
    static RECORD: Record = Record::default();
}

loom::thread_local! {
    static CPU: Cell<usize> = Cell::new(0);
}

/// Sets how the next executions on this OS thread are explored.
pub(crate) fn configure(prune_after: Option<u32>, setting: Setting) {
    RECORD.with(|r| {
        r.of_model.set(setting);
        r.setting.set(setting);
        r.prune_after.set(prune_after);
        r.nodes.asked.set(false);
        r.numbered.set(false);
        r.readers.asked.set(false);
        r.held.asked.set(false);
        r.sleepers.asked.set(false);
        r.parked_nodes.asked.set(false);
        r.with_lot.set(None);
        r.in_order.borrow_mut().clear();
        r.weak.forget();
        r.drawn.set(false);
    });
}

fn setting() -> Setting {
    RECORD.with(|r| r.setting.get())
}

/// Returns whether a lock can tell the CPUs apart by nothing but their numbers and NUMA nodes.
pub(crate) fn cpus_are_alike() -> bool {
    let (setting, all) = (setting(), Setting::default());
    setting.without_node.is_none()
        && setting.virtualized_from == all.virtualized_from
        && setting.visible_readers == all.visible_readers
}

/// Explores no more of an execution of the engine of graphs unless the condition holds: another
/// stands for it.
pub(crate) fn assume(condition: bool) {
    if graphs::is_running() {
        locklab_graph::model::assume(condition);
    }
}

/// Returns whether the stores of this line come after all that was written before.
pub(crate) fn stores_in_order(here: Place) -> bool {
    RECORD.with(|r| r.in_order.borrow().contains(&here))
}

/// Makes stores keep their order from now on; begins the model again.
pub(crate) fn store_in_order(here: Place) -> ! {
    RECORD.with(|r| r.in_order.borrow_mut().insert(here));
    std::panic::panic_any(Again)
}

/// Begins the model again: something was learnt about the lock that the model must know
/// from its beginning. For a lock that is not written in Rust; the same execution must
/// not learn the same twice.
fn begin_again() -> ! {
    std::panic::panic_any(Again)
}

/// Returns whether this CPU is, to a lock, one of a virtual machine without paravirtual help.
pub(crate) fn virtualized() -> bool {
    match setting().drawn {
        Some(_) => chance(2),
        None => cpu() >= setting().virtualized_from,
    }
}

/// Makes the next execution, if executions are drawn, that of this number.
pub(crate) fn draw_execution(number: u64) {
    RECORD.with(|r| {
        r.drawn.set(true);
        r.execution.set(number);
    });
}

/// Returns whether executions are drawn.
fn is_drawn() -> bool {
    RECORD.with(|r| r.drawn.get())
}

/// Returns a number below `bound`, drawn.
pub(crate) fn below(bound: usize) -> usize {
    RECORD.with(|r| r.random.below(bound))
}

/// Draws whether what happens once in `of` times does.
pub(crate) fn chance(of: usize) -> bool {
    RECORD.with(|r| r.random.chance(of))
}

/// Returns how often some may be preferred.
pub(crate) fn preferences() -> u32 {
    setting().preferences
}

/// Notes that the lock asks for that, and would be bounded so by itself.
pub(crate) fn asks_for_preferences(bound: u32) {
    RECORD.with(|r| r.bound.set(Some(bound)));
}

/// Returns what the lock would be bounded by, if it has asked.
pub(crate) fn own_bound() -> Option<u32> {
    RECORD.with(|r| r.bound.get())
}

/// Returns the NUMA node of this modelled thread.
pub(crate) fn numa_node() -> usize {
    let setting = setting();
    let moves = RECORD.with(|r| r.moves[cpu()].get());
    if setting.migrates {
        RECORD.with(|r| r.moves[cpu()].set(moves + 1));
    }
    let first = if setting.last_cpus { FAR_NODE } else { 0 };
    first + (cpu() + moves) % setting.numa_nodes
}

/// Returns whether two reads of a word are explored in either order.
pub(crate) fn reads_conflict() -> bool {
    setting().reads_conflict
}

/// Returns whether interrupts come at every access in this model.
pub(crate) fn is_interrupted() -> bool {
    let setting = setting();
    setting.interrupts && !setting.stops_only
}

/// Returns whether a fence of the platform is nothing to a light fence: there is a heavy one
/// for that.
pub(crate) fn fences_are_light() -> bool {
    RECORD.with(|r| r.with_lot.get() == Some(true))
}

/// Begins an execution of loom; called first in the model's main thread.
pub(crate) fn begin() {
    begin_any();
    RECORD.with(|r| {
        let new_word = || loom::sync::atomic::AtomicU32::new(0);
        *r.arrived.borrow_mut() = (0..MAX_THREADS).map(|_| new_word()).collect();
        r.random.begin(r.execution.get());
        let setting = r.of_model.get().draw(&r.random);
        r.setting.set(setting);
        r.nodes
            .begin(|cpu| QueueNodes::used(setting.levels_in_use(cpu)));
        r.readers.begin(|_| VisibleReader::default());
        r.held.begin(|_| HeldLocks::default());
        r.sleepers.begin(|_| Sleepers::default());
        r.parked_nodes.begin(|_| QueueNodes::used(0));
        *r.lot.borrow_mut() = r.with_lot.get().map(|heavy| Box::new(Lot::new(heavy)));
        let choices = if setting.choices {
            MAX_THREADS * CHOICES
        } else {
            0
        };
        *r.choices.borrow_mut() = (0..choices).map(|_| new_word()).collect();
        r.weak.begin();
        if setting.choices || r.weak.are_asked_for() {
            offer_choices();
        }
        r.running.set(true);
    });
}

/// Forgets the execution before, of either engine.
pub(crate) fn begin_any() {
    RECORD.with(|r| {
        r.running.set(false);
        r.quiet.set(false);
        r.garbage.set(false);
        r.bound.set(None);
        for cpu in 0..MAX_THREADS {
            r.fruitless_reads[cpu].set((cpu == 0).then_some(0));
            r.impatient[cpu].set(false);
            r.without_limit[cpu].set(false);
            r.rounds[cpu].set(0);
            r.relaxed[cpu].set(usize::MAX);
            r.time[cpu].set(0);
            r.interrupts[cpu].take();
            r.at_any_access[cpu].take();
            r.at_each_access[cpu].take();
            r.delayed[cpu].take();
            r.chosen[cpu].set(0);
            r.moves[cpu].set(0);
            r.wait_rule[cpu].set(WaitRule::Free);
        }
        r.stops.set(0);
        r.sleeping.borrow_mut().clear();
        r.known.borrow_mut().clear();
        r.pruned.set(false);
        Journal::current().clear();
        r.accesses_left.set(r.interrupt_at.get()[0]);
        r.interrupted.set([0, r.interrupted.get()[1]]);
    });
}

/// Returns whether an execution is under way, and not failing.
pub(crate) fn is_running() -> bool {
    !std::thread::panicking() && RECORD.try_with(|r| r.running.get()).unwrap_or(false)
}

/// Ends an execution that is over, or has failed.
pub(crate) fn end() {
    RECORD.with(|r| r.running.set(false));
}

/// Sets a model up in one order of many, without exploring the others.
pub(crate) fn set_up(body: impl FnOnce()) {
    if graphs::is_running() {
        return locklab_graph::model::set_up(body);
    }
    if is_quiet() {
        // Within a schedule that is drawn: in one order all the same.
        let stops = RECORD.with(|r| r.stops.replace(0));
        body();
        return RECORD.with(|r| r.stops.set(stops));
    }
    loom::stop_exploring();
    RECORD.with(|r| r.quiet.set(true));
    body();
    RECORD.with(|r| r.quiet.set(false));
    loom::explore();
}

/// Runs a model in one schedule that is drawn and fair: who is stopped has its turn again
/// when every other has had one.
pub(crate) fn in_a_drawn_schedule(model: impl FnOnce()) {
    set_up(|| {
        RECORD.with(|r| r.stops.set([2, 4, 8, 16][r.random.below(4)]));
        model();
        RECORD.with(|r| r.stops.set(0));
    });
}

/// Makes something out of memory that contains anything.
pub(crate) fn of_garbage<R>(make: impl FnOnce() -> R) -> R {
    RECORD.with(|r| r.garbage.set(true));
    let made = make();
    RECORD.with(|r| r.garbage.set(false));
    made
}

/// Returns whether words are made with a value that nobody gave them.
pub(crate) fn is_garbage() -> bool {
    RECORD.with(|r| r.garbage.get())
}

/// Returns whether a model is being set up.
pub(crate) fn is_quiet() -> bool {
    RECORD.with(|r| r.quiet.get())
}

/// Interrupts this thread with `handler` when it next waits.
pub(crate) fn interrupt_wait(handler: impl FnOnce() + 'static) {
    RECORD.with(|r| *r.interrupts[cpu()].borrow_mut() = Some(Box::new(handler)));
}

/// Interrupts this thread with `handler` before one of its accesses from here
/// on: [`interrupt_at`] says before which.
pub(crate) fn interrupt_anywhere(handler: impl FnOnce() + 'static) {
    graphs::is_beyond();
    RECORD.with(|r| *r.at_any_access[cpu()].borrow_mut() = Some(Box::new(handler)));
}

/// Lets no such interrupt come any more.
pub(crate) fn interrupt_nowhere() {
    RECORD.with(|r| r.at_any_access[cpu()].take());
}

/// Calls `handler` before each access of this thread from here on.
pub(crate) fn before_each_access(handler: impl Fn() + 'static) {
    graphs::is_beyond();
    RECORD.with(|r| *r.at_each_access[cpu()].borrow_mut() = Some(Rc::new(handler)));
}

/// Lets nothing be called so any more.
pub(crate) fn before_no_access() {
    RECORD.with(|r| r.at_each_access[cpu()].take());
}

/// Notes that a thread is about to access memory.
pub(crate) fn access(here: Place) {
    let each = RECORD.with(|r| r.at_each_access[cpu()].borrow().clone());
    if let Some(each) = each {
        each();
    }
    let stops = RECORD.with(|r| r.stops.get());
    if stops > 0 && chance(stops) {
        (0..=below(2)).for_each(|_| loom::thread::yield_now());
    }
    let handler = RECORD.with(|r| {
        let handler = r.at_any_access[cpu()].borrow_mut();
        let armed = !r.quiet.get() && handler.is_some();
        let mut handler = armed.then_some(handler)?;
        let left = r.accesses_left.get();
        r.accesses_left.set(left.saturating_sub(1));
        if left > 0 {
            return None;
        }
        r.accesses_left.set(r.interrupt_at.get()[1]);
        let [times, most] = r.interrupted.get();
        r.interrupted.set([times + 1, most.max(times + 1)]);
        handler.take()
    });
    if let Some(handler) = handler {
        step(Entry::new(Operation::Interrupt, cpu(), here));
        handler();
        step(Entry::new(Operation::Leave, cpu(), here));
    }
}

/// Lets the interrupt of [`interrupt_anywhere`] come before this access, from 0;
/// one that it puts there again, before the second, counted from there.
pub(crate) fn interrupt_at(accesses: [u32; 2]) {
    RECORD.with(|r| {
        r.interrupt_at.set(accesses);
        r.interrupted.set([0; 2]);
    });
}

/// Returns how often they came in one execution since then, at most.
pub(crate) fn interrupted() -> u32 {
    RECORD.with(|r| r.interrupted.get()[1])
}

/// Makes `store` after the next so many operations of this thread.
pub(crate) fn delay(operations: u32, store: impl FnOnce() + 'static) {
    RECORD.with(|r| *r.delayed[cpu()].borrow_mut() = Some((operations, Box::new(store))));
}

/// Ends an operation of this thread: makes the store that was put off for
/// so long, if there is one. An interrupt may come before.
fn count_down() {
    let due = RECORD.with(|r| match r.delayed[cpu()].borrow_mut().as_mut() {
        Some((left, _)) => {
            *left -= 1;
            *left == 0
        }
        None => false,
    });
    if due {
        let store = RECORD.with(|r| r.delayed[cpu()].take());
        access(Place {
            file: "",
            line: 0,
            column: 0,
        });
        if let Some((_, store)) = store {
            store();
        }
    }
}

/// Makes the store that was put off, if there is one.
pub(crate) fn flush() {
    let store = RECORD.with(|r| r.delayed[cpu()].take());
    if let Some((_, store)) = store {
        store();
    }
}

/// Ends a call of the lock: does what it has put off.
pub(crate) fn leave_lock() {
    flush();
    crate::mutation::boundary();
}

/// Gives each choice its second value: a store that happens before nothing, so
/// that a Relaxed load may see it or not, and loom explores both. It is the
/// only choice that loom lets a model make.
fn offer_choices() {
    loom::stop_exploring();
    loom::thread::spawn(|| {
        RECORD.with(|r| {
            for choice in r.choices.borrow().iter() {
                choice.store(1, Ordering::Relaxed);
            }
            r.weak.offer();
        });
    });
    loom::thread::yield_now();
    loom::explore();
}

/// Makes a choice: both answers are explored. `None` when this thread has made
/// all of its own.
fn choose() -> Option<bool> {
    RECORD.with(|r| {
        let cpu = cpu();
        let chosen = r.chosen[cpu].get();
        if !r.setting.get().choices || chosen == CHOICES {
            return None;
        }
        r.chosen[cpu].set(chosen + 1);
        if r.drawn.get() {
            return Some(r.random.chance(2));
        }
        if graphs::is_running() {
            return Some(graphs::choose());
        }
        // SAFETY: the choices stay until the next execution begins; no borrow
        // is held while another coroutine runs.
        let choice: &loom::sync::atomic::AtomicU32 =
            unsafe { &*std::ptr::from_ref(&r.choices.borrow()[cpu * CHOICES + chosen]) };
        Some(choice.load(Ordering::Relaxed) != 0)
    })
}

/// Returns this modelled thread's number.
pub(crate) fn cpu() -> usize {
    match graphs::is_running() {
        true => graphs::cpu(),
        false => CPU.with(Cell::get),
    }
}

/// Numbers this modelled thread.
pub(crate) fn set_cpu(cpu: usize) {
    match graphs::is_running() {
        true => graphs::set_cpu(cpu),
        false => CPU.with(|c| c.set(cpu)),
    }
}

/// Returns the number that a lock knows this modelled thread by.
pub(crate) fn number() -> usize {
    let setting = setting();
    match setting.last_cpus {
        _ if setting.last_names => FIRST_OF_LAST + cpu(),
        true => (cpu() + MAX_THREADS - 1) % MAX_THREADS,
        false => cpu(),
    }
}

/// Returns whether no CPU of this world lacks a queue node.
pub(crate) fn all_have_nodes() -> bool {
    setting().without_node.is_none()
}

/// Returns whether this modelled thread has a number that a lock can know.
pub(crate) fn is_numbered() -> bool {
    setting().without_node != Some((cpu(), NoNode::Number))
}

/// Returns the queue nodes of a CPU in this execution.
pub(crate) fn queue_nodes(cpu: usize) -> &'static QueueNodes<Loom> {
    let first = match setting().last_names {
        true => FIRST_OF_LAST,
        false => 0,
    };
    let nodes = RECORD.with(|r| r.nodes.get());
    let of_cpu = cpu.checked_sub(first).and_then(|place| nodes.get(place));
    of_cpu.unwrap_or_else(|| panic!("the queue nodes of a CPU that is not there"))
}

/// Returns the queue nodes of a lock whose waiters park where there is a heavy fence.
pub(crate) fn parked_nodes(cpu: usize) -> &'static QueueNodes<Parking<World<true>>> {
    RECORD.with(|r| &r.parked_nodes.get()[cpu])
}

/// Returns how many levels of queue nodes a CPU uses when a model begins.
pub(crate) fn levels_in_use(cpu: usize) -> u32 {
    setting().levels_in_use(cpu)
}

/// Returns for how many CPUs the table of visible readers has an entry.
pub(crate) fn readers_with_an_entry() -> usize {
    setting().visible_readers
}

/// Returns the visible readers of this execution.
pub(crate) fn visible_readers() -> &'static [VisibleReader<Loom>] {
    RECORD.with(|r| &r.readers.get()[..r.setting.get().visible_readers])
}

/// Returns the tables of held locks of this execution.
pub(crate) fn held_locks() -> &'static [HeldLocks<Loom>] {
    RECORD.with(|r| r.held.get())
}

/// Returns where those sleep who sleep by an address.
pub(crate) fn sleepers() -> &'static Sleepers<Loom> {
    RECORD.with(|r| &r.sleepers.get()[0])
}

/// Returns the parking lot of this execution.
pub(crate) fn lot(heavy: bool) -> &'static Lot {
    RECORD.with(|r| match r.lot.borrow().as_deref() {
        // SAFETY: as the queue nodes.
        Some(lot) => unsafe { &*std::ptr::from_ref(lot) },
        None => {
            r.with_lot.set(Some(heavy));
            std::panic::panic_any(Again)
        }
    })
}

/// Returns whether the lock under test uses queue nodes of CPUs, as far as is known: the first
/// execution that asks for one begins the model again.
pub(crate) fn with_queue_nodes() -> bool {
    graphs::with_queue_nodes() || RECORD.with(|r| r.nodes.asked.get() || r.numbered.get())
}

/// Notes an operation. It is progress unless, in a model of an own lock, it reads what its
/// thread has read there since anything was last written.
pub(crate) fn step(entry: Entry) {
    note(&entry);
    Journal::current().push(entry);
    count_down();
}

fn note(entry: &Entry) {
    RECORD.with(|r| {
        let changes = entry.changes_what_others_read();
        if changes {
            r.known.borrow_mut().clear();
        }
        let counted = |reads: &Cell<Option<u32>>| reads.get().is_some_and(|reads| reads > 0);
        if r.fruitless_reads.iter().any(counted) {
            let Entry {
                cpu,
                line,
                column,
                operation,
                word,
                old,
                new,
                ..
            } = *entry;
            let read = (cpu, line, column, operation, word, old, new);
            let of_words = r.setting.get().reads_words_only;
            if changes || !of_words || r.known.borrow_mut().insert(read) {
                for reads in &r.fruitless_reads {
                    reads.set(reads.get().map(|_| 0));
                }
            }
        }
    });
}

/// Notes what a model does with the lock. It is a step of the trace before `body`, which
/// may fail, and of the execution after it.
#[track_caller]
pub(crate) fn remark<R>(operation: Operation, body: impl FnOnce() -> R) -> R {
    let entry = Entry::new(operation, cpu(), Place::here());
    Journal::current().push(entry);
    let result = body();
    RECORD.with(|r| {
        r.rounds[cpu()].set(0);
    });
    note(&entry);
    count_down();
    result
}

/// Notes that this memory belongs to thread `cpu`, or to the lock.
pub(crate) fn owns(cpu: Option<usize>, address: usize, bytes: usize) {
    let cpu = cpu.unwrap_or(usize::from(LOCK));
    let place = Place {
        file: "",
        line: 0,
        column: 0,
    };
    Journal::current().push(Entry {
        word: address as u64,
        new: bytes as u64,
        ..Entry::new(Operation::Owns, cpu, place)
    });
}

/// Begins a wait without limit.
pub(crate) fn about_to_wait() {
    RECORD.with(|r| {
        let cpu = cpu();
        r.impatient[cpu].set(false);
        if r.wait_rule[cpu].get() == WaitRule::Doorway {
            arrive(cpu);
        }
        r.without_limit[cpu].set(true);
    });
    interrupt();
    RECORD.with(|r| r.without_limit[cpu()].set(false));
}

/// Returns whether the interrupt that runs came at a wait without limit.
pub(crate) fn waits_without_limit() -> bool {
    RECORD.with(|r| r.without_limit[cpu()].get())
}

/// Runs the interrupt of a thread that waits, if it has one.
pub(crate) fn interrupt() {
    let handler = RECORD.with(|r| r.interrupts[cpu()].take());
    if let Some(handler) = handler {
        handler();
    }
}

/// Notes that a read, the `reads`-th of its wait, did not see what it waits for: lets
/// the others run, and explores no further branches of this execution once
/// that has happened often enough (docs/verification.md says why this cuts
/// nothing that matters).
pub(crate) fn fruitless(here: Place, reads: u32) {
    let prune =
        RECORD.with(|r| !r.quiet.get() && r.prune_after.get().is_some_and(|most| reads >= most));
    if prune {
        skip_branch();
    }
    idle(here);
}

/// Explores no further branches of this execution.
pub(crate) fn skip_branch() {
    RECORD.with(|r| r.pruned.set(true));
    loom::skip_branch();
}

/// Lets the others run, if there is any that can go on.
fn idle(here: Place) {
    RECORD.with(|r| {
        let reads = &r.fruitless_reads[cpu()];
        reads.set(reads.get().map(|reads| reads + 1));
        let mut parts = r.fruitless_reads.iter().filter_map(Cell::get);
        if parts.all(|reads| reads >= SEEN_ALL) {
            panic!("deadlock: every thread waits, the last at {here}");
        }
    });
    take_turn(here);
}

/// Lets the others run after a round from which the next may differ.
fn take_turn(here: Place) {
    RECORD.with(|r| {
        let cpu = cpu();
        if r.wait_rule[cpu].get() == WaitRule::MustNotWait {
            panic!("an attempt waits at {here}");
        }
    });
    loom::thread::yield_now();
}

/// Decides whether the compare-and-swap that this thread is about to make fails although it
/// would succeed: both are explored, or one is drawn.
pub(crate) fn fails_without_cause() -> bool {
    let drawn = is_drawn();
    if !drawn && RECORD.with(|r| r.quiet.get()) {
        return false;
    }
    if !drawn && !RECORD.with(|r| r.weak.ask()) {
        begin_again();
    }
    let Some(choice) = RECORD.with(|r| r.weak.next(cpu())) else {
        return false;
    };
    let fails = match drawn {
        true => chance(4),
        // SAFETY: the choices stay until the next execution begins; no borrow is held
        // while another coroutine runs.
        false => unsafe { &*RECORD.with(|r| r.weak.word(choice)) }.load(Ordering::Relaxed) != 0,
    };
    if fails {
        RECORD.with(|r| r.weak.has_failed(cpu()));
    }
    fails
}

/// Says whether thread `cpu` takes part in the model from here on.
pub(crate) fn set_part(cpu: usize, takes_part: bool) {
    RECORD.with(|r| {
        r.fruitless_reads[cpu].set(takes_part.then_some(0));
    });
}

/// Notes that a spin with patience ended without what it waited for. All its reads may
/// have come before any other thread moved, so one read stands for them. A
/// second such spin in a row is a loop: it lets the others run.
pub(crate) fn impatient(here: Place) {
    interrupt();
    let again = RECORD.with(|r| r.impatient[cpu()].replace(true));
    if graphs::is_running() {
        return may_wait(!again, here);
    }
    if again {
        fruitless(here, 1);
    }
}

/// Notes a pause outside a spin: the end of a round of a loop that has tried
/// something in vain. Several in a row are one.
pub(crate) fn relax(here: Place) {
    interrupt();
    let steps = Journal::current().len();
    if RECORD.with(|r| r.relaxed[cpu()].replace(steps)) != steps {
        let rounds = RECORD.with(|r| {
            let rounds = &r.rounds[cpu()];
            rounds.set(rounds.get() + 1);
            rounds.get()
        });
        fruitless(here, rounds);
    }
}

/// Notes that a spin with patience saw what it waited for.
pub(crate) fn patient() {
    RECORD.with(|r| r.impatient[cpu()].set(false));
}

/// Tells what this thread is about to do.
pub(crate) fn set_wait_rule(rule: WaitRule) {
    RECORD.with(|r| r.wait_rule[cpu()].set(rule));
}

/// Returns whether this thread is in an attempt.
pub(crate) fn must_not_wait() -> bool {
    RECORD.with(|r| r.wait_rule[cpu()].get() == WaitRule::MustNotWait)
}

/// Notes that a thread of the engine of graphs waits unless it is done, which an attempt must
/// not.
pub(crate) fn may_wait(done: bool, here: Place) {
    if !done && must_not_wait() {
        panic!("an attempt waits at {here}");
    }
}

/// Notes that it sleeps.
pub(crate) fn falls_asleep(here: Place) {
    may_wait(false, here);
    let me = cpu();
    if RECORD.with(|r| r.wait_rule[me].get()) == WaitRule::Doorway {
        arrive(me);
    }
}

/// Lets the other threads go on, so many turns, or as far as they come.
pub(crate) fn let_others_run(turns: usize) {
    match graphs::is_running() {
        true => locklab_graph::model::let_others_run(),
        false => (0..turns).for_each(|_| loom::thread::yield_now()),
    }
}

/// Notes that this thread's doorway is behind it (it waits, or it holds the lock).
pub(crate) fn arrive(cpu: usize) {
    set_wait_rule(WaitRule::Free);
    match graphs::is_running() {
        true => graphs::arrive(cpu),
        // Pairs with the load of `await_arrival`.
        false => arrived(cpu).store(1, Ordering::Release),
    }
}

/// Waits until the doorway of `cpu` is behind it.
#[track_caller]
pub(crate) fn await_arrival(cpu: usize) {
    if graphs::is_running() {
        return graphs::await_arrival(cpu);
    }
    let mut reads = 0;
    // Pairs with the store of `arrive`.
    while arrived(cpu).load(Ordering::Acquire) == 0 {
        reads += 1;
        fruitless(Place::here(), reads);
    }
}

fn arrived(cpu: usize) -> &'static loom::sync::atomic::AtomicU32 {
    // SAFETY: as the queue nodes.
    RECORD.with(|r| unsafe { &*std::ptr::from_ref(&r.arrived.borrow()[cpu]) })
}

/// Returns the time in nanoseconds: it stands still, or jumps past any deadline; both
/// are explored while choices last, and then it jumps.
pub(crate) fn now() -> u64 {
    let cpu = cpu();
    if !setting().clock {
        return HOUR + RECORD.with(|r| r.time[0].get());
    }
    if choose().unwrap_or(true) {
        RECORD.with(|r| r.time[cpu].set(r.time[cpu].get() + HOUR));
    } else {
        let_others_run(1);
    }
    RECORD.with(|r| r.time[cpu].get())
}

/// Returns what the clock of this thread last said, or would say.
pub(crate) fn time() -> u64 {
    let clock = setting().clock;
    RECORD.with(|r| match clock {
        true => r.time[cpu()].get(),
        false => HOUR + r.time[0].get(),
    })
}

/// Lets an hour pass, for all CPUs, where there is no clock that goes by itself.
pub(crate) fn let_time_pass() {
    graphs::is_beyond();
    RECORD.with(|r| r.time[0].set(r.time[0].get() + HOUR));
}

/// Decides whether a sleep ends at once for no reason; both are explored.
pub(crate) fn spurious() -> bool {
    if is_drawn() {
        return chance(3);
    }
    choose().unwrap_or(false)
}

/// Puts this thread among the sleepers on `word`, in the same step in which
/// the caller has read it, and sleeps until woken.
pub(crate) fn sleep(word: usize, here: Place) {
    let me = cpu();
    RECORD.with(|r| {
        r.sleeping.borrow_mut().push_back((word, me));
        if r.wait_rule[me].get() == WaitRule::Doorway {
            arrive(me);
        }
    });
    // That it sleeps is something that its waker sees, so the first turns are
    // not pruned; but to be given a turn again while nothing has changed is
    // the same as not to be given it.
    while RECORD.with(|r| r.sleeping.borrow().contains(&(word, me))) {
        if RECORD.with(|r| !r.quiet.get() && r.fruitless_reads[me].get() > Some(1)) {
            skip_branch();
        }
        idle(here);
    }
}

/// Takes the first sleepers on `word` off the list, at most so many. Returns how many
/// those were.
pub(crate) fn wake(word: usize, most: usize) -> usize {
    RECORD.with(|r| {
        let mut woken = 0;
        r.sleeping.borrow_mut().retain(|&(w, _)| {
            let wakes = w == word && woken < most;
            woken += usize::from(wakes);
            !wakes
        });
        woken
    })
}

/// Returns whether this is the main thread, and no other has begun and not ended.
pub(crate) fn is_alone() -> bool {
    cpu() == 0
        && RECORD.with(|r| {
            r.fruitless_reads[1..]
                .iter()
                .all(|reads| reads.get().is_none())
        })
}

/// Waits until thread `cpu` sleeps.
#[track_caller]
pub(crate) fn await_sleep(cpu: usize) {
    graphs::is_beyond();
    let here = Place::here();
    while !RECORD.with(|r| r.sleeping.borrow().iter().any(|&(_, who)| who == cpu)) {
        idle(here);
    }
}

/// Notes that this execution is what one of them should be.
pub(crate) fn witness() {
    RECORD.with(|r| r.witnessed.set(true));
}

/// Returns whether an execution since the last call was.
pub(crate) fn take_witness() -> bool {
    RECORD.with(|r| r.witnessed.take())
}

/// Returns what a CPU has not given back, if it holds no lock.
pub(crate) fn left_behind() -> Option<&'static str> {
    if graphs::is_running() {
        return graphs::left_behind();
    }
    RECORD.with(|r| {
        let (nodes, held) = (r.nodes.made.borrow(), r.held.made.borrow());
        let setting = r.setting.get();
        let mut nodes = nodes.iter().flatten().enumerate();
        if nodes.any(|(cpu, nodes)| nodes.in_use() != setting.levels_in_use(cpu)) {
            return Some("a queue node of a CPU is not given back");
        }
        if r.lot
            .borrow()
            .as_ref()
            .is_some_and(|lot| lot.counts_sleepers())
        {
            return Some("a sleeper is still counted, and nobody sleeps");
        }
        let sleepers = r.sleepers.made.borrow();
        let sleeps = sleepers.iter().flatten().any(|place| {
            // SAFETY: looked at only.
            let queue = unsafe { place.queue() };
            queue.first.word().latest() != 0 || queue.lock.latest() != 0
        });
        if sleeps {
            return Some("a thread is still in a queue of sleepers");
        }
        let left = held.iter().flatten().any(|held| {
            // SAFETY: looked at only.
            let table = unsafe { held.table() };
            let waits = table.state.latest() as usize & HELD_LOCKS != 0;
            waits || table.locks.iter().any(|lock| lock.latest() != 0)
        });
        if left {
            return Some("a CPU is said to hold or await a lock");
        }
        let readers = r.readers.made.borrow();
        let reads = readers.iter().flatten().any(|reader| {
            // SAFETY: looked at only.
            unsafe { reader.lock() }.latest() != 0
        });
        reads.then_some("a CPU is said to read a lock")
    })
}
