//! What only some locks promise: contexts that end, timeouts, readers, sleep,
//! recursion, hypervisors.

use super::table::{Table, context, join, join_all, run, spawn};
use super::{Lock, Property, exclusion::exclusion};
use crate::execution::{self, Setting};
use crate::platform::Loom;
use locklab_locks::platform::Platform;

/// The promise of a lock whose contexts may go when their acquisition ends;
/// of three threads where a holder reaches past the next waiter.
pub(crate) fn short_lived(lock: &Lock, threads: usize) -> Property {
    if threads == 3 {
        Property::new("contexts end, three", 3, lock, |lock| {
            contexts_end(lock, 3, |table, _| section_with_its_own(table));
        })
    } else {
        Property::new("contexts end", 2, lock, |lock| {
            contexts_end(lock, 2, |table, _| {
                section_with_its_own(table);
                section_with_its_own(table);
            });
        })
    }
}

/// Once `unlock` has returned, nobody uses the context any more: its owner
/// may take the memory back.
fn contexts_end(lock: &Lock, threads: usize, body: fn(&'static Table, usize)) {
    run(Table::new(lock, threads), threads, body);
}

fn section_with_its_own(table: &'static Table) {
    let own = context(&*table.lock, execution::cpu());
    table.lock_with(&own);
    table.enter();
    table.unlock_with(&own);
    drop(own);
}

/// The promise of the same locks: a context may be used as soon as it is made,
/// whichever way its owner acquires, and the next one finds it initialised.
pub(crate) fn just_made(lock: &Lock) -> Property {
    Property::new("contexts begin", 2, lock, |lock| {
        run(Table::new(lock, 2), 2, |table, cpu| {
            let own = context(&*table.lock, cpu);
            if cpu == 1 {
                table.lock_with(&own);
            } else if !table.try_lock_with(&own) {
                return;
            }
            table.enter();
            table.unlock_with(&own);
        });
    })
}

/// The promise of a lock whose contexts serve any number of locks at once: a
/// holder of two, with a waiter for each, lets go of one.
pub(crate) fn one_context(lock: &Lock) -> Property {
    Property::new("one context, two locks", 3, lock, |lock| {
        let tables = [Table::new(lock, 3), Table::new(lock, 3)];
        let own = context(&*tables[0].lock, 0);
        for table in tables {
            table.lock_with(&own);
        }
        let others = [1, 2].map(|cpu| spawn(cpu, move || tables[cpu - 1].section()));
        for table in tables {
            table.enter();
            table.unlock_with(&own);
        }
        join_all(others);
        for table in tables {
            table.finish();
        }
        drop(own);
    })
}

/// The promise of a lock that asks whether it runs on a hypervisor.
pub(crate) fn virtualized(lock: &Lock) -> Vec<Property> {
    let told = |setting: &mut Setting| setting.virtualized = true;
    vec![
        Property::new("reuse, virtualized", 2, lock, |lock| exclusion(lock, 2, 2)).with(told),
        Property::new("three, virtualized", 3, lock, |lock| exclusion(lock, 3, 1)).with(told),
    ]
}

/// So does one that waits behind another.
pub(crate) fn both_sleep(lock: &Lock) -> Property {
    Property::new("two waiters sleep", 3, lock, |lock| {
        let table = Table::new(lock, 3);
        table.lock();
        let waiters = [1, 2].map(|cpu| {
            let waiter = spawn(cpu, move || table.section());
            execution::await_sleep(cpu);
            waiter
        });
        table.enter();
        table.unlock();
        join_all(waiters);
        table.finish();
    })
}

/// A waiter sleeps when the holder does not let go.
pub(super) fn waiters_sleep(lock: &Lock) {
    let table = Table::new(lock, 2);
    table.lock();
    let waiter = spawn(1, move || table.section());
    execution::await_sleep(1);
    table.enter();
    table.unlock();
    join(waiter);
    table.finish();
}

/// The promises of a lock whose acquisition can be given up.
pub(crate) fn timed(lock: &Lock) -> Vec<Property> {
    let coins = |setting: &mut Setting| setting.coins = true;
    vec![
        Property::new("gives up in time", 2, lock, gives_up).with(coins),
        Property::new("timeout", 2, lock, |lock| timeout(lock, 2)).with(coins),
        Property::new("timeout, node used before", 2, lock, timeout_of_used_node).with(coins),
        Property::new("timeout among three", 3, lock, |lock| timeout(lock, 3)).with(coins),
    ]
}

/// The promise of a node that was given up: when it says that it is idle, or
/// has been used again, its owner may take the memory back.
pub(crate) fn given_up(lock: &Lock) -> Vec<Property> {
    let ends = [
        ("given up, node ends", false),
        ("given up, tried, ends", true),
    ];
    let ends = ends.map(|(name, try_again)| {
        Property::new(name, 2, lock, move |lock| {
            given_up_node_ends(lock, try_again)
        })
        .with(|setting| setting.coins = true)
    });
    ends.into()
}

/// While another holds it and does not let go, it gives up.
fn gives_up(lock: &Lock) {
    let table = Table::new(lock, 2);
    table.lock();
    join(spawn(1, move || {
        let own = context(&*table.lock, 1);
        assert!(!table.lock_until(&own, 1), "acquires a lock that is held");
        // Its node may still be in the queue.
        std::mem::forget(own);
    }));
    table.enter();
    table.unlock();
    table.finish();
}

/// Who gives up does not hold it, who does not give up does; and the lock
/// goes on past those who have given up, who may come back.
fn timeout(lock: &Lock, threads: usize) {
    let body: fn(&'static Table, usize) = if threads == 2 {
        |table, cpu| {
            if cpu > 0 {
                table.section_in_time();
            }
            table.section();
        }
    } else {
        |table, cpu| {
            if cpu > 0 {
                table.section_in_time();
            }
            if cpu < 2 {
                table.section();
            }
        }
    };
    run(Table::new(lock, threads), threads, body);
}

/// Who gives up has used its node before, with others behind it: what the
/// node said then must not be taken for what it says now.
fn timeout_of_used_node(lock: &Lock) {
    run(Table::new(lock, 2), 2, |table, cpu| {
        table.section();
        if cpu == 0 {
            table.section();
        } else {
            table.section_in_time();
        }
    });
}

/// A node lives until it is idle, whoever released it; an acquisition with
/// it that succeeds is as good a sign.
fn given_up_node_ends(lock: &Lock, try_again: bool) {
    let table = Table::new(lock, 2);
    let other = spawn(1, move || {
        let own = context(&*table.lock, 1);
        if table.lock_until(&own, 1) {
            table.enter();
            table.unlock_with(&own);
        } else if try_again {
            while !table.try_lock_with(&own) {
                Loom::relax();
            }
            table.enter();
            table.unlock_with(&own);
        } else {
            while !table.lock.is_idle(&own) {
                Loom::relax();
            }
        }
        drop(own);
    });
    table.section();
    table.section();
    join(other);
    table.finish();
}

/// The promises of a reader-writer lock.
pub(crate) fn read_write(lock: &Lock) -> Vec<Property> {
    vec![
        Property::new("a reader and a writer", 2, lock, |lock| {
            readers::<1, 1, 2>(lock);
        }),
        Property::new("two readers at once", 2, lock, readers_share),
        Property::new("two readers and a writer", 3, lock, |lock| {
            readers::<2, 1, 1>(lock);
        }),
        Property::new("a reader and two writers", 3, lock, |lock| {
            readers::<1, 2, 1>(lock);
        }),
    ]
}

/// Readers and writers exclude each other, and readers see what writers
/// wrote.
fn readers<const READERS: usize, const WRITERS: usize, const TIMES: usize>(lock: &Lock) {
    readers_of::<READERS, WRITERS, TIMES>(Table::new(lock, READERS + WRITERS));
}

fn readers_of<const READERS: usize, const WRITERS: usize, const TIMES: usize>(
    table: &'static Table,
) {
    run(table, READERS + WRITERS, |table, cpu| {
        for _ in 0..TIMES {
            if cpu < WRITERS {
                table.section();
                continue;
            }
            if cpu != 1 || !table.lock.try_read() {
                table.lock.read();
            }
            table.enter_reading();
            table.read_unlock();
        }
    });
}

/// A writer tries beside a reader; and where another waits behind it, one that
/// fails has still had its turn, and passes on what it has seen.
pub(crate) fn writer_tries(lock: &Lock) -> Vec<Property> {
    vec![
        Property::new("a reader, a writer tries", 2, lock, |lock| {
            run(Table::new(lock, 2), 2, |table, cpu| match cpu {
                0 => try_to_write(table),
                _ => table.read_section(),
            });
        }),
        Property::new("a writer tries before one", 3, lock, |lock| {
            run(Table::new(lock, 3), 3, |table, cpu| match cpu {
                0 => {
                    table.section();
                    try_to_write(table);
                }
                1 => table.section(),
                _ => {
                    table.read_section();
                    table.read_section();
                }
            });
        }),
    ]
}

fn try_to_write(table: &'static Table) {
    if table.try_lock_at_once() {
        table.enter();
        table.unlock();
    }
}

/// Counts of readers pass their last value.
pub(crate) fn readers_wrap(lock: &Lock) -> Property {
    Property::new("readers wrap around", 2, lock, |lock| {
        run(Table::with(lock, 2, true), 2, |table, cpu| {
            for _ in 0..=cpu {
                table.read_section();
            }
            if cpu == 0 {
                table.section();
            }
        });
    })
}

/// A reader who does not let go does not keep another out.
fn readers_share(lock: &Lock) {
    let table = Table::new(lock, 2);
    table.lock.read();
    join(spawn(1, move || {
        table.lock.read();
        assert!(table.lock.try_read(), "try_read fails among readers");
        assert!(!table.try_lock(), "a writer enters among readers");
        table.read_unlock();
        table.read_unlock();
    }));
    table.read_unlock();
    table.finish();
}

/// What a reader-writer lock promises that a reader has biased: the same, and
/// that readers may be of several such locks.
pub(crate) fn biased(lock: &Lock) -> Vec<Property> {
    vec![
        Property::new("biased, a writer", 2, lock, |lock| {
            readers_of::<1, 1, 2>(biased_table(lock, 2));
        }),
        Property::new("biased, a writer tries", 2, lock, |lock| {
            run(biased_table(lock, 2), 2, |table, cpu| {
                if cpu == 0 {
                    try_to_write(table);
                    table.section();
                } else {
                    table.read_section();
                }
            });
        }),
        Property::new("biased, two readers", 3, lock, |lock| {
            readers_of::<2, 1, 1>(biased_table(lock, 3));
        }),
        // What came between two biases must be seen: the clock stands still,
        // or no reader would bias the lock again so soon.
        Property::new("biased again", 2, lock, |lock| {
            run(biased_table(lock, 2), 2, |table, cpu| {
                if cpu == 0 {
                    table.section();
                }
                table.read_section();
            });
        })
        .with(|setting| setting.clock = false),
        Property::new("a reader passes a writer", 2, lock, reader_passes),
        Property::new("two biased locks", 2, lock, |lock| {
            let tables = [biased_table(lock, 2), biased_table(lock, 2)];
            let reader = spawn(1, move || {
                for table in tables {
                    table.read_section();
                }
            });
            tables[1].section();
            tables[0].section();
            join(reader);
            for table in tables {
                table.finish();
            }
        }),
    ]
}

/// A reader that has biased the lock enters again, although a writer waits.
fn reader_passes(lock: &Lock) {
    let table = Table::new(lock, 2);
    table.lock.read();
    let writer = spawn(1, move || {
        table.section_and_arrive();
    });
    execution::await_arrival(1);
    table.read_section();
    table.read_unlock();
    join(writer);
    table.finish();
}

/// A reader has been inside.
fn biased_table(lock: &Lock, threads: usize) -> &'static Table {
    let table = Table::new(lock, threads);
    execution::set_up(|| {
        table.lock.read();
        table.read_unlock();
    });
    table
}

