//! Checks how often a waiter is overtaken, where a lock says how often that can be.

use super::definition::{Lock, Property};
use super::table::{
    TURNS, Table, await_entered, entered_behind_a_holder, join, join_all, let_others_wait, spawn,
    spawn_until_it_waits,
};
use crate::execution;
use locklab_locks::{NESTING, Overtakes};
use std::cell::Cell;
use std::rc::Rc;

/// Asserts that thread 1, which waits longest, has been overtaken by `others`
/// no more often than the lock says; so many held the lock, or were next for
/// it, when thread 1 came. Notes that it was, if it was as often as that.
pub(super) fn assert_overtaken(table: &Table, before: usize, others: usize) {
    let handoffs = execution::preferences() as usize;
    let bound = match table.info.overtakes {
        Some(Overtakes::InAll(said) | Overtakes::HandoffsOfEachNode(said)) => {
            // The model has a bound of its own.
            let own = execution::own_bound().unwrap_or(said);
            assert_eq!(own, said, "the lock has another bound than it says");
            handoffs
        }
        Some(Overtakes::ByEachCpu(times)) => others * times as usize,
        None => return,
    };
    let entered = table.entered();
    let place = entered.iter().position(|&cpu| cpu == 1);
    let overtakes = place.expect("thread 1 has been inside") - before;
    assert!(
        overtakes <= bound,
        "a waiter is overtaken {overtakes} times, {bound} at most are promised here"
    );
    if overtakes == bound {
        execution::witness();
    }
}

/// Checks a lock that bounds how often the waiter is passed over whose turn is next:
/// one of four, which came when so many had entered, has entered now. Each of the
/// others may have been before it for as long as that bound.
pub(super) fn assert_served(table: &Table, before: usize) {
    let others = 3;
    let most = others * (execution::preferences() as usize + 1) + others;
    let since = table.entered().len() - before;
    assert!(
        table.info.overtakes.is_none() || since <= most,
        "a waiter is overtaken {since} times, {most} at most are promised here"
    );
}

/// Checks this case: thread 1 waits longest, alone in its NUMA node. The holder and another
/// thread of the holder's node come again and again; where waiters sleep, the
/// holder comes once more, which is once too often for a bound that never
/// counts, and leaves few enough executions to explore.
pub(super) fn overtaking(lock: &Lock) {
    let again = if lock.info().parks { 1 } else { 2 };
    come_again(lock, 0, again, true);
}

/// Does the same with a lock that was used before when nobody waited, and with others that come
/// once more than a bound of two allows: a count that began before, or stays where it is, is
/// none of who waits. Where waiters sleep, in one order of many, as so many sleeps are too many
/// to explore.
pub(super) fn overtaking_a_used_lock(lock: &Lock) {
    come_again(lock, 3, 2, !lock.info().parks);
}

fn come_again(lock: &Lock, before: usize, again: usize, explored: bool) {
    let table = Table::new(lock, 3);
    let mut others = Vec::new();
    let go_on = || {
        table.enter();
        table.unlock();
        for _ in 0..again {
            table.section();
        }
    };
    execution::set_up(|| {
        for _ in 0..before {
            table.section();
        }
        table.lock();
        others.push(spawn_until_it_waits(1, move || table.section()));
        others.push(spawn_until_it_waits(2, move || {
            for _ in 0..again {
                table.section();
            }
        }));
        if !explored {
            go_on();
            others.drain(..).for_each(join);
        }
    });
    if explored {
        go_on();
        join_all(others);
    }
    assert_overtaken(table, before + 1, 2);
    table.finish();
}

