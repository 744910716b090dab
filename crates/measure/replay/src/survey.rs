//! A whole recording: who waited for which lock, and for how long, what threads did
//! besides, and what the recording itself took.
//!
//! An acquisition counts as waiting only if another thread held the lock or got
//! it meanwhile: what an acquisition of a free lock takes is work, and no other
//! lock saves it.
//!
//! Pure: a recording in, numbers out. It must never print or name.

use crate::owners::Owners;
use crate::spent::SpentTicks;
use crate::surveyed::{Image, SurveyedLock, SurveyedSite, Tally, ThreadTimes};
use crate::windows::{WindowTimes, Windows};
use locklab_trace::{Attempt, CpuTime, Event, LockKind, Module, Source, Trace};
use std::collections::{BTreeMap, HashMap};

/// What a whole recording says. Times are in ticks of its clock.
#[derive(Clone, Debug, Default)]
pub struct Survey {
    /// Holds the times of each thread, by its place in the recording.
    pub threads: Vec<ThreadTimes>,
    /// Holds what threads did in each of [`crate::WINDOWS`] parts of the recording.
    pub windows: Vec<WindowTimes>,
    /// Holds the locks in the order of their first use.
    pub locks: Vec<SurveyedLock>,
    /// Holds the call sites in the order of their first use.
    pub sites: Vec<SurveyedSite>,
    /// Holds the mapped files of each image.
    pub modules: Vec<Module>,
    /// Holds the program images.
    pub images: Vec<Image>,
    /// Holds the number of operations whose recording was timed.
    pub timed: u64,
    /// Holds what that took.
    pub cost: u64,
    /// Holds the number of operations in the recording, timed or not.
    pub operations: u64,
}

impl Survey {
    /// Reads a recording.
    pub(crate) fn of(trace: &Trace) -> Self {
        let mut surveying = Surveying {
            survey: Self {
                threads: vec![ThreadTimes::default(); trace.threads.len()],
                ..Self::default()
            },
            running: trace.threads.iter().map(|_| Running::default()).collect(),
            owners: Owners::default(),
            lines: Vec::new(),
            windows: Windows::new(trace.info.began, trace.info.ended),
            pairs: HashMap::new(),
            sites: HashMap::new(),
            waits_only: trace.info.source == Source::KernelWaits,
            nanoseconds_per_tick: trace.info.nanoseconds_per_tick,
        };
        for (thread, tick, event) in trace.in_order() {
            surveying.add(thread, trace.threads[thread].image, tick, &event);
        }
        surveying.end(trace);
        surveying.survey.windows = surveying.windows.times;
        surveying.survey
    }

    /// Returns the sum of a time over all threads, in ticks.
    pub fn sum(&self, of: impl Fn(&ThreadTimes) -> u64) -> u64 {
        self.threads.iter().map(of).sum()
    }

    /// Returns the ticks that the recording of an operation took, of those that were timed.
    #[must_use]
    pub fn cost(&self) -> Option<f64> {
        (self.timed > 0).then(|| self.cost as f64 / self.timed as f64)
    }
}

/// A thread while the recording is read.
#[derive(Default)]
struct Running {
    began: Option<u64>,
    last: u64,
    cpu: CpuTime,
    ended: bool,
    asks: Option<Asks>,
    /// The lock that it releases, since when, and whether others want it.
    releases: Option<(usize, u64, bool)>,
    /// It waits for a condition, a thread or a file, or sleeps, since then; the lock and the stack of
    /// the first.
    idle: Option<(u64, Option<(usize, usize)>)>,
    /// Locks that it holds: since when, and the site.
    holds: Vec<(usize, u64, usize)>,
    /// Sites by the numbers of stacks.
    stacks: HashMap<u64, usize>,
}

/// Who waits for a lock, and since when it is held or free.
#[derive(Default)]
struct Line {
    waiters: Vec<usize>,
    since: u64,
    holders: u32,
}

#[derive(Clone, Copy)]
struct Asks {
    lock: usize,
    since: u64,
    /// Where its time went until now.
    spent: SpentTicks,
    /// Whether the holder is the one that it found.
    first: bool,
    site: usize,
    shared: bool,
    contended: bool,
}

struct Surveying {
    survey: Survey,
    running: Vec<Running>,
    owners: Owners,
    /// Holds an entry for each lock.
    lines: Vec<Line>,
    windows: Windows,
    /// How often each lock was acquired at each site.
    pairs: HashMap<(usize, usize), u64>,
    sites: HashMap<(u64, Vec<u64>), usize>,
    /// Only acquisitions that waited were recorded.
    waits_only: bool,
    nanoseconds_per_tick: f64,
}

