//! Tells a semaphore that is a lock from one that is a queue, and a word of the program's own
//! that is a lock from an event: whoever waits for a lock gives it back, and whoever waits for
//! work does not make it.
//!
//! It must never take for a lock what other threads post. What may be one stays open: a
//! semaphore that one thread posts again and again may be a queue, or a lock that this thread
//! takes back each time; a condition whose waiters signal it may be a lock that is made of it.

use crate::recording::{Event, Events, Happened};
use crate::shared_words::{SharedWords, Word};
use std::collections::{HashMap, HashSet};

/// The fewest posts that woke a waiter before a semaphore is called a lock.
const FEWEST: usize = 8;
/// One of so many posts may be of another thread: at the start, or at the end.
const PER_OTHER: usize = 10;

/// Says what a stack tells of a wait whose kind the waiters' behaviour has to tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Untold {
    /// It is for a semaphore.
    Semaphore,
    /// It is for a condition.
    Condition,
    /// It is parked, at a word of its own.
    Parked,
    /// No function of it is known.
    Unnamed,
}

/// Describes who waits for a semaphore, and who posts it.
#[derive(Default)]
struct Semaphore {
    waiters: HashSet<u32>,
    /// Posts that called the system, by thread.
    posts: HashMap<u32, usize>,
    /// Says what a stack tells that waits for it.
    told: Option<Untold>,
    /// The threads whose last call was a wait.
    waited: HashSet<u32>,
    /// Waits after which the thread posted, and after which it waited again. Who waits at a
    /// barrier or for an event mostly waits again.
    given_back: usize,
    waited_again: usize,
}

/// Returns the words that are used as locks, and those that may be; `untold` says of a stack
/// whether the behaviour of the waiters has to tell it.
pub(crate) fn words_as_locks(
    events: &Events,
    shared: &SharedWords,
    untold: impl Fn(u32) -> Option<Untold>,
) -> [HashSet<Word>; 2] {
    let mut all: HashMap<Word, Semaphore> = HashMap::new();
    let word = |thread: u32, address| {
        let process = events.threads[thread as usize].process;
        shared.of((process, address))
    };
    for Event(_, thread, happened) in &events.events {
        if let Happened::Waits(address, stack) = *happened
            && let Some(untold) = untold(stack)
        {
            let semaphore = all.entry(word(*thread, address)).or_default();
            semaphore.waiters.insert(*thread);
            semaphore.told = semaphore.told.max(Some(untold));
        }
    }
    for Event(_, thread, happened) in &events.events {
        let (Happened::Waits(address, _) | Happened::Wakes(address)) = *happened else {
            continue;
        };
        let Some(semaphore) = all.get_mut(&word(*thread, address)) else {
            continue;
        };
        if let Happened::Waits(..) = happened {
            let again = !semaphore.waited.insert(*thread);
            semaphore.waited_again += usize::from(again);
        } else {
            let back = semaphore.waited.remove(thread);
            semaphore.given_back += usize::from(back);
            *semaphore.posts.entry(*thread).or_default() += 1;
        }
    }
    let mut found = [HashSet::new(), HashSet::new()];
    let mut parked = (Semaphore::default(), Vec::new());
    for (word, semaphore) in all {
        let gives_back = semaphore.waited_again <= semaphore.given_back;
        match (semaphore.told, semaphore.is_posted_by_waiters()) {
            (Some(Untold::Semaphore), true) => found[0].insert(word),
            (Some(Untold::Unnamed), true) if gives_back => found[0].insert(word),
            // Who is woken with all others may find the lock taken, and wait again.
            (Some(Untold::Condition), true) => found[1].insert(word),
            (Some(Untold::Semaphore), false) if semaphore.all_posts() >= FEWEST => {
                found[1].insert(word)
            }
            (Some(Untold::Parked), _) => {
                parked.0.waiters.extend(semaphore.waiters);
                for (thread, posts) in semaphore.posts {
                    *parked.0.posts.entry(thread).or_default() += posts;
                }
                parked.1.push(word);
                true
            }
            _ => false,
        };
    }
    if parked.0.is_posted_by_waiters() {
        found[1].extend(parked.1);
    }
    found
}

impl Semaphore {
    fn all_posts(&self) -> usize {
        self.posts.values().sum()
    }

    /// Returns whether those that wait for it are those that post it, but for a few.
    fn is_posted_by_waiters(&self) -> bool {
        let own = self
            .posts
            .iter()
            .filter(|(thread, _)| self.waiters.contains(thread));
        let of_waiters: usize = own.map(|(_, posts)| posts).sum();
        let posts = self.all_posts();
        self.waiters.len() > 1 && of_waiters >= FEWEST && (posts - of_waiters) * PER_OTHER <= posts
    }
}