/// Makes that promise where the first waiter is no part of the queue (a pending bit) and the
/// second is its head before others come: thread 3 and thread 2, which is of another NUMA node
/// than thread 1 behind it, and comes twice. Once at least it is overtaken, or the lock would
/// prefer nobody.
pub(crate) fn overtaking_in_queue(lock: &Lock) -> Property {
    let property = Property::new("overtaking in the queue", 4, lock, |lock| {
        let table = Table::new(lock, 4);
        let mut others = Vec::new();
        execution::set_up(|| {
            table.lock();
            others.push(spawn_until_it_waits(3, move || table.section()));
            others.push(spawn_until_it_waits(2, move || {
                table.section();
                table.section();
            }));
            others.push(spawn_until_it_waits(1, move || table.section()));
        });
        table.enter();
        table.unlock();
        table.section();
        join_all(others);
        // Before it were the holder, thread 3 and thread 2.
        assert_overtaken(table, 3, 3);
        table.finish();
    });
    Property {
        needs_witness: true,
        ..property
    }
}

/// Makes that promise with a bound of two and others that come more often than that: in one
/// order of many, as four threads that come so often are too many to explore.
pub(crate) fn overtaking_in_one_order(lock: &Lock) -> Property {
    let property = Property::new("overtaking, one order", 4, lock, |lock| {
        let table = Table::new(lock, 4);
        let mut others = Vec::new();
        execution::set_up(|| {
            table.lock();
            for (cpu, times) in [(3, 1), (2, 3), (1, 1)] {
                others.push(spawn_until_it_waits(cpu, move || {
                    (0..times).for_each(|_| table.section());
                }));
            }
            table.enter();
            table.unlock();
            (0..2).for_each(|_| table.section());
            join_all(others);
        });
        // Before it were the holder, thread 3 and thread 2.
        assert_overtaken(table, 3, 3);
        table.finish();
    });
    Property {
        needs_witness: true,
        ..property.with(|setting| setting.preferences = 2)
    }
}

/// Checks this case: before each access of one that comes, another does the opposite of
/// what it did before: it takes the lock, or lets go. So the one that comes loses every
/// race, and must keep a place in the end. Which accesses find the lock free depends on
/// how many come first, so the other begins once with the first access, and once with
/// the second.
pub(super) fn place_in_the_end(lock: &Lock) {
    for left_out in 0..2 {
        loses_every_race(Table::new(lock, 2), left_out);
    }
}

fn loses_every_race(table: &'static Table, mut left_out: usize) {
    let accesses = Rc::new(Cell::new(0));
    execution::set_up(|| {
        table.lock();
        let counted = accesses.clone();
        let comes = spawn(1, move || {
            table.lock_watched(move || {
                counted.set(counted.get() + 1);
                let_others_wait(TURNS);
            });
            table.enter();
            table.unlock();
        });
        let mut held = true;
        while !table.entered().contains(&1) {
            let seen = accesses.get();
            // Until it goes on, or waits.
            for _ in 0..TURNS {
                if accesses.get() == seen {
                    let_others_wait(1);
                }
            }
            if left_out > 0 {
                left_out -= 1;
                continue;
            }
            match held {
                true => {
                    table.enter();
                    table.unlock();
                }
                false => table.lock(),
            }
            held = !held;
        }
        if held {
            table.enter();
            table.unlock();
        }
        join(comes);
        table.finish();
    });
}

/// Returns the promise that who sleeps is handed the lock when time has passed, before
/// another that comes: that may have entered so many times more, each time before the sleeper
/// sleeps again.
pub(crate) fn handed_over(lock: &Lock, most: usize) -> Property {
    let property = Property::new("handed over in time", 2, lock, move |lock| {
        let table = Table::new(lock, 2);
        table.lock();
        let sleeper = spawn(1, move || table.section());
        execution::await_sleep(1);
        table.enter();
        table.unlock();
        for _ in 0..most {
            table.lock();
            if !table.entered().contains(&1) {
                execution::await_sleep(1);
            }
            table.enter();
            table.unlock();
        }
        table.lock();
        let entered = table.entered();
        assert!(
            entered.contains(&1),
            "a sleeper is not handed the lock: {entered:?} have entered"
        );
        table.enter();
        table.unlock();
        join(sleeper);
        table.finish();
    });
    property.with(|setting| setting.choices = false)
}