impl Surveying {
    fn lock(&mut self, image: u64, address: u64) -> usize {
        let (lock, new) = self.owners.lock(image, address);
        if new {
            self.lines.push(Line::default());
            self.survey.locks.push(SurveyedLock {
                image,
                address,
                kind: LockKind::default(),
                site: None,
                tally: Tally::default(),
            });
        }
        lock
    }

    fn site(&mut self, image: u64, frames: Vec<u64>) -> usize {
        let key = (image, frames);
        if let Some(site) = self.sites.get(&key) {
            return *site;
        }
        self.survey.sites.push(SurveyedSite {
            image,
            frames: key.1.clone(),
            tally: Tally::default(),
        });
        let site = self.survey.sites.len() - 1;
        self.sites.insert(key, site);
        site
    }

    /// The site of a stack of a thread; one without frames if the recording does
    /// not explain it.
    fn site_of(&mut self, thread: usize, image: u64, stack: u64) -> usize {
        match self.running[thread].stacks.get(&stack) {
            Some(site) => *site,
            None => self.site(image, Vec::new()),
        }
    }

    fn add(&mut self, thread: usize, image: u64, tick: u64, event: &Event<'_>) {
        let running = &mut self.running[thread];
        running.began.get_or_insert(tick);
        running.last = tick;
        let without = running.cpu.add(tick, event, self.nanoseconds_per_tick);
        match *event {
            Event::Request {
                lock,
                stack,
                access,
            } => {
                let (lock, site) = (self.lock(image, lock), self.site_of(thread, image, stack));
                self.survey.operations += 1;
                let asked = self.owners.asks(thread, lock, access);
                let waits = self.waits_only && access.attempt != Attempt::Once;
                self.passes(lock, tick);
                let line = &mut self.lines[lock];
                line.waiters.push(thread);
                let asks = Asks {
                    lock,
                    since: tick,
                    spent: SpentTicks::default(),
                    first: line.holders > 0,
                    site,
                    shared: access.shared,
                    contended: waits || asked.contended,
                };
                self.running[thread].asks = Some(asks);
            }
            Event::Acquired | Event::Refused => {
                if let Some(asks) = self.running[thread].asks {
                    self.passes(asks.lock, tick);
                }
                if let Some(asks) = self.running[thread].asks.take() {
                    let got = matches!(event, Event::Acquired);
                    self.answered(thread, asks, tick, got);
                } else if let Some((lock, _, _)) = self.running[thread].releases.take()
                    && matches!(event, Event::Refused)
                {
                    // It keeps what it failed to release; who holds it is not known.
                    self.owners.keeps(thread, lock);
                }
            }
            Event::Release { lock } => {
                let lock = self.lock(image, lock);
                self.survey.operations += 1;
                self.awake(thread, tick);
                self.given_up(thread, lock, tick);
                let wanted = self.owners.is_awaited(lock);
                self.running[thread].releases = Some((lock, tick, wanted));
            }
            Event::Released => {
                if let Some((_, since, true)) = self.running[thread].releases.take() {
                    self.survey.threads[thread].woke += tick - since;
                    self.windows
                        .add(since, tick, tick - since, |times| &mut times.woke);
                }
            }
            Event::Wait { lock, stack, .. } => {
                let (lock, site) = (self.lock(image, lock), self.site_of(thread, image, stack));
                self.survey.operations += 1;
                self.given_up(thread, lock, tick);
                self.running[thread].idle = Some((tick, Some((lock, site))));
            }
            Event::Join { .. } | Event::Sleep { .. } => {
                self.survey.operations += 1;
                self.running[thread].idle = Some((tick, None));
            }
            Event::Woken { .. } | Event::Joined | Event::Slept => self.awake(thread, tick),
            Event::Stack { number, frames } => {
                let site = self.site(image, frames.addresses().collect());
                self.running[thread].stacks.insert(number, site);
            }
            Event::Module {
                from,
                to,
                offset,
                path,
            } => self.survey.modules.push(Module {
                image,
                from,
                to,
                offset,
                path: path.0.to_vec(),
            }),
            Event::Image {
                process, forked, ..
            } => self.survey.images.push(Image {
                number: image,
                process,
                forked,
            }),
            Event::Ended => running.ended = true,
            Event::Switches { involuntary, .. } => {
                let works = running.asks.is_none() && running.idle.is_none();
                let times = &mut self.survey.threads[thread];
                times.preempted = involuntary;
                if let Some(without) = without.filter(|without| without.waited)
                    && works
                    && running.releases.is_none()
                {
                    times.idle += without.ticks;
                    self.windows
                        .add(without.since, tick, without.ticks, |times| &mut times.idle);
                }
                if let Some(without) = without
                    && works
                {
                    self.stops(thread, without.since, tick, without.ticks);
                }
            }
            Event::Cost { ticks } => {
                self.survey.timed += 1;
                self.survey.cost += ticks;
            }
            Event::Kind { lock, kind } => {
                let lock = self.lock(image, lock);
                let of = &mut self.survey.locks[lock].kind;
                *of = of.and(kind);
            }
            Event::Begin { .. }
            | Event::Ran { .. }
            | Event::Started { .. }
            | Event::Create { .. }
            | Event::Signal { .. } => {}
        }
    }

