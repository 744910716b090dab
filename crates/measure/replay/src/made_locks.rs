//! Locks that a program makes of a mutex and a condition: Python's GIL, the token of a pool.
//!
//! Whoever takes one locks the mutex, waits for the condition while the lock is held, and
//! unlocks the mutex; whoever gives it back signals the condition under the mutex. Between
//! the two nothing of it is locked, so a recording has no holder, and its waits seem to be
//! those of threads without work. Here each such pair of sections becomes an acquisition
//! and a release of one lock, at the address of the condition; the mutex vanishes from it.
//!
//! A pair is taken for a lock only if nearly always threads take and give back in turn, and
//! never two hold it: queues, barriers and counted semaphores are none. It must never
//! change a recording in which there is none.

use locklab_trace::{Access, Attempt, Event, LockKind, Trace};

mod pairs;

use pairs::{FEWEST, PER_OTHER, Pair, may_be_locks};

/// A section of the mutex in a thread.
#[derive(Clone, Copy, Debug)]
struct Section {
    /// The places of its first and last records in the thread.
    from: usize,
    to: usize,
    /// The times at which the mutex was asked for, given up, and free.
    asked: u64,
    given_up: u64,
    freed: u64,
    stack: u64,
    waited: bool,
    signalled: bool,
}

/// Names what a section does to the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Deed {
    Takes,
    GivesBack,
}

/// The records of one thread.
type Records<'a> = Vec<(u64, Event<'a>)>;

/// Returns the recording with the locks that are made of mutexes and conditions as locks,
/// if there are any.
pub(crate) fn recognised(trace: &Trace) -> Option<Trace> {
    // All records are kept in memory from here on, so most recordings end before.
    let pairs = may_be_locks(trace);
    if pairs.is_empty() {
        return None;
    }
    let mut records: Vec<Records<'_>> = trace
        .threads
        .iter()
        .map(|thread| {
            let events = trace.events(thread);
            events
                .filter(|(_, event)| !matches!(event, Event::Begin { .. }))
                .collect()
        })
        .collect();
    let mut any = false;
    for pair in pairs {
        let of_image = |thread: usize| trace.threads[thread].image == pair.image;
        let sections: Vec<Vec<Section>> = records
            .iter()
            .enumerate()
            .map(|(thread, records)| match of_image(thread) {
                true => sections(records, pair),
                false => Vec::new(),
            })
            .collect();
        if let Some(deeds) = deeds(&sections) {
            any = true;
            for ((records, sections), deeds) in records.iter_mut().zip(&sections).zip(&deeds) {
                *records = rewritten(records, sections, deeds, pair);
            }
        }
    }
    any.then(|| trace.with_records(&records))
}

/// Returns the sections of the mutex in a thread.
fn sections(records: &Records<'_>, pair: Pair) -> Vec<Section> {
    let (mut all, mut open) = (Vec::new(), None::<Section>);
    let mut given_up = false;
    for (place, (tick, event)) in records.iter().enumerate() {
        match *event {
            Event::Request {
                lock,
                stack,
                access,
            } if lock == pair.mutex => {
                open = (access.attempt == Attempt::Waits).then_some(Section {
                    from: place,
                    to: place,
                    asked: *tick,
                    given_up: *tick,
                    freed: *tick,
                    stack,
                    waited: false,
                    signalled: false,
                });
                given_up = false;
            }
            Event::Wait { condition, .. } if condition == pair.condition => {
                if let Some(open) = &mut open {
                    open.waited = true;
                }
            }
            Event::Signal { condition, .. } if condition == pair.condition => {
                if let Some(open) = &mut open {
                    open.signalled = true;
                }
            }
            Event::Release { lock } if lock == pair.mutex => {
                if let Some(open) = &mut open {
                    open.given_up = *tick;
                    given_up = true;
                }
            }
            Event::Released if given_up => {
                given_up = false;
                all.extend(open.take().map(|section| Section {
                    to: place,
                    freed: *tick,
                    ..section
                }));
            }
            _ => {}
        }
    }
    all
}

