//! Checks that there is one holder at a time, that nobody waits for ever, and that
//! nobody is lost: with few threads from the beginning, and from queues that have
//! formed before.

use super::definition::{Lock, Property};
use super::fairness::{assert_overtaken, assert_served};
use super::interrupts::interrupting;
use super::table::{
    TURNS, Table, await_entered, join, join_all, let_others_wait, run, spawn, spawn_until_it_waits,
};
use crate::execution::{self, WaitRule};
use locklab_locks::Fairness;

/// Checks that one is inside at a time, that each sees what the one before wrote, and
/// that everyone gets there.
pub(super) fn exclusion(lock: &Lock, threads: usize, times: usize) {
    let table = Table::new(lock, threads);
    let alike = times == 1 && execution::cpus_are_alike() && !table.info.numa_aware;
    let section: fn(&Table, usize) = match alike {
        true => |table, cpu| {
            table.lock();
            table.enter();
            // All threads do the same, so one order of them stands for each.
            execution::assume(table.entered().len() == cpu + 1);
            table.unlock();
        },
        false => |table, _| table.section(),
    };
    let body = move |table: &'static Table, cpu| (0..times).for_each(|_| section(table, cpu));
    run(table, threads, body);
}

/// Returns the promise of exclusion among as many threads as a model may have.
pub(crate) fn exclusion_of_four(lock: &Lock) -> Property {
    Property {
        unrecorded: true,
        ..Property::new("exclusion of four", 4, lock, |lock| exclusion(lock, 4, 1))
    }
}

/// Checks that `try_lock` succeeds on a free lock, alone, again and again, and that a lock
/// without it says no.
pub(super) fn try_lock_alone(lock: &Lock, wraps: bool) {
    let table = Table::with(lock, 1, wraps);
    for _ in 0..2 {
        let got = table.try_lock_at_once();
        if table.info.try_lock {
            assert!(got, "try_lock fails on a free lock");
            table.says_it_is_locked(true);
            table.enter();
            table.unlock();
        } else {
            assert!(!got, "try_lock succeeds, but INFO says it cannot");
        }
        table.lock();
        table.says_it_is_locked(true);
        table.enter();
        table.unlock();
        table.says_it_is_locked(false);
    }
    table.finish();
}

/// Checks that `try_lock` says no at once while another holds the lock and does not let go.
pub(super) fn try_lock_never_waits(lock: &Lock) {
    let table = Table::new(lock, 2);
    table.lock();
    join(spawn(1, move || {
        for _ in 0..2 {
            let got = table.try_lock_at_once();
            assert!(!got, "try_lock succeeds on a lock that is held");
        }
    }));
    table.enter();
    table.unlock();
    join(spawn(1, move || table.section()));
    table.finish();
}

/// Returns the promise that a context with which `try_lock` has failed is as good as
/// new: others queue behind it after that, on its next way in.
pub(crate) fn after_a_failed_try(lock: &Lock) -> Property {
    Property::new("try_lock in vain before", 3, lock, fail_a_try)
}

fn fail_a_try(lock: &Lock) {
    // Where time is published it passes, and nobody keeps a place.
    if lock.info().fairness == Fairness::Fifo {
        fail_in_the_queue(lock);
    }
    let table = Table::new(lock, 3);
    let mut others = Vec::new();
    execution::set_up(|| {
        table.lock();
        others.push(spawn(1, move || {
            assert!(
                !table.try_lock(),
                "try_lock succeeds on a lock that is held"
            );
            execution::arrive(1);
            execution::await_arrival(0);
            table.try_section();
            table.section();
        }));
        execution::await_arrival(1);
        others.push(spawn(2, move || {
            execution::await_arrival(0);
            table.section();
        }));
        table.enter();
        table.unlock();
        execution::arrive(0);
    });
    join_all(others);
    table.finish();
}

