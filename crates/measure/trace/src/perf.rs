//! A kernel's locks, from the text of its lock tracepoints, which `perf script`
//! writes or the kernel itself (tracefs): a recording of our format, or its waits
//! one by one.
//!
//! Begin and end of a wait are paired by thread and lock. An interrupt waits in
//! the name of the thread that it interrupts, and a sleeping lock for the
//! spinlock of its queue while it waits itself: what happens within another wait
//! of the thread is given to a thread that stands for its CPU.
//!
//! It must never invent a hold: where only waits were recorded, the recording
//! says so.

use crate::event::{Access, Attempt, Event, Frames, Payload};
use crate::header::{Header, MOST_BLOCKS, Source};
use crate::kernel_callers::is_locking;
use crate::perf_lines::{PerfError, PerfEvent, Point, read};
use crate::write::file;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

/// The name of each of the kernel's locks that stands for no lock: lockdep
/// checks their order like that of one.
const NO_LOCKS: [&str; 5] = [
    "rcu_read_lock",
    "rcu_read_lock_bh",
    "rcu_read_lock_sched",
    "rcu_callback",
    "rcu_tasks_trace",
];

/// Returns how many of the innermost calls are of the lock itself; of calls that all are,
/// none.
fn of_the_lock(calls: &[(u64, &str)]) -> usize {
    let caller = calls.iter().position(|(_, symbol)| !is_locking(symbol));
    caller.unwrap_or(0)
}

/// A wait of a thread for a lock of the kernel, from begin to end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelWait {
    /// The task that waited.
    pub task: u64,
    /// The time at which it began, in nanoseconds of the recording's clock.
    pub began: u64,
    /// The address of the lock.
    pub lock: u64,
    /// Holds what the kernel says of the lock: `SPIN`, `MUTEX`, `READ|PERCPU`; empty for
    /// a semaphore.
    pub kind: String,
    /// Says how long it waited.
    pub nanoseconds: u64,
    /// The calls that led there, innermost first, without offsets.
    pub calls: Vec<String>,
}

/// The waits of a text, those that have a begin and an end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelWaits {
    /// The waits in the order of their ends.
    pub waits: Vec<KernelWait>,
    /// Ends of waits without a begin.
    pub unmatched: usize,
}

/// Returns the waits for locks in a text of `perf script` or of tracefs, paired by thread
/// and lock. A text without events has none.
///
/// # Errors
/// [`PerfError`] with the number of the line, if one is no line of such a text.
pub fn kernel_waits(text: &str) -> Result<KernelWaits, PerfError> {
    Ok(kernel_waits_of(&read(text)?))
}

/// Returns the waits for locks in events that were read otherwise, paired by thread and lock.
#[must_use]
pub fn kernel_waits_of(events: &[PerfEvent<'_>]) -> KernelWaits {
    let reading = Reading::of(events, &[]);
    KernelWaits {
        waits: reading.waits,
        unmatched: reading.unmatched.1,
    }
}

/// Returns the bytes of a recording made of a text of `perf script` or of tracefs, and what
/// of the text is not in it. `name` is that of the text.
///
/// # Errors
/// [`PerfError`] if the text is none of these, or has no lock event.
pub fn recording_of_perf(text: &str, name: &Path) -> Result<(Vec<u8>, Option<String>), PerfError> {
    recording(&read(text)?, name)
}

/// A thread of the recording: one of the kernel's, or what runs within its waits
/// on a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Lane {
    /// The task and, for that which idles, of which there is one for each CPU,
    /// the CPU.
    Task(u64, u64),
    Cpu(u64),
}

/// A wait, or an acquisition, that has begun.
struct Begun {
    lane: Lane,
    event: usize,
    /// The time at which lockdep said that the lock was held by another.
    contended: Option<u64>,
}

