//! Who waited for which lock, and for how long, by a recording.
//!
//! An acquisition counts as waiting only if another thread held the lock or got
//! it meanwhile: what an acquisition of a free lock takes is work, and no other
//! lock saves it.
//!
//! Pure: a recording in, numbers out. It must never print or name.

use locklab_trace::{Attempt, CpuTime, Event, Module, Source, Trace};
use std::collections::{BTreeMap, HashMap};

/// What a recording says of waiting. Times are in ticks.
#[derive(Clone, Debug, Default)]
pub(crate) struct Waiting {
    /// By the place of the thread in the recording.
    pub(crate) threads: Vec<ThreadTimes>,
    pub(crate) locks: Vec<Lock>,
    pub(crate) sites: Vec<Site>,
    pub(crate) modules: Vec<Module>,
    pub(crate) images: Vec<Image>,
    /// Number of operations whose recording was timed, and what that took.
    pub(crate) timed: u64,
    pub(crate) cost: u64,
    /// Operations in the recording, timed or not.
    pub(crate) operations: u64,
}

/// A program image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Image {
    pub(crate) number: u64,
    pub(crate) process: u64,
    pub(crate) forked: bool,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ThreadTimes {
    /// From its start to its end.
    pub(crate) lived: u64,
    /// Waiting for locks.
    pub(crate) waited: u64,
    /// In releases of locks that others wanted: they are woken there.
    pub(crate) woke: u64,
    /// For conditions, ends of threads, files and what was not recorded, and asleep: it
    /// had nothing to do.
    pub(crate) idle: u64,
    /// How often the system took the CPU from it against its will.
    pub(crate) preempted: u64,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) acquired: u64,
    pub(crate) contended: u64,
    pub(crate) waited: u64,
    pub(crate) held: u64,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Lock {
    pub(crate) image: u64,
    pub(crate) address: u64,
    pub(crate) counts: Counts,
}

/// A way to a call.
#[derive(Clone, Debug)]
pub(crate) struct Site {
    pub(crate) image: u64,
    /// Addresses after the calls, innermost first.
    pub(crate) frames: Vec<u64>,
    pub(crate) counts: Counts,
}

impl Waiting {
    pub(crate) fn sum(&self, of: impl Fn(&ThreadTimes) -> u64) -> u64 {
        self.threads.iter().map(of).sum()
    }

    /// The time in which threads had something to do.
    pub(crate) fn busy(&self) -> u64 {
        self.sum(|thread| thread.lived.saturating_sub(thread.idle))
    }

    /// The share of that in which they waited for locks or woke others that did.
    pub(crate) fn share(&self) -> f64 {
        let lost = self.sum(|thread| thread.waited + thread.woke);
        lost as f64 / self.busy().max(1) as f64
    }

