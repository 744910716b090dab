//! What one CPU used after its locked operations, and which lines of that are on their way.
//!
//! Only what is kept; when lines are asked for is decided in `ahead`.

use crate::requests::Want;
use std::cell::{Cell, RefCell};

/// Number of locked operations, by line, of which a CPU remembers what followed.
const OPERATIONS: usize = 8;
/// The most lines that are asked for at once, as many as matter to a critical section.
const LINES: usize = 4;
/// Cycles after which an access is no longer within reach: about as many instructions as a
/// processor looks ahead.
const REACH: u64 = 100;

/// A locked operation: its line, and whether it releases.
pub(crate) type Operation = (usize, bool);

/// The lines that were used after an operation, and what for.
type Used = (Operation, Vec<(usize, Want)>);

/// What a CPU used after its operations.
pub(crate) struct Followers {
    used: [RefCell<Used>; OPERATIONS],
    /// The last operation, and until when an access counts as near it.
    last: Cell<(Operation, u64)>,
    /// The time when that was done.
    pub(crate) done: Cell<u64>,
    /// Lines that have been asked for, and the time when each comes, once that is known.
    pub(crate) asked: RefCell<Vec<(usize, Option<u64>)>>,
}

impl Followers {
    pub(crate) fn new() -> Self {
        const NONE: Operation = (usize::MAX, false);
        Self {
            used: std::array::from_fn(|_| RefCell::new((NONE, Vec::new()))),
            last: Cell::new((NONE, 0)),
            done: Cell::new(0),
            asked: RefCell::new(Vec::new()),
        }
    }

    fn place(&self, (line, releases): Operation) -> &RefCell<Used> {
        &self.used[(line * 2 + usize::from(releases)) % OPERATIONS]
    }

    /// Calls `each` with what was used after an operation the last time.
    pub(crate) fn after(&self, operation: Operation, mut each: impl FnMut(usize, Want)) {
        let used = self.place(operation).borrow();
        if used.0 == operation {
            used.1.iter().for_each(|&(line, want)| each(line, want));
        }
    }

    /// Notes that an operation begins at `now` and takes `cycles`: what is used now follows it.
    pub(crate) fn begin(&self, operation: Operation, now: u64, cycles: u64) {
        self.last.set((operation, now + REACH));
        self.done.set(now + cycles);
        let mut used = self.place(operation).borrow_mut();
        used.0 = operation;
        used.1.clear();
    }

    /// Notes that a line is used at `now`.
    pub(crate) fn learn(&self, line: usize, want: Want, now: u64) {
        let (operation, until) = self.last.get();
        if now > until {
            return;
        }
        self.last.set((operation, now + REACH));
        if line == operation.0 {
            return;
        }
        let (_, lines) = &mut *self.place(operation).borrow_mut();
        let known = lines.iter().position(|(other, _)| *other == line);
        match known {
            Some(at) if want == Want::AheadToWrite => lines[at].1 = want,
            None if lines.len() < LINES => lines.push((line, want)),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_follows_an_operation_is_what_followed_it_the_last_time() {
        let followers = Followers::new();
        let after = |operation| {
            let mut lines = Vec::new();
            followers.after(operation, |line, want| lines.push((line, want)));
            lines
        };
        let (acquisition, release) = ((3, false), (3, true));
        followers.begin(acquisition, 100, 20);
        followers.learn(3, Want::Ahead, 120);
        followers.learn(7, Want::Ahead, 130);
        followers.learn(7, Want::AheadToWrite, 140);
        followers.learn(8, Want::Ahead, 200);
        followers.learn(9, Want::Ahead, 500);
        let used = [(7, Want::AheadToWrite), (8, Want::Ahead)];
        assert_eq!(after(acquisition), used);
        followers.begin(release, 600, 20);
        assert_eq!((after(release), after(acquisition)), (vec![], used.into()));
        // Where the lock was held, nothing followed.
        followers.begin(acquisition, 1_000, 20);
        assert_eq!(after(acquisition), []);
    }
}
