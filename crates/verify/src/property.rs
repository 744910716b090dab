//! What every lock promises, each promise as a model that loom explores.
//!
//! The models are generic over [`RawLock`]: a lock that joins the catalogue
//! is held to them without a line here. What a lock does not promise (FIFO,
//! `try_lock`) is left out by what its `INFO` says, never by its name.

use crate::execution::{self, Mood};
use crate::platform::Loom;
use locklab_locks::platform::Platform;
use locklab_locks::{
    BigLock, Fairness, Info, McsTimeout, McsTimeoutNode, NESTING, RawLock, RwQueued, TimedLock,
};
use std::cell::RefCell;

/// A promise and the model that checks it.
#[derive(Clone, Copy)]
pub struct Property {
    /// What a table calls it.
    pub name: &'static str,
    /// How many threads take part.
    pub threads: usize,
    /// The bound on preemptions for which the limit of executions is
    /// stretched. Most are explored with more, or with any number.
    pub aim: usize,
    /// The source file whose orderings it is there to show needed; `None`:
    /// those of all the code that it runs.
    pub(crate) orderings_of: Option<&'static str>,
    /// Whether time and spurious wake-ups are choices.
    pub(crate) coins: bool,
    /// Whether the lock is told of a hypervisor that does not help it.
    pub(crate) virtualized: bool,
    pub(crate) model: fn(),
}

/// The promises of lock `L`, the cheapest first.
pub fn properties<L: RawLock<Loom>>() -> Vec<Property> {
    let info: Info = L::INFO;
    let new = |name, threads, model: fn()| Property {
        name,
        threads,
        aim: 2,
        orderings_of: None,
        // With three threads sleeps end when they are ended: the choice at
        // each would leave no room for more than one preemption.
        coins: info.parks && threads < 3,
        virtualized: false,
        model,
    };
    let mut all = vec![
        new("exclusion", 2, exclusion::<L, 2, 1>),
        new("reuse", 2, exclusion::<L, 2, 2>),
        new("exclusion of three", 3, exclusion::<L, 3, 1>),
        new("try_lock alone", 1, try_lock_alone::<L>),
    ];
    if info.try_lock {
        all.push(new("try_lock does not wait", 2, try_lock_never_waits::<L>));
        all.push(new("try_lock races", 2, try_lock_races::<L, 2>));
        all.push(new("try_lock, late", 2, try_lock_late::<L>));
        all.push(new("try_lock, again", 2, try_lock_again::<L>));
        all.push(new("try_lock races of three", 3, try_lock_races::<L, 3>));
    }
    if info.fairness == Fairness::Fifo {
        all.push(new("fifo", 3, fifo::<L>));
    }
    if L::COUNTS {
        all.push(new("wrap-around", 2, wrap_around::<L>));
    }
    all.push(new("queue formed before", 3, queue_formed_before::<L>));
    all.push(new("one comes back", 3, one_comes_back::<L>));
    all.push(Property {
        aim: 1,
        ..new("one comes to two", 4, one_comes_to_two::<L>)
    });
    all.push(Property {
        aim: 1,
        ..new("nesting", 3, nesting::<L>)
    });
    all.push(new("reuse by three", 3, exclusion::<L, 3, 2>));
    all
}

/// The promise of a lock whose contexts may go when their acquisition ends.
pub(crate) fn short_lived<L: RawLock<Loom>>() -> Property {
    let like = properties::<L>()[0];
    Property {
        name: "contexts end",
        model: contexts_end::<L, 2, 2>,
        ..like
    }
}

/// The same where a holder reaches past the next waiter.
pub(crate) fn short_lived_three<L: RawLock<Loom>>() -> Property {
    Property {
        name: "contexts end, three",
        threads: 3,
        coins: false,
        model: contexts_end::<L, 3, 1>,
        ..short_lived::<L>()
    }
}

