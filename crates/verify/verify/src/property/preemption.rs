//! A CPU that stops in the middle of acquiring a lock, while others go on.
//!
//! What it read before is over then. Nothing here may depend on where it stops:
//! that is every access in turn.

use super::definition::{Lock, Property};
use super::interrupts::interrupting;
use super::table::{
    TURNS, Table, entered_behind_a_holder, join, join_all, let_others_wait, spawn,
    spawn_until_it_waits,
};
use crate::execution::{self, NoNode, WaitRule};
use std::cell::RefCell;
use std::rc::Rc;

/// Returns the promise where a CPU that takes the lock stops before any one access:
/// meanwhile another becomes the one waiter without a node, and a queue forms behind
/// that. Then the holder lets go.
pub(crate) fn queue_during_preemption(lock: &Lock) -> Property {
    let stopped = Table::section_and_arrive;
    queue_formed_during_preemption(lock, "a queue forms meanwhile", stopped, Table::section)
}

fn queue_formed_during_preemption(
    lock: &Lock,
    name: &'static str,
    stopped_section: fn(&Table),
    last: fn(&Table),
) -> Property {
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
            stopped_section(table);
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

/// Returns the promises of a lock that queues with a node of its CPU, where a CPU has
/// none: it has no number, or all its levels are in use. Such a CPU waits
/// without a place, and the others must not wait for it to take one.
pub(crate) fn without_node(lock: &Lock) -> Vec<Property> {
    let last = section_that_may_fail(lock);
    let of = |why, meanwhile, three, queue, in_time, first| {
        let three = Property::new(three, 3, lock, |lock| {
            super::exclusion::exclusion(lock, 3, 1);
        });
        let stopped = Table::section_and_arrive;
        let meanwhile = queue_formed_during_preemption(lock, meanwhile, stopped, last);
        let queue = Property::new(queue, 4, lock, two_queue);
        let in_time = Property::new(in_time, 3, lock, gives_up_without_node);
        let mut all = vec![meanwhile, three, queue];
        all.extend(lock.info().timeout.then_some(in_time));
        if !lock.info().parks {
            all.push(Property::new(first, 3, lock, move |lock| {
                first_waiter_keeps_place(lock, last);
            }));
        }
        all.into_iter().map(move |property| {
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
        "gives up, no number",
        "first waiter, no number",
    ));
    all.extend(of(
        level,
        "a queue forms, no level",
        "three, one without node",
        "two queue, one no level",
        "gives up, no level",
        "first waiter, no level",
    ));
    // Of a lock that parks, the first waiter queues too.
    all.retain(|property| !lock.info().parks || !property.setting.interrupts);
    all
}

/// Checks that the first waiter needs no node, and enters before one that comes later
/// and has one. In one order of many.
fn first_waiter_keeps_place(lock: &Lock, section: fn(&Table)) {
    let table = Table::new(lock, 3);
    let entered = entered_behind_a_holder(table, [1, 2], section);
    assert_eq!(entered, [0, 1, 2], "the first waiter has no place");
    table.finish();
}

/// Checks that a CPU without a node gives up at the deadline, if it can, where it would
/// have to queue, behind a holder and a first waiter.
fn gives_up_without_node(lock: &Lock) {
    let table = Table::new(lock, 3);
    let mut others = Vec::new();
    execution::set_up(|| {
        table.lock();
        others.push(spawn_until_it_waits(2, move || table.section()));
    });
    join(spawn(1, move || {
        let acquired = table.lock_until(table.own(), execution::now());
        assert!(!acquired, "acquires what is held");
    }));
    table.enter();
    table.unlock();
    join_all(others);
    table.finish();
}

/// Returns a section by the way in that can fail, of a lock that has its own queue there.
fn section_that_may_fail(lock: &Lock) -> fn(&Table) {
    if lock.info().held_locks {
        section_not_refused
    } else {
        Table::section
    }
}

fn section_not_refused(table: &Table) {
    assert!(table.lock_until(table.own(), u64::MAX), "refused");
    table.enter();
    table.unlock();
}

/// Checks this case: two come when there is a holder and a first waiter, and so both
/// need a node.
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

/// Returns the promise where a CPU that takes the lock stops before any one access, and
/// again before any other. At first a queue forms, of which nobody waits without a
/// node. Then its head enters, lets the next in, behind whom nobody is, and comes
/// again, as the one waiter that needs no node. Of a lock with a way in that can fail,
/// once the head takes that, and once the one that stops: both at a time are more than
/// is explored in the end.
pub(crate) fn queue_advances_during_preemption(lock: &Lock) -> Vec<Property> {
    let may_fail = section_that_may_fail(lock);
    let of = |name, stopped, head| queue_goes(lock, name, stopped, head);
    let mut all = vec![of("a queue goes meanwhile", Table::section, may_fail)];
    if lock.info().held_locks {
        all.push(of("a queue goes, may fail", may_fail, Table::section));
        let arrives = |table: &Table| {
            execution::set_wait_rule(WaitRule::Doorway);
            section_not_refused(table);
            execution::arrive(execution::cpu());
        };
        let forms = queue_formed_during_preemption(
            lock,
            "a queue forms, may fail",
            arrives,
            Table::section,
        );
        all.push(forms.with(|setting| setting.clock = false));
    }
    all
}

fn queue_goes(
    lock: &Lock,
    name: &'static str,
    stopped_section: fn(&Table),
    head_section: fn(&Table),
) -> Property {
    let property = Property::new(name, 4, lock, move |lock| {
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
                        head_section(table);
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
            stopped_section(table);
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

/// Returns the promise where a CPU that comes behind a holder and a first waiter stops
/// before any one access, and again before any other. At first both of them leave; then
/// the lock is taken again, just after it was seen to be free.
pub(crate) fn taken_during_preemption(lock: &Lock) -> Property {
    let property = Property::new("taken meanwhile", 3, lock, |lock| {
        let table = Table::new(lock, 3);
        let mut others = Vec::new();
        execution::set_up(|| {
            table.lock();
            others.push(spawn_until_it_waits(2, move || table.section()));
        });
        others.push(spawn(1, move || {
            execution::interrupt_anywhere(|| {
                execution::set_up(|| {
                    execution::arrive(1);
                    let_others_wait(2 * TURNS);
                });
                execution::interrupt_anywhere(|| {
                    execution::set_up(|| {
                        execution::arrive(3);
                        let_others_wait(2 * TURNS);
                    });
                });
            });
            execution::interrupt_wait(|| execution::arrive(1));
            table.section();
            execution::arrive(1);
            execution::arrive(3);
        }));
        execution::await_arrival(1);
        table.enter();
        table.unlock();
        execution::await_arrival(3);
        table.lock();
        leave_when_explored(table);
        join_all(others);
        table.finish();
    });
    interrupting(property).with(|setting| {
        setting.stops_only = true;
        setting.clock = false;
    })
}

/// Returns the promise where a CPU that waits stops before any one access, and again
/// before any other: each time it is another that takes the lock which it has just seen
/// free. Who has lost one race may lose the next.
pub(crate) fn loses_races(lock: &Lock) -> Property {
    let property = Property::new("loses two races", 2, lock, |lock| {
        let table = Table::new(lock, 2);
        table.lock();
        let stopped = spawn(1, move || {
            let stop = |place| {
                execution::set_up(|| {
                    execution::arrive(place);
                    let_others_wait(2 * TURNS);
                })
            };
            execution::interrupt_anywhere(move || {
                stop(2);
                execution::interrupt_anywhere(move || stop(3));
            });
            table.section();
            execution::arrive(2);
            execution::arrive(3);
        });
        for place in [2, 3] {
            table.enter();
            table.unlock();
            execution::await_arrival(place);
            table.lock();
            while execution::is_quiet() {
                let_others_wait(1);
            }
        }
        table.enter();
        table.unlock();
        join(stopped);
        table.finish();
    });
    interrupting(property).with(|setting| {
        setting.stops_only = true;
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

/// Returns the promise where a CPU that takes the lock stops before any one access:
/// meanwhile the head of the queue enters and leaves, the main thread comes past the
/// queue, and the one that was head queues again, with the node that it had then. Then
/// the main thread lets go, and comes once more.
pub(crate) fn returns_during_preemption(lock: &Lock) -> Property {
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