    /// Time has passed until `tick` in which a lock was held or free: adds it to the waits
    /// for it.
    fn passes(&mut self, lock: usize, tick: u64) {
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

    /// A thread had no CPU, or waited, for so many ticks of a stretch: whoever waits for a
    /// lock that it holds waited for that.
    fn stops(&mut self, thread: usize, since: u64, tick: u64, ticks: u64) {
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

    /// A request was answered.
    fn answered(&mut self, thread: usize, asks: Asks, tick: u64, got: bool) {
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
        let line = &mut self.lines[asks.lock];
        line.waiters.retain(|waiter| *waiter != thread);
        if got {
            line.holders += 1;
            *self.pairs.entry((asks.lock, asks.site)).or_default() += 1;
        }
        let waited = if asks.contended || overtaken {
            tick - asks.since
        } else {
            0
        };
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

    /// A thread holds a lock no longer.
    fn given_up(&mut self, thread: usize, lock: usize, tick: u64) {
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

    /// A thread neither sleeps nor waits for a condition or a thread any longer; after
    /// a condition it holds the lock again.
    fn awake(&mut self, thread: usize, tick: u64) {
        if let Some((since, lock)) = self.running[thread].idle.take() {
            self.survey.threads[thread].idle += tick - since;
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

    /// What goes on when the recording ends.
    fn end(&mut self, trace: &Trace) {
        let mut most: HashMap<usize, (u64, std::cmp::Reverse<usize>)> = HashMap::new();
        for (&(lock, site), &times) in &self.pairs {
            let of_lock = most
                .entry(lock)
                .or_insert((0, std::cmp::Reverse(usize::MAX)));
            *of_lock = (*of_lock).max((times, std::cmp::Reverse(site)));
        }
        for (lock, (_, site)) in most {
            self.survey.locks[lock].site = Some(site.0);
        }
        let mut ends: BTreeMap<u64, u64> = BTreeMap::new();
        for (thread, running) in trace.threads.iter().zip(&self.running) {
            let end = ends.entry(thread.image).or_default();
            *end = (*end).max(running.last);
        }
        for (number, thread) in trace.threads.iter().enumerate() {
            let running = &self.running[number];
            let Some(began) = running.began else {
                continue;
            };
            let end = match running.ended {
                true => running.last,
                false => ends[&thread.image],
            };
            let times = &mut self.survey.threads[number];
            times.lived = end - began;
            self.windows
                .add(began, end, end - began, |times| &mut times.lived);
            if let Some((since, _)) = running.idle {
                times.idle += end - since;
                self.windows
                    .add(since, end, end - since, |times| &mut times.idle);
            } else if running.asks.is_none() && running.releases.is_none() && !running.ended {
                let account = thread.ran;
                let tick = self.nanoseconds_per_tick;
                let without = running.cpu.unfinished(end, account, tick);
                times.idle += without;
                self.windows
                    .add(running.last, end, without, |times| &mut times.idle);
            }
            let holds = running.holds.clone();
            let waits =
                |asks: &Asks| asks.contended || self.owners.was_acquired(asks.lock, asks.since);
            if let Some(asks) = running.asks.filter(waits) {
                times.waited += end - asks.since;
                self.windows
                    .add(asks.since, end, end - asks.since, |times| &mut times.waited);
                for tally in [
                    &mut self.survey.locks[asks.lock].tally,
                    &mut self.survey.sites[asks.site].tally,
                ] {
                    tally.contended += 1;
                    tally.waited += end - asks.since;
                }
            }
            for (lock, since, site) in holds {
                self.survey.locks[lock].tally.held += end - since;
                self.survey.sites[site].tally.held += end - since;
            }
        }
    }
}