/// The promise of a lock that asks whether it runs on a hypervisor.
pub(crate) fn virtualized<L: RawLock<Loom>>() -> Vec<Property> {
    let like = properties::<L>()[0];
    let two = Property {
        name: "reuse, virtualized",
        virtualized: true,
        model: exclusion::<L, 2, 2>,
        ..like
    };
    let three = Property {
        name: "three, virtualized",
        threads: 3,
        model: exclusion::<L, 3, 1>,
        ..two
    };
    vec![two, three]
}

/// The promises of a lock whose acquisition can be given up.
pub(crate) fn timed<L: TimedLock<Loom>>() -> Vec<Property> {
    let like = properties::<L>()[0];
    let new = |name, threads, model: fn()| Property {
        name,
        threads,
        coins: true,
        model,
        ..like
    };
    vec![
        new("timeout", 2, timeout::<L, 2>),
        new("timeout, node used before", 2, timeout_of_used_node::<L>),
        new("timeout among three", 3, timeout::<L, 3>),
    ]
}

/// The promise of a node that was given up: when it says that it is idle, or
/// has been used again, its owner may take the memory back.
pub(crate) fn given_up() -> [Property; 2] {
    let like = timed::<McsTimeout<Loom>>()[0];
    [
        Property {
            name: "given up, node ends",
            model: || given_up_node_ends(false),
            ..like
        },
        Property {
            name: "given up, tried, ends",
            model: || given_up_node_ends(true),
            ..like
        },
    ]
}

/// The promises of a reader-writer lock.
pub(crate) fn read_write() -> Vec<Property> {
    let like = properties::<RwQueued<Loom>>()[0];
    let new = |name, threads, model: fn()| Property {
        name,
        threads,
        model,
        ..like
    };
    vec![
        new("a reader and a writer", 2, readers::<1, 1, 2>),
        new("two readers at once", 2, readers_share),
        new("two readers and a writer", 3, readers::<2, 1, 1>),
        new("a reader and two writers", 3, readers::<1, 2, 1>),
    ]
}

/// What lock `L` promises beyond that as a big lock.
pub(crate) fn big_properties<L: BigLock<Loom>>() -> Vec<Property> {
    let new = |name, threads, model: fn()| Property {
        name,
        threads,
        aim: 2,
        orderings_of: None,
        coins: false,
        virtualized: false,
        model,
    };
    vec![
        new("recursion", 2, recursion::<L>),
        new("release_all", 2, release_all::<L>),
        new("init", 2, init::<L>),
    ]
}

/// A lock, a context for each thread, and the data that the lock protects.
struct Table<L: RawLock<Loom>> {
    lock: L,
    contexts: Vec<L::Ctx>,
    /// Every access without a happens-before from the one before is a race,
    /// which loom reports.
    data: loom::cell::UnsafeCell<u32>,
    /// Who was inside, in order. Seen by the harness only.
    entered: RefCell<Vec<usize>>,
}

