//! Reads the records of a lock that is acquired, refused or given up: steps,
//! and what they say of the lock. It must never read a record of anything else.

use crate::migration::{Fetch, Place, Section};
use crate::owners::Had;
use crate::program::{Site, Step};
use crate::reading::{Reading, Waking};
use crate::thread::{Asks, Before, Hold};

/// A thread that waited so long for a lock has called the system, and may have slept.
const SLEPT_NS: f64 = 2000.0;

impl Reading<'_> {
    pub(crate) fn acquired(&mut self, thread: usize, image: u64, asks: &Asks, tick: u64) {
        let counts = self.counts(tick);
        // A thread that was awake may have the lock several times until the woken one runs.
        let waking = &mut self.wakings[asks.lock];
        if let Some(woke) = waking.goes_on.or(waking.ended)
            && asks.since < woke
        {
            *waking = Waking::default();
            if counts {
                self.wakes.ran(tick - woke);
            }
        }
        let Had {
            overtaken,
            mut again,
            last,
        } = self
            .owners
            .had(thread, asks.lock, (asks.since, tick), asks.shared);
        let took = self.within(asks.since, tick);
        let running = &mut self.running[thread];
        running.since = tick;
        // A reader that reads twice would wait for a writer between.
        again |= running.holds.iter().any(|hold| hold.lock == asks.lock);
        let site = running.stacks.get(&asks.stack).copied();
        let waited = asks.contended || overtaken;
        let section = last
            .zip(site)
            .filter(|_| counts && running.holds.is_empty());
        let hold = Hold {
            lock: asks.lock,
            since: tick,
            site,
            step: counts && !again,
            section: None,
        };
        running.holds.push(hold);
        if !counts {
            return;
        }
        if waited {
            running.waited += took;
            running.ready.push((asks.since.max(self.from), -1));
            running.ready.push((tick, 1));
        } else if tick > asks.since {
            running.operations += took;
            self.free[0].push(took);
        } else {
            running.operations += self.whole[0];
            if let Some(Step::Work(work)) = running.steps.last_mut() {
                let ticks = self.trace.nanoseconds(self.whole[0]);
                *work = work.saturating_sub(ticks.round() as u64);
            }
        }
        if !again {
            let (lock, shared) = (asks.lock as u32, asks.shared);
            if let (Some((last, site)), Some(hold)) = (section, running.holds.last_mut()) {
                let section = Section {
                    thread,
                    step: running.steps.len(),
                    lock: asks.lock,
                    site,
                    after_other: last != thread,
                    slept: self.trace.nanoseconds(took) >= SLEPT_NS,
                    asked: false,
                    ticks: 0,
                };
                hold.section = Some((section, running.waited));
            }
            if let (Some(touched), Some(site), Some(Step::Work(before))) =
                (asks.touched, site, running.steps.last())
            {
                self.fetches.push(Fetch {
                    place: Place {
                        lock: asks.lock,
                        site,
                        releases: false,
                    },
                    thread,
                    step: running.steps.len() - 1,
                    of_other: touched != thread,
                    at_once: tick == asks.since,
                    before_ns: *before,
                });
            }
            running.push(Step::Acquire { lock, shared });
        }
        let lock = &mut self.locks[asks.lock];
        lock.acquired += 1;
        if waited {
            lock.contended += 1;
            lock.waited_ns += self.trace.nanoseconds(took);
        }
        self.acquisitions += 1;
        let site = match site {
            Some(site) => site,
            None => self.site(Site {
                image,
                frames: Vec::new(),
            }),
        };
        *self.running[thread].sites.entry(site).or_default() += 1;
    }

    /// Notes that a request or a release has failed.
    pub(crate) fn refused(&mut self, thread: usize, tick: u64) {
        if let Some(asks) = self.running[thread].asks.take() {
            self.owners.refused(asks.lock);
            if asks.contended && self.counts(tick) {
                // It waited until its deadline.
                let waited = self.within(asks.since, tick);
                let idle = Step::Idle(self.nanoseconds(waited));
                self.running[thread].push(idle);
                self.running[thread].unmatched += waited;
                self.running[thread].since = tick;
            }
        } else if self.running[thread].releases.take().is_some() {
            self.running[thread].since = tick;
        }
    }

    /// Returns what was before the release of a lock.
    pub(crate) fn before(&self, thread: usize, lock: usize) -> Option<Before> {
        let mut holds = self.running[thread].holds.iter().rev();
        let site = holds.find(|hold| hold.lock == lock)?.site?;
        let of_other = self.owners.touched(lock)? != thread;
        Some(Before { site, of_other })
    }

    /// Returns what fetching the lock's line took is in the work before a release: readers
    /// find it elsewhere, and others where a thread asked for the lock meanwhile.
    pub(crate) fn fetched_to_release(
        &mut self,
        thread: usize,
        lock: usize,
        before: Before,
        at_once: bool,
    ) {
        let Before { site, of_other } = before;
        let [.., Step::Work(work), Step::Release { lock: released }] =
            self.running[thread].steps[..]
        else {
            return;
        };
        if released as usize == lock {
            self.fetches.push(Fetch {
                place: Place {
                    lock,
                    site,
                    releases: true,
                },
                thread,
                step: self.running[thread].steps.len() - 2,
                of_other,
                at_once,
                before_ns: work,
            });
        }
    }

    /// Notes that a thread no longer holds a lock.
    pub(crate) fn given_up(&mut self, thread: usize, lock: usize, tick: u64) {
        let asked = self.owners.given_up(thread, lock);
        let running = &mut self.running[thread];
        let Some(place) = running.holds.iter().rposition(|hold| hold.lock == lock) else {
            return;
        };
        let hold = running.holds.remove(place);
        if hold.step {
            let lock = lock as u32;
            running.push(Step::Release { lock });
        }
        // One that waited within, or gave up its locks in another order, says nothing.
        if let Some((section, waited)) = hold.section
            && running.holds.is_empty()
            && running.waited == waited
        {
            let ticks = tick.saturating_sub(hold.since);
            self.sections.push(Section {
                asked,
                ticks,
                ..section
            });
        }
        let held = self.within(hold.since, tick);
        self.locks[lock].held_ns += self.trace.nanoseconds(held);
    }
}
