//! A lock whose acquisition fails where it would be a deadlock, and nowhere
//! else. No time passes in these models.

use super::definition::{Lock, Property};
use super::interrupts::interrupting;
use super::table::{
    TURNS, Table, join, join_all, let_others_wait, run, spawn, spawn_until_it_waits,
};
use crate::execution::{self, HOUR};
use locklab_locks::host::HELD_LOCKS;

/// Acquires, unless that would be a deadlock.
fn acquires(table: &Table) -> bool {
    table.lock_until(table.own(), u64::MAX)
}

fn acquires_for_sure(table: &Table) {
    assert!(acquires(table), "refused, and there is no deadlock");
}

fn leave(table: &Table) {
    table.enter();
    table.unlock();
}

/// Returns the promises of a lock that detects deadlocks of one CPU and of two, and
/// whose waiters give up on the word and at the head of its queue only.
pub(crate) fn resilient(lock: &Lock) -> Vec<Property> {
    let properties = [
        Property::new("same CPU again", 2, lock, same_cpu_again),
        Property::new("same CPU again, queued", 3, lock, same_cpu_behind_others),
        Property {
            aim: 1,
            ..Property::new("fifo, all may fail", 4, lock, in_order)
        },
        Property::new("crossed", 2, lock, |lock| crossed(lock, acquires)),
        Property::new("crossed, one unlimited", 2, lock, |lock| {
            crossed(lock, |table| {
                table.lock();
                true
            });
        }),
        Property::new("not refused, two locks", 2, lock, two_locks),
        Property::new("not refused, given up", 2, lock, not_after_giving_up),
        Property::new("not refused in a chain", 3, lock, chain),
        Property {
            aim: 1,
            ..Property::new("head gives up", 4, lock, head_gives_up)
        },
        Property {
            aim: 1,
            ..Property::new("head comes again", 4, lock, head_comes_again)
        },
        Property {
            aim: 1,
            ..Property::new("granted once", 4, lock, granted_once)
        },
        Property {
            aim: 1,
            ..Property::new("crossed, one mid-queue", 4, lock, crossed_in_the_middle)
        },
        Property::new("a wait within a wait", 3, lock, |lock| {
            waited_within(lock, true);
        }),
        Property::new("given up within a wait", 3, lock, |lock| {
            waited_within(lock, false);
        }),
        Property::new("crossed, within a wait", 3, lock, crossed_within),
        Property::new("the table is full", 2, lock, table_is_full),
        Property::new("released in any order", 1, lock, released_in_any_order),
        Property::new("fails after its time", 2, lock, fails_after_its_time),
        interrupting(Property::new("released, interrupted", 2, lock, released)),
    ];
    properties
        .map(|property| property.with(|setting| setting.clock = false))
        .into()
}

/// Checks that its holder is refused, however it has acquired; and so is an interrupt of a
/// CPU that waits for it.
fn same_cpu_again(lock: &Lock) {
    run(Table::new(lock, 2), 2, |table, cpu| {
        let refused = move || assert!(!acquires(table), "a CPU waits for itself");
        if cpu == 0 {
            execution::interrupt_wait(refused);
            table.lock();
        } else {
            acquires_for_sure(table);
        }
        refused();
        leave(table);
    });
}

/// Does the same where waiters without limit are before it: behind them it would not look. It
/// is in one order of many.
fn same_cpu_behind_others(lock: &Lock) {
    let table = Table::new(lock, 3);
    execution::set_up(|| {
        table.lock();
        let others = [1, 2].map(|cpu| spawn_until_it_waits(cpu, move || table.section()));
        assert!(!acquires(table), "a CPU waits for itself");
        leave(table);
        join_all(others);
        table.finish();
    });
}

/// Checks that it is first come, first served, by the way in that can fail; the holder
/// lets go at any time.
fn in_order(lock: &Lock) {
    let table = Table::new(lock, 4);
    let mut others = Vec::new();
    execution::set_up(|| {
        table.lock();
        for cpu in 1..4 {
            others.push(spawn_until_it_waits(cpu, move || {
                acquires_for_sure(table);
                leave(table);
            }));
        }
    });
    leave(table);
    join_all(others);
    assert_eq!(
        table.entered(),
        [0, 1, 2, 3],
        "not first come, first served"
    );
    table.finish();
}

