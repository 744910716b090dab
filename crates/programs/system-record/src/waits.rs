//! Finds who waited for which lock, and what was done in that time, by a program's futex calls,
//! context switches and wake-ups.
//!
//! The kernel does not see who holds a lock. Who wakes a waiter has just released the lock,
//! so that thread is taken for the holder, back to when it took the lock itself at the
//! earliest that the events permit. Must never count a wait that no stack tells as a lock's.

use crate::lock_names::{Identity, Kind, Told, UNNAMED, plain, told, wraps};
use crate::recording::{Event, Events, Happened, WINDOWS};
use crate::semaphores::{Untold, words_as_locks};
use crate::shared_words::{SharedWords, Word};
use locklab_document::contention_profile::Times;
use std::collections::{BTreeMap, HashMap, HashSet};

/// The longest time from a wake-up to a CPU that is a part of waiting for a lock, in
/// nanoseconds: an idle CPU of a virtual machine takes less.
const WAKING: u64 = 100_000;

/// The longest sleep of who tries to take a lock again and again, and the longest time between
/// two of them, in nanoseconds.
const NAP: u64 = 10_000_000;
const TRY: u64 = 30_000;

/// Describes what a wait for a lock consisted of, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Parts {
    /// The holder had a CPU.
    pub(crate) working: u64,
    /// The holder had to wait for a CPU.
    pub(crate) preempted: u64,
    /// The holder slept, or waited for something else.
    pub(crate) asleep: u64,
    /// Others had the lock before the one that woke this thread.
    pub(crate) in_line: u64,
    /// Woken, and not yet on a CPU.
    pub(crate) waking: u64,
    /// The time in which it is not known who held the lock; with the way into the
    /// kernel and back.
    pub(crate) unknown: u64,
}

impl Parts {
    pub(crate) fn add(&mut self, other: &Self) {
        self.working += other.working;
        self.preempted += other.preempted;
        self.asleep += other.asleep;
        self.in_line += other.in_line;
        self.waking += other.waking;
        self.unknown += other.unknown;
    }

    pub(crate) fn sum(&self) -> u64 {
        self.working + self.preempted + self.asleep + self.in_line + self.waking + self.unknown
    }
}

/// Describes how often and for how long a lock was waited for, or at a call site.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Use {
    pub(crate) waits: u64,
    pub(crate) waited: u64,
    pub(crate) longest: u64,
    /// The CPU time in which it was spun for, by samples.
    pub(crate) spun: u64,
    pub(crate) parts: Parts,
}

/// A lock and its waiters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Lock {
    pub(crate) family: &'static str,
    pub(crate) process: u32,
    /// Says where its waiters wait, if that is one place.
    pub(crate) address: Option<u64>,
    pub(crate) all: Use,
    /// The uses by the name of the place that takes it.
    pub(crate) sites: BTreeMap<String, Use>,
}

impl Lock {
    /// Returns the place that takes it most, by its name.
    pub(crate) fn place(&self) -> &str {
        let most = self
            .sites
            .iter()
            .max_by_key(|(_, site)| site.waited + site.spun);
        most.map_or("(place unknown)", |(name, _)| name)
    }
}

/// Describes what a recording says.
#[derive(Clone, Debug, Default)]
pub(crate) struct Waits {
    /// The most waited for first.
    pub(crate) locks: Vec<Lock>,
    /// The time on a CPU.
    pub(crate) ran: u64,
    /// Ready to run, without a CPU; and the part of it that a wake-up for a lock began, of who
    /// was woken or of who woke.
    pub(crate) ready: u64,
    pub(crate) ready_by_locks: u64,
    /// Waiting for locks.
    pub(crate) waited: u64,
    /// Waking those that did.
    pub(crate) woke: u64,
    /// The time on a CPU in functions that wait for locks, by samples.
    pub(crate) spun: u64,
    /// Recording, which would count as work.
    pub(crate) recorder: u64,
    /// Whether threads yielded their CPUs.
    pub(crate) yields: bool,
    /// Waiting for conditions, barriers, and parked; and what no stack tells.
    pub(crate) conditions: u64,
    pub(crate) barriers: u64,
    pub(crate) parked: u64,
    /// Parked by a runtime, which parks those that wait for its locks alike.
    pub(crate) parked_or_locked: u64,
    pub(crate) untold: u64,
    /// Asleep for short times, again and again, as who tries to take a lock and sleeps may be.
    pub(crate) naps: u64,
    /// Asleep, or waiting for input and output.
    pub(crate) asleep: u64,
    /// Futex calls that waited; of these, with a stack that ends early, and without a name.
    pub(crate) calls: u64,
    pub(crate) early: u64,
    pub(crate) unnamed: u64,
    pub(crate) threads: usize,
    pub(crate) windows: Vec<Times>,
}

impl Waits {
    /// Returns the account of all threads; `conditions` says whether a condition may be a lock
    /// of the program's runtime.
    pub(crate) fn times(&self, conditions: bool) -> Times {
        let unsure = if conditions { self.conditions } else { 0 };
        let idle = self.conditions - unsure + self.barriers + self.parked + self.asleep;
        let unknown = unsure + self.parked_or_locked + self.untold + self.naps;
        Times {
            lived_ns: (self.ran + self.ready + self.waited + idle + unknown) as f64,
            idle_ns: idle as f64,
            ready_ns: self.ready as f64,
            ready_by_locks_ns: self.ready_by_locks as f64,
            unknown_ns: unknown as f64,
            recorder_ns: self.recorder as f64,
            waited_ns: self.waited as f64,
            spun_ns: self.spun.min(self.ran.saturating_sub(self.woke)) as f64,
            woke_ns: self.woke as f64,
        }
    }
}

