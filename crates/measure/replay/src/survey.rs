//! A whole recording: who waited for which lock, and for how long, what threads did
//! besides, and what the recording itself took.
//!
//! An acquisition counts as waiting only if another thread held the lock or got
//! it meanwhile, or if it took so long that it called the system: what else an acquisition
//! of a free lock takes is work, and no other lock saves it. A release counts as waking if
//! another thread wanted the lock, or likewise if it called the system: a futex is woken
//! once too often after it was contended.
//!
//! Pure: a recording in, numbers out. It must never print or name.

use crate::cpus::in_order_ahead;
use crate::owners::Owners;
use crate::spent::SpentTicks;
use crate::surveyed::{Image, SurveyedLock, SurveyedSite, Tally, ThreadTimes};
use crate::windows::{WindowTimes, Windows};
use foldhash::{HashMap, HashMapExt as _};
use locklab_trace::{Attempt, CpuTime, Event, LockKind, Module, Source, Trace};

mod ending;
mod waits;

/// Describes what a whole recording says. Times are in ticks of its clock.
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
    /// Holds what the recording of an operation took, of those that were timed.
    pub costs: Vec<u64>,
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
            calling: None,
        };
        in_order_ahead(trace, |records| {
            for (thread, tick, event) in records {
                surveying.add(thread, trace.threads[thread].image, tick, &event);
            }
        });
        surveying.end(trace);
        surveying.survey.windows = surveying.windows.times;
        surveying.survey
    }

    /// Returns the sum of a time over all threads, in ticks.
    pub fn sum(&self, of: impl Fn(&ThreadTimes) -> u64) -> u64 {
        self.threads.iter().map(of).sum()
    }

    /// Returns the ticks that the recording of an operation took: the median of those that
    /// were timed. A thread that lost its CPU meanwhile took none of them for that.
    #[must_use]
    pub fn cost(&self) -> Option<f64> {
        let mut costs = self.costs.clone();
        let middle = costs.len() / 2;
        (!costs.is_empty()).then(|| *costs.select_nth_unstable(middle).1 as f64)
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
    /// The lock that it tries to take again and again.
    tries: Option<Tries>,
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

/// Holds who waits for a lock, and since when it is held or free.
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
    /// Says where its time went until now.
    spent: SpentTicks,
    /// Says whether the holder is the one that it found.
    first: bool,
    site: usize,
    shared: bool,
    /// It tries once, and does not wait.
    once: bool,
    contended: bool,
}

/// Describes a thread that tries to take a lock, in vain until now.
#[derive(Clone, Copy)]
struct Tries {
    lock: usize,
    since: u64,
    /// Holds how often it tried.
    times: u32,
    /// Holds what the thread had done until the first.
    before: ThreadTimes,
}

/// The longest time of a release that wakes a waiter, and from there until that has a CPU, in
/// nanoseconds. Both take some microseconds; who has no CPU has one again in milliseconds.
const WAKING_NS: f64 = 100_000.0;

struct Surveying {
    survey: Survey,
    running: Vec<Running>,
    owners: Owners,
    /// Holds an entry for each lock.
    lines: Vec<Line>,
    windows: Windows,
    /// Says how often each lock was acquired at each site.
    pairs: HashMap<(usize, usize), u64>,
    sites: HashMap<(u64, Vec<u64>), usize>,
    /// Only acquisitions that waited were recorded.
    waits_only: bool,
    nanoseconds_per_tick: f64,
    /// The least that two calls of the system took until now, in ticks, if that was timed.
    calling: Option<u64>,
}

impl Surveying {
    /// Returns whether an operation of a lock that took so long called the system.
    /// Without a call it takes some fetches of a line from another cache, whatever the
    /// lock.
    fn called(&self, ticks: u64, calls: u64) -> bool {
        self.calling.is_some_and(|two| 2 * ticks >= calls * two)
    }

    /// Returns so many nanoseconds in ticks.
    fn ticks(&self, ns: f64) -> u64 {
        (ns / self.nanoseconds_per_tick.max(1e-9)) as u64
    }

