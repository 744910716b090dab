//! Interrupts that take locks too, on a CPU that is taking one.

use super::table::{TURNS, Table, join, join_all, let_others_wait, spawn, spawn_until_it_waits};
use super::{Lock, Property};
use crate::execution::{self, NoNode};
use locklab_locks::NESTING;
use std::cell::RefCell;
use std::rc::Rc;

/// Locks for one CPU to take, one inside the interrupt of another.
fn tables(lock: &Lock, locks: usize, threads: usize) -> &'static [&'static Table] {
    Vec::leak((0..locks).map(|_| Table::new(lock, threads)).collect())
}

/// The promise where an interrupt comes before any one access, and nothing else
/// comes by chance.
pub(super) fn interrupting(property: Property) -> Property {
    property.with(|setting| {
        setting.interrupts = true;
        setting.choices = false;
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

/// An interrupt before any one access of a CPU that queues: it is the head of
/// a second queue, hands that on to a waiter behind it, and goes on in the
/// first queue, where another comes behind it. Its node must not say then who
/// was behind it in the interrupt.
pub(crate) fn neighbour_in_interrupt(lock: &Lock) -> Property {
    let property = Property::new("a neighbour, interrupted", 4, lock, |lock| {
        let tables = tables(lock, 2, 4);
        let &[first, second] = tables else {
            unreachable!("two are made")
        };
        let mut others = Vec::new();
        execution::set_up(|| {
            second.lock();
            others.push(spawn(3, move || {
                first.lock();
                execution::arrive(3);
                execution::await_arrival(2);
                second.section();
                // Until 2 goes on.
                while execution::is_quiet() {
                    let_others_wait(1);
                }
                first.enter();
                first.unlock();
            }));
            execution::await_arrival(3);
            // The first waiter of each, unless that queues too.
            if !second.info.parks {
                others.push(spawn(1, move || descend(tables)));
                execution::await_arrival(1);
            }
        });
        others.push(spawn(2, move || {
            execution::interrupt_anywhere(|| {
                execution::set_up(|| second.section_and_arrive());
            });
            first.section_and_arrive();
        }));
        execution::await_arrival(2);
        // Until 3 waits behind 2.
        let_others_wait(TURNS);
        second.enter();
        second.unlock();
        while execution::is_quiet() {
            let_others_wait(1);
        }
        first.section();
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
    formed_meanwhile(lock, "a queue forms meanwhile", Table::section)
}

fn formed_meanwhile(lock: &Lock, name: &'static str, last: fn(&Table)) -> Property {
    let property = Property::new(name, 4, lock, move |lock| {
        let table = Table::new(lock, 4);
        table.lock();
        let stopped = spawn(1, move || {
            let others = Rc::new(RefCell::new(Vec::new()));
            let come = others.clone();
            execution::interrupt_anywhere(move || {
                execution::set_up(|| {
                    let pending = spawn_until_it_waits(2, move || table.section());
                    let head = spawn_until_it_waits(3, move || last(table));
                    come.borrow_mut().extend([pending, head]);
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

/// The promises of a lock that queues with a node of its CPU, where a CPU has
/// none: it has no number, or all its levels are in use. Such a CPU waits
/// without a place, and the others must not wait for it to take one.
pub(crate) fn without_node(lock: &Lock) -> Vec<Property> {
    let last = section_that_may_fail(lock);
    let of = |why, meanwhile, three, queue| {
        let three = Property::new(three, 3, lock, |lock| {
            super::exclusion::exclusion(lock, 3, 1);
        });
        let meanwhile = formed_meanwhile(lock, meanwhile, last);
        let queue = Property::new(queue, 4, lock, two_queue);
        [meanwhile, three, queue].map(|property| {
            property.with(|setting| {
                setting.without_node = Some((1, why));
                setting.clock = false;
            })
        })
    };
    let (number, level) = (NoNode::Number, NoNode::Level);
    let mut all = Vec::new();
    all.extend(of(
        number,
        "a queue forms, no number",
        "three, one no number",
        "two queue, one no number",
    ));
    all.extend(of(
        level,
        "a queue forms, no level",
        "three, one without node",
        "two queue, one no level",
    ));
    // Of a lock that parks, the first waiter queues too.
    all.retain(|property| !lock.info().parks || !property.setting.interrupts);
    all
}

/// A section by the way in that can fail, of a lock that has its own queue there.
fn section_that_may_fail(lock: &Lock) -> fn(&Table) {
    if lock.info().held_locks {
        |table| {
            assert!(table.lock_until(table.own(), u64::MAX), "refused");
            table.enter();
            table.unlock();
        }
    } else {
        Table::section
    }
}

/// Two come when there is a holder and a first waiter, and so both need a node.
fn two_queue(lock: &Lock) {
    let table = Table::new(lock, 4);
    let mut others = Vec::new();
    execution::set_up(|| {
        others.push(spawn_until_it_waits(2, move || {
            table.lock();
            leave_when_explored(table);
        }));
        others.push(spawn_until_it_waits(3, move || table.section()));
    });
    others.push(spawn(1, move || table.section()));
    table.section();
    join_all(others);
    table.finish();
}

/// A CPU that takes the lock stops before any one access, and again before any
/// other. At first a queue forms, of which nobody waits without a node. Then its
/// head enters, lets the next in, behind whom nobody is, and comes again, as the
/// one waiter that needs no node.
pub(crate) fn queue_goes_meanwhile(lock: &Lock) -> Property {
    let section = section_that_may_fail(lock);
    let property = Property::new("a queue goes meanwhile", 4, lock, move |lock| {
        let table = Table::new(lock, 4);
        table.lock();
        let stopped = spawn(1, move || {
            let others = Rc::new(RefCell::new(Vec::new()));
            let come = others.clone();
            execution::interrupt_anywhere(move || {
                execution::set_up(|| {
                    let first = spawn_until_it_waits(2, move || {
                        table.lock();
                        leave_when_explored(table);
                    });
                    let head = spawn_until_it_waits(3, move || {
                        section(table);
                        execution::await_arrival(0);
                        // By the way in that waits in one place only.
                        table.section();
                    });
                    come.borrow_mut().extend([first, head]);
                    execution::arrive(1);
                    // Until the first is inside, and the main thread behind
                    // the head.
                    let_others_wait(2 * TURNS);
                });
                let_others_wait(1);
                execution::interrupt_anywhere(|| {
                    execution::set_up(|| let_others_wait(2 * TURNS));
                });
            });
            execution::interrupt_wait(|| execution::arrive(1));
            section(table);
            execution::arrive(1);
            join_all(others.take());
        });
        execution::await_arrival(1);
        table.enter();
        table.unlock();
        table.lock();
        execution::arrive(0);
        leave_when_explored(table);
        join(stopped);
        table.finish();
    });
    interrupting(property).with(|setting| {
        setting.stops_only = true;
        // It makes fewer accesses so, all of them to the word.
        setting.without_node = Some((1, NoNode::Number));
        setting.clock = false;
    })
}

/// Holds the lock for as long as a model is set up.
fn leave_when_explored(table: &Table) {
    while execution::is_quiet() {
        let_others_wait(1);
    }
    table.enter();
    table.unlock();
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
