//! Turns the records of a window into the steps of its threads.

use crate::cause::Cause;
use crate::channels::Channels;
use crate::migration::{Fetch, Section};
use crate::owners::{Arrival, Owners};
use crate::program::{Lock, Site, Step};
use crate::thread::{Asks, Idle, Releases, Running};
use crate::wakes::Wakes;
use locklab_trace::{Event, Module, Trace, WithoutCpu};
use std::collections::HashMap;

mod ending;

/// Holds who is being woken for a lock while the recording is read.
#[derive(Default)]
pub(crate) struct Waking {
    /// The time at which the release began that goes on and may wake a waiter.
    pub(crate) goes_on: Option<u64>,
    /// The time at which the last release began that woke a waiter, which does not have
    /// the lock yet.
    pub(crate) ended: Option<u64>,
}

/// Describes what has been read of a window.
pub(crate) struct Reading<'a> {
    pub(crate) trace: &'a Trace,
    pub(crate) from: u64,
    /// Half of what the recorder takes of an operation, in ticks: each of the two
    /// records of an operation is written after its time was taken.
    pub(crate) recorder: u64,
    pub(crate) running: Vec<Running>,
    pub(crate) locks: Vec<Lock>,
    pub(crate) owners: Owners,
    /// Holds an entry for each lock.
    pub(crate) wakings: Vec<Waking>,
    pub(crate) sites: Vec<Site>,
    pub(crate) site_place: HashMap<Site, usize>,
    pub(crate) modules: Vec<Module>,
    pub(crate) channels: Channels,
    pub(crate) handles: HashMap<(u64, u64), usize>,
    pub(crate) places: HashMap<u64, usize>,
    /// Ticks of acquisitions of free locks, and of releases that nobody waited
    /// for, where both ends were recorded.
    pub(crate) free: [Vec<u64>; 2],
    pub(crate) wakes: Wakes,
    /// Holds what such operations take of which one time was recorded, so that what they
    /// take lies in the work before or behind them.
    pub(crate) whole: [u64; 2],
    pub(crate) acquisitions: usize,
    /// The sections of which is known who had the lock before.
    pub(crate) sections: Vec<Section>,
    /// Operations whose lock was perhaps fetched in the work before them.
    pub(crate) fetches: Vec<Fetch>,
    /// Says whether the recording says when threads had no CPU.
    pub(crate) cpu_times: bool,
    /// Says whether waits for other threads take as long as they took.
    pub(crate) delays: bool,
}

/// Returns the median; 0 of nothing.
pub(crate) fn median(of: &mut [u64]) -> u64 {
    let middle = of.len() / 2;
    match of.is_empty() {
        true => 0,
        false => *of.select_nth_unstable(middle).1,
    }
}

impl<'a> Reading<'a> {
    /// Begins to read a window at `from`.
    pub(crate) fn new(trace: &'a Trace, from: u64, recorder: u64, whole: [u64; 2]) -> Self {
        let mut reading = Self {
            trace,
            from,
            recorder,
            running: trace.threads.iter().map(|_| Running::default()).collect(),
            locks: Vec::new(),
            owners: Owners::default(),
            wakings: Vec::new(),
            sites: Vec::new(),
            site_place: HashMap::new(),
            modules: Vec::new(),
            channels: Channels::default(),
            handles: HashMap::new(),
            places: HashMap::new(),
            free: [Vec::new(), Vec::new()],
            wakes: Wakes::new(whole[1], trace.info.nanoseconds_per_tick),
            whole,
            acquisitions: 0,
            sections: Vec::new(),
            fetches: Vec::new(),
            cpu_times: false,
            delays: false,
        };
        for (place, thread) in trace.threads.iter().enumerate() {
            reading.places.insert(thread.number, place);
        }
        reading
    }

    pub(crate) fn nanoseconds(&self, ticks: u64) -> u64 {
        self.trace.nanoseconds(ticks).round() as u64
    }

    /// Returns whether it is in the window.
    pub(crate) fn counts(&self, tick: u64) -> bool {
        tick >= self.from
    }

    /// Returns the ticks of the window between two times.
    pub(crate) fn within(&self, since: u64, tick: u64) -> u64 {
        tick.saturating_sub(since.max(self.from))
    }

