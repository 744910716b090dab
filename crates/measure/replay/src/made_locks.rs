//! Locks that a program makes of a mutex and a condition: Python's GIL, the token of a pool.
//!
//! Whoever takes one locks the mutex, waits for the condition while the lock is held, and
//! unlocks the mutex; whoever gives it back signals the condition under the mutex. Between
//! the two nothing of it is locked, so a recording has no holder, and its waits seem to be
//! those of threads without work. Here each such pair of sections becomes an acquisition
//! and a release of one lock, at the address of the condition; the mutex vanishes from it.
//!
//! A recording in windows does not say who gave it back between two, so nobody has it when
//! a window begins, until a thread takes it. Otherwise a thread would hold it while it asks
//! for what is always locked before, and the simulated program would deadlock.
//!
//! A pair is taken for a lock only if nearly always threads take and give back in turn, and
//! never two hold it: queues, barriers and counted semaphores are none. It must never
//! change a recording in which there is none.

use crate::cpus::on_all_cpus;
use locklab_trace::{Event, Trace};
use std::sync::Arc;

mod instead;
mod pairs;
mod sections;

use instead::Made;
use pairs::{FEWEST, PER_OTHER, Pair, may_be_locks};
use sections::{Deed, Deeds, Place, Sections};

/// Returns the recording with the locks that are made of mutexes and conditions as locks,
/// if there are any. Records are read again and again, and never all in memory: there are
/// millions of them.
pub(crate) fn recognised(mut trace: Trace) -> Trace {
    for pair in may_be_locks(&trace) {
        if is_lock(&trace, pair) {
            trace = trace.seen(Arc::new(Made(pair)));
        }
    }
    trace
}

/// Describes what a thread does with a pair.
#[derive(Default)]
struct OfThread {
    /// Says from when until when it has the lock.
    holds: Vec<(u64, u64)>,
    others: usize,
    waits: usize,
    took: bool,
}

