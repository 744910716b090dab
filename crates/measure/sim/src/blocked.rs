//! Follows which threads of a recorded program wait for which others, so that a wait that nobody
//! can end is noticed when it begins.
//!
//! It must never end a wait while a thread can go on.

use std::cell::{Cell, RefCell};

/// Names what a thread does, as far as others may wait for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Doing {
    /// It computes, sleeps for a time, or holds a CPU.
    GoesOn,
    /// It asks for this lock.
    Asks(usize),
    /// It waits for a post to this channel, since then.
    Awaits(usize, u64),
}

/// Names which threads wait for which others.
pub(crate) struct Blocked {
    doing: Vec<Cell<Doing>>,
    /// The threads that hold each lock.
    holders: RefCell<Vec<Vec<usize>>>,
    /// Posts to each channel that nobody has taken.
    posted: Vec<Cell<i64>>,
    awaiting: Cell<usize>,
}

impl Blocked {
    /// Makes the record of so many threads, locks and channels.
    pub(crate) fn new(threads: usize, locks: usize, channels: usize) -> Self {
        Self {
            doing: vec![Cell::new(Doing::GoesOn); threads],
            holders: RefCell::new(vec![Vec::new(); locks]),
            posted: vec![Cell::new(0); channels],
            awaiting: Cell::new(0),
        }
    }

    pub(crate) fn asks(&self, thread: usize, lock: usize) {
        self.doing[thread].set(Doing::Asks(lock));
    }

    pub(crate) fn has(&self, thread: usize, lock: usize) {
        self.doing[thread].set(Doing::GoesOn);
        self.holders.borrow_mut()[lock].push(thread);
    }

    pub(crate) fn gives_up(&self, thread: usize, lock: usize) {
        let holders = &mut self.holders.borrow_mut()[lock];
        if let Some(place) = holders.iter().position(|holder| *holder == thread) {
            holders.swap_remove(place);
        }
    }

    pub(crate) fn awaits(&self, thread: usize, channel: usize, now: u64) {
        self.doing[thread].set(Doing::Awaits(channel, now));
        self.awaiting.set(self.awaiting.get() + 1);
    }

    pub(crate) fn took(&self, thread: usize, channel: usize) {
        self.doing[thread].set(Doing::GoesOn);
        self.awaiting.set(self.awaiting.get() - 1);
        self.posted[channel].set(self.posted[channel].get() - 1);
    }

    pub(crate) fn posts(&self, channel: usize, times: u32) {
        self.posted[channel].set(self.posted[channel].get() + i64::from(times));
    }

    /// Returns the channel of the thread that has waited for a post for the longest, if
    /// no thread can go on; `None` too if all wait for locks only.
    pub(crate) fn stuck(&self) -> Option<usize> {
        if self.awaiting.get() == 0 {
            return None;
        }
        let mut goes_on: Vec<bool> = self
            .doing
            .iter()
            .map(|doing| match doing.get() {
                Doing::GoesOn => true,
                Doing::Asks(_) => false,
                Doing::Awaits(channel, _) => self.posted[channel].get() > 0,
            })
            .collect();
        if goes_on.contains(&true) {
            return None;
        }
        // Who asks for a lock that nobody holds has it soon; one round is enough, because
        // nobody who holds one goes on.
        let holders = self.holders.borrow();
        for (thread, doing) in self.doing.iter().enumerate() {
            if let Doing::Asks(lock) = doing.get() {
                goes_on[thread] = holders[lock].is_empty();
            }
        }
        if goes_on.contains(&true) {
            return None;
        }
        let waits = self.doing.iter().filter_map(|doing| match doing.get() {
            Doing::Awaits(channel, since) => Some((since, channel)),
            _ => None,
        });
        waits.min().map(|(_, channel)| channel)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_where_nobody_goes_on_a_wait_is_ended() {
        let blocked = Blocked::new(3, 2, 2);
        blocked.has(0, 0);
        blocked.awaits(0, 1, 20);
        blocked.asks(1, 0);
        assert_eq!(blocked.stuck(), None, "the third computes");
        blocked.asks(2, 1);
        assert_eq!(blocked.stuck(), None, "the second lock is free");
        blocked.has(2, 1);
        blocked.awaits(2, 0, 10);
        assert_eq!(blocked.stuck(), Some(0), "the longest wait");
        blocked.posts(0, 1);
        assert_eq!(blocked.stuck(), None, "it has been posted to");
        blocked.took(2, 0);
        blocked.gives_up(2, 1);
        assert_eq!(blocked.stuck(), None);
    }

    #[test]
    fn threads_that_wait_for_locks_only_are_left_to_the_watchdog() {
        let blocked = Blocked::new(2, 2, 0);
        blocked.has(0, 0);
        blocked.has(1, 1);
        blocked.asks(0, 1);
        blocked.asks(1, 0);
        assert_eq!(blocked.stuck(), None);
    }
}