    fn lock(&mut self, image: u64, address: u64) -> usize {
        let (image, address) = self.owners.key(image, address);
        let (lock, new) = self.owners.lock(image, address);
        if new {
            self.wakings.push(Waking::default());
            self.locks.push(Lock {
                image,
                address,
                shared: false,
                acquired: 0,
                contended: 0,
                waited_ns: 0.0,
                held_ns: 0.0,
                migration_ns: None,
            });
        }
        lock
    }

    pub(crate) fn site(&mut self, site: Site) -> usize {
        if let Some(place) = self.site_place.get(&site) {
            return *place;
        }
        self.sites.push(site.clone());
        self.site_place.insert(site, self.sites.len() - 1);
        self.sites.len() - 1
    }

    /// Returns what a thread has computed until `tick` becomes a step.
    fn worked(&mut self, thread: usize, tick: u64) {
        let running = &self.running[thread];
        if tick == running.since && matches!(running.steps.last(), Some(Step::Work(_))) {
            return;
        }
        if self.counts(tick) {
            // If it was asked during an operation, that took longer, and no work.
            let asked = running.asked.filter(|(at, _)| {
                let after = at + self.whole[1];
                (*at..=after).contains(&running.since)
            });
            let recorder = self.recorder + asked.map_or(0, |(_, took)| took);
            let ticks = self.within(running.since, tick);
            let work = self.nanoseconds(ticks.saturating_sub(recorder));
            self.running[thread].push(Step::Work(work));
        }
        self.running[thread].since = tick;
        self.running[thread].asked = None;
    }

    /// Notes that the system was asked whether a thread had a CPU in a stretch that
    /// ends now. What it waited for there was not recorded.
    fn had_cpu(&mut self, thread: usize, tick: u64, (without, took): (Option<WithoutCpu>, u64)) {
        self.cpu_times = true;
        let running = &mut self.running[thread];
        if running.asks.is_some() || running.idle.is_some() || running.releases.is_some() {
            return;
        }
        if let Some(WithoutCpu {
            since,
            ticks,
            waits,
        }) = without
            && tick > self.from
        {
            // Of a stretch that began before the window, the part that is in it.
            let part = (tick - since.max(self.from)) as f64 / (tick - since).max(1) as f64;
            let ticks = (ticks as f64 * part) as u64;
            running.since = running.since.max(self.from).saturating_add(ticks).min(tick);
            for hold in &mut running.holds {
                hold.section = None;
            }
            if waits > 0 {
                running.unmatched += ticks;
                let idle = Step::Idle(self.nanoseconds(ticks));
                self.running[thread].push(idle);
            } else {
                running.preempted += ticks;
            }
        }
        self.worked(thread, tick);
        // A program that is read with the recorder's part keeps this part, too.
        if self.recorder > 0 {
            self.running[thread].asked = Some((tick, took));
        }
    }

    /// Begins a thread that is new in the window with what lets it begin.
    fn begins(&mut self, thread: usize, tick: u64) {
        if self.running[thread].began.is_some() {
            return;
        }
        self.running[thread].began = Some(tick);
        self.running[thread].since = tick;
        if self.counts(tick) {
            let late = self.nanoseconds(tick - self.from);
            let cause = Cause::Birth(thread);
            self.channels
                .awaits(&mut self.running[thread], thread, cause, Some(late));
        }
    }

