//! The waits of a recording, and for what each of them waited: the holder's work, its own
//! waits, others in line, or a wake-up.
//!
//! Must never count time twice: a wait's parts are its whole.

use super::{Asks, Surveying, Tries, WAKING_NS};
use crate::surveyed::ThreadTimes;

impl Surveying {
    /// Adds the time until `tick`, in which a lock was held or free, to the waits for
    /// that lock.
    pub(super) fn passes(&mut self, lock: usize, tick: u64) {
        let line = &mut self.lines[lock];
        for waiter in &line.waiters {
            if let Some(asks) = &mut self.running[*waiter].asks {
                let ticks = tick.saturating_sub(line.since.max(asks.since));
                *match (line.holders, asks.first) {
                    (0, _) => &mut asks.spent.waking,
                    (_, true) => &mut asks.spent.works,
                    (_, false) => &mut asks.spent.in_line,
                } += ticks;
            }
        }
        line.since = tick;
    }

    /// Notes that a thread had no CPU, or waited, for so many ticks of a stretch:
    /// whoever waits for a lock that it holds waited for that.
    pub(super) fn stops(&mut self, thread: usize, since: u64, tick: u64, ticks: u64) {
        let share = ticks as f64 / tick.saturating_sub(since).max(1) as f64;
        let held: Vec<usize> = self.running[thread]
            .holds
            .iter()
            .map(|hold| hold.0)
            .collect();
        for lock in held {
            if self.lines[lock].waiters.is_empty() {
                continue;
            }
            self.passes(lock, tick);
            for waiter in &self.lines[lock].waiters {
                if let Some(asks) = &mut self.running[*waiter].asks {
                    let both = tick.saturating_sub(since.max(asks.since)) as f64;
                    asks.spent.stop((share * both) as u64);
                }
            }
        }
    }

    /// Notes that a request was answered.
    pub(super) fn answered(&mut self, thread: usize, asks: Asks, tick: u64, got: bool) {
        let overtaken = match got {
            true => {
                let when = (asks.since, tick);
                let had = self.owners.had(thread, asks.lock, when, asks.shared);
                had.overtaken
            }
            false => {
                self.owners.refused(asks.lock);
                false
            }
        };
        self.tried(thread, asks, tick, got);
        let line = &mut self.lines[asks.lock];
        line.waiters.retain(|waiter| *waiter != thread);
        if got {
            line.holders += 1;
            *self.pairs.entry((asks.lock, asks.site)).or_default() += 1;
        }
        let took = tick - asks.since;
        let waited = match asks.contended || overtaken || got && self.called(took, 2) {
            true => took,
            false => 0,
        };
        // Who has no CPU for long where nobody holds the lock is ready: all CPUs have others.
        let most = self.ticks(WAKING_NS);
        let ready = asks.spent.waking.saturating_sub(most).min(waited);
        let waited = waited - ready;
        self.survey.threads[thread].ready += ready;
        self.survey.threads[thread].ready_by_locks += ready;
        self.windows
            .add(asks.since, tick, ready, |times| &mut times.idle);
        if waited > 0 {
            self.windows
                .add(asks.since, tick, waited, |times| &mut times.waited);
            // Whoever waits for what it holds is kept waiting.
            self.stops(thread, asks.since, tick, waited);
        }
        if got {
            self.running[thread]
                .holds
                .push((asks.lock, tick, asks.site));
        }
        self.survey.threads[thread].waited += waited;
        for tally in [
            &mut self.survey.locks[asks.lock].tally,
            &mut self.survey.sites[asks.site].tally,
        ] {
            tally.acquired += u64::from(got);
            tally.contended += u64::from(waited > 0);
            tally.waited += waited;
            if waited > 0 {
                tally.spent.add(&asks.spent);
            }
        }
    }

    /// Notes that a thread tried to take a lock: where it does so until it has it, it waited
    /// since its first try, whatever it did in between.
    fn tried(&mut self, thread: usize, asks: Asks, tick: u64, got: bool) {
        if !asks.once {
            return;
        }
        let running = &mut self.running[thread];
        if !got {
            let before = self.survey.threads[thread];
            let tries = running.tries.get_or_insert(Tries {
                lock: asks.lock,
                since: asks.since,
                times: 0,
                before,
            });
            tries.times += 1;
            return;
        }
        let Some(tries) = running.tries.take().filter(|tries| tries.times > 1) else {
            return;
        };
        let times = &mut self.survey.threads[thread];
        let before = tries.before;
        let all = tick - tries.since;
        let without = |times: &ThreadTimes| times.idle + times.unknown + times.ready;
        let asleep = without(times) - without(&before);
        times.ready = before.ready;
        times.ready_by_locks = before.ready_by_locks;
        times.idle = before.idle;
        times.conditions = before.conditions;
        times.unknown = before.unknown;
        times.unknown_waits = before.unknown_waits;
        let other = times.waited - before.waited + times.woke - before.woke;
        let waited = all.saturating_sub(other);
        let (slept, spun) = (asleep.min(waited), waited.saturating_sub(asleep));
        times.waited += slept;
        times.spun += spun;
        self.windows
            .add(tries.since, tick, slept, |times| &mut times.waited);
        self.windows
            .add(tries.since, tick, spun, |times| &mut times.spun);
        self.windows.was_not_idle(tries.since, tick, slept);
        for tally in [
            &mut self.survey.locks[asks.lock].tally,
            &mut self.survey.sites[asks.site].tally,
        ] {
            tally.contended += 1;
            tally.waited += waited;
        }
    }

    /// Notes that a thread no longer holds a lock.
    pub(super) fn given_up(&mut self, thread: usize, lock: usize, tick: u64) {
        self.owners.given_up(thread, lock);
        self.passes(lock, tick);
        let line = &mut self.lines[lock];
        line.holders = line.holders.saturating_sub(1);
        for waiter in &line.waiters {
            if let Some(asks) = &mut self.running[*waiter].asks {
                asks.first = false;
            }
        }
        let holds = &mut self.running[thread].holds;
        if let Some(place) = holds.iter().rposition(|hold| hold.0 == lock) {
            let (_, since, site) = holds.remove(place);
            self.survey.locks[lock].tally.held += tick - since;
            self.survey.sites[site].tally.held += tick - since;
        }
    }

    /// Notes that a thread no longer sleeps, or waits for a condition or a thread; after
    /// a condition it holds the lock again.
    pub(super) fn awake(&mut self, thread: usize, tick: u64) {
        if let Some((since, lock)) = self.running[thread].idle.take() {
            let times = &mut self.survey.threads[thread];
            times.idle += tick - since;
            times.conditions += if lock.is_some() { tick - since } else { 0 };
            self.windows
                .add(since, tick, tick - since, |times| &mut times.idle);
            self.stops(thread, since, tick, tick - since);
            if let Some((lock, site)) = lock {
                self.owners.has_again(thread, lock, tick);
                self.passes(lock, tick);
                self.lines[lock].holders += 1;
                self.running[thread].holds.push((lock, tick, site));
            }
        }
    }
}
