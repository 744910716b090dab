//! The records of all threads in order of time.

use crate::event::Event;
use crate::read::{Records, Trace};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The records of all threads in order of time: the place of the thread in
/// [`Trace::threads`], the time in ticks, and what happened. Those of one time
/// come in the order of threads.
pub struct InOrder<'a> {
    threads: Vec<Records<'a>>,
    /// The thread that is next, with its record: most are of the thread of the one before.
    next: Option<(usize, u64, Event<'a>)>,
    /// The records that are next of the others, and when.
    others: Vec<Option<(u64, Event<'a>)>>,
    heap: BinaryHeap<Reverse<(u64, usize)>>,
}

impl Trace {
    /// Returns the records of all threads in order of time.
    #[must_use]
    pub fn in_order(&self) -> InOrder<'_> {
        let mut threads: Vec<_> = self
            .threads
            .iter()
            .map(|thread| self.events(thread))
            .collect();
        let others: Vec<_> = threads.iter_mut().map(Iterator::next).collect();
        let heap = others
            .iter()
            .enumerate()
            .filter_map(|(thread, next)| Some(Reverse((next.as_ref()?.0, thread))))
            .collect();
        let mut records = InOrder {
            threads,
            next: None,
            others,
            heap,
        };
        records.next = records.first_of_others();
        records
    }
}

impl<'a> InOrder<'a> {
    fn first_of_others(&mut self) -> Option<(usize, u64, Event<'a>)> {
        let Reverse((_, thread)) = self.heap.pop()?;
        let (tick, event) = self.others[thread].take()?;
        Some((thread, tick, event))
    }
}

impl<'a> Iterator for InOrder<'a> {
    type Item = (usize, u64, Event<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let record = self.next.take()?;
        let (thread, tick, _) = record;
        self.next = match self.threads[thread].next() {
            None => self.first_of_others(),
            Some((following, event)) => {
                let when = (following.max(tick), thread);
                match self.heap.peek_mut() {
                    Some(mut first) if first.0 < when => {
                        let Reverse((_, other)) = std::mem::replace(&mut *first, Reverse(when));
                        self.others[thread] = Some((following, event));
                        let (tick, event) = self.others[other].take()?;
                        Some((other, tick, event))
                    }
                    _ => Some((thread, following, event)),
                }
            }
        };
        Some(record)
    }
}
