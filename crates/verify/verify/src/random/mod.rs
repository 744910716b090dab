//! Runs more threads than can be explored to the end, in schedules drawn at random,
//! by [shuttle](https://crates.io/crates/shuttle), each from a fixed seed.
//!
//! Sequentially consistent: what weak memory allows is loom's to find. What
//! is found here is what takes many threads: long queues, nodes that come
//! back, NUMA-aware queues with several waiters on each side; tasks that are
//! interrupted while they wait and take other locks then, that move between
//! CPUs and NUMA nodes, that have no number or no node left. Each answer of a
//! lock is compared with what the reference ([`crate::specification`]) allows.
//!
//! Must never say that a promise holds: it says how many schedules kept it.

mod platform;

use crate::explore::{message, silently};
use crate::isolate::{Crash, isolated};
use crate::originals::models;
use crate::outcome::Failure;
use crate::specification::{Answer, Interface, Operation, Reference};
use crate::subject::{Context, Instance, Subject};
use locklab_locks::{Fairness, Info, Overtakes, RawLock};
pub use platform::{Random, THREADS};
use serde::{Deserialize, Serialize};
use shuttle::rand::Rng;
use shuttle::scheduler::{PctScheduler, RandomScheduler, Scheduler};
use shuttle::{Config, FailurePersistence, MaxSteps, Runner};
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// Acquisitions of each thread.
const TURNS: usize = 3;

/// Preemptions at chosen points of a priority schedule (PCT: S. Burckhardt
/// et al., "A Randomized Scheduler with Probabilistic Guarantees of Finding
/// Bugs", ASPLOS 2010): a fault that needs so many is found with a
/// probability that has a lower bound.
const DEPTH: usize = 4;

/// Steps after which a schedule counts as without an end.
const STEPS: usize = 200_000;

/// Holds what came of the schedules of one lock.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Drawn {
    /// Counts the schedules that were run.
    pub schedules: u64,
    /// Says what went wrong in the last of them.
    pub failure: Option<Failure>,
    /// CPU time that it took.
    pub took: Duration,
}

/// Runs the lock called `name` under `schedules` random schedules, half of
/// them uniform and half by priorities; `None` if there is no such lock.
pub fn draw(name: &str, seed: u64, schedules: usize) -> Option<Drawn> {
    let lock = match name {
        // As many turns as there are threads wait at one slot, and next to it.
        "anderson" => models::model::<Random, 2>(name)?,
        _ => models::model::<Random, { platform::CPUS.next_power_of_two() }>(name)?,
    };
    let turn: Turn = if lock.info().readers_share {
        readers_and_writers
    } else if lock.info().timeout {
        some_give_up
    } else {
        |table, _| table.section()
    };
    Some(draw_turns(&lock, turn, seed, schedules))
}

/// Does the same for a lock type that is in no catalogue.
pub fn draw_lock<L: RawLock<Random>>(seed: u64, schedules: usize) -> Drawn {
    draw_subject(&crate::subject::subject::<Random, L>(), seed, schedules)
}

/// Does the same for a lock that is a value.
pub fn draw_subject(lock: &Arc<dyn Subject>, seed: u64, schedules: usize) -> Drawn {
    draw_turns(lock, |table, _| table.section(), seed, schedules)
}

/// Is what a task does in its turn.
type Turn = fn(&Table, usize);

/// Draws them in a process of its own.
fn draw_turns(lock: &Arc<dyn Subject>, turn: Turn, seed: u64, schedules: usize) -> Drawn {
    let uniform = schedules / 2;
    let drawn = isolated(|| {
        let model = || {
            let lock = lock.clone();
            move || {
                let about_to_wrap = lock.counts() && chance(1, 2);
                let table = |_| Table::new(&*lock, about_to_wrap);
                run_tasks((0..=platform::DEEPEST).map(table).collect(), turn);
            }
        };
        let first = run(RandomScheduler::new_from_seed(seed, uniform), model());
        if first.failure.is_some() {
            return first;
        }
        let by_priority = PctScheduler::new_from_seed(seed, DEPTH, schedules - uniform);
        let second = run(by_priority, model());
        Drawn {
            schedules: first.schedules + second.schedules,
            ..second
        }
    });
    let answer = drawn.answer.unwrap_or_else(|crash: Crash| Drawn {
        schedules: crash.executions,
        failure: Some(crash.failure),
        took: Duration::ZERO,
    });
    Drawn {
        took: drawn.cpu,
        ..answer
    }
}

