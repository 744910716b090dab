//! Checks what only some locks promise: contexts that end, timeouts, sleep,
//! hypervisors.

use super::definition::{Lock, Property};
use super::exclusion::exclusion;
use super::table::{
    TURNS, Table, await_entered, join, join_all, let_others_wait, run, spawn, spawn_until_it_waits,
};
use crate::execution::{self, Setting};
use crate::threads;
use std::cell::Cell;
use std::rc::Rc;

/// Returns the promise of a lock whose contexts may go when their acquisition ends;
/// of three threads where a holder reaches past the next waiter.
pub(crate) fn short_lived(lock: &Lock, threads: usize) -> Property {
    if threads == 3 {
        Property::new("contexts end, three", 3, lock, |lock| {
            contexts_end(lock, 3, |table, _| section_with_its_own(table));
        })
    } else {
        Property::new("contexts end", 2, lock, |lock| {
            contexts_end(lock, 2, |table, _| {
                section_with_its_own(table);
                section_with_its_own(table);
            });
        })
    }
}

/// Makes that promise of a lock that prefers waiters of its holder's NUMA node, where all are
/// of one: a holder hands over to one behind it in the queue of that node.
pub(crate) fn short_lived_in_one_node(lock: &Lock) -> Property {
    Property {
        name: "contexts end, one node",
        ..short_lived(lock, 2).with(|setting| setting.numa_nodes = 1)
    }
}