/// Lets each thread hold one lock and want the other's, the first by `acquire`.
fn crossed(lock: &Lock, acquire: fn(&Table) -> bool) {
    let tables = [lock; 2].map(|lock| Table::new(lock, 2));
    let cross = move |cpu: usize, acquire: fn(&Table) -> bool| {
        let (own, other) = (tables[cpu], tables[1 - cpu]);
        if cpu == 1 || !own.try_lock() {
            own.lock();
        }
        if acquire(other) {
            leave(other);
        }
        leave(own);
    };
    let other = spawn(1, move || cross(1, acquires));
    cross(0, acquire);
    join(other);
    tables.into_iter().for_each(Table::finish);
}

/// Takes two locks in one order, and releases them in any.
fn two_locks(lock: &Lock) {
    let tables = [lock; 2].map(|lock| Table::new(lock, 2));
    let both = move |first: usize| {
        tables.into_iter().for_each(acquires_for_sure);
        leave(tables[first]);
        leave(tables[1 - first]);
    };
    let other = spawn(1, move || both(1));
    both(0);
    join(other);
    tables.into_iter().for_each(Table::finish);
}

/// Checks this case: another CPU has waited for what this one holds, and given up; now
/// it waits for a third lock, and holds the one that this CPU wants.
fn not_after_giving_up(lock: &Lock) {
    let tables = [lock; 3].map(|lock| Table::new(lock, 2));
    let [held, third, wanted] = tables;
    let mut others = Vec::new();
    execution::set_up(|| {
        held.lock();
        third.lock();
        others.push(spawn_until_it_waits(1, move || {
            wanted.lock();
            assert!(!held.lock_until(held.own(), 0), "acquires what is held");
            third.section();
            leave(wanted);
        }));
    });
    leave(third);
    acquires_for_sure(wanted);
    leave(wanted);
    leave(held);
    join_all(others);
    tables.into_iter().for_each(Table::finish);
}

/// Checks a chain: who waits for what a CPU holds does not hold what that one wants.
fn chain(lock: &Lock) {
    let tables = [lock; 2].map(|lock| Table::new(lock, 3));
    let [held, wanted] = tables;
    wanted.lock();
    let waits = spawn(1, move || {
        held.lock();
        acquires_for_sure(wanted);
        leave(wanted);
        leave(held);
    });
    let behind = spawn(2, move || held.section());
    leave(wanted);
    join_all([waits, behind]);
    tables.into_iter().for_each(Table::finish);
}

/// Checks this case: the head of the queue has no time left; there is a waiter before
/// it and one behind it.
fn head_gives_up(lock: &Lock) {
    let table = Table::new(lock, 4);
    let mut others = Vec::new();
    execution::set_up(|| {
        table.lock();
        others.push(spawn_until_it_waits(1, move || table.section()));
    });
    others.push(spawn(2, move || {
        if table.lock_until(table.own(), 0) {
            leave(table);
        }
    }));
    others.push(spawn(3, move || table.section()));
    leave(table);
    join_all(others);
    table.finish();
}

/// Checks this case: the head of the queue leaves, and is behind the next and before
/// one more when that goes on from its link to the head.
fn head_comes_again(lock: &Lock) {
    let table = Table::new(lock, 4);
    let mut others = Vec::new();
    execution::set_up(|| {
        table.lock();
        others.push(spawn_until_it_waits(1, move || {
            table.section();
            table.section();
        }));
        others.push(spawn_until_it_waits(2, move || {
            acquires_for_sure(table);
            leave(table);
            table.section();
        }));
    });
    others.push(spawn(3, move || {
        acquires_for_sure(table);
        leave(table);
    }));
    leave(table);
    join_all(others);
    table.finish();
}