/// Names what a thread does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Runs,
    /// It could run; whether a wake-up for a lock took or keeps it from a CPU.
    Ready(bool),
    Asleep,
    /// It waits for a lock; the number of the wait.
    Waits(usize),
    /// It is in a futex call for something else.
    Idle(Option<Kind>),
    /// It is not recorded, between windows.
    NotSeen,
}

/// A sleep for a time.
#[derive(Clone, Copy)]
struct Nap {
    stack: u32,
    from: u64,
    to: u64,
    /// Whether it is counted.
    counted: bool,
}

/// What a thread waits for in a futex call, while no window is recorded.
#[derive(Clone, Copy)]
enum Call {
    /// The lock and the site.
    Lock(usize, usize),
    Other(Option<Kind>),
}

#[derive(Clone, Copy, Debug)]
struct Span {
    from: u64,
    to: u64,
    state: State,
}

/// A wait for a lock while the recording is read.
struct Wait {
    lock: usize,
    site: usize,
    thread: usize,
    from: u64,
    to: u64,
    woken: Option<(u64, usize)>,
    came: Option<u64>,
}

struct Running {
    state: State,
    since: u64,
    spans: Vec<Span>,
    /// The time since which it wakes others, and whether one of them waited for a lock.
    wakes: Option<(u64, bool)>,
    /// The times at which it woke a waiter, and of which lock.
    released: Vec<(u64, usize)>,
    ended: bool,
    /// When it was recorded at work, and whether a lock was the reason.
    told: Option<(u64, bool)>,
    /// Where it sleeps for a time, and since when; and its last such sleep.
    sleeps: Option<(u32, u64)>,
    nap: Option<Nap>,
    /// Its last futex call that waits, and whether it was in it when the last window ended.
    call: Option<Call>,
    in_call: bool,
    /// Whether anything of it was recorded, and in this window.
    seen: bool,
    seen_now: bool,
}

/// Describes what is known of a stack.
#[derive(Clone)]
struct Place {
    kind: Option<Kind>,
    /// It parks by the standard library of Rust, as who made a lock of that does.
    parks: bool,
    /// The lock, or the semaphore: family, identity, number of the site.
    lock: Option<(&'static str, Identity, usize)>,
    /// It ends before a caller that is no part of locking.
    early: bool,
}

impl Place {
    /// Returns whether the waiters' behaviour has to tell what is waited for.
    fn untold(&self) -> Option<Untold> {
        match self.kind {
            Some(Kind::Semaphore) => Some(Untold::Semaphore),
            Some(Kind::Condition) => Some(Untold::Condition),
            Some(Kind::Park) if self.parks => Some(Untold::Parked),
            None => Some(Untold::Unnamed),
            _ => None,
        }
    }
}

struct Reading<'e> {
    events: &'e Events,
    threads: Vec<Running>,
    waits: Vec<Wait>,
    locks: Vec<Lock>,
    numbers: HashMap<(u32, Option<u64>, usize), usize>,
    sites: Vec<String>,
    places: Vec<Place>,
    /// The words that are one in several processes.
    shared: SharedWords,
    /// The semaphores, and words of the program's own, that are used as locks.
    as_locks: HashSet<Word>,
    /// Those that may be.
    may_be_locks: HashSet<Word>,
    /// The spans in which it was on a CPU, and yet not at work: waking, or spinning.
    woke: Vec<Span>,
    recorder: Vec<(Span, bool)>,
    /// With the process, and the number of the stack.
    spun: Vec<(Span, u32, u32)>,
    /// The time slept in short sleeps one after the other, by the stack and the thread.
    naps: HashMap<u32, HashMap<usize, u64>>,
    /// The time at which the window began.
    began: u64,
    found: Waits,
}

/// Reads a recording of a program.
pub(crate) fn waits(events: &Events) -> Waits {
    let mut reading = Reading {
        events,
        threads: events.threads.iter().map(|_| Running::new()).collect(),
        waits: Vec::new(),
        locks: Vec::new(),
        numbers: HashMap::new(),
        sites: Vec::new(),
        places: Vec::new(),
        shared: SharedWords::find(events),
        as_locks: HashSet::new(),
        may_be_locks: HashSet::new(),
        woke: Vec::new(),
        recorder: Vec::new(),
        spun: Vec::new(),
        naps: HashMap::new(),
        began: 0,
        found: Waits::default(),
    };
    reading.places();
    let untold = |stack: u32| reading.places[stack as usize].untold();
    let words = words_as_locks(events, &reading.shared, untold);
    [reading.as_locks, reading.may_be_locks] = words;
    let in_calls = come_out_of_calls(events);
    for (event, in_call) in events.events.iter().zip(in_calls) {
        reading.add(event, in_call);
    }
    reading.end()
}

/// Returns of each event whether the next of its thread is the end of a futex call.
fn come_out_of_calls(events: &Events) -> Vec<bool> {
    let mut next_ends = vec![false; events.threads.len()];
    let mut in_calls: Vec<bool> = events
        .events
        .iter()
        .rev()
        .map(|Event(_, thread, what)| {
            let ends = matches!(what, Happened::FutexEnded(_));
            std::mem::replace(&mut next_ends[*thread as usize], ends)
        })
        .collect();
    in_calls.reverse();
    in_calls
}