impl<L: RawLock<Loom>> Table<L> {
    fn new(threads: usize) -> &'static Self {
        Self::with(L::default(), threads)
    }

    /// Lives until [`Table::finish`]; for ever if the model fails, because
    /// what loom has abandoned must not be dropped.
    fn with(lock: L, threads: usize) -> &'static Self {
        Box::leak(Box::new(Self {
            lock,
            contexts: (0..threads).map(|_| L::Ctx::default()).collect(),
            data: loom::cell::UnsafeCell::new(0),
            entered: RefCell::default(),
        }))
    }

    fn enter(&self) {
        // SAFETY: this is what is being checked; loom reports a race before
        // the access is made.
        self.data.with_mut(|data| unsafe { *data += 1 });
        self.entered.borrow_mut().push(execution::cpu());
        execution::remark("is inside");
    }

    fn lock(&self) {
        // SAFETY: each thread uses its own context, one acquisition at a
        // time; the table stays in place.
        unsafe { self.lock.lock(&self.contexts[execution::cpu()]) }
    }

    fn try_lock(&self) -> bool {
        // SAFETY: as `lock`.
        unsafe { self.lock.try_lock(&self.contexts[execution::cpu()]) }
    }

    fn unlock(&self) {
        // SAFETY: the models call it after they have acquired.
        unsafe { self.lock.unlock(&self.contexts[execution::cpu()]) }
    }

    /// Acquires, uses the data, releases.
    fn section(&self) {
        self.lock();
        self.enter();
        self.unlock();
    }

    /// As `section`, if that needs no waiting.
    fn try_section(&self) {
        if self.try_lock() {
            self.enter();
            self.unlock();
        }
    }

    /// All threads are done: the lock is free and no update is lost.
    fn finish(&'static self) {
        self.section();
        let entered = self.entered.borrow().len();
        // SAFETY: as `enter`.
        let data = self.data.with(|data| unsafe { *data });
        assert_eq!(data as usize, entered, "an update of the data is lost");
        // SAFETY: made by `Box::leak` in `new`; the threads that shared it
        // have ended, and the caller does not use it again.
        drop(unsafe { Box::from_raw(std::ptr::from_ref(self).cast_mut()) });
    }
}

impl<L: TimedLock<Loom>> Table<L> {
    /// A section, unless the time is over before.
    fn section_in_time(&self) {
        // SAFETY: as `Table::lock`; the context stays and is used with this
        // lock only.
        if unsafe { self.lock.lock_until(&self.contexts[execution::cpu()], 1) } {
            self.enter();
            self.unlock();
        }
    }
}

// SAFETY: modelled threads are coroutines of one OS thread; what they share
// without loom's knowledge is only touched between two switches.
unsafe impl<L: RawLock<Loom>> Sync for Table<L> {}