/// Checks that a thread whose doorway is done before another's begins enters before that.
///
/// The doorway of thread 1 is done when it waits without limit (or has the
/// lock); thread 2 begins after that, in the sense of happens-before; the
/// holder lets go at any time.
pub(super) fn fifo(lock: &Lock) {
    let order = entered_behind_a_waiter(lock, Table::section);
    assert_eq!(order, [0, 1, 2], "not first come, first served");
}

/// Does the same where thread 2 only tries: it may fail, and does not overtake.
pub(super) fn fifo_beside_an_attempt(lock: &Lock) {
    let order = entered_behind_a_waiter(lock, Table::try_section);
    assert!(order.starts_with(&[0, 1]), "an attempt overtakes a waiter");
}

/// Returns the order in which they enter, where thread 2 comes when the doorway of
/// thread 1 is done.
fn entered_behind_a_waiter(lock: &Lock, comes: fn(&Table)) -> Vec<usize> {
    let table = Table::new(lock, 3);
    table.lock();
    table.enter();
    let first = spawn(1, move || {
        table.section_and_arrive();
    });
    let second = spawn(2, move || {
        execution::await_arrival(1);
        comes(table);
    });
    table.unlock();
    join(first);
    join(second);
    let order = table.entered();
    table.finish();
    order
}

/// Returns the promise that a lock whose first waiter announces itself is first come,
/// first served from then on.
pub(crate) fn announced(lock: &Lock) -> [Property; 2] {
    [
        Property::new("the head is next", 3, lock, fifo),
        Property::new(
            "the head is next, one tries",
            3,
            lock,
            fifo_beside_an_attempt,
        ),
    ]
}

/// Returns the promise that a lock that prefers waiters of the holder's NUMA node is
/// first come, first served where all are of one.
pub(crate) fn in_order_within_a_node(lock: &Lock) -> Property {
    let property = Property::new("fifo in one NUMA node", 3, lock, fifo);
    property.with(|setting| setting.numa_nodes = 1)
}

/// Returns the promise that a lock that hands over within a NUMA node does so: of three
/// that wait the last is of the holder's node and comes first, and the others keep
/// their order. In one order of many.
pub(crate) fn prefers_its_node(lock: &Lock) -> Property {
    Property::new("prefers its NUMA node", 4, lock, |lock| {
        let table = Table::new(lock, 4);
        let entered = entered_behind_a_holder(table, [1, 3, 2], Table::section);
        let order =
            "the waiter of the holder's NUMA node is not preferred, or others change places";
        assert_eq!(entered, [0, 2, 1, 3], "{order}");
        table.finish();
    })
}

/// Returns the promise where a queue of three forms behind the main thread in as many
/// rounds as leave no level of a queue node, if each takes one and gives none back, and
/// two more: all are served in the order in which they came, in each round. The last
/// two come in the other order in every second round, so that it is none that they
/// would be served in if they had no place.
pub(crate) fn in_order_again_and_again(lock: &Lock) -> Property {
    const ROUNDS: usize = NESTING + 2;
    const ORDERS: [[usize; 4]; 2] = [[0, 1, 2, 3], [0, 1, 3, 2]];
    let rounds = || (0..ROUNDS).map(|round| ORDERS[round % ORDERS.len()]);
    Property::new("fifo, again and again", 4, lock, move |lock| {
        let table = Table::new(lock, 4);
        let come = Rc::new(Cell::new(0));
        execution::set_up(|| {
            let others = [1, 2, 3].map(|cpu| {
                let come = come.clone();
                spawn(cpu, move || {
                    let places = rounds().flatten().zip(1..);
                    for (_, place) in places.filter(|(of, _)| *of == cpu) {
                        while come.get() < place {
                            let_others_wait(1);
                        }
                        table.section();
                    }
                })
            });
            for round in rounds() {
                table.lock();
                come.set(come.get() + 1);
                for _ in &round[1..] {
                    come.set(come.get() + 1);
                    let_others_wait(2 * TURNS);
                }
                table.enter();
                table.unlock();
                await_entered(table, come.get());
            }
            join_all(others);
        });
        let expected: Vec<usize> = rounds().flatten().collect();
        assert_eq!(table.entered(), expected, "not first come, first served");
        table.finish();
    })
}