    /// Ticks that the recording of an operation took, of those that were timed.
    pub(crate) fn cost(&self) -> Option<f64> {
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

#[derive(Clone, Copy)]
struct Asks {
    lock: usize,
    since: u64,
    site: usize,
    shared: bool,
    contended: bool,
}

/// Who uses a lock while the recording is read.
#[derive(Default)]
struct Use {
    /// The thread that holds it alone, and how often.
    owner: Option<(usize, u32)>,
    readers: u32,
    waiters: u32,
    /// When it was acquired last.
    acquired: u64,
}

struct Reading {
    waiting: Waiting,
    running: Vec<Running>,
    uses: Vec<Use>,
    locks: HashMap<(u64, u64), usize>,
    sites: HashMap<(u64, Vec<u64>), usize>,
    /// Only acquisitions that waited were recorded.
    waits_only: bool,
    nanoseconds_per_tick: f64,
}

impl Waiting {
    /// Returns the name of a lock of the kernel, which lockdep gives: a file of one
    /// byte that lies where the lock is.
    pub(crate) fn name_of(&self, lock: &Lock) -> Option<String> {
        let here = |module: &&Module| {
            module.from == lock.address && module.to == lock.address.wrapping_add(1)
        };
        let module = self.modules.iter().find(here)?;
        Some(String::from_utf8_lossy(&module.path).into_owned())
    }
}

/// Reads a recording.
pub(crate) fn waiting(trace: &Trace) -> Waiting {
    let mut reading = Reading {
        waiting: Waiting {
            threads: vec![ThreadTimes::default(); trace.threads.len()],
            ..Waiting::default()
        },
        running: trace.threads.iter().map(|_| Running::default()).collect(),
        uses: Vec::new(),
        locks: HashMap::new(),
        sites: HashMap::new(),
        waits_only: trace.info.source == Source::KernelWaits,
        nanoseconds_per_tick: trace.info.nanoseconds_per_tick,
    };
    for (thread, tick, event) in trace.in_order() {
        reading.add(thread, trace.threads[thread].image, tick, &event);
    }
    reading.end(trace);
    reading.waiting
}

impl Reading {
    fn lock(&mut self, image: u64, address: u64) -> usize {
        *self.locks.entry((image, address)).or_insert_with(|| {
            self.uses.push(Use::default());
            self.waiting.locks.push(Lock {
                image,
                address,
                counts: Counts::default(),
            });
            self.uses.len() - 1
        })
    }

    fn site(&mut self, image: u64, frames: Vec<u64>) -> usize {
        let key = (image, frames);
        if let Some(site) = self.sites.get(&key) {
            return *site;
        }
        self.waiting.sites.push(Site {
            image,
            frames: key.1.clone(),
            counts: Counts::default(),
        });
        let site = self.waiting.sites.len() - 1;
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
                self.waiting.operations += 1;
                let used = &mut self.uses[lock];
                let others = used.owner.is_some_and(|(owner, _)| owner != thread);
                let contended = self.waits_only
                    || access.attempt == Attempt::FoundHeld
                    || others
                    || used.waiters > 0
                    || (!access.shared && used.readers > 0);
                used.waiters += 1;
                let asks = Asks {
                    lock,
                    since: tick,
                    site,
                    shared: access.shared,
                    contended: contended && access.attempt != Attempt::Once,
                };
                self.running[thread].asks = Some(asks);
            }
            Event::Acquired | Event::Refused => {
                if let Some(asks) = self.running[thread].asks.take() {
                    let got = matches!(event, Event::Acquired);
                    self.answered(thread, asks, tick, got);
                } else if let Some((lock, _, _)) = self.running[thread].releases.take()
                    && matches!(event, Event::Refused)
                {
                    // It keeps what it failed to release; who holds it is not known.
                    self.uses[lock].owner.get_or_insert((thread, 1));
                }
            }
            Event::Release { lock } => {
                let lock = self.lock(image, lock);
                self.waiting.operations += 1;
                self.awake(thread, tick);
                self.given_up(thread, lock, tick);
                let wanted = self.uses[lock].waiters > 0;
                self.running[thread].releases = Some((lock, tick, wanted));
            }
            Event::Released => {
                if let Some((_, since, true)) = self.running[thread].releases.take() {
                    self.waiting.threads[thread].woke += tick - since;
                }
            }
            Event::Wait { lock, stack, .. } => {
                let (lock, site) = (self.lock(image, lock), self.site_of(thread, image, stack));
                self.waiting.operations += 1;
                self.given_up(thread, lock, tick);
                self.running[thread].idle = Some((tick, Some((lock, site))));
            }
            Event::Join { .. } | Event::Sleep { .. } => {
                self.waiting.operations += 1;
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
            } => self.waiting.modules.push(Module {
                image,
                from,
                to,
                offset,
                path: path.0.to_vec(),
            }),
            Event::Image {
                process, forked, ..
            } => self.waiting.images.push(Image {
                number: image,
                process,
                forked,
            }),
            Event::Ended => running.ended = true,
            Event::Switches { involuntary, .. } => {
                let works = running.asks.is_none() && running.idle.is_none();
                let times = &mut self.waiting.threads[thread];
                times.preempted = involuntary;
                if let Some(without) = without.filter(|without| without.waited)
                    && works
                    && running.releases.is_none()
                {
                    times.idle += without.ticks;
                }
            }
            Event::Cost { ticks } => {
                self.waiting.timed += 1;
                self.waiting.cost += ticks;
            }
            Event::Begin { .. }
            | Event::Started { .. }
            | Event::Create { .. }
            | Event::Signal { .. } => {}
        }
    }

