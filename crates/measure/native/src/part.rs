//! A worker's part of a recorded program: what it does again and again, and where slices
//! begin.
//!
//! A slice is shorter than what was recorded, and a program does not do the same all the
//! time: so each slice begins at another moment of it, which both sides of a pair and all
//! workers share. It must never begin where a thread holds a lock.

/// What a worker does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Act {
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

/// A worker's part: what it does again and again, and where slices begin.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    pub(crate) acts: Vec<Act>,
    pub(crate) entries: Vec<Entry>,
    /// By how much later than it has asked a worker wakes up, in nanoseconds.
    pub(crate) late_ns: u64,
}

/// In how many moments of the program a slice may begin.
pub(crate) const ENTRIES: usize = 32;

/// Where a worker begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// What is left of the act in which it is.
    pub(crate) rest: Act,
    /// How many acts are before what follows.
    pub(crate) done: usize,
}

/// That of the moment at which a worker has done a share of all that it does.
fn entry(acts: &[Act], step_ns: f64, share: f64) -> Entry {
    // Each act takes some time, so that those of a thread without work have moments, too.
    let takes = |act: &Act| match *act {
        Act::Compute(steps) => steps as f64 * step_ns + 1.0,
        Act::Idle(ns) => ns as f64 + 1.0,
        _ => 1.0,
    };
    let mut left = share * acts.iter().map(takes).sum::<f64>();
    let mut held = 0_usize;
    for (done, act) in acts.iter().enumerate() {
        let length = takes(act);
        if held == 0 && left < length {
            let rest = 1.0 - left.max(0.0) / length;
            let of = |whole: u64| (whole as f64 * rest).round() as u64;
            return match *act {
                Act::Compute(steps) => Entry {
                    rest: Act::Compute(of(steps)),
                    done: done + 1,
                },
                Act::Idle(ns) => Entry {
                    rest: Act::Idle(of(ns)),
                    done: done + 1,
                },
                _ => Entry {
                    rest: Act::Compute(0),
                    done,
                },
            };
        }
        left -= length;
        match act {
            Act::Acquire { .. } => held += 1,
            Act::Release { .. } => held = held.saturating_sub(1),
            _ => {}
        }
    }
    Entry {
        rest: Act::Compute(0),
        done: 0,
    }
}

impl Part {
    /// That of a worker which does this, where a step takes `step_ns`.
    pub(crate) fn new(acts: Vec<Act>, step_ns: f64) -> Self {
        let share = |number| number as f64 / ENTRIES as f64;
        let entry = |number| entry(&acts, step_ns, share(number));
        let entries = (0..ENTRIES).map(entry).collect();
        Self {
            acts,
            entries,
            late_ns: 0,
        }
    }
}

/// How many posts a channel has at each of these moments that nobody has taken.
pub(crate) fn posts(parts: &[Part], channel: u32) -> Vec<u32> {
    let of = |number: usize| {
        let before = parts.iter().flat_map(|part| {
            let done = part.entries[number].done;
            &part.acts[..done]
        });
        let balance: i64 = before
            .map(|act| match *act {
                Act::Post(to, times) if to == channel => i64::from(times),
                Act::Await(of) if of == channel => -1,
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

    const ACQUIRE: Act = Act::Acquire {
        place: 0,
        shared: false,
    };
    const RELEASE: Act = Act::Release {
        place: 0,
        shared: false,
    };

    #[test]
    fn a_worker_begins_within_its_work_and_never_with_a_lock() {
        let acts = [
            Act::Compute(100),
            ACQUIRE,
            Act::Compute(100),
            RELEASE,
            Act::Idle(200),
        ];
        let at = |share| entry(&acts, 1.0, share);
        let of = |rest, done| Entry { rest, done };
        assert_eq!(at(0.0), of(Act::Compute(100), 1));
        assert_eq!(at(0.125), of(Act::Compute(50), 1));
        // Within the section: after it.
        assert_eq!(at(0.3), of(Act::Idle(200), 5));
        assert_eq!(at(0.75), of(Act::Idle(101), 5));
        assert_eq!(entry(&[ACQUIRE, RELEASE], 1.0, 0.9), of(Act::Compute(0), 0));
        assert_eq!(entry(&[], 1.0, 0.5), of(Act::Compute(0), 0));
    }

    #[test]
    fn what_was_posted_before_is_there() {
        let part = |acts| Part::new(acts, 1.0);
        let post = Act::Post(0, 1);
        let parts = [
            part(vec![post, Act::Compute(100), post, Act::Compute(100)]),
            part(vec![Act::Compute(150), Act::Await(0), Act::Compute(50)]),
        ];
        let posts = posts(&parts, 0);
        assert_eq!(posts[0], 0);
        assert_eq!(posts[ENTRIES / 4], 1);
        assert_eq!(posts[5 * ENTRIES / 8], 2);
        assert_eq!(posts[7 * ENTRIES / 8], 1);
    }
}