/// Returns what each section of each thread does to the lock; none if the pair is no
/// lock.
fn deeds(sections: &[Vec<Section>]) -> Option<Vec<Vec<Option<Deed>>>> {
    let (mut others, mut holds, mut waits, mut threads) = (0, Vec::new(), 0, 0);
    let all = sections
        .iter()
        .map(|sections| {
            // Who gives back first has taken it before the recording began.
            let mut since = sections.first().filter(|s| s.signalled).map(|_| 0);
            let mut took = false;
            let deeds: Vec<_> = sections
                .iter()
                .map(|section| match (section.waited, section.signalled, since) {
                    (waited, false, None) => {
                        since = Some(section.given_up);
                        waits += usize::from(waited);
                        took = true;
                        Some(Deed::Takes)
                    }
                    (false, true, Some(from)) => {
                        holds.push((from, section.asked));
                        since = None;
                        Some(Deed::GivesBack)
                    }
                    // Whoever holds it looks at something else under the mutex.
                    (false, false, Some(_)) => None,
                    _ => {
                        others += 1;
                        None
                    }
                })
                .collect();
            threads += usize::from(took);
            deeds
        })
        .collect();
    holds.sort_unstable();
    let mut last = 0;
    for (from, to) in &holds {
        others += usize::from(*from < last);
        last = last.max(*to);
    }
    let is_lock =
        threads > 1 && waits > 0 && holds.len() >= FEWEST && others * PER_OTHER <= holds.len();
    is_lock.then_some(all)
}

/// Returns the records of a thread with these sections as acquisitions and releases.
fn rewritten<'a>(
    records: &Records<'a>,
    sections: &[Section],
    deeds: &[Option<Deed>],
    pair: Pair,
) -> Records<'a> {
    let lock = pair.condition;
    let mut all: Records<'a> = Vec::with_capacity(records.len());
    let mut next = 0;
    let deeds = sections.iter().zip(deeds);
    let deeds = deeds.filter_map(|(section, deed)| Some((section, (*deed)?)));
    for (number, (section, deed)) in deeds.enumerate() {
        all.extend_from_slice(&records[next..section.from]);
        if number == 0 {
            let kind = LockKind::MADE;
            all.push((section.asked, Event::Kind { lock, kind }));
        }
        // What explains other records is kept, and was known before.
        let within = records[section.from..=section.to].iter();
        let explains = within.filter(|(_, event)| {
            matches!(
                event,
                Event::Stack { .. } | Event::Module { .. } | Event::Image { .. }
            )
        });
        all.extend(explains.map(|(_, event)| (section.asked, *event)));
        match deed {
            Deed::Takes => {
                let access = Access {
                    shared: false,
                    attempt: Attempt::Waits,
                };
                let stack = section.stack;
                let request = Event::Request {
                    lock,
                    stack,
                    access,
                };
                all.push((section.asked, request));
                all.push((section.given_up, Event::Acquired));
            }
            Deed::GivesBack => {
                all.push((section.asked, Event::Release { lock }));
                all.push((section.freed, Event::Released));
            }
        }
        next = section.to + 1;
    }
    all.extend_from_slice(&records[next..]);
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::survey::Survey;
    use locklab_trace::{Header, file};

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

    /// Returns the recording of two threads in turn: one holds it for 1000, while the
    /// other waits.
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
        let made = recognised(&trace).expect("a lock");
        let survey = Survey::of(&made);
        assert_eq!(survey.locks.len(), 1, "the mutex has gone");
        let lock = &survey.locks[0];
        assert_eq!((lock.address, lock.kind), (CONDITION, LockKind::MADE));
        assert_eq!(lock.tally.acquired, 80);
        assert!(lock.tally.contended > 70, "{lock:?}");
        assert_eq!(lock.tally.held, 80 * 860);
        assert!(survey.sum(|thread| thread.waited) > 70 * 800);
        assert_eq!(recognised(&made).map(|_| ()), None, "once is enough");
    }

    /// A queue: one thread puts, and another takes out.
    #[test]
    fn what_threads_do_not_give_back_is_no_lock() {
        let puts = (0..40).flat_map(|turn| gives_back(1000 * turn)).collect();
        let gets = (0..40)
            .flat_map(|turn| takes(1000 * turn, 1000 * turn + 500))
            .collect();
        assert!(recognised(&trace(&[puts, gets])).is_none());
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
        assert!(recognised(&trace(&[of(0), of(300)])).is_none());
    }
}