    /// A request was answered.
    fn answered(&mut self, thread: usize, asks: Asks, tick: u64, got: bool) {
        let used = &mut self.uses[asks.lock];
        used.waiters = used.waiters.saturating_sub(1);
        // Another thread may have come later, and first.
        let overtaken = got && used.acquired >= asks.since && used.acquired > 0;
        let waited = if asks.contended || overtaken {
            tick - asks.since
        } else {
            0
        };
        if got {
            used.acquired = tick;
            if asks.shared {
                used.readers += 1;
            } else {
                let depth = match used.owner {
                    Some((owner, depth)) if owner == thread => depth + 1,
                    _ => 1,
                };
                used.owner = Some((thread, depth));
            }
            self.running[thread]
                .holds
                .push((asks.lock, tick, asks.site));
        }
        self.waiting.threads[thread].waited += waited;
        for counts in [
            &mut self.waiting.locks[asks.lock].counts,
            &mut self.waiting.sites[asks.site].counts,
        ] {
            counts.acquired += u64::from(got);
            counts.contended += u64::from(waited > 0);
            counts.waited += waited;
        }
    }

    /// A thread holds a lock no longer.
    fn given_up(&mut self, thread: usize, lock: usize, tick: u64) {
        let used = &mut self.uses[lock];
        match used.owner {
            Some((owner, depth)) if depth > 1 => used.owner = Some((owner, depth - 1)),
            Some(_) => used.owner = None,
            None => used.readers = used.readers.saturating_sub(1),
        }
        let holds = &mut self.running[thread].holds;
        if let Some(place) = holds.iter().rposition(|hold| hold.0 == lock) {
            let (_, since, site) = holds.remove(place);
            self.waiting.locks[lock].counts.held += tick - since;
            self.waiting.sites[site].counts.held += tick - since;
        }
    }

    /// A thread neither sleeps nor waits for a condition or a thread any longer; after
    /// a condition it holds the lock again.
    fn awake(&mut self, thread: usize, tick: u64) {
        if let Some((since, lock)) = self.running[thread].idle.take() {
            self.waiting.threads[thread].idle += tick - since;
            if let Some((lock, site)) = lock {
                self.uses[lock].owner = Some((thread, 1));
                self.uses[lock].acquired = tick;
                self.running[thread].holds.push((lock, tick, site));
            }
        }
    }

    /// What goes on when the recording ends.
    fn end(&mut self, trace: &Trace) {
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
            let times = &mut self.waiting.threads[number];
            times.lived = end - began;
            if let Some((since, _)) = running.idle {
                times.idle += end - since;
            }
            let holds = running.holds.clone();
            let waits = |asks: &Asks| asks.contended || self.uses[asks.lock].acquired >= asks.since;
            if let Some(asks) = running.asks.filter(waits) {
                times.waited += end - asks.since;
                for counts in [
                    &mut self.waiting.locks[asks.lock].counts,
                    &mut self.waiting.sites[asks.site].counts,
                ] {
                    counts.contended += 1;
                    counts.waited += end - asks.since;
                }
            }
            for (lock, since, site) in holds {
                self.waiting.locks[lock].counts.held += end - since;
                self.waiting.sites[site].counts.held += end - since;
            }
        }
    }
}
