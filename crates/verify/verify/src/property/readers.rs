//! Checks what a lock promises that readers share.

use super::definition::{Lock, Property};
use super::table::{Table, join, join_all, let_others_wait, run, spawn};
use crate::execution::{self, NoNode};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;

/// Returns the promises of a reader-writer lock.
pub(crate) fn read_write(lock: &Lock) -> Vec<Property> {
    vec![
        Property::new("a reader and a writer", 2, lock, |lock| {
            readers::<1, 1, 2>(lock);
        }),
        Property::new("two readers at once", 2, lock, readers_share),
        Property::new("readers try", 2, lock, |lock| {
            run(Table::new(lock, 2), 2, |table, _| {
                for _ in 0..2 {
                    assert!(table.try_read(), "try_read fails, and no writer comes");
                    table.enter_reading();
                    table.read_unlock();
                }
            });
        }),
        Property::new("two readers and a writer", 3, lock, |lock| {
            readers::<2, 1, 1>(lock);
        }),
        Property::new("a reader and two writers", 3, lock, |lock| {
            readers::<1, 2, 1>(lock);
        }),
        Property::new("used before, two writers", 3, lock, |lock| {
            let table = Table::new(lock, 3);
            execution::set_up(|| use_in_every_way(table));
            readers_of::<1, 2, 1>(table);
        }),
        Property::new("the last CPU reads", 4, lock, |lock| {
            let table = Table::new(lock, 4);
            let reader = spawn(3, move || {
                table.read_section();
                table.read_section();
            });
            table.section();
            table.read_section();
            table.section();
            join(reader);
            table.finish();
        }),
        Property::new("the last CPU, alone", 4, lock, |lock| {
            let table = Table::new(lock, 4);
            execution::set_up(|| {
                join(spawn(3, move || {
                    table.read();
                    table.says_it_is_locked(true);
                    table.read_unlock();
                    table.says_it_is_locked(false);
                }));
                table.finish();
            });
        }),
        Property::new("downgrade", 2, lock, |lock| {
            run(Table::new(lock, 2), 2, |table, cpu| {
                table.section_and_downgrade();
                if cpu == 0 {
                    table.read_section();
                } else {
                    table.section();
                }
            });
        }),
        Property::new("downgrade, readers enter", 2, lock, downgraded),
        Property::new("a writer tries in vain", 3, lock, |lock| {
            refused_try(lock, true);
        }),
        Property::new("a reader tries in vain", 3, lock, |lock| {
            refused_try(lock, false);
        }),
        Property::new("nested readers", 2, lock, |lock| nested_readers(lock, 0)),
        Property::new("nested readers, crossed", 2, lock, |lock| {
            nested_readers(lock, 1);
        }),
    ]
}

/// Does what [`readers`] does, by readers that do not try.
fn patient_readers<const READERS: usize, const WRITERS: usize, const TIMES: usize>(lock: &Lock) {
    run(
        Table::new(lock, READERS + WRITERS),
        READERS + WRITERS,
        |table, cpu| {
            for _ in 0..TIMES {
                if cpu < WRITERS {
                    table.section();
                } else {
                    table.read_section();
                }
            }
        },
    );
}

/// Readers and writers exclude each other, and readers see what writers
/// wrote.
fn readers<const READERS: usize, const WRITERS: usize, const TIMES: usize>(lock: &Lock) {
    readers_of::<READERS, WRITERS, TIMES>(Table::new(lock, READERS + WRITERS));
}

fn readers_of<const READERS: usize, const WRITERS: usize, const TIMES: usize>(
    table: &'static Table,
) {
    run(table, READERS + WRITERS, |table, cpu| {
        for _ in 0..TIMES {
            if cpu < WRITERS {
                table.section();
                continue;
            }
            if cpu != 1 || !table.try_read() {
                table.read();
            }
            table.enter_reading();
            table.read_unlock();
        }
    });
}

/// Returns the promise where a writer tries beside a reader; and where another waits
/// behind it, one that fails has still had its turn, and passes on what it has seen.
pub(crate) fn writer_tries(lock: &Lock) -> Vec<Property> {
    vec![
        Property::new("a reader, a writer tries", 2, lock, |lock| {
            run(Table::new(lock, 2), 2, |table, cpu| match cpu {
                0 => try_to_write(table),
                _ => table.read_section(),
            });
        }),
        Property::new("a writer tries before one", 3, lock, |lock| {
            run(Table::new(lock, 3), 3, |table, cpu| match cpu {
                0 => {
                    table.section();
                    try_to_write(table);
                }
                1 => table.section(),
                _ => {
                    table.read_section();
                    table.read_section();
                }
            });
        }),
    ]
}

