//! Checks whom a lock that readers share, and whose waiters sleep in a queue, wakes together,
//! and which readers it keeps out while a writer waits.

use super::definition::{Lock, Property};
use super::table::{TURNS, Table, join, join_all, let_others_wait, spawn, spawn_until_it_waits};
use crate::execution;

/// Returns the promises of a lock whose release wakes all readers of the queue if the first is
/// one, and which keeps readers out that come while a writer waits for those inside, was woken,
/// or stays behind in the queue.
pub(crate) fn newcomers_wait(lock: &Lock) -> [Property; 6] {
    [
        Property::new("a reader sleeps behind", 3, lock, sleeps_behind),
        Property::new("woken together", 4, lock, woken_together),
        Property::new("woken one by one", 3, lock, woken_one_by_one),
        Property::new("closed as a writer stays", 4, lock, closed_as_one_stays),
        Property::new(
            "closed for who was woken",
            3,
            lock,
            closed_for_who_was_woken,
        ),
        Property::new("closed again", 4, lock, closed_again),
    ]
}

/// Checks that a reader that comes while a writer waits for another reader sleeps, too.
fn sleeps_behind(lock: &Lock) {
    let table = Table::new(lock, 3);
    table.read();
    let writer = spawn(1, move || table.section());
    execution::await_sleep(1);
    let reader = spawn(2, move || table.read_section());
    execution::await_sleep(2);
    table.enter_reading();
    table.read_unlock();
    join_all([writer, reader]);
    table.finish();
}

/// Checks that two readers are inside at once, although a writer waits between them. In one
/// order.
fn woken_together(lock: &Lock) {
    let table = Table::new(lock, 4);
    execution::set_up(|| {
        table.lock();
        let reads = |cpu, other| {
            spawn_until_it_waits(cpu, move || {
                table.read();
                execution::arrive(cpu);
                execution::await_arrival(other);
                table.enter_reading();
                table.read_unlock();
            })
        };
        let first = reads(1, 3);
        let writer = spawn_until_it_waits(2, move || table.section());
        let last = reads(3, 1);
        table.enter();
        table.unlock();
        join_all([first, writer, last]);
        table.finish();
    });
}

/// Checks that readers are woken one by one, each of whom may go on and come again meanwhile.
fn woken_one_by_one(lock: &Lock) {
    let table = Table::new(lock, 3);
    let mut readers = Vec::new();
    execution::set_up(|| {
        table.lock();
        for cpu in 1..3 {
            readers.push(spawn_until_it_waits(cpu, move || {
                table.read_section();
                table.read_section();
            }));
        }
        table.enter();
    });
    table.unlock();
    join_all(readers);
    table.finish();
}

/// Checks that a reader that comes beside one that was woken sleeps, as a writer has slept for
/// longer. In one order.
fn closed_as_one_stays(lock: &Lock) {
    let table = Table::new(lock, 4);
    execution::set_up(|| {
        table.lock();
        let reads = spawn_until_it_waits(1, move || {
            table.read();
            execution::arrive(1);
            execution::await_arrival(0);
            table.read_unlock();
        });
        let stays = spawn_until_it_waits(2, move || table.section());
        table.enter();
        table.unlock();
        execution::await_arrival(1);
        let comes = spawn(3, move || table.read_section());
        execution::await_sleep(3);
        execution::arrive(0);
        join_all([reads, stays, comes]);
        table.finish();
    });
}

/// Checks that a writer that was woken enters before a reader that comes then, where another
/// writer sleeps. In one order.
fn closed_for_who_was_woken(lock: &Lock) {
    let table = Table::new(lock, 3);
    execution::set_up(|| {
        table.lock();
        let writers = [1, 2].map(|cpu| spawn_until_it_waits(cpu, move || table.section()));
        table.enter();
        table.unlock();
        table.read_section();
        join_all(writers);
        assert_ne!(table.read_after(), [1], "a reader passes a woken writer");
        table.finish();
    });
}

/// Checks that readers are kept out again when a writer that was woken has lost the race: to a
/// writer, who lets a reader in, behind which it sleeps again. In one order.
fn closed_again(lock: &Lock) {
    let table = Table::new(lock, 4);
    execution::set_up(|| {
        table.lock();
        let writers = [1, 2].map(|cpu| spawn_until_it_waits(cpu, move || table.section()));
        table.enter();
        table.unlock();
        table.section();
        table.read();
        let_others_wait(TURNS);
        let comes = spawn(3, move || table.read_section());
        execution::await_sleep(3);
        table.enter_reading();
        assert_eq!(table.entered(), [0, 0], "a writer enters beside a reader");
        table.read_unlock();
        join_all(writers);
        join(comes);
        table.finish();
    });
}
