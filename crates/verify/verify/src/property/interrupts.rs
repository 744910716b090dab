//! Interrupts that take locks too, on a CPU that is taking one.

use super::definition::{Lock, Property};
use super::table::{TURNS, Table, join_all, let_others_wait, spawn};
use crate::execution;
use locklab_locks::NESTING;

/// Returns locks for one CPU to take, one inside the interrupt of another.
fn tables(lock: &Lock, locks: usize, threads: usize) -> &'static [&'static Table] {
    Vec::leak((0..locks).map(|_| Table::new(lock, threads)).collect())
}

/// Returns the promise where an interrupt comes before any one access, and nothing else
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

/// Does so with this many locks; whoever has a queue node at each of the first `levels` keeps
/// its place there.
fn nest_three(lock: &Lock, depth: usize, levels: usize) {
    let levels = levels.min(depth);
    let tables = tables(lock, depth, 4);
    let mut others = Vec::new();
    execution::set_up(|| {
        for table in tables {
            table.lock();
        }
        others.push(spawn(3, move || descend(tables)));
        execution::await_arrival(3);
        // Not in the order in which they come, which is that of two without a place.
        others.push(spawn(1, move || {
            execution::await_arrival(2);
            descend(tables);
        }));
        others.push(spawn(2, move || descend(tables)));
        execution::await_arrival(1);
        for table in tables.iter().rev() {
            table.enter();
            table.unlock();
        }
        join_all(others);
        for table in &tables[..levels] {
            let order = table.entered();
            assert_eq!(order, [0, 3, 2, 1], "not first come, first served");
        }
        for table in tables {
            table.finish();
        }
    });
}

/// Makes that promise by CPUs with the greatest numbers, and of a lock whose CPUs have a node
/// at each level: the name of a node has all its bits, and each is used.
pub(crate) fn last_cpus(lock: &Lock) -> Property {
    let depth = NESTING + 1;
    let property = Property::new("the last CPUs", 4, lock, move |lock| {
        nest_three(lock, depth, NESTING);
    });
    property.with(|setting| {
        setting.last_names = true;
        setting.clock = false;
    })
}

/// Returns the promise where an interrupt comes before any one access of a CPU that
/// takes a lock, behind two others: it takes a second lock, behind the same two.
///
/// What the interrupt does with the queue nodes of its CPU must not be seen
/// in what was interrupted.
pub(crate) fn interrupted(lock: &Lock) -> Property {
    interrupted_by("interrupted anywhere", lock, lock)
}

/// Makes that promise where the lock of the interrupt is of another kind, which takes its nodes
/// from the same CPU.
pub(crate) fn interrupted_by_another(lock: &Lock, other: &Lock) -> Property {
    interrupted_by("interrupted, another kind", lock, other)
}

fn interrupted_by(name: &'static str, lock: &Lock, other: &Lock) -> Property {
    let other = other.clone();
    let mut property = Property::new(name, 4, lock, move |lock| {
        let tables = Vec::leak([lock, &other].map(|lock| Table::new(lock, 4)).into());
        let tables: &'static [&'static Table] = tables;
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
    property.levels = 2;
    interrupting(property)
}

/// Returns the promise where two interrupts come, one after the other, of a CPU that
/// queues: each takes a lock of its own by the queue, while another CPU waits behind
/// the interrupted one. In one order of many.
pub(crate) fn interrupted_twice(lock: &Lock) -> Property {
    Property::new("interrupted twice", 4, lock, |lock| {
        let tables = tables(lock, 3, 4);
        let &[first, second, third] = tables else {
            unreachable!("three are made")
        };
        let mut others = Vec::new();
        execution::set_up(|| {
            for table in tables {
                table.lock();
            }
            // The first waiter of each, which may need no node.
            others.push(spawn(1, move || descend(tables)));
            execution::await_arrival(1);
            others.push(spawn(2, move || {
                execution::interrupt_wait(move || {
                    execution::arrive(2);
                    third.section();
                    second.section();
                });
                first.section();
            }));
            execution::await_arrival(2);
            others.push(spawn(3, move || descend(&tables[..1])));
            execution::await_arrival(3);
            for table in [third, second, first] {
                table.enter();
                table.unlock();
                // Until its waiters have been inside, and wait for the next.
                let_others_wait(4 * TURNS);
            }
            join_all(others);
            for table in tables {
                table.finish();
            }
        });
    })
}

/// Returns the promise where an interrupt comes before any one access of a CPU that
/// queues: it is the head of a second queue, hands that on to a waiter behind it, and
/// goes on in the first queue, where another comes behind it. Its node must not say
/// then who was behind it in the interrupt.
pub(crate) fn neighbour_in_interrupt(lock: &Lock) -> Property {
    let mut property = Property::new("a neighbour, interrupted", 4, lock, |lock| {
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
            // Thread 1 is the first waiter of each, unless it would queue too.
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
    property.levels = 2;
    interrupting(property)
}

/// Returns the promise where an interrupt comes before any one access of a CPU that
/// queues behind another: it waits for a second lock behind the same one until that is
/// its own, and then goes on in the queue, whose lock is still held.
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