/// Makes each operation with each of its answers, by one thread; at last a writer's attempt
/// in vain, as nothing that it leaves may be seen by who comes next.
fn use_in_every_way(table: &'static Table) {
    assert!(table.try_lock_at_once(), "try_lock fails on a free lock");
    assert!(!table.try_read(), "a reader enters beside a writer");
    table.enter();
    table.unlock();
    table.section_and_downgrade();
    table.read();
    assert!(table.try_read(), "try_read fails among readers");
    assert!(!table.try_lock_at_once(), "a writer enters beside readers");
    table.read_unlock();
    table.read_unlock();
}

/// Checks that who tries in vain leaves nothing behind: a writer beside a reader, or a reader
/// beside a writer, who do not let go until then. Another waits meanwhile, and
/// the one that has tried comes again.
fn refused_try(lock: &Lock, writer: bool) {
    let table = Table::new(lock, 3);
    match writer {
        true => table.read(),
        false => table.lock(),
    }
    let tries = spawn(1, move || {
        let got = match writer {
            true => table.try_lock_at_once(),
            false => table.try_read(),
        };
        assert!(!got, "an attempt succeeds on a lock that is held");
        execution::arrive(1);
        match writer {
            true => table.section(),
            false => table.read_section(),
        }
    });
    let waits = spawn(2, move || table.section());
    execution::await_arrival(1);
    match writer {
        true => table.read_unlock(),
        false => {
            table.enter();
            table.unlock();
        }
    }
    join(tries);
    join(waits);
    table.finish();
}

/// Checks that, once the writer is a reader, others read beside it, no writer enters, and
/// it reads what it wrote.
fn downgraded(lock: &Lock) {
    let table = Table::new(lock, 2);
    table.lock();
    table.enter();
    table.downgrade();
    join(spawn(1, move || {
        assert!(!table.try_lock_at_once(), "a writer enters beside a reader");
        assert!(table.try_read(), "no reader enters beside a reader");
        table.read();
        table.enter_reading();
        table.read_unlock();
        table.read_unlock();
    }));
    table.enter_reading();
    table.read_unlock();
    table.finish();
}

/// Makes a reader of two locks at once, the second inside the first; it releases
/// them in this order, or crossed. Each has its writer.
fn nested_readers(lock: &Lock, first: usize) {
    read_nested([lock; 2].map(|lock| Table::new(lock, 2)), first);
}

