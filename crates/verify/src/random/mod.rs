//! More threads than can be explored to the end: schedules drawn at random,
//! by [shuttle](https://crates.io/crates/shuttle), each from a fixed seed.
//!
//! Sequentially consistent: what weak memory allows is loom's to find. What
//! is found here is what takes many threads: long queues, nodes that come
//! back, NUMA-aware queues with several waiters on each side.
//!
//! Must never say that a promise holds: it says how many schedules kept it.

mod platform;

use crate::explore::{Failure, message, silently};
use crate::isolate::{Crash, isolated};
use crate::models;
use crate::subject::{Context, Instance, Subject};
use locklab_locks::{Info, RawLock};
pub use platform::Random;
use serde::{Deserialize, Serialize};
use shuttle::rand::Rng;
use shuttle::scheduler::{PctScheduler, RandomScheduler, Scheduler};
use shuttle::{Config, FailurePersistence, MaxSteps, Runner};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// Threads of a schedule.
pub const THREADS: usize = 8;

/// Acquisitions of each thread.
const TURNS: usize = 3;

/// Preemptions at chosen points of a priority schedule (PCT: S. Burckhardt
/// et al., "A Randomized Scheduler with Probabilistic Guarantees of Finding
/// Bugs", ASPLOS 2010): a fault that needs so many is found with a
/// probability that has a lower bound.
const DEPTH: usize = 4;

/// Steps after which a schedule counts as without an end.
const STEPS: usize = 200_000;

/// What came of the schedules of one lock.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Drawn {
    /// Schedules run.
    pub schedules: u64,
    /// What went wrong in the last of them.
    pub failure: Option<Failure>,
    /// CPU time that it took.
    pub took: Duration,
}

/// Runs the lock called `name` under `schedules` random schedules, half of
/// them uniform and half by priorities; `None` if there is no such lock.
pub fn draw(name: &str, seed: u64, schedules: usize) -> Option<Drawn> {
    let lock = models::model::<Random, { (THREADS + 1).next_power_of_two() }>(name)?;
    let turn: Turn = match name {
        "rw-queued" | "phase-fair" | "bravo" => readers_and_writers,
        "mcs-timeout" | "mcs-tp" | "rqspinlock" => some_give_up,
        _ => |table, _| table.section(),
    };
    Some(draw_turns(&lock, turn, seed, schedules))
}

/// The same for a lock type that is in no catalogue.
pub fn draw_lock<L: RawLock<Random>>(seed: u64, schedules: usize) -> Drawn {
    draw_subject(&crate::subject::subject::<Random, L>(), seed, schedules)
}

/// The same for a lock that is a value.
pub fn draw_subject(lock: &Arc<dyn Subject>, seed: u64, schedules: usize) -> Drawn {
    draw_turns(lock, |table, _| table.section(), seed, schedules)
}

/// What a task does in its turn; whether it has been inside, alone.
type Turn = fn(&Table, usize) -> bool;

/// In a process of its own.
fn draw_turns(lock: &Arc<dyn Subject>, turn: Turn, seed: u64, schedules: usize) -> Drawn {
    let uniform = schedules / 2;
    let drawn = isolated(|| {
        let model = || {
            let lock = lock.clone();
            move || {
                let about_to_wrap = lock.counts() && chance(1, 2);
                run_tasks(Table::new(&*lock, about_to_wrap), turn);
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
    writers: Cell<usize>,
    readers: Cell<usize>,
    sections: Cell<usize>,
}

/// Who shares a table. Shuttle wants what its tasks share to be `Send`.
struct Shared(Rc<Table>);

// SAFETY: the tasks of a schedule run on the OS thread that made the table.
unsafe impl Send for Shared {}

impl Table {
    fn new(lock: &dyn Subject, about_to_wrap: bool) -> Rc<Self> {
        let info = lock.info();
        let lock = lock.make(about_to_wrap);
        Rc::new(Self {
            contexts: (0..=THREADS).map(|_| lock.context().0).collect(),
            lock,
            info,
            writers: Cell::new(0),
            readers: Cell::new(0),
            sections: Cell::new(0),
        })
    }

    /// Alone inside, for a while.
    fn inside(&self) {
        assert_eq!(self.writers.replace(1), 0, "two holders at once");
        assert_eq!(self.readers.get(), 0, "a holder among readers");
        let sections = self.sections.get();
        shuttle::thread::yield_now();
        self.sections.set(sections + 1);
        assert_eq!(self.writers.replace(0), 1, "two holders at once");
    }

    fn inside_reading(&self) {
        self.readers.set(self.readers.get() + 1);
        shuttle::thread::yield_now();
        assert_eq!(self.writers.get(), 0, "a reader beside a writer");
        self.readers.set(self.readers.get() - 1);
    }

    fn context(&self) -> &Context {
        &self.contexts[platform::task()]
    }

    /// One acquisition, by one of the ways in.
    fn section(&self) -> bool {
        let context = self.context();
        let attempt = self.info.try_lock && chance(1, 3);
        // SAFETY: each task has a context of its own; the table stays until
        // all have ended; unlocked once for each time locked.
        unsafe {
            if attempt {
                if !self.lock.try_lock(context) {
                    return false;
                }
            } else {
                self.lock.lock(context);
            }
            let again = self.info.recursive && chance(1, 3);
            if again {
                self.lock.lock(context);
            }
            self.inside();
            if again {
                self.lock.unlock(context);
                assert_eq!(self.writers.get(), 0, "free before all levels are undone");
            }
            self.lock.unlock(context);
        }
        true
    }
}

fn chance(numerator: u32, denominator: u32) -> bool {
    shuttle::rand::thread_rng().gen_ratio(numerator, denominator)
}

/// Every task takes its turns; then the lock is free, and nothing was lost.
fn run_tasks(table: Rc<Table>, turn: Turn) {
    let tasks: Vec<_> = (1..=THREADS)
        .map(|task| {
            let shared = Shared(table.clone());
            shuttle::thread::spawn(move || {
                let shared = shared;
                let entered = (0..TURNS).filter(|_| turn(&shared.0, task));
                entered.count()
            })
        })
        .collect();
    let mut expected = 0;
    for task in tasks {
        expected += task.join().expect("a task fails the schedule as a whole");
    }
    // SAFETY: as `section`; the main task's own context.
    unsafe {
        table.lock.lock(table.context());
        assert_eq!(table.sections.get(), expected, "an update is lost");
        table.lock.unlock(table.context());
    }
}

/// Every second task may give up, and its node stays in the queue.
fn some_give_up(table: &Table, task: usize) -> bool {
    if task.is_multiple_of(2) {
        return table.section();
    }
    // SAFETY: as `section`; the context is used with this lock only.
    unsafe {
        let got = table.lock.lock_until(table.context(), 1);
        if got {
            table.inside();
            table.lock.unlock(table.context());
        }
        got
    }
}

fn readers_and_writers(table: &Table, task: usize) -> bool {
    if task.is_multiple_of(2) {
        return table.section();
    }
    if chance(1, 3) {
        if !table.lock.try_read() {
            return false;
        }
    } else {
        table.lock.read();
    }
    table.inside_reading();
    // SAFETY: held for reading.
    unsafe { table.lock.read_unlock() };
    false
}