/// Checks that nobody uses the context any more once `unlock` has returned: its owner
/// may take the memory back.
fn contexts_end(lock: &Lock, threads: usize, body: fn(&'static Table, usize)) {
    run(Table::new(lock, threads), threads, body);
}

fn section_with_its_own(table: &'static Table) {
    let own = table.context();
    table.lock_with(&own);
    table.enter();
    table.unlock_with(&own);
    drop(own);
}

/// Returns the promise of the same locks: a context may be used as soon as it is made,
/// whichever way its owner acquires, and the next one finds it initialised.
pub(crate) fn just_made(lock: &Lock) -> Property {
    Property::new("contexts begin", 2, lock, |lock| {
        run(Table::new(lock, 2), 2, |table, cpu| {
            let own = table.context();
            if cpu == 1 {
                table.lock_with(&own);
            } else if !table.try_lock_with(&own) {
                return;
            }
            table.enter();
            table.unlock_with(&own);
        });
    })
}

/// Returns the promise of a lock whose contexts serve any number of locks at once: a
/// holder of two, with a waiter for each, lets go of one.
pub(crate) fn one_context(lock: &Lock) -> Property {
    Property::new("one context, two locks", 3, lock, |lock| {
        let tables = [Table::new(lock, 3), Table::new(lock, 3)];
        let own = tables[0].context();
        for table in tables {
            table.lock_with(&own);
        }
        let others = [1, 2].map(|cpu| spawn(cpu, move || tables[cpu - 1].section()));
        for table in tables {
            table.enter();
            table.unlock_with(&own);
        }
        join_all(others);
        for table in tables {
            table.finish();
        }
        drop(own);
    })
}

/// Returns the promise of a lock that asks whether it runs on a hypervisor; the answer may
/// change meanwhile, so that some wait in one way and some in the other.
pub(crate) fn virtualized(lock: &Lock) -> Vec<Property> {
    let from_first = |setting: &mut Setting| setting.virtualized_from = 0;
    vec![
        Property::new("reuse, virtualized", 2, lock, |lock| exclusion(lock, 2, 2)).with(from_first),
        Property::new("three, virtualized", 3, lock, |lock| exclusion(lock, 3, 1)).with(from_first),
        Property::new("three, one virtualized", 3, lock, |lock| {
            exclusion(lock, 3, 1)
        })
        .with(|setting| setting.virtualized_from = 2),
        // A CPU of a virtual machine may not run, and so nobody waits for its turn.
        Property::new("passed, virtualized", 2, lock, |lock| {
            passed(lock, [0, 0, 1])
        })
        .with(from_first),
        Property::new("not passed, not virtualized", 2, lock, |lock| {
            passed(lock, [0, 1, 0]);
        }),
    ]
}

/// Checks who enters in which order where the holder lets go and comes again at once,
/// and another waits. In one order of many.
fn passed(lock: &Lock, expected: [usize; 3]) {
    let table = Table::new(lock, 2);
    execution::set_up(|| {
        table.lock();
        let waiter = spawn_until_it_waits(1, move || table.section());
        table.enter();
        table.unlock();
        table.section();
        join(waiter);
    });
    assert_eq!(
        table.entered(),
        expected,
        "a waiter has a place, or has none"
    );
    table.finish();
}

/// Returns the promise that one that waits behind another sleeps too.
pub(crate) fn both_sleep(lock: &Lock) -> Property {
    Property::new("two waiters sleep", 3, lock, |lock| {
        let table = Table::new(lock, 3);
        table.lock();
        let waiters = [1, 2].map(|cpu| {
            let waiter = spawn(cpu, move || table.section());
            execution::await_sleep(cpu);
            waiter
        });
        table.enter();
        table.unlock();
        join_all(waiters);
        table.finish();
    })
}

/// Returns the promise that in one execution at least one that comes when the lock is
/// free acquires it before a head of the queue that sleeps.
pub(crate) fn passes_a_sleeping_head(lock: &Lock) -> Property {
    let property = Property::new("passes a head that sleeps", 3, lock, |lock| {
        let table = Table::new(lock, 3);
        table.lock();
        let head = spawn(1, move || table.section());
        execution::await_sleep(1);
        let comes = spawn(2, move || table.section());
        table.enter();
        table.unlock();
        join_all([head, comes]);
        if table.entered() == [0, 2, 1] {
            execution::witness();
        }
        table.finish();
    });
    Property {
        needs_witness: true,
        ..property
    }
}

/// Checks that a waiter sleeps when the holder does not let go.
pub(super) fn waiters_sleep(lock: &Lock) {
    let table = Table::new(lock, 2);
    table.lock();
    let waiter = spawn(1, move || table.section());
    execution::await_sleep(1);
    table.enter();
    table.unlock();
    join(waiter);
    table.finish();
}

/// Returns the promises of a lock whose acquisition can be given up.
pub(crate) fn timed(lock: &Lock) -> Vec<Property> {
    let choices = |setting: &mut Setting| setting.choices = true;
    vec![
        Property::new("free, no time left", 1, lock, free_without_time),
        Property::new("gives up in time", 2, lock, gives_up).with(choices),
        Property::new("gives up at the deadline", 2, lock, gives_up_at_once)
            .with(|setting| setting.clock = false),
        Property::new("timeout", 2, lock, |lock| timeout(lock, 2)).with(choices),
        Property::new("timeout, node used before", 2, lock, timeout_of_used_node).with(choices),
        Property::new("timeout among three", 3, lock, |lock| timeout(lock, 3)).with(choices),
    ]
}

/// Checks that whose node is held is not idle, however it was acquired; and on a free lock
/// an acquisition succeeds, even if its time is over before it begins.
fn free_without_time(lock: &Lock) {
    let table = Table::new(lock, 2);
    let own = table.context();
    let in_use = || {
        let ends = table.info.bytes_per_waiter > 0;
        assert!(!ends || !table.is_idle(&own), "the holder's node is idle");
        table.enter();
        table.unlock_with(&own);
        assert!(table.is_idle(&own), "a node stays in use after unlock");
    };
    for _ in 0..2 {
        assert!(table.lock_until(&own, 0), "gives up on a free lock");
        in_use();
        assert!(table.try_lock_with(&own), "try_lock fails on a free lock");
        in_use();
        table.lock_with(&own);
        in_use();
    }
    drop(own);
    table.finish();
}

/// Returns the promise of a node that was given up: when it says that it is idle, or
/// has been used again, its owner may take the memory back.
pub(crate) fn given_up(lock: &Lock) -> Vec<Property> {
    let ends = [
        ("given up, node ends", false),
        ("given up, tried, ends", true),
    ];
    let ends = ends.map(|(name, try_again)| {
        Property::new(name, 2, lock, move |lock| {
            given_up_node_ends(lock, try_again)
        })
        .with(|setting| setting.choices = true)
    });
    ends.into()
}

/// Checks that it gives up while another holds the lock and does not let go, and again
/// where it comes back to the place that it gave up.
fn gives_up(lock: &Lock) {
    let table = Table::new(lock, 2);
    table.lock();
    join(spawn(1, move || {
        let own = table.context();
        for _ in 0..2 {
            assert!(!table.lock_until(&own, 1), "acquires a lock that is held");
        }
        // Its node may still be in the queue.
        std::mem::forget(own);
    }));
    table.enter();
    table.unlock();
    table.finish();
}

/// Checks that it gives up at the deadline, not after it, while another holds the lock: time
/// stands still.
fn gives_up_at_once(lock: &Lock) {
    let table = Table::new(lock, 2);
    table.lock();
    join(spawn(1, move || {
        let own = table.context();
        let now = execution::now();
        assert!(!table.lock_until(&own, now), "acquires a lock that is held");
        // Its node may still be in the queue.
        std::mem::forget(own);
    }));
    table.enter();
    table.unlock();
    table.finish();
}

/// Checks that who gives up does not hold it, who does not give up does; and the lock
/// goes on past those who have given up, who may come back.
fn timeout(lock: &Lock, threads: usize) {
    let body: fn(&'static Table, usize) = if threads == 2 {
        |table, cpu| {
            if cpu > 0 {
                table.section_in_time();
            }
            table.section();
        }
    } else {
        |table, cpu| {
            if cpu > 0 {
                table.section_in_time();
            }
            if cpu < 2 {
                table.section();
            }
        }
    };
    run(Table::new(lock, threads), threads, body);
}

/// Checks this case: who gives up has used its node before, with others behind it: what the
/// node said then must not be taken for what it says now.
fn timeout_of_used_node(lock: &Lock) {
    run(Table::new(lock, 2), 2, |table, cpu| {
        table.section();
        if cpu == 0 {
            table.section();
        } else {
            table.section_in_time();
        }
    });
}

/// Checks that a node lives until it is idle, whoever released it; an acquisition with
/// it that succeeds is as good a sign.
fn given_up_node_ends(lock: &Lock, try_again: bool) {
    let table = Table::new(lock, 2);
    let other = spawn(1, move || {
        let own = table.context();
        if table.lock_until(&own, 1) {
            table.enter();
            table.unlock_with(&own);
        } else if try_again {
            while !table.try_lock_with(&own) {
                threads::relax();
            }
            table.enter();
            table.unlock_with(&own);
        } else {
            while !table.is_idle(&own) {
                threads::relax();
            }
        }
        drop(own);
    });
    table.section();
    table.section();
    join(other);
    table.finish();
}

/// Returns the promises of a lock whose releases hand it over once a sleeper starves: where a
/// sleeper that was woken loses the lock to another, and begins to starve while that one leaves;
/// and where another sleeps behind it, and both are served before a third that comes. After
/// that a sleeper is woken as before.
pub(crate) fn one_starves(lock: &Lock) -> [Property; 2] {
    let left = Property::new("left as one starves", 2, lock, |lock| {
        let table = Table::new(lock, 2);
        let mut others = Vec::new();
        execution::set_up(|| {
            table.lock();
            others.push(spawn_until_it_waits(1, move || table.section()));
        });
        for _ in 0..2 {
            table.enter();
            table.unlock();
            table.lock();
        }
        table.enter();
        table.unlock();
        join_all(others);
        table.finish();
    });
    let queued = Property::new("in order as one starves", 3, lock, |lock| {
        let table = Table::new(lock, 3);
        let mut others = Vec::new();
        execution::set_up(|| {
            table.lock();
            others.push(spawn_until_it_waits(1, move || table.section()));
            table.enter();
            table.unlock();
            table.lock();
            // Until the one that was woken sleeps again.
            let_others_wait(TURNS);
            others.push(spawn_until_it_waits(2, move || table.section()));
        });
        table.enter();
        table.unlock();
        table.section();
        join_all(others);
        assert_eq!(
            table.entered(),
            [0, 0, 1, 2, 0],
            "who sleeps behind one that starves is passed"
        );
        execution::set_up(|| {
            table.lock();
            let next = spawn_until_it_waits(1, move || table.section());
            table.enter();
            table.unlock();
            join(next);
        });
        table.finish();
    });
    [left, queued].map(|property| property.with(|setting| setting.choices = false))
}

/// Returns the promise of a lock whose release takes the first of two sleepers out of the queue:
/// who comes while that one is inside finds the queue as the release has left it, and joins it
/// behind the other. Only what it finds is explored; the rest is in one order.
pub(crate) fn comes_to_a_sleeper(lock: &Lock) -> Property {
    Property::new("one comes to a sleeper", 4, lock, |lock| {
        let table = Table::new(lock, 4);
        // Beside the model: nobody learns from it what another has written.
        let stage = Rc::new(Cell::new(0));
        let await_stage = |awaited| {
            let stage = stage.clone();
            move || {
                while stage.get() < awaited {
                    let_others_wait(1);
                }
            }
        };
        let mut others = Vec::new();
        execution::set_up(|| {
            table.lock();
            let stays = await_stage(3);
            others.push(spawn_until_it_waits(1, move || {
                table.lock();
                table.enter();
                stays();
                table.unlock();
            }));
            others.push(spawn_until_it_waits(2, move || table.section()));
            let (tries, comes) = (await_stage(1), await_stage(2));
            others.push(spawn(3, move || {
                tries();
                // It sees that the lock is held, or it would go round with each older word.
                assert!(!table.try_lock(), "acquires what is held");
                comes();
                table.section();
            }));
            table.enter();
            table.unlock();
            await_entered(table, 2);
            stage.set(1);
            let_others_wait(TURNS);
        });
        stage.set(2);
        let_others_wait(2 * TURNS);
        execution::set_up(|| {
            stage.set(3);
            join_all(others);
            table.finish();
        });
    })
}