    pub(crate) fn add(&mut self, thread: usize, image: u64, tick: u64, event: &Event<'_>) {
        self.begins(thread, tick);
        let tick_ns = self.trace.info.nanoseconds_per_tick;
        let without = self.running[thread].cpu.add(tick, event, tick_ns);
        if let Some(took) = self.running[thread].for_nobody.take()
            && !matches!(event, Event::Cost { .. } | Event::Switches { .. })
        {
            // Not timed, so that it has two times because it seemed to be awaited.
            self.wakes.released_for_nobody(took);
        }
        match *event {
            Event::Request {
                lock,
                stack,
                access,
            } => {
                self.worked(thread, tick);
                let lock = self.lock(image, lock);
                let Arrival { contended, touched } = self.owners.asks(thread, lock, access);
                self.locks[lock].shared |= access.shared;
                self.running[thread].asks = Some(Asks {
                    lock,
                    stack,
                    since: tick,
                    shared: access.shared,
                    contended,
                    touched,
                });
            }
            Event::Acquired => {
                if let Some(asks) = self.running[thread].asks.take() {
                    self.acquired(thread, image, &asks, tick);
                }
            }
            Event::Refused => self.refused(thread, tick),
            Event::Release { lock } => {
                self.worked(thread, tick);
                let lock = self.lock(image, lock);
                let before = self.before(thread, lock);
                self.given_up(thread, lock, tick);
                let awaited = self.owners.is_awaited(lock);
                if awaited {
                    self.wakings[lock].goes_on = Some(tick);
                }
                self.running[thread].releases = Some(Releases {
                    lock,
                    since: tick,
                    awaited,
                    before,
                });
            }
            Event::Released => {
                let mut since_then = tick;
                if let Some(release) = self.running[thread].releases.take() {
                    let Releases {
                        lock,
                        since,
                        awaited,
                        before,
                    } = release;
                    let mut took = self.within(since, tick);
                    if let Some(before) = before.filter(|_| self.counts(since)) {
                        self.fetched_to_release(thread, lock, before, tick == since);
                    }
                    if tick == since {
                        took = self.whole[1];
                        since_then += took;
                    } else if self.counts(since) && !self.owners.is_awaited(lock) {
                        self.free[1].push(took);
                        // Of a lock that is shared all releases have two times.
                        if !awaited && !self.locks[lock].shared {
                            self.running[thread].for_nobody = Some(took);
                        }
                    }
                    let woke = awaited && self.wakes.released(took);
                    // Unless the waiter has the lock meanwhile.
                    if awaited
                        && self.wakings[lock]
                            .goes_on
                            .take_if(|at| *at == since)
                            .is_some()
                        && woke
                    {
                        self.wakings[lock].ended = Some(since);
                    }
                    self.running[thread].operations += took;
                }
                self.running[thread].since = since_then;
            }
            Event::Wait {
                condition, lock, ..
            } => {
                self.worked(thread, tick);
                let lock = self.lock(image, lock);
                self.given_up(thread, lock, tick);
                let cause = Cause::Condition(image, condition);
                self.channels.waits(cause, 1);
                self.idles(
                    thread,
                    Idle {
                        lock: Some(lock),
                        cause: Some(cause),
                        ..Idle::since(tick)
                    },
                );
            }
            Event::Woken { timed_out } => self.woken(thread, tick, timed_out),
            Event::Signal {
                condition,
                broadcast,
            } => {
                self.worked(thread, tick);
                if self.counts(tick) {
                    let cause = Cause::Condition(image, condition);
                    self.channels
                        .signals(&mut self.running[thread], thread, cause, broadcast);
                }
            }
            Event::Create { thread: other } => {
                self.worked(thread, tick);
                if let Some(&other) = self.places.get(&other).filter(|_| self.counts(tick)) {
                    self.channels
                        .causes(&mut self.running[thread], thread, Cause::Birth(other));
                }
            }
            Event::Started { handle, .. } => {
                self.handles.insert((image, handle), thread);
            }
            Event::Join { handle } => {
                self.worked(thread, tick);
                let cause = self.handles.get(&(image, handle)).copied().map(Cause::End);
                let since = Idle::since(tick);
                self.idles(thread, Idle { cause, ..since });
            }
            Event::Joined => self.woken(thread, tick, false),
            Event::Sleep { timed } => {
                self.worked(thread, tick);
                let since = Idle::since(tick);
                self.idles(thread, Idle { timed, ..since });
            }
            Event::Slept => self.woken(thread, tick, false),
            Event::Ended => {
                self.worked(thread, tick);
                self.running[thread].ended = Some(tick);
                if self.counts(tick) {
                    self.channels
                        .causes(&mut self.running[thread], thread, Cause::End(thread));
                }
            }
            Event::Stack { number, frames } => {
                let frames = frames.addresses().collect();
                let site = self.site(Site { image, frames });
                self.running[thread].stacks.insert(number, site);
            }
            Event::Module {
                from,
                to,
                offset,
                path,
            } => self.modules.push(Module {
                image,
                from,
                to,
                offset,
                path: path.0.to_vec(),
            }),
            Event::Switches { took, .. } => self.had_cpu(thread, tick, (without, took)),
            Event::Image { .. } | Event::Kind { .. } => self.owners.learns(image, event),
            Event::Begin { .. } | Event::Ran { .. } | Event::Window { .. } | Event::Cost { .. } => {
            }
        }
    }
}
