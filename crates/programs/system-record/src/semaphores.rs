//! Tells a semaphore that is a lock from one that is a queue: whoever waits for a lock gives it
//! back, and whoever waits for work does not make it.
//!
//! It must never take a semaphore for a lock that is posted by other threads.

use crate::recording::{Event, Events, Happened};
use crate::shared_words::{SharedWords, Word};
use std::collections::{HashMap, HashSet};

/// The fewest posts that woke a waiter before a semaphore is called a lock.
const FEWEST: usize = 8;
/// One of so many posts may be of another thread: at the start, or at the end.
const PER_OTHER: usize = 10;

/// Describes who waits for a semaphore, and who posts it.
#[derive(Default)]
struct Semaphore {
    waiters: HashSet<u32>,
    /// Posts that called the system, by thread.
    posts: HashMap<u32, usize>,
}

/// Returns the semaphores that are used as locks; `waits` says of a stack whether it waits
/// for a semaphore.
pub(crate) fn semaphores_as_locks(
    events: &Events,
    shared: &SharedWords,
    waits: impl Fn(u32) -> bool,
) -> HashSet<Word> {
    let mut all: HashMap<Word, Semaphore> = HashMap::new();
    let word = |thread: u32, address| {
        let process = events.threads[thread as usize].process;
        shared.of((process, address))
    };
    for Event(_, thread, happened) in &events.events {
        if let Happened::Waits(address, stack) = *happened
            && waits(stack)
        {
            let semaphore = all.entry(word(*thread, address)).or_default();
            semaphore.waiters.insert(*thread);
        }
    }
    for Event(_, thread, happened) in &events.events {
        if let Happened::Wakes(address) = *happened
            && let Some(semaphore) = all.get_mut(&word(*thread, address))
        {
            *semaphore.posts.entry(*thread).or_default() += 1;
        }
    }
    let is_lock = |semaphore: &Semaphore| {
        let own = |(thread, _): &(&u32, &usize)| semaphore.waiters.contains(thread);
        let of_waiters: usize = semaphore
            .posts
            .iter()
            .filter(own)
            .map(|(_, posts)| posts)
            .sum();
        let posts: usize = semaphore.posts.values().sum();
        semaphore.waiters.len() > 1
            && of_waiters >= FEWEST
            && (posts - of_waiters) * PER_OTHER <= posts
    };
    all.into_iter()
        .filter_map(|(place, semaphore)| is_lock(&semaphore).then_some(place))
        .collect()
}