/// Returns the promise of a word in front of a queue whose head sleeps: a thread that
/// tries again and again passes it, in one execution at least, and not more often than
/// it may. Once more than that if the head opens the word again in the moment of a
/// pass.
pub(crate) fn passed_while_it_sleeps(lock: &Lock) -> Property {
    let property = Property::new("word, passed so often", 3, lock, |lock| {
        let table = Table::new(lock, 3);
        table.lock();
        let head = spawn(1, move || table.section_and_arrive());
        execution::await_arrival(1);
        let passes = spawn(2, move || (0..4).for_each(|_| table.try_section()));
        table.enter();
        table.unlock();
        join_all([head, passes]);
        let entered = table.entered();
        let before = entered.iter().take_while(|&&cpu| cpu != 1);
        let passed = before.filter(|&&cpu| cpu == 2).count();
        let most = execution::preferences() as usize + 1;
        assert!(passed <= most, "the head is passed {passed} times");
        if passed > 0 {
            execution::witness();
        }
        table.finish();
    });
    Property {
        needs_witness: true,
        ..property
    }
}

/// Returns the promise that thread 1, of another NUMA node, can enter: of a lock that
/// does not bound how often a waiter is overtaken, but lets those of other nodes
/// compete after so many handoffs.
pub(crate) fn lets_others_in(lock: &Lock) -> Property {
    let property = Property::new("others can come", 3, lock, |lock| {
        let table = Table::new(lock, 3);
        let mut others = Vec::new();
        execution::set_up(|| {
            table.lock();
            others.push(spawn_until_it_waits(1, move || table.section()));
            others.push(spawn_until_it_waits(2, move || {
                table.lock();
                table.enter();
                // There was one handoff so far. There is a waiter for another.
                execution::await_arrival(0);
                table.unlock();
            }));
        });
        table.enter();
        table.unlock();
        table.section_and_arrive();
        join_all(others);
        if table.entered() == [0, 2, 1, 0] {
            execution::witness();
        }
        table.finish();
    });
    Property {
        needs_witness: true,
        ..property
    }
}

/// Returns the promise that a lock that prefers waiters of its holder's NUMA node does
/// so again after a handoff that its bound has decided, though nobody was passed over:
/// the main thread hands to thread 2, of its own node, and that to thread 1. Behind
/// thread 1 the main thread and thread 3 wait, and thread 3 is of its node. In one
/// order.
pub(crate) fn prefers_again(lock: &Lock) -> Property {
    Property::new("prefers again", 4, lock, |lock| {
        let table = Table::new(lock, 4);
        execution::set_up(|| {
            table.lock();
            let second = spawn_until_it_waits(2, move || {
                table.lock();
                execution::await_arrival(3);
                table.enter();
                table.unlock();
            });
            let first = spawn_until_it_waits(1, move || table.section());
            let last = spawn(3, move || {
                execution::await_arrival(0);
                execution::interrupt_wait(|| execution::arrive(3));
                table.section();
            });
            table.enter();
            table.unlock();
            execution::interrupt_wait(|| execution::arrive(0));
            table.section();
            join_all([first, second, last]);
        });
        let entered = table.entered();
        assert_eq!(
            entered,
            [0, 2, 1, 3, 0],
            "its own NUMA node is not preferred"
        );
        table.finish();
    })
}

