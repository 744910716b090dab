//! Programs of operations that are drawn, and what they answer: every operation that a
//! lock has, in any sequence, in worlds that are drawn too.
//!
//! The other models ask for what somebody has thought of. Here each thread draws what
//! it does next, where it stops, how often its interrupts take other locks, and which
//! numbers, NUMA nodes and queue nodes its CPU has; answers are compared with the
//! reference. Each program runs in one order: many programs, and no proof.

use super::definition::{Lock, Property};
use super::table::{Table, join_all, let_others_wait, spawn};
use crate::execution::{self, Drawn, HOUR, MAX_THREADS};
use locklab_locks::{Fairness, MAX_CPUS, NESTING};
use std::cell::Cell;

/// Programs of each lock.
const PROGRAMS: u64 = 3_000;

/// The most turns of a thread.
const TURNS: usize = 5;

/// Locks inside one another: the first is that of the turns, each other is taken by an
/// interrupt, or inside.
const DEPTH: usize = NESTING + 1;

/// Gives how long a lock waits that fails for a reason of its own: less than an hour.
const OWN_LIMIT: u64 = HOUR / 2;

/// Says what a lock has beyond what every lock has.
#[derive(Clone, Copy, Default)]
pub(crate) struct Operations {
    /// Readers share it: `read`; `try_read`; and `downgrade`.
    pub(crate) reads: bool,
    pub(crate) try_read: bool,
    pub(crate) downgrade: bool,
    /// An acquisition can be given up, and can fail for a reason of its own.
    pub(crate) timed: bool,
    pub(crate) fails: bool,
    /// It is a big lock.
    pub(crate) big: bool,
    /// Says that with its counters at their last value it works as ever.
    pub(crate) wraps: bool,
    /// Limits the acquisitions of a CPU that are under way at once; 0: as many as can nest, and
    /// one more.
    pub(crate) depth: usize,
    /// No acquisition is interrupted by another.
    pub(crate) not_interrupted: bool,
}

/// Returns the promise that a lock keeps all others in any program.
pub(crate) fn programs(lock: &Lock, operations: Operations) -> Property {
    let info = lock.info();
    let drawn = Drawn {
        no_node: info.cpu_numbers && !operations.big,
        any_number: info.cpu_numbers && info.max_cpus == MAX_CPUS,
    };
    let property = Property::new("programs", MAX_THREADS, lock, move |lock| {
        any_program(lock, operations);
    });
    let property = property.with(|setting| {
        setting.choices = false;
        setting.clock = false;
        setting.drawn = Some(drawn);
    });
    Property {
        drawn: Some(PROGRAMS),
        ..property
    }
}

/// Holds what the threads of a program share. They are coroutines of one OS thread.
struct Program {
    tables: Vec<&'static Table>,
    operations: Operations,
    /// Says how deep each thread is in interrupts and in sections inside others.
    depths: [Cell<usize>; MAX_THREADS],
    /// Says whether each thread may be interrupted now.
    open: [Cell<bool>; MAX_THREADS],
    /// A thread stops before one in so many of its accesses; 0: before none.
    stops: usize,
    /// The number of accesses of which it is interrupted before one.
    interrupts: usize,
}

fn any_program(lock: &Lock, operations: Operations) {
    let wraps = operations.wraps && execution::chance(3);
    let table = |depth| {
        Table::strict(
            lock,
            MAX_THREADS,
            wraps && depth == 0,
            keeps_order(lock, depth),
        )
    };
    let anywhere = lock.info().cpu_numbers && !operations.big && !operations.not_interrupted;
    let depth = match operations.depth {
        0 => DEPTH,
        depth => depth.min(DEPTH),
    };
    let program: &'static Program = Box::leak(Box::new(Program {
        tables: (0..depth).map(table).collect(),
        operations,
        depths: Default::default(),
        open: Default::default(),
        stops: [0, 4, 10, 40][execution::below(4)],
        interrupts: if anywhere { 60 } else { 0 },
    }));
    execution::set_up(|| {
        let others: Vec<_> = (1..MAX_THREADS)
            .map(|cpu| spawn(cpu, move || program.turns()))
            .collect();
        program.turns();
        join_all(others);
        for table in &program.tables {
            table.finish();
        }
    });
    // SAFETY: made above; the threads that shared it have ended.
    drop(unsafe { Box::from_raw(std::ptr::from_ref(program).cast_mut()) });
}

impl Program {
    fn depth(&self) -> &Cell<usize> {
        &self.depths[execution::cpu()]
    }