/// Checks this case: the head of the queue has no time left; nor has the one behind it, which
/// gives up as soon as it is the head, and comes again behind the last. It must
/// not be made the head twice.
fn granted_once(lock: &Lock) {
    let table = Table::new(lock, 4);
    let mut others = Vec::new();
    execution::set_up(|| {
        let [sooner, later] = [1, HOUR + 1].map(|after| execution::now() + after);
        table.lock();
        others.push(spawn_until_it_waits(1, move || {
            let acquired = table.lock_until(table.own(), sooner);
            assert!(!acquired, "acquires what is held");
            table.section();
        }));
        others.push(spawn_until_it_waits(2, move || {
            if table.lock_until(table.own(), later) {
                leave(table);
            }
        }));
        others.push(spawn_until_it_waits(3, move || {
            if table.lock_until(table.own(), 0) {
                leave(table);
            }
            table.section();
        }));
        // The first waiter, which is in no queue, gives up, and comes again
        // as the last.
        execution::let_time_pass();
        let_others_wait(2 * TURNS);
        execution::let_time_pass();
    });
    leave(table);
    join_all(others);
    table.finish();
}

/// Checks this case: each of two CPUs wants what the other holds; one of them stands in
/// a queue behind waiters without limit, and so does not look. The other does.
fn crossed_in_the_middle(lock: &Lock) {
    let tables = [lock; 2].map(|lock| Table::new(lock, 4));
    let [own, other] = tables;
    let mut others = Vec::new();
    execution::set_up(|| {
        own.lock();
        others.push(spawn(1, move || {
            other.lock();
            execution::arrive(1);
            execution::await_arrival(0);
            if acquires(own) {
                leave(own);
            }
            leave(other);
        }));
        execution::await_arrival(1);
        for cpu in 2..4 {
            others.push(spawn_until_it_waits(cpu, move || other.section()));
        }
    });
    execution::arrive(0);
    if acquires(other) {
        leave(other);
    }
    leave(own);
    join_all(others);
    tables.into_iter().for_each(Table::finish);
}

/// Checks this case: main holds a lock and waits for another's; an interrupt of that
/// waits for a third, and has it or gives up. What was interrupted waits on, without
/// limit, and is seen to.
fn waited_within(lock: &Lock, acquired: bool) {
    let tables = [lock; 3].map(|lock| Table::new(lock, 3));
    let [own, other, third] = tables;
    let mut others = Vec::new();
    execution::set_up(|| {
        own.lock();
        others.push(spawn(1, move || {
            other.lock();
            execution::arrive(1);
            execution::await_arrival(0);
            assert!(!acquires(own), "not refused, and it is a deadlock");
            leave(other);
        }));
        execution::await_arrival(1);
        others.push(spawn(2, move || {
            third.lock();
            execution::arrive(2);
            execution::await_arrival(3);
            leave(third);
        }));
        execution::await_arrival(2);
        execution::interrupt_wait(move || {
            execution::interrupt_wait(|| execution::arrive(3));
            if acquired {
                acquires_for_sure(third);
                leave(third);
            } else {
                assert!(!third.lock_until(third.own(), 0), "acquires what is held");
            }
            execution::arrive(0);
        });
    });
    other.lock();
    leave(other);
    leave(own);
    join_all(others);
    tables.into_iter().for_each(Table::finish);
}

/// Checks this case: main holds a lock and waits for another; an interrupt of that
/// wants what a third CPU holds, and that CPU wants, without limit, what main holds.
/// The interrupt is refused.
fn crossed_within(lock: &Lock) {
    let tables = [lock; 3].map(|lock| Table::new(lock, 3));
    let [own, awaited, other] = tables;
    let mut others = Vec::new();
    execution::set_up(|| {
        own.lock();
        others.push(spawn(1, move || {
            other.lock();
            execution::arrive(1);
            own.lock();
            leave(own);
            leave(other);
        }));
        execution::await_arrival(1);
        others.push(spawn(2, move || {
            awaited.lock();
            execution::arrive(2);
            execution::await_arrival(0);
            leave(awaited);
        }));
        execution::await_arrival(2);
        execution::interrupt_wait(move || {
            assert!(!acquires(other), "not refused, and it is a deadlock");
            execution::arrive(0);
        });
    });
    awaited.lock();
    leave(awaited);
    leave(own);
    join_all(others);
    tables.into_iter().for_each(Table::finish);
}

