//! What a lock of the user's own promises: programs of two or three threads that use it, of
//! which every execution is explored.
//!
//! A promise is a short program around a lock ([`Table`]) that fails in no execution if it
//! is kept: two holders race, who waits for ever is a deadlock, and the rest says what is
//! wrong. It must ask nothing that the file does not claim or every lock promises.

use super::client::{
    AT_ONCE, Code, Table, descend, fails, interrupted_by, join, not_interrupted, set_up, spawn,
    together,
};
use super::explore::{NOT_CHECKED, TestLimits, explore_all};
use super::hooks::{HOOKS, NOWHERE};
use super::landing;
use super::shown;
use super::used::use_up;
use super::watch::NO_INIT;
use super::world::{Rules, World, with};
use crate::inspect::Facts;
use crate::isolate;
use crate::library::{Library, Loaded, REFUSED};
use locklab_graph::{Failure as Broken, FailureKind, Kind};
use locklab_locks::NESTING;
use locklab_verify::{Explored, Failure, Limits, Outcome, Property, Reads};
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// A promise.
struct Promise {
    name: &'static str,
    threads: usize,
    /// What it means if nobody goes on; empty: only that.
    stuck: &'static str,
    program: fn(&'static Code),
}

/// Returns the promises of a lock that was compiled for the checker; `kept` lives as
/// long as they do.
pub(crate) fn promises(
    library: PathBuf,
    facts: Facts,
    rules: Rules,
    kept: impl Send + Sync + 'static,
) -> Vec<Property> {
    let most = facts.max_cpus.unwrap_or(usize::MAX);
    let all = of(&facts)
        .into_iter()
        .filter(|promise| promise.threads <= most);
    let world = Arc::new((library, facts.clone(), kept));
    let property = |promise: Promise| {
        let world = world.clone();
        let Promise { name, threads, .. } = promise;
        Property::explored_by(name, threads, move |limits| {
            explore(&promise, (&world.0, &world.1), rules, limits)
        })
    };
    all.map(property).collect()
}

/// Returns the file as a program of so many threads, each of which calls one function
/// ([`locklab_verify::litmus`]).
pub(crate) fn litmus(
    library: PathBuf,
    facts: Facts,
    rules: Rules,
    threads: usize,
    kept: impl Send + Sync + 'static,
) -> Property {
    fn program(code: &'static Code, threads: usize) {
        let table = Table::new(code, threads);
        let acts = [Table::lock, Table::unlock, Table::read, Table::read_unlock];
        let others: Vec<usize> = acts[1..threads]
            .iter()
            .map(|&act| spawn(move || act(table)))
            .collect();
        table.lock();
        join(others);
        locklab_verify::reaches(table.outcome());
    }
    let program: fn(&'static Code) = match threads {
        1 => |code| program(code, 1),
        2 => |code| program(code, 2),
        3 => |code| program(code, 3),
        _ => |code| program(code, 4),
    };
    Property::explored_by("litmus", threads, move |limits| {
        let _ = &kept;
        let promise = Promise {
            name: "litmus",
            threads,
            stuck: "",
            program,
        };
        explore(&promise, (&library, &facts), rules, limits)
    })
}

/// Returns the promises of a lock whose file says this, the cheapest first.
fn of(facts: &Facts) -> Vec<Promise> {
    let mut all = Vec::new();
    let mut add = |name, threads, stuck, program| {
        all.push(Promise {
            name,
            threads,
            stuck,
            program,
        });
    };
    add("alone", 1, "", alone);
    add("exclusion", 2, "", |code| {
        together(Table::new(code, 2), 2, |table, _| table.section());
    });
    add("reuse", 2, "", |code| {
        together(Table::new(code, 2), 2, |table, _| {
            table.section();
            table.section();
        });
    });
    add("exclusion of three", 3, "", |code| {
        together(Table::new(code, 3), 3, |table, _| table.section());
    });
    add("used before", 2, "", |code| {
        let table = Table::new(code, 2);
        use_up(table);
        together(table, 2, |table, _| {
            table.section();
            table.section();
        });
    });
    add("queue formed before", 3, "", queue_formed_before);
    add("one comes back", 3, "", |code| {
        together(Table::new(code, 3), 3, |table, cpu| {
            table.section();
            if cpu == 0 {
                table.section();
            }
        });
    });
    add("one comes to two", 4, "", one_comes_to_two);
    if facts.fifo {
        let stuck = "a thread waits for one that came after it";
        add("fifo", 3, stuck, fifo);
        add("fifo, again and again", 3, stuck, fifo_again);
    }
    if facts.try_lock {
        let stuck = "try_lock waits";
        add("try_lock does not wait", 2, stuck, try_does_not_wait);
        add("try_lock races", 2, "", |code| {
            together(Table::new(code, 2), 2, |table, cpu| {
                if cpu == 1 {
                    table.try_section();
                }
                table.section();
            });
        });
        add("two try", 2, "try_lock waits", two_try);
        add("try_lock, again", 2, "", |code| {
            together(Table::new(code, 2), 2, |table, cpu| {
                table.section();
                if cpu == 0 {
                    table.try_section();
                    table.try_section();
                }
            });
        });
        add("try_lock races of three", 3, "", |code| {
            together(Table::new(code, 3), 3, |table, cpu| match cpu {
                0 => table.section(),
                _ => {
                    table.try_section();
                }
            });
        });
    }
    if facts.readers_share {
        of_readers(facts, &mut add);
    }
    if facts.interrupts && facts.nesting != Some(1) {
        add("nesting", 2, "", nesting);
        add("nesting of three CPUs", 4, "", nesting_of_three);
        add("interrupted anywhere", 2, "", interrupted);
        add("interrupted in the queue", 3, "", interrupted_in_queue);
    }
    if facts.max_cpus.is_some() {
        add("the last CPUs", 2, "", last_cpus);
    }
    if facts.recursive {
        let stuck = "who holds the lock does not acquire it again";
        add("recursion", 2, stuck, |code| {
            together(Table::new(code, 2), 2, |table, _| {
                table.lock();
                table.lock();
                table.enter();
                table.unlock();
                table.enter();
                table.unlock();
            });
        });
    }
    if facts.ends_by_unlock {
        add("ends after an unlock", 2, "", ends);
        if facts.readers_share {
            add("ends after a reader", 2, "", ends_after_a_reader);
        }
    }
    all
}

fn of_readers(
    facts: &Facts,
    add: &mut impl FnMut(&'static str, usize, &'static str, fn(&'static Code)),
) {
    add("a reader and a writer", 2, "", |code| {
        together(Table::new(code, 2), 2, |table, cpu| {
            for _ in 0..2 {
                match cpu {
                    0 => table.section(),
                    _ => table.read_section(),
                }
            }
        });
    });
    let stuck = "two readers do not share the lock: one waits until the other has left";
    add("two readers at once", 2, stuck, |code| {
        let table = Table::new(code, 2);
        table.read();
        join([spawn(move || table.read_section())]);
        table.read_unlock();
        table.finish();
    });
    add("readers that come together", 2, stuck, |code| {
        together(Table::new(code, 2), 2, |table, _| {
            table.read();
            table.meet(2);
            table.read_unlock();
        });
    });
    let stuck = "two readers that waited for a writer do not share the lock: one waits until \
                 the other has left";
    add("readers that waited", 3, stuck, readers_that_waited);
    add("two readers and a writer", 3, "", |code| {
        together(Table::new(code, 3), 3, |table, cpu| match cpu {
            0 => table.section(),
            _ => table.read_section(),
        });
    });
    add("a reader and two writers", 3, "", |code| {
        together(Table::new(code, 3), 3, |table, cpu| match cpu {
            0 => table.read_section(),
            _ => table.section(),
        });
    });
    if facts.try_read {
        let stuck = "try_read waits";
        add("a reader tries", 2, "", |code| {
            together(Table::new(code, 2), 2, |table, cpu| {
                if cpu == 1 {
                    table.try_read_section();
                    table.try_read_section();
                } else {
                    table.section();
                }
            });
        });
        add("a reader tries in vain", 2, stuck, |code| {
            let table = Table::new(code, 2);
            table.lock();
            join([spawn(move || {
                if table.try_read() {
                    fails("try_read succeeds beside a writer");
                }
            })]);
            table.enter();
            table.unlock();
            table.finish();
        });
        add("a reader tries beside one", 2, stuck, |code| {
            let table = Table::new(code, 2);
            table.read();
            join([spawn(move || reads_by_a_try(table))]);
            table.read_unlock();
            table.finish();
        });
        add("two readers try", 2, stuck, |code| {
            let table = Table::new(code, 2);
            together(table, 2, |table, _| reads_by_a_try(table));
        });
    }
    if facts.downgrade {
        let stuck = "a reader does not enter beside one that was a writer";
        add("downgrade", 2, "", |code| {
            together(Table::new(code, 2), 2, |table, cpu| {
                if cpu == 0 {
                    table.lock();
                    table.enter();
                    table.downgrade();
                    table.look();
                    table.read_unlock();
                }
                table.section();
            });
        });
        add("downgrade, readers enter", 2, stuck, |code| {
            let table = Table::new(code, 2);
            table.lock();
            table.enter();
            table.downgrade();
            join([spawn(move || table.read_section())]);
            table.read_unlock();
            table.finish();
        });
    }
    if let Some(0..=4) = facts.readers_pass {
        add("readers pass a writer", 2, "", readers_pass);
        add("readers pass in turn", 3, "", readers_pass_in_turn);
    }
}

fn reads_by_a_try(table: Table) {
    if !table.try_read_section() {
        fails("try_read fails, though nobody holds or wants the lock but readers");
    }
}

/// Checks one thread alone, in every way to acquire.
fn alone(code: &'static Code) {
    let table = Table::new(code, 1);
    with(|world| world.live = true);
    for _ in 0..2 {
        table.says_it_is_locked(false);
        table.lock();
        table.says_it_is_locked(true);
        table.enter();
        if code.facts.try_lock && code.facts.ctx_bytes <= 1 && table.try_lock() {
            fails("try_lock succeeds on a lock that is held");
        }
        table.unlock();
        if code.facts.try_lock && !table.try_section() {
            fails("try_lock fails, though nobody holds or wants the lock");
        }
        if code.facts.readers_share {
            table.read_section();
        }
        if code.facts.try_read && !table.try_read_section() {
            fails("try_read fails, though nobody holds or wants the lock");
        }
    }
    table.finish();
}

/// Checks that who waits first enters first.
fn fifo(code: &'static Code) {
    let table = Table::new(code, 3);
    table.lock();
    let others = [1, 2].map(|_| table.spawn_until_it_waits(move || table.section()));
    table.enter();
    table.unlock();
    join(others);
    if table.entered() != [0, others[0], others[1]] {
        fails("a thread enters before one that waited when it came");
    }
    table.finish();
}

/// Checks a queue that forms again after it has dissolved.
fn queue_formed_before(code: &'static Code) {
    let table = Table::new(code, 3);
    table.lock();
    let others = [1, 2].map(|_| {
        table.spawn_until_it_waits(move || {
            table.section();
            table.section();
        })
    });
    table.enter();
    table.unlock();
    join(others);
    table.finish();
}

/// Checks one that comes when two wait and the holder leaves: who was passed over or sent
/// away is somebody's predecessor again.
fn one_comes_to_two(code: &'static Code) {
    let table = Table::new(code, 4);
    let [first, second] = set_up(|| {
        table.lock();
        [1, 2].map(|_| table.spawn_until_it_waits(move || table.section()))
    });
    let third = spawn(move || table.section());
    table.enter();
    table.unlock();
    join([first, second, third]);
    table.finish();
}

/// How often each comes: more often than a CPU has nodes of queues.
const FIFO_TURNS: usize = 2 * NESTING;

/// Checks that they enter in the order of their arrival however often they come: in one
/// order of many.
fn fifo_again(code: &'static Code) {
    set_up(|| {
        let table = Table::new(code, 3);
        table.lock();
        let others = [1, 2].map(|_| {
            table.spawn_until_it_waits(move || (0..FIFO_TURNS).for_each(|_| table.section()))
        });
        for _ in 1..FIFO_TURNS {
            table.enter();
            table.unlock();
            table.lock();
        }
        table.enter();
        table.unlock();
        join(others);
        let turn = [0, others[0], others[1]];
        if table.entered() != turn.repeat(FIFO_TURNS) {
            fails("a thread enters before one that waited when it came");
        }
    });
}

fn try_does_not_wait(code: &'static Code) {
    let table = Table::new(code, 2);
    table.lock();
    join([spawn(move || {
        if table.try_lock() {
            fails("try_lock succeeds on a lock that is held");
        }
    })]);
    table.enter();
    table.unlock();
    if !table.try_section() {
        fails("try_lock fails, though nobody holds or wants the lock");
    }
    table.finish();
}

/// Checks that readers which have waited for a writer are inside together.
fn readers_that_waited(code: &'static Code) {
    let table = Table::new(code, 3);
    table.lock();
    let readers = [1, 2].map(|_| {
        table.spawn_until_it_waits(move || {
            table.read();
            table.look();
            table.meet(2);
            table.read_unlock();
        })
    });
    table.enter();
    table.unlock();
    join(readers);
    table.finish();
}

/// Says that so many readers have passed a writer.
fn passes(table: Table) {
    let most = table.facts().readers_pass.unwrap_or(0);
    table.look();
    if table.entered().is_empty() && table.count() > most as u64 {
        fails(&format!(
            "{} readers that came when a writer waited entered before it, and {most} at most are \
             claimed",
            most + 1
        ));
    }
}

/// Checks that no more readers than claimed, of those who come when a writer waits, enter
/// before it: each comes when the one before it has left.
fn readers_pass(code: &'static Code) {
    let table = Table::new(code, 2);
    let most = code.facts.readers_pass.unwrap_or(0);
    let writer = set_up(|| {
        table.read();
        table.spawn_until_it_waits(move || table.section())
    });
    for _ in 0..=most {
        table.read_unlock();
        table.read();
        passes(table);
    }
    table.read_unlock();
    join([writer]);
    table.finish();
}

/// Checks the same where each comes when the one before it still reads.
fn readers_pass_in_turn(code: &'static Code) {
    let most = code.facts.readers_pass.unwrap_or(0);
    let table = Table::new(code, most + 3);
    let writer = set_up(|| {
        table.read();
        table.spawn_until_it_waits(move || table.section())
    });
    let mut readers = Vec::new();
    for _ in 0..=most {
        let reader = table.spawn_until_it_waits(move || {
            table.read();
            passes(table);
            table.says_that_it_is_in();
            table.await_leave();
            table.read_unlock();
        });
        match readers.last() {
            None => table.read_unlock(),
            Some(&before) => table.lets_leave(before),
        }
        readers.push(reader);
    }
    table.lets_leave(readers[most]);
    join(readers);
    join([writer]);
    table.finish();
}

/// Checks one thread that acquires two locks of the kind inside each other, the second of
/// which another wants too.
fn nesting(code: &'static Code) {
    let levels = code.facts.nesting.unwrap_or(2).min(2);
    let tables: Vec<Table> = (0..levels).map(|_| Table::new(code, 2)).collect();
    let last = tables[levels - 1];
    let other = spawn(move || last.section());
    nest(&tables);
    join([other]);
    last.finish();
}

/// Acquires these locks inside each other.
fn nest(tables: &[Table]) {
    for table in tables {
        table.lock();
        table.enter();
    }
    for table in tables.iter().rev() {
        table.unlock();
    }
}

/// Checks three that wait for as many locks at once as a CPU may, and one more, each in an
/// interrupt of the one before: in one order of many.
fn nesting_of_three(code: &'static Code) {
    let levels = code.facts.nesting.unwrap_or(usize::MAX).min(NESTING + 1);
    set_up(|| {
        let tables: Vec<Table> = (0..levels).map(|_| Table::new(code, 4)).collect();
        tables.iter().for_each(|table| table.lock());
        let last = tables[levels - 1];
        let others = [(); 3].map(|()| {
            let tables = tables.clone();
            last.spawn_until_it_waits(move || descend(&tables))
        });
        for table in tables.iter().rev() {
            table.enter();
            table.unlock();
        }
        join(others);
        for table in &tables[..levels.min(NESTING)] {
            if code.facts.fifo && table.entered()[1..] != others {
                fails("a thread enters before one that waited when it came");
            }
            table.finish();
        }
    });
}

/// Checks an acquisition in a queue that is interrupted anywhere by one of another lock,
/// which has a queue too.
fn interrupted_in_queue(code: &'static Code) {
    let tables = [(); 2].map(|()| Table::new(code, 3));
    let [table, inner] = tables;
    let waiter = set_up(|| {
        tables.iter().for_each(|table| table.lock());
        inner.spawn_until_it_waits(move || descend(&tables))
    });
    let other = spawn(move || {
        interrupted_by(move || inner.section());
        table.section();
        not_interrupted();
    });
    for table in [inner, table] {
        table.enter();
        table.unlock();
    }
    join([waiter, other]);
    tables.iter().for_each(|table| table.finish());
}

/// Checks an acquisition that is interrupted anywhere by one of another lock, which
/// another thread wants too.
fn interrupted(code: &'static Code) {
    let (table, inner) = (Table::new(code, 2), Table::new(code, 2));
    let other = spawn(move || {
        table.section();
        inner.section();
    });
    interrupted_by(move || inner.section());
    table.section();
    not_interrupted();
    join([other]);
    table.finish();
    inner.finish();
}

/// Checks the CPUs with the greatest numbers: the last entries of each table.
fn last_cpus(code: &'static Code) {
    let cpus = code.facts.max_cpus.unwrap_or(2).min(4);
    with(|world| world.first_cpu = cpus.saturating_sub(2));
    let table = Table::new(code, 2);
    together(table, 2, |table, _| {
        table.section();
        table.section();
    });
}

/// Checks that a lock may be freed by who holds it last: who has released it before touches
/// it no more.
fn ends(code: &'static Code) {
    let table = Table::new(code, 2);
    let other = spawn(move || {
        table.section();
    });
    table.lock();
    table.enter();
    let last = table.entered().len() == 2;
    table.unlock();
    if last {
        table.end();
    }
    join([other]);
}

/// Checks the same after a reader that has released it.
fn ends_after_a_reader(code: &'static Code) {
    let table = Table::new(code, 2);
    let reader = table.spawn_until_it_waits(move || {
        table.read();
        table.look();
        table.says_that_it_is_in();
        table.read_unlock();
    });
    table.section();
    table.end();
    join([reader]);
}

/// Checks that of two that try one acquires: nobody else holds the lock.
fn two_try(code: &'static Code) {
    let table = Table::new(code, 2);
    let other = spawn(move || {
        table.try_section();
    });
    let got = table.try_section();
    join([other]);
    if !got && table.entered().is_empty() {
        fails("try_lock fails, though nobody holds or wants the lock but others that try");
    }
    table.finish();
}

thread_local! {
    /// The lock that this process explores.
    static CODE: RefCell<Option<(PathBuf, &'static Code)>> = const { RefCell::new(None) };
}

/// Loads the library into this process, if it is not there.
fn load(library: &Path, facts: &Facts, rules: Rules) -> Result<&'static Code, String> {
    let known = CODE.with_borrow(|code| {
        let (path, code) = code.as_ref()?;
        (path == library).then_some(*code)
    });
    if let Some(code) = known {
        with(|world| world.rules = rules);
        return Ok(code);
    }
    let loaded = Library::load(library, "locklab_hooks", HOOKS);
    let loaded = loaded.map_err(|e| e.to_string())?;
    isolate::watch_code(loaded.base, &loaded.code);
    let of_file: Loaded = (*loaded).clone();
    World::set(of_file, library, rules).map_err(|e| e.to_string())?;
    // Until the process ends, which explores one lock.
    let code: &'static Code = Box::leak(Box::new(Code {
        library: loaded,
        facts: facts.clone(),
    }));
    CODE.set(Some((library.to_owned(), code)));
    Ok(code)
}

