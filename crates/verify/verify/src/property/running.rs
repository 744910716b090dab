//! Waiters that do not run lose their place, and those that run keep it.

use super::definition::{Lock, Property};
use super::interrupts::interrupting;
use super::table::{TURNS, Table, join, join_all, let_others_wait, spawn, spawn_until_it_waits};
use crate::execution;
use crate::threads::Thread;

/// Returns the promise that a lock that passes over waiters that do not run is first
/// come, first served while time stands still: the first waits when it first looks in
/// vain. So it is when time has passed before the second came, and the first has looked
/// at the clock since; or has come since, with a node that was used before, that was
/// passed over, or whose place in the queue it had given up. And one that does not run
/// is passed over.
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
    let resumed = Property::new("fifo, place taken up", 3, lock, place_taken_up);
    let after = interrupting(Property::new(
        "fifo, looks meanwhile",
        3,
        lock,
        polls_during_release,
    ));
    let after = after.with(|setting| setting.stops_only = true);
    let stopped = Property::new("passes who does not run", 3, lock, passes_who_stands_still);
    [still, looked, used, passed, resumed, after, stopped]
        .map(|property| property.with(|setting| setting.clock = false))
        .into()
}

/// Returns the promise that one that has given up and comes again keeps its place, of a
/// lock whose waiters keep theirs whether or not they run.
pub(crate) fn place_kept(lock: &Lock) -> Property {
    let kept = Property::new("fifo, place taken up", 3, lock, place_taken_up);
    kept.with(|setting| setting.clock = false)
}

/// Lets thread 1 wait when it first looks in vain, and then thread 2 come.
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

/// Checks this case: the first waiter stops before any one access, and time passes: it
/// is passed over if it waits. Where it first looks in vain after that, it stops once
/// more: the second comes, and the holder lets go.
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

/// Notes that this thread looks in vain: it arrives, and stops, if the main thread has come
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

/// Checks this case: the first gives up, time passes, and the second comes. Then the
/// first takes up the place that it has given up, and when it first looks in vain after
/// that, the holder lets go.
fn place_taken_up(lock: &Lock) {
    let table = Table::new(lock, 3);
    execution::set_up(|| {
        table.lock();
        let first = spawn_until_it_waits(1, move || {
            assert!(!table.lock_until(table.own(), 0), "acquires what is held");
            execution::arrive(3);
            execution::await_arrival(0);
            execution::interrupt_wait(|| {
                execution::arrive(1);
                let_others_wait(TURNS);
            });
            table.section();
        });
        execution::await_arrival(3);
        execution::let_time_pass();
        let second = spawn_until_it_waits(2, move || table.section());
        execution::arrive(0);
        execution::await_arrival(1);
        table.enter();
        table.unlock();
        served_in_order(table, [first, second], &[0, 1, 2]);
    });
}

/// Checks this case: the first waiter does not run while time passes and the second
/// comes: the holder lets that one in, and the first after it.
fn passes_who_stands_still(lock: &Lock) {
    let table = Table::new(lock, 3);
    execution::set_up(|| {
        table.lock();
        let first = spawn(1, move || {
            execution::interrupt_wait(|| {
                execution::arrive(1);
                execution::await_arrival(0);
            });
            table.section();
        });
        execution::await_arrival(1);
        execution::let_time_pass();
        let second = spawn_until_it_waits(2, move || table.section());
        table.enter();
        table.unlock();
        execution::arrive(0);
        join_all([first, second]);
        assert_eq!(
            table.entered(),
            [0, 2, 1],
            "who does not run keeps its place"
        );
        table.finish();
    });
}

/// Checks this case: a release stops before any one access: time passes, and the first
/// waiter looks at the clock after the release has done so.
fn polls_during_release(lock: &Lock) {
    let table = Table::new(lock, 3);
    let mut waiters = Vec::new();
    execution::set_up(|| {
        table.lock();
        waiters.push(spawn_until_it_waits(1, move || {
            arrive_when_it_has_looked_after(execution::now(), false);
            table.section();
            // It may have the lock when the release stops.
            execution::arrive(1);
        }));
        waiters.push(spawn_until_it_waits(2, move || table.section()));
    });
    table.enter();
    execution::interrupt_anywhere(|| {
        execution::set_up(|| {
            execution::let_time_pass();
            execution::await_arrival(1);
        });
    });
    table.unlock();
    execution::interrupt_nowhere();
    join_all(waiters);
    assert_eq!(table.entered(), [0, 1, 2], "who runs loses its place");
    table.finish();
}

/// Makes this thread arrive when it looks in vain the second time after this moment: what
/// it has published at the first is then known to who awaits it.
fn arrive_when_it_has_looked_after(moment: u64, looked: bool) {
    execution::interrupt_wait(move || {
        let passed = execution::now() > moment;
        if passed && looked {
            execution::arrive(1);
        } else {
            arrive_when_it_has_looked_after(moment, passed);
        }
    });
}

fn served_in_order(table: &'static Table, waiters: [Thread; 2], expected: &[usize]) {
    join_all(waiters);
    assert_eq!(table.entered(), expected, "who runs loses its place");
    table.finish();
}