/// Checks this case: a CPU holds as many locks as its table has room for, and one more.
/// All but the last entry can be those of locks that it holds when it waits.
fn table_is_full(lock: &Lock) {
    execution::set_up(|| {
        let tables: Vec<_> = (0..=HELD_LOCKS).map(|_| Table::new(lock, 1)).collect();
        for (held, table) in tables.iter().enumerate() {
            if held == HELD_LOCKS - 1 {
                for table in [tables[0], tables[held - 1]] {
                    assert!(!acquires(table), "a CPU waits for itself");
                }
            }
            table.lock();
        }
        // A wait for which there is no room leaves the others where they are.
        let awaited = Table::new(lock, 2);
        let other = spawn(1, move || {
            awaited.lock();
            execution::arrive(1);
            execution::await_arrival(0);
            leave(awaited);
        });
        execution::await_arrival(1);
        execution::interrupt_wait(|| execution::arrive(0));
        acquires_for_sure(awaited);
        leave(awaited);
        join(other);
        // One goes, and the last that had room is still known.
        leave(tables[1]);
        assert!(!acquires(tables[HELD_LOCKS - 1]), "a CPU waits for itself");
        for (held, table) in tables.iter().enumerate().rev() {
            if held == 1 {
                continue;
            }
            if held == HELD_LOCKS - 2 {
                assert!(!acquires(tables[0]), "a CPU waits for itself");
            }
            leave(table);
        }
        awaited.finish();
        acquires_for_sure(tables[0]);
        assert!(!acquires(tables[0]), "a CPU waits for itself");
        leave(tables[0]);
        tables.into_iter().for_each(Table::finish);
    });
}

/// Checks this case: a CPU holds four locks and releases them in each order: it is
/// refused those that it holds, and acquires each again when it has released all.
fn released_in_any_order(lock: &Lock) {
    const LOCKS: usize = 4;
    execution::set_up(|| {
        let tables = [lock; LOCKS].map(|lock| Table::new(lock, 1));
        for order in 0..LOCKS.pow(LOCKS as u32) {
            let digit = |place: usize| order / LOCKS.pow(place as u32) % LOCKS;
            let order: [usize; LOCKS] = std::array::from_fn(digit);
            if (0..LOCKS).any(|held| !order.contains(&held)) {
                continue;
            }
            tables.into_iter().for_each(acquires_for_sure);
            for (released, &first) in order.iter().enumerate() {
                leave(tables[first]);
                for &held in &order[released + 1..] {
                    assert!(!acquires(tables[held]), "a CPU waits for itself");
                }
            }
        }
        tables.into_iter().for_each(Table::finish);
    });
}

/// Checks that a waiter with a limit of the lock's own waits as long as no time passes,
/// and fails when more has passed than any such limit.
fn fails_after_its_time(lock: &Lock) {
    let table = Table::new(lock, 2);
    let mut others = Vec::new();
    execution::set_up(|| {
        table.lock();
        others.push(spawn_until_it_waits(1, move || {
            assert!(table.lock_or_fail(), "fails before its time");
            leave(table);
            execution::arrive(1);
            execution::await_arrival(0);
            assert!(!table.lock_or_fail(), "acquires what is held");
        }));
        // It looks at the clock meanwhile.
        let_others_wait(2 * TURNS);
        leave(table);
        execution::await_arrival(1);
        table.lock();
        execution::arrive(0);
        let_others_wait(TURNS);
        execution::let_time_pass();
        join_all(others);
        leave(table);
        table.finish();
    });
}

/// Checks an interrupt before any one access of a CPU that releases: once another
/// holds the lock, the interrupt may wait for it.
fn released(lock: &Lock) {
    let table = Table::new(lock, 2);
    let other = spawn(1, move || {
        execution::interrupt_anywhere(move || {
            execution::set_up(|| {
                execution::arrive(1);
                let_others_wait(TURNS);
                if table.entered() == [1, 0] {
                    acquires_for_sure(table);
                    leave(table);
                }
            });
        });
        table.section();
        execution::arrive(1);
    });
    execution::await_arrival(1);
    table.lock();
    table.enter();
    let_others_wait(2 * TURNS);
    table.unlock();
    join(other);
    table.finish();
}