/// Makes that promise where the first waiter is no part of the queue (a pending bit), and who
/// is the head chooses the next: thread 2 hands to the main thread, of its node, and that to
/// thread 1, behind which thread 2 and thread 3 wait.
pub(crate) fn prefers_again_in_queue(lock: &Lock) -> Property {
    Property::new("prefers again, in the queue", 4, lock, |lock| {
        let table = Table::new(lock, 4);
        let stage = Rc::new(Cell::new(0));
        let reaches = |number: usize| {
            let stage = stage.clone();
            move || stage.set(number)
        };
        let awaits = |number: usize| {
            let stage = stage.clone();
            move || {
                while stage.get() < number {
                    let_others_wait(1);
                }
            }
        };
        // Acquires, waits, and lets go.
        let holds = move |until: Box<dyn Fn()>| {
            table.lock();
            until();
            table.enter();
            table.unlock();
        };
        execution::set_up(|| {
            table.lock();
            let (main_waits, others_wait, waits) = (awaits(1), awaits(4), reaches(5));
            let third = spawn_until_it_waits(3, move || {
                holds(Box::new(main_waits));
                others_wait();
                execution::interrupt_wait(waits);
                table.section();
            });
            let (has_it, first_waits, waits) = (reaches(2), awaits(3), reaches(4));
            let second = spawn_until_it_waits(2, move || {
                holds(Box::new(move || {
                    has_it();
                    first_waits();
                }));
                execution::interrupt_wait(waits);
                table.section();
            });
            let (second_has_it, waits) = (awaits(2), reaches(3));
            let first = spawn(1, move || {
                second_has_it();
                execution::interrupt_wait(waits);
                table.section();
            });
            table.enter();
            table.unlock();
            execution::interrupt_wait(reaches(1));
            holds(Box::new(awaits(5)));
            join_all([first, second, third]);
        });
        let entered = table.entered();
        let expected = [0, 3, 2, 0, 1, 3, 2];
        assert_eq!(entered, expected, "its own NUMA node is not preferred");
        table.finish();
    })
}

/// Returns the promise that a reader that comes when a writer waits, and has said so,
/// does not enter before it.
pub(crate) fn readers_wait(lock: &Lock) -> Property {
    Property::new("readers wait for writers", 3, lock, |lock| {
        let table = Table::new(lock, 3);
        table.read();
        let writer = spawn(1, move || {
            table.section_and_arrive();
        });
        let reader = spawn(2, move || {
            execution::await_arrival(1);
            table.read_section();
        });
        table.read_unlock();
        join(writer);
        join(reader);
        assert_eq!(
            table.read_after(),
            [1],
            "a reader passes a writer that waits"
        );
        table.finish();
    })
}

/// Returns the promise that an attempt to read, likewise, fails.
pub(crate) fn readers_try_behind(lock: &Lock) -> Property {
    Property::new("no reader passes by a try", 3, lock, |lock| {
        let table = Table::new(lock, 3);
        table.read();
        let writer = spawn(1, move || table.section_and_arrive());
        execution::await_arrival(1);
        join(spawn(2, move || {
            assert!(!table.try_read(), "an attempt passes a writer that waits");
        }));
        table.read_unlock();
        join(writer);
        table.finish();
    })
}

/// Returns the promise that a reader that waits enters before the second writer,
/// whenever that comes.
pub(crate) fn one_writer_between(lock: &Lock) -> Property {
    Property::new("waits for one writer", 3, lock, |lock| {
        let table = Table::new(lock, 3);
        table.lock();
        let reader = spawn(1, move || {
            table.read_and_arrive();
            table.enter_reading();
            table.read_unlock();
        });
        let writer = spawn(2, move || table.section());
        execution::await_arrival(1);
        table.enter();
        table.unlock();
        join(reader);
        join(writer);
        assert_eq!(table.read_after(), [1], "a reader waits for two writers");
        table.finish();
    })
}
