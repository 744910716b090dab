//! Waits for the kernel's own locks, by its contention events: which lock, of which kind,
//! taken by whom.

use crate::recording::{Event, Events, Happened, WINDOWS};
use locklab_document::contention_profile::Times;
use locklab_trace::{KernelWaits, PerfEvent, Point, kernel_caller, kernel_waits_of};
use std::collections::{BTreeMap, BTreeSet};

/// Waits of one caller for one kind of lock.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CallerWaits {
    pub(crate) waits: u64,
    pub(crate) waited: u64,
    pub(crate) longest: u64,
    pub(crate) locks: BTreeSet<u64>,
}

/// Describes what a recording of the kernel says.
#[derive(Clone, Debug, Default)]
pub(crate) struct KernelUse {
    /// The waits by caller and kind, the most waited for first.
    pub(crate) callers: Vec<((String, &'static str), CallerWaits)>,
    pub(crate) waits: u64,
    pub(crate) waited: u64,
    /// Ends without a begin.
    pub(crate) unmatched: usize,
    /// Waiting in each part of the time, of all CPU time.
    pub(crate) windows: Vec<Times>,
}

/// The flags of the kernel's contention events.
const FLAGS: [(u32, &str); 6] = [
    (1, "SPIN"),
    (2, "READ"),
    (4, "WRITE"),
    (8, "RT"),
    (16, "PERCPU"),
    (32, "MUTEX"),
];

fn words(flags: u32) -> String {
    let set = FLAGS.iter().filter(|(flag, _)| flags & flag != 0);
    set.map(|(_, word)| *word).collect::<Vec<_>>().join("|")
}

/// Returns the kind of a lock, as `perf lock` calls it.
pub(crate) fn kind(words: &str) -> &'static str {
    let has = |word: &str| words.split('|').any(|flag| flag == word);
    match (has("SPIN"), has("READ"), has("WRITE")) {
        _ if has("MUTEX") => "mutex",
        (_, true, _) if has("PERCPU") => "pcpu-sem:R",
        (_, _, true) if has("PERCPU") => "pcpu-sem:W",
        (_, true, _) if has("RT") => "rwlock-rt:R",
        (_, _, true) if has("RT") => "rwlock-rt:W",
        _ if has("RT") => "rt-mutex",
        (true, true, _) => "rwlock:R",
        (true, _, true) => "rwlock:W",
        (true, false, false) => "spinlock",
        (false, true, _) => "rwsem:R",
        (false, _, true) => "rwsem:W",
        (false, false, false) => "semaphore",
    }
}

/// Returns the waits of a recording, paired.
pub(crate) fn paired(events: &Events) -> KernelWaits {
    let flags: Vec<String> = (0..64).map(words).collect();
    let read = events
        .events
        .iter()
        .enumerate()
        .filter_map(|(number, event)| {
            let Event(at, thread, happened) = event;
            let (point, lock, flags, calls) = match *happened {
                Happened::Contended(lock, set, stack) => {
                    let calls = events.calls(stack).map(|function| (1, function.0.as_str()));
                    let words = flags.get(set as usize).map_or("", String::as_str);
                    (Point::ContentionBegin, lock, words, calls.collect())
                }
                Happened::Uncontended(lock, got) => {
                    (Point::ContentionEnd { got }, lock, "", Vec::new())
                }
                _ => return None,
            };
            Some(PerfEvent {
                line: number,
                task: events.threads[*thread as usize].task.into(),
                cpu: 0,
                nanoseconds: *at,
                point,
                lock,
                shared: flags.contains("READ"),
                name: flags,
                calls,
            })
        });
    kernel_waits_of(&read.collect::<Vec<_>>())
}

/// Reads a recording of the kernel.
pub(crate) fn kernel_use(events: &Events) -> KernelUse {
    let paired = paired(events);
    let length = events.head.length.max(1);
    let width = (length / WINDOWS as u64).max(1);
    let cpus = events.head.cpus as u64;
    let window = Times {
        lived_ns: (width * cpus) as f64,
        ..Times::default()
    };
    let mut windows = vec![window; WINDOWS];
    let mut callers: BTreeMap<(String, &'static str), CallerWaits> = BTreeMap::new();
    let mut found = KernelUse {
        unmatched: paired.unmatched,
        ..KernelUse::default()
    };
    for wait in &paired.waits {
        let caller = kernel_caller(&wait.calls).unwrap_or("(caller unknown)");
        let used = callers
            .entry((caller.into(), kind(&wait.kind)))
            .or_default();
        used.waits += 1;
        used.waited += wait.nanoseconds;
        used.longest = used.longest.max(wait.nanoseconds);
        used.locks.insert(wait.lock);
        found.waits += 1;
        found.waited += wait.nanoseconds;
        let window = ((wait.began / width) as usize).min(WINDOWS - 1);
        windows[window].waited_ns += wait.nanoseconds as f64;
    }
    found.windows = windows;
    found.callers = callers.into_iter().collect();
    found
        .callers
        .sort_by(|a, b| b.1.waited.cmp(&a.1.waited).then(a.0.cmp(&b.0)));
    found
}