/// Checks that a try whose node, given up, is in the queue before another's fails, and leaves
/// that alone.
fn fail_in_the_queue(lock: &Lock) {
    let table = Table::new(lock, 3);
    execution::set_up(|| {
        table.lock();
        let tries = spawn_until_it_waits(1, move || {
            let got = table.lock_until(table.own(), 0);
            assert!(!got, "acquires what is held");
            execution::await_arrival(2);
            assert!(
                !table.try_lock(),
                "try_lock succeeds on a lock that is held"
            );
            execution::arrive(3);
        });
        let behind = spawn(2, move || table.section_and_arrive());
        execution::await_arrival(3);
        table.enter();
        table.unlock();
        join_all([tries, behind]);
        table.finish();
    });
}

/// Returns the promise where a CPU that tries, and then locks, stops before any one
/// access; meanwhile another comes and goes so often that slots and turns go round, and
/// then holds the lock, or waits for it.
pub(crate) fn wraps_during_preemption(lock: &Lock) -> Property {
    let property = Property::new("goes round meanwhile", 2, lock, |lock| {
        let table = Table::new(lock, 2);
        let stopped = spawn(1, move || {
            execution::interrupt_anywhere(|| {
                execution::set_up(|| {
                    execution::arrive(1);
                    execution::await_arrival(0);
                });
            });
            table.try_section();
            table.section_and_arrive();
        });
        execution::await_arrival(1);
        execution::set_wait_rule(WaitRule::Doorway);
        for _ in 0..3 {
            table.section();
        }
        table.lock();
        execution::arrive(0);
        table.enter();
        table.unlock();
        join(stopped);
        table.finish();
    });
    interrupting(property).with(|setting| setting.stops_only = true)
}

/// Checks that among others that lock `try_lock` either gets it properly or leaves no
/// trace.
pub(super) fn try_lock_races(lock: &Lock, threads: usize) {
    run(Table::new(lock, threads), threads, |table, cpu| {
        if cpu == 1 {
            if table.try_lock_at_once() {
                table.enter();
                table.unlock();
            }
            table.section();
        } else if cpu == 2 {
            table.try_section();
        } else {
            table.section();
        }
    });
}

/// Checks `try_lock` by one who has not looked while the other came and went, and
/// slots went round.
pub(super) fn try_lock_late(lock: &Lock) {
    run(Table::new(lock, 2), 2, |table, cpu| {
        if cpu == 0 {
            for _ in 0..3 {
                table.section();
            }
        } else {
            table.try_section();
        }
    });
}

/// Checks `try_lock` by one who comes back to slots that have gone round, while
/// another queues behind.
pub(super) fn try_lock_again(lock: &Lock) {
    run(Table::new(lock, 2), 2, |table, cpu| {
        table.section();
        if cpu == 0 {
            table.try_section();
            table.try_section();
        }
    });
}

/// Checks this case: one of three comes back while the others still wait: what NUMA-aware
/// queues need to have somebody to prefer.
pub(super) fn one_comes_back(lock: &Lock) {
    run(Table::new(lock, 3), 3, |table, cpu| {
        table.section();
        if cpu == 0 {
            table.section();
        }
    });
}

/// Returns the promise where a thread is on another NUMA node each time that it is
/// asked, of two with great numbers.
pub(crate) fn moves_between_nodes(lock: &Lock) -> Property {
    let moves = Property::new("moves between nodes", 3, lock, one_comes_back);
    moves.with(|setting| {
        setting.migrates = true;
        setting.last_cpus = true;
    })
}

/// Checks this case: a queue has formed and dissolved, and now forms again: each node
/// says what it said then until its owner has reset it.
pub(super) fn queue_formed_before(lock: &Lock) {
    queue_forms_again(lock, Table::lock);
}

/// Does what [`queue_formed_before`] does; the queue forms behind one that has tried.
pub(super) fn queue_behind_try_lock(lock: &Lock) {
    queue_forms_again(lock, |table| {
        assert!(table.try_lock(), "try_lock fails on a lock that is free");
    });
}

fn queue_forms_again(lock: &Lock, acquire: fn(&Table)) {
    let table = Table::new(lock, 3);
    let mut others = Vec::new();
    execution::set_up(|| {
        table.lock();
        for cpu in 1..3 {
            others.push(spawn_until_it_waits(cpu, move || {
                table.section();
                execution::await_arrival(0);
                table.section();
            }));
        }
        table.enter();
        table.unlock();
        await_entered(table, 3);
        acquire(table);
        execution::arrive(0);
    });
    table.enter();
    table.unlock();
    join_all(others);
    table.finish();
}