fn run(scheduler: impl Scheduler + 'static, model: impl Fn() + Send + Sync + 'static) -> Drawn {
    let mut config = Config::new();
    config.failure_persistence = FailurePersistence::None;
    config.silence_warnings = true;
    config.max_steps = MaxSteps::FailAfter(STEPS);
    let begun = Arc::new(std::sync::atomic::AtomicU64::new(0));
    let counted = begun.clone();
    let result = silently(|| {
        catch_unwind(AssertUnwindSafe(|| {
            Runner::new(scheduler, config).run(move || {
                counted.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                platform::begin();
                let journal = crate::journal::Journal::current();
                journal
                    .executions
                    .fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                model();
            })
        }))
    });
    let schedules = begun.load(std::sync::atomic::Ordering::Relaxed);
    Drawn {
        schedules,
        failure: result.err().map(|payload| Failure {
            message: format!("{} (schedule {schedules})", message(&*payload)),
            trace: Vec::new(),
        }),
        took: Duration::ZERO,
    }
}

/// A lock, and what is known of who is inside. The tasks of a schedule are
/// coroutines of one OS thread, so plain cells count.
struct Table {
    lock: Box<dyn Instance>,
    info: Info,
    contexts: Vec<Context>,
    reference: RefCell<Reference>,
    readers: Cell<usize>,
    sections: Cell<usize>,
    entered: Cell<usize>,
}

/// Holds the tables that tasks share. Shuttle wants what its tasks share to be `Send`.
struct Shared(Rc<[Table]>);

// SAFETY: the tasks of a schedule run on the OS thread that made the tables.
unsafe impl Send for Shared {}

impl Table {
    fn new(lock: &dyn Subject, about_to_wrap: bool) -> Self {
        let info = lock.info();
        let lock = lock.make(about_to_wrap);
        let others = THREADS as u32;
        let interface = Interface {
            recursive: info.recursive,
            detects_deadlocks: info.held_locks,
            sequentially_consistent: true,
            // Accesses are not told of here.
            accesses: None,
            overtakes: match (info.fairness, info.overtakes) {
                (_, Some(Overtakes::ByEachCpu(times))) => Some(others * times),
                // One without a node has no place that it could keep.
                (Fairness::Fifo, None) if !info.cpu_numbers => Some(0),
                _ => None,
            },
        };
        Self {
            contexts: (0..=THREADS).map(|_| lock.context().0).collect(),
            lock,
            info,
            reference: RefCell::new(Reference::new(interface, THREADS + 1)),
            readers: Cell::new(0),
            sections: Cell::new(0),
            entered: Cell::new(0),
        }
    }

    /// Calls an operation, and compares its answer with the reference's.
    fn call<R>(&self, call: Operation, body: impl FnOnce() -> R, answer: fn(&R) -> Answer) -> R {
        self.call_until(call, u64::MAX, body, answer)
    }

    fn call_until<R>(
        &self,
        call: Operation,
        deadline: u64,
        body: impl FnOnce() -> R,
        answer: fn(&R) -> Answer,
    ) -> R {
        let task = platform::task();
        let right = |answer| {
            if let Err(wrong) = answer {
                panic!("{wrong}");
            }
        };
        right(self.reference.borrow_mut().begin(task, call));
        let result = body();
        let in_time = platform::time() < deadline;
        let answer = answer(&result);
        right(self.reference.borrow_mut().end(task, answer, in_time));
        result
    }

    fn lock(&self) {
        // SAFETY: each task has a context of its own; the table stays until
        // all have ended; unlocked once for each time locked.
        let body = || unsafe { self.lock.lock(self.context()) };
        self.call(Operation::Lock, body, |()| Answer::Done);
    }

    fn try_lock(&self) -> bool {
        // SAFETY: as `lock`.
        let body = || unsafe { self.lock.try_lock(self.context()) };
        self.call(Operation::TryLock, body, done_if)
    }

