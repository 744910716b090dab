//! Finds which pairs of a mutex and a condition may be locks, by one pass that keeps
//! no record: in time linear in the recording, and in memory for a state of each
//! thread and pair.
//!
//! It must never leave out a pair that is a lock.

use crate::cpus::on_all_cpus;
use foldhash::{HashMap, HashMapExt as _, HashSet, HashSetExt as _};
use locklab_trace::{Attempt, Event, Thread, Trace};

/// The fewest times that a lock is taken before it is called one.
pub(super) const FEWEST: usize = 16;
/// The number of sections of which one may be neither: at the start and the end of threads.
pub(super) const PER_OTHER: usize = 25;

/// A mutex and the one condition that is waited for with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Pair {
    pub(super) image: u64,
    pub(super) mutex: u64,
    pub(super) condition: u64,
}

/// Describes what a thread does with a pair.
#[derive(Clone, Copy, Default)]
struct Turn {
    /// Says whether it is in a section of the mutex, whether it has waited for the condition
    /// there, and whether it has signalled it.
    within: Option<(bool, bool)>,
    /// Says whether there was a section before.
    later: bool,
    /// Says whether it has the lock.
    has: bool,
    counts: Counts,
}

/// Counts what all threads did with a pair.
#[derive(Clone, Copy, Default)]
struct Counts {
    threads: usize,
    waits: usize,
    holds: usize,
    others: usize,
}

impl Counts {
    fn add(&mut self, more: &Self) {
        self.threads += more.threads;
        self.waits += more.waits;
        self.holds += more.holds;
        self.others += more.others;
    }
}

impl Turn {
    /// Ends a section; the same rules as for the deeds of all sections.
    fn ends(&mut self) {
        let counts = &mut self.counts;
        let Some((waited, signalled)) = self.within.take() else {
            return;
        };
        // Who gives back first has taken it before the recording began.
        self.has |= !self.later && signalled;
        self.later = true;
        match (waited, signalled, self.has) {
            (waited, false, false) => {
                self.has = true;
                counts.threads = 1;
                counts.waits += usize::from(waited);
            }
            (false, true, true) => {
                self.has = false;
                counts.holds += 1;
            }
            (false, false, true) => {}
            _ => counts.others += 1,
        }
    }
}

/// Returns the pairs of a recording whose sections take and give back in turn.
pub(super) fn may_be_locks(trace: &Trace) -> Vec<Pair> {
    let pairs = pairs(trace);
    let mut of_mutex: HashMap<(u64, u64), usize> = HashMap::new();
    let mut of_condition: HashMap<(u64, u64), Vec<usize>> = HashMap::new();
    for (place, pair) in pairs.iter().enumerate() {
        of_mutex.insert((pair.image, pair.mutex), place);
        let condition = (pair.image, pair.condition);
        of_condition.entry(condition).or_default().push(place);
    }
    if pairs.is_empty() {
        return pairs;
    }
    let of_threads = on_all_cpus(&trace.threads, |thread| {
        counts(trace, thread, &pairs, &of_mutex, &of_condition)
    });
    let mut all = vec![Counts::default(); pairs.len()];
    for (pair, counts) in of_threads.into_iter().flatten() {
        all[pair].add(&counts);
    }
    let is_one = |counts: &Counts| {
        counts.threads > 1
            && counts.waits > 0
            && counts.holds >= FEWEST
            && counts.others * PER_OTHER <= counts.holds
    };
    pairs
        .into_iter()
        .zip(&all)
        .filter_map(|(pair, counts)| is_one(counts).then_some(pair))
        .collect()
}

/// Places of pairs by an image and an address in it.
type Places<T> = HashMap<(u64, u64), T>;

/// Returns what a thread did with each pair that it used.
fn counts(
    trace: &Trace,
    thread: &Thread,
    pairs: &[Pair],
    of_mutex: &Places<usize>,
    of_condition: &Places<Vec<usize>>,
) -> HashMap<usize, Counts> {
    let image = thread.image;
    let mut turns: HashMap<usize, Turn> = HashMap::new();
    let mut releases = None;
    for (_, event) in trace.events(thread) {
        match event {
            Event::Request { lock, access, .. } => {
                if let Some(&pair) = of_mutex.get(&(image, lock)) {
                    let waits = access.attempt == Attempt::Waits;
                    turns.entry(pair).or_default().within = waits.then_some((false, false));
                    releases = None;
                }
            }
            Event::Wait {
                condition, lock, ..
            } => {
                if let Some(&pair) = of_mutex.get(&(image, lock))
                    && pairs[pair].condition == condition
                    && let Some((waited, _)) = &mut turns.entry(pair).or_default().within
                {
                    *waited = true;
                }
            }
            Event::Signal { condition, .. } => {
                for pair in of_condition.get(&(image, condition)).into_iter().flatten() {
                    if let Some((_, signalled)) = &mut turns.entry(*pair).or_default().within {
                        *signalled = true;
                    }
                }
            }
            Event::Release { lock } => {
                releases = of_mutex.get(&(image, lock)).copied().or(releases);
            }
            Event::Released => {
                if let Some(pair) = releases.take() {
                    turns.entry(pair).or_default().ends();
                }
            }
            _ => {}
        }
    }
    let counts = turns.into_iter().map(|(pair, turn)| (pair, turn.counts));
    counts.collect()
}

/// Returns the mutexes that are waited with for one condition each, in the order of
/// their addresses.
fn pairs(trace: &Trace) -> Vec<Pair> {
    let of_threads = on_all_cpus(&trace.threads, |thread| {
        let mut waits: HashSet<(u64, u64)> = HashSet::new();
        for (_, event) in trace.events(thread) {
            if let Event::Wait {
                condition, lock, ..
            } = event
            {
                waits.insert((lock, condition));
            }
        }
        waits
    });
    let mut conditions: HashMap<(u64, u64), HashSet<u64>> = HashMap::new();
    for (thread, waits) in trace.threads.iter().zip(of_threads) {
        for (lock, condition) in waits {
            let of_mutex = conditions.entry((thread.image, lock)).or_default();
            of_mutex.insert(condition);
        }
    }
    let mut pairs: Vec<Pair> = conditions
        .into_iter()
        .filter(|(_, conditions)| conditions.len() == 1)
        .flat_map(|((image, mutex), conditions)| {
            conditions.into_iter().map(move |condition| Pair {
                image,
                mutex,
                condition,
            })
        })
        .collect();
    pairs.sort_by_key(|pair| (pair.image, pair.mutex));
    pairs
}