/// Lets one who has waited in a queue, between two others, try when the lock is free again,
/// and the others queue behind: what its context said of the queue before is over. In
/// one order of many.
pub(super) fn try_lock_after_a_queue(lock: &Lock) {
    let table = Table::new(lock, 4);
    execution::set_up(|| {
        table.lock();
        let others = [1, 2, 3].map(|cpu| {
            spawn_until_it_waits(cpu, move || {
                table.section();
                if cpu == 2 {
                    execution::await_arrival(0);
                    assert!(table.try_lock(), "try_lock fails on a lock that is free");
                    execution::arrive(2);
                    // Until the others wait behind.
                    let_others_wait(2 * TURNS);
                    table.enter();
                    table.unlock();
                } else {
                    execution::await_arrival(2);
                    table.section();
                }
            })
        });
        table.enter();
        table.unlock();
        await_entered(table, 4);
        execution::arrive(0);
        join_all(others);
        table.finish();
    });
}

/// Checks this case: two wait, the holder lets go, and one more comes: who has been
/// passed over or sent away is somebody's predecessor again. The one that comes has
/// held the lock before, with the holder of now behind it: a thread that neither wrote
/// nor read what its node said then may still read it.
pub(super) fn one_comes_to_two(lock: &Lock) {
    let table = Table::new(lock, 4);
    let mut others = Vec::new();
    execution::set_up(|| {
        others.push(spawn_until_it_waits(3, move || {
            table.lock();
            // Until the main thread waits behind.
            let_others_wait(3 * TURNS);
            table.enter();
            table.unlock();
            execution::await_arrival(0);
            table.section();
        }));
        table.lock();
        for cpu in 1..3 {
            others.push(spawn_until_it_waits(cpu, move || table.section()));
        }
        execution::arrive(0);
    });
    table.enter();
    table.unlock();
    join_all(others);
    table.finish();
}

/// Checks this case: a waiter of the other NUMA node has been passed over, another one comes,
/// and so does the one that let go: the second queue, or the passive list,
/// gets a second member, and then the first has its turn, as soon as promised.
pub(super) fn passed_over(lock: &Lock) {
    let table = Table::new(lock, 4);
    let mut others = Vec::new();
    execution::set_up(|| {
        others.push(spawn_until_it_waits(2, move || {
            table.lock();
            // Until 1 and the main thread wait behind, in this order.
            let_others_wait(4 * TURNS);
            table.enter();
            table.unlock();
            // Until 3 waits.
            execution::await_arrival(0);
            table.section();
        }));
        others.push(spawn_until_it_waits(1, move || table.section()));
        table.lock();
        others.push(spawn_until_it_waits(3, move || table.section()));
        execution::arrive(0);
        let_others_wait(2 * TURNS);
    });
    table.enter();
    table.unlock();
    join_all(others);
    assert_overtaken(table, 1, 3);
    table.finish();
}

/// Makes that promise in a queue whose first waiter is no part of it (a pending bit): twice a
/// waiter of the other NUMA node is passed over, and each goes behind those before it. The head
/// that does so the second time stops before any one access, and meanwhile the one whom it
/// prefers comes.
pub(crate) fn passed_over_in_queue(lock: &Lock) -> Property {
    let property = Property::new("passed over, in the queue", 4, lock, |lock| {
        let table = Table::new(lock, 4);
        let mut others = Vec::new();
        execution::set_up(|| {
            table.lock();
            others.push(spawn_until_it_waits(3, move || {
                table.lock();
                // Until the main thread waits behind 2 and 1.
                execution::await_arrival(0);
                table.enter();
                table.unlock();
                table.section_and_arrive();
            }));
            others.push(spawn_until_it_waits(2, move || {
                table.lock();
                // Until 3 waits behind the main thread.
                execution::await_arrival(3);
                table.enter();
                table.unlock();
                execution::await_arrival(1);
                table.section();
            }));
            others.push(spawn_until_it_waits(1, move || table.section()));
            table.enter();
            table.unlock();
        });
        execution::interrupt_anywhere(|| {
            execution::set_up(|| {
                execution::arrive(1);
                // Its doorway is still to come.
                execution::set_wait_rule(WaitRule::Doorway);
                let_others_wait(4 * TURNS);
            });
        });
        table.lock_and_arrive();
        execution::arrive(1);
        table.enter();
        table.unlock();
        join_all(others);
        // Before it were the main thread, 3 and 2.
        assert_overtaken(table, 3, 3);
        table.finish();
    });
    interrupting(property).with(|setting| {
        setting.stops_only = true;
        setting.preferences = 2;
    })
}