/// What a lock promises beyond the rest as a big lock.
pub(crate) fn big_properties(lock: &Lock) -> Vec<Property> {
    let mut all = vec![
        Property::new("recursion", 2, lock, recursion),
        Property::new("release_all", 2, lock, release_all),
        Property::new("init", 2, lock, init),
    ];
    if lock.info().try_lock {
        let queue = super::exclusion::queue_behind_try_lock;
        all.push(Property::new("queue behind try_lock", 3, lock, queue));
    }
    all
}

/// The holder takes it again, and it is free only when all levels are undone.
fn recursion(lock: &Lock) {
    run(Table::new(lock, 2), 2, |table, cpu| {
        assert!(!table.lock.held(), "held before it is taken");
        table.lock();
        assert!(table.lock.held(), "not held by its holder");
        if cpu == 0 || !table.info.try_lock {
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
fn release_all(lock: &Lock) {
    run(Table::new(lock, 2), 2, |table, cpu| {
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

/// A lock that was used and is held, then made free by `init`, is as new.
fn init(lock: &Lock) {
    let table = Table::new(lock, 2);
    table.section();
    join(spawn(1, move || table.section()));
    // The memory of a lock that is held, and never will be released.
    table.lock();
    // SAFETY: nobody else knows the lock yet.
    unsafe { table.lock.init() };
    let other = spawn(1, move || table.section());
    table.section();
    join(other);
    if table.info.try_lock {
        assert!(table.try_lock(), "try_lock fails on a lock that is free");
        assert!(table.lock.held(), "not held by who has tried");
        table.enter();
        table.unlock();
    }
    table.finish();
}
