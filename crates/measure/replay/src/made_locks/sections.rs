//! The sections of a mutex in a thread, and what each does to the lock that the mutex and a
//! condition make.
//!
//! It must never decide whether there is such a lock.

use super::pairs::Pair;
use locklab_trace::{Attempt, Event};

/// A section of the mutex in a thread.
#[derive(Clone, Copy, Debug)]
pub(super) struct Section {
    /// The times at which the mutex was asked for, given up, and free.
    pub(super) asked: u64,
    pub(super) given_up: u64,
    pub(super) freed: u64,
    pub(super) stack: u64,
    pub(super) waited: bool,
    pub(super) signalled: bool,
}

/// Says where a record lies.
pub(super) enum Place {
    /// It lies in no section.
    Outside,
    /// It begins one.
    Begins,
    /// It lies within one.
    Within,
    /// It ends this one.
    Ends(Section),
    /// It lies in none, and behind it nothing is known of the thread.
    Forgotten,
}

/// Follows the sections of the mutex in a thread, record by record.
pub(super) struct Sections {
    pair: Pair,
    open: Option<Section>,
    given_up: bool,
}

impl Sections {
    pub(super) fn of(pair: Pair) -> Self {
        Self {
            pair,
            open: None,
            given_up: false,
        }
    }

    pub(super) fn next(&mut self, tick: u64, event: &Event<'_>) -> Place {
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
        if let Event::Window { .. } = event {
            (self.open, self.given_up) = (None, false);
            return Place::Forgotten;
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

/// Names what a section does to the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Deed {
    /// It takes the lock.
    Takes,
    /// It gives the lock back, which it has had since then.
    GivesBack(u64),
    /// Whoever holds it looks at something else under the mutex.
    Looks,
    /// It is none that a lock has.
    Other,
}

/// Says of each section of a thread in turn what it does.
#[derive(Default)]
pub(super) struct Deeds {
    since: Option<u64>,
    /// Says whether it is known what it did before.
    later: bool,
}

impl Deeds {
    /// Notes that nothing is known of the thread until its next section. Returns whether it
    /// had the lock.
    pub(super) fn forget(&mut self) -> bool {
        self.later = false;
        self.since.take().is_some()
    }

    pub(super) fn next(&mut self, section: &Section) -> Deed {
        // Who gives back first has taken it before the recording began, or between windows.
        if !std::mem::replace(&mut self.later, true) && section.signalled {
            self.since = Some(0);
        }
        match (section.waited, section.signalled, self.since) {
            (_, false, None) => {
                self.since = Some(section.given_up);
                Deed::Takes
            }
            (false, true, Some(from)) => {
                self.since = None;
                Deed::GivesBack(from)
            }
            (false, false, Some(_)) => Deed::Looks,
            _ => Deed::Other,
        }
    }
}
