//! Explores the exclusion of a lock as execution graphs: every execution, each once, with
//! no bound on preemptions.
//!
//! A graph stands for all interleavings that differ only in the order of what does not
//! meet, so three and four threads of most locks are explored to their end. What the
//! models of [`crate::property`] have beyond that (time, interrupts, queues that have
//! formed before) is not here: loom explores it. Here time stands still, and what sleeps
//! is woken by others.
//!
//! Must never call an exploration that a limit has ended complete.

mod platform;
mod world;

use crate::originals::models::{ROOM, model};
use crate::result::{Checker, PropertyResult, Verdict};
use crate::subject::{Context, Instance, Subject};
use locklab_graph::cell::UnsafeCell;
use locklab_graph::{Explorer, FailureKind, Options, Report, thread};
use platform::Graphs;
use std::rc::Rc;
use std::sync::Arc;

/// What is asked of a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Every {
    /// So many threads acquire it, each once.
    Exclusion(usize),
    /// Two threads acquire it, each twice.
    Reuse,
    /// So many threads acquire it; the second tries first, the third tries only.
    TryLock(usize),
    /// So many threads acquire it for reading, but for the first.
    Readers(usize),
}

impl Every {
    fn threads(self) -> usize {
        match self {
            Self::Reuse => 2,
            Self::Exclusion(threads) | Self::TryLock(threads) | Self::Readers(threads) => threads,
        }
    }

    /// Does what a thread does.
    fn act(self, table: &Table, cpu: usize) {
        match self {
            Self::Exclusion(_) => table.section(cpu),
            Self::Reuse => {
                table.section(cpu);
                table.section(cpu);
            }
            Self::TryLock(_) => {
                if (cpu == 1 || cpu == 2) && table.try_lock(cpu) {
                    table.enter();
                    table.unlock(cpu);
                }
                if cpu != 2 {
                    table.section(cpu);
                }
            }
            Self::Readers(_) if cpu == 0 => table.section(cpu),
            Self::Readers(_) => table.read_section(cpu),
        }
    }
}

/// A lock, a context for each thread, and the data that the lock protects.
struct Table {
    lock: Box<dyn Instance>,
    contexts: Vec<Context>,
    data: UnsafeCell<usize>,
}

impl Table {
    fn new(lock: &dyn Subject, threads: usize) -> Self {
        let lock = lock.make(false);
        let contexts = (0..threads).map(|_| lock.context().0).collect();
        Self {
            lock,
            contexts,
            data: UnsafeCell::new(0),
        }
    }

    fn lock(&self, cpu: usize) {
        // SAFETY: each thread uses its own context, one acquisition at a time; the table
        // stays in place.
        unsafe { self.lock.lock(&self.contexts[cpu]) }
    }

    fn try_lock(&self, cpu: usize) -> bool {
        // SAFETY: as `lock`.
        unsafe { self.lock.try_lock(&self.contexts[cpu]) }
    }

    fn unlock(&self, cpu: usize) {
        // SAFETY: the caller has acquired it.
        unsafe { self.lock.unlock(&self.contexts[cpu]) }
    }

    fn enter(&self) {
        // SAFETY: this is what is being checked; a race is reported.
        self.data.with_mut(|data| unsafe { *data += 1 });
    }

    fn section(&self, cpu: usize) {
        self.lock(cpu);
        self.enter();
        self.unlock(cpu);
    }

    fn read_section(&self, cpu: usize) {
        // SAFETY: as `lock`.
        unsafe { self.lock.read(&self.contexts[cpu]) };
        // SAFETY: this is what is being checked; a race is reported.
        self.data.with(|data| unsafe { *data });
        // SAFETY: it has been acquired for reading.
        unsafe { self.lock.read_unlock(&self.contexts[cpu]) };
    }
}

/// Explores every execution of a lock of the catalogue, as far as the options allow.
/// Returns `None` if there is no such lock, or it cannot be asked this.
pub fn every_execution(name: &str, every: Every, options: &Options) -> Option<Report> {
    explore(&model::<Graphs, ROOM>(name)?, every, options)
}

fn explore(lock: &Arc<dyn Subject>, every: Every, options: &Options) -> Option<Report> {
    let info = lock.info();
    let can = match every {
        Every::TryLock(_) => info.try_lock,
        Every::Readers(_) => info.readers_share,
        _ => true,
    };
    if !can {
        return None;
    }
    world::configure();
    loop {
        let asked = world::asked();
        let lock = lock.clone();
        let report = Explorer::new(options.clone()).check(move || run(&*lock, every));
        world::end();
        if world::asked() == asked {
            return Some(report);
        }
    }
}

/// Runs one execution.
fn run(lock: &dyn Subject, every: Every) {
    let threads = every.threads();
    world::begin(threads, threads < 3 && lock.info().parks);
    let table = Rc::new(Table::new(lock, threads));
    let others: Vec<_> = (1..threads)
        .map(|cpu| {
            let table = table.clone();
            thread::spawn(move || every.act(&table, cpu))
        })
        .collect();
    every.act(&table, 0);
    for other in others {
        other.join();
    }
    // All are done: the lock is free to who comes, and no update is lost.
    table.section(0);
    // SAFETY: the others have ended.
    let entered = table.data.with(|data| unsafe { *data });
    let least = match every {
        Every::Exclusion(threads) => threads + 1,
        Every::Reuse => 5,
        Every::TryLock(threads) => threads.min(2) + threads.saturating_sub(3) + 1,
        Every::Readers(_) => 2,
    };
    assert!(entered >= least, "an update of the data is lost");
}

/// The most executions, blocked ones too, of a row: where a lock has more, the row is
/// loom's.
const EXECUTIONS: u64 = 20_000;

/// The most events of a thread: none of a lock that ends has a hundred.
const EVENTS: usize = 1_000;

/// Explores every execution of a promise that loom has explored within a bound, or with
/// one order of some reads, and returns the row of that. Where this comes to no end the row
/// stays, and so it does of a lock whose waiters sleep, which are not as free here.
pub(crate) fn beyond_the_bound(name: &str, row: PropertyResult) -> PropertyResult {
    let every = match row.name {
        "exclusion" => Every::Exclusion(2),
        "exclusion of three" => Every::Exclusion(3),
        "reuse" => Every::Reuse,
        _ => return row,
    };
    let bounded = row.preemptions.is_some() || !row.reads.reach(row.preemptions);
    let lock = model::<Graphs, ROOM>(name).filter(|lock| !lock.info().parks);
    let (Some(lock), true) = (lock, bounded && row.outcome != Verdict::Fails) else {
        return row;
    };
    let options = Options {
        executions: EXECUTIONS,
        events: EVENTS,
        ..Options::default()
    };
    let Some(report) = explore(&lock, every, &options) else {
        return row;
    };
    let seconds = row.seconds + report.took.as_secs_f64();
    let broken = report
        .error
        .filter(|error| error.kind != FailureKind::TooLong);
    let (outcome, failure) = match broken {
        Some(error) => (Verdict::Fails, Some(error.to_string())),
        None if report.limit.is_none() && report.bounded.is_empty() && report.executions > 1 => {
            (Verdict::Holds, None)
        }
        None => return PropertyResult { seconds, ..row },
    };
    PropertyResult {
        checker: Checker::Graphs,
        preemptions: None,
        executions: report.executions,
        seconds,
        outcome,
        left_out: Vec::new(),
        schedules: 0,
        failure,
        ..row
    }
}

#[cfg(test)]
#[path = "../tests/unit/graphs.rs"]
mod tests;