/// Explores a promise; runs in a process of its own.
fn explore(
    promise: &Promise,
    (library, facts): (&Path, &Facts),
    rules: Rules,
    limits: Limits,
) -> Explored {
    let explored = |outcome, executions, left_out| Explored {
        outcome,
        preemptions: None,
        executions,
        took: Duration::ZERO,
        left_out,
        schedules: 0,
        reads: Reads::Either,
        every: true,
    };
    let fails = |message| Failure {
        message,
        trace: Vec::new(),
    };
    let run = |rules, counts, executions| {
        let code = load(library, facts, rules)?;
        landing::fail_executions();
        let most = TestLimits {
            executions,
            duration: (limits.duration < Duration::MAX).then_some(limits.duration),
        };
        let program = promise.program;
        let main = move || {
            with(|world| {
                (world.first_cpu, world.counts) = (0, counts);
            });
            program(code);
        };
        explore_all(most, main).map_err(|e| e.to_string())
    };
    let (report, left_out) = match run(rules, false, limits.executions) {
        Ok(found) => found,
        Err(why) => return explored(Outcome::Fails(fails(why)), 0, Vec::new()),
    };
    let executions = report.executions + report.blocked;
    let Some(broken) = report.error else {
        let outcome = match left_out.is_empty() {
            true => Outcome::Holds,
            false => Outcome::Cut,
        };
        return explored(outcome, executions, left_out);
    };
    let executions = executions + 1;
    let why_not = match broken.kind {
        FailureKind::TooLong | FailureKind::MixedSize | FailureKind::NotDeterministic => {
            Some(&*broken.message)
        }
        _ => broken.message.strip_prefix(NOT_CHECKED),
    };
    if let Some(why) = why_not {
        if why.ends_with(REFUSED) {
            return explored(Outcome::Fails(fails(why.to_owned())), executions, left_out);
        }
        return explored(Outcome::Cut, executions, vec![why.to_owned()]);
    }
    let mut message = message(&broken, facts, promise);
    let mut trace = shown::steps(&broken);
    if broken.kind == FailureKind::DataRace {
        // Is it since two are inside at once, or since the second does not see the first?
        let relaxed = Rules {
            races: false,
            ..rules
        };
        let at_once = run(relaxed, true, MOST_COUNTED.min(limits.executions));
        let at_once = at_once.ok().and_then(|(report, _)| report.error);
        if let Some(at_once) = at_once.filter(|error| error.message == AT_ONCE) {
            message = match broken.place == NOWHERE {
                true => AT_ONCE.to_owned(),
                false => format!("{AT_ONCE}; {message}"),
            };
            trace = shown::steps(&at_once);
        } else if broken.place == NOWHERE {
            message = UNSEEN.to_owned();
        }
    }
    explored(
        Outcome::Fails(Failure { message, trace }),
        executions,
        left_out,
    )
}

