//! Work on several CPUs at a time: what is done with each of some things by itself.
//!
//! What comes of it must never depend on the number of CPUs.

use locklab_trace::{Event, Trace};
use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::{Mutex, PoisonError};
use std::thread;

/// The number of records that are handed over at a time, and how often ahead.
const AT_A_TIME: usize = 4096;
const AHEAD: usize = 4;

/// Calls `take` with the records of all threads in order of time, which another CPU reads
/// meanwhile, some ahead: [`Trace::in_order`]. Returns what it returns. Records that say
/// where a window ends are left out: what they mean for locks stands before them.
///
/// # Panics
/// If `take` does.
pub(crate) fn in_order_ahead<'a, R>(
    trace: &'a Trace,
    take: impl FnOnce(&mut dyn Iterator<Item = (usize, u64, Event<'a>)>) -> R,
) -> R {
    thread::scope(|scope| {
        let (send, receive) = sync_channel(AHEAD);
        scope.spawn(move || {
            let says_more = |(_, _, event): &_| !matches!(event, Event::Window { .. });
            let mut records = trace.in_order().filter(says_more);
            loop {
                let some: Vec<_> = records.by_ref().take(AT_A_TIME).collect();
                // Nobody may want more of them.
                if some.is_empty() || send.send(some).is_err() {
                    break;
                }
            }
        });
        take(&mut receive.into_iter().flatten())
    })
}

/// Returns what `of` makes of each item, in their order.
///
/// # Panics
/// If `of` does.
pub(crate) fn on_all_cpus<T: Sync, R: Send>(items: &[T], of: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let cpus = thread::available_parallelism().map_or(1, NonZero::get);
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<(usize, R)>> = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..cpus.min(items.len()) {
            scope.spawn(|| {
                // Relaxed: each number is given once, and the results have a mutex.
                while let at = next.fetch_add(1, Ordering::Relaxed)
                    && let Some(item) = items.get(at)
                {
                    let result = of(item);
                    done.lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .push((at, result));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::on_all_cpus;

    #[test]
    fn results_are_in_the_order_of_their_items() {
        let items: Vec<usize> = (0..1000).collect();
        let doubled = on_all_cpus(&items, |item| 2 * item);
        assert!(doubled.iter().zip(&items).all(|(two, one)| *two == 2 * one));
        assert!(on_all_cpus(&[], |item: &usize| *item).is_empty());
    }
}