    fn lock(&mut self, image: u64, address: u64) -> usize {
        let (image, address) = self.owners.key(image, address);
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

    /// Returns the site of a stack of a thread; one without frames if the recording does
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
                    once: access.attempt == Attempt::Once,
                    contended: waits || asked.contended,
                };
                let tries = &mut self.running[thread].tries;
                *tries = tries.filter(|tries| asks.once && tries.lock == lock);
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
                if let Some((_, since, wanted)) = self.running[thread].releases.take()
                    && (wanted || self.called(tick - since, 1))
                {
                    let woke = (tick - since).min(self.ticks(WAKING_NS));
                    let ready = tick - since - woke;
                    let times = &mut self.survey.threads[thread];
                    times.woke += woke;
                    times.ready += ready;
                    self.windows.add(since, tick, woke, |times| &mut times.woke);
                    self.windows
                        .add(since, tick, ready, |times| &mut times.idle);
                }
            }
            Event::Wait { lock, stack, .. } => {
                let (lock, site) = (self.lock(image, lock), self.site_of(thread, image, stack));
                self.survey.operations += 1;
                self.given_up(thread, lock, tick);
                self.running[thread].tries = None;
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
            } => {
                self.owners.learns(image, event);
                self.survey.images.push(Image {
                    number: image,
                    process,
                    forked,
                });
            }
            Event::Ended => running.ended = true,
            Event::Switches {
                involuntary, took, ..
            } => {
                if took > 0 {
                    self.calling = Some(self.calling.map_or(took, |least| least.min(took)));
                }
                let works = running.asks.is_none() && running.idle.is_none();
                let times = &mut self.survey.threads[thread];
                times.preempted = involuntary;
                if let Some(without) = without
                    && works
                    && running.releases.is_none()
                {
                    match without.waits {
                        0 => times.ready += without.ticks,
                        waits => {
                            times.unknown += without.ticks;
                            times.unknown_waits = times.unknown_waits.saturating_add(waits);
                        }
                    }
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
                self.survey.costs.push(ticks);
            }
            Event::Kind { lock, kind } => {
                self.owners.learns(image, event);
                let lock = self.lock(image, lock);
                let of = &mut self.survey.locks[lock].kind;
                *of = of.and(kind);
            }
            Event::Begin { .. }
            | Event::Ran { .. }
            | Event::Window { .. }
            | Event::Started { .. }
            | Event::Create { .. }
            | Event::Signal { .. } => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use locklab_trace::{Access, Header, file, file_of_images};

    /// Returns the recording of one thread that acquires a free lock for so long, and
    /// releases it for so long; asking the system takes 400 ticks.
    fn of_one(acquires: u64, releases: u64) -> Survey {
        let lock = 0x100;
        let events = [
            (
                0,
                Event::Begin {
                    thread: 0,
                    image: 0,
                },
            ),
            (
                0,
                Event::Switches {
                    voluntary: 0,
                    involuntary: 0,
                    ran_ns: 0,
                    took: 400,
                },
            ),
            (
                1000,
                Event::Request {
                    lock,
                    stack: 0,
                    access: Access {
                        shared: false,
                        attempt: Attempt::Waits,
                    },
                },
            ),
            (1000 + acquires, Event::Acquired),
            (5000, Event::Release { lock }),
            (5000 + releases, Event::Released),
        ];
        let header = Header::new(1.0, 0, 1, "a machine", "program");
        let last = 5000 + releases + 1000;
        let trace = Trace::read(file(&header, &[events.to_vec()], last).unwrap()).unwrap();
        Survey::of(&trace)
    }

    #[test]
    fn a_lost_cpu_is_no_cost_of_the_recording() {
        let survey = Survey {
            costs: vec![30, 1_000_000, 20],
            ..Survey::default()
        };
        assert_eq!(survey.cost(), Some(30.0));
        assert_eq!(Survey::default().cost(), None);
    }

    /// Nobody holds the lock, and yet its word says that somebody may sleep for it.
    #[test]
    fn an_operation_that_calls_the_system_is_no_work() {
        let quick = of_one(150, 150);
        assert_eq!((quick.threads[0].waited, quick.threads[0].woke), (0, 0));
        let slow = of_one(900, 250);
        assert_eq!((slow.threads[0].waited, slow.threads[0].woke), (900, 250));
        assert_eq!(slow.locks[0].tally.contended, 1);
    }

    /// A process holds a lock while another waits that has it at the same address.
    fn of_two(kind: LockKind, forked: bool) -> Survey {
        let lock = 0x100;
        let request = Event::Request {
            lock,
            stack: 0,
            access: Access {
                shared: false,
                attempt: Attempt::Waits,
            },
        };
        let of = |number: u64, times: [u64; 3]| {
            let image = Event::Image {
                process: 10 + number,
                parent: 9 + number,
                forked: forked && number > 0,
            };
            let begins = times[0] - 10;
            vec![
                (begins, image),
                (begins, Event::Kind { lock, kind }),
                (times[0], request),
                (times[1], Event::Acquired),
                (times[2], Event::Release { lock }),
                (times[2], Event::Released),
            ]
        };
        let threads = [of(0, [100, 100, 900]), of(1, [200, 910, 950])];
        let header = Header::new(1.0, 0, 2, "a machine", "program");
        let threads = [(0, &threads[0][..]), (1, &threads[1][..])];
        let bytes = file_of_images(&header, &threads, 1000).unwrap();
        Survey::of(&Trace::read(bytes).unwrap())
    }

    fn of_threads(threads: &[Vec<(u64, Event<'static>)>]) -> Survey {
        let header = Header::new(1.0, 0, 8, "a machine", "program");
        Survey::of(&Trace::read(file(&header, threads, 1_000_000).unwrap()).unwrap())
    }

    fn asks(lock: u64, attempt: Attempt) -> Event<'static> {
        Event::Request {
            lock,
            stack: 0,
            access: Access {
                shared: false,
                attempt,
            },
        }
    }

    /// The second thread tries until it has the lock, and sleeps in between.
    #[test]
    fn who_tries_again_and_again_waits() {
        let lock = 0x100;
        let holder = vec![
            (100, asks(lock, Attempt::Waits)),
            (100, Event::Acquired),
            (90_000, Event::Release { lock }),
            (90_000, Event::Released),
        ];
        let mut tries = Vec::new();
        for at in [20_000, 40_000, 60_000] {
            tries.push((at, asks(lock, Attempt::Once)));
            tries.push((at + 100, Event::Refused));
            tries.push((at + 200, Event::Sleep { timed: true }));
            tries.push((at + 19_000, Event::Slept));
        }
        let mut got = tries.clone();
        got.push((95_000, asks(lock, Attempt::Once)));
        got.push((95_100, Event::Acquired));
        let survey = of_threads(&[holder.clone(), got]);
        assert_eq!(
            (survey.threads[1].waited, survey.threads[1].spun),
            (56_400, 18_700)
        );
        assert_eq!(survey.threads[1].idle, 0);
        assert_eq!(survey.locks[0].tally.contended, 1);
        let windows = survey.windows.iter();
        assert!(windows.clone().map(|window| window.spun).sum::<u64>() > 18_000);
        assert!(windows.map(|window| window.idle).sum::<u64>() < 20_000);
        // Who does something else then did not wait for it.
        tries.push((95_000, asks(0x200, Attempt::Waits)));
        tries.push((95_000, Event::Acquired));
        let survey = of_threads(&[holder, tries]);
        assert_eq!(survey.threads[1].waited, 0);
    }

    #[test]
    fn a_waker_that_lost_its_cpu_was_ready() {
        let survey = of_one(900, 700_000);
        assert_eq!(
            (survey.threads[0].woke, survey.threads[0].ready),
            (100_000, 600_000)
        );
    }

    #[test]
    fn waits_that_no_record_explains_are_not_known() {
        let switches = |voluntary, involuntary| Event::Switches {
            voluntary,
            involuntary,
            ran_ns: 1000,
            took: 400,
        };
        let of = |voluntary, involuntary| {
            let records = vec![
                (100, switches(0, 0)),
                (500_100, switches(voluntary, involuntary)),
            ];
            of_threads(&[records]).threads[0]
        };
        let unknown = of(7, 2);
        assert_eq!((unknown.unknown, unknown.unknown_waits), (500_000, 7));
        let preempted = of(0, 2);
        assert_eq!((preempted.ready, preempted.unknown), (500_000, 0));
    }

    #[test]
    fn a_lock_that_processes_share_is_one_lock_in_a_fork() {
        let locks = |kind, forked| {
            let survey = of_two(kind, forked);
            let contended = survey.locks.iter().map(|lock| lock.tally.contended);
            (survey.locks.len(), contended.sum::<u64>())
        };
        assert_eq!(locks(LockKind::SHARED, true), (1, 1));
        assert_eq!(locks(LockKind::SHARED, false), (2, 0));
        assert_eq!(locks(LockKind::default(), true), (2, 0));
    }
}