/// Executions in which it is counted who is inside.
const MOST_COUNTED: u64 = 4_000;

const UNSEEN: &str = "the next holder does not see what the one before it did: their accesses \
                      are not ordered";

/// Says in one sentence how a promise is broken.
fn message(broken: &Broken, facts: &Facts, promise: &Promise) -> String {
    if broken.kind != FailureKind::Deadlock {
        return broken.message.replace("; the other access is at :0", "");
    }
    let before = match promise.stuck {
        "" => String::new(),
        stuck => format!("{stuck}; "),
    };
    // A compare-and-swap has failed without cause, or somebody was inside.
    let other = |step: &locklab_graph::Step| {
        let inside = matches!(step.kind, Kind::PlainWrite) && step.place == NOWHERE;
        inside || matches!(step.kind, Kind::Choice(_))
    };
    let alone = promise.threads == 1 && !facts.init && !broken.steps.iter().any(other);
    let after = match alone {
        true => format!("; {NO_INIT}"),
        false => String::new(),
    };
    // Those that wait in our own programs say nothing.
    let waits = broken.message.split(", ").map(|wait| {
        let ours = wait.strip_suffix(" at :0");
        ours.map_or(wait, |ours| {
            ours.rsplit_once(" of ").map_or("", |(said, _)| said)
        })
    });
    let waits: Vec<&str> = waits.filter(|wait| !wait.is_empty()).collect();
    format!("{before}{}{after}", waits.join(", "))
}