struct Reading<'e, 'a> {
    events: &'e [PerfEvent<'a>],
    waits: Vec<KernelWait>,
    lanes: BTreeMap<Lane, Vec<(u64, Event<'e>)>>,
    /// Holds what each task asks for, outermost first.
    asks: HashMap<Lane, Vec<Begun>>,
    /// The lane of what each task holds.
    holds: HashMap<(Lane, u64), Vec<Lane>>,
    stacks: HashMap<(Lane, Vec<u64>), u64>,
    /// Locks whose names are written.
    named: HashSet<u64>,
    /// Frames of each event as they are written.
    frames: &'e [Vec<[u8; 8]>],
    /// Ends of waits without a begin: the line of the first, and how many.
    unmatched: (usize, usize),
}

/// Returns the bytes of the recording, and what of the text is not in it.
fn recording(
    events: &[PerfEvent<'_>],
    text: &Path,
) -> Result<(Vec<u8>, Option<String>), PerfError> {
    if events.is_empty() {
        return Err(PerfError(
            "it has no event of a lock; 'perf lock record' or 'perf record -e lock:* -a' records \
             them"
                .into(),
        ));
    }
    let frames: Vec<Vec<[u8; 8]>> = events
        .iter()
        .map(|event| {
            event
                .calls
                .iter()
                .map(|call| call.0.to_le_bytes())
                .collect()
        })
        .collect();
    let mut reading = Reading::of(events, &frames);
    reading.pending();
    if reading.lanes.is_empty() {
        let (line, _) = reading.unmatched;
        return Err(PerfError(format!(
            "no wait in it has a begin and an end; the end in line {line} has no begin"
        )));
    }
    let source = match events.iter().all(is_wait) {
        true => Source::KernelWaits,
        false => Source::KernelLocks,
    };
    let unmatched = reading.unmatched;
    let missed = (unmatched.1 > 0).then(|| {
        format!(
            "{} whose begin is missing {} left out, the first in line {} of {}. perf may have lost \
             events.",
            match unmatched.1 {
                1 => "1 wait".to_owned(),
                waits => format!("{waits} waits"),
            },
            if unmatched.1 == 1 { "was" } else { "were" },
            unmatched.0,
            text.display()
        )
    });
    let full = || PerfError("it has more events than a recording can hold".into());
    let bytes = reading.file(source, text).ok_or_else(full)?;
    Ok((bytes, missed))
}

fn is_wait(event: &PerfEvent<'_>) -> bool {
    matches!(
        event.point,
        Point::ContentionBegin | Point::ContentionEnd { .. }
    )
}

impl<'e, 'a> Reading<'e, 'a> {
    /// Returns the reading of all events; `frames` are those of each event as they are
    /// written, or empty where nothing is written.
    fn of(events: &'e [PerfEvent<'a>], frames: &'e [Vec<[u8; 8]>]) -> Self {
        let mut reading = Self {
            events,
            waits: Vec::new(),
            lanes: BTreeMap::new(),
            asks: HashMap::new(),
            holds: HashMap::new(),
            stacks: HashMap::new(),
            named: HashSet::new(),
            frames,
            unmatched: (0, 0),
        };
        let mut order: Vec<usize> = (0..events.len()).collect();
        // Events of several CPUs may be written out of their order.
        order.sort_by_key(|&event| events[event].nanoseconds);
        // Without them an acquisition is had when it is asked for.
        let acquired = events.iter().any(|event| event.point == Point::Acquired);
        let waits_only = events.iter().all(is_wait);
        for event in order {
            if waits_only == is_wait(&events[event]) {
                reading.add(event, acquired);
            }
        }
        reading
    }

    fn add(&mut self, number: usize, acquired: bool) {
        let event = &self.events[number];
        let task = Lane::Task(event.task, if event.task == 0 { event.cpu } else { 0 });
        let now = event.nanoseconds;
        match event.point {
            Point::ContentionBegin => self.begin(task, number),
            Point::ContentionEnd { got } => {
                if let Some(begun) = self.end(task, number) {
                    self.waited(&begun, now);
                    let lane = self.answered(&begun, now, got);
                    if got {
                        // How long it is held is not known.
                        let lock = event.lock;
                        self.put(lane, now, Event::Release { lock });
                        self.put(lane, now, Event::Released);
                    }
                }
            }
            Point::Acquire { .. }
                if NO_LOCKS.contains(&event.name) || event.name.starts_with('(') => {}
            Point::Acquire { tried } => {
                self.begin(task, number);
                if (tried || !acquired)
                    && let Some(begun) = self.end(task, number)
                {
                    let lane = self.answered(&begun, now, true);
                    self.holds.entry((task, event.lock)).or_default().push(lane);
                }
            }
            Point::Contended => self.found_held(task, number),
            Point::Acquired => {
                if let Some(begun) = self.end(task, number) {
                    let lane = self.answered(&begun, now, true);
                    self.holds.entry((task, event.lock)).or_default().push(lane);
                }
            }
            Point::Release => {
                let held = self.holds.get_mut(&(task, event.lock)).and_then(Vec::pop);
                match held {
                    Some(lane) => {
                        let lock = event.lock;
                        self.put(lane, now, Event::Release { lock });
                        self.put(lane, now, Event::Released);
                    }
                    // What lockdep checks as a lock and nobody waits for, or a
                    // hold from before the recording.
                    None => self.forget(task, event.lock),
                }
            }
        }
    }

    fn begin(&mut self, task: Lane, number: usize) {
        let event = &self.events[number];
        // A mutex begins again to wait when it spins no longer: it is one wait.
        if event.point == Point::ContentionBegin && self.waits_for(task, event.lock) {
            return;
        }
        self.forget(task, event.lock);
        let asks = self.asks.entry(task).or_default();
        let lane = match asks.is_empty() {
            true => task,
            false => Lane::Cpu(event.cpu),
        };
        asks.push(Begun {
            lane,
            event: number,
            contended: None,
        });
    }

    fn waits_for(&self, task: Lane, lock: u64) -> bool {
        let asks = self.asks.get(&task).map_or(&[][..], Vec::as_slice);
        let begins = asks.iter().map(|begun| &self.events[begun.event]);
        begins
            .filter(|event| event.point == Point::ContentionBegin)
            .any(|event| event.lock == lock)
    }

    /// Returns what a task asks for is held; who holds it may not have been recorded.
    fn found_held(&mut self, task: Lane, number: usize) {
        let event = &self.events[number];
        let events = self.events;
        let asks = self.asks.entry(task).or_default().iter_mut();
        let of_lock = |begun: &&mut Begun| events[begun.event].lock == event.lock;
        match asks.rev().find(of_lock) {
            Some(begun) => begun.contended = Some(event.nanoseconds),
            // The recording began between the two.
            None => {
                self.begin(task, number);
                if let Some(begun) = self.asks.get_mut(&task).and_then(|asks| asks.last_mut()) {
                    begun.contended = Some(event.nanoseconds);
                }
            }
        }
    }

    /// Forgets an older begin of this lock, whose end was lost.
    fn forget(&mut self, task: Lane, lock: u64) {
        let events = self.events;
        if let Some(asks) = self.asks.get_mut(&task) {
            asks.retain(|begun| events[begun.event].lock != lock);
        }
    }

    fn end(&mut self, task: Lane, number: usize) -> Option<Begun> {
        let event = &self.events[number];
        let asks = self.asks.entry(task).or_default();
        let place = asks
            .iter()
            .rposition(|begun| self.events[begun.event].lock == event.lock);
        match place {
            // Whatever began within it and has not ended was lost.
            Some(place) => asks.drain(place..).next(),
            None => {
                if self.unmatched.1 == 0 {
                    self.unmatched.0 = event.line;
                }
                self.unmatched.1 += 1;
                None
            }
        }
    }

    fn waited(&mut self, begun: &Begun, now: u64) {
        let event = &self.events[begun.event];
        let calls = event.calls.iter().map(|(_, symbol)| {
            let name = symbol.rsplit_once("+0x").map_or(*symbol, |(name, _)| name);
            name.to_owned()
        });
        self.waits.push(KernelWait {
            task: event.task,
            began: event.nanoseconds,
            lock: event.lock,
            kind: event.name.to_owned(),
            nanoseconds: now - event.nanoseconds,
            calls: calls.collect(),
        });
    }

    fn answered(&mut self, begun: &Begun, now: u64, got: bool) -> Lane {
        self.request(begun);
        let answer = match got {
            true => Event::Acquired,
            false => Event::Refused,
        };
        self.put(begun.lane, now, answer);
        begun.lane
    }

    fn request(&mut self, begun: &Begun) {
        let event = &self.events[begun.event];
        let (lane, since) = (begun.lane, begun.contended.unwrap_or(event.nanoseconds));
        let stack = self.stack(lane, begun.event);
        let access = Access {
            shared: event.shared,
            attempt: match begun.contended {
                Some(_) => Attempt::FoundHeld,
                None => Attempt::Waits,
            },
        };
        let lock = event.lock;
        self.name_lock(lane, event);
        self.put(
            lane,
            since,
            Event::Request {
                lock,
                stack,
                access,
            },
        );
    }

    /// Writes the name that lockdep has for a lock, as that of a file that lies where the
    /// lock is.
    fn name_lock(&mut self, lane: Lane, event: &PerfEvent<'e>) {
        let of_lockdep = !matches!(event.point, Point::ContentionBegin);
        if of_lockdep && !event.name.is_empty() && self.named.insert(event.lock) {
            let module = Event::Module {
                from: event.lock,
                to: event.lock.wrapping_add(1),
                offset: 0,
                path: Payload(event.name.as_bytes()),
            };
            self.put(lane, event.nanoseconds, module);
        }
    }

    /// Returns the number of the calls of an event, which is explained in its lane: those
    /// from the first that is not of the lock itself.
    fn stack(&mut self, lane: Lane, number: usize) -> u64 {
        let event = &self.events[number];
        let skipped = of_the_lock(&event.calls);
        let calls = &event.calls[skipped..];
        if calls.is_empty() {
            return 0;
        }
        let addresses = calls.iter().map(|call| call.0).collect();
        let next = self.stacks.len() as u64 + 1;
        if let Some(&stack) = self.stacks.get(&(lane, addresses)) {
            return stack;
        }
        let addresses: Vec<u64> = calls.iter().map(|call| call.0).collect();
        self.stacks.insert((lane, addresses), next);
        // Each symbol is a file of its own, at whose start it stands.
        for &(address, symbol) in calls {
            let (name, offset) = symbol.rsplit_once("+0x").unwrap_or((symbol, "0"));
            let offset = u64::from_str_radix(offset, 16).unwrap_or(0);
            let module = Event::Module {
                from: address.wrapping_sub(offset),
                to: address.wrapping_add(1),
                offset: 0,
                path: Payload(name.as_bytes()),
            };
            self.put(lane, event.nanoseconds, module);
        }
        if let Some(frames) = self.frames.get(number) {
            let explained = Event::Stack {
                number: next,
                frames: Frames(&frames[skipped..]),
            };
            self.put(lane, event.nanoseconds, explained);
        }
        next
    }

    fn put(&mut self, lane: Lane, at: u64, event: Event<'e>) {
        self.lanes.entry(lane).or_default().push((at, event));
    }

    /// Returns what has begun and not ended waits at the end of the recording.
    fn pending(&mut self) {
        let asks: Vec<Begun> = self.asks.drain().flat_map(|(_, asks)| asks).collect();
        for begun in asks
            .iter()
            .filter(|begun| self.events[begun.event].point == Point::ContentionBegin)
        {
            self.request(begun);
        }
    }

    fn file(self, source: Source, text: &Path) -> Option<Vec<u8>> {
        let times = self.events.iter().map(|event| event.nanoseconds);
        let (first, last) = (times.clone().min()?, times.max()?);
        let command = format!("kernel, from {}", text.display());
        let mut header = Header::new(1.0, first, MOST_BLOCKS, "as perf recorded", &command);
        header.clock = 1;
        header.source = source.number();
        let mut threads = Vec::new();
        for (lane, mut records) in self.lanes {
            // A request is known when it has been answered.
            records.sort_by_key(|(at, _)| *at);
            let task = match lane {
                Lane::Task(task, _) => task,
                Lane::Cpu(_) => 0,
            };
            let started = Event::Started { handle: task, task };
            let begins = records.first().map_or(first, |record| record.0);
            records.insert(0, (begins, started));
            threads.push(records);
        }
        header.threads = u32::try_from(threads.len()).ok()?.into();
        file(&header, &threads, last)
    }
}