impl Running {
    fn new() -> Self {
        Self {
            state: State::Runs,
            since: 0,
            spans: Vec::new(),
            wakes: None,
            released: Vec::new(),
            ended: false,
            told: None,
            sleeps: None,
            nap: None,
            call: None,
            in_call: false,
            seen: false,
            seen_now: false,
        }
    }

    /// Takes note that a window begins. The thread's first event in it shows what it did
    /// until then.
    fn resumes(&mut self, at: u64) {
        if self.seen && !self.ended {
            self.becomes(State::Runs, at);
        }
        (self.state, self.since) = (State::Runs, at);
    }

    fn becomes(&mut self, state: State, at: u64) {
        if at > self.since {
            self.spans.push(Span {
                from: self.since,
                to: at,
                state: self.state,
            });
        }
        (self.state, self.since) = (state, at);
    }
}

impl Reading<'_> {
    /// Ends a thread's last span, if it lives.
    fn closes(&mut self, number: usize, next: State, at: u64) {
        let running = &self.threads[number];
        if !running.seen || running.ended {
            return;
        }
        if !running.seen_now && running.state != State::NotSeen {
            // A thread with a CPU is sampled.
            let in_call = running.in_call;
            self.sleeps_since(number, in_call);
        }
        let running = &mut self.threads[number];
        if let State::Waits(wait) = running.state {
            self.waits[wait].to = self.waits[wait].to.min(at);
        }
        running.becomes(next, at);
    }

    /// Takes note that a thread had no CPU since the window began; where it is in a futex call,
    /// that is the one that it was in before.
    fn sleeps_since(&mut self, number: usize, in_call: bool) {
        let running = &self.threads[number];
        let since = running.since;
        let state = match running.call.filter(|_| in_call) {
            Some(Call::Lock(lock, site)) => self.wait(number, lock, site, since),
            Some(Call::Other(kind)) => State::Idle(kind),
            None if in_call => State::Idle(None),
            None => State::Asleep,
        };
        self.threads[number].state = state;
    }

    /// Begins a wait for a lock.
    fn wait(&mut self, thread: usize, lock: usize, site: usize, from: u64) -> State {
        self.waits.push(Wait {
            lock,
            site,
            thread,
            from,
            to: u64::MAX,
            woken: None,
            came: None,
        });
        State::Waits(self.waits.len() - 1)
    }

    /// Returns what each stack says.
    fn places(&mut self) {
        let mut numbers: HashMap<String, usize> = HashMap::new();
        for (number, calls) in self.events.stacks.iter().enumerate() {
            let calls_of = || self.events.calls(number as u32);
            let told = told(calls_of().map(|function| function.0.as_str()));
            let mut early = false;
            let may_be =
                |told: &Told| matches!(told.kind, Kind::Lock | Kind::Semaphore | Kind::Spin);
            let lock = told.unwrap_or(UNNAMED);
            let lock = Some(lock).filter(may_be).map(|told| {
                let callers = calls_of().skip(told.depth);
                let taker = callers.clone().find(|function| !wraps(&function.0));
                early = told.kind == Kind::Lock && taker.is_none() && !calls.1;
                let taker = taker
                    .or_else(|| callers.last())
                    .or_else(|| calls_of().last());
                let name = taker.map_or_else(
                    || "(place unknown)".into(),
                    |function| {
                        let line = function
                            .1
                            .as_ref()
                            .map_or_else(String::new, |line| format!(" {line}"));
                        format!("{}{line} ({})", short(&function.0), function.2)
                    },
                );
                let next = numbers.len();
                let site = *numbers.entry(name.clone()).or_insert_with(|| {
                    self.sites.push(name);
                    next
                });
                (told.family, told.identity, site)
            });
            self.places.push(Place {
                kind: told.map(|told| told.kind),
                parks: told.is_some_and(|told| told.family == "Rust std"),
                lock,
                early: early || told.is_none() && !calls.1,
            });
        }
    }

    fn lock(
        &mut self,
        process: u32,
        address: u64,
        (family, identity, site): (&'static str, Identity, usize),
    ) -> usize {
        let (process, key) = match identity {
            Identity::Address => (process, (process, Some(address), usize::MAX)),
            Identity::Site => (process, (process, None, site)),
            Identity::SharedSite => (0, (0, None, site)),
        };
        let next = self.locks.len();
        *self.numbers.entry(key).or_insert_with(|| {
            self.locks.push(Lock {
                family,
                process,
                address: key.1,
                all: Use::default(),
                sites: BTreeMap::new(),
            });
            next
        })
    }

    fn add(&mut self, Event(at, thread, happened): &Event, in_call: bool) {
        let (at, number) = (*at, *thread as usize);
        if let Happened::Window(begins) = *happened {
            return self.window(begins, at);
        }
        let running = &mut self.threads[number];
        if let Some((from, for_lock)) = running.told.take() {
            let cost = self.events.head.record_ns.unwrap_or(0.0) as u64;
            let span = Span {
                from,
                to: at.min(from + cost),
                state: State::Runs,
            };
            self.recorder.push((span, for_lock));
        }
        if running.state == State::NotSeen {
            // Of a time between windows only begins and ends are recorded whole.
            running.seen |= *happened == Happened::Begun;
            running.ended |= *happened == Happened::Ended;
            return;
        }
        if !running.seen_now {
            (running.seen, running.seen_now) = (true, true);
            match happened {
                Happened::Came => self.sleeps_since(number, in_call),
                Happened::Begun => {
                    let thread = &self.events.threads[number];
                    // The first thread of a new image has the CPU of the old one.
                    running.state = match thread.task == thread.process {
                        true => State::Runs,
                        false => State::Ready(false),
                    };
                    running.since = at;
                }
                _ => {}
            }
        }
        let running = &mut self.threads[number];
        match *happened {
            // A program that replaces its own image has a CPU all the while.
            Happened::Begun => {}
            Happened::Ended => {
                running.becomes(State::Asleep, at);
                running.ended = true;
            }
            Happened::Came => match running.state {
                State::Waits(wait) => {
                    self.waits[wait].came = Some(at);
                    // Who is woken and has no CPU for long is ready: all CPUs have others.
                    if let Some((woken, _)) = self.waits[wait].woken
                        && woken.saturating_add(WAKING) < at
                    {
                        running.becomes(State::Ready(true), woken + WAKING);
                        running.becomes(State::Waits(wait), at);
                    }
                }
                State::Idle(_) => {}
                _ => {
                    if let Some((stack, from)) = running.sleeps.take() {
                        self.slept(number, stack, from, at);
                    }
                    let running = &mut self.threads[number];
                    running.becomes(State::Runs, at);
                    running.told = Some((at, false));
                }
            },
            // Who leaves a CPU had one, also where nobody saw that it came there.
            Happened::Left if matches!(running.state, State::Runs | State::Ready(_)) => {
                running.becomes(State::Asleep, at)
            }
            Happened::Preempted if running.state == State::Runs => {
                // Whom it woke for a lock has its CPU.
                let woke = running.released.last();
                let by_lock = woke.is_some_and(|(then, _)| then + WAKING > at);
                running.becomes(State::Ready(by_lock), at)
            }
            Happened::Left | Happened::Preempted => {}
            Happened::Waits(address, stack) => self.begins(number, at, address, stack),
            Happened::Sampled(stands_for, stack) => {
                let spins = matches!(
                    self.places[stack as usize].kind,
                    Some(Kind::Lock | Kind::Spin)
                );
                if matches!(running.state, State::Ready(_)) {
                    running.becomes(State::Runs, at);
                }
                running.told = Some((at, false));
                if spins && running.state == State::Runs && running.wakes.is_none() {
                    let mut calls = self.events.calls(stack);
                    self.found.yields |= calls.next().is_some_and(|f| f.0.contains("sched_yield"));
                    let span = Span {
                        from: at.saturating_sub(stands_for).max(self.began),
                        to: at,
                        state: State::Runs,
                    };
                    let process = self.events.threads[number].process;
                    self.spun.push((span, process, stack));
                }
            }
            Happened::Sleeps(stack) => running.sleeps = Some((stack, at)),
            Happened::Wakes(_) => running.wakes = Some((at, false)),
            Happened::FutexEnded(_) => {
                if let Some((since, wanted)) = running.wakes.take() {
                    running.told = Some((at, wanted));
                    if wanted {
                        self.woke.push(Span {
                            from: since,
                            to: at,
                            state: State::Runs,
                        });
                    }
                    return;
                }
                running.told = Some((at, matches!(running.state, State::Waits(_))));
                if let State::Waits(wait) = running.state {
                    self.waits[wait].to = at;
                }
                if matches!(running.state, State::Waits(_) | State::Idle(_)) {
                    running.becomes(State::Runs, at);
                }
            }
            Happened::Wakened(other) => self.wakens(number, other as usize, at),
            Happened::Contended(..) | Happened::Uncontended(..) | Happened::Window(_) => {}
        }
    }

    /// Takes note that a thread has slept for a time. Who sleeps for a short time, has a CPU for
    /// hardly longer than a try takes, and sleeps there again may wait for a lock.
    fn slept(&mut self, thread: usize, stack: u32, from: u64, to: u64) {
        let running = &mut self.threads[thread];
        let before = running.nap.take();
        let mut nap = Nap {
            stack,
            from,
            to,
            counted: false,
        };
        if to - from > NAP {
            return;
        }
        if let Some(before) = before.filter(|b| b.stack == stack && from - b.to < TRY) {
            let of_site = self.naps.entry(stack).or_default();
            let first = match before.counted {
                true => 0,
                false => before.to - before.from,
            };
            *of_site.entry(thread).or_default() += first + to - from;
            nap.counted = true;
        }
        running.nap = Some(nap);
    }

    /// Begins a window, or ends it: what was waited for then is not known any more.
    fn window(&mut self, begins: bool, at: u64) {
        if begins {
            self.began = at;
            self.threads
                .iter_mut()
                .for_each(|running| running.resumes(at));
            return;
        }
        for number in 0..self.threads.len() {
            let running = &mut self.threads[number];
            if running.seen_now {
                running.in_call = matches!(running.state, State::Waits(_) | State::Idle(_));
            }
            self.closes(number, State::NotSeen, at);
            let running = &mut self.threads[number];
            (running.wakes, running.sleeps, running.nap) = (None, None, None);
            (running.state, running.seen_now) = (State::NotSeen, false);
        }
    }

    fn begins(&mut self, number: usize, at: u64, address: u64, stack: u32) {
        let place = self.places[stack as usize].clone();
        self.found.calls += 1;
        self.found.early += u64::from(place.early);
        let process = self.events.threads[number].process;
        let (process, address) = self.shared.of((process, address));
        let is_lock = place.untold().is_none() || self.as_locks.contains(&(process, address));
        self.found.unnamed += u64::from(place.kind.is_none() && !is_lock);
        let call;
        let state = match place.lock.filter(|_| is_lock) {
            Some(lock) => {
                let site = lock.2;
                let lock = self.lock(process, address, lock);
                call = Call::Lock(lock, site);
                self.wait(number, lock, site, at)
            }
            None => {
                let may_be = self.may_be_locks.contains(&(process, address));
                let kind = place.kind.filter(|_| !may_be);
                call = Call::Other(kind);
                State::Idle(kind)
            }
        };
        self.threads[number].call = Some(call);
        self.threads[number].becomes(state, at);
    }

    fn wakens(&mut self, waker: usize, other: usize, at: u64) {
        match self.threads[other].state {
            State::Waits(wait) => {
                self.waits[wait].woken = Some((at, waker));
                let lock = self.waits[wait].lock;
                let waker = &mut self.threads[waker];
                waker.released.push((at, lock));
                if let Some((_, wanted)) = &mut waker.wakes {
                    *wanted = true;
                }
            }
            State::Asleep => {
                let other = &mut self.threads[other];
                if !other.ended && other.seen {
                    other.becomes(State::Ready(false), at);
                }
            }
            _ => {}
        }
    }

    fn end(mut self) -> Waits {
        let length = self.events.head.length;
        let last = self.events.events.last().map_or(0, |event| event.0);
        // Of a file that is cut off only the first part is known.
        let end = if self.events.cut {
            last
        } else {
            length.max(last)
        };
        for number in 0..self.threads.len() {
            self.closes(number, State::Asleep, end);
        }
        for wait in &mut self.waits {
            wait.to = wait.to.min(end);
        }
        self.count(end);
        for number in 0..self.waits.len() {
            let parts = self.parts(number);
            let wait = &self.waits[number];
            let waited = wait.to.saturating_sub(wait.from);
            let lock = &mut self.locks[wait.lock];
            let site = lock.sites.entry(self.sites[wait.site].clone()).or_default();
            for used in [&mut lock.all, site] {
                used.waits += 1;
                used.waited += waited;
                used.longest = used.longest.max(waited);
                used.parts.add(&parts);
            }
        }
        for (span, process, stack) in std::mem::take(&mut self.spun) {
            self.spun_for(process, stack, span.to - span.from);
        }
        self.found.locks = self.locks;
        let heat = |lock: &Lock| lock.all.waited + lock.all.spun;
        self.found.locks.sort_by(|a, b| {
            let key = |lock: &Lock| (lock.process, lock.address);
            heat(b).cmp(&heat(a)).then(key(a).cmp(&key(b)))
        });
        self.found
    }

    /// Adds the time that a thread spun to the lock that is taken at the same place, or to
    /// one of that place.
    fn spun_for(&mut self, process: u32, stack: u32, spun: u64) {
        let Some((family, identity, site)) = self.places[stack as usize].lock else {
            return;
        };
        let process = match identity {
            Identity::SharedSite => 0,
            Identity::Address | Identity::Site => process,
        };
        let name = &self.sites[site];
        let known = self
            .locks
            .iter()
            .position(|lock| lock.process == process && lock.sites.contains_key(name));
        let number = known.unwrap_or_else(|| {
            self.locks.push(Lock {
                family,
                process,
                address: None,
                all: Use::default(),
                sites: BTreeMap::new(),
            });
            self.locks.len() - 1
        });
        let lock = &mut self.locks[number];
        lock.all.spun += spun;
        lock.sites.entry(name.clone()).or_default().spun += spun;
    }

    /// Adds up what threads did, in all and in each window.
    fn count(&mut self, end: u64) {
        let mut windows = vec![Times::default(); WINDOWS];
        let found = &mut self.found;
        let mut add = |span: &Span, of: fn(&mut Times) -> &mut f64| {
            let width = (end / WINDOWS as u64).max(1);
            let mut from = span.from;
            while from < span.to {
                let window = ((from / width) as usize).min(WINDOWS - 1);
                let until = match window + 1 == WINDOWS {
                    true => span.to,
                    false => span.to.min((window as u64 + 1) * width),
                };
                *of(&mut windows[window]) += (until - from) as f64;
                from = until;
            }
        };
        for running in self.threads.iter().filter(|running| running.seen) {
            found.threads += 1;
            for span in &running.spans {
                let length = span.to - span.from;
                if matches!(span.state, State::Runs | State::Waits(_)) {
                    add(span, |times| &mut times.lived_ns);
                }
                *match span.state {
                    State::Runs => &mut found.ran,
                    State::Ready(by_lock) => {
                        add(span, |times| &mut times.lived_ns);
                        add(span, |times| &mut times.ready_ns);
                        if by_lock {
                            add(span, |times| &mut times.ready_by_locks_ns);
                            found.ready_by_locks += length;
                        }
                        &mut found.ready
                    }
                    State::Waits(_) => {
                        add(span, |times| &mut times.waited_ns);
                        &mut found.waited
                    }
                    State::Asleep => &mut found.asleep,
                    State::Idle(Some(Kind::Condition | Kind::Semaphore)) => &mut found.conditions,
                    State::Idle(Some(Kind::Barrier)) => &mut found.barriers,
                    State::Idle(Some(Kind::Park)) => &mut found.parked,
                    State::Idle(Some(Kind::ParkOrLock)) => &mut found.parked_or_locked,
                    State::Idle(_) => &mut found.untold,
                    State::NotSeen => continue,
                } += length;
            }
        }
        // One thread that sleeps again and again waits for nobody that does the same.
        let naps = self.naps.values().filter(|threads| threads.len() > 1);
        found.naps = naps.flat_map(HashMap::values).sum();
        found.asleep = found.asleep.saturating_sub(found.naps);
        // They ran meanwhile, so that it is in the time with work already.
        for span in &self.woke {
            add(span, |times| &mut times.woke_ns);
            found.woke += span.to - span.from;
        }
        for (span, for_lock) in &self.recorder {
            let length = span.to - span.from;
            if *for_lock {
                // Without the recorder it would have been a part of taking the lock.
                add(span, |times| &mut times.waited_ns);
                found.waited += length;
                found.ran = found.ran.saturating_sub(length);
            } else {
                add(span, |times| &mut times.recorder_ns);
                found.recorder += length;
            }
        }
        for (span, ..) in &self.spun {
            add(span, |times| &mut times.spun_ns);
            found.spun += span.to - span.from;
        }
        found.windows = windows;
    }

    /// Returns what a wait consisted of.
    fn parts(&self, number: usize) -> Parts {
        let wait = &self.waits[number];
        let mut parts = Parts::default();
        let all = wait.to.saturating_sub(wait.from);
        let Some((woken, holder)) = wait
            .woken
            .filter(|(at, _)| (wait.from..=wait.to).contains(at))
        else {
            parts.unknown = all;
            return parts;
        };
        parts.waking = wait.came.unwrap_or(wait.to).clamp(woken, wait.to) - woken;
        let holder = &self.threads[holder];
        // Its hold is later than its last release of this lock.
        let released = &holder.released;
        let behind = released.partition_point(|(at, _)| *at < woken);
        let earlier = released[..behind]
            .iter()
            .rev()
            .find(|(_, lock)| *lock == wait.lock);
        let mut since = earlier.map_or(0, |(at, _)| *at).max(wait.from);
        let first = holder.spans.partition_point(|span| span.to <= since);
        let spans = &holder.spans[first..];
        let within = spans.iter().take_while(|span| span.from < woken);
        // And than its own wait for it.
        for span in within.clone() {
            if let State::Waits(other) = span.state
                && self.waits[other].lock == wait.lock
                && self.waits[other].thread != wait.thread
            {
                since = since.max(span.to.min(woken));
            }
        }
        parts.in_line = since - wait.from;
        for span in within {
            let length = span.to.min(woken).saturating_sub(span.from.max(since));
            *match span.state {
                State::Runs => &mut parts.working,
                State::Ready(_) => &mut parts.preempted,
                State::Asleep | State::Waits(_) | State::Idle(_) => &mut parts.asleep,
                State::NotSeen => continue,
            } += length;
        }
        let known = parts.sum();
        parts.unknown = all.saturating_sub(known);
        parts
    }
}

