//! Finds which thread ended which wait: signals are matched to the waits that they
//! ended, births and ends of threads to those who waited for them.
//!
//! A signal that found nobody waiting is lost, as in the program. Whom of several
//! waiters a signal wakes is seen only when one wakes up.

use crate::cause::Cause;
use crate::program::Step;
use crate::thread::Running;
use std::collections::{HashMap, VecDeque};

/// A step that may end waits: its thread, its place, and how many more.
struct Post {
    thread: usize,
    step: usize,
    left: u32,
}

/// The channels of a program while it is read.
#[derive(Default)]
pub(crate) struct Channels {
    numbers: HashMap<Cause, u32>,
    waiting: HashMap<Cause, i64>,
    posts: HashMap<Cause, VecDeque<Post>>,
    /// Counts how many waits each step ended.
    ended: HashMap<(usize, usize), u32>,
}

impl Channels {
    pub(crate) fn count(&self) -> usize {
        self.numbers.len()
    }

    /// Returns whether a thread signals conditions, or waits for them, by its steps.
    pub(crate) fn has_conditions(&self, running: &Running) -> bool {
        let conditions = self
            .numbers
            .iter()
            .filter(|(cause, _)| matches!(cause, Cause::Condition(..)));
        let conditions: Vec<u32> = conditions.map(|(_, channel)| *channel).collect();
        running.steps.iter().any(|step| match step {
            Step::Await { channel } => conditions.contains(channel),
            Step::Post { channel, times } => *times > 0 && conditions.contains(channel),
            _ => false,
        })
    }

    fn number(&mut self, cause: Cause) -> u32 {
        let next = self.numbers.len() as u32;
        *self.numbers.entry(cause).or_insert(next)
    }

    /// Notes that more, or fewer, threads wait for this.
    pub(crate) fn waits(&mut self, cause: Cause, more: i64) {
        *self.waiting.entry(cause).or_default() += more;
    }

    /// Notes that a thread signals a condition.
    pub(crate) fn signals(
        &mut self,
        running: &mut Running,
        thread: usize,
        cause: Cause,
        broadcast: bool,
    ) {
        let waiting = self.waiting.get(&cause).copied().unwrap_or(0);
        let posts = self.posts.entry(cause).or_default();
        let woken: i64 = posts.iter().map(|post| i64::from(post.left)).sum();
        let left = u32::try_from(waiting - woken).unwrap_or(0);
        let left = if broadcast { left } else { left.min(1) };
        if left > 0 {
            self.post(running, thread, cause, left);
        }
    }

    /// Notes that a thread does what another waits for, or will wait for.
    pub(crate) fn causes(&mut self, running: &mut Running, thread: usize, cause: Cause) {
        self.post(running, thread, cause, 1);
    }

    fn post(&mut self, running: &mut Running, thread: usize, cause: Cause, left: u32) {
        let channel = self.number(cause);
        let step = running.steps.len();
        self.posts
            .entry(cause)
            .or_default()
            .push_back(Post { thread, step, left });
        running.push(Step::Post { channel, times: 0 });
    }

    /// Takes the oldest step that may have ended a wait for this.
    fn take(&mut self, cause: Cause) -> Option<(usize, usize)> {
        let posts = self.posts.get_mut(&cause)?;
        let post = posts.front_mut()?;
        let which = (post.thread, post.step);
        post.left -= 1;
        if post.left == 0 {
            posts.pop_front();
        }
        Some(which)
    }

    /// Ends a thread's wait: by a step of another if that was recorded. If
    /// not, it is as long as `late` says, if that does. Returns whether a step
    /// ended it.
    pub(crate) fn awaits(
        &mut self,
        running: &mut Running,
        thread: usize,
        cause: Cause,
        late: Option<u64>,
    ) -> bool {
        match self.take(cause).filter(|(by, _)| *by != thread) {
            Some(which) => {
                *self.ended.entry(which).or_default() += 1;
                let channel = self.number(cause);
                running.push(Step::Await { channel });
                true
            }
            None => {
                if let Some(late) = late {
                    running.push(Step::Idle(late));
                }
                false
            }
        }
    }

    /// Notes the end of a wait that began before the window.
    pub(crate) fn skip(&mut self, cause: Cause) {
        self.take(cause);
    }

    /// Writes to each step how many waits it ended.
    pub(crate) fn write(&self, running: &mut [Running]) {
        for (&(thread, step), &count) in &self.ended {
            if let Some(Step::Post { times, .. }) = running[thread].steps.get_mut(step) {
                *times = count;
            }
        }
    }
}
