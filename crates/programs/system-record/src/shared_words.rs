//! Tells which addresses of several processes are one word in memory that they share.
//!
//! Nothing in a recording says it but this: a process that wakes waiters at its address woke
//! one that waits in another process, at an address of its own. It must never join two words
//! for a single wake-up, which an interrupt may have made meanwhile.

use crate::recording::{Event, Events, Happened};
use std::collections::HashMap;

/// An address in a process.
pub(crate) type Word = (u32, u64);

/// The fewest wake-ups from one address to another that make them one word.
const FEWEST: usize = 2;

/// The words that processes share.
#[derive(Default)]
pub(crate) struct SharedWords(HashMap<Word, Word>);

impl SharedWords {
    /// Finds them in a recording.
    pub(crate) fn find(events: &Events) -> Self {
        let mut pairs = events.threads.windows(2);
        if pairs.all(|pair| pair[0].process == pair[1].process) {
            // One process shares no word.
            return Self::default();
        }
        let process = |thread: u32| events.threads[thread as usize].process;
        let (mut waiting, mut waking) = (HashMap::new(), HashMap::new());
        let mut woken: HashMap<(Word, Word), usize> = HashMap::new();
        for Event(_, thread, happened) in &events.events {
            match *happened {
                Happened::Waits(address, _) => {
                    waiting.insert(*thread, (process(*thread), address));
                }
                Happened::Wakes(address) => {
                    waking.insert(*thread, (process(*thread), address));
                }
                Happened::FutexEnded(_) => match waking.remove(thread) {
                    Some(_) => {}
                    None => drop(waiting.remove(thread)),
                },
                Happened::Wakened(other) => {
                    if let (Some(from), Some(to)) = (waking.get(thread), waiting.get(&other))
                        && from.0 != to.0
                    {
                        *woken.entry((*from, *to)).or_default() += 1;
                    }
                }
                _ => {}
            }
        }
        let mut shared = Self::default();
        let mut pairs: Vec<_> = woken.into_iter().collect();
        pairs.sort_unstable();
        for ((from, to), count) in pairs {
            let (from, to) = (shared.of(from), shared.of(to));
            if count >= FEWEST && from != to {
                shared.0.insert(from.max(to), from.min(to));
            }
        }
        shared
    }

    /// Returns the word that stands for this one in all processes.
    pub(crate) fn of(&self, mut word: Word) -> Word {
        while let Some(next) = self.0.get(&word) {
            word = *next;
        }
        word
    }
}
