//! The script of a worker in a recorded program: what it does again and again, and where slices
//! begin.
//!
//! A slice is shorter than what was recorded, and a program does not do the same all the
//! time: so each slice begins at another moment of it, which both sides of a pair and all
//! workers share. It must never begin where a thread holds a lock.

/// Names what a worker does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// It computes so many steps.
    Compute(u64),
    /// It acquires the lock of this place.
    Acquire { place: u32, shared: bool },
    /// It releases the lock of this place.
    Release { place: u32, shared: bool },
    /// It waits for a post to a channel.
    Await(u32),
    /// It posts so often to a channel.
    Post(u32, u32),
    /// It sleeps for so many nanoseconds.
    Idle(u64),
}

/// The script of a worker: what it does again and again, and where slices begin.
#[derive(Clone, Debug)]
pub(crate) struct Script {
    pub(crate) actions: Vec<Action>,
    pub(crate) entries: Vec<Entry>,
    /// Says by how much later than it has asked a worker wakes up, in nanoseconds.
    pub(crate) late_ns: u64,
}

/// Says in how many moments of the program a slice may begin.
pub(crate) const ENTRIES: usize = 32;

/// Describes where a worker begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Holds what is left of the action in which it is.
    pub(crate) rest: Action,
    /// Counts how many actions are before what follows.
    pub(crate) done: usize,
}

/// Returns that of the moment at which a worker has done a share of all that it does.
fn entry(actions: &[Action], step_ns: f64, share: f64) -> Entry {
    // Each action takes some time, so that those of a thread without work have moments, too.
    let takes = |action: &Action| match *action {
        Action::Compute(steps) => steps as f64 * step_ns + 1.0,
        Action::Idle(ns) => ns as f64 + 1.0,
        _ => 1.0,
    };
    let mut left = share * actions.iter().map(takes).sum::<f64>();
    let mut held = 0_usize;
    for (done, action) in actions.iter().enumerate() {
        let length = takes(action);
        if held == 0 && left < length {
            let rest = 1.0 - left.max(0.0) / length;
            let of = |whole: u64| (whole as f64 * rest).round() as u64;
            return match *action {
                Action::Compute(steps) => Entry {
                    rest: Action::Compute(of(steps)),
                    done: done + 1,
                },
                Action::Idle(ns) => Entry {
                    rest: Action::Idle(of(ns)),
                    done: done + 1,
                },
                _ => Entry {
                    rest: Action::Compute(0),
                    done,
                },
            };
        }
        left -= length;
        match action {
            Action::Acquire { .. } => held += 1,
            Action::Release { .. } => held = held.saturating_sub(1),
            _ => {}
        }
    }
    Entry {
        rest: Action::Compute(0),
        done: 0,
    }
}

impl Script {
    /// Returns that of a worker which does this, where a step takes `step_ns`.
    pub(crate) fn new(actions: Vec<Action>, step_ns: f64) -> Self {
        let share = |number| number as f64 / ENTRIES as f64;
        let entry = |number| entry(&actions, step_ns, share(number));
        let entries = (0..ENTRIES).map(entry).collect();
        Self {
            actions,
            entries,
            late_ns: 0,
        }
    }
}

/// Returns how many posts a channel has at each of these moments that nobody has taken.
pub(crate) fn posts(scripts: &[Script], channel: u32) -> Vec<u32> {
    let of = |number: usize| {
        let before = scripts.iter().flat_map(|script| {
            let done = script.entries[number].done;
            &script.actions[..done]
        });
        let balance: i64 = before
            .map(|action| match *action {
                Action::Post(to, times) if to == channel => i64::from(times),
                Action::Await(of) if of == channel => -1,
                _ => 0,
            })
            .sum();
        // A worker may be ahead of the one that posts to it.
        u32::try_from(balance.max(0)).unwrap_or(u32::MAX)
    };
    (0..ENTRIES).map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ACQUIRE: Action = Action::Acquire {
        place: 0,
        shared: false,
    };
    const RELEASE: Action = Action::Release {
        place: 0,
        shared: false,
    };

    #[test]
    fn a_worker_begins_within_its_work_and_never_with_a_lock() {
        let actions = [
            Action::Compute(100),
            ACQUIRE,
            Action::Compute(100),
            RELEASE,
            Action::Idle(200),
        ];
        let at = |share| entry(&actions, 1.0, share);
        let of = |rest, done| Entry { rest, done };
        assert_eq!(at(0.0), of(Action::Compute(100), 1));
        assert_eq!(at(0.125), of(Action::Compute(50), 1));
        // What is within the section comes after it.
        assert_eq!(at(0.3), of(Action::Idle(200), 5));
        assert_eq!(at(0.75), of(Action::Idle(101), 5));
        assert_eq!(
            entry(&[ACQUIRE, RELEASE], 1.0, 0.9),
            of(Action::Compute(0), 0)
        );
        assert_eq!(entry(&[], 1.0, 0.5), of(Action::Compute(0), 0));
    }

    #[test]
    fn what_was_posted_before_is_there() {
        let script = |actions| Script::new(actions, 1.0);
        let post = Action::Post(0, 1);
        let scripts = [
            script(vec![post, Action::Compute(100), post, Action::Compute(100)]),
            script(vec![
                Action::Compute(150),
                Action::Await(0),
                Action::Compute(50),
            ]),
        ];
        let posts = posts(&scripts, 0);
        assert_eq!(posts[0], 0);
        assert_eq!(posts[ENTRIES / 4], 1);
        assert_eq!(posts[5 * ENTRIES / 8], 2);
        assert_eq!(posts[7 * ENTRIES / 8], 1);
    }
}