/// Runs `body` in `threads` modelled threads, the main one among them.
fn threads<L: RawLock<Loom>>(threads: usize, body: fn(&'static Table<L>, usize)) {
    run(Table::<L>::new(threads), threads, body);
}

fn run<L: RawLock<Loom>>(
    table: &'static Table<L>,
    threads: usize,
    body: fn(&'static Table<L>, usize),
) {
    let others: Vec<_> = (1..threads)
        .map(|cpu| spawn(cpu, move || body(table, cpu)))
        .collect();
    body(table, 0);
    for other in others {
        join(other);
    }
    table.finish();
}

fn spawn(cpu: usize, body: impl FnOnce() + 'static) -> loom::thread::JoinHandle<()> {
    execution::set_part(cpu, true);
    loom::thread::spawn(move || {
        execution::set_cpu(cpu);
        body();
        execution::set_part(cpu, false);
    })
}

fn join(thread: loom::thread::JoinHandle<()>) {
    execution::set_part(execution::cpu(), false);
    thread
        .join()
        .expect("a modelled thread fails the model as a whole");
    execution::set_part(execution::cpu(), true);
}

/// One at a time, each sees what the one before wrote, everyone gets there.
fn exclusion<L: RawLock<Loom>, const THREADS: usize, const TIMES: usize>() {
    threads::<L>(THREADS, |table, _| {
        for _ in 0..TIMES {
            table.section();
        }
    });
}

/// On a free lock, alone, `try_lock` succeeds, again and again; a lock
/// without it says no.
fn try_lock_alone<L: RawLock<Loom>>() {
    let table = Table::<L>::new(1);
    for _ in 0..2 {
        execution::set_mood(Mood::MustNotWait);
        let got = table.try_lock();
        execution::set_mood(Mood::Free);
        if L::INFO.try_lock {
            assert!(got, "try_lock fails on a free lock");
            table.enter();
            table.unlock();
        } else {
            assert!(!got, "try_lock succeeds, but INFO says it cannot");
        }
        table.section();
    }
    table.finish();
}

/// While another holds it and does not let go, `try_lock` says no at once.
fn try_lock_never_waits<L: RawLock<Loom>>() {
    let table = Table::<L>::new(2);
    table.lock();
    join(spawn(1, move || {
        for _ in 0..2 {
            execution::set_mood(Mood::MustNotWait);
            let got = table.try_lock();
            execution::set_mood(Mood::Free);
            assert!(!got, "try_lock succeeds on a lock that is held");
        }
    }));
    table.enter();
    table.unlock();
    join(spawn(1, move || table.section()));
    table.finish();
}

/// Among others that lock, `try_lock` either gets it properly or leaves no
/// trace.
fn try_lock_races<L: RawLock<Loom>, const THREADS: usize>() {
    threads::<L>(THREADS, |table, cpu| {
        if cpu == 1 {
            execution::set_mood(Mood::MustNotWait);
            let got = table.try_lock();
            execution::set_mood(Mood::Free);
            if got {
                table.enter();
                table.unlock();
            }
            table.section();
        } else if cpu == 2 {
            table.try_section();
        } else {
            table.section();
        }
    });
}

/// Whose doorway is done before another's begins, enters before it.
///
/// The doorway of thread 1 is done when it waits without limit (or has the
/// lock); thread 2 begins after that, in the sense of happens-before; the
/// holder lets go at any time.
fn fifo<L: RawLock<Loom>>() {
    let table = Table::<L>::new(3);
    table.lock();
    table.enter();
    let first = spawn(1, move || {
        execution::set_mood(Mood::Doorway);
        table.lock();
        execution::arrive(1);
        table.enter();
        table.unlock();
    });
    let second = spawn(2, move || {
        execution::await_arrival(1);
        table.section();
    });
    table.unlock();
    join(first);
    join(second);
    assert_eq!(
        *table.entered.borrow(),
        [0, 1, 2],
        "not first come, first served"
    );
    table.finish();
}

/// The holder takes it again, and it is free only when all levels are undone.
fn recursion<L: BigLock<Loom>>() {
    threads::<L>(2, |table, cpu| {
        assert!(!table.lock.held(), "held before it is taken");
        table.lock();
        assert!(table.lock.held(), "not held by its holder");
        if cpu == 0 || !L::INFO.try_lock {
            table.lock();
        } else {
            assert!(table.try_lock(), "try_lock fails for the holder");
        }
        table.enter();
        table.unlock();
        assert!(table.lock.held(), "free before all levels are undone");
        table.enter();
        table.unlock();
        assert!(!table.lock.held(), "held after all levels are undone");
    });
}

/// All levels go at once, and come back at once.
fn release_all<L: BigLock<Loom>>() {
    threads::<L>(2, |table, cpu| {
        if cpu == 1 {
            table.section();
            return;
        }
        // SAFETY: this thread takes and releases in turn, as `lock` has it.
        unsafe {
            assert_eq!(table.lock.release_all(), 0, "levels without a holder");
            table.lock.acquire_count(2);
            table.enter();
            let levels = table.lock.release_all();
            assert_eq!(levels, 2, "levels are miscounted");
            assert!(!table.lock.held(), "held after release_all");
            table.lock.acquire_count(levels);
        }
        assert!(table.lock.held(), "not held by its holder");
        table.unlock();
        table.enter();
        table.unlock();
    });
}

/// A lock that was used, then made free by `init`, is as new.
fn init<L: BigLock<Loom>>() {
    let table = Table::<L>::new(2);
    table.section();
    // SAFETY: nobody else knows the lock yet.
    unsafe { table.lock.init() };
    let other = spawn(1, move || table.section());
    table.section();
    join(other);
    table.finish();
}

/// `try_lock` by one who has not looked while the other came and went, and
/// slots went round.
fn try_lock_late<L: RawLock<Loom>>() {
    threads::<L>(2, |table, cpu| {
        if cpu == 0 {
            for _ in 0..3 {
                table.section();
            }
        } else {
            table.try_section();
        }
    });
}

/// `try_lock` by one who comes back to slots that have gone round, while
/// another queues behind.
fn try_lock_again<L: RawLock<Loom>>() {
    threads::<L>(2, |table, cpu| {
        table.section();
        if cpu == 0 {
            table.try_section();
            table.try_section();
        }
    });
}

/// One of three comes back while the others still wait: what NUMA-aware
/// queues need to have somebody to prefer.
fn one_comes_back<L: RawLock<Loom>>() {
    threads::<L>(3, |table, cpu| {
        table.section();
        if cpu == 0 {
            table.section();
        }
    });
}

/// Enough for a thread to fall asleep, if it does.
const TURNS: usize = 4;

/// Starts `body` as thread `cpu`, which goes on until it waits.
fn spawn_until_it_waits(cpu: usize, body: impl FnOnce() + 'static) -> loom::thread::JoinHandle<()> {
    let thread = spawn(cpu, body);
    for _ in 0..TURNS {
        loom::thread::yield_now();
    }
    thread
}

/// A queue has formed and dissolved, and now forms again: each node says what
/// it said then until its owner has reset it.
fn queue_formed_before<L: RawLock<Loom>>() {
    let table = Table::<L>::new(3);
    let mut others = Vec::new();
    execution::set_up(|| {
        table.lock();
        for cpu in 1..3 {
            others.push(spawn_until_it_waits(cpu, move || {
                table.section();
                execution::await_arrival(0);
                table.section();
            }));
        }
        table.enter();
        table.unlock();
        while table.entered.borrow().len() < 3 {
            loom::thread::yield_now();
        }
        table.lock();
        execution::arrive(0);
    });
    table.enter();
    table.unlock();
    for other in others {
        join(other);
    }
    table.finish();
}

/// Two wait, the holder lets go, and one more comes: who has been passed over
/// or sent away is somebody's predecessor again. The one that comes has held
/// the lock before, with the holder of now behind it: a thread that neither
/// wrote nor read what its node said then may still read it.
fn one_comes_to_two<L: RawLock<Loom>>() {
    let table = Table::<L>::new(4);
    let mut others = Vec::new();
    execution::set_up(|| {
        others.push(spawn_until_it_waits(3, move || {
            table.lock();
            // Until the main thread waits behind.
            for _ in 0..3 * TURNS {
                loom::thread::yield_now();
            }
            table.enter();
            table.unlock();
            execution::await_arrival(0);
            table.section();
        }));
        table.lock();
        for cpu in 1..3 {
            others.push(spawn_until_it_waits(cpu, move || table.section()));
        }
        execution::arrive(0);
    });
    table.enter();
    table.unlock();
    for other in others {
        join(other);
    }
    table.finish();
}

/// Counters pass their last value while both threads are at it.
fn wrap_around<L: RawLock<Loom>>() {
    run(Table::with(L::about_to_wrap(), 2), 2, |table, cpu| {
        if cpu == 1 && L::INFO.try_lock {
            table.try_section();
        }
        table.section();
        table.section();
    });
}

/// Once `unlock` has returned, nobody uses the context any more: its owner
/// may take the memory back.
fn contexts_end<L: RawLock<Loom>, const THREADS: usize, const TIMES: usize>() {
    threads::<L>(THREADS, |table, _| {
        for _ in 0..TIMES {
            let context = L::Ctx::default();
            // SAFETY: the context stays in place until after `unlock`.
            unsafe {
                table.lock.lock(&context);
                table.enter();
                table.lock.unlock(&context);
            }
            drop(context);
        }
    });
}

/// Interrupts, which take locks too, while their CPU waits: as many as can
/// nest, and one more. Two CPUs go down so at once; the holder of all the
/// locks then lets go, in any interleaving with their return.
///
/// A lock that does not use the CPU's queue nodes has no limit to come to:
/// two locks, one interrupt.
fn nesting<L: RawLock<Loom>>() {
    let depth = if execution::with_queue_nodes() {
        NESTING + 1
    } else {
        2
    };
    let tables: &'static [&'static Table<L>] =
        Vec::leak((0..depth).map(|_| Table::<L>::new(3)).collect());
    fn descend<L: RawLock<Loom>>(tables: &'static [&'static Table<L>]) {
        let Some((table, rest)) = tables.split_first() else {
            return execution::arrive(execution::cpu());
        };
        execution::interrupt_wait(|| descend(rest));
        table.section();
    }
    let mut others = Vec::new();
    execution::set_up(|| {
        for table in tables {
            table.lock();
        }
        for cpu in 1..3 {
            others.push(spawn(cpu, move || descend(tables)));
            execution::await_arrival(cpu);
        }
    });
    for table in tables.iter().rev() {
        table.enter();
        table.unlock();
    }
    for other in others {
        join(other);
    }
    for table in tables {
        table.finish();
    }
}

