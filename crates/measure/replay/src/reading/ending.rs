//! Waits that are for no lock, and what goes on when the window ends.

use super::Reading;
use crate::program::Step;
use crate::thread::{Hold, Idle};

impl Reading<'_> {
    /// Returns whether a thread computes, as far as its records say: its next record says
    /// whether it had a CPU.
    pub(crate) fn computes(&self, thread: usize) -> bool {
        let running = &self.running[thread];
        let waits = running.asks.is_some() || running.idle.is_some();
        running.began.is_some() && running.ended.is_none() && !waits && running.releases.is_none()
    }

    pub(super) fn idles(&mut self, thread: usize, idle: Idle) {
        let running = &mut self.running[thread];
        running.idle = Some(idle);
        // A section with a sleep in it does not say how long it computes.
        for hold in &mut running.holds {
            hold.section = None;
        }
    }

    /// Notes that a thread no longer sleeps, or waits for another.
    pub(super) fn woken(&mut self, thread: usize, tick: u64, timed_out: bool) {
        let Some(idle) = self.running[thread].idle.take() else {
            return;
        };
        if let (Some(cause), Some(_)) = (idle.cause, idle.lock) {
            self.channels.waits(cause, -1);
        }
        let counts = self.counts(tick);
        let idled = self.within(idle.since, tick);
        if counts {
            let fixed = Step::Idle(self.nanoseconds(idled));
            let running = &mut self.running[thread];
            running.ready.push((idle.since.max(self.from), -1));
            running.ready.push((tick, 1));
            // What begins before the window cannot be ended by one of its steps.
            let whole = idle.since >= self.from;
            let cause = idle.cause.filter(|_| !timed_out && !self.delays);
            let matched = match cause {
                Some(cause) if whole => self.channels.awaits(running, thread, cause, None),
                Some(cause) => {
                    self.channels.skip(cause);
                    false
                }
                None => false,
            };
            if !matched {
                running.push(fixed);
            }
            if matched || timed_out || idle.timed || !whole {
                running.matched += idled;
            } else {
                running.unmatched += idled;
            }
        }
        self.running[thread].since = tick;
        if let Some(lock) = idle.lock {
            // It has the lock again.
            self.owners.has_again(thread, lock, tick);
            let running = &mut self.running[thread];
            let step = counts && running.holds.iter().all(|hold| hold.lock != lock);
            if step {
                let (lock, shared) = (lock as u32, false);
                running.push(Step::Acquire { lock, shared });
            }
            let hold = Hold {
                lock,
                since: tick,
                site: None,
                step,
                section: None,
            };
            running.holds.push(hold);
        }
    }

    /// Returns what goes on when the window ends.
    pub(crate) fn end(&mut self, thread: usize, to: u64) {
        let running = &self.running[thread];
        if running.began.is_none() {
            return;
        }
        if let Some(ended) = running.ended {
            let rest = self.nanoseconds(self.within(ended, to));
            self.running[thread].push(Step::Idle(rest));
        } else if let Some(idle) = running.idle {
            let rest = self.within(idle.since, to);
            let step = Step::Idle(self.nanoseconds(rest));
            let running = &mut self.running[thread];
            running.push(step);
            running.matched += rest;
            running.ready.push((idle.since.max(self.from), -1));
        } else if let Some(asks) = running.asks {
            let rest = self.within(asks.since, to);
            let running = &mut self.running[thread];
            running.waited += rest;
            running.ready.push((asks.since.max(self.from), -1));
        } else if running.releases.is_none() {
            if let Some((until, without)) = running.tail {
                let stretch = until.saturating_sub(running.since).max(1) as f64;
                let share = without as f64 / stretch;
                let ticks = (share * self.within(running.since, to) as f64) as u64;
                let idle = Step::Idle(self.nanoseconds(ticks));
                let running = &mut self.running[thread];
                running.since = running.since.max(self.from).saturating_add(ticks).min(to);
                running.unmatched += ticks;
                running.push(idle);
            }
            self.worked(thread, to);
        }
        let holds = std::mem::take(&mut self.running[thread].holds);
        for hold in holds.iter().rev() {
            let held = self.within(hold.since, to);
            self.locks[hold.lock].held_ns += self.trace.nanoseconds(held);
            if hold.step {
                let lock = hold.lock as u32;
                self.running[thread].push(Step::Release { lock });
            }
        }
    }
}