fn read_nested(tables: [&'static Table; 2], first: usize) {
    let writer = spawn(1, move || {
        tables[1].section();
        tables[0].section();
    });
    for table in tables {
        table.read();
        table.enter_reading();
    }
    tables[1 - first].read_unlock();
    tables[first].enter_reading();
    tables[first].read_unlock();
    join(writer);
    tables.into_iter().for_each(Table::finish);
}

fn try_to_write(table: &'static Table) {
    if table.try_lock_at_once() {
        table.enter();
        table.unlock();
    }
}

/// Counts of readers pass their last value: while some have come and gone, and
/// while the one that passes it is inside.
pub(crate) fn readers_wrap(lock: &Lock) -> [Property; 3] {
    let all = Property::new("readers wrap around", 2, lock, |lock| {
        run(Table::with(lock, 2, true), 2, |table, cpu| {
            for _ in 0..=cpu {
                table.read_section();
            }
            if cpu == 0 {
                table.section();
            }
        });
    });
    let first = Property::new("a writer at the wrap", 2, lock, |lock| {
        run(Table::with(lock, 2, true), 2, |table, cpu| match cpu {
            0 => table.section(),
            _ => table.read_section(),
        });
    });
    let others = Property::new("an attempt at the wrap", 2, lock, |lock| {
        run(Table::with(lock, 2, true), 2, |table, cpu| match cpu {
            0 => table.section_and_downgrade(),
            _ => {
                if table.try_read() {
                    table.enter_reading();
                    table.read_unlock();
                }
            }
        });
    });
    [all, first, others]
}

/// Returns the promise that the last reader that there is room for is admitted, and a
/// second one is refused, twice; and it leaves what it found: when one has gone, one is
/// admitted again.
pub(crate) fn readers_at_the_limit(lock: &Lock) -> Property {
    Property::new("readers at the limit", 2, lock, |lock| {
        let table = Table::with(lock, 2, true);
        table.read();
        for _ in 0..2 {
            assert!(!table.try_read(), "a reader too many is admitted");
            refused(table);
            table.read_unlock();
            table.read();
            join(spawn(1, move || {
                assert!(!table.try_read(), "a reader too many is admitted");
                refused(table);
            }));
        }
        // So many readers never all go.
        table.abandon();
    })
}

/// Checks that a reader beyond the limit panics with the documented message, and does
/// not wait.
fn refused(table: &Table) {
    let refused = catch_unwind(AssertUnwindSafe(|| table.read()));
    let why = refused.expect_err("a reader too many is admitted");
    let text = why.downcast_ref::<&str>().copied();
    let text = text.or_else(|| why.downcast_ref::<String>().map(String::as_str));
    if !text.is_some_and(|text| text.contains("guards have been leaked")) {
        resume_unwind(why);
    }
}

/// Returns the promise that each count has room for a last reader: that of a CPU, and
/// the one that CPUs without an entry share. Who is refused leaves what it found.
pub(crate) fn readers_of_each_count(lock: &Lock) -> Property {
    Property::new("each count at the limit", 3, lock, |lock| {
        let table = Table::with(lock, 3, true);
        let to_the_limit = move || {
            table.read();
            for _ in 0..2 {
                assert!(!table.try_read(), "a reader too many is admitted");
                refused(table);
                table.read_unlock();
                table.read();
            }
        };
        to_the_limit();
        join(spawn(2, to_the_limit));
        // So many readers never all go.
        table.abandon();
    })
}

/// Readers that share a count come, go and are refused at the same time.
pub(crate) fn readers_of_one_count(lock: &Lock) -> Vec<Property> {
    vec![
        Property::new("one count, two readers", 3, lock, |lock| {
            patient_readers::<2, 1, 1>(lock);
        }),
        Property {
            name: "one count, one refused",
            ..refused_beside_another(lock)
        },
    ]
}

/// Returns the promise where one of two readers has no number of a CPU, and so no entry
/// of its own.
pub(crate) fn reader_without_number(lock: &Lock) -> Property {
    let property = Property::new("readers, one no number", 3, lock, |lock| {
        run(Table::new(lock, 3), 3, |table, cpu| match cpu {
            2 => table.section(),
            _ => table.read_section(),
        });
    });
    property.with(|setting| setting.without_node = Some((1, NoNode::Number)))
}

/// Returns the promise where a reader goes while another is refused: whoever is refused
/// takes back what it has added and nothing else, so that there is room for one again.
pub(crate) fn refused_beside_another(lock: &Lock) -> Property {
    Property::new("refused beside a reader", 2, lock, |lock| {
        let table = Table::with(lock, 2, true);
        table.read();
        let admitted = Rc::new(Cell::new(false));
        let answer = admitted.clone();
        let reader = spawn(1, move || {
            let read = catch_unwind(AssertUnwindSafe(|| table.read()));
            answer.set(read.is_ok());
        });
        table.read_unlock();
        join(reader);
        let room = table.try_read();
        assert_ne!(room, admitted.get(), "readers that have gone are counted");
        // So many readers never all go.
        table.abandon();
    })
}

/// Checks that a reader who does not let go does not keep another out.
fn readers_share(lock: &Lock) {
    let table = Table::new(lock, 2);
    table.read();
    table.says_it_is_locked(true);
    join(spawn(1, move || {
        table.read();
        assert!(table.try_read(), "try_read fails among readers");
        assert!(!table.try_lock(), "a writer enters among readers");
        table.read_unlock();
        table.read_unlock();
    }));
    table.read_unlock();
    table.says_it_is_locked(false);
    table.finish();
}

/// Returns what a reader-writer lock promises that a reader has biased: the same, and that
/// readers may be of several such locks.
pub(crate) fn biased(lock: &Lock) -> Vec<Property> {
    vec![
        Property::new("biased, a writer", 2, lock, |lock| {
            readers_of::<1, 1, 2>(biased_table(lock, 2));
        }),
        // The two have both ends of the table of readers.
        Property::new("biased, a writer tries", 2, lock, |lock| {
            run(biased_table(lock, 2), 2, |table, cpu| {
                if cpu == 0 {
                    try_to_write(table);
                    table.section();
                } else {
                    table.read_section();
                }
            });
        })
        .with(|setting| setting.last_cpus = true),
        Property::new("biased, two readers", 3, lock, |lock| {
            readers_of::<2, 1, 1>(biased_table(lock, 3));
        }),
        // What came between two biases must be seen: the clock stands still,
        // or no reader would bias the lock again so soon.
        Property::new("biased again", 2, lock, |lock| {
            run(biased_table(lock, 2), 2, |table, cpu| {
                if cpu == 0 {
                    table.section();
                }
                table.read_section();
            });
        })
        .with(|setting| setting.clock = false),
        Property::new("a reader passes a writer", 2, lock, |lock| {
            reader_passes(lock, Table::read);
        }),
        Property::new("one that tried passes", 2, lock, |lock| {
            reader_passes(lock, |table| assert!(table.try_read(), "try_read fails"));
        }),
        Property::new("biased, a reader asks", 2, lock, |lock| {
            asks_while_it_reads(biased_table(lock, 2), try_to_write);
        }),
        Property::new("nested biased readers", 2, lock, |lock| {
            let tables = [biased_table(lock, 2), biased_table(lock, 2)];
            read_nested(tables, 0);
        }),
        Property::new("biased, downgrade", 2, lock, |lock| {
            run(biased_table(lock, 2), 2, |table, cpu| {
                if cpu == 0 {
                    table.section_and_downgrade();
                } else {
                    table.read_section();
                    table.section();
                }
            });
        }),
        Property::new("biased, another is read", 2, lock, another_is_read),
        Property::new("two biased locks", 2, lock, |lock| {
            let tables = [biased_table(lock, 2), biased_table(lock, 2)];
            let reader = spawn(1, move || {
                for table in tables {
                    table.read_section();
                }
            });
            tables[1].section();
            tables[0].section();
            join(reader);
            for table in tables {
                table.finish();
            }
        }),
    ]
}

/// Checks that a writer of another lock enters at once beside a reader of one lock,
/// whose entry is in the table of all.
fn another_is_read(lock: &Lock) {
    let tables = [biased_table(lock, 2), biased_table(lock, 2)];
    let [read, written] = tables;
    let reader = spawn(1, move || {
        read.read();
        execution::arrive(1);
        execution::await_arrival(0);
        read.enter_reading();
        read.read_unlock();
    });
    execution::await_arrival(1);
    assert!(!read.try_lock(), "a writer enters beside a reader");
    assert!(written.try_lock(), "try_lock fails on a free lock");
    written.enter();
    written.unlock();
    execution::arrive(0);
    join(reader);
    tables.into_iter().for_each(Table::finish);
}

/// Checks that a reader that has biased the lock enters again, although a writer waits.
fn reader_passes(lock: &Lock, read: fn(&Table)) {
    let table = Table::new(lock, 2);
    read(table);
    table.says_it_is_locked(true);
    let writer = spawn(1, move || {
        table.section_and_arrive();
    });
    execution::await_arrival(1);
    table.read_section();
    table.read_unlock();
    join(writer);
    table.finish();
}

/// Returns the promise where two readers have seen that no writer waits, and enter only when
/// one has announced itself: the last of them to leave lets it in, and what both have read
/// comes before what it writes.
pub(crate) fn readers_looked_before(lock: &Lock) -> Property {
    Property::new("readers looked before", 3, lock, |lock| {
        let table = Table::new(lock, 3);
        let readers = [1, 2].map(|cpu| {
            spawn(cpu, move || {
                before_second_access(move || {
                    execution::arrive(cpu);
                    execution::await_arrival(0);
                });
                table.read();
                // So that the other is inside too, or the writer goes on.
                let_others_wait(1);
                table.enter_reading();
                table.read_unlock();
            })
        });
        [1, 2].into_iter().for_each(execution::await_arrival);
        before_second_access(|| {
            execution::arrive(0);
            let_others_wait(1);
        });
        table.section();
        join_all(readers);
        table.finish();
    })
}

/// Calls `then` before the second access of this thread from here on.
fn before_second_access(then: impl Fn() + 'static) {
    let accesses = Cell::new(0);
    execution::before_each_access(move || {
        accesses.set(accesses.get() + 1);
        if accesses.get() == 2 {
            execution::before_no_access();
            then();
        }
    });
}

/// Returns the promise that a lock says to its reader that it is held, while another
/// reader comes and goes.
pub(crate) fn reader_asks(lock: &Lock) -> Property {
    Property::new("a reader asks beside one", 2, lock, |lock| {
        asks_while_it_reads(Table::new(lock, 2), Table::read_section);
    })
}

/// Checks that a lock says to its reader that it is held, whatever another does meanwhile.
fn asks_while_it_reads(table: &'static Table, another: fn(&'static Table)) {
    table.read();
    let other = spawn(1, move || another(table));
    table.says_it_is_locked(true);
    table.read_unlock();
    join(other);
    table.says_it_is_locked(false);
    table.finish();
}

/// Returns a table whose reader has been inside.
fn biased_table(lock: &Lock, threads: usize) -> &'static Table {
    let table = Table::new(lock, threads);
    execution::set_up(|| {
        for _ in 0..2 {
            table.read();
            table.says_it_is_locked(true);
            table.read_unlock();
            table.says_it_is_locked(false);
        }
    });
    table
}
