//! Waiters that do not run lose their place, and those that run keep it.

use super::definition::{Lock, Property};
use super::interrupts::interrupting;
use super::table::{TURNS, Table, join, join_all, let_others_wait, spawn, spawn_until_it_waits};
use crate::execution;
use loom::thread::JoinHandle;

/// A lock that passes over waiters that do not run is first come, first served
/// while time stands still: the first waits when it first looks in vain. So it
/// is when time has passed before the second came, and the first has looked
/// at the clock since; or has come since, with a node that was used before or
/// that was passed over.
pub(crate) fn running_keep_place(lock: &Lock) -> Vec<Property> {
    let still = Property::new("fifo, no time passes", 3, lock, |lock| {
        in_order(Table::new(lock, 3), &[0, 1, 2]);
    });
    let looked = Property::new("fifo, time passes", 3, lock, |lock| {
        let table = Table::new(lock, 3);
        execution::set_up(|| {
            table.lock();
            let first = spawn_until_it_waits(1, move || table.section());
            execution::let_time_pass();
            let second = spawn_until_it_waits(2, move || table.section());
            table.enter();
            table.unlock();
            served_in_order(table, [first, second], &[0, 1, 2]);
        });
    });
    let used = Property::new("fifo, node used before", 3, lock, |lock| {
        let table = Table::new(lock, 3);
        execution::set_up(|| {
            join(spawn(1, move || table.section()));
            execution::let_time_pass();
        });
        in_order(table, &[1, 0, 1, 2]);
    });
    let passed = interrupting(Property::new("fifo, queued again", 3, lock, queued_again));
    [still, looked, used, passed]
        .map(|property| property.with(|setting| setting.clock = false))
        .into()
}

/// Thread 1 waits when it first looks in vain, and then thread 2 comes.
fn in_order(table: &'static Table, expected: &[usize]) {
    table.lock();
    table.enter();
    let first = spawn(1, move || {
        execution::interrupt_wait(|| execution::arrive(1));
        table.lock();
        execution::arrive(1);
        table.enter();
        table.unlock();
    });
    let second = spawn(2, move || {
        execution::await_arrival(1);
        table.section();
    });
    table.unlock();
    served_in_order(table, [first, second], expected);
}

/// The first waiter stops before any one access, and time passes: it is passed
/// over if it waits. Where it first looks in vain after that, it stops once more: the
/// second comes, and the holder lets go.
fn queued_again(lock: &Lock) {
    let table = Table::new(lock, 3);
    table.lock();
    let first = spawn(1, move || {
        execution::interrupt_anywhere(|| {
            execution::set_up(|| {
                execution::arrive(3);
                let_others_wait(TURNS);
            });
        });
        execution::interrupt_wait(move || look_again(table, TURNS));
        table.lock();
        execution::arrive(1);
        table.enter();
        table.unlock();
    });
    execution::await_arrival(3);
    execution::let_time_pass();
    table.enter();
    table.unlock();
    table.lock();
    table.enter();
    let second = spawn(2, move || {
        execution::await_arrival(1);
        execution::interrupt_wait(|| execution::arrive(2));
        table.section();
    });
    execution::await_arrival(2);
    table.unlock();
    join_all([first, second]);
    let entered = table.entered();
    let place = |cpu| entered.iter().position(|&entered| entered == cpu);
    assert!(place(1) < place(2), "who runs loses its place");
    table.finish();
}

/// This thread looks in vain: it arrives, and stops, if the main thread has come
/// again and this one waits in the queue, not for its node to come out of it; at its
/// second look if it had not looked before, as the time that it has shown then may be
/// older than its stop. It lets the main thread come if nothing stops this one.
fn look_again(table: &'static Table, left: usize) {
    let again = table.entered().len() >= 2;
    if again && execution::waits_without_limit() {
        execution::interrupt_wait(move || look_again(table, left));
    } else if again && left < TURNS {
        execution::set_up(|| {
            execution::arrive(1);
            let_others_wait(TURNS);
        });
    } else if left > 0 {
        execution::interrupt_wait(move || look_again(table, left - 1));
    } else {
        // It is not stopped where it looks for the hundredth time.
        execution::interrupt_nowhere();
        execution::interrupt_wait(move || look_again(table, left));
        execution::arrive(3);
    }
}

fn served_in_order(table: &'static Table, waiters: [JoinHandle<()>; 2], expected: &[usize]) {
    join_all(waiters);
    assert_eq!(table.entered(), expected, "who runs loses its place");
    table.finish();
}