/// Returns whether a pair is a lock.
fn is_lock(trace: &Trace, pair: Pair) -> bool {
    let of_threads = on_all_cpus(&trace.threads, |thread| {
        let mut of = OfThread::default();
        let (mut sections, mut deeds) = (Sections::of(pair), Deeds::default());
        let events = trace.events(thread).filter(|_| thread.image == pair.image);
        for (tick, event) in events {
            // Here nothing is forgotten: where threads often seem to have it in the next window
            // while others do, the pair stays what was recorded.
            if let Event::Window { .. } = event {
                continue;
            }
            let Place::Ends(section) = sections.next(tick, &event) else {
                continue;
            };
            match deeds.next(&section) {
                Deed::Takes => {
                    of.waits += usize::from(section.waited);
                    of.took = true;
                }
                Deed::GivesBack(from) => of.holds.push((from, section.asked)),
                Deed::Looks => {}
                Deed::Other => of.others += 1,
            }
        }
        of
    });
    let sum = |of: fn(&OfThread) -> usize| of_threads.iter().map(of).sum::<usize>();
    let (waits, threads) = (sum(|of| of.waits), sum(|of| usize::from(of.took)));
    let mut others = sum(|of| of.others);
    let mut holds: Vec<_> = of_threads.into_iter().flat_map(|of| of.holds).collect();
    holds.sort_unstable();
    let mut last = 0;
    for (from, to) in &holds {
        others += usize::from(*from < last);
        last = last.max(*to);
    }
    threads > 1 && waits > 0 && holds.len() >= FEWEST && others * PER_OTHER <= holds.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::survey::Survey;
    use locklab_trace::{Access, Attempt, Header, LockKind, file};
    use std::collections::BTreeSet;

    type Records<'a> = Vec<(u64, Event<'a>)>;

    const MUTEX: u64 = 0x100;
    const CONDITION: u64 = 0x200;

    fn section(at: u64, within: Option<Event<'static>>, until: u64) -> Records<'static> {
        let access = Access {
            shared: false,
            attempt: Attempt::Waits,
        };
        let (lock, stack) = (MUTEX, 1);
        let request = Event::Request {
            lock,
            stack,
            access,
        };
        let mut records = vec![(at, request), (at + 10, Event::Acquired)];
        records.extend(within.map(|event| (at + 20, event)));
        if matches!(within, Some(Event::Wait { .. })) {
            records.push((until - 10, Event::Woken { timed_out: false }));
        }
        records.push((until, Event::Release { lock }));
        records.push((until + 10, Event::Released));
        records
    }

    fn takes(at: u64, until: u64) -> Records<'static> {
        let (condition, lock, stack, timed) = (CONDITION, MUTEX, 1, false);
        let waits = Event::Wait {
            condition,
            lock,
            stack,
            timed,
        };
        section(at, (until > at + 50).then_some(waits), until)
    }

    fn gives_back(at: u64) -> Records<'static> {
        let signals = Event::Signal {
            condition: CONDITION,
            broadcast: false,
        };
        section(at, Some(signals), at + 30)
    }

    fn trace(threads: &[Records<'_>]) -> Trace {
        let header = Header::new(1.0, 0, 64, "a machine, 2 CPUs", "program");
        Trace::read(file(&header, threads, 1_000_000).unwrap()).unwrap()
    }

    /// Two threads in turn: one holds it for 1000, while the other waits.
    fn in_turn() -> Trace {
        let of = |offset: u64| -> Records<'static> {
            (0..40)
                .flat_map(|turn| {
                    let at = 2000 * turn + offset;
                    let asks = at.saturating_sub(if turn == 0 { 0 } else { 900 });
                    [takes(asks, at + 40), gives_back(at + 900)].concat()
                })
                .collect()
        };
        trace(&[of(0), of(1000)])
    }

    #[test]
    fn a_mutex_and_a_condition_in_turn_are_one_lock_with_its_holder() {
        let trace = in_turn();
        let without = Survey::of(&trace);
        assert_eq!(without.sum(|thread| thread.waited), 0);
        let made = recognised(trace);
        let survey = Survey::of(&made);
        assert_eq!(survey.locks.len(), 1, "the mutex has gone");
        let lock = &survey.locks[0];
        assert_eq!((lock.address, lock.kind), (CONDITION, LockKind::MADE));
        assert_eq!(lock.tally.acquired, 80);
        assert!(lock.tally.contended > 70, "{lock:?}");
        assert_eq!(lock.tally.held, 80 * 860);
        assert!(survey.sum(|thread| thread.waited) > 70 * 800);
        let again = Survey::of(&recognised(made));
        assert_eq!(again.locks, survey.locks, "once is enough");
    }

    const OTHER: u64 = 0x300;

    /// Returns which locks threads ask for while they hold which others, as recorded.
    fn orders(trace: &Trace) -> BTreeSet<(u64, u64)> {
        let mut orders = BTreeSet::new();
        for thread in &trace.threads {
            let mut held = Vec::new();
            for (_, event) in trace.events(thread) {
                match event {
                    Event::Request { lock, .. } => {
                        orders.extend(held.iter().map(|held| (*held, lock)));
                        held.push(lock);
                    }
                    Event::Release { lock } => held.retain(|held| *held != lock),
                    _ => {}
                }
            }
        }
        orders
    }

    /// Two threads take it in turn, always with another lock before, and one has it when
    /// a window ends. Then the other gives back what it took between the windows.
    #[test]
    fn who_has_it_when_a_window_ends_no_longer_has_it() {
        let mut threads = [0, 1000].map(|offset| {
            let turns = (0..40).flat_map(|turn| {
                let at = 2000 * turn + offset;
                [takes(at, at + 100), gives_back(at + 900)].concat()
            });
            turns.collect::<Records<'_>>()
        });
        let access = Access {
            shared: false,
            attempt: Attempt::Waits,
        };
        let (lock, stack) = (OTHER, 1);
        let request = Event::Request {
            lock,
            stack,
            access,
        };
        threads[0].extend(takes(82_000, 82_100));
        threads[0].extend([(901_000, request), (901_010, Event::Acquired)]);
        threads[0].extend(takes(901_100, 901_500));
        threads[0].extend(gives_back(902_000));
        threads[0].extend([
            (902_100, Event::Release { lock }),
            (902_110, Event::Released),
        ]);
        threads[1].extend(gives_back(901_300));
        let turns = vec![
            (100_000, Event::Window { begins: false }),
            (900_000, Event::Window { begins: true }),
        ];
        let [one, two] = threads;
        let made = recognised(trace(&[one, two, turns]));
        assert_eq!(orders(&made), BTreeSet::from([(OTHER, CONDITION)]));
        let free = (100_000, Event::Release { lock: CONDITION });
        let mut events = made.events(&made.threads[0]);
        assert!(events.any(|record| record == free), "at the window's end");
        let survey = Survey::of(&made);
        let lock = survey.locks.iter().find(|lock| lock.address == CONDITION);
        assert_eq!(lock.unwrap().tally.acquired, 82);
    }

    /// One thread puts and another takes out, once in each of many windows.
    #[test]
    fn what_is_done_once_in_a_window_makes_no_lock() {
        let [mut puts, mut gets, mut turns] = [Vec::new(), Vec::new(), Vec::new()];
        for window in 0..40 {
            let at = 20_000 * window;
            puts.extend(gives_back(at + 1000));
            gets.extend(takes(at + 2000, at + 2500));
            turns.push((at + 5000, Event::Window { begins: false }));
            turns.push((at + 20_000, Event::Window { begins: true }));
        }
        assert!(!makes_a_lock(trace(&[puts, gets, turns])));
    }

    fn makes_a_lock(trace: Trace) -> bool {
        let survey = Survey::of(&recognised(trace));
        survey.locks.iter().any(|lock| lock.kind == LockKind::MADE)
    }

    /// A queue: one thread puts, and another takes out.
    #[test]
    fn what_threads_do_not_give_back_is_no_lock() {
        let puts = (0..40).flat_map(|turn| gives_back(1000 * turn)).collect();
        let gets = (0..40)
            .flat_map(|turn| takes(1000 * turn, 1000 * turn + 500))
            .collect();
        assert!(!makes_a_lock(trace(&[puts, gets])));
    }

    /// A semaphore of two: both threads hold it at once.
    #[test]
    fn what_two_hold_at_once_is_no_lock() {
        let of = |offset: u64| -> Records<'static> {
            (0..40)
                .flat_map(|turn| {
                    let at = 2000 * turn + offset;
                    [takes(at, at + 100), gives_back(at + 900)].concat()
                })
                .collect()
        };
        assert!(!makes_a_lock(trace(&[of(0), of(300)])));
    }
}
