//! Interrupts that take locks too, on a CPU that is taking one.

use super::table::{TURNS, Table, join, join_all, let_others_wait, spawn, spawn_until_it_waits};
use super::{Lock, Property};
use crate::execution;
use locklab_locks::NESTING;
use std::cell::RefCell;
use std::rc::Rc;

/// Locks for one CPU to take, one inside the interrupt of another.
fn tables(lock: &Lock, locks: usize, threads: usize) -> &'static [&'static Table] {
    Vec::leak((0..locks).map(|_| Table::new(lock, threads)).collect())
}

/// The promise where an interrupt comes before any one access, and nothing else
/// comes by chance.
fn interrupting(property: Property) -> Property {
    property.with(|setting| {
        setting.interrupts = true;
        setting.coins = false;
    })
}

/// Takes the first lock; an interrupt while it waits takes the others.
fn descend(tables: &'static [&'static Table]) {
    let Some((table, rest)) = tables.split_first() else {
        return execution::arrive(execution::cpu());
    };
    execution::interrupt_wait(|| descend(rest));
    table.section();
}

/// Interrupts, which take locks too, while their CPU waits: as many as can
/// nest, and one more. Two CPUs go down so at once; the holder of all the
/// locks then lets go, in any interleaving with their return.
///
/// A lock that does not use the CPU's queue nodes has no limit to come to:
/// two locks, one interrupt.
pub(super) fn nesting(lock: &Lock) {
    let depth = if execution::with_queue_nodes() {
        NESTING + 1
    } else {
        2
    };
    let tables = tables(lock, depth, 3);
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
    join_all(others);
    for table in tables {
        table.finish();
    }
}

/// An interrupt before any one access of a CPU that takes a lock, behind two
/// others: it takes a second lock, behind the same two.
///
/// What the interrupt does with the queue nodes of its CPU must not be seen
/// in what was interrupted.
pub(crate) fn interrupted(lock: &Lock) -> Property {
    let property = Property::new("interrupted anywhere", 4, lock, |lock| {
        let tables = tables(lock, 2, 4);
        let mut others = Vec::new();
        execution::set_up(|| {
            for table in tables {
                table.lock();
            }
            for cpu in [1, 3] {
                others.push(spawn(cpu, move || descend(tables)));
                execution::await_arrival(cpu);
            }
        });
        others.push(spawn(2, move || {
            execution::interrupt_anywhere(|| tables[1].section());
            tables[0].section();
        }));
        for table in tables.iter().rev() {
            table.enter();
            table.unlock();
        }
        join_all(others);
        for table in tables {
            table.finish();
        }
    });
    interrupting(property)
}

/// An interrupt before any one access of a CPU that queues behind another:
/// it waits for a second lock behind the same one until that is its own, and
/// then goes on in the queue, whose lock is still held.
pub(crate) fn interrupted_in_queue(lock: &Lock) -> Property {
    let property = Property::new("interrupted in the queue", 3, lock, |lock| {
        let tables = tables(lock, 2, 3);
        let mut others = Vec::new();
        execution::set_up(|| {
            for table in tables {
                table.lock();
            }
            others.push(spawn(2, move || descend(tables)));
            execution::await_arrival(2);
        });
        others.push(spawn(1, move || {
            execution::interrupt_anywhere(|| {
                execution::set_up(|| tables[1].section_and_arrive());
            });
            tables[0].section_and_arrive();
        }));
        execution::await_arrival(1);
        for table in tables.iter().rev() {
            table.enter();
            table.unlock();
            // Until 1 goes on in the queue of the first.
            while execution::is_quiet() {
                let_others_wait(1);
            }
        }
        join_all(others);
        for table in tables {
            table.finish();
        }
    });
    interrupting(property)
}

/// A CPU that takes the lock stops before any one access: meanwhile another
/// becomes the one waiter without a node, and a queue forms behind that. Then
/// the holder lets go.
pub(crate) fn meanwhile(lock: &Lock) -> Property {
    let property = Property::new("a queue forms meanwhile", 4, lock, |lock| {
        let table = Table::new(lock, 4);
        table.lock();
        let stopped = spawn(1, move || {
            let others = Rc::new(RefCell::new(Vec::new()));
            let come = others.clone();
            execution::interrupt_anywhere(move || {
                execution::set_up(|| {
                    let come_in_turn =
                        [2, 3].map(|cpu| spawn_until_it_waits(cpu, move || table.section()));
                    come.borrow_mut().extend(come_in_turn);
                });
                execution::arrive(1);
                let_others_wait(1);
            });
            table.section_and_arrive();
            join_all(others.take());
        });
        execution::await_arrival(1);
        table.enter();
        table.unlock();
        join(stopped);
        table.finish();
    });
    interrupting(property)
}

/// A CPU that takes the lock stops before any one access: meanwhile the head
/// of the queue enters and leaves, the main thread comes past the queue, and
/// the one that was head queues again, with the node that it had then. Then
/// the main thread lets go, and comes once more.
pub(crate) fn comes_again_meanwhile(lock: &Lock) -> Property {
    let property = Property::new("one comes again meanwhile", 3, lock, |lock| {
        let table = Table::new(lock, 3);
        let mut others = Vec::new();
        execution::set_up(|| {
            table.lock();
            others.push(spawn_until_it_waits(2, move || {
                table.section();
                execution::arrive(2);
                execution::await_arrival(0);
                table.section();
            }));
        });
        others.push(spawn(1, move || {
            execution::interrupt_anywhere(move || {
                execution::set_up(|| {
                    execution::arrive(1);
                    let_others_wait(8 * TURNS);
                });
            });
            table.section_and_arrive();
        }));
        execution::await_arrival(1);
        table.enter();
        table.unlock();
        execution::await_arrival(2);
        table.lock();
        execution::arrive(0);
        // Until 2 waits, and 1 goes on.
        let_others_wait(TURNS);
        while execution::is_quiet() {
            let_others_wait(1);
        }
        table.enter();
        table.unlock();
        table.section();
        join_all(others);
        table.finish();
    });
    interrupting(property)
}