/// Returns the promise where one has been sent away, to come back when the queue is
/// empty: the holder calls it, and the one that sent it comes again at any time.
pub(crate) fn called_back(lock: &Lock) -> Property {
    Property::new("one is called back", 3, lock, |lock| {
        let table = Table::new(lock, 3);
        let mut others = Vec::new();
        execution::set_up(|| {
            table.lock();
            others.push(spawn_until_it_waits(1, move || table.section()));
            others.push(spawn_until_it_waits(2, move || {
                table.lock();
                execution::await_arrival(0);
                table.enter();
                table.unlock();
            }));
            table.enter();
            table.unlock();
            let_others_wait(TURNS);
            execution::arrive(0);
        });
        table.section();
        join_all(others);
        table.finish();
    })
}

/// Surplus waiters are sent off: those that stay in the queue come before them, then the
/// one that was sent off last, and the eldest when so many have come before it. In one
/// order of many, for each bound; the first holder comes again where it is named twice.
pub(crate) fn sent_off_and_called(lock: &Lock) -> [Property; 3] {
    let of = |name, bound, expected: &'static [usize]| {
        let property = Property::new(name, 4, lock, move |lock| {
            let table = Table::new(lock, 4);
            execution::set_up(|| {
                table.lock();
                let others = [1, 2, 3].map(|cpu| {
                    spawn_until_it_waits(cpu, move || {
                        table.lock();
                        // Until the first holder waits, if it comes again.
                        let_others_wait(3 * TURNS);
                        table.enter();
                        table.unlock();
                    })
                });
                let times = expected.iter().filter(|&&cpu| cpu == 0).count();
                table.enter();
                table.unlock();
                (1..times).for_each(|_| table.section());
                join_all(others);
            });
            let order = table.entered();
            assert_eq!(order, expected, "the queue and the list change places");
            table.finish();
        });
        property.with(|setting| setting.preferences = bound)
    };
    [
        of("surplus waits", 1_000, &[0, 2, 3, 1]),
        of("the last first, then the eldest", 3, &[0, 2, 0, 3, 1]),
        of("the eldest, then the last", 2, &[0, 2, 0, 1, 3]),
    ]
}

/// Returns the promise where four come again and again, in one order of many: with all
/// others waiting, and at other times with few. Queues, lists and counts go through
/// what no short execution reaches.
pub(crate) fn many_turns(lock: &Lock) -> [Property; 2] {
    let property = |name| {
        Property::new(name, 4, lock, |lock| {
            let table = Table::new(lock, 4);
            let mut others = Vec::new();
            let come_again = move |cpu: usize| {
                for turn in 0..6 {
                    let before = table.entered().len();
                    table.lock();
                    assert_served(table, before);
                    if !(turn + cpu).is_multiple_of(3) {
                        let_others_wait(2 * TURNS);
                    }
                    table.enter();
                    table.unlock();
                    let_others_wait(turn * cpu % 3);
                }
            };
            execution::set_up(|| {
                table.lock();
                for cpu in 1..4 {
                    others.push(spawn_until_it_waits(cpu, move || come_again(cpu)));
                }
                table.enter();
                table.unlock();
                come_again(0);
                join_all(others);
                table.finish();
            });
        })
    };
    // The same where none of them comes sooner because it waits longest.
    [
        property("many turns").with(|setting| setting.preferences = 2),
        property("many turns, no bound").with(|setting| setting.preferences = 1_000),
    ]
}

/// Counters pass their last value while both threads are at it.
pub(super) fn wrap_around(lock: &Lock) {
    run(Table::with(lock, 2, true), 2, |table, cpu| {
        if cpu == 1 && table.info.try_lock {
            table.try_section();
        }
        table.section();
        table.section();
    });
}