/// Returns a function's name without its arguments, and no longer than a line.
fn short(function: &str) -> String {
    plain(function).chars().take(60).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lock_names::SPINS;
    use crate::recording::{Calls, Function, Head, Source, Thread};

    /// Returns the recording of two threads: a stack that takes a lock of Rust and one
    /// that waits for a condition.
    fn recording(events: Vec<(u64, u32, Happened)>, length: u64) -> Events {
        let function = |name: &str| Function(name.into(), None, "program".into());
        let thread = |task| Thread {
            process: 1,
            task,
            name: String::new(),
        };
        Events {
            head: Head {
                length,
                ..Head::new(Source::System, "program", "machine, 2 CPUs", 2)
            },
            threads: vec![thread(1), thread(2)],
            functions: vec![
                function("syscall"),
                function("<std::sys::sync::mutex::futex::Mutex>::lock_contended"),
                function("work"),
                function("std::sync::Condvar::wait"),
            ],
            stacks: vec![Calls(vec![0, 1, 2], true), Calls(vec![0, 3, 2], true)],
            events: events
                .into_iter()
                .map(|(at, thread, what)| Event(at, thread, what))
                .collect(),
            cut: false,
        }
    }

    #[test]
    fn a_wait_is_what_its_holder_did_and_the_way_to_a_cpu() {
        use Happened::*;
        let found = waits(&recording(
            vec![
                (100, 1, Waits(64, 0)),
                (110, 1, Left),
                (200, 0, Preempted),
                (300, 0, Came),
                (400, 0, Wakes(64)),
                (410, 0, Wakened(1)),
                (420, 0, FutexEnded(1)),
                (450, 1, Came),
                (460, 1, FutexEnded(0)),
            ],
            1000,
        ));
        let [lock] = &found.locks[..] else {
            panic!("{found:?}")
        };
        assert_eq!(lock.place(), "work (program)");
        assert_eq!((lock.all.waits, lock.all.waited), (1, 360));
        assert_eq!(
            lock.all.parts,
            Parts {
                working: 210,
                preempted: 100,
                waking: 40,
                unknown: 10,
                ..Parts::default()
            }
        );
        assert_eq!((found.waited, found.woke, found.ready), (360, 20, 100));
        let times = found.times(false);
        assert_eq!((times.lived_ns, times.worked_ns()), (2000.0, 1520.0));
        let mut windows = Times::default();
        found.windows.iter().for_each(|window| windows.add(window));
        assert_eq!((windows.lost_ns(), windows.busy_ns()), (380.0, 1900.0));
    }

    /// The second thread waits for a lock as the first window ends.
    #[test]
    fn who_waits_as_a_window_ends_still_waits_where_the_next_shows_no_other_call() {
        use Happened::*;
        let of = |later: &[(u64, u32, Happened)]| {
            let first = [
                (50, 0, Preempted),
                (60, 0, Came),
                (100, 1, Waits(64, 0)),
                (110, 1, Left),
                (200, 0, Window(false)),
                (300, 1, Begun),
                (600, 0, Window(true)),
                (700, 0, Left),
                (800, 0, Came),
            ];
            let events = recording([&first[..], later].concat(), 1000);
            let windows = events.windows().unwrap();
            assert_eq!((windows.count, windows.share), (2, 0.6));
            waits(&events)
        };
        let waits = of(&[(900, 1, Came), (910, 1, FutexEnded(0))]);
        assert_eq!((waits.waited, waits.asleep), (410, 100));
        assert_eq!((waits.times(false).busy_ns(), waits.ready), (1090.0, 10));
        assert_eq!(waits.locks[0].all.longest, 310);
        // It comes out of no futex call.
        let slept = of(&[(900, 1, Came), (910, 1, Left)]);
        assert_eq!((slept.waited, slept.asleep), (100, 490));
        // Of whom nothing is recorded in a window had no CPU in it: it would be sampled.
        let still = of(&[]);
        assert_eq!((still.waited, still.asleep), (500, 100));
        assert_eq!(still.times(false).busy_ns(), 1090.0);
    }

    #[test]
    fn who_is_woken_and_has_no_cpu_for_long_is_ready() {
        use Happened::*;
        let found = waits(&recording(
            vec![
                (100, 1, Waits(64, 0)),
                (110, 1, Left),
                (1000, 0, Wakened(1)),
                (3_001_000, 1, Came),
                (3_001_100, 1, FutexEnded(0)),
            ],
            4_000_000,
        ));
        assert_eq!((found.waited, found.ready), (101_000, 2_900_000));
        assert_eq!(found.locks[0].all.parts.waking, 3_000_000);
    }

    /// A waiter has no CPU when it is woken, and who woke it loses its own to it: with a lock
    /// that wakes nobody, neither would be.
    #[test]
    fn who_has_no_cpu_because_of_a_wake_up_for_a_lock_is_told_from_others() {
        use Happened::*;
        let found = waits(&recording(
            vec![
                (100, 1, Waits(64, 0)),
                (110, 1, Left),
                (1000, 0, Wakes(64)),
                (1010, 0, Wakened(1)),
                (1020, 0, FutexEnded(1)),
                (2000, 0, Preempted),
                (502_000, 0, Came),
                (1_000_000, 0, Preempted),
                (3_001_010, 1, Came),
                (3_001_100, 1, FutexEnded(0)),
            ],
            4_000_000,
        ));
        let by_locks = 2_900_000 + 500_000;
        assert_eq!(found.ready_by_locks, by_locks);
        assert_eq!(found.ready, by_locks + 3_000_000);
        let mut windows = Times::default();
        found.windows.iter().for_each(|window| windows.add(window));
        assert_eq!(windows.ready_by_locks_ns, by_locks as f64);
    }

    /// Two threads try a lock and sleep, or one of them does.
    #[test]
    fn threads_that_sleep_again_and_again_may_wait_for_a_lock() {
        use Happened::*;
        let of = |threads: u32, between: u64| {
            let mut events = Vec::new();
            for turn in 0..10 {
                for thread in 0..threads {
                    let at = turn * (50_000 + between) + u64::from(thread);
                    events.push((at, thread, Sleeps(1)));
                    events.push((at + 10, thread, Left));
                    events.push((at + 50_000, thread, Came));
                }
            }
            events.sort_by_key(|event| event.0);
            waits(&recording(events, 2_000_000)).naps
        };
        assert_eq!(of(2, 5_000), 2 * 10 * 50_000);
        assert_eq!((of(1, 5_000), of(2, 100_000)), (0, 0));
    }

    #[test]
    fn a_thread_that_waits_for_a_condition_or_sleeps_has_no_work() {
        use Happened::*;
        let found = waits(&recording(
            vec![
                (100, 1, Waits(64, 1)),
                (110, 1, Left),
                (200, 0, Left),
                (600, 0, Came),
                (700, 0, Wakened(1)),
                (710, 1, Came),
                (720, 1, FutexEnded(0)),
            ],
            1000,
        ));
        assert!(found.locks.is_empty(), "{found:?}");
        assert_eq!((found.conditions, found.asleep), (620, 400));
        assert_eq!(found.times(false).busy_ns(), 2000.0 - 620.0 - 400.0);
        // In a runtime whose locks are conditions it may have been a lock.
        assert_eq!(found.times(true).unknown_ns, 620.0);
    }

    /// Each waiter sleeps at an address of its own, in a process of its own.
    #[test]
    fn a_lock_in_shared_memory_is_one_lock_for_all_processes() {
        use Happened::*;
        let mut events = recording(
            vec![
                (100, 0, Waits(64, 0)),
                (300, 0, FutexEnded(0)),
                (400, 1, Waits(128, 0)),
                (700, 1, FutexEnded(0)),
            ],
            1000,
        );
        let locks = |events: &Events| waits(events).locks.len();
        events.threads[1].process = 2;
        assert_eq!(locks(&events), 2);
        events.functions[1].0 = "LWLockAcquire".into();
        assert_eq!(locks(&events), 1);
    }

    /// Stack 2 waits for a semaphore, which threads that wait for it post, or another does.
    #[test]
    fn a_semaphore_whose_waiters_post_it_is_a_lock() {
        use Happened::*;
        let turns = |posts: u32| -> Vec<(u64, u32, Happened)> {
            (0..20)
                .flat_map(|turn| {
                    let (at, waits) = (100 * turn, (turn % 2) as u32);
                    let wakes = match posts {
                        2 => 2,
                        _ => 1 - waits,
                    };
                    [
                        (at + 10, waits, Waits(64, 2)),
                        (at + 20, waits, Left),
                        (at + 60, wakes, Wakes(64)),
                        (at + 61, wakes, Wakened(waits)),
                        (at + 62, wakes, FutexEnded(1)),
                        (at + 65, waits, Came),
                        (at + 66, waits, FutexEnded(0)),
                    ]
                })
                .collect()
        };
        let of = |posts: u32, processes: bool| {
            let mut events = recording(turns(posts), 2000);
            if processes {
                events.threads[1].process = 2;
            }
            events.threads.push(Thread {
                process: 1,
                task: 3,
                name: String::new(),
            });
            let name = "__new_sem_wait_slow64.constprop.0";
            events
                .functions
                .push(Function(name.into(), None, "libc".into()));
            events.stacks.push(Calls(vec![4, 2], true));
            waits(&events)
        };
        // Also where each thread is a process, as of Python's multiprocessing.
        for processes in [false, true] {
            let lock = of(1, processes);
            assert_eq!((lock.waited, lock.conditions), (20 * 56, 0));
            assert_eq!(lock.locks.len(), 1);
            assert_eq!(lock.locks[0].place(), "work (program)");
        }
        // Who posts may have the lock again each time, before any other.
        let queue = of(2, false);
        assert_eq!((queue.waited, queue.untold), (0, 20 * 56));
    }

    /// No function of stack 2 is known. Two threads hand a word to each other, or wait at it
    /// for several rounds before they wake.
    #[test]
    fn a_word_without_a_name_that_is_given_back_is_a_lock() {
        use Happened::*;
        let of = |rounds: u64| {
            let mut events = Vec::new();
            for turn in 0..20 * rounds {
                let (at, thread) = (100 * turn, (turn / rounds % 2) as u32);
                events.push((at, thread, Waits(64, 2)));
                events.push((at + 40, thread, FutexEnded(0)));
                if turn % rounds == rounds - 1 {
                    events.push((at + 50, thread, Wakes(64)));
                    events.push((at + 52, thread, FutexEnded(1)));
                }
            }
            let mut events = recording(events, 2000 * rounds);
            events.stacks.push(Calls(vec![0, 2], true));
            waits(&events)
        };
        let lock = of(1);
        assert_eq!((lock.locks.len(), lock.unnamed), (1, 0));
        assert_eq!(lock.locks[0].place(), "work (program)");
        let event = of(4);
        assert_eq!((event.locks.len(), event.unnamed), (0, 80));
    }

    #[test]
    fn a_holder_that_waited_in_line_held_nothing_before() {
        use Happened::*;
        let found = waits(&recording(
            vec![
                (100, 1, Waits(64, 0)),
                (150, 0, Waits(64, 0)),
                (300, 0, FutexEnded(0)),
                (400, 0, Wakened(1)),
                (400, 1, Came),
                (400, 1, FutexEnded(0)),
            ],
            500,
        ));
        let parts = found.locks[0].all.parts;
        // The other's own wait is of unknown holders.
        assert_eq!((parts.in_line, parts.working), (200, 100));
        assert_eq!(parts.unknown, 150);
    }

    #[test]
    fn samples_in_a_lock_are_spinning() {
        let found = waits(&recording(
            vec![
                (400, 0, Happened::Sampled(100, 0)),
                (600, 0, Happened::Sampled(100, 1)),
            ],
            1000,
        ));
        assert_eq!((found.spun, found.waited), (100, 0));
        let [lock] = &found.locks[..] else {
            panic!("{found:?}")
        };
        assert_eq!((lock.place(), lock.all.spun), ("work (program)", 100));
    }

    /// A loop that only waits was found at the innermost call of stack 2, and stack 3 yields.
    #[test]
    fn spinning_of_the_programs_own_has_rows_and_is_in_the_account() {
        let mut events = recording(
            vec![
                (200, 0, Happened::Sampled(100, 2)),
                (400, 1, Happened::Sampled(100, 3)),
                (600, 1, Happened::Sampled(100, 1)),
            ],
            1000,
        );
        for name in [SPINS, "my_spin_lock", "sched_yield"] {
            let function = Function(name.into(), None, "program".into());
            events.functions.push(function);
        }
        events.stacks.push(Calls(vec![4, 5, 2], true));
        events.stacks.push(Calls(vec![6, 2], true));
        let found = waits(&events);
        assert_eq!((found.times(false).spun_ns, found.yields), (200.0, true));
        let [lock] = &found.locks[..] else {
            panic!("{found:?}")
        };
        assert_eq!(
            (lock.family, lock.place()),
            ("own spinning", "work (program)")
        );
        assert_eq!((lock.all.spun, lock.all.waits), (200, 0));
    }

    /// The first thread of a program has a CPU when it begins, and sleeps from 100 on.
    #[test]
    fn a_thread_that_sleeps_is_not_ready_however_it_began() {
        use Happened::*;
        let mut events = recording(vec![(0, 0, Begun), (100, 0, Left)], 1000);
        events.threads[1].process = 9;
        let found = waits(&events);
        assert_eq!((found.ran, found.ready, found.asleep), (100, 0, 900));
    }
}