    fn unlock(&self) {
        // SAFETY: as `lock`.
        let body = || unsafe { self.lock.unlock(self.context()) };
        self.call(Operation::Unlock, body, |()| Answer::Done);
    }

    fn read_unlock(&self) {
        // SAFETY: held for reading.
        let body = || unsafe { self.lock.read_unlock(self.context()) };
        self.call(Operation::ReadUnlock, body, |()| Answer::Done);
    }

    /// Stays alone inside for a while.
    fn inside(&self) {
        let sections = self.sections.get();
        shuttle::thread::yield_now();
        self.sections.set(sections + 1);
        self.entered.set(self.entered.get() + 1);
    }

    fn inside_reading(&self) {
        self.readers.set(self.readers.get() + 1);
        let sections = self.sections.get();
        shuttle::thread::yield_now();
        assert_eq!(self.sections.get(), sections, "a reader beside a writer");
        self.readers.set(self.readers.get() - 1);
    }

    fn context(&self) -> &Context {
        &self.contexts[platform::task()]
    }

    /// Makes one acquisition, by one of the ways in.
    fn section(&self) {
        if self.info.try_lock && chance(1, 3) {
            if !self.try_lock() {
                return;
            }
        } else {
            self.lock();
        }
        let again = self.info.recursive && chance(1, 3);
        if again {
            self.lock();
        }
        self.inside();
        if again {
            self.unlock();
            self.inside();
        }
        self.unlock();
    }
}

fn done_if(done: &bool) -> Answer {
    if *done { Answer::Done } else { Answer::No }
}

fn chance(numerator: u32, denominator: u32) -> bool {
    shuttle::rand::thread_rng().gen_ratio(numerator, denominator)
}

/// Checks that every task takes its turns, that the lock is free after that, and that
/// nothing was lost. The first table is that of the tasks, the others those of their
/// interrupts.
fn run_tasks(tables: Rc<[Table]>, turn: Turn) {
    let deeper = tables.clone();
    let waiting = tables.clone();
    // Of a big lock, interrupts are off.
    let interrupted = !tables[0].info.recursive;
    platform::interrupt_with(
        interrupted.then_some(move || deeper[platform::depth()].section()),
        move || {
            let table = &waiting[platform::depth()];
            table.reference.borrow_mut().waits(platform::task());
        },
    );
    let tasks: Vec<_> = (1..=THREADS)
        .map(|task| {
            let shared = Shared(tables.clone());
            shuttle::thread::spawn(move || {
                let shared = shared;
                for _ in 0..TURNS {
                    platform::migrate();
                    turn(&shared.0[0], task);
                }
            })
        })
        .collect();
    for task in tasks {
        task.join().expect("a task fails the schedule as a whole");
    }
    for table in &*tables {
        table.lock();
        let expected = table.entered.get();
        assert_eq!(table.sections.get(), expected, "an update is lost");
        table.unlock();
    }
    platform::end();
}

/// Lets every second task give up, whose node stays in the queue.
fn some_give_up(table: &Table, task: usize) {
    if task.is_multiple_of(2) {
        return table.section();
    }
    let deadline = 1;
    // SAFETY: as `lock`; the context is used with this lock only.
    let body = || unsafe { table.lock.lock_until(table.context(), deadline) };
    if table.call_until(Operation::LockUntil, deadline, body, done_if) {
        table.inside();
        table.unlock();
    }
}

fn readers_and_writers(table: &Table, task: usize) {
    if task.is_multiple_of(2) {
        if chance(1, 2) {
            return table.section();
        }
        table.lock();
        table.inside();
        // SAFETY: held alone.
        let body = || unsafe { table.lock.downgrade() };
        table.call(Operation::Downgrade, body, |()| Answer::Done);
    } else if chance(1, 3) {
        // SAFETY: as `lock`.
        let body = || unsafe { table.lock.try_read(table.context()) };
        if !table.call(Operation::TryRead, body, done_if) {
            return;
        }
    } else {
        // SAFETY: as `lock`.
        let body = || unsafe { table.lock.read(table.context()) };
        table.call(Operation::Read, body, |()| Answer::Done);
    }
    table.inside_reading();
    table.read_unlock();
}
