//! The records of all threads in order of time.

use crate::event::Event;
use crate::read::{Thread, Trace};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The records of all threads in order of time: the place of the thread in
/// [`Trace::threads`], the time in ticks, and what happened. Those of one time
/// come in the order of threads.
pub struct InOrder<'a> {
    threads: Vec<Box<dyn Iterator<Item = (u64, Event<'a>)> + 'a>>,
    next: Vec<Option<(u64, Event<'a>)>>,
    heap: BinaryHeap<Reverse<(u64, usize)>>,
}

impl Trace {
    /// Returns the records of all threads in order of time.
    #[must_use]
    pub fn in_order(&self) -> InOrder<'_> {
        let events = |thread| -> Box<dyn Iterator<Item = (u64, Event<'_>)> + '_> {
            let thread: &Thread = thread;
            Box::new(self.events(thread))
        };
        let mut threads: Vec<_> = self.threads.iter().map(events).collect();
        let next: Vec<_> = threads.iter_mut().map(Iterator::next).collect();
        let heap = next
            .iter()
            .enumerate()
            .filter_map(|(thread, next)| Some(Reverse((next.as_ref()?.0, thread))))
            .collect();
        InOrder {
            threads,
            next,
            heap,
        }
    }
}

impl<'a> Iterator for InOrder<'a> {
    type Item = (usize, u64, Event<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let mut top = self.heap.peek_mut()?;
        let Reverse((_, thread)) = *top;
        let (tick, event) = self.next[thread].take()?;
        self.next[thread] = self.threads[thread].next();
        match &self.next[thread] {
            Some((following, _)) => *top = Reverse(((*following).max(tick), thread)),
            None => {
                std::collections::binary_heap::PeekMut::pop(top);
            }
        }
        Some((thread, tick, event))
    }
}
