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

/// Holds what each section of each thread does, if it does anything.
type Deeds = Vec<Vec<Option<Deed>>>;

/// Returns the recording with the locks that are made of mutexes and conditions as locks,
/// if there are any. Records are read again and again, and never all in memory: there are
/// millions of them.
pub(crate) fn recognised(trace: &Trace) -> Option<Trace> {
    let mut made: Option<Trace> = None;
    for pair in may_be_locks(trace) {
        let before = made.as_ref().unwrap_or(trace);
        if let Some(deeds) = deeds(before, pair) {
            made = Some(rewritten(before, pair, &deeds));
        }
    }
    made
}

/// Says where a record lies.
enum Place {
    /// It lies in no section.
    Outside,
    /// It begins one.
    Begins,
    /// It lies within one.
    Within,
    /// It ends this one.
    Ends(Section),
}

/// Follows the sections of the mutex in a thread, record by record.
struct Sections {
    pair: Pair,
    open: Option<Section>,
    given_up: bool,
}

impl Sections {
    fn of(pair: Pair) -> Self {
        Self {
            pair,
            open: None,
            given_up: false,
        }
    }

    fn next(&mut self, tick: u64, event: &Event<'_>) -> Place {
        if let Event::Request {
            lock,
            stack,
            access,
        } = *event
            && lock == self.pair.mutex
        {
            self.given_up = false;
            self.open = (access.attempt == Attempt::Waits).then_some(Section {
                asked: tick,
                given_up: tick,
                freed: tick,
                stack,
                waited: false,
                signalled: false,
            });
            return match self.open {
                Some(_) => Place::Begins,
                None => Place::Outside,
            };
        }
        let Some(open) = &mut self.open else {
            return Place::Outside;
        };
        match *event {
            Event::Wait { condition, .. } if condition == self.pair.condition => {
                open.waited = true;
            }
            Event::Signal { condition, .. } if condition == self.pair.condition => {
                open.signalled = true;
            }
            Event::Release { lock } if lock == self.pair.mutex => {
                open.given_up = tick;
                self.given_up = true;
            }
            Event::Released if self.given_up => {
                let section = Section {
                    freed: tick,
                    ..*open
                };
                (self.open, self.given_up) = (None, false);
                return Place::Ends(section);
            }
            _ => {}
        }
        Place::Within
    }
}

/// Returns what each section of each thread does to the lock; none if the pair is no
/// lock.
fn deeds(trace: &Trace, pair: Pair) -> Option<Deeds> {
    let (mut others, mut holds, mut waits, mut threads) = (0, Vec::new(), 0, 0);
    let mut all = Vec::new();
    for thread in &trace.threads {
        let mut deeds = Vec::new();
        let (mut since, mut took) = (None, false);
        let mut sections = Sections::of(pair);
        for (tick, event) in trace.events(thread) {
            if thread.image != pair.image {
                break;
            }
            let Place::Ends(section) = sections.next(tick, &event) else {
                continue;
            };
            // Who gives back first has taken it before the recording began.
            if deeds.is_empty() && section.signalled {
                since = Some(0);
            }
            deeds.push(match (section.waited, section.signalled, since) {
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
            });
        }
        threads += usize::from(took);
        all.push(deeds);
    }
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

/// Takes the records of a thread.
type Write<'a> = &'a mut dyn FnMut(u64, Event<'_>);

/// Returns the recording with these sections as acquisitions and releases.
fn rewritten(trace: &Trace, pair: Pair, deeds: &Deeds) -> Trace {
    trace.with_records(|thread, write| {
        let events = trace.events(&trace.threads[thread]);
        let records = events.filter(|(_, event)| !matches!(event, Event::Begin { .. }));
        let mut deeds = deeds[thread].iter().copied();
        let mut sections = Sections::of(pair);
        // The records of a section, until it is known what becomes of them.
        let mut held = Vec::new();
        let mut named = false;
        for (tick, event) in records {
            let place = sections.next(tick, &event);
            if !matches!(place, Place::Within | Place::Ends(_)) {
                held.drain(..).for_each(|(tick, event)| write(tick, event));
            }
            held.push((tick, event));
            let done = match place {
                Place::Ends(section) => deeds.next().flatten().map(|deed| (section, deed)),
                Place::Outside => None,
                Place::Begins | Place::Within => continue,
            };
            if let Some((section, deed)) = done {
                if !std::mem::replace(&mut named, true) {
                    let (lock, kind) = (pair.condition, LockKind::MADE);
                    write(section.asked, Event::Kind { lock, kind });
                }
                instead(&held, section, deed, pair.condition, write);
                held.clear();
            }
            held.drain(..).for_each(|(tick, event)| write(tick, event));
        }
        held.drain(..).for_each(|(tick, event)| write(tick, event));
    })
}

/// Writes what stands for the records of a section.
fn instead(held: &[(u64, Event<'_>)], section: Section, deed: Deed, lock: u64, write: Write<'_>) {
    // What explains other records is kept, and was known before.
    let explains = held.iter().filter(|(_, event)| {
        matches!(
            event,
            Event::Stack { .. } | Event::Module { .. } | Event::Image { .. }
        )
    });
    explains.for_each(|(_, event)| write(section.asked, *event));
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
            write(section.asked, request);
            write(section.given_up, Event::Acquired);
        }
        Deed::GivesBack => {
            write(section.asked, Event::Release { lock });
            write(section.freed, Event::Released);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::survey::Survey;
    use locklab_trace::{Header, file};

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