    fn table(&self) -> &'static Table {
        self.tables[self.depth().get()]
    }

    /// Takes the turns of a thread.
    fn turns(&'static self) {
        self.open[execution::cpu()].set(true);
        execution::before_each_access(|| self.before_access());
        self.interrupt_waits();
        for _ in 0..=execution::below(TURNS) {
            self.turn();
            if self.operations.timed && execution::chance(6) {
                execution::let_time_pass();
            }
        }
        self.open[execution::cpu()].set(false);
        execution::before_no_access();
    }

    fn before_access(&'static self) {
        if self.stops > 0 && execution::chance(self.stops) {
            let_others_wait(1 + execution::below(9));
        }
        if self.interrupts > 0 && execution::chance(self.interrupts) {
            self.deeper();
        }
    }

    /// Makes this thread keep its place from here on where it waits without limit, and may be
    /// interrupted there.
    fn interrupt_waits(&'static self) {
        if self.operations.big || self.operations.not_interrupted {
            // Whose interrupts are off.
            return;
        }
        execution::interrupt_wait(move || {
            if execution::waits_without_limit() {
                self.table().keeps_place();
            }
            if execution::chance(8) {
                self.deeper();
            }
            self.interrupt_waits();
        });
    }

    /// Takes another lock, inside what this thread does.
    fn deeper(&'static self) {
        let depth = self.depth();
        let open = &self.open[execution::cpu()];
        if !open.get() || depth.get() + 1 == self.tables.len() {
            return;
        }
        depth.set(depth.get() + 1);
        self.turn();
        depth.set(depth.get() - 1);
    }

    /// Runs what must not wait, which is not interrupted by what may.
    fn undisturbed<R>(&self, body: impl FnOnce() -> R) -> R {
        let open = &self.open[execution::cpu()];
        let before = open.replace(false);
        let result = body();
        open.set(before);
        result
    }

    /// Makes one use of the lock, by one of the ways in.
    fn turn(&'static self) {
        let (table, has) = (self.table(), self.operations);
        if has.reads && execution::chance(2) {
            let tries = has.try_read && execution::chance(2);
            if tries && !self.undisturbed(|| table.try_read()) {
                return;
            }
            if !tries {
                table.read();
            }
            return self.read(table);
        }
        if self.acquires(table) {
            self.hold(table);
        }
    }

    /// Acquires alone, if that is not given up.
    fn acquires(&self, table: &Table) -> bool {
        let has = self.operations;
        match execution::below(4) {
            0 if table.info.try_lock => self.undisturbed(|| table.try_lock_at_once()),
            1 if has.timed => {
                let now = execution::time();
                let deadline = [0, now, now + 1, u64::MAX][execution::below(4)];
                table.lock_until(table.own(), deadline)
            }
            2 if has.fails => table.lock_or_fail_within(OWN_LIMIT),
            3 if has.big => {
                let levels = execution::below(3) as u32;
                table.acquire_count(levels);
                levels > 0
            }
            _ => {
                table.lock();
                true
            }
        }
    }

    /// Holds the lock alone, and lets go.
    fn hold(&'static self, table: &'static Table) {
        table.enter();
        if execution::chance(2) {
            table.says_it_is_locked(true);
        }
        if !self.operations.big && execution::chance(6) {
            self.deeper();
        }
        if self.operations.big {
            return self.levels(table);
        }
        if self.operations.downgrade && execution::chance(3) {
            table.downgrade();
            return self.read(table);
        }
        if execution::chance(2) {
            table.says_it_is_locked(true);
        }
        table.unlock();
    }

    /// Reads, beside others, and lets go.
    fn read(&'static self, table: &'static Table) {
        table.enter_reading();
        // A reader that waits behind a writer that waits for it would wait for ever.
        let again = self.operations.downgrade
            && execution::chance(3)
            && self.undisturbed(|| table.try_read());
        if execution::chance(2) {
            table.says_it_is_locked(true);
        }
        if execution::chance(6) {
            self.deeper();
        }
        if again {
            table.read_unlock();
            table.enter_reading();
        }
        table.read_unlock();
    }

    /// Holds a recursive lock, at changing levels, and lets go.
    fn levels(&self, table: &Table) {
        for _ in 0..execution::below(5) {
            assert!(table.held(), "not held by its holder");
            match execution::below(4) {
                0 => table.lock(),
                1 if table.info.try_lock => {
                    assert!(table.try_lock_at_once(), "try_lock fails for the holder");
                }
                2 => table.acquire_count(execution::below(3) as u32),
                _ if table.levels() > 1 => table.unlock(),
                _ => table.enter(),
            }
        }
        if execution::chance(2) {
            let levels = table.levels();
            assert_eq!(table.release_all(), levels, "levels are miscounted");
        } else {
            (0..table.levels()).for_each(|_| table.unlock());
        }
        assert!(!table.held(), "held after all levels are undone");
        assert_eq!(table.release_all(), 0, "levels without a holder");
    }
}

/// Returns whether threads keep the places in which they wait, of the lock at this depth: a CPU
/// without a node has none.
fn keeps_order(lock: &Lock, depth: usize) -> bool {
    let info = lock.info();
    let nodes = execution::all_have_nodes() && depth < NESTING;
    info.fairness == Fairness::Fifo && (nodes || !info.cpu_numbers || info.recursive)
}