/// Who gives up does not hold it, who does not give up does; and the lock
/// goes on past those who have given up, who may come back.
fn timeout<L: TimedLock<Loom>, const THREADS: usize>() {
    threads::<L>(THREADS, |table, cpu| {
        if cpu == 0 {
            table.section();
            return;
        }
        table.section_in_time();
        if THREADS == 2 || cpu == 1 {
            table.section();
        }
    });
}

/// Who gives up has used its node before, with others behind it: what the
/// node said then must not be taken for what it says now.
fn timeout_of_used_node<L: TimedLock<Loom>>() {
    threads::<L>(2, |table, cpu| {
        table.section();
        if cpu == 0 {
            table.section();
            return;
        }
        table.section_in_time();
    });
}

/// A node lives until it is idle, whoever released it; an acquisition with
/// it that succeeds is as good a sign.
fn given_up_node_ends(try_again: bool) {
    let table = Table::<McsTimeout<Loom>>::new(2);
    let other = spawn(1, move || {
        let node = McsTimeoutNode::default();
        // SAFETY: the node stays until it is idle.
        unsafe {
            if table.lock.lock_until(&node, 1) {
                table.enter();
                table.lock.unlock(&node);
            } else if try_again {
                while !table.lock.try_lock(&node) {
                    Loom::relax();
                }
                table.enter();
                table.lock.unlock(&node);
            } else {
                while !node.is_idle() {
                    Loom::relax();
                }
            }
        }
        drop(node);
    });
    table.section();
    table.section();
    join(other);
    table.finish();
}

/// Readers and writers exclude each other, and readers see what writers
/// wrote.
fn readers<const READERS: usize, const WRITERS: usize, const TIMES: usize>() {
    threads::<RwQueued<Loom>>(READERS + WRITERS, |table, cpu| {
        for _ in 0..TIMES {
            if cpu < WRITERS {
                table.section();
                continue;
            }
            if cpu != 1 || !table.lock.try_read() {
                table.lock.read();
            }
            // SAFETY: this is what is being checked.
            table.data.with(|data| unsafe { *data });
            execution::remark("reads inside");
            // SAFETY: held for reading.
            unsafe { table.lock.read_unlock() };
        }
    });
}

/// A reader who does not let go does not keep another out.
fn readers_share() {
    let table = Table::<RwQueued<Loom>>::new(2);
    table.lock.read();
    join(spawn(1, move || {
        table.lock.read();
        assert!(table.lock.try_read(), "try_read fails among readers");
        assert!(!table.try_lock(), "a writer enters among readers");
        // SAFETY: held for reading, twice.
        unsafe {
            table.lock.read_unlock();
            table.lock.read_unlock();
        }
    }));
    // SAFETY: held for reading.
    unsafe { table.lock.read_unlock() };
    table.finish();
}
