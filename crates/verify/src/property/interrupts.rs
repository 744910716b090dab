//! Interrupts that take locks too, on a CPU that is taking one.

use super::table::{Table, join, spawn};
use super::{Lock, Property};
use crate::execution;
use locklab_locks::NESTING;

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
    let tables: &'static [&'static Table] =
        Vec::leak((0..depth).map(|_| Table::new(lock, 3)).collect());
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

/// An interrupt before any one access of a CPU that takes a lock, behind two
/// others: it takes a second lock, behind the same two.
///
/// What the interrupt does with the queue nodes of its CPU must not be seen
/// in what was interrupted.
pub(crate) fn interrupted(lock: &Lock) -> Property {
    let property = Property::new("interrupted anywhere", 4, lock, |lock| {
        let tables: &'static [&'static Table] =
            Vec::leak((0..2).map(|_| Table::new(lock, 4)).collect());
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
        for other in others {
            join(other);
        }
        for table in tables {
            table.finish();
        }
    });
    property.with(|setting| {
        setting.interrupts = true;
        setting.coins = false;
    })
}
