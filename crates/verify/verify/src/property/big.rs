//! Checks what a lock promises over a whole kernel: recursion, `held`, `init`.

use super::definition::{Lock, Property};
use super::table::{Table, join, run, spawn};
use crate::execution::{self, MAX_THREADS};

/// Returns what a lock promises beyond the rest as a big lock.
pub(crate) fn big_properties(lock: &Lock) -> Vec<Property> {
    let mut all = vec![
        Property::new("recursion", 2, lock, recursion),
        Property::new("release_all", 2, lock, release_all),
        Property::new("init", 2, lock, init),
        // By the CPUs at both ends of a table.
        Property::new("init of any memory", 2, lock, init_of_garbage)
            .with(|setting| setting.last_cpus = true),
        Property::new("init between uses", 2, lock, |lock| {
            init_between_uses(lock);
            init_before_the_last(lock);
        }),
        Property::new("held, asked in a wait", 2, lock, |lock| {
            held_while_waiting(lock, false);
        }),
        Property::new("many levels", 2, lock, many_levels),
        Property::new("the last CPU", 4, lock, last_cpu),
    ];
    if lock.counts() {
        let wraps = |lock: &Lock| held_while_waiting(lock, true);
        all.push(Property::new("held, asked at the wrap", 2, lock, wraps));
    }
    if lock.info().try_lock {
        let queue = super::exclusion::queue_behind_try_lock;
        all.push(Property::new("queue behind try_lock", 3, lock, queue));
    }
    all
}

/// Checks that the holder takes it again, and it is free only when all levels are undone.
fn recursion(lock: &Lock) {
    run(Table::new(lock, 2), 2, |table, cpu| {
        assert!(!table.held(), "held before it is taken");
        table.lock();
        assert!(table.held(), "not held by its holder");
        if cpu == 0 || !table.info.try_lock {
            table.lock();
        } else {
            assert!(table.try_lock(), "try_lock fails for the holder");
        }
        table.enter();
        table.unlock();
        assert!(table.held(), "free before all levels are undone");
        table.enter();
        table.unlock();
        assert!(!table.held(), "held after all levels are undone");
    });
}

/// Checks that all levels go at once, and come back at once.
fn release_all(lock: &Lock) {
    run(Table::new(lock, 2), 2, |table, cpu| {
        if cpu == 1 {
            table.section();
            return;
        }
        assert_eq!(table.release_all(), 0, "levels without a holder");
        table.acquire_count(2);
        table.enter();
        let levels = table.release_all();
        assert_eq!(levels, 2, "levels are miscounted");
        assert!(!table.held(), "held after release_all");
        table.acquire_count(levels);
        assert!(table.held(), "not held by its holder");
        table.unlock();
        table.enter();
        table.unlock();
    });
}

/// Checks that a lock that was used and is held, then made free by `init`, is as new.
fn init(lock: &Lock) {
    let table = Table::new(lock, 2);
    table.section();
    join(spawn(1, move || table.section()));
    // The memory of a lock that is held, and never will be released.
    table.lock();
    table.init();
    let other = spawn(1, move || table.section());
    table.section();
    join(other);
    if table.info.try_lock {
        assert!(table.try_lock(), "try_lock fails on a lock that is free");
        assert!(table.held(), "not held by who has tried");
        table.enter();
        table.unlock();
    }
    table.finish();
}

/// Checks that `init` makes a lock of memory that contained anything.
fn init_of_garbage(lock: &Lock) {
    let table = Table::of_garbage(lock, 2);
    table.init();
    run(table, 2, |table, _| {
        assert!(!table.held(), "held before it is taken");
        table.lock();
        assert!(table.held(), "not held by its holder");
        table.enter();
        table.unlock();
        table.section();
    });
}

/// Checks that a CPU whose places have moved on with each use finds them as new.
fn init_between_uses(lock: &Lock) {
    let table = Table::new(lock, 1);
    for _ in 0..3 {
        table.section();
        table.init();
        assert!(!table.held(), "held after init");
    }
    table.finish();
}

/// Checks that a lock that was used until its last slot came next is as new after `init`, also
/// when that slot comes again.
fn init_before_the_last(lock: &Lock) {
    let table = Table::new(lock, 2);
    execution::set_up(|| {
        for _ in 1..MAX_THREADS {
            table.section();
        }
        table.init();
        for _ in 2..MAX_THREADS {
            table.section();
        }
    });
    run(table, 2, |table, _| {
        table.section();
        table.section();
    });
}

/// Checks an interrupt of a CPU that waits: it asks whether that CPU holds the lock, which
/// another does.
fn held_while_waiting(lock: &Lock, wraps: bool) {
    let table = Table::with(lock, 2, wraps);
    table.lock();
    let waiter = spawn(1, move || {
        execution::interrupt_wait(|| {
            assert!(!table.held(), "held by a CPU that waits for it");
            execution::arrive(1);
        });
        table.section();
        assert!(!table.held(), "held after all levels are undone");
    });
    execution::await_arrival(1);
    table.enter();
    table.unlock();
    join(waiter);
    table.finish();
}

/// Checks more levels than a byte counts.
fn many_levels(lock: &Lock) {
    const LEVELS: u32 = 257;
    let table = Table::new(lock, 2);
    execution::set_up(|| {
        table.acquire_count(LEVELS);
        for _ in 1..LEVELS {
            table.unlock();
        }
        assert!(table.held(), "free before all levels are undone");
        table.acquire_count(LEVELS - 1);
        assert_eq!(table.release_all(), LEVELS, "levels are miscounted");
        assert!(!table.held(), "held after all levels are undone");
    });
    // No level is left that would let it in beside another.
    let other = spawn(1, move || table.section());
    table.section();
    join(other);
    table.finish();
}

/// Checks the CPU with the greatest number, which has the last entry of each table.
fn last_cpu(lock: &Lock) {
    let table = Table::new(lock, 4);
    let last = spawn(3, move || {
        table.section();
        table.section();
        assert!(!table.held(), "held after all levels are undone");
    });
    table.section();
    table.section();
    join(last);
    table.init();
    join(spawn(3, move || table.section()));
    table.finish();
}
